"""Shortest routes and the buffers that wait along them."""

from __future__ import annotations

import random

import pytest

from rdma_fabric.checker.routes import ALIKE, cycle, reduced, waits


def graph(*pairs: tuple[str, str]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for one, other in pairs:
        found.setdefault(one, set()).add(other)
        found.setdefault(other, set()).add(one)
    return {node: frozenset(others) for node, others in found.items()}


def ring(size: int) -> dict[str, frozenset[str]]:
    return graph(*((f"s{n}", f"s{(n + 1) % size}") for n in range(size)))


def clos(leaves: int, spines: int) -> dict[str, frozenset[str]]:
    return graph(*((f"leaf{leaf}", f"spine{spine}") for leaf in range(leaves) for spine in range(spines)))


def leaves(neighbours: dict[str, frozenset[str]]) -> list[str]:
    return [node for node in neighbours if node.startswith("leaf")]


@pytest.mark.parametrize(("size", "closed"), [(3, False), (4, True), (5, True), (6, True)])
def test_a_ring_waits_in_a_circle_from_four_switches_on(size: int, closed: bool) -> None:
    found = cycle(waits(ring(size), ring(size)))
    assert (len(found) == size) == closed
    assert bool(found) == closed


def test_up_and_down_never_waits_in_a_circle() -> None:
    made = clos(6, 4)
    found = waits(made, leaves(made))
    assert found[("leaf0", "spine1")] == {("spine1", f"leaf{n}") for n in range(1, 6)}
    assert cycle(found) == ()


def test_three_tiers_never_wait_in_a_circle() -> None:
    pairs = [(f"leaf{p}{n}", f"agg{p}{a}") for p in range(3) for n in range(4) for a in range(2)]
    pairs += [(f"agg{p}{a}", f"core{a}{c}") for p in range(3) for a in range(2) for c in range(2)]
    made = graph(*pairs)
    assert cycle(waits(made, leaves(made))) == ()


def test_hosts_on_spines_close_a_circle() -> None:
    made = clos(2, 2)
    assert set(cycle(waits(made, made))) == set(made)


def test_a_chord_opens_a_ring_and_its_failure_closes_it() -> None:
    chord = graph(*(pair for pair in (("s0", "s1"), ("s1", "s2"), ("s2", "s3"), ("s3", "s0"), ("s0", "s2"))))
    assert cycle(waits(chord, chord)) == ()
    assert cycle(waits(ring(4), ring(4))) != ()


def test_islands_and_a_switch_alone() -> None:
    made = {**graph(("a", "b"), ("c", "d")), "e": frozenset()}
    assert cycle(waits(made, made)) == ()


def test_equal_switches_are_kept_three_times() -> None:
    small = reduced(clos(40, 16), lambda node: node.startswith("leaf"))
    assert sorted(small) == [*(f"leaf{n}" for n in range(ALIKE)), *(f"spine{n}" for n in range(ALIKE))]
    apart = reduced(clos(4, 2), lambda node: node)
    assert len(apart) == 6


@pytest.mark.parametrize("seed", range(25))
def test_the_reduced_graph_has_a_circle_when_the_whole_has_one(seed: int) -> None:
    rng = random.Random(seed)
    base = [f"s{n}" for n in range(rng.randint(3, 6))]
    pairs = [(a, b) for a in base for b in base if a < b and rng.random() < 0.5]
    pairs += [(f"leaf{n}", spine) for n in range(6) for spine in rng.choices(base, k=2) if n < 3]
    pairs += [(f"twin{n}", spine) for n in range(5) for spine in base[:2]]
    made = graph(*pairs)
    ends = [node for node in made if not node.startswith("s")]
    small = reduced(made, lambda node: node[0])
    assert bool(cycle(waits(made, ends))) == bool(cycle(waits(small, [n for n in ends if n in small])))
