#!/usr/bin/env python3
# managed by fabric: says whether this host is as the fabric's intent wants it; writes nothing
"""Runs on a host (Python 3.6 or later, standard library only), for a Slurm prolog, NHC or a readiness probe.

Judges the live settings named in the check file that the last change of this host brought along, or that
the image was built with. It asks no controller. Exit code 0: all is as wanted; 1: something is not; 2:
nothing is wrong as far as it can be judged, but not everything can.
"""

# Hosts have pythons as old as 3.6, so newer idioms stay out.
# ruff: noqa: B905, D102, D103, PTH119, PTH123, PTH207, UP031

import argparse
import errno
import glob
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

FILE = "/etc/fabric/check.json"
VERSION = 1
ON = ("1", "true", "on")
LISTED = 8
GRACE_S = 0.2


class Unread(Exception):
    """A live value could not be read; the text says why."""


class Absent(Unread):
    """There is no such file or program."""


# ------------------------------------------------------------------ what there is to read


class Machine:
    """Texts of files and programs, each read once; programs run at the same time."""

    def __init__(self, root, deadline):
        self.root, self.deadline = root.rstrip("/"), deadline
        self.scripts = {}
        self.said = {}
        self.devices = {}

    def at(self, path):
        return self.root + path

    def fill(self, word, probe):
        """The word with the port's RDMA device and PCI address in it."""
        if "{device}" in word:
            device = self.device(probe["port"]) or probe.get("device", "")
            if not device:
                raise Unread("no RDMA device belongs to %s" % probe["port"])
            word = word.replace("{device}", device)
        if "{kernel}" in word:
            word = word.replace("{kernel}", os.uname()[2])
        if "{bdf}" in word:
            there = os.path.realpath(self.at("/sys/class/net/%s/device" % probe["port"]))
            word = word.replace("{bdf}", os.path.basename(there))
        return word

    def device(self, port):
        """The RDMA device of a netdev (sysfs gid_attrs/ndevs); "" where the kernel knows none."""
        if not self.devices:
            self.devices[""] = ""
            pattern = self.at("/sys/class/infiniband/*/ports/1/gid_attrs/ndevs/0")
            for path in glob.glob(pattern):
                name = path[len(self.root) :].split("/")[4]
                self.devices[slurp(path, quiet=True).strip()] = name
        return self.devices.get(port, "")

    def argv(self, reading, probe):
        """The program of a reading and its arguments; a script's shell."""
        shell = ["sh", "-c", self.scripts[reading["script"]], "sh"] if "script" in reading else []
        return tuple(shell + [self.fill(word, probe) for word in reading["argv"]])

    def ask(self, commands):
        """Run all programs; what they say is kept."""
        left = list(commands)
        lock = threading.Lock()

        def work():
            while True:
                with lock:
                    if not left:
                        return
                    argv = left.pop()
                answer = self.run(argv)
                with lock:
                    self.said[argv] = answer

        threads = [threading.Thread(target=work) for _ in range(min(16, len(left)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def run(self, argv):
        """Standard output, or an Unread."""
        environment = dict(os.environ, LC_ALL="C")
        environment["PATH"] = environment.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            kind = Absent if error.errno == errno.ENOENT else Unread
            return kind("%s: %s" % (argv[0], error.strerror))
        try:
            out, err = process.communicate(timeout=max(0.1, self.deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            end(process)
            return Unread("%s does not answer" % argv[0])
        if process.returncode:
            lines = [line.strip() for line in (err or out).decode("utf-8", "replace").split("\n")]
            why = ([""] + [line for line in lines if line])[-1]
            return Unread("%s: exit %d%s" % (argv[0], process.returncode, why and ": " + why[:200]))
        return out.decode("utf-8", "replace")

    def text(self, reading, probe):
        """What one reading sees; raises Unread."""
        if "argv" in reading:
            argv = self.argv(reading, probe)
            if argv not in self.said:
                self.said[argv] = self.run(argv)
            said = self.said[argv]
            if isinstance(said, Unread):
                raise said
            return said
        if "names" in reading:
            return "\n".join(sorted(glob.glob(self.at(reading["names"]))))
        path = self.fill(reading["path"], probe)
        if "*" not in path and " " not in path:
            return slurp(self.at(path))
        paths = [one for pattern in path.split(" ") for one in sorted(glob.glob(self.at(pattern)))]
        texts = [(one, slurp(one, quiet=True).strip()) for one in paths]
        return "\n".join("%s=%s\n%s" % (one, text, text) for one, text in texts)


def end(process):
    """Kill a program that hangs, without waiting for one that cannot die: a driver may hold it."""
    os.killpg(process.pid, signal.SIGKILL)
    try:
        process.communicate(timeout=GRACE_S)
    except subprocess.TimeoutExpired:
        process.stdout.close()
        process.stderr.close()


def slurp(path, quiet=False):
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError as error:
        if quiet:
            return ""
        kind = Absent if error.errno in (errno.ENOENT, errno.ENOTDIR) else Unread
        raise kind("%s: %s" % (path, error.strerror)) from None


# ------------------------------------------------------------------ what it means


def words(text):
    return re.findall(r"[\w.%-]+", text)


def stepped(text, steps):
    """The word of the largest step that is not above the number."""
    below = [word for least, word in steps if least <= int(text)]
    return below[-1] if below else ""


def table(found, reading, size):
    """The value of every place, "" where none is told. A pattern without places gives a list."""
    values = [""] * size
    if isinstance(found[0], str):
        listed = words(" ".join(found))
        if reading.get("source"):
            pairs = [(at, listed[one]) for at, one in enumerate(reading["source"]) if one < len(listed)]
        else:
            pairs = zip(reading.get("places") or range(len(listed)), listed)
    else:
        pairs = ((int(place), value) for at, value in found for place in re.findall(r"\d+", at))
    for place, value in pairs:
        if place < size:
            values[place] = value
    return values


def matches(pattern, text):
    """Texts of the one group, or pairs (places, value) where the pattern names two."""
    compiled = re.compile(pattern, re.MULTILINE)
    if "at" in compiled.groupindex:
        return [(one.group("at"), one.group("value")) for one in compiled.finditer(text)]
    return [" ".join(one.group(1).split()) for one in compiled.finditer(text)]


def meaning(probe, reading, found):
    """What the matches say, in the words of the probe; a table as a list."""
    how = probe.get("how", "text")
    if not found:
        return [] if how == "table" else reading["none"]
    if how == "table":
        return table(found, reading, len(probe["accept"]))
    if how == "bits":
        places = [place for place, bit in enumerate(table(found, reading, 64)) if bit.lower() in ON]
        return ",".join(map(str, places)) or "none"
    if how == "last":
        return found[-1]
    if how == "set":
        return ",".join(sorted({word for one in found for word in words(one)}))
    if reading.get("steps"):
        return stepped(found[0], reading["steps"]) or reading.get("none", "")
    return ",".join(found)


def look(machine, probe):
    """What the probe finds; raises Unread when no reading tells.

    A file that is not there says "none" where the reading has such a word; a program that is not there, or
    that failed, says nothing.
    """
    absent = failed = None
    for reading in probe["readings"]:
        try:
            text = machine.text(reading, probe)
        except Absent as error:
            absent = error
            if "argv" in reading or "when" in reading:
                continue
            text = ""
        except Unread as error:
            failed = error
            continue
        found = matches(reading["pattern"], text)
        if found or (failed is None and means_none(reading, text)):
            return meaning(probe, reading, found)
    raise failed or absent or Unread("the answer was not understood")


def means_none(reading, text):
    """True where no match has a meaning of its own."""
    return bool(reading.get("none")) and bool(re.search(reading.get("when", ""), text, re.MULTILINE))


def named(probe, place=0):
    return {
        "port": probe["port"],
        "setting": probe["setting"].replace("{at}", str(place)),
        "key": probe["key"].replace("{at}", str(place)),
    }


def judge(probe, found):
    """What is wrong, and what could not be judged, as rows."""
    if probe.get("how") == "table":
        return judge_table(probe, found)
    return ([] if found in probe["accept"] else [wrong_row(probe, found, probe["wanted"])]), []


def judge_table(probe, found):
    unlike = [
        (at, pair) for at, pair in enumerate(zip(found, probe["accept"])) if pair[1] not in ("", pair[0])
    ]
    wrong = [(at, have, want) for at, (have, want) in unlike if have]
    untold = [at for at, (have, _) in unlike if not have]
    if "{at}" in probe["key"]:
        unknown = [dict(named(probe, at), why="the answer does not tell it") for at in untold]
        return [wrong_row(probe, have, want, at) for at, have, want in wrong], unknown
    if wrong:
        shown = ", ".join("%d->%s" % row[:2] for row in wrong[:LISTED])
        shown += " and %d more" % (len(wrong) - LISTED) if len(wrong) > LISTED else ""
        return [wrong_row(probe, shown, probe["wanted"])], []
    why = "the answer does not tell of %s" % ", ".join(map(str, untold[:LISTED]))
    return [], [dict(named(probe), why=why)] if untold else []


def wrong_row(probe, found, wanted, place=0):
    return dict(named(probe, place), found=found, wanted=wanted, help=probe.get("help", ""))


def check(probes, machine):
    """(what is wrong, what could not be judged); a setting is told once."""
    for probe in probes:
        probe.setdefault("port", "")
    machine.ask(programs(probes, machine))
    wrong, unknown = {}, {}
    for probe in probes:
        try:
            bad, untold = judge(probe, look(machine, probe))
        except Unread as unread:
            bad, untold = [], [dict(named(probe), why=str(unread))]
        for row in bad:
            wrong.setdefault((row["port"], row["key"]), row)
        for row in untold if not probe.get("optional") else ():
            unknown.setdefault((row["port"], row["key"]), row)
    return list(wrong.values()), [row for name, row in unknown.items() if name not in wrong]


def programs(probes, machine):
    """The programs of all first readings; further ones run only where those tell nothing."""
    found = {}
    for probe in probes:
        reading = probe["readings"][0]
        try:
            if "argv" in reading:
                found[machine.argv(reading, probe)] = True
        except Unread:
            continue
    return list(found)


# ------------------------------------------------------------------ main


def load(path):
    """The probes of a check file; ValueError says what is wrong with it."""
    try:
        with open(path, "rb") as file:
            data = json.loads(file.read().decode("utf-8"))
        if data["version"] != VERSION:
            raise ValueError("%s is of version %s, not %d" % (path, data["version"], VERSION))
        return data
    except OSError as error:
        raise ValueError("%s: %s; `fabric apply` writes it" % (path, error.strerror)) from None
    except (KeyError, TypeError):
        raise ValueError("%s is not a check file" % path) from None


def name(row):
    return ("%s %s" % (row["port"], row["setting"])).strip()


def text(result):
    lines = []
    for row in result["wrong"]:
        line = "%s: found %s, wanted %s" % (name(row), row["found"], row["wanted"])
        lines.append(line + ("; " + row["help"] if row["help"] else ""))
    lines += ["%s: could not be judged: %s" % (name(row), row["why"]) for row in result["unknown"]]
    if result["problem"]:
        lines.append("fabric-check: " + result["problem"])
    elif not result["wrong"] and not result["unknown"]:
        lines.append("fabric-check: all %d settings are as wanted" % result["checked"])
    else:
        counts = "%d wrong" % len(result["wrong"])
        counts += ", %d could not be judged" % len(result["unknown"]) if result["unknown"] else ""
        lines.append("fabric-check: %d settings: %s" % (result["checked"], counts))
    return "\n".join(lines)


def main(argv=None):
    parser = argparse.ArgumentParser(prog="fabric-check", description=__doc__.split("\n\n")[1])
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--file", default="", help="another check file than " + FILE)
    parser.add_argument("--timeout", type=float, default=5.0, help="seconds for all programs together")
    parser.add_argument("--root", default="/", help="another root folder, for tests")
    options = parser.parse_args(argv)
    began = time.monotonic()  # the clock of a host that just booted may jump
    machine = Machine(options.root, began + options.timeout)
    result = {"version": 1, "good": False, "checked": 0, "wrong": [], "unknown": [], "problem": ""}
    try:
        data = load(options.file or machine.at(FILE))
        machine.scripts = data["scripts"]
        result["checked"] = len(data["probes"])
        result["wrong"], result["unknown"] = check(data["probes"], machine)
    except ValueError as error:
        result["problem"] = str(error)
    except (AttributeError, LookupError, RecursionError, TypeError, re.error) as error:
        result["problem"] = "%s is damaged (%s %s); `fabric apply` writes it anew" % (
            options.file or FILE,
            type(error).__name__,
            error,
        )
    status = 1 if result["wrong"] else 2 if result["unknown"] or result["problem"] else 0
    result["good"] = status == 0
    result["seconds"] = round(time.monotonic() - began, 3)
    out = json.dumps(result, sort_keys=True) if options.format == "json" else text(result)
    encoding = sys.stdout.encoding or "ascii"
    sys.stdout.write(out.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
