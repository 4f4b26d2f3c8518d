"""Faults put into sound fabrics at random places, and what a report must say about each.

A kind of fault is a function that breaks a `Scene` (files, or what devices were seen to have) and returns
what is expected: the places to be named, the setting, the severity. It knows networks, not the product's
checker, of which nothing is imported here.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.seeded.fabrics import Cable, Data, Fabric

ERROR, WARNING, NOTE = "error", "warning", "note"


@dataclass(frozen=True)
class Expect:
    """What a report has to say: every place named, with one of these settings, and nobody else."""

    places: frozenset[str]
    """"node", "node port" or "network NAME"; a node stands for any of its ports."""
    settings: tuple[str, ...]
    """Names in reports; the end of a name is enough."""
    severity: str = ERROR
    says: str = ""
    """Words that a finding at these places must say: why it matters."""


@dataclass
class Scene:
    """A fabric that may be broken in its files and in what its devices have."""

    fabric: Fabric
    seen: dict[str, Data] = field(default_factory=dict)
    """Node -> its observation as in a state file; filled before faults of what was seen."""
    taken: set[str] = field(default_factory=set)
    """Nodes that have their fault already, and their neighbours."""
    rng: random.Random = field(default_factory=random.Random)

    # -- places

    def pick(self, names: list[str]) -> str:
        """A node without a fault, whose neighbours have none."""
        free = [name for name in names if name not in self.taken]
        if not free:
            raise NoPlace
        name = self.rng.choice(free)
        self.taken |= {name, *(peer for peer, _ in self.fabric.peers(name).values())}
        return name

    def host(self) -> str:
        """A host with NICs whose QoS can be managed."""
        return self.pick([name for name in self.fabric.hosts() if name.startswith("gpu")])

    def leaf(self) -> str:
        """A switch that hosts hang on."""
        return self.pick(self.fabric.switches("leaf"))

    def spine(self) -> str:
        """A switch above leaves."""
        return self.pick(self.fabric.switches("spine"))

    def switch(self) -> str:
        """Any switch."""
        return self.pick(self.fabric.switches())

    def host_port(self) -> tuple[str, str]:
        """A cabled host port in the network compute."""
        return self._port(self.host())

    def leaf_port(self) -> tuple[str, str]:
        """A cabled port of a leaf."""
        return self._port(self.leaf())

    def switch_port(self) -> tuple[str, str]:
        """A cabled port of any switch."""
        return self._port(self.switch())

    def _port(self, name: str) -> tuple[str, str]:
        data = self.fabric.ports(name)
        network = "storage" if name.startswith("stor") else "compute"
        ports = [port for port in self.fabric.peers(name) if data[port]["network"] == network]
        return name, self.rng.choice(sorted(ports))

    def edge_port(self) -> tuple[str, str]:
        """A port of a leaf with a host behind it."""
        name = self.leaf()
        hosts = set(self.fabric.hosts())
        return name, self.rng.choice(
            sorted(port for port, (peer, _) in self.fabric.peers(name).items() if peer in hosts)
        )

    def cabled(self, node: str) -> list[str]:
        """ "node port" of all cabled ports."""
        return [f"{node} {port}" for port in self.fabric.peers(node)]

    # -- what was seen

    def settings(self, node: str, port: str, layer: str = "running") -> Data:
        """The settings of a port as its node was seen."""
        for one in self.seen[node][layer]["ports"]:
            if one["name"] == port:
                found: Data = one.setdefault("settings", {})
                return found
        raise KeyError(port)

    def qos(self, node: str, port: str) -> Data:
        """The QoS of a port as seen."""
        found: Data = self.settings(node, port)["qos"]
        return found

    def priority(self) -> int:
        """The lossless priority."""
        classes = self.fabric.intent["classes"].values()
        found: int = next(one["priority"] for one in classes if one.get("lossless"))
        return found

    def roce(self) -> int:
        """The DSCP that hosts mark."""
        found: int = self.fabric.intent["classes"]["roce"]["dscp"][0]
        return found

    def lossless(self, node: str, port: str) -> Data:
        """The lossless class of a port as seen."""
        found: Data = self.qos(node, port)["classes"][self.priority()]
        return found


class NoPlace(Exception):
    """The fabric has no node left for a second fault beside the first."""


Break = Callable[[Scene], Expect]


@dataclass(frozen=True)
class Kind:
    """One kind of break."""

    name: str
    where: str
    """intent, inventory, observed."""
    apply: Break
    alone: bool = False
    """True: it concerns the whole fabric, so that nothing else can be broken beside it."""
    bases: tuple[str, ...] = ()
    """Only on these fabrics."""


KINDS: list[Kind] = []


def kind(
    name: str, where: str, *, alone: bool = False, bases: tuple[str, ...] = ()
) -> Callable[[Break], Break]:
    """Enters a kind of break."""

    def enter(function: Break) -> Break:
        KINDS.append(Kind(name, where, function, alone, bases))
        return function

    return enter


def at(*places: str, settings: str | tuple[str, ...], severity: str = ERROR, says: str = "") -> Expect:
    """An expectation."""
    names = (settings,) if isinstance(settings, str) else settings
    return Expect(frozenset(places), names, severity, says)


def _everywhere(scene: Scene) -> list[str]:
    """All RoCE networks that the intent's own classes hold for."""
    networks: Data = scene.fabric.intent["networks"]
    return [f"network {name}" for name, own in networks.items() if "rdma" not in own]


# ---------------------------------------------------------------- the intent


@kind("dscp in two classes", "intent", alone=True)
def _(scene: Scene) -> Expect:
    classes = scene.fabric.intent["classes"]
    classes["extra"] = {"priority": 1, "dscp": [classes["roce"]["dscp"][0]]}
    return at(*_everywhere(scene), settings="DSCP of classes")


@kind("ecn ramp inverted", "intent", alone=True)
def _(scene: Scene) -> Expect:
    ramp = scene.fabric.intent["ecn"][scene.rng.choice(["100G", "400G", "800G"])]
    ramp["kmin"], ramp["kmax"] = ramp["kmax"], ramp["kmin"]
    return at(*_everywhere(scene), settings="ECN minimum / maximum")


@kind("ecn ramp of one colour inverted", "intent", alone=True, bases=("sonic",))
def _(scene: Scene) -> Expect:
    scene.fabric.intent["ecn"]["400G"]["colours"] = {"yellow": {"kmin": "2MB", "kmax": "1MB"}}
    return at(*_everywhere(scene), settings="ECN minimum / maximum")


@kind("shares above the link", "intent", alone=True)
def _(scene: Scene) -> Expect:
    scene.fabric.intent["classes"]["roce"]["bandwidth"] = f"{scene.rng.randint(71, 99)}%"
    return at(*_everywhere(scene), settings="bandwidth of classes")


@kind("pfc is off everywhere", "intent", alone=True, bases=("eos", "sonic", "cumulus", "mixed"))
def _(scene: Scene) -> Expect:
    if scene.rng.random() < 0.5:
        scene.fabric.intent["pfc"]["enabled"] = False
    else:
        scene.fabric.intent["classes"]["roce"]["pfc"] = False
    return at(*_everywhere(scene), settings="PFC of lossless classes", severity=WARNING)


@kind("a class starves", "intent", alone=True, bases=("eos", "sonic", "cumulus", "mixed"))
def _(scene: Scene) -> Expect:
    name = scene.rng.choice(["roce", "cnp"])
    one = scene.fabric.intent["classes"][name]
    one.pop("scheduler", None)
    one["bandwidth"] = "0%"
    return at(*_everywhere(scene), settings=f"share of class {name}", severity=WARNING)


@kind(
    "network control in the lossless class", "intent", alone=True, bases=("mixed", "eos", "sonic", "cumulus")
)
def _(scene: Scene) -> Expect:
    scene.fabric.intent["classes"]["roce"]["dscp"].append(56)
    return at(*_everywhere(scene), settings="class of DSCP 56")


@kind("control class on the lossless priority", "intent", alone=True, bases=("control",))
def _(scene: Scene) -> Expect:
    scene.fabric.intent["classes"]["control"]["priority"] = scene.priority()
    return at(*_everywhere(scene), settings="control class")


@kind("control class starves", "intent", alone=True, bases=("control",))
def _(scene: Scene) -> Expect:
    scene.fabric.intent["classes"]["control"]["bandwidth"] = "0%"
    return at(*_everywhere(scene), settings="control class")


@kind("cnp class lossless", "intent", alone=True)
def _(scene: Scene) -> Expect:
    scene.fabric.intent["classes"]["cnp"]["lossless"] = True
    return at(*_everywhere(scene), settings="CNP class")


@kind("cnp class on the lossless priority", "intent", alone=True)
def _(scene: Scene) -> Expect:
    scene.fabric.intent["classes"]["cnp"]["priority"] = scene.priority()
    return at(*_everywhere(scene), settings="CNP class")


@kind("lossy class on the lossless priority", "intent", alone=True)
def _(scene: Scene) -> Expect:
    scene.fabric.intent["classes"]["bulk"] = {"priority": scene.priority(), "dscp": [10]}
    return at(*_everywhere(scene), settings=f"priority {scene.priority()}")


@kind("watchdog polls too slowly", "intent", alone=True, bases=("sonic",))
def _(scene: Scene) -> Expect:
    scene.fabric.intent["pfc"]["watchdog"]["poll"] = "500ms"
    return at(*_everywhere(scene), settings="watchdog times")


@kind("lossless class takes unmarked packets", "intent", alone=True)
def _(scene: Scene) -> Expect:
    scene.fabric.intent["classes"]["roce"]["dscp"] = [0]
    return at(*_everywhere(scene), settings="DSCP of the lossless class")


@kind("unknown ecn profile", "intent", alone=True)
def _(scene: Scene) -> Expect:
    scene.fabric.intent["ecn"]["400G"] = {"profile": "best"}
    return at(*_everywhere(scene), settings="ECN profile")


@kind("marking off on one switch", "intent", bases=("eos", "sonic", "cumulus", "mixed"))
def _(scene: Scene) -> Expect:
    switch = scene.switch()
    scene.fabric.intent.setdefault("overrides", []).append({"where": switch, "set": {"ecn": False}})
    return at(switch, settings="ECN of lossless classes", severity=WARNING)


@kind("no ecn for a speed", "intent", alone=True)
def _(scene: Scene) -> Expect:
    del scene.fabric.intent["ecn"]["400G"]
    return at(*_everywhere(scene), settings="ECN of lossless classes", severity=WARNING)


@kind("host mtu too small for rdma", "intent", alone=True)
def _(scene: Scene) -> Expect:
    scene.fabric.intent["mtu"]["host"] = scene.rng.choice([1500, 4096, 4191])
    return at(*scene.fabric.hosts(), settings="mtu")


@kind("switch mtu too small for rdma", "intent", alone=True)
def _(scene: Scene) -> Expect:
    scene.fabric.intent["mtu"]["switch"] = scene.rng.choice([1500, 4000])
    return at(*scene.fabric.switches(), settings="mtu")


@kind("hosts send more than switches carry", "intent", alone=True)
def _(scene: Scene) -> Expect:
    scene.fabric.intent["mtu"]["switch"] = 8000
    return at(*scene.fabric.hosts(), settings="mtu")


@kind("roce marked for a lossy class", "intent", alone=True)
def _(scene: Scene) -> Expect:
    scene.fabric.intent["hosts"]["roce_class"] = "cnp"
    return at(*scene.fabric.hosts(), settings=("RoCE traffic class", "RDMA-CM ToS"))


@kind("headroom too small", "intent", alone=True, bases=("sonic", "cumulus"))
def _(scene: Scene) -> Expect:
    scene.fabric.intent["pfc"]["headroom"] = "12KB"
    return at(*scene.fabric.switches(), settings="headroom")


@kind("headroom below what vendors ship", "intent", alone=True, bases=("sonic",))
def _(scene: Scene) -> Expect:
    scene.fabric.intent["pfc"]["headroom"] = scene.rng.choice(["40KB", "60KB"])
    return at(*scene.fabric.switches(), settings="headroom", severity=WARNING, says="after a pause")


@kind("mistake in one network only", "intent", alone=True, bases=("storage",))
def _(scene: Scene) -> Expect:
    scene.fabric.intent["networks"]["storage"] = {"classes": {"roce": {"bandwidth": "90%"}}}
    return at("network storage", settings="bandwidth of classes")


@kind("mtu of one network too small", "intent", alone=True, bases=("storage",))
def _(scene: Scene) -> Expect:
    scene.fabric.intent["networks"]["storage"] = {"mtu": {"switch": 1500}}
    return at(*scene.fabric.switches("storage"), settings="mtu")


@kind("watchdog that no platform can have is required", "intent", alone=True, bases=("sonic",))
def _(scene: Scene) -> Expect:
    scene.fabric.intent["pfc"]["watchdog"] = {"detect": "10s", "restore": "20s", "require": True}
    return at(*scene.fabric.switches(), settings="watchdog detect")


@kind("ecn ramp too flat for its senders", "intent", alone=True, bases=("eos", "sonic", "cumulus", "mixed"))
def _(scene: Scene) -> Expect:
    scene.fabric.intent["ecn"]["400G"]["pmax"] = scene.rng.choice(["0.5%", "0.2%"])
    return at(*_everywhere(scene), settings="ECN pmax", severity=NOTE, says="past kmax")


@kind("watchdog faster than the buffer drains", "intent", alone=True, bases=("eos",))
def _(scene: Scene) -> Expect:
    scene.fabric.intent["pfc"]["watchdog"] = {"detect": "20ms", "restore": "40ms"}
    return at(*scene.fabric.switches(), settings="watchdog detect", severity=NOTE, says="congestion for a")


@kind("switch in a network of another transport", "inventory")
def _(scene: Scene) -> Expect:
    switch = scene.switch()
    scene.fabric.node_set(switch, "rdma.transport", "infiniband")
    return at(switch, settings="RDMA transport")


@kind("unknown network in the inventory", "inventory")
def _(scene: Scene) -> Expect:
    host, port = scene.host_port()
    scene.fabric.port_data(host, port)["network"] = "computer"
    return at(f"{host} {port}", settings="network", severity=WARNING)


def _other_end(scene: Scene, node: str, port: str) -> tuple[str, ...]:
    peer, other = scene.fabric.peers(node)[port]
    return (f"{peer} {other}",)


# ---------------------------------------------------------------- overrides and data of nodes


@kind("override: one host's mtu", "inventory")
def _(scene: Scene) -> Expect:
    host = scene.host()
    scene.fabric.override(f"name={host}", mtu__host=scene.rng.choice([1500, 4096]))
    return at(host, settings="mtu")


@kind("node data: one switch's mtu", "inventory")
def _(scene: Scene) -> Expect:
    switch = scene.switch()
    scene.fabric.node_set(switch, "mtu.switch", scene.rng.choice([1500, 2048, 4000]))
    return at(switch, settings="mtu")


@kind("port data: mtu of a leaf port", "inventory")
def _(scene: Scene) -> Expect:
    leaf, port = scene.leaf_port()
    scene.fabric.port_data(leaf, port)["mtu"] = scene.rng.choice([1500, 4000])
    return at(f"{leaf} {port}", settings="mtu")


@kind("port data: mtu of a host port", "inventory")
def _(scene: Scene) -> Expect:
    host, port = scene.host_port()
    scene.fabric.port_data(host, port)["mtu"] = 1500
    return at(f"{host} {port}", settings="mtu")


@kind("port data: mtu between need and hosts", "inventory")
def _(scene: Scene) -> Expect:
    spine = scene.spine()
    port = scene.rng.choice(sorted(scene.fabric.peers(spine)))
    scene.fabric.port_data(spine, port)["mtu"] = scene.rng.choice([4200, 8000, 8999])
    return at(f"{spine} {port}", settings="mtu")


@kind("host sends larger packets", "inventory")
def _(scene: Scene) -> Expect:
    host, port = scene.host_port()
    scene.fabric.port_data(host, port)["mtu"] = 9500
    return at(f"{host} {port}", settings="mtu")


@kind("rails of a host differ in mtu", "inventory")
def _(scene: Scene) -> Expect:
    host, port = scene.host_port()
    scene.fabric.port_data(host, port)["mtu"] = 8000
    return at(f"{host} {port}", settings="mtu", severity=WARNING)


@kind("one switch pauses another priority", "inventory")
def _(scene: Scene) -> Expect:
    switch = scene.switch()
    scene.fabric.node_set(switch, "classes.roce.priority", 5)
    return at(switch, settings=("PFC priorities", "DSCP map"))


@kind("one host pauses another priority", "inventory")
def _(scene: Scene) -> Expect:
    host = scene.host()
    scene.fabric.node_set(host, "classes.roce.priority", 5)
    return at(host, settings=("PFC priorities", "DSCP map"))


@kind("one switch maps another dscp", "inventory")
def _(scene: Scene) -> Expect:
    switch = scene.switch()
    scene.fabric.override(switch, classes__roce__dscp=[34])
    return at(switch, settings="DSCP map")


@kind("one host maps and marks another dscp", "inventory")
def _(scene: Scene) -> Expect:
    host = scene.host()
    scene.fabric.override(host, classes__roce__dscp=[34])
    return at(host, settings=("DSCP map", "RDMA-CM ToS", "RoCE traffic class"))


@kind("one switch does not pause", "inventory")
def _(scene: Scene) -> Expect:
    switch = scene.switch()
    scene.fabric.node_set(switch, "pfc.enabled", False)
    return at(switch, settings="PFC priorities")


@kind("one host does not pause", "inventory")
def _(scene: Scene) -> Expect:
    host = scene.host()
    scene.fabric.node_set(host, "pfc.enabled", False)
    return at(host, settings="PFC priorities")


@kind("one switch trusts 802.1p", "inventory")
def _(scene: Scene) -> Expect:
    switch = scene.switch()
    scene.fabric.node_set(switch, "trust", "pcp")
    return at(switch, settings="trust")


@kind("one host trusts 802.1p", "inventory")
def _(scene: Scene) -> Expect:
    host = scene.host()
    scene.fabric.node_set(host, "trust", "pcp")
    return at(host, settings="trust")


@kind("one host marks cnps otherwise", "inventory")
def _(scene: Scene) -> Expect:
    host = scene.host()
    scene.fabric.node_set(host, "classes.cnp.dscp", [4])
    return at(host, settings=("CNP DSCP", "DSCP map"))


@kind("one host marks roce for a lossy class", "inventory")
def _(scene: Scene) -> Expect:
    host = scene.host()
    scene.fabric.node_set(host, "hosts.roce_class", "cnp")
    return at(host, settings=("RoCE traffic class", "RDMA-CM ToS"))


@kind("a whole group's mtu", "inventory", alone=True)
def _(scene: Scene) -> Expect:
    group = scene.fabric.nodes[scene.fabric.hosts()[0]].group
    scene.fabric.groups[group]["data"].setdefault("set", {})["mtu.host"] = 2000
    return at(
        *(host for host in scene.fabric.hosts() if scene.fabric.nodes[host].group == group), settings="mtu"
    )


@kind("cable with two speeds", "inventory")
def _(scene: Scene) -> Expect:
    switch, port = scene.edge_port()
    scene.fabric.port_data(switch, port)["speed"] = "100G"
    return at(f"{switch} {port}", *_other_end(scene, switch, port), settings="speed")


@kind("port in two cables", "inventory")
def _(scene: Scene) -> Expect:
    host, port = scene.host_port()
    peer, _ = scene.fabric.peers(host)[port]
    scene.fabric.short = False
    cables = scene.fabric.cables
    index = next(i for i, one in enumerate(cables) if (host, port) in one.ends)
    others = [
        one.b_port for one in cables if one.b == peer and one.a in scene.fabric.hosts() and one.a != host
    ]
    other = scene.rng.choice(others)
    cables[index] = Cable(host, port, peer, other, 5)
    return at(f"{peer} {other}", settings="cable")


@kind("address of two nodes", "inventory")
def _(scene: Scene) -> Expect:
    one, other = scene.switch(), scene.pick([*scene.fabric.hosts(), *scene.fabric.switches()])
    scene.fabric.nodes[one].address = scene.fabric.nodes[other].address
    return at(one, other, settings="hostname")


@kind("node without cables", "inventory")
def _(scene: Scene) -> Expect:
    host = scene.host()
    scene.fabric.cables = [one for one in scene.fabric.cables if host not in (one.a, one.b)]
    return at(host, settings="cables", severity=WARNING)


@kind("override selects nothing", "inventory", alone=True)
def _(scene: Scene) -> Expect:
    scene.fabric.override("role=lief", mtu__switch=9000)
    return at("", settings="override", severity=WARNING)


@kind("cable too long for the switch's tables", "inventory", bases=("sonic",))
def _(scene: Scene) -> Expect:
    switch, port = scene.edge_port()
    cables = scene.fabric.cables
    index = next(i for i, one in enumerate(cables) if (switch, port) in one.ends)
    old = cables[index]
    cables[index] = Cable(old.a, old.a_port, old.b, old.b_port, 2000)
    return at(f"{switch} {port}", settings="cable length")


@kind("cable beyond the lossless reach", "inventory")
def _(scene: Scene) -> Expect:
    switch, port = scene.edge_port()
    scene.fabric.nodes[switch].data["options"] = {"lossless_max_m": "100"}
    cables = scene.fabric.cables
    index = next(i for i, one in enumerate(cables) if (switch, port) in one.ends)
    old = cables[index]
    cables[index] = Cable(old.a, old.a_port, old.b, old.b_port, 300)
    return at(f"{switch} {port}", settings="cable length")


@kind("two maps on a switch that has one", "inventory", bases=("shared",), alone=True)
def _(scene: Scene) -> Expect:
    scene.fabric.intent["networks"]["storage"] = {"classes": {"roce": {"dscp": [34]}}}
    return at(*scene.fabric.switches("leaf"), settings="DSCP map")


@kind("headroom of one port too small", "inventory", bases=("sonic", "cumulus"))
def _(scene: Scene) -> Expect:
    switch, port = scene.edge_port()
    scene.fabric.port_set(switch, port, "pfc.headroom", "9KB")
    return at(f"{switch} {port}" if scene.fabric.platform(switch) == "sonic" else switch, settings="headroom")


# ---------------------------------------------------------------- what nobody wishes


def _left_out(scene: Scene, node: str, *keys: str) -> None:
    """The intent's keys for all nodes but one."""
    for key in keys:
        top, _, name = key.partition(".")
        found = scene.fabric.intent[top]
        value = found.pop(name) if name else scene.fabric.intent.pop(top)
        scene.fabric.override(f"name!={node}", **{key.replace(".", "__"): value})


@kind("classes for all but one switch", "inventory", alone=True, bases=("sonic", "cumulus", "eos", "mixed"))
def _(scene: Scene) -> Expect:
    switch = scene.leaf()
    _left_out(scene, switch, "classes")
    shows = {
        "sonic": "become priority 1",
        "cumulus": "become priority 0",
        "arista_eos": "one end of the cable",
    }
    return at(
        *scene.cabled(switch),
        settings=("DSCP map", "trust", "PFC priorities"),
        severity=WARNING,
        says=shows[scene.fabric.platform(switch)],
    )


@kind("classes for all but one host", "inventory", alone=True, bases=("eos", "sonic", "nccl"))
def _(scene: Scene) -> Expect:
    host = scene.host()
    _left_out(scene, host, "classes")
    names = ("trust", "PFC priorities")
    return at(*scene.cabled(host), settings=names, severity=WARNING, says="trust different things")


@kind("cnp class for all but one host", "inventory", alone=True, bases=("eos", "sonic", "cumulus"))
def _(scene: Scene) -> Expect:
    """NICs send CNPs with DSCP 48 unless they are told otherwise."""
    scene.fabric.intent["classes"]["cnp"]["dscp"] = [50]
    host = scene.host()
    _left_out(scene, host, "classes.cnp")
    return at(*scene.cabled(host), settings="CNP DSCP", severity=WARNING, says="48 by default")


@kind("mtu for all but one host", "inventory", alone=True, bases=("eos", "sonic", "cumulus"))
def _(scene: Scene) -> Expect:
    host = scene.host()
    _left_out(scene, host, "mtu.host")
    return at(*scene.cabled(host), settings="mtu", severity=WARNING, says="1500")


@kind("mtu for all but one switch", "inventory", alone=True, bases=("sonic",))
def _(scene: Scene) -> Expect:
    scene.fabric.intent["mtu"]["host"] = 9150  # SONiC's default is 9100
    scene.fabric.intent["mtu"]["switch"] = 9200
    switch = scene.switch()
    _left_out(scene, switch, "mtu.switch")
    return at(*scene.cabled(switch), settings="mtu", severity=WARNING, says="9100 by default")


# ---------------------------------------------------------------- the cable plan


def _recable(scene: Scene, node: str, port: str, **more: Any) -> Cable:
    """Replaces the cable in a port by one that differs in some columns."""
    cables = scene.fabric.cables
    index = next(i for i, one in enumerate(cables) if (node, port) in one.ends)
    cables[index] = replace(cables[index], **more)
    return cables[index]


@kind("two rails crossed", "inventory")
def _(scene: Scene) -> Expect:
    host = scene.host()
    peers = scene.fabric.peers(host)
    one, other = scene.rng.sample(
        [port for port, data in scene.fabric.ports(host).items() if "rail" in data], 2
    )
    _recable(scene, host, one, b=peers[other][0], b_port=peers[other][1])
    index = next(
        i for i, cable in enumerate(scene.fabric.cables) if cable.ends == ((host, other), peers[other])
    )
    scene.fabric.cables[index] = replace(scene.fabric.cables[index], b=peers[one][0], b_port=peers[one][1])
    return at(f"{host} {one}", f"{host} {other}", settings="rail")


@kind("rail without a cable", "inventory")
def _(scene: Scene) -> Expect:
    host, port = scene.host_port()
    scene.fabric.cables = [one for one in scene.fabric.cables if (host, port) not in one.ends]
    return at(f"{host} {port}", settings="cables", severity=WARNING)


@kind("more below than the intent allows", "intent", alone=True, bases=("eos", "sonic", "cumulus"))
def _(scene: Scene) -> Expect:
    scene.fabric.intent["topology"] = {"oversubscription": "3:2"}
    return at(*scene.fabric.switches("leaf"), settings="oversubscription", severity=WARNING)


@kind("one home where two are meant", "inventory", bases=("eos", "sonic", "cumulus", "mixed"))
def _(scene: Scene) -> Expect:
    scene.fabric.intent["topology"] = {"dual_homed": True}
    host = scene.host()
    scene.fabric.cables = [one for one in scene.fabric.cables if one.a != host or one.a_port == "eth0"]
    return at(host, settings="homes")


@kind("pair of one switch", "inventory")
def _(scene: Scene) -> Expect:
    leaf = scene.leaf()
    scene.fabric.nodes[leaf].data.setdefault("options", {})["mlag"] = "pair1"
    return at(leaf, settings="mlag")


@kind("switches of a bond differ", "inventory", bases=("bond",))
def _(scene: Scene) -> Expect:
    leaf = scene.pick(scene.fabric.switches("leaf")[:: len(scene.fabric.switches("leaf")) - 1])
    ports = scene.fabric.ports(leaf)
    port = scene.rng.choice([one for one in scene.fabric.peers(leaf) if ports[one]["network"] == "storage"])
    scene.fabric.port_data(leaf, port)["mtu"] = 9100
    return at(f"{leaf} {port}", settings="mtu", severity=WARNING, says="two switches")


@kind("cable between two of a tier", "inventory", bases=("eos", "sonic", "cumulus", "mixed"))
def _(scene: Scene) -> Expect:
    pair = scene.fabric.switches(scene.rng.choice(["leaf", "spine"]))[:2]
    ends = [scene.fabric.new_port(name, 40) for name in pair]
    scene.fabric.cables.append(Cable(pair[0], ends[0], pair[1], ends[1], 5))
    places = [f"{node} {port}" for node, port in zip(pair, ends, strict=True)]
    return at(*places, settings="lossless routes", severity=WARNING, says="equal tiers")


@kind("ring of leaves", "inventory", alone=True, bases=("eos", "sonic", "cumulus", "mixed"))
def _(scene: Scene) -> Expect:
    leaves = scene.fabric.switches("leaf")
    for number, leaf in enumerate(leaves):
        other = leaves[(number + 1) % len(leaves)]
        ends = [scene.fabric.new_port(name, 40 + side) for side, name in enumerate((leaf, other))]
        scene.fabric.cables.append(Cable(leaf, ends[0], other, ends[1], 5))
    return at(*leaves, settings="lossless routes", says="circle")


@kind("circle when one cable fails", "intent", alone=True, bases=("eos", "sonic", "cumulus", "mixed"))
def _(scene: Scene) -> Expect:
    leaves, spines = scene.fabric.switches("leaf")[:2], scene.fabric.switches("spine")
    ends = [scene.fabric.new_port(name, 40) for name in leaves]
    # Only two leaves, a cable between them, and hosts on the spines too.
    keep = {*leaves, *spines, *scene.fabric.hosts()}
    cables = [one for one in scene.fabric.cables if {one.a, one.b} <= keep]
    cables.append(Cable(leaves[0], ends[0], leaves[1], ends[1], 5))
    for number, host in enumerate(scene.fabric.hosts()):
        for port, spine in zip(("eth2", "eth3"), spines, strict=True):
            cables.append(Cable(host, port, spine, scene.fabric.new_port(spine, 41 + number), 5))
    scene.fabric.cables = cables
    for name in scene.fabric.switches("leaf")[2:]:
        del scene.fabric.nodes[name]
    places = (*leaves, *spines)
    return at(*places, settings="lossless routes", severity=WARNING, says="fails")


@kind("slot slower than the nic", "inventory")
def _(scene: Scene) -> Expect:
    host, port = scene.host_port()
    scene.fabric.port_data(host, port)["pcie"] = {"generation": 4, "lanes": scene.rng.choice([8, 16])}
    return at(f"{host} {port}", settings="PCIe", severity=WARNING)


@kind("gpus that the rails do not divide", "inventory")
def _(scene: Scene) -> Expect:
    host = scene.host()
    scene.fabric.nodes[host].data["gpus"] = 7
    return at(host, settings="rails", severity=WARNING)


@kind("cable joins two networks", "inventory", bases=("storage", "shared"))
def _(scene: Scene) -> Expect:
    host, port = scene.host_port()
    scene.fabric.port_data(host, port)["network"] = "storage"
    return at(f"{host} {port}", *_other_end(scene, host, port), settings="network")


@kind("one switch spreads packets otherwise", "inventory")
def _(scene: Scene) -> Expect:
    odd = scene.switch()
    for name in scene.fabric.switches():
        word = "none" if name == odd else "spray"
        scene.fabric.nodes[name].data.setdefault("options", {})["adaptive_routing"] = word
    return at(odd, settings="adaptive_routing", severity=WARNING)


@kind("ecn beyond the buffer", "intent", alone=True, bases=("eos", "sonic", "cumulus", "mixed"))
def _(scene: Scene) -> Expect:
    scene.fabric.intent["ecn"]["400G"] = {"kmin": "200MB", "kmax": "400MB"}
    return at(*scene.fabric.switches(), settings="ECN", says="can mark nothing")


@kind("cables longer than the buffer", "inventory", alone=True, bases=("eos",))
def _(scene: Scene) -> Expect:
    leaf = scene.leaf()
    for name in scene.fabric.switches():  # as if the vendor had said that a single one reaches so far
        scene.fabric.nodes[name].data.setdefault("options", {})["lossless_max_m"] = "100000"
    for port, (peer, _) in scene.fabric.peers(leaf).items():
        if peer.startswith("spine"):
            _recable(scene, leaf, port, length=95_000)
    return at(leaf, settings="headroom of all ports", severity=WARNING)


@kind("cable that no headroom is shipped for", "inventory", bases=("eos",))
def _(scene: Scene) -> Expect:
    leaf = scene.leaf()
    uplinks = [(port, end) for port, end in scene.fabric.peers(leaf).items() if end[0].startswith("spine")]
    port, (peer, other) = scene.rng.choice(uplinks)
    _recable(scene, leaf, port, length=5000)
    return at(f"{leaf} {port}", f"{peer} {other}", settings="cable length", severity=WARNING)


def _waive(scene: Scene, **more: Any) -> None:
    waiver = {"rule": "mtu-below-rdma", "until": "2027-01-31", "reason": "ticket 4711"} | more
    scene.fabric.intent.setdefault("waivers", []).append(waiver)


@kind("waiver expired", "intent", alone=True)
def _(scene: Scene) -> Expect:
    host, port = scene.host_port()
    scene.fabric.port_data(host, port)["mtu"] = 1500
    _waive(scene, node=host, until="2025-12-31")
    return at("", host, settings=("waiver", "mtu"))


@kind("waiver of nothing", "intent", alone=True)
def _(scene: Scene) -> Expect:
    _waive(scene, node=scene.host())
    return at("", settings="waiver", severity=NOTE)


@kind("waiver of a rule that does not exist", "intent", alone=True)
def _(scene: Scene) -> Expect:
    _waive(scene, node=scene.host(), rule="mtu-below-rmda")
    return at("", settings="waiver")


# ---------------------------------------------------------------- what devices have


def _seen(name: str, **more: Any) -> Callable[[Break], Break]:
    return kind(name, "observed", **more)


@_seen("seen: mtu below need on a switch port")
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    scene.settings(node, port)["mtu"]["ip"] = scene.rng.choice([1500, 4000])
    return at(f"{node} {port}", settings="mtu")


@_seen("seen: mtu below need on a host port")
def _(scene: Scene) -> Expect:
    node, port = scene.host_port()
    scene.settings(node, port)["mtu"]["ip"] = scene.rng.choice([1500, 4096])
    return at(f"{node} {port}", settings="mtu")


@_seen("seen: mtu lower than wished but enough")
def _(scene: Scene) -> Expect:
    node, port = scene.host_port()
    scene.settings(node, port)["mtu"]["ip"] = scene.rng.choice([4200, 8000])
    return at(f"{node} {port}", settings="mtu")


@_seen("seen: mtu higher than wished on a host")
def _(scene: Scene) -> Expect:
    node, port = scene.host_port()
    scene.settings(node, port)["mtu"]["ip"] = scene.rng.choice([9100, 9500])
    return at(f"{node} {port}", settings="mtu")


@_seen("seen: mtu below the hosts' on a switch port")
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    scene.settings(node, port)["mtu"]["ip"] = 8000
    return at(f"{node} {port}", settings="mtu")


@_seen("seen: port without trust")
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    scene.qos(node, port)["trust"] = scene.rng.choice(["port", "pcp"])
    return at(f"{node} {port}", settings="trust")


@_seen("seen: host trusts 802.1p")
def _(scene: Scene) -> Expect:
    node, port = scene.host_port()
    scene.qos(node, port)["trust"] = "pcp"
    return at(f"{node} {port}", settings="trust")


def _remap(scene: Scene, node: str, port: str, dscp: int, priority: int) -> None:
    scene.qos(node, port)["dscp_to_priority"][dscp] = priority


@_seen("seen: roce's dscp is best effort on a switch port")
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    _remap(scene, node, port, scene.roce(), scene.rng.choice([0, 1, 5]))
    return at(f"{node} {port}", settings="DSCP map", says="RoCE packets")


@_seen("seen: roce's dscp is best effort on a host port")
def _(scene: Scene) -> Expect:
    node, port = scene.host_port()
    _remap(scene, node, port, scene.roce(), 0)
    return at(f"{node} {port}", settings="DSCP map")


@_seen("seen: cnps are in the lossless priority")
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    cnp = scene.fabric.intent["classes"]["cnp"]["dscp"][0]
    _remap(scene, node, port, cnp, scene.priority())
    return at(f"{node} {port}", settings="DSCP map")


@_seen("seen: another dscp enters the lossless priority")
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    _remap(scene, node, port, scene.rng.choice([0, 8, 10, 46]), scene.priority())
    return at(f"{node} {port}", settings="DSCP map")


@_seen("seen: pfc is off on a switch port")
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    scene.lossless(node, port).update(pfc_tx=False, pfc_rx=False)
    return at(f"{node} {port}", settings=("PFC priorities", "watchdog priorities"))


@_seen("seen: pfc is off on a host port")
def _(scene: Scene) -> Expect:
    node, port = scene.host_port()
    scene.lossless(node, port).update(pfc_tx=False, pfc_rx=False)
    return at(f"{node} {port}", settings="PFC priorities")


@_seen("seen: pfc on a lossy priority")
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    scene.qos(node, port)["classes"][scene.rng.choice([0, 1, 5])].update(pfc_tx=True, pfc_rx=True)
    return at(f"{node} {port}", settings=("PFC priorities", "watchdog priorities"))


@_seen("seen: both ends pause a lossy priority")
def _(scene: Scene) -> Expect:
    node, port = scene.edge_port()
    peer, far = scene.fabric.peers(node)[port]
    priority = scene.rng.choice([0, 1, 5])
    for one, at_port in ((node, port), (peer, far)):
        scene.qos(one, at_port)["classes"][priority].update(pfc_tx=True, pfc_rx=True)
    scene.taken.add(peer)
    names = ("PFC priorities", "watchdog priorities")
    return at(f"{node} {port}", f"{peer} {far}", settings=names, says="no lossless class")


@_seen("seen: pfc on another priority")
def _(scene: Scene) -> Expect:
    node, port = scene.host_port()
    scene.lossless(node, port).update(pfc_tx=False, pfc_rx=False)
    scene.qos(node, port)["classes"][5].update(pfc_tx=True, pfc_rx=True)
    return at(f"{node} {port}", settings="PFC priorities")


@_seen("seen: a port sends pause and does not obey it")
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    scene.lossless(node, port)["pfc_rx"] = False
    return at(f"{node} {port}", settings="PFC priorities")


@_seen("seen: watchdog is off")
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    scene.lossless(node, port)["watchdog"] = False
    return at(f"{node} {port}", settings="watchdog priorities", says="guards")


@_seen("seen: watchdog detects later")
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    timers = scene.qos(node, port)["watchdog"]
    timers["detect_ms"] = timers["detect_ms"] * 5
    return at(f"{node} {port}", settings="watchdog detect")


@_seen("seen: watchdog acts otherwise", bases=("eos", "sonic"))
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    scene.qos(node, port)["watchdog"]["action"] = "forward"
    return at(f"{node} {port}", settings="watchdog action")


@_seen("seen: queue does not mark")
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    scene.lossless(node, port)["ecn"] = None
    return at(f"{node} {port}", settings="ECN", says="does not mark")


@_seen("seen: queue marks from another depth")
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    ramp = scene.lossless(node, port)["ecn"]
    which = scene.rng.choice(["kmin", "kmax"])
    ramp[which]["value"] = ramp[which]["value"] // 2 if which == "kmin" else ramp[which]["value"] * 2
    return at(f"{node} {port}", settings="ECN")


@_seen("seen: queue marks with another probability")
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    scene.lossless(node, port)["ecn"]["pmax"] = 5.0
    return at(f"{node} {port}", settings="ECN")


@_seen("seen: queue has another share")
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    scene.lossless(node, port)["share"]["weight"] = 7
    return at(f"{node} {port}", settings="scheduler")


@_seen("seen: cnp queue is not strict")
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    scene.qos(node, port)["classes"][6]["share"] = {"scheduler": "dwrr", "weight": 10}
    return at(f"{node} {port}", settings="scheduler")


@_seen("seen: headroom by hand is too small", bases=("sonic", "cumulus"))
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    scene.lossless(node, port)["headroom"] = {"value": 9000, "unit": "bytes"}
    return at(f"{node} {port}", settings="headroom")


def _buffer(scene: Scene, node: str, port: str, **given: int) -> None:
    """What a device shows of the buffer of its lossless priority."""
    scene.seen[node]["buffers"] = [{"port": port, "priority": scene.priority(), "name": "lossless"} | given]


@_seen("seen: a queue is released where it is paused")
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    pause = scene.rng.randint(10_000, 90_000)
    given = scene.rng.choice([{"resume_at": pause}, {"resume_at": 100_000}, {"resume_at": 0, "apart": 0}])
    _buffer(scene, node, port, pause_at=pause, **given)
    return at(f"{node} {port}", settings=f"resume point of priority {scene.priority()}")


@_seen("seen: a queue is never released")
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    _buffer(scene, node, port, pause_at=10_000, resume_at=-2_000)
    return at(f"{node} {port}", settings=f"resume point of priority {scene.priority()}")


@_seen("seen: pause and release move together")
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    _buffer(scene, node, port, resume_at=0, apart=0)
    return at(f"{node} {port}", settings=f"resume point of priority {scene.priority()}", severity=WARNING)


@_seen("seen: computed headroom is too small")
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    _buffer(scene, node, port, resume_at=19_456, room=scene.rng.choice([0, 9_000]))
    return at(f"{node} {port}", settings="headroom", says="after a pause")


@_seen("seen: firmware owns dcbx")
def _(scene: Scene) -> Expect:
    node, port = scene.host_port()
    scene.qos(node, port)["dcbx"] = scene.rng.choice(["firmware", "ieee"])
    return at(f"{node} {port}", settings="DCBX mode", says="owns PFC")


@_seen("seen: global pause is on")
def _(scene: Scene) -> Expect:
    node, port = scene.host_port()
    scene.qos(node, port)["global_pause"] = True
    return at(f"{node} {port}", settings="global pause", says="stops as a whole")


@_seen("seen: dscp written as a tos byte")
def _(scene: Scene) -> Expect:
    node, port = scene.host_port()
    marking = scene.settings(node, port)["marking"]
    for name in ("rdma_cm_tos", "traffic_class"):
        if isinstance(marking.get(name), int):
            marking[name] = marking[name] >> 2
    return at(f"{node} {port}", settings=("RDMA-CM ToS", "RoCE traffic class"))


@_seen("seen: roce is not marked")
def _(scene: Scene) -> Expect:
    node, port = scene.host_port()
    marking = scene.settings(node, port)["marking"]
    for name in ("rdma_cm_tos", "traffic_class"):
        if isinstance(marking.get(name), int):
            marking[name] = 0
    return at(f"{node} {port}", settings=("RDMA-CM ToS", "RoCE traffic class"))


@_seen("seen: cnps have another dscp")
def _(scene: Scene) -> Expect:
    node, port = scene.host_port()
    scene.settings(node, port)["marking"]["cnp_dscp"] = scene.rng.choice([4, 10, 46])
    return at(f"{node} {port}", settings="CNP DSCP")


@_seen("seen: cnps use roce's dscp")
def _(scene: Scene) -> Expect:
    node, port = scene.host_port()
    scene.settings(node, port)["marking"]["cnp_dscp"] = 26
    return at(f"{node} {port}", settings="CNP DSCP", says="which is paused")


@_seen("seen: cnps have another priority")
def _(scene: Scene) -> Expect:
    node, port = scene.host_port()
    scene.settings(node, port)["marking"]["cnp_priority"] = 7
    return at(f"{node} {port}", settings="CNP priority")


@_seen("seen: dcqcn is off", bases=("ofed",))
def _(scene: Scene) -> Expect:
    node, port = scene.host_port()
    scene.settings(node, port)["marking"][scene.rng.choice(["np", "rp"])] = []
    return at(f"{node} {port}", settings=("DCQCN notification point", "DCQCN reaction point"))


@_seen("seen: roce v1")
def _(scene: Scene) -> Expect:
    node, port = scene.host_port()
    scene.settings(node, port)["marking"]["roce_v2"] = False
    return at(f"{node} {port}", settings="RoCE v2")


def _system(scene: Scene, part: str) -> tuple[str, Data]:
    host = scene.host()
    found: Data = scene.seen[host]["running"]["system"][part]
    return host, found


@_seen("seen: kernel setting differs")
def _(scene: Scene) -> Expect:
    host, found = _system(scene, "sysctl")
    key = scene.rng.choice(sorted(found))
    found[key] = "7"
    return at(host, settings=key)


@_seen("seen: module is missing")
def _(scene: Scene) -> Expect:
    host, found = _system(scene, "modules")
    key = scene.rng.choice(sorted(found))
    found[key] = False
    return at(host, settings=key)


@_seen("seen: memlock is limited")
def _(scene: Scene) -> Expect:
    host, found = _system(scene, "limits")
    found["memlock"] = "65536"
    return at(host, settings="memlock")


@_seen("seen: nccl marks otherwise", bases=("nccl",))
def _(scene: Scene) -> Expect:
    host, found = _system(scene, "environment")
    found["NCCL_IB_TC"] = scene.rng.choice(["26", "0", "96", "0104", "0x1a"])
    return at(host, settings="NCCL_IB_TC")


@_seen("seen: another program owns the settings")
def _(scene: Scene) -> Expect:
    host = scene.host()
    scene.seen[host]["running"]["system"]["owners"] = [scene.rng.choice(["lldpad", "nic-operator"])]
    return at(host, settings="owners", severity=WARNING)


@_seen("seen: link is slow")
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    for one in scene.seen[node]["running"]["ports"]:
        if one["name"] == port:
            one["speed_gbps"] = 100
    return at(f"{node} {port}", settings="speed", severity=WARNING)


def _store(scene: Scene, node: str) -> None:
    import copy

    scene.seen[node]["stored"] = copy.deepcopy(scene.seen[node]["running"])


@_seen("seen: right but not stored")
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    _store(scene, node)
    scene.settings(node, port, "stored")["mtu"]["ip"] = 1500
    return at(f"{node} {port}", settings="mtu", severity=WARNING)


@_seen("seen: stored but not in force")
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    _store(scene, node)
    scene.settings(node, port)["qos"]["trust"] = "port"
    return at(f"{node} {port}", settings="trust")


@_seen("seen: priority group shared with a lossy class", bases=("sonic",))
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    scene.lossless(node, port)["group"] = 0
    return at(f"{node} {port}", settings="priority group")


def _nic(scene: Scene, node: str, port: str, layer: str = "running") -> Data:
    """What a card has, as seen."""
    found: Data = scene.settings(node, port, layer).setdefault("nic", {})
    return found


@_seen("seen: a card waits for its reset", bases=("nv",))
def _(scene: Scene) -> Expect:
    import copy

    host, port = scene.host_port()
    for layer in ("stored", "pending"):
        scene.seen[host][layer] = copy.deepcopy(scene.seen[host]["running"])
    _nic(scene, host, port)["nv"]["CNP_DSCP"] = scene.rng.choice(["4", "0"])
    return at(f"{host} {port}", settings="NV CNP_DSCP", says="after a reset 48")


@_seen("seen: a card has another non-volatile setting", bases=("nv",))
def _(scene: Scene) -> Expect:
    host, port = scene.host_port()
    _nic(scene, host, port)["nv"]["CNP_DSCP"] = scene.rng.choice(["4", "0"])
    return at(f"{host} {port}", settings="NV CNP_DSCP")


@_seen("seen: firmware that nobody wants", bases=("nv",))
def _(scene: Scene) -> Expect:
    host, port = scene.host_port()
    _nic(scene, host, port).update(board="MT_0000000838", firmware="28.39.3560")
    return at(f"{host} {port}", settings="firmware", says="28.39.3560")


@_seen("seen: one card with another driver", bases=("nv", "eos"))
def _(scene: Scene) -> Expect:
    host, port = scene.host_port()
    for name in scene.fabric.hosts():
        for one in scene.fabric.peers(name):
            word = "6.8.0-45-generic" if (name, one) == (host, port) else "24.10-1.1.4"
            _nic(scene, name, one)["driver"] = word
    return at(f"{host} {port}", settings="driver", severity=WARNING, says="another driver")


@_seen("seen: a card becomes an infiniband port", bases=("nv", "eos"))
def _(scene: Scene) -> Expect:
    host, port = scene.host_port()
    _store(scene, host)
    _nic(scene, host, port)["link"] = "ethernet"
    _nic(scene, host, port, "stored")["link"] = "infiniband"
    return at(f"{host} {port}", settings="link type", says="after its next reset")


@kind("card and class disagree about cnps", "inventory", bases=("nv",))
def _(scene: Scene) -> Expect:
    host = scene.host()
    scene.fabric.node_set(host, "hosts.nv", {"mlx5": {"CNP_DSCP": 4}})
    return at(*scene.cabled(host), settings="NV CNP_DSCP", severity=WARNING)


@kind("firmware of a card that does not exist", "intent", alone=True, bases=("eos",))
def _(scene: Scene) -> Expect:
    scene.fabric.intent["hosts"]["firmware"] = {"mlx6": "28.43.3608"}
    return at(*scene.fabric.hosts(), settings="hosts.firmware.mlx6")


@_seen("seen: another neighbour")
def _(scene: Scene) -> Expect:
    node, port = scene.edge_port()
    others = [name for name in scene.fabric.hosts() if name != scene.fabric.peers(node)[port][0]]
    scene.seen[node]["neighbours"] = [[port, scene.rng.choice(others), "eth0"]]
    return at(f"{node} {port}", settings="LLDP neighbour")


@_seen("seen: another port of the neighbour")
def _(scene: Scene) -> Expect:
    node, port = scene.edge_port()
    peer, far = scene.fabric.peers(node)[port]
    other = next(one for one in scene.fabric.ports(peer) if one != far)
    scene.seen[node]["neighbours"] = [[port, f"{peer}.example.net", other]]
    return at(f"{node} {port}", settings="LLDP neighbour")


@_seen("seen: a setting could not be read")
def _(scene: Scene) -> Expect:
    node, port = scene.switch_port()
    scene.settings(node, port)["mtu"]["ip"] = "@unknown"
    return at(f"{node} {port}", settings="unread settings", severity=NOTE)


@_seen("seen: somebody's session is open")
def _(scene: Scene) -> Expect:
    node = scene.switch()
    scene.seen[node]["notes"] = ["session of admin is pending"]
    return at(node, settings="remark", severity=NOTE)


# ---------------------------------------------------------------- wishes that nobody reads


@kind("host settings on a switch", "inventory", alone=True)
def _(scene: Scene) -> Expect:
    scene.fabric.node_set(scene.switch(), "hosts.nccl", True)
    return at("", settings="hosts.nccl", severity=WARNING)


@kind("weight beside a bandwidth", "intent", alone=True)
def _(scene: Scene) -> Expect:
    classes = scene.fabric.intent["classes"]
    names = [name for name, one in classes.items() if "bandwidth" in one and "weight" not in one]
    if not names:
        raise NoPlace
    name = scene.rng.choice(names)
    classes[name]["weight"] = 80
    return at(*_everywhere(scene), settings=f"weight of class {name}", severity=WARNING)
