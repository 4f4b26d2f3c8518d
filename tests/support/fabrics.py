"""Small fabrics on the embedded lab, and the command line run on them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rdma_fabric.cli import main
from rdma_fabric.lab import fabric as lab

REPOSITORY = Path(__file__).resolve().parents[2]
DEMO = REPOSITORY / "inventory" / "demo"
CABLES = "a_node,a_port,b_node,b_port,length_m\n"


@dataclass(frozen=True, slots=True)
class Model:
    """A switch of a platform: what the inventory says, and four ports."""

    platform: str
    model: str
    version: str
    ports: tuple[str, str, str, str]


MODELS: Mapping[str, Model] = {
    one.platform: one
    for one in (
        Model(
            "arista_eos",
            "DCS-7060X6-64PE",
            "4.32.1F",
            ("Ethernet1/1", "Ethernet2/1", "Ethernet3/1", "Ethernet4/1"),
        ),
        Model("sonic", "ACS-SN5600", "202411", ("Ethernet0", "Ethernet8", "Ethernet16", "Ethernet24")),
        Model("cumulus", "SN5600", "5.14", ("swp1", "swp2", "swp3", "swp4")),
    )
}


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command said and how it ended."""

    status: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)

    @property
    def rows(self) -> dict[str, Any]:
        """Node -> its row (apply, rollback)."""
        return {row["node"]: row for row in self.data["rows"]}

    @property
    def statuses(self) -> dict[str, str]:
        """Node -> status of its row."""
        return {name: row["status"] for name, row in self.rows.items()}

    @property
    def drifts(self) -> dict[str, list[tuple[str, str, str, str, str]]]:
        """Node -> (layer, port, setting, found, wanted) of what drifted; nodes without drift left out."""
        return {
            node["node"]: [
                (one["layer"], one["port"], one["setting"], one["found"], one["wanted"])
                for one in node["drift"]
            ]
            for node in self.data["nodes"]
            if node["drift"]
        }

    @property
    def text(self) -> str:
        """Both streams."""
        return f"{self.out}\n{self.err}"


@dataclass(slots=True)
class Fabric:
    """A folder with intent and inventory; `lab` commands work when its lab is up."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    # -- the command line

    def run(self, *words: str, status: int | None = None) -> Ran:
        """`fabric WORDS` in this process, in the fabric's folder (-C is added)."""
        out, err = io.StringIO(), io.StringIO()
        argv = [words[0], "-C", str(self.folder), *words[1:]]
        if words[0] == "lab":
            argv = ["lab", words[1], "-C", str(self.folder), *words[2:]]
        with (
            _environment(self.environment),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            ended = main(argv)
        found = Ran(ended, out.getvalue(), err.getvalue())
        assert status is None or ended == status, f"{' '.join(words)}: {ended}\n{found.text}"
        return found

    def json(self, *words: str, status: int | None = None) -> Ran:
        """The same with --lab and --format json."""
        return self.run(words[0], "--lab", "--format", "json", *words[1:], status=status)

    def apply(self, *words: str, status: int | None = None) -> Ran:
        """`fabric apply --lab --yes --format json`."""
        return self.json("apply", "--yes", *words, status=status)

    def drift(self, *words: str, status: int | None = None) -> Ran:
        """`fabric drift --lab --format json`."""
        return self.json("drift", *words, status=status)

    def rollback(self, run: str = "", *words: str, status: int | None = None) -> Ran:
        """`fabric rollback RUN --lab --yes --format json`; of "" the newest."""
        named = (run,) if run else ()
        return self.json("rollback", *named, "--yes", *words, status=status)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """`fabric WORDS` in a process of its own, which can be killed; stdout and stderr are pipes."""
        program = Path(sys.executable).parent / "fabric"
        return subprocess.Popen(
            [str(program), words[0], "-C", str(self.folder), *words[1:]],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **self.environment},
        )

    def runs(self) -> list[dict[str, Any]]:
        """All runs as `fabric runs --format json` tells them, oldest first."""
        found: list[dict[str, Any]] = self.run("runs", "--format", "json", status=0).data["runs"]
        return found

    # -- the devices

    def somebody(self, node: str, *lines: str) -> str:
        """Another administrator types lines on a node."""
        return lab.somebody(self.folder, node, lines)

    def running(self, node: str) -> str:
        """The running configuration of a switch."""
        return lab.running(self.folder, node)

    def lines(self, node: str) -> list[str]:
        """What a node was sent so far."""
        return [entry.line for entry in lab.sessions(self.folder, node)]

    @contextlib.contextmanager
    def broken(self, node: str, kind: str, pattern: str = "", **parts: Any) -> Iterator[None]:
        """A fault while the block runs."""
        lab.break_(self.folder, node, kind, pattern, **parts)
        try:
            yield
        finally:
            lab.mend(self.folder, node)

    def held(self, node: str) -> tuple[str, ...]:
        """Lines that wait on a node."""
        found = lab.status(self.folder)
        assert found is not None
        return found.nodes[node].held

    def skipped(self) -> Mapping[str, str]:
        """Nodes that this machine cannot play, with the reason."""
        found = lab.status(self.folder)
        assert found is not None
        return found.skipped

    # -- files

    def reached_as_real(self) -> None:
        """Rewrites hosts.yaml so that the lab's nodes are reached without --lab, as real ones are.

        Hosts get the lab's key; switches get none, so that a password is needed.
        """
        rows = []
        for name, one in lab.endpoints(self.folder).items():
            group = "gpu" if one.kind == "host" else one.platform
            login = f"hostname: {one.host}, port: {one.port}, username: {one.username}"
            key = f", connection_options: {{netmiko: {{extras: {{key_file: {one.key_file}}}}}}}"
            rows.append(f"{name}: {{groups: [{group}], {login}{key if one.kind == 'host' else ''}}}\n")
        self.write(hosts="".join(rows))

    def write(self, **files: str) -> None:
        """Files of the folder by stem: fabric, groups, hosts, defaults as YAML, cables as CSV."""
        for stem, text in files.items():
            suffix = "csv" if stem == "cables" else "yaml"
            (self.folder / f"{stem}.{suffix}").write_text(text, encoding="utf-8")

    def edit(self, name: str, old: str, new: str) -> None:
        """Replaces text that must be in a file of the folder."""
        path = self.folder / name
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{old!r} is not in {name}"
        path.write_text(text.replace(old, new), encoding="utf-8")


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def wait_for(what: Callable[[], object], seconds: float = 300.0) -> None:
    """Waits until `what` gives something true; fails after `seconds`."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"still not so after {seconds} s"
        time.sleep(0.05)


def make(
    folder: Path,
    switches: Mapping[str, str],
    *,
    hosts: Sequence[str] = (),
    cables: str = "",
    state: str = "planned",
    seeds: Mapping[str, Sequence[str]] | None = None,
) -> Fabric:
    """Writes a fabric: switches as name -> platform, hosts with eth0 and eth1, the demo's intent.

    Without `cables`, two switches that follow each other and have the same platform share a cable on
    their last ports. `seeds`: foreign lines of switches.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = Fabric(folder)
    groups = [_group(MODELS[name]) for name in dict.fromkeys(switches.values())]
    nodes = []
    for index, (name, platform) in enumerate(switches.items(), 1):
        seed = json.dumps(list((seeds or {}).get(name, ())))
        data = f", data: {{lab_seed: {seed}}}" if seeds and name in seeds else ""
        nodes.append(f"{name}: {{groups: [{platform}], hostname: 192.0.2.{index}{data}}}\n")
    for index, name in enumerate(hosts, 1):
        nodes.append(f"{name}: {{groups: [gpu], hostname: 192.0.2.{index + 100}}}\n")
    found.write(
        fabric=(DEMO / "fabric.yaml").read_text(encoding="utf-8"),
        groups="".join(groups) + (_HOSTS if hosts else ""),
        hosts="".join(nodes),
        defaults=f"data: {{state: {state}}}\n",
        cables=CABLES + (cables or _pairs(switches)),
    )
    return found


_HOSTS = """gpu:
  platform: linux
  data:
    role: host
    stack: inbox
    mtu_manager: networkd
    ports:
      "eth[0-1]": {speed: 400G, network: compute, nic: mlx5, rdma: "mlx5_[0-1]", rail: "[0-1]"}
"""


def _group(model: Model) -> str:
    ports = "".join(f'      "{name}": {{speed: 400G, network: compute}}\n' for name in model.ports)
    return (
        f"{model.platform}:\n  platform: {model.platform}\n  data:\n    role: leaf\n"
        f'    model: {model.model}\n    version: "{model.version}"\n    ports:\n{ports}'
    )


def _pairs(switches: Mapping[str, str]) -> str:
    names = list(switches)
    rows = []
    for a, b in zip(names[::2], names[1::2], strict=False):
        rows.append(f"{a},{MODELS[switches[a]].ports[3]},{b},{MODELS[switches[b]].ports[3]},5\n")
    return "".join(rows)


@contextlib.contextmanager
def lab_up(fabric: Fabric, *, password: str = "", needs: Sequence[str] = ()) -> Iterator[Fabric]:
    """The fabric with its lab up; skips, with the lab's reason, when one of `needs` cannot be played."""
    more = {"FABRIC_LAB_PASSWORD": password} if password else {}
    fabric.environment.update(more)
    fabric.run("lab", "up", status=0)
    for name in more:
        del fabric.environment[name]
    try:
        reasons = {name: why for name, why in fabric.skipped().items() if name in needs}
        if reasons:
            pytest.skip(f"this machine cannot play hosts: {next(iter(reasons.values()))}")
        yield fabric
    finally:
        lab.down(fabric.folder)
