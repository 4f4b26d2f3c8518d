"""Reads a source tree without importing it: who imports whom, who names a platform, what is printed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PACKAGE = "rdma_fabric"

OPEN = ("findings", "assets", "data")
"""May be imported by everybody, and import nothing but each other (tables also their reader, `source`)."""

LAYERS = (
    "source",
    "state_dir",
    "layers",
    "reach",
    "hardware",
    "thresholds",
    "state",
    "vitals",
    "settings",
    "codec",
    "intent",
    "inventory",
    "what_if",
    "resolve",
    "templating",
    "platforms",
    "checker",
    "render",
    "trace",
    "transport",
    "observe",
    "plan",
    "push",
    "drift",
    "admit",
    "health",
    "watch",
    "adopt",
    "capture",
    "views",
    "lab",
    "cli",
)
"""The data flows down this list: a module imports only from modules above it."""

VIEWS_MAY_CALL = ("findings", "assets", "data", "state", "codec", "inventory")
"""From other modules views take types only (names that begin with a capital); inventory spells ranges."""

LAB_MUST_NOT_REACH = ("platforms", "templating", "render")
"""Simulators that share our templates or parsers would share their mistakes."""

CLI_MAY_LOAD = ("", "findings", "cli")
"""What command modules import while they load; all else inside functions, so that --help is quick."""

PLATFORM_WORDS = frozenset(
    {
        "arista_eos",
        "eos",
        "cisco_nxos",
        "nxos",
        "sonic",
        "config_db",
        "cumulus",
        "nvue",
        "juniper_junos",
        "junos",
        "huawei_ce",
        "h3c_comware",
        "comware",
        "nvidia_onyx",
        "onyx",
        "dell_os10",
        "os10",
        "nvidia_ib",
        "linux",
        "opensm",
        "nic_mlx5",
        "mlx5",
        "nic_bnxt",
        "bnxt",
        "nic_irdma",
        "irdma",
        "nic_generic",
    }
)
MAY_NAME_PLATFORMS = ("platforms", "data", "lab/simulators", "lab/hosttools")
MAY_SAY_OPENSM = ("intent", "lab")  # who manages a subnet; the lab's hosts run the real program
MAY_SAY_LINUX = ("lab",)  # its hosts are Linux sandboxes with simulated NICs


@dataclass(frozen=True, slots=True)
class Import:
    """One import of a module of ours; `names` are those of `from module import names`."""

    module: str
    names: tuple[str, ...]
    line: int
    while_loading: bool


@dataclass(frozen=True)
class Source:
    """One parsed file of the package."""

    path: str  # relative to the package folder
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text, self.path)

    @property
    def layer(self) -> str:
        """First part of the module's name inside the package; "" for the package itself."""
        first = Path(self.path).parts[0].removesuffix(".py")
        return {"__init__": "", "__main__": "cli"}.get(first, first)

    def within(self, folders: tuple[str, ...]) -> bool:
        """True for a file of one of these folders or modules."""
        return any(self.path == f"{folder}.py" or self.path.startswith(f"{folder}/") for folder in folders)

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """Imports of our own modules, also those inside functions and those by a dotted string."""
        return tuple(self._imports(self.tree, while_loading=True))

    def _imports(self, node: ast.AST, while_loading: bool) -> Iterator[Import]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or _only_for_types(node):
            while_loading = False
        for module, names in self._targets(node):
            yield Import(module, names, getattr(node, "lineno", 0), while_loading)
        for child in ast.iter_child_nodes(node):
            yield from self._imports(child, while_loading)

    def _targets(self, node: ast.AST) -> Iterator[tuple[str, tuple[str, ...]]]:
        """What one node imports, as (layer, names)."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _ours(alias.name)
        elif isinstance(node, ast.ImportFrom):
            names = tuple(alias.name for alias in node.names)
            base = self._absolute(node)
            if base == PACKAGE:
                yield from ((name, ()) for name in names if not name.startswith("__"))
            else:
                yield from ((layer, names) for layer, _ in _ours(base))
        elif isinstance(node, ast.Constant) and re.fullmatch(rf"{PACKAGE}(\.\w+)+", str(node.value)):
            yield from _ours(str(node.value))

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = [PACKAGE, *Path(self.path).parts[:-1]]
        parts = parts[: len(parts) - node.level + 1]
        return ".".join([*parts, node.module] if node.module else parts)


def _ours(dotted: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    parts = dotted.split(".")
    if parts[0] == PACKAGE and len(parts) > 1:
        yield parts[1], ()


def _only_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def read_package(folder: Path) -> list[Source]:
    """All Python files of the package in `folder`, sorted."""
    files = sorted(folder.rglob("*.py"))
    return [Source(file.relative_to(folder).as_posix(), file.read_text("utf-8")) for file in files]


def misplaced(sources: list[Source]) -> list[str]:
    """Files that the list of layers does not know."""
    known = {"", *OPEN, *LAYERS}
    return [f"{s.path}: add {s.layer!r} to the list of layers" for s in sources if s.layer not in known]


def upward_imports(sources: list[Source]) -> list[str]:
    """Imports against the order of the layers."""
    rank = {layer: position for position, layer in enumerate(LAYERS)}

    def allowed(importer: str, imported: str) -> bool:
        if imported in (importer, *OPEN):
            return True
        if importer in OPEN:
            return (importer, imported) == ("data", "source")
        return importer != "" and rank.get(imported, len(rank)) < rank.get(importer, -1)

    return [
        f"{s.path}:{i.line}: {s.layer or PACKAGE} may not import {i.module}"
        for s in sources
        for i in s.imports
        if not allowed(s.layer, i.module)
    ]


def calls_from_views(sources: list[Source]) -> list[str]:
    """What views import besides result types."""
    return [
        f"{s.path}:{i.line}: views take result types only, not {i.module} {' '.join(i.names)}"
        for s in sources
        if s.layer == "views"
        for i in s.imports
        if i.module not in ("views", *VIEWS_MAY_CALL)
        and not (i.names and all(name[0].isupper() for name in i.names))
    ]


def reach_of_lab(sources: list[Source]) -> list[str]:
    """Ways from the lab to platforms and templates, through any number of imports."""
    graph: dict[str, set[str]] = {}
    for source in sources:
        graph.setdefault(source.layer, set()).update(i.module for i in source.imports)
    found = [
        " -> ".join(way) for target in LAB_MUST_NOT_REACH if (way := _way(graph, "lab", target)) is not None
    ]
    for source in sources:
        if source.layer == "lab":
            found += [f"{source.path}:{line}: reads templates" for line in _template_readers(source.tree)]
    return found


def _way(graph: Mapping[str, set[str]], start: str, target: str) -> list[str] | None:
    ways = [[start]]
    seen = {start}
    while ways:
        way = ways.pop(0)
        if way[-1] == target:
            return way
        for following in sorted(graph.get(way[-1], set()) - seen):
            seen.add(following)
            ways.append([*way, following])
    return None


def _template_readers(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            if "templates" in names or any(name.split(".")[0] == "jinja2" for name in names):
                yield node.lineno
        elif (isinstance(node, ast.Attribute) and node.attr == "templates") or (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and re.match(r"templates(/|$)", node.value)
        ):
            yield node.lineno


def eager_cli(sources: list[Source]) -> list[str]:
    """Modules that the command line loads before a command is chosen."""
    return [
        f"{s.path}:{i.line}: import {i.module} inside the function that needs it"
        for s in sources
        if s.layer == "cli"
        for i in s.imports
        if i.while_loading and i.module not in CLI_MAY_LOAD
    ]


def platform_names(sources: list[Source], platforms: frozenset[str] = frozenset()) -> list[str]:
    """Platform names in the core: in code, strings and docstrings; a comment may cite a vendor's page."""
    words = sorted(PLATFORM_WORDS | platforms, key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(words)})(?!\w)")
    found = []
    for source in sources:
        if source.within(MAY_NAME_PLATFORMS):
            continue
        exempt = {"linux", "mlx5", "bnxt", "irdma"} if source.within(MAY_SAY_LINUX) else set()
        exempt |= {"opensm"} if source.within(MAY_SAY_OPENSM) else set()
        for line, text in _words_of(source.tree):
            named = set(pattern.findall(text)) - exempt
            found += [f"{source.path}:{line}: names the platform {name}" for name in sorted(named)]
    return found


def _words_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Identifiers and string constants with their lines."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield line, node.value
            continue
        for name in ("id", "attr", "name", "arg", "module", "asname"):
            if isinstance(value := getattr(node, name, None), str):
                # A module path: each part is a word.
                yield line, value.replace(".", " ")


def prints(sources: list[Source]) -> list[str]:
    """Calls of print outside views."""
    return [
        f"{s.path}:{node.lineno}: print belongs to views"
        for s in sources
        if s.layer != "views"
        for node in ast.walk(s.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
