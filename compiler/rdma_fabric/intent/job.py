"""What jobs must set so that their RDMA traffic is that of the classes: variables of NCCL and UCX.

Traffic classes are ToS bytes without ECN bits here; a host's files add those. Sources: NCCL
`src/transport/net_ib` and `src/misc/utils.cc` (NCCL_IB_*, lists of interfaces); UCX
`src/uct/ib/base/ib_iface.c` (UCX_IB_TRAFFIC_CLASS takes a ToS byte, 106 on RoCE v2 unless set).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from rdma_fabric.intent.models import Hosts


class _Named(Protocol):
    @property
    def rdma(self) -> str: ...
    @property
    def rail(self) -> str: ...


P = TypeVar("P", bound=_Named)


@dataclass(frozen=True, slots=True)
class JobPort:
    """One RDMA device that jobs use. `tos` of its RoCE class; `level`: service level, where it decides."""

    device: str
    tos: int | None = None
    level: int | None = None


def of_jobs(ports: Iterable[P]) -> list[P]:
    """Ports whose RDMA devices jobs use: the rails where the inventory knows them, else all."""
    able = [port for port in ports if port.rdma]
    return [port for port in able if port.rail] or able


def variables(hosts: Hosts, ports: Sequence[JobPort], management: str) -> dict[str, str]:
    """Name -> value, for `hosts.nccl` and `hosts.ucx`; `management`: an interface outside all networks."""
    tos = next((str(one.tos) for one in ports if one.tos is not None), "")
    level = next((str(one.level) for one in ports if one.level), "")
    devices = [one.device for one in ports]
    found: dict[str, str] = {}
    if hosts.nccl:
        found |= {
            "NCCL_IB_TC": tos,
            "NCCL_IB_SL": level,
            "NCCL_IB_HCA": f"={','.join(devices)}" if devices else "",
            # Without it NCCL takes the first interface that it finds for its bootstrap.
            "NCCL_SOCKET_IFNAME": f"={management}" if management and devices else "",
        }
    if hosts.ucx:
        found |= {
            "UCX_IB_TRAFFIC_CLASS": tos,
            "UCX_IB_SL": level,
            "UCX_NET_DEVICES": ",".join(f"{device}:1" for device in devices),
        }
    return {name: value for name, value in found.items() if value}


def picked(value: str, names: Iterable[str], exact: bool = False) -> frozenset[str]:
    """The names that NCCL takes by a list: `^` leaves out, `=` wants whole names, else beginnings.

    Ports of devices (`mlx5_0:1`) are not told apart. `exact`: UCX, which wants whole names always.
    """
    without = value.startswith("^")
    rest = value.removeprefix("^")
    whole = exact or rest.startswith("=")
    items = [item.partition(":")[0].strip() for item in rest.removeprefix("=").split(",")]
    words = [item for item in items if item]
    every = frozenset(names)
    hit = {
        name for name in every if any(name == word or (not whole and name.startswith(word)) for word in words)
    }
    return every - hit if without else frozenset(hit)
