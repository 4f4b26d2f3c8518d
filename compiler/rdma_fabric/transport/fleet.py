"""The same work on many nodes at once, through nornir; every node has its row in the result."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from rdma_fabric.inventory import nornir_plugin
from rdma_fabric.inventory.nornir_plugin import Row
from rdma_fabric.transport.credentials import Secrets, scrub
from rdma_fabric.transport.errors import Failure, TransportError
from rdma_fabric.transport.targets import Target

if TYPE_CHECKING:
    from nornir.core import Nornir
    from nornir.core.task import Result, Task

WORKERS = 50
"""Sessions at once: the best rate per core with lean drivers."""
T = TypeVar("T")


def on_each(
    names: Iterable[str],
    targets: Mapping[str, Target],
    work: Callable[[Target], T],
    secrets: Secrets,
    *,
    workers: int = WORKERS,
) -> dict[str, T | Failure]:
    """What `work` returns for every name, in their order; a Failure where it raised or has no target.

    `work` must close what it opens. Ctrl-C lets no further login start and is raised again.
    """
    wanted = tuple(dict.fromkeys(names))
    reached = [name for name in wanted if name in targets]
    found: dict[str, T | Failure] = {
        name: Failure(name, "unreachable", "no address is known") for name in wanted
    }
    if reached:
        found.update(_run([targets[name] for name in reached], work, secrets, min(workers, len(reached))))
    return found


def _run(
    targets: list[Target], work: Callable[[Target], T], secrets: Secrets, workers: int
) -> dict[str, T | Failure]:
    found: dict[str, T | Failure] = {}
    by_name = {target.name: target for target in targets}

    def task(task: Task) -> Result:
        from nornir.core.task import Result

        name = str(task.host.name)
        try:
            found[name] = work(by_name[name])
        except TransportError as error:
            found[name] = Failure(name, error.kind, scrub(error.text, secrets))
        return Result(host=task.host)

    nornir = _nornir(targets, workers)
    try:
        results = nornir.run(task, name="rdma_fabric")
    except KeyboardInterrupt:
        secrets.gate.end("interrupted")
        raise
    for name, result in results.items():
        if name not in found:  # a mistake of ours: it is told as the failure of one node, not of the run
            error = result.exception
            text = f"{type(error).__name__}: {error}" if error else "no result"
            found[name] = Failure(name, "internal", scrub(text, secrets))
    return found


def _nornir(targets: list[Target], workers: int) -> Nornir:
    """nornir over our inventory plug-in; its logger would print tracebacks and arguments."""
    from nornir.core import Nornir
    from nornir.core.plugins.inventory import InventoryPluginRegister
    from nornir.plugins.runners import ThreadedRunner

    logging.getLogger("nornir").setLevel(logging.CRITICAL)
    nornir_plugin.register()
    rows = [Row(one.name, one.host, one.port, one.username, groups=one.groups) for one in targets]
    plugin = InventoryPluginRegister.get_plugin(nornir_plugin.NAME)
    return Nornir(inventory=plugin(rows=rows).load(), runner=ThreadedRunner(num_workers=workers))
