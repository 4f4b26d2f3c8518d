"""`mlnx_qos` 1.2 of mlnx-tools: through sysfs attributes on the vendor stack, DCB netlink elsewhere.

The order of the parts (dcbx, cable, PFC, DSCP map, trust, buffers, rates, ETS, print) is the
program's own and can be seen from outside: what comes before a refused part has happened.
"""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH110

from __future__ import annotations

import errno
import os
import sys

from . import store
from .driver import DSCP, HOST, Nic, nic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

_VALUES = {
    "-f": "pfc",
    "--pfc": "pfc",
    "-F": "specific_pfc",
    "--specific_pfc": "specific_pfc",
    "-P": "get_pfc",
    "--get_pfc": "get_pfc",
    "-p": "prio_tc",
    "--prio_tc": "prio_tc",
    "-s": "tsa",
    "--tsa": "tsa",
    "-t": "tcbw",
    "--tcbw": "tcbw",
    "-r": "ratelimit",
    "--ratelimit": "ratelimit",
    "-d": "dcbx",
    "--dcbx": "dcbx",
    "--trust": "trust",
    "--cable_len": "cable_len",
    "--prio2buffer": "prio2buffer",
    "--buffer_size": "buffer_size",
    "-i": "interface",
    "--interface": "interface",
}
# Its error path asks every exception for an errno (seen with commit 8fbfd9cf).
_NO_ERRNO = "AttributeError: 'ValueError' object has no attribute 'errno'"
_USAGE = "Usage: mlnx_qos -i <interface> [options]\n"


class _Exit(Exception):
    """The program ends here with this status."""


def main(name: str, arguments: list[str]) -> int:
    """Run the program; the refusals are its own texts."""
    try:
        options, mappings, everything = _parse(arguments)
        if "interface" not in options:
            _stop("Interface name is required", usage=True)
        if store.read(store.UNITS).get("lldpad.service", {}).get("active") == "active":
            _say("****** WARNING: lldpad service is running and may overwrite your settings ******\n")
        facts = store.port_facts(options["interface"])
        if facts is None or not os.path.exists(f"/sys/class/net/{facts['netdev']}"):
            return _stranger(options, mappings)
        # Attributes are served by a process that needs the lock we take next: look before.
        sysfs = os.path.exists(f"/sys/class/net/{facts['netdev']}/qos/trust")
        with store.port_state(facts["netdev"]) as state:
            port = nic(facts, state)
            if not port.supported:
                return _stranger(options, mappings)
            _Program(port, options, mappings, everything, sysfs).run()
    except _Exit as end:
        return int(end.args[0])
    return 0


def _parse(arguments: list[str]) -> tuple[dict[str, str], list[str], bool]:
    """Options as optparse takes them: `--x=v`, `--x v`, `-xv`, `-x v`, and unique long prefixes."""
    options: dict[str, str] = {}
    mappings: list[str] = []
    everything = False
    words = list(arguments)
    longs = [name for name in _VALUES if name.startswith("--")] + ["--dscp2prio", "--help", "--version"]
    while words:
        word = words.pop(0)
        if word == "-a":
            everything = True
            continue
        if word.startswith("--"):
            typed, equals, value = word.partition("=")
            fits = [typed] if typed in longs else [name for name in longs if name.startswith(typed)]
            if len(fits) != 1:
                _usage_error(f"no such option: {typed}")
            flag = fits[0]
            if flag in {"--help", "--version"}:
                _say("mlnx_qos 1.2" if flag == "--version" else _USAGE.strip())
                raise _Exit(0)
        elif word.startswith("-") and word[:2] in _VALUES:
            flag, equals, value = word[:2], word[2:], word[2:]
        elif word.startswith("-"):
            _usage_error(f"no such option: {word[:2]}")
        else:
            _stop("Bad arguments", usage=True)
        if not equals:
            if not words:
                _usage_error(f"{flag} option requires 1 argument")
            value = words.pop(0)
        if flag == "--dscp2prio":
            mappings.append(value)
        else:
            options[_VALUES[flag]] = value
    return options, mappings, everything


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _stop(text: str, usage: bool = False) -> NoReturn:
    _say(text)
    if usage:
        _say(_USAGE)
    raise _Exit(1)


def _usage_error(text: str) -> NoReturn:
    sys.stderr.write(f"{_USAGE}\nmlnx_qos: error: {text}\n")
    raise _Exit(2)


def _stranger(options: dict[str, str], mappings: list[str]) -> int:
    """A netdev whose driver has no DCB operations, or no netdev at all."""
    interface = options["interface"]
    present = os.path.exists(f"/sys/class/net/{interface}")
    code = errno.EOPNOTSUPP if present else errno.ENODEV
    if {"dcbx", "cable_len", "get_pfc", "specific_pfc", "pfc"} & set(options):
        _traceback(f"OSError: Netlink error: {os.strerror(code)} ({code})")
    if mappings:
        _stop("dscp2prio command failed")
    _say("Priority trust state is not supported on your system")
    if "trust" in options:
        return 1
    _say("Buffers commands are not supported on your system")
    if "buffer_size" in options or "prio2buffer" in options:
        return 1
    _say("Rate limit is not supported on your system!")
    _say("ETS features are not supported on your system")
    return 1


def _traceback(last: str) -> NoReturn:
    """What python leaves behind when the program trips over its own error message."""
    sys.stdout.flush()
    sys.stderr.write(f'Traceback (most recent call last):\n  File "/usr/bin/mlnx_qos", in <module>\n{last}\n')
    raise _Exit(1)


def _integer(text: str, most: int, what: str) -> int:
    try:
        value = int(text)
        if not 0 <= value <= most:
            raise ValueError(f"{value} is not in the range 0..{most}")
    except ValueError as error:
        _stop(f"Bad value for {what}: {error}", usage=True)
    return value


class _Program:
    """One call of mlnx_qos on a port with DCB."""

    def __init__(
        self, port: Nic, options: dict[str, str], mappings: list[str], everything: bool, sysfs: bool
    ) -> None:
        self._port, self._state, self._facts = port, port.port, port.facts
        self._options, self._mappings, self._everything = options, mappings, everything
        self._sysfs = sysfs

    def run(self) -> None:
        """Every part in the program's order, then the table."""
        self._dcbx()
        self._pfc()
        self._dscp2prio()
        self._trust()
        self._buffers()
        self._rates()
        tsa, bw = self._ets()
        self._print(tsa, bw)

    def _set(self, what: str, setter: Callable[[], None]) -> None:
        """The program adds text and exception in its error path, which is an error of its own."""
        try:
            setter()
        except OSError:
            _traceback('TypeError: can only concatenate str (not "OSError") to str')

    def _dcbx(self) -> None:
        mode = self._options.get("dcbx")
        if mode not in {None, "os", "fw", "get"}:
            _stop("Invalid dcbx mode command. Refer to the help.")
        if mode in {"os", "fw"} and self._port.set_dcbx(self._state["dcbx"] | HOST if mode == "os" else 0):
            _traceback("OSError: Netlink error: Bad value. see dmesg.")

    def _pfc(self) -> None:
        state, options = self._state, self._options
        if "cable_len" in options:
            length = _integer(options["cable_len"], 0xFFFF, "cable_len")
            self._set("pfc delay", lambda: self._port.set_pfc(state["pfc"], length))
        if "get_pfc" in options:
            if options["get_pfc"] not in set("01234567"):
                _stop("pfc index must be in range of 0-7")
            _say(str(int(state["pfc"][int(options["get_pfc"])])))
            raise _Exit(0)
        if "specific_pfc" in options:
            self._some_pfc(options["specific_pfc"].split(","))
        if "pfc" in options:
            items = options["pfc"].split(",")
            if len(items) > 8:
                _stop("Too many items for PFC")
            enabled = [bool(_integer(item, 1, "PFC")) for item in items]
            if len(enabled) != 8:
                _stop("pfc list must have 8 items")
            self._set("pfc", lambda: self._port.set_pfc(enabled, state["cable"]))

    def _some_pfc(self, items: list[str]) -> None:
        if len(items) != 8:
            _stop("pfc list must have 8 items")
        for item in reversed(items):  # the program walks the list from its end
            if item not in {"x", "0", "1"}:
                _stop(f"Bad value for 'PFC': {item}")
        enabled = [
            old if item == "x" else item == "1" for item, old in zip(items, self._state["pfc"], strict=True)
        ]
        self._set("pfc", lambda: self._port.set_pfc(enabled, self._state["cable"]))
        raise _Exit(0)

    def _dscp2prio(self) -> None:
        if self._mappings and "trust" in self._options:
            _stop("trust and dscp2prio commands cannot be used at the same time.")
        actions: list[tuple[str, int, int]] = []
        for mapping in self._mappings:
            if mapping == "flush":
                actions.append((mapping, 0, 0))
                continue
            try:
                action, dscp, priority = mapping.split(",")
                actions.append((action, int(dscp), int(priority)))
            except ValueError:
                _traceback(_NO_ERRNO)
            if action not in {"set", "del"} or int(dscp) > 63 or int(priority) > 7:
                raise _Exit(1)
        try:
            for action, point, value in actions:
                self._map(action, point, value)
        except OSError:
            _stop("dscp2prio command failed")

    def _map(self, action: str, dscp: int, priority: int) -> None:
        if self._sysfs:
            # Through sysfs only `set` does something, and the port's trust stays what it is.
            if action == "set":
                self._state["dscp"][dscp] = priority
        elif action == "set":
            self._port.add_app(DSCP, priority, dscp)
        elif action == "del":
            self._port.del_app(DSCP, priority, dscp)
        else:
            for selector, old, point in [list(entry) for entry in self._state["apps"]]:
                if selector == DSCP:
                    self._port.del_app(DSCP, old, point)

    def _trusted(self) -> str:
        if self._sysfs:
            return self._state["trust"]
        return "dscp" if any(entry[0] == DSCP for entry in self._state["apps"]) else "pcp"

    def _trust(self) -> None:
        wanted = self._options.get("trust")
        if wanted is None or wanted == self._trusted():
            return
        if wanted not in {"dscp", "pcp"}:
            _stop("Invalid trust state command. Refer to the help.")
        if self._sysfs:
            self._state["trust"] = wanted
            return
        try:
            if wanted == "dscp":  # writes the firmware's default map, whatever was there
                for point in range(64):
                    self._port.add_app(DSCP, point >> 3, point)
            else:
                self._map("flush", 0, 0)
        except OSError:
            _stop("Priority trust state is not supported on your system")

    def _buffers(self) -> None:
        wanted = {"prio2buffer", "buffer_size"} & set(self._options)
        if not self._port.has_buffers:
            _say("Buffers commands are not supported on your system")
            if wanted:
                raise _Exit(1)
            return
        prio, sizes = list(self._state["prio2buffer"]), list(self._state["buffer_size"])
        for name, most in (("prio2buffer", 7), ("buffer_size", 1 << 32)):
            if name not in self._options:
                continue
            items = self._options[name].split(",")
            if len(items) > 8:
                _stop(f"Too many items for {name}")
            if name == "buffer_size" and not all(item.strip().isdigit() for item in items):
                _traceback(_NO_ERRNO)
            numbers = [_integer(item, most, "prio buffer") for item in items]
            target = prio if name == "prio2buffer" else sizes
            target[: len(numbers)] = numbers
        if self._sysfs and "buffer_size" in wanted:
            prio = list(self._state["prio2buffer"])  # through sysfs one attribute is written, not both
        if wanted:
            try:
                self._port.set_buffer(prio, sizes)
            except OSError:
                _stop("Buffers commands error")

    def _rates(self) -> None:
        if "ratelimit" in self._options:
            items = self._options["ratelimit"].split(",")
            if len(items) > 8:
                _stop("Too many items for ratelimit")
            rates = [_integer(item, 1000000, "ratelimit") * 1000 * 1000 for item in items]
            if len(rates) != 8:
                _stop("ratelimit must have 8 items")
            if self._port.has_rates:
                self._port.set_rate(rates)
            else:
                _say("Rate limit is not supported on your system!")
        if not self._port.has_rates:
            _say("Rate limit is not supported on your system!")

    def _ets(self) -> tuple[list[str], list[int]]:
        options, state = self._options, self._state
        tsa, bw, prio_tc = list(state["tsa"]), list(state["bw"]), list(state["prio_tc"])
        if "tsa" in options:
            tsa = self._list("tsa", "TSA", "tsa list must have 8 items")
            for algorithm in tsa:
                if algorithm not in {"strict", "ets", "vendor"}:
                    _stop(f"('Bad TSA value: ', '{algorithm}')", usage=True)
        if "tcbw" in options:
            items = self._list("tcbw", "ETS BW", "tcbw list must have 8 items")
            bw = [_integer(item, 100, "ETS BW") for item in items]
            if any(share and algorithm != "ets" for share, algorithm in zip(bw, tsa, strict=True)):
                _stop("ETS BW for a strict/vendor TC must be 0", usage=True)
        if "prio_tc" in options:
            items = self._list("prio_tc", "UP => TC mapping", "prio_tc list must have 8 items")
            prio_tc = [_integer(item, 7, "UP => TC mapping") for item in items]
        if {"tsa", "tcbw", "prio_tc"} & set(options):
            try:
                self._port.set_ets(prio_tc, tsa, bw)
            except OSError:
                _stop("Netlink error: Bad value. see dmesg.")
        return tsa, bw

    def _list(self, option: str, what: str, short: str) -> list[str]:
        items = self._options[option].split(",")
        if len(items) > 8:
            _stop(f"Too many items {'in' if 'UP' in what else 'for'} {what}")
        if len(items) < 8:
            _stop(short)
        return items

    def _print(self, tsa: list[str], bw: list[int]) -> None:
        state, trust = self._state, self._trusted()
        _say(f"DCBX mode: {'OS' if state['dcbx'] & HOST else 'Firmware'} controlled")
        _say(f"Priority trust state: {trust}")
        if trust == "dscp":
            self._print_map()
        buffers = self._port.has_buffers
        if buffers:
            sizes = "".join(f"{size}," for size in state["buffer_size"])
            total = max(262016, sum(state["buffer_size"]))
            _say(f"Receive buffer size (bytes): {sizes}max_buffer_size={total}")
        _say(f"Cable len: {state['cable']}")
        _say("PFC configuration:\n\tpriority    0   1   2   3   4   5   6   7")
        _say("\tenabled     " + "".join(f"{int(on)}   " for on in state["pfc"]))
        if buffers:
            _say("\tbuffer      " + "".join(f"{buffer}   " for buffer in state["prio2buffer"]))
        classes = range(8) if self._everything else sorted(set(state["prio_tc"]))
        for tc in classes:
            rate, algorithm = state["rate_kbps"][tc], tsa[tc]
            limit = f"{rate / 1000 / 1000:.1f} Gbps" if rate else "unlimited"
            share = f", bw: {bw[tc]}%" if algorithm == "ets" else ""
            _say(f"tc: {tc} ratelimit: {limit}, tsa: {algorithm}{share}")
            for priority in range(8):
                if state["prio_tc"][priority] == tc:
                    _say(f"\t priority:  {priority}")

    def _print_map(self) -> None:
        """Eight code points a line; without sysfs in the order of the kernel's APP table."""
        _say("dscp2prio mapping:")
        entries = [(priority, point) for point, priority in enumerate(self._state["dscp"])]
        if not self._sysfs:
            entries = [(priority, point) for _, priority, point in self._state["apps"]]
        for priority in range(8):
            points = [f"{point:02d}," for owner, point in entries if owner == priority]
            for start in range(0, len(points), 8):
                _say(f"\tprio:{priority} dscp:{''.join(points[start : start + 8])}")
