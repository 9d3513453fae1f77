"""One predicate, said in SQL, on sec.col(), as a PySpark Column or in PyIceberg, is one tree and one answer."""

from __future__ import annotations

import datetime as dt
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg import expressions as ice
from pyiceberg.expressions.literals import FloatLiteral, TimeLiteral
from pyiceberg.expressions.visitors import expression_evaluator, rewrite_not
from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids
from pyiceberg.schema import assign_fresh_schema_ids
from pyiceberg.typedef import Record
from pyspark.errors import ParseException
from pyspark.sql import functions as classic
from pyspark.sql.connect import functions as connect

import secateur as sec
from secateur.errors import InvalidPredicate, UnknownColumn
from secateur.io.spark.column.sql import sql_of
from secateur.io.spark.version import IS_3
from secateur.io.tables.iceberg.expressions import predicate_of
from secateur.pruning.predicate.nodes import And, Literal, Not, Or, Predicate
from secateur.pruning.predicate.patterns.regular_expressions import token_pattern
from secateur.pruning.predicate.sql.parse import parse
from tests.support.drawn.trees import flat

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

    from tests.support.tables import WriteTable

a, b, s, x, d, ts, local, flag = (sec.col(name) for name in ("a", "b", "s", "x", "d", "ts", "local", "flag"))
arr, attrs = sec.col("arr"), sec.col("attrs")
NOON = dt.datetime(2024, 1, 2, 12, tzinfo=dt.UTC)
DAY = dt.date(2024, 1, 2)


@dataclass(frozen=True)
class Case:
    """One predicate in all the languages that can say it."""

    text: str
    expression: Predicate | None = None
    column: Callable[[Any], Column] | None = None  # of pyspark.sql.functions, of Classic or of Connect
    iceberg: ice.BooleanExpression | None = None


CASES = [
    # comparisons and literals
    Case("a = 5", a == 5, lambda f: f.col("a") == 5, ice.EqualTo("a", 5)),
    Case("a < 5", a < 5, lambda f: f.col("a") < 5, ice.LessThan("a", 5)),
    Case("a <= 5", a <= 5, lambda f: f.col("a") <= 5, ice.LessThanOrEqual("a", 5)),
    Case("-5 < a", -5 < a, lambda f: f.lit(-5) < f.col("a"), ice.GreaterThan("a", -5)),  # noqa: SIM300
    Case("5 <= a", a >= 5, lambda f: f.lit(5) <= f.col("a"), ice.GreaterThanOrEqual("a", 5)),
    Case("a != 5", a != 5, lambda f: f.col("a") != 5),
    Case("a <=> 5", a.eq_null_safe(5), lambda f: f.col("a").eqNullSafe(5)),
    Case("NOT a <=> 5", ~a.eq_null_safe(5), lambda f: ~f.col("a").eqNullSafe(5), ice.NotEqualTo("a", 5)),
    Case("a <=> NULL", a.eq_null_safe(None), lambda f: f.col("a").eqNullSafe(None)),
    Case("a = b", a == b, lambda f: f.col("a") == f.col("b")),
    Case("a < b", a < b, lambda f: f.col("a") < f.col("b")),
    Case("a = 3000000000", a == 3_000_000_000, None, ice.EqualTo("a", 3_000_000_000)),
    Case("a = 3000000000L", a == 3_000_000_000, lambda f: f.col("a") == 3_000_000_000),
    Case("a = -9223372036854775808", a == -(2**63), lambda f: f.col("a") == -(2**63), ice.EqualTo("a", -(2**63))),
    Case("x = 1e-3", x == 1e-3, lambda f: f.col("x") == 1e-3, ice.EqualTo("x", 1e-3)),
    Case("x > CAST('inf' AS DOUBLE)", x > math.inf, lambda f: f.col("x") > math.inf),
    Case("x = -0.0D", x == -0.0, lambda f: f.col("x") == -0.0, ice.EqualTo("x", -0.0)),
    Case("a = 1.50", a == Decimal("1.50"), lambda f: f.col("a") == Decimal("1.50"), ice.EqualTo("a", Decimal("1.50"))),
    Case("flag = TRUE", flag == True, lambda f: f.col("flag") == True, ice.EqualTo("flag", True)),  # noqa: E712
    Case(
        "s = 'it\\'s \\\\ 😀'", s == "it's \\ 😀", lambda f: f.col("s") == "it's \\ 😀", ice.EqualTo("s", "it's \\ 😀")
    ),
    Case("bin = X'00FF'", sec.col("bin") == b"\0\xff", lambda f: f.col("bin") == f.lit(b"\0\xff")),
    Case("bin = X'FF'", sec.col("bin") == b"\xff", None, ice.EqualTo("bin", b"\xff")),
    Case("d = DATE '2024-01-02'", d == DAY, lambda f: f.col("d") == DAY, ice.EqualTo("d", DAY)),
    Case("ts < TIMESTAMP '2024-01-02 12:00:00+00:00'", ts < NOON, lambda f: f.col("ts") < f.lit(NOON)),
    Case("ts < '2024-01-02 12:00:00+00:00'", ts < str(NOON), None, ice.LessThan("ts", NOON)),
    Case("x = CAST('NaN' AS DOUBLE)", x == math.nan, lambda f: f.col("x") == math.nan),
    Case(
        "x = CAST('0.1' AS FLOAT)",
        x == Literal(float(np.float32(0.1)), "float"),
        None,
        ice.EqualTo("x", FloatLiteral(0.1)),
    ),
    Case("isnan(x)", sec.call_function("isnan", x), lambda f: f.isnan("x"), ice.IsNaN("x")),
    Case("NOT isnan(x)", ~sec.call_function("isnan", x), lambda f: ~f.isnan("x"), ice.NotNaN("x")),
    # connectives, NULL, sets, ranges
    Case("TRUE", None, lambda f: f.lit(True), ice.AlwaysTrue()),
    Case("FALSE", None, lambda f: f.lit(False), ice.AlwaysFalse()),
    Case("flag", flag.is_true, lambda f: f.col("flag")),
    Case("NOT flag", ~flag.is_true, lambda f: ~f.col("flag")),
    Case(
        "a = 1 AND s = 'x' AND x < 2",
        (a == 1) & (s == "x") & (x < 2),
        lambda f: (f.col("a") == 1) & ((f.col("s") == "x") & (f.col("x") < 2)),
        ice.And(ice.EqualTo("a", 1), ice.EqualTo("s", "x"), ice.LessThan("x", 2)),
    ),
    Case(
        "(a = 1 OR s = 'x') AND NOT (a > 2 OR flag)",
        ((a == 1) | (s == "x")) & ~((a > 2) | flag.is_true),
        lambda f: ((f.col("a") == 1) | (f.col("s") == "x")) & ~((f.col("a") > 2) | f.col("flag")),
    ),
    Case("a IS NULL", a.is_null(), lambda f: f.col("a").isNull(), ice.IsNull("a")),
    Case("a IS NOT NULL", a.is_not_null(), lambda f: f.col("a").isNotNull(), ice.NotNull("a")),
    Case("a IN (1, 2)", a.isin([1, 2]), lambda f: f.col("a").isin(1, 2), ice.In("a", [2, 1])),
    Case("a IN (1, NULL)", a.isin([1, None]), lambda f: f.col("a").isin([1, None])),
    Case("NOT a IN (1, 2)", ~a.isin([1, 2]), lambda f: ~f.col("a").isin(1, 2)),
    Case("a IS NULL OR NOT a IN (1, 2)", a.is_null() | ~a.isin([1, 2]), None, ice.NotIn("a", [1, 2])),
    Case("a BETWEEN 1 AND 2", a.between(1, 2), lambda f: f.col("a").between(1, 2)),
    # strings
    Case("s LIKE 'a%b_'", s.like("a%b_"), lambda f: f.col("s").like("a%b_")),
    Case("s LIKE 'a!%' ESCAPE '!'", s.like("a!%", "!"), lambda f: f.like("s", f.lit("a!%"), f.lit("!"))),
    Case("s RLIKE '^a.*'", s.rlike("^a.*"), lambda f: f.col("s").rlike("^a.*")),
    Case("s ILIKE 'A%'", s.ilike("A%"), lambda f: f.col("s").ilike("A%")),
    Case("s ILIKE 'A!%' ESCAPE '!'", s.ilike("A!%", "!"), lambda f: f.ilike("s", f.lit("A!%"), f.lit("!"))),
    Case("instr(s, 'b') > 0", sec.call_function("instr", s, "b") > 0, lambda f: f.instr("s", "b") > 0),
    Case("has_token(s, 'x')", sec.has_token("s", "x"), lambda f: f.col("s").rlike(token_pattern("x"))),
    Case("startswith(s, 'a_')", s.startswith("a_"), lambda f: f.col("s").startswith("a_"), ice.StartsWith("s", "a_")),
    Case("endswith(s, '%')", s.endswith("%"), lambda f: f.col("s").endswith("%")),
    Case("contains(s, 'b')", s.contains("b"), lambda f: f.col("s").contains("b")),
    Case("startswith(s, t)", s.startswith(sec.col("t")), lambda f: f.col("s").startswith(f.col("t"))),
    Case("s IS NULL OR s NOT LIKE 'x%'", s.is_null() | ~s.startswith("x"), None, ice.NotStartsWith("s", "x")),
    Case("substring(s, 1, 2) = 'ab'", s.substr(1, 2) == "ab", lambda f: f.col("s").substr(1, 2) == "ab"),
    Case("upper(s) = 'A'", sec.call_function("ucase", s) == "A", lambda f: f.upper("s") == "A"),
    # arithmetic, casts, functions
    Case("a + 1 > 5", a + 1 > 5, lambda f: f.col("a") + 1 > 5),
    Case("5 < 1 + a", 5 < 1 + a, None),  # noqa: SIM300
    Case("(a - b) * 2 >= -a", (a - b) * 2 >= -a, lambda f: (f.col("a") - f.col("b")) * 2 >= -f.col("a")),
    Case("10 - a / 2 % 3 = 1", 10 - a / 2 % 3 == 1, lambda f: 10 - f.col("a") / 2 % 3 == 1),
    Case("2 * a = 1 % b", 2 * a == 1 % b, None),  # Classic turns it around
    Case("CAST(s AS INT) = 1", s.cast("integer") == 1, lambda f: f.col("s").cast("int") == 1),
    Case("CAST(a AS long) = b", a.cast("long") == b, lambda f: f.col("a").cast("bigint") == f.col("b")),
    Case(
        "try_cast(s AS decimal(10,2)) > 1",
        s.try_cast("decimal(10,2)") > 1,
        lambda f: f.col("s").try_cast("decimal(10,2)") > 1,
    ),
    Case("CAST(ts AS DATE) = DATE '2024-01-02'", ts.cast("date") == DAY, lambda f: f.to_date("ts") == DAY),
    Case("year(ts) = 2024", sec.call_function("year", ts) == 2024, lambda f: f.year("ts") == 2024),
    Case(
        "EXTRACT(YEAR FROM ts) = 2024",
        sec.call_function("YEAR", ts) == 2024,
        lambda f: f.extract(f.lit("YEAR"), "ts") == 2024,
    ),
    Case("day(d) = 2", sec.call_function("dayofmonth", d) == 2, lambda f: f.call_function("day", f.col("d")) == 2),
    Case(
        "date_trunc('month', ts) = ts",
        sec.call_function("date_trunc", "month", ts) == ts,
        lambda f: f.date_trunc("month", "ts") == f.col("ts"),
    ),
    Case(
        "coalesce(a, b, 1) = 1",
        sec.call_function("coalesce", a, b, 1) == 1,
        lambda f: f.coalesce("a", "b", f.lit(1)) == 1,
    ),
    Case("power(x, 2) = 4", sec.call_function("power", x, 2) == 4, lambda f: f.col("x") ** 2 == 4),
    Case(
        "CASE WHEN a > 1 THEN 'x' WHEN a IS NULL THEN s ELSE 'z' END = 'x'",
        sec.when(a > 1, "x").when(a.is_null(), s).otherwise("z") == "x",
        lambda f: f.when(f.col("a") > 1, "x").when(f.col("a").isNull(), f.col("s")).otherwise("z") == "x",
    ),
    Case("CASE WHEN a > 1 THEN 2 END = 2", sec.when(a > 1, 2) == 2, lambda f: f.when(f.col("a") > 1, 2) == 2),
    Case(
        "if(flag, a, b) = 1",
        sec.call_function("if", flag, a, b) == 1,
        lambda f: f.call_function("if", f.col("flag"), f.col("a"), f.col("b")) == 1,
    ),
    Case("(a > 1) = (b > 1)", None, lambda f: (f.col("a") > 1) == (f.col("b") > 1)),
    # names
    Case("st.f = 1", sec.col("st.f") == 1, lambda f: f.col("st.f") == 1, ice.EqualTo("st.f", 1)),
    Case("st.f = 1", sec.col("st")["f"] == 1, lambda f: f.col("st")["f"] == 1),
    Case("st.f = 1", sec.col("st")["f"] == 1, lambda f: f.col("st").getField("f").alias("g") == 1),
    Case("`odd ``name.x` = 1", sec.col("`odd ``name.x`") == 1, lambda f: f.col("`odd ``name.x`") == 1),
    # elements and keys
    Case("array_contains(arr, 1)", sec.call_function("array_contains", arr, 1), lambda f: f.array_contains("arr", 1)),
    Case(
        "NOT arrays_overlap(arr, array(1, 2))",
        ~sec.call_function("arrays_overlap", arr, sec.call_function("array", 1, 2)),
        lambda f: ~f.arrays_overlap("arr", f.array(f.lit(1), f.lit(2))),
    ),
    Case(
        "map_contains_key(attrs, 'k')",
        sec.call_function("map_contains_key", attrs, "k"),
        lambda f: f.map_contains_key("attrs", "k"),
    ),
    Case("attrs['k'] = 'v'", attrs["k"] == "v", lambda f: f.col("attrs")["k"] == "v"),
    Case("attrs['k'] IS NOT NULL", attrs["k"].is_not_null(), lambda f: f.col("attrs").getItem("k").isNotNull()),
    Case(
        "element_at(attrs, 'k') = 'v'",
        sec.call_function("element_at", attrs, "k") == "v",
        lambda f: f.element_at("attrs", "k") == "v",
    ),
    Case("st['f'] = 1", sec.col("st")["f"] == 1, lambda f: f.col("st")["f"] == 1),
    # what has no node stays text
    Case("s LIKE ANY ('A%')", None, lambda f: f.expr("s LIKE ANY ('A%')")),
    Case("(`a` & 1) = 1", None, lambda f: f.col("a").bitwiseAND(1) == 1),
    Case("`arr`[0] = 1", None, lambda f: f.col("arr")[0] == 1),
    Case("a + 1 > 5 -- so", None, lambda f: f.expr("a + 1 > 5 -- so")),
    Case("a = 1 AND (b = 2 OR flag)", None, lambda f: (f.col("a") == 1) & f.expr("b = 2 OR flag")),
]


# Spark 3.5 has no function for the first, another expression for the second, and for the third none that has a name.
OTHERWISE_IN_3 = ("try_cast(s AS decimal(10,2)) > 1", "map_contains_key(attrs, 'k')", "s LIKE ANY ('A%')")


def said(kind: str) -> list[Any]:
    """The cases that a front end can say, as parameters."""
    return [
        pytest.param(c, id=f"{i} {c.text}")
        for i, c in enumerate(CASES)
        if getattr(c, kind) is not None and not (IS_3 and kind == "column" and c.text in OTHERWISE_IN_3)
    ]


def assert_is(predicate: Predicate, text: str) -> None:
    """That a tree is that of the text, and prints as what is read as the same."""
    expected = parse(text)
    if not any(word in text for word in ("DATE '", "TIMESTAMP '")):  # of which text keeps the text
        assert repr_of(flat(predicate)) == repr_of(expected)
    again = flat(parse(str(predicate)))
    assert repr_of(again) == repr_of(flat(parse(str(expected))))
    assert str(again) == str(expected)


def repr_of(predicate: Predicate) -> str:
    """All of a tree; NaN, which is not equal to itself, included."""
    match predicate:
        case And(children) | Or(children):
            return f"{type(predicate).__name__}({', '.join(map(repr_of, children))})"
        case Not(child):
            return f"Not({repr_of(child)})"
        case _:
            return f"{type(predicate).__name__}{vars(predicate)}"


@pytest.mark.parametrize("case", said("expression"))
def test_expressions_on_col(case: Case) -> None:
    assert case.expression is not None
    assert_is(case.expression, case.text)
    assert repr(case.expression) == str(case.expression)


@pytest.mark.parametrize("case", said("column"))
def test_columns_of_connect(case: Case) -> None:
    assert case.column is not None
    assert_is(parse(sql_of(case.column(connect))), case.text)


@pytest.mark.parametrize("case", said("column"))
def test_columns_of_classic(spark: SparkSession, case: Case) -> None:
    assert case.column is not None
    assert_is(parse(sql_of(case.column(classic))), case.text)


@pytest.mark.parametrize("case", said("iceberg"))
def test_expressions_of_iceberg(case: Case) -> None:
    assert case.iceberg is not None
    assert_is(predicate_of(case.iceberg), case.text)


ROWS = """
    a int, b int, s string, t string, x double, d date, ts timestamp, flag boolean, bin binary, st struct<f:int>,
    arr array<int>, attrs map<string,string>, `odd ``name.x` int
"""


def test_spark_answers_a_column_as_its_text(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Europe/Paris")
    row = (5, 2, "12", "1", 1e-3, DAY, NOON, True, b"\0\xff", (1,), [1, 2], {"k": "v"}, 1)
    rows = [
        row,
        (1, 1, "1", "1", math.nan, DAY, NOON, False, b"", (2,), [0], {}, 2),
        (None,) * 10 + ([None], None, None),
    ]
    frame = spark.createDataFrame(rows, ROWS)
    columns = [case.values[0].column(classic) for case in said("column")]
    pairs = [[column.alias(f"c{i}"), classic.expr(sql_of(column)).alias(f"t{i}")] for i, column in enumerate(columns)]
    for answer in frame.select([column for pair in pairs for column in pair]).collect():
        for i, case in enumerate(said("column")):
            assert answer[f"c{i}"] == answer[f"t{i}"], case.id


LITERALS: list[tuple[Any, str]] = [
    (None, "NULL"),
    (True, "TRUE"),
    (5, "5"),
    (2**40, "1099511627776L"),
    (np.int8(5), "5Y"),
    (np.int16(5), "5S"),
    (np.int64(5), "5L"),
    (np.float32(0.1), "CAST('0.10000000149011612' AS FLOAT)"),
    (0.1, "CAST('0.1' AS DOUBLE)"),
    (-0.0, "CAST('-0.0' AS DOUBLE)"),
    (math.nan, "CAST('nan' AS DOUBLE)"),
    (-math.inf, "CAST('-inf' AS DOUBLE)"),
    (Decimal("1.50"), "1.50BD"),
    (Decimal("-0.01"), "-0.01BD"),
    ("it's", "'it\\'s'"),
    (b"\0\xff", "X'00FF'"),
    (dt.date(1000, 1, 1), "DATE '1000-01-01'"),
    (dt.date(9999, 12, 31), "DATE '9999-12-31'"),
    (NOON, "TIMESTAMP '2024-01-02 12:00:00+00:00'"),
    (NOON.replace(microsecond=7), "TIMESTAMP '2024-01-02 12:00:00.000007+00:00'"),
    (NOON.astimezone(dt.timezone(dt.timedelta(hours=5))), "TIMESTAMP '2024-01-02 12:00:00+00:00'"),
]


@pytest.mark.parametrize(("value", "text"), LITERALS)
def test_literals_of_columns_keep_their_types(spark: SparkSession, value: Any, text: str) -> None:
    assert sql_of(connect.lit(value)) == text
    again = f"a = {sql_of(classic.lit(value))}"  # in which numpy's scalars are cast
    assert repr_of(parse(again)) == repr_of(parse(f"a = {text}"))


def test_a_local_time_of_a_column_is_a_timestamp_ntz(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Europe/Paris")
    text = "CAST('2024-01-02 12:00:00' AS TIMESTAMP_NTZ)"
    for functions in (classic, connect):
        assert sql_of(functions.lit("2024-01-02 12:00:00").cast("timestamp_ntz")) == text


def test_a_decimal_of_connect_keeps_its_declared_type_where_a_result_depends_on_it() -> None:
    """Connect declares decimal(10,0), which the server widens until the value fits."""
    column, number = connect.col("a"), Decimal("1.5")
    assert sql_of(column > number) == "`a` > 1.5BD"
    assert sql_of(column / number > 1) == "(`a` / CAST(1.5BD AS DECIMAL(10, 1))) > 1"


REFUSED: list[tuple[str, Callable[[Any], Any], str]] = [
    ("lambda", lambda f: f.exists("arr", lambda item: item > 1), "lambda"),
    ("sort", lambda f: f.col("a").asc(), "sort order"),
    ("array", lambda f: f.col("a").cast("array<int>") == f.col("arr"), "cannot cast to"),
    ("interval", lambda f: f.col("ts") > f.lit(dt.timedelta(1)), "interval"),
    ("star", lambda f: f.count("*") > 1, "star|aggregate"),
    ("name", lambda f: f.call_function("db.f", f.col("a")) > 1, "'db.f'"),
    ("sql", lambda f: f.expr("a > 1) OR (TRUE"), "cannot parse|PARSE_SYNTAX_ERROR"),
    ("nested", lambda f: f.expr("a > 1") & f.expr("b +"), "cannot parse|PARSE_SYNTAX_ERROR"),
]


@pytest.mark.parametrize(("column", "message"), [pytest.param(*case[1:], id=case[0]) for case in REFUSED])
def test_what_a_column_cannot_say_is_refused(spark: SparkSession, column: Any, message: str) -> None:
    for functions in (classic, connect):
        with pytest.raises((InvalidPredicate, ParseException), match=message):  # of Spark 3.5, which parses at once
            sql_of(column(functions))


def test_python_functions_in_columns_are_refused(spark: SparkSession) -> None:
    double = classic.udf(lambda value: 2 * value, "int")
    with pytest.raises(InvalidPredicate, match="Python function"):
        sql_of(double(classic.col("a")) > 1)


def test_the_columns_of_a_frame_are_columns(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, ("x",))], "a int, address struct<zip:string>")
    assert sql_of((frame.a > 1) & (frame["address.zip"] == "x")) == "(`a` > 1) AND (`address`.`zip` = 'x')"
    assert sql_of(frame.address.zip == "x") == "`address`.`zip` = 'x'"


def test_long_rows_of_conditions_are_read() -> None:
    column = connect.col("a") == 0
    for i in range(1, 500):
        column = column | (connect.col("a") == i)
    assert len(sql_of(column).split(" OR ")) == 500


def test_columns_nested_too_deeply_are_refused() -> None:
    column = connect.col("a")
    for _ in range(1200):
        column = -column
    with pytest.raises(InvalidPredicate, match="nested too deeply"):
        sql_of(column > 0)


# ---- expressions on sec.col() ----------------------------------------------------------------------------------------


def test_expressions_have_no_truth_value_and_no_length() -> None:
    with pytest.raises(TypeError, match="no truth value"):
        bool(a)
    with pytest.raises(TypeError, match="no truth value"):
        assert 1 < a < 5
    with pytest.raises(TypeError):
        list(a)


def test_scalars_of_numpy_may_stand_on_the_left() -> None:
    assert str(np.int64(2) * a > np.int64(5)) == "(2 * `a`) > 5"
    assert str(np.int64(5) < a) == "`a` > 5"


def test_functions_and_types_that_are_none_are_refused() -> None:
    with pytest.raises(InvalidPredicate, match="not the name of a function"):
        sec.call_function("f(x) OR g", a)
    with pytest.raises(InvalidPredicate, match="cannot cast to"):
        a.cast("int) = 1 OR (TRUE")


# ---- Iceberg ---------------------------------------------------------------------------------------------------------

ICEBERG = [
    ice.NotEqualTo("a", 1),
    ice.NotIn("a", [1, 2]),
    ice.NotStartsWith("s", "x%"),
    ice.StartsWith("s", "x%"),
    ice.NotNaN("x"),
    ice.IsNaN("x"),
    ice.Not(ice.LessThan("a", 2)),
    ice.Not(ice.And(ice.EqualTo("a", 1), ice.NotNull("s"))),
    ice.Or(ice.In("a", [3, 4]), ice.Not(ice.Or(ice.IsNull("s"), ice.EqualTo("a", 2)))),
    ice.LessThan("ts", NOON),
    ice.EqualTo("ts", NOON.replace(hour=13)),
    ice.EqualTo("d", "2024-01-02"),
    ice.NotEqualTo("money", Decimal("1.50")),
]


def iceberg_rows() -> pa.Table:
    hours = [NOON, None, NOON.replace(hour=13), NOON.replace(hour=1)]
    return pa.table(
        {
            "a": pa.array([1, None, 2, 3], pa.int32()),
            "s": ["x%y", None, "xy", ""],
            "x": [1.0, None, math.nan, -1.0],
            "ts": pa.array(hours, pa.timestamp("us", "UTC")),
            "local": pa.array([hour and hour.replace(tzinfo=None) for hour in hours], pa.timestamp("us")),
            "d": [DAY, None, dt.date(2024, 1, 1), DAY],
            "money": pa.array([Decimal("1.50"), None, Decimal("1.51"), Decimal("0.00")], pa.decimal128(9, 2)),
        }
    )


def rows_of_iceberg(expression: ice.BooleanExpression) -> list[int]:
    """The rows that PyIceberg's evaluator finds; its filters of Arrow drop NULL, which Iceberg's != lets pass."""
    schema = assign_fresh_schema_ids(_pyarrow_to_schema_without_ids(iceberg_rows().schema))
    holds = expression_evaluator(schema, rewrite_not(expression), True)
    days, micros = pa.int32(), pa.int64()
    inner = {pa.date32(): days, pa.timestamp("us"): micros, pa.timestamp("us", "UTC"): micros}
    columns = [column.cast(inner.get(column.type, column.type)).to_pylist() for column in iceberg_rows().columns]
    return [row for row, values in enumerate(zip(*columns, strict=True)) if holds(Record(*values))]


@pytest.mark.parametrize("expression", ICEBERG, ids=str)
def test_iceberg_has_the_rows_of_iceberg(write_table: WriteTable, expression: ice.BooleanExpression) -> None:
    """Also where the session's time zone is not UTC."""
    table = sec.open_table(str(write_table({"rows.parquet": iceberg_rows().append_column("row", [range(4)])})))
    scan = sec.prune(table, expression, session_time_zone="America/New_York")
    assert scan.to_arrow()["row"].to_pylist() == rows_of_iceberg(expression)


def test_datetimes_of_iceberg_are_clocks_beside_columns_without_zone(
    spark: SparkSession, write_table: WriteTable
) -> None:
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    table = sec.open_table(str(write_table({"rows.parquet": iceberg_rows().append_column("row", [range(4)])})))
    for column in ("local", "ts"):
        for expression in (ice.LessThan(column, NOON), ice.EqualTo(column, NOON.replace(hour=13))):
            rows = sorted(row.row for row in sec.prune(table, expression).to_spark(spark).collect())
            assert rows == rows_of_iceberg(expression)


def test_iceberg_expressions_that_have_no_node_are_refused() -> None:
    with pytest.raises(InvalidPredicate, match="TimeLiteral"):
        predicate_of(ice.EqualTo("a", TimeLiteral(5)))
    uuid = UUID(int=5)
    assert str(predicate_of(ice.EqualTo("id", uuid))) == f"`id` = X'{uuid.hex}'"


# ---- prune -----------------------------------------------------------------------------------------------------------


def test_prune_takes_predicates_of_all_front_ends(spark: SparkSession, write_table: WriteTable) -> None:
    table = sec.open_table(str(write_table({"rows.parquet": {"a": [1, 2, None], "s": ["x", "y", "z"]}})))
    for predicate in ("a = 2", a == 2, classic.col("a") == 2, connect.col("a") == 2, ice.EqualTo("a", 2)):
        scan = sec.prune(table, predicate)
        assert scan.to_arrow()["s"].to_pylist() == ["y"]
        assert [row.s for row in scan.to_spark(spark).collect()] == ["y"]
    lower = sec.prune(table, classic.col("s").ilike("Y"))  # only Spark knows it
    assert [row.s for row in lower.to_spark(spark).collect()] == ["y"]
    with pytest.raises(InvalidPredicate, match="not a predicate"):
        sec.prune(table, 5)  # type: ignore[arg-type]
    with pytest.raises(UnknownColumn):
        sec.prune(table, connect.col("nope") == 1)


def test_other_libraries_are_not_imported_for_the_question() -> None:
    program = """
import sys
import secateur as sec
modules = {name.split(".")[0] for name in sys.modules}
assert not {"numpy", "pyarrow", "click"} & modules, "the names of secateur are imported when they are asked for"
sec.open_table, sec.prune, sec.aggregate, sec.col, sec.build_index, sec.refresh_index, sec.verify_index, sec.advise
modules = {name.split(".")[0] for name in sys.modules}
assert "pyarrow" in modules
assert not {"pyiceberg", "grpc", "pyspark", "pandas", "sqlglot"} & modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_sqlglot_is_not_imported_without_a_text(tmp_path: Path) -> None:
    """Importing it takes longer than planning."""
    pq.write_table(pa.table({"id": range(1000)}), tmp_path / "a.parquet", row_group_size=100)
    sec.build_index(sec.open_table(str(tmp_path)), sort_key=["id"], bloom=["id"])
    program = f"""
import sys
import secateur as sec
table = sec.open_table({str(tmp_path)!r})
assert sec.prune(table, (sec.col("id") > 10) & (sec.col("id") < 15)).to_arrow().num_rows == 4
assert "sqlglot" not in sys.modules, "an expression"
assert sec.prune(table, "id > 10 AND id < 15").to_arrow().num_rows == 4
assert "sqlglot" in sys.modules, "a text is read by it"
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_no_reader_is_imported_to_plan(tmp_path: Path) -> None:
    """Modules that read data files, or show a table, take as long to import as a plan of many files takes."""
    pq.write_table(pa.table({"id": range(1000)}), tmp_path / "a.parquet", row_group_size=100)
    sec.build_index(sec.open_table(str(tmp_path)), sort_key=["id"], bloom=["id"])
    program = f"""
import sys
import secateur as sec
plan = sec.prune({str(tmp_path)!r}, "id = 42", strict=True)
readers = ("secateur.io.parquet.", "secateur.io.scan.reading.", "secateur.io.tables.plain_rows", "pyarrow.parquet")
besides = {{"secateur.io.parquet.arrow_types", "secateur.io.scan.reading.read_ahead"}}
imported = [name for name in sys.modules if name.startswith((*readers, "html")) and name not in besides]
assert not imported, imported
assert plan.to_arrow().num_rows == 1
assert "secateur.io.scan.reading.block_reader" in sys.modules, "it reads"
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_pandas_is_not_imported_to_plan_and_read(tmp_path: Path) -> None:
    """Importing it takes longer than all the rest of a first plan."""
    data = pa.table({"id": range(1000), "word": [f"w{i}" for i in range(1000)], "x": [i / 7 for i in range(1000)]})
    pq.write_table(data, tmp_path / "a.parquet", row_group_size=100)
    sec.build_index(sec.open_table(str(tmp_path)), bloom=["id"])
    program = f"""
import sys
import secateur as sec
assert "pandas" not in sys.modules, "import"
table = sec.open_table({str(tmp_path)!r})
assert sec.prune(table, "id > 10 AND word LIKE 'w5%' AND x < 75").to_arrow().num_rows == 35
assert "pandas" not in sys.modules, "plan and read"
"""
    subprocess.run([sys.executable, "-c", program], check=True)
