"""Evaluating predicates over zone maps in memory, against the numpy comparisons that nothing can do without."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import sqlglot

import secateur as sc
from benchmarks.arrays import statistics_of
from benchmarks.results import Ratio, Result, timed
from benchmarks.setting import Setting
from benchmarks.timing import once, race
from secateur.pruning import rangeset
from secateur.pruning.evaluate import evaluate
from secateur.pruning.outcomes import survives
from secateur.pruning.predicate.bind import bind
from secateur.pruning.predicate.bound import Field, Within
from secateur.pruning.predicate.nodes import And, Predicate
from secateur.pruning.predicate.parse import parse
from secateur.pruning.statistics import Statistics
from secateur.values import Keys, Kind, keys_of

UNITS = 1_000_000
LEAF_GOAL = 2.0
SPACE = 2**40  # integer keys are drawn from [0, SPACE)
KEYS = 100_000  # of the IN list
MOST_BIND_SECONDS = 10.0

Floor = Callable[[], np.ndarray]


def leaf_int64(setting: Setting) -> Result:
    """One comparison of a bigint column, as `=` and as `>=`."""
    n = setting.scaled(UNITS, least=100)
    field, lower, upper = _random_column(n, np.random.default_rng(1))
    statistics = statistics_of({field: (_words(lower), _words(upper))})
    v = SPACE // 2
    equal = Within(field, rangeset.between(Kind.WORD, v, v + 1), f"id = {v}")
    at_least = Within(field, rangeset.between(Kind.WORD, v, None), f"id >= {v}")
    ratios = [
        _leaf(equal, statistics, lambda: (lower <= v) & (upper >= v), setting),
        _leaf(at_least, statistics, lambda: (lower >= v) & (upper >= v), setting),
    ]
    return Result({"units": n}, tuple(ratios))


def leaf_string(setting: Setting) -> Result:
    """One comparison of a string column: bounds that differ in their first 8 bytes, and bounds that do not."""
    n = setting.scaled(UNITS, least=100)
    rng = np.random.default_rng(2)
    ratios = []
    for shape, prefix in (("differing in the first 8 bytes", ""), ("with a common prefix of 9 bytes", "customer-")):
        number = rng.integers(0, 10**12 - 10**9, n)
        low, high = (_texts(prefix, number + width) for width in (0, 10**9))
        lower, upper = keys_of(low), keys_of(high)
        field = Field(("name",), pa.string())
        value = f"{prefix}{5 * 10**11:012d}".encode()
        equal = Within(field, rangeset.points(Kind.BYTES, [value]), f"name = '{value.decode()}'")
        floor = _prefix_floor(lower, upper, value)
        ratios.append(_leaf(equal, statistics_of({field: (lower, upper)}), floor, setting, f"strings {shape}"))
    return Result({"units": n}, tuple(ratios))


def _prefix_floor(lower: Keys, upper: Keys, value: bytes) -> Floor:
    """The comparison of as many 8-byte words as it takes to reach past the common prefix: one, or the second of two."""
    word = 0 if value[:1].isdigit() else 1
    low, high = lower.words[word], upper.words[word]
    v = np.uint64(int.from_bytes(value[8 * word : 8 * word + 8].ljust(8, b"\0"), "big"))
    return lambda: (low <= v) & (high >= v)


def _texts(prefix: str, numbers: np.ndarray) -> pa.Array:
    return pa.array([f"{prefix}{number:012d}" for number in numbers.tolist()], pa.string())


def conjunction_1m(setting: Setting) -> Result:
    """Three range conjuncts over bigint columns, each of which a tenth of the units survive."""
    n = setting.scaled(UNITS, least=100)
    rng = np.random.default_rng(3)
    columns = [_random_column(n, rng, name) for name in ("a", "b", "c")]
    statistics = statistics_of({field: (_words(lower), _words(upper)) for field, lower, upper in columns})
    ranges = [(SPACE * i // 10, SPACE * (i + 1) // 10) for i in (2, 4, 6)]
    conjuncts = [
        Within(field, rangeset.between(Kind.WORD, start, stop), f"{field} in [{start}, {stop})")
        for (field, _, _), (start, stop) in zip(columns, ranges, strict=True)
    ]

    def floor() -> np.ndarray:
        masks = (
            (upper >= start) & (lower < stop) for (_, lower, upper), (start, stop) in zip(columns, ranges, strict=True)
        )
        return np.logical_and.reduce(list(masks))

    ratio = _leaf(And(tuple(conjuncts)), statistics, floor, setting, "three ranges", goal=None)
    return Result({"units": n}, (ratio,))


def in_list_100k(setting: Setting) -> Result:
    """An IN list: reading it, binding it, and evaluating it over many units."""
    n, length = setting.scaled(UNITS, least=100), setting.scaled(KEYS, least=10)
    rng = np.random.default_rng(4)
    field, lower, upper = _random_column(n, rng, width=2**20)
    keys = np.unique(rng.integers(0, SPACE, length))
    statistics = statistics_of({field: (_words(lower), _words(upper))})
    listed = Within(field, rangeset.points(Kind.WORD, keys.tolist()), "id IN (...)")
    ratios = [
        _leaf(
            listed,
            statistics,
            lambda: np.searchsorted(keys, upper, side="right") > np.searchsorted(keys, lower, side="left"),
            setting,
            f"IN list of {length:,}: evaluate()",
            goal=None,
            reference="two numpy searchsorted over the same arrays",
        )
    ]
    values = rng.permutation(keys).tolist()
    parsed, notes = _bindings(field, values)
    return Result({"units": n, "keys": length}, (*ratios, _parsing(values), *parsed), notes=tuple(notes))


def _parsing(values: list[int]) -> Ratio:
    text = f"id IN ({', '.join(map(str, values))})"
    timing, _ = once(lambda: parse(text))
    floor, _ = once(lambda: sqlglot.parse_one(text, dialect="spark"))
    return timed(f"IN list of {len(values):,}: parse()", timing, "sqlglot alone", floor)


def _bindings(field: Field, values: list[int]) -> tuple[list[Ratio], list[str]]:
    """Making and binding the list as an expression object, at growing lengths while it stays affordable."""
    schema = pa.schema([pa.field(field.path[0], field.type)])
    ratios: list[Ratio] = []
    lengths = [max(1, len(values) // divisor) for divisor in (100, 10, 1)]
    times: list[float] = []
    for length in lengths:
        growth = times[-1] / times[-2] if len(times) > 1 else 10.0
        if times and times[-1] * growth > MOST_BIND_SECONDS:
            expected = times[-1] * growth
            return ratios, [f"bind() of {length:,} keys left out: it grows so fast that it would take {expected:.0f} s"]
        head = values[:length]
        predicate = sc.col(str(field)).isin(head)
        timing, _ = once(partial(bind, predicate, schema))
        floor, _ = once(partial(np.unique, head))
        times.append(timing.seconds)
        ratios.append(timed(f"IN list of {length:,}: bind()", timing, "np.unique of the same list", floor))
    return ratios, []


def _random_column(
    n: int, rng: np.random.Generator, name: str = "id", width: int = SPACE // 1000
) -> tuple[Field, np.ndarray, np.ndarray]:
    """A bigint column whose units begin anywhere and are up to `width` wide."""
    lower = rng.integers(0, SPACE, n)
    return Field((name,), pa.int64()), lower, lower + rng.integers(0, width, n)


def _words(values: np.ndarray) -> Keys:
    return Keys(Kind.WORD, (values,))


def _leaf(
    predicate: Predicate,
    statistics: Statistics,
    floor: Floor,
    setting: Setting,
    subject: str | None = None,
    goal: float | None = LEAF_GOAL,
    reference: str = "numpy comparisons of the same arrays",
) -> Ratio:
    """evaluate() against its floor, once both are known to keep the same units."""
    missed = floor() & ~survives(evaluate(predicate, statistics))
    if missed.any():
        raise AssertionError(f"{predicate}: {int(missed.sum())} units with a match were pruned")
    timing, floor_timing = race([lambda: evaluate(predicate, statistics), floor], setting.repetitions)
    return timed(subject or str(predicate), timing, reference, floor_timing, goal)
