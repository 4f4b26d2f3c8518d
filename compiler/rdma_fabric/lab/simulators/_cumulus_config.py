"""Configuration trees of the Cumulus Linux simulator: set, unset, patch, diff and the printed forms.

A tree holds single interfaces (`swp1`, never `swp1-4`); the printed forms group them again, value by
value, the way `nv config show` does it (`swp1-22: {type: swp}` beside `eth0,swp19-22: {link: ...}`).
"""

from __future__ import annotations

import copy
import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import yaml

from . import _cumulus_schema as nvue
from ._cumulus_schema import Node, Refused, Target, Version, compress_interfaces, natural

Tree = dict[str, Any]
Path = tuple[str, ...]

SECRETS = ("hashed-password", "password")


def merged(base: Tree, over: Tree) -> Tree:
    """A new tree: `over` on top of `base`."""
    result = copy.deepcopy(base)
    for key, value in over.items():
        mine = result.get(key)
        if isinstance(value, dict) and isinstance(mine, dict):
            result[key] = merged(mine, value)
        else:
            result[key] = copy.deepcopy(value)
    return result


def at(tree: Tree, *path: str) -> Any:
    """The value at `path`, None where there is none."""
    here: Any = tree
    for key in path:
        if not isinstance(here, dict) or key not in here:
            return None
        here = here[key]
    return here


def branch(tree: Tree, *path: str) -> Tree:
    """The subtree at `path`, an empty one where there is none."""
    found = at(tree, *path)
    return found if isinstance(found, dict) else {}


def interface_type(name: str) -> str:
    """The type that NVUE infers from a name and writes beside every configured interface."""
    if "." in name:
        return "sub"
    for pattern, kind in (
        (r"swp\d+(s\d+)?", "swp"),
        (r"eth\d+", "eth"),
        (r"lo", "loopback"),
        (r"bond.*", "bond"),
        (r"vlan\d+.*", "svi"),
        (r"peerlink", "peerlink"),
    ):
        if re.fullmatch(pattern, name):
            return kind
    return ""


def set_path(tree: Tree, path: Path, value: nvue.Leaf | None, exclusive: bool, version: Version) -> None:
    """Put a leaf (or an empty object when `value` is None) and what NVUE adds by itself."""
    here = tree
    for key in path[:-1]:
        here = here.setdefault(key, {})
    if exclusive:
        here.clear()
    if value is None:
        here.setdefault(path[-1], {})
    else:
        here[path[-1]] = value
    _implied(tree, path, version)


def _implied(tree: Tree, path: Path, version: Version) -> None:
    if path[0] == "interface":
        port = tree["interface"][path[1]]
        kind = interface_type(path[1])
        if kind:
            port.setdefault("type", kind)
        if path[2:4] == ("qos", "pfc-watchdog"):
            # `nv set interface swp1 qos pfc-watchdog` is documented as enough to enable it.
            port["qos"]["pfc-watchdog"].setdefault("state", "enable")
    if path[:2] == ("qos", "roce") and version < (5, 15):
        # Documented as enough up to 5.14; nothing documents it for the renamed `state`.
        tree["qos"]["roce"].setdefault("enable", "on")


def unset_path(tree: Tree, path: Path) -> None:
    """Remove what is at `path` and every object that became empty by it; absent is no error."""
    parents: list[tuple[Tree, str]] = []
    here = tree
    for key in path[:-1]:
        if not isinstance(here.get(key), dict):
            return
        parents.append((here, key))
        here = here[key]
    if path[-1] not in here:
        return
    del here[path[-1]]
    for parent, key in reversed(parents):
        if parent[key]:
            return
        del parent[key]


def run_command(tree: Tree, verb: str, target: Target, version: Version) -> None:
    """Apply one `nv set` or `nv unset` to a tree."""
    for path in target.paths():
        if verb == "set":
            set_path(tree, path, target.value, target.exclusive, version)
        else:
            unset_path(tree, path)


def leaves(tree: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every leaf and empty object with its path, in natural order."""
    if not isinstance(tree, dict) or (not tree and path):
        yield path, tree
        return
    for key in sorted(tree, key=natural):
        yield from leaves(tree[key], (*path, key))


def grouped(tree: Tree) -> Tree:
    """The tree with interface keys as ranges and lists; a port may be spread over several keys."""
    if not isinstance(tree.get("interface"), dict):
        return {key: tree[key] for key in sorted(tree)}
    ports: dict[tuple[Path, str], list[str]] = {}
    for name in sorted(tree["interface"], key=natural):
        body = tree["interface"][name]
        found = list(leaves(body)) if body else [((), body)]
        for path, value in found:
            ports.setdefault((path, json.dumps(value)), []).append(name)
    groups: Tree = {}
    for (path, text), names in ports.items():
        here = groups.setdefault(compress_interfaces(names), {})
        _plant(groups, compress_interfaces(names), here, path, json.loads(text))
    rest = {key: value for key, value in tree.items() if key != "interface"}
    ordered = {key: groups[key] for key in sorted(groups, key=natural)}
    return dict(sorted({**rest, "interface": ordered}.items()))


def _plant(groups: Tree, name: str, here: Tree, path: Path, value: Any) -> None:
    if not path:
        groups[name] = value
        return
    for key in path[:-1]:
        here = here.setdefault(key, {})
    here[path[-1]] = value


def sorted_tree(tree: Any) -> Any:
    """Keys in natural order, all the way down."""
    if not isinstance(tree, dict):
        return tree
    return {key: sorted_tree(tree[key]) for key in sorted(tree, key=natural)}


def hidden(tree: Any) -> Any:
    """The tree with password hashes shown as `*`."""
    if not isinstance(tree, dict):
        return tree
    return {key: "*" if key in SECRETS and value else hidden(value) for key, value in tree.items()}


def difference(old: Tree, new: Tree, verbose: bool = False) -> tuple[Tree, Tree]:
    """(unset, set) that lead from `old` to `new`; unset leaves are None, or the old value (verbose)."""
    gone: Tree = {}
    come: Tree = {}
    for key in sorted({*old, *new}, key=natural):
        before, after = old.get(key), new.get(key)
        if key not in new:
            gone[key] = copy.deepcopy(before) if verbose else None
        elif key not in old:
            come[key] = copy.deepcopy(after)
        elif isinstance(before, dict) and isinstance(after, dict):
            removed, added = difference(before, after, verbose)
            if removed:
                gone[key] = removed
            if added:
                come[key] = added
        elif before != after:
            come[key] = copy.deepcopy(after)
            if verbose:
                gone[key] = before
    return gone, come


def commands(verb: str, tree: Tree) -> list[str]:
    """`nv set ...` (or unset) lines for a tree, interfaces grouped."""
    lines = []
    for path, value in leaves(grouped(tree)):
        words = [*path] if value in ({}, None) or verb == "unset" else [*path, str(value)]
        lines.append(f"nv {verb} {' '.join(shlex.quote(word) for word in words)}")
    return lines


_PLAIN = re.compile(r"[A-Za-z0-9_./$][\w./:@+$,-]*( [\w./:@+$,-]+)*")
_NUMBER = re.compile(r"[-+]?(\d[\d_]*)?(\.\d*)?|\d+(:\d+)+")


def _scalar(value: Any, key: bool = False) -> str:
    if value is None:
        return ""
    if isinstance(value, int | float):
        return str(value)
    text = str(value)
    plain = _PLAIN.fullmatch(text) and not _NUMBER.fullmatch(text) and not text.endswith(":")
    # NVUE prints on and off bare; other words that YAML 1.1 would change stay quoted.
    if (
        plain
        and ": " not in text
        and (key or text.lower() not in ("yes", "no", "true", "false", "null", "y", "n"))
    ):
        return text
    return "'" + text.replace("'", "''") + "'"


def yaml_lines(tree: Tree, indent: int) -> list[str]:
    """A mapping as NVUE prints it: two blanks per level, ids in quotes, `{}` for empty objects."""
    lines = []
    for key, value in tree.items():
        name = " " * indent + _scalar(key, key=True) + ":"
        if isinstance(value, dict) and value:
            lines.append(name)
            lines += yaml_lines(value, indent + 2)
        elif isinstance(value, dict):
            lines.append(name + " {}")
        else:
            lines.append(f"{name} {_scalar(value)}".rstrip())
    return lines


def yaml_operations(operations: list[tuple[str, Tree]]) -> str:
    """The list form of a configuration: `- header:`, `- unset:`, `- set:` items."""
    lines: list[str] = []
    for name, body in operations:
        if not body:
            lines.append(f"- {name}: {{}}")
            continue
        lines.append(f"- {name}:")
        lines += yaml_lines(body, 4)
    return "\n".join(lines)


def json_text(value: Any) -> str:
    """JSON as nv prints it: two blanks, keys sorted."""
    return json.dumps(value, indent=2, sort_keys=True)


def from_operations(data: object, version: Version) -> list[tuple[str, Tree]]:
    """Checked (verb, tree) pairs of a YAML or JSON document; interface ranges expanded."""
    if not isinstance(data, list) or not data:
        raise Refused("Error: The file must contain a list of operation objects")
    found: list[tuple[str, Tree]] = []
    for operation in data:
        if not isinstance(operation, dict) or not set(operation) <= {"header", "set", "unset"}:
            raise Refused("Error: The file must contain a list of operation objects")
        for verb in ("unset", "set"):
            if verb in operation:
                found.append((verb, _checked(nvue.schema(version), operation[verb], (), verb, version)))
    return found


def _checked(node: Node, data: object, path: Path, verb: str, version: Version) -> Tree:
    if data in (None, ""):
        return {}
    if not isinstance(data, dict):
        raise Refused(f"Error: At {'.'.join(path)}: {data!r} is not of type 'object'")
    tree: Tree = {}
    for key, value in data.items():
        if node.item is not None:
            for name in nvue.identifiers(node.ident, str(key), path[-1], version):
                child = _checked(node.item, value, (*path, name), verb, version)
                tree[name] = merged(branch(tree, name), child) if name in tree else child
            continue
        child_node = node.children.get(str(key))
        if child_node is None:
            where = ".".join(path) or "0"
            raise Refused(
                f"Error: At {where}: Additional properties are not allowed ('{key}' was unexpected)"
            )
        tree[str(key)] = _checked_member(child_node, value, (*path, str(key)), verb, version)
    return tree


def _checked_member(node: Node, value: object, path: Path, verb: str, version: Version) -> Any:
    if not node.value:
        return _checked(node, value, path, verb, version)
    if verb == "unset" and value in (None, ""):
        return {}
    if node.value.endswith("!") and isinstance(value, dict) and len(value) == 1:
        word = str(next(iter(value)))
        nvue.typed(node.value, word, path[-1])
        return {word: {}}
    if isinstance(value, dict | list):
        raise Refused(f"Error: At {'.'.join(path)}: {value!r} is not of type 'string'")
    if node.value.endswith("!"):
        return {str(nvue.typed(node.value, str(value), path[-1])): {}}
    return nvue.typed(node.value, str(value), path[-1])


def parse_yaml(text: str) -> object:
    """A YAML document with every scalar as written (`on` stays `on`, `'3'` stays a string)."""
    try:
        return yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise Refused(f"Error: Failed to parse YAML: {str(error).splitlines()[0]}") from error


def patched(tree: Tree, operations: list[tuple[str, Tree]], version: Version) -> Tree:
    """A copy with the operations applied: all unsets, then all sets (order inside a patch is not kept)."""
    result = copy.deepcopy(tree)
    removed = [path for verb, body in operations if verb == "unset" for path, _ in leaves(body)]
    added = [(path, value) for verb, body in operations if verb == "set" for path, value in leaves(body)]
    for path in removed:
        clash = next((new for new, _ in added if new[: len(path)] == path or path[: len(new)] == new), None)
        if clash is not None:
            raise Refused(f"Error: set and unset of the same object in one patch: {' '.join(clash)}")
    for path in removed:
        unset_path(result, path)
    for path, value in added:
        set_path(result, path, None if value == {} else value, False, version)
    return result
