"""Expressions over constants: folded here they have the value and the type that Spark gives them, or none at all."""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from secateur.errors import IncomparableLiteral
from secateur.io.spark.constants import value_of
from secateur.pruning.functions.zone_names import zone_of
from secateur.pruning.predicate.binding.bind import bind, operand_of
from secateur.pruning.predicate.binding.folding import constant_of_scalar
from secateur.pruning.predicate.binding.resolve import Binder
from secateur.pruning.predicate.binding.typed_constants import NoRule
from secateur.pruning.predicate.bound import Constant, Unsupported
from secateur.pruning.predicate.nodes import IsNull
from secateur.pruning.predicate.rewrite import rewrite
from secateur.pruning.predicate.sql.parse import parse
from tests.support.profiles import one_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ZONE = "Europe/Berlin"
SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string()), ("d", pa.date32())])
TEXTS = ["''", "' aB '", "'ähÄ'", "'abc'"]
FOLDED = [
    *(f"{name}({text})" for name in ("lower", "upper", "trim", "ltrim", "rtrim", "length") for text in TEXTS),
    *(f"concat({a}, {b})" for a in TEXTS for b in ("'x'", "7", "-1L", "NULL")),
    *(f"substring('abcde', {at}, {count})" for at in (-9, -3, 0, 1, 2, 9) for count in (-1, 0, 2, 9)),
    *(f"substring('abcde', {at})" for at in (-9, -3, 0, 1, 2, 9)),
    *(f"{name}('abc', {count})" for name in ("left", "right") for count in (-1, 0, 2, 9)),
    *(f"{name}('abc', {n}, {pad})" for name in ("lpad", "rpad") for n in (-1, 0, 2, 5, 8) for pad in ("'xy'", "''")),
    *(f"{name}('abc', 5)" for name in ("lpad", "rpad")),
    *(f"replace('abcb', {old}, {new})" for old in ("'b'", "''", "'z'") for new in ("''", "'xyz'")),
    *(f"pow({base}, {n})" for base in (-3, 0, 1, 2, 11) for n in (0, 1, 2, 53)),
    *(f"CAST({text} AS INT)" for text in ("' 11 '", "'+7'", "'-0'", "'2147483647'")),
    *(f"CAST({text} AS DOUBLE)" for text in ("'1e3'", "'-0.0'", "'NaN'", "'-inf'", "' 0.1 '")),
    *(f"CAST({text} AS DECIMAL(6, 2))" for text in ("'1.005'", "'-1.005'", "'9999.99'", "'.5'", "'7'")),
    *(f"CAST({text} AS DATE)" for text in ("'2019'", "'2019-5-1'", "'2019-05-01 23:59'", "' 2019-05-01 '")),
    *(f"CAST({text} AS TIMESTAMP)" for text in ("'2019-05-01'", "'2019-03-31 02:30:00'", "'2019-05-01T10:00:00Z'")),
    "CAST('2019-05-01 10:00:00' AS TIMESTAMP_NTZ)",
    *(f"CAST({value} AS STRING)" for value in ("11", "-3L", "TRUE", "DATE '2019-05-01'")),
    "CAST('true' AS BOOLEAN)",
    *(f"make_date({year}, 2, {day})" for year in (2019, 2020) for day in (1, 28, 29)),
    "to_date('30/05/2020', 'dd/MM/yyyy')",
    "to_date('20200530', 'yyyyMMdd')",
    "to_timestamp('2020-05-30 10:11', 'yyyy-MM-dd HH:mm')",
    "to_timestamp('31.03.2019 02:30:15', 'dd.MM.yyyy HH:mm:ss')",
    *(f"{name}('2019-05-31', 1)" for name in ("date_add", "date_sub", "add_months")),
    *(f"{name}('2019-05-31')" for name in ("last_day", "year", "month", "dayofweek", "weekofyear")),
    "datediff('2019-05-31', '2019-01-01')",
    "trunc('2019-05-31', 'MM')",
    *(f"({a} DIV {b})" for a in (22, -22, "-9223372036854775808L") for b in (2, -7)),
    *(f"({a} {op} {b})" for op in ("<<", ">>") for a in (5, -5, "5L", "3Y") for b in (0, 1, 33, 65, -1)),
    *(f"shiftrightunsigned({a}, {b})" for a in (5, -5, "-5L") for b in (0, 1, 33)),
    *(f"(~ {a})" for a in (5, "-128Y", "7L")),
    *(f"{name}({x})" for name in ("sqrt", "rint", "signum") for x in ("4", "2.5D", "-1.5", "CAST('NaN' AS DOUBLE)")),
    *(f"bround({x}, 1)" for x in ("1.25", "1.35", "-0.05")),
    *(f"try_{name}(9223372036854775807L, 2L)" for name in ("add", "subtract", "divide")),
    "try_add(127Y, 1Y)",
    "try_divide(1, 0)",
    "nanvl(CAST('NaN' AS DOUBLE), 1)",
    "instr('abc', 'c')",
]
NOT_FOLDED = [  # clocks, chance, the machine, and what Spark raises an error on
    "rand()",
    "uuid()",
    "current_date()",
    "now()",
    "unix_timestamp()",
    "current_user()",
    "date_add(current_date(), 1)",
    "CAST('x' AS INT)",
    "CAST('300' AS TINYINT)",
    "make_date(2019, 2, 30)",
    "to_date('3/5/2020', 'dd/MM/yyyy')",
    "1 DIV 0",
]


def folded(text: str, binder: Binder) -> Constant | None:
    """The constant that an expression is bound as."""
    test = parse(f"({text}) IS NULL")
    assert isinstance(test, IsNull)
    try:
        operand = operand_of(test.operand, binder)
    except NoRule:
        return None
    return operand if isinstance(operand, Constant) else None


def test_folded_constants_have_the_value_and_type_of_spark(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    zone = zone_of(ZONE)
    assert zone is not None
    binder = Binder(SCHEMA, zone)
    unknown, folded_here = [], one_in(3, FOLDED)
    for text in folded_here:
        constant = folded(text, binder)
        if constant is None:
            unknown.append(text)
            continue
        value = value_of(ZONE, True, text)
        assert value is not None, f"{text} is {constant} here, and raises an error in Spark"
        theirs = constant_of_scalar(value)
        assert theirs is not None
        assert constant.key == theirs.key, text
        assert constant.key is None or constant.type == theirs.type, text
    assert len(unknown) <= len(folded_here) // 10, unknown


@pytest.mark.parametrize("text", NOT_FOLDED)
def test_what_moves_or_fails_is_not_folded(spark: SparkSession, text: str) -> None:
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    zone = zone_of(ZONE)
    assert zone is not None
    assert folded(text, Binder(SCHEMA, zone)) is None
    assert folded(text, Binder(SCHEMA, zone, fold=partial(value_of, ZONE, True))) is None


ASKED = [
    ("s = md5('a')", "s = '0cc175b9c0f1b6a831c399e269772661'"),
    ("s IN (upper('ß'), reverse('ab'))", "s IN ('SS', 'ba')"),
    ("id = crc32('a')", "id = 3904355907"),
    ("d = next_day('2019-05-01', 'MO')", "d = DATE '2019-05-06'"),
    ("d < to_date('1 May 2019', 'd MMM yyyy')", "d < DATE '2019-05-01'"),
    ("s LIKE concat(reverse('ba'), '%')", "s LIKE 'ab%'"),
    ("s RLIKE concat('^', reverse('bA'), '$')", "s RLIKE '^Ab$'"),
    ("id = CAST(1.5e0 AS INT)", "id = 1"),
]


@pytest.mark.parametrize(("text", "plain"), ASKED)
def test_spark_is_asked_for_what_only_it_computes(spark: SparkSession, text: str, plain: str) -> None:
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    predicate = bind(parse(text), SCHEMA, session_time_zone=ZONE, fold=partial(value_of, ZONE, True))
    assert rewrite(predicate) == rewrite(bind(parse(plain), SCHEMA, session_time_zone=ZONE))


def test_a_session_of_another_zone_is_not_asked(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    assert value_of(ZONE, True, "md5('a')") is not None
    assert value_of("UTC", True, "md5('a')") is None
    assert value_of(ZONE, False, "md5('a')") is None


def test_without_a_session_the_condition_is_left_to_spark() -> None:
    assert isinstance(bind(parse("s = md5('a')"), SCHEMA), Unsupported)


def test_a_text_that_is_no_number_is_refused_like_its_literal() -> None:
    with pytest.raises(IncomparableLiteral):
        bind(parse("id = concat('a', 'b')"), SCHEMA)


def test_instants_are_folded_in_the_zone_of_the_session() -> None:
    schema = pa.schema([("ts", pa.timestamp("us", "UTC"))])
    berlin = bind(parse("ts < to_timestamp('2019-05-01 02:00:00')"), schema, session_time_zone=ZONE)
    assert berlin == bind(parse("ts < TIMESTAMP '2019-05-01 00:00:00Z'"), schema)
    assert dt.datetime(2019, 5, 1, tzinfo=zone_of(ZONE)).utcoffset() == dt.timedelta(hours=2)
