"""NV parameters of ConnectX and BlueField: names, types, limits and factory values.

Sources: public query dumps (vendor facts, section 2 h and j, source S10) for factory values; types, sizes
and limits are those of mstflint's parameter data base for hosts. `_P1`, `_P2` are the adapter's ports.
"""

from __future__ import annotations

from . import store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .store import PortFacts

BOOLEAN = "False=0,True=1"
_LLDP = "OFF=0,MANDATORY=1,ALL=2"
_OWNER = "ECPF=0,EXT_HOST_PF=1"

# name, bits or words, factory value, (least, most)
_ADAPTER: tuple[tuple[str, int | str, int, tuple[int, int] | None], ...] = (
    ("NUM_OF_VFS", 16, 8, (0, 127)),
    ("SRIOV_EN", BOOLEAN, 1, None),
    ("ATS_ENABLED", BOOLEAN, 0, None),
    ("ADVANCED_PCI_SETTINGS", BOOLEAN, 0, None),
    ("MAX_ACC_OUT_READ", 16, 0, None),
    ("PCI_WR_ORDERING", "per_mkey=0,force_relax=1", 0, None),
    ("CQE_COMPRESSION", "BALANCED=0,AGGRESSIVE=1", 0, None),
    ("ROCE_CONTROL", "DEVICE_DEFAULT=0,ROCE_DISABLE=1,ROCE_ENABLE=2", 2, None),
    ("ROCE_ADAPTIVE_ROUTING_EN", BOOLEAN, 0, None),
    ("TX_SCHEDULER_BURST", 5, 0, (0, 31)),
    ("USER_PROGRAMMABLE_CC", BOOLEAN, 0, None),
)
_BLUEFIELD: tuple[tuple[str, int | str, int, tuple[int, int] | None], ...] = (
    ("INTERNAL_CPU_MODEL", "SEPARATED_HOST=0,EMBEDDED_CPU=1", 1, None),
    ("INTERNAL_CPU_PAGE_SUPPLIER", _OWNER, 0, None),
    ("INTERNAL_CPU_ESWITCH_MANAGER", _OWNER, 0, None),
    ("INTERNAL_CPU_IB_VPORT0", _OWNER, 0, None),
    ("INTERNAL_CPU_OFFLOAD_ENGINE", "ENABLED=0,DISABLED=1", 0, None),
)
_PORT: tuple[tuple[str, int | str, int, tuple[int, int] | None], ...] = (
    ("LINK_TYPE", "IB=1,ETH=2", 2, None),
    ("KEEP_ETH_LINK_UP", BOOLEAN, 1, None),
    ("ROCE_CC_PRIO_MASK", 8, 255, None),
    ("CLAMP_TGT_RATE_AFTER_TIME_INC", BOOLEAN, 1, None),
    ("CLAMP_TGT_RATE", BOOLEAN, 0, None),
    ("RPG_TIME_RESET", 17, 300, None),
    ("RPG_BYTE_RESET", 32, 32767, (0, 32767)),
    ("RPG_THRESHOLD", 5, 1, None),
    ("RPG_MAX_RATE", 32, 0, None),
    ("RPG_AI_RATE", 32, 5, (0, 131071)),
    ("RPG_HAI_RATE", 32, 50, (0, 131071)),
    ("RPG_GD", 4, 11, None),
    ("RPG_MIN_DEC_FAC", 8, 50, (1, 100)),
    ("RPG_MIN_RATE", 32, 1, (0, 131071)),
    ("RATE_TO_SET_ON_FIRST_CNP", 32, 0, (0, 131071)),
    ("DCE_TCP_G", 10, 1019, (1, 1023)),
    ("DCE_TCP_RTT", 17, 1, (1, 131071)),
    ("RATE_REDUCE_MONITOR_PERIOD", 17, 4, (1, 131071)),
    ("INITIAL_ALPHA_VALUE", 10, 1023, None),
    ("MIN_TIME_BETWEEN_CNPS", 17, 4, None),
    ("CNP_802P_PRIO", 3, 6, None),
    ("CNP_DSCP", 6, 48, None),
    ("ROCE_RTT_RESP_DSCP", 6, 0, None),
    ("ROCE_RTT_RESP_DSCP_MODE", "DEVICE_DEFAULT=0,FIXED_VALUE=1,RX_PACKET=2", 0, None),
    ("LLDP_NB_DCBX", BOOLEAN, 0, None),
    ("LLDP_NB_RX_MODE", _LLDP, 0, None),
    ("LLDP_NB_TX_MODE", _LLDP, 0, None),
    ("DCBX_IEEE", BOOLEAN, 1, None),
    ("DCBX_CEE", BOOLEAN, 1, None),
    ("DCBX_WILLING", BOOLEAN, 1, None),
)
HIDDEN = {"MAX_ACC_OUT_READ": "ADVANCED_PCI_SETTINGS"}
"""Parameter -> the switch that must be on before it is shown."""


class Wrong(Exception):
    """A value that the tool refuses; the text is the tool's."""


class Parameter:
    """One parameter of an adapter."""

    def __init__(self, name: str, kind: int | str, factory: int, limits: tuple[int, int] | None) -> None:
        self.name, self.factory, self.limits = name, factory, limits
        self.words: dict[int, str] = {}
        self.bits = 0
        if isinstance(kind, str):
            self.words = {
                int(number): word for word, _, number in (w.partition("=") for w in kind.split(","))
            }
        else:
            self.bits = kind

    def parse(self, text: str) -> int:
        """The number that a text means; words are not looked at by case (mstflint takes any)."""
        if self.words:
            for number, word in self.words.items():
                if text.lower() in {word.lower(), str(number), hex(number)}:
                    return number
            raise Wrong(f"Unknown value {text}")
        try:
            value = int(text, 0)
        except ValueError as error:
            raise Wrong("Cannot parse the value") from error
        if not 0 <= value < 1 << self.bits:
            raise Wrong(f"The value {text} is not valid,  as its size is {self.bits} bits")
        return value

    def check(self, value: int) -> None:
        """Refuse what is outside the limits, which the tool looks at only when it applies."""
        if self.limits and value > self.limits[1]:
            raise Wrong(f"Parameter {self.name}' value is larger than maximum allowed {self.limits[1]}")
        if self.limits and value < self.limits[0]:
            raise Wrong(f"Parameter {self.name}' value is smaller than minimum allowed {self.limits[0]}")

    def shown(self, value: int) -> str:
        """`True(1)`, `255`, `ETH(2)`."""
        return f"{self.words[value]}({value})" if value in self.words else str(value)


def adapter(bdf: str) -> str:
    """The adapter behind a PCI function: `0000:1b:00`."""
    return bdf.rpartition(".")[0]


def ports(bdf: str) -> list[PortFacts]:
    """The mlx5 ports of the adapter of a function, in the order of their functions: _P1, _P2."""
    mlx5 = (port for port in store.facts()["ports"] if port["nic"] == "mlx5" and not port["parent"])
    same = (port for port in mlx5 if adapter(port["bdf"]) == adapter(bdf))
    return sorted(same, key=lambda port: port["bdf"])


def parameters(bdf: str) -> dict[str, Parameter]:
    """Everything that an adapter may have, by name."""
    found = {row[0]: Parameter(*row) for row in _ADAPTER}
    own = ports(bdf)
    if any(store.trait(port, "bluefield") for port in own):
        found = {row[0]: Parameter(*row) for row in _BLUEFIELD} | found
    for number, port in enumerate(own, 1):
        for name, kind, factory, limits in _PORT:
            if name != "LINK_TYPE" or not store.trait(port, "fixed-link-type"):
                found[f"{name}_P{number}"] = Parameter(f"{name}_P{number}", kind, factory, limits)
    return found


def flash(bdf: str) -> dict[str, dict[str, int]]:
    """`current` and `next` values of an adapter, factory values where nothing was written."""
    kept = store.read(store.FLASH).get(f"nv {adapter(bdf)}", {})
    factory = {name: parameter.factory for name, parameter in parameters(bdf).items()}
    return {when: {**factory, **kept.get(when, {})} for when in ("current", "next")}


def write(bdf: str, values: dict[str, int] | None) -> None:
    """Values for the next boot; None takes everything back to the factory's."""
    with store.opened(store.FLASH) as kept:
        slot = kept.setdefault(f"nv {adapter(bdf)}", {})
        slot["next"] = {**slot.get("next", {}), **values} if values is not None else {}


def take_over(bdf: str) -> None:
    """A reset or reboot: what was meant for the next boot is now in force."""
    with store.opened(store.FLASH) as kept:
        slot = kept.get(f"nv {adapter(bdf)}", {})
        if "next" in slot:
            slot["current"] = dict(slot["next"])


def _physical(port: PortFacts) -> PortFacts:
    """The port itself, or that whose virtual function it is."""
    if not port["parent"]:
        return port
    return next(other for other in store.facts()["ports"] if other["netdev"] == port["parent"])


def of_port(port: PortFacts) -> dict[str, int]:
    """Values in force, those of this port without `_P1`; a virtual function has those of its port."""
    port = _physical(port)
    number = [other["netdev"] for other in ports(port["bdf"])].index(port["netdev"]) + 1
    return {name.removesuffix(f"_P{number}"): value for name, value in flash(port["bdf"])["current"].items()}


def embedded(port: PortFacts) -> bool:
    """True for a BlueField in DPU mode: its own processor owns the port, not this host."""
    if port["nic"] != "mlx5" or not store.trait(port, "bluefield"):
        return False
    values = flash(_physical(port)["bdf"])["current"]
    return values["INTERNAL_CPU_MODEL"] == 1 and values["INTERNAL_CPU_OFFLOAD_ENGINE"] == 0
