"""What `templates/sonic/config_db.json.j2` may use: the rows of CONFIG_DB that we own, as values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    """mtu of a row of PORT, PORTCHANNEL or VLAN."""

    table: str
    name: str
    mtu: int


@dataclass(frozen=True, slots=True)
class Direction:
    """pfc_asym of a port."""

    port: str
    asymmetric: bool


@dataclass(frozen=True, slots=True)
class CodeMap:
    """A whole map: (code point or traffic class, what it becomes)."""

    table: str
    name: str
    pairs: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Server:
    """A scheduler; `cap` in bytes per second, 0 for none."""

    name: str
    strict: bool
    weight: int
    cap: int


@dataclass(frozen=True, slots=True)
class Colour:
    """Thresholds in bytes and probability in percent of one packet colour."""

    name: str
    low: int
    high: int
    percent: int


@dataclass(frozen=True, slots=True)
class Ramp:
    """A WRED profile that marks."""

    name: str
    colours: tuple[Colour, ...]


@dataclass(frozen=True, slots=True)
class Binding:
    """What PORT_QOS_MAP says about a port; "" and () are not written."""

    port: str
    dscp: str = ""
    pcp: str = ""
    queues: str = ""
    groups: str = ""
    pauses: str = ""
    starts: str = ""
    pfc: tuple[int, ...] = ()
    watched: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Queue:
    """Scheduler and marking of one queue."""

    port: str
    queue: int
    scheduler: str = ""
    ramp: str = ""


@dataclass(frozen=True, slots=True)
class Cable:
    """Length of a port's cable in metres."""

    row: str
    port: str
    metres: int


@dataclass(frozen=True, slots=True)
class Headroom:
    """A lossless buffer profile written by hand; bytes."""

    name: str
    pool: str
    size: int
    xon: int
    xoff: int
    threshold: int
    xon_offset: int


@dataclass(frozen=True, slots=True)
class Group:
    """The buffer profile of a port's priority group."""

    port: str
    group: int
    profile: str


@dataclass(frozen=True, slots=True)
class Guard:
    """The PFC watchdog of a port; milliseconds."""

    port: str
    action: str
    detect: int
    restore: int


@dataclass(frozen=True, slots=True)
class Rows:
    """Everything that `config_db.json.j2` may use."""

    sizes: tuple[Size, ...] = ()
    directions: tuple[Direction, ...] = ()
    maps: tuple[CodeMap, ...] = ()
    servers: tuple[Server, ...] = ()
    ramps: tuple[Ramp, ...] = ()
    bindings: tuple[Binding, ...] = ()
    queues: tuple[Queue, ...] = ()
    cables: tuple[Cable, ...] = ()
    headrooms: tuple[Headroom, ...] = ()
    groups: tuple[Group, ...] = ()
    guards: tuple[Guard, ...] = ()
    poll: int = 0
