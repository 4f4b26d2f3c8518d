"""Platforms: one module per switch OS, host OS, NIC family or service; found by name, no list to edit.

The core uses the functions below, which put a node together from its parts; it never names a platform.
"""

from rdma_fabric.platforms._node import (
    activation,
    artifacts,
    bases,
    change,
    forget,
    keys,
    local_check,
    nics,
    overlay,
    parse,
    parts,
    platform,
    probes,
    questions,
    realize,
    tester,
    vital_questions,
    vitals,
    with_local_check,
)

__all__ = [
    "activation",
    "artifacts",
    "bases",
    "change",
    "forget",
    "keys",
    "local_check",
    "nics",
    "overlay",
    "parse",
    "parts",
    "platform",
    "probes",
    "questions",
    "realize",
    "tester",
    "vital_questions",
    "vitals",
    "with_local_check",
]
