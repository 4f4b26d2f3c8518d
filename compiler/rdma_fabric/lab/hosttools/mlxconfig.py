"""`mlxconfig` / `mstconfig`: values in the NIC's flash, in force after a reset.

Order of words, questions, refusals and exit statuses follow mstflint's `mlxcfg_ui.cpp` and
`mlxcfg_parser.cpp` (errors go to standard output; 2 = the user said no, 3 = an error). Options come
before the command: what follows the command are names of parameters. The table is that of the vendor
facts up to MFT 4.20 and the wider one of later releases.
"""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH123

from __future__ import annotations

import json
import sys

from . import nvparams, store
from .nvparams import Wrong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from .store import PortFacts

_ABORTED, _ERROR = 2, 3
_WIDE_SINCE = (4, 20)
_FLAGS = {"-e": "verbose", "--enable_verbosity": "verbose", "-y": "yes", "--yes": "yes"}
_FLAGS |= {"-yy": "yes", "--yyes": "yes", "--force": "force"}
_VALUED = {"-d": "device", "--dev": "device", "-j": "json", "--json_format": "json", "-t": "type"}
_COMMANDS = {"q": "query", "s": "set", "r": "reset", "i": "show_confs"}


class Ended(Exception):
    """The program ends with this status, after this text if any."""


def main(name: str, arguments: list[str]) -> int:
    """Query, set or reset the flash of adapters."""
    try:
        return _run(name, arguments)
    except Ended as end:
        if end.args[1:]:
            sys.stdout.write(f"-E- {end.args[1]}\n")
        return int(end.args[0])


def _fail(text: str) -> NoReturn:
    raise Ended(_ERROR, text)


def _run(name: str, arguments: list[str]) -> int:
    options: dict[str, str] = {}
    words = list(arguments)
    command = ""
    while words and not command:
        word = words.pop(0)
        if word in {"-v", "--version"}:
            sys.stdout.write(f"{name}, mft {store.facts()['mft']}, built on Jan 01 2024. Git SHA Hash: N/A\n")
            return 0
        if word in _FLAGS:
            options[_FLAGS[word]] = "on"
        elif word in _VALUED:
            if not words:
                _usage(name, f"missing {'device name' if word in {'-d', '--dev'} else 'file name'}")
            options[_VALUED[word]] = words.pop(0)
        elif _COMMANDS.get(word, word) in _COMMANDS.values():
            command = _COMMANDS.get(word, word)
        else:
            _usage(name, f"invalid argument: {word}")
    if not command:
        _usage(name, "No command found. For more information please read the help message:")
    if command == "set" and not words:
        text = f"missing configuration arguments. For more information please run {name} -h|--help."
        _usage(name, text)
    if command in {"set", "show_confs"} and "device" not in options:
        _usage(name, f"{command} command expects device to be specified.")
    if "json" in options and command != "query":
        _usage(name, "Json format is only supported for query command.")
    ports = [device(options["device"])] if "device" in options else _adapters()
    if command == "query":
        return _query(ports, options, words)
    if command == "set":
        return _set(ports[0], options, words)
    if command == "reset":
        return _reset(ports, options, words)
    return _show(ports[0])


def _usage(name: str, text: str) -> NoReturn:
    sys.stdout.write(f"-E- {text}\n")
    sys.stdout.write(
        f"    NAME:\n        {name}\n    SYNOPSIS:\n        {name} [Options] <Commands> [Parameters]\n"
    )
    raise Ended(_ERROR)


def _adapters() -> list[PortFacts]:
    """The first function of each adapter."""
    found: dict[str, PortFacts] = {}
    for port in sorted(store.facts()["ports"], key=lambda port: port["bdf"]):
        if port["nic"] == "mlx5" and not port["parent"]:
            found.setdefault(nvparams.adapter(port["bdf"]), port)
    return list(found.values()) or _fail("No devices found.")


def device(text: str) -> PortFacts:
    """By PCI address (with or without the domain), RDMA device, or path of `mst start`."""
    for port in (p for p in store.facts()["ports"] if p["nic"] == "mlx5" and not p["parent"]):
        if text in {port["bdf"], port["bdf"].removeprefix("0000:"), port["ibdev"], mst_path(port)}:
            return port
    _fail(f"Failed to open device: {text}. No such file or directory")


def mst_path(port: PortFacts) -> str:
    """The device file that `mst start` makes for a function."""
    paths = [p["bdf"] for p in _adapters()]
    number = [nvparams.adapter(bdf) for bdf in paths].index(nvparams.adapter(port["bdf"]))
    function = port["bdf"].rpartition(".")[2]
    code = "mt41692" if store.trait(port, "bluefield") else "mt4129"
    return f"/dev/mst/{code}_pciconf{number}" + (f".{function}" if function != "0" else "")


# --- printing ---


def _wide() -> bool:
    return tuple(int(part) for part in store.facts()["mft"].split(".")[:2]) > _WIDE_SINCE


def _head(port: PortFacts, number: int) -> None:
    bluefield = bool(store.trait(port, "bluefield"))
    rows = [("Device type:", "BlueField3" if bluefield else "ConnectX7")]
    rows.append(("Name:", "900-9D3B6-00CV-A_Ax" if bluefield else "MCX75310AAS-NEAT_Ax"))
    rows += [("Description:", "N/A")] if _wide() else []
    rows.append(("Device:", port["bdf"]))
    sys.stdout.write(f"\nDevice #{number}:\n----------\n\n")
    sys.stdout.write("".join(f"{label:<20}{value:<20}\n" for label, value in rows) + "\n")


def _row(mark: str, name: str, cells: list[str]) -> None:
    left, name_width, width = ("", 52, 20) if _wide() else ("", 45, 16)
    if mark or name != "Configurations:":
        left = f"{mark or ' '}{' ' * (7 if _wide() else 8)}"
    joint = " " if _wide() else ""
    text = f"{left}{name}".ljust(name_width) + joint.join(f"{cell:<{width}}" for cell in cells)
    sys.stdout.write(f"{text.rstrip() if not _wide() else text}\n")


def _query(ports: list[PortFacts], options: dict[str, str], names: list[str]) -> int:
    verbose = "verbose" in options
    document: dict[str, Any] = {}
    failed = ""
    for number, port in enumerate(ports, 1):
        values, known = nvparams.flash(port["bdf"]), nvparams.parameters(port["bdf"])
        if "json" not in options:
            _head(port, number)
            _row("", "Configurations:", [*(["Default", "Current"] if verbose else []), "Next Boot"])
        try:
            chosen = _chosen(known, values["next"], names)
        except Wrong as wrong:
            sys.stdout.write(f"-E- {wrong}\n")
            failed = str(wrong)
            continue
        if "json" in options:
            document[f"Device #{number}"] = _document(port, known, values, chosen, verbose)
        else:
            _table(known, values, chosen, verbose)
    if "json" in options:
        with open(options["json"], "w") as file:
            file.write(json.dumps(document, indent="\t", sort_keys=True) + "\n")
        sys.stdout.write(f"Query output saved to {options['json']} successfully\n")
    return _ERROR if failed else 0


def _chosen(known: dict[str, nvparams.Parameter], values: dict[str, int], names: list[str]) -> list[str]:
    """All that is visible, or the names given; Wrong for a name that is not."""
    visible = [name for name in known if name not in nvparams.HIDDEN or values[nvparams.HIDDEN[name]]]
    for name in names:
        if name not in known:
            raise Wrong(f"Unknown Parameter: {name}")
        if name not in visible:
            raise Wrong(f"The Device doesn't support {name} parameter")
    return names or visible


def _table(
    known: dict[str, nvparams.Parameter],
    values: dict[str, dict[str, int]],
    chosen: list[str],
    verbose: bool,
) -> None:
    differs = False
    for name in chosen:
        default, current, following = known[name].factory, values["current"][name], values["next"][name]
        numbers = [default, current, following] if verbose else [following]
        mark = "*" if verbose and (following != default or following != current) else ""
        differs = differs or bool(mark)
        _row(mark, name, [known[name].shown(number) for number in numbers])
    if differs:
        sys.stdout.write("The '*' shows parameters with next value different from default/current value.\n")


def _document(
    port: PortFacts,
    known: dict[str, nvparams.Parameter],
    values: dict[str, dict[str, int]],
    chosen: list[str],
    verbose: bool,
) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for name in chosen:
        parameter = known[name]
        one = {"next_value": values["next"][name]}
        if verbose:
            one |= {"default_value": parameter.factory, "current_value": values["current"][name]}
        shown: dict[str, Any] = {
            key: parameter.shown(value) if parameter.words else value for key, value in one.items()
        }
        if verbose:
            shown["modified"] = len(set(one.values())) > 1
        table[name] = {**shown, "read_only": False}
    kind = "BlueField3" if store.trait(port, "bluefield") else "ConnectX7"
    return {"device": port["bdf"], "device_type": kind, "name": "N/A", "tlv_configuration": table}


# --- writing ---


def _set(port: PortFacts, options: dict[str, str], settings: list[str]) -> int:
    pairs: dict[str, str] = {}
    for setting in settings:
        parts = [part for part in setting.split("=") if part]
        if len(parts) != 2:
            _usage("mlxconfig", f"Invalid Configuration argument {setting}")
        if parts[0] in pairs:
            _usage("mlxconfig", f"Duplicate parameter, {parts[0]}.")
        pairs[parts[0]] = parts[1]
    known, values = nvparams.parameters(port["bdf"]), nvparams.flash(port["bdf"])["next"]
    _head(port, 1)
    _row("", "Configurations:", ["Next Boot", "New"])
    try:
        for name in pairs:
            _chosen(known, values, [name])
        wanted = {name: known[name].parse(text) for name, text in pairs.items()}
    except Wrong as wrong:
        _fail(str(wrong))
    for name, number in wanted.items():
        _row("", name, [known[name].shown(values[name]), known[name].shown(number)])
    if not _agreed("Apply new Configuration?", options):
        raise Ended(_ABORTED, "Aborted by user.")
    sys.stdout.write("Applying... ")
    try:
        for name, number in wanted.items():
            known[name].check(number)
    except Wrong as wrong:
        sys.stdout.write("Failed!\n")
        _fail(str(wrong))
    nvparams.write(port["bdf"], wanted)
    sys.stdout.write("Done!\n-I- Please reboot machine to load new configurations.\n")
    return 0


def _agreed(question: str, options: dict[str, str]) -> bool:
    sys.stdout.write(f"\n {question} (y/n) [n] : ")
    if "yes" in options:
        sys.stdout.write("y\n")
        return True
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _reset(ports: list[PortFacts], options: dict[str, str], names: list[str]) -> int:
    """All parameters; a single configuration would be named by its TLV, which this lab does not know."""
    if names:
        _fail(f"The TLV configuration {names[0]} was not found")
    which = f"device {options['device']}" if "device" in options else "all devices"
    if not _agreed(f"Reset configuration for {which}?", options):
        raise Ended(_ABORTED, "Aborted by user.")
    for port in ports:
        nvparams.write(port["bdf"], None)
    sys.stdout.write("Applying... Done!\n-I- Please reboot machine to load new configurations.\n")
    return 0


def _show(port: PortFacts) -> int:
    sys.stdout.write(f"\nList of configurations the device {port['bdf']} may support:\n")
    for name, parameter in nvparams.parameters(port["bdf"]).items():
        kind = ",".join(f"{word}({number})" for number, word in parameter.words.items())
        sys.stdout.write(f"            {name + '=':<40}<{kind or 'NUM'}>\n")
    return 0
