"""What the configuration files of a Linux host bring at boot: ours and others', in the order they are read.

Sources: sysctl.d(5), modules-load.d(5), systemd.unit(5); kmod's modprobe.d(5) and libkmod;
limits.conf(5) and pam_limits(8). The question prints every file after a line "==PATH" and its lines
that matter with their numbers, as `grep -n` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final

from rdma_fabric.platforms._host_files import File, Section, files

_RANKS: Final = ("/etc/", "/run/", "/usr/local/lib/", "/usr/lib/", "/lib/")
"""A file hides one of the same name in a later folder (systemd's conf_files_list, libkmod)."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One value and where it stands."""

    value: str
    path: str
    line: int = 0

    @property
    def place(self) -> str:
        """ "/etc/sysctl.d/99-x.conf:3"."""
        return f"{self.path}:{self.line}" if self.line else self.path


@dataclass(frozen=True, slots=True)
class Lines:
    """The numbered lines of some files in the order in which they are read."""

    rows: tuple[tuple[str, int, str], ...] = ()
    """(path, number, text without blanks around it)."""
    unread: tuple[str, ...] = ()
    """Files that may not be read."""
    asked: bool = False

    def below(self, *folders: str) -> Lines:
        """Those of some folders only."""
        return Lines(
            tuple(row for row in self.rows if row[0].startswith(folders)),
            tuple(path for path in self.unread if path.startswith(folders)),
            self.asked,
        )


@lru_cache(maxsize=512)
def _lines(text: str, asked: bool) -> Lines:
    rows: list[tuple[str, int, str]] = []
    unread = []
    for path, file in in_order(files(Section(text, 0, True))).items():
        if file.text is None:
            unread.append(path)
        for row in (file.text or "").splitlines():
            number, sign, rest = row.partition(":")
            if sign and number.isdigit():
                rows.append((path, int(number), rest.strip()))
            elif row.strip():
                # No output of `grep -n`: it is missing, or takes the file for a binary one.
                unread.append(path)
    return Lines(tuple(rows), tuple(unread), asked)


def lines(section: Section) -> Lines:
    """The lines of a section, each file's in its own order, files by name."""
    return _lines(section.text, section.asked)


def joined(*parts: Lines) -> Lines:
    """Several parts as one, in that order; asked when all of them were."""
    return Lines(
        tuple(row for one in parts for row in one.rows),
        tuple(path for one in parts for path in one.unread),
        all(one.asked for one in parts),
    )


def in_order(found: Mapping[str, File]) -> dict[str, File]:
    """Files by name, whatever their folder, without those that a file of the same name hides."""
    by_name: dict[str, str] = {}
    for path in sorted(found, key=rank):
        by_name.setdefault(_key(path), path)
    return {by_name[name]: found[by_name[name]] for name in sorted(by_name)}


def rank(path: str) -> int:
    """Place of the file's folder: the lowest hides the others."""
    return next((at for at, folder in enumerate(_RANKS) if path.startswith(folder)), len(_RANKS))


def _key(path: str) -> str:
    """Files of one folder are sorted by name; kinds of folders (sysctl.d, X.network.d) stay apart."""
    folder, _, name = path.rpartition("/")
    return f"{folder.rpartition('/')[2]}/{name}"


COMMAND_LINE: Final = "/proc/cmdline"
"""Parameters there are added after those of modprobe.d (libkmod, kmod_config_parse_kcmdline)."""
UFW: Final = "/etc/ufw/sysctl.conf"
"""Sysctls that ufw sets when it starts, which is after systemd-sysctl (ufw-framework(8))."""


def later(path: str, ours: str) -> bool:
    """True when the file is read after ours, so that it wins."""
    return path in (COMMAND_LINE, UFW) or path.rpartition("/")[2] > ours.rpartition("/")[2]


# ---------------------------------------------------------------- sysctl


@dataclass(frozen=True, slots=True)
class Sysctls:
    """All assignments of sysctl.d by key, patterns apart."""

    explicit: Mapping[str, Setting]
    globs: tuple[tuple[str, Setting], ...] = ()
    excluded: frozenset[str] = frozenset()

    def get(self, key: str) -> Setting | None:
        """What systemd-sysctl writes: an explicit line before every pattern, else the last that fits."""
        if key in self.explicit:
            return self.explicit[key]
        if key in self.excluded:
            return None
        fitting = [one for pattern, one in self.globs if _fits(key, pattern)]
        return fitting[-1] if fitting else None


def sysctls(found: Lines) -> Sysctls:
    """The assignments of every file, the last one of a key first."""
    explicit: dict[str, Setting] = {}
    globs: list[tuple[str, Setting]] = []
    excluded = set()
    for path, number, text in found.rows:
        left, sign, value = text.partition("=")
        key = dotted(left.strip().lstrip("-").strip())
        if not sign and text.startswith("-"):
            excluded.add(key)
        elif sign and re.search(r"[*?\[]", key):
            globs.append((key, Setting(plain(value), path, number)))
        elif sign:
            explicit[key] = Setting(plain(value), path, number)
    return Sysctls(explicit, tuple(globs), frozenset(excluded))


def dotted(key: str) -> str:
    """sysctl.d(5): where "/" comes first it separates, and a dot then belongs to a name."""
    first = re.search(r"[./]", key)
    return key.translate(str.maketrans("/.", "./")) if first and first.group() == "/" else key


def _fits(key: str, pattern: str) -> bool:
    """glob(7): a star does not reach over a separator."""
    parts, wanted = key.split("."), pattern.split(".")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


def plain(value: str) -> str:
    """A sysctl as it compares: one blank between words; the kernel shows tabs, and hexadecimal as decimal."""
    return " ".join(map(_decimal, value.split()))


def _decimal(word: str) -> str:
    return str(int(word, 16)) if re.fullmatch(r"0[xX][0-9a-fA-F]+", word) else word


# ---------------------------------------------------------------- modules


@dataclass(frozen=True, slots=True)
class Modules:
    """What modules-load.d lists and what keeps modules from being loaded, by name."""

    listed: Mapping[str, Setting]
    denied: Mapping[str, Setting]
    options: Mapping[str, Setting]
    """"module.parameter" -> the last value; the kernel takes the last of several."""

    split: Mapping[str, Setting] = field(default_factory=dict)
    """Module -> the last line of its options that goes on in the next one, which is not read."""

    def hidden(self, key: str) -> Setting | None:
        """A line that may set the option where nobody reads it, and no later one does."""
        return None if key in self.options else self.split.get(key.partition(".")[0])

    def at_boot(self, name: str) -> bool:
        """True when systemd-modules-load loads it: it leaves out what modprobe.d denies."""
        return name in self.listed and name not in self.denied


def modules(load: Lines, probe: Lines, kernel: str = "") -> Modules:
    """From modules-load.d, modprobe.d and the kernel's command line."""
    listed = {
        under(text): Setting("", path, number)
        for path, number, text in load.rows
        if re.fullmatch(r"[\w-]+", text)
    }
    denied: dict[str, Setting] = {}
    options: dict[str, Setting] = {}
    split: dict[str, Setting] = {}
    for path, number, text in probe.rows:
        words = text.split()
        if words[:1] == ["options"] and len(words) > 2 and text.endswith("\\"):
            # modprobe.d(5): the line goes on. What stood before it may count no more.
            module = under(words[1])
            split[module] = Setting("", path, number)
            options = {key: one for key, one in options.items() if not key.startswith(f"{module}.")}
            continue
        if words[:1] == ["blacklist"] and len(words) == 2:
            denied[under(words[1])] = Setting("blacklist", path, number)
        elif words[:1] == ["install"] and re.search(r"(^|/)(true|false)$", " ".join(words[2:3])):
            denied[under(words[1])] = Setting("install", path, number)
        elif words[:1] == ["options"] and len(words) > 2:
            options.update(_options(under(words[1]), words[2:], path, number))
    for word in kernel.split():
        name, sign, value = word.partition("=")
        if name in ("module_blacklist", "modprobe.blacklist"):
            denied.update({under(one): Setting(name, COMMAND_LINE) for one in value.split(",")})
        elif sign and "." in name:
            module, _, key = name.partition(".")
            options.update(_options(under(module), [f"{key}={value}"], COMMAND_LINE, 0))
    return Modules(listed, denied, options, split)


def _options(module: str, words: Iterable[str], path: str, number: int) -> Iterator[tuple[str, Setting]]:
    for word in words:
        key, sign, value = word.partition("=")
        yield f"{module}.{key}", Setting(parameter(value if sign else "1"), path, number)


def under(name: str) -> str:
    """A module's name as the kernel shows it."""
    return name.replace("-", "_")


def parameter(value: str) -> str:
    """A module parameter as it compares: the kernel shows Y and N for a bool (kernel/params.c)."""
    words = plain(value.strip().strip('"'))
    return {"Y": "1", "N": "0", "y": "1", "n": "0"}.get(words, words)


# ---------------------------------------------------------------- limits


UNLIMITED: Final = "unlimited"
_NO_LIMIT: Final = ("unlimited", "infinity", "-1")


def limit(value: str) -> str:
    """A limit as it compares (limits.conf(5): three words for none)."""
    return UNLIMITED if value.strip() in _NO_LIMIT else value.strip()


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of limits.conf and limits.d: for everybody, and what others get instead."""

    sides: Mapping[tuple[str, str], Setting] = field(default_factory=dict)
    """(item, soft or hard) -> the last line for "*"."""
    special: tuple[tuple[str, str, Setting], ...] = ()
    """(who, item, value) of lines for users and groups, which go before "*"."""

    def get(self, item: str) -> tuple[str, tuple[Setting, ...]]:
        """(value, where its two sides stand); "soft/hard" when they differ, "" when neither is set."""
        soft, hard = self.sides.get((item, "soft")), self.sides.get((item, "hard"))
        found = tuple(one for one in (soft, hard) if one is not None)
        first, second = soft.value if soft else "", hard.value if hard else ""
        return (first if first == second else f"{first}/{second}", found)


def limits(found: Lines) -> Limits:
    """pam_limits reads limits.conf, then limits.d by name; among equally special lines the last counts."""
    rows = sorted(found.rows, key=lambda row: not row[0].endswith("/limits.conf"))
    sides: dict[tuple[str, str], Setting] = {}
    special = []
    for path, number, text in rows:
        words = text.split("#")[0].split()
        if len(words) != 4:
            continue
        who, side, item, value = words
        one = Setting(limit(value), path, number)
        if who == "*":
            for name in ("soft", "hard") if side == "-" else (side,):
                sides[item, name] = one
        else:
            special.append((who, item, one))
    return Limits(sides, tuple(special))


SERVICE_LIMITS: Final[Mapping[str, tuple[str, int, str]]] = {
    "memlock": ("LimitMEMLOCK", 1024, "Max locked memory"),
    "nofile": ("LimitNOFILE", 1, "Max open files"),
    "nproc": ("LimitNPROC", 1, "Max processes"),
    "stack": ("LimitSTACK", 1024, "Max stack size"),
    "core": ("LimitCORE", 1024, "Max core file size"),
}
"""Limit -> systemd's word (systemd.exec(5)), bytes per unit of limits.conf(5), row of /proc/PID/limits."""


def service_value(item: str, value: str) -> str:
    """A limit of limits.conf's units as systemd writes it: memlock 64 -> 65536."""
    sides = value.split("/")
    scale = SERVICE_LIMITS[item][1]
    words = ("infinity" if one == UNLIMITED else str(int(one) * scale) for one in sides)
    return ":".join(words)


_SIZES: Final = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}


def from_service(item: str, text: str) -> str:
    """systemd's or /proc's value in limits.conf's units; "" for one that is not understood."""
    sides = []
    for one in text.strip().split(":"):
        match = re.fullmatch(r"(\d+)([KMGT]?)", one)
        if one in _NO_LIMIT:
            sides.append(UNLIMITED)
        elif match:
            sides.append(str(int(match[1]) * _SIZES[match[2]] // SERVICE_LIMITS[item][1]))
        else:
            return ""
    return sides[0] if len(set(sides)) == 1 else "/".join(sides)


def service_limits(found: Lines, unit: str) -> dict[str, Setting]:
    """Limits that a unit's file and its drop-ins set; drop-ins come after it, by name (systemd.unit(5))."""
    words = {word: item for item, (word, _, _) in SERVICE_LIMITS.items()}
    main = [row for row in found.rows if row[0].endswith(f"/{unit}.service")]
    folders = ("/service.d/", f"/{unit}.service.d/")
    drop_ins = [row for row in found.rows if any(folder in row[0] for folder in folders)]
    drop_ins.sort(key=lambda row: row[0].rpartition("/")[2])
    result: dict[str, Setting] = {}
    for path, number, text in (*main, *drop_ins):
        key, _, value = text.partition("=")
        item = words.get(key.strip())
        if item is not None:
            result[item] = Setting(from_service(item, value), path, number)
    return result
