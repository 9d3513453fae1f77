"""Expressions that are indexed as columns: no row is lost, whatever the session, the rows and the life of the index."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.errors import EvaluationError, InvalidOption, UnknownColumn
from secateur.index.build.tasks import run_in_process
from secateur.io.scan.opened_table import opened_strictly
from secateur.maintain.audit import compared
from secateur.pruning.bounds import rangeset
from secateur.pruning.predicate.indexed.upper_by_lower import lower_of_upper
from secateur.values.kinds import Kind
from tests.support.checks.laws import check_table
from tests.support.checks.oracle import by_row_id
from tests.support.drawn.text_expressions import quoted
from tests.support.profiles import examples, takes_seconds
from tests.support.tables import write_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS, GROUP = 60, 4
TEXTS = st.one_of(
    st.none(),
    st.sampled_from(
        ["Ab c", "AB C", " ab", "a.b.C", "x y z", "", "é I", "ÀI", "\u0130x", "\u03a3", "ß", "SS", "k1 k2"]
    ),
    st.text("abAB .1é", max_size=5),
)
NUMBERS = st.one_of(st.none(), st.integers(-9, 9), st.sampled_from([2**62, -(2**63), 2**63 - 1]))
DOUBLES = st.one_of(
    st.none(), st.integers(-4, 4).map(float), st.sampled_from([float("nan"), float("inf"), -0.0, 1e308])
)
DECIMALS = st.one_of(st.none(), st.integers(-500, 500).map(lambda unscaled: Decimal(unscaled) / 100))
DAYS = st.one_of(st.none(), st.dates(dt.date(2023, 12, 28), dt.date(2024, 3, 3)))

OF_TEXT = [
    "lower(s)",
    "upper(s)",
    "upper(trim(s))",
    "split(s, ' ')[1]",
    "get(split(s, '\\\\.'), 1)",
    "initcap(s)",
    "CAST(n AS STRING)",
]
OF_NUMBER = ["n * 4", "n % 5", "n / 2", "f * n", "m + n", "length(s)", "CASE WHEN upper(s) LIKE 'A%' THEN 1 ELSE n END"]
BUILD: dict[str, Any] = {
    "bloom": ["lower(s)", "upper(trim(s))", "n % 5", "f * n", "m + n"],
    "postings": {
        "split(s, ' ')[1]": "rows",
        "get(split(s, '\\\\.'), 1)": "blocks",
        "upper(s)": "rows",
        "CAST(n AS STRING)": "rows",
        "month(d)": "blocks",
    },
    "ngram": {"lower(s)": 3},
    "tokens": ["initcap(s)"],
    "gaps": ["n * 4"],
    "zone_map": ["n / 2", "length(s)", "CASE WHEN upper(s) LIKE 'A%' THEN 1 ELSE n END", "s LIKE 'a%'"],
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Rows of all kinds, in row groups of a few."""

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=ROWS, max_size=ROWS))

    return pa.table(
        {
            "rid": pa.array(range(ROWS), pa.int64()),
            "s": pa.array(column(TEXTS), pa.string()),
            "n": pa.array(column(NUMBERS), pa.int64()),
            "f": pa.array(column(DOUBLES), pa.float64()),
            "m": pa.array(column(DECIMALS), pa.decimal128(7, 2)),
            "d": pa.array(column(DAYS), pa.date32()),
        }
    )


@st.composite
def conditions(draw: st.DrawFn) -> str:
    """A condition on one of the expressions, perhaps beside another one."""
    if draw(st.booleans()):
        value = draw(st.sampled_from(OF_TEXT))
        text = draw(
            st.one_of(
                st.sampled_from(["ab c", "AB C", "b", "SS", "ài", "1", "-9", "k2"]), st.text("abAB .", max_size=3)
            )
        )
        tests = [f"= {quoted(text)}", f"IN ({quoted(text)}, 'b', 'y')", f"LIKE {quoted(text[:2] + '%')}", "IS NULL"]
        tests += [f"LIKE {quoted('%' + text + '%')}", f"> {quoted(text)}", f"<> {quoted(text)}", f"<=> {quoted(text)}"]
    else:
        value, number = draw(st.sampled_from([*OF_NUMBER, "month(d)"])), draw(st.integers(-12, 12))
        tests = [f"= {number}", f"> {number}", f"<= {number}", f"IN ({number}, 1)", "IS NOT NULL", f"<> {number}"]
    condition = f"{value} {draw(st.sampled_from(tests))}"
    other = draw(st.sampled_from(["", "", f" AND n > {draw(st.integers(-3, 3))}", " OR s = 'x y z'", " AND rid < 40"]))
    return draw(st.sampled_from(["{}{}", "{}{}", "NOT ({}{})", "({}{}) IS TRUE"])).format(condition, other)


@pytest.mark.parametrize("ansi", [True, False])
@examples(2, shrink=False)
@given(table=tables(), drawn=st.lists(conditions(), min_size=25, max_size=25))
def test_no_row_is_lost(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, ansi: bool, table: pa.Table, drawn: list[str]
) -> None:
    """With ANSI mode and without, from one index; Spark is asked about rows on which it raises no error."""
    root = tmp_path_factory.mktemp("lake")
    write_file(root / "a.parquet", table, row_group_size=GROUP)
    sec.build_index(sec.open_table(str(root)), **BUILD)
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    try:
        sound = [text for text in dict.fromkeys(drawn) if not ansi or _has_value(root, text)]
        check_table(spark, root, sound, ansi=ansi)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", str(before))


def _has_value(root: Path, predicate: str) -> bool:
    """Whether a predicate raises no error on any row."""
    try:
        sec.prune(sec.open_table(str(root)), f"({predicate}) IS NULL", use_index=False).count()
    except EvaluationError:
        return False
    return True


@takes_seconds
@examples(8, shrink=False)
@given(table=tables(), drawn=st.lists(conditions(), min_size=6, max_size=6))
def test_an_index_that_lives_on_says_what_the_rows_say(
    tmp_path_factory: pytest.TempPathFactory, table: pa.Table, drawn: list[str]
) -> None:
    """Built of a part of the files, refreshed with more expressions, optimized, and audited against the data."""
    root = tmp_path_factory.mktemp("lake")
    write_file(root / "a.parquet", table.slice(0, ROWS // 2), row_group_size=GROUP)
    handle = sec.open_table(str(root))
    first = {kind: BUILD[kind] for kind in ("bloom", "gaps", "tokens")}
    sec.build_index(handle, **first, segment_blocks=3)
    write_file(root / "b.parquet", table.slice(ROWS // 2), row_group_size=GROUP)
    _agrees(root, drawn)
    sec.refresh_index(handle, **{kind: BUILD[kind] for kind in BUILD if kind not in first})
    _agrees(root, drawn)
    assert sec.refresh_index(handle).is_current
    sec.optimize_index(handle)
    _agrees(root, drawn)
    assert sec.verify_index(handle).sound
    findings, _ = compared(opened_strictly(handle), run_in_process, lambda n: 2, 1.0, 1, lambda *step: None)
    assert not findings.faults and not findings.skipped


def _agrees(root: Path, predicates: Sequence[str]) -> None:
    for predicate in predicates:
        for ansi in (True, False):
            plans = [sec.prune(sec.open_table(str(root)), predicate, ansi=ansi, use_index=use) for use in (True, False)]
            assert set(zip(*(plans[0].blocks[c].to_pylist() for c in ("file", "row_group")), strict=True)) <= set(
                zip(*(plans[1].blocks[c].to_pylist() for c in ("file", "row_group")), strict=True)
            )
            try:
                expected = by_row_id(plans[1].to_arrow())
            except EvaluationError:
                continue  # on a row that the other plan may have ruled out
            assert by_row_id(plans[0].to_arrow()) == expected, predicate


# ---- what it prunes --------------------------------------------------------------------------------------------------


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Ten row groups with names, numbers and messages of their own."""
    rows = range(1000)
    data = {
        "id": pa.array(rows, pa.int64()),
        "name": [f"Name{i * 7919 % 1000} X" for i in rows],
        "message": [f"a b c d e f g k{i * 7919 % 1000}" for i in rows],
        "price": [float(i // 100) for i in rows],
        "quantity": pa.array([i % 10 for i in rows], pa.int32()),
        "at": pa.array([dt.datetime(2024, 1, 1)] * 1000, pa.timestamp("us", "UTC")),
    }
    write_file(tmp_path / "a.parquet", data, row_group_size=100)
    return tmp_path


@pytest.mark.parametrize(
    ("build", "predicate", "blocks"),
    [
        ({"bloom": ["lower(name)"]}, "lower(name) = 'name7 x'", 1),
        ({"bloom": ["LOWER( Name )"]}, "Lower(NAME) IN ('name7 x', 'absent')", 1),
        ({"bloom": ["lower(name)"]}, "name ILIKE 'NAME7 x'", 1),
        ({"bloom": ["lower(name)"]}, "lower(name) = 'name7 x' OR lower(name) = 'name8 x' AND price >= 0", 2),
        ({"postings": ["cast(id % 1000 as string)"]}, "cast(id % 1000 AS string) = '7'", 1),
        ({"postings": ["split(message, ' ')[7]"]}, "split(message, ' ')[7] = 'k7'", 1),
        ({"zone_map": ["price * quantity"]}, "price*quantity > 80", 1),
        ({"gaps": ["id * 2"]}, "id * 2 = 7", 0),
        ({"ngram": ["lower(message)"]}, "lower(message) LIKE '%g k77'", 6),
        ({"tokens": ["upper(message)"]}, "upper(message) LIKE '% K7'", 1),
        ({"bloom": ["lower(name)"]}, "upper(name) = 'NAME7 X'", 1),
        ({"bloom": ["lower(name)"]}, "NOT (upper(name) NOT IN ('NAME7 X', 'NAME8 X'))", 2),
        ({"bloom": ["coalesce(name, '')"]}, "coalesce(name, '') = 'Name7 X'", 1),
    ],
)
def test_an_indexed_expression_prunes(lake: Path, build: dict[str, Any], predicate: str, blocks: int) -> None:
    table = sec.open_table(str(lake))
    sec.build_index(table, **build, fpr=1e-9)
    plan = sec.prune(table, predicate, strict=True)
    assert len(plan.blocks) <= blocks
    assert plan.to_arrow() == sec.prune(table, predicate, use_index=False).to_arrow()


def test_c09_a_block_with_an_unknown_value_is_kept(tmp_path: Path) -> None:
    """Where ANSI mode raises an error, and where only Spark knows the lower case."""
    names = ["Abc", "\u03a3", "ab", "zz"]
    write_file(tmp_path / "a.parquet", {"n": [1, 2**62, 3, 4], "s": names}, row_group_size=1)
    table = sec.open_table(str(tmp_path))
    sec.build_index(table, bloom=["n * 4", "concat('x', lower(s))"])
    for ansi in (True, False):
        kept = sec.prune(table, "n * 4 = 5", ansi=ansi).blocks["row_group"].to_pylist()
        assert kept == ([1] if ansi else [])  # without ANSI mode 2^64 is 0, by the rows
        assert sec.prune(table, "n * 4 = 0", ansi=ansi).blocks["row_group"].to_pylist() == [1]
    assert sec.prune(table, "concat('x', lower(s)) = 'x\u03c3'").blocks["row_group"].to_pylist() == [1]


def test_all_forms_that_a_text_may_have_are_found(tmp_path: Path) -> None:
    """A machine in Turkey has another lower case of I."""
    write_file(tmp_path / "a.parquet", {"s": ["ÀI", "ab"]}, row_group_size=1)
    table = sec.open_table(str(tmp_path))
    sec.build_index(table, postings=["lower(s)"])
    for form in ("ài", "à\u0131"):
        assert sec.prune(table, f"lower(s) = '{form}'").blocks["row_group"].to_pylist() == [0]


def test_upper_case_is_looked_up_in_lower_case(tmp_path: Path) -> None:
    """Characters beyond ASCII that become ASCII are among the texts asked for."""
    texts = ["Masse", "maße", "ma\u017fse", "f\u0131le", "\ufb01le", "FILE", "other", "fi\u0307le"]
    write_file(tmp_path / "a.parquet", {"s": texts}, row_group_size=1)
    table = sec.open_table(str(tmp_path))
    sec.build_index(table, postings=["lower(s)"])

    def kept(predicate: str) -> list[int]:
        return sec.prune(table, predicate, strict=True).blocks["row_group"].to_pylist()  # type: ignore[no-any-return]

    assert kept("upper(s) = 'MASSE'") == [0, 1, 2]
    assert kept("upper(s) IN ('FILE', 'file')") == [3, 4, 5, 7]  # the last in Lithuanian only
    assert kept("upper(s) IS NULL") == []
    assert lower_of_upper(rangeset.points(Kind.BYTES, [b"MISSISSIPPI SISSI"])) is None


def test_c28_a_column_of_another_type_is_not_the_column_that_was_indexed(tmp_path: Path) -> None:
    """The text of a number depends on its type, so the index of the old type serves no more."""
    write_file(tmp_path / "a.parquet", {"x": pa.array([1, 2], pa.int32())}, row_group_size=1)
    table = sec.open_table(str(tmp_path))
    sec.build_index(table, bloom=["x * 2"])
    write_file(tmp_path / "b.parquet", {"x": pa.array([2**40, 2], pa.int64())}, row_group_size=1)
    for _ in range(2):
        plan = sec.prune(table, f"x * 2 = {2**41}", strict=True)
        assert plan.to_arrow()["x"].to_pylist() == [2**40]
        sec.refresh_index(table)
    assert len(sec.prune(table, "x * 2 = 4").blocks) == 2


def test_a_partition_column_is_not_the_column_of_that_name_in_the_files(tmp_path: Path) -> None:
    write_file(tmp_path / "k=B" / "a.parquet", {"k": ["a"], "v": [1]})
    table = sec.open_table(str(tmp_path))
    sec.build_index(table, bloom=["lower(k)"])
    assert sec.prune(table, "lower(k) = 'b'", strict=True).to_arrow()["v"].to_pylist() == [1]
    assert len(sec.prune(table, "lower(k) = 'a'", strict=True).blocks) == 0


@pytest.mark.parametrize(
    ("expression", "error", "said"),
    [
        ("lower(nam)", UnknownColumn, "did you mean name"),
        ("nam", UnknownColumn, "did you mean name"),
        ("hour(at)", InvalidOption, "depends on the session's time zone"),
        ("rand()", InvalidOption, "only Spark can evaluate it"),
        ("current_date()", InvalidOption, "only Spark can evaluate it"),
        ("lower(name) || cast(price as string)", InvalidOption, "only Spark can evaluate it"),
        ("cast(name as string)", InvalidOption, "is the column name"),
        ("1 + 1", InvalidOption, "is a constant"),
        ("CASE WHEN id * 2 > 5 THEN 1 END", InvalidOption, "depends on the session's ANSI mode"),
    ],
)
def test_what_cannot_be_indexed_is_refused_with_the_reason(
    lake: Path, expression: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        sec.build_index(sec.open_table(str(lake)), bloom=[expression])


def test_native_filters_are_of_columns(lake: Path) -> None:
    with pytest.raises(InvalidOption, match="the files have no bloom filters"):
        sec.build_index(sec.open_table(str(lake)), bloom={"lower(name)": "native"})


def test_an_index_of_expressions_says_what_it_has(lake: Path) -> None:
    table = sec.open_table(str(lake))
    built = sec.build_index(table, bloom=["lower(name)"], zone_map=["price * quantity"])
    assert built.columns[-2:] == ("(`price` * `quantity`)", "lower(`name`)")
    assert built.bloom == ("lower(`name`)",)
    coverage = {(row["column"], row["structure"]) for row in sec.inspect.coverage(table).to_pylist()}
    assert {
        ("lower(`name`)", "bloom"),
        ("lower(`name`)", "zone map"),
        ("(`price` * `quantity`)", "zone map"),
    } <= coverage
    plan = sec.prune(table, "lower(name) = 'name7 y'")
    assert "caution" not in plan.explain()
    assert "bloom filter of lower(`name`)" in str(plan.explain(verbose=True))
    (pruned,) = {plan.why("a.parquet", group).cause.statistic[:40] for group in range(10)}
    assert pruned.startswith("by the bloom filter of lower(`name`)")
    advice = sec.advise(table, ["lower(name) = 'name7 x'", "price * quantity > 80 AND upper(name) = 'NAME7 X'"])
    assert "lower(`name`)" not in str(advice)  # it has what serves it
