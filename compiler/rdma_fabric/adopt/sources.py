"""Which nodes to read: a list of addresses, or nornir's inventory files."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rdma_fabric import platforms
from rdma_fabric.findings import BadValue, Finding, InputError, Position, input_finding
from rdma_fabric.inventory.ranges import check_node_name
from rdma_fabric.source import file_error, load_yaml

COLUMNS: Final = ("address", "platform", "name", "port", "username", "key_file")
_ADDRESS: Final = re.compile(r"[A-Za-z0-9:][A-Za-z0-9._:-]{0,252}")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node to be read; what is not given is asked."""

    address: str
    platform: str = ""
    name: str = ""
    port: int = 22
    username: str = ""
    key_file: str = ""
    position: Position | None = None


def read_candidates(path: Path) -> tuple[Candidate, ...]:
    """The nodes of a list or of a folder with nornir's hosts.yaml; InputError holds every finding."""
    found = tuple(_folder(path) if path.is_dir() else _list(path))
    if not found:
        raise file_error(path, "names no node", "write one address per line")
    return found


# -- a list


def _list(path: Path) -> Iterator[Candidate]:
    """Lines of `ADDRESS [PLATFORM [NAME]]`, or CSV with a header line; `#` starts a comment."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
        help = "give a file with one address per line, or a folder with nornir's hosts.yaml"
        raise file_error(path, reason, help) from None
    lines = [(number, line.partition("#")[0].strip()) for number, line in enumerate(text.splitlines(), 1)]
    lines = [(number, line) for number, line in lines if line]
    header = [one.strip() for one in lines[0][1].split(",")] if lines else []
    yield from _checked(_table(path, header, lines[1:]) if "address" in header else _words(path, lines))


def _words(path: Path, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[Position, dict[str, str]]]:
    for number, line in lines:
        words = line.replace(",", " ").split()
        yield (
            Position(str(path), number, 1),
            dict(zip(COLUMNS[:3], words, strict=False))
            | ({"more": " ".join(words[3:])} if len(words) > 3 else {}),
        )


def _table(
    path: Path, header: list[str], lines: Iterable[tuple[int, str]]
) -> Iterator[tuple[Position, dict[str, str]]]:
    unknown = [name for name in header if name not in COLUMNS]
    if unknown:
        help = f"known columns: {', '.join(COLUMNS)}"
        raise file_error(path, f"the column {unknown[0]} is unknown", help)
    for number, line in lines:
        cells = [cell.strip() for cell in next(csv.reader([line]))]
        yield Position(str(path), number, 1), dict(zip(header, cells, strict=False))


def _checked(rows: Iterable[tuple[Position, dict[str, str]]]) -> Iterator[Candidate]:
    findings: list[Finding] = []
    for at, row in rows:
        try:
            candidate = _candidate(at, row)
        except BadValue as error:
            findings.append(input_finding("reference", error.text, at, error.help))
        else:
            if not findings:
                yield candidate
    if findings:
        raise InputError(findings)


def _candidate(at: Position | None, row: Mapping[str, Any]) -> Candidate:
    """BadValue when something in it is not usable."""
    address, port = str(row.get("address") or ""), str(row.get("port") or "22")
    if not _ADDRESS.fullmatch(address):
        raise BadValue(f"{address!a} is not an address", "write an IP address or a DNS name")
    if row.get("more"):
        raise BadValue(f"{row['more']!a} is too much", "write ADDRESS, or ADDRESS PLATFORM NAME")
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise BadValue(f"{port!a} is not a port", "write a number from 1 to 65535")
    name = str(row.get("name") or "")
    word = str(row.get("platform") or "")
    if name:
        check_node_name(name)
    key = platform_of(word)
    if word and not key:
        help = f"write one of {', '.join(platforms.bases())}, or leave it out to have the node asked"
        raise BadValue(f"{word!a} is no platform of ours", help)
    user, key_file = str(row.get("username") or ""), str(row.get("key_file") or "")
    return Candidate(address, key, name, int(port), user, key_file, at)


def platform_of(word: str) -> str:
    """Our key for a platform as the inventory calls it (ours, netmiko's or NAPALM's); "" when none fits."""
    if word in platforms.bases():
        return word
    fits = [
        key
        for key in platforms.bases()
        if word and word in (platforms.platform(key).dialect.driver, key.partition("_")[2])
    ]
    return fits[0] if len(fits) == 1 else ""


# -- nornir's files


def _folder(path: Path) -> Iterator[Candidate]:
    """nornir's hosts.yaml, groups.yaml and defaults.yaml; what else they hold is not read."""
    hosts = load_yaml(path / "hosts.yaml")
    groups = load_yaml(path / "groups.yaml").data if (path / "groups.yaml").exists() else {}
    defaults = load_yaml(path / "defaults.yaml").data if (path / "defaults.yaml").exists() else {}
    rows = []
    for name, entry in hosts.data.items():
        chain = [entry or {}, *(_groups(entry or {}, groups, ())), defaults or {}]
        extras = next((found for one in chain if (found := _extras(one))), {})
        row = {
            "address": _inherited(chain, "hostname") or name,
            "platform": platform_of(str(_inherited(chain, "platform") or "")),
            "name": name,
            "port": _inherited(chain, "port"),
            "username": _inherited(chain, "username"),
            "key_file": extras.get("key_file"),
        }
        rows.append((hosts.key_position((name,)), row))
    yield from _checked(rows)


def _groups(entry: Mapping[str, Any], groups: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[Any]:
    for name in entry.get("groups") or ():
        if name in groups and name not in above:
            yield groups[name] or {}
            yield from _groups(groups[name] or {}, groups, (*above, name))


def _inherited(chain: Iterable[Mapping[str, Any]], key: str) -> Any:
    return next((one[key] for one in chain if one.get(key) is not None), None)


def _extras(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    options = (entry.get("connection_options") or {}).get("netmiko") or {}
    found = options.get("extras") or {}
    return found if isinstance(found, Mapping) else {}
