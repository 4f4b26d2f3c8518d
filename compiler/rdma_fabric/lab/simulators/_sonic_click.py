"""Command lines as SONiC's tools parse them: Click 7 groups with its usage and error texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Values = Mapping[str, Any]


class Stop(Exception):
    """A tool ends; `out` and `err` are what it prints last."""

    def __init__(self, status: int, err: str = "", out: str = "") -> None:
        super().__init__(err or out)
        self.status, self.err, self.out = status, err, out


@dataclass(frozen=True, slots=True)
class Param:
    """One argument or option; `kind` is text, an inclusive range of integers or a choice of words."""

    name: str
    kind: tuple[int, int] | tuple[str, ...] | None = None
    flags: tuple[str, ...] = ()
    switch: bool = False
    required: bool = True
    many: bool = False
    metavar: str = ""

    @property
    def shown(self) -> str:
        """The name that errors and usage lines print."""
        return self.metavar or self.name.upper()


@dataclass(frozen=True, slots=True)
class Command:
    """One command; `path` is its words, `run` gets the context and the parsed values."""

    path: str
    run: Callable[[Any, Values], None]
    params: tuple[Param, ...] = ()
    since: int = 0
    meta: Mapping[str, str] = field(default_factory=dict)


def dispatch(
    tool: str, commands: Sequence[Command], argv: Sequence[str], branch: int
) -> tuple[Command, Values]:
    """The command and its values; raises Stop with Click's text where it would refuse."""
    known = [command for command in commands if command.since <= branch]
    prefix: list[str] = []
    rest = list(argv)
    while True:
        inside = [command for command in known if command.path.split()[: len(prefix)] == prefix]
        exact = [command for command in inside if command.path.split() == prefix]
        below = [command for command in inside if command not in exact]
        names = sorted({command.path.split()[len(prefix)] for command in below})
        # A group that is a command too (invoke_without_command) takes options only, no words.
        if exact and not (names and rest and not rest[0].startswith("-")):
            return exact[0], _values(tool, exact[0], rest)
        if not rest or rest[0] in ("-h", "-?", "--help"):
            raise Stop(0, out=_group_help(tool, prefix, names))
        prefix.append(_resolve(tool, prefix, rest.pop(0), names))


def _resolve(tool: str, prefix: Sequence[str], word: str, names: Sequence[str]) -> str:
    """A sub-command, or the only one that the word abbreviates (AbbreviationGroup)."""
    if word in names:
        return word
    usage = f"{' '.join([tool, *prefix])} [OPTIONS] COMMAND [ARGS]..."
    if word.startswith("-"):
        raise _refuse([tool, *prefix], usage, f"no such option: {word}")
    found = [name for name in names if name.startswith(word)]
    if len(found) == 1:
        return found[0]
    if found:
        raise _refuse([tool, *prefix], usage, f"Too many matches: {', '.join(found)}")
    raise _refuse([tool, *prefix], usage, f'No such command "{word}".')


def _refuse(words: Sequence[str], usage: str, text: str) -> Stop:
    return Stop(2, f'Usage: {usage}\nTry "{" ".join(words)} -h" for help.\n\nError: {text}\n')


def usage_of(tool: str, command: Command) -> str:
    """The usage line of a command, without the word Usage."""
    words = [tool, command.path, "[OPTIONS]"]
    for param in command.params:
        if not param.flags:
            shown = param.shown if param.required else f"[{param.shown}]"
            words.append(f"[{param.shown}]..." if param.many else shown)
    return " ".join(words)


def fail(tool: str, command: Command, text: str) -> Stop:
    """What `ctx.fail` prints: usage, hint and the error; status 2."""
    return _refuse([tool, command.path], usage_of(tool, command), text)


def _group_help(tool: str, prefix: Sequence[str], names: Sequence[str]) -> str:
    words = " ".join([tool, *prefix])
    lines = "\n".join(f"  {name}" for name in names)
    return (
        f"Usage: {words} [OPTIONS] COMMAND [ARGS]...\n\n"
        f"Options:\n  -h, -?, --help  Show this message and exit.\n\nCommands:\n{lines}\n"
    )


def _values(tool: str, command: Command, argv: Sequence[str]) -> Values:
    values: dict[str, Any] = {param.name: False if param.switch else None for param in command.params}
    options = {flag: param for param in command.params for flag in param.flags}
    words: list[str] = []
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word == "--":
            words += rest
            break
        if word in ("-h", "-?", "--help"):
            raise Stop(0, out=f"Usage: {usage_of(tool, command)}\n")
        flag, equals, inline = word.partition("=")
        if word.startswith("-") and len(word) > 1 and not word[1:].isdigit():
            param = options.get(flag if word.startswith("--") else word)
            if param is None:
                raise fail(tool, command, f"no such option: {flag}")
            if param.switch:
                values[param.name] = True
            elif equals or rest:
                values[param.name] = _convert(tool, command, param, inline if equals else rest.pop(0))
            else:
                raise fail(tool, command, f"{word} option requires an argument")
        else:
            words.append(word)
    _arguments(tool, command, words, values)
    return values


def _arguments(tool: str, command: Command, words: list[str], values: dict[str, Any]) -> None:
    arguments = [param for param in command.params if not param.flags]
    for place, param in enumerate(arguments):
        if param.many:
            after = sum(1 for later in arguments[place + 1 :] if later.required)
            count = max(len(words) - after, 0)
            values[param.name] = [_convert(tool, command, param, word) for word in words[:count]]
            del words[:count]
        elif words:
            values[param.name] = _convert(tool, command, param, words.pop(0))
        elif param.required:
            raise fail(tool, command, f'Missing argument "{param.shown}".')
    if words:
        plural = "s" if len(words) != 1 else ""
        raise fail(tool, command, f"Got unexpected extra argument{plural} ({' '.join(words)})")


def _convert(tool: str, command: Command, param: Param, word: str) -> object:
    shown = f'"{" / ".join(reversed(param.flags))}"' if param.flags else f'"{param.shown}"'
    if param.kind is None:
        return word
    low, high = param.kind[0], param.kind[-1]
    if isinstance(low, int) and isinstance(high, int):
        try:
            number = int(word)
        except ValueError:
            raise fail(tool, command, f"Invalid value for {shown}: {word} is not a valid integer") from None
        if not low <= number <= high:
            text = f"{number} is not in the valid range of {low} to {high}."
            raise fail(tool, command, f"Invalid value for {shown}: {text}")
        return number
    if word not in param.kind:
        choices = ", ".join(str(one) for one in param.kind)
        text = f"invalid choice: {word}. (choose from {choices})"
        raise fail(tool, command, f"Invalid value for {shown}: {text}")
    return word
