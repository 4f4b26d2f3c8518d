"""NCCL's environment does not fit the InfiniBand network.

What it checks
    On hosts with InfiniBand ports: NCCL_IB_SL is the service level of a class, NCCL_IB_PKEY (an index) is
    inside the P_Key table that the host's ports get, and NCCL_IB_TC is not set, which RoCE alone uses.

Why it breaks RDMA
    A service level without a class shares the wrong lane; an index beyond the table makes every connection
    fail.
    Source: NCCL src/transport/net_ib (NCCL_IB_SL, NCCL_IB_PKEY); the traffic class goes into the GRH only.

Wrong
    hosts: {environment: {NCCL_IB_SL: 3}} with classes of sl 0 and 1

Right
    hosts: {environment: {NCCL_IB_SL: 1}}

When to waive it
    For variables that a job overrides anyway.
"""

from collections.abc import Iterator

from rdma_fabric.checker.scopes import Hit, NodeRule, NodeView
from rdma_fabric.findings import Severity
from rdma_fabric.inventory.subnets import ib_classes
from rdma_fabric.state import Absent


def _check(node: NodeView) -> Iterator[Hit]:
    ports = [port for port in node.wanted.ports if not isinstance(port.settings.ib.link, Absent)]
    if not node.is_host or not ports:
        return
    variables = {name: value for name, value in node.wanted.system.environment if isinstance(value, str)}
    levels = {one.sl for port in ports for one in ib_classes(node.port_wishes[port.name]).values()}
    level = variables.get("NCCL_IB_SL", "")
    if level.isdigit() and int(level) not in (levels or {0}):
        yield _hit("NCCL_IB_SL", level, " or ".join(str(one) for one in sorted(levels or {0}, key=str)))
    index = variables.get("NCCL_IB_PKEY", "")
    sizes = [len(port.settings.ib.pkeys) for port in ports if isinstance(port.settings.ib.pkeys, tuple)]
    if index.isdigit() and sizes and int(index) >= min(sizes):
        yield _hit("NCCL_IB_PKEY", index, f"below {min(sizes)}, the number of the port's P_Keys")
    if "NCCL_IB_TC" in variables and len(ports) == len(node.wanted.ports):
        yield _hit("NCCL_IB_TC", variables["NCCL_IB_TC"], "not set: RoCE alone uses it")


def _hit(name: str, found: str, wanted: str) -> Hit:
    return Hit(
        setting=f"environment.{name}",
        found=found,
        wanted=wanted,
        message=f"{{where}}: {name} is {found} on an InfiniBand host",
        help=f"correct hosts.environment.{name}, or remove it",
    )


RULE = NodeRule("FAB078", "job-environment", Severity.WARNING, "0.1", "infiniband", _check, plan=True)
