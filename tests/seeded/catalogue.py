"""All kinds of faults, the sound fabrics that they are put into, and the variants that the tests run."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.seeded import subnet_faults, subnets
from tests.seeded.fabrics import Data, Fabric, Plan, _control, _two_lossless, clos, intent
from tests.seeded.faults import KINDS, Kind

assert subnet_faults.KINDS is KINDS, "both lists of faults are one"

_MIX = ("eos", "sonic", "cumulus", "sonic-th5")
_WIDE = Plan(leaves=4, spines=2, hosts=8, rails=4)


def _plan(**more: Any) -> Plan:
    return Plan(**{**_WIDE.__dict__, **more})


def bases() -> dict[str, Fabric]:
    """Sound fabrics to be broken: wide enough for a majority."""
    rng = random.Random(0)
    found = {
        "mixed": clos("mixed", _plan(vendors=_MIX), intent("mixed"), rng),
        "eos": clos("eos", _plan(), intent("eos"), rng),
        "sonic": clos("sonic", _plan(vendors=("sonic",), spine_vendor="sonic-th5"), intent("sonic"), rng),
        "cumulus": clos(
            "cumulus", _plan(vendors=("cumulus",), spine_vendor="cumulus"), intent("cumulus"), rng
        ),
        "control": clos("control", _plan(vendors=("eos", "cumulus")), _wish(_control), rng),
        "two": clos("two", _plan(vendors=("sonic", "eos")), _wish(_two_lossless), rng),
        "nccl": clos("nccl", _plan(), intent("nccl"), rng),
        "ofed": clos("ofed", _plan(), intent("ofed"), rng),
        "storage": clos("storage", _plan(storage="own", short=True), _stored(), rng),
        "shared": clos("shared", _plan(storage="shared", short=True), _stored(), rng),
        "bond": clos("bond", _plan(storage="shared", bond=True), _stored(), rng),
        "tiers": clos("tiers", _plan(leaves=2, spines=2, hosts=4, rails=2, pods=3), intent("tiers"), rng),
    }
    found["nv"] = clos("nv", _plan(), intent("nv"), rng)
    found["nv"].intent["hosts"] |= {
        "nv": {"mlx5": {"CNP_DSCP": 48, "ROCE_CC_PRIO_MASK": 255}},
        "firmware": {"mlx5": {"MT_0000000838": ["28.43.*"]}},
    }
    found["nccl"].intent["hosts"]["nccl"] = True
    for group in found["ofed"].groups.values():
        if group["data"]["role"] == "host":
            group["data"]["stack"] = "ofed"
    pod = subnets.PODS["ib-tree"]
    found |= {
        "ib-tree": subnets.alone("ib-tree", pod),
        "ib-lanes": subnets.alone("ib-lanes", pod, subnets.SUBNETS["lanes"]),
        "ib-guarded": subnets.alone("ib-guarded", pod, subnets.SUBNETS["guarded"]),
        "ib-rails": subnets.alone("ib-rails", subnets.PODS["ib-rails"]),
        "beside": subnets.beside(clos("beside", _plan(vendors=("eos", "sonic")), intent("beside"), rng), pod),
    }
    return found


def _wish(change: Callable[[Data], None]) -> Data:
    found = intent("base")
    change(found)
    return found


def _stored() -> Data:
    return intent("storage", networks={"compute": {}, "storage": {}})


@dataclass(frozen=True)
class Variant:
    """One fabric with one fault, or with two at different places."""

    kinds: tuple[Kind, ...]
    base: str
    seed: int

    @property
    def name(self) -> str:
        """For reports."""
        return f"{self.base}-{self.seed}: " + " + ".join(one.name for one in self.kinds)

    @property
    def of_files(self) -> tuple[Kind, ...]:
        """Those of the files, which come first."""
        return tuple(one for one in self.kinds if one.where != "observed")

    @property
    def of_devices(self) -> tuple[Kind, ...]:
        """Those of what devices have."""
        return tuple(one for one in self.kinds if one.where == "observed")


SINGLE = 6
"""Variants of each kind."""
PAIRS = 200
"""Variants with two faults."""


def variants(names: tuple[str, ...]) -> Iterator[Variant]:
    """Every kind at several places, then pairs of kinds."""
    roce = tuple(name for name in names if not name.startswith("ib-"))
    for index, one in enumerate(KINDS):
        fit = one.bases or roce
        for number in range(SINGLE):
            yield Variant((one,), fit[(index + number) % len(fit)], number)
    rng = random.Random(1)
    free = [one for one in KINDS if not one.alone]
    made = 0
    while made < PAIRS:
        one, other = rng.sample(free, 2)
        both = [name for name in (one.bases or roce) if name in (other.bases or roce)]
        if both:
            yield Variant((one, other), rng.choice(both), made)
            made += 1
