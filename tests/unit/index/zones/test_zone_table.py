"""Statistics in Arrow tables: how Arrow lays values out changes nothing, and what is not told is unknown."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.pruning.bounds.outcomes import FALSE, NULL, TRUE

LAYOUTS = {
    pa.string(): [pa.large_string(), pa.string_view()],
    pa.binary(): [pa.large_binary(), pa.binary_view()],
    pa.int64(): [],
    pa.float64(): [],
    pa.date32(): [],
}
PREDICATES = {
    pa.string(): ["c = 'k'", "c < 'b'", "c IN ('a', 'zz')", "c LIKE 'k%'", "c IS NULL"],
    pa.binary(): ["c = X'6b'", "c > X'62'"],
    pa.int64(): ["c = 3", "c BETWEEN 1 AND 2", "c IS NOT NULL"],
    pa.float64(): ["c = 3D", "isnan(c)", "c > 1.5D"],
    pa.date32(): ["c = DATE '1970-01-04'", "c < DATE '1970-01-02'"],
}
VALUES = {
    pa.string(): st.sampled_from(["", "a", "k", "kk", "zz", "é"]),
    pa.binary(): st.sampled_from([b"", b"a", b"k", b"\xff"]),
    pa.int64(): st.integers(0, 5),
    pa.float64(): st.sampled_from([-1.0, 0.0, 1.5, 3.0]),
    pa.date32(): st.integers(0, 5),
}


@st.composite
def statistics(draw: st.DrawFn, type_: pa.DataType) -> dict[str, pa.Array]:
    """Bounds and counts of some units, of which any may be unknown."""
    units = draw(st.integers(1, 4))
    pairs = [sorted(draw(st.tuples(VALUES[type_], VALUES[type_]))) for _ in range(units)]
    sides = [[draw(st.sampled_from([pair[end], None])) for pair in pairs] for end in (0, 1)]
    counts = [[draw(st.sampled_from([0, 1, 3, None])) for _ in range(units)] for _ in range(2)]
    return {
        "row_count": pa.array([3] * units),
        "c.lower": pa.array(sides[0], pa.int32()).cast(type_) if type_ == pa.date32() else pa.array(sides[0], type_),
        "c.upper": pa.array(sides[1], pa.int32()).cast(type_) if type_ == pa.date32() else pa.array(sides[1], type_),
        "c.null_count": pa.array(counts[0], pa.int64()),
        "c.nan_count": pa.array(counts[1], pa.int64()),
    }


def answers(columns: dict[str, pa.Array], schema: pa.Schema | None, type_: pa.DataType) -> list[dict[str, Any]]:
    zone_maps = pa.table(columns)
    return [sec.evaluate(text, zone_maps, schema=schema).to_pydict() for text in PREDICATES[type_]]


@pytest.mark.parametrize("type_", LAYOUTS, ids=str)
@given(data=st.data())
def test_the_layout_of_statistics_changes_nothing(type_: pa.DataType, data: st.DataObject) -> None:
    plain = data.draw(statistics(type_))
    expected = answers(plain, None, type_)
    bounds = [*(plain | {s: plain[s].cast(t) for s in ("c.lower", "c.upper")} for t in LAYOUTS[type_])]
    bounds.append({name: column.dictionary_encode() for name, column in plain.items()})
    for columns in bounds:
        for schema in (None, pa.schema([("c", type_)]), pa.schema([("c", columns["c.lower"].type)])):
            assert answers(columns, schema, type_) == expected


def outcomes(predicate: str, **counts: int | None) -> int:
    columns = {f"x.{name}": pa.array([count], pa.int64()) for name, count in counts.items()}
    schema = pa.schema([("x", pa.float64())])
    answer = sec.evaluate(predicate, pa.table({"row_count": [3], **columns}), schema=schema).to_pylist()[0]
    return sum(bit for bit, said in zip((TRUE, FALSE, NULL), answer.values(), strict=True) if said)


def test_nan_counts_tell_where_the_null_count_is_unknown() -> None:
    assert outcomes("isnan(x)", nan_count=0) == FALSE | NULL
    assert outcomes("x <= CAST('inf' AS DOUBLE)", nan_count=0) == TRUE | NULL
    assert outcomes("x < 1", nan_count=3) == FALSE
    assert outcomes("isnan(x)", nan_count=3) == TRUE
    assert outcomes("x IS NULL", nan_count=3) == FALSE
    assert outcomes("x < 1", nan_count=2) == TRUE | FALSE | NULL
    assert outcomes("x < 1", nan_count=2, null_count=1) == FALSE | NULL
    assert outcomes("isnan(x)", nan_count=None) == TRUE | FALSE | NULL
