"""Sound fabrics of many shapes as text files: an intent, an inventory, a cable plan.

Everything follows from a number. The module knows what a network engineer knows about a sound fabric, and
nothing of how the product judges one: it imports nothing of it.
"""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

COLUMNS = ("a_node", "a_port", "b_node", "b_port", "length_m")
Data = dict[str, Any]


@dataclass(frozen=True)
class Model:
    """A switch model: how its ports are called, whole and broken out."""

    platform: str
    model: str
    version: str
    whole: str
    """Name of front-panel port number N, counted from 1."""
    parts: str
    """Name of part K (from 0) of the same port in a two-way breakout."""
    step: int = 1
    """SONiC counts lanes: the number in a name grows by this per port."""

    def port(self, number: int) -> str:
        """Name of a front-panel port."""
        return self.whole.format(n=number, z=(number - 1) * self.step)

    def part(self, number: int, part: int) -> str:
        """Name of one half of a front-panel port."""
        half = self.step // 2
        return self.parts.format(n=number, k=part, one=1 + 4 * part, z=(number - 1) * self.step + part * half)


MODELS = {
    "eos": Model("arista_eos", "DCS-7060X6-64PE", "4.32.1F", "Ethernet{n}/1", "Ethernet{n}/{one}"),
    "sonic": Model("sonic", "ACS-SN5600", "202411", "Ethernet{z}", "Ethernet{z}", 8),
    "sonic-th5": Model("sonic", "Arista-7060X6-64PE-64x400G", "202405", "Ethernet{z}", "Ethernet{z}", 8),
    "cumulus": Model("cumulus", "SN5600", "5.14", "swp{n}", "swp{n}s{k}"),
}
VENDORS = tuple(MODELS)
IB_MODELS = {"ib": Model("nvidia_ib", "MQM8700", "3.11.3006", "1/{n}", "1/{n}/{one}")}
"""InfiniBand switches."""


@dataclass
class Node:
    """One node: its group, its address, and data of its own."""

    name: str
    group: str
    address: str
    data: Data = field(default_factory=dict)


@dataclass(frozen=True)
class Cable:
    """One cable."""

    a: str
    a_port: str
    b: str
    b_port: str
    length: int | str

    @property
    def ends(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Both ends as (node, port)."""
        return (self.a, self.a_port), (self.b, self.b_port)


@dataclass
class Fabric:
    """The three files as data, to be changed before they are written."""

    name: str
    intent: Data
    groups: dict[str, Data] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    cables: list[Cable] = field(default_factory=list)
    defaults: Data = field(default_factory=dict)
    guids: dict[tuple[str, str], str] = field(default_factory=dict)
    """(node, port) -> GUID of an InfiniBand port."""
    more: dict[str, str] = field(default_factory=dict)
    """Further files: name -> text."""
    short: bool = False
    """Write equal nodes and cables as ranges."""
    traits: tuple[str, ...] = ()
    """What makes this shape special, for tests that look for one."""

    def copy(self) -> Fabric:
        """An independent copy."""
        return copy.deepcopy(self)

    # -- questions

    def hosts(self) -> list[str]:
        """Names of the hosts."""
        return [name for name, node in self.nodes.items() if self.role(name) == "host"]

    def switches(self, role: str = "") -> list[str]:
        """Names of the Ethernet switches (of a role)."""
        return [
            name for name in self._all_switches() if role in ("", self.role(name)) and not self.is_ib(name)
        ]

    def ib_switches(self, role: str = "") -> list[str]:
        """Names of the InfiniBand switches (of a role)."""
        return [name for name in self._all_switches() if role in ("", self.role(name)) and self.is_ib(name)]

    def _all_switches(self) -> list[str]:
        return [name for name in self.nodes if self.role(name) not in ("host", "sm")]

    def is_ib(self, name: str) -> bool:
        """True for an InfiniBand switch."""
        return self.platform(name) in {model.platform for model in IB_MODELS.values()}

    def role(self, name: str) -> str:
        """Role of a node."""
        node = self.nodes[name]
        found: str = node.data.get("role") or self.groups[node.group]["data"]["role"]
        return found

    def platform(self, name: str) -> str:
        """Platform of a node."""
        found: str = self.groups[self.nodes[name].group]["platform"]
        return found

    def ports(self, name: str) -> dict[str, Data]:
        """Port -> its data, of a node."""
        found = {
            port: dict(data) for port, data in self.groups[self.nodes[name].group]["data"]["ports"].items()
        }
        for port, data in self.nodes[name].data.get("ports", {}).items():
            found.setdefault(port, {}).update(data)
        return found

    def peers(self, name: str) -> dict[str, tuple[str, str]]:
        """Cabled port of a node -> the other end."""
        found = {}
        for cable in self.cables:
            for own, other in (cable.ends, cable.ends[::-1]):
                if own[0] == name:
                    found[own[1]] = other
        return found

    # -- changes

    def node_set(self, name: str, key: str, value: Any) -> None:
        """A setting of one node, by a dotted key of the intent."""
        self.nodes[name].data.setdefault("set", {})[key] = value

    def port_set(self, name: str, port: str, key: str, value: Any) -> None:
        """A setting of one port."""
        self.port_data(name, port).setdefault("set", {})[key] = value

    def port_data(self, name: str, port: str) -> Data:
        """The node's own data of a port, to be changed."""
        found: Data = self.nodes[name].data.setdefault("ports", {}).setdefault(port, {})
        return found

    def new_port(self, name: str, number: int, network: str = "compute", speed: str = "400G") -> str:
        """A further port of one switch, by its front-panel number; returns its name."""
        port = model_of(self.nodes[name].group).port(number)
        self.port_data(name, port).update(speed=speed, network=network)
        return port

    def override(self, where: str, **settings: Any) -> None:
        """One more override at the end; `__` in a name stands for a dot."""
        found = {key.replace("__", "."): value for key, value in settings.items()}
        self.intent.setdefault("overrides", []).append({"where": where, "set": found})

    # -- files

    def files(self) -> dict[str, str]:
        """File name -> text."""
        hosts = (
            self._short_hosts() if self.short else {node.name: _entry(node) for node in self.nodes.values()}
        )
        found = {
            "fabric.yaml": _yaml(self.intent),
            "groups.yaml": _yaml(self.groups),
            "hosts.yaml": _yaml(hosts),
        }
        if self.defaults:
            found["defaults.yaml"] = _yaml(self.defaults)
        if self.guids:
            known = (f"{node},{port},{guid}\n" for (node, port), guid in self.guids.items())
            found["guids.csv"] = "node,port,guid\n" + "".join(known)
        rows = _short_cables(self.cables) if self.short else [_row(cable) for cable in self.cables]
        found["cables.csv"] = "\n".join([",".join(COLUMNS), *map(_csv, rows)]) + "\n"
        return found | self.more

    def write(self, folder: Path) -> Path:
        """Writes the files; old ones that not every fabric has go."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("defaults.yaml", "guids.csv"):
            (folder / name).unlink(missing_ok=True)
        for name, text in self.files().items():
            (folder / name).write_text(text, encoding="utf-8")
        return folder

    def _short_hosts(self) -> Data:
        """Runs of equal nodes with consecutive numbers as one entry."""
        found: Data = {}
        for run in _runs(self.nodes.values()):
            first, last = run[0], run[-1]
            if len(run) == 1:
                found[first.name] = _entry(first)
                continue
            address, low = first.address.rpartition(".")[0], first.address.rpartition(".")[2]
            high = last.address.rpartition(".")[2]
            entry = _entry(first) | {"hostname": f"{address}.[{low}-{high}]"}
            found[f"{_stem(first.name)}[{_digits(first.name)}-{_digits(last.name)}]"] = entry
        return found


def model_of(group: str) -> Model:
    """The model of a group of switches: its name is ROLE_VENDOR."""
    return (MODELS | IB_MODELS)[group.partition("_")[2].replace("_", "-")]


def _entry(node: Node) -> Data:
    entry: Data = {"groups": [node.group], "hostname": node.address}
    return entry | ({"data": node.data} if node.data else {})


def _yaml(data: Any) -> str:
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=150)


class _Dumper(yaml.CSafeDumper):
    """Writes what is equal twice, not as an anchor."""

    def ignore_aliases(self, data: Any) -> bool:
        """Never an anchor."""
        return True


def _stem(name: str) -> str:
    return name.rstrip("0123456789")


def _digits(name: str) -> str:
    return name[len(_stem(name)) :]


def _runs(nodes: Iterable[Node]) -> Iterator[list[Node]]:
    run: list[Node] = []
    for node in nodes:
        if run and not _follows(run[-1], node):
            yield run
            run = []
        run.append(node)
    if run:
        yield run


def _follows(one: Node, other: Node) -> bool:
    if (one.group, one.data, _stem(one.name)) != (other.group, other.data, _stem(other.name)):
        return False
    if not (_digits(one.name) and _digits(other.name)) or ":" in one.address:
        return False
    head, _, tail = one.address.rpartition(".")
    return (
        int(_digits(one.name)) + 1 == int(_digits(other.name)) and other.address == f"{head}.{int(tail) + 1}"
    )


def _row(cable: Cable) -> tuple[str, ...]:
    return cable.a, cable.a_port, cable.b, cable.b_port, str(cable.length)


def _csv(row: tuple[str, ...]) -> str:
    return ",".join(f'"{cell}"' if "," in cell else cell for cell in row)


def _short_cables(cables: list[Cable]) -> list[tuple[str, ...]]:
    """Cables from one port of many hosts to one switch as one row with lists."""
    rows: dict[Any, list[Cable]] = {}
    for cable in cables:
        first, last = _around(cable.b_port)
        rows.setdefault((_stem(cable.a), cable.a_port, cable.b, first, last, cable.length), []).append(cable)
    found = []
    for (stem, port, node, first, last, length), same in rows.items():
        if len(same) == 1:
            found.append(_row(same[0]))
            continue
        numbers = ",".join(_digits(one.a) for one in same)
        others = ",".join(one.b_port[len(first) : len(one.b_port) - len(last)] for one in same)
        found.append((f"{stem}[{numbers}]", port, node, f"{first}[{others}]{last}", str(length)))
    return found


def _around(port: str) -> tuple[str, str]:
    """Text before and after the first number of a port name."""
    match = re.fullmatch(r"(\D+)\d+(.*)", port)
    return (match.group(1), match.group(2)) if match else (port, "")


# -- intents

SPEEDS = ("100G", "200G", "400G", "800G")
RAMPS = {
    "100G": {"kmin": "150KB", "kmax": "1500KB", "pmax": "100%"},
    "200G": {"kmin": "300KB", "kmax": "1500KB", "pmax": "20%"},
    "400G": {"kmin": "600KB", "kmax": "2400KB", "pmax": "100%"},
    "800G": {"kmin": "1200KB", "kmax": "4800KB", "pmax": "100%"},
}


def intent(name: str, **more: Any) -> Data:
    """The intent of the simplest sound fabric, with more or other keys."""
    found: Data = {
        "version": 1,
        "name": name,
        "rdma": {"transport": "rocev2", "mtu": 4096},
        "mtu": {"switch": "max", "host": 9000},
        "classes": {
            "roce": {"priority": 3, "dscp": [26], "lossless": True, "bandwidth": "50%"},
            "cnp": {"priority": 6, "dscp": [48], "scheduler": "strict"},
            "default": {"priority": 0, "dscp": "rest", "bandwidth": "50%"},
        },
        "ecn": {speed: dict(ramp) for speed, ramp in RAMPS.items()},
        "pfc": {
            "watchdog": {"detect": "200ms", "restore": "400ms", "action": "drop"},
            "headroom": "auto",
            "dcbx": "none",
        },
        "dcqcn": {"enabled": True},
        "hosts": {
            "modules": ["ib_core", "ib_uverbs", "rdma_cm", "rdma_ucm"],
            "sysctl": {"net.ipv4.conf.all.arp_ignore": 1, "net.ipv4.conf.all.arp_announce": 2},
            "limits": {"memlock": "unlimited"},
        },
        "networks": {"compute": {}},
    }
    return found | more


# -- shapes


@dataclass
class Builder:
    """Places switches and hosts, and cables them."""

    fabric: Fabric
    random: random.Random
    next_port: dict[str, int] = field(default_factory=dict)
    v6: bool = False
    count: int = 0

    def address(self) -> str:
        """The next management address."""
        self.count += 1
        return f"2001:db8::{self.count:x}" if self.v6 else f"192.0.2.{self.count}"

    def switch(self, name: str, vendor: str, role: str, speed: str = "400G", **data: Any) -> str:
        """A switch whose group is its vendor and role; ports are added as cables need them."""
        model = (MODELS | IB_MODELS)[vendor]
        group = f"{role}_{vendor.replace('-', '_')}"
        self.fabric.groups.setdefault(
            group,
            {
                "platform": model.platform,
                "data": {"role": role, "model": model.model, "version": model.version, "ports": {}},
            },
        )
        self.fabric.nodes[name] = Node(name, group, self.address(), dict(data))
        self.next_port[name] = 1
        return name

    def host(self, name: str, group: str) -> str:
        """A host of a group that exists."""
        self.fabric.nodes[name] = Node(name, group, self.address())
        return name

    def host_group(self, group: str, ports: Mapping[str, Data], **data: Any) -> None:
        """A kind of host."""
        base = {"role": "host", "stack": "inbox", "mtu_manager": "networkd"}
        self.fabric.groups[group] = {
            "platform": "linux",
            "data": base | data | {"ports": {port: dict(one) for port, one in ports.items()}},
        }

    def take(self, switch: str, speed: str, network: str, half: int | None = None) -> str:
        """The next free port of a switch, entered in its group; `half` 0 or 1 of a breakout port."""
        model = self.model(switch)
        number = self.next_port[switch]
        if half is None:
            name = model.port(number)
            self.next_port[switch] += 1
        else:
            name = model.part(number, half)
            self.next_port[switch] += half
        group = self.fabric.groups[self.fabric.nodes[switch].group]["data"]["ports"]
        wanted: Data = {"speed": speed, "network": network}
        if half is not None:
            wanted["breakout"] = 2
        if group.setdefault(name, wanted) != wanted:
            self.fabric.nodes[switch].data.setdefault("ports", {})[name] = wanted
        return name

    def model(self, switch: str) -> Model:
        """The model of a switch."""
        return model_of(self.fabric.nodes[switch].group)

    def cable(self, host: str, port: str, switch: str, *, length: int = 5, half: int | None = None) -> None:
        """A host port to the next free port of a switch."""
        data = self.fabric.ports(host)[port]
        taken = self.take(switch, data["speed"], data["network"], half)
        self.fabric.cables.append(Cable(host, port, switch, taken, length))

    def uplink(self, lower: str, upper: str, speed: str, network: str, length: int = 40) -> None:
        """A cable between switches."""
        a, b = self.take(lower, speed, network), self.take(upper, speed, network)
        self.fabric.cables.append(Cable(lower, a, upper, b, length))


def host_ports(
    count: int, speed: str, network: str = "compute", *, nic: str = "mlx5", first: int = 0, rails: bool = True
) -> dict[str, Data]:
    """eth0, eth1 ... of one network."""
    found: dict[str, Data] = {}
    for index in range(first, first + count):
        port: Data = {"speed": speed, "network": network}
        if nic == "mlx5":
            port |= {"nic": "mlx5", "rdma": f"mlx5_{index}"}
        else:
            port |= {"nic": "generic"}
        if rails:
            port["rail"] = str(index)
        found[f"eth{index}"] = port
    return found


@dataclass(frozen=True)
class Plan:
    """Choices of one shape."""

    leaves: int = 2
    spines: int = 2
    hosts: int = 4
    """Per group of leaves."""
    rails: int = 2
    speed: str = "400G"
    uplink: str = "400G"
    uplinks: int = 1
    """Cables from a leaf to each spine."""
    vendors: tuple[str, ...] = ("eos",)
    """Of the leaves, in turns."""
    spine_vendor: str = "eos"
    nics: tuple[str, ...] = ("mlx5",)
    breakout: bool = False
    v6: bool = False
    short: bool = False
    storage: str = ""
    """own: a network on its own switches; shared: on the same leaves."""
    pods: int = 1
    """More than one: a third tier."""
    bond: bool = False


def clos(name: str, plan: Plan, wishes: Data, rng: random.Random) -> Fabric:
    """Hosts on leaves, leaves on spines, and (with pods) spines on cores."""
    fabric = Fabric(name, wishes, short=plan.short)
    build = Builder(fabric, rng, v6=plan.v6)
    ports = {nic: _ports(plan, nic) for nic in plan.nics}
    for nic, one in ports.items():
        build.host_group(f"gpu_{nic}", one, gpus=plan.rails)
    numbers = iter(range(1, 1000))
    spines: list[str] = []
    for pod in range(plan.pods):
        tail = f"p{pod + 1}-" if plan.pods > 1 else ""
        leaves = [
            build.switch(f"{tail}leaf{index + 1:02}", plan.vendors[index % len(plan.vendors)], "leaf")
            for index in range(plan.leaves)
        ]
        hosts = [f"gpu{next(numbers):02}" for _ in range(plan.hosts)]
        for index, host in enumerate(hosts):
            build.host(host, f"gpu_{plan.nics[index % len(plan.nics)]}")
        _cable_hosts(build, plan, hosts, leaves)
        own = [
            build.switch(f"{tail}spine{index + 1:02}", plan.spine_vendor, "spine")
            for index in range(plan.spines)
        ]
        for leaf in leaves:
            for spine in own:
                for _ in range(plan.uplinks):
                    build.uplink(leaf, spine, plan.uplink, "compute")
        spines += own
    if plan.pods > 1:
        cores = [
            build.switch(f"core{index + 1:02}", plan.spine_vendor, "core") for index in range(plan.spines)
        ]
        for index, spine in enumerate(spines):
            build.uplink(spine, cores[index % len(cores)], plan.uplink, "compute", 300)
    if plan.storage == "own":
        _storage_switches(build, plan)
    return fabric


def _ports(plan: Plan, nic: str) -> dict[str, Data]:
    ports = host_ports(plan.rails, plan.speed, nic=nic)
    if plan.storage:
        ports |= host_ports(2, plan.speed, "storage", nic=nic, first=plan.rails, rails=False)
    if plan.bond:
        members = [f"eth{plan.rails}", f"eth{plan.rails + 1}"]
        ports["bond0"] = {"kind": "bond", "network": "storage", "members": members}
    return ports


def _cable_hosts(build: Builder, plan: Plan, hosts: list[str], leaves: list[str]) -> None:
    """Rail n of every host on leaf n (in turns); shared storage on the first two leaves."""
    for rail in range(plan.rails):
        leaf = leaves[rail % len(leaves)]
        for index, host in enumerate(hosts):
            build.cable(host, f"eth{rail}", leaf, half=index % 2 if plan.breakout else None)
        if plan.breakout and len(hosts) % 2:
            build.next_port[leaf] += 1
    if plan.storage == "shared":
        for host in hosts:
            build.cable(host, f"eth{plan.rails}", leaves[0])
            build.cable(host, f"eth{plan.rails + 1}", leaves[-1])


def _storage_switches(build: Builder, plan: Plan) -> None:
    """Two switches of their own for storage, with a few servers behind them."""
    vendor = plan.vendors[-1]
    stores = [build.switch(f"stor{index + 1}", vendor, "storage") for index in range(2)]
    build.host_group("server", host_ports(2, plan.speed, "storage", rails=False))
    hosts = build.fabric.hosts()
    for host in hosts:
        build.cable(host, f"eth{plan.rails}", stores[0])
        build.cable(host, f"eth{plan.rails + 1}", stores[1])
    for index in range(2):
        server = build.host(f"server{index + 1}", "server")
        build.cable(server, "eth0", stores[0])
        build.cable(server, "eth1", stores[1])
    build.uplink(stores[0], stores[1], "400G", "storage", 5)


# -- varieties of the intent


def _two_lossless(wishes: Data) -> None:
    wishes["classes"] = {
        "roce": {"priority": 3, "dscp": [24, 26], "lossless": True, "bandwidth": "40%"},
        "storage": {"priority": 4, "dscp": ["28-31"], "lossless": True, "bandwidth": "30%"},
        "cnp": {"priority": 6, "dscp": [48], "scheduler": "strict"},
        "default": {"priority": 0, "dscp": "rest", "bandwidth": "30%"},
    }


def _step(wishes: Data) -> None:
    for ramp in wishes["ecn"].values():
        ramp["kmax"] = ramp["kmin"]


def _no_dcqcn(wishes: Data) -> None:
    wishes["dcqcn"] = False
    wishes["ecn"] = False


def _no_cnp(wishes: Data) -> None:
    del wishes["classes"]["cnp"]
    wishes["dcqcn"] = False


def _priority_five(wishes: Data) -> None:
    wishes["classes"]["roce"] |= {"priority": 5, "dscp": ["40-46"]}
    wishes["classes"]["cnp"]["dscp"] = [50]


def _control(wishes: Data) -> None:
    wishes["classes"]["cnp"]["dscp"] = [50]
    wishes["classes"]["control"] = {"priority": 4, "dscp": [48, 56], "bandwidth": "5%"}
    wishes["classes"]["default"]["bandwidth"] = "45%"


def _one_ramp(wishes: Data) -> None:
    wishes["ecn"] = {"kmin": "400KB", "kmax": "1600KB", "pmax": "20%"}


def _class_ramp(wishes: Data) -> None:
    wishes["classes"]["roce"]["ecn"] = {"400G": {"kmin": "500KB", "kmax": "2MB", "pmax": "50%"}}


def _profile(wishes: Data) -> None:
    wishes["ecn"] = {"any": {"profile": "HPCC paper simulator (SIGCOMM 2019)"}}


def _device_ecn(wishes: Data) -> None:
    wishes["ecn"] = "device"


def _watchdog_off(wishes: Data) -> None:
    wishes["pfc"]["watchdog"] = False


def _watchdog_device(wishes: Data) -> None:
    wishes["pfc"]["watchdog"] = "device"


def _no_watchdog(wishes: Data) -> None:
    del wishes["pfc"]["watchdog"]


def _vxlan(wishes: Data) -> None:
    wishes["mtu"] = {"switch": 9200, "host": 8900}


def _small_mtu(wishes: Data) -> None:
    wishes["mtu"] = {"switch": 4500, "host": 4200}


def _rdma_2048(wishes: Data) -> None:
    wishes["rdma"]["mtu"] = 2048
    wishes["mtu"] = {"switch": "max", "host": 2200}


def _nccl(wishes: Data) -> None:
    wishes["hosts"]["nccl"] = True
    wishes["hosts"]["environment"] = {"NCCL_IB_TIMEOUT": 22}


def _parameters(wishes: Data) -> None:
    wishes["dcqcn"] = {"enabled": True, "rp": {"ai_rate": 5}, "np": {"min_time_between_cnps": 4}}


def _weights(wishes: Data) -> None:
    for name in ("roce", "default"):
        wishes["classes"][name] = {**wishes["classes"][name], "weight": 10}
        del wishes["classes"][name]["bandwidth"]


def _bare(wishes: Data) -> None:
    """Nothing but MTU and classes."""
    for key in ("pfc", "hosts", "networks"):
        del wishes[key]


def _receive_only(wishes: Data) -> None:
    wishes["overrides"] = [{"where": "role=host", "set": {"classes.roce.pfc": "receive-only"}}]


def _spine_ramp(wishes: Data) -> None:
    wishes["overrides"] = [{"where": "role=spine", "set": {"ecn.400G.kmax": "3MB"}}]


def _pcp(wishes: Data) -> None:
    wishes["trust"] = "pcp"
    wishes["dcqcn"] = False


WISHES = {
    "plain": lambda wishes: None,
    "two-lossless": _two_lossless,
    "step": _step,
    "no-dcqcn": _no_dcqcn,
    "no-cnp": _no_cnp,
    "priority-5": _priority_five,
    "control": _control,
    "one-ramp": _one_ramp,
    "class-ramp": _class_ramp,
    "profile": _profile,
    "device-ecn": _device_ecn,
    "watchdog-off": _watchdog_off,
    "watchdog-device": _watchdog_device,
    "no-watchdog": _no_watchdog,
    "vxlan": _vxlan,
    "small-mtu": _small_mtu,
    "rdma-2048": _rdma_2048,
    "nccl": _nccl,
    "parameters": _parameters,
    "weights": _weights,
    "bare": _bare,
    "receive-only": _receive_only,
    "spine-ramp": _spine_ramp,
    "pcp": _pcp,
}
"""Varieties of the intent, each of which is sound on every shape."""

SHAPES = {
    "single-leaf": Plan(leaves=1, spines=0, hosts=4, rails=2),
    "two-tier": Plan(leaves=2, spines=2, hosts=4, rails=2),
    "four-leaves": Plan(leaves=4, spines=2, hosts=4, rails=4),
    "rails": Plan(leaves=4, spines=2, hosts=8, rails=8, uplinks=2),
    "three-tier": Plan(leaves=2, spines=2, hosts=3, rails=2, pods=2),
    "breakout": Plan(leaves=2, spines=2, hosts=4, rails=2, speed="200G", breakout=True),
    "100g": Plan(leaves=2, spines=2, hosts=4, rails=2, speed="100G", uplink="100G"),
    "storage-own": Plan(leaves=2, spines=2, hosts=4, rails=2, storage="own"),
    "storage-shared": Plan(leaves=2, spines=1, hosts=4, rails=2, storage="shared"),
    "bond": Plan(leaves=2, spines=1, hosts=4, rails=2, storage="shared", bond=True),
    "v6": Plan(leaves=2, spines=2, hosts=4, rails=2, v6=True),
    "generic": Plan(leaves=2, spines=2, hosts=4, rails=2, nics=("mlx5", "generic")),
}
"""Shapes, to be crossed with vendors and intents."""


def make(number: int) -> Fabric:
    """The sound fabric of that number: a shape, an intent and vendors."""
    rng = random.Random(number)
    shapes, wishes = list(SHAPES), list(WISHES)
    shape = shapes[number % len(shapes)]
    variety = wishes[(number // len(shapes) + number) % len(wishes)]
    vendors = tuple(rng.sample(VENDORS, rng.randint(1, 3)))
    plan = SHAPES[shape]
    plan = Plan(
        **{
            **plan.__dict__,
            "vendors": vendors,
            "spine_vendor": rng.choice(VENDORS),
            "short": rng.random() < 0.5,
        }
    )
    name = f"n{number}-{shape}-{variety}"
    wanted = intent(name)
    WISHES[variety](wanted)
    if plan.storage and "networks" in wanted:
        wanted["networks"]["storage"] = {}
    fabric = clos(name, plan, wanted, rng)
    fabric.traits = (shape, variety, *vendors)
    _vary(fabric, variety, plan, rng)
    return fabric


def _vary(fabric: Fabric, variety: str, plan: Plan, rng: random.Random) -> None:
    """Small things that must not matter."""
    if "spine-ramp" in fabric.traits and not fabric.switches("spine"):
        fabric.intent["overrides"][0]["where"] = "role=leaf"
    _lives(fabric, rng)
    if rng.random() < 0.3:
        _spare(fabric, rng)
    if rng.random() < 0.3:
        _svi(fabric, rng)
    if rng.random() < 0.3:
        _described(fabric, plan, rng)
    if plan.storage == "own" and variety == "plain":
        fabric.intent["networks"]["storage"] = {"mtu": {"host": 4200}}
    if rng.random() < 0.3 and variety not in ("small-mtu", "rdma-2048", "vxlan"):
        _exceptions(fabric, rng)


def _spare(fabric: Fabric, rng: random.Random) -> None:
    """A host that waits for its cables, with a waiver; sometimes a retired one."""
    group = fabric.nodes[fabric.hosts()[0]].group
    fabric.nodes["spare01"] = Node("spare01", group, "198.51.100.1")
    waiver = {"rule": rng.choice(["node-without-cables", "FAB047"]), "node": "spare01"}
    fabric.intent["waivers"] = [waiver | {"until": "2027-01-31", "reason": "cables come in May, ticket 4711"}]
    if rng.random() < 0.5:
        fabric.nodes["old01"] = Node("old01", group, "198.51.100.2", {"state": "retired"})


def _svi(fabric: Fabric, rng: random.Random) -> None:
    """Leaves route: a VLAN interface in the network."""
    for name in fabric.switches("leaf"):
        port = "vlan100" if fabric.platform(name) == "cumulus" else "Vlan100"
        fabric.port_data(name, port).update(kind="svi", vlan=100, network="compute")
    if "pfc" in fabric.intent and rng.random() < 0.5:
        fabric.intent["mtu"]["svi"] = fabric.intent["mtu"]["switch"]


def _described(fabric: Fabric, plan: Plan, rng: random.Random) -> None:
    """What the cable plan must be, slots, and words that switches share."""
    fabric.intent["topology"] = {"oversubscription": f"{rng.randint(8, 20)}:1"}
    if plan.leaves > 1 and plan.rails > 1:
        fabric.intent["topology"]["dual_homed"] = True
    for group in fabric.groups.values():
        data = group["data"]
        if data["role"] == "host":
            for port in data["ports"].values():
                if port.get("speed") != "800G" and port.get("kind") != "bond":
                    port["pcie"] = {"generation": 5, "lanes": 16}
        else:
            data["options"] = {"adaptive_routing": "spray"}


def _lives(fabric: Fabric, rng: random.Random) -> None:
    """Nodes in different states."""
    if rng.random() < 0.3:
        fabric.defaults = {"data": {"state": rng.choice(["planned", "active"])}}
    if rng.random() < 0.3:
        for name in rng.sample(list(fabric.nodes), 2):
            fabric.nodes[name].data["state"] = rng.choice(["planned", "maintenance"])


def _exceptions(fabric: Fabric, rng: random.Random) -> None:
    """Legal exceptions: a larger switch MTU on one port, a smaller one for a whole host."""
    switch = rng.choice(fabric.switches())
    port = rng.choice(sorted(fabric.peers(switch)))
    fabric.port_data(switch, port)["mtu"] = 9100
    host = rng.choice(fabric.hosts())
    fabric.node_set(host, "mtu.host", 8900)


COUNT = 240
"""Number of sound fabrics that the tests look at."""


def every() -> Iterator[Fabric]:
    """All of them."""
    for number in range(COUNT):
        yield make(number)
