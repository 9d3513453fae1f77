"""Sets of structures under a budget, beside the best by trying all."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hypothesis import given
from hypothesis import strategies as st

from secateur.index.advise.choose import best_of_all, choose

BLOCKS = 12
STRUCTURES = st.dictionaries(
    st.sampled_from("abcdefg"), st.tuples(st.integers(1, 9), st.sets(st.integers(0, BLOCKS - 1))), min_size=1
)


def left(structures: Mapping[str, tuple[int, set[int]]], chosen: Collection[str]) -> float:
    """Blocks that no chosen structure rules out."""
    return float(BLOCKS - len(set().union(*(structures[s][1] for s in chosen))))


@given(structures=STRUCTURES, budget=st.integers(0, 30))
def test_what_is_chosen_fits_and_saves_at_least_a_third_of_the_most(
    structures: dict[str, tuple[int, set[int]]], budget: int
) -> None:
    sizes = {s: size for s, (size, _) in structures.items()}
    chosen = choose(sizes, [], lambda some: left(structures, some), budget)
    assert sum(sizes[s] for s in chosen) <= budget
    assert len(set(chosen)) == len(chosen)
    best = best_of_all(sizes, lambda some: left(structures, some), budget)
    assert BLOCKS - left(structures, chosen) >= (BLOCKS - left(structures, best)) / 3
    for s in chosen:  # each is needed beside the others
        assert left(structures, [other for other in chosen if other != s]) > left(structures, chosen)


@given(structures=STRUCTURES, budget=st.integers(0, 30))
def test_the_order_is_by_what_is_saved_per_byte(structures: dict[str, tuple[int, set[int]]], budget: int) -> None:
    sizes = {s: size for s, (size, _) in structures.items()}
    chosen = choose(sizes, [], lambda some: left(structures, some), budget)
    rates = [
        (left(structures, chosen[:i]) - left(structures, chosen[: i + 1])) / sizes[s] for i, s in enumerate(chosen)
    ]
    assert rates == sorted(rates, reverse=True)


def test_what_saves_only_together_is_chosen_together() -> None:
    """As under OR: none alone rules out a block."""

    def cost(some: frozenset[str]) -> float:
        return 10.0 if {"a", "b", "c"} <= some else 90.0 if "d" in some else 100.0

    sizes = {"a": 3, "b": 2, "c": 1, "d": 1}
    assert choose(sizes, [], cost, 6) == ["d"]
    assert choose(sizes, [["a", "b", "c"]], cost, 6) == ["c", "b", "a"]
    assert choose(sizes, [["a", "b", "c"]], cost, 5) == ["d"]


def test_what_saves_nearly_nothing_is_not_chosen() -> None:
    assert choose({"a": 1}, [], lambda some: 10_000.0 - 5 * len(some), 1) == []


def test_an_exchange_finds_what_greed_does_not() -> None:
    """The best by byte, and the best by itself, are each in the way of two that fill the budget."""
    saves = {"a": 60, "b": 55, "c": 50, "d": 9}
    sizes = {"a": 6, "b": 5, "c": 5, "d": 1}
    chosen = choose(sizes, [], lambda some: 1000.0 - sum(saves[s] for s in some), 10)
    assert sorted(chosen) == ["b", "c"]
