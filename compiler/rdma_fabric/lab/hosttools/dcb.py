"""`dcb` of iproute2: pfc, ets, app, buffer, dcbx and maxrate, `show` and `set`, text and JSON.

Layout of the output as iproute2 prints it; since 6.5 JSON entries of `app show` carry a stray " ".
"""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH110

from __future__ import annotations

import json
import os
import sys

from . import counting, store
from .driver import ANY, DGRAM, DSCP, ETHERTYPE, STREAM, Nic, nic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_DCBX = ("host", "lld-managed", "cee", "ieee", "static")
_TSA = ("strict", "cbs", "ets", "vendor")
_APPS = (
    ("ethtype-prio", ETHERTYPE),
    ("dscp-prio", DSCP),
    ("stream-port-prio", STREAM),
    ("dgram-port-prio", DGRAM),
    ("port-prio", ANY),
)
# Names of /etc/iproute2/rt_dsfield, which the text form prints.
_DSCP_NAMES = {0: "default", 46: "EF"}
_DSCP_NAMES |= {8 * group: f"CS{group}" for group in range(1, 8)}
_DSCP_NAMES |= {8 * group + 2 * drop: f"AF{group}{drop}" for group in range(1, 5) for drop in range(1, 4)}

_DSCP_POINTS = {name: point for point, name in _DSCP_NAMES.items()}


class Failed(Exception):
    """The program ends with status 1; the text, if any, goes to stderr."""


def main(name: str, arguments: list[str]) -> int:
    """Run one command; a batch (`-b FILE`) runs line by line and stops at the first failure."""
    options = {"json": False, "numeric": False, "statistics": False, "pretty": False, "force": False}
    letters = {"j": "json", "N": "numeric", "s": "statistics", "p": "pretty", "f": "force"}
    batch = ""
    while arguments and arguments[0].startswith("-"):
        option = arguments.pop(0)
        word = option.lstrip("-")
        if word in {"V", "Version"}:
            sys.stdout.write(f"dcb utility, iproute2-{store.facts()['iproute']}\n")
            return 0
        if word in {"b", "batch"}:
            batch = arguments.pop(0)
        elif word.lower() in options:
            options[word.lower()] = True
        elif all(letter in letters for letter in word):
            options.update({letters[letter]: True for letter in word})
        else:
            sys.stderr.write("Unknown option.\n")
            return 1
    lines = [arguments]
    if batch:
        text = sys.stdin.read() if batch == "-" else store.slurp(batch)
        lines = [words for line in text.splitlines() if (words := line.split("#")[0].split())]
    status = 0
    for line in lines:
        status |= _command(line, options)
        if status and not options["force"]:
            break
    return status


def _command(words: list[str], options: dict[str, bool]) -> int:
    try:
        if not words or "help".startswith(words[0]):
            raise Failed("Usage: dcb [ OPTIONS ] OBJECT { COMMAND | help }")
        if words[0] not in _OBJECTS:
            raise Failed(f'Object "{words[0]}" is unknown')
        verb = words[1] if len(words) > 1 else "help"
        if (words[0], verb) not in _VERBS:
            raise Failed(f'What is "{verb}"?')
        if len(words) < 4 or words[2] != "dev":
            raise Failed("Expected `dev DEV', not `%s'" % (words[2] if len(words) > 2 else "help"))
        if (words[0], verb) in _FIRST:
            _FIRST[words[0], verb](words[4:])
        reads = verb in {"show", "flush", "replace"} or words[0] in {"pfc", "ets", "buffer", "maxrate"}
        _on(words[3], reads, lambda port: _VERBS[words[0], verb](port, words[4:], options))
    except Failed as failed:
        if options["json"]:
            sys.stdout.write("\n")  # the program closes its JSON output whatever happened
            sys.stdout.flush()
        if failed.args:
            sys.stderr.write(f"{failed.args[0]}\n")
        return 1
    return 0


def _on(netdev: str, reads: bool, action: Callable[[Nic], None]) -> None:
    """Do it with the port; netdevs without DCB answer as a driver without operations does."""
    what = "read" if reads else "write"
    facts = store.port_facts(netdev)
    present = os.path.exists(f"/sys/class/net/{netdev}")
    if facts is None or not present:
        raise Failed(f"Attribute {what}: " + ("Operation not supported" if present else "No such device"))
    with store.port_state(netdev) as state:
        port = nic(facts, state)
        if not port.supported:
            raise Failed(f"Attribute {what}: Operation not supported")
        action(port)


def _write(setter: Callable[[], object]) -> None:
    """Let the driver take it. Its errno travels as one signed byte (iproute2 decodes it so since 5.12)."""
    try:
        setter()
    except OSError as refused:
        byte = -(refused.errno or 0) & 0xFF
        raise Failed(f"Attribute write: {os.strerror(byte if byte < 128 else 256 - byte)}") from refused


# --- printing ---


def _out(options: dict[str, bool], values: dict[str, object], lines: list[str]) -> None:
    if options["json"]:
        separators = None if options["pretty"] else (",", ":")
        sys.stdout.write(json.dumps(values, separators=separators, indent=4 if options["pretty"] else None))
        sys.stdout.write("\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in lines))


def _row(name: str, values: list[object]) -> str:
    words = ["on" if v is True else "off" if v is False else v for v in values]
    return f"{name} " + "".join(f"{index}:{word} " for index, word in enumerate(words))


# --- parsing ---


def _number(text: str) -> int:
    return int(text, 0)


def _dscp(text: str) -> int:
    return _DSCP_POINTS[text] if text in _DSCP_POINTS else int(text, 0)


def _ethertype(text: str) -> int:
    if int(text, 0) < 0x600:
        raise Failed("Protocol IDs < 0x600 are reserved for EtherType")
    return int(text, 0)


def _port_number(text: str) -> int:
    if not int(text, 0):
        raise Failed("Port ID of 0 is invalid")
    return int(text, 0)


def _mappings(
    words: list[str],
    what: tuple[str, str],
    most: tuple[int, int],
    pattern: str = "",
    key: Callable[[str], int] = _number,
) -> dict[int, int]:
    """Take KEY:VALUE words off the list while they last; the program names the key it stumbled on."""
    found: dict[int, int] = {}
    while words and ":" in words[0]:
        left, _, right = words[0].partition(":")
        invalid = f"Invalid {pattern}mapping {left}"
        try:
            keys = range(most[0] + 1) if left == "all" else [key(left)]
            value = int(right, 0)
        except ValueError as error:
            raise Failed(invalid) from error
        except Failed as failed:
            raise Failed(f"{failed.args[0]}\n{invalid}") from failed
        for index, number in ((0, max(keys)), (1, value)):
            if not 0 <= number <= most[index]:
                limits = f"{what[index]} is expected to be 0..{most[index]}"
                raise Failed(f"In {what[0]}:{what[1]} mapping, {limits}\n{invalid}")
        found.update(dict.fromkeys(keys, value))
        words.pop(0)
    if not found:
        raise Failed(f"Invalid {pattern}mapping {words[0] if words else ''}")
    return found


def _words(words: list[str], names: tuple[str, ...], what: str, pattern: str) -> dict[int, str]:
    """The same for named values."""
    numbers = []
    for word in words:
        if ":" not in word:
            break
        left, _, right = word.partition(":")
        if right not in names:
            options = " ".join(f'"{name}"' for name in names)
            raise Failed(
                f'Error: argument of "{what}" must be one of {options}, not "{right}"\n'
                f"Invalid {pattern} mapping {left}"
            )
        numbers.append(f"{left}:{names.index(right)}")
    del words[: len(numbers)]
    rest = list(numbers)
    return {key: names[value] for key, value in _mappings(rest, ("TC", what), (7, len(names))).items()}


def _merge(old: list[int], new: dict[int, int]) -> list[int]:
    return [new.get(index, value) for index, value in enumerate(old)]


# --- pfc ---


def _pfc_show(port: Nic, words: list[str], options: dict[str, bool]) -> None:
    state = port.port
    values: dict[str, object] = {"pfc_cap": port.pfc_cap, "macsec_bypass": False, "delay": state["cable"]}
    values["prio_pfc"] = state["pfc"]
    lines = [f"pfc-cap {port.pfc_cap} macsec-bypass off delay {state['cable']} "]
    lines.append(_row("prio-pfc", list(state["pfc"])))
    if options["statistics"]:
        for name, way in (("requests", "tx"), ("indications", "rx")):
            counts = counting.pauses(port.facts["netdev"], way)
            values[name] = counts
            lines.append(_row(name, list(counts)))
    _out(options, values, lines)


def _pfc_set(port: Nic, words: list[str], options: dict[str, bool]) -> None:
    enabled, delay = list(port.port["pfc"]), port.port["cable"]
    while words:
        word = words.pop(0)
        if word == "prio-pfc":
            chosen = _words(words, ("off", "on"), "PFC", "prio-pfc")
            enabled = [chosen.get(p, "on" if on else "off") == "on" for p, on in enumerate(enabled)]
        elif word == "delay":
            text = words.pop(0) if words else ""
            if not text.isdigit() or int(text) > 65535:
                raise Failed(f"Invalid delay `{text}', expected an integer 0..65535")
            delay = int(text)
        elif word == "macsec-bypass":
            words.pop(0)
        else:
            raise Failed(f'What is "{word}"?')
    _write(lambda: port.set_pfc(enabled, delay))


# --- ets ---


def _ets_show(port: Nic, words: list[str], options: dict[str, bool]) -> None:
    state = port.port
    zeros, strict = [0] * 8, ["strict"] * 8
    willing = not state["dcbx"] & 1
    values: dict[str, object] = {"willing": willing, "ets_cap": port.tcs, "cbs": False}
    lists: list[tuple[str, list[object]]] = [
        ("tc-bw", list(state["bw"])),
        ("pg-bw", list(zeros)),
        ("tc-tsa", list(state["tsa"])),
        ("prio-tc", list(state["prio_tc"])),
        ("reco-tc-bw", list(zeros)),
        ("reco-tc-tsa", list(strict)),
        ("reco-prio-tc", list(zeros)),
    ]
    lines = [f"willing {'on' if willing else 'off'} ets-cap {port.tcs} cbs off "]
    for name, row in lists:
        values[name.replace("-", "_")] = row
        lines.append(_row(name, row))
    _out(options, values, lines)


def _ets_set(port: Nic, words: list[str], options: dict[str, bool]) -> None:
    state = port.port
    tsa, bw, prio_tc = list(state["tsa"]), list(state["bw"]), list(state["prio_tc"])
    if not words:
        raise Failed("Usage: dcb ets set dev STRING")
    while words:
        word = words.pop(0)
        if word in {"tc-tsa", "reco-tc-tsa"}:
            named = _words(words, _TSA, "TSA", word)
            if word == "tc-tsa":
                tsa = [named.get(tc, old) for tc, old in enumerate(tsa)]
        elif word in {"tc-bw", "pg-bw", "reco-tc-bw"}:
            shares = _mappings(words, ("TC", "BW"), (7, 100), f"{word} ")
            bw = _merge(bw, shares) if word == "tc-bw" else bw
        elif word in {"prio-tc", "reco-prio-tc"}:
            classes = _mappings(words, ("PRIO", "TC"), (7, 7), f"{word} ")
            prio_tc = _merge(prio_tc, classes) if word == "prio-tc" else prio_tc
        elif word == "willing":
            words.pop(0)
        else:
            raise Failed(f'What is "{word}"?')
    has_ets, total = "ets" in tsa, sum(bw)
    if total != 100 and (has_ets or total):
        raise Failed(f"Bandwidth percentages in tc-bw sum to {total}%, expected {100 if has_ets else 0}%")
    _write(lambda: port.set_ets(prio_tc, tsa, bw))


# --- app ---


def _app_show(port: Nic, words: list[str], options: dict[str, bool]) -> None:
    table = sorted(port.port["apps"], key=lambda entry: (entry[2], entry[1]))
    version = tuple(int(part) for part in store.facts()["iproute"].split(".")[:2])
    stray: list[object] = [" "] if version >= (6, 5) else []
    values: dict[str, object] = {}
    lines = []
    for name, selector in _APPS:
        entries = [entry for entry in table if entry[0] == selector and (selector != ETHERTYPE or entry[2])]
        if not entries or (words and name not in words):
            continue
        values[name.replace("-", "_")] = [[entry[2], entry[1], *stray] for entry in entries]
        keys = [_key(selector, entry[2], options["numeric"]) for entry in entries]
        lines.append(
            f"{name} " + "".join(f"{key}:{entry[1]} " for key, entry in zip(keys, entries, strict=True))
        )
    default = [entry[1] for entry in table if entry[0] == ETHERTYPE and not entry[2]]
    if default and (not words or "default-prio" in words):
        values["default_prio"] = default
        lines.append("default-prio " + "".join(f"{priority} " for priority in default))
    _out(options, values, lines)


def _key(selector: int, protocol: int, numeric: bool) -> str:
    if selector == ETHERTYPE:
        return f"{protocol:x}"
    if selector == DSCP and not numeric:
        return _DSCP_NAMES.get(protocol, str(protocol))
    return str(protocol)


def _entries(words: list[str]) -> list[list[int]]:
    """[selector, priority, protocol] of every mapping on the line."""
    found: list[list[int]] = []
    selectors = dict(_APPS)
    keys = {ETHERTYPE: ("ETHTYPE", 0xFFFF, _ethertype), DSCP: ("DSCP", 63, _dscp)}
    while words:
        word = words.pop(0)
        if word == "default-prio":
            while words and words[0].isdigit():
                found.append([ETHERTYPE, int(words.pop(0)), 0])
            continue
        if word not in selectors:
            raise Failed(f'What is "{word}"?')
        selector = selectors[word]
        name, most, key = keys.get(selector, ("PORT", 0xFFFF, _port_number))
        mappings = _mappings(words, (name, "PRIO"), (most, 7), key=key)
        found += [[selector, priority, protocol] for protocol, priority in mappings.items()]
    return found


def _app_add(port: Nic, words: list[str], options: dict[str, bool]) -> None:
    """Entry by entry: those before a refused one stay."""
    for selector, priority, protocol in _entries(words):
        _write(lambda s=selector, p=priority, d=protocol: port.add_app(s, p, d))  # type: ignore[misc]


def _app_del(port: Nic, words: list[str], options: dict[str, bool]) -> None:
    for selector, priority, protocol in _entries(words):
        _write(lambda s=selector, p=priority, d=protocol: port.del_app(s, p, d))  # type: ignore[misc]


def _app_flush(port: Nic, words: list[str], options: dict[str, bool]) -> None:
    chosen = {selector for name, selector in _APPS if not words or name in words}
    for selector, priority, protocol in sorted(port.port["apps"], key=lambda entry: (entry[2], entry[1])):
        if selector in chosen:
            _write(lambda s=selector, p=priority, d=protocol: port.del_app(s, p, d))  # type: ignore[misc]


def _app_replace(port: Nic, words: list[str], options: dict[str, bool]) -> None:
    """Add what is new, then delete what it replaces: on mlx5 the driver has dropped that already.

    The real program reports such a failure and still ends with status 0.
    """
    wanted, before = _entries(words), [list(entry) for entry in port.port["apps"]]
    old = [e for e in before if e not in wanted and any((e[0], e[2]) == (w[0], w[2]) for w in wanted)]
    for what, entries, act in (
        ("Could not add new APP entries", [w for w in wanted if w not in before], port.add_app),
        ("Could not remove replaced APP entries", old, port.del_app),
    ):
        try:
            for entry in entries:
                _write(lambda e=entry, do=act: do(*e))  # type: ignore[misc]
        except Failed as failed:
            sys.stderr.write(f"{failed.args[0]}\n{what}\n")
            return


# --- buffer, maxrate, dcbx ---


def _buffer_show(port: Nic, words: list[str], options: dict[str, bool]) -> None:
    if not port.has_buffers:
        raise Failed("Attribute not found: Success")
    state = port.port
    total = max(262016, sum(state["buffer_size"]))
    values: dict[str, object] = {"prio_buffer": state["prio2buffer"], "buffer_size": state["buffer_size"]}
    values["total_size"] = total
    lines = [_row("prio-buffer", list(state["prio2buffer"]))]
    sizes: list[object] = [f"{size}b" for size in state["buffer_size"]]
    lines += [_row("buffer-size", sizes), f"total-size {total}b "]
    _out(options, values, lines)


def _buffer_set(port: Nic, words: list[str], options: dict[str, bool]) -> None:
    if not port.has_buffers:
        raise Failed("Attribute not found: Success")
    prio, sizes = list(port.port["prio2buffer"]), list(port.port["buffer_size"])
    while words:
        word = words.pop(0)
        if word == "prio-buffer":
            prio = _merge(prio, _mappings(words, ("PRIO", "BUFFER"), (7, 7), f"{word} "))
        elif word == "buffer-size":
            sizes = _merge(sizes, _mappings(words, ("BUFFER", "SIZE"), (7, 0xFFFFFFFF), f"{word} "))
        else:
            raise Failed(f'What is "{word}"?')
    _write(lambda: port.set_buffer(prio, sizes))


def _maxrate_show(port: Nic, words: list[str], options: dict[str, bool]) -> None:
    if not port.has_rates:
        raise Failed("Attribute not found: Success")
    rates = port.port["rate_kbps"]
    text: list[object] = [f"{rate // 1000}Mbit" if rate else "0bit" for rate in rates]
    _out(options, {"tc_maxrate": [rate * 125 for rate in rates]}, [_row("tc-maxrate", text)])


def _dcbx_show(port: Nic, words: list[str], options: dict[str, bool]) -> None:
    flags = [name for bit, name in enumerate(_DCBX) if port.port["dcbx"] & 1 << bit]
    values: dict[str, object] = {name.replace("-", "_"): True for name in flags}
    _out(options, values, ["".join(f"{name} " for name in flags)])


def _mode(words: list[str]) -> int:
    mode = 0
    for word in words:
        if word not in _DCBX:
            raise Failed(f'What is "{word}"?')
        mode |= 1 << _DCBX.index(word)
    return mode


def _dcbx_set(port: Nic, words: list[str], options: dict[str, bool]) -> None:
    answer = port.set_dcbx(_mode(words))
    if answer:
        raise Failed(f"Attribute write: {os.strerror(answer)}")


_FIRST: dict[tuple[str, str], Callable[[list[str]], object]] = {
    ("app", "add"): _entries,
    ("app", "del"): _entries,
    ("dcbx", "set"): _mode,
}
"""Verbs whose words are parsed before the device is asked; the others read first."""
_VERBS: dict[tuple[str, str], Callable[[Nic, list[str], dict[str, bool]], None]] = {
    ("pfc", "show"): _pfc_show,
    ("pfc", "set"): _pfc_set,
    ("ets", "show"): _ets_show,
    ("ets", "set"): _ets_set,
    ("app", "show"): _app_show,
    ("app", "add"): _app_add,
    ("app", "del"): _app_del,
    ("app", "flush"): _app_flush,
    ("app", "replace"): _app_replace,
    ("buffer", "show"): _buffer_show,
    ("buffer", "set"): _buffer_set,
    ("maxrate", "show"): _maxrate_show,
    ("dcbx", "show"): _dcbx_show,
    ("dcbx", "set"): _dcbx_set,
}
_OBJECTS = {name for name, _ in _VERBS}
