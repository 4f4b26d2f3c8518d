"""One line of one template taken away, for tests that must notice."""

from __future__ import annotations

from collections.abc import Callable

import jinja2

from rdma_fabric import templating
from rdma_fabric.assets import templates

VARIABLE = "FABRIC_TEMPLATE_MUTANT"
"""Environment of a test run: "sonic/x.j2: text" takes the first such line away from the start on."""


def environment(original: Callable[[], jinja2.Environment], file: str, text: str) -> jinja2.Environment:
    """The templates' environment with another text for one file."""
    made: jinja2.Environment = original().overlay()
    base = made.loader
    assert base is not None
    made.loader = jinja2.ChoiceLoader([jinja2.DictLoader({file: text}), base])
    made.cache = {}
    return made


def install(spelled: str) -> None:
    """Takes the line away for the rest of this process; LookupError when there is no such line."""
    file, _, line = spelled.partition(": ")
    lines = (templates() / file).read_text(encoding="utf-8").splitlines(keepends=True)
    index = next((i for i, one in enumerate(lines) if one.strip() == line), None)
    if index is None:
        raise LookupError(spelled)
    text = "".join(lines[:index] + lines[index + 1 :])
    original = templating._environment
    made = environment(original, file, text)
    templating._environment = lambda: made  # type: ignore[assignment]
