"""Equal NICs of a network run different firmware or drivers.

What it checks
    Observed host ports of one network that have the same board (PSID; without one the same part number or
    kind of NIC): their firmware and driver versions. Versions that `hosts.firmware` or `hosts.drivers`
    allow side by side may differ.

Why it breaks RDMA
    A collective is as fast as its slowest member, and releases differ in how they react to marks and pauses.
    A mix is also the first thing that hides behind "only some nodes are slow".
    Source: NVIDIA ConnectX firmware release notes (changes in RoCE congestion control).

Wrong
    gpu07 eth2 with firmware 28.39.3560, 61 equal ports with 28.43.3608

Right
    one release on all of them

When to waive it
    While a new release is rolled out, node by node.
"""

from collections import Counter
from collections.abc import Iterator

from rdma_fabric.checker.rules.fab082_version_not_wanted import allowed, wanted_versions
from rdma_fabric.checker.scopes import Hit, NetworkRule, NetworkView, PortView
from rdma_fabric.findings import Severity
from rdma_fabric.state import NotJudged


def _check(network: NetworkView) -> Iterator[tuple[PortView, Hit]]:
    for field in ("firmware", "driver"):
        equal: dict[tuple[str, str], list[tuple[PortView, int, str]]] = {}
        for port, count in network.ports:
            version = getattr(port.state.nic, field)
            if port.is_host and port.observed and isinstance(version, str):
                equal.setdefault((port.hw.nic, _board(port)), []).append((port, count, version))
        for (_, board), ports in equal.items():
            yield from _odd(network.name, field, board, ports)


def _board(port: PortView) -> str:
    nic = port.state.nic
    return next((one for one in (nic.board, nic.part) if isinstance(one, str)), f"kind {port.hw.nic}")


def _odd(
    network: str, field: str, board: str, ports: list[tuple[PortView, int, str]]
) -> Iterator[tuple[PortView, Hit]]:
    counts: Counter[str] = Counter()
    for _, count, version in ports:
        counts[version] += count
    usual, most = max(counts.items(), key=lambda item: (item[1], item[0]))
    for port, _, version in ports:
        if version != usual and not _side_by_side(port, field, version, usual):
            told = f"{most} of {counts.total()} ports in network {network} with board {board} have {usual}"
            yield (
                port,
                Hit(
                    setting=f"nic.{field}",
                    found=version,
                    wanted=usual,
                    message=f"{{where}}: its NIC runs another {field} than equal ones",
                    reason=told,
                    help=f"bring all of them to one {field}",
                ),
            )


def _side_by_side(port: PortView, field: str, version: str, usual: str) -> bool:
    """True when the intent names both."""
    try:
        wanted = wanted_versions(port, field)
    except NotJudged:
        return False
    return bool(wanted) and allowed(version, wanted) and allowed(usual, wanted)


RULE = NetworkRule("FAB083", "versions-differ", Severity.WARNING, "0.1", "observed", _check)
