"""`ip` of hosts with bonds and VLANs: the machine's own, and what kernels without those drivers lack.

A bond is then a bridge and a VLAN a macvlan underneath, with the rules of the real drivers (Linux 6.1
`bonding/bond_main.c`, `8021q/vlan.c`, `8021q/vlan_dev.c`): a bond hands its MTU to its members, a VLAN
never has more than its parent and goes down and up with it. Every call brings /sys/class/net up to date.
A stand-in VLAN has a MAC address of its own; /proc/net/bonding and /proc/net/vlan are missing.
"""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH110, PTH112

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

from . import store, sysfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

REAL = f"{store.RUN}/ip"
"""The machine's `ip`; the stand-in lies over it."""
_VALUED = {"-n", "-netns", "-f", "-family", "-l", "-loops", "-rc", "-rcvbuf"}
_OWN_ANSWER = {"-b", "-batch", "-n", "-netns", "-V", "-Version", "-h", "-help"}
# Words of `link add` and `link set` that take no value (ip-link(8)).
_BARE = {"up", "down", "nomaster"}


class Ended(Exception):
    """The command ends with this status; everything is said."""


def main(name: str, arguments: list[str]) -> int:
    """Run one command of `ip`."""
    options, words = _split(arguments)
    if words and not set(options) & _OWN_ANSWER:
        try:
            if "link".startswith(words[0]):
                return _link(options, words[1:])
            if "address".startswith(words[0]) and _reads(words[1:]):
                return _show(options, words[0], words[1:])
        except Ended as ended:
            return int(ended.args[0])
    sys.stdout.flush()
    return os.execv(REAL, ["ip", *arguments])


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Options in front of the object, and the rest."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        at += 2 if arguments[at] in _VALUED else 1
    return arguments[:at], arguments[at:]


def _reads(words: list[str]) -> bool:
    return not words or any(verb.startswith(words[0]) for verb in ("show", "list", "lst"))


def _link(options: list[str], words: list[str]) -> int:
    verb, rest = (words[0], words[1:]) if words else ("show", [])
    for full, work in (("add", _add), ("set", _set), ("change", _set), ("delete", _delete)):
        if full.startswith(verb):
            try:
                return work(rest)
            finally:
                sysfs.sync()
    if _reads([verb]):
        return _show(options, "link", [verb, *rest])
    return _real("link", verb, *rest)


# --- the kernel ---


def _real(*words: str) -> int:
    """Run the machine's `ip`; what it says is the answer."""
    sys.stdout.flush()
    return subprocess.run([REAL, *words], check=False).returncode


def _must(*words: str) -> None:
    """As `_real`; a refusal ends the command."""
    if status := _real(*words):
        raise Ended(status)


def _refuse(text: str) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.write(f"{text}\n")
    raise Ended(2)


def probe() -> None:
    """Find out at boot which drivers this kernel lacks."""
    near = f"link add name probe0 type bond; {REAL} link add link lo name probe1 type vlan id 2"
    script = f"{REAL} {near}; {REAL} -br link; {REAL} link del probe0; {REAL} link del probe1"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    with store.opened(store.LINKS) as links:
        links.clear()
        links["lacking"] = [
            k for k, name in (("bond", "probe0"), ("vlan", "probe1")) if name not in done.stdout
        ]
        links["made"] = {}


def made() -> dict[str, dict[str, Any]]:
    """Stand-ins: name -> kind; mode and members of a bond, id and parent of a VLAN."""
    found: dict[str, dict[str, Any]] = store.read(store.LINKS).get("made", {})
    return found


def _up(netdev: str) -> bool:
    return bool(int(store.slurp(f"/sys/class/net/{netdev}/flags") or "0", 16) & 1)


# --- add ---


def _add(words: list[str]) -> int:
    kind = words[words.index("type") + 1] if "type" in words[:-1] else ""
    if kind not in store.read(store.LINKS).get("lacking", []):
        return _real("link", "add", *words)
    front, given = words[: words.index("type")], words[words.index("type") + 2 :]
    name = _value(front, "name") or _value(front, "dev") or _first(front)
    return _add_vlan(name, front, given) if kind == "vlan" else _add_bond(name, front, given)


def _value(words: list[str], key: str) -> str:
    """The word after a key, or nothing."""
    return words[words.index(key) + 1] if key in words[:-1] else ""


def _first(words: list[str]) -> str:
    """The name that stands without its key."""
    rest = list(words)
    while rest and rest[0] not in _BARE:
        if rest[0] in {"link", "mtu", "address", "txqueuelen", "index", "group"}:
            rest = rest[2:]
        else:
            return rest[0]
    return ""


def _add_vlan(name: str, front: list[str], given: list[str]) -> int:
    number, parent = _value(given, "id"), _value(front, "link")
    if not number.isdigit() or int(number) > 4095:
        sys.stderr.write(f'Error: argument "{number}" is wrong: id is invalid\n\n')
        return 255
    if int(number) == 4095:
        _refuse("Error: 8021q: Invalid VLAN id.")
    for other in made().values():
        if (other["kind"], other.get("below"), other.get("id")) == ("vlan", parent, int(number)):
            _refuse("Error: 8021q: VLAN device already exists.")
    _must("link", "add", *front, "type", "macvlan", "mode", "bridge")
    _remember(name, {"kind": "vlan", "below": parent, "id": int(number)})
    return 0


def _add_bond(name: str, front: list[str], given: list[str]) -> int:
    mode = _value(given, "mode") or "balance-rr"
    if mode.isdigit() and int(mode) < len(sysfs.BOND_MODES):
        mode = sysfs.BOND_MODES[int(mode)]
    if mode not in sysfs.BOND_MODES:
        sys.stderr.write(f'Error: argument "{mode}" is wrong: invalid mode\n\n')
        return 255
    _must("link", "add", *front, "type", "bridge")
    # A bridge takes the smallest MTU of its ports until somebody changes its own.
    size = int(_value(front, "mtu") or "1500")
    for step in (size - 1 if size > 1280 else size + 1, size):
        _must("link", "set", "dev", name, "mtu", str(step))
    _remember(name, {"kind": "bond", "mode": mode, "miimon": _value(given, "miimon") or "0", "members": {}})
    return 0


def _remember(name: str, what: dict[str, Any]) -> None:
    with store.opened(store.LINKS) as links:
        links["made"][name] = what


# --- set ---


def _set(words: list[str]) -> int:
    """In the kernel's order: other attributes, MTU, master, then up or down (rtnetlink.c, do_setlink)."""
    rest = words[1:] if words[:1] == ["dev"] else list(words)
    name = rest.pop(0) if rest else ""
    links = made()
    if not links or not os.path.exists(f"/sys/class/net/{name}") or "type" in rest:
        return _real("link", "set", *words)
    own: dict[str, str] = {}
    others: list[str] = []
    while rest:
        word = rest.pop(0)
        if word in _BARE:
            own["state" if word != "nomaster" else "master"] = word
        elif word in {"mtu", "master"} and rest:
            own[word] = rest.pop(0)
        else:
            others += [word, *([rest.pop(0)] if rest and word != "promisc" else [])]
    if others:
        _must("link", "set", "dev", name, *others)
    if "mtu" in own:
        _set_mtu(name, own["mtu"], links)
    if "master" in own:
        _set_master(name, own["master"], links)
    if "state" in own:
        _set_state(name, own["state"], links)
    return 0


def _set_mtu(name: str, size: str, links: dict[str, dict[str, Any]]) -> None:
    link = links.get(name, {})
    if link.get("kind") == "vlan" and size.isdigit() and int(size) > store.mtu(link["below"]):
        _refuse("RTNETLINK answers: Numerical result out of range")
    before = store.mtu(name)
    for member in link.get("members", {}):
        if status := _real("link", "set", "dev", member, "mtu", size):
            for done in link["members"]:
                if done == member:
                    break
                _real("link", "set", "dev", done, "mtu", str(before))
            raise Ended(status)
    _must("link", "set", "dev", name, "mtu", size)


def _set_master(name: str, wanted: str, links: dict[str, dict[str, Any]]) -> None:
    before = store.master(name)
    if before in links and before != wanted:
        _release(name, before)
    if wanted not in links or before == wanted:
        if before not in links or wanted != "nomaster":
            _must("link", "set", "dev", name, *(["nomaster"] if wanted == "nomaster" else ["master", wanted]))
        return
    if _up(name):
        _refuse("Error: Device can not be enslaved while up.")
    mac = store.slurp(f"/sys/class/net/{name}/address").strip()
    kept = {"mtu": store.mtu(name), "mac": mac}
    _must("link", "set", "dev", name, "mtu", str(store.mtu(wanted)))
    if not links[wanted]["members"]:
        _must("link", "set", "dev", wanted, "address", mac)
    _must("link", "set", "dev", name, "address", store.slurp(f"/sys/class/net/{wanted}/address").strip())
    _must("link", "set", "dev", name, "master", wanted)
    _must("link", "set", "dev", name, "up")
    with store.opened(store.LINKS) as state:
        state["made"][wanted]["members"][name] = kept


def _release(name: str, bond: str) -> None:
    """A member that leaves is down, with the MTU and the address that it came with."""
    with store.opened(store.LINKS) as state:
        kept = state["made"][bond]["members"].pop(name, {"mtu": 1500, "mac": ""})
    _must("link", "set", "dev", name, "nomaster")
    _must("link", "set", "dev", name, "down")
    if kept["mac"]:
        _must("link", "set", "dev", name, "address", kept["mac"])
    _must("link", "set", "dev", name, "mtu", str(kept["mtu"]))


def _set_state(name: str, state: str, links: dict[str, dict[str, Any]]) -> None:
    """VLANs go with their parent, and cannot be up without it."""
    link = links.get(name, {})
    if link.get("kind") == "vlan" and state == "up" and not _up(link["below"]):
        _refuse("RTNETLINK answers: Network is down")
    _must("link", "set", "dev", name, state)
    for child, what in links.items():
        if what["kind"] == "vlan" and what["below"] == name:
            _must("link", "set", "dev", child, state)


# --- delete ---


def _delete(words: list[str]) -> int:
    rest = words[1:] if words[:1] == ["dev"] else list(words)
    name, links = rest[0] if rest else "", made()
    for member in links.get(name, {}).get("members", {}):
        _release(member, name)
    return _real("link", "delete", "dev", name, *([] if name in links else rest[1:]))


# --- show ---


def _show(options: list[str], what: str, words: list[str]) -> int:
    """The machine's answer, with stand-ins as what they stand for."""
    links = made()
    rest, kind = list(words) or ["show"], ""
    if "type" in rest[:-1] and rest[rest.index("type") + 1] in {"bond", "vlan", "bridge", "macvlan"}:
        kind = rest[rest.index("type") + 1]
        del rest[rest.index("type") : rest.index("type") + 2]
    if not links:
        return _real(*options, what, *words)
    done = subprocess.run(
        [REAL, *options, what, *rest], stdout=subprocess.PIPE, encoding="utf-8", check=False
    )
    if any(option.startswith(("-j", "-p")) for option in options):
        sys.stdout.write(_shown_json(done.stdout, links, kind, pretty="-p" in " ".join(options)))
    else:
        sys.stdout.write(_shown_text(done.stdout, links, kind))
    return done.returncode


def _member_of(links: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        name: kept
        for link in links.values()
        for name, kept in link.get("members", {}).items()
        if kept is not None
    }


def _kind(name: str, links: dict[str, dict[str, Any]]) -> str:
    link = links.get(name)
    if link:
        return str(link["kind"])
    return "bridge" if os.path.isdir(f"/sys/class/net/{name}/bridge") else ""


def _shown_json(text: str, links: dict[str, dict[str, Any]], kind: str, pretty: bool) -> str:
    if not text.strip():
        return text
    members, shown = _member_of(links), []
    for one in json.loads(text):
        name = one.get("ifname", "")
        if kind and _kind(name, links) != kind:
            continue
        link, info = links.get(name), one.get("linkinfo", {})
        if link and info:
            info.update(info_kind=link["kind"], info_data=_data(link))
        if link and link["kind"] == "bond" and "flags" in one:
            one["flags"].insert(one["flags"].index("MULTICAST") + 1, "MASTER")
        if name in members and "flags" in one:
            one["flags"].insert(one["flags"].index("MULTICAST") + 1, "SLAVE")
        if name in members and "info_slave_kind" in info:
            info["info_slave_kind"] = "bond"
            info["info_slave_data"] = {
                "state": "ACTIVE",
                "mii_status": "UP",
                "link_failure_count": 0,
                "perm_hwaddr": members[name]["mac"],
                "queue_id": 0,
            }
        shown.append(one)
    if pretty:
        return json.dumps(shown, indent=4) + "\n"
    return json.dumps(shown, separators=(",", ":")) + "\n"


def _data(link: dict[str, Any]) -> dict[str, Any]:
    """`info_data` of iproute2 6.1."""
    if link["kind"] == "vlan":
        return {"protocol": "802.1Q", "id": link["id"], "flags": ["REORDER_HDR"]}
    return {
        "mode": link["mode"],
        "miimon": int(link["miimon"]),
        "updelay": 0,
        "downdelay": 0,
        "peer_notify_delay": 0,
        "use_carrier": 1,
        "arp_interval": 0,
        "xmit_hash_policy": "layer2",
        "resend_igmp": 1,
        "num_peer_notif": 1,
        "all_slaves_active": 0,
        "min_links": 0,
        "lp_interval": 1,
        "packets_per_slave": 1,
        "ad_lacp_active": "on",
        "ad_lacp_rate": "slow",
        "ad_select": "stable",
        "tlb_dynamic_lb": 1,
    }


def _shown_text(text: str, links: dict[str, dict[str, Any]], kind: str) -> str:
    members, out = _member_of(links), []
    for block in re.split(r"^(?=\S)", text, flags=re.MULTILINE):
        name = re.split(r"[@:\s]", block.split(": ", 1)[1] if re.match(r"\d+: ", block) else block)[0]
        if kind and _kind(name, links) != kind:
            continue
        link = links.get(name)
        if link and link["kind"] == "bond":
            block = block.replace("MULTICAST", "MULTICAST,MASTER", 1)
            shown = f"bond mode {link['mode']} miimon {link['miimon']} updelay 0 downdelay 0 "
            block = re.sub(r"bridge forward_delay .*?(?=addrgenmode)", shown, block, count=1)
        elif link:
            shown = f"vlan protocol 802.1Q id {link['id']} <REORDER_HDR> "
            block = re.sub(r"macvlan mode .*?(?=addrgenmode)", shown, block, count=1)
        if name in members:
            block = block.replace("MULTICAST", "MULTICAST,SLAVE", 1)
            shown = "bond_slave state ACTIVE mii_status UP link_failure_count 0 perm_hwaddr "
            shown += f"{members[name]['mac']} queue_id 0 "
            block = re.sub(r"bridge_slave .*?(?=addrgenmode)", shown, block, count=1)
        out.append(block)
    return "".join(out)
