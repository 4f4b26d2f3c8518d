"""SONiC's own YANG models as a judge of a config_db, through Debian's yanglint.

The models lie outside the repository (`shared/reference/yang/sonic`), so every user of this module
asks `missing()` first and skips with the reason that it gives.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias, get_args
from xml.etree import ElementTree

from tests.judges.json_patch import Json

Branch: TypeAlias = Literal["202305", "202411", "master"]
ConfigDb: TypeAlias = Mapping[str, Mapping[str, Mapping[str, "str | Sequence[str]"]]]

BRANCHES: tuple[Branch, ...] = get_args(Branch)
SHARED = Path(__file__).resolve().parents[3] / "shared"
MODELS = SHARED / "reference" / "yang" / "sonic"

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{};]|[^\s{};"]+')
_YIN = "{urn:ietf:params:xml:ns:yang:yin:1}"
_SMALL_INTEGERS = frozenset({"int8", "int16", "int32", "uint8", "uint16", "uint32"})
# redis cannot hold an empty hash: a row without fields is stored as this one pair (sonic-cfggen drops it).
_PLACEHOLDER = {"NULL": "NULL"}
# ConfigDB holds these leaf-lists as one comma-separated string (sonic.md section 7, rule 4; the table
# LEAF_LIST_WITH_STRING_VALUE_DICT of sonic-yang-mgmt adds adv_interface_types).
_COMMA_LISTS = frozenset(
    {
        ("BUFFER_PORT_INGRESS_PROFILE_LIST", "profile_list"),
        ("BUFFER_PORT_EGRESS_PROFILE_LIST", "profile_list"),
        ("PORT", "adv_speeds"),
        ("PORT", "adv_interface_types"),
    }
)


class ModelError(Exception):
    """The models or yanglint itself cannot be used as expected: not a verdict about the data."""


class TranslationError(Exception):
    """The config_db has rows or fields that the models do not know; `.errors` lists all of them."""

    def __init__(self, errors: Iterable[str]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(self.errors))


def missing() -> str | None:
    """Return why this judge cannot run here, or None when it can."""
    if shutil.which("yanglint") is None:
        return "yanglint is not installed (Debian package libyang2-tools)"
    if not MODELS.is_dir():
        return f"SONiC's YANG models are absent ({MODELS})"
    return None


# --- the models -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Statement:
    """One YANG statement; `argument` has no quotes."""

    keyword: str
    argument: str
    body: tuple[_Statement, ...]

    def all(self, *keywords: str) -> tuple[_Statement, ...]:
        """Return the direct sub-statements with one of these keywords."""
        return tuple(child for child in self.body if child.keyword in keywords)


@dataclass(frozen=True, slots=True)
class _Leaf:
    """`types` holds the built-in types that a value may have (unions and leafrefs resolved)."""

    types: tuple[str, ...]
    many: bool


@dataclass(frozen=True, slots=True)
class _Row:
    """A list or a container of a table; `pairs` is the inner list of a map table."""

    name: str
    keys: tuple[str, ...]
    leaves: Mapping[str, _Leaf]
    pairs: _Row | None


@dataclass(frozen=True, slots=True)
class _Table:
    """A ConfigDB table: its module, its lists, and its rows of a fixed name."""

    module: str
    name: str
    lists: tuple[_Row, ...]
    fixed: Mapping[str, _Row]


def _statements(tokens: Iterator[str]) -> Iterator[_Statement]:
    """Yield statements up to the end of the tokens or of the block."""
    words: list[str] = []
    for token in tokens:
        if token == "}":
            return
        if token not in ("{", ";"):
            words.append(token.strip('"'))
            continue
        body = tuple(_statements(tokens)) if token == "{" else ()
        yield _Statement(words[0], " ".join(words[1:]), body)
        words = []


def _base_types(statement: _Statement) -> Iterator[str]:
    for kind in statement.all("type"):
        if kind.argument in ("union", "leafref"):
            yield from _base_types(kind)
        else:
            yield kind.argument


def _row(entry: _Statement, keys: Mapping[str, tuple[str, ...]]) -> _Row:
    if entry.all("choice", "anydata", "anyxml"):
        raise ModelError(f"{entry.argument} holds a kind of node that the translation does not know")
    leaves = {
        leaf.argument: _Leaf(tuple(_base_types(leaf)), leaf.keyword == "leaf-list")
        for leaf in entry.all("leaf", "leaf-list")
    }
    inner = [_row(child, keys) for child in entry.all("list")]
    if len(inner) > 1:
        raise ModelError(f"{entry.argument} holds more than one list")
    own_keys = keys[entry.argument] if entry.keyword == "list" else ()
    return _Row(entry.argument, own_keys, leaves, inner[0] if inner else None)


def _folder(branch: Branch) -> Path:
    return MODELS if branch == "master" else MODELS / branch


def _schema_arguments(branch: Branch) -> list[str]:
    """Return yanglint's arguments that load every model of the branch, all implemented, no other folder.

    Without `-ii` a module that others only import is not implemented, and libyang then skips every
    `must` and `when` that points into it.
    """
    folder = _folder(branch)
    models = sorted(str(path) for path in folder.glob("*.yang"))
    if not models:
        raise ModelError(f"no YANG models in {folder}")
    return ["yanglint", "-ii", "-D", "-p", str(folder), *models]


def _print_models(branch: Branch, form: Literal["info", "yin"]) -> str:
    command = [*_schema_arguments(branch), "-f", form]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    # A warning here is a skipped constraint: a judge that looks away is no judge.
    if answer.returncode or answer.stderr:
        raise ModelError(f"yanglint does not load the models of {branch}: {answer.stderr.strip()}")
    return answer.stdout


def _list_keys(yin: str) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return module -> list -> keys: libyang 2.1.30 garbles them in its compiled ("info") output only."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for document in yin.split("<?xml")[1:]:
        module = ElementTree.fromstring("<?xml" + document)
        lists = module.iter(_YIN + "list")
        found[module.attrib["name"]] = {
            entry.attrib["name"]: tuple(key.attrib["value"].split())
            for entry in lists
            for key in entry.findall(_YIN + "key")
        }
    return found


@cache
def _tables(branch: Branch) -> Mapping[str, _Table]:
    """Return every table of the branch's models by name, read from libyang's compiled schema."""
    keys = _list_keys(_print_models(branch, "yin"))
    tables: dict[str, _Table] = {}
    for module in _statements(iter(_TOKEN.findall(_print_models(branch, "info")))):
        for table in _module_tables(module, keys[module.argument]):
            if table.name in tables:
                raise ModelError(f"{table.name} is in {tables[table.name].module} and {table.module}")
            tables[table.name] = table
    return tables


def _module_tables(module: _Statement, keys: Mapping[str, tuple[str, ...]]) -> Iterator[_Table]:
    for top in module.all("container"):
        for table in top.all("container"):
            lists = tuple(_row(child, keys) for child in table.all("list"))
            fixed = {child.argument: _row(child, keys) for child in table.all("container")}
            yield _Table(module.argument, table.argument, lists, fixed)


def tables(branch: Branch) -> frozenset[str]:
    """Return the names of all tables that the models of the branch know."""
    return frozenset(_tables(branch))


def unmodelled(config_db: ConfigDb, branch: Branch) -> list[str]:
    """Return the tables of the config_db that have no model on the branch: the judge does not see them."""
    return sorted(name for name in config_db if name not in _tables(branch))


# --- ConfigDB -> YANG JSON ------------------------------------------------------------------------


def translate(config_db: ConfigDb, branch: Branch) -> dict[str, Json]:
    """Return the config_db as YANG JSON; tables without a model are left out.

    Raises TranslationError when a row or field is not in the models.
    """
    tree, errors = _translate(config_db, branch)
    if errors:
        raise TranslationError(errors)
    return tree


def _translate(config_db: ConfigDb, branch: Branch) -> tuple[dict[str, Json], list[str]]:
    modules: dict[str, dict[str, Json]] = {}
    errors: list[str] = []
    for name, rows in config_db.items():
        table = _tables(branch).get(name)
        if table is not None:
            modules.setdefault(table.module, {})[name] = _table(table, rows, errors)
    # The top container has the name of its module, without exception in these models.
    return {f"{module}:{module}": dict(body) for module, body in modules.items()}, errors


def _table(
    table: _Table, rows: Mapping[str, Mapping[str, str | Sequence[str]]], errors: list[str]
) -> dict[str, Json]:
    lists: dict[str, list[Json]] = {}
    body: dict[str, Json] = {}
    for key, fields in rows.items():
        place = f"{table.name}|{key}"
        if key in table.fixed:
            body[key] = _fields(table.name, table.fixed[key], fields, place, errors)
            continue
        parts = key.split("|")
        fitting = [row for row in table.lists if len(row.keys) == len(parts)]
        if len(fitting) != 1:
            errors.append(f"{place}: {len(fitting)} lists of {table.module} have {len(parts)} keys")
            continue
        row = fitting[0]
        entry: dict[str, Json] = {
            name: _scalar(row.leaves[name], part) for name, part in zip(row.keys, parts, strict=True)
        }
        entry.update(_fields(table.name, row, fields, place, errors))
        lists.setdefault(row.name, []).append(entry)
    return {**body, **lists}


def _fields(
    table: str, row: _Row, fields: Mapping[str, str | Sequence[str]], place: str, errors: list[str]
) -> dict[str, Json]:
    if fields == _PLACEHOLDER:
        return {}
    if row.pairs is not None:
        return {row.pairs.name: [_pair(row.pairs, key, value) for key, value in fields.items()]}
    body: dict[str, Json] = {}
    for name, value in fields.items():
        leaf = row.leaves.get(name)
        if leaf is None or name in row.keys:
            errors.append(f"{place}: field {name!r} is not in {row.name}")
        elif leaf.many:
            values = value.split(",") if isinstance(value, str) and (table, name) in _COMMA_LISTS else value
            if isinstance(values, str):
                errors.append(f"{place}: field {name!r} must be a list")
            else:
                body[name] = [_scalar(leaf, one) for one in values]
        elif isinstance(value, str):
            body[name] = _scalar(leaf, value)
        else:
            errors.append(f"{place}: field {name!r} must be a string, not {value!r}")
    return body


def _pair(row: _Row, key: str, value: str | Sequence[str]) -> Json:
    """Return one line of a map table: a key leaf and the one other leaf."""
    (key_leaf,) = row.keys
    (value_leaf,) = (name for name in row.leaves if name != key_leaf)
    text = value if isinstance(value, str) else json.dumps(list(value))
    return {key_leaf: _scalar(row.leaves[key_leaf], key), value_leaf: _scalar(row.leaves[value_leaf], text)}


def _scalar(leaf: _Leaf, text: str) -> Json:
    """Return the JSON value of a ConfigDB string; text that fits no type stays text and is refused later."""
    if _SMALL_INTEGERS.intersection(leaf.types) and re.fullmatch(r"-?(0|[1-9][0-9]*)", text):
        return int(text)
    if leaf.types == ("boolean",) and text in ("true", "false"):
        return text == "true"
    return text


# --- the verdict ----------------------------------------------------------------------------------


def judge(config_db: ConfigDb, branch: Branch) -> list[str]:
    """Return what SONiC's models refuse in the config_db (empty = valid).

    libyang stops at the first wrong value, so one message does not mean one fault.
    """
    tree, errors = _translate(config_db, branch)
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as data:
        json.dump(tree, data)
        data.flush()
        # -Q hides libyang's notes about its own memory; skipped constraints were looked for at load time.
        command = [*_schema_arguments(branch), "-Q", "-t", "config", data.name]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in answer.stderr.splitlines() if line and not line.startswith("YANGLINT[")]
    refusals = [line.removeprefix("libyang err : ") for line in lines]
    if answer.returncode and not refusals:
        raise ModelError(f"yanglint ended with {answer.returncode}: {answer.stderr.strip() or 'no message'}")
    return errors + refusals
