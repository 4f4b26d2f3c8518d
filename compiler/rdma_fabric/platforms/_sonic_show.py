"""SONiC's `show` commands: texts made by `tabulate` for people, read back into rows.

Shapes are those of the repositories' own unit tests (sonic-utilities `tests/`).
"""

from __future__ import annotations

import re
from itertools import takewhile


def table_rows(text: str) -> tuple[dict[str, str], ...]:
    """Rows of a `tabulate` table: the header stands above a line of dashes that marks the columns."""
    lines = text.splitlines()
    for number, line in enumerate(lines[1:], 1):
        if re.fullmatch(r"\s*-+(\s+-+)+\s*", line):
            spans = [match.span() for match in re.finditer(r"-+", line)]
            header = _cells(lines[number - 1], spans)
            # `show lldp table` closes its table with another line of dashes and a count.
            rest = takewhile(lambda row: not re.fullmatch(r"-{3,}", row.strip()), lines[number + 1 :])
            body = [row for row in rest if row.strip()]
            return tuple(dict(zip(header, _cells(row, spans), strict=True)) for row in body)
    return ()


def _cells(line: str, spans: list[tuple[int, int]]) -> list[str]:
    ends = [start for start, _ in spans[1:]] + [max(len(line), spans[-1][1])]
    return [line[start:end].strip() for (start, _), end in zip(spans, ends, strict=True)]


def shown_profiles(text: str) -> dict[str, dict[str, str]]:
    """`show ecn`: profile -> field -> value; the order of the fields is the hash order."""
    found: dict[str, dict[str, str]] = {}
    name = ""
    for line in text.splitlines():
        words = line.split()
        if line.startswith("Profile:") and len(words) == 2:
            name = words[1]
            found[name] = {}
        elif name and len(words) == 2 and not words[0].startswith("--"):
            found[name][words[0]] = words[1]
    return found


def shown_pfc(text: str) -> dict[str, str]:
    """`show pfc priority`: port -> "3,4" ("" for none); the row `global` is no port."""
    return {
        row["Interface"]: "" if row["Lossless priorities"] == "N/A" else row["Lossless priorities"]
        for row in table_rows(text)
        if row.get("Interface", "global") != "global" and "Lossless priorities" in row
    }


def shown_watchdogs(text: str) -> dict[str, dict[str, str]]:
    """`show pfcwd config`: port -> fields of PFC_WD; GLOBAL from the line above the table."""
    found = {
        row["PORT"]: {
            field: row[column]
            for column, field in (
                ("ACTION", "action"),
                ("DETECTION TIME", "detection_time"),
                ("RESTORATION TIME", "restoration_time"),
            )
            if column in row
        }
        for row in table_rows(text)
        if row.get("PORT")
    }
    if poll := re.search(r"^Changed polling interval to (\d+)ms", text, re.MULTILINE):
        found["GLOBAL"] = {"POLL_INTERVAL": poll.group(1)}
    return found


def shown_storms(text: str) -> tuple[str, ...]:
    """`show pfcwd stats`: "Ethernet0:3" for every queue that the watchdog holds stopped now."""
    return tuple(row["QUEUE"] for row in table_rows(text) if row.get("STATUS") == "stormed")


def shown_neighbours(text: str) -> tuple[tuple[str, str, str], ...]:
    """`show lldp table`: (local port, system, its port).

    SONiC and hosts send an alias or a MAC address as port id and the name as description.
    """
    found = []
    for row in table_rows(text):
        port, described = row.get("RemotePortID", ""), row.get("RemotePortDescr", "")
        named = re.fullmatch(r"Ethernet\d+|(eth|en|ib)\w+", described)
        mac = re.fullmatch(r"([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}", port)
        if row.get("LocalPort") and row.get("RemoteDevice"):
            found.append((row["LocalPort"], row["RemoteDevice"], described if named or mac else port))
    return tuple(sorted(found))


def shown_facts(text: str) -> dict[str, str]:
    """`show version`: version, model (the hardware SKU), asic and platform."""
    names = (
        ("SONiC Software Version", "version"),
        ("HwSKU", "model"),
        ("ASIC", "asic"),
        ("ASIC Count", "asic_count"),
        ("Platform", "platform"),
    )
    pairs = {
        line.partition(":")[0].strip(): line.partition(":")[2].strip()
        for line in text.splitlines()
        if ":" in line
    }
    return {name: pairs[shown].removeprefix("SONiC.") for shown, name in names if pairs.get(shown)}
