"""The intent file as pydantic models: one model per thing, shorthands expanded by one validator each.

`Wishes` holds every key that may also be set per network, by an override, or by inventory data;
`Intent` adds what exists once per file. Field names are the user's keys.
"""

from __future__ import annotations

import datetime
import ipaddress
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, RootModel, WithJsonSchema, model_validator

from rdma_fabric.findings import BadValue, shown
from rdma_fabric.intent.quantities import Duration, Percent, Ratio, Size, Speed, Threshold
from rdma_fabric.state import MTU_MAX

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic_core import CoreSchema

RDMA_MTUS: Final = (256, 512, 1024, 2048, 4096)
REST: Final = -1
"""Stands in a class's DSCP list for "every code point that no other class takes"."""


class Model(BaseModel):
    """Base of every model: unknown keys are errors, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False)


class _Or:
    """Adds the shorthands, which a validator expands, to the JSON Schema of a field."""

    def __init__(self, *shorthands: dict[str, Any]) -> None:
        self.shorthands = shorthands

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [handler(schema), *self.shorthands]}


_OFF_OR_DEVICE: Final = {"enum": [False, "device"]}
_RAMP_KEYS: Final = ("kmin", "kmax", "pmax", "profile", "colours")

Flag = Annotated[bool, Field(strict=True)]
"""true or false; not 1, "true" or "on", which readers take differently."""


def _line(value: Any) -> Any:
    """Text that reports print as it is: one line, nothing invisible."""
    odd = next((c for c in value if not c.isprintable()), None) if isinstance(value, str) else None
    if odd is not None:
        raise BadValue(f"the text holds the character U+{ord(odd):04X}", "write one line of visible text")
    return value


Line = Annotated[str, BeforeValidator(_line)]


def _version(value: Any) -> Any:
    if type(value) is not int:  # Python holds true and 1.0 for equal to 1
        raise BadValue(f"{shown(str(value))} is not a version", "write version: 1")
    return value


def _mtu(value: Any) -> Any:
    if value == "max":
        return MTU_MAX
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadValue(f"{shown(str(value))} is not an MTU", "write a number of bytes, or max")
    if not 68 <= value <= 65535:
        raise BadValue(f"{value} is not an IP MTU", "write 68 to 65535 bytes, or max")
    return value


MtuNumber = Annotated[
    int,
    BeforeValidator(_mtu),
    WithJsonSchema({"anyOf": [{"const": "max"}, {"type": "integer", "minimum": 68, "maximum": 65535}]}),
]
"""IP MTU in bytes; MTU_MAX for "max"."""


def _priority(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 7:
        raise BadValue(f"{shown(str(value))} is not a priority", "write a whole number from 0 to 7")
    return value


Priority = Annotated[
    int, BeforeValidator(_priority), WithJsonSchema({"type": "integer", "minimum": 0, "maximum": 7})
]


def _dscps(value: Any) -> Any:
    if value == "rest":
        return (REST,)
    items = value if isinstance(value, list) else [value]
    found: list[int] = []
    for item in items:
        found.extend(_dscp_item(item))
    return tuple(found)


def _dscp_item(item: Any) -> range | tuple[int, ...]:
    if isinstance(item, str) and item.count("-") == 1:
        low, high = (part.strip() for part in item.split("-"))
        if low.isdigit() and high.isdigit() and int(low) <= int(high) <= 63:
            return range(int(low), int(high) + 1)
    if isinstance(item, int) and not isinstance(item, bool) and 0 <= item <= 63:
        return (item,)
    raise BadValue(
        f"{shown(str(item))} is not a DSCP", 'write a number from 0 to 63, a range such as "24-31", or rest'
    )


DscpSet = Annotated[
    tuple[int, ...],
    BeforeValidator(_dscps),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": "^(rest|[0-9]+-[0-9]+)$"},
                {"type": "integer", "minimum": 0, "maximum": 63},
                {
                    "type": "array",
                    "items": {
                        "anyOf": [
                            {"type": "integer", "minimum": 0, "maximum": 63},
                            {"type": "string", "pattern": "^[0-9]+-[0-9]+$"},
                        ]
                    },
                },
            ]
        }
    ),
]


class Rdma(Model):
    """What the applications ask for."""

    transport: Literal["rocev2", "infiniband"] = "rocev2"
    mtu: Annotated[
        int,
        BeforeValidator(lambda value: _rdma_mtu(value)),
        WithJsonSchema({"enum": list(RDMA_MTUS)}),
    ] = 4096


def _rdma_mtu(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int) or value not in RDMA_MTUS:
        raise BadValue(
            f"{shown(str(value))} is not an RDMA MTU", f"write one of {', '.join(map(str, RDMA_MTUS))}"
        )
    return value


class MtuWish(Model):
    """IP MTU in bytes by kind of port; absent = left to the device."""

    switch: MtuNumber | None = None
    host: MtuNumber | None = None
    svi: MtuNumber | None = None
    """Switch virtual interfaces; default: as `switch`."""


class EcnThresholds(Model):
    """One marking ramp. `mode` is expanded from the shorthands false, device and profile."""

    mode: Literal["set", "off", "device"] = "set"
    kmin: Threshold | None = None
    kmax: Threshold | None = None
    pmax: Percent = Percent(100)
    colours: dict[Literal["yellow", "red"], ColourThresholds] = Field(default_factory=dict)
    profile: str = ""
    """Name of a published source in the thresholds table."""

    @model_validator(mode="after")
    def _complete(self) -> EcnThresholds:
        if self.mode == "set" and not self.profile and (self.kmin is None or self.kmax is None):
            raise BadValue(
                "the ramp is not complete",
                "give both kmin and kmax, or profile: NAME, or write device or false",
            )
        return self


class ColourThresholds(Model):
    """Ramp of yellow or red packets where it differs from green."""

    kmin: Threshold
    kmax: Threshold
    pmax: Percent = Percent(100)


EcnThresholds.model_rebuild()


def _ecn_table(value: Any) -> Any:
    if value is False:
        return {"any": {"mode": "off"}}
    if value == "device":
        return {"any": {"mode": "device"}}
    if isinstance(value, dict) and value.keys() & set(_RAMP_KEYS):
        return {"any": value}
    if isinstance(value, dict):
        return {key: _ecn_row(row) for key, row in value.items()}
    return value


def _ecn_row(row: Any) -> Any:
    if row is False:
        return {"mode": "off"}
    return {"mode": "device"} if row == "device" else row


SpeedKey = Annotated[
    str,
    BeforeValidator(lambda value: value if value == "any" else str(Speed.parse(value))),
    WithJsonSchema({"type": "string", "pattern": "^(any|[0-9]+G)$"}),
]


_BareRamp = {
    "type": "object",
    "properties": {key: {} for key in _RAMP_KEYS},
    "additionalProperties": False,
    "minProperties": 1,
}
_EcnRow = Annotated[EcnThresholds, _Or(_OFF_OR_DEVICE)]
_EcnRows = Annotated[dict[SpeedKey, _EcnRow], BeforeValidator(_ecn_table), _Or(_OFF_OR_DEVICE, _BareRamp)]


class EcnTable(RootModel[_EcnRows]):
    """Port speed ("400G") or "any" -> ramp; `ecn: false`, `ecn: device` and one bare ramp mean "any"."""

    model_config = ConfigDict(frozen=True)

    def at(self, speed_gbps: int) -> EcnThresholds | None:
        """The ramp for a port of that speed, or None when the table has none."""
        return self.root.get(f"{speed_gbps}G") or self.root.get("any")


class PfcScope(Model):
    """PFC of one lossless class where it is not both ways on every port."""

    tx: Flag = True
    rx: Flag = True


def _pfc_scope(value: Any) -> Any:
    if isinstance(value, bool):
        return {"tx": value, "rx": value}
    return {"tx": False, "rx": True} if value == "receive-only" else value


ClassKind = Literal["data", "cnp", "control", "best-effort"]


class TrafficClass(Model):
    """One class: which packets, which priority, and what the priority is given."""

    priority: Priority
    dscp: DscpSet = ()
    pcp: tuple[Priority, ...] = ()
    """802.1p values that also enter this class; default: its own priority."""
    lossless: Flag = False
    bandwidth: Percent | None = None
    weight: Annotated[int, Field(strict=True, ge=1, le=255)] | None = None
    """Relative weight where percent is not meant."""
    scheduler: Literal["strict", "dwrr"] | None = None
    cap: Percent | None = None
    """Upper limit of a strict class, percent of line rate."""
    ecn: EcnTable | None = None
    pfc: Annotated[
        PfcScope, BeforeValidator(_pfc_scope), _Or({"type": "boolean"}, {"const": "receive-only"})
    ] = PfcScope()
    headroom: Size | None = None
    """Bytes per port, overrides pfc.headroom."""
    kind: ClassKind | None = None
    """Default: from the class's name (cnp, control), else data."""
    sl: Annotated[int, Field(strict=True, ge=0, le=15)] | None = None
    """InfiniBand: service level of this class. Without one the class is none of an InfiniBand network."""
    vl: Annotated[int, Field(strict=True, ge=0, le=14)] | None = None
    """InfiniBand: virtual lane; default: the classes' lanes are counted from 0 by service level."""


def _watchdog(value: Any) -> Any:
    if value is False:
        return {"mode": "off"}
    if value == "device" or value is True:
        return {"mode": "device"}
    return value


class WatchdogWish(Model):
    """PFC storm watchdog; times absent = the device's own."""

    mode: Literal["set", "device", "off"] = "set"
    detect: Duration | None = None
    restore: Duration | None = None
    poll: Duration | None = None
    action: Literal["drop", "forward", "alert", "errdisable", "notify"] | None = None
    require: Flag = False
    """True: a platform that cannot meet a value exactly is an error instead of a note."""


def _headroom(value: Any) -> Any:
    return None if value == "auto" else value


def _dcbx(value: Any) -> Any:
    return "none" if value in ("off", False, "static") else value


class Pfc(Model):
    """Priority flow control beyond the classes' own `lossless`."""

    watchdog: (
        Annotated[WatchdogWish, BeforeValidator(_watchdog), _Or({"enum": [True, False, "device"]})] | None
    ) = None
    headroom: Annotated[
        Size | None,
        BeforeValidator(_headroom),
        WithJsonSchema({"type": "string", "description": "auto or a size"}),
    ] = None
    """None = auto: the device computes it from the cable length."""
    dcbx: Annotated[
        Literal["none", "ieee", "cee"],
        BeforeValidator(_dcbx),
        WithJsonSchema({"enum": ["none", "off", "ieee", "cee"]}),
    ] = "none"
    enabled: Flag = True
    """False (by override): no PFC on these ports, e.g. spine links of a design that pauses hosts only."""


Parameter = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,55}$")]
ParameterValue = Annotated[int, Field(strict=True, ge=0, le=2**32 - 1)]


class Dcqcn(Model):
    """DCQCN congestion control of the hosts; np and rp are parameters by their usual names."""

    enabled: Flag = True
    np: dict[Parameter, ParameterValue] = Field(default_factory=dict)
    rp: dict[Parameter, ParameterValue] = Field(default_factory=dict)


def _dcqcn(value: Any) -> Any:
    return {"enabled": value} if isinstance(value, bool) else value


def _scalar_text(value: Any) -> Any:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str):
        bad = next((c for c in value if not (c.isprintable() and c.isascii())), None)
        if bad is not None:
            raise BadValue(f"the value holds the character U+{ord(bad):04X}", "use printable characters only")
        return value
    raise BadValue("this is not a single value", "write one text or number")


Scalar = Annotated[
    str, BeforeValidator(_scalar_text), WithJsonSchema({"type": ["string", "integer", "number", "boolean"]})
]
ModuleName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,55}$")]
SysctlKey = Annotated[str, Field(pattern=r"^[a-z0-9_]+(\.[A-Za-z0-9_{}*/-]+)+$")]
ClassName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,30}$")]
UnitName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9:_.@-]{0,60}$")]
EnvName = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{1,60}$")]


_PORT_NUMBER: Final = re.compile(r"(.+)_P[0-9]+")


def _nv_name(value: Any) -> Any:
    """Tools write the number of the card's port behind the names of some settings; here the port says it."""
    port = _PORT_NUMBER.fullmatch(value) if isinstance(value, str) else None
    if port:
        raise BadValue(
            f"{shown(value)} holds the number of a port",
            f"write {port[1]}; every port takes its own number. For one port: an override with port=NAME",
        )
    return value


NvName = Annotated[str, BeforeValidator(_nv_name), Field(pattern=r"^[A-Z][A-Z0-9_]{1,60}$")]
Kind = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]{0,15}$")]
"""A word that a port's `nic` may be."""
Board = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,60}$")]
"""PSID, part number, or "any"."""


def _versions(value: Any) -> Any:
    return {"any": value} if isinstance(value, str | int | float | list) else value


def _version_list(value: Any) -> Any:
    items = value if isinstance(value, list) else [value]
    for item in items:
        if not isinstance(item, str):
            raise BadValue(f"{shown(str(item))} is not a version", 'write it in quotes: "28.43.3608"')
    return tuple(items)


VersionText = Annotated[str, Field(pattern=r"^[A-Za-z0-9*][A-Za-z0-9*._+~-]{0,60}$")]
_ONE_OR_MORE: Final = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
VersionList = Annotated[tuple[VersionText, ...], BeforeValidator(_version_list), WithJsonSchema(_ONE_OR_MORE)]
Versions = Annotated[
    dict[Board, VersionList], BeforeValidator(_versions), Field(min_length=1), _Or(_ONE_OR_MORE)
]
"""Board -> versions that it may have; `*` stands for any characters."""


class Ipoib(Model):
    """IP over InfiniBand on a host's InfiniBand ports."""

    mode: Literal["datagram", "connected"] | None = None
    interfaces: bool = False
    """True: every partition of the port but the default one has an interface of its own (ib0.8010)."""


class Hosts(Model):
    """Host settings outside the NIC's QoS."""

    modules: tuple[ModuleName, ...] = ()
    module_options: dict[ModuleName, dict[ModuleName, Scalar]] = Field(default_factory=dict)
    sysctl: dict[SysctlKey, Scalar] = Field(default_factory=dict)
    """A key may hold `*` for every port in a network: net.ipv4.conf.*.arp_ignore."""
    limits: dict[ModuleName, Scalar] = Field(default_factory=dict)
    """Of every login, in the units of limits.conf(5)."""
    services: tuple[UnitName, ...] = ()
    """systemd units that start jobs (slurmd, kubelet, containerd): they get the same limits."""
    environment: dict[EnvName, Scalar] = Field(default_factory=dict)
    """NCCL / UCX variables in addition to those that follow from the classes."""
    nccl: Flag = False
    """True: NCCL_IB_TC, NCCL_IB_SL, NCCL_IB_HCA and NCCL_SOCKET_IFNAME follow from classes and ports."""
    ucx: Flag = False
    """True: UCX_IB_TRAFFIC_CLASS, UCX_IB_SL and UCX_NET_DEVICES follow from classes and ports."""
    buffers: dict[ClassName, Size] = Field(default_factory=dict)
    """Class -> receive buffer of its own on the NIC; all others share that of the class with `rest`. Without
    it the NIC sizes its buffers by itself, from the cable's length and the MTU."""
    nv: dict[Kind, dict[NvName, Scalar]] = Field(default_factory=dict)
    """Kind of NIC -> its non-volatile settings, which count after a reset that nobody makes but you."""
    firmware: dict[Kind, Versions] = Field(default_factory=dict)
    """Kind of NIC -> firmware versions that its boards may have; only checked."""
    drivers: dict[Kind, Versions] = Field(default_factory=dict)
    """The same for the versions of their kernel drivers."""
    local_check: Flag = True
    """False: no files of the local check are put on hosts, and those that are there are left as they are."""
    force_traffic_class: Flag = True
    """Let the NIC mark all RoCE traffic with the RoCE class's DSCP where its driver can."""
    roce_class: str = ""
    """The class that RoCE traffic uses; default: the first lossless class."""
    ipoib: Ipoib | None = None
    """InfiniBand ports only."""


class SmNode(Model):
    """One subnet manager."""

    node: Line
    priority: Annotated[int, Field(strict=True, ge=0, le=15)] = 0


IB_RATES: Final[Mapping[str, int]] = {
    "2.5": 2, "10": 3, "30": 4, "5": 5, "20": 6, "40": 7, "60": 8, "80": 9, "120": 10, "14": 11, "56": 12,
    "112": 13, "168": 14, "25": 15, "100": 16, "200": 17, "300": 18, "28": 19, "50": 20, "400": 21,
    "600": 22, "800": 23, "1200": 24,
}  # fmt: skip
"""Gbit/s -> code of InfiniBand's rate fields (include/iba/ib_types.h of OpenSM); not in order."""


def _ib_rate(value: Any) -> Any:
    text = str(value).removesuffix("G")
    if isinstance(value, bool) or text not in IB_RATES:
        known = ", ".join(sorted(IB_RATES, key=float))
        raise BadValue(f"{shown(str(value))} is not an InfiniBand rate", f"write one of {known} (Gbit/s)")
    return text


MEMBER_WORDS: Final = ("ALL", "ALL_CAS", "ALL_SWITCHES", "ALL_ROUTERS", "SELF")
"""Members of a partition that no selector names; SELF is the subnet manager's own port."""
DEFAULT_PKEY: Final = 0x7FFF


def _pkey(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and not 1 <= value <= DEFAULT_PKEY:
        written = f"0x{value:04x}" if value >= 0 else str(value)
        if 0x8000 < value <= 0xFFFF:
            raise BadValue(
                f"P_Key {written} holds the membership bit",
                f"write 0x{value & DEFAULT_PKEY:04x}; `members` says who is full and who is limited",
            )
        raise BadValue(f"{written} is not a P_Key", "write 0x0001 to 0x7ffe, or 0x7fff for Default")
    return value


def _mgid(value: Any) -> Any:
    """A multicast GID as OpenSM prints it."""
    try:
        found = ipaddress.IPv6Address(value)
    except ValueError:
        found = ipaddress.IPv6Address(0)
    if not isinstance(value, str) or not found.is_multicast:
        raise BadValue(f"{shown(str(value))} is not a multicast GID", "write one such as ff12:401b::1")
    return str(found)


class Partition(Model):
    """One InfiniBand partition; `members` map full, limited, both to selectors, GUIDs and MEMBER_WORDS."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,30}$")]
    """OpenSM keeps 31 characters (osm_partition.h)."""
    pkey: Annotated[int, BeforeValidator(_pkey), Field(strict=True, ge=1, le=0x7FFF)]
    """15 bits; the subnet manager adds the membership bit."""
    mtu: Annotated[
        int, BeforeValidator(lambda value: _rdma_mtu(value)), WithJsonSchema({"enum": list(RDMA_MTUS)})
    ] = 4096
    rate: (
        Annotated[
            str,
            BeforeValidator(_ib_rate),
            WithJsonSchema(
                {
                    "enum": [
                        *sorted(IB_RATES, key=float),
                        *sorted(int(one) for one in IB_RATES if one != "2.5"),
                    ]
                }
            ),
        ]
        | None
    ) = None
    """Gbit/s; a member whose link is slower cannot join the IPoIB group. Absent: the manager's default."""
    sl: Annotated[int, Field(strict=True, ge=0, le=15)] | None = None
    """Service level of everything in this partition."""
    scope: Annotated[int, Field(strict=True, ge=1, le=15)] | None = None
    ipoib: bool = True
    """False: no IPoIB broadcast group, so that mtu and rate count for `groups` only."""
    groups: tuple[Annotated[str, BeforeValidator(_mgid)], ...] = ()
    """Multicast GIDs besides the broadcast group that exist before anybody joins them."""
    index0: Flag = False
    """True: its P_Key is the first one in the table of every member port, which applications use that do
    not choose."""
    members: dict[Literal["full", "limited", "both"], tuple[str, ...]] = Field(default_factory=dict)


RoutingEngine = Literal[
    "minhop", "updn", "dnup", "file", "ftree", "lash", "dor", "torus-2QoS", "nue", "dfsssp", "sssp",
    "no_fallback",
]  # fmt: skip


class SubnetManager(Model):
    """Who manages the InfiniBand subnet, and how."""

    owner: Literal["opensm", "ufm", "switch"] = "opensm"
    """ufm and switch: we read and compare, and write nothing."""
    nodes: tuple[SmNode, ...] = ()
    routing: tuple[RoutingEngine, ...] = ()
    """Engines in order; the first that works is taken."""
    lfts_file: Annotated[str, Field(pattern=r"^(/[A-Za-z0-9][A-Za-z0-9._-]*)+$")] = ""
    """Forwarding tables for routing engine `file`: a file that you put on every manager."""
    lmc: Annotated[int, Field(strict=True, ge=0, le=7)] | None = None
    vls: Literal[1, 2, 4, 8, 15] | None = None
    """Data virtual lanes; default: as many as the classes use."""
    high_limit: Annotated[int, Field(strict=True, ge=0, le=255)] = 4
    """4 KB units of strict classes before the others get a turn; 255 lets the others starve."""
    partitions: tuple[Partition, ...] = ()
    partitions_file: str = ""
    """A partitions.conf beside the intent instead of `partitions`; its members are GUIDs and words."""

    @model_validator(mode="after")
    def _one_source(self) -> SubnetManager:
        if self.partitions and self.partitions_file:
            raise BadValue("partitions are given twice", "give either partitions or partitions_file")
        if self.routing == ("no_fallback",):
            # With no engine to try and none to fall back to, OpenSM never ends a sweep (run).
            raise BadValue(
                "no_fallback is not a routing engine", "name engines before it: [ftree, no_fallback]"
            )
        return self


SM_PARTS: Final[Mapping[str, str]] = {"opensm": "opensm", "ufm": "opensm"}
"""Owner -> the service that runs on the nodes; a switch has its manager built in."""
SM_OURS: Final = ("opensm",)
"""Owners whose subnet manager we write; all others are read and compared."""


class Topology(Model):
    """What the cable plan must be; nothing of it reaches a device."""

    oversubscription: Ratio | None = None
    """Bandwidth of a switch towards hosts to bandwidth towards higher tiers, at most."""
    dual_homed: Flag = False
    """True: every host's cables of a network end on two switches or more."""


class Wishes(Model):
    """All that may be set for the fabric, a network, or by an override, group, node or port."""

    rdma: Rdma = Rdma()
    mtu: MtuWish = MtuWish()
    trust: Literal["dscp", "pcp", "both"] = "dscp"
    classes: dict[ClassName, TrafficClass] = Field(default_factory=dict)
    ecn: EcnTable | None = None
    pfc: Pfc | None = None
    dcqcn: Annotated[Dcqcn, BeforeValidator(_dcqcn), _Or({"type": "boolean"})] | None = None
    hosts: Hosts = Hosts()
    subnet_manager: SubnetManager | None = None
    topology: Topology | None = None


WISH_KEYS: Final = tuple(Wishes.model_fields)


class Override(Model):
    """`set` (dotted keys allowed) for every port or node that `where` selects."""

    where: Line
    set: dict[str, Any]


class Waiver(Model):
    """Accept one rule at one place until a date; shown in every report."""

    rule: Line
    node: Line = ""
    port: Line = ""
    link: Line = ""
    network: Line = ""
    """Alone: what is said of the network as a whole. With a node: its ports in that network."""
    setting: Line = ""
    """Only findings on this setting, as reports name it ("watchdog restore"); a glob. Default: all."""
    until: Annotated[
        datetime.date,
        BeforeValidator(lambda value: _date(value)),
        WithJsonSchema({"type": "string", "format": "date"}),
    ]
    reason: Annotated[Line, Field(min_length=3)]

    @model_validator(mode="after")
    def _placed(self) -> Waiver:
        if not (self.node or self.link or self.network):
            raise BadValue(
                "the waiver names no place",
                "give node, node and port, link, or network (there is no waiver for the whole fabric)",
            )
        return self


def _date(value: Any) -> Any:
    if isinstance(value, datetime.date):
        return value
    try:
        # Python 3.11 reads 20270131 and 2027-W05 too.
        return datetime.datetime.strptime(str(value), "%Y-%m-%d").replace(tzinfo=datetime.UTC).date()
    except ValueError:
        raise BadValue(f"{shown(str(value))} is not a date", "write it as YYYY-MM-DD") from None


class Hooks(Model):
    """Programs that the rollout calls with a node's name."""

    drain: str = ""
    undrain: str = ""
    is_idle: str = ""


class Rollout(Model):
    """Limits of a push."""

    hooks: Hooks = Hooks()
    timer: Duration = Duration.parse("300s")
    """Commit timer: without our confirm the device goes back by itself."""
    parallel: Annotated[int, Field(strict=True, ge=1, le=1000)] = 50


def _nccl(value: Any) -> Any:
    return {"mark": value} if isinstance(value, str) else value


class NcclMark(Model):
    """nccl-tests over the fabric: how they are started, and what they must reach."""

    mark: Percent = Percent(90)
    """Bus bandwidth, percent of the line rate of one host's ports in the network."""
    command: Annotated[Line, Field(min_length=1)] = (
        "mpirun --allow-run-as-root -np {ranks} -H {hosts} all_reduce_perf -b 1G -e 8G -f 2 -g 1"
    )
    """Run on the first host. {ranks}: GPUs of all hosts; {hosts}: "gpu01:8,gpu02:8"."""

    @model_validator(mode="after")
    def _plain(self) -> NcclMark:
        try:
            self.command.format(ranks=1, hosts="a:1")
        except (KeyError, IndexError, ValueError):
            raise BadValue("the command holds odd braces", "use {ranks} and {hosts}, and {{ for {") from None
        if "'" in self.command:
            raise BadValue("the command holds a single quote", "use double quotes, or a script of your own")
        return self


class Verify(Model):
    """Pass marks of `fabric verify`; nothing of it reaches a device."""

    pause: Annotated[int, Field(strict=True, ge=1)] | None = None
    """PFC pause frames a second of one port and priority from which it is an error."""
    perftest: Percent = Percent(90)
    """ib_write_bw, percent of the line rate of the slower port."""
    nccl: Annotated[NcclMark, BeforeValidator(_nccl), _Or({"type": "string"})] = NcclMark()
    margin: Percent = Percent(10)
    """How much worse than the baseline is still the same."""


class Intent(Wishes):
    """The whole file."""

    version: Annotated[Literal[1], BeforeValidator(_version)]
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
    networks: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,30}$")], dict[str, Any]] = (
        Field(default_factory=dict)
    )
    overrides: tuple[Override, ...] = ()
    absent: tuple[str, ...] = ()
    """Settings whose key left the intent and that are to be reset on the devices."""
    waivers: tuple[Waiver, ...] = ()
    rollout: Rollout = Rollout()
    verify: Verify = Verify()
