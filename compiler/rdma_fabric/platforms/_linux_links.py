"""Live netdevs of a Linux host: MTU and ceiling, what a port lies on or belongs to, and our own session.

Sources: `ip -d -j link` (iproute2), Linux net/8021q/vlan_dev.c (a VLAN's MTU is at most its parent's, and
follows it down), drivers/net/bonding (a bond's MTU is set on its members), net/bridge (a bridge's MTU
follows its ports' unless somebody set it).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms._host_files import Section
from rdma_fabric.platforms._shared import integer
from rdma_fabric.state import UNKNOWN, UNMANAGED, Maybe

IN_BAND: Final = "in_band"
"""Node option: ports whose MTU may change although they carry our session, by name, or `all`."""
NETDEV: Final = "netdev "
"""Facts "netdev PORT": a `Link` as text ("link PORT" is the state of the link)."""
SESSION: Final = "session"
"""Fact: netdevs that carry the session in which the host was read, and those below them; "?" when the
address that it came in at is on none of them."""

_VIRTUAL: Final = ("veth", "dummy", "bond", "vlan")
"""Kinds whose `speed` is not that of a cable."""


@dataclass(frozen=True, slots=True)
class Link:
    """What `change` must know of one port besides its MTU; as a fact of an observation it is one text."""

    largest: int = 0
    """Largest MTU that its driver takes; 0 where `ip` does not tell."""
    smallest: int = 0
    kind: str = ""
    """vlan, bond, bridge ...; "" for hardware."""
    below: str = ""
    """VLAN: the netdev below; VF: the netdev of its PF."""
    below_mtu: int = 0
    master: str = ""
    role: str = ""
    """What it is in its master: bond, bridge, team, vrf."""

    def text(self) -> str:
        """As a fact of an observation."""
        return "|".join(str(getattr(self, item.name)) for item in fields(self))

    @classmethod
    def of(cls, text: str) -> Link:
        """From the fact; the plain link where there is none."""
        parts = text.split("|")
        if len(parts) != len(fields(cls)):
            return cls()
        largest, smallest, kind, below, below_mtu, master, role = parts
        return cls(
            integer(largest) or 0, integer(smallest) or 0, kind, below, integer(below_mtu) or 0, master, role
        )


def link(section: Section, below: Section) -> Link:
    """From `ip -d -j link show dev PORT` and the lines "NETDEV MTU" of what lies below it."""
    shown = one_link(section)
    info = _info(shown)
    lines = [line.split() for line in below.lines if below.asked]
    under = {words[0]: integer(words[1]) or 0 for words in lines if len(words) == 2}
    kind = _word(info.get("info_kind"))
    name = _word(shown.get("link")) if kind == "vlan" else next(iter(under), "")
    name = "" if kind not in ("", "vlan") else name
    return Link(
        largest=_number(shown.get("max_mtu")),
        smallest=_number(shown.get("min_mtu")),
        kind=kind,
        below=name,
        below_mtu=under.get(name, 0),
        master=_word(shown.get("master")),
        role=_word(info.get("info_slave_kind")),
    )


def live(port: PortHardware, parts: Mapping[str, Section]) -> tuple[Maybe[int], Maybe[int]]:
    """(MTU, speed in Gbit/s) of one port."""
    shown = one_link(parts.get(f"link {port.name}", Section()))
    mtu = shown.get("mtu")
    speed = integer(parts.get(f"speed {port.name}", Section()).text)
    rate: Maybe[int] = UNKNOWN if speed is None or speed <= 0 else speed // 1000
    # A virtual netdev has no line rate, whatever number it shows.
    virtual = _info(shown).get("info_kind", "") in _VIRTUAL
    return _is_int(mtu, UNKNOWN), UNMANAGED if virtual else rate


def _is_int(value: object, default: Maybe[int]) -> Maybe[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def address(section: Section) -> str:
    """The port's permanent MAC address, else the one it has now; "" when neither is shown."""
    shown = one_link(section)
    return _word(shown.get("permaddr") or shown.get("address")).lower()


def one_link(section: Section) -> Mapping[str, Any]:
    """`ip -j link show dev PORT`: its one object; empty when it is not that."""
    text = section.text.strip()
    start = text.find("[")
    try:
        data = json.loads(text[start:]) if start >= 0 else None
    except ValueError:
        return plain_link(text)
    first = data[0] if isinstance(data, list) and data else None
    return first if isinstance(first, dict) else plain_link(text)


def plain_link(text: str) -> Mapping[str, Any]:
    """`ip link show` without JSON (busybox has none): its mtu and master."""
    match = re.search(r"^\d+: (\S+?)(?:@\S+)?: <[^>]*> mtu (\d+)\b(?:.* master (\S+))?", text, re.MULTILINE)
    if match is None:
        return {}
    found: dict[str, Any] = {"ifname": match[1], "mtu": int(match[2])}
    return {**found, "master": match[3], "linkinfo": {"info_slave_kind": "?"}} if match[3] else found


def _info(shown: Mapping[str, Any]) -> Mapping[str, Any]:
    info = shown.get("linkinfo")
    return info if isinstance(info, dict) else {}


def _word(value: object) -> str:
    return value if isinstance(value, str) and "|" not in value else ""


def _number(value: object) -> int:
    found = _is_int(value, 0)
    return found if isinstance(found, int) else 0


# ---------------------------------------------------------------- our session


def session(section: Section) -> str:
    """The fact `session`, from lines "ssh" (there is one) and "on NETDEV"."""
    words = [line.split() for line in section.lines]
    on = sorted({row[1] for row in words if row[:1] == ["on"] and len(row) == 2})
    return " ".join(on) if on else "?" if ["ssh"] in words else ""


def carries_us(port: str, fact: str, hw: Hardware) -> str:
    """Why the port's MTU is left alone for the sake of our session; "" when it may change."""
    allowed = re.split(r"[\s,]+", hw.option(IN_BAND))
    if not fact or port in allowed or "all" in allowed:
        return ""
    help = f"options: {{{IN_BAND}: {port}}} in the node's data allows it"
    if fact == "?":
        return f"it may carry the session: no netdev of the host has the address that it came in at; {help}"
    return f"it carries the session in which the host is managed; {help}" if port in fact.split() else ""
