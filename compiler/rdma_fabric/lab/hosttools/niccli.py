"""`niccli`, Broadcom's tool, and `bnxtqos`, its older sister: DCB of a port, NVM options, versions.

Commands as the vendor facts, Broadcom's own scripts and AMD's cluster guide show them: up to release
233 with one dash (`getqos`, `apptlv -add -app 3,5,26`), later as `qos --ets --show` and the like. Without
a command the program reads lines from standard input. No source shows its refusals: those are made up
after its way of speaking, only that it refuses is certain.
"""

from __future__ import annotations

import sys

from . import health, store, versions
from .driver import DGRAM, DSCP, ETHERTYPE, STREAM, Nic, nic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .store import PortFacts

_LAST_LEGACY = 233
_QUEUES = {0: 4, 1: 0, 2: 5}
"""Traffic class -> hardware queue, as `dump pri2cos` of a Thor 2 shows it."""
_PROTOCOLS = {ETHERTYPE: "Ethertype", STREAM: "TCP or SCTP", DGRAM: "UDP or DCCP", DSCP: "DSCP"}
_SWITCH = {"0": "False", "1": "True"}
_OPTIONS: dict[str, dict[str, str]] = {
    "support_rdma": _SWITCH,
    "performance_profile": {"0": "Default", "1": "RoCE"},
    "pcie_relaxed_ordering": {"0": "disabled", "1": "enabled"},
    "link_training": _SWITCH,
}
"""NVM options -> texts of their values."""
_NVM_FACTORY = {"support_rdma": "1", "performance_profile": "1", "pcie_relaxed_ordering": "1"}
_SCOPED = {"support_rdma", "link_training"}


class Refused(Exception):
    """The program says this and ends with status 1."""


def main(name: str, arguments: list[str]) -> int:
    """Run one command, or those of standard input."""
    try:
        return _bnxtqos(arguments) if name == "bnxtqos" else _niccli(list(arguments))
    except Refused as refused:
        sys.stdout.write(f"{refused}\n")
        return 1


def ports() -> list[PortFacts]:
    """Broadcom ports of this host in the order of their PCI addresses, which is that of niccli's index."""
    return sorted((p for p in store.facts()["ports"] if p["nic"] == "bnxt"), key=lambda port: port["bdf"])


def _release() -> str:
    return store.facts()["niccli"]


def _legacy() -> bool:
    return int(_release().partition(".")[0]) <= _LAST_LEGACY


def _niccli(words: list[str]) -> int:
    if words[:1] in (["--version"], ["-v"]):
        sys.stdout.write(f"niccli v{_release()}\n")
        return 0
    lists = {"--list", "-l", "--listdev" if _legacy() else "--list_devices"}
    if len(words) == 1 and words[0] in lists:
        _list()
        return 0
    if len(words) < 2 or words[0] not in {"-i", "-dev", "--dev", "--index"}:
        raise Refused("Error: Invalid command. Use 'niccli --help' for the usage.")
    port = _device(words[1])
    if words[2:]:
        _command(port, words[2:])
        return 0
    return _interactive(port)


def _interactive(port: PortFacts) -> int:
    """A line that is refused does not stop the next one; the status tells nothing of them."""
    for line in sys.stdin:
        words = line.split()
        if words[:1] in (["quit"], ["exit"], ["q"]):
            break
        try:
            if words:
                _command(port, words)
        except Refused as refused:
            sys.stdout.write(f"{refused}\n")
    return 0


def _list() -> None:
    for index, port in enumerate(ports(), 1):
        speed = f"1x{health.here().gbps(port['netdev'], port['gbps'])}G"
        sys.stdout.write(
            f"{index} ) Broadcom BCM57608 {speed} QSFP-DD PCIe Ethernet NIC (Adp#{index} Port#1)\n"
            f"     Device Interface Name     : {port['netdev']}\n"
            f"     MAC Address               : {port['mac'].upper()}\n"
            f"     PCI Address               : {port['bdf'].upper()}\n\n"
        )


def _device(text: str) -> PortFacts:
    """By index, PCI address (with or without the domain) or netdev."""
    for index, port in enumerate(ports(), 1):
        if text.lower() in {str(index), port["bdf"], port["bdf"].removeprefix("0000:"), port["netdev"]}:
            return port
    raise Refused(f"Error: No matching device found for {text}")


def _command(port: PortFacts, words: list[str]) -> None:
    """Later releases have `qos` in place of the verbs that set something; the others are in all."""
    verb, rest = words[0], words[1:]
    if verb == "qos" and not _legacy():
        return _qos(port, rest)
    known: dict[str, Callable[[PortFacts, list[str]], None]] = {
        "nvm": _nvm,
        "show": _show,
        "dump": _dump,
        "get_dscp2prio": _dscp2prio,
        "get_qos": _get_qos,
        "getqos": _get_qos,
    }
    if _legacy():
        known |= {"apptlv": _apptlv, "pfc": _pfc, "ets": _ets}
        known |= {"set_apptlv": _set_apptlv, "set_pfc": _set_pfc, "set_ets": _set_ets}
    if verb not in known:
        raise Refused(f"Error: Invalid command {verb}")
    known[verb](port, rest)
    return None


def _bnxtqos(words: list[str]) -> int:
    """`bnxtqos -dev=<netdev> <command> ...`, the commands that niccli took over."""
    known = {"get_qos": _get_qos, "get_dscp2prio": _dscp2prio}
    known |= {"set_apptlv": _set_apptlv, "set_pfc": _set_pfc, "set_ets": _set_ets}
    flag, _, netdev = (words[:1] or [""])[0].partition("=")
    if flag != "-dev" or len(words) < 2 or words[1] not in known:
        raise Refused("Error: Invalid command. Use 'bnxtqos -h' for the usage.")
    known[words[1]](_device(netdev), words[2:])
    return 0


# --- words of a command line ---


def _named(words: list[str], *allowed: str) -> dict[str, str]:
    """`-a X --b Y -c` as {"a": "X", "b": "Y", "c": ""}; a word that is not allowed is refused."""
    found: dict[str, str] = {}
    rest = list(words)
    dash = "-" if _legacy() else "--"
    while rest:
        word = rest.pop(0)
        name = word.removeprefix(dash)
        if name not in allowed or word == name:
            raise Refused(f"Error: Invalid option {word}")
        found[name] = rest.pop(0) if rest and not rest[0].startswith("-") else ""
    return found


def _assigned(words: list[str], *allowed: str) -> dict[str, str]:
    """`a=X b=Y` of the older commands; `-d` is kept as it is."""
    found = {}
    for word in words:
        name, _, value = word.partition("=")
        if name not in allowed:
            raise Refused(f"Error: Invalid option {word}")
        found[name] = value
    return found


def _number(text: str, most: int) -> int:
    try:
        value = int(text, 0)
    except ValueError as error:
        raise Refused(f"Error: Invalid value {text}") from error
    if not 0 <= value <= most:
        raise Refused(f"Error: Invalid value {text}")
    return value


def _set(port: PortFacts, change: Callable[[Nic], object]) -> None:
    """Let the driver take it."""
    with store.port_state(port["netdev"]) as state:
        try:
            change(nic(port, state))
        except OSError as refused:
            raise Refused(f"Error: Failed to set, {refused.strerror}") from refused


# --- QoS ---


def _qos(port: PortFacts, words: list[str]) -> None:
    """`qos --ets|--pfc|--apptlv ...` and `qos --ingress --cosq --show`."""
    if words == ["--ingress", "--cosq", "--show"]:
        return _cosq(port)
    if words[:1] == ["--ets"]:
        return _get_qos(port, []) if words[1:] == ["--show"] else _ets(port, words[1:])
    parts = {"--pfc": _pfc, "--apptlv": _apptlv}
    if not words or words[0] not in parts:
        raise Refused(f"Error: Invalid option {' '.join(words)}")
    return parts[words[0]](port, words[1:])


def _apptlv(port: PortFacts, words: list[str]) -> None:
    given = _named(words, "add", "del", "app")
    if len(given) != 2 or "app" not in given:
        raise Refused("Error: apptlv needs add or del, and app")
    _app(port, given["app"], delete="del" in given)


def _set_apptlv(port: PortFacts, words: list[str]) -> None:
    given = _assigned([word for word in words if word != "-d"], "app")
    _app(port, given.get("app", ""), delete="-d" in words)


def _app(port: PortFacts, text: str, delete: bool) -> None:
    """priority,selector,protocol"""
    parts = text.split(",")
    if len(parts) != 3:
        raise Refused(f"Error: Invalid app {text}")
    priority, selector = _number(parts[0], 7), _number(parts[1], 5)
    protocol = _number(parts[2], 63 if selector == DSCP else 0xFFFF)
    if selector not in _PROTOCOLS:
        raise Refused(f"Error: Invalid selector {selector}")
    _set(port, lambda driver: (driver.del_app if delete else driver.add_app)(selector, priority, protocol))


def _pfc(port: PortFacts, words: list[str]) -> None:
    """A priority, several with commas, or 0xFF for none (Broadcom's script)."""
    _enable(port, _named(words, "enable").get("enable", ""), none="0xff")


def _set_pfc(port: PortFacts, words: list[str]) -> None:
    _enable(port, _assigned(words, "enabled").get("enabled", ""), none="none")


def _enable(port: PortFacts, text: str, none: str) -> None:
    chosen = [] if text.lower() == none else [_number(word, 7) for word in text.split(",")]
    _set(port, lambda driver: driver.set_pfc([p in chosen for p in range(8)], driver.port["cable"]))


def _ets(port: PortFacts, words: list[str]) -> None:
    given = _named(words, "tsa", "up2tc", "tcbw")
    _schedule(port, given.get("tsa", ""), given.get("up2tc", ""), given.get("tcbw", ""))


def _set_ets(port: PortFacts, words: list[str]) -> None:
    given = _assigned(words, "tsa", "priority2tc", "tcbw")
    _schedule(port, given.get("tsa", ""), given.get("priority2tc", ""), given.get("tcbw", ""))


def _schedule(port: PortFacts, tsa: str, up2tc: str, tcbw: str) -> None:
    """The whole table: `0:ets,1:strict`, `0:0,1:1`, and shares in percent for the classes from 0 on."""
    algorithms = dict(word.partition(":")[::2] for word in tsa.split(","))
    classes = dict(word.partition(":")[::2] for word in up2tc.split(","))
    shares = [_number(word, 100) for word in tcbw.split(",")]
    tcs = 8 if store.trait(port, "mp17") else 3
    if set(algorithms.values()) - {"ets", "strict"} or len(shares) > tcs:
        raise Refused("Error: Invalid ETS configuration")
    if any(_number(tc, 7) >= tcs for tc in algorithms) or set(classes) != {str(p) for p in range(8)}:
        raise Refused("Error: Invalid ETS configuration")
    table = [algorithms.get(str(tc), "strict") for tc in range(8)]
    prio_tc = [_number(classes[str(priority)], tcs - 1) for priority in range(8)]
    # A share of a class that is not ETS says nothing; the reset in the readme gives tcbw=100 so.
    bw = [share if table[tc] == "ets" else 0 for tc, share in enumerate([*shares, *[0] * (8 - len(shares))])]
    _set(port, lambda driver: driver.set_ets(prio_tc, table, bw))


def _get_qos(port: PortFacts, words: list[str]) -> None:
    if words:
        raise Refused(f"Error: Invalid option {' '.join(words)}")
    with store.port_state(port["netdev"]) as state:
        tcs = nic(port, state).tcs
        rows = " ".join(f"{priority}:{tc}" for priority, tc in enumerate(state["prio_tc"]))
        on = " ".join(str(priority) for priority in range(8) if state["pfc"][priority])
        lines = ["IEEE 8021QAZ ETS Configuration TLV:", f"         PRIO_MAP: {rows}"]
        lines.append("         TC Bandwidth: " + " ".join(f"{state['bw'][tc]}%" for tc in range(tcs)))
        lines.append("         TSA_MAP: " + " ".join(f"{tc}:{state['tsa'][tc]}" for tc in range(tcs)))
        lines += ["IEEE 8021QAZ PFC TLV:", f"         PFC enabled: {on or 'none'}"]
        if state["apps"]:
            lines.append("IEEE 8021QAZ APP TLV:")
        for index, (selector, priority, protocol) in enumerate(reversed(state["apps"])):
            shown = f"0x{protocol:x}" if selector == ETHERTYPE else str(protocol)
            lines += [
                f"         APP#{index}:",
                f"          Priority: {priority}",
                f"          Sel: {selector}",
            ]
            lines += [f"          {_PROTOCOLS.get(selector, 'Port')}: {shown}", ""]
        limits = " ".join("100%" if tc < tcs else "0%" for tc in range(8))
        lines.append(f"TC Rate Limit: {limits}")
    sys.stdout.write("\n".join(lines) + "\n")


def _cosq(port: PortFacts) -> None:
    with store.port_state(port["netdev"]) as state:
        lossless = {state["prio_tc"][p] for p in range(8) if state["pfc"][p]}
        tcs = nic(port, state).tcs
    sys.stdout.write("  TC   State     Mode\n")
    for tc in range(tcs):
        sys.stdout.write(f"   {tc}   Enabled   {'Lossless' if tc in lossless else 'Lossy'}\n")


def _dump(port: PortFacts, words: list[str]) -> None:
    if words != ["pri2cos"]:
        raise Refused(f"Error: Invalid option {' '.join(words)}")
    with store.port_state(port["netdev"]) as state:
        rows = "".join(
            f"{p}         {tc}    {_QUEUES.get(tc, tc)}\n" for p, tc in enumerate(state["prio_tc"])
        )
    bar = "-" * 28
    sys.stdout.write(f"Base Queue is 0 for port 0\n{bar}\nPriority   TC   Queue ID\n{'-' * 24}\n{rows}")


def _dscp2prio(port: PortFacts, words: list[str]) -> None:
    """Only what was programmed: a DSCP that is missing is in the default class."""
    with store.port_state(port["netdev"]) as state:
        rows = "".join(f"         priority:{p}  dscp: {dscp}\n" for dscp, p in reversed(state["d2p"]))
    sys.stdout.write(f"dscp2prio mapping:\n{rows}")


# --- NVM and versions ---


def _show(port: PortFacts, words: list[str]) -> None:
    running = versions.firmware(port)["running"]
    sys.stdout.write(
        f"Device Interface Name          : {port['netdev']}\n"
        f"MAC Address                    : {port['mac'].upper()}\n"
        f"PCI Address                    : {port['bdf'].upper()}\n"
        f"Firmware Version               : {running}\n"
        f"RoCE Firmware Version          : {running}\n"
    )


def nvm(port: PortFacts) -> dict[str, str]:
    """Stored NVM options of a port."""
    return {**_NVM_FACTORY, **store.read(store.FLASH).get(f"nvm {port['bdf']}", {})}


def _nvm(port: PortFacts, words: list[str]) -> None:
    """`nvm -getoption NAME -scope N`, `nvm -setoption NAME -value V -scope N`; in force after a reboot."""
    given = _named(words, "getoption", "setoption", "value", "scope")
    name = given.get("getoption") or given.get("setoption", "")
    if name not in _OPTIONS:
        raise Refused(f"Error: Option {name} is not supported")
    if name in _SCOPED and not given.get("scope", "").isdigit():
        raise Refused(f"Error: Option {name} needs a scope")
    if "getoption" in given:
        value = _OPTIONS[name][nvm(port).get(name, "0")]
        shown = f"Relaxed ordering = {value}" if name == "pcie_relaxed_ordering" else f"{name} = {value}"
        sys.stdout.write(f"{shown}\n")
        return
    if given.get("value", "") not in _OPTIONS[name]:
        raise Refused(f"Error: Invalid value for {name}")
    with store.opened(store.FLASH) as flash:
        flash.setdefault(f"nvm {port['bdf']}", {})[name] = given["value"]
    sys.stdout.write(f"{name} is set successfully\n")
