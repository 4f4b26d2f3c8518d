"""Sound InfiniBand fabrics of many shapes, alone and beside RoCE on the same hosts.

As in `fabrics`: everything follows from a number, and nothing of the product is imported.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from tests.seeded.fabrics import SHAPES, VENDORS, Builder, Cable, Data, Fabric, clos, intent

NETWORK = "fabric"
"""Name of the InfiniBand network."""


@dataclass(frozen=True)
class Pod:
    """Choices of one InfiniBand shape."""

    leaves: int = 2
    spines: int = 2
    hosts: int = 4
    """Per leaf, or in all where there are rails."""
    rails: int = 1
    """Ports of a host: number n is cabled to leaf n."""
    pods: int = 1
    ring: bool = False
    """Leaves are cabled in a ring instead of to spines."""
    managers: int = 2
    speed: str = "200G"


PODS: Mapping[str, Pod] = {
    "ib-one": Pod(leaves=1, spines=0, hosts=6),
    "ib-tree": Pod(leaves=4, spines=2, hosts=2),
    "ib-rails": Pod(leaves=4, spines=2, hosts=6, rails=4),
    "ib-tiers": Pod(leaves=2, spines=2, hosts=2, pods=2),
    "ib-pair": Pod(leaves=2, spines=0, hosts=3, ring=True),
    "ib-ring": Pod(leaves=4, spines=0, hosts=2, ring=True),
}
"""Shapes; the first switches of a shape have the subnet managers."""


def wishes(pod: Pod) -> Data:
    """What an InfiniBand network is to have, in the simplest sound way."""
    return {
        "rdma": {"transport": "infiniband", "mtu": 4096},
        "classes": {
            "default": {"priority": 0, "dscp": "rest", "sl": 0, "bandwidth": "40%"},
            "jobs": {"priority": 1, "sl": 1, "bandwidth": "60%"},
        },
        "hosts": {"ipoib": {"mode": "datagram"}},
        "subnet_manager": {
            "nodes": [
                {"node": f"sm{number + 1:02}", "priority": 14 - number} for number in range(pod.managers)
            ],
            "routing": ["updn"] if pod.ring else ["ftree", "updn"],
            "partitions": [
                _partition("jobs", 0x10, sl=1, members={"full": ["role=host"], "limited": ["SELF"]})
            ],
        },
    }


def _partition(name: str, pkey: int, **more: object) -> Data:
    return {"name": name, "pkey": pkey, "mtu": 4096, **more}


# -- varieties of what the subnet manager is to do


def _no_classes(found: Data, hosts: list[str]) -> None:
    del found["classes"]
    del found["subnet_manager"]["partitions"][0]["sl"]


def _bare(found: Data, hosts: list[str]) -> None:
    """Everybody in the default partition, nothing else wished."""
    for key in ("classes", "hosts"):
        del found[key]
    for key in ("partitions", "routing"):
        del found["subnet_manager"][key]
    found["subnet_manager"]["routing"] = ["updn"]


def _lanes(found: Data, hosts: list[str]) -> None:
    found["classes"] = {
        "default": {"priority": 0, "dscp": "rest", "sl": 0, "bandwidth": "20%"},
        "jobs": {"priority": 1, "sl": 1, "bandwidth": "50%"},
        "files": {"priority": 2, "sl": 2, "bandwidth": "30%"},
        "control": {"priority": 6, "sl": 3, "scheduler": "strict"},
    }


def _lanes_by_hand(found: Data, hosts: list[str]) -> None:
    found["classes"]["default"]["vl"], found["classes"]["jobs"]["vl"] = 1, 0
    found["subnet_manager"]["vls"] = 4


def _one_manager(found: Data, hosts: list[str]) -> None:
    del found["subnet_manager"]["nodes"][1:]


def _many_paths(found: Data, hosts: list[str]) -> None:
    found["subnet_manager"] |= {"routing": ["updn"], "lmc": 2}


def _mtu_2048(found: Data, hosts: list[str]) -> None:
    found["rdma"]["mtu"] = 2048
    for one in found["subnet_manager"]["partitions"]:
        one["mtu"] = 2048


def _connected(found: Data, hosts: list[str]) -> None:
    found["hosts"]["ipoib"]["mode"] = "connected"


def _interfaces(found: Data, hosts: list[str]) -> None:
    found["hosts"]["ipoib"]["interfaces"] = True


def _tenants(found: Data, hosts: list[str]) -> None:
    half = len(hosts) // 2
    found["subnet_manager"]["partitions"] = [
        _partition("red", 0x11, sl=1, members={"full": hosts[:half], "limited": ["SELF"]}),
        _partition("blue", 0x12, sl=1, members={"full": hosts[half:], "limited": ["SELF"]}),
        _partition("both", 0x13, sl=0, members={"full": [hosts[0]], "limited": hosts[1:]}),
    ]


def _guarded(found: Data, hosts: list[str]) -> None:
    """Hosts reach a server by the default partition, and each other only by their own."""
    found["subnet_manager"]["partitions"].insert(
        0,
        _partition(
            "Default", 0x7FFF, members={"limited": ["ALL"], "full": ["ALL_SWITCHES", "SELF", hosts[0]]}
        ),
    )


def _rate(found: Data, hosts: list[str]) -> None:
    found["subnet_manager"]["partitions"][0]["rate"] = 200


def _no_group(found: Data, hosts: list[str]) -> None:
    """Only verbs use the partition: no broadcast group, so that its MTU means nothing."""
    found["subnet_manager"]["partitions"][0] |= {"ipoib": False, "mtu": 2048}


def _ufm(found: Data, hosts: list[str]) -> None:
    found["subnet_manager"]["owner"] = "ufm"


def _environment(found: Data, hosts: list[str]) -> None:
    found["hosts"]["environment"] = {"NCCL_IB_SL": 1, "NCCL_IB_PKEY": 1}


Vary = Callable[[Data, list[str]], None]
SUBNETS: Mapping[str, Vary] = {
    "plain": lambda found, hosts: None,
    "no-classes": _no_classes,
    "bare": _bare,
    "lanes": _lanes,
    "lanes-by-hand": _lanes_by_hand,
    "one-manager": _one_manager,
    "many-paths": _many_paths,
    "mtu-2048": _mtu_2048,
    "connected": _connected,
    "interfaces": _interfaces,
    "tenants": _tenants,
    "guarded": _guarded,
    "rate": _rate,
    "no-group": _no_group,
    "ufm": _ufm,
    "environment": _environment,
}
"""Varieties, each of which is sound on every shape."""

HOSTS: Data = {
    "modules": ["ib_core", "ib_uverbs", "ib_umad", "ib_ipoib", "rdma_cm", "rdma_ucm"],
    "limits": {"memlock": "unlimited"},
}


# -- shapes


def alone(name: str, pod: Pod, vary: Vary = SUBNETS["plain"]) -> Fabric:
    """A fabric with nothing but one InfiniBand network."""
    found = wishes(pod)
    fabric = Fabric(name, {"version": 1, "name": name})
    build = Builder(fabric, random.Random(0))
    build.host_group("gpu", _ports(pod), gpus=pod.rails)
    hosts = [build.host(f"gpu{number + 1:02}", "gpu") for number in range(_count(pod))]
    cable(build, pod, hosts)
    vary(found, hosts)
    found["hosts"] = HOSTS | found.get("hosts", {})
    fabric.intent |= found
    fabric.traits = (name,)
    return fabric


def beside(fabric: Fabric, pod: Pod, vary: Vary = SUBNETS["plain"]) -> Fabric:
    """The RoCE fabric with an InfiniBand network on the same hosts."""
    hosts = [name for name in fabric.hosts() if name.startswith("gpu")]
    pod = replace(pod, hosts=len(hosts) if pod.rails > 1 else -(-len(hosts) // (pod.leaves * pod.pods)))
    for group in dict.fromkeys(fabric.nodes[name].group for name in hosts):
        fabric.groups[group]["data"]["ports"] |= _ports(pod)
    build = Builder(fabric, random.Random(0), count=200)
    cable(build, pod, hosts)
    found = wishes(pod)
    vary(found, hosts)
    given = found.get("hosts", {})
    environment = given.pop("environment", None)
    if environment:  # node-wide: it belongs to the hosts and not to a network
        fabric.intent.setdefault("hosts", {})["environment"] = environment
    fabric.intent.setdefault("networks", {"compute": {}})[NETWORK] = found
    fabric.intent.setdefault("hosts", {})["modules"] = HOSTS["modules"]
    return fabric


def _count(pod: Pod) -> int:
    return pod.hosts if pod.rails > 1 else pod.hosts * pod.leaves * pod.pods


def _ports(pod: Pod) -> dict[str, Data]:
    found: dict[str, Data] = {}
    for rail in range(pod.rails):
        found[f"ib{rail}"] = {"speed": pod.speed, "network": NETWORK, "rdma": f"mlx5_{20 + rail}"}
        if pod.rails > 1:
            found[f"ib{rail}"]["rail"] = str(rail)
    return found


def cable(build: Builder, pod: Pod, hosts: list[str]) -> None:
    """Switches, subnet managers, and the cables of both and of the hosts."""
    leaves: list[str] = []
    spines: list[str] = []
    for number in range(pod.pods):
        tail = f"p{number + 1}-" if pod.pods > 1 else ""
        own = [build.switch(f"{tail}ibleaf{one + 1:02}", "ib", "ibleaf") for one in range(pod.leaves)]
        above = [build.switch(f"{tail}ibspine{one + 1:02}", "ib", "ibspine") for one in range(pod.spines)]
        for leaf, spine in itertools.product(own, above):
            build.uplink(leaf, spine, pod.speed, NETWORK, 20)
        leaves += own
        spines += above
    if pod.pods > 1:
        core = [build.switch(f"ibcore{one + 1:02}", "ib", "ibcore") for one in range(2)]
        for index, spine in enumerate(spines):
            build.uplink(spine, core[index % 2], pod.speed, NETWORK, 100)
    _cable_hosts(build, pod, hosts, leaves)
    build.host_group("sm", {"ib0": {"speed": pod.speed, "network": NETWORK, "rdma": "mlx5_20"}})
    build.fabric.groups["sm"]["data"]["role"] = "sm"
    for number in range(pod.managers):
        build.cable(build.host(f"sm{number + 1:02}", "sm"), "ib0", leaves[-1 if number % 2 else 0])
    if pod.ring:
        _ring(build, pod, leaves)
    guids(build.fabric)


def _cable_hosts(build: Builder, pod: Pod, hosts: list[str], leaves: list[str]) -> None:
    if pod.rails > 1:
        for host, rail in itertools.product(hosts, range(pod.rails)):
            build.cable(host, f"ib{rail}", leaves[rail % len(leaves)])
        return
    for index, host in enumerate(hosts):
        build.cable(host, "ib0", leaves[index % len(leaves)])


def _ring(build: Builder, pod: Pod, leaves: list[str]) -> None:
    pairs = itertools.pairwise([*leaves, leaves[0]]) if len(leaves) > 2 else [(leaves[0], leaves[1])]
    for one, other in pairs:
        build.uplink(one, other, pod.speed, NETWORK, 5)


def guids(fabric: Fabric) -> None:
    """A GUID for every host port of the InfiniBand network."""
    number = 0
    for name in fabric.nodes:
        if fabric.role(name) not in ("host", "sm"):
            continue
        for port, data in fabric.ports(name).items():
            if data.get("network") == NETWORK:
                number += 1
                fabric.guids[name, port] = f"0x{0x0002C90300000000 + number:016x}"


def make(number: int) -> Fabric:
    """The sound fabric of that number: a shape and a variety, every other one beside RoCE."""
    rng = random.Random(1000 + number)
    shapes, varieties = list(PODS), list(SUBNETS)
    shape = shapes[number % len(shapes)]
    variety = varieties[(number // len(shapes) + number) % len(varieties)]
    pod = PODS[shape]
    if (number + number // len(shapes)) % 2 == 0:
        fabric = alone(f"i{number}-{shape}-{variety}", pod, SUBNETS[variety])
        fabric.traits = (shape, variety)
        return fabric
    plan = rng.choice([SHAPES[name] for name in ("two-tier", "rails", "storage-own", "bond", "breakout")])
    vendors = tuple(rng.sample(VENDORS, rng.randint(1, 3)))
    name = f"i{number}-{shape}-{variety}-beside"
    wanted = intent(name)
    if plan.storage:
        wanted["networks"]["storage"] = {}
    plan = replace(plan, vendors=vendors, spine_vendor=rng.choice(VENDORS))
    fabric = beside(clos(name, plan, wanted, rng), pod, SUBNETS[variety])
    fabric.traits = (shape, variety, "beside", *vendors)
    return fabric


COUNT = 96
"""Number of sound fabrics that the tests look at."""


def every() -> Iterator[Fabric]:
    """All of them."""
    for number in range(COUNT):
        yield make(number)


__all__ = ["COUNT", "NETWORK", "PODS", "SUBNETS", "Cable", "alone", "beside", "every", "make"]
