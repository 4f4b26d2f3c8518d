"""All rules, found in `rules/` by module name; a rule's documentation is its module's docstring."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from rdma_fabric.checker.scopes import AnyRule

ALIASES: Mapping[str, str] = {}
"""Former rule name -> present name; names in users' files keep working after a rename."""


@dataclass(frozen=True, slots=True)
class Documented:
    """A rule with its documentation."""

    rule: AnyRule
    doc: str


@cache
def documented() -> tuple[Documented, ...]:
    """All rules in order of their codes."""
    package = importlib.import_module("rdma_fabric.checker.rules")
    found = []
    for info in pkgutil.iter_modules(package.__path__):
        if not info.name.startswith("_"):
            module = importlib.import_module(f"{package.__name__}.{info.name}")
            found.append(Documented(module.RULE, module.__doc__ or ""))
    return tuple(sorted(found, key=lambda one: one.rule.code))


@cache
def rules() -> tuple[AnyRule, ...]:
    """All rules in order of their codes."""
    return tuple(one.rule for one in documented())


def find(word: str) -> Documented | None:
    """The rule of that code or (also former) name."""
    name = ALIASES.get(word, word)
    return next((one for one in documented() if one.rule.code == word.upper() or one.rule.name == name), None)
