"""`bnxt_setupcc.sh` of Broadcom's driver package, and the udev rule of `bnxt_re_conf` that calls it.

The script stops lldpad, turns global pause off, removes what the port has, programs RoCE (and CNP) by the
chosen tool, then congestion control through configfs and RDMA-CM's ToS. It goes on after refusals, as a
shell script without `set -e` does. Tool 2 (lldptool) hands a wrong name to its own function: not played.
"""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH123

from __future__ import annotations

import sys

from . import bnxt_cc, store
from .driver import DGRAM, DSCP, nic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .store import PortFacts

VERSION = "233.2.82.0"
CONF = "/etc/bnxt_re/bnxt_re.conf"
LOG = "/tmp/bnxt_setup_IB_device.log"
"""Where the vendor's udev rule writes what it did (README.TXT)."""
_USAGE = f"bnxt_setupcc.sh version:  {VERSION}\nUsage: bnxt_setupcc.sh [OPTION]...\n"
_VALUED = set("rscpidvCmbtu")


class Ended(Exception):
    """The script exits: (status, text)."""


def main(name: str, arguments: list[str]) -> int:
    """Run the script; wrong options end with its usage and status 2."""
    try:
        options = _options(arguments)
        port = _port(options)
        _program(port, options)
    except Ended as end:
        sys.stdout.write(end.args[1])
        return int(end.args[0])
    return 0


def _options(arguments: list[str]) -> dict[str, str]:
    """Letters and values as getopts takes them, defaults filled in."""
    found: dict[str, str] = {}
    rest = list(arguments)
    while rest and rest[0].startswith("-") and len(rest[0]) > 1:
        word = rest.pop(0)
        letter = word[1]
        if letter == "V":
            raise Ended(2, f"bnxt_setupcc.sh version:  {VERSION}\n")
        if letter not in _VALUED or not (word[2:] or rest):
            raise Ended(2, _USAGE)
        found[letter] = word[2:] or rest.pop(0)
    if "i" not in found or "r" not in found:
        raise Ended(2, _USAGE)
    if found.get("u", "1") not in {"1", "2", "3", "4"}:
        raise Ended(2, f"Invalid utility selected (-u option)\n{_USAGE}")
    for letter, text in (("s", "Invalid RoCE DSCP value"), ("p", "Invalid RoCE CNP packet DSCP value")):
        if letter in found:
            found[letter] = str(_number(found[letter], text))
    for letter, text in (
        ("r", "Invalid RoCE packet priority"),
        ("c", "Invalid RoCE CNP packet priority"),
    ):
        if letter in found:
            found[letter] = str(_number(found[letter], text))
    if found.get("m", "3") not in {"1", "2", "3"}:
        raise Ended(1, "Invalid value for mode (-m option)\n")
    return found


def _number(text: str, refusal: str) -> int:
    try:
        return int(text, 16 if text.lower().startswith("0x") else 10)
    except ValueError as error:
        raise Ended(255, f"{refusal}\n") from error


def _port(options: dict[str, str]) -> PortFacts:
    netdev = options["i"].split()[0]
    port = store.port_facts(netdev)
    if "d" not in options and (port is None or port["nic"] != "bnxt" or not port["ibdev"]):
        text = f"Could not locate RDMA device for {netdev} interface.\nTry using -d option explicitly.\n"
        raise Ended(255, text)
    if port is None:
        raise Ended(1, f"Interface {netdev} not found\n")
    return port


def _program(port: PortFacts, options: dict[str, str]) -> None:
    from . import services

    with_pfc, with_cc = options.get("m", "3") != "2", options.get("m", "3") != "1"
    service = options.get("C") == "1" or bnxt_cc.service_profile(port)
    sys.stdout.write(f"ENABLE_PFC = {int(with_pfc)} ENABLE_CC = {int(with_cc)}\n")
    if options.get("u", "1") != "2" and services.active("lldpad.service") == "active":
        sys.stdout.write("WARNING: Disabling lldpad service, and using another tool for configuration\n")
        services.stop("lldpad.service")
    with store.port_state(port["netdev"]) as state:
        state["pause"] = [False, False]
    _clear(port)
    roce, cnp = int(options["r"]), int(options.get("c", "-1"))
    share = int(options.get("b", "50"))
    share = share if share < 100 else 50
    classes = [bnxt_cc.ROCE_TC if p == roce else 0 for p in range(8)]
    tsa, bw = ["ets", "ets", *["strict"] * 6], [100 - share, share, *[0] * 6]
    if service and with_cc and cnp >= 0:
        classes[cnp] = bnxt_cc.CNP_TC
    _try(port, "set_ets", classes, tsa, bw)
    if with_pfc:
        _try(port, "set_pfc", [p == roce for p in range(8)], 0)
        _try(port, "add_app", DGRAM, roce, 4791)
    if "s" in options:
        _try(port, "add_app", DSCP, roce, int(options["s"]))
    if service and with_cc and cnp >= 0 and "p" in options:
        _try(port, "add_app", DSCP, cnp, int(options["p"]))
    if not service:
        _configfs(port, options, with_cc)
    sys.stdout.write("Settings Default to use RoCE-v2\n")
    with store.port_state(port["netdev"]) as state:
        state["mode"], state["tos"] = "RoCE v2", int(options.get("s", "0")) << 2


def _clear(port: PortFacts) -> None:
    with store.port_state(port["netdev"]) as state:
        entries = [list(entry) for entry in state["apps"]]
    for selector, priority, protocol in entries:
        _try(port, "del_app", selector, priority, protocol)


def _try(port: PortFacts, setter: str, *values: object) -> None:
    """One command of the script; what the driver refuses is said, and the next one comes."""
    with store.port_state(port["netdev"]) as state:
        try:
            getattr(nic(port, state), setter)(*values)
        except OSError as refused:
            sys.stdout.write(f"Error: Failed to set, {refused.strerror}\n")


def _configfs(port: PortFacts, options: dict[str, str], with_cc: bool) -> None:
    from .nodes import File, walk

    tree = bnxt_cc.configfs(port)
    values = {"disable_prio_vlan_tx": int(options.get("v") != "1")}
    values |= {"ecn_marking": int(with_cc), "ecn_enable": int(with_cc), "cc_mode": 1}
    for letter, name in (("c", "cnp_prio"), ("r", "roce_prio"), ("s", "roce_dscp"), ("p", "cnp_dscp")):
        if letter in options:
            values[name] = int(options[letter])
    for name, value in {**values, "apply": 1}.items():
        file = walk(tree, f"ports/1/cc/{name}")
        assert isinstance(file, File) and file.write is not None
        try:
            file.write(f"0x{value:x}")
        except OSError as refused:
            sys.stderr.write(f"bnxt_setupcc.sh: line 0: echo: write error: {refused.strerror}\n")
    sys.stdout.write("Completed Configuration\n")


def on_device(port: PortFacts) -> None:
    """What the vendor's udev rule does when the RDMA device appears: nothing without its file."""
    text = store.slurp(CONF)
    if not text:
        return
    lines = (line.split("#")[0].strip() for line in text.splitlines())
    conf = {
        key.strip(): value.strip().strip('"') for key, _, value in (line.partition("=") for line in lines)
    }
    if conf.get("ENABLE_FC", "1") != "1":
        return
    letters = {"FC_MODE": "m", "ROCE_PRI": "r", "ROCE_DSCP": "s", "CNP_PRI": "c", "CNP_DSCP": "p"}
    letters["ROCE_BW"] = "b"
    # What the package ships with, which is the vendor's default recipe.
    values = {"m": "3", "r": "3", "s": "26", "c": "7", "p": "48", "b": "50", "u": "3"}
    values |= {letters[key]: value for key, value in conf.items() if key in letters and value}
    words = ["-i", port["netdev"], "-d", port["ibdev"]]
    for letter, value in values.items():
        words += [f"-{letter}", value]
    import contextlib

    with open(LOG, "a") as log, contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
        main("bnxt_setupcc.sh", words)
