"""Configuration commands of a simulated EOS switch: modes, ranges, `no` and `default` forms.

Facts: reference page arista_eos, section 2. A line that a mode does not know is tried in the modes
above it, as EOS does; what no mode knows is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from rdma_fabric.lab.simulators import _arista_eos_foreign as foreign
from rdma_fabric.lab.simulators._arista_eos_config import (
    COS_DEFAULT,
    DSCP_DEFAULT,
    QUEUE_DEFAULT,
    Block,
    Config,
    Ecn,
    Interface,
    Qos,
    Queue,
    Trident,
    Watchdog,
    short,
)
from rdma_fabric.lab.simulators._arista_eos_grammar import (
    INCOMPLETE,
    INVALID,
    UNAVAILABLE,
    Args,
    Refused,
    Rule,
    match,
    rules,
)

How = Literal["set", "no", "default"]
Mode = Literal["config", "if", "profile", "queue", "trident", "block"]


@dataclass(slots=True)
class Frame:
    """One level of configuration mode: the label in the prompt and what is being configured."""

    mode: Mode
    label: str
    port: Interface | None = None
    qos: Qos | None = None
    queue: Queue | None = None
    trident: Trident | None = None
    block: Block | None = None
    kind: foreign.BlockKind | None = None
    under: str = ""
    line: str = ""


@dataclass(slots=True)
class Place:
    """Where a configuration session stands; handlers read and move it."""

    config: Config
    frames: list[Frame] = field(default_factory=lambda: [Frame("config", "", line="configure")])
    banner: str = ""

    @property
    def top(self) -> Frame:
        """The innermost mode."""
        return self.frames[-1]

    def labels(self) -> str:
        """What the prompt shows behind `config`."""
        return "".join(f"-{frame.label}" for frame in self.frames if frame.label)

    def port(self) -> Interface:
        """The interface that is being configured."""
        found = next(frame.port for frame in reversed(self.frames) if frame.port is not None)
        assert found is not None
        return found

    def qos(self) -> Qos:
        """The QoS values of the interface or profile."""
        found = next(frame.qos for frame in reversed(self.frames) if frame.qos is not None)
        assert found is not None
        return found

    def queue(self) -> Queue:
        """The queue that is being configured."""
        assert self.top.queue is not None
        return self.top.queue


Action = Callable[[Place, How, Args], str | None]
_SPECS: list[tuple[tuple[Mode, ...], How, str, Action]] = []


def _on(
    modes: str, *patterns: str, no: Sequence[str] = (), default: Sequence[str] | None = None
) -> Callable[[Action], Action]:
    """Register a command: its forms, its `no` forms and its `default` forms (the `no` ones if not given)."""

    def keep(action: Action) -> Action:
        where = tuple(modes.split())
        forms: dict[How, Sequence[str]] = {
            "set": patterns,
            "no": no,
            "default": no if default is None else default,
        }
        for how, found in forms.items():
            _SPECS.extend((where, how, pattern, action) for pattern in found)  # type: ignore[misc]
        return action

    return keep


# --- global --------------------------------------------------------------------------------------


@_on(
    "config",
    "qos map dscp <dscp:0-63>+ to traffic-class <class:0-7> [drop-precedence <precedence:0-2>]",
    no=("qos map dscp <dscp:0-63>+ [to traffic-class <class:0-7>]",),
)
def _map_dscp(place: Place, how: How, args: Args) -> None:
    for dscp in args.numbers("dscp"):
        place.config.dscp[dscp] = args.number("class") if how == "set" else DSCP_DEFAULT[dscp]
        place.config.dscp_precedence.pop(dscp, None)
        if args.has("precedence"):
            place.config.dscp_precedence[dscp] = args.number("precedence")


@_on(
    "config",
    "qos map cos <cos:0-7>+ to traffic-class <class:0-7>",
    no=("qos map cos <cos:0-7>+ [to traffic-class <class:0-7>]",),
)
def _map_cos(place: Place, how: How, args: Args) -> None:
    for cos in args.numbers("cos"):
        place.config.cos[cos] = args.number("class") if how == "set" else COS_DEFAULT[cos]


@_on(
    "config",
    "qos map traffic-class <class:0-7>+ to tx-queue <queue:0-7>",
    no=("qos map traffic-class <class:0-7>+ [to tx-queue <queue:0-7>]",),
)
def _map_queue(place: Place, how: How, args: Args) -> None:
    """Class 7 and queue 7 are bound together and cannot be mapped to others."""
    for number in args.numbers("class"):
        queue = args.number("queue") if how == "set" else QUEUE_DEFAULT[number]
        if (number == 7) != (queue == 7):
            raise Refused(INVALID)
        place.config.queues[number] = queue


@_on(
    "config",
    "platform sand qos map traffic-class <class:0-7> to network-qos <value:0-63>",
    no=("platform sand qos map traffic-class <class:0-7> [to network-qos <value:0-63>]",),
)
def _network_qos(place: Place, how: How, args: Args) -> None:
    if place.config.hardware.family != "dnx":
        raise Refused(INVALID)
    place.config.network_qos.pop(args.number("class"), None)
    if how == "set":
        place.config.network_qos[args.number("class")] = args.number("value")


@_on(
    "config",
    "qos random-detect ecn allow non-ect [(chip:chip-based)]",
    no=("qos random-detect ecn allow non-ect [chip-based]",),
)
def _non_ect(place: Place, how: How, args: Args) -> None:
    _needs_hardware(place)
    chip = " chip-based" if args.has("chip") else ""
    place.config.non_ect = f"qos random-detect ecn allow non-ect{chip}" if how == "set" else ""


@_on("config", "hardware counter feature ecn out", no=("hardware counter feature ecn out",))
def _ecn_counters(place: Place, how: How, _: Args) -> None:
    _needs_hardware(place)
    place.config.ecn_counters = how == "set"


@_on("config", "priority-flow-control all off", no=("priority-flow-control all off",))
def _pfc_off(place: Place, how: How, _: Args) -> None:
    _needs_hardware(place)
    place.config.pfc_off = how == "set"


_WATCHDOG = "priority-flow-control pause watchdog"


@_on("config", f"{_WATCHDOG} default timeout <s:0.01-60/2>", no=(f"{_WATCHDOG} default timeout",))
def _watchdog_timeout(place: Place, how: How, args: Args) -> str | None:
    _needs_hardware(place)
    place.config.watchdog.timeout = args.decimal("s") if how == "set" else None
    return _polling_warning(place.config.watchdog)


@_on("config", f"{_WATCHDOG} default recovery-time <s:0.01-60/2>", no=(f"{_WATCHDOG} default recovery-time",))
def _watchdog_recovery(place: Place, how: How, args: Args) -> str | None:
    _needs_hardware(place)
    place.config.watchdog.recovery = args.decimal("s") if how == "set" else None
    return _polling_warning(place.config.watchdog)


@_on(
    "config",
    f"{_WATCHDOG} default polling-interval <s:0.005-30/3>",
    no=(f"{_WATCHDOG} default polling-interval",),
)
def _watchdog_polling(place: Place, how: How, args: Args) -> str | None:
    _needs_hardware(place)
    place.config.watchdog.polling = args.decimal("s") if how == "set" else None
    return _polling_warning(place.config.watchdog)


def _polling_warning(watchdog: Watchdog) -> str | None:
    """EOS warns, and polls as it likes, when polling is above half of the smaller timer."""
    timers = [timer for timer in (watchdog.timeout, watchdog.recovery) if timer is not None]
    if watchdog.polling is None or len(timers) < 2 or watchdog.polling <= min(timers) / Decimal(2):
        return None
    return (
        "! Polling interval is more than half of the timeout or recovery time: an automatic interval is used"
    )


@_on(
    "config",
    f"{_WATCHDOG} action (action:drop|errdisable|notify-only)",
    no=(f"{_WATCHDOG} action [(action:drop|errdisable|notify-only)]",),
)
def _watchdog_action(place: Place, how: How, args: Args) -> None:
    _needs_hardware(place)
    place.config.watchdog.action = args.word("action") if how == "set" else "errdisable"


@_on("config", f"{_WATCHDOG} override action drop", no=(f"{_WATCHDOG} override action [drop]",))
def _watchdog_override(place: Place, how: How, _: Args) -> None:
    _needs_hardware(place)
    place.config.watchdog.forced_drop = how == "set"


@_on("config", "lldp run", no=("lldp run",))
def _lldp_run(place: Place, how: How, _: Args) -> None:
    place.config.lldp = how != "no"


@_on(
    "config",
    "switchport default mode (mode:routed|access)",
    no=("switchport default mode [(mode:routed|access)]",),
)
def _switchport_default(place: Place, how: How, args: Args) -> None:
    place.config.default_routed = how == "set" and args.word("mode") == "routed"


@_on("config", "banner (kind:login|motd)", no=("banner (kind:login|motd)",))
def _banner(place: Place, how: How, args: Args) -> None:
    place.config.banners.pop(args.word("kind"), None)
    if how == "set":
        place.banner = args.word("kind")
        place.config.banners[place.banner] = []


# --- platform trident ----------------------------------------------------------------------------

_MMU = "platform trident mmu queue profile"
_ALPHA = "1/128|1/64|1/32|1/16|1/8|1/4|1/2|1|2|4|8"


@_on("config", f"{_MMU} {{name}}", no=(f"{_MMU} {{name}}",))
def _mmu_profile(place: Place, how: How, args: Args) -> None:
    _needs_trident(place)
    name = args.word("name")
    if how != "set":
        place.config.trident.pop(name, None)
        return
    profile = place.config.trident.setdefault(name, Trident())
    _enter(place, Frame("trident", f"mmu-queue-profile-{name}", trident=profile))


@_on("config", f"{_MMU} {{name}} apply", no=(f"{_MMU} {{name}} apply",))
def _mmu_apply(place: Place, how: How, args: Args) -> None:
    _needs_trident(place)
    place.config.trident_applied = args.word("name") if how == "set" else ""


@_on(
    "config",
    "platform trident mmu headroom-pool limit [(unit:bytes|cells)] <n:0-4294967295>",
    no=("platform trident mmu headroom-pool limit [(unit:bytes|cells)] [<n:0-4294967295>]",),
)
def _mmu_headroom(place: Place, how: How, args: Args) -> None:
    _needs_trident(place)
    place.config.headroom_pool = f"{args.word('unit', 'bytes')} {args.word('n')}" if how == "set" else ""


def _mmu_setting(key: str, args: Args) -> str:
    """The key of a setting, with the queue or priority group it is for."""
    number = args.word("queue") or args.word("group")
    return key.replace("#", number)


def _mmu(key: str, line: str, value: str) -> None:
    """Register one setting of a profile block: `key` with `#` for a number, the line and its value."""

    @_on("trident", f"{line} {value}", no=(line, f"{line} {value}"))
    def _act(place: Place, how: How, args: Args) -> None:
        assert place.top.trident is not None
        values = place.top.trident.values
        values.pop(_mmu_setting(key, args), None)
        if how == "set":
            unit = f"{args.word('unit', 'bytes')} " if value == _SIZE else ""
            values[_mmu_setting(key, args)] = unit + args.word("n")


_SIZE = "[(unit:bytes|cells)] <n:0-4294967295>"
for _where, _line in (
    ("egress unicast queue #", "egress unicast queue <queue:0-7>"),
    ("egress multicast queue #", "egress multicast queue <queue:0-7>"),
    ("ingress priority-group #", "ingress priority-group <group:0-7>"),
    ("ingress", "ingress"),
):
    _mmu(f"{_where} reserved", f"{_line} reserved", _SIZE)
    _mmu(f"{_where} threshold", f"{_line} threshold", f"(n:{_ALPHA})")
_mmu("ingress headroom", "ingress headroom", _SIZE)
_mmu("ingress resume", "ingress resume", "<n:0-4294967295>")


# --- profiles and interfaces ---------------------------------------------------------------------


@_on("config", "qos profile {name}", no=("qos profile {name}",))
def _profile(place: Place, how: How, args: Args) -> None:
    name = args.word("name")
    if how != "set":
        place.config.profiles.pop(name, None)
        return
    _enter(
        place,
        Frame(
            "profile", f"qos-profile-{name}", qos=place.config.profiles.setdefault(name, Qos()), under=name
        ),
    )


@_on("config", "interface {name}", no=("interface {name}",), default=("interface {name}",))
def _interface(place: Place, how: How, args: Args) -> None:
    name = port_name(place.config, args.word("name"))
    physical = name in place.config.hardware.ports or name.startswith("Management")
    if how == "no" and physical:
        raise Refused(INVALID)
    if how != "set":
        place.config.interfaces.pop(name, None)
        return
    port = place.config.interface(name)
    _enter(place, Frame("if", f"if-{short(name)}", port=port, qos=port.qos))


@_on("if", "mtu <mtu:68-65535>", no=("mtu [<mtu:68-65535>]",))
def _mtu(place: Place, how: How, args: Args) -> None:
    port = place.port()
    if port.name.startswith(("Loopback", "Vxlan")):
        raise Refused(INVALID)
    ceiling = place.config.hardware.mtu_ceiling
    if how == "set" and args.number("mtu") > ceiling:
        raise Refused(f"% Max MTU for {port.name} is {ceiling}")
    port.mtu = args.number("mtu") if how == "set" else None


@_on("if", "l2 mtu <mtu:68-65535>", no=("l2 mtu [<mtu:68-65535>]",))
def _l2_mtu(place: Place, how: How, args: Args) -> None:
    _needs_physical(place)
    place.port().l2_mtu = args.number("mtu") if how == "set" else None


@_on("if", "l2 mru <mru:68-65535>", no=("l2 mru [<mru:68-65535>]",))
def _l2_mru(place: Place, how: How, args: Args) -> None:
    _needs_physical(place)
    place.port().l2_mru = args.number("mru") if how == "set" else None


@_on("if", "switchport", no=("switchport",))
def _switchport(place: Place, how: How, _: Args) -> None:
    if not place.port().switchable:
        raise Refused(INVALID)
    place.port().routed = {"set": False, "no": True, "default": None}[how]


@_on(
    "if",
    "flowcontrol (way:send|receive) (state:on|off|desired)",
    no=("flowcontrol (way:send|receive) [{x}]",),
)
def _flowcontrol(place: Place, how: How, args: Args) -> None:
    """Off is the default and is not printed."""
    _needs_switchable(place)
    place.port().flow.pop(args.word("way"), None)
    if how == "set" and args.word("state") != "off":
        place.port().flow[args.word("way")] = args.word("state")


@_on("if", "dcbx mode (mode:ieee|cee)", no=("dcbx mode [(mode:ieee|cee)]",))
def _dcbx(place: Place, how: How, args: Args) -> None:
    _needs_hardware(place)
    _needs_switchable(place)
    place.port().dcbx = args.word("mode") if how == "set" else ""


@_on("if", "lldp (way:transmit|receive)", no=("lldp (way:transmit|receive)",))
def _lldp(place: Place, how: How, args: Args) -> None:
    if args.word("way") == "transmit":
        place.port().lldp_transmit = how != "no"
    else:
        place.port().lldp_receive = how != "no"


@_on("if", "service-profile {name}", no=("service-profile [{name}]",))
def _service_profile(place: Place, how: How, args: Args) -> None:
    _needs_switchable(place)
    place.port().profile = args.word("name") if how == "set" else ""


@_on("if profile", "qos trust (trust:dscp|cos)", no=("qos trust [(trust:dscp|cos)]",))
def _trust(place: Place, how: How, args: Args) -> None:
    """`no` switches trust off; `default` returns to the default of the port's kind."""
    _needs_switchable(place)
    if how == "set":
        place.qos().trust = "dscp" if args.word("trust") == "dscp" else "cos"
    else:
        place.qos().trust = "off" if how == "no" else "default"


@_on("if profile", "qos cos <n:0-7>", no=("qos cos [<n:0-7>]",))
def _port_cos(place: Place, how: How, args: Args) -> None:
    _needs_switchable(place)
    place.qos().cos = args.number("n") if how == "set" else 0


@_on("if profile", "qos dscp <n:0-63>", no=("qos dscp [<n:0-63>]",))
def _port_dscp(place: Place, how: How, args: Args) -> None:
    _needs_switchable(place)
    place.qos().dscp = args.number("n") if how == "set" else 0


# --- priority flow control -----------------------------------------------------------------------


@_on("if profile", "priority-flow-control on", no=("priority-flow-control [on]",))
def _pfc(place: Place, how: How, _: Args) -> None:
    _needs_flow_control(place)
    place.qos().pfc = how == "set"


@_on(
    "if profile",
    "priority-flow-control priority <n:0-7> (what:no-drop|drop)",
    no=("priority-flow-control priority <n:0-7> [(what:no-drop|drop)]",),
)
def _pfc_priority(place: Place, how: How, args: Args) -> None:
    _needs_flow_control(place)
    place.qos().no_drop.discard(args.number("n"))
    if how == "set" and args.word("what") == "no-drop":
        place.qos().no_drop.add(args.number("n"))


@_on("if profile", _WATCHDOG, no=(_WATCHDOG,))
def _port_watchdog(place: Place, how: How, _: Args) -> None:
    _needs_flow_control(place)
    place.qos().watchdog = how != "no"


@_on(
    "if profile",
    f"{_WATCHDOG} port action (action:drop|notify-only)",
    no=(f"{_WATCHDOG} port action [(action:drop|notify-only)]",),
)
def _port_watchdog_action(place: Place, how: How, args: Args) -> None:
    _needs_flow_control(place)
    place.qos().watchdog_action = args.word("action") if how == "set" else ""


_TIMER = f"{_WATCHDOG} port timer"
_POLL = ("(auto:auto)", "<poll:0.005-30/3>")


@_on(
    "if profile",
    *(
        f"{_TIMER} timeout <t:0.01-60/2> polling-interval {poll} recovery-time <r:0.01-60/2>"
        " [(forced:forced)]"
        for poll in _POLL
    ),
    no=(_TIMER,),
)
def _port_watchdog_timer(place: Place, how: How, args: Args) -> None:
    _needs_flow_control(place)
    if how != "set":
        place.qos().watchdog_timer = ""
        return
    poll = f"{args.decimal('poll'):.3f}" if args.has("poll") else "auto"
    timers = f"timeout {args.decimal('t'):.2f} polling-interval {poll} recovery-time {args.decimal('r'):.2f}"
    place.qos().watchdog_timer = timers + (" forced" if args.has("forced") else "")


# --- queues --------------------------------------------------------------------------------------


@_on(
    "if profile",
    "(word:tx-queue|uc-tx-queue|mc-tx-queue) <n:0-7>",
    no=("(word:tx-queue|uc-tx-queue|mc-tx-queue) <n:0-7>",),
)
def _queue(place: Place, how: How, args: Args) -> None:
    """Platforms have either `tx-queue`, or `uc-tx-queue` and `mc-tx-queue`."""
    _needs_switchable(place)
    word = args.word("word")
    plain = place.config.hardware.queue_word == "tx-queue"
    if (word == "tx-queue") != plain:
        raise Refused(INVALID)
    if how != "set":
        place.qos().queues.pop((word, args.number("n")), None)
        return
    label = f"{word.replace('tx-queue', 'txq')}-{args.word('n')}"
    queue = place.qos().queue(word, args.number("n"))
    _enter(place, Frame("queue", label, queue=queue, under=place.top.mode))


@_on("queue", "priority strict", no=("priority [strict]",))
def _priority(place: Place, how: How, _: Args) -> None:
    """Strict is the default; `no priority` makes the queue a round-robin queue."""
    place.queue().strict = how != "no"


@_on("queue", "bandwidth percent <n:1-100>", no=("bandwidth percent [<n:1-100>]",))
def _percent(place: Place, how: How, args: Args) -> None:
    place.queue().percent = args.maybe("n") if how == "set" else None


@_on(
    "queue",
    "bandwidth guaranteed <kbps:8-1000000000>",
    "bandwidth guaranteed percent <percent:1-100>",
    no=("bandwidth guaranteed [<kbps:8-1000000000>]",),
)
def _guaranteed(place: Place, how: How, args: Args) -> None:
    """A bare number is kbps; the families behind it are not settled, so only XGS takes it here."""
    if place.config.hardware.family != "xgs":
        raise Refused(UNAVAILABLE)
    value = f"percent {args.word('percent')}" if args.has("percent") else args.word("kbps")
    place.queue().guaranteed = value if how == "set" else ""


@_on(
    "queue",
    "shape rate <kbps:8-1000000000> [(unit:kbps|pps)]",
    "shape rate percent <percent:1-100>",
    no=("shape rate",),
)
def _queue_shape(place: Place, how: How, args: Args) -> None:
    place.queue().shape = _rate(args) if how == "set" else ""


@_on(
    "if profile",
    "shape rate <kbps:8-1000000000> [(unit:kbps|pps)]",
    "shape rate percent <percent:1-100>",
    no=("shape rate",),
)
def _port_shape(place: Place, how: How, args: Args) -> None:
    _needs_switchable(place)
    place.qos().shape = _rate(args) if how == "set" else ""


def _rate(args: Args) -> str:
    if args.has("percent"):
        return f"percent {args.word('percent')}"
    return f"{args.word('kbps')} {args.word('unit')}".strip()


_UNITS = "segments|bytes|kbytes|mbytes|milliseconds|microseconds"
_THRESHOLDS = (
    f"minimum-threshold <min:0-4294967294> (unit:{_UNITS})"
    f" maximum-threshold <max:0-4294967294> (second:{_UNITS})"
)


@_on(
    "queue",
    f"random-detect ecn {_THRESHOLDS} [max-mark-probability <p:1-100>] [weight <w:0-15>]",
    no=("random-detect ecn [minimum-threshold]",),
)
def _ecn(place: Place, how: How, args: Args) -> None:
    """Both thresholds in one unit, which must be one that the ASIC knows."""
    _needs_hardware(place)
    if how != "set":
        place.queue().ecn = None
        return
    _check_unit(place, args)
    place.queue().ecn = Ecn(
        args.number("min"), args.number("max"), args.word("unit"), args.maybe("p"), args.maybe("w")
    )


def _check_unit(place: Place, args: Args) -> None:
    unit = args.word("unit")
    foreign_units = {"xgs": ("milliseconds", "microseconds"), "dnx": ("segments",)}
    wrong = unit in foreign_units.get(place.config.hardware.family, ())
    if unit != args.word("second") or wrong:
        raise Refused(INVALID)


@_on("queue", "random-detect ecn count", no=("random-detect ecn count",))
def _ecn_count(place: Place, how: How, _: Args) -> None:
    """Only below an interface, not below a profile."""
    _needs_hardware(place)
    if place.top.under == "profile":
        raise Refused(INVALID)
    place.queue().count = how == "set"


@_on(
    "queue",
    f"random-detect drop [drop-precedence <dp:0-2>] {_THRESHOLDS} drop-probability <p:1-100>"
    " [weight <w:0-15>]",
    no=("random-detect drop [drop-precedence <dp:0-2>]",),
)
def _wred(place: Place, how: How, args: Args) -> None:
    _needs_hardware(place)
    level = args.word("dp")
    if how != "set":
        for key in [level] if args.has("dp") else list(place.queue().drop):
            place.queue().drop.pop(key, None)
        return
    _check_unit(place, args)
    text = (
        f"minimum-threshold {args.word('min')} {args.word('unit')}"
        f" maximum-threshold {args.word('max')} {args.word('unit')} drop-probability {args.word('p')}"
    )
    weight = f" weight {args.word('w')}" if args.has("w") else ""
    place.queue().drop[level] = (f"drop-precedence {level} " if level else "") + text + weight


# --- engine --------------------------------------------------------------------------------------


def _needs_hardware(place: Place) -> None:
    if place.config.hardware.family == "virtual":
        raise Refused(UNAVAILABLE)


def _needs_trident(place: Place) -> None:
    if place.config.hardware.family != "xgs":
        raise Refused(INVALID)


def _needs_physical(place: Place) -> None:
    _needs_hardware(place)
    if not place.port().physical:
        raise Refused(INVALID)


def _needs_switchable(place: Place) -> None:
    if place.top.mode == "if" and not place.port().switchable:
        raise Refused(INVALID)


def _needs_flow_control(place: Place) -> None:
    _needs_hardware(place)
    if place.top.mode == "if" and not place.port().physical:
        raise Refused(INVALID)


def _enter(place: Place, frame: Frame) -> None:
    place.frames.append(frame)


def _table(mode: Mode, how: How) -> tuple[Rule[Action], ...]:
    return rules([(pattern, act) for modes, form, pattern, act in _SPECS if mode in modes and form == how])


_MODES: tuple[Mode, ...] = ("config", "if", "profile", "queue", "trident")
_HOWS: tuple[How, ...] = ("set", "no", "default")
_TABLES = {(mode, how): _table(mode, how) for mode in _MODES for how in _HOWS}


def configure(place: Place, line: str) -> str:
    """Run one configuration line where the session stands; returns what the device prints."""
    how, rest = _how(line)
    worst = INVALID
    for depth in range(len(place.frames) - 1, -1, -1):
        try:
            shown = _configure_at(place, depth, line, how, rest)
            place.top.line = place.top.line or line
            return shown
        except _NotHere as refused:
            if refused.text != INVALID and worst == INVALID:
                worst = refused.text
    raise Refused(worst)


def rebased(place: Place, config: Config) -> Place:
    """The same modes in another configuration (somebody's commit replaced the one we were in)."""
    moved = Place(config)
    for frame in place.frames[1:]:
        configure(moved, frame.line)
    return moved


class _NotHere(Exception):
    """The mode does not know the line; modes above may."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def _configure_at(place: Place, depth: int, line: str, how: How, rest: str) -> str:
    """Run the line in the mode at that depth, which becomes the current one."""
    frame = place.frames[depth]
    if frame.mode == "block":
        _in_block(place, depth, line)
        return ""
    try:
        action, args = match(joined_ports(rest), _TABLES[(frame.mode, how)])
    except Refused as refused:
        if _kept(place, depth, line):
            return ""
        raise _NotHere(str(refused)) from refused
    place.frames[depth + 1 :] = []
    return action(place, how, args) or ""


def _kept(place: Place, depth: int, line: str) -> bool:
    """Foreign lines: kept on interfaces and in the global mode."""
    frame = place.frames[depth]
    try:
        if frame.mode == "if" and frame.port is not None:
            done = foreign.keep_on_port(frame.port, line)
        elif frame.mode == "config":
            done = _global_foreign(place, line)
        else:
            return False
    except Refused as refused:
        if str(refused) == INCOMPLETE:
            raise _NotHere(INCOMPLETE) from refused
        raise
    if done and place.frames[depth] is frame and frame.mode == "if":
        place.frames[depth + 1 :] = []
    return done


def _global_foreign(place: Place, line: str) -> bool:
    kind = foreign.block_kind(line, foreign.BLOCKS)
    if kind is not None:
        block = foreign.open_block(place.config, kind, line)
        place.frames[1:] = [Frame("block", block.label, block=block, kind=kind)]
        return True
    if foreign.keep_global(place.config, line):
        place.frames[1:] = []
        return True
    return False


def _in_block(place: Place, depth: int, line: str) -> None:
    frame = place.frames[depth]
    assert frame.block is not None and frame.kind is not None
    below = foreign.block_kind(line, frame.kind.below)
    if below is not None:
        made = Block(line, 0, below.label(line.split()))
        block = frame.block.below.setdefault(line, made)
        place.frames[depth + 1 :] = [Frame("block", block.label, block=block, kind=below)]
        return
    if not foreign.keep_in_block(frame.block, frame.kind, line):
        raise _NotHere(INVALID)
    place.frames[depth + 1 :] = []


def _how(line: str) -> tuple[How, str]:
    word, _, rest = line.partition(" ")
    if word == "no" and rest:
        return "no", rest
    if word == "default" and rest:
        return "default", rest
    return "set", line


_KINDS = {
    "ethernet": "Ethernet",
    "et": "Ethernet",
    "eth": "Ethernet",
    "port-channel": "Port-Channel",
    "po": "Port-Channel",
    "vlan": "Vlan",
    "vl": "Vlan",
    "loopback": "Loopback",
    "lo": "Loopback",
    "management": "Management",
    "ma": "Management",
    "vxlan": "Vxlan",
    "vx": "Vxlan",
}
_SPLIT_PORT = re.compile(
    rf"\b(interfaces?|dcbx|neighbors)\s+({'|'.join(_KINDS)})\s+(\d[\d/]*)", re.IGNORECASE
)


def joined_ports(line: str) -> str:
    """`interface ethernet 1/1` as `interface ethernet1/1`."""
    return _SPLIT_PORT.sub(r"\1 \2\3", line)


def port_name(config: Config, text: str) -> str:
    """The full name of a port that exists or can be made; Refused otherwise."""
    found = re.fullmatch(r"([A-Za-z-]+)(\d[\d/]*)", text)
    kind = _KINDS.get(found[1].lower()) if found else None
    if kind is None or found is None:
        raise Refused(INVALID)
    name = f"{kind}{found[2]}"
    if kind == "Ethernet":
        if name not in config.hardware.ports:
            raise Refused(INVALID)
        return name
    lowest, highest = _NUMBERS[kind]
    if not found[2].isdigit() or not lowest <= int(found[2]) <= highest:
        raise Refused(INVALID)
    return name


_NUMBERS = {
    "Vlan": (1, 4094),
    "Loopback": (0, 2100),
    "Port-Channel": (1, 2000),
    "Vxlan": (1, 1),
    "Management": (0, 1),
}


def load(config: Config, text: str) -> list[str]:
    """Apply configuration text line by line; returns the refused lines as `text (line N)`."""
    place = Place(config)
    refused = []
    for number, raw in enumerate(text.splitlines(), 1):
        if place.banner:
            feed_banner(place, raw)
            continue
        line = raw.strip()
        if not line or line.startswith("!") or line == "end":
            continue
        if line == "exit":
            del place.frames[max(1, len(place.frames) - 1) :]
            continue
        try:
            configure(place, line)
        except Refused as error:
            refused.append(f"{error} at line {number}: {line}")
    return refused


def feed_banner(place: Place, line: str) -> None:
    """One line of a banner; `EOF` ends it."""
    if line.strip() == "EOF":
        place.banner = ""
    else:
        place.config.banners[place.banner].append(line)
