"""Literals drawn from rows: the row that they are of matches."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.io.scan.advise.drawn_literals import ComparedColumn, pattern_in, sampled_rows
from secateur.pruning.explain.filled_shapes import filled, slots
from secateur.pruning.predicate.bound import Field

TEXTS = st.text(st.sampled_from("ab1_ .%\\\u00e4-"), max_size=20)
MASKS = st.sampled_from(["?", "%?%", "?%", "%?", "?%?", "%?%?%", "%?%?", "%", "%%?"])


@given(text=TEXTS, mask=MASKS, common=st.dictionaries(st.sampled_from(["a", "ab", "1"]), st.integers(0, 3)))
def test_a_pattern_matches_its_text(text: str, mask: str, common: dict[str, int]) -> None:
    pattern = pattern_in(text, mask, common)
    if pattern is not None:
        assert pc.match_like(pa.array([text]), pattern).to_pylist() == [True], pattern
        assert pattern.count("%") - pattern.count("\\%") == mask.count("%")


def test_a_pattern_looks_for_the_rarest_words() -> None:
    common = {"GET": 9, "from": 9, "host7": 2}
    assert pattern_in("GET /a42 from host7", "%?%", common) == "%a42%"
    assert pattern_in("GET /a42 from host7", "%?%?%", common) == "%a42%host7%"
    assert pattern_in("GET /a42 from host7", "?%", common) == "GET%"
    assert pattern_in("GET /a42 from host7.", "%?", common) == "%host7."
    assert pattern_in("one", "%?%?%", common) is None
    assert pattern_in("one", "?_", common) is None


ROWS = pa.record_batch(
    {
        "i": pa.array([3, None, 7, 9, 12]),
        "s": ["a b", "c", None, "d e f", "g"],
        "day": [dt.date(2026, 1, day) for day in range(1, 6)],
        "x": [0.5, float("nan"), 1e300, -0.0, 2.5],
        "n": pa.array(range(5), pa.int32()).cast(pa.decimal128(12, 2)),
    }
)


@pytest.mark.parametrize(
    "shape",
    [
        "`i` = ?",
        "(`i` = ? AND `s` LIKE '%?%' AND `day` >= ?)",
        "(`day` >= ? AND `day` <= ? AND `n` = ?)",
        "(`i` IN (?) OR `x` = ?)",
        "(`x` >= ? OR `n` <= ?)",
    ],
)
@pytest.mark.parametrize("share", [0.4, 1.0])
def test_the_row_of_the_literals_matches(shape: str, share: float) -> None:
    asked = [slot for slot in slots(shape) if slot is not None]
    compared = [ComparedColumn(Field(slot.column, ROWS.schema.field(slot.column[0]).type), slot) for slot in asked]
    rows = sampled_rows({(0, 0): ROWS}, compared)
    rng = np.random.default_rng(1)
    draws = [drawn for _ in range(10) if (drawn := rows.draw(compared, share, rng)) is not None]
    assert draws
    zones = pa.table({"row_count": pa.array([1] * len(ROWS)), **_bounds()})
    for drawn in draws:
        may_match = sec.evaluate(filled(shape, drawn.literals), zones)["may_be_true"].to_pylist()
        assert drawn.source == (0, 0)
        assert any(may_match), (drawn, shape)


def _bounds() -> dict[str, pa.Array]:
    """A block for every row, whose bounds are its values."""
    bounds = {}
    for name in ROWS.schema.names:
        values = ROWS[name]
        nulls = values.is_null().cast(pa.int64())
        bounds |= {f"{name}.lower": values, f"{name}.upper": values, f"{name}.null_count": nulls}
    return bounds


def test_nothing_is_drawn_where_no_row_has_a_value() -> None:
    empty = pa.record_batch({"i": pa.array([None, None], pa.int64())})
    slot = slots("`i` = ?")[0]
    assert slot is not None
    compared = [ComparedColumn(Field(("i",), pa.int64()), slot)]
    assert sampled_rows({(0, 0): empty}, compared).draw(compared, 1.0, np.random.default_rng(1)) is None
    assert sampled_rows({}, compared).draw(compared, 1.0, np.random.default_rng(1)) is None


def test_the_end_of_a_narrow_range_is_drawn_though_few_rows_lie_in_it() -> None:
    many = pa.record_batch({"ts": pa.array(range(10_000)), "i": pa.array(range(10_000))})
    asked = [slot for slot in slots("(`ts` >= ? AND `i` = ?)") if slot is not None]
    compared = [ComparedColumn(Field(slot.column, pa.int64()), slot) for slot in asked]
    drawn = sampled_rows({(0, 0): many}, compared).draw(compared, 0.001, np.random.default_rng(1))
    assert drawn is not None
    assert drawn.literals[0] == "9989"
