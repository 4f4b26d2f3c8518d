"""The one jinja2 environment: templates print, Python computes."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from rdma_fabric.assets import folder

if TYPE_CHECKING:
    from jinja2 import Environment, Template


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(str(folder("templates"))),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
        extensions=["jinja2.ext.do"],
    )


@cache
def _template(name: str) -> Template:
    return _environment().get_template(name)


def render(template: str, context: Any) -> str:
    """Text of "<platform>/<file>.j2" with the frozen context as its only variable `c`."""
    return _template(template).render(c=context)


def source(template: str) -> str:
    """The template's own text."""
    return (folder("templates") / template).read_text(encoding="utf-8")


def render_lines(template: str, context: Any) -> tuple[str, ...]:
    """The rendered text as lines without their line ends; empty lines dropped."""
    return tuple(line for line in render(template, context).splitlines() if line.strip())
