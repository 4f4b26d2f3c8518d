"""`ib_write_bw`, `ib_send_bw` and `ib_read_bw` of perftest 4.5-0.17: two ends that meet, and their table.

The lab finds the other end and says what the way between the two ports gives; nothing is sent. A server waits
for ten minutes. Texts and layout are those of perftest_parameters.c and write_bw.c.
"""

from __future__ import annotations

import sys
import zlib

from . import asking, rdma, store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .store import PortFacts

_VERBS = {"ib_write_bw": "RDMA_Write", "ib_send_bw": "Send", "ib_read_bw": "RDMA_Read"}
_VALUED = {
    "-d": "device",
    "--ib-dev": "device",
    "-s": "size",
    "--size": "size",
    "-n": "iterations",
    "--iters": "iterations",
    "-p": "tcp",
    "--port": "tcp",
    "-x": "gid",
    "--gid-index": "gid",
    "-q": "qps",
    "--qp": "qps",
    "-D": "duration",
    "--duration": "duration",
    "-m": "mtu",
    "--mtu": "mtu",
    "-i": "ibport",
    "--ib-port": "ibport",
    "-S": "sl",
    "--sl": "sl",
    "-T": "tos",
    "--tos": "tos",
    "--tclass": "tos",
    "-t": "depth",
    "--tx-depth": "depth",
}
_FLAGS = {
    "-F": "force",
    "--CPU-freq": "force",
    "--report_gbits": "gbits",
    "-R": "cm",
    "--rdma_cm": "cm",
    "-a": "all",
    "--all": "all",
    "-N": "nopeak",
    "--noPeak": "nopeak",
}
_DEFAULTS = {"size": "65536", "tcp": "18515", "qps": "1", "depth": "128", "mtu": "0", "ibport": "1"}
_LINE = "-" * 87
_MEBI = 0x100000
_WAIT_SECONDS = 600.0


class Stop(Exception):
    """What goes to standard error; the status is 1."""


def main(name: str, arguments: list[str]) -> int:
    """Be the server, or with an address the client."""
    try:
        options, server = _parse(name, arguments)
        port = _device(options)
        return _client(name, options, port, server) if server else _server(name, options, port)
    except Stop as stop:
        sys.stdout.flush()
        sys.stderr.write(f"{stop}\n")
        return 1


def _parse(name: str, arguments: list[str]) -> tuple[dict[str, str], str]:
    options = dict(_DEFAULTS, iterations="5000" if name == "ib_write_bw" else "1000")
    words, server = list(arguments), ""
    while words:
        word = words.pop(0)
        key, equals, inline = word.partition("=") if word.startswith("--") else (word, "", "")
        if key in _FLAGS:
            options[_FLAGS[key]] = "yes"
        elif key in _VALUED and (equals or words):
            options[_VALUED[key]] = inline if equals else words.pop(0)
        elif word.startswith("-") or server:
            raise Stop(
                " Invalid Command or flag.Please check command line and run again.\n\n"
                " Parser function exited with Error"
            )
        else:
            server = word
    for key in ("size", "iterations", "qps", "tcp", "duration", "mtu", "depth"):
        if not options.get(key, "1").isdigit():
            raise Stop(f" Invalid {key}\n Parser function exited with Error")
    return options, server


def _device(options: dict[str, str]) -> PortFacts:
    known = [port for port in store.facts()["ports"] if rdma.here(port)]
    wanted = options.get("device", "")
    if not known:
        raise Stop(" Did not detect devices \n Unable to find the Infiniband/RoCE device")
    port = next((one for one in known if wanted in ("", one["ibdev"])), None)
    if port is None:
        raise Stop(f"IB device {wanted} not found\n Unable to find the Infiniband/RoCE device")
    if not store.carrier(port["netdev"]):
        raise Stop(
            " Port number 1 state is Down\n Couldn't set the link layer\n Couldn't get context for the device"
        )
    return port


def _end(options: dict[str, str], port: PortFacts) -> dict[str, Any]:
    """What the two ends tell each other; a wanted MTU above the active one is not used."""
    active, wanted = rdma.active_mtu(port)[0], int(options["mtu"])
    gids = [row for row in rdma.gids(port) if row[3] == "v2"]
    chosen = next((row for row in gids if str(row[0]) == options.get("gid", "")), gids[-1])
    return {
        "port": port["netdev"],
        "mtu": min(active, wanted or active),
        "gid": chosen[1],
        "index": chosen[0],
        "qpn": 0x100 + zlib.crc32(port["mac"].encode()) % 0x7F00,
    }


def _server(name: str, options: dict[str, str], port: PortFacts) -> int:
    sys.stdout.write(f"\n{'*' * 36}\n* Waiting for client to connect... *\n{'*' * 36}\n")
    sys.stdout.flush()
    own = _end(options, port)
    found = asking.ask("serve", _WAIT_SECONDS, tool=name, tcp=int(options["tcp"]), end=own)
    if not found:
        raise Stop(" Unable to init the socket connection")
    return _report(name, options, port, own, found, client=False)


def _client(name: str, options: dict[str, str], port: PortFacts, server: str) -> int:
    own = _end(options, port)
    found = asking.ask("connect", 30.0, tool=name, tcp=int(options["tcp"]), to=server, end=own)
    if not found:
        raise Stop(f"Couldn't connect to {server}:{options['tcp']}\n Unable to init the socket connection")
    return _report(name, options, port, own, found, client=True)


def _report(
    name: str,
    options: dict[str, str],
    port: PortFacts,
    own: dict[str, Any],
    found: dict[str, Any],
    client: bool,
) -> int:
    """The table; where the way does not carry packets of this size, the error that a queue pair ends with."""
    if "duration" in options and client:
        sys.stdout.write(" WARNING: BW peak won't be measured in this run.\n")
    _head(name, options, port, min(own["mtu"], found["end"]["mtu"]), own["index"], client)
    for side, end in (("local", own), ("remote", found["end"])):
        psn = zlib.crc32(end["gid"].encode()) & 0xFFFFFF
        key = f" RKey 0x{psn & 0xFFFF:06x} VAddr 0x007f{psn:06x}0000" if name != "ib_send_bw" else ""
        octets = [int(end["gid"].replace(":", "")[at : at + 2], 16) for at in range(0, 32, 2)]
        sys.stdout.write(f" {side} address: LID 0000 QPN 0x{end['qpn']:04x} PSN 0x{psn:04x}{key}\n")
        sys.stdout.write(f" GID: {':'.join(f'{octet:02d}' for octet in octets)}\n")
    unit = "Gb" if "gbits" in options else "MB"
    heads = f" #bytes     #iterations    BW peak[{unit}/sec]    BW average[{unit}/sec]   MsgRate[Mpps]"
    sys.stdout.write(f"{_LINE}\n{heads}\n")
    if not found["gbps"]:
        if client:
            raise Stop(
                " Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\n"
                f"scnt={options['depth']}, ccnt=0\n Failed to complete run_iter_bw function successfully"
            )
        raise Stop("ethernet_read_keys: Couldn't read remote address\n Unable to read to socket/rdma_cm")
    sizes = [1 << power for power in range(1, 24)] if "all" in options else [int(options["size"])]
    for size in sizes:
        sys.stdout.write(_row(options, size, float(found["gbps"])))
    sys.stdout.write(f"{_LINE}\n")
    return 0


def _head(name: str, options: dict[str, str], port: PortFacts, mtu: int, gid: int, client: bool) -> None:
    depth = f" TX depth        : {options['depth']}\n" if client else ""
    last = " Outstand reads  : 16\n" if name == "ib_read_bw" else " Max inline data : 0[B]\n"
    cm = "ON" if "cm" in options else "OFF"
    sys.stdout.write(
        f"{_LINE}\n                    {_VERBS[name]} BW Test\n"
        f" Dual-port       : OFF\t\tDevice         : {port['ibdev']}\n"
        f" Number of qps   : {options['qps']}\t\tTransport type : IB\n"
        f" Connection type : RC\t\tUsing SRQ      : OFF\n"
        f" PCIe relax order: ON\n ibv_wr* API     : ON\n{depth}"
        f" CQ Moderation   : {min(100, int(options['depth']))}\n"
        f" Mtu             : {mtu}[B]\n Link type       : Ethernet\n GID index       : {gid}\n{last}"
        f" rdma_cm QPs\t : {cm}\n Data ex. method : {'rdma_cm' if cm == 'ON' else 'Ethernet'}\n{_LINE}\n"
    )


def _row(options: dict[str, str], size: int, gbps: float) -> str:
    """One line of results: small messages are bound by their rate, 10 million per second and queue pair."""
    rate = min(gbps * 1e9 / 8 / size, 10e6 * int(options["qps"]))
    average = rate * size * 8 / 1e9 if "gbits" in options else rate * size / _MEBI
    measured = "duration" in options or "nopeak" in options
    peak = 0.0 if measured else average * 1.002
    count = int(rate * int(options["duration"])) if "duration" in options else int(options["iterations"])
    first = f" {size:<7d}    {count:<10d}       {peak:<7.2f}            {average:<7.2f}"
    return f"{first}\t\t   {rate / 1e6:<7.6f}\n"
