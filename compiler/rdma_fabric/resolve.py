"""Intent + inventory -> the wished state of every node, with the origin of every value.

Precedence, weakest first: intent, network, overrides in order, defaults, groups, node, port. Work is
done per distinct combination of layers, speed and cable; equal nodes share one `NodePlan`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rdma_fabric import thresholds
from rdma_fabric.findings import Finding, InputError, Position, input_finding
from rdma_fabric.hardware import Hardware, PortHardware, asic_of
from rdma_fabric.intent.models import (
    REST,
    WISH_KEYS,
    EcnThresholds,
    Intent,
    Override,
    TrafficClass,
    Wishes,
)
from rdma_fabric.intent.quantities import Threshold
from rdma_fabric.inventory.selector import Selector
from rdma_fabric.inventory.selector import parse as parse_selector
from rdma_fabric.inventory.types import Inventory, Node, Port
from rdma_fabric.layers import Layer, Merged, make_layer, merge, split_dotted
from rdma_fabric.source import Document, load_yaml, parse_yaml, validate
from rdma_fabric.state import (
    UNMANAGED,
    Amount,
    ClassState,
    Ecn,
    Marking,
    Maybe,
    Mtu,
    NodeState,
    PortSettings,
    PortState,
    QosState,
    Share,
    SystemState,
    WatchdogTimers,
)


@dataclass(frozen=True, slots=True, eq=False)
class PortPlan:
    """One port's wishes as validated values and as the neutral type; shared between equal ports."""

    wishes: Wishes
    merged: Merged
    """The merge behind `wishes`, for positions."""
    settings: PortSettings
    origins: Mapping[str, Position]


@dataclass(frozen=True, slots=True, eq=False)
class NodePlan:
    """One node's wishes, its hardware and its wished state; shared between equal nodes."""

    hardware: Hardware
    wishes: Wishes
    """Node-wide wishes (no network, no port)."""
    ports: Mapping[str, PortPlan]
    """Ports that belong to a network."""
    state: NodeState


@dataclass(frozen=True, slots=True, eq=False)
class Resolved:
    """The whole fabric as wished."""

    intent: Intent
    inventory: Inventory
    plans: Mapping[str, NodePlan]
    document: Document
    unused: tuple[tuple[Override, Position], ...] = ()
    """Overrides that select nothing."""

    def where(self, *path: str | int) -> Position:
        """Where `path` of the intent file was written."""
        return self.document.position(path)


@dataclass(frozen=True, slots=True)
class WhatIf:
    """One `--set` or `--unset`: a dotted key of the intent, or NODE:key, or NODE:PORT:key."""

    key: str
    text: str | None
    """The value as YAML; None removes the key."""


def load_intent(path: Path) -> tuple[Intent, Document]:
    """The intent file, validated as a whole; InputError holds every finding."""
    document = load_yaml(path)
    return validate(Intent, document), document


def resolve(
    intent: Intent, document: Document, inventory: Inventory, changes: Iterable[WhatIf] = ()
) -> Resolved:
    """The wished state of every node. InputError when merged settings are not valid."""
    return _Resolver(intent, document, inventory, tuple(changes)).run()


@dataclass(frozen=True, slots=True)
class _Rule:
    """One override, parsed."""

    override: Override
    selector: Selector
    layer: Layer
    position: Position


@dataclass
class _Resolver:
    intent: Intent
    document: Document
    inventory: Inventory
    changes: tuple[WhatIf, ...]
    findings: list[Finding] = field(default_factory=list)
    wishes: dict[tuple[int, ...], tuple[Wishes, Merged] | None] = field(default_factory=dict)
    settings: dict[Any, PortPlan] = field(default_factory=dict)
    plans: dict[Any, NodePlan] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)
    tops: dict[str, tuple[Layer, ...]] = field(default_factory=dict)
    what_if: tuple[Layer, ...] = ()
    aimed: list[tuple[Selector, Layer]] = field(default_factory=list)
    gone: bool = False
    """A class was taken out of the intent and its settings are to be reset."""

    def run(self) -> Resolved:
        self._what_if()
        top = {key: value for key, value in self.document.data.items() if key in WISH_KEYS}
        base = make_layer(top, self.document.position, (), "intent", dotted=False)
        self.tops = {"": (base, *self.what_if)}
        for name, fragment in self.intent.networks.items():
            layer = make_layer(
                fragment, self.document.position, ("networks", name), f"network {name}", dotted=False
            )
            self.tops[name] = (base, layer, *self.what_if)
        self._absent()
        rules = tuple(self._rules())
        lengths = self._cables()
        plans = {
            name: plan
            for name, node in self.inventory.nodes.items()
            if (plan := self._node(node, rules, lengths.get(name, {}))) is not None
        }
        if self.findings:
            raise InputError(self.findings)
        unused = tuple((rule.override, rule.position) for i, rule in enumerate(rules) if i not in self.used)
        return Resolved(self.intent, self.inventory, plans, self.document, unused)

    # -- layers

    def _what_if(self) -> None:
        """Layers of --set: without a node they lie over intent and networks, with one over everything."""
        top: list[Layer] = []
        for change in self.changes:
            target, _, key = change.key.rpartition(":")
            position = _set_position(change)
            try:
                value = parse_yaml(f"v: {change.text}\n".encode(), "--set").data["v"]
                layer = make_layer({key: value}, lambda _path, at=position: at, (), f"--set {change.key}")
            except InputError as error:
                self.findings.extend(error.findings)
                continue
            if target:
                node, _, port = target.partition(":")
                words = f"{node} port={port}" if port else node
                self.aimed.append((parse_selector(words), layer))
            else:
                top.append(layer)
        self.what_if = tuple(top)

    def _absent(self) -> None:
        """`absent` keys lie below the intent as their reset value; a key that is set as well is an error."""
        reset: dict[str, Any] = {}
        for index, key in enumerate(self.intent.absent):
            position = self.document.position(("absent", index))
            parts = split_dotted(key)
            value = RESETS.get("ecn" if parts[0] == "classes" and parts[2:] == ("ecn",) else key)
            if parts[0] == "classes" and len(parts) == 2:
                self.gone = True
            elif value is None:
                help = f"what can be reset: {', '.join(sorted(RESETS))}, classes.NAME, classes.NAME.ecn"
                self.findings.append(
                    input_finding("reference", f"{key} cannot be reset", position, help, found=key)
                )
                continue
            if _is_set(self.document.data, parts):
                help = "remove the key from the intent, or from absent"
                self.findings.append(
                    input_finding("reference", f"{key} is absent and set", position, help, found=key)
                )
            elif value is not None:
                reset[key] = value
        if reset:
            layer = make_layer(reset, lambda _path: self.document.position(("absent",)), (), "absent")
            self.tops = {name: (layers[0], layer, *layers[1:]) for name, layers in self.tops.items()}

    def _rules(self) -> Iterator[_Rule]:
        for index, override in enumerate(self.intent.overrides):
            at = ("overrides", index)
            try:
                selector = parse_selector(override.where)
                layer = make_layer(
                    override.set, self.document.position, (*at, "set"), f"override {index + 1}"
                )
            except ValueError as error:
                position = self.document.position((*at, "where"))
                help = (
                    getattr(error, "help", "")
                    or "a selector is node names and fact=value, separated by commas"
                )
                self.findings.append(input_finding("reference", str(error), position, help))
                continue
            yield _Rule(override, selector, layer, self.document.position((*at, "where")))

    def _cables(self) -> dict[str, dict[str, float | None]]:
        found: dict[str, dict[str, float | None]] = {}
        for link in self.inventory.links:
            for end in (link.a, link.b):
                found.setdefault(end.node, {})[end.port] = link.length_m
        return found

    # -- nodes

    def _node(
        self, node: Node, rules: tuple[_Rule, ...], lengths: Mapping[str, float | None]
    ) -> NodePlan | None:
        matched = tuple(i for i, rule in enumerate(rules) if rule.selector.node(node))
        aimed = tuple(i for i, (selector, _) in enumerate(self.aimed) if selector.node(node))
        key = (id(node.spec), matched, aimed, tuple(sorted(lengths.items(), key=lambda item: item[0])))
        if key not in self.plans:
            plan = self._build(
                node, [(i, rules[i]) for i in matched], [self.aimed[i] for i in aimed], lengths
            )
            if plan is None:
                return None
            self.plans[key] = plan
        return self.plans[key]

    def _build(
        self,
        node: Node,
        rules: list[tuple[int, _Rule]],
        aimed: list[tuple[Selector, Layer]],
        lengths: Mapping[str, float | None],
    ) -> NodePlan | None:
        spec = node.spec
        overrides = [(i, rule) for i, rule in rules if not rule.selector.by_port]
        self.used.update(i for i, _ in overrides)
        top = (*self.tops[""], *(rule.layer for _, rule in overrides), *spec.layers)
        top += tuple(layer for selector, layer in aimed if not selector.by_port)
        system = self._wishes(top)
        ports: dict[str, PortPlan] = {}
        for port in spec.ports.values():
            if port.network:
                plan = self._port(node, port, rules, aimed, lengths.get(port.name))
                if plan is not None:
                    ports[port.name] = plan
        if system is None or len(ports) != sum(1 for port in spec.ports.values() if port.network):
            return None
        hardware = _hardware(node, lengths)
        states = tuple(
            PortState(
                name,
                spec.ports[name].kind,
                plan.settings,
                spec.ports[name].speed_gbps or UNMANAGED,
                plan.origins,
            )
            for name, plan in ports.items()
        )
        wishes, merged = system
        state = NodeState(_system(node, wishes, merged, ports), states)
        return NodePlan(hardware, wishes, ports, state)

    def _port(
        self,
        node: Node,
        port: Port,
        rules: list[tuple[int, _Rule]],
        aimed: list[tuple[Selector, Layer]],
        length: float | None,
    ) -> PortPlan | None:
        if port.network not in self.tops:
            self.tops[port.network] = self.tops[""]
        matched = [(i, rule) for i, rule in rules if rule.selector.port(port)]
        self.used.update(i for i, _ in matched)
        layers = (
            *self.tops[port.network],
            *(rule.layer for _, rule in matched),
            *node.spec.layers,
            *port.layers,
            *(layer for selector, layer in aimed if selector.port(port)),
        )
        cable = None if length is None else math.ceil(length)
        key = (*map(id, layers), node.is_host, port.kind, port.speed_gbps, cable, port.nic)
        if key not in self.settings:
            found = self._wishes(layers)
            if found is None:
                return None
            wishes, merged = found
            self.settings[key] = _PortBuilder(wishes, merged, node.is_host, port, cable, self.gone).plan()
        return self.settings[key]

    def _wishes(self, layers: tuple[Layer, ...]) -> tuple[Wishes, Merged] | None:
        key = tuple(map(id, layers))
        if key not in self.wishes:
            merged = merge(layers)
            for change in self.changes:
                if change.text is None:
                    _remove(merged.data, change.key)
            self.wishes[key] = self._validated(merged)
        return self.wishes[key]

    def _validated(self, merged: Merged) -> tuple[Wishes, Merged] | None:
        document = _MergedDocument(merged, self.document)
        try:
            return validate(Wishes, document), merged  # type: ignore[arg-type]
        except InputError as error:
            self.findings.extend(error.findings)
            return None


@dataclass(frozen=True, slots=True)
class _MergedDocument:
    """A merge that looks like a file to `validate`."""

    merged: Merged
    document: Document

    @property
    def data(self) -> dict[str, Any]:
        return self.merged.data

    @property
    def path(self) -> str:
        return self.document.path

    @property
    def lines(self) -> tuple[str, ...]:
        return self.document.lines

    def position(self, path: Iterable[Any]) -> Position:
        return self.merged.position(path) or self.document.position(())

    def key_position(self, path: Iterable[Any]) -> Position:
        return self.position(path)


RESETS: Mapping[str, Any] = {"pfc.watchdog": False, "ecn": False, "dcqcn": False}
"""What `absent` can reset, and the intent's value that means "off"."""


def _is_set(data: Any, parts: Iterable[str]) -> bool:
    for part in parts:
        if not isinstance(data, dict) or part not in data:
            return False
        data = data[part]
    return True


def _set_position(change: WhatIf) -> Position:
    return Position(f"--set {change.key}={change.text}", 0, 0)


def _remove(data: dict[str, Any], key: str) -> None:
    *path, last = key.split(".")
    below: Any = data
    for part in path:
        below = below.get(part) if isinstance(below, dict) else None
    if isinstance(below, dict):
        below.pop(last, None)


def _hardware(node: Node, lengths: Mapping[str, float | None]) -> Hardware:
    spec = node.spec
    ports = tuple(
        PortHardware(
            name=port.name,
            kind=port.kind,
            speed_gbps=port.speed_gbps,
            nic=(port.nic or "generic") if node.is_host else "",
            rdma=port.rdma,
            bdf=port.bdf,
            parent=port.parent,
            members=port.members,
            vlan=port.vlan,
            cable_m=None if lengths.get(port.name) is None else math.ceil(lengths[port.name] or 0),
        )
        for port in spec.ports.values()
        if port.network
    )
    nics = sorted({f"nic_{port.nic}" for port in ports if port.nic})
    asic = None if node.is_host else asic_of(spec.model)
    return Hardware((spec.platform, *nics), spec.model, spec.version, ports, asic, spec.options)


# -- one port


@dataclass
class _PortBuilder:
    """Turns validated wishes into the neutral type for one kind of port."""

    wishes: Wishes
    merged: Merged
    is_host: bool
    port: Port
    cable: int | None
    gone: bool = False
    origins: dict[str, Position] = field(default_factory=dict)

    def plan(self) -> PortPlan:
        settings = PortSettings(self._mtu(), self._qos(), self._marking())
        return PortPlan(self.wishes, self.merged, settings, self.origins)

    def _from(self, name: str, *path: Any) -> None:
        position = self.merged.position(path)
        if position is not None:
            self.origins[name] = position

    def _mtu(self) -> Mtu:
        mtu = self.wishes.mtu
        kind = "host" if self.is_host else "switch"
        wanted = mtu.host if self.is_host else mtu.switch
        if self.port.kind == "svi" and mtu.svi is not None:
            kind, wanted = "svi", mtu.svi
        self._from("mtu", "mtu", kind)
        return Mtu(ip=UNMANAGED if wanted is None else wanted)

    def _qos(self) -> QosState:
        classes = self.wishes.classes
        if not classes or self.port.kind in ("svi", "vlan", "vf"):
            return QosState()
        lossless = any(one.lossless for one in classes.values())
        self._from("qos.trust", "trust")
        self._from("qos.dscp_to_priority", "classes")
        self._from("qos.pfc", "classes")
        self._from("qos.classes", "classes")
        self._from("qos.dcbx", "pfc", "dcbx")
        pfc = self.wishes.pfc
        return QosState(
            trust=self.wishes.trust,
            dscp_to_priority=_dscp_map(classes),
            pcp_to_priority=_pcp_map(classes) if self.wishes.trust != "dscp" else UNMANAGED,
            classes=tuple(self._class(priority) for priority in range(8)),
            watchdog=self._timers(),
            dcbx=pfc.dcbx if pfc else UNMANAGED,
            global_pause=False if lossless else UNMANAGED,
            cable_m=self.cable if lossless and self.cable is not None else UNMANAGED,
        )

    def _class(self, priority: int) -> ClassState:
        found = [(name, one) for name, one in self.wishes.classes.items() if one.priority == priority]
        if not found:
            rest: Any = None if self.gone else UNMANAGED
            marking = UNMANAGED if self.is_host else rest
            return ClassState(False, False, self._guarded(False), ecn=marking, share=rest)
        name, one = next(((name, one) for name, one in found if one.lossless), found[0])
        at = f"qos.classes.{priority}"
        self._from(f"{at}.pfc", "classes", name, "lossless")
        self._from(f"{at}.share", "classes", name, "bandwidth" if one.bandwidth else "scheduler")
        pfc = self.wishes.pfc
        on = one.lossless and (pfc is None or pfc.enabled)
        return ClassState(
            pfc_tx=on and one.pfc.tx,
            pfc_rx=on and one.pfc.rx,
            watchdog=self._guarded(on),
            ecn=self._ecn(name, one, at),
            headroom=self._headroom(one) if on else UNMANAGED,
            share=self._share([item for _, item in found]),
        )

    def _guarded(self, lossless: bool) -> Maybe[bool]:
        pfc = self.wishes.pfc
        if pfc is None or pfc.watchdog is None:
            return UNMANAGED
        return lossless and pfc.watchdog.mode != "off"

    def _ecn(self, name: str, one: TrafficClass, at: str) -> Maybe[Ecn | None]:
        own = one.ecn is not None
        table = one.ecn if own else (self.wishes.ecn if one.lossless else None)
        row = table.at(self.port.speed_gbps) if table else None
        if self.is_host or row is None or row.mode == "device":
            return UNMANAGED
        speed = f"{self.port.speed_gbps}G"
        self._from(f"{at}.ecn", *(("classes", name) if own else ()), "ecn", speed)
        if row.mode == "off":
            return None
        return _ramp(row, self.port.speed_gbps)

    def _headroom(self, one: TrafficClass) -> Maybe[Amount | None]:
        pfc = self.wishes.pfc
        if self.is_host or (pfc is None and one.headroom is None):
            return UNMANAGED
        size = one.headroom or (pfc.headroom if pfc else None)
        self._from(f"qos.classes.{one.priority}.headroom", "pfc", "headroom")
        return Amount(size.bytes) if size else None

    @staticmethod
    def _share(classes: list[TrafficClass]) -> Maybe[Share | None]:
        """Classes on one priority share its queue: their percentages add up."""
        strict = next((one for one in classes if one.scheduler == "strict"), None)
        if strict:
            return Share("strict", 0, UNMANAGED if strict.cap is None else round(strict.cap.value))
        percents = [one.bandwidth.value for one in classes if one.bandwidth is not None]
        weights = [one.weight for one in classes if one.weight is not None]
        if percents:
            return Share("dwrr", round(sum(percents)))
        return Share("dwrr", sum(weights)) if weights else UNMANAGED

    def _timers(self) -> WatchdogTimers:
        pfc = self.wishes.pfc
        if pfc is None or pfc.watchdog is None or pfc.watchdog.mode != "set":
            return WatchdogTimers()
        wish = pfc.watchdog
        self._from("qos.watchdog", "pfc", "watchdog")

        def ms(value: Any) -> Maybe[int]:
            return UNMANAGED if value is None else max(1, round(value.milliseconds))

        return WatchdogTimers(ms(wish.detect), ms(wish.restore), ms(wish.poll), wish.action or UNMANAGED)

    def _marking(self) -> Marking:
        if not self.is_host or self.port.kind in ("bond", "vlan", "svi"):
            return Marking()
        roce = roce_class(self.wishes)
        tos = roce.dscp[0] << 2 if roce and roce.dscp and roce.dscp[0] != REST else UNMANAGED
        cnp = class_of_kind(self.wishes, "cnp")
        self._from("marking.rdma_cm_tos", "classes")
        self._from("marking.traffic_class", "classes")
        self._from("marking.cnp_dscp", "classes")
        self._from("marking.np", "dcqcn")
        self._from("marking.rp", "dcqcn")
        force = self.wishes.hosts.force_traffic_class and not isinstance(tos, type(UNMANAGED))
        return Marking(
            rdma_cm_tos=tos,
            traffic_class=tos if force else UNMANAGED,
            roce_v2=True if roce else UNMANAGED,
            cnp_dscp=cnp.dscp[0] if cnp and cnp.dscp and cnp.dscp[0] != REST else UNMANAGED,
            cnp_priority=cnp.priority if cnp else UNMANAGED,
            **self._dcqcn(),
        )

    def _dcqcn(self) -> dict[str, Any]:
        dcqcn = self.wishes.dcqcn
        if dcqcn is None:
            return {}
        lossless = tuple(sorted({one.priority for one in self.wishes.classes.values() if one.lossless}))
        on = lossless if dcqcn.enabled else ()
        names = {f"np_{key}": value for key, value in dcqcn.np.items()}
        names |= {f"rp_{key}": value for key, value in dcqcn.rp.items()}
        return {"np": on, "rp": on, "parameters": tuple((key, str(names[key])) for key in sorted(names))}


def class_of_kind(wishes: Wishes, kind: str) -> TrafficClass | None:
    """The class whose `kind` (or, without one, whose name) says cnp, control ...; None without one."""
    for name, one in wishes.classes.items():
        if (one.kind or name) == kind:
            return one
    return None


def roce_class(wishes: Wishes) -> TrafficClass | None:
    """The class that RoCE traffic is marked for: hosts.roce_class, else the first lossless one."""
    if wishes.hosts.roce_class:
        return wishes.classes.get(wishes.hosts.roce_class)
    return next((one for one in wishes.classes.values() if one.lossless), None)


def _ramp(row: EcnThresholds, speed_gbps: int) -> Maybe[Ecn | None]:
    if row.kmin is None or row.kmax is None:
        published = thresholds.find(row.profile, speed_gbps)
        if published is None:
            return UNMANAGED
        return Ecn(Amount(published.kmin), Amount(published.kmax), published.pmax)
    others = tuple(
        (colour, _amount(ramp.kmin), _amount(ramp.kmax), ramp.pmax.value)
        for colour, ramp in sorted(row.colours.items())
    )
    return Ecn(_amount(row.kmin), _amount(row.kmax), row.pmax.value, others or UNMANAGED)


def _amount(threshold: Threshold) -> Amount:
    return Amount(threshold.value, threshold.unit)


def _dscp_map(classes: Mapping[str, TrafficClass]) -> tuple[int, ...]:
    """64 priorities; a code point that no class takes goes to the class with `rest`, else to priority 0."""
    rest = next((one.priority for one in classes.values() if REST in one.dscp), 0)
    table = [rest] * 64
    for one in reversed(tuple(classes.values())):
        for dscp in one.dscp:
            if dscp != REST:
                table[dscp] = one.priority
    return tuple(table)


def _pcp_map(classes: Mapping[str, TrafficClass]) -> tuple[int, ...]:
    """8 priorities; an 802.1p value that no class names goes to the class of that priority, else to rest."""
    rest = next((one.priority for one in classes.values() if REST in one.dscp), 0)
    used = {one.priority for one in classes.values()}
    table = [pcp if pcp in used else rest for pcp in range(8)]
    for one in classes.values():
        for pcp in one.pcp:
            table[pcp] = one.priority
    return tuple(table)


# -- one node


def _system(node: Node, wishes: Wishes, merged: Merged, ports: Mapping[str, PortPlan]) -> SystemState:
    if not node.is_host:
        return SystemState()
    hosts = wishes.hosts
    origins: dict[str, Position] = {}
    for name in ("sysctl", "modules", "module_options", "limits", "environment"):
        position = merged.position(("hosts", name))
        if position is not None:
            origins[name] = position
    return SystemState(
        sysctl=tuple(sorted(_sysctl(hosts.sysctl, ports).items())),
        modules=tuple((name, True) for name in sorted(set(hosts.modules))),
        module_options=tuple(
            (f"{module}.{key}", value)
            for module, options in sorted(hosts.module_options.items())
            for key, value in sorted(options.items())
        ),
        limits=tuple(sorted(hosts.limits.items())),
        environment=tuple(sorted(_environment(node, wishes, ports).items())),
        origins=origins,
    )


def _sysctl(wanted: Mapping[str, str], ports: Mapping[str, PortPlan]) -> dict[str, str]:
    """`*` in a key stands for every port in a network, `/` for the dots in a port's own name."""
    found: dict[str, str] = {}
    for key, value in wanted.items():
        names = [key.replace("*", port.replace(".", "/")) for port in ports] if "*" in key else [key]
        for name in names:
            found[name] = value
    return found


def _environment(node: Node, wishes: Wishes, ports: Mapping[str, PortPlan]) -> dict[str, str]:
    """NCCL variables that follow from the classes, then the intent's own."""
    found: dict[str, str] = {}
    if wishes.hosts.nccl:
        tos = next(
            (plan.settings.marking.rdma_cm_tos for plan in ports.values() if plan.wishes.hosts.nccl),
            UNMANAGED,
        )
        ours = [port for port in node.spec.ports.values() if port.network and port.rdma]
        # Where the inventory knows rails, the job's devices are the rails; storage NICs are not.
        devices = [port.rdma for port in ours if port.rail] or [port.rdma for port in ours]
        if isinstance(tos, int):
            found["NCCL_IB_TC"] = str(tos)
        if devices:
            found["NCCL_IB_HCA"] = "=" + ",".join(devices)
    return found | dict(wishes.hosts.environment)


__all__ = [
    "NodePlan",
    "PortPlan",
    "Resolved",
    "WhatIf",
    "class_of_kind",
    "load_intent",
    "resolve",
    "roce_class",
]
