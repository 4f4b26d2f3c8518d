"""Reads the card behind an mlx5 port: ethtool -i, devlink, mlxconfig, ibv_devinfo, GIDs -> `NicState`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from rdma_fabric.platforms import _nic_mlx5_nv as nv
from rdma_fabric.platforms._host_files import Section
from rdma_fabric.state import FIRMWARE_AGENT, NOT_APPLICABLE, UNKNOWN, UNMANAGED, Maybe, NicState

Parts = Mapping[str, Section]

_DRIVER: Final = "mlx5_core"
_FIRMWARE: Final = r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,5}"
_BOARD: Final = r"[A-Z0-9]{2}[A-Z0-9_][0-9]{10}(?:[0-9]{3})?"
"""A PSID: three signs for the vendor, ten digits, or thirteen."""
_BDF: Final = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


@dataclass(frozen=True, slots=True)
class Card:
    """What one port's card showed: both layers, who else may write, facts and notes."""

    running: NicState
    stored: NicState
    pending: tuple[tuple[str, str], ...] = ()
    """NV settings whose value after the next reset is another one than now."""
    owners: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


def card(parts: Parts, port: str, asked: Iterable[str]) -> Card:
    """The card of one port; `asked`: NV settings that the intent names."""

    def part(name: str) -> Section:
        return parts.get(f"{name} {port}", Section())

    bdf = part("bdf").text.strip() if _BDF.fullmatch(part("bdf").text.strip()) else ""
    driver, link = ethtool(part("driver")), devinfo(part("verbs"))
    boards, burned = devlink_info(part("devlink"), bdf)
    shown = nv.shown(part("nv"), nv.port_number(part("number").text, bdf), asked)
    mode, later = _link_types(link.get("link", UNKNOWN), shown)
    base = NicState(
        board=_agreed(driver["board"], boards, link.get("board", UNMANAGED)),
        part=_part(part("nv")),
        driver=driver["driver"],
    )
    return Card(
        running=replace(
            base,
            nv=shown.running,
            firmware=_agreed(driver["firmware"], burned[0], link.get("firmware", UNMANAGED)),
            link=mode,
            rdma_mtu=link.get("mtu", UNKNOWN),
            gids=gids(part("gids"), part("show_gids"), port),
        ),
        stored=replace(base, nv=shown.stored, firmware=burned[1], link=later),
        pending=shown.pending,
        owners=tuple(_owners(shown, port)),
        facts=tuple(_facts(port, bdf, part("nvtool").text.strip(), shown)),
        notes=tuple(_notes(parts, port, shown, burned)),
    )


# ---------------------------------------------------------------- programs


def ethtool(section: Section) -> dict[str, Maybe[str]]:
    """`ethtool -i`: driver, firmware and board ("28.39.3560 (MT_0000000838)")."""
    found: dict[str, Maybe[str]] = dict.fromkeys(("driver", "firmware", "board"), UNKNOWN)
    rows: dict[str, list[str]] = {}
    # Other lines follow these three; one at the end was cut off.
    lines = section.text.rpartition("\n")[0]
    for key, value in re.findall(r"^([\w-]+):[ \t]*(.*?)\s*$", lines, re.MULTILINE):
        rows.setdefault(key, []).append(value)
    if not section.ok or rows.get("driver") != [_DRIVER]:
        return found
    version = re.fullmatch(r"([0-9][0-9A-Za-z.+_~-]*)(?: \(.*\))?", _only(rows, "version"))
    firmware = re.fullmatch(rf"({_FIRMWARE})(?: \(({_BOARD})\))?", _only(rows, "firmware-version"))
    if version:
        found["driver"] = version[1]
    if firmware:
        found["firmware"] = firmware[1]
        found["board"] = firmware[2] or UNMANAGED
    return found


def _only(rows: Mapping[str, list[str]], key: str) -> str:
    values = rows.get(key, [])
    return values[0] if len(values) == 1 else ""


def devlink_info(section: Section, bdf: str) -> tuple[Maybe[str], tuple[Maybe[str], Maybe[str]]]:
    """(board, (firmware that runs, firmware that a reset starts)) of `devlink dev info`, JSON or text.

    Linux mlx5 devlink.c: fw.version is stored and running; a firmware that was burned and does not run yet
    differs in the two.
    """
    if not section.asked:
        return UNMANAGED, (UNMANAGED, UNMANAGED)
    versions = _versions(section, bdf)
    board = versions.get("fixed", {}).get("fw.psid")
    running, stored = (_firmware(versions.get(layer, {})) for layer in ("running", "stored"))
    if not isinstance(board, str) or not re.fullmatch(_BOARD, board):
        return UNKNOWN, (running, stored)
    return board, (running, stored)


def _firmware(rows: Mapping[str, Any]) -> Maybe[str]:
    values = {value for key, value in rows.items() if key in ("fw", "fw.version") and isinstance(value, str)}
    value = values.pop() if len(values) == 1 else ""
    return value if re.fullmatch(_FIRMWARE, value) else UNKNOWN


def _versions(section: Section, bdf: str) -> Mapping[str, Mapping[str, Any]]:
    """fixed, running, stored -> name -> version."""
    if not section.ok or not bdf:
        return {}
    data: Any = read_json(section.text)
    if data is None:
        return _versions_text(section.text, bdf)
    for key in ("info", f"pci/{bdf}", "versions"):
        data = data.get(key) if isinstance(data, dict) else None
    layers = data if isinstance(data, dict) else {}
    return {name: rows for name, rows in layers.items() if isinstance(rows, dict)}


def _versions_text(text: str, bdf: str) -> Mapping[str, Mapping[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines or lines[0] != f"pci/{bdf}:" or "versions:" not in lines:
        return {}
    layer = ""
    for line in lines[lines.index("versions:") + 1 :]:
        words = line.split()
        if len(words) == 1 and words[0] in ("fixed:", "running:", "stored:"):
            layer = words[0].rstrip(":")
            found[layer] = {}
        elif len(words) == 2 and layer:
            found[layer][words[0]] = words[1]
        else:
            return {}
    return found


def devinfo(section: Section) -> dict[str, Any]:
    """`ibv_devinfo -d DEVICE`, port 1: mtu (bytes), link, firmware, board, as far as they are understood."""
    if not section.ok or len(re.findall(r"^hca_id:", section.text, re.MULTILINE)) != 1:
        return {}
    ports = re.split(r"^\s+port:\s+(\d+)\s*$", section.text, flags=re.MULTILINE)
    if len(ports) < 3 or ports[1] != "1":
        return {}
    found: dict[str, Any] = {}
    match = _row("active_mtu", r"(256|512|1024|2048|4096) \(([1-5])\)", ports[2])
    if match and int(match[1]) == 128 << int(match[2]):
        found["mtu"] = int(match[1])
    if match := _row("link_layer", "(Ethernet|InfiniBand)", ports[2]):
        found["link"] = match[1].lower()
    if match := _row("fw_ver", f"({_FIRMWARE})", ports[0]):
        found["firmware"] = match[1]
    if match := _row("board_id", f"({_BOARD})", ports[0]):
        found["board"] = match[1]
    return found


def _row(name: str, value: str, text: str) -> re.Match[str] | None:
    """The row of that name, where it is there once."""
    rows = re.findall(rf"^\s+{name}:.*$", text, re.MULTILINE)
    return re.fullmatch(rf"\s+{name}:\s+{value}\s*", rows[0]) if len(rows) == 1 else None


def gids(files: Section, tool: Section, port: str) -> Maybe[tuple[int, ...]]:
    """Indexes of the port's RoCE v2 GIDs that carry an address: from sysfs, else from `show_gids`."""
    if files.asked and files.text.strip():
        return gid_files(files, port)
    return show_gids(tool, port)


def gid_files(section: Section, port: str) -> Maybe[tuple[int, ...]]:
    """Lines "types/3:RoCE v2", "ndevs/3:eth0" and "gids/3:0000:...:c000:0201" of an RDMA device's port."""
    rows: dict[tuple[str, int], str] = {}
    for line in section.lines:
        match = re.fullmatch(r"(types|ndevs|gids)/([0-9]{1,3}):(.+)", line.strip())
        if match is None:
            return UNKNOWN
        rows[match[1], int(match[2])] = match[3].strip()
    found = []
    for (kind, index), value in rows.items():
        if kind == "types" and value == "RoCE v2":
            gid, netdev = rows.get(("gids", index)), rows.get(("ndevs", index))
            if gid is None or netdev is None or not _GID.fullmatch(gid):
                return UNKNOWN
            if netdev == port and not gid.startswith(_LINK_LOCAL):
                found.append(index)
        elif kind == "types" and value != "IB/RoCE v1":
            return UNKNOWN
    return tuple(sorted(found))


_GID: Final = re.compile(r"(?:[0-9a-f]{4}:){7}[0-9a-f]{4}")
_LINK_LOCAL: Final = "fe80:"


def show_gids(section: Section, port: str) -> Maybe[tuple[int, ...]]:
    """`show_gids`: DEV PORT INDEX GID [IPv4] VER DEV, and the number of rows at the end."""
    total = re.search(r"^n_gids_found=(\d+)\s*$", section.text, re.MULTILINE)
    if not section.ok or total is None:
        return UNKNOWN
    rows = [line.split() for line in section.lines if re.match(r"\S+\t[0-9]\t[0-9]{1,3}\t", line)]
    if len(rows) != int(total[1]) or not all(_is_gid(row) for row in rows):
        return UNKNOWN
    return tuple(
        sorted(
            int(row[2])
            for row in rows
            if row[-2] == "v2" and row[-1] == port and not row[3].startswith(_LINK_LOCAL)
        )
    )


def _is_gid(row: list[str]) -> bool:
    return len(row) in (6, 7) and bool(_GID.fullmatch(row[3])) and row[-2] in ("v1", "v2")


def read_json(text: str) -> Any:
    """The JSON value that the text is, or None."""
    try:
        return json.loads(text)
    except ValueError:
        return None


# ---------------------------------------------------------------- what follows


def _agreed(first: Maybe[str], *others: Maybe[str]) -> Maybe[str]:
    """What the programs that tell it agree on; UNKNOWN when two differ or none tells."""
    told = {value for value in (first, *others) if isinstance(value, str)}
    return told.pop() if len(told) == 1 else UNKNOWN


def _part(section: Section) -> Maybe[str]:
    """mlxconfig's "Name:" is the part number with its revisions: MCX755106AS-HEA_Ax."""
    match = re.search(r"^Name:[ \t]+(\S+)[ \t]*$", section.text, re.MULTILINE)
    if not section.ok or match is None or match[1] == "N/A":
        return UNKNOWN
    return match[1]


def _link_types(runs: Maybe[str], shown: nv.Shown) -> tuple[Maybe[str], Maybe[str]]:
    """(now, after a reset). A card of fixed type has no LINK_TYPE."""
    words = {"1": "infiniband", "2": "ethernet"}
    now, later = (dict(layer).get("LINK_TYPE") for layer in (shown.running, shown.stored))
    if now is None or now is NOT_APPLICABLE:
        return runs, runs if shown.complete else UNKNOWN
    running = words.get(str(now), UNKNOWN)
    return (running if runs is UNKNOWN or runs == running else UNKNOWN), words.get(str(later), UNKNOWN)


def _owners(shown: nv.Shown, port: str) -> Iterable[str]:
    now, later = dict(shown.running), dict(shown.stored)
    for layer in (now, later):
        if layer.get("LLDP_NB_DCBX") == "1" and layer.get("LLDP_NB_RX_MODE") not in ("0", None):
            yield FIRMWARE_AGENT.format(port)
            break
    # BlueField alone has them: 0 = the Arm cores own the card (NVIDIA, BlueField modes of operation).
    if now.get("INTERNAL_CPU_OFFLOAD_ENGINE") == "0" and now.get("INTERNAL_CPU_MODEL") == "1":
        yield f"BlueField in DPU mode ({port})"


def _facts(port: str, bdf: str, tool: str, shown: nv.Shown) -> Iterable[tuple[str, str]]:
    if bdf:
        yield f"bdf {port}", bdf
    if shown.literal and bdf and tool:
        yield f"nv {port}", " ".join((tool, *shown.literal))


def _notes(parts: Parts, port: str, shown: nv.Shown, burned: tuple[Maybe[str], Maybe[str]]) -> Iterable[str]:
    driver = re.search(r"^driver: (\S+)", parts.get(f"driver {port}", Section()).text, re.MULTILINE)
    if driver and driver[1] != _DRIVER:
        yield f"{port}: its driver is {driver[1]}, not {_DRIVER}"
    for name in shown.missing:
        yield f"{port}: its card has no NV setting {name} (some are hidden until ADVANCED_PCI_SETTINGS is 1)"
    if shown.tool_missing:
        yield f"{port}: there is neither mlxconfig nor mstconfig to read its NV settings"
    if isinstance(burned[0], str) and isinstance(burned[1], str) and burned[0] != burned[1]:
        yield f"{port}: firmware {burned[1]} is burned and waits for a reset, {burned[0]} runs"
    if _roce_off(parts.get(f"roce {port}", Section())):
        yield f"{port}: RoCE is switched off (devlink parameter enable_roce)"
    yield from _pcie(parts.get(f"pcie {port}", Section()), port)


def _roce_off(section: Section) -> bool:
    """`devlink -j dev param show ... name enable_roce`: its only value is false."""
    values = re.findall(r'"value":\s*(true|false)', section.text) if section.ok else []
    return "enable_roce" in section.text and values == ["false"]


def _pcie(section: Section, port: str) -> Iterable[str]:
    """current and max link speed and width, as sysfs names them."""
    rows = dict(re.findall(r"^(\w+)=(.+?)\s*$", section.text, re.MULTILINE)) if section.ok else {}
    speeds = [_number(rows.get(f"{one}_link_speed", "")) for one in ("current", "max")]
    widths = [_number(rows.get(f"{one}_link_width", "")) for one in ("current", "max")]
    if None in (*speeds, *widths) or (speeds[0] == speeds[1] and widths[0] == widths[1]):
        return
    now, able = (f"{speeds[i]:g} GT/s x{widths[i]:g}" for i in (0, 1))
    yield f"{port}: its PCIe link runs at {now}, its card can {able}"


def _number(text: str) -> float | None:
    match = re.match(r"\d+(?:\.\d+)?", text)
    return float(match[0]) if match else None
