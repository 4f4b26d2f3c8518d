"""A NIC runs a firmware or driver that is not among the wanted ones.

What it checks
    The firmware and driver versions of observed host ports against `hosts.firmware` and `hosts.drivers`: per
    kind of NIC a set of versions, or one per board (PSID or part number); `*` stands for any characters.

Why it breaks RDMA
    Congestion control, adaptive routing and PFC behave differently between firmware releases; one node with
    another release slows down every collective that it takes part in, or drops what the others do not.
    Source: NVIDIA ConnectX firmware release notes (changes in RoCE congestion control).

Wrong
    firmware 28.39.3560 with MT_0000000838: ["28.43.*"] in hosts.firmware

Right
    firmware 28.43.3608, or the older release in the set too

When to waive it
    For a node that tries a new release, until it is in the set.
"""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from rdma_fabric.checker.rules._common import apart
from rdma_fabric.checker.scopes import Hit, PortRule, PortView
from rdma_fabric.findings import Severity
from rdma_fabric.state import NicState, known


def wanted_versions(port: PortView, field: str) -> tuple[str, ...]:
    """The versions that the port's board may have; () where the intent says nothing of it."""
    hosts = port.wishes.hosts
    sets = (hosts.firmware if field == "firmware" else hosts.drivers).get(port.hw.nic, {})
    return _of_board(sets, port.state.nic) if sets else ()


def _of_board(sets: Mapping[str, tuple[str, ...]], nic: NicState) -> tuple[str, ...]:
    """By PSID, by part number with or without its revisions (MCX755106AS-HEA_Ax), else by any."""
    if set(sets) != {"any"}:
        names = [known(nic.board, "the NIC's board")]
        if isinstance(nic.part, str):
            names += [nic.part, nic.part.partition("_")[0]]
        for name in names:
            if name in sets:
                return sets[name]
    return sets.get("any", ())


def allowed(version: str, wanted: tuple[str, ...]) -> bool:
    """True when the version is one of these."""
    return any(fnmatchcase(version, one) for one in wanted)


def _check(port: PortView) -> Iterator[Hit]:
    if port.observed:
        yield from apart(_version(port, field) for field in ("firmware", "driver"))


def _version(port: PortView, field: str) -> Iterator[Hit]:
    wanted = wanted_versions(port, field)
    if not wanted:
        return
    found = known(getattr(port.state.nic, field), f"the NIC's {field}")
    if not allowed(found, wanted):
        board = f" (board {port.state.nic.board})" if isinstance(port.state.nic.board, str) else ""
        yield Hit(
            setting=f"nic.{field}",
            found=f"{found}{board}",
            wanted=" or ".join(wanted),
            message=f"{{where}}: its NIC runs {field} {found}",
            help=f"install a wanted {field} by the vendor's tools, or add this one to the set",
            rank=5,
        )


RULE = PortRule("FAB082", "version-not-wanted", Severity.ERROR, "0.1", "observed", _check)
