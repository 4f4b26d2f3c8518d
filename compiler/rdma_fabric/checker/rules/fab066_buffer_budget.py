"""The headroom of all lossless ports does not fit into the switch.

What it checks
    The sum over all ports and lossless priorities of one switch against its ASIC's buffer. Headroom written
    by hand counts as written, other headroom as the least that its speed and cable allow (error), and as
    the usual amount with reaction time (warning). It is taken from the same memory as the shared pool, so
    that less than half of the buffer should be headroom (warning).

Why it breaks RDMA
    Devices give headroom out until it is gone: the ports that come last have none, and drop lossless packets.
    Source: SONiC headroom design (pool size >= sum of all headroom); IEEE 802.1Qbb annex N.

Wrong
    pfc: {headroom: 2MB}      # on 64 ports of a switch with 114 MB

Right
    pfc: {headroom: auto}

When to waive it
    With a shared headroom pool that is oversubscribed on purpose.
"""

from collections.abc import Iterator

from rdma_fabric.checker.rules._buffers import least_headroom, metres, usual_headroom
from rdma_fabric.checker.scopes import Hit, NodeRule, NodeView
from rdma_fabric.findings import Severity
from rdma_fabric.settings import amount
from rdma_fabric.state import UNKNOWN, Amount, NotJudged


def _check(node: NodeView) -> Iterator[Hit]:
    asic = node.hw.asic
    if node.is_host or asic is None or not asic.buffer_bytes:
        return
    size = asic.buffer_bytes
    least, usual = _sums(node)
    if least > size:
        yield _hit(least, size, "the buffer", asic.name, Severity.ERROR)
    elif usual > size // 2:
        yield _hit(usual, size // 2, "half of the buffer", asic.name, Severity.WARNING)
    elif any(one.pfc_tx is UNKNOWN for port in node.state.ports for one in port.settings.qos.classes):
        raise NotJudged(UNKNOWN, "PFC")


def _sums(node: NodeView) -> tuple[int, int]:
    """Bytes of all headroom: at least, and usually."""
    least = usual = 0
    for port in node.state.ports:
        facts = node.hw.port(port.name)
        if facts is None or facts.kind != "physical" or not facts.speed_gbps:
            continue
        # What could not be read counts for nothing: the sum is a lower bound then.
        for state in port.settings.qos.classes:
            if state.pfc_tx is not True:
                continue
            given = state.headroom
            by_hand = given.value if isinstance(given, Amount) and given.unit == "bytes" else 0
            least += by_hand or least_headroom(facts.speed_gbps, metres(facts))
            usual += by_hand or usual_headroom(facts.speed_gbps, metres(facts))
    return least, usual


def _hit(needed: int, bound: int, what: str, asic: str, severity: Severity) -> Hit:
    return Hit(
        setting="headroom of all ports",
        found=amount(Amount(needed)),
        wanted=f"at most {amount(Amount(bound))} ({what} of {asic})",
        message=f"{{where}}: the lossless headroom of all ports does not fit into {what}",
        help="use fewer lossless classes, shorter cables, or headroom: auto",
        severity=severity,
    )


RULE = NodeRule("FAB066", "buffer-budget", Severity.ERROR, "0.1", "buffers", _check, plan=True)
