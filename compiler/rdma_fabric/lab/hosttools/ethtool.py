"""`ethtool`: speed and link, -i, -a, -A, -g, -G, -S, pfc-prevention-tout, private flags."""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH110

from __future__ import annotations

import os
import sys

from . import counting, health, store, versions
from .driver import DRIVERS, HOST, IEEE, LLD_MANAGED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .store import Port, PortFacts

_LONG = {
    "--driver": "-i",
    "--show-pause": "-a",
    "--pause": "-A",
    "--show-ring": "-g",
    "--set-ring": "-G",
    "--statistics": "-S",
    "--module-info": "-m",
    "--dump-module-eeprom": "-m",
    "--include-statistics": "-I",
}
_UNSUPPORTED = "netlink error: Operation not supported"
_RING_MOST = 8192
_PER_PRIORITY = ("packets", "bytes", "pause", "pause_duration")


def main(name: str, arguments: list[str]) -> int:
    """Run one command; the status of a refused setting is 76 (-A), 81 (-G) or 1."""
    words = list(arguments)
    if words[:1] in (["--version"], ["-V"]):
        sys.stdout.write("ethtool version 6.1\n")
        return 0
    if words[:1] in (["-I"], ["--include-statistics"]):
        words.pop(0)
        if words[:1] != ["--show-fec"]:
            return _fail("ethtool: bad command line argument(s)\nFor more information run ethtool -h", 1)
        words.append("statistics")
    flag = _LONG.get(words[0], words[0]) if words and words[0].startswith("-") else ""
    if flag:
        words.pop(0)
    if not words:
        sys.stderr.write("ethtool: bad command line argument(s)\nFor more information run ethtool -h\n")
        return 1
    netdev = words.pop(0)
    if not os.path.exists(f"/sys/class/net/{netdev}"):
        return _fail("netlink error: No such device", 1)
    facts = store.port_facts(netdev)
    if facts is None or facts["nic"] not in DRIVERS:
        return _virtual(flag, netdev)
    if flag not in _COMMANDS:
        return _fail("ethtool: bad command line argument(s)\nFor more information run ethtool -h", 1)
    with store.port_state(netdev) as state:
        return _COMMANDS[flag](facts, state, words)


def _fail(text: str, status: int) -> int:
    sys.stdout.flush()
    sys.stderr.write(f"{text}\n")
    return status


def _virtual(flag: str, netdev: str) -> int:
    """What veth answers: 76 to -A and 1 to the others (seen on 6.18)."""
    if flag == "-i":
        sys.stdout.write(
            "driver: veth\nversion: 1.0\nfirmware-version: \nexpansion-rom-version: \nbus-info: \n"
        )
        return 0
    if flag == "":
        link = "yes" if store.carrier(netdev) else "no"
        sys.stdout.write(
            f"Settings for {netdev}:\n\tSpeed: 10000Mb/s\n\tDuplex: Full\n\tLink detected: {link}\n"
        )
        return 0
    if flag == "-S":
        return _fail("no stats available", 94)
    return _fail(_UNSUPPORTED, 76 if flag == "-A" else 1)


def _settings(facts: PortFacts, port: Port, words: list[str]) -> int:
    link = store.carrier(facts["netdev"])
    speed = f"{health.here().gbps(facts['netdev'], facts['gbps']) * 1000}Mb/s" if link else "Unknown!"
    sys.stdout.write(
        f"Settings for {facts['netdev']}:\n"
        f"\tSupported ports: [ Backplane ]\n"
        f"\tSupported pause frame use: Symmetric\n"
        f"\tSupports auto-negotiation: Yes\n"
        f"\tSpeed: {speed}\n"
        f"\tDuplex: {'Full' if link else 'Unknown! (255)'}\n"
        f"\tAuto-negotiation: on\n"
        f"\tPort: Direct Attach Copper\n"
        f"\tPHYAD: 0\n"
        f"\tTransceiver: internal\n"
        f"\tLink detected: {'yes' if link else 'no'}\n"
    )
    return 0


def _driver(facts: PortFacts, port: Port, words: list[str]) -> int:
    sys.stdout.write(
        f"driver: {DRIVERS[facts['nic']]}\nversion: {versions.driver(facts)}\n"
        f"firmware-version: {versions.shown(facts)}\nexpansion-rom-version: \nbus-info: {facts['bdf']}\n"
        "supports-statistics: yes\nsupports-test: yes\nsupports-eeprom-access: no\n"
        f"supports-register-dump: no\nsupports-priv-flags: {'yes' if port['priv_flags'] else 'no'}\n"
    )
    return 0


def _pause(facts: PortFacts, port: Port, words: list[str]) -> int:
    rx, tx = ("on" if on else "off" for on in port["pause"])
    sys.stdout.write(
        f"Pause parameters for {facts['netdev']}:\nAutonegotiate:\toff\nRX:\t\t{rx}\nTX:\t\t{tx}\n\n"
    )
    return 0


def _set_pause(facts: PortFacts, port: Port, words: list[str]) -> int:
    """`autoneg on` is refused with EINVAL by mlx5 (en_ethtool.c)."""
    wanted = dict(zip(words[::2], words[1::2], strict=False))
    if (
        len(words) % 2
        or not set(wanted) <= {"rx", "tx", "autoneg"}
        or not set(wanted.values()) <= {"on", "off"}
    ):
        return _fail("ethtool: bad command line argument(s)\nFor more information run ethtool -h", 1)
    if facts["parent"]:  # a virtual function does not manage the port
        return _fail(_UNSUPPORTED, 76)
    if wanted.get("autoneg") == "on":
        return _fail("netlink error: Invalid argument", 76)
    if facts["nic"] == "irdma" and any(port["pfc"]):
        store.log(f"ice {facts['bdf']}: Priority flow control enabled. Cannot set link flow control.")
        return _fail(_UNSUPPORTED, 76)
    for index, name in enumerate(("rx", "tx")):
        if name in wanted:
            port["pause"][index] = wanted[name] == "on"
    return 0


def _rings(facts: PortFacts, port: Port, words: list[str]) -> int:
    rx, tx = port["rings"]
    blank = "RX Mini:\t\tn/a\nRX Jumbo:\t\tn/a\n"
    sys.stdout.write(
        f"Ring parameters for {facts['netdev']}:\nPre-set maximums:\n"
        f"RX:\t\t\t{_RING_MOST}\n{blank}TX:\t\t\t{_RING_MOST}\n"
        f"Current hardware settings:\nRX:\t\t\t{rx}\n{blank}TX:\t\t\t{tx}\n"
    )
    return 0


def _set_rings(facts: PortFacts, port: Port, words: list[str]) -> int:
    wanted = dict(zip(words[::2], words[1::2], strict=False))
    if (
        len(words) % 2
        or not set(wanted) <= {"rx", "tx"}
        or not all(size.isdigit() for size in wanted.values())
    ):
        return _fail("ethtool: bad command line argument(s)\nFor more information run ethtool -h", 1)
    if any(int(size) > _RING_MOST for size in wanted.values()):
        return _fail(
            "netlink error: requested ring size exceeds maximum\nnetlink error: Invalid argument", 81
        )
    for index, name in enumerate(("rx", "tx")):
        if name in wanted:
            size = int(wanted[name])
            # mlx5 rounds up to a power of two (en_ethtool.c).
            port["rings"][index] = 1 << (size - 1).bit_length() if facts["nic"] == "mlx5" and size else size
    return 0


def _names(nic: str) -> list[str]:
    """Counters that each driver has, those about pause and loss among them."""
    stems: tuple[str, ...]
    if nic == "bnxt":
        names = ["rx_total_frames", "tx_total_frames", "rx_total_discard_pkts", "tx_total_discard_pkts"]
        names += ["rx_fcs_err_frames", "rx_pcs_symbol_err", "rx_fec_uncorrectable_blocks", "link_down_events"]
        stems = ("rx_pfc_ena_frames_pri{}", "tx_pfc_ena_frames_pri{}", "rx_bytes_pri{}", "tx_bytes_pri{}")
    elif nic == "irdma":
        names = ["rx_packets", "tx_packets", "rx_dropped.nic", "tx_dropped_link_down.nic"]
        names += ["rx_crc_errors.nic", "illegal_bytes.nic", "link_xoff_rx.nic"]
        stems = tuple(f"{way}_priority_{{}}_{what}.nic" for way in ("tx", "rx") for what in ("xon", "xoff"))
    else:
        names = ["rx_packets", "tx_packets", "rx_ecn_mark", "rx_discards_phy", "tx_discards_phy"]
        names += ["rx_out_of_buffer", "rx_crc_errors_phy", "rx_symbol_err_phy"]
        names += ["link_down_events_phy", "tx_pause_storm_warning_events", "tx_pause_storm_error_events"]
        both = [f"{way}_prio{{}}_{what}" for way in ("rx", "tx") for what in _PER_PRIORITY]
        stems = (*both, "rx_prio{}_discards", "rx_prio{}_buf_discard")
    return names + [stem.format(priority) for priority in range(8) for stem in stems]


def _statistics(facts: PortFacts, port: Port, words: list[str]) -> int:
    downs = dict.fromkeys(("link_down_events_phy", "link_down_events"), port["bounces"])
    counters = {**downs, **port["counters"], **counting.ethtool(facts)}
    rows = "".join(f"     {name}: {counters.get(name, 0)}\n" for name in _names(facts["nic"]))
    sys.stdout.write(f"NIC statistics:\n{rows}")
    return 0


def _fec(facts: PortFacts, port: Port, words: list[str]) -> int:
    """`--show-fec`, with `-I` what FEC has done (ethtool's netlink/fec.c)."""
    if facts["parent"]:
        return _fail(_UNSUPPORTED, 1)
    sys.stdout.write(
        f"FEC parameters for {facts['netdev']}:\nSupported/Configured FEC encodings: Auto Off RS\n"
        "Active FEC encoding: RS\n"
    )
    if words == ["statistics"]:
        bad = counting.fec(facts)
        sys.stdout.write(f"Statistics:\n  corrected_blocks: 0\n  uncorrectable_blocks: {bad}\n")
    return 0


def _module(facts: PortFacts, port: Port, words: list[str]) -> int:
    return _fail(_UNSUPPORTED, 1)


def _show_tunable(facts: PortFacts, port: Port, words: list[str]) -> int:
    if words != ["pfc-prevention-tout"] or facts["nic"] != "mlx5":
        return _fail(f"{words[0] if words else ''}: Operation not supported", 1)
    sys.stdout.write(f"pfc-prevention-tout: {port['pfc_timeout_ms']}\n")
    return 0


def _set_tunable(facts: PortFacts, port: Port, words: list[str]) -> int:
    """80..8000 ms, `auto` = 100 ms, `off` = 0 (en_ethtool.c)."""
    if len(words) != 2 or words[0] != "pfc-prevention-tout" or facts["nic"] != "mlx5":
        return _fail(f"{words[0] if words else ''}: Operation not supported", 1)
    text = {"auto": "100", "off": "0"}.get(words[1], words[1])
    if not text.isdigit():
        return _fail("ethtool: bad command line argument(s)\nFor more information run ethtool -h", 1)
    if int(text) and not 80 <= int(text) <= 8000:
        return _fail("pfc-prevention-tout: Invalid argument", 1)
    port["pfc_timeout_ms"] = int(text)
    return 0


def _show_flags(facts: PortFacts, port: Port, words: list[str]) -> int:
    if not port["priv_flags"]:
        return _fail("No private flags defined", 1)
    width = max(map(len, port["priv_flags"]))
    rows = "".join(f"{name:<{width}}: {'on' if on else 'off'}\n" for name, on in port["priv_flags"].items())
    sys.stdout.write(f"Private flags for {facts['netdev']}:\n{rows}")
    return 0


def _set_flags(facts: PortFacts, port: Port, words: list[str]) -> int:
    """`fw-lldp-agent` decides who owns DCB on the E810, and survives a reboot."""
    wanted = dict(zip(words[::2], words[1::2], strict=False))
    if not wanted or not set(wanted) <= set(port["priv_flags"]) or not set(wanted.values()) <= {"on", "off"}:
        return _fail("ethtool: bad command line argument(s)\nFor more information run ethtool -h", 1)
    if wanted.get("fw-lldp-agent") == "on" and port["trust"] == "dscp":
        store.log(f"ice {facts['bdf']}: QoS in L3 DSCP mode, FW Agent not allowed to start")
        return _fail(_UNSUPPORTED, 1)
    for name, value in wanted.items():
        port["priv_flags"][name] = value == "on"
    port["dcbx"] = (LLD_MANAGED if port["priv_flags"]["fw-lldp-agent"] else HOST) | IEEE
    with store.opened(store.FLASH) as flash:
        flash[facts["netdev"]] = dict(port["priv_flags"])
    return 0


_COMMANDS = {
    "": _settings,
    "-i": _driver,
    "-a": _pause,
    "-A": _set_pause,
    "-g": _rings,
    "-G": _set_rings,
    "-S": _statistics,
    "--show-fec": _fec,
    "-m": _module,
    "--show-tunable": _show_tunable,
    "--get-tunable": _show_tunable,
    "--set-tunable": _set_tunable,
    "--show-priv-flags": _show_flags,
    "--set-priv-flags": _set_flags,
}
