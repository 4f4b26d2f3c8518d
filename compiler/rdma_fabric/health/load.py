"""On request: pairs of hosts under load, and nccl-tests. Starts programs on hosts and always ends them."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Final

from rdma_fabric import platforms
from rdma_fabric.findings import Finding, Place
from rdma_fabric.health.pairs import Path, addresses
from rdma_fabric.health.types import Gaps, Judgement, Metric, Scene, finding, in_service
from rdma_fabric.intent.models import NcclMark
from rdma_fabric.inventory.types import End
from rdma_fabric.transport.credentials import Secrets
from rdma_fabric.transport.errors import Failure, TransportError
from rdma_fabric.transport.fleet import on_each
from rdma_fabric.transport.session import Session, open_session
from rdma_fabric.transport.targets import Target
from rdma_fabric.vitals import Load, Loaded

SECONDS: Final = 5
_HEAD_START_S: Final = 1.5
"""The waiting end is started before the other one."""
_FIRST_TCP: Final = 18_515
"""perftest's own default port; tests of one round count up from there."""
NCCL_S: Final = 900


@dataclass
class _Open:
    """Sessions that are open, so that an interrupt can close them: the programs behind them end then."""

    sessions: list[Session] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    ended: bool = False

    @contextmanager
    def of(self, target: Target, base: str, secrets: Secrets) -> Iterator[Session]:
        with open_session(target, platforms.platform(base).dialect, secrets) as session:
            with self.lock:
                self.sessions.append(session)
            try:
                if self.ended:  # interrupted before it began
                    raise TransportError("closed", "interrupted")
                yield session
            finally:
                with self.lock:
                    self.sessions.remove(session)

    def close(self) -> None:
        with self.lock:
            self.ended = True
            left = list(self.sessions)
        for session in left:
            session.close()


@contextmanager
def _interruptible(opened: _Open) -> Iterator[None]:
    """Ctrl-C closes all sessions at once instead of waiting for the programs to end."""

    def stop(number: int, frame: FrameType | None) -> None:
        opened.close()
        raise KeyboardInterrupt

    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, stop) if main else None
    try:
        yield
    finally:
        if main:
            signal.signal(signal.SIGINT, before)


# ---------------------------------------------------------------- pairs


@dataclass(frozen=True, slots=True)
class _Role:
    """One end of one pair: what to run where, and after how long."""

    target: Target
    base: str
    script: str
    wait_s: float


def rounds(chosen: Iterable[Path], workers: int) -> tuple[tuple[Path, ...], ...]:
    """Pairs that may run at the same time: no port twice, and a session for each end."""
    left = list(chosen)
    found: list[tuple[Path, ...]] = []
    while left:
        busy: set[End] = set()
        now: list[Path] = []
        for path in left:
            if not {path.a, path.b} & busy and len(now) < max(1, workers // 2):
                now.append(path)
                busy |= {path.a, path.b}
        found.append(tuple(now))
        taken = set(now)
        left = [path for path in left if path not in taken]
    return tuple(found)


def perftest(
    scene: Scene,
    chosen: Iterable[Path],
    targets: Mapping[str, Target],
    secrets: Secrets,
    workers: int,
    say: Callable[[str], None],
) -> Judgement:
    """Every pair in turn, all ports at once where they do not share an end."""
    gaps = Gaps("perftest")
    results: dict[Path, Loaded] = {}
    opened = _Open()
    plan = rounds(chosen, workers)
    with _interruptible(opened):
        for number, pairs in enumerate(plan, 1):
            say(f"ib_write_bw, round {number} of {len(plan)}: {len(pairs)} pairs for {SECONDS} s ...")
            results.update(_round(scene, pairs, targets, secrets, opened))
    return _judge_pairs(scene, results, gaps)


def _round(
    scene: Scene, pairs: Iterable[Path], targets: Mapping[str, Target], secrets: Secrets, opened: _Open
) -> dict[Path, Loaded]:
    roles: dict[str, _Role] = {}
    found: dict[Path, Loaded] = {}
    for number, path in enumerate(pairs):
        made = _roles(scene, path, _FIRST_TCP + number, targets)
        if isinstance(made, Loaded):
            found[path] = made
        else:
            roles |= {f"{path.b} <- {path.a}": made[0], f"{path.a} -> {path.b}": made[1]}

    def work(target: Target) -> str:
        role = roles[target.name]
        time.sleep(role.wait_s)
        with opened.of(role.target, role.base, secrets) as session:
            return session.run(role.script, timeout_s=SECONDS + 60).text

    named = {name: replace(role.target, name=name) for name, role in roles.items()}
    said = on_each(named, named, work, secrets, workers=max(1, len(named)))
    for path in pairs:
        if path not in found:
            found[path] = _result(scene, path, said[f"{path.a} -> {path.b}"])
    return found


def _result(scene: Scene, path: Path, said: str | Failure) -> Loaded:
    if isinstance(said, Failure):
        return Loaded(trouble=f"{said.kind}: {said.text}")
    part = platforms.tester(scene.judged.views[path.a.node].hw)
    assert part is not None
    return part.loaded(said)


def _roles(scene: Scene, path: Path, tcp: int, targets: Mapping[str, Target]) -> tuple[_Role, _Role] | Loaded:
    """(the end that waits, the end that connects), or why there is none."""
    there = addresses(scene, path.b)
    if not there:
        return Loaded(trouble="the port has no address of its own")
    made = []
    for end, to in ((path.b, ""), (path.a, there[0])):
        view = scene.judged.ports[end.node][end.port]
        part = platforms.tester(scene.judged.views[end.node].hw)
        if part is None or end.node not in targets:
            return Loaded(trouble="no programs can be started there")
        seen = view.state
        cm = not isinstance(seen.marking.traffic_class, int) and isinstance(seen.marking.rdma_cm_tos, int)
        wanted = view.wanted.marking
        tos = next((one for one in (wanted.traffic_class, wanted.rdma_cm_tos) if isinstance(one, int)), -1)
        gids = seen.nic.gids
        load = Load(
            end.port,
            view.hw.rdma,
            tcp,
            SECONDS,
            to,
            gid=gids[0] if isinstance(gids, tuple) and gids else -1,
            tos=-1 if cm or isinstance(seen.marking.traffic_class, int) else tos,
            cm=cm,
        )
        wait = _HEAD_START_S if to else 0.0
        made.append(
            _Role(targets[end.node], scene.judged.views[end.node].hw.base, part.load_script(load), wait)
        )
    return made[0], made[1]


def _line_gbps(scene: Scene, path: Path) -> int:
    speeds = [scene.judged.ports[end.node][end.port].hw.speed_gbps for end in (path.a, path.b)]
    return min(filter(None, speeds), default=0)


def _judge_pairs(scene: Scene, results: Mapping[Path, Loaded], gaps: Gaps) -> Judgement:
    mark = scene.judged.resolved.intent.verify.perftest.value
    metrics: dict[str, Metric] = {}
    bad: list[tuple[Path, Loaded, float]] = []
    good: set[End] = set()
    judged = 0
    for path, one in results.items():
        ends = tuple(Place(end.node, end.port) for end in (path.a, path.b))
        wanted = _line_gbps(scene, path) * mark / 100
        if one.trouble or not wanted:
            gaps.add("ib_write_bw", one.trouble or "the inventory gives its ports no speed", *ends)
            continue
        judged += 1
        if not one.failed:
            metrics[f"{path.a} -> {path.b} ib_write_bw"] = Metric(one.value, "Gb/s", True, ends)
        if one.failed or one.value < wanted:
            bad.append((path, one, wanted))
        else:
            good |= {path.a, path.b}
    findings = tuple(_slow(scene, path, one, wanted, good) for path, one, wanted in bad)
    return Judgement("perftest", judged, findings, gaps.rows(), metrics)


def _slow(scene: Scene, path: Path, one: Loaded, wanted: float, good: set[End]) -> Finding:
    """At the end that is slow with everybody, else at both."""
    ends = [end for end in (path.a, path.b) if end not in good] or [path.a, path.b]
    mark = scene.judged.resolved.intent.verify.perftest
    return finding(
        "bandwidth-low",
        [Place(end.node, end.port) for end in ends],
        f"{path.a} -> {path.b}: ib_write_bw {'failed' if one.failed else 'is below the pass mark'}",
        found=one.failed or f"{one.value:.1f} Gb/s",
        wanted=f"{wanted:.0f} Gb/s ({mark} of {_line_gbps(scene, path)}G)",
        help="look at the findings of the other steps first; then PCIe width, NUMA, and other traffic",
        peer=scene.peer(ends[0]),
        position=scene.where(ends[0]),
        active=all(in_service(scene.inventory.nodes[end.node].spec.state) for end in ends),
    )


# ---------------------------------------------------------------- nccl-tests


def nccl(
    scene: Scene, targets: Mapping[str, Target], secrets: Secrets, say: Callable[[str], None]
) -> Judgement:
    """The intent's command on the first host with GPUs, over all of them."""
    mark = scene.judged.resolved.intent.verify.nccl
    gpus = {name: scene.inventory.nodes[name].spec.gpus for name in scene.names if name in scene.observations}
    hosts = {name: count for name, count in gpus.items() if count}
    first = next((name for name in hosts if name in targets), "")
    part = platforms.tester(scene.judged.views[first].hw) if first else None
    if part is None:
        return Judgement("nccl", 0, skipped="no host with GPUs (`gpus` in the inventory) was read")
    words = ",".join(f"{name}:{count}" for name, count in hosts.items())
    command = mark.command.format(ranks=sum(hosts.values()), hosts=words)
    say(f"nccl-tests from {first} over {len(hosts)} hosts: {command}")
    opened = _Open()
    script = part.program_script(command, NCCL_S)

    def work(target: Target) -> str:
        with opened.of(target, scene.judged.views[first].hw.base, secrets) as session:
            return session.run(script, timeout_s=NCCL_S + 60.0).text

    with _interruptible(opened):
        said = on_each([first], targets, work, secrets)[first]
    done = (
        Loaded(trouble=f"{said.kind}: {said.text}") if isinstance(said, Failure) else part.program_done(said)
    )
    return _judge_nccl(scene, first, tuple(hosts), mark, done)


def _judge_nccl(scene: Scene, first: str, hosts: tuple[str, ...], mark: NcclMark, done: Loaded) -> Judgement:
    gaps = Gaps("nccl")
    line = min((_host_gbytes(scene, name) for name in hosts), default=0.0)
    if done.trouble or not line:
        why = done.trouble or "the inventory gives the hosts' ports no speed"
        gaps.add("nccl-tests", why, Place(first))
        return Judgement("nccl", 0, unjudged=gaps.rows())
    wanted = line * mark.mark.value / 100
    places = tuple(Place(name) for name in hosts)
    metrics = {} if done.failed else {"nccl-tests bus bandwidth": Metric(done.value, "GB/s", True, places)}
    if not done.failed and done.value >= wanted:
        return Judgement("nccl", 1, metrics=metrics)
    one = finding(
        "collective-low",
        places,
        f"nccl-tests over {len(hosts)} hosts {'failed' if done.failed else 'are below the pass mark'}",
        found=done.failed or f"{done.value:.1f} GB/s",
        wanted=f"{wanted:.0f} GB/s ({mark.mark} of {line:.0f} GB/s)",
        help="run --perftest: it names the slow pair; then look at the job's environment (`fabric check`)",
        position=scene.inventory.nodes[first].position,
        active=all(in_service(scene.inventory.nodes[name].spec.state) for name in hosts),
    )
    return Judgement("nccl", 1, (one,), metrics=metrics)


def _host_gbytes(scene: Scene, name: str) -> float:
    """Line rate of all RDMA ports of a host in GB/s."""
    ports = scene.judged.ports[name].values()
    return sum(view.hw.speed_gbps for view in ports if view.hw.kind == "physical") / 8
