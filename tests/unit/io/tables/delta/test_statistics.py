"""Bounds of a log hold whatever a writer did to the values."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.index.zones.zonemap import ZoneMap
from secateur.io.tables.delta.statistics import LoggedStatistics, bounded_columns, from_structs, from_texts
from secateur.values.conversion import keys_of
from tests.support.profiles import examples

INSTANT, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")
LONGEST = 32  # characters of a bound of text, as Delta's writer cuts them


def read(type_: pa.DataType, *statistics: object) -> LoggedStatistics:
    """The statistics of some files with one column `c`; what is no text is written as JSON."""
    texts = [entry if isinstance(entry, str) or entry is None else json.dumps(entry) for entry in statistics]
    schema = pa.schema([("c", type_)])
    return from_texts(pa.array(texts, pa.large_string()), bounded_columns(schema, {("c",): ("c",)}))


def bounds(lower: Any, upper: Any, rows: int = 2, nulls: int | None = 0, **more: Any) -> dict[str, Any]:
    counts = {} if nulls is None else {"nullCount": {"c": nulls}}
    return {"numRecords": rows, "minValues": {"c": lower}, "maxValues": {"c": upper}, **counts, **more}


def zone_map(type_: pa.DataType, *statistics: object) -> ZoneMap:
    zones = read(type_, *statistics).zone_map(("c",), type_)
    assert zones is not None
    return zones


def holds(zone: ZoneMap, values: pa.Array) -> bool:
    """Whether all values lie within the bounds of the first file, whose statistics say something."""
    zones = zone.take(np.zeros(len(values), np.int64)).zones(np.full(len(values), 2))
    return bool(zones.may_hold(keys_of(values)).all())


def cut_as_before(text: str) -> tuple[str, str]:
    """Bounds of a text as Delta's writer cut them until 2024: U+FFFD stands behind; halves of pairs are lost."""
    units = text.encode("utf-16-le", "surrogatepass")
    begin = units[: 2 * LONGEST].decode("utf-16-le", "surrogatepass").encode("utf-8", "replace").decode()
    return (text, text) if len(units) <= 2 * LONGEST else (begin, begin + "\ufffd")


def cut_as_now(text: str) -> tuple[str, str]:
    if len(text) <= LONGEST:
        return text, text
    breaker = "\x7f" if text[LONGEST] < "\x7f" else "\U0010ffff"
    return text[:LONGEST], text[:LONGEST] + breaker


TEXTS = st.text(st.sampled_from("a?~\x7f\ufffd\U0001f600\U0010fffe"), min_size=28, max_size=40)


@given(texts=st.lists(TEXTS, min_size=1, max_size=3), now=st.booleans())
@examples(200)
def test_cut_texts(texts: list[str], now: bool) -> None:
    cut = cut_as_now if now else cut_as_before
    ordered = sorted(texts, key=str.encode)
    cut_bounds = bounds(cut(ordered[0])[0], cut(ordered[-1])[1])
    assert holds(zone_map(pa.string(), cut_bounds), pa.array(texts))


@given(micros=st.lists(st.integers(-(10**15), 10**15), min_size=1, max_size=3), zoned=st.booleans(), down=st.booleans())
@examples(200)
def test_times_are_cut_to_milliseconds(micros: list[int], zoned: bool, down: bool) -> None:
    """Down, or towards zero."""

    def text(value: int) -> str:
        milliseconds = value // 1000 if down else math.trunc(value / 1000)
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=milliseconds)
        return moment.isoformat(timespec="milliseconds") + ("Z" if zoned else "")

    type_ = INSTANT if zoned else LOCAL
    zones = zone_map(type_, bounds(text(min(micros)), text(max(micros))))
    assert holds(zones, pa.array(micros, pa.int64()).cast(type_))
    width = int(zones.upper.words[0][0]) - int(zones.lower.words[0][0])
    assert width <= max(micros) - min(micros) + 3_000  # and not wider than it must be


def test_the_last_moment_has_no_bound() -> None:
    zones = read(INSTANT, bounds("1970-01-01T00:00:00Z", "294247-01-10T04:00:54.775Z")).zone_map(("c",), INSTANT)
    assert zones is not None and zones.upper.words[0][0] == np.iinfo(np.int64).max


@pytest.mark.parametrize("type_", [INSTANT, LOCAL])
def test_one_time_in_another_form_spoils_no_other(type_: pa.DataType) -> None:
    zone = "Z" if type_ == INSTANT else ""
    good = bounds(f"2020-01-01T00:00:00.000{zone}", f"2020-01-02 00:00:00{zone}")
    other = bounds("2020-01-01T00:00:00" + ("" if zone else "Z"), "+12020-01-02T00:00:00Z")
    zones = zone_map(type_, other, good)
    assert (zones.lower.words[0] > np.iinfo(np.int64).min).tolist() == [False, True]


@given(
    values=st.lists(st.decimals(-(10**16), 10**16, places=2, allow_nan=False), min_size=1, max_size=3),
    binary=st.booleans(),
)
@examples(200)
def test_decimals_may_have_been_binary_numbers(values: list[Decimal], binary: bool) -> None:
    low, high = (format(float(value), ".17g") if binary else str(value) for value in (min(values), max(values)))
    text = f'{{"numRecords": 2, "minValues": {{"c": {low}}}, "maxValues": {{"c": {high}}}, "nullCount": {{"c": 0}}}}'
    type_ = pa.decimal128(20, 2)
    assert holds(zone_map(type_, text), pa.array(values, type_))


def test_small_decimals_are_exact() -> None:
    type_ = pa.decimal128(9, 2)
    zones = zone_map(type_, bounds(1.1, 12.34))
    assert holds(zones, pa.array([Decimal("1.10"), Decimal("12.34")], type_))
    assert not holds(zones, pa.array([Decimal("1.09")], type_))
    assert not holds(zones, pa.array([Decimal("12.35")], type_))


@pytest.mark.parametrize("upper", ["NaN", "Infinity", None, 2.5])
def test_floats_may_hang_over_nan(upper: Any) -> None:
    """NaN is greater than every number, and some writers leave it out."""
    zones = zone_map(pa.float64(), bounds(1.5, upper), bounds(3.5, 4.5))
    assert holds(zones, pa.array([1.5, 2.5, float("nan")]))
    assert zones.nan_count.tolist() == [-1, -1]
    assert not holds(zones.take(np.array([1])), pa.array([3.0]))  # the other file keeps its bounds


def test_null_counts_that_are_wide() -> None:
    wide = {"tightBounds": False}
    statistics = [bounds(1, 2, 4, nulls, **wide) for nulls in (0, 1, 4)] + [bounds(1, 2, 4, 1), bounds(1, 2, 4, None)]
    assert zone_map(pa.int64(), *statistics).null_count.tolist() == [0, -1, 4, 1, -1]


BAD = ["", "no json", '{"numRecords": "x"}', '{"minValues": 3}', '{"a":1}{"b":2}', "[1]", None]


@pytest.mark.parametrize("bad", BAD)
def test_one_malformed_text_says_nothing_and_spoils_no_other(bad: str | None) -> None:
    statistics = read(pa.int64(), bounds(1, 2), bad, bounds(3, 4), '{\n "numRecords": 7}')
    zones = statistics.zone_map(("c",), pa.int64())
    assert zones is not None
    assert zones.lower.words[0][[0, 2]].tolist() == [1, 3]
    assert zones.lower.words[0][1] == np.iinfo(np.int64).min
    assert statistics.row_count.tolist() == [2, -1, 2, 7]


def test_many_malformed_texts_say_nothing() -> None:
    statistics = read(pa.int64(), *['{"numRecords": "x"}'] * 100, bounds(1, 2))
    assert (statistics.row_count[:100] == -1).all()


def test_checkpoints_have_statistics_in_their_own_types() -> None:
    struct = pa.array(
        [{"numRecords": 3, "minValues": {"c": dt.datetime(2020, 1, 1)}, "maxValues": {"c": dt.datetime(2020, 1, 2)}}],
        pa.struct(
            [("numRecords", pa.int64()), *((n, pa.struct([("c", INSTANT)])) for n in ("minValues", "maxValues"))]
        ),
    )
    zones = from_structs(struct, {("c",): pa.string()}).zone_map(("c",), INSTANT)
    assert zones is not None
    assert holds(zones, pa.array([dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2, 0, 0, 0, 999)], INSTANT))
    assert not holds(zones, pa.array([dt.datetime(2020, 1, 2, 0, 0, 1)], INSTANT))
