"""A pydantic model over a part of a document: the model's value, or findings with positions."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from rdma_fabric.findings import BadValue, Finding, InputError, did_you_mean, input_finding, shown
from rdma_fabric.source.text import FINDINGS_LIMIT, line_excerpt
from rdma_fabric.source.yaml_file import DataPath, Document

if TYPE_CHECKING:
    from pydantic import ValidationError

T = TypeVar("T")

# pydantic's error type -> what was wanted; {names} are in the error's context.
# https://docs.pydantic.dev/latest/errors/validation_errors/
_NUMBER, _WHOLE, _LIST, _MAP, _DATE = (
    "a number", "a whole number", "a list", "a map (`key: value`)", "a date such as 2027-01-31",
)  # fmt: skip
_WANTED: dict[str, str] = {
    "int_type": _WHOLE, "int_parsing": _WHOLE, "int_from_float": _WHOLE,
    "int_parsing_size": "a smaller number",
    "float_type": _NUMBER, "float_parsing": _NUMBER, "finite_number": _NUMBER,
    "bool_type": "true or false", "bool_parsing": "true or false", "string_type": "text",
    "list_type": _LIST, "tuple_type": _LIST, "set_type": _LIST, "frozen_set_type": _LIST,
    "iterable_type": _LIST,
    "dict_type": _MAP, "mapping_type": _MAP, "model_type": _MAP, "model_attributes_type": _MAP,
    "dataclass_type": _MAP, "none_required": "null",
    "date_type": _DATE, "date_parsing": _DATE, "date_from_datetime_parsing": _DATE,
    "greater_than": "more than {gt}", "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}", "less_than_equal": "at most {le}",
    "multiple_of": "a multiple of {multiple_of}",
    "literal_error": "{expected}", "enum": "{expected}",
    "string_too_short": "at least {min_length} characters",
    "string_too_long": "at most {max_length} characters",
    "string_pattern_mismatch": "text of the form {pattern}",
    "too_short": "at least {min_length} items",
    "too_long": "at most {max_length} items",
}  # fmt: skip

_NOTHING = object()


def validate(model: type[T], document: Document, prefix: DataPath = (), *, data: Any = _NOTHING) -> T:
    """The value of `model` for the data at `prefix`; InputError with a finding per mistake.

    `data` replaces the data at `prefix`, where a stage before has expanded it; positions stay the document's.
    """
    from pydantic import ValidationError

    if data is _NOTHING:
        data = _get(document.data, prefix)
    try:
        value: T = _adapter(cast("Any", model)).validate_python(data)
    except ValidationError as error:
        raise InputError(_findings(error, model, data, document, prefix)) from None
    return value


@lru_cache(maxsize=256)
def _adapter(model: Any) -> Any:
    """pydantic's validator for any type; made once, since one inventory validates thousands of nodes."""
    from pydantic import TypeAdapter

    return TypeAdapter(model)


def _get(data: Any, path: DataPath) -> Any:
    for step in path:
        data = data[step]
    return data


def _findings(
    error: ValidationError, model: Any, data: Any, document: Document, prefix: DataPath
) -> Iterator[Finding]:
    for number, one in enumerate(error.errors(include_url=False)):
        if number == FINDINGS_LIMIT:
            message = f"there are more than {FINDINGS_LIMIT} mistakes here; the rest is not told"
            yield _finding(document, "schema", prefix, message, "mend those above first")
            return
        path = prefix + _existing(data, one["loc"])
        if one["type"] == "extra_forbidden":
            yield _unknown_key(document, path, _keys_at(model, one["loc"][:-1]))
        elif one["type"] == "missing":
            yield _missing(document, path)
        else:
            yield _wrong(document, path, one)


def _existing(data: Any, loc: DataPath) -> DataPath:
    """`loc` without the steps that pydantic adds (union tags, [key]): all must exist, except the last one."""
    path: list[str | int] = []
    for index, step in enumerate(loc):
        if isinstance(data, list):
            inside = isinstance(step, int) and step < len(data)
        else:
            inside = isinstance(data, Mapping) and step in data
        if inside:
            data = data[step]
            path.append(step)
        elif index == len(loc) - 1 and isinstance(data, Mapping) and step != "[key]":
            path.append(step)
    return tuple(path)


def _name(path: DataPath) -> str:
    """The path as people write it: classes.roce.dscp[0]."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    # A key may hold anything that quotes can hold; nothing of that may reach a terminal.
    return text.removeprefix(".") if text.isprintable() else shown(text.removeprefix("."))


def _finding(
    document: Document,
    name: str,
    path: DataPath,
    message: str,
    help: str,
    *,
    key: bool = False,
    found: str = "",
    wanted: str = "",
) -> Finding:
    """The finding at the key or at the value of `path`."""
    position = document.key_position(path) if key else document.position(path)
    excerpt = line_excerpt(document.lines, position)
    return input_finding(
        name, message, position, help, setting=_name(path), found=found, wanted=wanted, excerpt=excerpt
    )


def _unknown_key(document: Document, path: DataPath, known: list[str]) -> Finding:
    key = str(path[-1]) if path else ""
    close = did_you_mean(key, known)
    help = f"did you mean {close}?" if close else f"remove it; known here: {', '.join(sorted(known))}"
    where = _name(path[:-1]) or "the top level"
    message = f"{where} has no key {shown(key)}"
    return _finding(document, "unknown-key", path, message, help, key=True, found=key, wanted=close)


def _missing(document: Document, path: DataPath) -> Finding:
    key, where = str(path[-1]) if path else "", _name(path[:-1])
    help = f"add `{key}: ...` to {where}" if where else f"add `{key}: ...`"
    return _finding(document, "schema", path, f"{_name(path)} is missing", help, key=True, wanted=key)


def _wrong(document: Document, path: DataPath, error: Any) -> Finding:
    """The finding for a value that does not fit."""
    setting, value, context = _name(path) or "the file", error["input"], error.get("ctx", {})
    found, cause = _found(value), context.get("error")
    if isinstance(cause, BadValue):
        return _finding(document, "schema", path, f"{setting}: {cause.text}", cause.help, found=found)
    wanted = _WANTED.get(error["type"], "") if not isinstance(cause, Exception) else ""
    if not wanted:
        text = str(cause) if cause is not None else error["msg"]
        return _finding(document, "schema", path, f"{setting}: {text}", "change this value", found=found)
    wanted = wanted.format(**context).replace("'", "")
    help = _help(document, path, value, error["type"], wanted)
    message = f"{setting} is {found}, wanted {wanted}"
    return _finding(document, "schema", path, message, help, found=found, wanted=wanted)


def _found(value: object) -> str:
    """A value in the words of YAML, for a message."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, list | tuple | set | frozenset):
        return "a list" if value else "an empty list"
    return ("a map" if value else "an empty map") if isinstance(value, Mapping) else str(value)


def _help(document: Document, path: DataPath, value: object, kind: str, wanted: str) -> str:
    """What to write instead; knows the usual slips of quoting and listing."""
    if kind == "string_type" and isinstance(value, int | float):
        return f'quote it: "{_source_word(document, path) or value}"'
    if kind == "string_type" and isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        if value[0].replace("-", "").isdigit():
            return f'if it is a range, quote it: "[{value[0]}]"'
        return f"write {value[0]} without brackets"
    if kind in ("bool_type", "int_type", "float_type") and isinstance(value, str):
        number = kind != "bool_type" and value.replace(".", "", 1).isdigit()
        if number or value in ("true", "false"):
            return "remove the quotes"
    if wanted == _LIST and isinstance(value, str | int | float):
        return f"write [{value}]"
    if kind in ("literal_error", "enum") and isinstance(value, str):
        close = did_you_mean(value, wanted.replace(" or ", ", ").split(", "))
        if close:
            return f"did you mean {close}?"
    bound = wanted.startswith(("at ", "more ", "less ")) and not kind.startswith(("too_", "string_"))
    return f"write a value of {wanted}" if bound else f"write {wanted}"


def _source_word(document: Document, path: DataPath) -> str:
    """The unquoted scalar at `path` as it stands in the file: 4.30 where the value is 4.3."""
    position = document.position(path)
    rest = document.lines[position.line - 1][position.column - 1 :]
    word = rest.split(" #")[0].split(",")[0].split("}")[0].split("]")[0].strip()
    return word if not word.startswith(("*", '"', "'")) else ""


def _keys_at(model: Any, loc: DataPath) -> list[str]:
    """The keys that the model at `loc` below `model` knows."""
    annotations = [model]
    for step in loc:
        annotations = [inner for one in annotations for inner in _inner(one, step)]
    return [key for one in _plain(annotations) for key in _fields(one)]


def _plain(annotations: list[Any]) -> list[Any]:
    """The annotations with Annotated, unions and models of one bare value taken apart."""
    plain: list[Any] = []
    for one in annotations:
        origin = typing.get_origin(one)
        if origin is typing.Annotated:
            plain += _plain([typing.get_args(one)[0]])
        elif origin in (typing.Union, types.UnionType):
            plain += _plain(list(typing.get_args(one)))
        elif getattr(one, "__pydantic_root_model__", False):
            plain += _plain([_fields(one)["root"]])
        else:
            plain.append(one)
    return plain


def _fields(model: Any) -> dict[str, Any]:
    """Key -> annotation of a pydantic model, by alias where there is one; empty for anything else."""
    fields = getattr(model, "model_fields", {}) if isinstance(model, type) else {}
    return {field.alias or name: field.annotation for name, field in fields.items()}


def _inner(annotation: Any, step: str | int) -> list[Any]:
    """What the annotation says about the value behind `step`; itself when pydantic added the step."""
    found: list[Any] = []
    for one in _plain([annotation]):
        fields, args, origin = _fields(one), typing.get_args(one), typing.get_origin(one)
        if step in fields:
            found.append(fields[str(step)])
        elif args and isinstance(origin, type) and issubclass(origin, Mapping):
            found.append(args[-1])
        elif args and isinstance(step, int):
            found.append(args[0])
    return found or [annotation]
