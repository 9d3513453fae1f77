"""What a build is asked for, and what cannot be asked."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from secateur.errors import UnknownColumn
from secateur.index.build.assemble import recipe
from secateur.index.build.options import auto_columns, checked, filter_options, filters_of
from secateur.index.model import BuildOptions, Filter, FilterOption
from secateur.index.segments.named_columns import computed

SCHEMA = pa.schema(
    {
        "Id": pa.int64(),
        "msg": pa.string(),
        "tags": pa.list_(pa.string()),
        "attrs": pa.map_(pa.string(), pa.int64()),
        "st": pa.struct({"name": pa.string(), "inner": pa.struct({"x": pa.float64()})}),
        "rows": pa.list_(pa.struct({"x": pa.int64()})),
        "huge": pa.decimal128(38, 2),
    }
)


def test_columns_and_settings() -> None:
    filters = filter_options(
        bloom={"a": None, "b": "native"},
        postings={"c": None, "j": "blocks", "k": "rows"},
        ngram={"d": None, "e": 3, "f": {"n": 4, "fold": True}, "g": {"fold": True}},
        tokens={"h": None, "i": {"fold": True}},
    )
    assert filters == (
        FilterOption("bloom", "a"),
        FilterOption("bloom", "b", native=True),
        FilterOption("postings", "c"),
        FilterOption("postings", "j"),
        FilterOption("postings", "k", rows=True),
        FilterOption("ngram", "d", gram=5),
        FilterOption("ngram", "e", gram=3),
        FilterOption("ngram", "f", gram=4, folded=True),
        FilterOption("ngram", "g", gram=5, folded=True),
        FilterOption("token", "h"),
        FilterOption("token", "i", folded=True),
    )


@pytest.mark.parametrize(
    "wanted",
    [
        {"bloom": "user_id"},
        {"bloom": {"a": "nativ"}},
        {"bloom": {"a": 0.1}},
        {"postings": {"a": True}},
        {"postings": {"a": "pages"}},
        {"bloom": {"a": "rows"}},
        {"ngram": {"a": 1}},
        {"ngram": {"a": 9}},
        {"ngram": {"a": {"n": 3, "folded": True}}},
        {"tokens": {"a": 3}},
    ],
)
def test_settings_that_there_are_not(wanted: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"is not a setting of|write a list of columns"):
        filter_options(**wanted)


def options(**wanted: Any) -> BuildOptions:
    gaps = wanted.pop("gaps", ())
    return checked(BuildOptions(filters=filter_options(**wanted), gaps=tuple(gaps)), SCHEMA)


def test_what_is_hashed_of_a_column() -> None:
    filters = filters_of(options(bloom=["id", "tags", "attrs", "ST.inner.X"], ngram=["st.name"]), SCHEMA)
    assert filters == [
        Filter("bloom", ("Id",), pa.int64()),
        Filter("bloom", ("tags",), pa.string()),
        Filter("bloom", ("attrs",), pa.string()),
        Filter("bloom", ("st", "inner", "x"), pa.float64()),
        Filter("ngram", ("st", "name"), pa.string(), gram=5),
    ]


def test_what_cannot_be_kept() -> None:
    with pytest.raises(UnknownColumn, match="Idd"):
        options(bloom=["Idd"])
    with pytest.raises(ValueError, match="bloom cannot be kept of st"):
        options(bloom=["st"])
    with pytest.raises(ValueError, match="postings cannot be kept of rows"):
        options(postings=["rows"])
    with pytest.raises(ValueError, match="ngram is for text, and Id is a int64"):
        options(ngram=["id"])
    for name in ("msg", "huge", "tags"):
        with pytest.raises(ValueError, match="gaps are kept of numbers and times of 64 bits"):
            options(gaps=[name])
    assert options(gaps=["ID", "st.inner.x"]).gaps == ("Id", "st.inner.x")


def test_what_can_no_longer_be_made_is_left_out() -> None:
    """A refresh meets columns that are gone, or of another type than when they were asked for."""
    asked = options(bloom=["id", "msg", "attrs"], ngram=["msg"])
    changed = pa.schema({"Id": pa.int64(), "msg": pa.int64(), "attrs": pa.struct({"x": pa.int64()})})
    assert filters_of(asked, changed) == [Filter("bloom", ("Id",), pa.int64()), Filter("bloom", ("msg",), pa.int64())]


def test_what_is_left_to_a_sample() -> None:
    some = options(bloom=["id"], gaps=["st.inner.x"])
    assert [column.path for column in auto_columns(True, some, SCHEMA)] == [("msg",), ("st", "name"), ("huge",)]
    assert [column.path for column in auto_columns(["ID", "msg"], some, SCHEMA)] == [("Id",), ("msg",)]
    assert not auto_columns(False, some, SCHEMA)
    assert not auto_columns((), some, SCHEMA)
    with pytest.raises(UnknownColumn):
        auto_columns(["nothing"], some, SCHEMA)


def test_expressions_are_options_by_their_sql() -> None:
    """Written in whatever way, an expression is one, and a column of that name goes first."""
    asked = BuildOptions(
        filters=filter_options(bloom=["lower(MSG)", "st.name", "trim(st.name)"], postings=["lower( msg )"]),
        gaps=("id * 2",),
        expressions=("ID % 7",),
    )
    spelled = checked(asked, SCHEMA)
    assert [option.column for option in spelled.filters] == [
        "lower(`msg`)",
        "st.name",
        "trim(`st`.`name`)",
        "lower(`msg`)",
    ]
    assert spelled.gaps == ("(`Id` * 2)",)
    assert spelled.expressions == ("(`Id` % 7)", "lower(`msg`)", "trim(`st`.`name`)", "(`Id` * 2)")
    assert [column.type for column in computed(spelled, SCHEMA)] == [pa.int64(), pa.string(), pa.string(), pa.int64()]
    odd = SCHEMA.append(pa.field("lower(msg)", pa.string()))
    assert checked(BuildOptions(filters=filter_options(bloom=["lower(msg)"])), odd).expressions == ()
    assert checked(spelled, SCHEMA) == spelled


@pytest.mark.parametrize(
    ("name", "schema"),
    [("x * 2", {"x": pa.int64()}), ("st.a.b + 1", {"st": pa.struct({"a": pa.struct({"b": pa.int8()})})})],
)
def test_an_expression_of_a_column_that_is_gone_is_left_out(name: str, schema: dict[str, pa.DataType]) -> None:
    options = checked(BuildOptions(expressions=(name,)), pa.schema(schema))
    assert len(computed(options, pa.schema(schema))) == 1
    assert computed(options, SCHEMA) == []


def test_expressions_are_bound_anew_in_other_processes() -> None:
    options = checked(BuildOptions(expressions=("TRY_CAST(id AS INT)", "upper(trim(msg))")), SCHEMA)
    what = recipe(SCHEMA, computed(options, SCHEMA), options, 10)
    sent = pickle.loads(pickle.dumps(what))
    assert sent.operands == what.operands
    assert list(sent.operands) == [column.path for column in what.columns]
