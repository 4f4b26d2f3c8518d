"""`ping` of iputils 20221126, for IPv4 and IPv6: its texts and exit statuses, over the lab's cables.

The sandbox's kernel says which address and route are used; the lab says what becomes of a packet on its way.
A refused size is remembered for the run only (a kernel remembers it for ten minutes); no time passes between
packets, and after 1,000 it ends by itself. Names are not resolved.
"""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH112, PTH208

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import zlib

from . import asking, store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_VALUED, _FLAGS = "cisIMWwtQlp", "46nqvbBUaDO"
_MOST = 65507
_HEADERS = {4: 28, 6: 48}
"""IP version -> bytes of its header and of ICMP's."""
_DISCOVERY = ("do", "dont", "want")


class Stop(Exception):
    """`ping: TEXT` on standard error, and the exit status."""

    def __init__(self, text: str, status: int = 2) -> None:
        super().__init__(text)
        self.status = status


def main(name: str, arguments: list[str]) -> int:
    """Send; 0 when an answer came, 1 when none did, 2 for other errors."""
    try:
        options, target = _parse(arguments)
        return _run(options, target)
    except Stop as stop:
        sys.stdout.flush()
        sys.stderr.write(f"ping: {stop}\n")
        return stop.status


def _parse(arguments: list[str]) -> tuple[dict[str, str], str]:
    options: dict[str, str] = {}
    targets, words = [], list(arguments)
    while words:
        word = words.pop(0)
        if not word.startswith("-") or word == "-":
            targets.append(word)
            continue
        letters = word[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter in _FLAGS:
                options[letter] = ""
            elif letter in _VALUED and (letters or words):
                options[letter], letters = letters or words.pop(0), ""
            elif letter in _VALUED:
                raise Stop(f"option requires an argument -- '{letter}'")
            else:
                raise Stop(f"invalid option -- '{letter}'")
    if not targets:
        raise Stop("usage error: Destination address required", 1)
    return options, targets[-1]


def _number(options: dict[str, str], letter: str, default: int, least: int, most: int) -> int:
    text = options.get(letter, str(default))
    if not text.isdigit():
        raise Stop(f"invalid argument: '{text}'")
    if not least <= int(text) <= most:
        raise Stop(f"invalid argument: '{text}': out of range: {least} <= value <= {most}")
    return int(text)


def _run(options: dict[str, str], target: str) -> int:
    version = _version(target, options)
    count = _number(options, "c", 1000, 1, 1 << 31)
    size = _number(options, "s", 56, 0, (1 << 31) - 1)
    if size > _MOST:
        raise Stop(f"packet size {size} is too large. Maximum is {_MOST}")
    if "M" in options and options["M"] not in _DISCOVERY:
        raise Stop(f"invalid -M argument: {options['M']}")
    device, source = _source(options.get("I", ""), version)
    route = _route(target.partition("%")[0], device, version)
    if "w" in options:
        count = min(count, max(1, _number(options, "w", 10, 0, 1 << 31)))
    shown = f"from {route['prefsrc']} {device or source}: " if "I" in options else ""
    if version == 4:
        sys.stdout.write(f"PING {target} ({target}) {shown}{size}({size + 28}) bytes of data.\n")
    else:
        sys.stdout.write(f"PING {target}({target}) {shown}{size} data bytes\n")
    return _send(options, target, version, size, count, route)


def _version(target: str, options: dict[str, str]) -> int:
    for version, family in ((4, socket.AF_INET), (6, socket.AF_INET6)):
        try:
            socket.inet_pton(family, target.partition("%")[0])
        except OSError:
            continue
        other = {4: "6", 6: "4"}[version]
        if other in options:
            raise Stop(f"{target}: Address family for hostname not supported")
        return version
    raise Stop(f"{target}: Name or service not known")


def _source(word: str, version: int) -> tuple[str, str]:
    """Device and source address of `-I`; nothing without it."""
    if not word:
        return "", ""
    if os.path.isdir(f"/sys/class/net/{word}"):
        return word, ""
    try:
        socket.inet_pton(socket.AF_INET if version == 4 else socket.AF_INET6, word)
    except OSError:
        raise Stop(f"unknown iface: {word}") from None
    for link in _ip("addr", "show"):
        if any(info.get("local") == word for info in link.get("addr_info", ())):
            return str(link["ifname"]), word
    raise Stop("bind: Cannot assign requested address")


def _ip(*words: str) -> list[dict[str, Any]]:
    done = subprocess.run(["ip", "-j", *words], capture_output=True, text=True, check=False)
    found: list[dict[str, Any]] = json.loads(done.stdout) if done.returncode == 0 and done.stdout else []
    return found


def _route(target: str, device: str, version: int) -> dict[str, Any]:
    bound = ["oif", device] if device else []
    found = _ip(f"-{version}", "route", "get", target, *bound)
    # A device without a route to the target still gets one that has no source of its own.
    if not found or "prefsrc" not in found[0]:
        raise Stop("connect: Network is unreachable")
    return found[0]


def port_of(device: str) -> str:
    """The physical port below a bond or a VLAN, or the device itself; nothing for others."""
    for _ in range(4):
        if store.port_facts(device) is not None:
            return device
        members = [
            port["netdev"] for port in store.facts()["ports"] if store.master(port["netdev"]) == device
        ]
        folder = f"/sys/devices/virtual/net/{device}"
        lower = (
            [name[6:] for name in os.listdir(folder) if name.startswith("lower_")]
            if os.path.isdir(folder)
            else []
        )
        below = sorted(members or lower)
        if not below:
            return ""
        device = below[0]
    return ""


def _send(
    options: dict[str, str], target: str, version: int, size: int, count: int, route: dict[str, Any]
) -> int:
    device, source = str(route["dev"]), str(route["prefsrc"])
    packet, known = size + _HEADERS[version], 0
    fragile = options.get("M") == "do"
    own = store.mtu(device)
    received = errors = 0
    for number in range(1, count + 1):
        least = min(known or own, own)
        if fragile and packet > least:
            sys.stdout.flush()
            comma = "mtu=" if version == 4 else "mtu: "
            sys.stderr.write(f"ping: local error: message too long, {comma}{least}\n")
            errors += 1
            continue
        fate = _fate(target, device, version, min(packet, least) if not fragile else packet, fragile)
        if fate.get("arrived"):
            received += 1
            time = _time(source, target, number)
            ttl = 64 - int(fate["routed"])
            if "q" not in options:
                line = (
                    f"{size + 8} bytes from {target}: icmp_seq={number} ttl={ttl} time={time / 1000:.3f} ms\n"
                )
                sys.stdout.write(line)
        elif fate.get("mtu"):
            errors += 1
            known = int(fate["mtu"])
            if "q" not in options:
                what = (
                    f"Frag needed and DF set (mtu = {known})"
                    if version == 4
                    else f"Packet too big: mtu={known}"
                )
                sys.stdout.write(f"From {fate['answerer']} icmp_seq={number} {what}\n")
    _finish(target, source, count, received, errors)
    return 0 if received else 1


def _fate(target: str, device: str, version: int, size: int, fragile: bool) -> dict[str, Any]:
    """What the lab says of a packet; the host's own addresses answer at once."""
    if device == "lo":
        return {"arrived": True, "routed": 0}
    port = port_of(device)
    if not port or not store.carrier(device):
        return {}
    return asking.ask(
        "packet", port=port, to=target.partition("%")[0], size=size, fragile=fragile, version=version
    )


def _time(source: str, target: str, number: int) -> int:
    """Microseconds of a round trip: like those of a small fabric, and the same in every run."""
    return 80 + zlib.crc32(f"{source} {target} {number}".encode()) % 60


def _finish(target: str, source: str, count: int, received: int, errors: int) -> None:
    more = f", +{errors} errors" if errors else ""
    loss = f"{(count - received) * 100 / count:g}"
    span = (count - 1) * 1000 + 10 * (count - 1)
    sys.stdout.write(f"\n--- {target} ping statistics ---\n")
    sys.stdout.write(
        f"{count} packets transmitted, {received} received{more}, {loss}% packet loss, time {span}ms\n"
    )
    if received:
        times = [_time(source, target, number) for number in range(1, count + 1)]
        mean = sum(times) / len(times)
        spread = (sum((one - mean) ** 2 for one in times) / len(times)) ** 0.5
        rtt = "/".join(f"{one / 1000:.3f}" for one in (min(times), mean, max(times), spread))
        sys.stdout.write(f"rtt min/avg/max/mdev = {rtt} ms\n")
    else:
        sys.stdout.write("\n")
