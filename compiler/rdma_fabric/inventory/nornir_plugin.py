"""nornir both ways: our nodes as a nornir inventory, and other inventory plug-ins read into our types.

DIR/nornir.yaml names the other plug-in as nornir's own configuration does:

    inventory: {plugin: NetBoxInventory2, options: {nb_url: "https://netbox.example"}}
    platforms: {switch-os: ours}     # the plug-in's word: ours
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from rdma_fabric.findings import InputError, Position, input_finding
from rdma_fabric.inventory.load import _Loader
from rdma_fabric.inventory.models import NodeData
from rdma_fabric.inventory.types import Inventory
from rdma_fabric.source import Document, load_yaml, validate

if TYPE_CHECKING:
    from nornir.core.inventory import Group, Host
    from nornir.core.inventory import Inventory as NornirInventory

NAME: Final = "rdma_fabric"
"""Our name among nornir's plug-ins; nornir keeps all kinds in one register, so nothing else bears it."""
_SECRET_KEYS: Final = frozenset(("password", "secret", "passphrase", "token"))
_DEPTH: Final = 20


@dataclass(frozen=True, slots=True)
class Row:
    """One node for nornir: where it is reached, and facts to filter by."""

    name: str
    hostname: str
    port: int = 22
    username: str = ""
    platform: str = ""
    groups: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)


def rows(inventory: Inventory, names: Iterable[str] | None = None) -> tuple[Row, ...]:
    """Nodes of our inventory as rows, in the order of `names` (all when None)."""
    chosen = inventory.nodes if names is None else names
    found = []
    for name in chosen:
        node = inventory.nodes[name]
        spec = node.spec
        data = {"role": spec.role, "state": spec.state, "model": spec.model, "version": spec.version}
        found.append(
            Row(name, node.hostname, spec.ssh_port or 22, spec.username, spec.platform, spec.groups, data)
        )
    return tuple(found)


class FabricInventory:
    """nornir's inventory plug-in `rdma_fabric`: rows, or an inventory of ours that is loaded."""

    def __init__(self, rows: Iterable[Row] = (), inventory: Inventory | None = None) -> None:
        self._rows = tuple(rows)
        self._inventory = inventory

    def load(self) -> NornirInventory:
        """All nodes as nornir hosts; no passwords."""
        from nornir.core.inventory import Defaults, Group, Groups, Host, Hosts, ParentGroups
        from nornir.core.inventory import Inventory as NornirInventory

        chosen = self._rows or (rows(self._inventory) if self._inventory else ())
        defaults = Defaults(None, None, None, None, None, None, None)
        groups = Groups({name: Group(name) for row in chosen for name in row.groups})
        hosts = Hosts()
        for row in chosen:
            parents = ParentGroups([groups[name] for name in row.groups])
            hosts[row.name] = Host(
                name=row.name,
                hostname=row.hostname,
                port=row.port,
                username=row.username or None,
                platform=row.platform or None,
                groups=parents,
                data=dict(row.data),
                defaults=defaults,
            )
        return NornirInventory(hosts, groups, defaults)


def register() -> None:
    """Make the plug-in known to nornir in this process; harmless when it is."""
    from nornir.core.plugins.inventory import InventoryPluginRegister

    InventoryPluginRegister.register(NAME, FabricInventory)


# -- other plug-ins


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PluginConfig(_Model):
    """A nornir inventory plug-in and its options."""

    plugin: str
    options: dict[str, Any] = Field(default_factory=dict)
    transform_function: str = ""
    transform_function_options: dict[str, Any] = Field(default_factory=dict)


class NornirConfig(_Model):
    """nornir.yaml."""

    inventory: PluginConfig
    platforms: dict[str, str] = Field(default_factory=dict)
    """Names of platforms as the plug-in gives them -> ours."""


def read_nornir(config_path: Path, platforms: Collection[str]) -> Inventory:
    """The nodes of the plug-in that nornir.yaml names, with cables.csv beside it.

    `platforms` are our base keys. Values are checked by the models of our own files; InputError holds
    every finding, without lines, since the plug-in does not tell where a value was written.
    """
    config = validate(NornirConfig, load_yaml(config_path))
    found = _load(config, config_path)
    label = f"{config_path} ({config.inventory.plugin})"
    documents = {
        "hosts.yaml": {
            name: _entry(host, config.platforms, found.groups) for name, host in found.hosts.items()
        },
        "groups.yaml": {
            name: _entry(group, config.platforms, found.groups) for name, group in found.groups.items()
        },
        "defaults.yaml": _entry(found.defaults, config.platforms, found.groups),
    }
    loader = _NornirLoader(config_path.parent, tuple(sorted(platforms)))
    loader.documents = {name: _Nowhere(data, 0, label, ()) for name, data in documents.items()}
    return loader.run()


class _Nowhere(Document):
    """Values of which only the source as a whole is known."""

    def position(self, path: object) -> Position:
        """The source."""
        return Position(self.path, 0, 0)

    def key_position(self, path: object) -> Position:
        """The source."""
        return Position(self.path, 0, 0)


class _NornirLoader(_Loader):
    """Our loader over documents that a plug-in gave."""

    documents: Mapping[str, Document] = {}

    def _file(self, name: str, required: bool) -> Document | None:
        return self.documents[name]


def _load(config: NornirConfig, path: Path) -> NornirInventory:
    """Run the plug-in; whatever goes wrong inside it is a finding."""
    from nornir.core.exceptions import PluginNotRegistered
    from nornir.core.plugins.inventory import InventoryPluginRegister, TransformFunctionRegister

    plugin = config.inventory
    place = Position(str(path), 0, 0)
    try:
        InventoryPluginRegister.auto_register()
        found = InventoryPluginRegister.get_plugin(plugin.plugin)(**plugin.options).load()
        if plugin.transform_function:
            TransformFunctionRegister.auto_register()
            transform = TransformFunctionRegister.get_plugin(plugin.transform_function)
            for host in found.hosts.values():
                transform(host, **plugin.transform_function_options)
    except PluginNotRegistered as error:
        message = f"nornir has no plug-in {error}" if "plugin" not in str(error) else str(error)
        help = "install the package that provides it, or correct the name"
        raise InputError([input_finding("reference", message, place, help)]) from error
    except Exception as error:
        message = f"the plug-in {plugin.plugin} failed: {type(error).__name__}: {error}"
        help = "correct its options in nornir.yaml; they are described by the plug-in"
        raise InputError([input_finding("file", message, place, help)]) from error
    return found


def _entry(source: Host | Group | Any, platforms: Mapping[str, str], groups: Mapping[str, Any]) -> Any:
    """An entry of our files from a nornir host, group or defaults; keys that say nothing are left out."""
    platform = source.platform
    entry = {
        "hostname": source.hostname,
        "port": source.port,
        "username": source.username,
        "platform": platforms.get(platform, platform) if platform else None,
        "groups": [group.name for group in getattr(source, "groups", ())],
        "data": _data(source.data),
        "connection_options": {
            name: _public(_plain(options.dict())) for name, options in source.connection_options.items()
        },
    }
    return {key: value for key, value in entry.items() if value not in (None, [], {})}


def _data(data: Mapping[str, Any]) -> dict[str, Any]:
    """The keys that are ours (also from custom fields); everything else goes under `vars`."""
    plain = _plain(data)
    custom = plain.get("custom_fields")
    found: dict[str, Any] = {}
    for name in NodeData.model_fields:
        for origin in (custom if isinstance(custom, dict) else {}, plain):
            value = _value(name, origin.get(name))
            if value is not None:
                found[name] = value
    rest = {key: value for key, value in plain.items() if key not in NodeData.model_fields}
    return {**found, "vars": {**rest, **found["vars"]}} if "vars" in found else found | _some("vars", rest)


def _some(name: str, value: Any) -> dict[str, Any]:
    return {name: value} if value else {}


def _value(name: str, value: Any) -> Any:
    """A fact that is given as an object with a short name (NetBox: slug, value or name) as that name."""
    if name in ("role", "model", "rack", "state") and isinstance(value, dict):
        return next((value[key] for key in ("slug", "value", "name") if value.get(key)), None)
    return value


def _plain(value: Any, depth: int = 0) -> Any:
    """Plain data of whatever a plug-in hands out."""
    if depth > _DEPTH:
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(one, depth + 1) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one, depth + 1) for one in value]
    if value is None or isinstance(value, bool):
        return value
    for kind in (int, float, str):  # ruamel gives subclasses of them
        if isinstance(value, kind):
            return kind(value)
    return str(value)


def _public(value: Any) -> Any:
    """Without what logs in, and without what says nothing: credentials come from elsewhere."""
    if isinstance(value, dict):
        return {
            key: _public(one)
            for key, one in value.items()
            if key.lower() not in _SECRET_KEYS and one is not None
        }
    return value
