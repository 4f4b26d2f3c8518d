"""Every key of the schema at every level: it changes something, is refused, or is told to reach nothing.

The fabric is inventory/mixed: switches and hosts, an InfiniBand and a RoCE network.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel

from rdma_fabric.checker import build, check
from rdma_fabric.cli.common import load
from rdma_fabric.findings import InputError
from rdma_fabric.intent.models import (
    Hosts,
    Ipoib,
    MtuWish,
    Pfc,
    Rdma,
    SubnetManager,
    Topology,
    TrafficClass,
    Wishes,
)
from rdma_fabric.what_if import WhatIf
from tests.support.fabrics import REPOSITORY

FOLDER = REPOSITORY / "inventory" / "mixed"
TODAY = datetime.date(2026, 11, 30)

VALUES: dict[str, tuple[str, ...]] = {
    "rdma.transport": ("infiniband", "rocev2"),
    "rdma.mtu": ("1024",),
    "mtu.switch": ("5000",),
    "mtu.host": ("5000",),
    "mtu.svi": ("5000",),
    "trust": ("pcp",),
    "classes.*.priority": ("5",),
    "classes.*.dscp": ("[11]",),
    "classes.*.pcp": ("[2]",),
    "classes.*.lossless": ("true",),
    "classes.*.bandwidth": ("7%",),
    "classes.*.weight": ("9",),
    "classes.*.scheduler": ("strict",),
    "classes.*.cap": ("33%",),
    "classes.*.ecn": ("{any: {kmin: 11KB, kmax: 22KB}}",),
    "classes.*.pfc": ("receive-only",),
    "classes.*.headroom": ("77KB",),
    "classes.*.kind": ("control",),
    "classes.*.sl": ("5",),
    "classes.*.vl": ("3",),
    "ecn": ("{100G: {kmin: 11KB, kmax: 22KB, pmax: 5%}}",),
    "pfc.watchdog": ("{detect: 300ms, restore: 600ms, action: forward}",),
    "pfc.headroom": ("77KB",),
    "pfc.dcbx": ("ieee",),
    "pfc.enabled": ("false",),
    "dcqcn": ("false", "{rp: {ai_rate: 7}}"),
    "hosts.modules": ("[rpcrdma]",),
    "hosts.module_options": ("{mlx5_core: {prof_sel: 3}}",),
    "hosts.sysctl": ("{net.ipv4.tcp_ecn: 2}",),
    "hosts.limits": ("{nofile: 7777}",),
    "hosts.services": ("[slurmd]",),
    "hosts.environment": ("{NCCL_DEBUG: INFO}",),
    "hosts.nccl": ("true",),
    "hosts.ucx": ("true",),
    "hosts.buffers": ("{roce: 99KB}",),
    "hosts.nv": ("{mlx5: {CNP_DSCP: 9}}", "{bnxt: {ABC: 9}}"),
    "hosts.firmware": ('{bnxt: "28.1"}',),
    "hosts.drivers": ('{bnxt: "5.0"}',),
    "hosts.local_check": ("false",),
    "hosts.force_traffic_class": ("false",),
    "hosts.roce_class": ("default",),
    "hosts.ipoib.mode": ("connected",),
    "hosts.ipoib.interfaces": ("true",),
    "subnet_manager.owner": ("ufm",),
    "subnet_manager.nodes": ("[{node: sm1, priority: 3}]",),
    "subnet_manager.routing": ("[minhop]",),
    "subnet_manager.lfts_file": ("/etc/opensm/lfts",),
    "subnet_manager.lmc": ("2",),
    "subnet_manager.vls": ("8",),
    "subnet_manager.high_limit": ("9",),
    "subnet_manager.partitions": ("[{name: z, pkey: 3, members: {full: [ALL]}}]",),
    "subnet_manager.partitions_file": ("nothing.conf",),
    "topology.oversubscription": ('"0.1:1"',),
    "topology.dual_homed": ("true",),
}
"""Key -> values that no place of the fabric has yet."""
PLACES = {
    "": "",
    "networks.compute.": "compute",
    "networks.storage.": "storage",
    "ibleaf1:": "compute",
    "stor1:": "storage",
    "gpu1:": "storage",
    "sm1:": "compute",
    "ibleaf1:1/1:": "compute",
    "stor1:Ethernet1/1:": "storage",
    "gpu1:ib0:": "compute",
    "gpu1:eth0:": "storage",
}
"""Level, as what-ifs name it -> the network whose classes are tried."""


def _keys(model: type[BaseModel], before: str = "") -> Iterator[str]:
    for name, item in model.model_fields.items():
        below = [one for one in (item.annotation, *get_args(item.annotation)) if one in _MODELS]
        if name == "classes":
            yield from _keys(TrafficClass, f"{before}{name}.*.")
        elif below:
            yield from _keys(below[0], f"{before}{name}.")
        else:
            yield f"{before}{name}"


_MODELS: tuple[Any, ...] = (Hosts, Ipoib, MtuWish, Pfc, Rdma, SubnetManager, Topology)


def test_every_key_of_the_schema_is_tried() -> None:
    assert set(VALUES) == set(_keys(Wishes))


def _written(folder: Path, place: str, key: str, value: str) -> tuple[Any, Any]:
    """The outcome with a wish in the intent's file."""
    for file in FOLDER.glob("*.*"):
        (folder / file.name).unlink(missing_ok=True)
        (folder / file.name).write_bytes(file.read_bytes())
    path = folder / "fabric.yaml"
    data = below = yaml.safe_load(path.read_text(encoding="utf-8"))
    *parts, last = f"{place}{key}".split(".")
    for part in parts:
        below = below.setdefault(part, {})
    below[last] = yaml.safe_load(value)
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    return _outcome(folder=folder)


def _outcome(*changes: WhatIf, folder: Path = FOLDER) -> tuple[Any, Any]:
    resolved = load(folder, changes)
    report = check(build(resolved), TODAY)
    found = {(one.code, one.setting, one.found, one.wanted, str(one.places)) for one in report.findings}
    return {name: (plan.state, plan.hardware) for name, plan in resolved.plans.items()}, found


@cache
def _before() -> tuple[Any, Any]:
    return _outcome()


QUIET = {
    "rdma.transport": "the network has it already",
    "rdma.mtu": "a smaller need, which everything meets",
    "classes.*.lossless": "the class is so already",
    "classes.*.pcp": "trust is dscp",
    "dcqcn": "rules ask switch ports too whether it is on; off is what InfiniBand has",
    "hosts.roce_class": "read for the variables of jobs, which are off",
    "topology.oversubscription": "there are no cables between switches",
}
"""What may change nothing in this fabric, at whatever level, and why."""
QUIET_FABRIC = {
    **dict.fromkeys(("classes.*.priority", "classes.*.dscp", "classes.*.kind"), "InfiniBand has levels"),
    "pfc.enabled": "off is what InfiniBand has",
}
QUIET_WHOLE = {
    "mtu.svi": "interfaces may come",
    "classes.*.priority": "a class that nothing is put into",
}


@pytest.mark.parametrize("place", PLACES, ids=lambda one: one or "top")
def test_no_wish_is_dropped_without_a_word(place: str, tmp_path: Path) -> None:
    in_file = place.startswith("networks.")  # what the top level says, networks say otherwise
    network = PLACES[place]
    quiet = QUIET | (QUIET_FABRIC if network == "compute" else {})
    quiet |= QUIET_WHOLE if in_file or not place else {}
    silent = []
    for key, values in VALUES.items():
        named = key.replace("*", "roce" if network == "storage" else "jobs")
        for value in values:
            try:
                if in_file:
                    after = _written(tmp_path, place, named, value)
                else:
                    after = _outcome(WhatIf(f"{place}{named}", value))
            except InputError:
                continue
            if after == _before() and key not in quiet:
                silent.append(f"{key}={value}")
    assert silent == []
