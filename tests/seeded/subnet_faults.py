"""Faults of InfiniBand: in the intent, the inventory, the cables, and in what devices have.

Entered into the same list as those of RoCE. Nothing of the checker is imported here.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.seeded.fabrics import Cable, Data, Node
from tests.seeded.faults import KINDS, NOTE, WARNING, Break, Expect, Scene, _recable, at, kind
from tests.seeded.subnets import NETWORK

IB = ("ib-tree", "ib-lanes", "ib-guarded", "ib-rails", "beside")
ALONE = ("ib-tree", "ib-lanes", "ib-guarded", "ib-rails")
TREES = ("ib-tree", "ib-lanes", "ib-guarded", "beside")
WHOLE = f"network {NETWORK}"


def _ib(
    name: str, where: str, *, alone: bool = False, bases: tuple[str, ...] = IB
) -> Callable[[Break], Break]:
    return kind(f"ib: {name}", where, alone=alone, bases=bases)


def _wishes(scene: Scene) -> Data:
    """What the InfiniBand network is to have, to be changed."""
    networks: Data = scene.fabric.intent.get("networks", {})
    return networks.get(NETWORK, scene.fabric.intent)  # type: ignore[no-any-return]


def _manager(scene: Scene) -> Data:
    found: Data = _wishes(scene)["subnet_manager"]
    return found


def _partition(scene: Scene, name: str = "jobs") -> Data:
    found: Data = next(one for one in _manager(scene)["partitions"] if one["name"] == name)
    return found


def _more(scene: Scene, **given: object) -> None:
    """One more partition."""
    base = {"name": "more", "pkey": 0x21, "mtu": 4096, "sl": 1, "members": {"full": ["role=host"]}}
    _manager(scene)["partitions"].append(base | given)


def _port(scene: Scene) -> tuple[str, str]:
    """An InfiniBand port of a host."""
    host = scene.host()
    ports = [port for port, data in scene.fabric.ports(host).items() if data["network"] == NETWORK]
    return host, scene.rng.choice(sorted(ports))


def _ib_hosts(scene: Scene) -> list[str]:
    return [name for name in scene.fabric.hosts() if name.startswith("gpu")]


# ---------------------------------------------------------------- the intent


@_ib("no subnet manager", "intent", alone=True)
def _(scene: Scene) -> Expect:
    _manager(scene)["nodes"] = []
    return at(WHOLE, settings="subnet manager", says="never become active")


@_ib("subnet manager that nobody knows", "intent", alone=True)
def _(scene: Scene) -> Expect:
    _manager(scene)["nodes"][1]["node"] = "sm09"
    return at(WHOLE, settings="subnet manager", says="is not in the inventory")


@_ib("subnet manager without a port in the network", "intent", alone=True)
def _(scene: Scene) -> Expect:
    group = {"platform": "linux", "data": {"role": "host", "ports": {"eth9": {"speed": "25G"}}}}
    scene.fabric.groups["login"] = group
    scene.fabric.nodes["login01"] = Node("login01", "login", "198.51.100.9")
    _manager(scene)["nodes"][1]["node"] = "login01"
    return at("login01", settings="subnet manager", says="has no port in network")


@_ib("subnet managers with one priority", "intent", alone=True)
def _(scene: Scene) -> Expect:
    one, other = _manager(scene)["nodes"]
    other["priority"] = one["priority"]
    return at(other["node"], settings="subnet manager priority", severity=WARNING)


@_ib("two partitions with one key", "intent", alone=True)
def _(scene: Scene) -> Expect:
    _more(scene, pkey=_partition(scene)["pkey"])
    return at(WHOLE, settings="partition more", says="would be one")


@_ib("two partitions with one name", "intent", alone=True)
def _(scene: Scene) -> Expect:
    _more(scene, name="jobs")
    return at(WHOLE, settings="partition jobs", says="two partitions")


@_ib("partition with the default key", "intent", alone=True, bases=("ib-tree", "ib-lanes", "ib-rails"))
def _(scene: Scene) -> Expect:
    _more(scene, pkey=0x7FFF)
    return at(WHOLE, settings="partition more", says="the default partition's")


@_ib("partition for nobody", "intent", alone=True)
def _(scene: Scene) -> Expect:
    _more(scene, members={"full": ["role=host", "gpu99"]})
    return at(WHOLE, settings="partition more members", says="selects no host port")


@_ib("member without a guid", "inventory", alone=True)
def _(scene: Scene) -> Expect:
    host, port = _port(scene)
    del scene.fabric.guids[host, port]
    meant = {"role=host", host}
    names = [one["name"] for one in _manager(scene)["partitions"] if meant & set(one["members"]["full"])]
    return at(WHOLE, settings=tuple(f"partition {name} members" for name in names), says=f"of {host} {port}")


@_ib("group larger than the intent's mtu", "intent", alone=True)
def _(scene: Scene) -> Expect:
    _wishes(scene)["rdma"]["mtu"] = scene.rng.choice([1024, 2048])
    names = [one["name"] for one in _manager(scene)["partitions"]]
    return at(WHOLE, settings=tuple(f"partition {name} mtu" for name in names))


@_ib("group smaller than the intent's mtu", "intent", alone=True)
def _(scene: Scene) -> Expect:
    _partition(scene)["mtu"] = scene.rng.choice([1024, 2048])
    return at(WHOLE, settings="partition jobs mtu", severity=WARNING)


@_ib("host in no partition", "intent", alone=True)
def _(scene: Scene) -> Expect:
    host = scene.host()
    others = [name for name in _ib_hosts(scene) if name != host]
    _manager(scene)["partitions"] = [
        {"name": "Default", "pkey": 0x7FFF, "mtu": 4096, "members": {"full": ["ALL_SWITCHES", "SELF"]}},
        {"name": "jobs", "pkey": 0x10, "mtu": 4096, "sl": 1, "members": {"full": others}},
    ]
    return at(host, settings="partition membership", says="cannot talk")


@_ib("limited members among themselves", "intent", alone=True)
def _(scene: Scene) -> Expect:
    _manager(scene)["partitions"] = [
        {
            "name": "Default",
            "pkey": 0x7FFF,
            "mtu": 4096,
            "members": {"full": ["ALL_SWITCHES", "SELF"], "limited": ["role=host"]},
        },
    ]
    return at(*_ib_hosts(scene), settings="partition membership", says="cannot talk")


@_ib("partition on a level that no class has", "intent", alone=True)
def _(scene: Scene) -> Expect:
    _partition(scene)["sl"] = scene.rng.randint(5, 15)
    return at(WHOLE, settings="partition jobs service level")


@_ib("two classes on one level", "intent", alone=True)
def _(scene: Scene) -> Expect:
    _wishes(scene)["classes"]["extra"] = {"priority": 5, "sl": 1}
    return at(WHOLE, settings=("class extra", "class jobs"), says="same service level")


@_ib("more classes than lanes", "intent", alone=True)
def _(scene: Scene) -> Expect:
    _manager(scene)["vls"] = 1
    classes = _wishes(scene)["classes"]
    names = tuple(f"class {name}" for name, one in classes.items() if one.get("sl", 0) > 0)
    return at(WHOLE, settings=names, says="only 1 are in use")


@_ib("lane that is not in use", "intent", alone=True, bases=TREES)
def _(scene: Scene) -> Expect:
    _manager(scene)["vls"] = 4
    _wishes(scene)["classes"]["jobs"]["vl"] = scene.rng.randint(4, 14)
    return at(WHOLE, settings="class jobs", says="only 4 are in use")


@_ib("shares above the link", "intent", alone=True, bases=ALONE)
def _(scene: Scene) -> Expect:
    _wishes(scene)["classes"]["jobs"]["bandwidth"] = "90%"
    return at(WHOLE, settings="bandwidth of classes")


@_ib("fat tree with several lids", "intent", alone=True)
def _(scene: Scene) -> Expect:
    _manager(scene)["lmc"] = scene.rng.randint(1, 3)
    return at(WHOLE, settings="routing engine", severity=WARNING, says="lmc")


@_ib("engine that gives levels itself", "intent", alone=True)
def _(scene: Scene) -> Expect:
    _manager(scene)["routing"] = ["updn", scene.rng.choice(["dfsssp", "lash", "nue"])]
    return at(WHOLE, settings="routing engine", severity=WARNING, says="service levels by itself")


@_ib("pfc for lanes", "intent", alone=True, bases=ALONE)
def _(scene: Scene) -> Expect:
    key, value = scene.rng.choice(
        [("pfc", {"dcbx": "none"}), ("dcqcn", True), ("ecn", False), ("trust", "dscp")]
    )
    scene.fabric.intent[key] = value
    return at(WHOLE, settings=key, severity=WARNING)


@_ib("host mtu for ib alone", "intent", alone=True, bases=("beside",))
def _(scene: Scene) -> Expect:
    _wishes(scene)["mtu"] = {"host": 9000}
    return at(WHOLE, settings="mtu", severity=WARNING)


@_ib("group faster than its members", "intent", alone=True)
def _(scene: Scene) -> Expect:
    _partition(scene)["rate"] = 400
    places = [
        f"{name} {port}"
        for name in _ib_hosts(scene)
        for port, data in scene.fabric.ports(name).items()
        if data["network"] == NETWORK
    ]
    return at(*places, settings="partition jobs rate", severity=WARNING, says="cannot join")


# ---------------------------------------------------------------- nodes, ports, cables


def _environment(scene: Scene, name: str, value: int) -> str:
    host = scene.host()
    own = scene.fabric.intent.get("hosts", {}).get("environment", {})
    scene.fabric.node_set(host, "hosts.environment", own | {name: value})
    return host


@_ib("job on a level that no class has", "inventory")
def _(scene: Scene) -> Expect:
    host = _environment(scene, "NCCL_IB_SL", scene.rng.randint(5, 15))
    return at(host, settings="environment.NCCL_IB_SL", severity=WARNING)


@_ib("job with a key beyond the table", "inventory")
def _(scene: Scene) -> Expect:
    host = _environment(scene, "NCCL_IB_PKEY", scene.rng.randint(2, 60))
    return at(host, settings="environment.NCCL_IB_PKEY", severity=WARNING)


@_ib("job marks for roce", "inventory", bases=ALONE)
def _(scene: Scene) -> Expect:
    host = _environment(scene, "NCCL_IB_TC", scene.rng.choice([104, 106]))
    return at(host, settings="environment.NCCL_IB_TC", severity=WARNING)


@_ib("leaves cabled to each other", "inventory", alone=True)
def _(scene: Scene) -> Expect:
    one, other = scene.rng.sample(scene.fabric.ib_switches("ibleaf"), 2)
    ends = [scene.fabric.new_port(name, 30, NETWORK, "200G") for name in (one, other)]
    scene.fabric.cables.append(Cable(one, ends[0], other, ends[1], 3))
    return at(WHOLE, settings="routing engine", severity=WARNING, says="cabled to each other")


@_ib("spines cabled to each other", "inventory", alone=True)
def _(scene: Scene) -> Expect:
    one, other = scene.fabric.ib_switches("ibspine")
    ends = [scene.fabric.new_port(name, 30, NETWORK, "200G") for name in (one, other)]
    scene.fabric.cables.append(Cable(one, ends[0], other, ends[1], 3))
    return at(WHOLE, settings="routing engine", severity=WARNING, says="cabled to each other")


@_ib("shortest routes on a ring", "inventory", alone=True)
def _(scene: Scene) -> Expect:
    leaves = scene.fabric.ib_switches("ibleaf")
    spines = set(scene.fabric.ib_switches("ibspine"))
    scene.fabric.cables = [one for one in scene.fabric.cables if not spines & {one.a, one.b}]
    for name in spines:
        del scene.fabric.nodes[name]
    for number, leaf in enumerate(leaves):
        other = leaves[(number + 1) % len(leaves)]
        ends = [
            scene.fabric.new_port(name, 30 + side, NETWORK, "200G") for side, name in enumerate((leaf, other))
        ]
        scene.fabric.cables.append(Cable(leaf, ends[0], other, ends[1], 3))
    _manager(scene)["routing"] = scene.rng.choice([[], ["minhop"], ["sssp", "updn"]])
    return at(WHOLE, settings="routing engine", severity=WARNING, says="circle")


@_ib("two rails crossed", "inventory", bases=("ib-rails",))
def _(scene: Scene) -> Expect:
    host = scene.host()
    peers = scene.fabric.peers(host)
    one, other = scene.rng.sample(sorted(peers), 2)
    first = _recable(scene, host, one, b="", b_port="")
    _recable(scene, host, other, b=peers[one][0], b_port=peers[one][1])
    scene.fabric.cables[scene.fabric.cables.index(first)] = Cable(host, one, *peers[other], 5)
    return at(f"{host} {one}", f"{host} {other}", settings="rail")


@_ib("rail without a cable", "inventory", bases=("ib-rails",))
def _(scene: Scene) -> Expect:
    host, port = _port(scene)
    scene.fabric.cables = [one for one in scene.fabric.cables if (host, port) not in one.ends]
    return at(f"{host} {port}", settings="cables", severity=WARNING)


@_ib("cable with two speeds", "inventory")
def _(scene: Scene) -> Expect:
    host, port = _port(scene)
    scene.fabric.port_data(host, port)["speed"] = "100G"
    peer, far = scene.fabric.peers(host)[port]
    return at(f"{host} {port}", f"{peer} {far}", settings="speed")


@_ib("slot slower than the hca", "inventory")
def _(scene: Scene) -> Expect:
    host, port = _port(scene)
    scene.fabric.port_data(host, port)["pcie"] = {"generation": 3, "lanes": scene.rng.choice([4, 8, 16])}
    return at(f"{host} {port}", settings="PCIe", severity=WARNING)


@_ib("ethernet port in the subnet", "inventory", bases=("beside",))
def _(scene: Scene) -> Expect:
    switch, port = scene.edge_port()
    scene.fabric.port_data(switch, port)["network"] = NETWORK
    peer, far = scene.fabric.peers(switch)[port]
    names = ("RDMA transport", "network")
    return at(switch, f"{switch} {port}", f"{peer} {far}", settings=names)


# ---------------------------------------------------------------- what devices have


def _seen(name: str, *, alone: bool = False, bases: tuple[str, ...] = IB) -> Callable[[Break], Break]:
    return _ib(f"seen: {name}", "observed", alone=alone, bases=bases)


def _of(scene: Scene, host: str, port: str) -> Data:
    found: Data = scene.settings(host, port)["ib"]
    return found


def _sm(scene: Scene, name: str) -> Data:
    found: Data = scene.seen[name]["running"]["system"]["sm"]
    return found


def _managers(scene: Scene) -> tuple[str, str]:
    """(master, standby)."""
    first, second = (one["node"] for one in _manager(scene)["nodes"])
    scene.taken |= {first, second}
    return first, second


@_seen("link carries a smaller mtu")
def _(scene: Scene) -> Expect:
    host, port = _port(scene)
    _of(scene, host, port)["mtu"] = scene.rng.choice([1024, 2048])
    return at(f"{host} {port}", settings="NeighborMTU", says="its link carries")


@_seen("port has no key of its partition")
def _(scene: Scene) -> Expect:
    host, port = _port(scene)
    ib = _of(scene, host, port)
    ib["pkeys"] = [key for key in ib["pkeys"] if key & 0x7FFF != 0x10]
    return at(f"{host} {port}", settings="P_Keys")


@_seen("port is a limited member")
def _(scene: Scene) -> Expect:
    host, port = _port(scene)
    ib = _of(scene, host, port)
    ib["pkeys"] = sorted(key & 0x7FFF if key & 0x7FFF == 0x10 else key for key in ib["pkeys"])
    return at(f"{host} {port}", settings="P_Keys")


@_seen("port has a key more")
def _(scene: Scene) -> Expect:
    host, port = _port(scene)
    _of(scene, host, port)["pkeys"].append(0x8099)
    return at(f"{host} {port}", settings="P_Keys")


@_seen("levels lead to other lanes")
def _(scene: Scene) -> Expect:
    host, port = _port(scene)
    _of(scene, host, port)["sl_to_vl"] = [0] * 16
    return at(f"{host} {port}", settings="SL-to-VL map")


@_seen("link does not come up")
def _(scene: Scene) -> Expect:
    host, port = _port(scene)
    _of(scene, host, port)["link"] = scene.rng.choice(["init", "armed", "down"])
    return at(f"{host} {port}", settings="link state")


@_seen("ipoib in another mode")
def _(scene: Scene) -> Expect:
    host, port = _port(scene)
    _of(scene, host, port)["mode"] = "connected"
    return at(f"{host} {port}", settings="IPoIB mode")


@_seen("ipoib mtu")
def _(scene: Scene) -> Expect:
    host, port = _port(scene)
    scene.settings(host, port)["mtu"]["ip"] = 2044
    return at(f"{host} {port}", settings="mtu")


@_seen("link slower than its group")
def _(scene: Scene) -> Expect:
    host, port = _port(scene)
    for one in scene.seen[host]["running"]["ports"]:
        if one["name"] == port:
            one["speed_gbps"] = 100
    return at(f"{host} {port}", settings="speed", severity=WARNING)


@_seen("two masters", alone=True)
def _(scene: Scene) -> Expect:
    first, second = _managers(scene)
    _sm(scene, second)["role"] = "master"
    return at(first, second, settings="subnet manager", says="2 masters")


@_seen("no master", alone=True)
def _(scene: Scene) -> Expect:
    first, _ = _managers(scene)
    _sm(scene, first)["role"] = "standby"
    return at(first, settings="subnet manager", says="no master")


@_seen("no standby", alone=True)
def _(scene: Scene) -> Expect:
    _, second = _managers(scene)
    _sm(scene, second)["role"] = "none"
    return at(second, settings="subnet manager", says="no standby")


@_seen("subnet manager does not run", alone=True)
def _(scene: Scene) -> Expect:
    _, second = _managers(scene)
    _sm(scene, second).update(running=False, role="none")
    return at(second, settings="sm.running")


@_seen("subnet manager with another priority", alone=True)
def _(scene: Scene) -> Expect:
    name = scene.rng.choice(_managers(scene))
    _sm(scene, name)["priority"] = 3
    return at(name, settings="sm.priority")


@_seen("subnet manager has not read its files", alone=True)
def _(scene: Scene) -> Expect:
    name = scene.rng.choice(_managers(scene))
    _sm(scene, name)["loaded"] = False
    return at(name, settings="sm.loaded")


@_seen("subnet manager routes otherwise", alone=True)
def _(scene: Scene) -> Expect:
    name = scene.rng.choice(_managers(scene))
    _sm(scene, name)["routing"] = ["minhop"]
    return at(name, settings="sm.routing")


@_seen("partition is gone", alone=True)
def _(scene: Scene) -> Expect:
    name = scene.rng.choice(_managers(scene))
    del _sm(scene, name)["partitions"]["rows"][-1]
    return at(name, settings="sm.partitions")


@_seen("partition of somebody else", alone=True)
def _(scene: Scene) -> Expect:
    name = scene.rng.choice(_managers(scene))
    rows = _sm(scene, name)["partitions"]["rows"]
    rows.append({**rows[-1], "name": "zz", "pkey": 0x777})
    return at(name, settings="sm.partitions")


@_seen("subnet manager on a switch")
def _(scene: Scene) -> Expect:
    switch = scene.pick(scene.fabric.ib_switches())
    _sm(scene, switch)["running"] = True
    return at(switch, settings="sm.running")


@_seen("another port at the end of the cable")
def _(scene: Scene) -> Expect:
    host, port = _port(scene)
    peer, far = scene.fabric.peers(host)[port]
    other = next(one for one in scene.fabric.ports(peer) if one != far)
    scene.seen[host]["neighbours"] = [[port, peer, other]]
    return at(f"{host} {port}", settings="LLDP neighbour")


@_seen("lanes could not be read")
def _(scene: Scene) -> Expect:
    host, port = _port(scene)
    _of(scene, host, port)["sl_to_vl"] = "@unknown"
    return at(f"{host} {port}", settings="unread settings", severity=NOTE)


__all__ = ["KINDS"]
