"""What the reference pages print of host tools, and what a reader must make of each: written by reading them.

Every sample is taken from its page when the test runs, by page and anchor (the first line of a fence or of a
command in one, else the whole code span). The values here are ours; no sample's text is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

MLX5, BNXT, IRDMA, COMMON = (f"host_linux_{name}.md" for name in ("mlx5", "bnxt", "irdma", "common"))
Place = tuple[str, str]
"""(page, anchor)."""


def _whole(text: str) -> str:
    return text


@dataclass(frozen=True)
class Read:
    """One sample as the answer to one of our questions, and the neutral values that it says.

    Paths are those of a port's settings; "stored." before one means the next boot. `edit` makes a whole
    answer of what the page shortens; `why` says what it adds.
    """

    place: Place
    part: str
    section: str
    found: Mapping[str, Any]
    edit: Callable[..., str] = _whole
    why: str = ""
    beside: Mapping[str, str] = field(default_factory=dict)
    """Sections that the host answers beside it, where they matter."""
    frame: Place | None = None
    """Another sample in which `edit` puts this one: it is called with both texts then."""
    options: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    one_number: bool = False
    """A file that holds nothing but a number: half of it is another number."""
    no_end: str = ""
    """Why half of it cannot be told from the whole."""
    gone: str = ""
    """What half of a list without an end says of the rest: it must block a write as well."""

    @property
    def name(self) -> str:
        """For pytest."""
        return f"{self.part}-{self.section}-{self.place[1][:24]}{'-whole' if self.why else ''}"


# ---------------------------------------------------------------- mlnx_qos

_POINTS = {26: 3, 48: 6}
MAP = [_POINTS.get(point, 0) for point in range(64)]


def _spread(name: str, values: list[Any]) -> dict[str, Any]:
    return {f"qos.classes.{priority}.{name}": value for priority, value in enumerate(values)}


def _pfc(*on: int) -> dict[str, Any]:
    bits = [priority in on for priority in range(8)]
    return _spread("pfc_tx", bits) | _spread("pfc_rx", bits)


def _shares(weights: str, cap: Any) -> dict[str, Any]:
    """ "50 0 s": a number is a weight, "s" is strict, "?" is not told."""

    def one(word: str) -> Any:
        if word == "?":
            return "unknown"
        strict = word == "s"
        return {
            "scheduler": "strict" if strict else "dwrr",
            "weight": 0 if strict else int(word),
            "cap": cap,
        }

    return _spread("share", [one(word) for word in weights.split()])


def mlnx_qos_whole(text: str) -> str:
    """The print with all 64 points and all eight classes: the page shows eighteen points and three classes.

    We ask with -a, which prints every class, and no host has priorities without one.
    """
    head, _, rest = text.partition("dscp2prio mapping:\n")
    _, _, tail = rest.partition("\tprio:6 dscp:48,\n")
    zero = [point for point in range(64) if point not in _POINTS]
    rows = [
        f"\tprio:0 dscp:{''.join(f'{point:02d},' for point in zero[at : at + 8])}"
        for at in range(0, len(zero), 8)
    ]
    lists = "\n".join([*rows, "\tprio:3 dscp:26,", "\tprio:6 dscp:48,"])
    before, *blocks = tail.split("tc: ")
    shown = {block[0]: block.strip("\n") for block in blocks}
    classes = "\n".join(
        "tc: " + shown.get(tc, f"{tc} ratelimit: unlimited, tsa: ets, bw: 0%\n\t priority:  {tc}")
        for tc in "01234567"
    )
    return f"{head}dscp2prio mapping:\n{lists}\n{before}{classes}"


def _falling(span: str, frame: str) -> str:
    """Older releases list the points of a priority from the highest down."""
    assert span == "07,06,..."
    rows = mlnx_qos_whole(frame).split("\n")
    for index, row in enumerate(rows):
        head, sign, points = row.partition("dscp:")
        if sign and head.startswith("\tprio:"):
            rows[index] = f"{head}dscp:{','.join(reversed(points.strip(',').split(',')))},"
    return "\n".join(rows)


_MLNX_QOS: dict[str, Any] = {
    "qos.trust": "dscp",
    "qos.dcbx": "none",
    "qos.cable_m": 20,
    **_pfc(3),
    **_spread("group", [0] * 8),
    **_spread("headroom", [262016] * 8),
}
_MLNX_QOS_WHOLE: dict[str, Any] = {
    **_MLNX_QOS,
    "qos.dscp_to_priority": MAP,
    **_shares("50 0 0 50 0 0 s 0", None),
    **_spread("queue", list(range(8))),
}
_FENCE = (MLX5, "DCBX mode: OS controlled")
_WARNING = (MLX5, "****** WARNING: lldpad service is running and may overwrite your settings ******")
_QOS = [
    Read(
        _FENCE,
        "nic_mlx5",
        "qos",
        {
            **_MLNX_QOS,
            # Eighteen of 64 points, three of eight classes: neither table is whole.
            "qos.dscp_to_priority": "unknown",
            **_shares("? ? ? ? ? ? ? ?", None),
            **_spread("queue", ["unknown"] * 8),
        },
        notes=("lists 16 of 64 DSCPs",),
    ),
    Read(_FENCE, "nic_mlx5", "qos", _MLNX_QOS_WHOLE, mlnx_qos_whole, "all points and classes"),
    Read(
        (MLX5, "07,06,..."),
        "nic_mlx5",
        "qos",
        _MLNX_QOS_WHOLE,
        _falling,
        "points from the highest down",
        frame=_FENCE,
    ),
]


def _framed(old: str, new: str) -> Callable[[str, str], str]:
    """The whole print of mlnx_qos with one text as the span has it: {} in `new`."""
    return lambda span, frame: mlnx_qos_whole(frame).replace(old, new.format(span), 1)


def _without_buffers(span: str, frame: str) -> str:
    rows = [row for row in mlnx_qos_whole(frame).split("\n") if not row.startswith(("Receive", "\tbuffer"))]
    return "\n".join([span, *rows])


def _by_tag(span: str, frame: str) -> str:
    """Trust pcp: there is no list of points."""
    head, _, rest = mlnx_qos_whole(frame).partition("dscp2prio mapping:\n")
    rows = [row for row in rest.split("\n") if not row.startswith("\tprio:")]
    return head.replace("state: dscp", f"state: {span}") + "\n".join(rows)


_NO_GROUPS = _spread("group", ["unknown"] * 8) | _spread("headroom", ["unknown"] * 8)
_QOS += [
    Read(
        _WARNING,
        "nic_mlx5",
        "qos",
        _MLNX_QOS_WHOLE,
        _framed("DCBX", "{}\n\nDCBX"),
        "the print after the warning",
        frame=_FENCE,
        notes=("lldpad is running",),
    ),
    Read(
        (MLX5, "Buffers commands are not supported on your system"),
        "nic_mlx5",
        "qos",
        _MLNX_QOS_WHOLE | _NO_GROUPS,
        _without_buffers,
        "the print without buffers",
        frame=_FENCE,
    ),
    Read(
        (MLX5, "DCBX mode: Firmware controlled"),
        "nic_mlx5",
        "qos",
        _MLNX_QOS_WHOLE | {"qos.dcbx": "firmware"},
        _framed("DCBX mode: OS controlled", "{}"),
        "the rest of the print",
        frame=_FENCE,
        notes=("DCBX runs in firmware",),
    ),
    Read(
        (MLX5, "%.1f Gbps"),
        "nic_mlx5",
        "qos",
        _MLNX_QOS_WHOLE | {"qos.classes.6.share": {"scheduler": "strict", "weight": 0, "cap": 10}},
        # 40 of the port's 400 Gbit/s.
        lambda span, frame: mlnx_qos_whole(frame).replace(
            "6 ratelimit: unlimited", f"6 ratelimit: {span % 40}"
        ),
        "the rest of the print",
        frame=_FENCE,
    ),
    Read(
        (MLX5, "pcp"),
        "nic_mlx5",
        "qos",
        _MLNX_QOS_WHOLE
        | {
            "qos.trust": "pcp",
            "qos.dscp_to_priority": "not applicable",
            "qos.pcp_to_priority": list(range(8)),
        },
        _by_tag,
        "the rest of the print",
        frame=_FENCE,
    ),
]

# ---------------------------------------------------------------- dcb

_DCB_PFC = (MLX5, "$ dcb -j pfc show dev <if>")
_DCB_ETS = (MLX5, "$ dcb -j ets show dev <if>")
_DCB_APP = (MLX5, "$ dcb -j app show dev <if>")
_DCB_BUFFER = (MLX5, "$ dcb -j buffer show dev <if>")
_DCB_COUNTERS = (MLX5, "$ dcb -s -j pfc show dev <if>     # adds counters")
_DCB_PAIRS = (MLX5, "[key, prio]")
_INBOX = {"stack": "inbox"}


def _table(text: str) -> str:
    """Lists that the page leaves out, "[...]" and "[0,...]", as eight zeros; mlx5 has no use for them."""
    zeros = "[0,0,0,0,0,0,0,0]"
    text = text.replace(
        '"reco_tc_tsa":[...]',
        '"reco_tc_tsa":["strict","strict","strict","strict","strict","strict","strict","strict"]',
    )
    return text.replace("[0,...]", zeros).replace("[...]", zeros)


def _pairs(span: str, frame: str) -> str:
    """Entries as up to 6.4: without the stray third item."""
    assert span == "[key, prio]"
    return frame.replace('," "]', "]")


_EIGHT_QUEUES = _spread("queue", list(range(8)))
_ENTRIES = {"qos.trust": "dscp", "qos.dscp_to_priority": "unknown"}


def _of_dcb(part: str, cap: str, **apps: Any) -> list[Read]:
    """The page's four objects as this part reads them."""
    shown = _shares("50 0 0 50 0 0 s 0", cap)
    cable = {"qos.cable_m": 20} if part == "nic_mlx5" else {}
    return [
        Read(_DCB_PFC, part, "pfc", {**_pfc(3), **cable}, options=_INBOX),
        Read(
            _DCB_COUNTERS,
            part,
            "pfc",
            {**_pfc(3), **cable},
            lambda tail, frame: frame.rstrip("}") + "," + tail.removeprefix("... "),
            "what the page puts dots for",
            frame=_DCB_PFC,
            options=_INBOX,
        ),
        Read(
            _DCB_ETS, part, "ets", {**shown, **_EIGHT_QUEUES}, _table, "lists shown as dots", options=_INBOX
        ),
        Read(_DCB_APP, part, "app", apps["found"], options=_INBOX, notes=apps["notes"]),
        Read(
            _DCB_PAIRS,
            part,
            "app",
            apps["found"],
            _pairs,
            "the entries of the newer release",
            frame=_DCB_APP,
            options=_INBOX,
            notes=apps["notes"],
        ),
    ]


_DCB = [
    *_of_dcb("nic_mlx5", "unknown", found=_ENTRIES, notes=("lists 3 of 64 DSCPs",)),
    # Here a DSCP without an entry stays in the default class.
    *_of_dcb(
        "nic_bnxt",
        "not applicable",
        found={"qos.trust": "dscp", "qos.dscp_to_priority": MAP},
        notes=(),
    ),
    *_of_dcb("nic_irdma", "not applicable", found=_ENTRIES, notes=("61 DSCPs have no entry",)),
    Read(
        _DCB_BUFFER,
        "nic_mlx5",
        "buffer",
        _spread("group", [0, 0, 0, 1, 0, 0, 0, 0]) | _spread("headroom", [131072] * 8),
        options=_INBOX,
    ),
    *(
        Read(
            (MLX5, "dcb dcbx set dev <if> host ieee"),
            part,
            "dcbx",
            {"qos.dcbx": "none"},
            # dcb_dcbx.c prints the words that it takes.
            lambda command: command.split(" <if> ")[1] + " ",
            "the words that the command takes, as it prints them",
            options=_INBOX,
            no_end="either word stands alone too",
        )
        for part in ("nic_mlx5", "nic_bnxt", "nic_irdma")
    ),
    Read(
        (BNXT, "dgram-port-prio"),
        "nic_bnxt",
        "app",
        {"marking.parameters.rp_roce_prio": "3"},
        lambda word: f'{{"{word.replace("-", "_")}":[[4791,3," "]]}}',
        "the page's entry 4791:3 under that name",
        options=_INBOX,
    ),
]

# ---------------------------------------------------------------- ethtool


def _pause(port: str, more: tuple[str, ...] = ()) -> Callable[[str], str]:
    def show(span: str) -> str:
        head = f"Pause parameters for {port}:\nAutonegotiate:\toff\n"
        assert span in ("RX:", "TX:")
        return head + "RX:\t\toff\nTX:\t\toff" + "".join(f"\n{label} off" for label in more)

    return show


_ETHTOOL = [
    *(
        Read(
            (MLX5, label),
            "nic_mlx5",
            "pause",
            {"qos.global_pause": False},
            _pause("eth0"),
            "the other lines, both off",
        )
        for label in ("RX:", "TX:")
    ),
    *(
        Read(
            (IRDMA, label),
            "nic_irdma",
            "pause",
            {"qos.global_pause": False},
            _pause("ens8", ("RX negotiated:", "TX negotiated:")),
            "the other lines, all off",
        )
        for label in ("RX:", "TX:")
    ),
    *(
        Read(
            (IRDMA, line),
            "nic_irdma",
            "flags",
            {"qos.dcbx": "none"},
            lambda line: (
                f"Private flags for ens8:\nlink-down-on-close     : off\n{line}\nvf-vlan-pruning : off"
            ),
            "the flags around it",
        )
        for line in ("fw-lldp-agent     : off", "fw-lldp-agent     :off")
    ),
    Read(
        (MLX5, "firmware-version:"),
        "nic_mlx5",
        "driver",
        {"nic.firmware": "28.43.3608", "nic.driver": "24.10-1.1.4", "nic.board": "MT_0000000838"},
        lambda label: (
            f"driver: mlx5_core\nversion: 24.10-1.1.4\n{label} 28.43.3608 (MT_0000000838)\n"
            "expansion-rom-version: \nbus-info: 0000:1b:00.0"
        ),
        "the other lines and a version",
    ),
]

# ---------------------------------------------------------------- the card


def _devinfo(device: str) -> Callable[[str], str]:
    return lambda line: (
        f"hca_id:\t{device}\n\ttransport:\t\t\tInfiniBand (0)\n\tphys_port_cnt:\t\t\t1\n"
        f"\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tmax_mtu:\t\t4096 (5)\n"
        f"\t\t\t{line}\n\t\t\tlink_layer:\t\tEthernet"
    )


_NV = (MLX5, "Configurations:                              Default         Current         Next Boot")
_DEVICES = {"nic_mlx5": "mlx5_0", "nic_bnxt": "bnxt_re0", "nic_irdma": "rocep24s0f0", "nic_generic": "rxe0"}
_CARD = [
    *(
        Read(
            (page, anchor),
            part,
            "verbs",
            {"nic.rdma_mtu": 4096},
            _devinfo(device),
            "the lines around it",
        )
        for page, anchor in ((MLX5, "active_mtu:  4096 (5)"), (COMMON, "active_mtu:\t\t4096 (5)"))
        for part, device in _DEVICES.items()
    ),
    Read(
        (MLX5, "n_gids_found=<n>"),
        "nic_mlx5",
        "show_gids",
        {"nic.gids": [3]},
        lambda last: (
            "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV\n"
            "---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---\n"
            "mlx5_0\t1\t0\tfe80:0000:0000:0000:0ac0:ebff:fe21:03da\t\t\tv1\teth0\n"
            "mlx5_0\t1\t2\t0000:0000:0000:0000:0000:ffff:c000:0201\t192.0.2.1  \tv1\teth0\n"
            "mlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:c000:0201\t192.0.2.1  \tv2\teth0\n"
            + last.replace("<n>", "3")
        ),
        "rows, tab separated as the page says",
    ),
    Read(
        _NV,
        "nic_mlx5",
        "nv",
        {
            "nic.nv.ROCE_CC_PRIO_MASK": "255",
            "stored.nic.nv.ROCE_CC_PRIO_MASK": "8",
            "nic.nv.CNP_DSCP": "48",
            "stored.nic.nv.CNP_DSCP": "48",
            "nic.nv.LLDP_NB_DCBX": "0",
            "stored.nic.nv.LLDP_NB_DCBX": "0",
        },
        options={"nv": "ROCE_CC_PRIO_MASK CNP_DSCP LLDP_NB_DCBX"},
        facts={"nv eth0": "mlxconfig CNP_DSCP_P1 LLDP_NB_DCBX_P1 ROCE_CC_PRIO_MASK_P1"},
        # Its card has no such setting.
        gone="not applicable",
    ),
]

# ---------------------------------------------------------------- marking

_MARKING = [
    *(
        Read(
            (MLX5, "106"),
            part,
            "tos",
            # Without the two ECN bits.
            {"marking.rdma_cm_tos": 104},
            one_number=True,
        )
        for part in _DEVICES
    ),
    *(
        Read((MLX5, words), part, "mode", {"marking.roce_v2": words == "RoCE v2"})
        for words in ("RoCE v2", "IB/RoCE v1")
        for part in ("nic_mlx5", "nic_bnxt", "nic_generic")
    ),
    Read((MLX5, "Global tclass=106"), "nic_mlx5", "tclass", {"marking.traffic_class": 104}, one_number=True),
]

# ---------------------------------------------------------------- niccli and bnxt's files

GET_QOS = (BNXT, "IEEE 8021QAZ ETS Configuration TLV:")
VENDOR_MAP = [{26: 3, 48: 7}.get(point, 0) for point in range(64)]
_NICCLI: dict[str, Any] = {
    **_pfc(3),
    **_spread("queue", [0, 0, 0, 1, 0, 0, 0, 2]),
    **_shares("50 50 50 50 50 50 50 s", "not applicable"),
    "qos.dscp_to_priority": VENDOR_MAP,
    "marking.parameters.rp_roce_prio": "3",
}
_BNXT = [
    Read(GET_QOS, "nic_bnxt", "qos", _NICCLI, facts={"classes eth8": "3"}),
    Read(
        (BNXT, "PFC enabled: none"),
        "nic_bnxt",
        "qos",
        _NICCLI | _pfc(),
        lambda span, frame: frame.replace("PFC enabled: 3", span),
        "the rest of the print",
        frame=GET_QOS,
    ),
    Read(
        (BNXT, "ecn status (ecn_enable)\t\t\t\t\t: Enabled"),
        "nic_bnxt",
        "cc",
        {
            "qos.trust": "dscp",
            "marking.np": [3],
            "marking.rp": [3],
            "marking.cnp_dscp": 48,
            "marking.cnp_priority": 6,
            "marking.parameters.rp_ecn_marking": "1",
            "marking.parameters.rp_cc_mode": "1",
            "marking.parameters.rp_g": "8",
            "marking.parameters.rp_inact_th": "10000",
            "marking.parameters.rp_init_cr": str(0xC8),
            "marking.parameters.rp_init_tr": str(0x320),
            "marking.parameters.rp_roce_dscp": "26",
        },
        # What was written last and never applied: none of it may be told.
        lambda text: (
            "cc_mode=0x0\ncnp_dscp=0x2e\ncnp_prio=0x5\ndisable_prio_vlan_tx=0x1\necn_enable=0x0\n"
            f"ecn_marking=0x0\ng=0x9\ninact_th=0x1\ninit_cr=0x2\ninit_tr=0x3\nroce_dscp=0x2c\napply\n{text}"
        ),
        "the files beside it, with other values than the hardware has",
        beside={"app": '{"dscp_prio":[[26,3],[48,6]],"dgram_port_prio":[[4791,3]]}'},
        no_end="which lines come last depends on chip and state; the kernel hands them over in one read",
    ),
    Read(
        (BNXT, "fw_service_prof_type_sup = 1"),
        "nic_bnxt",
        "profile",
        {},
        facts={"profile eth8": "1"},
    ),
]

READS: tuple[Read, ...] = (*_QOS, *_DCB, *_ETHTOOL, *_CARD, *_MARKING, *_BNXT)

# ---------------------------------------------------------------- errors

_NOT_SUPPORTED = "Attribute read: Operation not supported"
_READERS_OF_DCB = tuple(
    (part, section)
    for part in ("nic_mlx5", "nic_bnxt", "nic_irdma")
    for section in ("pfc", "ets", "app", "dcbx")
)
_CMA = tuple((part, section) for part in ("nic_mlx5", "nic_bnxt") for section in ("tos", "mode"))
_BY_MLNX_QOS = (
    "trust and dscp2prio commands cannot be used at the same time.",
    "ETS BW for a strict/vendor TC must be 0",
    "Interface name is required",
    "pfc list must have 8 items",
    "Too many items for PFC",
    "Bad value for PFC: ...",
    "Invalid dscp2prio command. Refer to the help.",
    "dscp2prio command failed",
    "Priority trust state is not supported on your system",
    "ETS features are not supported on your system",
    "Rate limit is not supported on your system!",
)
_BY_CMA = (
    "You must be root to run this",
    "Module rdma_cm is not loaded or does not support configfs",
    "Failed to create configuration for <dev>",
    "Device <dev> port <n> does not exist",
)
_BY_DCB = (
    (COMMON, _NOT_SUPPORTED),
    (COMMON, "Attribute read: No such device"),
    (COMMON, "Attribute write: Operation not supported"),
    (MLX5, _NOT_SUPPORTED),
    (MLX5, "Attribute read: No such device"),
    (MLX5, "Attribute write: Operation not supported"),
    (MLX5, "Attribute write: <strerror text>"),
    (MLX5, "Bandwidth percentages in tc-bw sum to 800%, expected 0%"),
    (BNXT, "Attribute write: Invalid argument"),
    (BNXT, "Attribute write: <strerror>"),
    (IRDMA, "Attribute write: Invalid argument"),
)
ERRORS: Mapping[Place, tuple[tuple[str, str], ...]] = {
    **{(MLX5, text): (("nic_mlx5", "qos"),) for text in _BY_MLNX_QOS},
    **{(MLX5, text): _CMA for text in _BY_CMA},
    **dict.fromkeys(_BY_DCB, _READERS_OF_DCB),
    (COMMON, "netlink error: Operation not supported"): (
        ("nic_mlx5", "pause"),
        ("nic_bnxt", "pause"),
        ("nic_irdma", "pause"),
        ("nic_irdma", "flags"),
        ("nic_mlx5", "driver"),
    ),
}
"""Error text -> the answers that it may stand for: (part, section)."""

# ---------------------------------------------------------------- what no reader of ours is asked for

_A_FILE = (
    "what a host gets, not what it prints: `compile` writes it (tests/golden, tests/lab/test_hosttools_pages)"
)
OTHERS: Mapping[Place, str] = {
    (COMMON, "[Unit]"): _A_FILE,
    (COMMON, "/etc/sysctl.d/90-fabric.conf"): _A_FILE,
    (MLX5, "# once, NV, then firmware reset or reboot"): _A_FILE,
    (BNXT, "ip link set dev $i mtu 9216"): _A_FILE,
    (IRDMA, "# once"): _A_FILE,
    (
        IRDMA,
        "IEEE 8021QAZ ETS Configuration TLV",
    ): "lldptool is never run: its owner lldpad must be off, and dcb tells what the driver has",
    (IRDMA, "PFC enabled: none"): "a line of lldptool, which is never run",
    (
        IRDMA,
        '{"host":true,"ieee":true}',
    ): "`dcb dcbx` is asked without -j: the page says that its key names are "
    "from the source; the words of the plain print are tested above",
    (
        IRDMA,
        "transport: InfiniBand (0)",
    ): "node_type of sysfs tells the protocol; the page marks this as unverified",
    (IRDMA, "Autonegotiate:"): "negotiation of pause says nothing on these drivers; RX and TX are read",
    (BNXT, "Firmware Version"): "the firmware is read by `ethtool -i`; the page has the words alone",
    (BNXT, "RoCE Firmware Version"): "the firmware is read by `ethtool -i`; the page has the words alone",
    (MLX5, "DEV PORT INDEX GID IPv4 VER DEV"): "the head of show_gids, whose rows are read above",
    (COMMON, "Error: mtu greater than device maximum."): "printed by a write; the ceiling is read beforehand "
    "(max_mtu of `ip -d -j link`)",
    (
        COMMON,
        '[{"ifindex":0,"ifname":"mlx5_0","port":1,"state":"ACTIVE","physical_state":"LINK_UP",'
        '"netdev":"ens1f0np0"}]',
    ): "sysfs tells which device a port has (gid_attrs/ndevs); `rdma link` is not asked",
}
"""Place -> why no reader is tested with it."""

ELSEWHERE: Mapping[Place, str] = {
    (BNXT, "1 ) Broadcom BCM57608 1x400G QSFP-DD PCIe Ethernet NIC (Adp#1 Port#1)"): "test_cards_number",
    (BNXT, "1) BCM57608 <mac> <fw> 0000:06:00.0 NIC PCI"): "test_cards_number",
    (BNXT, "TC State Mode"): "test_a_lossy_class_is_told",
    (
        COMMON,
        '[{"ifname":"v1","mtu":9216,"operstate":"UP","min_mtu":68,"max_mtu":65535,"linkinfo":'
        '{"info_kind":"veth"}}]',
    ): "test_a_netdev",
    (
        COMMON,
        "sysctl: cannot stat /proc/sys/net/core/nope: No such file or directory",
    ): "test_a_missing_sysctl",
}
"""Place -> the test in `test_page_samples` that reads it in a way of its own."""
