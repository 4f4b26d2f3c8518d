"""What a person types on a switch of each platform, and where a run stands by the lines that it sends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Typed:
    """Lines of another administrator, and regular expressions of a run's own lines by phase."""

    spoil: tuple[str, ...]
    """Changes one of our settings; works again after a repair."""
    drift: tuple[str, str, str, str]
    """(port, setting, found, wanted) of that."""
    foreign: tuple[str, ...]
    """Adds an ACL and a port description, which are not ours."""
    marks: tuple[str, ...]
    """Texts of these in the running configuration."""
    late: tuple[str, ...]
    """Changes that description once more."""
    late_mark: str
    phases: Mapping[str, str]
    """lock | stage | commit | confirm | save -> a line of that phase."""
    unsaved: tuple[str, ...] = ()
    """Lets an applied change stay out of the startup configuration where the device saves by itself."""


TYPED: Mapping[str, Typed] = {
    "arista_eos": Typed(
        spoil=("configure", "interface Ethernet1/1", "qos trust cos", "end"),
        drift=("Ethernet1/1", "trust", "pcp", "dscp"),
        foreign=(
            "configure",
            "ip access-list GUESTS",
            "10 permit ip 198.51.100.0/24 any",
            "exit",
            "interface Ethernet1/1",
            "description rack 7, cable of Alice",
            "end",
        ),
        marks=("ip access-list GUESTS", "198.51.100.0/24", "rack 7, cable of Alice"),
        late=("configure", "interface Ethernet2/1", "description Bob was here", "end"),
        late_mark="Bob was here",
        phases={
            "lock": r"^show configuration sessions detail$",
            "stage": r"^qos trust dscp",
            "commit": r" commit timer ",
            "confirm": r"^configure session \S+ commit$",
            "save": r"^copy running-config",
        },
    ),
    "sonic": Typed(
        spoil=("sudo config interface mtu Ethernet0 1500",),
        drift=("Ethernet0", "mtu", "1500", "9216"),
        foreign=(
            "sonic-db-cli CONFIG_DB HSET 'ACL_TABLE|GUESTS' type L3 policy_desc GUESTS stage ingress",
            "sonic-db-cli CONFIG_DB HSET 'ACL_RULE|GUESTS|RULE_1' PRIORITY 10 PACKET_ACTION DROP"
            " SRC_IP 198.51.100.0/24",
            "sonic-db-cli CONFIG_DB HSET 'PORT|Ethernet0' description 'rack 7, cable of Alice'",
        ),
        marks=("ACL_TABLE", "198.51.100.0/24", "rack 7, cable of Alice"),
        late=("sonic-db-cli CONFIG_DB HSET 'PORT|Ethernet8' description 'Bob was here'",),
        late_mark="Bob was here",
        phases={
            "lock": r"^mkdir /run/lock/fabric",
            "stage": r"apply-patch -d",
            "commit": r"config apply-patch /",
            "confirm": r"systemctl stop",
            "save": r"config save",
        },
    ),
    "cumulus": Typed(
        spoil=("nv set interface swp1 link mtu 1500", "nv config apply -y"),
        drift=("swp1", "mtu", "1500", "9216"),
        foreign=(
            "nv set acl GUESTS type ipv4",
            "nv set acl GUESTS rule 10 match ip source-ip 198.51.100.0/24",
            "nv set acl GUESTS rule 10 action deny",
            'nv set interface swp1 description "rack 7, cable of Alice"',
            "nv config apply -y",
        ),
        marks=("GUESTS", "198.51.100.0/24", "rack 7, cable of Alice"),
        late=('nv set interface swp2 description "Bob was here"', "nv config apply -y"),
        late_mark="Bob was here",
        phases={
            "lock": r"^echo 'fabric run",
            "stage": r"^nv set interface swp1 link mtu",
            "commit": r"nv config apply --confirm \d",
            "confirm": r"--confirm-yes",
            "save": r"^nv config save",
        },
        unsaved=("nv set system config auto-save enable off", "nv config apply -y", "nv config save"),
    ),
}
