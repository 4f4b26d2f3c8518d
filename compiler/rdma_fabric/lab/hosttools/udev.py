"""udev rules of /etc/udev/rules.d and /run/udev/rules.d: what they match, run and want started.

A part of udev(7): match and assignment keys of network and RDMA devices, PROGRAM, RUN, ENV, GOTO.
Rules of the machine's /usr are not read, but those everybody has are played: netdevs are units
(99-systemd.rules), and drivers bring their RDMA drivers (rdma-core).
"""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH110, PTH112, PTH208

from __future__ import annotations

import fnmatch
import os
import re
import shlex
import subprocess

from . import store, units
from .driver import DRIVERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDERS = ("/etc/udev/rules.d", "/run/udev/rules.d")
_PAIR = re.compile(r'\s*([A-Z_]+)(?:\{([^}]*)\})?\s*(==|!=|\+=|-=|:=|=)\s*"((?:[^"\\]|\\.)*)"\s*,?')
_GROUPS = {"net": "/sys/class/net", "infiniband": "/sys/class/infiniband"}


class Device:
    """One event of one device: `subsystem` net or infiniband."""

    def __init__(self, action: str, subsystem: str, name: str) -> None:
        self.action, self.subsystem, self.name = action, subsystem, name
        self.path = f"{_GROUPS[subsystem]}/{name}"
        self.env = {"ACTION": action, "SUBSYSTEM": subsystem, "DEVPATH": self.path.removeprefix("/sys")}
        self.env |= {"INTERFACE": name} if subsystem == "net" else {"NAME": name}
        port = store.port_facts(name) if subsystem == "net" else None
        if port is not None and port["nic"] in DRIVERS:
            self.env |= {"ID_NET_DRIVER": DRIVERS[port["nic"]], "ID_PATH": f"pci-{port['bdf']}"}
        self.driver = self.env.get("ID_NET_DRIVER", "")
        self.result = ""
        self.run: list[str] = []

    def attribute(self, name: str) -> str:
        """Text of an attribute of the device, or of the PCI function behind it."""
        return store.slurp(f"{self.path}/{name}").strip() or store.slurp(f"{self.path}/device/{name}").strip()

    def wants(self) -> list[str]:
        """Units that the rules want started for the device."""
        return self.env.get("SYSTEMD_WANTS", "").split()


def apply(device: Device) -> Device:
    """Let every rule see the device, then run what they collected."""
    for path in _files():
        _file(path, device)
    for command in device.run:
        _run(device, command)
    return device


def _files() -> list[str]:
    """In the order of their names; a name in /etc hides the same one in /run."""
    found: dict[str, str] = {}
    for folder in FOLDERS:
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            if name.endswith(".rules"):
                found.setdefault(name, f"{folder}/{name}")
    return [found[name] for name in sorted(found)]


def _file(path: str, device: Device) -> None:
    label = ""
    for line in store.slurp(path).replace("\\\n", " ").splitlines():
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        pairs = list(_pairs(text))
        if not pairs:
            store.log(f"systemd-udevd: {path}: Invalid key/value pair, ignoring.")
            continue
        if label:
            label = "" if ("LABEL", "", "=", label) in pairs else label
            continue
        label = _rule(pairs, device)


def _pairs(text: str) -> Iterator[tuple[str, str, str, str]]:
    at = 0
    while at < len(text):
        found = _PAIR.match(text, at)
        if not found:
            return
        yield found[1], found[2] or "", found[3], found[4].replace('\\"', '"')
        at = found.end()


def _rule(pairs: list[tuple[str, str, str, str]], device: Device) -> str:
    """Match, then assign; returns the label to go to."""
    for key, inner, operator, value in pairs:
        if operator not in {"==", "!="} and key not in {"PROGRAM", "TEST", "IMPORT"}:
            continue
        if not _matches(device, key, inner, operator, value):
            return ""
    label = ""
    for key, inner, operator, value in pairs:
        if operator in {"==", "!="}:
            continue
        if key == "GOTO":
            label = value
        elif key == "ENV" and operator in {"=", "+=", ":="}:
            text = _expand(device, value)
            before = device.env.get(inner, "")
            device.env[inner] = f"{before} {text}".strip() if operator == "+=" else text
        elif key == "RUN" and inner in {"", "program"}:
            device.run.append(_expand(device, value))
    return label


def _matches(device: Device, key: str, inner: str, operator: str, value: str) -> bool:
    if key == "PROGRAM":
        done = _run(device, _expand(device, value))
        device.result = done.stdout.strip() if done else ""
        return done is not None and done.returncode == 0
    if key == "TEST":
        return os.path.exists(_expand(device, value)) == (operator != "!=")
    if key == "IMPORT":
        return True
    simple = {"ACTION": device.action, "SUBSYSTEM": device.subsystem, "KERNEL": device.name}
    simple |= {"NAME": device.name, "DEVPATH": device.env["DEVPATH"], "RESULT": device.result}
    simple |= {"DRIVER": device.driver, "DRIVERS": device.driver, "SUBSYSTEMS": device.subsystem}
    simple |= {"KERNELS": device.name, "TAG": "systemd"}
    if key in {"ATTR", "ATTRS"}:
        found = device.attribute(inner)
    elif key == "ENV":
        found = device.env.get(inner, "")
    elif key in simple:
        found = simple[key]
    else:
        return operator == "!="
    hit = any(fnmatch.fnmatchcase(found, pattern) for pattern in value.split("|"))
    return hit == (operator == "==")


def _expand(device: Device, text: str) -> str:
    """Substitutions: $name, $kernel, %k, $devpath, %p, $result, %c, $attr{}, $env{}, %E{}."""
    marked = text.replace("$$", "\0").replace("%%", "\1")
    marked = re.sub(r"\$(?:env)\{([^}]*)\}|%E\{([^}]*)\}", lambda m: device.env.get(m[1] or m[2], ""), marked)
    marked = re.sub(r"\$(?:attr)\{([^}]*)\}|%s\{([^}]*)\}", lambda m: device.attribute(m[1] or m[2]), marked)
    for word, value in (
        *((mark, device.name) for mark in ("$name", "$kernel", "%k")),
        *((mark, device.env["DEVPATH"]) for mark in ("$devpath", "%p")),
        *((mark, device.result) for mark in ("$result", "%c")),
    ):
        marked = marked.replace(word, value)
    return marked.replace("\0", "$").replace("\1", "%")


def _run(device: Device, command: str) -> subprocess.CompletedProcess[str] | None:
    """A program by its full path (else of /usr/lib/udev); udev gives it the device's environment only."""
    words = shlex.split(command)
    if words and not words[0].startswith("/"):
        words[0] = f"/usr/lib/udev/{words[0]}"
    try:
        return subprocess.run(
            words,
            env={**units.ENVIRONMENT, **device.env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        store.log(f"systemd-udevd: {device.name}: Failed to execute '{command}': {error.strerror}")
        return None
