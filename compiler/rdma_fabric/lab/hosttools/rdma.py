"""RDMA tools: ibv_devinfo, rdma link, show_gids, ibdev2netdev, cma_roce_tos, cma_roce_mode.

`active_mtu` comes from the live MTU of the netdev in this sandbox: mlx5 and bnxt subtract 96 bytes of
headers (kernel `iboe_get_mtu`), irdma subtracts nothing (`ib_mtu_int_to_enum`).
"""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH110

from __future__ import annotations

import json
import os
import sys

from . import health, nvparams, store, versions
from .driver import RDMA_DRIVERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .nodes import Folder
    from .store import PortFacts

_OVERHEAD = 96
_VENDOR = {"mlx5": ("0x02c9", 4129), "bnxt": ("0x14e4", 5984), "irdma": ("0x8086", 5522)}


def main(name: str, arguments: list[str]) -> int:
    """Run the tool of this name."""
    return {
        "ibv_devinfo": _devinfo,
        "rdma": _rdma,
        "show_gids": _show_gids,
        "ibdev2netdev": _ibdev2netdev,
        "cma_roce_tos": _cma_tos,
        "cma_roce_mode": _cma_mode,
    }[name](arguments)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def loaded(port: PortFacts) -> bool:
    """True when its RDMA driver is there to make the port's RDMA device, and nothing forbids it."""
    if not port["ibdev"] or RDMA_DRIVERS.get(port["nic"]) not in store.read(store.MODULES):
        return False
    state = store.read(store.NIC)[port["netdev"]]
    # devlink of the kernel's drivers: enable_roce, or for the E810 one of its two protocols.
    switches = state["devlink"].values() if port["stack"] == "inbox" or port["nic"] == "mlx5" else ()
    return bool(state["rdma"]) and (any(switches) or not switches)


def here(port: PortFacts) -> bool:
    """True while the port has its RDMA device."""
    return bool(port["ibdev"]) and os.path.exists(f"/sys/class/infiniband/{port['ibdev']}")


def iwarp(port: PortFacts) -> bool:
    """True for an E810 that speaks iWARP, which is no RoCE.

    Intel's own driver has module parameters for it, and roce_ena wins over roce_port_cfg.
    """
    if port["nic"] != "irdma":
        return False
    if port["stack"] == "inbox":
        return bool(store.read(store.NIC)[port["netdev"]]["devlink"]["enable_iwarp"])
    given = store.read(store.MODULES).get("irdma", {})
    own = sorted(p["bdf"] for p in store.facts()["ports"] if p["nic"] == "irdma").index(port["bdf"])
    mask = int(given.get("roce_port_cfg", "0") or "0", 0)
    return given.get("roce_ena", "0") not in {"1", "Y", "y"} and not mask >> own & 1


def _ports() -> list[PortFacts]:
    return [port for port in store.facts()["ports"] if here(port)]


# Gbit/s -> width, speed of a lane in Gbit/s, its name (mlx5: translate_eth_ext_proto_oper).
_LANES = {
    10: (1, 10, "QDR"),
    25: (1, 25, "EDR"),
    40: (4, 10, "QDR"),
    50: (1, 50, "HDR"),
    100: (4, 25, "EDR"),
    200: (4, 50, "HDR"),
    400: (4, 100, "NDR"),
    800: (8, 100, "NDR"),
}
_WIDTHS = {1: 1, 4: 2, 8: 4}
_SPEEDS = {10: ("10.0 Gbps", 8), 25: ("25.0 Gbps", 32), 50: ("50.0 Gbps", 64), 100: ("100.0 Gbps", 128)}


def lanes(port: PortFacts) -> tuple[int, int, str]:
    """Width of the link, Gbit/s of one lane, and its name."""
    gbps = health.here().gbps(port["netdev"], port["gbps"])
    return _LANES.get(gbps, _LANES[max((known for known in _LANES if known <= gbps), default=10)])


def rate(port: PortFacts) -> str:
    """`rate` of a port in sysfs (kernel: rate_show)."""
    width, speed, name = lanes(port)
    return f"{width * speed} Gb/sec ({width}X {name})"


def active_mtu(port: PortFacts) -> tuple[int, int]:
    """The RoCE MTU of a port in bytes, and its number in the InfiniBand enumeration."""
    size, number = _active_mtu(port)
    least = health.here().active_mtus.get(port["netdev"], size)
    return (least, (least >> 7).bit_length() - 1) if least < size else (size, number)


def _active_mtu(port: PortFacts) -> tuple[int, int]:
    room = store.mtu(lag(port) or port["netdev"]) - (0 if port["nic"] == "irdma" else _OVERHEAD)
    for number, size in ((5, 4096), (4, 2048), (3, 1024), (2, 512)):
        if room >= size:
            return size, number
    return 256, 1


def lag(port: PortFacts) -> str:
    """The bond that is a RoCE LAG of the port's mlx5 adapter, whose two ports are the members, or nothing."""
    bond = store.master(port["netdev"])
    own = [other["netdev"] for other in nvparams.ports(port["bdf"])] if port["nic"] == "mlx5" else []
    mode = store.slurp(f"/sys/class/net/{bond}/bonding/mode").partition(" ")[0] if bond else ""
    whole = len(own) == 2 and all(store.master(netdev) == bond for netdev in own)
    return bond if whole and mode in {"active-backup", "balance-xor", "802.3ad"} else ""


def guid(port: PortFacts) -> str:
    """The node GUID after the MAC address (EUI-64), sixteen digits."""
    digits = port["mac"].replace(":", "")
    return f"{int(digits[:2], 16) ^ 2:02x}{digits[2:6]}fffe{digits[6:]}"


def _devinfo(arguments: list[str]) -> int:
    ports = _ports()
    if "-d" in arguments:
        wanted = arguments[arguments.index("-d") + 1]
        ports = [port for port in ports if port["ibdev"] == wanted]
        if not ports:
            sys.stderr.write(f"IB device '{wanted}' wasn't found\n")
            return 1
    if not ports:
        sys.stderr.write("No IB devices found\n")
        return 1
    for port in ports:
        size, number = active_mtu(port)
        vendor, part = _VENDOR[port["nic"]]
        digits = guid(port)
        colons = ":".join(digits[at : at + 4] for at in range(0, 16, 4))
        state = "PORT_ACTIVE (4)" if store.carrier(port["netdev"]) else "PORT_DOWN (1)"
        _say(f"hca_id:\t{port['ibdev']}")
        _say("\ttransport:\t\t\t" + ("iWARP (1)" if iwarp(port) else "InfiniBand (0)"))
        _say(f"\tfw_ver:\t\t\t\t{versions.rdma(port)}")
        _say(f"\tnode_guid:\t\t\t{colons}\n\tsys_image_guid:\t\t\t{colons}")
        _say(f"\tvendor_id:\t\t\t{vendor}\n\tvendor_part_id:\t\t\t{part}\n\thw_ver:\t\t\t\t0x0")
        _say("\tphys_port_cnt:\t\t\t1\n\t\tport:\t1")
        _say(f"\t\t\tstate:\t\t\t{state}\n\t\t\tmax_mtu:\t\t4096 (5)")
        _say(f"\t\t\tactive_mtu:\t\t{size} ({number})")
        _say("\t\t\tsm_lid:\t\t\t0\n\t\t\tport_lid:\t\t0\n\t\t\tport_lmc:\t\t0x00")
        _say("\t\t\tlink_layer:\t\tEthernet")
        if {"-v", "--verbose", "-vv"} & set(arguments):
            _verbose(port)
        _say("")
    return 0


def _verbose(port: PortFacts) -> None:
    """What `-v` adds to a port, in the order of rdma-core's `devinfo.c`."""
    width, speed, _ = lanes(port)
    text, number = _SPEEDS[speed]
    up = store.carrier(port["netdev"])
    _say("\t\t\tmax_msg_sz:\t\t0x40000000\n\t\t\tport_cap_flags:\t\t0x04010000")
    _say("\t\t\tport_cap_flags2:\t0x0000\n\t\t\tmax_vl_num:\t\tinvalid value (0)")
    _say("\t\t\tbad_pkey_cntr:\t\t0x0\n\t\t\tqkey_viol_cntr:\t\t0x0\n\t\t\tsm_sl:\t\t\t0")
    _say("\t\t\tpkey_tbl_len:\t\t1\n\t\t\tgid_tbl_len:\t\t255\n\t\t\tsubnet_timeout:\t\t0")
    _say(f"\t\t\tinit_type_reply:\t0\n\t\t\tactive_width:\t\t{width}X ({_WIDTHS[width]})")
    _say(f"\t\t\tactive_speed:\t\t{text} ({number})")
    _say(f"\t\t\tphys_state:\t\t{'LINK_UP (5)' if up else 'DISABLED (3)'}")


def _rdma(arguments: list[str]) -> int:
    words = [word for word in arguments if not word.startswith("-")]
    if words[:1] not in (["link"], ["dev"]) or (len(words) > 1 and words[1] not in {"show", "list"}):
        sys.stderr.write(f'Unknown argument "{" ".join(words)}".\n')
        return 1
    wanted = words[2].split("/")[0] if len(words) > 2 else ""
    ports = [port for port in _ports() if wanted in {"", port["ibdev"]}]
    if wanted and not ports:
        sys.stderr.write("Wrong device name\n")
        return 1
    rows = []
    for index, port in enumerate(ports):
        up = store.carrier(port["netdev"])
        rows.append(
            {
                "ifindex": index,
                "ifname": port["ibdev"],
                "port": 1,
                "state": "ACTIVE" if up else "DOWN",
                "physical_state": "LINK_UP" if up else "DISABLED",
                "netdev": port["netdev"],
                "netdev_index": int(store.slurp(f"/sys/class/net/{port['netdev']}/ifindex") or 0),
            }
        )
    flags = "".join(word for word in arguments if word.startswith("-"))
    if "j" in flags:
        _say(json.dumps(rows, separators=(",", ":")))
    else:
        for row in rows:
            state = f"state {row['state']} physical_state {row['physical_state']}"
            _say(f"link {row['ifname']}/1 {state} netdev {row['netdev']} ")
    return 0


def addresses(netdev: str) -> list[str]:
    """The IPv4 addresses that the netdev has now."""
    import subprocess

    shown = subprocess.run(["ip", "-j", "-4", "addr", "show", "dev", netdev], capture_output=True, text=True)
    if shown.returncode:
        return []
    return [info["local"] for link in json.loads(shown.stdout) for info in link.get("addr_info", ())]


def gids(port: PortFacts) -> list[tuple[int, str, str, str]]:
    """Index, GID, IPv4 address or nothing, and RoCE version of each entry: link-local, then IPv4."""
    digits = guid(port)
    link_local = "fe80:0000:0000:0000:" + ":".join(digits[at : at + 4] for at in range(0, 16, 4))
    rows = [(0, link_local, "", "v1"), (1, link_local, "", "v2")]
    for address in addresses(port["netdev"]):
        octets = "".join(f"{int(part):02x}" for part in address.split("."))
        gid = f"0000:0000:0000:0000:0000:ffff:{octets[:4]}:{octets[4:]}"
        rows += [(len(rows), gid, address, "v1"), (len(rows) + 1, gid, address, "v2")]
    # RoCE v1 is a matter of mlx5 only: bnxt_re and irdma have v2 entries alone.
    return rows if port["nic"] == "mlx5" else [(i, *row[1:]) for i, row in enumerate(rows[1::2])]


def _show_gids(arguments: list[str]) -> int:
    _say("DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV")
    _say("---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---")
    count = 0
    for port in _ports():
        if (arguments and port["ibdev"] != arguments[0]) or iwarp(port):
            continue
        for index, gid, address, version in gids(port):
            shown = f"{address}  \t" if address else "\t\t"
            _say(f"{port['ibdev']}\t1\t{index}\t{gid}\t{shown}{version}\t{port['netdev']}")
            count += 1
    _say(f"n_gids_found={count}")
    return 0


def _ibdev2netdev(arguments: list[str]) -> int:
    for port in _ports():
        up = "Up" if store.carrier(port["netdev"]) else "Down"
        _say(f"{port['ibdev']} port 1 ==> {port['netdev']} ({up})")
    return 0


def _cma_tos(arguments: list[str]) -> int:
    return _cma(arguments, "t", "default_roce_tos", lambda text: text if int(text) >= 0 else "")


def _cma_mode(arguments: list[str]) -> int:
    names = {"1": "IB/RoCE v1", "2": "RoCE v2"}
    return _cma(arguments, "m", "default_roce_mode", lambda text: names.get(text, ""))


def _cma(arguments: list[str], letter: str, attribute: str, value: Callable[[str], str]) -> int:
    """The wrapper of configfs rdma_cm: make the folder, write, print, take the folder away."""
    import getopt

    from .attributes import tree
    from .nodes import Folder

    if os.geteuid():
        _say("You must be root to run this")
        return 1
    try:
        parsed = dict(getopt.getopt(arguments, f"hd:p:{letter}:")[0])
    except getopt.GetoptError as error:
        sys.stderr.write(f"{error}\n")
        parsed = {}
    device, number = parsed.get("-d", "mlx5_0"), parsed.get("-p", "1")
    config = tree().children()["config"]
    group = config.children().get("rdma_cm") if isinstance(config, Folder) else None
    if not isinstance(group, Folder):
        _say("Module rdma_cm is not loaded or does not support configfs")
        return 1
    made = device not in group.children()
    if made:
        try:
            group.make(device)
        except OSError as error:
            sys.stderr.write(f"mkdir: cannot create directory '{device}': {error.strerror}\n")
            _say(f"Failed to create configuration for {device}")
            return 1
    try:
        return _port_attribute(group, device, number, attribute, value(parsed.get(f"-{letter}", "-1")))
    finally:
        if made:
            group.drop(device)


def _port_attribute(group: Folder, device: str, number: str, attribute: str, text: str) -> int:
    """Write the text if there is one, then print; the real script goes on after a refused write."""
    from .nodes import File, walk

    try:
        file = walk(group, f"{device}/ports/{number}/{attribute}")
    except FileNotFoundError:
        _say(f"Device {device} port {number} does not exist")
        return 1
    assert isinstance(file, File) and file.write is not None
    if text:
        try:
            file.write(f"{text}\n")
        except OSError as error:
            sys.stderr.write(f"echo: write error: {error.strerror}\n")
    sys.stdout.write(file.read())
    return 0
