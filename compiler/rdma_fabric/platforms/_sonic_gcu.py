"""What SONiC's generic config updater (GCU) lets a patch touch, per release branch and hardware SKU.

Source: sonic-utilities, `generic_config_updater/gcu_field_operation_validators.conf.json`,
`field_operation_validators.py` and `gu_common.py` of each branch (202305 ... master, read in 2026).
The updater names the ASIC family by a fixed list of SKUs; a SKU that is not in it is refused in
every guarded table. Rolling back is a patch too, and is guarded the same way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

MASTER: Final = 10**9
"""The branch number of master and of images whose version names no branch; newer than every other."""

PATCH_SORTER: Final = (
    "https://github.com/sonic-net/sonic-utilities generic_config_updater/patch_sorter.py "
    "(RequiredValueIdentifier)"
)
FLAPPING: Final = frozenset(
    {
        "BUFFER_PG",
        "BUFFER_QUEUE",
        "BUFFER_PORT_INGRESS_PROFILE_LIST",
        "BUFFER_PORT_EGRESS_PROFILE_LIST",
        "PORT_QOS_MAP",
        "QUEUE",
    }
)
"""Tables whose rows of a port the updater changes only while the port is administratively down."""

# Family -> first branch that lists the family for PFC_WD and WRED_PROFILE.
_FAMILY_SINCE: Final[Mapping[str, int]] = {
    **dict.fromkeys(("spc1", "spc2", "spc3", "spc4", "td2", "td3", "th", "th2", "cisco-8000"), 202305),
    **dict.fromkeys(("th3", "th4", "th5", "j2c+"), 202405),
    **dict.fromkeys(("spc5", "td4", "q2c+"), 202505),
    **dict.fromkeys(("q3d", "marvell-teralynx"), 202511),
    "th6": 202605,
    "spc6": MASTER,
}

# Family -> (first branch, SKUs). NVIDIA SKUs must match whole, Broadcom ones as a part of the name.
_NVIDIA: Final[Mapping[str, tuple[tuple[int, str], ...]]] = {
    "spc1": (
        (202305, "ACS-MSN2700 ACS-MSN2740 ACS-MSN2100 ACS-MSN2410 ACS-MSN2010 ACS-MSN2700-A1"),
        (202305, "Mellanox-SN2700 Mellanox-SN2700-C28D8 Mellanox-SN2700-D40C8S8 Mellanox-SN2700-D44C10"),
        (202305, "Mellanox-SN2700-D48C8 Mellanox-SN2700-A1 Mellanox-SN2700-A1-C28D8"),
        (202305, "Mellanox-SN2700-A1-D40C8S8 Mellanox-SN2700-A1-D44C10 Mellanox-SN2700-A1-D48C8"),
    ),
    "spc2": (
        (202305, "ACS-MSN3800 ACS-MSN3420 ACS-MSN3700C ACS-MSN3700 Mellanox-SN3800-D112C8"),
        (202305, "Mellanox-SN3800-C64 Mellanox-SN3800-D100C12S2 Mellanox-SN3800-D24C52"),
        (202305, "Mellanox-SN3800-D28C49S1 Mellanox-SN3800-D28C50"),
    ),
    "spc3": (
        (202305, "ACS-MSN4700 ACS-MSN4600 ACS-MSN4600C ACS-MSN4410 Mellanox-SN4600C-D112C8"),
        (202305, "Mellanox-SN4600C-C64 Mellanox-SN4700-O8C48 Mellanox-SN4600C-D100C12S2"),
        (202305, "Mellanox-SN4600C-D48C40 Mellanox-SN4700-A96C8V8 Mellanox-SN4700-C128"),
        (202305, "Mellanox-SN4700-O28 Mellanox-SN4700-O8V48 Mellanox-SN4700-V48C32"),
        (202311, "Mellanox-SN4700-O32 Mellanox-SN4700-V64"),
        (202405, "ACS-SN4280 Mellanox-SN4280-O28"),
        (202411, "Mellanox-SN4280-C48 Mellanox-SN4280-O8C40 Mellanox-SN4280-O8V40"),
        (202505, "Mellanox-SN4280-O8C80"),
        (202511, "Mellanox-SN4280-O4X96"),
    ),
    "spc4": (
        (202305, "ACS-SN5600"),
        (202311, "Mellanox-SN5600-O128 Mellanox-SN5600-V256 ACS-SN5400"),
        (202405, "Mellanox-SN5600-C256S1 Mellanox-SN5600-C224O8"),
        (202411, "Mellanox-SN5610N-C256S2 Mellanox-SN5610N-C224O8"),
    ),
    "spc5": (
        (202411, "ACS-SN5640"),
        (202505, "Mellanox-SN5640-C512S2 Mellanox-SN5640-C448O16"),
        (202511, "Mellanox-SN5640-C512X2 Mellanox-SN5640-C508O1X2 Mellanox-SN5640-O128X2"),
    ),
    "spc6": (
        (202605, "ACS-SN6600_LD"),
        (MASTER, "Mellanox-SN6600_LD-P128C2 Mellanox-SN6600_LD-P64O128C2 ACS-SN6810_LD"),
    ),
}
_BROADCOM: Final[Mapping[str, tuple[tuple[int, str], ...]]] = {
    "th": (
        (202305, "Force10-S6100 Arista-7060CX-32S-C32 Arista-7060CX-32S-D48C8"),
        (202305, "Celestica-DX010-C32 Seastone-DX010"),
    ),
    "th2": (
        (202305, "Arista-7260CX3-D108C8 Arista-7260CX3-C64 Arista-7260CX3-Q64"),
        (202405, "Arista-7260CX3-D108C10"),
    ),
    "th3": ((202405, "Nokia-IXR7220-H3"),),
    "th4": ((202405, "Nokia-IXR7220-H4-64D Nokia-IXR7220-H4-32D"),),
    "th5": (
        (202405, "Nokia-IXR7220-H5-64D"),
        (202411, "Arista-7060X6-64DE Arista-7060X6-64PE"),
        (202505, "Nokia-IXR7220-H5-64O Nokia-IXR7220-H5-32D Arista-7060X6-16PE-384C-B-O128S2"),
    ),
    "th6": ((202605, "Nokia-IXR7220-H6-64 Nokia-IXR7220-H6-P128 Nokia-IXR7220-H6-O256"),),
    "td2": (
        (202305, "Force10-S6000 Force10-S6000-Q24S32 Arista-7050-QX32 Arista-7050-QX-32S Nexus-3164"),
        (202305, "Arista-7050QX32S-Q32"),
    ),
    "td3": (
        (202305, "Arista-7050CX3-32S-C32 Arista-7050CX3-32S-D48C8"),
        (202405, "Arista-7050CX3-32S-C28S4"),
        (202505, "Arista-7050CX3-32C-C32"),
        (202605, "Arista-7050CX3-32C-C28S4"),
    ),
    "td4": ((202505, "Nokia-IXR7220-D4-36D"),),
    "j2c+": (
        (202405, "Nokia-IXR7250E-36x100G Nokia-IXR7250E-36x400G"),
        (202505, "Nokia-IXR7250-X3B"),
        (202511, "Arista-7800R3A-36DM2-D36"),
    ),
    "q2c+": ((202505, "Nokia-IXR7250-X1B"),),
    "q3d": ((202511, "Arista-7280R4-32QF-32DF-64O Arista-7280R4K-32QF-32DF-64O"),),
}

_GREEN: Final = frozenset({"green_min_threshold", "green_max_threshold", "green_drop_probability"})
_WATCHDOG: Final = frozenset({"action", "detection_time", "restoration_time"})
TUNABLE_PROFILE: Final = "AZURE_LOSSLESS"
"""Before 202505 the updater tunes only the WRED profile of this name."""

Kind = Literal["add", "replace", "remove"]


@dataclass(frozen=True, slots=True)
class Op:
    """One operation of a patch. `key` "" = the whole table, `field` "" = the whole row.

    `value` and `old` are a field's text, a row or a table; None where there is none.
    """

    kind: Kind
    table: str
    key: str
    field: str
    value: object
    old: object

    @property
    def reversed(self) -> Op:
        """The operation that takes this one back."""
        kind: Kind = {"add": "remove", "remove": "add", "replace": "replace"}[self.kind]  # type: ignore[assignment]
        return Op(kind, self.table, self.key, self.field, self.old, self.value)

    @property
    def path(self) -> str:
        """The JSON pointer (RFC 6901)."""
        parts = [part for part in (self.table, self.key, self.field) if part]
        return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)


def branch_of(version: str) -> int:
    """Release branch of a version text: "SONiC.202411.1-abc" -> 202411; MASTER where it names none."""
    found = re.search(r"(20\d\d(?:0[1-9]|1[0-2]))", version)
    return int(found.group(1)) if found else MASTER


@cache
def family(asic_type: str, hwsku: str, branch: int) -> str:
    """The updater's name of the ASIC family, "" when it does not know the SKU on this branch."""
    if asic_type == "cisco-8000" or (asic_type == "marvell-teralynx" and branch >= 202511):
        return asic_type
    wanted = hwsku.lower()
    if asic_type in ("mellanox", "vs"):
        for name, rows in _NVIDIA.items():
            if any(wanted == sku.lower() for sku in _skus(rows, branch)):
                return name
    if asic_type in ("broadcom", "vs"):
        for name, rows in _BROADCOM.items():
            if any(sku.lower() in wanted for sku in _skus(rows, branch)):
                return name
    return ""


def _skus(rows: tuple[tuple[int, str], ...], branch: int) -> list[str]:
    return [sku for since, names in rows if since <= branch for sku in names.split()]


def permitted(op: Op, branch: int, asic: str) -> bool:
    """True when the updater of this branch accepts the operation for the ASIC family."""
    listed = bool(asic) and _FAMILY_SINCE.get(asic, MASTER + 1) <= branch
    if op.table == "PFC_WD":
        return listed and _watchdog(op)
    if op.table == "WRED_PROFILE":
        return branch >= 202511 or (listed and _wred(op, branch))
    if op.table == "BUFFER_PROFILE":
        return branch >= 202511 and bool(op.key) and not op.field
    return op.table != "BUFFER_POOL"


def reversible(op: Op, branch: int, asic: str) -> bool:
    """True when the updater accepts the operation and also the one that takes it back."""
    return permitted(op, branch, asic) and permitted(op.reversed, branch, asic)


def _wred(op: Op, branch: int) -> bool:
    named = branch >= 202505 or op.key == TUNABLE_PROFILE
    return op.kind == "replace" and named and op.field in _GREEN


def _watchdog(op: Op) -> bool:
    """A new table and a whole new GLOBAL row are refused too: the validator compares
    "global/POLL_INTERVAL" and the names of ports with its lower-case list of fields."""
    if not op.key:
        return op.kind == "remove"
    if op.key == "GLOBAL":
        return op.field == "POLL_INTERVAL" and op.kind != "remove"
    if op.field:
        return op.field in _WATCHDOG
    return op.kind == "remove" or (isinstance(op.value, Mapping) and set(op.value) <= _WATCHDOG)
