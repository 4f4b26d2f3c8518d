"""Finds the simulators: one module per platform in `lab.simulators`, private names left out."""

from __future__ import annotations

import importlib
import pkgutil

from rdma_fabric.lab import simulators
from rdma_fabric.lab.simulators._contract import Device


def platforms() -> tuple[str, ...]:
    """Platform names that have a simulator, sorted; imports none of them."""
    found = pkgutil.iter_modules(simulators.__path__)
    return tuple(sorted(module.name for module in found if not module.name.startswith("_")))


def device_class(platform: str) -> type[Device]:
    """The simulator of a platform; LookupError when there is none."""
    if platform not in platforms():
        raise LookupError(f"no simulator for platform '{platform}'; there are {', '.join(platforms())}")
    module = importlib.import_module(f"{simulators.__name__}.{platform}")
    found = module.DEVICE
    if not (isinstance(found, type) and issubclass(found, Device)):
        raise TypeError(f"{module.__name__}.DEVICE is not a Device")
    return found
