"""`fabric lab`: the embedded fabric on loopback, and the faults it can be given."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from rdma_fabric.cli import common

VERBS = ("up", "down", "status", "break", "mend", "release", "reboot", "somebody", "running", "log")
KINDS = ("refuse", "ignore", "drop", "hold", "unreachable", "slow")
MISHAPS = (
    *("mtu", "pfc", "trust", "ecn", "flap", "reload", "module", "lldpad", "nv", "firmware", "sysctl"),
    *("forget",),
)
"""Kinds that befall a host once (`lab.breaks.MISHAPS`), written out because the lab loads slowly."""
AILMENTS = ("counter", "speed", "active-mtu", "blackhole")
"""Kinds that ail a port until it is mended (`lab.ailments.AILMENTS`)."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `fabric lab`."""
    common_options = argparse.ArgumentParser(add_help=False)
    common_options.add_argument(
        "-C", dest="chdir", metavar="DIR", help="folder that holds fabric.yaml (default: .)"
    )
    common_options.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
    common_options.add_argument("-v", "--verbose", action="store_true", help=argparse.SUPPRESS)
    common_options.add_argument("--no-color", action="store_true", help="plain text also on a terminal")
    common.format_option(common_options)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def verb(name: str, text: str) -> argparse.ArgumentParser:
        return verbs.add_parser(
            name, help=text, description=text, parents=[common_options], allow_abbrev=False
        )

    up = verb(
        "up",
        "start a blank device per node; FABRIC_LAB_PASSWORD lets a password log in too",
    )
    up.add_argument("dir", nargs="?", metavar="DIR")
    up.add_argument("--keep", action="store_true", help="go on with the devices of the last `down --keep`")
    down = verb("down", "stop the lab")
    down.add_argument("dir", nargs="?", metavar="DIR")
    down.add_argument("--keep", action="store_true", help="keep what the devices have saved")
    verb("status", "what runs where, and its breaks").add_argument("dir", nargs="?", metavar="DIR")
    fault = verb("break", "give a node a fault")
    fault.add_argument("node")
    fault.add_argument(
        "kind",
        choices=(*KINDS, *MISHAPS, *AILMENTS),
        metavar="KIND",
        help="refuse, ignore or drop a matching line; hold at commit; unreachable; slow; a port: "
        "counter PORT NAME=RATE, speed PORT 100G, active-mtu|blackhole PORT BYTES; on hosts also, "
        "once: mtu PORT [BYTES], pfc|trust|ecn|flap|reload PORT, module NAME, lldpad [PORT], "
        "nv PORT NAME=VALUE, firmware PORT VERSION, sysctl KEY=VALUE, forget FILE",
    )
    fault.add_argument(
        "words", nargs="*", metavar="WORD", help="regular expression of the line, or words of the kind"
    )
    fault.add_argument("--seconds", type=float, default=0.0, help="slow: delay of every answer")
    fault.add_argument("--after", action="store_true", help="drop, hold: after the line was run")
    fault.add_argument("--times", type=int, default=0, help="works this often only")
    mend = verb("mend", "take a node's faults away (not what befell a host: set that right)")
    mend.add_argument("node")
    mend.add_argument(
        "kind",
        nargs="?",
        default="",
        choices=("", *KINDS, *AILMENTS),
        metavar="KIND",
        help=f"only {', '.join((*KINDS, *AILMENTS))} (default: all)",
    )
    verb("release", "let a held commit go on").add_argument("node")
    verb("reboot", "reboot a node: what was not saved is lost").add_argument("node")
    somebody = verb("somebody", "type lines on a node as another administrator would")
    somebody.add_argument("node")
    somebody.add_argument("lines", nargs="+", metavar="LINE")
    verb("running", "the node's whole running configuration").add_argument("node")
    verb("log", "the lines that a node was sent").add_argument("node")


def run(options: argparse.Namespace) -> int:
    """0 done, 2 trouble."""
    from rdma_fabric.lab import fabric
    from rdma_fabric.lab.breaks import BreakError

    out = common.output(options)
    folder = Path(getattr(options, "dir", None) or options.chdir or ".")
    try:
        return _VERBS[options.verb](options, folder)
    except (fabric.LabError, BreakError) as error:
        out.complain(f"fabric lab: {error}")
        return 2


def _up(options: argparse.Namespace, folder: Path) -> int:
    from rdma_fabric.lab import fabric
    from rdma_fabric.lab.planned import lab_nodes
    from rdma_fabric.state_dir import state_dir

    resolved = common.load(folder)
    state_dir(folder)
    password = os.environ.get("FABRIC_LAB_PASSWORD") or None
    info = fabric.up(folder, lab_nodes(resolved.inventory), password=password, keep=options.keep)
    out = common.output(options)
    out.data(f"lab up: {len(info.nodes)} nodes" + (f", {len(info.skipped)} skipped" if info.skipped else ""))
    for name, why in info.skipped.items():
        out.complain(f"skipped {name}: {why}")
    return 0


def _down(options: argparse.Namespace, folder: Path) -> int:
    from rdma_fabric.lab import fabric

    was = fabric.down(folder, keep=options.keep)
    common.output(options).data("lab down" if was else "no lab was up")
    return 0


def _status(options: argparse.Namespace, folder: Path) -> int:
    import json
    from dataclasses import asdict

    from rdma_fabric.lab import fabric

    out = common.output(options)
    info = fabric.status(folder)
    if info is None:
        out.complain("no lab is up; `fabric lab up` starts one")
        return 2
    if options.format == "json":
        nodes = {name: asdict(node) for name, node in info.nodes.items()}
        out.data(json.dumps({"version": 1, "nodes": nodes, "skipped": dict(info.skipped)}, indent=1))
        return 0
    for name, node in info.nodes.items():
        faults = ", ".join([*(f"{one.kind} {one.pattern}".strip() for one in node.breaks), *node.ailments])
        held = f", holding: {node.held[0]}" if node.held else ""
        text = f"{name:<16} {node.endpoint.platform:<12} {node.endpoint.host}:{node.endpoint.port}"
        out.data(f"{text}  logins {node.logins}{f', broken: {faults}' if faults else ''}{held}")
    for name, why in info.skipped.items():
        out.data(f"{name:<16} skipped: {why}")
    return 0


def _break(options: argparse.Namespace, folder: Path) -> int:
    from rdma_fabric.lab import fabric

    if options.kind in MISHAPS:
        if options.seconds or options.after or options.times:
            raise fabric.LabError(f"{options.kind} happens once and at once: no --seconds, --after, --times")
        common.output(options).say(fabric.mishap(folder, options.node, options.kind, options.words))
        return 0
    if options.kind in AILMENTS:
        if options.seconds or options.after or options.times:
            raise fabric.LabError(f"{options.kind} lasts until `lab mend`: no --seconds, --after, --times")
        fabric.ail(folder, options.node, options.kind, options.words)
        return 0
    if len(options.words) > 1:
        raise fabric.LabError(f"write the regular expression of {options.kind} as one word, in quotes")
    fabric.break_(
        folder,
        options.node,
        options.kind,
        "".join(options.words),
        seconds=options.seconds,
        after=options.after,
        times=options.times,
    )
    return 0


def _mend(options: argparse.Namespace, folder: Path) -> int:
    from rdma_fabric.lab import fabric

    fabric.mend(folder, options.node, options.kind)
    return 0


def _release(options: argparse.Namespace, folder: Path) -> int:
    from rdma_fabric.lab import fabric

    count = fabric.release(folder, options.node)
    common.output(options).say(f"released {count}")
    return 0


def _reboot(options: argparse.Namespace, folder: Path) -> int:
    from rdma_fabric.lab import fabric

    fabric.reboot(folder, options.node)
    return 0


def _somebody(options: argparse.Namespace, folder: Path) -> int:
    from rdma_fabric.lab import fabric

    answer = fabric.somebody(folder, options.node, options.lines)
    if answer.strip():
        common.output(options).data(answer.rstrip("\n"))
    return 0


def _running(options: argparse.Namespace, folder: Path) -> int:
    from rdma_fabric.lab import fabric

    common.output(options).data(fabric.running(folder, options.node).rstrip("\n"))
    return 0


def _log(options: argparse.Namespace, folder: Path) -> int:
    from rdma_fabric.lab import fabric

    out = common.output(options)
    for entry in fabric.sessions(folder, options.node):
        out.data(f"{entry.login:>3} {entry.user} {entry.channel:<6} {entry.line}")
    return 0


_VERBS = {
    "up": _up,
    "down": _down,
    "status": _status,
    "break": _break,
    "mend": _mend,
    "release": _release,
    "reboot": _reboot,
    "somebody": _somebody,
    "running": _running,
    "log": _log,
}
