"""What Cumulus Linux makes of a configuration: defaults, the roce macro, checks at apply, disturbance.

Sources: Cumulus Linux 5.14 pages "Quality of Service" and "RDMA over Converged Ethernet", the NVUE
reference, and the full applied tree of 5.5 in NVIDIA's guide "Running the Playbooks".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ._cumulus_config import Path, Tree, at, branch, interface_type, leaves, merged
from ._cumulus_schema import ECMP_FIELDS, Version, natural

PRIORITIES = tuple(str(number) for number in range(8))
LOSSLESS_MODES = ("lossless", "lossless-single-ipool")
_ECN_DEFAULT = {
    "ecn": "enable",
    "max-threshold": 1500000,
    "min-threshold": 150000,
    "probability": 100,
    "red": "disable",
}
_PFC_DEFAULT = {
    "cable-length": 10,
    "port-buffer": 25000,
    "rx": "enable",
    "tx": "enable",
    "xoff-threshold": 10000,
    "xon-threshold": 2000,
}
# RoCE page, packet trimming profile: DSCP to switch priority, ECN on TC 1-3, weights.
_TRIM_DSCP = {1: "1", 2: "1", 3: "2", 4: "2", 5: "3", 6: "3", **dict.fromkeys(range(11, 41), "4")}
_TRIM_WEIGHTS = (4, 8, 18, 22, 22, 22, 4, 0)
# 163.00 KB and 234.00 KB of 1024 bytes, probability 5.
_TRIM_ECN = {**_ECN_DEFAULT, "min-threshold": 166912, "max-threshold": 239616, "probability": 5}


def switch_word(version: Version, on: bool) -> tuple[str, str]:
    """Name and value of an on/off object: `enable on` up to 5.14, `state enabled` from 5.15."""
    if version >= (5, 15):
        return "state", "enabled" if on else "disabled"
    return "enable", "on" if on else "off"


def roce_mode(config: Tree, version: Version) -> str:
    """The active RoCE mode, empty when RoCE is off."""
    node = branch(config, "qos", "roce")
    name, word = switch_word(version, True)
    return str(node.get("mode", "lossless")) if node.get(name) == word else ""


def _sps(numbers: str) -> Tree:
    return {number: {} for number in numbers}


def _base_mapping(mode: str) -> Tree:
    mapping: Tree = {
        "pcp": {number: {"switch-priority": int(number)} for number in PRIORITIES},
        "port-default-sp": 0,
        "trust": "both" if mode else "l2",
    }
    if mode:
        mapping["dscp"] = _base_dscp(mode)
    return mapping


def _base_dscp(mode: str) -> Tree:
    if mode == "lossy-multi-tc":
        return {str(code): {"switch-priority": int(_TRIM_DSCP.get(code, "0"))} for code in range(64)}
    return {str(code): {"switch-priority": code // 8} for code in range(64)}


def _mapping(explicit: Tree, mode: str) -> Tree:
    result = {}
    for profile in {"default-global": {}, **explicit}:
        base = _base_mapping(mode if profile == "default-global" else "")
        wanted = branch(explicit, profile)
        trust = wanted.get("trust", base["trust"])
        if trust in ("l3", "both") or "dscp" in wanted:
            base.setdefault("dscp", _base_dscp(""))
        result[profile] = merged(base, wanted)
    return result


def _queues(explicit: Tree, mode: str) -> Tree:
    base = {}
    for number in PRIORITIES:
        queue = int(number)
        if mode and mode != "lossy-multi-tc":
            queue = queue if number in "36" else 0
        base[number] = {"traffic-class": queue}
    return {"default-global": merged({"switch-priority": base}, branch(explicit, "default-global"))}


def _base_scheduler(mode: str) -> Tree:
    if mode == "lossy-multi-tc":
        weights = dict(zip(PRIORITIES, _TRIM_WEIGHTS, strict=True))
    elif mode:
        weights = dict.fromkeys(PRIORITIES, 0) | {"0": 50, "3": 50}
    else:
        weights = {number: 12 + int(number) % 2 for number in PRIORITIES}
    base: Tree = {number: {"bw-percent": weight, "mode": "dwrr"} for number, weight in weights.items()}
    if mode and mode != "lossy-multi-tc":
        base["6"] = {"mode": "strict"}
    return base


def _scheduler(explicit: Tree, mode: str) -> Tree:
    result: Tree = {}
    for profile in {"default-global": {}, **explicit}:
        empty = {number: {"bw-percent": 0, "mode": "dwrr"} for number in PRIORITIES}
        base = _base_scheduler(mode) if profile == "default-global" else empty
        classes: Tree = {}
        for number in PRIORITIES:
            wanted = branch(explicit, profile, "traffic-class", number)
            entry = merged(base[number], wanted)
            if "mode" not in wanted and "bw-percent" in wanted:
                entry["mode"] = "dwrr"
            if entry["mode"] == "strict":
                entry.pop("bw-percent", None)
            else:
                entry.setdefault("bw-percent", 0)
            classes[number] = entry
        result[profile] = {"traffic-class": classes}
    return result


def _congestion(explicit: Tree, mode: str) -> Tree:
    result: Tree = {}
    for profile in {"default-global": {}, **explicit}:
        wanted = branch(explicit, profile, "traffic-class")
        base: Tree = {}
        if profile == "default-global":
            if mode == "lossy-multi-tc":
                base = dict.fromkeys("123", _TRIM_ECN)
            elif mode:
                base = dict.fromkeys("03", _ECN_DEFAULT)
            elif not wanted:
                # QoS page: after setting TC 4,5,7 the default profile shows only these three.
                base = {"0": _ECN_DEFAULT}
        classes = {
            number: merged(base.get(number, _ECN_DEFAULT), branch(wanted, number))
            for number in sorted({*base, *wanted})
        }
        result[profile] = {"traffic-class": classes}
    return result


def _pfc(explicit: Tree, mode: str) -> Tree:
    result: Tree = {}
    lossless = mode in LOSSLESS_MODES
    for profile in {**({"default-global": {}} if lossless else {}), **explicit}:
        base: Tree = dict(_PFC_DEFAULT)
        wanted = branch(explicit, profile)
        if lossless and profile == "default-global":
            base["cable-length"] = 100
            if "switch-priority" not in wanted:
                base["switch-priority"] = _sps("3")
        result[profile] = merged(base, wanted)
        result[profile].setdefault("switch-priority", {})
    return result


def _pools(explicit: Tree, mode: str, lossless: set[str]) -> Tree:
    base: Tree = {"default-lossy": {"memory-percent": 100, "switch-priority": _sps("01234567")}}
    others: Tree = {number: {} for number in PRIORITIES if number not in lossless}
    if mode == "lossless":
        base["default-lossy"] = {"memory-percent": 50, "switch-priority": others}
        base["roce-lossless"] = {"memory-percent": 50, "switch-priority": {sp: {} for sp in sorted(lossless)}}
    result: Tree = {}
    for name in {**base, **explicit}:
        wanted = branch(explicit, name)
        start: Tree = dict(branch(base, name))
        if "switch-priority" in wanted:
            start.pop("switch-priority", None)
        elif name == "default-lossless":
            start["switch-priority"] = {sp: {} for sp in sorted(lossless)}
        elif name == "default-lossy" and "default-lossless" in explicit:
            start["switch-priority"] = others
        result[name] = merged(start, wanted)
    return result


def _buffers(explicit: Tree, version: Version, pools: Tree) -> Tree:
    names = (
        ("ingress-pool", "egress-pool")
        if version < (5, 11)
        else (
            "ingress-service-pool",
            "egress-service-pool",
        )
    )
    ids = {"default-lossy": "0", "default-lossless": "1", "roce-lossless": "1", "mc-lossy": "2"}
    shares = {
        ids[name]: {"memory-percent": pool["memory-percent"], "mode": "dynamic"}
        for name, pool in pools.items()
        if name in ids and "memory-percent" in pool
    }
    zero = {number: {"service-pool": "0"} for number in PRIORITIES}
    base: Tree = {
        "egress-lossy-buffer": {"multicast-switch-priority": zero, "traffic-class": zero},
        "ingress-lossy-buffer": {
            "priority-group": {
                "bulk": {
                    "service-pool": "0",
                    "switch-priority": dict(branch(pools, "default-lossy", "switch-priority")),
                }
            }
        },
        **{name: dict(shares) for name in names},
    }
    wanted = branch(explicit, "default-global")
    groups = branch(wanted, "ingress-lossy-buffer", "priority-group")
    if any("switch-priority" in group for group in groups.values()):
        del base["ingress-lossy-buffer"]["priority-group"]["bulk"]["switch-priority"]
    return {"default-global": merged(base, wanted)}


def lossless_priorities(pfc: Tree) -> set[str]:
    """Switch priorities that any PFC profile protects."""
    return {sp for profile in pfc.values() for sp in branch(profile, "switch-priority")}


def qos_tree(config: Tree, version: Version) -> Tree:
    """The applied `qos` tree with every default, numbers exact."""
    explicit = branch(config, "qos")
    mode = roce_mode(config, version)
    pfc = _pfc(branch(explicit, "pfc"), mode)
    pools = _pools(branch(explicit, "traffic-pool"), mode, lossless_priorities(pfc))
    name, word = switch_word(version, bool(mode))
    pause = {
        profile: merged(_PFC_DEFAULT, branch(explicit, "link-pause", profile))
        for profile in branch(explicit, "link-pause")
    }
    return {
        "advance-buffer-config": _buffers(branch(explicit, "advance-buffer-config"), version, pools),
        "congestion-control": _congestion(branch(explicit, "congestion-control"), mode),
        "egress-queue-mapping": _queues(branch(explicit, "egress-queue-mapping"), mode),
        "egress-scheduler": _scheduler(branch(explicit, "egress-scheduler"), mode),
        "egress-shaper": branch(explicit, "egress-shaper"),
        "link-pause": pause,
        "mapping": _mapping(branch(explicit, "mapping"), mode),
        "pfc": pfc,
        "remark": merged({"default-global": {}}, branch(explicit, "remark")),
        "roce": {name: word, **({"mode": mode} if mode else {})},
        "traffic-pool": pools,
        **(
            {
                "pfc-watchdog": merged(
                    {"polling-interval": 100, "robustness": 3}, branch(explicit, "pfc-watchdog")
                )
            }
            if version >= (5, 6)
            else {}
        ),
    }


def applied_tree(config: Tree, version: Version, ports: tuple[str, ...]) -> Tree:
    """The whole configuration with defaults, as `nv config show --all` and the API give it."""
    name, off = switch_word(version, False)
    onoff = "disabled" if version >= (5, 15) else "off"
    on = "enabled" if version >= (5, 15) else "on"
    auto_save = switch_word(version, version >= (5, 9))
    hashes = {field: on if position < 6 else onoff for position, field in enumerate(ECMP_FIELDS)}
    defaults: Tree = {
        "interface": {
            port: _interface_default(port, version) for port in {*ports, *branch(config, "interface")}
        },
        "router": {"adaptive-routing": {name: off}},
        "system": {
            "config": {"auto-save": {auto_save[0]: auto_save[1]}},
            "forwarding": {"ecmp-hash": hashes},
        },
    }
    return {**merged(defaults, config), "qos": qos_tree(config, version)}


def _interface_default(port: str, version: Version) -> Tree:
    kind = interface_type(port)
    entry: Tree = {"link": {"mtu": {"eth": 1500, "loopback": 65536}.get(kind, 9216), "state": {"up": {}}}}
    if kind:
        entry["type"] = kind
    if kind == "swp":
        off = "disabled" if version >= (5, 15) else "off"
        on = "enabled" if version >= (5, 15) else "on"
        entry["link"]["auto-negotiate"] = on
        entry["lldp"] = {f"dcbx-{tlv}-tlv": off for tlv in ("pfc", "ets-config", "ets-recomm")}
        entry["router"] = {"adaptive-routing": dict([switch_word(version, False)])}
        if version >= (5, 6):
            entry["qos"] = {"pfc-watchdog": {"state": "disable"}}
    return entry


def port_profile(config: Tree, qos: Tree, port: str, feature: str) -> Tree:
    """The settings of one feature that hold on a port: its profile, else `default-global`."""
    profile = at(config, "interface", port, "qos", feature, "profile") or "default-global"
    return branch(qos, feature, str(profile))


def port_lossless(config: Tree, qos: Tree, port: str) -> tuple[str, ...]:
    """Switch priorities with PFC on a port."""
    return tuple(sorted(branch(port_profile(config, qos, port, "pfc"), "switch-priority")))


def known_interfaces(config: Tree, ports: tuple[str, ...]) -> set[str]:
    """Ports of the chassis and the children of configured breakouts."""
    known = {*ports, "eth0", "lo"}
    for name, body in branch(config, "interface").items():
        for split in branch(body, "link", "breakout"):
            known |= {f"{name}s{child}" for child in range(int(split[:-1]))}
    return known


def problems(config: Tree, version: Version, ports: tuple[str, ...], model: str) -> list[str]:
    """Why `nv config apply` refuses this configuration, empty when it does not."""
    qos = qos_tree(config, version)
    found = [
        *_interface_problems(config, ports),
        *_profile_problems(config),
        *_scheduler_problems(qos),
        *_pool_problems(config, qos, version),
        *_flow_control_problems(config, qos, ports),
        *_adaptive_problems(config, version),
    ]
    if roce_mode(config, version) == "lossy-multi-tc" and not model.startswith("SN5"):
        found.append("RoCE mode 'lossy-multi-tc' is not supported on this platform.")
    return found


def _interface_problems(config: Tree, ports: tuple[str, ...]) -> Iterator[str]:
    known = known_interfaces(config, ports)
    for name, body in branch(config, "interface").items():
        kind = body.get("type", "")
        parent = name.split(".")[0]
        if not kind:
            yield f"Config invalid at interface.{name}: 'type' is a required property"
        elif kind in ("swp", "eth") and name not in known:
            yield f"Interface {name} does not exist on this platform."
        elif kind == "sub" and parent not in known and parent not in branch(config, "interface"):
            yield f"Interface {parent} does not exist on this platform."
        for member in branch(body, "bond", "member"):
            if member not in known:
                yield f"Bond {name} member {member} does not exist on this platform."


def _profile_problems(config: Tree) -> Iterator[str]:
    for name, body in branch(config, "interface").items():
        for feature, entry in branch(body, "qos").items():
            profile = entry.get("profile") if isinstance(entry, dict) else None
            if profile and profile != "default-global" and profile not in branch(config, "qos", feature):
                yield f"QoS {feature} profile '{profile}' used by interface {name} is not configured."


def _scheduler_problems(qos: Tree) -> Iterator[str]:
    for profile, body in qos["egress-scheduler"].items():
        total = sum(int(entry.get("bw-percent", 0)) for entry in body["traffic-class"].values())
        if total > 100:
            yield (
                f"QoS egress-scheduler profile '{profile}': sum of bw-percent of all traffic classes"
                f" is {total}, must be less than or equal to 100."
            )
    for profile, body in qos["congestion-control"].items():
        for number, entry in body["traffic-class"].items():
            if entry["min-threshold"] >= entry["max-threshold"]:
                yield (
                    f"QoS congestion-control profile '{profile}' traffic-class {number}:"
                    " min-threshold must be less than max-threshold."
                )


def _pool_problems(config: Tree, qos: Tree, version: Version) -> Iterator[str]:
    pools = qos["traffic-pool"]
    total = sum(int(pool.get("memory-percent", 0)) for pool in pools.values())
    if total > 100:
        yield f"QoS traffic-pool: sum of memory-percent is {total}, must be less than or equal to 100."
    lossless = [name for name in ("default-lossless", "roce-lossless") if name in pools]
    if len(lossless) > 1:
        yield "QoS traffic-pool: only a single lossless pool can be configured at a time."
    mode = roce_mode(config, version)
    if "roce-lossless" in pools and mode not in LOSSLESS_MODES:
        yield "QoS traffic-pool: roce-lossless requires RoCE lossless mode, use default-lossless."
    mapped = {sp for pool in pools.values() for sp in branch(pool, "switch-priority")}
    if lossless:
        mapped |= lossless_priorities(qos["pfc"])
    buffers = qos["advance-buffer-config"]["default-global"]
    groups = branch(buffers, "ingress-lossy-buffer", "priority-group")
    grouped = {sp for group in groups.values() for sp in branch(group, "switch-priority")}
    if "advance-buffer-config" in branch(config, "qos"):
        mapped = grouped | (lossless_priorities(qos["pfc"]) if lossless else set())
    missing = sorted(set(PRIORITIES) - mapped)
    if missing and mode != "lossless-single-ipool":
        yield f"QoS: switch-priority {','.join(missing)} is not mapped to a priority group."
    for name in branch(config, "qos", "advance-buffer-config", "default-global"):
        if not name.endswith("-pool"):
            continue
        share = sum(int(pool.get("memory-percent", 0)) for pool in branch(buffers, name).values())
        if share > 100:
            yield f"QoS advance-buffer-config: sum of memory-percent of {name} is {share}, must be <= 100."


def _flow_control_problems(config: Tree, qos: Tree, ports: tuple[str, ...]) -> Iterator[str]:
    flow = False
    for name in sorted({*ports, *branch(config, "interface")}, key=natural):
        body = branch(config, "interface", name)
        pfc = bool(port_lossless(config, qos, name)) and interface_type(name) == "swp"
        pause = bool(port_profile(config, qos, name, "link-pause"))
        flow |= pfc or pause
        if pfc and pause:
            yield f"Interface {name}: PFC and link-pause cannot be configured on the same port."
        if at(body, "qos", "pfc-watchdog", "state") != "enable":
            continue
        if body.get("type") != "swp":
            yield f"Interface {name}: PFC watchdog can only be enabled on a physical interface (swp)."
        elif not (pfc or pause):
            yield f"Interface {name}: PFC watchdog requires PFC or link-pause to be configured on the port."
    has_pool = any(name in qos["traffic-pool"] for name in ("default-lossless", "roce-lossless"))
    if flow and not has_pool and qos["roce"].get("mode") != "lossless-single-ipool":
        yield "QoS: PFC or link-pause requires a lossless traffic-pool with a memory-percent."


def _adaptive_problems(config: Tree, version: Version) -> Iterator[str]:
    name, on = switch_word(version, True)
    members = {
        member for body in branch(config, "interface").values() for member in branch(body, "bond", "member")
    }
    for port, body in branch(config, "interface").items():
        if at(body, "router", "adaptive-routing", name) != on:
            continue
        if body.get("type") != "swp":
            yield f"Interface {port}: adaptive routing is supported on physical interfaces only."
        elif port in members:
            yield f"Interface {port}: adaptive routing is not supported on bond members."


def warnings(old: Tree, new: Tree, version: Version) -> list[str]:
    """What `nv config apply` asks about before it goes on."""
    found = []
    before, after = at(old, "system", "hostname"), at(new, "system", "hostname")
    if before != after and before:
        found.append(f"Warning: current hostname `{before}` will be replaced with `{after or 'cumulus'}`")
    if _adaptive(old) != _adaptive(new) and version < (5, 13):
        found.append("Warning: Changing adaptive routing restarts the switchd service.")
    if at(old, "system", "aaa", "user", "cumulus") and not at(new, "system", "aaa", "user", "cumulus"):
        found.append("Warning: The user account `cumulus` will be deleted.")
    return found


def _adaptive(config: Tree) -> list[tuple[Path, Any]]:
    found = list(leaves(branch(config, "router", "adaptive-routing"), ("router",)))
    for name, body in branch(config, "interface").items():
        found += leaves(branch(body, "router", "adaptive-routing"), (name,))
    return [(path, value) for path, value in found if value != {}]


def disturbances(old: Tree, new: Tree, version: Version) -> list[str]:
    """What an apply does to traffic: `switchd-restart`, `buffer-change`, `switchd-reload`."""
    if _adaptive(old) != _adaptive(new) and version < (5, 13):
        # NVUE reference, Adaptive Routing: restart up to 5.12, reload from 5.13.
        return ["switchd-restart"]
    before, after = qos_tree(old, version), qos_tree(new, version)
    found = []
    buffers = ("advance-buffer-config", "pfc", "link-pause", "traffic-pool", "roce")
    profiles = [
        [(name, at(body, "qos", feature, "profile")) for name, body in branch(tree, "interface").items()]
        for tree in (old, new)
        for feature in ("pfc", "link-pause")
    ]
    if any(before[name] != after[name] for name in buffers) or profiles[:2] != profiles[2:]:
        # QoS page, "switchd and QoS": these changes modify the ASIC buffer, momentary packet loss.
        found.append("buffer-change")
    if before != after or _adaptive(old) != _adaptive(new) or found:
        found.append("switchd-reload")
    return found
