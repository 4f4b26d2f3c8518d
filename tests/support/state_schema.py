"""JSON Schema of observed states, made from the state's dataclasses by the rules of the codec."""

from __future__ import annotations

import json
import types
import typing
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from rdma_fabric.state import Absent, Observation

_MARKS = [f"@{absent.name.lower()}" for absent in Absent]
_PLAIN: dict[type, dict[str, Any]] = {
    str: {"type": "string", "pattern": "^(@@|[^@]|$)"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    type(None): {"type": "null"},
}
_LENGTHS = {"classes": 8, "dscp_to_priority": 64, "pcp_to_priority": 8}


def state_schema() -> str:
    """The text of docs/schemas/state.json."""
    maker = _Maker()
    node = maker.of(Observation)
    data = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "state.json",
        "title": "fabric observe -o FILE, for check --observed FILE, version 1",
        "description": "A field that is left out has its default, mostly @unmanaged. "
        "A text that begins with @ is written with one more @.",
        "type": "object",
        "properties": {"version": {"const": 1}, "nodes": {"type": "object", "additionalProperties": node}},
        "required": ["version", "nodes"],
        "$defs": dict(sorted(maker.defs.items())),
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


class _Maker:
    """Collects one definition per dataclass."""

    def __init__(self) -> None:
        self.defs: dict[str, Any] = {}

    def of(self, kind: Any) -> dict[str, Any]:
        """The schema of values of `kind`."""
        origin, args = typing.get_origin(kind), typing.get_args(kind)
        if origin in (typing.Union, types.UnionType):
            choices = [self.of(one) for one in args if one is not Absent]
            marks = [{"enum": _MARKS}] if Absent in args else []
            return {"anyOf": choices + marks}
        if origin is typing.Literal:
            return {"enum": list(args)}
        if origin is tuple:
            return self._tuple(args)
        if isinstance(kind, type) and is_dataclass(kind):
            return self._dataclass(kind)
        return _PLAIN[kind]

    def _tuple(self, args: tuple[Any, ...]) -> dict[str, Any]:
        if len(args) != 2 or args[1] is not Ellipsis:
            items = [self.of(one) for one in args]
            return {"type": "array", "prefixItems": items, "minItems": len(items), "items": False}
        inner = typing.get_args(args[0])
        if len(inner) == 2 and inner[0] is str:
            pairs = {"type": "object", "additionalProperties": self.of(inner[1])}
            return {"anyOf": [pairs, {"type": "array", "maxItems": 0}]}
        return {"type": "array", "items": self.of(args[0])}

    def _dataclass(self, kind: Any) -> dict[str, Any]:
        if kind.__name__ not in self.defs:
            self.defs[kind.__name__] = {}
            hints = typing.get_type_hints(kind)
            items = [item for item in fields(kind) if item.compare]
            self.defs[kind.__name__] = {
                "type": "object",
                "properties": {item.name: self._field(item.name, hints[item.name]) for item in items},
                "required": [
                    item.name for item in items if item.default is MISSING and item.default_factory is MISSING
                ],
                "additionalProperties": False,
            }
        return {"$ref": f"#/$defs/{kind.__name__}"}

    def _field(self, name: str, kind: Any) -> dict[str, Any]:
        """One field; those with an entry per priority or code point have their length."""
        schema = self.of(kind)
        if name not in _LENGTHS:
            return schema
        for one in (schema, *schema.get("anyOf", ())):
            if one.get("type") == "array":
                one |= {"minItems": _LENGTHS[name], "maxItems": _LENGTHS[name]}
        if name != "classes":
            return schema
        by_priority = {
            "type": "object",
            "propertyNames": {"pattern": "^[0-7]$"},
            "minProperties": 1,
            "additionalProperties": schema["items"],
        }
        return {"anyOf": [schema, by_priority]}
