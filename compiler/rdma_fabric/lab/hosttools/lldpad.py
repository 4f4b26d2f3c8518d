"""`lldptool` and the daemon behind it, lldpad: a second owner of DCB that keeps its own state file.

The daemon programs a port once its adminStatus is not disabled: with what lldptool was told, and with its
own defaults (no PFC, one strict class) where it was told nothing. It does so when it starts, when somebody
changes something, and after a boot. Layout of `-ti` as the vendor facts have it (host_linux_irdma).
"""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH103, PTH110

from __future__ import annotations

import os
import sys

from . import store
from .driver import DSCP, KINDS, LLD_MANAGED, nic
from .lldp import neighbors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONF = "/var/lib/lldpad/lldpad.conf"
_STATUS = {"disabled", "rx", "tx", "rxtx"}
_NAMES = {1: "Ethertype", 2: "TCP", 3: "UDP or DCCP", 5: "DSCP"}


class Refused(Exception):
    """The tool says this and ends with status 1."""


def running() -> bool:
    """True while the daemon runs."""
    return bool(store.read(store.UNITS).get("lldpad.service", {}).get("active") == "active")


def main(name: str, arguments: list[str]) -> int:
    """Run lldptool; without the daemon it has nobody to ask."""
    if not running():
        sys.stderr.write(
            "connect: Connection refused\nFailed to connect to lldpad - clif_open: Invalid argument\n"
        )
        return 1
    try:
        _tool(arguments)
    except Refused as refused:
        sys.stderr.write(f"{refused}\n")
        return 1
    return 0


def _tool(arguments: list[str]) -> None:
    flags, words, values = set(), [], {"i": "", "V": ""}
    rest = iter(arguments)
    for word in rest:
        if not word.startswith("-"):
            words.append(word)
            continue
        for letter in word[1:]:
            flags.add(letter)
            if letter in values:
                values[letter] = next(rest, "")
    netdev, tlv = values["i"], values["V"]
    if "i" in flags and not os.path.exists(f"/sys/class/net/{netdev}"):
        raise Refused("Device not found, link down or DCB not enabled")
    if "n" in flags:
        _neighbor(netdev)
    elif flags & {"L", "l"}:
        _status(netdev, words, change="L" in flags)
    elif "T" in flags:
        _set(netdev, tlv, words, delete="d" in flags)
    elif "t" in flags and tlv:
        _get(netdev, tlv, words)
    elif "t" in flags:
        sys.stdout.write(_local(netdev))
    else:
        raise Refused("Invalid command")


def _neighbor(netdev: str) -> None:
    neighbor = neighbors().get(netdev)
    if neighbor is None:
        raise Refused("Device not found, link down or DCB not enabled")
    sys.stdout.write(
        f"Chassis ID TLV\n\tMAC: {neighbor['chassis']}\nPort ID TLV\n\tIfname: {neighbor['port']}\n"
        f"Time to Live TLV\n\t120\nSystem Name TLV\n\t{neighbor['system']}\nEnd of LLDPDU TLV\n"
    )


# --- the daemon's state ---


def _fresh() -> dict[str, Any]:
    return {
        "adminStatus": "disabled",
        "pfc": {"willing": "yes", "enabled": []},
        "ets": {"willing": "yes", "tsa": ["strict"] * 8, "up2tc": [0] * 8, "tcbw": [0] * 8},
        "app": [],
        "CEE-DCBX": "yes",
    }


def _state(netdev: str) -> dict[str, Any]:
    return store.read(CONF).get(netdev) or _fresh() if os.path.exists(CONF) else _fresh()


def _keep(netdev: str, state: dict[str, Any]) -> None:
    os.makedirs(CONF.rpartition("/")[0], exist_ok=True)
    with store.opened(CONF) as kept:
        kept[netdev] = state
    program(netdev)


def started() -> None:
    """The daemon starts: every port that it may speak on gets its settings."""
    for port in store.facts()["ports"]:
        program(port["netdev"])


def turn_on(netdev: str) -> None:
    """Somebody gives the port to the daemon."""
    _keep(netdev, {**_state(netdev), "adminStatus": "rxtx"})


def program(netdev: str) -> None:
    """Bring the daemon's settings into the hardware; what the driver refuses is left as it is."""
    facts, wanted = store.port_facts(netdev), _state(netdev)
    if facts is None or facts["nic"] not in KINDS or wanted["adminStatus"] == "disabled" or not running():
        return
    with store.port_state(netdev) as state:
        port = nic(facts, state)
        ets, enabled = wanted["ets"], [priority in wanted["pfc"]["enabled"] for priority in range(8)]
        apps = [list(entry) for entry in wanted["app"]]
        gone = [list(entry) for entry in state["apps"] if [entry[1], entry[0], entry[2]] not in apps]
        steps: list[Any] = [lambda: port.set_ets(ets["up2tc"], ets["tsa"], ets["tcbw"])]
        steps.append(lambda: port.set_pfc(enabled, state["cable"]))
        steps += [lambda e=entry: port.del_app(*e) for entry in gone]
        steps += [lambda e=entry: port.add_app(e[1], e[0], e[2]) for entry in apps]
        for step in steps:
            try:
                step()
            except OSError as refused:
                store.log(f"lldpad: {netdev}: {refused.strerror}")


# --- lldptool's commands ---


def _status(netdev: str, words: list[str], change: bool) -> None:
    key, _, value = (words[0] if words else "").partition("=")
    if key != "adminStatus" or (change and value not in _STATUS):
        raise Refused("Invalid argument")
    if change:
        _keep(netdev, {**_state(netdev), "adminStatus": value})
    sys.stdout.write(f"adminStatus={_state(netdev)['adminStatus']}\n")


def _set(netdev: str, tlv: str, words: list[str], delete: bool) -> None:
    facts = store.port_facts(netdev)
    if facts is None or facts["nic"] not in KINDS:
        raise Refused("Device not found, link down or DCB not enabled")
    with store.port_state(netdev) as port:
        if port["dcbx"] & LLD_MANAGED:
            raise Refused("Device not found, link down or DCB not enabled")
    state = _state(netdev)
    given = dict(word.partition("=")[::2] for word in words)
    setters = {"PFC": _set_pfc, "ETS-CFG": _set_ets, "IEEE-DCBX": _set_mode, "CEE-DCBX": _set_cee}
    if tlv == "APP":
        _set_app(state, given, delete)
    elif tlv in setters:
        setters[tlv](state, given)
    else:
        raise Refused("Invalid TLV")
    _keep(netdev, state)
    sys.stdout.write("".join(f"{key} = {value}\n" for key, value in given.items()))


def _willing(block: dict[str, Any], given: dict[str, str]) -> None:
    if "willing" in given:
        if given["willing"] not in {"yes", "no"}:
            raise Refused("Invalid argument")
        block["willing"] = given["willing"]


def _numbers(text: str, most: int) -> list[int]:
    words = text.split(",")
    if not all(word.isdigit() and int(word) <= most for word in words):
        raise Refused("Invalid argument")
    return [int(word) for word in words]


def _set_pfc(state: dict[str, Any], given: dict[str, str]) -> None:
    _known(given, "willing", "enabled", "delay")
    _willing(state["pfc"], given)
    if "enabled" in given:
        state["pfc"]["enabled"] = [] if given["enabled"] == "none" else _numbers(given["enabled"], 7)


def _set_ets(state: dict[str, Any], given: dict[str, str]) -> None:
    """tsa=0:ets,1:strict,...; up2tc=0:0,...; tcbw=50,50,... (eight values that sum to 100, or none)."""
    _known(given, "willing", "tsa", "up2tc", "tcbw")
    _willing(state["ets"], given)
    for key in ("tsa", "up2tc"):
        for word in filter(None, given.get(key, "").split(",")):
            index, _, value = word.partition(":")
            if not index.isdigit() or int(index) > 7:
                raise Refused("Invalid argument")
            if key == "tsa" and value not in {"ets", "strict"}:
                raise Refused("Invalid argument")
            state["ets"][key][int(index)] = _numbers(value, 7)[0] if key == "up2tc" else value
    if "tcbw" in given:
        shares = _numbers(given["tcbw"], 100)
        if sum(shares) != 100 or len(shares) > 8:
            raise Refused("Invalid argument")
        state["ets"]["tcbw"] = [*shares, *[0] * (8 - len(shares))]


def _set_mode(state: dict[str, Any], given: dict[str, str]) -> None:
    if given != {"mode": "reset"}:
        raise Refused("Invalid argument")


def _set_cee(state: dict[str, Any], given: dict[str, str]) -> None:
    if given.get("enableTx") not in {"yes", "no"} or len(given) != 1:
        raise Refused("Invalid argument")
    state["CEE-DCBX"] = given["enableTx"]


def _set_app(state: dict[str, Any], given: dict[str, str], delete: bool) -> None:
    """app=<priority>,<selector>,<protocol>"""
    entry = _numbers(given.get("app", ""), 0xFFFF)
    if len(entry) != 3 or entry[0] > 7 or entry[1] not in _NAMES or (entry[1] == DSCP and entry[2] > 63):
        raise Refused("Invalid argument")
    others = [other for other in state["app"] if other != entry]
    if delete and len(others) == len(state["app"]):
        raise Refused("Invalid argument")
    state["app"] = others if delete else [*others, entry]


def _known(given: dict[str, str], *names: str) -> None:
    if set(given) - set(names):
        raise Refused("Invalid argument")


def _get(netdev: str, tlv: str, words: list[str]) -> None:
    state, what = _state(netdev), words[0] if words else ""
    if tlv == "APP" and what == "app":
        rows = (f" {index}:({p},{s},{d}) local hw (set)\n" for index, (p, s, d) in enumerate(state["app"]))
        sys.stdout.write("(prio,sel,proto)\n" + "".join(rows))
        return
    pfc, ets = state["pfc"], state["ets"]
    known = {
        ("PFC", "enabled"): ",".join(map(str, pfc["enabled"])) or "none",
        ("PFC", "willing"): pfc["willing"],
        ("ETS-CFG", "willing"): ets["willing"],
        ("ETS-CFG", "tsa"): ",".join(f"{tc}:{tsa}" for tc, tsa in enumerate(ets["tsa"])),
        ("ETS-CFG", "up2tc"): ",".join(f"{up}:{tc}" for up, tc in enumerate(ets["up2tc"])),
        ("ETS-CFG", "tcbw"): ",".join(f"{share}%" for share in ets["tcbw"]),
        ("IEEE-DCBX", "mode"): "auto",
        ("CEE-DCBX", "enableTx"): state["CEE-DCBX"],
    }
    if (tlv, what) not in known:
        raise Refused("Invalid argument")
    sys.stdout.write(f"{what}={known[tlv, what]}\n")


def _local(netdev: str) -> str:
    """What the port sends: the page's layout, after the mandatory TLVs."""
    state, facts = _state(netdev), store.port_facts(netdev)
    mac = store.slurp(f"/sys/class/net/{netdev}/address").strip()
    head = f"Chassis ID TLV\n\tMAC: {mac}\nPort ID TLV\n\tMAC: {mac}\nTime to Live TLV\n\t120\n"
    if facts is None or facts["nic"] not in KINDS or state["adminStatus"] == "disabled":
        return head + "End of LLDPDU TLV\n"
    with store.port_state(netdev) as live:
        port = nic(facts, live)
        cap = port.tcs
    ets, pfc = state["ets"], state["pfc"]
    lines = ["IEEE 8021QAZ ETS Configuration TLV", f"\t Willing: {ets['willing']}", "\t CBS: not supported"]
    lines += [
        f"\t MAX_TCS: {cap}",
        "\t PRIO_MAP: " + " ".join(f"{p}:{t}" for p, t in enumerate(ets["up2tc"])),
    ]
    lines += ["\t TC Bandwidth: " + " ".join(f"{share}%" for share in ets["tcbw"])]
    lines += ["\t TSA_MAP: " + " ".join(f"{tc}:{tsa}" for tc, tsa in enumerate(ets["tsa"]))]
    lines += ["IEEE 8021QAZ PFC TLV", f"\t Willing: {pfc['willing']}", "\t MACsec Bypass Capable: no"]
    enabled = " ".join(map(str, pfc["enabled"])) or "none"
    lines += [f"\t PFC capable traffic classes: {cap}", f"\t PFC enabled: {enabled}"]
    if state["app"]:
        lines.append("IEEE 8021QAZ APP TLV")
    for index, (priority, selector, protocol) in enumerate(state["app"]):
        lines += [f"\tApp#{index}:", f"\t Priority: {priority}", f"\t Sel: {selector}"]
        lines.append(f"\t {_NAMES[selector]}: {protocol}")
    return head + "".join(f"{line}\n" for line in [*lines, "End of LLDPDU TLV"])
