"""What-ifs of the command line: `--set` and `--unset` for the intent, a network, nodes, ports or a cable.

KEY=VALUE                          over intent and networks
networks.NAME.KEY=VALUE            in one network
NODE:KEY=VALUE                     at a node; also a range, a glob, or facts (role=leaf)
NODE:PORT:KEY=VALUE                at a port; `mtu` alone is the MTU of that port
NODE:PORT - NODE:PORT:KEY=VALUE    at both ends of a cable; `length_m` and `speed` are the cable's own
NODE:PORT - NODE:PORT              with --unset: without that cable
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import BaseModel

from rdma_fabric.findings import BadValue, Finding, InputError, Position, did_you_mean, input_finding, shown
from rdma_fabric.intent.models import WISH_KEYS, Intent, Model, Wishes
from rdma_fabric.intent.quantities import Speed
from rdma_fabric.inventory.ranges import expand
from rdma_fabric.inventory.selector import FACTS, Selector
from rdma_fabric.inventory.selector import parse as parse_selector
from rdma_fabric.inventory.types import End, Inventory, Link, Node
from rdma_fabric.layers import Layer, Path, make_layer, split_dotted
from rdma_fabric.source import parse_yaml

FORMS: Final = (
    "write KEY=VALUE, networks.NAME.KEY=VALUE, NODE:KEY=VALUE, NODE:PORT:KEY=VALUE or "
    "'NODE:PORT - NODE:PORT:KEY=VALUE'"
)
NETWORKS: Final = "networks"
_CABLE_KEYS: Final = ("length_m", "speed")
EVERYWHERE: Final = Selector("")
_FIRST: Final = (*WISH_KEYS, NETWORKS)


@dataclass(frozen=True, slots=True)
class WhatIf:
    """One `--set` or `--unset` as it was written."""

    key: str
    text: str | None
    """The value as YAML; None removes the key."""

    @property
    def position(self) -> Position:
        """What-ifs are written on the command line."""
        return Position(f"--unset {self.key}" if self.text is None else f"--set {self.key}={self.text}", 0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class Aim:
    """One change of wishes. `layer` None: what is at `path` is taken out."""

    change: WhatIf
    path: Path
    layer: Layer | None
    network: str = ""
    """Name of the network that it is for; "" for every one."""
    selector: Selector = EVERYWHERE
    """The nodes or ports that it is for."""


@dataclass(slots=True)
class Aims:
    """All what-ifs, understood."""

    top: list[Aim] = field(default_factory=list)
    """For the intent or a network."""
    places: list[Aim] = field(default_factory=list)
    inventory: Inventory | None = None
    """The inventory with changed cables."""
    findings: list[Finding] = field(default_factory=list)


def split(text: str) -> WhatIf:
    """The what-if of a `--set`; InputError for one that is not KEY=VALUE."""
    key, equals, value = text.partition("=")
    if key in FACTS and ":" in value:  # the first = belongs to a fact: role=leaf:mtu.switch=9000
        match = re.match(r"(.*:[\w.*/-]+)=(.*)", text, re.DOTALL)
        key, value = (match.group(1), match.group(2)) if match else (text, "")
        equals = "=" if match else ""
    at = Position(f"--set {text}", 0, 0)
    if not equals:
        raise InputError([input_finding("schema", "--set needs KEY=VALUE", at, FORMS)])
    if not value.strip():
        help = f"write --set {key or 'KEY'}=VALUE; to take a setting out, --unset {key or 'KEY'}"
        raise InputError([input_finding("schema", "--set has no value", at, help)])
    return WhatIf(key, value)


def understand(changes: Iterable[WhatIf], intent: Intent, inventory: Inventory) -> Aims:
    """What each of the changes is for; every mistake is a finding."""
    found = Aims(inventory=inventory)
    for change in changes:
        try:
            _one(change, found, intent)
        except BadValue as error:
            found.findings.append(input_finding("reference", error.text, change.position, error.help))
        except InputError as error:
            found.findings += [replace(one, position=change.position, excerpt="") for one in error.findings]
        except ValueError as error:
            found.findings.append(input_finding("reference", str(error), change.position, FORMS))
    return found


def _one(change: WhatIf, found: Aims, intent: Intent) -> None:
    assert found.inventory is not None
    if " - " in change.key:
        _cable(change, found)
        return
    target, colon, key = change.key.rpartition(":")
    if not key:
        raise BadValue("it names no key", FORMS)
    if not colon:
        _top(change, key, found, intent)
        return
    node, of_port, port = target.partition(":")
    if not node or (of_port and not port):
        raise BadValue(f"it names no {'port' if node else 'node'}", FORMS)
    _known_place(node, port, found.inventory)
    text = f"{node} port={'|'.join(_names(port))}" if port else node
    found.places.append(_aim(change, key, selector=parse_selector(text), port=port))


def _names(port: str) -> list[str]:
    """The ports of a range; a glob stays as it is."""
    try:
        return list(expand(port))
    except ValueError:
        return [port]


def _known_place(node: str, port: str, inventory: Inventory) -> None:
    """BadValue for a node that does not exist, or a port that none of the nodes has in a network."""
    selector = parse_selector(node)
    chosen = [one for one in inventory.nodes.values() if selector.selects(one)]
    if not chosen:
        near = did_you_mean(node, inventory.nodes)
        help = f"did you mean {near}?" if near and near != node else "see hosts.yaml for the names"
        raise BadValue(f"there is no node {node}", help)
    if port:
        _known_port(chosen, port)


def _known_port(chosen: list[Node], port: str) -> None:
    wanted = parse_selector(f"port={'|'.join(_names(port))}")
    every = {one.name: one for node in chosen for one in node.spec.ports.values()}
    fit = [one for one in every.values() if wanted.port(one)]
    if any(one.network for one in fit):
        return
    name = chosen[0].name if len(chosen) == 1 else f"{chosen[0].name} and {len(chosen) - 1} more"
    if fit:
        raise BadValue(f"port {port} of {name} is in no network", "give it a network, or name another port")
    near = did_you_mean(port, [one.name for one in every.values() if one.network])
    help = f"did you mean {near}?" if near else "name a port that is in a network"
    raise BadValue(f"there is no port {port} of {name}", help)


# -- intent and networks


def _top(change: WhatIf, key: str, found: Aims, intent: Intent) -> None:
    path = split_dotted(key)
    if path[0] != NETWORKS:
        found.top.append(_aim(change, key))
        return
    assert found.inventory is not None
    used = {port.network for node in found.inventory.nodes.values() for port in node.spec.ports.values()}
    names = [*intent.networks, *sorted(used - {"", *intent.networks})]
    name = path[1] if len(path) > 1 else ""
    if name not in names:
        near = did_you_mean(name, names) if name else ""
        help = f"did you mean {NETWORKS}.{near}?" if near else f"networks are {', '.join(names) or 'none'}"
        raise BadValue(f"there is no network {shown(name)}" if name else "it names no network", help)
    rest = key.removeprefix(f"{NETWORKS}.{name}").removeprefix(".")
    if rest or change.text is None:
        found.top.append(_aim(change, rest, network=name))
        return
    value = _value(change)
    if not isinstance(value, dict):
        raise BadValue(f"{key} is a map of settings", f"write {key}.KEY=VALUE, such as {key}.mtu.host=4200")
    layer = make_layer(value, lambda _path: change.position, (), f"--set {key}", dotted=False)
    found.top.append(Aim(change, (), layer, network=name))


def _aim(
    change: WhatIf,
    key: str,
    *,
    network: str = "",
    selector: Selector = EVERYWHERE,
    port: str = "",
) -> Aim:
    path = split_dotted(key) if key else ()
    if path and path[0] not in WISH_KEYS:
        near = did_you_mean(path[0], _FIRST)
        help = f"did you mean {near}?" if near else f"settings begin with {', '.join(sorted(WISH_KEYS))}"
        raise BadValue(f"there is no setting {shown(key)}", help)
    if change.text is None:
        return Aim(change, path, None, network, selector)
    value = _value(change)
    if port and path == ("mtu",) and not isinstance(value, dict):
        value = dict.fromkeys(("switch", "host", "svi"), value)  # as `mtu` of a port in the inventory
    _no_map_missing(key, path, value)
    layer = make_layer({key: value}, lambda _path: change.position, (), f"--set {key}")
    return Aim(change, path, layer, network, selector)


def _value(change: WhatIf) -> Any:
    word = change.position.file
    return parse_yaml(f"v: {change.text}\n".encode(), word).data["v"]


def _no_map_missing(key: str, path: Path, value: Any) -> None:
    """BadValue where a key that holds further keys is given a single value."""
    below = _below(path)
    if below and not isinstance(value, dict):
        forms = ", ".join(f"{key}.{one}" for one in below)
        raise BadValue(f"{key} holds further keys", f"write one of {forms}")


def _below(path: Path) -> tuple[str, ...]:
    """Keys below a path that has no short form of one value; () for values and for maps of free names."""
    model: Any = Wishes
    short = False
    for part in path:
        if isinstance(model, type) and issubclass(model, Model):
            item = model.model_fields.get(part)
            model, short = _plain(item.annotation, bool(item.metadata)) if item else (None, False)
        elif get_origin(model) is dict:
            model, short = _plain(get_args(model)[1], False)
        else:
            return ()
    if isinstance(model, type) and issubclass(model, Model) and not short:
        return tuple(model.model_fields)
    return ()


def _plain(kind: Any, short: bool) -> tuple[Any, bool]:
    """(the type without Optional and Annotated, whether a validator takes other forms of it)."""
    if get_origin(kind) is Annotated:
        return _plain(get_args(kind)[0], True)
    if get_origin(kind) in (Union, UnionType):
        models = [one for one in get_args(kind) if one is not type(None)]
        return _plain(models[0], short) if len(models) == 1 else (None, short)
    if isinstance(kind, type) and issubclass(kind, BaseModel) and "root" in kind.model_fields:
        return None, True
    return kind, short


# -- cables


def _cable(change: WhatIf, found: Aims) -> None:
    assert found.inventory is not None
    first, _, rest = change.key.partition(" - ")
    a = _end(first, found.inventory)
    second, key = _second(rest)
    b = _end(second, found.inventory)
    link = _link(a, b, found.inventory)
    if not key:
        if change.text is not None:
            raise BadValue("it names no key", "write 'NODE:PORT - NODE:PORT:KEY=VALUE'")
        links = tuple(one for one in found.inventory.links if one is not link)
        found.inventory = replace(found.inventory, links=links)
    elif key == "length_m":
        new = replace(link, length_m=_length(change))
        links = tuple(new if one is link else one for one in found.inventory.links)
        found.inventory = replace(found.inventory, links=links)
    elif key == "speed":
        found.inventory = _with_speed(found.inventory, (a, b), _speed(change))
    else:
        if key.partition(".")[0] not in WISH_KEYS:
            near = did_you_mean(key, (*_CABLE_KEYS, *WISH_KEYS))
            help = (
                f"did you mean {near}?" if near else "a cable has length_m and speed, its ends have settings"
            )
            raise BadValue(f"there is no setting {shown(key)}", help)
        for end in (a, b):
            selector = parse_selector(f"name={end.node} port={end.port}")
            found.places.append(_aim(change, key, selector=selector, port=end.port))


def _end(text: str, inventory: Inventory) -> End:
    """The end of "NODE:PORT" or "NODE PORT"."""
    match = re.fullmatch(r"\s*([^\s:]+)[\s:]+(\S+)\s*", text)
    if not match:
        raise BadValue(f"{shown(text.strip())} is not the end of a cable", "write NODE:PORT - NODE:PORT")
    node, port = match.groups()
    if node not in inventory.nodes:
        near = did_you_mean(node, inventory.nodes)
        raise BadValue(f"there is no node {node}", f"did you mean {near}?" if near else "see hosts.yaml")
    _known_port([inventory.nodes[node]], port)
    return End(node, port)


def _second(text: str) -> tuple[str, str]:
    """("NODE:PORT", KEY) of the text after " - "; the key may be missing."""
    head, colon, last = text.rpartition(":")
    if colon and re.search(r"[\s:]", head.strip()) and not last[:1].isdigit():
        return head, last
    return text, ""


def _link(a: End, b: End, inventory: Inventory) -> Link:
    for link in inventory.links:
        if {link.a, link.b} == {a, b}:
            return link
    peers = inventory.peers()
    told = [f"{end} is cabled to {peers[end][0]}" for end in (a, b) if end in peers]
    raise BadValue(f"there is no cable {a} - {b}", "; ".join(told) or "see cables.csv")


def _length(change: WhatIf) -> float | None:
    value = None if change.text is None else _value(change)
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and value > 0):
        return value
    raise BadValue(f"{shown(str(value))} is not a length", "write metres, such as length_m=300")


def _speed(change: WhatIf) -> int:
    if change.text is None:
        return 0
    return Speed.parse(_value(change)).gbps


def _with_speed(inventory: Inventory, ends: Iterable[End], gbps: int) -> Inventory:
    nodes = dict(inventory.nodes)
    for end in ends:
        node = nodes[end.node]
        port = replace(node.spec.ports[end.port], speed_gbps=gbps)
        nodes[end.node] = replace(node, spec=replace(node.spec, ports={**node.spec.ports, end.port: port}))
    return replace(inventory, nodes=nodes)


# -- networks


def without(fragment: Mapping[str, Any], path: Path) -> dict[str, Any] | None:
    """The map without what is at `path`; None when nothing is there."""
    if not path:
        return {}
    key, rest = path[0], path[1:]
    if key not in fragment:
        return None
    if not rest:
        return {name: value for name, value in fragment.items() if name != key}
    below = fragment[key]
    left = without(below, rest) if isinstance(below, Mapping) else None
    return None if left is None else {**fragment, key: left}


def of_network(aims: Iterable[Aim], name: str) -> Iterator[Aim]:
    """Those of intent and networks that hold for ports of a network, in their order."""
    return (aim for aim in aims if aim.network in ("", name))


__all__ = ["FORMS", "Aim", "Aims", "WhatIf", "of_network", "split", "understand", "without"]
