"""Reference pages as text: the parts of their fences, their code spans, and which of both a tool printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TOOLS: dict[str, str] = {
    "mlnx_qos": r"DCBX mode: |Priority trust state|dscp2prio mapping|PFC configuration:|, tsa: |"
    r"Buffers commands are|features are not supp|Rate limit is not|trust state is not|lldpad service is "
    r"running|Interface name is required|pfc list must|items for PFC|value for PFC|dscp2prio command|"
    r"cannot be used at the same time|strict/vendor TC must",
    "dcb": r'prio_pfc"|tc_tsa"|dscp_prio"|prio_buffer"|"host":|^Attribute (?:read|write): |'
    r"^Bandwidth percentages|pfc-cap \d",
    "ethtool": r"^Pause parameters|^[RT]X:|Autonegotiate:|^fw-lldp-agent *: *o|pfc-prevention-tout: |"
    r"^firmware-version:|^driver: |^netlink error: ",
    "mlxconfig": r"^Configurations: +D|_P1 +\S+ +\S+ +\S",
    "lldptool": r"^IEEE 8021QAZ ETS Configuration TLV$|^End of LLDPDU",
    "niccli": r"IEEE 8021QAZ|PFC enabled:|PRIO_MAP:|TSA_MAP:|APP#\d|NIC PCI|^TC State Mode|Broadcom BCM\d|"
    r"^(?:RoCE )?Firmware Version|dscp2prio mapping:",
    "ibv_devinfo": r"active_mtu: |^transport: |link_layer:",
    "show_gids": r"n_gids_found=|^DEV PORT INDEX",
    "cma_roce": r"be root to run|rdma_cm is not loaded|create configuration for|^Device <dev> port|"
    r"^(?:IB/)?RoCE v\d$",
    "driver files": r"Global tclass=\d|_prof_type_sup = |\((?:ecn_enable|cc_mode)\)",
    "ip": r'"(?:ifname|ifindex)"|^Error: mtu',
    "sysctl": r"cannot stat /proc/sys",
}
"""Tool -> what its output is known by."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What a page prints in one place; `anchor` is its first line, or the whole code span."""

    page: str
    line: int
    anchor: str
    text: str
    fenced: bool

    @property
    def tool(self) -> str:
        """Who printed it; "" when no tool is known by it."""
        found = (name for name, sign in TOOLS.items() if re.search(sign, self.text, re.MULTILINE))
        return next(found, "")


def read(folder: Path) -> tuple[Sample, ...]:
    """Fences (one sample per command in them) and code spans of all pages below a folder."""
    pages = sorted(folder.rglob("*.md"))
    return tuple(one for path in pages for one in samples(path.name, path.read_text("utf-8")))


def samples(page: str, text: str) -> Iterator[Sample]:
    """Fences and code spans of one page, in its order."""
    body: list[tuple[int, str]] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            if body is not None:
                yield from _commands(page, body)
            body = [] if body is None else None
        elif body is not None:
            body.append((number, line))
        else:
            for match in re.finditer(r"(`+)(.+?)\1(?!`)", line):
                yield Sample(page, number, match[2].strip(), match[2], False)


def _commands(page: str, body: list[tuple[int, str]]) -> Iterator[Sample]:
    """A fence in parts: each begins with a command after "$ ", or is the whole fence."""
    starts = [index for index, (_, line) in enumerate(body) if line.startswith("$ ")] or [0]
    for start, end in zip(starts, [*starts[1:], len(body)], strict=True):
        rows = body[start:end]
        if rows:
            shown = rows[1:] if rows[0][1].startswith("$ ") else rows
            text = "\n".join(line for _, line in shown)
            yield Sample(page, rows[0][0], rows[0][1].strip(), text, True)
