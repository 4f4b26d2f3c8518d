"""Reads hosts.yaml, groups.yaml, defaults.yaml (nornir's files, names may hold ranges) and cables.csv.

Every trouble of all four files is collected before InputError is raised. Nodes of one entry share
one `Spec`, so that everything computed from a specification is computed once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from rdma_fabric.findings import (
    BadValue,
    Finding,
    InputError,
    Position,
    did_you_mean,
    input_finding,
    natural,
    shown,
)
from rdma_fabric.inventory.guids import COLUMNS as GUID_COLUMNS
from rdma_fabric.inventory.guids import FILE as GUIDS
from rdma_fabric.inventory.guids import load_guids
from rdma_fabric.inventory.models import Entry, NodeData, PortData
from rdma_fabric.inventory.ranges import check_name, check_node_name, expand, zip_ranges
from rdma_fabric.inventory.types import End, Inventory, Link, Node, Port, Spec
from rdma_fabric.layers import Layer, dotted_trouble, make_layer
from rdma_fabric.source import FINDINGS_LIMIT, Document, Row, Table, load_csv, load_yaml, validate

T = TypeVar("T")

_PLAIN: Mapping[str, re.Pattern[str]] = {
    # A DNS name (RFC 1035: 253 characters), an IPv4 or an IPv6 address.
    "hostname": re.compile(r"[A-Za-z0-9:][A-Za-z0-9._:-]{0,252}"),
    "lanes": re.compile(r"[0-9]{1,4}(,[0-9]{1,4}){0,15}"),
}
"""Texts that are not names as ports and nodes have them, and hold no range."""
_METRES = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,2})?")
"""Narrower than Python's float(), which reads 5_0, nan and the digits of other scripts."""
CABLES = "cables.csv"
CABLE_COLUMNS = ("a_node", "a_port", "b_node", "b_port")
CABLE_OPTIONAL = ("length_m",)
_PORT_TEXTS = ("rdma", "bdf", "rail", "plane", "parent", "guid", "lanes", "alias", "index")
_NODE_FACTS = ("role", "model", "version", "state", "gpus", "plane", "rack")
_OPTIONS = ("stack", "mtu_manager", "mtu_max")


def load(
    directory: Path,
    platforms: Collection[str],
    nics: Collection[str] = (),
    given: Mapping[str, Document | Table] | None = None,
) -> Inventory:
    """The inventory in `directory`; `platforms` are the base keys. InputError holds every finding.

    `nics` are the words that a port's `nic` may be; empty: any. `given`: files that were read before, by
    name; then no other file is looked for.
    """
    return _Loader(directory, tuple(sorted(platforms)), nics=tuple(sorted(nics)), given=given).run()


@dataclass(eq=False)
class _Source:
    """One validated entry of one file."""

    entry: Entry
    document: Document
    key: str
    """Empty for defaults.yaml, which is one entry as a whole; only there `whole` is True."""
    label: str
    whole: bool = False

    def at(self, *path: str | int) -> Position | None:
        """Where the value at `path` below this entry was written."""
        return self.document.position(path if self.whole else (self.key, *path))

    def key_at(self, *path: str | int) -> Position | None:
        """Where the key at `path` below this entry was written."""
        return self.document.key_position(path if self.whole else (self.key, *path))

    def where(self, path: tuple[str | int, ...]) -> Position | None:
        """As `at`, for `make_layer`."""
        return self.at(*path)


@dataclass
class _Loader:
    directory: Path
    platforms: tuple[str, ...]
    nics: tuple[str, ...] = ()
    given: Mapping[str, Document | Table] | None = None
    findings: list[Finding] = field(default_factory=list)
    groups: dict[str, _Source] = field(default_factory=dict)
    broken: set[str] | None = field(default_factory=set)
    """Groups that are there but not valid; None when groups.yaml cannot be read, so that any may be there."""
    defaults: _Source | None = None
    shared: dict[Any, Spec] = field(default_factory=dict)
    set_layers: dict[tuple[str, str, bool], tuple[Layer, ...]] = field(default_factory=dict)

    def run(self) -> Inventory:
        hosts = self._file("hosts.yaml", required=True)
        groups = self._file("groups.yaml", required=False)
        defaults = self._file("defaults.yaml", required=False)
        if groups:
            self.groups = {source.key: source for source in self._entries(groups, "group")}
            self.broken = set(groups.data) - self.groups.keys()
        elif self._there("groups.yaml"):
            self.broken = None
        if defaults and defaults.data:
            self.defaults = self._entry(defaults, None, "defaults")
        nodes: dict[str, Node] = {}
        if hosts:
            if not hosts.data:
                self._complain(
                    "reference", "hosts.yaml has no nodes", hosts.position(()), "add at least one node"
                )
            for source in self._entries(hosts, "node"):
                self._expand(source, nodes)
        ordered = {name: nodes[name] for name in sorted(nodes, key=natural)}
        links = self._links(ordered, complete=not self.findings)
        guids = self._collect(lambda: load_guids(ordered, self._table(GUIDS, GUID_COLUMNS))) or {}
        if self.findings:
            raise InputError(self.findings)
        return Inventory(ordered, links, guids)

    # -- files and entries

    def _file(self, name: str, required: bool) -> Document | None:
        if not required and not self._there(name):
            return None
        if self.given is not None:
            found = self.given.get(name)
            return found if isinstance(found, Document) else None
        return self._collect(lambda: load_yaml(self.directory / name))

    def _there(self, name: str) -> bool:
        """True for everything of that name: a link to nothing is a mistake, not an absent file."""
        return name in self.given if self.given is not None else os.path.lexists(self.directory / name)

    def _table(self, name: str, columns: Sequence[str] = CABLE_COLUMNS) -> Table | None:
        """A CSV file with all its columns; None where there is none of a file that may be absent."""
        if self.given is not None:
            found = self.given.get(name)
            return found if isinstance(found, Table) else None
        if name != CABLES and not self._there(name):
            return None
        return load_csv(self.directory / name, columns, CABLE_OPTIONAL if name == CABLES else ())

    def _collect(self, step: Callable[[], T]) -> T | None:
        try:
            return step()
        except InputError as error:
            self._note(error.findings)
            return None

    def _complain(self, name: str, message: str, position: Position | None, help: str, **more: Any) -> None:
        self._note([input_finding(name, message, position, help, **more)])

    def _note(self, found: Iterable[Finding]) -> None:
        """Keeps findings; ends the loading when there are too many to tell."""
        self.findings.extend(found)
        if len(self.findings) > FINDINGS_LIMIT:
            message = f"the inventory has more than {FINDINGS_LIMIT} mistakes; the rest is not told"
            help = "mend those above first"
            last = input_finding("reference", message, self.findings[-1].position, help)
            raise InputError([*self.findings, last])

    def _entries(self, document: Document, what: str) -> Iterator[_Source]:
        for key in document.data:
            source = self._entry(document, key, f"{what} {key}")
            if source:
                yield source

    def _entry(self, document: Document, key: str | None, label: str) -> _Source | None:
        """One entry; with the key None the file as a whole."""
        whole = key is None
        data = document.data if key is None else document.data[key]
        if data is None:
            return _Source(Entry(), document, key or "", label)
        prefix = () if key is None else (key,)
        entry = self._collect(lambda: validate(Entry, document, prefix))
        return _Source(entry, document, key or "", label, whole) if entry else None

    # -- nodes

    def _expand(self, source: _Source, nodes: dict[str, Node]) -> None:
        names = self._names(source)
        addresses = self._zipped(source, ("hostname",), source.entry.hostname, len(names))
        chain = self._chain(source)
        if not names or chain is None:
            return
        spec = self._spec(source, chain)
        if spec is None:
            return
        for index, name in enumerate(names):
            if name in nodes:
                first = nodes[name].position
                self._complain(
                    "reference",
                    f"node {name} is defined twice",
                    source.key_at(),
                    f"remove one of the two entries (the other is at {first})",
                )
                continue
            address = addresses[index] if addresses else name
            nodes[name] = Node(name, address, spec, source.key_at())

    def _names(self, source: _Source) -> tuple[str, ...]:
        try:
            return tuple(check_node_name(name) for name in expand(source.key))
        except ValueError as error:
            self._complain(
                "reference",
                f"node name: {_text(error)}",
                source.key_at(),
                _help(error, "use letters and digits"),
            )
            return ()

    def _zipped(
        self, source: _Source, path: tuple[str, ...], text: str | None, count: int
    ) -> tuple[str, ...]:
        """`text` expanded to `count` values, or () when absent or wrong (a finding is recorded)."""
        if text is None or not count:
            return ()
        if "[" not in text:
            return (text,) * count if self._plain_text(source, path, text) else ()
        try:
            values = expand(text)
        except ValueError as error:
            self._complain("reference", _text(error), source.at(*path), _help(error, "correct the range"))
            return ()
        if len(values) != count:
            self._complain(
                "reference",
                f"{text} stands for {len(values)} values, but the name beside it for {count}",
                source.at(*path),
                "give both ranges the same length",
            )
            return ()
        return values

    def _plain_text(self, source: _Source, path: tuple[str, ...], text: str) -> bool:
        """True for a text without range that may reach a device; else a finding is recorded."""
        pattern = _PLAIN.get(path[-1])
        try:
            if pattern is None:
                check_name(text)
            elif not pattern.fullmatch(text):
                help = (
                    "write an address or a DNS name" if path[-1] == "hostname" else "write numbers and commas"
                )
                raise BadValue(f"{shown(text)} may not reach a device", help)
        except BadValue as error:
            self._complain(
                "reference", f"{path[-1]}: {error.text}", source.at(*path), error.help, found=ascii(text)
            )
            return False
        return True

    def _chain(self, source: _Source) -> tuple[_Source, ...] | None:
        """Defaults, groups (first group strongest, as nornir resolves) and the node, weakest first."""
        chain: list[_Source] = []
        good = self._add_groups(source, chain, ())
        if self.defaults:
            chain.append(self.defaults)
        return tuple(reversed([source, *chain])) if good else None

    def _add_groups(self, source: _Source, chain: list[_Source], above: tuple[str, ...]) -> bool:
        good = True
        for index, name in enumerate(source.entry.groups):
            group = self.groups.get(name)
            if group is None or name in above:
                self._bad_group(source, index, name, contained=group is not None)
                good = False
            elif group not in chain:
                chain.append(group)
                good = self._add_groups(group, chain, (*above, name)) and good
        return good

    def _bad_group(self, source: _Source, index: int, name: str, *, contained: bool) -> None:
        """A group in itself, or one that nobody defines; not one whose definition is the mistake."""
        if contained:
            message, help = f"the group {shown(name)} contains itself", "remove it from the list here"
        elif self.broken is None or name in self.broken:
            return
        else:
            near = did_you_mean(name, self.groups)
            message = f"unknown group {shown(name)}"
            help = f"did you mean {near}?" if near else "define the group in groups.yaml"
        self._complain("reference", message, source.at("groups", index), help)

    def _spec(self, source: _Source, chain: tuple[_Source, ...]) -> Spec | None:
        entry = source.entry
        own = entry.model_fields_set - {"groups", "hostname"}
        key = None if own else tuple(id(one) for one in chain[:-1])
        if key is not None and key in self.shared:
            return self.shared[key]
        spec = self._build_spec(source, chain)
        if spec and key is not None:
            self.shared[key] = spec
        return spec

    def _build_spec(self, source: _Source, chain: tuple[_Source, ...]) -> Spec | None:
        platform, platform_at = self._inherited(chain, "platform")
        if platform is None or platform not in self.platforms:
            self._bad_platform(source, platform, platform_at)
            return None
        facts: dict[str, Any] = {}
        positions: dict[str, Position] = {}
        for name in (*_NODE_FACTS, *_OPTIONS):
            for one in chain:
                value = getattr(one.entry.data, name)
                if value is not None:
                    facts[name] = value
                    _note(positions, name, one.at("data", name))
        _note(positions, "platform", platform_at)
        _note(positions, "hostname", source.at("hostname") or source.key_at())
        options = {key: value for one in chain for key, value in one.entry.data.options.items()}
        options |= {name: str(facts[name]) for name in _OPTIONS if name in facts}
        username, _ = self._inherited(chain, "username")
        port, _ = self._inherited(chain, "port")
        return Spec(
            platform=platform,
            **{name: facts[name] for name in _NODE_FACTS if name in facts},
            groups=tuple(one.key for one in reversed(chain) if one.label.startswith("group ")),
            ports=self._ports(chain),
            layers=tuple(layer for one in chain for layer in self._layers(one)),
            options=tuple(sorted(options.items())),
            lab_seed=tuple(line for one in chain for line in one.entry.data.lab_seed),
            username=username or "",
            ssh_port=port or 0,
            connection_options=_connections(chain),
            position=source.key_at(),
            positions=positions,
        )

    def _bad_platform(self, source: _Source, platform: str | None, position: Position | None) -> None:
        near = did_you_mean(platform or "", self.platforms)
        known = ", ".join(self.platforms)
        self._complain(
            "reference",
            f"unknown platform {shown(platform)}" if platform else f"node {source.key} has no platform",
            position or source.key_at(),
            f"did you mean {near}?" if near else f"set platform to one of {known}",
            found=platform or "",
            wanted=known,
        )

    @staticmethod
    def _inherited(chain: tuple[_Source, ...], name: str) -> tuple[Any, Position | None]:
        for one in reversed(chain):
            value = getattr(one.entry, name)
            if value is not None:
                return value, one.at(name)
        return None, None

    def _layers(self, source: _Source) -> tuple[Layer, ...]:
        """The `set` of one entry, made once; its key names file and entry, which no other entry shares."""
        at = (source.document.path, source.key, source.whole)
        if at not in self.set_layers:
            data = source.entry.data.set
            self.set_layers[at] = self._layer(data, source, ("data", "set"), source.label) if data else ()
        return self.set_layers[at]

    def _layer(
        self, data: Mapping[str, Any], source: _Source, prefix: tuple[str | int, ...], label: str
    ) -> tuple[Layer, ...]:
        try:
            return (make_layer(data, source.where, prefix, label),)
        except ValueError as error:
            self._note([dotted_trouble(error, source.at(*prefix))])
            return ()

    # -- ports

    def _ports(self, chain: tuple[_Source, ...]) -> dict[str, Port]:
        ports: dict[str, Port] = {}
        for source in chain:
            for text, data in source.entry.data.ports.items():
                for port in self._expand_ports(source, text, data, ports):
                    ports[port.name] = port
        return {name: ports[name] for name in sorted(ports, key=natural)}

    def _expand_ports(
        self, source: _Source, text: str, data: PortData, old: Mapping[str, Port]
    ) -> Iterator[Port]:
        path = ("data", "ports", text)
        try:
            names = expand(text)
        except ValueError as error:
            self._complain(
                "reference",
                f"port name: {_text(error)}",
                source.key_at(*path),
                _help(error, "correct the name"),
            )
            return
        columns = {
            name: self._zipped(source, (*path, name), getattr(data, name), len(names))
            for name in _PORT_TEXTS
            if getattr(data, name) is not None
        }
        layers = self._port_layers(source, path, data, text)
        plain = self._plain(source, path, data)
        for index, name in enumerate(names):
            texts = {key: values[index] for key, values in columns.items() if values}
            base = old.get(name) or Port(name)
            yield replace(
                base,
                **plain,
                **_numbers(texts),
                layers=(*base.layers, *layers),
                position=source.key_at(*path),
            )

    def _plain(self, source: _Source, path: tuple[str, ...], data: PortData) -> dict[str, Any]:
        given = data.model_fields_set
        plain: dict[str, Any] = {
            name: getattr(data, name)
            for name in ("network", "kind", "nic", "vlan", "breakout")
            if name in given
        }
        if data.network is None and "network" in given:
            plain["network"] = ""
        if data.nic is not None and self.nics and data.nic not in self.nics:
            near = did_you_mean(data.nic, self.nics)
            self._complain(
                "reference",
                f"unknown nic {data.nic}",
                source.at(*path, "nic"),
                f"did you mean {near}?" if near else f"use one of {', '.join(self.nics)}",
                found=data.nic,
                wanted=", ".join(self.nics),
            )
        if data.speed is not None:
            plain["speed_gbps"] = data.speed.gbps
        if data.pcie is not None:
            plain["pcie"] = (data.pcie.generation, data.pcie.lanes)
        if data.members:
            plain["members"] = self._members(source, path, data)
        return plain

    def _members(self, source: _Source, path: tuple[str, ...], data: PortData) -> tuple[str, ...]:
        names: list[str] = []
        for index, text in enumerate(data.members):
            try:
                names.extend(expand(text))
            except ValueError as error:
                position = source.at(*path, "members", index)
                self._complain(
                    "reference", f"member: {_text(error)}", position, _help(error, "correct the name")
                )
        return tuple(names)

    def _port_layers(
        self, source: _Source, path: tuple[str, ...], data: PortData, text: str
    ) -> tuple[Layer, ...]:
        label = f"port {text} of {source.label}"
        layers: tuple[Layer, ...] = ()
        if data.set:
            layers = self._layer(data.set, source, (*path, "set"), label)
        if data.mtu is not None:
            position = source.at(*path, "mtu")
            kinds = ("switch", "host", "svi")
            here: dict[tuple[str, ...], Position | None] = {("mtu", kind): position for kind in kinds}
            here["mtu",] = position
            layers += (Layer({"mtu": dict.fromkeys(kinds, data.mtu)}, _known(here), label),)
        return layers

    # -- cables

    def _links(self, nodes: Mapping[str, Node], complete: bool) -> tuple[Link, ...]:
        table = self._collect(lambda: self._table(CABLES))
        links: list[Link] = []
        for row in table.rows if table else ():
            links.extend(self._row_links(_Cable(table, row), nodes, complete) if table else ())
        return tuple(links)

    def _row_links(self, cable: _Cable, nodes: Mapping[str, Node], complete: bool) -> Iterator[Link]:
        try:
            ends = zip_ranges(*(cable.text(column) for column in CABLE_COLUMNS))
        except ValueError as error:
            help = _help(error, "give every range the same length")
            self._complain("csv", _text(error), cable.position("a_node"), help)
            return
        length = self._length(cable)
        position = cable.position("a_node")
        for a_node, a_port, b_node, b_port in ends:
            good = not complete or all(
                [self._end(nodes, a_node, a_port, cable, "a"), self._end(nodes, b_node, b_port, cable, "b")]
            )
            if good:
                yield Link(End(a_node, a_port), End(b_node, b_port), length, position)

    def _length(self, cable: _Cable) -> float | None:
        text = cable.text("length_m")
        if not text:
            return None
        value = float(text) if _METRES.fullmatch(text) else -1.0
        if not 0 < value <= 100_000:
            self._complain(
                "csv",
                f"length_m is {text}",
                cable.position("length_m"),
                "write the cable length in metres (above 0, at most 100000), or leave it empty when unknown",
                found=text,
                wanted="a number of metres",
            )
            return None
        return value

    def _end(self, nodes: Mapping[str, Node], node: str, port: str, cable: _Cable, side: str) -> bool:
        if node not in nodes:
            near = did_you_mean(node, nodes)
            self._complain(
                "reference",
                f"cable to unknown node {node}",
                cable.position(f"{side}_node"),
                f"did you mean {near}?" if near else "add the node to hosts.yaml or remove the cable",
            )
            return False
        ports = nodes[node].spec.ports
        if port not in ports:
            near = did_you_mean(port, ports)
            self._complain(
                "reference",
                f"cable to unknown port {port} of {node}",
                cable.position(f"{side}_port"),
                f"did you mean {near}?" if near else f"add the port to data.ports of {node} or its group",
            )
            return False
        return True


@dataclass(frozen=True, slots=True)
class _Cable:
    """One row of cables.csv."""

    table: Table
    row: Row

    def text(self, column: str) -> str:
        return self.row.cells[self.table.columns.index(column)]

    def position(self, column: str) -> Position:
        return self.table.position(self.row, column)


def _numbers(texts: dict[str, str]) -> dict[str, Any]:
    """Port texts with `index` as a number (0 when it is none)."""
    found: dict[str, Any] = dict(texts)
    if "index" in found:
        found["index"] = int(found["index"]) if found["index"].isdigit() else 0
    return found


def _known(found: Mapping[tuple[str, ...], Position | None]) -> dict[tuple[str, ...], Position]:
    return {path: position for path, position in found.items() if position is not None}


def _connections(chain: Iterable[_Source]) -> dict[str, dict[str, Any]]:
    """Options of every connection; as in nornir each attribute falls back to the next weaker entry."""
    found: dict[str, dict[str, Any]] = {}
    for one in chain:
        for name, options in one.entry.connection_options.items():
            said = {key: value for key, value in options.items() if value is not None}
            found[name] = found.get(name, {}) | said
    return found


def _note(positions: dict[str, Position], name: str, position: Position | None) -> None:
    if position is not None:
        positions[name] = position


def _text(error: ValueError) -> str:
    return getattr(error, "text", "") or str(error)


def _help(error: ValueError, otherwise: str) -> str:
    return getattr(error, "help", "") or otherwise


__all__ = ["CABLES", "CABLE_COLUMNS", "CABLE_OPTIONAL", "NodeData", "load"]
