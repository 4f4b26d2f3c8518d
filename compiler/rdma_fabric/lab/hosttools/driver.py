"""What the NIC drivers do with the settings that reach them, and what they refuse.

Sources: Linux 6.1 `mlx5/core/en_dcbnl.c`, `en/port_buffer.c`, `bnxt/bnxt_dcb.c`, `ice/ice_dcb_nl.c` as
described in the vendor facts. A refusal is an OSError with the kernel's errno.
"""

from __future__ import annotations

import errno
import os

from . import nvparams, store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .store import Port, PortFacts

HOST, LLD_MANAGED, CEE, IEEE, STATIC = 1, 2, 4, 8, 16
"""Flags of the DCBX mode (include/uapi/linux/dcbnl.h)."""
ETHERTYPE, STREAM, DGRAM, ANY, DSCP = 1, 2, 3, 4, 5
"""Selectors of APP entries (include/uapi/linux/dcbnl.h)."""
ENOTSUPP = 524  # kernel-internal, leaks through netlink as it is
ROCE_UDP_PORT = 4791
_TOTAL_BUFFER = 262016
_CELL = 128
# The kernel's ice starts its RDMA function as RoCEv2 (Linux 6.1 ice_idc.c, ice_init_rdma).
_PROTOCOLS = {"enable_roce": True, "enable_iwarp": False}
_ICE_FLAGS = ("link-down-on-close", "vf-true-promisc-support", "mdd-auto-reset-vf", "vf-vlan-pruning")


def refuse(code: int, reason: str = "") -> OSError:
    """The refusal to raise; the reason goes to the kernel log, where drivers put it."""
    if reason:
        store.log(reason)
    return OSError(code, os.strerror(code))


def defaults(port: PortFacts) -> Port:
    """A port as its driver leaves it after the first load with factory firmware settings."""
    mlx5, irdma = port["nic"] == "mlx5", port["nic"] == "irdma"
    return {
        "trust": "pcp",
        "dscp": [point >> 3 for point in range(64)],
        "apps": [],
        "prio_tc": [1, 0, 2, 3, 4, 5, 6, 7] if mlx5 else [0] * 8,
        "tsa": ["vendor"] * 8 if mlx5 else ["ets"] + ["strict"] * 7 if irdma else ["strict"] * 8,
        "bw": [100] * 8 if mlx5 else [100 if irdma else 0] + [0] * 7,
        "ets_set": mlx5 or irdma,
        "pfc": [False] * 8,
        "cable": 7 if mlx5 else 0,
        "prio2buffer": [0] * 8,
        "buffer_size": [_TOTAL_BUFFER] + [0] * 7,
        "manual_buffer": False,
        # The E810 starts with its firmware LLDP agent on, which then owns DCB; bnxt's is a matter of NVM.
        "dcbx": LLD_MANAGED | IEEE if irdma or store.trait(port, "fw-lldp") else HOST | IEEE,
        "rate_kbps": [0] * 8,
        "pause": [True, True],
        "rings": [1024, 1024] if mlx5 else [2048, 2048] if irdma else [511, 511],
        "pfc_timeout_ms": 0,
        "priv_flags": {"fw-lldp-agent": True, **dict.fromkeys(_ICE_FLAGS, False)} if irdma else {},
        "devlink": {"enable_roce": True} if mlx5 else dict(_PROTOCOLS) if irdma else {},
        "rdma": True,
        "tos": 0,
        "mode": "RoCE v2",
        "tclass": -1,
        "np": [True] * 8,
        "rp": [True] * 8,
        "cc": {},
        "staged": {},
        "touched": [],
        "d2p": [],
        "configured": [],
        "bounces": 0,
        "counters": {},
    }


def in_force(port: PortFacts) -> Port:
    """A port after a cold start with what its flash holds."""
    state = defaults(port)
    if port["nic"] == "mlx5":
        values = nvparams.of_port(port)
        state["np"] = [bool(values["ROCE_CC_PRIO_MASK"] >> priority & 1) for priority in range(8)]
        state["rp"] = list(state["np"])
        state["cc"] = {"cnp_dscp": values["CNP_DSCP"], "cnp_802p_prio": values["CNP_802P_PRIO"]}
        if values["LLDP_NB_DCBX"]:
            state["dcbx"] &= ~HOST
    if port["nic"] == "bnxt" and port["parent"]:
        state["dcbx"] &= ~HOST
    if port["nic"] == "bnxt":
        state["rdma"] = store.read(store.FLASH).get(f"nvm {port['bdf']}", {}).get("support_rdma", "1") == "1"
    if port["nic"] == "irdma" and (flags := store.read(store.FLASH).get(port["netdev"])):
        state["priv_flags"] = flags
        if not flags.get("fw-lldp-agent", False):
            state["dcbx"] = HOST | IEEE
    return state


def reload(facts: PortFacts, port: Port) -> None:
    """The driver is loaded anew: what lives in it is lost, what lives in firmware registers stays.

    mlx5 keeps trust, the DSCP map and PFC (the driver reads them back and lists 64 APP entries when
    trust is DSCP); ETS, cable length, manual buffers, ECN, ToS and rings start over.
    """
    fresh = in_force(facts)
    if facts["nic"] == "mlx5":
        for key in ("trust", "dscp", "pfc", "pause", "pfc_timeout_ms"):
            fresh[key] = port[key]
        if fresh["trust"] == "dscp" and facts["stack"] == "inbox":
            fresh["apps"] = [[DSCP, priority, point] for point, priority in enumerate(fresh["dscp"])]
    fresh["rdma"] = port["rdma"]  # as read from flash when the machine started
    if facts["nic"] == "mlx5" and "enable_roce" in port["staged"]:
        # A driverinit parameter of devlink: it waits for a reload, and stays with the device.
        fresh["devlink"]["enable_roce"] = bool(port["staged"]["enable_roce"])
        fresh["staged"]["enable_roce"] = port["staged"]["enable_roce"]
    fresh["bounces"], fresh["counters"] = port["bounces"] + 1, port["counters"]
    port.update(fresh)


def bounce(facts: PortFacts, port: Port) -> None:
    """Take the link down and up: the far end of the virtual cable goes, as the driver's toggle does."""
    import subprocess

    port["bounces"] += 1
    toggle = "; ".join(f"ip link set {facts['wire']} {state}" for state in ("down", "up"))
    subprocess.run(["nsenter", f"--net={store.WIRE}", "sh", "-c", toggle], check=False)


class Nic:
    """A port without DCB: every request is answered with EOPNOTSUPP, as veth and soft-RoCE do."""

    tcs = 8
    pfc_cap = 8

    def __init__(self, facts: PortFacts, port: Port) -> None:
        self.facts, self.port = facts, port

    supported = False
    """True when the driver registers DCB operations at all."""
    has_buffers = False
    has_rates = False

    def set_ets(self, prio_tc: list[int], tsa: list[str], bw: list[int]) -> None:
        """Set the whole table; lists of eight, index = priority, TC, TC."""
        raise refuse(errno.EOPNOTSUPP)

    def set_pfc(self, enabled: list[bool], delay: int) -> None:
        """Set PFC per priority and the cable length in metres."""
        raise refuse(errno.EOPNOTSUPP)

    def add_app(self, selector: int, priority: int, protocol: int) -> None:
        """Add one APP entry."""
        raise refuse(errno.EOPNOTSUPP)

    def del_app(self, selector: int, priority: int, protocol: int) -> None:
        """Delete one APP entry."""
        raise refuse(errno.EOPNOTSUPP)

    def set_buffer(self, prio2buffer: list[int], sizes: list[int]) -> None:
        """Set the receive buffers by hand; sizes in bytes."""
        raise refuse(errno.EOPNOTSUPP)

    def set_rate(self, kbps: list[int]) -> None:
        """Limit the rate of each TC; 0 = unlimited."""
        raise refuse(errno.EOPNOTSUPP)

    def set_dcbx(self, mode: int) -> int:
        """Set the DCBX mode; returns what the driver returns (0 = taken)."""
        raise refuse(errno.EOPNOTSUPP)

    def _table_add(self, entry: list[int]) -> None:
        """The kernel's own table refuses an entry that it holds already."""
        if entry in self.port["apps"]:
            raise refuse(errno.EEXIST)
        self.port["apps"].append(entry)

    def _table_del(self, entry: list[int]) -> None:
        if entry not in self.port["apps"]:
            raise refuse(errno.ENOENT)
        self.port["apps"].remove(entry)


class Mlx5(Nic):
    """ConnectX with mlx5_core."""

    supported = True
    has_buffers = True
    has_rates = True

    def set_ets(self, prio_tc: list[int], tsa: list[str], bw: list[int]) -> None:
        """The sum over ETS classes must be 100; others are reported with 100."""
        if any(not 0 <= tc < 8 for tc in prio_tc):
            raise refuse(
                errno.EINVAL, self._log("Failed to validate ETS: priority value greater than max(8)")
            )
        ets = [tc for tc in range(8) if tsa[tc] == "ets"]
        if ets and sum(bw[tc] for tc in ets) != 100:
            raise refuse(errno.EINVAL, self._log("Failed to validate ETS: BW sum is illegal"))
        if "cbs" in tsa:
            raise refuse(errno.EOPNOTSUPP)
        self.port["prio_tc"], self.port["tsa"] = list(prio_tc), list(tsa)
        self.port["bw"] = [bw[tc] if tc in ets else 100 for tc in range(8)]

    def set_pfc(self, enabled: list[bool], delay: int) -> None:
        """A changed bitmap bounces the link; lengths outside 1..999 m are ignored."""
        if enabled != self.port["pfc"]:
            self.port["pfc"] = list(enabled)
            bounce(self.facts, self.port)
        if 0 < delay < 1000:
            self.port["cable"] = delay

    def add_app(self, selector: int, priority: int, protocol: int) -> None:
        """DSCP entries only. The first flips trust; a mapped DSCP moves."""
        if selector != DSCP or protocol > 63:
            raise refuse(errno.EINVAL)
        self.port["trust"] = "dscp"
        old = [DSCP, self.port["dscp"][protocol], protocol]
        if old in self.port["apps"]:
            self.port["apps"].remove(old)
        self.port["dscp"][protocol] = priority
        self._table_add([DSCP, priority, protocol])

    def del_app(self, selector: int, priority: int, protocol: int) -> None:
        """The code point becomes priority 0; without entries the port trusts PCP again."""
        if selector != DSCP or protocol > 63:
            raise refuse(errno.EINVAL)
        if not self.port["apps"] or self.port["dscp"][protocol] != priority:
            raise refuse(errno.ENOENT)
        self._table_del([DSCP, priority, protocol])
        self.port["dscp"][protocol] = 0
        if not self.port["apps"]:
            self.port["trust"] = "pcp"

    def set_buffer(self, prio2buffer: list[int], sizes: list[int]) -> None:
        """A lossless buffer must hold xoff, one frame and a cell; all must fit the total."""
        if any(not 0 <= buffer < 8 for buffer in prio2buffer) or sum(sizes) > _TOTAL_BUFFER:
            raise refuse(errno.EINVAL)
        lossless = {buffer for buffer, on in zip(prio2buffer, self.port["pfc"], strict=True) if on}
        need = self._xoff() + store.mtu(self.facts["netdev"]) + _CELL
        for buffer in sorted(lossless):
            if not sizes[buffer]:
                raise refuse(errno.EINVAL, self._log(f"buffer_size[{buffer}]=0 is a lossless buffer"))
            if sizes[buffer] < need:
                raise refuse(
                    errno.ENOMEM, f"buffer_size[{buffer}]={sizes[buffer]} is not enough for lossless"
                )
        self.port["prio2buffer"], self.port["buffer_size"] = list(prio2buffer), list(sizes)
        self.port["manual_buffer"] = True

    def _xoff(self) -> int:
        """(301 + 216*cable/100) * speed/1000 + 272*mtu/100, speed in Mb/s, at least 40000."""
        speed = max(self.facts["gbps"] * 1000, 40000)
        mtu = store.mtu(self.facts["netdev"])
        return (301 + 216 * self.port["cable"] // 100) * speed // 1000 + 272 * mtu // 100

    def set_rate(self, kbps: list[int]) -> None:
        """Kept as given; the hardware's steps are finer than what the tools print."""
        self.port["rate_kbps"] = list(kbps)

    def set_dcbx(self, mode: int) -> int:
        """0 gives DCBX to the firmware; host mode takes it back; anything else is refused."""
        if mode & LLD_MANAGED:
            return 1
        if not mode:
            self.port["dcbx"] &= ~HOST
            return 0
        if not mode & HOST:
            return 1
        self.port["dcbx"] = mode
        return 0

    def _log(self, text: str) -> str:
        return f"mlx5_core {self.facts['bdf']} {self.facts['netdev']}: {text}"


class Bnxt(Nic):
    """NetXtreme-E with bnxt_en; three traffic classes, or eight with the firmware profile mp17."""

    supported = True
    pfc_cap = 2

    def __init__(self, facts: PortFacts, port: Port) -> None:
        super().__init__(facts, port)
        self.tcs = 8 if store.trait(facts, "mp17") else 3

    def set_ets(self, prio_tc: list[int], tsa: list[str], bw: list[int]) -> None:
        """ETS above 100 or a starved class is refused, as are classes that do not exist."""
        self._owner()
        for tc in prio_tc:
            if tc > self.tcs:  # the driver lets one too many pass
                text = f"priority to TC mapping exceeds TC count {tc}"
                raise refuse(errno.EINVAL, self._log(text))
        if any((bw[tc] or tsa[tc] != "strict") and tc > self.tcs for tc in range(8)):
            raise refuse(errno.EINVAL)
        if set(tsa) - {"strict", "ets"}:
            raise refuse(ENOTSUPP)
        shares = [bw[tc] for tc in range(8) if tsa[tc] == "ets"]
        if sum(shares) > 100:
            text = "rejecting ETS config exceeding available bandwidth"
            raise refuse(errno.EINVAL, self._log(text))
        if sum(shares) == 100 and 0 in shares:
            raise refuse(errno.EINVAL, self._log("rejecting ETS config starving a TC"))
        self.port["prio_tc"], self.port["tsa"], self.port["bw"] = list(prio_tc), list(tsa), list(bw)
        self.port["ets_set"] = True

    def set_pfc(self, enabled: list[bool], delay: int) -> None:
        """Needs ETS first, and no more lossless classes than the firmware has."""
        self._owner()
        lossless = {self.port["prio_tc"][priority] for priority in range(8) if enabled[priority]}
        if not self.port["ets_set"] or len(lossless) > self.pfc_cap:
            raise refuse(errno.EINVAL)
        self.port["pfc"], self.port["cable"] = list(enabled), delay

    def add_app(self, selector: int, priority: int, protocol: int) -> None:
        """All selectors are kept; a DSCP goes into the hardware's table as well."""
        self._owner()
        if selector == DSCP and protocol > 63:
            raise refuse(errno.EINVAL)
        self._table_add([selector, priority, protocol])
        if selector == DSCP:
            others = [entry for entry in self.port["d2p"] if entry[0] != protocol]
            self.port["d2p"] = [*others, [protocol, priority]]

    def del_app(self, selector: int, priority: int, protocol: int) -> None:
        """An entry that is not there is refused."""
        self._owner()
        self._table_del([selector, priority, protocol])
        if selector == DSCP:
            self.port["d2p"] = [entry for entry in self.port["d2p"] if entry[0] != protocol]

    def set_dcbx(self, mode: int) -> int:
        """Nothing while the firmware owns it; host mode means IEEE without CEE."""
        if self.port["dcbx"] & LLD_MANAGED:
            return 1
        if mode & HOST and (mode & CEE or not mode & IEEE):
            return 1
        self.port["dcbx"] = mode
        return 0

    def _owner(self) -> None:
        if self.port["dcbx"] & (HOST | IEEE) != HOST | IEEE:
            raise refuse(errno.EINVAL)

    def _log(self, text: str) -> str:
        return f"bnxt_en {self.facts['bdf']} {self.facts['netdev']}: {text}"


class Irdma(Nic):
    """E810 with ice: VLAN mode until the first DSCP entry; each real change resets the netdev."""

    supported = True

    def __init__(self, facts: PortFacts, port: Port) -> None:
        super().__init__(facts, port)
        self.tcs = self.pfc_cap = 4 if store.trait(facts, "4tc") else 8

    def set_ets(self, prio_tc: list[int], tsa: list[str], bw: list[int]) -> None:
        """All-zero shares give TC0 everything; in DSCP mode the priority map stays 1:1."""
        self._owner()
        if any(not 0 <= tc < self.tcs for tc in prio_tc):
            raise refuse(errno.EINVAL)
        shares = [bw[tc] for tc in range(8) if tsa[tc] == "ets"]
        if not sum(shares):
            bw = [100, *bw[1:]]
        elif sum(shares) != 100:
            raise refuse(errno.EINVAL, self._log("Invalid config, total BW must equal 100"))
        fixed = self.port["prio_tc"] if self.port["trust"] == "dscp" else list(prio_tc)
        wanted = (fixed, list(tsa), list(bw))
        if wanted != (self.port["prio_tc"], self.port["tsa"], self.port["bw"]):
            self.port["prio_tc"], self.port["tsa"], self.port["bw"] = wanted
            bounce(self.facts, self.port)

    def set_pfc(self, enabled: list[bool], delay: int) -> None:
        """Any change resets the netdev; the length of the cable is not taken."""
        self._owner()
        if list(enabled) != self.port["pfc"]:
            self.port["pfc"] = list(enabled)
            bounce(self.facts, self.port)

    def add_app(self, selector: int, priority: int, protocol: int) -> None:
        """DSCP only; a mapped DSCP must be deleted first; the first entry switches the mode."""
        if selector != DSCP:
            raise refuse(errno.EINVAL)
        if self.port["dcbx"] & LLD_MANAGED:
            raise refuse(errno.EINVAL, self._log("can't do DSCP QoS when FW DCB agent active"))
        self._owner()
        if protocol > 63:
            raise refuse(errno.EINVAL, self._log(f"DSCP value 0x{protocol:04X} out of range"))
        if priority >= self.tcs:
            raise refuse(errno.EINVAL, self._log(f"TC {priority} out of range, max TC {self.tcs}"))
        if [DSCP, priority, protocol] in self.port["apps"]:
            raise refuse(errno.EEXIST)
        if any(entry[0] == DSCP and entry[2] == protocol for entry in self.port["apps"]):
            raise refuse(errno.EINVAL, self._log(f"DSCP value 0x{protocol:04X} already user mapped"))
        if self.port["trust"] != "dscp":
            self._to_dscp_mode()
        self.port["dscp"][protocol] = priority
        self._table_add([DSCP, priority, protocol])
        bounce(self.facts, self.port)

    def _to_dscp_mode(self) -> None:
        """Defaults of the mode: priorities are classes, all share by ETS, the first has everything."""
        store.log(self._log("Switched QoS to L3 DSCP mode"))
        self.port["trust"], self.port["dscp"] = "dscp", [0] * 64
        for tc in range(self.tcs):  # with fewer than eight classes these blocks overlap
            for point in range(tc * self.tcs, tc * self.tcs + 8):
                self.port["dscp"][point] = tc
                if self.tcs < 8:
                    self.port["dscp"][point + self.tcs * 8] = tc
        self.port["prio_tc"] = list(range(8))
        self.port["tsa"], self.port["bw"] = ["ets"] * 8, [100, *[0] * 7]

    def del_app(self, selector: int, priority: int, protocol: int) -> None:
        """A code point is then on priority DSCP modulo 8; after the last the port is in VLAN mode."""
        if self.port["dcbx"] & LLD_MANAGED:
            text = "can't delete DSCP netlink app when FW DCB agent is active"
            raise refuse(errno.EINVAL, self._log(text))
        self._table_del([selector, priority, protocol])
        self.port["dscp"][protocol] = protocol % 8
        if not self.port["apps"]:
            store.log(self._log("Switched QoS to L2 VLAN mode"))
            fresh = defaults(self.facts)
            for key in ("trust", "dscp", "prio_tc", "tsa", "bw", "pfc", "cable"):
                self.port[key] = fresh[key]
        bounce(self.facts, self.port)

    def set_dcbx(self, mode: int) -> int:
        """Software modes only, while the firmware agent is off; the mode that is set is refused too."""
        if self.port["dcbx"] & LLD_MANAGED or mode & LLD_MANAGED or not mode & HOST:
            return 1
        if mode & CEE and (mode & IEEE or self.port["trust"] == "dscp"):
            return 1
        if mode == self.port["dcbx"]:
            return 1
        self.port["dcbx"] = mode
        return 0

    def _owner(self) -> None:
        if self.port["dcbx"] & LLD_MANAGED or not self.port["dcbx"] & IEEE:
            raise refuse(errno.EINVAL)

    def _log(self, text: str) -> str:
        return f"ice {self.facts['bdf']} {self.facts['netdev']}: {text}"


KINDS: dict[str, type[Nic]] = {"mlx5": Mlx5, "bnxt": Bnxt, "irdma": Irdma}
"""NIC kind -> driver; other kinds have no DCB."""
DRIVERS = {"mlx5": "mlx5_core", "bnxt": "bnxt_en", "irdma": "ice"}
"""NIC kind -> name of the netdev's kernel driver; other kinds are virtual."""
RDMA_DRIVERS = {"mlx5": "mlx5_ib", "bnxt": "bnxt_re", "irdma": "irdma"}
"""NIC kind -> name of the RDMA driver."""


def nic(facts: PortFacts, port: Port) -> Nic:
    """The driver of a port.

    Without DCB: a port that a BlueField's own processor has, and virtual functions (mlx5 registers DCB for
    the manager of the vports alone, iavf never). Those of bnxt have it and may set nothing.
    """
    if nvparams.embedded(facts) or (facts["parent"] and facts["nic"] != "bnxt"):
        return Nic(facts, port)
    return KINDS.get(facts["nic"], Nic)(facts, port)
