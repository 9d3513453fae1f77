"""C. The value domain: NaN, zeros, cut text, units, scales, and other comparisons that surprise."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa

from conformance.engine import PARQUET, Aggregate, FirstRows, Question
from conformance.footers import MAX_VALUE, MIN_VALUE, total_order, without
from conformance.registry import bug_class
from conformance.table import Table, numbered

NAN = float("nan")
OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "<=>")


def text(value: str) -> str:
    """A literal of Spark SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def binary(value: bytes) -> str:
    return f"X'{value.hex()}'"


C16 = bug_class(
    16, "NaN", "Bounds leave it out and do not say so, or it became both bounds; it is greater than every number."
)


@C16.case()
def some_nans_among_numbers(table: Table) -> None:
    x = [1.0, NAN, 2.0, 3.0, NAN, NAN, None, NAN, 5.0, 6.0, None, None]
    rows = numbered(x=pa.array(x), f=pa.array(x, pa.float32()), st=[{"x": v} for v in x])
    paged: dict[str, Any] = {"write_page_index": True, "max_rows_per_page": 2}
    later = rows.set_column(0, "rid", pa.array(range(12, 24), pa.int64()))
    table.write({"a.parquet": rows}, row_group_size=2, **paged)
    table.write({"b.parquet": later}, row_group_size=4, **paged)
    literals = ["2.5D", "1e300", "CAST('NaN' AS DOUBLE)"]
    questions = [f"{c} {op} {v}" for c in ("x", "f", "st.x") for op in OPERATORS for v in literals]
    questions += ["x NOT IN (1D, 2D)", "x IN (3D, CAST('NaN' AS DOUBLE))", "isnan(x)", "NOT isnan(x)"]
    questions += ["x BETWEEN 2D AND 1e300", "x > 2.5", "x != 2", "NOT (x <= 2)", "x >= 100"]
    aggregates = Aggregate(("max(x)", "min(x)", "count(x)", "max(f)"))
    table.examine([*questions, aggregates, Aggregate(("max(x)", "min(f)"), "x > 2")], look_up=["x", "f", "st.x"])


@C16.case()
def values_between_the_numbers_and_nan(table: Table) -> None:
    """No number of a block lies between its greatest and NaN; NaN does not hide those that do not lie there."""
    x = [1.0, 30.0, NAN, 2.0, 3.0, NAN, 35.0, 25.0, NAN, NAN, None, 27.5, 36.0, None, float("inf"), NAN]
    rows = numbered(x=pa.array(x), f=pa.array(x, pa.float32()), y=pa.array(x[::-1]))
    paged: dict[str, Any] = {"write_page_index": True, "max_rows_per_page": 1}
    table.write({"a.parquet": rows}, row_group_size=2, **paged)
    table.write({"b.parquet": rows.set_column(0, "rid", pa.array(range(16, 32), pa.int64()))}, row_group_size=4)
    tests = ["= 35D", "BETWEEN 25D AND 30D", "IN (1D, 30D)", "NOT IN (1D, 35D)", "!= 35D", "<=> 36D", "> 35D"]
    questions = [f"{value} {test}" for value in ("x", "f", "-x", "abs(x)", "x + 1D", "round(x)") for test in tests]
    questions += ["x = y", "x <=> y", "x < y", "greatest(x, y) = 35D", "least(x, y) = 30D", "x + y > 60D"]
    table.examine([*questions, "coalesce(x, 35D) = 35D", "if(isnan(x), 35D, x) = 35D"], look_up=["x", "f"])


C58 = bug_class(
    58,
    "Newer orders and counts of floats",
    "IEEE 754's total order was read as the older one, an absent NaN count as 0, or a bound that is NaN as a number.",
)


def floats_with_nans() -> list[float | None]:
    negative = -NAN if math.copysign(1, NAN) > 0 else NAN
    mixed = [NAN, 7.0, negative, None, -0.0, 0.0, NAN, NAN, negative, negative, NAN, None, None, None]
    return [*mixed, 1.0, 2.0, float("inf"), NAN, -float("inf"), negative, 35.0, 36.0]


def asked_of_floats(*columns: str) -> list[str | Question]:
    literals = ["0D", "7D", "1e300", "CAST('NaN' AS DOUBLE)"]
    questions: list[str | Question] = [f"{c} {op} {v}" for c in columns for op in OPERATORS for v in literals]
    for c in columns:
        questions += [f"isnan({c})", f"NOT isnan({c})", f"{c} IS NULL", f"{c} BETWEEN 1D AND 40D", f"NOT ({c} > 1D)"]
        questions += [f"{c} IN (7D, CAST('NaN' AS DOUBLE))", f"{c} NOT IN (7D, 36D)", f"-{c} < -30D"]
        questions += [FirstRows("TRUE", f"{c}, rid", 3), FirstRows("TRUE", f"{c} DESC, rid", 3)]
        questions += [Aggregate((f"max({c})", f"min({c})", f"count({c})")), Aggregate((f"max({c})",), f"{c} > 1D")]
    return questions


@C58.case()
def total_order_of_floats(table: Table) -> None:
    """NaNs of both signs, alone or among numbers, in row groups of two rows; some files lack the bounds."""
    x = floats_with_nans()
    rows = numbered(x=pa.array(x), f=pa.array(x, pa.float32()))
    table.write({"a.parquet": rows}, row_group_size=2, write_page_index=True, footer=total_order(rows, 2))
    later = rows.set_column(0, "rid", pa.array(range(len(x), 2 * len(x)), pa.int64()))
    table.write({"b.parquet": later}, row_group_size=2, footer=total_order(later, 2))
    last = rows.set_column(0, "rid", pa.array(range(2 * len(x), 3 * len(x)), pa.int64()))

    def unbounded(metadata: Any) -> None:
        total_order(last, 3)(metadata)
        without(MIN_VALUE, MAX_VALUE)(metadata)

    table.write({"c.parquet": last}, row_group_size=3, footer=unbounded)
    table.examine(asked_of_floats("x", "f"), look_up=["x", "f"])


@C58.case(PARQUET)
def nan_counts_beside_the_older_order(table: Table) -> None:
    """DuckDB counts NaNs, and leaves out the bounds of what holds one."""
    groups: list[list[float | None]] = [[NAN], [7.0, NAN], [None, NAN], [1.0, 36.0], [-0.0, 0.0, None]]
    x = [group[i % len(group)] for group in groups for i in range(2048)]
    table.write({"a.parquet": numbered(x=pa.array(x, pa.float64()))}, writer="duckdb", ROW_GROUP_SIZE=2048)
    table.examine(asked_of_floats("x"), look_up=["x"])


C17 = bug_class(17, "0.0 and -0.0", "They are equal, and were ordered or hashed as two values.")


@C17.case()
def blocks_of_either_zero(table: Table) -> None:
    x = [-0.0, -0.0, 0.0, 0.0, -0.0, 0.0, 1.0, -1.0]
    rows = numbered(x=pa.array(x), f=pa.array(x, pa.float32()))
    table.write({"a.parquet": rows}, row_group_size=2, write_page_index=True)
    zeros = ["0", "0D", "-0.0D", "0.0", "CAST('-0.0' AS FLOAT)"]
    questions = [f"{c} {op} {zero}" for c in "xf" for zero in zeros for op in ("=", "<", ">=", "<=>", "!=")]
    table.examine([*questions, *(f"x IN ({zero}, 7D)" for zero in zeros)], look_up=["x", "f"])


C18 = bug_class(
    18, "Text that is cut", "An upper bound was cut without a successor, or given one that compares as lower."
)


@C18.case()
def long_texts_and_binaries(table: Table) -> None:
    """Longer than any bound that is kept, cut within a character, and without a successor."""
    last = "\U0010ffff"
    texts = [last * 16, last * 17, last * 40, "x" * 64, "x" * 65, "x" * 63 + "é", "😀" * 16 + "a", "😀" * 17]
    texts.append("x" * 63 + last)
    binaries = [b"\xff" * n for n in (63, 64, 65, 99)] + [b"a" + b"\xff" * n for n in (62, 63, 64, 99)] + [b""]
    table.write({"a.parquet": numbered(s=texts, b=binaries)}, row_group_size=1, write_page_index=True)
    questions = [f"s > {text(t)}" for whole in texts for t in (whole, whole[:-1])]
    questions += [f"s = {text(t)}" for whole in texts for t in (whole, whole + "a")]
    questions += [f"startswith(s, {text(t)})" for whole in texts for t in (whole, whole[:15])]
    questions += [f"b = {binary(blob)}" for blob in binaries]
    table.examine([*questions, *(f"b >= {binary(b)}" for blob in binaries for b in (blob + b"\0", blob[:-1]))])


C19 = bug_class(
    19,
    "The order of text",
    "By UTF-16 units, signed bytes, locale or case, where bounds are by unsigned bytes of UTF-8.",
)


@C19.case()
def texts_that_other_orders_exchange(table: Table) -> None:
    """An emoji is before U+FFFF in UTF-16; blanks at the end count."""
    texts = ["\uffff", "\U00010000", "😀", "z", "é", "Z", "a", "a ", "ä", "\x7f", "\x80", "ß", "ss", ""]
    table.write({"a.parquet": numbered(s=texts, b=[t.encode() for t in texts])}, row_group_size=1)
    questions = [f"s {op} {text(t)}" for t in texts for op in ("=", "<", ">=")]
    table.examine([*questions, *(f"b > {binary(t.encode())}" for t in texts)], look_up=["s"])


C20 = bug_class(
    20,
    "Units and zones of time",
    "Bounds were cut, or read in another unit; local times were taken for instants, a day for 24 hours.",
)
AROUND = [dt.datetime(2024, 11, 3, 5, 30), dt.datetime(2024, 3, 10, 7), dt.datetime(1883, 11, 18, 17)]
AROUND.append(dt.datetime(1969, 12, 31, 23))
TIMES = [f"{t:%Y-%m-%d %H:%M:%S}" for t in AROUND] + ["2024-11-03 01:30:00", "2024-03-10 02:30:00", "2024-11-03"]


def moments(unit: str) -> pa.Table:
    """Instants around changes of the clock, before 1970 and before 1900, a unit apart."""
    step = 1 if unit == "us" else 1000
    start = dt.datetime(1970, 1, 1)
    micros = [(t - start) // dt.timedelta(microseconds=1) + d * step for t in AROUND for d in (-1, 0, 1)]
    instants, clocks = pa.array(micros).cast(pa.timestamp("us", "UTC")), pa.array(micros).cast(pa.timestamp("us"))
    return numbered(ts=instants.cast(pa.timestamp(unit, "UTC")), local=clocks.cast(pa.timestamp(unit)))


def questions_of_time() -> list[str]:
    questions = [f"ts {op} TIMESTAMP '{t}'" for t in TIMES for op in ("=", "<")]
    questions += [f"ts {op} TIMESTAMP '{t}Z'" for t in TIMES[:4] for op in ("=", ">=")]
    questions += [f"{c} > '{t}'" for t in TIMES for c in ("ts", "local")]
    questions += [f"local {op} TIMESTAMP_NTZ '{t}'" for t in TIMES for op in ("=", ">=")]
    questions += ["ts = DATE '2024-11-03'", "local < DATE '2024-03-10'", "ts > TIMESTAMP '1969-12-31 23:00:00.000500Z'"]
    return questions


@C20.case()
def clocks_that_change(table: Table) -> None:
    table.write({"us.parquet": moments("us")}, row_group_size=1)
    table.examine(questions_of_time(), look_up=["ts", "local"])
    table.time_zone = "America/New_York"
    table.ask(questions_of_time(), "in New York")


@C20.case(PARQUET)
def milliseconds(table: Table) -> None:
    table.write({"ms.parquet": moments("ms")}, row_group_size=1)
    table.time_zone = "America/New_York"
    table.index(look_up=["ts", "local"])
    table.ask(questions_of_time(), "with an index")


@C20.case(PARQUET)
def times_of_96_bits(table: Table) -> None:
    rows = moments("us").select(["rid", "ts"])
    table.write({"int96.parquet": rows}, row_group_size=1, use_deprecated_int96_timestamps=True)
    table.examine([question for question in questions_of_time() if question.startswith("ts")])


def questions_of_intervals() -> list[str]:
    """On both sides of a comparison, written in several ways, and beside one literal that comes twice."""
    noon = "TIMESTAMP '2020-10-25 12:00:00'"
    lengths = ["24 HOURS", "1 DAY", "'1 00:30' DAY TO MINUTE", "23 HOURS", "90000 SECONDS", "-2 DAYS", "1 MONTH"]
    questions = [f"ts + INTERVAL {length} {op} {noon}" for length in lengths for op in ("=", "<", ">=")]
    questions += [f"ts {op} {noon} - INTERVAL {length}" for length in lengths for op in ("=", "<", ">=")]
    questions += [f"timestampadd({unit}, {n}, ts) = {noon}" for unit, n in (("HOUR", 24), ("DAY", 1), ("MONTH", 1))]
    questions += [f"{noon} - ts {op} INTERVAL 24 HOURS" for op in ("=", "<", ">=")]
    questions += [f"datediff(HOUR, ts, {noon}) = {hours}" for hours in (23, 24, 25)]
    questions += [f"CAST(ts AS TIMESTAMP_NTZ) {op} TIMESTAMP_NTZ '2020-10-25 02:30:00'" for op in ("=", "<", ">=")]
    questions += ["CAST(ts AS DATE) = DATE '1970-01-01'", "hour(ts) = 1", "date_format(ts, 'yyyy-MM') = '2020-10'"]
    return questions


@C20.case()
def intervals_across_a_change_of_the_clock(table: Table) -> None:
    """An interval of days is added to the local time, and 24 hours are one."""
    change = dt.datetime(2020, 10, 25, 1)  # when the clock of Berlin went back
    hours = [change + dt.timedelta(minutes=30 * n) for n in range(-60, 30, 3)] + [dt.datetime(1970, 1, 1)]
    table.write({"a.parquet": numbered(ts=pa.array(hours, pa.timestamp("us", "UTC")))}, row_group_size=1)
    table.time_zone = "Europe/Berlin"
    table.ask(questions_of_intervals(), "in Berlin")


C21 = bug_class(
    21, "Extreme integers", "The least integer has no absolute value; a count of blocks did not fit into a byte."
)


@C21.case()
def ends_of_the_range_in_many_blocks(table: Table) -> None:
    low, high = -(2**63), 2**63 - 1
    rows = numbered(a=pa.array([low, low + 1, high - 1, high, 0, None] * 45, pa.int64()))
    table.write({"a.parquet": rows}, row_group_size=1)
    questions = [f"a {op} {v}" for v in (low, high, high - 1, 2**63, low - 1) for op in ("=", "<", "<=", ">", ">=")]
    questions += [f"a BETWEEN {low} AND {low}", f"a NOT IN ({high}, {low})", f"rid > 255 AND a = {high}"]
    table.examine([*questions, Aggregate(("min(a)", "max(a)", "count(a)"))], look_up=["a"])


C22 = bug_class(22, "Decimals of another scale", "A literal's digits were compared with those of the column.")


@C22.case()
def literals_of_every_scale(table: Table) -> None:
    values = [Decimal(v) for v in ("-0.01", "0.00", "1.00", "1.10", "99.99", "-99.99")]
    rows = numbered(n=pa.array(values, pa.decimal128(4, 2)), w=pa.array(values, pa.decimal128(38, 2)))
    table.write({"a.parquet": rows}, row_group_size=1, store_decimal_as_integer=True)
    literals = ["1", "1.1", "1.10", "1.100000", "1.105", "-0.005", "100", "-99.990001", "99999999999"]
    questions = [f"{c} {op} {v}" for c in "nw" for v in literals for op in ("=", "<", ">=")]
    questions += [f"{c} = {v}" for c in "nw" for v in ("1e0", "1.1D", "'1.1'")]
    table.examine(questions, look_up=["n", "w"])


C23 = bug_class(23, "Dictionaries", "A literal was compared with a code, or a day with a text.")


@C23.case()
def columns_that_arrow_holds_as_dictionaries(table: Table) -> None:
    """In chunks with dictionaries of their own."""
    chunks = [pa.array(part).dictionary_encode() for part in (["b", "a", None], ["zzz", "b", "m"], ["a"])]
    days = pa.array([1, 2, 1, 3, None, 1, 2], pa.int32()).cast(pa.date32()).dictionary_encode()
    rows = numbered(s=pa.chunked_array(chunks), d=days)
    table.write({"a.parquet": rows}, row_group_size=2, use_dictionary=False)
    questions = ["s = 'zzz'", "s = 'm'", "s < 'b'", "s IS NULL", "s LIKE 'z%'", "d = DATE '1970-01-04'", "d IS NULL"]
    table.examine([*questions, "d > '1970-01-02'", "d IN (DATE '1970-01-02', DATE '1970-01-09')"], look_up=["s", "d"])
