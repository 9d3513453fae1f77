"""Evaluating predicates over zone maps in memory, against the least numpy comparisons that they need."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import sqlglot

import secateur as sec
from benchmarks.kernels.arrays import statistics_of
from benchmarks.results import Ratio, Result, timed
from benchmarks.setting import Setting
from benchmarks.timing import once, race
from secateur.integers import sorted_distinct
from secateur.pruning.bounds import rangeset
from secateur.pruning.bounds.outcomes import survives
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.conjuncts import alive
from secateur.pruning.evaluate import evaluate
from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.bound import Field, Within
from secateur.pruning.predicate.nodes import And, Predicate
from secateur.pruning.predicate.rewrite import rewrite
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.statistics import Statistics
from secateur.values.conversion import key_of, keys_of
from secateur.values.key import Key, least_key, successor
from secateur.values.keys import Keys, words_of
from secateur.values.kinds import Kind

UNITS = 1_000_000
LEAF_GOAL = 2.0
WORD_TYPES = (pa.int64(), pa.float64(), pa.timestamp("us"), pa.decimal128(18, 2))
SPACE = 2**40  # integer keys are drawn from [0, SPACE)
KEYS = 100_000  # of the IN list
MOST_BIND_SECONDS = 10.0

Floor = Callable[[], np.ndarray]


def leaf_int64(setting: Setting) -> Result:
    """One comparison of a column whose keys are one integer each, as bigint, double, timestamp and decimal are."""
    n = setting.scaled(UNITS, least=100)
    _, lower, upper = _random_column(n, np.random.default_rng(1))
    ratios = []
    for type_ in WORD_TYPES:
        field, low, high = Field(("id",), type_), _typed(lower, type_), _typed(upper, type_)
        statistics = statistics_of({field: (keys_of(low), keys_of(high))})
        edges = [key_of(value.as_py(), type_) for value in _typed(np.array([SPACE // 2, SPACE * 6 // 10]), type_)]
        for name, ranges in _comparisons(Kind.WORD, *edges).items():
            leaf = Within(field, ranges, f"{type_} {name}")
            words = keys_of(low).words[0], keys_of(high).words[0]
            ratios.append(_leaf(leaf, statistics, _word_floor(*words, name, *map(np.int64, edges)), setting))
    return Result({"units": n}, tuple(ratios))


def _typed(values: np.ndarray, type_: pa.DataType) -> pa.Array:
    if pa.types.is_decimal128(type_):
        return pa.array([Decimal(value).scaleb(-type_.scale) for value in values.tolist()], type_)
    return pa.array(values).cast(type_)


def _comparisons(kind: Kind, start: Key, stop: Key) -> dict[str, RangeSet]:
    """A comparison of each form with a key, and with a second that is a tenth of all keys away."""
    return {
        "=": rangeset.points(kind, [start]),
        ">=": rangeset.between(kind, start, None),
        "<": rangeset.between(kind, least_key(kind), start),
        "BETWEEN": rangeset.between(kind, start, successor(stop, kind)),
    }


def _word_floor(low: np.ndarray, high: np.ndarray, name: str, start: np.generic, stop: np.generic) -> Floor:
    """The comparison of one word of each bound, without which no leaf can be pruned."""
    match name:
        case "=":
            return lambda: (low <= start) & (high >= start)
        case ">=":
            return lambda: (low >= start) & (high >= start)
        case "<":
            return lambda: (low < start) & (high < start)
        case _:
            return lambda: (low <= stop) & (high >= start)


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
        statistics = statistics_of({field: (lower, upper)})
        edges = [f"{prefix}{tenths * 10**11:012d}".encode() for tenths in (5, 6)]
        for name, ranges in _comparisons(Kind.BYTES, *edges).items():
            leaf = Within(field, ranges, f"name {name}")
            floor = _prefix_floor(lower, upper, name, edges)
            ratios.append(_leaf(leaf, statistics, floor, setting, f"strings {shape}: {name}"))
    return Result({"units": n}, tuple(ratios))


def _prefix_floor(lower: Keys, upper: Keys, name: str, edges: list[bytes]) -> Floor:
    """The comparison of the 8-byte words that follow the common prefix: of the first, or of the second of two."""
    word = 0 if edges[0][:1].isdigit() else 1
    start, stop = (words_of(edge, Kind.BYTES, word + 1)[word] for edge in edges)
    return _word_floor(lower.words[word], upper.words[word], name, start, stop)


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

    predicate = And(tuple(conjuncts))
    if not np.array_equal(
        alive(predicate, statistics).units, np.flatnonzero(survives(evaluate(predicate, statistics)))
    ):
        raise AssertionError("conjunct by conjunct, other units survive than by the whole predicate")
    timing, floor_timing = race([lambda: alive(predicate, statistics), floor], setting.repetitions)
    reference = "numpy comparisons of the same arrays"
    one_by_one = timed("three ranges, one after the other: alive()", timing, reference, floor_timing)
    return Result(
        {"units": n}, (one_by_one, _leaf(predicate, statistics, floor, setting, "all outcomes: evaluate()", None))
    )


def in_list_100k(setting: Setting) -> Result:
    """An IN list: reading it, binding it, and evaluating it over many units."""
    n, length = setting.scaled(UNITS, least=100), setting.scaled(KEYS, least=10)
    rng = np.random.default_rng(4)
    field, lower, upper = _random_column(n, rng, width=2**20)
    keys = sorted_distinct(rng.integers(0, SPACE, length))
    order = np.argsort(lower)
    ratios = [
        _listed(field, lower, upper, keys, setting, "anywhere"),
        _listed(field, lower[order], upper[order], keys, setting, "in order"),
        _listed(field, lower, upper, keys // 1000, setting, "mostly beside the list"),
    ]
    values = rng.permutation(keys).tolist()
    bound, notes = _bindings(field, values)
    planned = _plannings(field, values, setting)
    return Result({"units": n, "keys": length}, (*ratios, _parsing(values), *bound, *planned), notes=tuple(notes))


def _listed(
    field: Field, lower: np.ndarray, upper: np.ndarray, keys: np.ndarray, setting: Setting, where: str
) -> Ratio:
    """An IN list against searching both bounds of every unit among its keys."""
    ranges = rangeset.points(Kind.WORD, keys.tolist())
    return _leaf(
        Within(field, ranges, "id IN (...)"),
        statistics_of({field: (_words(lower), _words(upper))}),
        lambda: np.searchsorted(keys, upper, side="right") > np.searchsorted(keys, lower, side="left"),
        setting,
        f"IN list of {len(keys):,}, units {where}: evaluate()",
        goal=None,
        reference="two numpy searchsorted over the same arrays",
    )


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
        predicate = sec.col(str(field)).isin(head)
        timing, _ = once(partial(bind, predicate, schema))
        floor, _ = once(partial(np.unique, head))
        times.append(timing.seconds)
        ratios.append(timed(f"IN list of {length:,}: bind()", timing, "np.unique of the same list", floor))
    return ratios, []


def _plannings(field: Field, values: list[int], setting: Setting) -> list[Ratio]:
    """From values as a caller has them to the rewritten predicate: integers beside bigint, and text beside a string."""
    texts = pa.array([f"customer-{value:013d}" for value in values])
    array = np.array(values)
    inputs: list[tuple[str, pa.DataType, object]] = [
        ("a numpy array of integers", field.type, array),
        ("an Arrow array of integers", field.type, pa.array(values)),
        ("a Python list of integers", field.type, values),
        ("an Arrow array of strings", pa.string(), texts),
    ]
    return [_planning(name, type_, given, array, setting) for name, type_, given in inputs]


def _planning(name: str, type_: pa.DataType, given: Any, array: np.ndarray, setting: Setting) -> Ratio:
    schema = pa.schema([("id", type_)])
    contenders = [lambda: rewrite(bind(sec.col("id").isin(given), schema)), lambda: np.sort(array)]
    timing, floor = race(contenders, setting.repetitions)
    subject = f"IN list of {len(array):,}, {name}: isin(), bind() and rewrite()"
    return timed(subject, timing, "np.sort of the integers", floor)


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
