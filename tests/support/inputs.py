"""A fabric from a few lines of text: input files in a folder, loaded and resolved, no platform involved."""

from __future__ import annotations

from pathlib import Path

from rdma_fabric.inventory.load import load as load_inventory
from rdma_fabric.resolve import Resolved, WhatIf, load_intent, resolve

BASES = ("box", "switch")

INTENT = """\
version: 1
name: t
mtu: {switch: max, host: 9000}
classes:
  roce: {priority: 3, dscp: [26], lossless: true, bandwidth: 50%}
  cnp: {priority: 6, dscp: [48], scheduler: strict}
  default: {priority: 0, dscp: rest, bandwidth: 50%}
ecn: {400G: {kmin: 150KB, kmax: 1500KB, pmax: 100%}}
pfc: {watchdog: {detect: 200ms, restore: 400ms, action: drop}}
dcqcn: true
networks: {compute: {}, storage: {}}
"""
GROUPS = """\
leaf:
  platform: switch
  data:
    role: leaf
    ports: {"e[1-4]": {speed: 400G, network: compute}}
gpu:
  platform: box
  data:
    role: host
    ports:
      "eth[0-1]": {speed: 400G, network: compute, nic: mlx5, rdma: "mlx5_[0-1]", rail: "[0-1]"}
      eth2: {speed: 100G, network: storage, nic: mlx5}
"""
HOSTS = """\
leaf[01-02]: {groups: [leaf]}
gpu[01-04]: {groups: [gpu]}
"""
CABLES = """\
a_node,a_port,b_node,b_port,length_m
gpu[01-04],eth0,leaf01,e[1-4],5
gpu[01-04],eth1,leaf02,e[1-4],5
"""


def write(
    folder: Path,
    intent: str = INTENT,
    *,
    hosts: str = HOSTS,
    groups: str = GROUPS,
    defaults: str = "",
    cables: str = CABLES,
) -> Path:
    """The five input files; an empty text leaves the file out."""
    texts = {
        "fabric.yaml": intent,
        "hosts.yaml": hosts,
        "groups.yaml": groups,
        "defaults.yaml": defaults,
        "cables.csv": cables,
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        if text:
            (folder / name).write_text(text, encoding="utf-8")
    return folder


def fabric(folder: Path, intent: str = INTENT, *changes: tuple[str, str | None], **files: str) -> Resolved:
    """The resolved fabric of these files with (key, value) as --set, (key, None) as --unset."""
    write(folder, intent, **files)
    inventory = load_inventory(folder, BASES)
    what_ifs = [WhatIf(key, text) for key, text in changes]
    return resolve(*load_intent(folder / "fabric.yaml"), inventory, what_ifs)
