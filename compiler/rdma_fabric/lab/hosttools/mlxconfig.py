"""`mlxconfig` / `mstconfig` and `mlxfwreset`: values in the NIC's flash, in force after a reset.

Names and factory values as public query dumps show them (vendor facts, section 2 h and j).
"""

from __future__ import annotations

import sys

from . import store
from .driver import bounce, defaults

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .store import Port, PortFacts

_BOOLEAN = {"False": 0, "True": 1, "0": 0, "1": 1}
_WORDS: dict[str, dict[int, str]] = {
    "LINK_TYPE_P1": {1: "IB", 2: "ETH"},
    "LLDP_NB_DCBX_P1": {0: "False", 1: "True"},
    "LLDP_NB_RX_MODE_P1": {0: "OFF", 1: "MANDATORY", 2: "ALL"},
    "LLDP_NB_TX_MODE_P1": {0: "OFF", 1: "MANDATORY", 2: "ALL"},
    "DCBX_IEEE_P1": {0: "False", 1: "True"},
    "DCBX_CEE_P1": {0: "False", 1: "True"},
    "DCBX_WILLING_P1": {0: "False", 1: "True"},
    "ADVANCED_PCI_SETTINGS": {0: "False", 1: "True"},
    "SRIOV_EN": {0: "False", 1: "True"},
    "CLAMP_TGT_RATE_P1": {0: "False", 1: "True"},
    "CLAMP_TGT_RATE_AFTER_TIME_INC_P1": {0: "False", 1: "True"},
}
FACTORY: dict[str, int] = {
    "LINK_TYPE_P1": 2,
    "SRIOV_EN": 1,
    "NUM_OF_VFS": 8,
    "ADVANCED_PCI_SETTINGS": 0,
    "MAX_ACC_OUT_READ": 0,
    "ROCE_CC_PRIO_MASK_P1": 255,
    "CLAMP_TGT_RATE_AFTER_TIME_INC_P1": 1,
    "CLAMP_TGT_RATE_P1": 0,
    "RPG_TIME_RESET_P1": 300,
    "RPG_BYTE_RESET_P1": 32767,
    "RPG_THRESHOLD_P1": 1,
    "RPG_MAX_RATE_P1": 0,
    "RPG_AI_RATE_P1": 5,
    "RPG_HAI_RATE_P1": 50,
    "RPG_GD_P1": 11,
    "RPG_MIN_DEC_FAC_P1": 50,
    "RPG_MIN_RATE_P1": 1,
    "RATE_TO_SET_ON_FIRST_CNP_P1": 0,
    "DCE_TCP_G_P1": 1019,
    "DCE_TCP_RTT_P1": 1,
    "RATE_REDUCE_MONITOR_PERIOD_P1": 4,
    "INITIAL_ALPHA_VALUE_P1": 1023,
    "MIN_TIME_BETWEEN_CNPS_P1": 4,
    "CNP_802P_PRIO_P1": 6,
    "CNP_DSCP_P1": 48,
    "LLDP_NB_DCBX_P1": 0,
    "LLDP_NB_RX_MODE_P1": 0,
    "LLDP_NB_TX_MODE_P1": 0,
    "DCBX_IEEE_P1": 1,
    "DCBX_CEE_P1": 1,
    "DCBX_WILLING_P1": 1,
}
"""NV parameter -> factory value."""
_MOST = {"CNP_DSCP_P1": 63, "CNP_802P_PRIO_P1": 7, "ROCE_CC_PRIO_MASK_P1": 255, "LINK_TYPE_P1": 3}
_HIDDEN = {"MAX_ACC_OUT_READ": "ADVANCED_PCI_SETTINGS"}
"""Parameter -> the switch that must be on before it is shown."""


def main(name: str, arguments: list[str]) -> int:
    """Query, set or reset the flash of one device, or reset its firmware."""
    flags = {word for word in arguments if word.startswith("-")}
    words, device = [], ""
    rest = iter(arguments)
    for word in rest:
        if word in {"-d", "--device", "--dev"}:
            device = next(rest, "")
        elif word in {"-l", "--level"}:
            next(rest, "")
        elif not word.startswith("-"):
            words.append(word)
    ports = [port for port in store.facts()["ports"] if port["nic"] == "mlx5" and port["bdf"] == device]
    if not ports:
        return _fail(f"-E- Failed to open the device {device}: No such file or directory")
    if name.endswith("fwreset"):
        return _fwreset(ports[0], words, "-y" in flags or "--yes" in flags)
    if words[:1] in (["q"], ["query"]):
        return _query(device, words[1:], extended=bool(flags & {"-e", "--enable_verbosity"}))
    if words[:1] in (["s"], ["set"]):
        return _set(device, words[1:], "-y" in flags or "--yes" in flags)
    if words[:1] in (["r"], ["reset"]):
        return _reset(device)
    return _fail("-E- No command found. For more information please run mlxconfig -h|--help.")


def _fail(text: str) -> int:
    sys.stderr.write(f"{text}\n")
    return 3


def flash(device: str) -> dict[str, dict[str, int]]:
    """Current and next-boot values of a device, factory values where nothing was written."""
    kept = store.read(store.FLASH).get(device, {})
    return {when: {**FACTORY, **kept.get(when, {})} for when in ("current", "next")}


def _visible(name: str, values: dict[str, int]) -> bool:
    return name not in _HIDDEN or bool(values[_HIDDEN[name]])


def _shown(name: str, value: int) -> str:
    return f"{_WORDS[name][value]}({value})" if value in _WORDS.get(name, {}) else str(value)


def _head(device: str) -> None:
    sys.stdout.write("\nDevice #1:\n----------\n\nDevice type:        ConnectX7\n")
    sys.stdout.write(f"Name:               MCX75310AAS-NEAT_Ax\nDevice:             {device}\n\n")


def _query(device: str, names: list[str], extended: bool) -> int:
    values = flash(device)
    shown = [name for name in FACTORY if _visible(name, values["next"])]
    for name in names:
        if name not in shown:
            return _fail(f"-E- The Device doesn't support {name} parameter")
    _head(device)
    columns = ("Default", "Current", "Next Boot") if extended else ("Next Boot",)
    head = "".join(f"{column:<16}" for column in columns).rstrip()
    sys.stdout.write(f"{'Configurations:':<45}{head}\n")
    changed = False
    for name in names or shown:
        default, current, following = FACTORY[name], values["current"][name], values["next"][name]
        numbers = (default, current, following) if extended else (following,)
        mark = "*" if extended and current != following else " "
        changed = changed or mark == "*"
        row = "".join(f"{_shown(name, number):<16}" for number in numbers).rstrip()
        sys.stdout.write(f"{mark}        {name:<36}{row}\n")
    if changed:
        sys.stdout.write("The '*' shows parameters with next value different from default/current value.\n")
    return 0


def _set(device: str, settings: list[str], agreed: bool) -> int:
    values = flash(device)["next"]
    wanted: dict[str, int] = {}
    for setting in settings:
        name, _, text = setting.partition("=")
        if name not in FACTORY or not _visible(name, {**values, **wanted}):
            return _fail(f"-E- The Device doesn't support {name} parameter")
        named = {word: number for number, word in _WORDS.get(name, {}).items()}
        number = named.get(text, _BOOLEAN.get(text, -1))
        if number < 0 and text.startswith("0x"):
            number = int(text, 16)
        elif number < 0 and text.isdigit():
            number = int(text)
        most = _MOST.get(name, max(_WORDS.get(name, {0: ""}), default=0) or 0xFFFFFFFF)
        if number < 0 or number > most:
            return _fail(f"-E- Failed to set {name}: bad value {text or '(none)'}")
        wanted[name] = number
    if not wanted:
        return _fail("-E- No configuration to set was given")
    _head(device)
    sys.stdout.write(f"{'Configurations:':<45}{'Next Boot':<16}New\n")
    for name, number in wanted.items():
        sys.stdout.write(f"         {name:<36}{_shown(name, values[name]):<16}{_shown(name, number)}\n")
    sys.stdout.write("\n Apply new Configuration? (y/n) [n] : ")
    sys.stdout.write("y\n" if agreed else "")
    if not agreed and sys.stdin.readline().strip() not in {"y", "yes"}:
        sys.stdout.write("\n Aborting...\n")
        return 3
    with store.opened(store.FLASH) as kept:
        kept.setdefault(device, {}).setdefault("next", {}).update(wanted)
    sys.stdout.write("Applying... Done!\n-I- Please reboot machine to load new configurations.\n")
    return 0


def _reset(device: str) -> int:
    with store.opened(store.FLASH) as kept:
        kept.setdefault(device, {})["next"] = {}
    sys.stdout.write("\n Reset configuration for device to default? (y/n) [n] : y\nApplying... Done!\n")
    sys.stdout.write("-I- Please reboot machine to load new configurations.\n")
    return 0


def _fwreset(port: PortFacts, words: list[str], agreed: bool) -> int:
    """The netdev goes and comes back with factory runtime state and the flash's values in force."""
    if words[:1] in (["q"], ["query"]):
        sys.stdout.write("Reset-levels:\n3: Driver restart and PCI reset  -Supported (default)\n")
        return 0
    if words[:1] not in (["r"], ["reset"]):
        return _fail("-E- No command found")
    if not agreed and sys.stdin.readline().strip() not in {"y", "yes"}:
        return 3
    take_over(port["bdf"])
    import subprocess

    subprocess.run(["ip", "link", "set", port["netdev"], "mtu", "1500"], check=False)
    with store.port_state(port["netdev"]) as state:
        bounces = state["bounces"]
        state.update(in_force(port))
        state["bounces"] = bounces
        bounce(port, state)
    sys.stdout.write("Requested reset level for device, 3\n-I- Sending Reset Command To Fw  -Done\n")
    sys.stdout.write("-I- Restarting Driver  -Done\n-I- FW was loaded successfully.\n")
    return 0


def take_over(device: str) -> None:
    """A reset or reboot: what was meant for the next boot is now in force."""
    with store.opened(store.FLASH) as kept:
        if "next" in kept.get(device, {}):
            kept[device]["current"] = dict(kept[device]["next"])


def in_force(port: PortFacts) -> Port:
    """The state of an mlx5 port after a cold start with its flash's values."""
    state, values = defaults(port), flash(port["bdf"])["current"]
    state["np"] = [bool(values["ROCE_CC_PRIO_MASK_P1"] >> priority & 1) for priority in range(8)]
    state["rp"] = list(state["np"])
    state["cc"] = {"cnp_dscp": values["CNP_DSCP_P1"], "cnp_802p_prio": values["CNP_802P_PRIO_P1"]}
    if values["LLDP_NB_DCBX_P1"]:
        state["dcbx"] &= ~1
    return state
