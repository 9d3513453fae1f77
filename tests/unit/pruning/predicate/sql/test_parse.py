"""Predicates: text and expressions give one tree, trees print as the SQL they mean, and literals bind as Spark casts.

The tables of cases are the specification; Spark checks every line of them.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException

import secateur as sec
from secateur.errors import IncomparableLiteral, InvalidPredicate
from secateur.io.spark.file_reader import spark_schema
from secateur.pruning.bounds.outcomes import FALSE, NULL, TRUE
from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.bound_walks import is_supported
from secateur.pruning.predicate.nodes import And, Is, Literal, Not, Opaque, Or, Predicate
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.rows.truth import truth
from tests.support.checks.oracle import ask
from tests.support.drawn.strategies import (
    KINDS,
    TEXTS,
    TableSpec,
    binaries,
    decimals,
    floats,
    integers,
    predicates,
    table_specs,
)
from tests.support.drawn.trees import flat
from tests.support.profiles import examples, one_in, some, takes_seconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OUTCOME = {True: TRUE, False: FALSE, None: NULL}
a, s = sec.col("a"), sec.col("s")

# ---- text and expressions --------------------------------------------------------------------------------------------

EXPRESSIONS: list[tuple[str, Predicate, str]] = [  # text, expression, both printed
    ("a = 5", a == 5, "`a` = 5"),
    ("5 = a", a == 5, "`a` = 5"),
    ("a == 5", a == 5, "`a` = 5"),
    ("a <=> 5", a.eq_null_safe(5), "`a` <=> 5"),
    ("a <=> NULL", a.eq_null_safe(None), "`a` <=> NULL"),
    ("a != 5", a != 5, "(NOT `a` = 5)"),
    ("a <> 5", a != 5, "(NOT `a` = 5)"),
    ("a < 5", a < 5, "`a` < 5"),
    ("5 > a", a < 5, "`a` < 5"),
    ("a <= 5", a <= 5, "`a` <= 5"),
    ("5 >= a", a <= 5, "`a` <= 5"),
    ("a > -5", a > -5, "`a` > -5"),
    ("-5 < a", a > -5, "`a` > -5"),
    ("a >= 5", a >= 5, "`a` >= 5"),
    ("5 <= a", a >= 5, "`a` >= 5"),
    ("a BETWEEN 1 AND 2", a.between(1, 2), "(`a` >= 1 AND `a` <= 2)"),
    ("a NOT BETWEEN 1 AND 2", ~a.between(1, 2), "(NOT (`a` >= 1 AND `a` <= 2))"),
    ("a IN (1, 2, NULL)", a.isin([1, 2, None]), "`a` IN (1, 2, NULL)"),
    ("a NOT IN (1, 2)", ~a.isin([1, 2]), "(NOT `a` IN (1, 2))"),
    ("a IS NULL", a.is_null(), "`a` IS NULL"),
    ("isnull(a)", a.is_null(), "`a` IS NULL"),
    ("a IS NOT NULL", a.is_not_null(), "(NOT `a` IS NULL)"),
    ("a", a.is_true, "`a` = TRUE"),
    ("NOT a", ~a.is_true, "(NOT `a` = TRUE)"),
    ("a = 1 AND s = 'x' AND a < 2", (a == 1) & (s == "x") & (a < 2), "(`a` = 1 AND `s` = 'x' AND `a` < 2)"),
    ("a = 1 OR s = 'x' AND a < 2", (a == 1) | ((s == "x") & (a < 2)), "(`a` = 1 OR (`s` = 'x' AND `a` < 2))"),
    ("NOT a = 1 AND s = 'x'", ~(a == 1) & (s == "x"), "((NOT `a` = 1) AND `s` = 'x')"),
    ("s LIKE 'a%b_'", s.like("a%b_"), "`s` LIKE 'a%b_'"),
    ("s NOT LIKE 'a%'", ~s.like("a%"), "(NOT `s` LIKE 'a%')"),
    ("s LIKE 'a!%' ESCAPE '!'", s.like("a!%", escape="!"), "`s` LIKE 'a!%' ESCAPE '!'"),
    ("startswith(s, 'a_')", s.startswith("a_"), "`s` LIKE 'a\\\\_%'"),
    ("s = 'it\\'s'", s == "it's", "`s` = 'it\\'s'"),
    ("s = 'it''s'", s == "it's", "`s` = 'it\\'s'"),
    ("s = ''''", s == "'", "`s` = '\\''"),
    ('s = "a""b"', s == 'a"b', "`s` = 'a\"b'"),
    ("s IN ('', 'it''s%')", s.isin(["", "it's%"]), "`s` IN ('', 'it\\'s%')"),
    ("s LIKE 'it''s%'", s.like("it's%"), "`s` LIKE 'it\\'s%'"),
    ("s = 'a\\\\b'", s == "a\\b", "`s` = 'a\\\\b'"),
    ("s = '😀'", s == "😀", "`s` = '😀'"),
    ("a = 1.50", a == Decimal("1.50"), "`a` = 1.50BD"),
    ("a = 1.50BD", a == Decimal("1.50"), "`a` = 1.50BD"),
    ("a = 1e3", a == 1000.0, "`a` = CAST('1000.0' AS DOUBLE)"),
    ("a = 0.1D", a == 0.1, "`a` = CAST('0.1' AS DOUBLE)"),
    ("a = CAST('inf' AS DOUBLE)", a == float("inf"), "`a` = CAST('inf' AS DOUBLE)"),
    ("a = 5L", a == Literal(5, "bigint"), "`a` = 5L"),
    ("a = X'00FF'", a == b"\0\xff", "`a` = X'00FF'"),
    ("a = TRUE", a == True, "`a` = TRUE"),  # noqa: E712
    ("a = DATE '2024-01-02'", a == Literal("2024-01-02", "date"), "`a` = DATE '2024-01-02'"),
    ("`a` = 1", sec.col("`a`") == 1, "`a` = 1"),
    ("`odd ``name.x`.y = 1", sec.col("`odd ``name.x`")["y"] == 1, "`odd ``name.x`.`y` = 1"),
    ("a.b.c = 1", a["b"]["c"] == 1, "`a`.`b`.`c` = 1"),
]


@pytest.mark.parametrize(("text", "expression", "printed"), EXPRESSIONS, ids=[case[0] for case in EXPRESSIONS])
def test_text_and_expressions_give_one_tree(text: str, expression: Predicate, printed: str) -> None:
    assert str(parse(text)) == printed
    assert parse(text) == flat(expression)


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (dt.date(2024, 1, 2), "DATE '2024-01-02'"),
        (dt.datetime(2024, 1, 2, 3, 4, 5, 6), "TIMESTAMP_NTZ '2024-01-02 03:04:05.000006'"),
        (dt.datetime(2024, 1, 2, tzinfo=dt.UTC), "TIMESTAMP '2024-01-02 00:00:00+00:00'"),
        (np.int32(7), "7"),
        (np.float64(0.5), "CAST('0.5' AS DOUBLE)"),
        (np.bool_(True), "TRUE"),
        (np.str_("x"), "'x'"),
        (float("nan"), "CAST('nan' AS DOUBLE)"),
        (bytearray(b"\1"), "X'01'"),
        (Decimal("1E+2"), "100BD"),
        (-0.0, "CAST('-0.0' AS DOUBLE)"),
    ],
)
def test_python_values_as_literals(value: object, printed: str) -> None:
    assert str(a == value) == f"`a` = {printed}"


@pytest.mark.parametrize("value", [object(), [1], dt.time(1), 1j])
def test_other_python_values_are_no_literals(value: object) -> None:
    with pytest.raises(TypeError, match="is not a literal"):
        a == value  # noqa: B015


BETWEEN_DECIMALS = "(CAST(variant_get(`v`, '$.user') AS DECIMAL(10, 2)) BETWEEN 1 AND 2)"
CALLS = [  # text of expressions, and what it is printed as
    ("a + 1 > 2", "(`a` + 1) > 2"),
    ("2 < -a * 3 % b", "(((- `a`) * 3) % `b`) > 2"),
    ("a = b", "`a` = `b`"),
    ("length(s) > 3", "length(`s`) > 3"),
    ("CHAR_LENGTH(s) > 3", "length(`s`) > 3"),
    ("s RLIKE 'a.*'", "`s` RLIKE 'a.*'"),
    ("rand() < 0.5", "rand() < 0.5BD"),
    ("CASE WHEN a = 1 THEN TRUE ELSE FALSE END", "CASE WHEN `a` = 1 THEN TRUE ELSE FALSE END = TRUE"),
    ("CASE a WHEN 1 THEN 'x' END = 'x'", "CASE WHEN `a` = 1 THEN 'x' ELSE NULL END = 'x'"),
    ("if(a > 1, a, b) = 1", "CASE WHEN `a` > 1 THEN `a` ELSE `b` END = 1"),
    ("a = 1 + 1", "`a` = (1 + 1)"),
    ("CAST(a AS STRING) = '1'", "CAST(`a` AS STRING) = '1'"),
    ("TRY_CAST(s AS decimal(9,2)) = 1", "TRY_CAST(`s` AS DECIMAL(9, 2)) = 1"),
    ("date(s) < current_date()", "CAST(`s` AS DATE) < current_date()"),
    ("nvl(a, 1) = 1", "coalesce(`a`, 1) = 1"),
    ("EXTRACT(YEAR FROM ts) = 2024", "year(`ts`) = 2024"),
    ("a IS DISTINCT FROM b", "(NOT `a` <=> `b`)"),
    ("a < now() - INTERVAL 2 DAYS", "`a` < (now() - INTERVAL '2' DAY)"),
    ("a + INTERVAL '1 12' DAY TO HOUR > b", "(`a` + INTERVAL '1 12:00:00' DAY TO SECOND) > `b`"),
    ("a > b - INTERVAL 1 DAY 30 SECONDS", "`a` > (`b` - INTERVAL '1 00:00:30' DAY TO SECOND)"),
    ("a + (INTERVAL 1 YEAR - INTERVAL 1 MONTH) > b", "(`a` + INTERVAL '11' MONTH) > `b`"),
    ("a - b < INTERVAL -'1:30.5' MINUTE TO SECOND", "(`a` - `b`) < INTERVAL '-0 00:01:30.500000' DAY TO SECOND"),
    ("timestampadd(hour, 24, a) > b", "timestampadd(HOUR, 24, `a`) > `b`"),
    ("datediff(day, a, b) = 1", "timestampdiff(DAY, `a`, `b`) = 1"),
    ("(a > 1) = (s = 'x')", "(`a` > 1) = (`s` = 'x')"),
    ("isnan(x)", "`x` <=> CAST('nan' AS DOUBLE)"),
    ("v:user::int = 7", "CAST(variant_get(`v`, '$.user') AS INT) = 7"),
    ("t.v:a.b[0].c::string LIKE 'x%'", "CAST(variant_get(`t`.`v`, '$.a.b[0].c') AS STRING) LIKE 'x%'"),
    (
        "lower(v:['a b']:`c d`::string) = 'x'",
        "lower(CAST(variant_get(`v`, '$[\\'a b\\'][\\'c d\\']') AS STRING)) = 'x'",
    ),
    ("v:user::decimal(10,2) BETWEEN 1 AND 2", BETWEEN_DECIMALS),
    ("v:user IS NULL OR s = 'a:b'", "(variant_get(`v`, '$.user') IS NULL OR `s` = 'a:b')"),
    ("variant_get(v, '$.user', 'int') = 7", "variant_get(`v`, '$.user', 'int') = 7"),
]


@pytest.mark.parametrize(("text", "printed"), CALLS, ids=[case[0] for case in CALLS])
def test_expressions_of_columns_have_nodes(text: str, printed: str) -> None:
    assert str(parse(text)) == printed
    assert str(parse(printed)) == printed
    assert not any(isinstance(node, Opaque) for node in nodes(parse(text)))


@pytest.mark.parametrize(("text", "message"), [
    ("v:user = 7", "v:user is VARIANT, which does not compare: say its type, as in v:user::int"),
    ("(v:user) IN (7, 8)", "v:user is VARIANT"),
    ("id = 3 AND NOT 7 < v:a.b", "v:a.b is VARIANT"),
    ("v:items[*].x::int = 1", "whole numbers: payload:items[0].id"),
])  # fmt: skip
def test_paths_into_variant_that_spark_refuses(text: str, message: str) -> None:
    with pytest.raises(InvalidPredicate, match=re.escape(message)):
        parse(text)


OPAQUE = [  # what has no node is kept as text, under the connectives as elsewhere
    "s LIKE ANY (SELECT 'a%')",
    "a IN (SELECT 1)",
    "exists(m, x -> x > 1)",
    "arr[0] = 1",
    "a = INTERVAL '1 month 2 days'",
    "a > current_date() + INTERVAL 1 FORTNIGHT",
]


@pytest.mark.parametrize("text", OPAQUE)
def test_c30_what_has_no_node_stays_text(text: str) -> None:
    """Neither dropped nor guessed: an expression of its own, whose NOT is one too."""
    assert any(isinstance(node, Opaque) for node in nodes(parse(text)))
    assert any(isinstance(node, Opaque) for node in nodes(parse(f"NOT ({text}) OR a = 1")))


def nodes(predicate: Predicate) -> Iterator[Predicate]:
    yield predicate
    match predicate:
        case And(children) | Or(children):
            for child in children:
                yield from nodes(child)
        case Not(child) | Is(child):
            yield from nodes(child)


@pytest.mark.parametrize(
    "text", ["s LIKE 'a\\\\b'", "s LIKE 'a\\\\'", "s LIKE 'a!b' ESCAPE '!'", "s LIKE '!' ESCAPE '!'"]
)
def test_c34_a_misplaced_escape_is_refused_as_in_spark(spark: SparkSession, text: str) -> None:
    schema = pa.schema([("s", pa.string())])
    with pytest.raises(InvalidPredicate, match="must precede"):
        bind(parse(text), schema)
    with pytest.raises(PySparkException):
        spark.createDataFrame([("a",)], "s string").where(text).collect()


# ---- printing --------------------------------------------------------------------------------------------------------

literals = st.one_of(
    integers(64),
    floats(64),
    decimals(38, 10),
    st.sampled_from(TEXTS),
    st.text(st.characters(codec="utf-8")),
    binaries,
    st.booleans(),
    st.none(),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(dt.UTC)),
)
names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)


@st.composite
def values(draw: st.DrawFn, column: Any, depth: int = 2) -> Any:
    """A value computed from a column."""
    if not depth:
        return column
    inner = values(column, depth - 1)
    operations: list[Callable[[], Any]] = [
        lambda: -draw(inner),
        lambda: draw(inner) + draw(literals),
        lambda: draw(literals) - draw(inner),
        lambda: draw(inner) * draw(inner) / draw(literals) % draw(literals),
        lambda: draw(inner).cast(draw(st.sampled_from(["int", "decimal(10,2)", "timestamp_ntz", "string"]))),
        lambda: draw(inner).try_cast("date"),
        lambda: draw(inner).substr(draw(integers(32)), draw(integers(32))),
        lambda: sec.call_function(draw(st.sampled_from(["coalesce", "unknown_to_us"])), draw(inner), 1),
        lambda: sec.when(draw(inner) > draw(literals), draw(inner)).otherwise(draw(literals)),
    ]
    return draw(st.sampled_from(operations))()


@st.composite
def expressions(draw: st.DrawFn) -> Predicate:
    column = sec.col(".".join(f"`{name.replace('`', '``')}`" for name in draw(st.lists(names, min_size=1, max_size=2))))
    operations: list[Callable[[], Predicate]] = [
        lambda: column == draw(literals),
        lambda: column < draw(literals),
        lambda: column.eq_null_safe(draw(literals)),
        lambda: column.isin(draw(st.lists(literals, min_size=1, max_size=4))),
        lambda: column.between(draw(literals), draw(literals)),
        lambda: column.is_null(),
        lambda: column.like(draw(st.sampled_from(TEXTS))),
        lambda: column.like(draw(st.sampled_from(TEXTS)), escape="!"),
        lambda: column.startswith(draw(st.sampled_from(TEXTS))),
        lambda: column.rlike(draw(st.sampled_from(TEXTS))),
        lambda: draw(values(column)) == draw(literals),
        lambda: draw(values(column)) < draw(values(column)),
        lambda: draw(values(column)).isin(draw(st.lists(literals, min_size=1, max_size=4))),
        lambda: draw(values(column)).is_null(),
        lambda: ~draw(expressions()),
        lambda: draw(expressions()) & draw(expressions()),
        lambda: draw(expressions()) | draw(expressions()),
    ]
    return draw(st.sampled_from(operations))()


@examples(300)
@given(expressions())
def test_what_is_printed_parses_to_the_same(predicate: Predicate) -> None:
    """Whatever the names and the values: nothing is lost, nothing becomes opaque, and it prints alike."""
    again = parse(str(predicate))
    assert str(again) == str(parse(str(again)))
    assert not any(isinstance(node, Opaque) for node in nodes(again))
    assert str(again).replace("(", "").replace(")", "") == str(predicate).replace("(", "").replace(")", "")


@examples(6, shrink=False)
@given(
    table_specs().flatmap(
        lambda spec: st.tuples(st.just(spec), st.lists(predicates(spec), min_size=some(60), max_size=some(60)))
    )
)
def test_spark_reads_what_is_printed_as_it_reads_the_text(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, case: tuple[TableSpec, list[str]]
) -> None:
    spec, texts = case
    root = spec.write(tmp_path_factory.mktemp("printed") / "lake")
    frame = spark.read.schema(spark_schema(spec.schema)).parquet(str(root))
    given_texts = list(ask(frame, texts).truth.items())
    printed = [str(parse(text)) for text, _ in given_texts]
    answers = ask(frame, printed)
    for (text, expected), again in zip(given_texts, printed, strict=True):
        assert again in answers.truth, f"Spark refuses {again}, printed for {text}"
        assert answers.truth[again] == expected, f"{again}, printed for {text}"


@pytest.mark.parametrize(
    "text",
    [
        "(rand() < 0.5) <> (rand() < 0.5)",
        "CASE WHEN rand() < 0.5 THEN 1 ELSE 2 END <> CASE WHEN rand() < 0.5 THEN 1 ELSE 2 END",
        "CASE WHEN rand() < 0.5 THEN 1 ELSE 2 END = 1 AND CASE WHEN rand() < 0.5 THEN 1 ELSE 2 END = 2",
    ],
)
def test_what_is_left_to_spark_may_differ_each_time(text: str) -> None:
    zone_maps = pa.table({"row_count": [3], "a.lower": [1], "a.upper": [2]})
    assert sec.evaluate(text, zone_maps)["may_be_true"].to_pylist() == [True]


# ---- literals of other types -----------------------------------------------------------------------------------------

COLUMNS: dict[str, tuple[pa.DataType, list[object]]] = {
    "tiny": (pa.int8(), [None, 0, 1, -128, 127, 44]),
    "int": (pa.int32(), [None, 0, 1, 300, -(2**31), 2**31 - 1]),
    "long": (pa.int64(), [None, 0, 1, 2**53 + 1, -(2**63), 2**63 - 1]),
    "f": (pa.float32(), [None, 0.1, 1.5, float("nan"), float("inf"), -0.0]),
    "x": (pa.float64(), [None, 0.1, 1.5, float("nan"), float("inf"), -0.0]),
    "money": (pa.decimal128(9, 2), [None, *map(Decimal, ("1.50", "1.00", "0.10", "-9999999.99", "300.00"))]),
    "huge": (pa.decimal128(38, 10), [None, *map(Decimal, ("1.5", "1", "0.1", "9" * 28 + "." + "9" * 10, "-1"))]),
    "text": (pa.string(), ["1", None, "0", "300", "2024-01-01", "-5"]),
    "bin": (pa.binary(), [b"abc", None, b"", b"a", b"1", b"\xff"]),
    "flag": (pa.bool_(), [None, True, False, True, False, None]),
    "day": (pa.date32(), [None, 0, 19723, 19724, -1, 19722]),
    "ts": (pa.timestamp("us", "UTC"), [None, 0, 1704110400000000, 1704067200000000, 1704063600000000, -1]),
    "local": (pa.timestamp("us"), [None, 0, 1704110400000000, 1704067200000000, 1704063600000000, -1]),
}
# What binding makes of a literal beside a column:
# =  a set of keys, and Spark's answer on every row
# ~  Spark's answer on every row, by casting the column through the clock; a list is left to Spark
# ?  left to Spark: the cast is not known here to be monotone
# !  IncomparableLiteral, and Spark refuses it too
COERCIONS = """
                                      tiny int long f x money huge text bin flag day ts local
NULL                                   =    =   =   = =   =    =    =    =   =    =   =   =
TRUE                                   !    !   !   ! !   !    !    ?    !   =    !   !   !
1                                      =    =   =   = =   =    =    ?    !   !    !   !   !
300                                    =    =   =   = =   =    =    ?    !   !    !   !   !
3000000000                             =    =   =   = =   =    =    ?    !   !    !   !   !
100000000000000000000                  =    =   =   = =   =    =    ?    !   !    !   !   !
9999999999999999999999999999.99999999991 ?  ?   ?   ? ?   ?    ?    ?    ?   ?    ?   ?   ?
1.5                                    =    =   =   = =   =    =    ?    !   !    !   !   !
0.1                                    =    =   =   = =   =    =    ?    !   !    !   !   !
-9223372036854775808.5                 =    =   =   = =   =    =    ?    !   !    !   !   !
1e0                                    =    =   =   = =   =    =    ?    !   !    !   !   !
0.1D                                   =    =   =   = =   =    =    ?    !   !    !   !   !
CAST('NaN' AS DOUBLE)                  =    =   =   = =   =    =    ?    !   !    !   !   !
CAST('0.1' AS FLOAT)                   =    =   =   = =   =    =    ?    !   !    !   !   !
1Y                                     =    =   =   = =   =    =    ?    !   !    !   !   !
300S                                   =    =   =   = =   =    =    ?    !   !    !   !   !
1L                                     =    =   =   = =   =    =    ?    !   !    !   !   !
'abc'                                  !    !   !   ! !   !    !    =    =   !    !   !   !
''                                     !    !   !   ! !   !    !    =    =   !    ?   ?   ?
'1'                                    =    =   =   = =   =    =    =    =   =    ?   ?   ?
' 1 '                                  =    =   =   = =   =    =    =    =   =    ?   ?   ?
'1.5'                                  !    !   !   = =   =    =    =    =   !    ?   ?   ?
'1e3'                                  !    !   !   = =   =    =    =    =   !    ?   ?   ?
'NaN'                                  !    !   !   = =   =    =    =    =   !    !   !   !
'true'                                 !    !   !   ! !   !    !    =    =   =    !   !   !
'T'                                    !    !   !   ! !   !    !    =    =   =    !   !   !
'2024'                                 =    =   =   = =   =    =    =    =   !    =   =   =
'2024-01-01'                           !    !   !   ? ?   ?    ?    =    =   !    =   =   =
'2024-01-01 12:00:00'                  !    !   !   ? ?   ?    ?    =    =   !    =   =   =
'99999999999999999999'                 !    !   !   = =   =    =    =    =   !    ?   ?   ?
'now'                                  !    !   !   ! !   !    !    =    =   !    ?   ?   ?
X'61'                                  !    !   !   ! !   !    !    =    =   !    !   !   !
DATE '2024-01-01'                      !    !   !   ! !   !    !    ?    !   !    =   =   =
TIMESTAMP '2024-01-01 12:00:00'        !    !   !   ! !   !    !    ?    !   !    =   =   ~
TIMESTAMP '2024-01-01 12:00:00Z'       !    !   !   ! !   !    !    ?    !   !    =   =   ~
TIMESTAMP_NTZ '2024-01-01 12:00:00'    !    !   !   ! !   !    !    ?    !   !    =   =   =
"""


@dataclass(frozen=True)
class Coercion:
    """One cell of the table, and conditions that put its literal beside its column."""

    column: str
    literal: str
    mark: str

    @property
    def conditions(self) -> list[str]:
        c, v = self.column, self.literal
        compared = [f"{c} {op} {v}" for op in ("=", "<", "<=", ">", "<=>")]
        return [*compared, f"{v} <= {c}", f"{c} IN ({v}, {v})"]

    def binds(self, condition: str) -> str:
        """How one of the conditions binds: ``=``, ``?`` or ``!``."""
        return self.mark.replace("~", "?" if " IN " in condition else "=")


def coercions() -> list[Coercion]:
    head, *lines = COERCIONS.strip().splitlines()
    width = len(COLUMNS)
    assert head.split() == list(COLUMNS)
    cells = []
    for line in lines:
        *literal, marks = line.rsplit(maxsplit=width)[0], line.split()[-width:]
        cells += [Coercion(c, literal[0], mark) for c, mark in zip(COLUMNS, marks, strict=True)]
    return cells


def rows_of_all_types() -> pa.Table:
    columns = {}
    for name, (type_, values) in COLUMNS.items():
        is_time = pa.types.is_timestamp(type_) or pa.types.is_date32(type_)
        integers = pa.array(values, pa.int32() if pa.types.is_date32(type_) else pa.int64()) if is_time else None
        columns[name] = pa.array(values, type_) if integers is None else integers.cast(type_)
    return pa.table({"rid": pa.array(range(6)), **columns})


@pytest.fixture(scope="module")
def all_types(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    root = tmp_path_factory.mktemp("coercions")
    pq.write_table(rows_of_all_types(), root / "rows.parquet")
    return spark.read.parquet(str(root))


@takes_seconds
def test_literals_of_other_types_bind_as_the_table_says() -> None:
    schema = rows_of_all_types().schema
    for cell in coercions():
        for condition in cell.conditions:
            try:
                mark = "=" if is_supported(bind(parse(condition), schema, session_time_zone="Europe/Paris")) else "?"
            except IncomparableLiteral:
                mark = "!"
            assert mark == cell.binds(condition), condition


def test_literals_of_other_types_have_the_answers_of_spark(spark: SparkSession, all_types: DataFrame) -> None:
    """Every row and comparison of the cells marked with = and ~."""
    spark.conf.set("spark.sql.session.timeZone", "Europe/Paris")
    table = rows_of_all_types()
    (batch,) = table.to_batches()
    conditions = [c for cell in one_in(2, coercions()) for c in cell.conditions if cell.binds(c) == "="]
    for start in range(0, len(conditions), 150):
        chunk = conditions[start : start + 150]
        answers = ask(all_types, chunk)
        assert list(answers.truth) == list(dict.fromkeys(chunk)), "Spark refuses one of these"
        for condition in chunk:
            bound = bind(parse(condition), table.schema, session_time_zone="Europe/Paris")
            expected = [OUTCOME[answers.truth[condition][rid]] for rid in range(6)]
            assert truth(bound, batch).tolist() == expected, condition


def test_literals_that_are_refused_are_refused_by_spark(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Europe/Paris")
    types = spark_schema(rows_of_all_types().schema)
    one_row = spark.createDataFrame(rows_of_all_types().slice(1, 1), types)
    for cell in one_in(3, coercions()):
        if cell.mark == "!":
            with pytest.raises(PySparkException):
                one_row.selectExpr(cell.conditions[0]).collect()
                pytest.fail(f"Spark answers {cell.conditions[0]}")


def test_every_kind_of_column_has_a_literal_of_its_own() -> None:
    """No kind of column is left without one; the random predicates rely on it."""
    schema = pa.schema([(kind.name, kind.type) for kind in KINDS])
    for kind in KINDS:
        bound = bind(sec.col(kind.sql).is_null() | sec.col(kind.sql).eq_null_safe(None), schema)
        assert is_supported(bound), kind


def test_the_column_may_be_named_in_any_case(tmp_path: Path) -> None:
    pq.write_table(pa.table({"userId": [1, 2], "Address": [{"Zip": "1"}, {"Zip": "2"}]}), tmp_path / "rows.parquet")
    table = sec.open_table(str(tmp_path))
    for predicate in ("USERID = 2", "`userid` = 2", "address.ZIP = '2'", "ADDRESS.zip = '2'"):
        assert sec.prune(table, predicate).to_arrow()["userId"].to_pylist() == [2]
