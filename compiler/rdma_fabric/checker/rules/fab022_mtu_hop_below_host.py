"""A host's packets are larger than what the other end of its cable carries.

What it checks
    The IP MTU of a host port against the IP MTU of the switch port that it is cabled to. The switch port is
    to blame when it differs from its intent, is left to the device, or is below what RDMA needs, else the
    host.

Why it breaks RDMA
    A switch drops frames above its port's MTU and tells nobody: short messages work, the first full-size
    one is lost, and the queue pair retries until it fails.
    Source: MinIO MemKV guide for RoCEv2 ("MTU must match on every hop").

Wrong
    mtu: {switch: 4200, host: 9000}

Right
    mtu: {switch: max, host: 9000}

When to waive it
    For a host that never sends packets above the switch port's MTU (a route MTU below it).
"""

from collections.abc import Iterator

from rdma_fabric.checker.scopes import Hit, LinkFacts, LinkRule, PortView
from rdma_fabric.findings import Severity
from rdma_fabric.state import known


def _check(a: PortView, b: PortView, facts: LinkFacts) -> Iterator[Hit]:
    if a.is_host == b.is_host:
        return
    host, switch = (a, b) if a.is_host else (b, a)
    sent, carried = known(host.assumed.mtu.ip, "IP MTU"), known(switch.assumed.mtu.ip, "IP MTU")
    if sent <= carried:
        return
    wanted = switch.wanted.mtu.ip
    below = carried < switch.need_mtu or (isinstance(wanted, int) and carried < wanted)
    blame_switch = below or ("mtu.ip" in switch.by_default and "mtu.ip" not in host.by_default)
    at_switch = blame_switch != (host is a)
    yield Hit(
        setting="mtu.ip",
        found=f"IP MTU {carried if blame_switch else sent}",
        wanted=f"at least {sent} (the peer {{peer}})"
        if blame_switch
        else f"at most {carried} (the peer {{peer}})",
        message="{where} is smaller than the host behind it"
        if blame_switch
        else "{where} sends larger packets than {peer} carries",
        help=f"set the MTU of the switch port to {sent} or more"
        if blame_switch
        else f"set the MTU of the host port to {carried} or less, or raise the switch's",
        end="a" if at_switch else "b",
        rank=30,
    )


RULE = LinkRule("FAB022", "mtu-hop-below-host", Severity.ERROR, "0.1", "mtu", _check)
