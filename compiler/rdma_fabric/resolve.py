"""Intent + inventory -> the wished state of every node, with the origin of every value.

Precedence, weakest first: intent, network, overrides in order, defaults, groups, node, port. Work is
done per distinct combination of layers, speed and cable; equal nodes share one `NodePlan`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path as FilePath
from typing import Any

from rdma_fabric import thresholds
from rdma_fabric.findings import Finding, InputError, Position, did_you_mean, input_finding
from rdma_fabric.hardware import Hardware, PortHardware, asic_of
from rdma_fabric.intent.job import JobPort, of_jobs, variables
from rdma_fabric.intent.models import (
    DEFAULT_PKEY,
    REST,
    SM_OURS,
    SM_PARTS,
    WISH_KEYS,
    EcnThresholds,
    Hosts,
    Intent,
    Override,
    TrafficClass,
    Wishes,
)
from rdma_fabric.intent.quantities import Threshold
from rdma_fabric.inventory.partitions import read_partitions
from rdma_fabric.inventory.selector import Selector
from rdma_fabric.inventory.selector import parse as parse_selector
from rdma_fabric.inventory.subnets import Subnet, ib_classes, subnet, with_ipoib
from rdma_fabric.inventory.types import End, Inventory, Node, Port
from rdma_fabric.layers import Layer, Merged, make_layer, merge, remove, split_dotted
from rdma_fabric.reach import NODE_WIDE, Idle, Reach, Spot
from rdma_fabric.source import Document, load_yaml, validate
from rdma_fabric.state import (
    UNMANAGED,
    Amount,
    ClassState,
    Ecn,
    IbPort,
    Marking,
    Maybe,
    Mtu,
    NicState,
    NodeState,
    Partitions,
    PortSettings,
    PortState,
    QosState,
    Share,
    SmState,
    SystemState,
    WatchdogTimers,
    value_or,
)
from rdma_fabric.what_if import Aim, WhatIf, of_network, understand, without


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
    subnets: Mapping[str, Subnet] = field(default_factory=dict)
    """Networks with transport infiniband."""
    managed: Mapping[str, Merged] = field(default_factory=dict)
    """The merge behind each subnet's wishes, for positions."""
    idle: tuple[Idle, ...] = ()
    """Wishes that nobody reads."""

    def where(self, *path: str | int) -> Position:
        """Where `path` of the intent file was written."""
        return self.document.position(path)


def load_intent(path: FilePath) -> tuple[Intent, Document]:
    """The intent file, validated as a whole; InputError holds every finding."""
    document = load_yaml(path)
    return validate(Intent, document), document


def resolve(
    intent: Intent, document: Document, inventory: Inventory, changes: Iterable[WhatIf] = ()
) -> Resolved:
    """The wished state of every node. InputError when merged settings are not valid."""
    return _Resolver(intent, document, inventory, tuple(changes)).run()


ASSUMED_M: Mapping[str, int] = {"host": 5, "switch": 40}
"""Length of a cable that the plan does not know, metres, for what is judged and never for what is sent: to a
host, and between switches (the lengths that SONiC's own buffers_defaults templates give these roles)."""


@dataclass(frozen=True, slots=True)
class Cable:
    """Length of the cable in a port; `assumed` stands in where `metres` is None."""

    metres: float | None = None
    assumed: int = 0

    @property
    def whole(self) -> int | None:
        """Whole metres, rounded up."""
        return None if self.metres is None else math.ceil(self.metres)


NO_CABLE = Cable()


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
    wishes: dict[Any, tuple[Wishes, Merged] | None] = field(default_factory=dict)
    settings: dict[Any, PortPlan] = field(default_factory=dict)
    plans: dict[Any, NodePlan] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)
    """Overrides that select something."""
    hit: set[WhatIf] = field(default_factory=set)
    """--unset that found what it takes out."""
    tops: dict[str, tuple[Layer, ...]] = field(default_factory=dict)
    what_if: tuple[Aim, ...] = ()
    """For the intent or a network."""
    aimed: list[Aim] = field(default_factory=list)
    gone: bool = False
    """A class was taken out of the intent and its settings are to be reset."""
    subnets: dict[str, Subnet] = field(default_factory=dict)
    managed: dict[str, Merged] = field(default_factory=dict)
    reach: Reach = field(default_factory=Reach)

    def run(self) -> Resolved:
        aims = understand(self.changes, self.intent, self.inventory)
        self.findings += aims.findings
        self.inventory = aims.inventory or self.inventory
        self.what_if, self.aimed = tuple(aims.top), aims.places
        for aim in aims.places:
            if aim.layer is not None and aim.selector.by_port:
                self._refuse_node_wide(aim.layer, "port")
            if aim.path[:1] == (NETWORK_WIDE,):
                self._refuse_network_wide(".".join(aim.path), aim.change.position, "node or port")
        top = {key: value for key, value in self.document.data.items() if key in WISH_KEYS}
        base = make_layer(top, self.document.position, (), "intent", dotted=False)
        self.tops = {"": (base, *self._over(""))}
        names = dict.fromkeys((*self.intent.networks, *(aim.network for aim in self.what_if if aim.network)))
        for name in names:
            fragment = self._of_network(name)
            layer = make_layer(
                fragment, self.document.position, ("networks", name), f"network {name}", dotted=False
            )
            self.tops[name] = (base, layer, *self._over(name))
            self._refuse_node_wide(layer, f"network {name}")
        self._absent()
        for layers in self.tops.values():
            self._wishes(layers)
        rules = tuple(self._rules())
        lengths = self._cables()
        self._subnets()
        plans = {
            name: plan
            for name, node in self.inventory.nodes.items()
            if (plan := self._node(node, rules, lengths.get(name, {}))) is not None
        }
        self._missed()
        if self.findings:
            raise InputError(self.findings)
        unused = tuple((rule.override, rule.position) for i, rule in enumerate(rules) if i not in self.used)
        return Resolved(
            self.intent,
            self.inventory,
            plans,
            self.document,
            unused,
            self.subnets,
            self.managed,
            self.reach.idle(),
        )

    def _subnets(self) -> None:
        """InfiniBand networks; what a subnet manager does is wished for the network, not for a port."""
        used = {port.network for node in self.inventory.nodes.values() for port in node.spec.ports.values()}
        for network in sorted(used - {""}):
            found = self._wishes(self.tops.get(network, self.tops[""]))
            if found is not None and found[0].rdma.transport == "infiniband":
                given = self._partitions_file(found[0], found[1])
                self._routes_file(found[0], found[1])
                self.subnets[network] = subnet(network, found[0], self.inventory, given)
                self.managed[network] = found[1]

    def _routes_file(self, wishes: Wishes, merged: Merged) -> None:
        """Engine `file` without a file is minhop, whatever engines follow (run)."""
        manager = wishes.subnet_manager
        if manager is None or manager.owner not in SM_PARTS:
            return
        if "file" in manager.routing and not manager.lfts_file:
            index = manager.routing.index("file")
            position = merged.position(("subnet_manager", "routing", index)) or self.document.position(())
            message = "routing engine file has no file: it would be minhop, and no other engine is tried"
            help = "name the file that you put on every manager: subnet_manager.lfts_file"
            self._complain(message, position, help, "file")
        elif manager.lfts_file and "file" not in manager.routing:
            position = merged.position(("subnet_manager", "lfts_file")) or self.document.position(())
            help = "add file to subnet_manager.routing, or remove lfts_file"
            message = "lfts_file is read by routing engine file only"
            self._complain(message, position, help, manager.lfts_file)

    def _partitions_file(self, wishes: Wishes, merged: Merged) -> Partitions | None:
        """The partitions of the file that the intent names; every problem is a finding at its line."""
        name = wishes.subnet_manager.partitions_file if wishes.subnet_manager else ""
        if not name:
            return None
        path = FilePath(self.document.path).parent / name
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            position = merged.position(("subnet_manager", "partitions_file"))
            reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
            message, help = (
                f"{path} cannot be read: {reason}",
                "correct the path, it starts beside the intent",
            )
            self.findings.append(input_finding("reference", message, position, help))
            return None
        read = read_partitions(text)
        lines = text.split("\n")
        for one in read.problems:
            position = Position(str(path), one.line, one.column)
            excerpt = lines[one.line - 1] if one.line <= len(lines) else ""
            self.findings.append(input_finding("schema", one.message, position, one.help, excerpt=excerpt))
        return read.partitions

    def _sm(self, node: Node) -> tuple[SmState, Mapping[str, Position], tuple[str, str]]:
        """The subnet manager of a node, where it was written, its service and owner; none mostly."""
        for network, one in self.subnets.items():
            owner = one.manager.owner
            if node.name in one.managers:
                position = self.managed[network].position(("subnet_manager",))
                service = (SM_PARTS.get(owner, ""), owner)
                return one.managers[node.name], {"sm": position} if position else {}, service
            if node.name in one.switches and owner in SM_OURS and one.managers:
                return SmState(running=False), {}, ("", "")
        return SmState(), {}, ("", "")

    # -- layers

    def _over(self, network: str) -> Iterator[Layer]:
        """Layers of --set that lie over intent and network, in their order."""
        for aim in of_network(self.what_if, network):
            if aim.layer is not None:
                if aim.network:
                    self._refuse_node_wide(aim.layer, f"network {aim.network}")
                yield aim.layer

    def _of_network(self, name: str) -> Mapping[str, Any]:
        """The intent's keys of a network, without what --unset takes out of them."""
        fragment: Mapping[str, Any] = self.intent.networks.get(name, {})
        for aim in self.what_if:
            if aim.network == name and aim.layer is None:
                left = without(fragment, aim.path)
                if left is not None:
                    self.hit.add(aim.change)
                    fragment = left
        return fragment

    def _missed(self) -> None:
        """What-ifs that changed nothing are mistakes: a key that nobody sets."""
        aims = (*self.what_if, *self.aimed)
        for aim in () if self.findings else aims:
            if aim.layer is None and aim.change not in self.hit:
                self.hit.add(aim.change)
                key = ".".join(aim.path)
                where = f" in network {aim.network}" if aim.network else ""
                self._complain(f"nothing sets {key}{where}", aim.change.position, "write a key that is set")

    def _complain(self, message: str, position: Position, help: str, found: str = "") -> None:
        self.findings.append(input_finding("reference", message, position, help, found=found))

    def _refuse_node_wide(self, layer: Layer, where: str) -> None:
        """Host settings that a node has once mean nothing for a network or port."""
        hosts = layer.data.get("hosts")
        for key in NODE_WIDE:
            if isinstance(hosts, dict) and key in hosts:
                position = layer.positions.get(("hosts", key)) or self.document.position(())
                help = "set it at the top level, in an override for nodes, or in the data of a group or node"
                self._complain(f"hosts.{key} holds for whole nodes, not for a {where}", position, help)

    def _refuse_network_wide(self, key: str, position: Position | None, where: str) -> None:
        """A network has its subnet manager once: nobody reads a wish for it at a node or port."""
        message = f"{key} holds for a whole network, not for a {where}"
        help = f"set it at the top level, or in networks.NAME.{NETWORK_WIDE}"
        found = input_finding("reference", message, position or self.document.position(()), help)
        if found not in self.findings:
            self.findings.append(found)

    def _refuse_in(self, layers: Iterable[Layer], where: str) -> None:
        for layer in layers:
            below = layer.data.get(NETWORK_WIDE, {})
            for path in [(NETWORK_WIDE, str(key)) for key in below] if isinstance(below, dict) else ():
                self._refuse_network_wide(".".join(path), layer.positions.get(path), where)

    def _absent(self) -> None:
        """`absent` keys lie below the intent as their reset value; a key that is set as well is an error."""
        reset: dict[str, Any] = {}
        written: dict[str, Position] = {}
        for index, key in enumerate(self.intent.absent):
            position = written[key] = self.document.position(("absent", index))
            parts = split_dotted(key)
            of_class = parts[0] == "classes" and parts[2:] == ("ecn",)
            value = RESETS.get("ecn" if of_class else key)
            if parts[0] == "classes" and len(parts) == 2:
                self.gone = True
            elif value is None:
                help = f"what can be reset: {', '.join(sorted(RESETS))}, classes.NAME, classes.NAME.ecn"
                self._complain(f"{key} cannot be reset", position, help, key)
                continue
            if _is_set(self.document.data, parts):
                self._complain(f"{key} is absent and set", position, "remove it from absent, or its key", key)
            elif of_class and not _is_set(self.document.data, parts[:2]):
                help = f"write {'.'.join(parts[:2])} to reset all of it"
                self._complain(f"the intent has no class {parts[1]}", position, help, key)
            elif value is not None:
                reset[key] = value
        if reset:
            layer = make_layer(reset, lambda path: written[str(path[0])], (), "absent")
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
                help = getattr(error, "help", "") or "write node names and fact=value, separated by commas"
                self._complain(getattr(error, "text", str(error)), position, help)
                continue
            if selector.by_port:
                self._refuse_node_wide(layer, "port")
            self._refuse_in((layer,), "port" if selector.by_port else "node")
            yield _Rule(override, selector, layer, self.document.position((*at, "where")))

    def _cables(self) -> dict[str, dict[str, Cable]]:
        found: dict[str, dict[str, Cable]] = {}
        nodes = self.inventory.nodes
        for link in self.inventory.links:
            ends = (link.a, link.b)
            near = any(end.node in nodes and nodes[end.node].is_host for end in ends)
            cable = Cable(link.length_m, ASSUMED_M["host" if near else "switch"])
            for end in ends:
                found.setdefault(end.node, {})[end.port] = cable
        return found

    # -- nodes

    def _node(self, node: Node, rules: tuple[_Rule, ...], lengths: Mapping[str, Cable]) -> NodePlan | None:
        matched = tuple(i for i, rule in enumerate(rules) if rule.selector.node(node))
        aimed = tuple(i for i, aim in enumerate(self.aimed) if aim.selector.node(node))
        key: Any = (id(node.spec), matched, aimed, tuple(sorted(lengths.items(), key=lambda item: item[0])))
        if self.subnets:
            ports = (self._ib(node, port) for port in node.spec.ports.values())
            key = (*key, self._sm(node)[0], *map(id, ports))
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
        aimed: list[Aim],
        lengths: Mapping[str, Cable],
    ) -> NodePlan | None:
        spec = node.spec
        self._refuse_in(spec.layers, "node")
        overrides = [(i, rule) for i, rule in rules if not rule.selector.by_port]
        self.used.update(i for i, _ in overrides)
        top = (*self.tops[""], *(rule.layer for _, rule in overrides), *spec.layers)
        here = [aim for aim in aimed if not aim.selector.by_port]
        system = self._wishes(top, here)
        self.reach.note((*top, *_layers_of(here)), Spot(node.is_host))
        ports: dict[str, PortPlan] = {}
        for port in spec.ports.values():
            if port.network:
                plan = self._port(node, port, rules, aimed, lengths.get(port.name, NO_CABLE).metres)
                if plan is not None:
                    ports[port.name] = plan
        if system is None or len(ports) != sum(1 for port in spec.ports.values() if port.network):
            return None
        sm, sm_origins, service = self._sm(node)
        fabric = {port for port, plan in ports.items() if plan.wishes.rdma.transport == "infiniband"}
        hardware = _hardware(node, lengths, fabric, service, _nv_names(ports.values()))
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
        whole = _system(node, wishes, merged, ports)
        more = {"asked": _names(whole), "local_check": "" if wishes.hosts.local_check else "off"}
        known = dict(hardware.options) | {name: text for name, text in more.items() if text}
        hardware = replace(hardware, options=tuple(sorted(known.items())))
        if sm != SmState():
            whole = replace(whole, sm=sm, origins={**whole.origins, **sm_origins})
        state = NodeState(whole, states)
        return NodePlan(hardware, wishes, ports, state)

    def _port(
        self,
        node: Node,
        port: Port,
        rules: list[tuple[int, _Rule]],
        aimed: list[Aim],
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
        )
        here = tuple(aim for aim in aimed if aim.selector.port(port))
        cable = None if length is None else math.ceil(length)
        ib = self._ib(node, port)
        key = (
            *map(id, layers),
            *map(id, here),
            node.is_host,
            port.kind,
            port.speed_gbps,
            cable,
            port.nic,
            ib,
        )
        if key not in self.settings:
            for layer in port.layers:
                self._refuse_node_wide(layer, "port")
            self._refuse_in(port.layers, "port")
            found = self._wishes(layers, here)
            if found is None:
                return None
            wishes, merged = found
            self._as_network(node, port.network, wishes, merged)
            fabric = (port.name,) if wishes.rdma.transport == "infiniband" else ()
            spot = Spot(node.is_host, wishes.rdma.transport, _nic(node, port, fabric), port.kind)
            self.reach.note((*layers, *_layers_of(here)), spot)
            if node.is_host:
                self._known_classes(wishes, merged)
            if ib is not None:
                ib = with_ipoib(ib, wishes.hosts.ipoib, self.subnets[port.network].partitions)
            self.settings[key] = _PortBuilder(
                wishes, merged, node.is_host, port, cable, self.gone, ib, self._ipoib_mtu(port.network)
            ).plan()
        return self.settings[key]

    def _as_network(self, node: Node, network: str, wishes: Wishes, merged: Merged) -> None:
        """What a subnet has once: a port that wishes it otherwise would not get it."""
        found = self._wishes(self.tops[network])
        if found is None:
            return
        for path, wish, whole in _subnet_wide(wishes, found[0]):
            if path == ("rdma", "transport") and not node.is_host:
                continue  # no switch can do both transports: FAB020 tells it
            position = merged.position(path) or self.document.position(())
            message = (
                f"{'.'.join(path)} holds for a whole network, not for a port: "
                f"{wish} here, {whole} in network {network}"
            )
            help = (
                f"set it at the top level or in networks.{network}; "
                "an override for other networks takes network=NAME"
            )
            finding = input_finding("reference", message, position, help, found=str(wish))
            if finding not in self.findings:
                self.findings.append(finding)

    def _known_classes(self, wishes: Wishes, merged: Merged) -> None:
        """A class that no port of the host has marks nothing and gets no buffer: nobody would notice."""
        hosts = wishes.hosts
        named: list[tuple[tuple[str, ...], str]] = [
            (("hosts", "buffers", name), name) for name in hosts.buffers
        ]
        named += [(("hosts", "roce_class"), hosts.roce_class)] if hosts.roce_class else []
        for path, name in named if wishes.rdma.transport != "infiniband" else ():
            if name in wishes.classes:
                continue
            position = merged.position(path) or self.document.position(())
            near = did_you_mean(name, wishes.classes)
            known = f"did you mean {near}?" if near else f"classes are {', '.join(wishes.classes) or 'none'}"
            finding = input_finding("reference", f"there is no class {name}", position, known, found=name)
            if finding not in self.findings:
                self.findings.append(finding)

    def _ib(self, node: Node, port: Port) -> IbPort | None:
        """What the subnet manager gives a host port; None for every other port."""
        one = self.subnets.get(port.network)
        return one.ports.get(End(node.name, port.name)) if one else None

    def _ipoib_mtu(self, network: str) -> int:
        """IP MTU of an IPoIB interface in datagram mode: that of its group less the 4-byte header
        (RFC 4391); 0 without a group."""
        one = self.subnets.get(network)
        rows = one.partitions.rows if one else ()
        return next((row.mtu - 4 for row in rows if row.ipoib and row.pkey == DEFAULT_PKEY), 0)

    def _wishes(self, layers: tuple[Layer, ...], aimed: Sequence[Aim] = ()) -> tuple[Wishes, Merged] | None:
        """The layers over one another with what-ifs at this node or port on top; validated once."""
        key = (*map(id, layers), *map(id, aimed))
        if key not in self.wishes:
            merged = merge((*layers, *(aim.layer for aim in aimed if aim.layer)))
            gone = [aim for aim in (*self.what_if, *aimed) if aim.layer is None and not aim.network]
            self.hit.update(aim.change for aim in gone if remove(merged, aim.path))
            self.wishes[key] = self._validated(merged)
        return self.wishes[key]

    def _validated(self, merged: Merged) -> tuple[Wishes, Merged] | None:
        document = _MergedDocument(merged, self.document)
        try:
            return validate(Wishes, document), merged  # type: ignore[arg-type]
        except InputError as error:
            self.findings.extend(document.own(one) for one in error.findings)
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

    def own(self, found: Finding) -> Finding:
        """The finding without an excerpt of the intent where the value stands in another file."""
        return found if found.position and found.position.file == self.path else replace(found, excerpt="")


NETWORK_WIDE = "subnet_manager"
"""The key of a network that no node and no port can have of its own."""
_LANE_KEYS = ("sl", "vl", "bandwidth", "weight", "scheduler")
"""What an InfiniBand network takes of a class."""
RESETS: Mapping[str, Any] = {"pfc.watchdog": False, "ecn": False, "dcqcn": False}
"""What `absent` can reset, and the intent's value that means "off"."""


def _subnet_wide(port: Wishes, whole: Wishes) -> Iterator[tuple[tuple[str, ...], object, object]]:
    """(path, a port's wish, its network's) of what a subnet has once, where the two differ."""
    if port.rdma.transport != whole.rdma.transport:
        yield ("rdma", "transport"), port.rdma.transport, whole.rdma.transport
    elif whole.rdma.transport == "infiniband":
        if port.rdma.mtu != whole.rdma.mtu:
            yield ("rdma", "mtu"), port.rdma.mtu, whole.rdma.mtu
        theirs, ours = ib_classes(port), ib_classes(whole)
        for name in {**theirs, **ours}:
            for key in _LANE_KEYS:
                wish, other = (getattr(one.get(name), key, None) for one in (theirs, ours))
                if wish != other:
                    yield ("classes", name, key), _or_none(wish), _or_none(other)


def _or_none(value: object) -> object:
    return "none" if value is None else value


def _layers_of(aims: Iterable[Aim]) -> Iterator[Layer]:
    return (aim.layer for aim in aims if aim.layer is not None)


def _is_set(data: Any, parts: Iterable[str]) -> bool:
    for part in parts:
        if not isinstance(data, dict) or part not in data:
            return False
        data = data[part]
    return True


def _nic(node: Node, port: Port, fabric: Collection[str]) -> str:
    """Kind of the NIC as far as its settings go: all InfiniBand ports of hosts are alike."""
    if not node.is_host:
        return ""
    return "ib" if port.name in fabric else port.nic or "generic"


def _nv_names(ports: Iterable[PortPlan]) -> str:
    """Names of the non-volatile settings that a node's cards are to be asked for."""
    return " ".join(sorted({name for one in ports for name, _ in one.settings.nic.nv}))


def _hardware(
    node: Node,
    lengths: Mapping[str, Cable],
    fabric: Collection[str],
    service: tuple[str, str],
    nv: str,
) -> Hardware:
    spec = node.spec
    ports = tuple(
        PortHardware(
            name=port.name,
            kind=port.kind,
            speed_gbps=port.speed_gbps,
            nic=_nic(node, port, fabric),
            rdma=port.rdma,
            bdf=port.bdf,
            parent=port.parent,
            members=port.members,
            vlan=port.vlan,
            cable_m=lengths.get(port.name, NO_CABLE).whole,
            assumed_m=lengths.get(port.name, NO_CABLE).assumed,
            rail=port.rail if node.is_host else "",
        )
        for port in spec.ports.values()
        if port.network
    )
    nics = sorted({f"nic_{port.nic}" for port in ports if port.nic})
    asic = None if node.is_host else asic_of(spec.model)
    services = (service[0],) if service[0] else ()
    options = dict(spec.options) | (
        {"sm_owner": service[1]} if service[1] and service[1] not in SM_OURS else {}
    )
    options |= {"nv": nv} if nv else {}
    return Hardware(
        (spec.platform, *nics, *services),
        spec.model,
        spec.version,
        ports,
        asic,
        tuple(sorted(options.items())),
    )


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
    ib: IbPort | None = None
    ipoib_mtu: int = 0
    origins: dict[str, Position] = field(default_factory=dict)

    def plan(self) -> PortPlan:
        if self.wishes.rdma.transport == "infiniband":
            return PortPlan(self.wishes, self.merged, self._infiniband(), self.origins)
        settings = PortSettings(self._mtu(), self._qos(), self._marking(), nic=self._nic())
        return PortPlan(self.wishes, self.merged, settings, self.origins)

    def _infiniband(self) -> PortSettings:
        """Credits and lanes instead of PFC, ECN and DSCP; the MTU of a host port is that of IPoIB."""
        self._from("ib", "subnet_manager")
        self._from("mtu", "subnet_manager")
        if self.ib is None:
            return PortSettings()
        self._from("ib.mode", "hosts", "ipoib", "mode")
        self._from("ib.children", "hosts", "ipoib", "interfaces")
        mode = value_or(self.ib.mode, "datagram")
        fits = self.ipoib_mtu and mode == "datagram"
        return PortSettings(mtu=Mtu(ip=self.ipoib_mtu if fits else UNMANAGED), ib=self.ib)

    def _nic(self) -> NicState:
        """Non-volatile settings belong to the card: to its physical ports."""
        if not self.is_host or self.port.kind != "physical":
            return NicState()
        self._from("nic", "hosts", "nv")
        return NicState(tuple(sorted(self.wishes.hosts.nv.get(self.port.nic, {}).items())))

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
        if self.is_host and self.port.kind == "bond" and not self.port.nic:
            # Classes of a bond are those of its members, where the NICs are.
            return QosState()
        lossless = any(one.lossless for one in classes.values())
        self._from("qos.trust", "trust")
        self._from("qos.dscp_to_priority", "classes")
        self._from("qos.pfc", "classes")
        self._from("qos.classes", "classes")
        self._from("qos.dcbx", "pfc", "dcbx")
        pfc = self.wishes.pfc
        if pfc is not None and not pfc.enabled:
            self._from("qos.pfc", "pfc", "enabled")
        return QosState(
            trust=self.wishes.trust,
            dscp_to_priority=_dscp_map(classes) if self.wishes.trust != "pcp" else UNMANAGED,
            pcp_to_priority=_pcp_map(classes) if self.wishes.trust != "dscp" else UNMANAGED,
            classes=self._buffered(tuple(self._class(priority) for priority in range(8))),
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
            watchdog=self._guarded(on and (one.pfc.tx or one.pfc.rx)),
            ecn=self._ecn(name, one, at),
            headroom=self._headroom(one) if on else UNMANAGED,
            share=self._share([item for _, item in found]),
        )

    def _buffered(self, classes: tuple[ClassState, ...]) -> tuple[ClassState, ...]:
        """With the receive buffers of hosts.buffers: buffer 0 is that of the rest."""
        wished = self.wishes.hosts.buffers
        if not self.is_host or not wished:
            return classes
        known = self.wishes.classes
        rest = next((one.priority for one in known.values() if REST in one.dscp), 0)
        sizes: dict[int, int] = {}
        for name, size in wished.items():
            if name in known:
                sizes[known[name].priority] = max(size.bytes, sizes.get(known[name].priority, 0))
        order = [rest, *sorted(set(sizes) - {rest})]
        self._from("qos.classes", "hosts", "buffers")
        found = []
        for priority, one in enumerate(classes):
            owner = priority if priority in sizes else rest
            given: Maybe[Amount | None] = Amount(sizes[owner]) if owner in sizes else UNMANAGED
            found.append(replace(one, group=order.index(owner), headroom=given))
        return tuple(found)

    def _guarded(self, lossless: bool) -> Maybe[bool]:
        pfc = self.wishes.pfc
        if pfc is None or pfc.watchdog is None:
            return UNMANAGED
        return lossless and pfc.watchdog.mode != "off"

    def _ecn(self, name: str, one: TrafficClass, at: str) -> Maybe[Ecn | None]:
        speed = f"{self.port.speed_gbps}G"
        own = one.ecn.at(self.port.speed_gbps) if one.ecn else None
        table = one.ecn if own else (self.wishes.ecn if one.lossless else None)
        row = table.at(self.port.speed_gbps) if table else None
        if self.is_host or table is None or row is None or row.mode == "device":
            return UNMANAGED
        below = ("classes", name, "ecn") if own else ("ecn",)
        self._from(f"{at}.ecn", *below, speed if speed in table.root else "any")
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
        caps = [one.cap.value for one in classes if one.cap is not None]
        cap: Maybe[int | None] = max(1, round(min(caps))) if caps else UNMANAGED
        if any(one.scheduler == "strict" for one in classes):
            return Share("strict", 0, cap)
        percents = [one.bandwidth.value for one in classes if one.bandwidth is not None]
        weights = [one.weight for one in classes if one.weight is not None]
        if percents:
            return Share("dwrr", round(sum(percents)), cap)
        return Share("dwrr", sum(weights), cap) if weights else UNMANAGED

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
        tos = _tos(roce)
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
        on: Maybe[tuple[int, ...]] = lossless if dcqcn.enabled else ()
        names = {f"np_{key}": value for key, value in dcqcn.np.items()}
        names |= {f"rp_{key}": value for key, value in dcqcn.rp.items()}
        if dcqcn.enabled and not lossless:
            on = UNMANAGED  # no priority for it: nothing is switched off either
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


def _tos(roce: TrafficClass | None) -> Maybe[int]:
    """The ToS byte of a class's first DSCP, without ECN bits."""
    return roce.dscp[0] << 2 if roce and roce.dscp and roce.dscp[0] != REST else UNMANAGED


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
        limits=tuple(sorted(_limits(hosts).items())),
        environment=tuple(sorted(_environment(node, wishes, ports).items())),
        origins=origins,
    )


def _names(system: SystemState) -> str:
    """Names of a host's own settings, "sysctl.KEY modules.NAME ...": what its platform must read."""
    groups = ("sysctl", "modules", "module_options", "limits", "environment")
    return " ".join(f"{group}.{name}" for group in groups for name, _ in getattr(system, group))


def _limits(hosts: Hosts) -> dict[str, str]:
    """Limits of logins, and the same of services as UNIT.LIMIT."""
    units = [unit.removesuffix(".service") for unit in hosts.services]
    of_services = {f"{unit}.{name}": value for unit in units for name, value in hosts.limits.items()}
    return {**hosts.limits, **of_services}


def _sysctl(wanted: Mapping[str, str], ports: Iterable[str]) -> dict[str, str]:
    """A part of a key with `*` stands for every port in a network whose name fits (`eth*`, `*`, `bond0/*`).

    sysctl writes `/` for the dots in a port's own name (sysctl(8)).
    """
    found: dict[str, str] = {}
    for key, value in wanted.items():
        glob = next((part for part in key.split(".") if "*" in part), "")
        pattern = glob.replace("/", ".")
        names = [port for port in ports if fnmatchcase(port, pattern)] if glob else [""]
        for port in names:
            found[key.replace(glob, port.replace(".", "/")) if glob else key] = value
    return found


def _environment(node: Node, wishes: Wishes, ports: Mapping[str, PortPlan]) -> dict[str, str]:
    """Variables of jobs that follow from the classes, then the intent's own."""
    ours = of_jobs(port for port in node.spec.ports.values() if port.name in ports)
    jobs = [_job_port(port.rdma, ports[port.name].wishes) for port in ours]
    return variables(wishes.hosts, jobs, _management(node.spec.ports)) | dict(wishes.hosts.environment)


def _job_port(device: str, wishes: Wishes) -> JobPort:
    roce = roce_class(wishes)
    if wishes.rdma.transport == "infiniband":
        levels = ib_classes(wishes)
        named = levels.get(wishes.hosts.roce_class)
        one = named or (next(iter(levels.values())) if len(levels) == 1 else None)
        return JobPort(device, level=one.sl if one else None)
    # The service level becomes the priority of a VLAN tag, which counts where that is trusted.
    level = roce.priority if roce and wishes.trust == "pcp" else None
    return JobPort(device, value_or(_tos(roce), None), level)


def _management(ports: Mapping[str, Port]) -> str:
    """The one interface of a host that the inventory names outside all networks; "" when not clear."""
    below = {name for port in ports.values() for name in (*port.members, port.parent)}
    free = [
        one.name for one in ports.values() if not one.network and one.kind != "vf" and one.name not in below
    ]
    return free[0] if len(free) == 1 else ""


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
