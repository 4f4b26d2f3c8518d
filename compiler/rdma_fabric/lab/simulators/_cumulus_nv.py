"""The `nv` command of the Cumulus Linux simulator: set, unset, show, config."""

from __future__ import annotations

import copy
import re
import shlex
from typing import TYPE_CHECKING, Any

from . import _cumulus_config as trees
from . import _cumulus_qos as qos
from . import _cumulus_show as shows
from ._cumulus_config import Tree
from ._cumulus_schema import Refused, Resolver
from ._cumulus_shell import Outcome, lines_of

if TYPE_CHECKING:
    from .cumulus import Cumulus

FORMATS = ("auto", "json", "yaml", "commands", "native")
# Options with a value, long name by any spelling.
_VALUED = {
    "-o": "output",
    "--output": "output",
    "-r": "rev",
    "--rev": "rev",
    "--color": "color",
    "--paginate": "paginate",
    "-m": "message",
    "--message": "message",
}
_FLAGS = {
    "--applied": "applied",
    "--startup": "startup",
    "--pending": "pending",
    "--operational": "operational",
    "--all": "all",
    "--verbose": "verbose",
    "-y": "yes",
    "--y": "yes",
    "--assume-yes": "yes",
    "--assume-no": "no",
    "--confirm-yes": "confirm-yes",
    "--confirm-no": "confirm-no",
    "--confirm-status": "confirm-status",
}
_CONFIG = [
    "apply",
    "attach",
    "delete",
    "detach",
    "diff",
    "find",
    "history",
    "patch",
    "replace",
    "revision",
    "save",
    "show",
    "translate",
]
# NVUE CLI page, "Reset NVUE Configuration to Default Values".
INITIAL_FILE = "/usr/lib/python3/dist-packages/cue_config_v1/initial.yaml"


def _fail(text: str) -> Outcome:
    return Outcome("", lines_of(text), 1)


class Options:
    """Words of a command split into positions and options."""

    def __init__(self, command: str, words: list[str], confirm: bool = False) -> None:
        self.words: list[str] = []
        self.values: dict[str, str] = {}
        rest = list(words)
        while rest:
            word = rest.pop(0)
            name, equals, value = word.partition("=")
            if confirm and name == "--confirm":
                if not equals and rest and re.fullmatch(r"\d\S*", rest[0]):
                    value = rest.pop(0)
                self.values["confirm"] = value or "10"
            elif name in _VALUED:
                if not equals and not rest:
                    raise Refused(f"Error: argument {name}: expected one argument")
                self.values[_VALUED[name]] = value if equals else rest.pop(0)
            elif word in _FLAGS:
                self.values[_FLAGS[word]] = "1"
            elif word.startswith("-"):
                raise Refused(f"Error: Invalid Command: {command} {' '.join(words)}")
            else:
                self.words.append(word)
        if self.output not in FORMATS:
            raise Refused(
                f"Error: argument -o/--output: invalid choice: '{self.output}'"
                f" (choose from {', '.join(FORMATS)})"
            )

    @property
    def output(self) -> str:
        """The wanted form."""
        return self.values.get("output", "auto")

    def revision(self, default: str) -> str:
        """The tree that the options name."""
        for name in ("applied", "startup", "pending", "operational"):
            if name in self.values:
                return name
        return self.values.get("rev", default)


class Nv:
    """One invocation of `nv` by one user."""

    def __init__(self, device: Cumulus, user: str, interactive: bool) -> None:
        self.device = device
        self.user = user
        self.interactive = interactive
        self.revisions = device.revisions

    def run(self, words: list[str]) -> Outcome:
        """Run the words after `nv`."""
        try:
            return self._dispatch(words)
        except Refused as refused:
            return _fail(str(refused))

    def _dispatch(self, words: list[str]) -> Outcome:
        if not words:
            raise Refused("Error: Incomplete Command: nv")
        verbs = {"set": self._edit, "unset": self._edit, "show": self._show, "config": self._config}
        names = [words[0]] if words[0] in verbs else [name for name in verbs if name.startswith(words[0])]
        if not names:
            raise Refused(f"Error: Invalid Command: {' '.join(words)}")
        if len(names) > 1:
            raise Refused(self._ambiguous(names, words[1:]))
        return verbs[names[0]](names[0], words[1:])

    def _ambiguous(self, verbs: list[str], rest: list[str]) -> str:
        lines = []
        for verb in verbs:
            try:
                if verb in ("set", "unset"):
                    words = list(Resolver(self.device.version, "unset").resolve(rest).words)
                else:
                    view = self._view(self.revisions.applied)
                    words = shows.canonical(rest, self.device.version, [view.operational()])
            except Refused:
                words = rest
            lines.append(f"  {' '.join([verb, *words])}")
        return "\n".join(["Error: Ambiguous Command:", *lines])

    def _edit(self, verb: str, words: list[str]) -> Outcome:
        if any(word.startswith("--") for word in words):
            raise Refused(f"Error: Invalid Command: {' '.join([verb, *words])}")
        target = Resolver(self.device.version, verb).resolve(words)
        name, created = self.revisions.pending(self.user)
        trees.run_command(self.revisions.by_id[name].tree, verb, target, self.device.version)
        return Outcome(f"created [rev_id: {name}]\n" if created else "")

    # --- show ------------------------------------------------------------------------------------

    def _view(self, config: Tree) -> shows.View:
        device = self.device
        return shows.View(device.facts, device.version, config, device.uptime(), device.health)

    def _show(self, verb: str, words: list[str]) -> Outcome:
        options = Options(verb, words)
        view = self._view(self.revisions.applied)
        wanted = options.revision("")
        if wanted in ("", "operational"):
            tree = view.operational()
        else:
            tree = self._view(self.revisions.tree(wanted, self.user)).applied()
        known = [tree, view.applied()]
        if self.user in self.revisions.attached:
            known.append(self._view(self.revisions.tree("pending", self.user)).applied())
        if len(options.words) == 2 and options.words[1] in ("lldp", "link", "description"):
            return self._interface_view(options, tree)
        names = shows.canonical(options.words, self.device.version, known)
        value = trees.at(tree, *names) if names else tree
        if value is None and len(names) == 2 and names[0] == "interface":
            raise Refused("Error: The requested item does not exist.")
        if value is not None and not isinstance(value, dict):
            # Only objects have show commands, a leaf is read from its object.
            raise Refused(f"Error: Invalid Command: show {' '.join(names)}")
        if options.output == "json":
            return Outcome(trees.json_text(_listed(names, value)) + "\n")
        if options.output in ("yaml", "commands", "native"):
            text = "\n".join(trees.yaml_lines(trees.sorted_tree(_listed(names, value) or {}), 0))
            return Outcome(lines_of(text or "{}"))
        if wanted:
            return Outcome(lines_of(*shows.table(names, view, (wanted,), (tree,))))
        columns: list[Tree] = [tree, view.applied()]
        headers = ["operational", "applied"]
        if self.user in self.revisions.attached:
            columns.append(self._view(self.revisions.tree("pending", self.user)).applied())
            headers.append("pending")
        return Outcome("\n".join(shows.table(names, view, headers, columns)) + "\n")

    def _interface_view(self, options: Options, tree: Tree) -> Outcome:
        """`nv show interface lldp`: one part of every interface that has it."""
        if not "interface".startswith(options.words[0]):
            raise Refused(f"Error: Invalid Command: show {' '.join(options.words)}")
        part = options.words[1]
        found = {
            name: {part: body[part]}
            for name, body in tree["interface"].items()
            if body.get(part) not in (None, {})
        }
        if options.output == "json":
            return Outcome(trees.json_text(found) + "\n")
        shown = {name: tree["interface"][name] for name in found}
        return Outcome(
            "\n".join(shows.table(["interface"], self._view({}), ("",), ({"interface": shown},))) + "\n"
        )

    # --- config ----------------------------------------------------------------------------------

    def _config(self, verb: str, words: list[str]) -> Outcome:
        if not words:
            raise Refused("Error: Incomplete Command: config")
        names = [words[0]] if words[0] in _CONFIG else [name for name in _CONFIG if name.startswith(words[0])]
        if not names:
            raise Refused(f"Error: Invalid Command: config {' '.join(words)}")
        if len(names) > 1:
            raise Refused("\n".join(["Error: Ambiguous Command:", *(f"  config {name}" for name in names)]))
        options = Options(f"config {names[0]}", words[1:], confirm=names[0] == "apply")
        method = getattr(self, f"_config_{names[0]}")
        result: Outcome = method(options)
        return result

    def _one(self, options: Options, what: str) -> str:
        if not options.words:
            raise Refused(f"Error: Incomplete Command: config {what}")
        if len(options.words) > 1:
            raise Refused(f"Error: Invalid Command: config {what} {' '.join(options.words)}")
        return options.words[0]

    def _none(self, options: Options, what: str) -> None:
        if options.words:
            raise Refused(f"Error: Invalid Command: config {what} {' '.join(options.words)}")

    def _config_attach(self, options: Options) -> Outcome:
        wanted = self._one(options, "attach")
        if wanted in self.revisions.by_id and self.revisions.by_id[wanted].state in ("pending", "invalid"):
            self.revisions.attached[self.user] = wanted
            return Outcome(f"attached [rev_id: {wanted}]\n")
        tree = self.revisions.tree(wanted, self.user)
        parent = wanted if wanted in self.revisions.by_id else self.revisions.applied_id
        name = self.revisions.new(tree, parent, self.user)
        self.revisions.attached[self.user] = name
        return Outcome(f"attached [rev_id: {name}]\n")

    def _config_detach(self, options: Options) -> Outcome:
        self._none(options, "detach")
        name = self.revisions.attached.pop(self.user, "")
        return Outcome(f"detached [rev_id: {name}]\n" if name else "")

    def _config_delete(self, options: Options) -> Outcome:
        name = self._one(options, "delete")
        self.revisions.delete(name)
        return Outcome(f"deleted [rev_id: {name}]\n")

    def _config_save(self, options: Options) -> Outcome:
        self._none(options, "save")
        self.revisions.save()
        self.device.write_startup()
        return Outcome("saved [rev_id: applied]\n")

    def _config_diff(self, options: Options) -> Outcome:
        if len(options.words) > 2:
            raise Refused(f"Error: Invalid Command: config diff {' '.join(options.words)}")
        base, target = (*options.words, *("applied", "pending")[len(options.words) :])
        old, new = (self.revisions.tree(name, self.user) for name in (base, target))
        changes = trees.difference(old, new, "verbose" in options.values)
        gone, come = (self.device.hidden(tree) for tree in changes)
        if options.output == "commands":
            text = "\n".join([*trees.commands("unset", gone), *trees.commands("set", come)])
        else:
            parts = [(name, trees.grouped(tree)) for name, tree in (("unset", gone), ("set", come)) if tree]
            if options.output == "json":
                text = trees.json_text([{name: tree} for name, tree in parts])
            else:
                text = trees.yaml_operations([(name, trees.sorted_tree(tree)) for name, tree in parts])
        return Outcome(lines_of(text), status=1 if gone or come else 0)

    def _config_show(self, options: Options) -> Outcome:
        self._none(options, "show")
        config = self.revisions.tree(options.revision("applied"), self.user)
        body = self.device.hidden(config)
        if "all" in options.values:
            body = self._view(body).full()
        if options.output == "commands":
            return Outcome(lines_of(*trees.commands("set", body)))
        header = self.device.header()
        if options.output == "json":
            return Outcome(trees.json_text([{"header": header}, {"set": trees.grouped(body)}]) + "\n")
        parts = [("header", header), ("set", trees.sorted_tree(trees.grouped(body)))]
        return Outcome(trees.yaml_operations(parts) + "\n")

    def _config_find(self, options: Options) -> Outcome:
        wanted = self._one(options, "find")
        found = _matching(self.device.hidden(self.revisions.applied), wanted)
        if not found:
            return Outcome("No Data\n")
        return Outcome(trees.yaml_operations([("set", trees.sorted_tree(trees.grouped(found)))]) + "\n")

    def _config_translate(self, options: Options) -> Outcome:
        if self.device.version < (5, 12) or len(options.words) != 2 or options.words[0] != "revision":
            raise Refused(f"Error: Invalid Command: config translate {' '.join(options.words)}".rstrip())
        tree = self.device.hidden(self.revisions.tree(options.words[1], self.user))
        return Outcome(lines_of(*trees.commands("set", tree)))

    def _entry(self, name: str) -> dict[str, Any]:
        revision = self.revisions.by_id[name]
        last = revision.applies[-1] if revision.applies else {}
        return {
            "state": revision.state,
            "transition": {"issue": {}, "progress": ""},
            "additional-data": {"parent-revision-id": revision.parent},
            **last,
        }

    def _config_revision(self, options: Options) -> Outcome:
        self._none(options, "revision")
        if "applied" in options.values:
            entries = {"applied": self._entry(self.revisions.applied_id)}
        else:
            entries = {name: self._entry(name) for name in self.revisions.by_id}
        if options.output == "json":
            return Outcome(trees.json_text(entries) + "\n")
        headers = ("Rev ID", "State", "Apply ID", "Apply Date", "Type", "User", "Reason", "Message")
        keys = ("state", "apply-id", "apply-date", "type", "user", "reason", "message")
        rows = [(name, *(entry.get(key, "") for key in keys)) for name, entry in entries.items()]
        return Outcome("\n".join(shows.grid(headers, rows)) + "\n")

    def _config_history(self, options: Options) -> Outcome:
        if len(options.words) > 1:
            raise Refused(f"Error: Invalid Command: config history {' '.join(options.words)}")
        names = options.words or list(self.revisions.by_id)
        lines = [(name, apply) for name in names for apply in self.revisions.number(name).applies]
        lines.sort(key=lambda line: line[1]["apply-date"], reverse=True)
        if options.output == "json":
            entries = {apply["apply-id"]: {"rev-id": name, **apply} for name, apply in lines}
            return Outcome(trees.json_text(entries) + "\n")
        keys = ("apply-id", "apply-date", "type", "user", "reason", "message")
        headers = ("Apply ID", "Apply Date", "Type", "User", "Reason", "Message")
        return Outcome(
            "\n".join(shows.grid(headers, [[apply[key] for key in keys] for _, apply in lines])) + "\n"
        )

    def _config_patch(self, options: Options) -> Outcome:
        return self._from_file(self._one(options, "patch"), replace=False)

    def _config_replace(self, options: Options) -> Outcome:
        return self._from_file(self._one(options, "replace"), replace=True)

    def _from_file(self, path: str, replace: bool) -> Outcome:
        """`nv config patch` and `replace`: all of the file or nothing of it."""
        if not path.startswith("/") or path not in self.device.files:
            raise Refused(f"Error: File not found: {path}")
        text = self.device.files[path].decode(errors="replace")
        start: Tree = {} if replace else self.revisions.tree("pending", self.user)
        if _is_commands(text):
            result = self._run_file(path, text, start)
        else:
            operations = trees.from_operations(trees.parse_yaml(text), self.device.version)
            result = trees.patched(start, operations, self.device.version)
        name, created = self.revisions.pending(self.user)
        self.revisions.by_id[name].tree = result
        return Outcome(f"created [rev_id: {name}]\n" if created else "")

    def _run_file(self, path: str, text: str, start: Tree) -> Tree:
        done: list[tuple[str, Any, str]] = []
        for number, line in enumerate(text.splitlines(), 1):
            words = shlex.split(line, comments=True)
            if not words:
                continue
            try:
                if any(word.startswith("--") for word in words):
                    raise Refused(f"Error: Invalid Command: {' '.join(words[1:])}")
                target = Resolver(self.device.version, words[1]).resolve(words[2:])
            except Refused as refused:
                short = path.rsplit("/", 1)[-1]
                raise Refused(f"{refused}\nError: {short}:{number} '{line.strip()}' failed") from refused
            done.append((words[1], target, line.strip()))
        return self._merge_lines(done, start)

    def _merge_lines(self, done: list[tuple[str, Any, str]], start: Tree) -> Tree:
        removed = [path for verb, target, _ in done if verb == "unset" for path in target.paths()]
        for verb, target, line in done:
            for path in target.paths() if verb == "set" else ():
                if any(path[: len(gone)] == gone or gone[: len(path)] == path for gone in removed):
                    raise Refused(f"Error: set and unset of the same object in one patch: {line}")
        result = copy.deepcopy(start)
        # Order inside a patch is not kept: unsets go first.
        for verb, target, _ in sorted(done, key=lambda item: item[0] == "set"):
            trees.run_command(result, verb, target, self.device.version)
        return result

    # --- apply -----------------------------------------------------------------------------------

    def _config_apply(self, options: Options) -> Outcome:
        if len(options.words) > 1:
            raise Refused(f"Error: Invalid Command: config apply {' '.join(options.words)}")
        if "confirm-status" in options.values:
            return Outcome(self.device.confirm_status() + "\n")
        if "confirm-yes" in options.values or "confirm-no" in options.values:
            return self._answer(options)
        if self.revisions.waiting is not None:
            raise Refused(f"Error: Revision {self.revisions.waiting.revision} is waiting for confirmation")
        seconds = _seconds(options.values["confirm"]) if "confirm" in options.values else None
        name = self._to_apply(options)
        if not name or self.revisions.by_id[name].tree == self.revisions.applied:
            if name and name == self.revisions.attached.get(self.user):
                del self.revisions.attached[self.user]
            return Outcome("config apply executed with no config diff\n")
        return self._checked_apply(name, seconds, options)

    def _to_apply(self, options: Options) -> str:
        if not options.words:
            return self.revisions.attached.get(self.user, "")
        wanted = options.words[0]
        if wanted in ("startup", "empty"):
            return self.revisions.new(
                self.revisions.tree(wanted, self.user), self.revisions.applied_id, self.user
            )
        if wanted == "applied":
            return self.revisions.applied_id
        self.revisions.number(wanted)
        return wanted

    def _checked_apply(self, name: str, seconds: float | None, options: Options) -> Outcome:
        tree = self.revisions.by_id[name].tree
        device = self.device
        ports = tuple(port.name for port in device.facts.ports)
        found = qos.problems(tree, device.version, ports, device.facts.model)
        if found:
            self.revisions.by_id[name].state = "invalid"
            text = "\n".join([f"Invalid config [rev_id: {name}]", *(f"  {line}" for line in found)])
            # ipspace/netlab pull 1726: the command shows the error and still returns success.
            return Outcome("", text + "\n", 0)
        message = options.values.get("message", "")
        asked = qos.warnings(self.revisions.applied, tree, device.version)
        if not asked or "yes" in options.values:
            return self._go(name, message, seconds, asked)
        return self._ask(name, message, seconds, asked, "no" in options.values)

    def _go(self, name: str, message: str, seconds: float | None, warned: list[str]) -> Outcome:
        self.device.make_live(name, self.user, message, seconds)
        state = "applied_and_saved" if self.revisions.by_id[name].state == "applied_and_saved" else "applied"
        return Outcome(lines_of(*warned, f"{state} [rev_id: {name}]"))

    def _ask(
        self, name: str, message: str, seconds: float | None, asked: list[str], declined: bool
    ) -> Outcome:
        text = "\n".join(asked) + "\n\n"
        if declined:
            return Outcome(text + "Declined apply after warnings\n", status=1)
        if not self.interactive:
            return Outcome(text + "Are you sure? [y/N] \nAborted apply after warnings\n", status=1)

        def resume(answer: str) -> Outcome:
            if answer.strip().lower() not in ("y", "yes"):
                return Outcome("Declined apply after warnings\n", status=1)
            return self._go(name, message, seconds, [])

        return Outcome(text, question="Are you sure? [y/N] ", resume=resume)

    def _answer(self, options: Options) -> Outcome:
        waiting = self.revisions.waiting
        if waiting is None or (options.words and options.words[0] != waiting.revision):
            raise Refused("Error: No apply is waiting for confirmation")
        if "confirm-yes" in options.values:
            name = self.device.confirm()
            state = self.revisions.by_id[name].state
            return Outcome(f"{state} [rev_id: {name}]\n")
        name, previous = self.device.fall_back("refused")
        return Outcome(f"confirm_fail [rev_id: {name}]\napplied [rev_id: {previous}]\n")


def _seconds(text: str) -> float:
    """`300s`, `5m`, `1h`; a bare number is minutes."""
    found = re.fullmatch(r"(\d+)([smh]?)", text)
    if found is None or int(found[1]) == 0:
        raise Refused(f"Error: argument --confirm: invalid time value: '{text}'")
    return int(found[1]) * {"s": 1, "m": 60, "h": 3600, "": 60}[found[2]]


def _is_commands(text: str) -> bool:
    """NVUE takes a file of comments, blank lines, `nv set` and `nv unset` as commands, else as YAML."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
    return bool(lines) and all(re.match(r"nv (set|unset)\b", line) for line in lines)


def _matching(tree: Tree, wanted: str) -> Tree:
    found: Tree = {}
    for key, value in tree.items():
        if wanted in key:
            found[key] = value
        elif isinstance(value, dict):
            inner = _matching(value, wanted)
            if inner:
                found[key] = inner
        elif wanted in str(value):
            found[key] = value
    return found


def _listed(names: list[str], value: Any) -> Any:
    """JSON of a listing: interfaces come without counters and QoS; nothing is an empty object."""
    if value is None:
        return {}
    if names == ["interface"]:
        return {
            name: {key: part for key, part in body.items() if key not in ("qos", "counters", "lldp")}
            for name, body in value.items()
        }
    return value
