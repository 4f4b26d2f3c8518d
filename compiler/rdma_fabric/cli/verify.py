"""`fabric verify`: is the fabric well? Reads twice, pings between hosts, loads it only on request."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from rdma_fabric.cli import common
from rdma_fabric.cli.drift import interval

if TYPE_CHECKING:
    import datetime
    from pathlib import Path

    from rdma_fabric.checker import Judged
    from rdma_fabric.drift import NodeDrift
    from rdma_fabric.findings import Finding
    from rdma_fabric.health.baseline import Baseline
    from rdma_fabric.health.types import Health, Judgement, Scene, Step
    from rdma_fabric.observe import Seen, Sign
    from rdma_fabric.plan.scope import Scope
    from rdma_fabric.resolve import Resolved
    from rdma_fabric.transport.credentials import Secrets
    from rdma_fabric.transport.errors import Failure
    from rdma_fabric.transport.targets import Target
    from rdma_fabric.views.output import Output

T = TypeVar("T")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `fabric verify`."""
    common.folder_options(parser)
    common.format_option(parser, "junit", "markdown")
    common.limit_option(parser)
    common.device_options(parser)
    parser.add_argument(
        "--interval", type=interval, default=10.0, metavar="TIME", help="between the two reads (default 10s)"
    )
    parser.add_argument(
        "--only", type=_steps, default=(), metavar="STEPS", help="some of counters,config,speed,sm,mtu,paths"
    )
    parser.add_argument(
        "--perftest", action="store_true", help="also ib_write_bw between hosts: starts programs, loads links"
    )
    parser.add_argument("--nccl", action="store_true", help="also nccl-tests over all hosts with GPUs")
    parser.add_argument(
        "--baseline", action="store_true", help="keep this run's numbers; later runs are compared with them"
    )
    parser.add_argument("--strict", action="store_true", help="warnings count as errors")


def _steps(text: str) -> tuple[str, ...]:
    """The steps of --only, for argparse."""
    from rdma_fabric.health.types import STEPS

    words = tuple(dict.fromkeys(word.strip() for word in text.split(",")))
    odd = [word for word in words if word not in STEPS]
    if odd:
        raise argparse.ArgumentTypeError(f"no step {odd[0]!r}: use some of {','.join(STEPS)}")
    return words


@dataclass(frozen=True, slots=True)
class _Desk:
    """Everything that the steps share."""

    options: argparse.Namespace
    resolved: Resolved
    scope: Scope
    names: tuple[str, ...]
    """Nodes that are read."""
    targets: Mapping[str, Target]
    secrets: Secrets
    out: Output
    base: Baseline | None

    @property
    def steps(self) -> tuple[Step, ...]:
        """Those that were asked for, all that change nothing by default."""
        from rdma_fabric.health.types import STEPS

        return tuple(step for step in STEPS if not self.options.only or step in self.options.only)


def run(options: argparse.Namespace) -> int:
    """0 all passed, 1 something failed or a node was not read, 2 nothing could be read or bad input."""
    from rdma_fabric.cli import live, planning

    out = common.output(options)
    resolved = common.load(common.directory(options))
    _, _, scope = planning.scoped(options, resolved)
    skipped = {row.node for row in scope.fixed if row.status == "skipped"}
    names = tuple(name for name in common.scope(resolved, options.limit) if name not in skipped)
    base = _baseline(options)
    targets, secrets = live.reachable(options, resolved, names)
    desk = _Desk(options, resolved, scope, names, targets, secrets, out, base)
    first, second, failures = _reads(desk)
    if names and not first:
        for name, why in failures.items():
            out.complain(f"{name}: {why}")
        return 2
    return _verdict(desk, first, second, failures)


def _reads(desk: _Desk) -> tuple[dict[str, Seen], dict[str, Sign], dict[str, str]]:
    """(first read, second read, why nodes were not read)."""
    from rdma_fabric.observe import observe_vitals, read_vitals
    from rdma_fabric.views.output import count

    workers, plans = desk.options.workers, desk.resolved.plans
    if not desk.names:
        return {}, {}, {}
    desk.out.say(f"reading {count(len(desk.names), 'node')} ...")
    begun = time.monotonic()
    seen, failures = _split(observe_vitals(desk.names, plans, desk.targets, desk.secrets, workers=workers))
    if "counters" not in desk.steps or not seen:
        return seen, {}, failures
    rest = desk.options.interval - (time.monotonic() - max(one.sign.at for one in seen.values()))
    desk.out.say(f"reading counters again in {desk.options.interval:g} s ...")
    time.sleep(max(0.0, rest))
    again, lost = _split(read_vitals(seen, plans, desk.targets, desk.secrets, workers=workers))
    desk.out.say(f"read twice in {time.monotonic() - begun:.0f} s")
    return seen, again, failures | {name: f"second read: {why}" for name, why in lost.items()}


def _split(found: Mapping[str, T | Failure]) -> tuple[dict[str, T], dict[str, str]]:
    from rdma_fabric.transport.errors import Failure

    good: dict[str, T] = {}
    bad: dict[str, str] = {}
    for name, one in found.items():
        if isinstance(one, Failure):
            bad[name] = f"{one.kind}: {one.text}"
        else:
            good[name] = one
    return good, bad


def _verdict(
    desk: _Desk, first: Mapping[str, Seen], second: Mapping[str, Sign], failures: Mapping[str, str]
) -> int:
    import datetime

    from rdma_fabric.checker import build
    from rdma_fabric.health import verify

    judged = build(desk.resolved, {name: one.observation for name, one in first.items()})
    signs = {name: one.sign for name, one in first.items()}
    scene = verify.scene_of(judged, desk.names, signs, second)
    judgements = [*verify.judge(scene, _drifts(desk, judged, failures), desk.steps)]
    if "paths" in desk.steps:
        judgements.append(_paths(desk, scene))
    judgements += _loads(desk, scene)
    now = datetime.datetime.now(datetime.UTC)
    others = [*verify.unread(judged, failures), *_compared(desk, scene, judgements, now)]
    health = verify.verdict(
        judged,
        judgements,
        others,
        today=now.date(),
        nodes=len(desk.names),
        interval_s=desk.options.interval if second else 0.0,
        baseline=desk.base.saved if desk.base and not desk.options.baseline else "",
    )
    _show(desk, health)
    return 1 if verify.fails(health, desk.options.strict) else 0


def _paths(desk: _Desk, scene: Scene) -> Judgement:
    """Pings between hosts, one session per host that sends."""
    from rdma_fabric import platforms
    from rdma_fabric.health import pairs, paths
    from rdma_fabric.health.types import Gaps
    from rdma_fabric.observe import ask
    from rdma_fabric.views.output import count
    from rdma_fabric.vitals import Ping, Pong

    gaps = Gaps("paths")
    tests = paths.tests(scene, pairs.choose(scene, gaps), gaps)
    senders: dict[str, tuple[Ping, ...]] = {}
    for test in tests:
        senders[test.path.a.node] = (*senders.get(test.path.a.node, ()), test.ping)
    parts = {name: platforms.tester(desk.resolved.plans[name].hardware) for name in senders}
    questions = {name: part.path_questions(senders[name]) for name, part in parts.items() if part}
    if questions:
        desk.out.say(f"pinging over {count(len(tests), 'path')} ...")
    plans, workers = desk.resolved.plans, desk.options.workers
    answers, failures = _split(ask(questions, plans, desk.targets, desk.secrets, workers=workers))
    pongs: dict[tuple[str, Ping], Pong] = {}
    for name, part in parts.items():
        if part and name in answers:
            found = part.pongs(answers[name], senders[name])
            pongs.update(zip(((name, ping) for ping in senders[name]), found, strict=True))
    lost = Pong(large=False, trouble="its host did not answer")
    results = {test: pongs.get((test.path.a.node, test.ping), lost) for test in tests}
    for name, why in failures.items():
        desk.out.complain(f"{name}: {why}")
    return paths.judge(scene, results, gaps)


def _loads(desk: _Desk, scene: Scene) -> list[Judgement]:
    """What was asked for besides: it starts programs on hosts."""
    from rdma_fabric.health import load, pairs
    from rdma_fabric.health.types import Gaps

    options, found = desk.options, []
    if options.perftest:
        chosen = pairs.choose(scene, Gaps("perftest"))
        desk.out.say("--perftest starts ib_write_bw on hosts; Ctrl-C ends it everywhere")
        found.append(load.perftest(scene, chosen, desk.targets, desk.secrets, options.workers, desk.out.say))
    if options.nccl:
        found.append(load.nccl(scene, desk.targets, desk.secrets, desk.out.say))
    return found


def _file(options: argparse.Namespace) -> Path:
    from rdma_fabric.health.baseline import FILE
    from rdma_fabric.state_dir import state_dir

    state = state_dir(common.directory(options))
    return state / "lab" / FILE if options.lab else state / FILE


def _baseline(options: argparse.Namespace) -> Baseline | None:
    """The one of earlier; InputError when its file is not one."""
    from rdma_fabric.health import baseline

    return baseline.load(_file(options))


def _compared(
    desk: _Desk, scene: Scene, judgements: list[Judgement], now: datetime.datetime
) -> tuple[Finding, ...]:
    """What got worse; with --baseline nothing is compared, and the numbers are kept."""
    from rdma_fabric.health import baseline
    from rdma_fabric.views.output import count

    if desk.options.baseline:
        stamp = now.strftime("%Y-%m-%d %H:%M:%SZ")
        kept = baseline.save(_file(desk.options), judgements, scene.second, stamp)
        desk.out.say(f"baseline: {count(kept, 'number')} kept")
        return ()
    if desk.base is None:
        return ()
    return baseline.compare(scene, judgements, desk.base, desk.resolved.intent.verify.margin.value)


def _drifts(desk: _Desk, judged: Judged, failures: Mapping[str, str]) -> tuple[NodeDrift, ...]:
    """What step 2 tells; nodes whose intent has errors have none."""
    from rdma_fabric.drift import find_drift
    from rdma_fabric.push.runs import busy
    from rdma_fabric.state_dir import state_dir

    if "config" not in desk.steps:
        return ()
    moving = busy(state_dir(common.directory(desk.options)))
    wrong = {row.node: f"its intent has errors: {row.reason}" for row in desk.scope.fixed}
    seen = judged.observations
    lost = {name: why for name, why in failures.items() if name not in seen} | {
        name: why for name, why in wrong.items() if name in desk.names
    }
    return find_drift(judged.inventory, desk.scope.targets, seen, lost, {}, moving)


def _show(desk: _Desk, health: Health) -> None:
    from rdma_fabric.health import verify
    from rdma_fabric.views.verify_text import verdict_of, verify_json, verify_text

    options = desk.options
    if options.format == "json":
        desk.out.data(verify_json(health, not verify.fails(health, options.strict)))
    elif options.format in common.REPORTS:
        source = common.source(common.directory(options))
        verdict = verdict_of(health, source, desk.resolved.intent.name, options.strict)
        desk.out.data(common.report(options.format, verdict))
    else:
        desk.out.data(verify_text(health, desk.out))
