"""The classes of bugs by which pruning engines have lost rows, one test or more each; C12 is class 12 of the list.

Every test makes the situation that a class needs and asks for the laws of :mod:`laws` there: results are compared with
those of Spark, never counted. Classes about the structure of other formats (checkpoints, deletion vectors, row ids) and
those that have a test beside the code they concern (C16 to C20, C29, C30, C34, C36, C38 and C41) are not repeated.
"""

from __future__ import annotations

import datetime as dt
import os
import random
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import WriteTable, write_file
from laws import check_plans, check_rows, check_table
from oracle import ask

import secateur as sc
from secateur.errors import IndexFault, OldCalendar
from secateur.pruning.outcomes import FALSE, NULL, TRUE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAN = float("nan")


def numbered(first: int = 0, **columns: Any) -> pa.Table:
    """Rows with their `rid`, from `first` on."""
    table = pa.table(columns)
    return table.add_column(0, "rid", pa.array(range(first, first + len(table)), pa.int64()))


def outcomes(predicate: str, **statistics: list[Any]) -> list[int]:
    """What the kernel says of blocks with these statistics of a column ``a``."""
    table = pa.table({name.replace("a_", "a."): values for name, values in statistics.items()})
    found = sc.evaluate(predicate, table, schema=pa.schema([("a", pa.int64())]))
    bits = zip(*(found[name].to_pylist() for name in ("may_be_true", "may_be_false", "may_be_null")), strict=True)
    return [t * TRUE | f * FALSE | n * NULL for t, f, n in bits]


# ---- A. coverage and staleness ---------------------------------------------------------------------------------------


@pytest.fixture
def three_files(write_table: WriteTable) -> Path:
    """Thirty rows in three files of two row groups."""
    return write_table(
        {f"{i}.parquet": numbered(i * 10, a=range(i * 10, i * 10 + 10), s=["x", None] * 5) for i in range(3)},
        row_group_size=5,
    )


POINTS = ["a = 3", "a = 25", "a IN (1, 14, 27)", "a > 17", "s IS NULL", "s = 'x' AND a < 12", "NOT (a < 22)", "a = 99"]


def test_c01_a_block_without_entry_is_not_dead(spark: SparkSession, three_files: Path) -> None:
    """A file that came after the build, one without rows, and the files of a segment that is gone."""
    check_table(spark, three_files, POINTS, build={"bloom": ["a", "s"], "segment_blocks": 2})
    write_file(three_files / "late.parquet", numbered(30, a=[3, 25, 99], s=["x", None, "x"]))
    write_file(three_files / "empty.parquet", numbered(a=pa.array([], pa.int64()), s=pa.array([], pa.string())))
    answers = ask(spark.read.parquet(str(three_files)), POINTS)
    check_plans(three_files, answers)
    for segment in sorted((three_files / "_secateur" / "segments").iterdir())[1:]:
        segment.unlink()
    for predicate in POINTS:
        check_rows(sc.prune(sc.open_table(str(three_files)), predicate), answers.matching(predicate))


def test_c01_coverage_is_per_column(spark: SparkSession, three_files: Path) -> None:
    """The index knows the files, but not a column that other files brought since."""
    sc.build_index(sc.open_table(str(three_files)), spark=spark, bloom=["a"])
    late = numbered(30, a=[3, 4], s=["x", "y"], later=[7, None])
    write_file(three_files / "late.parquet", late)
    frame = spark.read.option("mergeSchema", "true").parquet(str(three_files))
    predicates = ["later = 7", "later IS NULL", "NOT later = 7", "later <=> NULL AND a = 3", "later != 7 OR a = 3"]
    check_plans(three_files, ask(frame, predicates))
    sc.refresh_index(sc.open_table(str(three_files)), spark=spark)
    check_plans(three_files, ask(frame, predicates))


def test_c02_the_index_of_another_table_is_not_believed(
    spark: SparkSession, three_files: Path, write_table: WriteTable
) -> None:
    """Files of the same names, with other rows: an entry belongs to a file's identity."""
    sc.build_index(sc.open_table(str(three_files)), spark=spark, bloom=["a"])
    other = write_table({f"{i}.parquet": numbered(i * 10, a=[25] * 10, s=[None] * 10) for i in range(3)})
    shutil.copytree(three_files / "_secateur", other / "_secateur")
    check_table(spark, other, POINTS)


def test_c03_a_file_is_overwritten_by_one_of_equal_size(spark: SparkSession, write_table: WriteTable) -> None:
    options: dict[str, Any] = {"compression": "none", "use_dictionary": False}
    root = write_table({"a.parquet": numbered(a=[1, 2]), "b.parquet": numbered(2, a=[3, 4])}, **options)
    predicates = ["a = 1", "a = 2", "a >= 7"]
    check_table(spark, root, predicates, build={"bloom": ["a"]})
    size = (root / "a.parquet").stat().st_size
    write_file(root / "a.parquet", numbered(a=[7, 8]), **options)
    assert (root / "a.parquet").stat().st_size == size
    check_table(spark, root, predicates)


def test_c03_a_file_is_overwritten_by_one_of_equal_time(spark: SparkSession, write_table: WriteTable) -> None:
    """A copy that keeps the time of modification has another size, or no other rows."""
    root = write_table({"a.parquet": numbered(a=[1, 2]), "b.parquet": numbered(2, a=[3, 4])})
    predicates = ["a = 1", "a = 2", "a >= 7"]
    check_table(spark, root, predicates, build={"bloom": ["a"]})
    before = (root / "a.parquet").stat()
    write_file(root / "a.parquet", numbered(4, a=[7, 8, 9]))
    os.utime(root / "a.parquet", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (root / "a.parquet").stat().st_mtime_ns == before.st_mtime_ns
    check_table(spark, root, predicates)


def test_c04_a_segment_in_the_place_of_another(spark: SparkSession, write_table: WriteTable) -> None:
    """Whole and sound, and of the size that the snapshot names: the checksums in the snapshot tell."""
    root = write_table({f"{i:02}.parquet": numbered(i * 2, a=[i, i + 100]) for i in range(20)})
    table = sc.open_table(str(root))
    sc.build_index(table, spark=spark, bloom=["a"], segment_blocks=1)
    by_size: dict[int, list[Path]] = {}
    for path in sorted((root / "_secateur" / "segments").iterdir()):
        by_size.setdefault(path.stat().st_size, []).append(path)
    first, second = next(paths[:2] for paths in by_size.values() if len(paths) > 1)
    held = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(held)
    for value in range(20):
        for wanted in ([value], [value + 100], [value, value + 100]):
            plan = sc.prune(sc.open_table(str(root)), f"a IN (1000, {', '.join(map(str, wanted))})")
            assert sorted(plan.to_arrow()["a"].to_pylist()) == wanted
    between = "a IS NOT NULL AND a <> 7"  # within the bounds of every segment, and nothing that filters tell of
    degraded = sc.prune(sc.open_table(str(root)), between).report.degraded
    for path in (first, second):
        assert any(path.name in reason for reason in degraded)
    assert all("does not match its checksum" in reason for reason in degraded)
    with pytest.raises(IndexFault, match="does not match its checksum"):
        sc.prune(sc.open_table(str(root)), between, strict=True)


def test_c05_compaction_moves_every_row(spark: SparkSession, three_files: Path) -> None:
    table = sc.open_table(str(three_files))
    sc.build_index(table, spark=spark, bloom=["a"])
    whole = pa.concat_tables([pq.read_table(path) for path in sorted(three_files.glob("*.parquet"))])
    for path in three_files.glob("*.parquet"):
        path.unlink()
    write_file(three_files / "1.parquet", whole.sort_by([("s", "ascending")]), row_group_size=7)
    check_table(spark, three_files, POINTS)
    sc.refresh_index(table, spark=spark)
    check_table(spark, three_files, POINTS)


def test_c07_a_plan_outlives_the_index_that_made_it(spark: SparkSession, three_files: Path) -> None:
    table = sc.open_table(str(three_files))
    sc.build_index(table, spark=spark, bloom=["a"])
    plans = {predicate: sc.prune(table, predicate, strict=True) for predicate in POINTS}
    sc.drop_index(table)
    answers = ask(spark.read.parquet(str(three_files)), POINTS)
    for predicate, plan in plans.items():
        check_rows(plan, answers.matching(predicate))


# ---- B. missing or fabricated statistics -----------------------------------------------------------------------------


def test_c08_an_absent_null_count_is_unknown() -> None:
    known: dict[str, list[Any]] = {"row_count": [4], "a_lower": [5], "a_upper": [9]}
    assert outcomes("a IS NULL", **known) == [TRUE | FALSE]
    assert outcomes("a < 3", **known) == [FALSE | NULL]
    assert outcomes("a > 3", **known) == [TRUE | NULL]
    assert outcomes("a > 3", **known, a_null_count=[0]) == [TRUE]
    assert outcomes("a > 3", **known, a_null_count=[4]) == [NULL]
    assert outcomes("a > 3", row_count=[4]) == [TRUE | FALSE | NULL]


@pytest.mark.parametrize("statistics", [True, False, ["rid"]])
def test_c09_null_tests_without_null_counts(spark: SparkSession, write_table: WriteTable, statistics: Any) -> None:
    rows = numbered(a=[None, None, 1, 2, None, 3, 4, 5], s=[None, "", "", None, "b", "c", "d", "e"])
    root = write_table({"a.parquet": rows}, row_group_size=2, write_statistics=statistics)
    predicates = ["a IS NULL", "a IS NOT NULL", "NOT (a IS NULL)", "a <=> NULL", "a IS NULL OR s = 'e'", "s IS NULL"]
    check_table(spark, root, predicates)
    check_table(spark, root, predicates, build={})


def test_c10_row_groups_and_files_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    """No row is not an unknown number of rows, and an unknown number is not none."""
    rows = numbered(a=[1, 2, 3])
    for name, parts in {"a": [rows[:0], rows, rows[:0]], "b": [rows[:0]], "c": []}.items():
        with pq.ParquetWriter(tmp_path / f"{name}.parquet", rows.schema) as writer:
            for part in parts:
                writer.write_table(part)
    check_table(spark, tmp_path, ["a = 2", "a > 5", "a IS NULL", "TRUE", "NOT a = 2"], build={"bloom": ["a"]})
    assert outcomes("a > 3", row_count=[None, 0], a_lower=[5, 5], a_upper=[9, 9]) == [TRUE | NULL, 0]


def test_c11_bounds_that_are_falsy_in_python(spark: SparkSession, write_table: WriteTable) -> None:
    """b"", "", 0, 0.0 and FALSE are bounds like others."""
    rows = numbered(
        i=[0, 0, 0, 1],
        x=[0.0, -0.0, 0.0, 1.0],
        s=["", "", "", "a"],
        b=[b"", b"", b"", b"a"],
        flag=[False, False, False, True],
        d=pa.array([0, 0, 0, 1], pa.int32()).cast(pa.date32()),
        n=pa.array([Decimal(0)] * 3 + [Decimal(1)], pa.decimal128(30, 2)),
    )
    root = write_table({"a.parquet": rows}, row_group_size=1, write_page_index=True)
    zeros = {"i": "0", "x": "0D", "s": "''", "b": "X''", "flag": "FALSE", "d": "DATE '1970-01-01'", "n": "0"}
    predicates = [f"{c} {op} {zero}" for c, zero in zeros.items() for op in ("=", "<", "<=", ">", ">=", "!=")]
    predicates += [f"{c} IN ({zero})" for c, zero in zeros.items()]
    check_table(spark, root, predicates, build={"bloom": list(zeros)})


def test_c12_columns_come_and_go(spark: SparkSession, write_table: WriteTable) -> None:
    """A column that a file lacks is NULL there: it can match IS NULL, and cannot match anything else."""
    root = write_table(
        {
            "0.parquet": numbered(0, kept=[1, 2], dropped=[1, 2], st=[{"p": 1}, None]),
            "1.parquet": numbered(2, kept=[3, 4], st=[{"p": 1, "q": "a"}, {"p": None, "q": None}]),
            "2.parquet": numbered(4, ADDED=["a", None], KEPT=[5, 6], st=[{"q": "a"}, {"q": "b"}]),
            "3.parquet": numbered(6, added=["b", "a"], dropped=[7, 8]),
        },
        row_group_size=1,
    )
    schema = "rid bigint, kept bigint, dropped bigint, st struct<p: bigint, q: string>, ADDED string"
    columns = {"kept": "3", "dropped": "7", "added": "'a'", "st.p": "1", "st.q": "'a'"}
    shapes = ["{c} = {v}", "{c} != {v}", "{c} IS NULL", "{c} IS NOT NULL", "{c} <=> {v}", "NOT ({c} <=> {v})"]
    shapes += ["{c} NOT IN ({v})", "NOT ({c} > {v} AND kept > 1)", "{c} > {v} OR kept = 2", "coalesce({c}, {v}) = {v}"]
    predicates = [shape.format(c=c, v=v) for c, v in columns.items() for shape in shapes]
    frame = spark.read.schema(schema).parquet(str(root))
    check_table(spark, root, predicates, frame=frame)
    check_table(spark, root, predicates, frame=frame, build={"bloom": ["kept", "added", "st.q"], "segment_blocks": 2})


def test_c13_a_literal_beyond_the_type_of_an_older_file(spark: SparkSession, write_table: WriteTable) -> None:
    """Files store a column as tinyint, int and bigint, float and double, decimals of less and of more digits."""
    money = [Decimal("1.25"), Decimal("99.99")]
    root = write_table(
        {
            "0.parquet": numbered(0, i=pa.array([-1, 100], pa.int8()), x=pa.array([0.1, NAN], pa.float32()),
                                  n=pa.array(money, pa.decimal128(4, 2))),
            "1.parquet": numbered(2, i=pa.array([100, 2**31 - 1], pa.int32()), x=pa.array([0.1, 0.5], pa.float64()),
                                  n=pa.array(money, pa.decimal128(18, 2))),
            "2.parquet": numbered(4, i=pa.array([100, 2**40], pa.int64()), x=pa.array([1e300, -0.0], pa.float64()),
                                  n=pa.array(money, pa.decimal128(20, 2))),
        },
        row_group_size=1,
    )  # fmt: skip
    schema = "rid bigint, i bigint, x double, n decimal(20,2)"
    predicates = ["i = 100", "i = 356", "i < 256", "i > 2147483647", "i = 1099511627776", "i IN (-1, 4294967295)"]
    predicates += ["x = 0.1D", "x > 0.1D", "x <= CAST('0.1' AS FLOAT)", "x > 1e200", "x = 0"]
    predicates += ["n = 1.25", "n = 1.250000", "n > 99.985", "n < 100000000000000000", "n IN (99.99, 1)"]
    frame = spark.read.schema(schema).parquet(str(root))
    check_table(spark, root, predicates, frame=frame)
    check_table(spark, root, predicates, frame=frame, build={"bloom": ["i", "x", "n"], "segment_blocks": 1})


def test_c13_an_index_of_the_narrow_type_serves_the_wide_one(spark: SparkSession, write_table: WriteTable) -> None:
    root = write_table(
        {"0.parquet": numbered(i=pa.array([1, 2, 3], pa.int32()), x=pa.array([0.5, NAN, 2], pa.float32()))}
    )
    sc.build_index(sc.open_table(str(root)), spark=spark, bloom=["i", "x"])
    write_file(root / "1.parquet", numbered(3, i=pa.array([2**40, 2], pa.int64()), x=[0.5, 0.1]))
    predicates = ["i = 2", "i = 1099511627776", "i = 9", "x = 0.5D", "x = 0.1D", "x > 1e9", "x IN (2D, 7D)"]
    frame = spark.read.schema("rid bigint, i bigint, x double").parquet(str(root))
    check_table(spark, root, predicates, frame=frame)
    sc.refresh_index(sc.open_table(str(root)), spark=spark)
    check_table(spark, root, predicates, frame=frame)


def test_c14_parents_contain_all_children(spark: SparkSession, write_table: WriteTable) -> None:
    """Forty segments under two levels of nodes: one of NULL only, one with NaN, one that alone holds the extremes."""
    files = {}
    for i in range(40):
        values: list[Any] = [i, i + 0.5]
        match i:
            case 7:
                values = [None, None]
            case 20:
                values = [NAN, 3.0]
            case 33:
                values = [-1e300, 1e300]
        files[f"{i:02}.parquet"] = numbered(i * 2, x=pa.array(values, pa.float64()), s=[f"k{i}", None])
    root = write_table(files)
    predicates = ["x = 12", "x > 1e299", "x < -5", "x IS NULL", "x = CAST('NaN' AS DOUBLE)", "x > 39 AND s = 'k33'"]
    predicates += ["s = 'k7'", "s IS NULL AND x < 2", "NOT (x < 38)", "x BETWEEN 19.2 AND 20"]
    check_table(spark, root, predicates, build={"segment_blocks": 1, "sort_key": ["x"]})


def test_c15_null_counts_of_dictionaries_in_structs_are_wrong(spark: SparkSession, write_table: WriteTable) -> None:
    """pyarrow leaves the NULLs of the struct itself out of the count where its field is a dictionary."""
    field = pa.array(["a", "b"] * 4).dictionary_encode()
    mask = pa.array([False, False, True, True, False, True, True, True])
    rows = numbered(st=pa.StructArray.from_arrays([field], ["s"], mask=mask))
    root = write_table({"a.parquet": rows}, row_group_size=4, write_page_index=True)
    assert pq.ParquetFile(root / "a.parquet").metadata.row_group(0).column(1).statistics.null_count == 0
    predicates = ["st.s IS NULL", "st.s IS NOT NULL", "st.s = 'a'", "NOT (st.s = 'a')", "st.s <=> NULL"]
    check_table(spark, root, predicates)
    check_table(spark, root, predicates, build={})


# ---- C. values -------------------------------------------------------------------------------------------------------


def test_c16_one_nan_among_numbers(spark: SparkSession, write_table: WriteTable) -> None:
    """NaN is greater than every number and equals itself; bounds leave it out and do not say so."""
    x = [1.0, NAN, 2.0, 3.0, NAN, NAN, None, NAN, 5.0, 6.0, None, None]
    rows = numbered(x=pa.array(x), f=pa.array(x, pa.float32()), st=[{"x": v} for v in x])
    paged: dict[str, Any] = {"write_page_index": True, "max_rows_per_page": 2}
    later = rows.set_column(0, "rid", pa.array(range(12, 24), pa.int64()))
    root = write_table({"a.parquet": rows}, row_group_size=2, **paged)
    write_file(root / "b.parquet", later, row_group_size=4, **paged)
    literals = ["2.5D", "1e300", "CAST('NaN' AS DOUBLE)"]
    operators = ["=", "!=", "<", "<=", ">", ">=", "<=>"]
    predicates = [f"{c} {op} {v}" for c in ("x", "f", "st.x") for op in operators for v in literals]
    predicates += [
        "x NOT IN (1D, 2D)",
        "x IN (3D, CAST('NaN' AS DOUBLE))",
        "isnan(x)",
        "NOT isnan(x)",
        "x BETWEEN 2D AND 1e300",
    ]
    check_table(spark, root, predicates)
    check_table(spark, root, predicates, build={"bloom": ["x", "f", "st.x"]})


def test_c17_either_zero(spark: SparkSession, write_table: WriteTable) -> None:
    """Blocks of -0.0 only, of 0.0 only, and of both; the same in a filter."""
    x = [-0.0, -0.0, 0.0, 0.0, -0.0, 0.0, 1.0, -1.0]
    rows = numbered(x=pa.array(x), f=pa.array(x, pa.float32()))
    root = write_table({"a.parquet": rows}, row_group_size=2, write_page_index=True)
    zeros = ["0", "0D", "-0.0D", "0.0", "CAST('-0.0' AS FLOAT)"]
    predicates = [f"{c} {op} {zero}" for c in "xf" for zero in zeros for op in ("=", "<", ">=", "<=>", "!=")]
    predicates += [f"x IN ({zero}, 7D)" for zero in zeros]
    check_table(spark, root, predicates, build={"bloom": ["x", "f"]})


def test_c18_bounds_that_are_cut(spark: SparkSession, write_table: WriteTable) -> None:
    """Longer than the 64 bytes that are kept, cut within a character, and without a successor."""
    last = "\U0010ffff"
    texts = [
        last * 16,
        last * 17,
        last * 40,
        "x" * 64,
        "x" * 65,
        "x" * 63 + "é",
        "😀" * 16 + "a",
        "😀" * 17,
        "x" * 63 + last,
    ]
    binaries = [b"\xff" * n for n in (63, 64, 65, 99)] + [b"a" + b"\xff" * n for n in (62, 63, 64, 99)] + [b""]
    rows = numbered(s=texts, b=binaries)
    root = write_table({"a.parquet": rows}, row_group_size=1, write_page_index=True)
    some = [t for text in texts for t in (text, text + "a", text[:-1], text[:15])]
    predicates = [str(sc.col("s") == text) for text in some] + [str(sc.col("s") > text) for text in some]
    predicates += [str(sc.col("s").startswith(text)) for text in some]
    some_bytes = [b for data in binaries for b in (data, data + b"\0", data[:-1])]
    predicates += [str(sc.col("b") == data) for data in some_bytes] + [str(sc.col("b") >= data) for data in some_bytes]
    check_table(spark, root, predicates, build={})


def test_c19_strings_order_by_unsigned_bytes(spark: SparkSession, write_table: WriteTable) -> None:
    """Not by UTF-16 units (an emoji is before U+FFFF there), signed bytes, case, or locale; blanks at the end count."""
    texts = ["\uffff", "\U00010000", "😀", "z", "é", "Z", "a", "a ", "ä", "\x7f", "\x80", "ß", "ss", ""]
    root = write_table({"a.parquet": numbered(s=texts, b=[t.encode() for t in texts])}, row_group_size=1)
    predicates = [str(p) for t in texts for p in (sc.col("s") == t, sc.col("s") < t, sc.col("s") >= t)]
    predicates += [str(sc.col("b") > t.encode()) for t in texts]
    check_table(spark, root, predicates, build={"bloom": ["s"]})


@pytest.mark.parametrize("unit", ["ms", "us"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_c20_units_zones_and_clocks_that_change(
    spark: SparkSession, write_table: WriteTable, unit: str, zone: str
) -> None:
    """Instants around the change of a clock, before 1970, before 1900; a millisecond and a microsecond apart."""
    around = [
        dt.datetime(2024, 11, 3, 5, 30),
        dt.datetime(2024, 3, 10, 7),
        dt.datetime(1883, 11, 18, 17),
        dt.datetime(1969, 12, 31, 23),
    ]
    step = 1 if unit == "us" else 1000
    micros = [
        (t - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1) + d * step for t in around for d in (-1, 0, 1)
    ]
    instants, clocks = pa.array(micros).cast(pa.timestamp("us", "UTC")), pa.array(micros).cast(pa.timestamp("us"))
    rows = numbered(ts=instants.cast(pa.timestamp(unit, "UTC")), local=clocks.cast(pa.timestamp(unit)))
    root = write_table({"a.parquet": rows}, row_group_size=1)
    spark.conf.set("spark.sql.session.timeZone", zone)
    texts = [f"{t:%Y-%m-%d %H:%M:%S}" for t in around] + ["2024-11-03 01:30:00", "2024-03-10 02:30:00", "2024-11-03"]
    predicates = [
        f"ts {op} TIMESTAMP '{t}{z}'"
        for t in texts
        for op in ("=", "<", ">=")
        for z in ("", "Z")
        if len(t) > 10 or not z
    ]
    predicates += [f"{c} > '{t}'" for t in texts for c in ("ts", "local")]
    predicates += [f"local {op} TIMESTAMP_NTZ '{t}'" for t in texts for op in ("=", "<", ">=")]
    predicates += [
        "ts = DATE '2024-11-03'",
        "local < DATE '2024-03-10'",
        "ts > TIMESTAMP '1969-12-31 23:00:00.000500Z'",
    ]
    check_table(spark, root, predicates, build={"bloom": ["ts", "local"]})


@pytest.mark.parametrize("timestamps", ["TIMESTAMP_MICROS", "INT96"])
def test_c20_the_calendar_of_old_files(spark: SparkSession, tmp_path: Path, timestamps: str) -> None:
    """Spark converts their days and instants as it reads: pruning knows nothing of them, and no other reader serves."""
    settings = {
        "spark.sql.parquet.outputTimestampType": timestamps,
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    }
    moments = ["1500-01-01 00:00:00", "1850-01-01 12:00:00", "2024-01-01 12:00:00"]
    days = ["1500-01-01", "1582-10-04", "2024-01-01"]
    rows = ", ".join(f"({i}, '{days[i]}', '{moments[i]}')" for i in range(3))
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        frame = spark.sql(f"SELECT CAST(r AS BIGINT) rid, DATE(d) d, TIMESTAMP(t) ts FROM VALUES {rows} v(r, d, t)")
        frame.where("rid < 2").coalesce(1).write.parquet(str(tmp_path / "part=0"))
        frame.where("rid = 2").coalesce(1).write.parquet(str(tmp_path / "part=1"))
    finally:
        for name in settings:
            spark.conf.unset(name)
    predicates = ["d = DATE '1500-01-01'", "d < DATE '1500-01-05'", "d = DATE '2024-01-01'", "d > DATE '2000-01-01'"]
    predicates += [
        "ts = TIMESTAMP '1500-01-01 00:00:00'",
        "ts < TIMESTAMP '1850-01-02 00:00:00'",
        "ts > TIMESTAMP '2000-01-01 00:00:00'",
    ]
    answers = ask(spark.read.parquet(str(tmp_path)), predicates)
    table = sc.open_table(str(tmp_path))
    sc.build_index(table, spark=spark, bloom=["d", "ts"])
    for predicate in predicates:
        wanted = sorted(rid for rid, value in answers.truth[predicate].items() if value)
        plan = sc.prune(table, predicate, strict=True)
        found = plan.to_spark(spark, ["rid"], via="native").collect()
        assert sorted(row.rid for row in found) == wanted, predicate
        recent = sc.prune(table, f"({predicate}) AND part = 1", strict=True)
        assert recent.to_arrow()["rid"].to_pylist() == [rid for rid in wanted if rid == 2]
    with pytest.raises(OldCalendar, match="via='native'"):
        sc.prune(table, "TRUE").to_arrow()


def test_c21_extreme_integers_and_more_blocks_than_a_byte_counts(spark: SparkSession, write_table: WriteTable) -> None:
    low, high = -(2**63), 2**63 - 1
    rows = numbered(a=pa.array([low, low + 1, high - 1, high, 0, None] * 45, pa.int64()))
    root = write_table({"a.parquet": rows}, row_group_size=1)
    predicates = [f"a {op} {v}" for v in (low, high, high - 1, 2**63, low - 1) for op in ("=", "<", "<=", ">", ">=")]
    predicates += [f"a BETWEEN {low} AND {low}", f"a NOT IN ({high}, {low})", f"rid > 255 AND a = {high}"]
    check_table(spark, root, predicates, build={"bloom": ["a"]})


def test_c22_decimals_of_other_scales(spark: SparkSession, write_table: WriteTable) -> None:
    values = [Decimal(v) for v in ("-0.01", "0.00", "1.00", "1.10", "99.99", "-99.99")]
    rows = numbered(n=pa.array(values, pa.decimal128(4, 2)), w=pa.array(values, pa.decimal128(38, 2)))
    root = write_table({"a.parquet": rows}, row_group_size=1, store_decimal_as_integer=True)
    literals = [
        "1",
        "1.1",
        "1.10",
        "1.100000",
        "1.105",
        "-0.005",
        "100",
        "-99.990001",
        "1e0",
        "1.1D",
        "'1.1'",
        "99999999999",
    ]
    predicates = [f"{c} {op} {v}" for c in "nw" for v in literals for op in ("=", "<", "<=", ">", ">=")]
    check_table(spark, root, predicates, build={"bloom": ["n", "w"]})


def test_c23_dictionaries(spark: SparkSession, write_table: WriteTable) -> None:
    """Columns that Arrow holds as dictionaries, in chunks with dictionaries of their own."""
    chunks = [pa.array(part).dictionary_encode() for part in (["b", "a", None], ["zzz", "b", "m"], ["a"])]
    days = pa.array([1, 2, 1, 3, None, 1, 2], pa.int32()).cast(pa.date32()).dictionary_encode()
    rows = numbered(s=pa.chunked_array(chunks), d=days)
    root = write_table({"a.parquet": rows}, row_group_size=2, use_dictionary=False)
    predicates = [
        "s = 'zzz'",
        "s = 'm'",
        "s < 'b'",
        "s IS NULL",
        "s LIKE 'z%'",
        "d = DATE '1970-01-04'",
        "d IS NULL",
        "d > '1970-01-02'",
    ]
    check_table(spark, root, predicates, build={"bloom": ["s", "d"]})


# ---- D. predicates ---------------------------------------------------------------------------------------------------


def test_c24_a_prefix_is_a_range(spark: SparkSession, write_table: WriteTable) -> None:
    """Not an equality on bounds: the range [p, successor of p) overlaps a block or does not."""
    texts = ["a", "ab", "abc", "abd", "b", "aa\U0010ffff", "ab\U0010ffff", "abz", "ac", None, "", "a\uffff"]
    root = write_table({"a.parquet": numbered(s=texts)}, row_group_size=3, write_page_index=True)
    patterns = ["ab%", "ab", "a%", "%", "", "_b%", "a_c", "%c", "ab%d", "abc%", "zz%", "a\\_%", "ab\U0010ffff%", "a%b%"]
    predicates = [f"s {op} '{p}'" for p in [p.replace("\\", "\\\\") for p in patterns] for op in ("LIKE", "NOT LIKE")]
    predicates += ["startswith(s, 'ab')", "endswith(s, 'c')", "contains(s, 'b')", "NOT startswith(s, 'a')"]
    check_table(spark, root, predicates, build={})


@pytest.fixture
def for_filters(write_table: WriteTable) -> Path:
    """Values spread so that bounds tell nothing and only a filter does."""
    shuffled = random.Random(7).sample(range(0, 200, 2), 100)
    rows = numbered(a=shuffled, s=[None if v % 10 == 0 else f"k{v}" for v in shuffled], other=[v % 7 for v in shuffled])
    return write_table({"a.parquet": rows}, row_group_size=10, write_page_index=True)


def test_c25_not_over_an_inexact_answer(spark: SparkSession, for_filters: Path) -> None:
    """A filter says "not there" or "maybe": its NOT is never "surely there"."""
    predicates = [
        "NOT (a = 3)",
        "NOT (a = 4)",
        "a != 4",
        "NOT (a IN (4, 5))",
        "NOT (a = 4 OR s = 'k8')",
        "NOT (s = 'k8')",
    ]
    predicates += [
        "NOT (NOT (a = 4))",
        "NOT (a = 3 AND other = 1)",
        "s IS NOT NULL AND NOT (s = 'k2')",
        "NOT (s <=> 'k2')",
    ]
    predicates += ["(a = 3) IS NOT TRUE", "(s = 'absent') IS NULL", "(s = 'absent') IS FALSE"]
    check_table(spark, for_filters, predicates, build={"bloom": ["a", "s"], "fpr": 0.4})


def test_c26_null_is_neither_false_nor_unknown(spark: SparkSession, write_table: WriteTable) -> None:
    root = write_table({"a.parquet": numbered(a=[1, 2, None, None, 3, 3, 1, None])}, row_group_size=2)
    lists = ["(1, NULL)", "(NULL)", "(9, NULL)", "(1, 2, 3)", "(NULL, NULL, 3)"]
    predicates = [f"a {word} {items}" for items in lists for word in ("IN", "NOT IN")]
    predicates += [f"NOT (a {word} {items})" for items in lists for word in ("IN", "NOT IN")]
    predicates += [
        "a = NULL",
        "a <=> NULL",
        "NOT (a <=> NULL)",
        "a < NULL",
        "NULL",
        "NOT NULL",
        "NULL OR a = 1",
        "NULL AND a = 1",
    ]
    predicates += [
        "NOT (NULL AND a = 1)",
        "a IN (1, NULL) OR a = 2",
        "a NOT IN (1, NULL) AND a IS NULL",
        "(a = NULL) IS NULL",
    ]
    check_table(spark, root, predicates, build={"bloom": ["a"]})


def test_c26_an_empty_list_holds_nothing(spark: SparkSession, write_table: WriteTable) -> None:
    """``isin([])`` is FALSE, on NULL too, as in Spark; so its NOT matches every row."""
    root = write_table({"a.parquet": numbered(a=[1, None])})
    table, frame = sc.open_table(str(root)), spark.read.parquet(str(root))
    assert sc.prune(table, sc.col("a").isin([])).count() == frame.where(frame.a.isin([])).count() == 0
    assert sc.prune(table, ~sc.col("a").isin([])).count() == frame.where(~frame.a.isin([])).count() == 2
    assert sc.prune(table, ~sc.col("a").isin([])).to_spark(spark).count() == 2


def test_c27_negations_and_nulls(spark: SparkSession, write_table: WriteTable) -> None:
    """Blocks of one value, of one value and NULL, and of NULL only."""
    rows = numbered(
        s=["A", "A", "A", None, None, None, "B", "A", "B", None], v=[1, 1, 1, None, None, None, 2, 1, 2, None]
    )
    root = write_table({"a.parquet": rows}, row_group_size=2, write_page_index=True)
    shapes = [
        "NOT ({c} = {v})",
        "{c} != {v}",
        "NOT ({c} <=> {v})",
        "{c} NOT IN ({v})",
        "NOT ({c} > {v})",
        "NOT ({c} BETWEEN {v} AND {v})",
    ]
    predicates = [shape.format(c=c, v=v) for c, v in (("s", "'A'"), ("v", "1")) for shape in shapes]
    predicates += [
        "s NOT LIKE 'A%'",
        "NOT startswith(s, 'A')",
        "NOT (s LIKE '%A')",
        "NOT (s IS NULL)",
        "NOT (s IS NULL OR v = 1)",
    ]
    check_table(spark, root, predicates, build={"bloom": ["s", "v"]})


def test_c28_conditions_stay_with_their_columns(spark: SparkSession, tmp_path: Path) -> None:
    """Leaves of one name in several structs, names with dots and back-quotes, columns in another order per file."""
    for i in range(4):
        columns: dict[str, Any] = {
            "rid": [i * 2, i * 2 + 1],
            "v": [i, i + 10],
            "st": [{"v": i + 100, "w": {"v": i + 200}}, None],
            "st.v": [i + 300, i + 400],
            "a`b": [i + 500, None],
            "p": [i, i],
        }
        names = list(columns) if i % 2 else list(reversed(columns))
        write_file(tmp_path / f"part={i % 2}" / f"{i}.parquet", {name: columns[name] for name in names})
    values = {"v": 2, "st.v": 102, "st.w.v": 202, "`st.v`": 302, "`a``b`": 501, "V": 12, "ST.W.V": 203, "part": 1}
    predicates = [f"{c} {op} {v}" for op in ("=", ">=") for c, v in values.items()]
    predicates += ["v = 2 AND `st.v` = 302", "st.v = 102 OR `st.v` = 401", "part = 1 AND v = 2", "v IN (100, 200, 300)"]
    check_table(spark, tmp_path, predicates, build={"bloom": ["v", "`st.v`", "st.w.v"], "segment_blocks": 1})
    plan = sc.prune(sc.open_table(str(tmp_path)), "st.w.v = 202")
    assert plan.to_arrow(["rid", "`st.v`"]).to_pylist() == [{"rid": 4, "st.v": 302}]
    assert [tuple(row) for row in plan.to_spark(spark, ["`st.v`"], via="blocks").collect()] == [(302,)]


def test_c29_literals_of_other_types_beside_filters(spark: SparkSession, write_table: WriteTable) -> None:
    """A number beside a string column asks for all its spellings; a filter knows only one of them."""
    rows = numbered(s=["1", "01", "1.0", " 1", "2", None], i=[1, 1, 1, 1, 2, None], x=[1.0, 1.5, -0.0, 2.0, 0.1, None])
    root = write_table({"a.parquet": rows}, row_group_size=1)
    predicates = [
        "s = '1'",
        "s IN ('1', '2')",
        "i = '1'",
        "i = ' 1 '",
        "i = 1.0",
        "i = 1e0",
        "x = 1",
        "x = '1.5'",
        "x = 0",
        "x = 0.1",
        "CAST(s AS DOUBLE) = 1",
    ]
    check_table(spark, root, predicates, build={"bloom": ["s", "i", "x"]})


def test_c30_what_may_differ_from_row_to_row_prunes_nothing(spark: SparkSession, for_filters: Path) -> None:
    sc.build_index(sc.open_table(str(for_filters)), spark=spark, bloom=["a"])
    table = sc.open_table(str(for_filters))
    for predicate in ("rand() < 2", "a = 4 OR rand() < 2", "uuid() IS NOT NULL", "NOT (rand() > 2)"):
        assert sc.prune(table, predicate, strict=True).to_spark(spark).count() == 100
        assert sc.prune(table, predicate, limit=5, strict=True).to_spark(spark).count() == 5
        assert len(sc.prune(table, predicate, limit=5, strict=True).blocks) == 10


def test_c31_limit_counts_only_rows_that_surely_match(spark: SparkSession, for_filters: Path) -> None:
    """Blocks whose rows may match do not fill the limit, whatever condition is left to check on them."""
    sc.build_index(sc.open_table(str(for_filters)), spark=spark, bloom=["a"])
    table = sc.open_table(str(for_filters))
    predicates = [
        "a > 100",
        "a >= 0",
        "a >= 0 AND other = 3",
        "a % 4 = 0",
        "other = 6 OR a = 3",
        "s IS NULL",
        "s LIKE '%4'",
    ]
    answers = ask(spark.read.parquet(str(for_filters)), predicates)
    for predicate in predicates:
        wanted = answers.matching(predicate)
        for limit in (0, 1, 9, 10, 11, 99, 100, 1000):
            check_rows(sc.prune(table, predicate, limit=limit, strict=True), wanted)
    for predicate in ("a >= 0 AND other = 3", "a % 4 = 0"):
        plan = sc.prune(table, predicate, limit=7)
        assert plan.to_spark(spark).count() == min(7, answers.matching(predicate).total())


def test_c32_an_or_with_a_side_that_no_index_knows(spark: SparkSession, for_filters: Path) -> None:
    predicates = ["a = 4 OR length(s) = 2", "a = 3 OR coalesce(other, 0) = 1", "a = 4 OR (a = 3 AND s RLIKE '.*')"]
    predicates += [
        "NOT (a = 4 AND length(s) = 2)",
        "(a = 4 OR a + 1 = 5) AND other = 4",
        "a IN (4, 6) OR a = other * 2",
    ]
    check_table(spark, for_filters, predicates, roads=6, build={"bloom": ["a"]})


JOINS = [  # in each, rows on which the condition on the table is not TRUE are part of the result
    "SELECT l.a, r.b FROM lake l LEFT JOIN few r ON l.a = r.b AND l.a > 100",
    "SELECT l.a, r.b FROM few r LEFT JOIN lake l ON l.a = r.b AND l.a > 100",
    "SELECT l.a, r.b FROM lake l FULL JOIN few r ON l.a = r.b AND l.a > 100 AND l.other = 3",
    "SELECT l.a FROM lake l LEFT ANTI JOIN few r ON l.a = r.b AND l.a > 100",
    "SELECT r.b FROM few r LEFT JOIN lake l ON l.a = r.b AND l.a > 100 WHERE l.a IS NULL",
    "SELECT l.a, l.a > 100 AND EXISTS (SELECT 1 FROM few r WHERE r.b = l.a) FROM lake l WHERE l.other = 1",
]


@pytest.mark.parametrize("pushdown", ["true", "false"])
def test_c33_a_condition_of_an_outer_join_is_no_filter(spark: SparkSession, for_filters: Path, pushdown: str) -> None:
    """MERGE ... WHEN NOT MATCHED BY SOURCE is such a join; a plan is the rows of a WHERE, and of nothing else."""
    sc.build_index(sc.open_table(str(for_filters)), spark=spark, bloom=["a"])
    spark.createDataFrame([(v,) for v in (4, 5, 150, 151, 198)], "b bigint").createOrReplaceTempView("few")
    found: list[list[list[str]]] = []
    for source in ("parquet", "secateur"):
        found.append([])
        for query in JOINS:  # a relation each: one that is used again has the filters last pushed
            frame = spark.read.format(source).option("pushdown", pushdown).load(str(for_filters))
            frame.createOrReplaceTempView("lake")
            found[-1].append(sorted(map(repr, spark.sql(query).collect())))
    assert found[0] == found[1]
    plan = sc.prune(sc.open_table(str(for_filters)), "a > 100 AND other = 3").to_spark(spark)
    few = spark.table("few")
    kept = spark.read.parquet(str(for_filters)).where("a > 100 AND other = 3")
    assert few.join(plan, few.b == plan.a, "left").select("b", "other").toArrow().sort_by("b") == few.join(
        kept, few.b == kept.a, "left"
    ).select("b", "other").toArrow().sort_by("b")


def test_c35_indexes_of_all_kinds_combine(spark: SparkSession, tmp_path: Path) -> None:
    """Partition values, tree, zone maps, filters and pages under one AND, OR and NOT."""
    for part in range(3):
        for i in range(3):
            first = part * 30 + i * 10
            rows = numbered(first, ts=range(first, first + 10), user=[(v * 7) % 50 for v in range(first, first + 10)])
            write_file(
                tmp_path / f"part={part}" / f"{i}.parquet",
                rows,
                row_group_size=5,
                write_page_index=True,
                max_rows_per_page=2,
            )
    predicates = [
        "part = 1 AND user = 14",
        "part = 1 OR user = 14",
        "user = 14 AND ts < 20",
        "NOT (part = 2 OR user = 14)",
    ]
    predicates += ["ts BETWEEN 12 AND 17 AND (user IN (34, 41) OR part = 0)", "(ts = 3 OR user = 3) AND NOT (part = 1)"]
    predicates += ["part IN (0, 2) AND (ts > 80 OR user = 0)", "ts = 44 AND user = 9", "part = 0 AND part = 1"]
    check_table(spark, tmp_path, predicates, build={"sort_key": ["ts"], "bloom": ["user"], "segment_blocks": 2})


# ---- E. structure ----------------------------------------------------------------------------------------------------


def test_c38_pages_of_null_only_and_of_other_lengths(spark: SparkSession, write_table: WriteTable) -> None:
    """Columns whose pages end at different rows; pages of NULL alone; wide values make more pages than narrow ones."""
    n = 60
    rows = numbered(
        a=[None if 10 <= i < 30 else i for i in range(n)],
        s=[None if i % 20 < 5 else "x" * 200 + str(i) for i in range(n)],
        flag=[i >= 30 for i in range(n)],
    )
    options = {
        "row_group_size": 30,
        "write_page_index": True,
        "data_page_size": 600,
        "write_batch_size": 4,
        "use_dictionary": False,
    }
    root = write_table({"a.parquet": rows}, **options)
    predicates = ["a = 7", "a IS NULL", "a > 40 AND flag", "a IS NULL AND s IS NULL", "NOT (a = 7)", "a IN (9, 30, 31)"]
    predicates += [
        str(sc.col("s") == "x" * 200 + "33"),
        "s LIKE '%7'",
        "a < 3 OR s IS NULL",
        "flag AND NOT (a > 33)",
        "rid = 29",
    ]
    check_table(spark, root, predicates, build={})


def test_c39_addresses_of_blocks(spark: SparkSession, write_table: WriteTable) -> None:
    """Several files of several row groups in one segment: a look-up names the right row group of the right file."""
    root = write_table(
        {f"{i}.parquet": numbered(i * 100, a=range(i * 100, i * 100 + 100)) for i in range(4)}, row_group_size=10
    )
    table = sc.open_table(str(root))
    for segment_blocks in (1000, 15):
        sc.build_index(table, spark=spark, sort_key=["a"], segment_blocks=segment_blocks)
        for value in (0, 9, 10, 99, 100, 257, 399):
            (block,) = sc.prune(table, f"a = {value}", strict=True).blocks.to_pylist()
            assert (block["file"], block["row_group"]) == (f"{value // 100}.parquet", value % 100 // 10)
            assert sc.prune(table, f"a = {value}", strict=True).to_arrow()["rid"].to_pylist() == [value]


def test_c40_nothing_to_find(spark: SparkSession, write_table: WriteTable) -> None:
    """Filters over NULL only, predicates that no block survives, and a file without rows: no row, and no error."""
    rows = numbered(a=pa.array([None] * 4, pa.int64()), b=[1, 2, 3, 4])
    root = write_table({"a.parquet": rows, "b.parquet": rows[:0]}, row_group_size=2)
    predicates = [
        "a = 1",
        "a IN (1, 2)",
        "a IS NULL",
        "NOT (a = 1)",
        "b = 9",
        "b > 9",
        "FALSE",
        "b = 1 AND b = 2",
        "a = 1 OR b = 1",
    ]
    answers = check_table(spark, root, predicates, roads=len(predicates), build={"bloom": ["a", "b"]})
    assert sum(answers.matching(p).total() for p in ("a = 1", "b = 9", "FALSE", "b = 1 AND b = 2")) == 0


def test_c45_threads_share_a_table(spark: SparkSession, three_files: Path) -> None:
    """Plans that are made at once by one table object, whose caches they share, are those made one by one."""
    sc.build_index(sc.open_table(str(three_files)), spark=spark, bloom=["a"], segment_blocks=2)
    table = sc.open_table(str(three_files))
    predicates = [f"a = {i}" for i in range(30)] + [f"a > {i} AND s IS NULL" for i in range(30)]
    alone = [sc.prune(sc.open_table(str(three_files)), p).to_arrow().to_pylist() for p in predicates]
    with ThreadPoolExecutor(8) as threads:
        for _ in range(3):
            together = list(threads.map(lambda p: sc.prune(table, p, strict=True).to_arrow().to_pylist(), predicates))
            assert together == alone


def test_c46_a_cache_does_not_outlive_what_it_holds(spark: SparkSession, three_files: Path) -> None:
    """An index built anew after a drop has the numbers and may have the names of the old one; so have files."""
    table = sc.open_table(str(three_files))
    for shift in (0, 100, 200):
        for i in range(3):
            rows = numbered(i * 10, a=range(shift + i * 10, shift + i * 10 + 10), s=["x"] * 10)
            write_file(three_files / f"{i}.parquet", rows, row_group_size=5)
        sc.build_index(table, spark=spark, bloom=["a"])
        for value in (3, 103, 203):
            found = sc.prune(table, f"a = {value}", strict=True).to_arrow()["a"].to_pylist()
            assert found == ([value] if value - 3 == shift else [])
        sc.drop_index(table)


def test_c47_segments_of_other_schemas(spark: SparkSession, write_table: WriteTable) -> None:
    """Every file has its own columns, types and order, and is a segment of its own."""

    def rows(i: int) -> Iterator[tuple[str, pa.Array]]:
        yield "a", pa.array([i, i + 50], pa.int64() if i % 2 else pa.int32())
        if i % 3:
            yield "b", pa.array([f"k{i}", None])
        yield "c", pa.array([i / 2, NAN], pa.float64() if i % 4 == 0 else pa.float32())

    files = {f"{i}.parquet": numbered(i * 2, **dict(sorted(rows(i), reverse=bool(i % 2)))) for i in range(8)}
    root = write_table(files)
    predicates = [
        "a = 3",
        "a = 54",
        "b = 'k4'",
        "b IS NULL",
        "c = 1.5D",
        "isnan(c)",
        "NOT (b = 'k4')",
        "a = 6 AND b IS NULL",
        "c > 2D AND b = 'k7'",
    ]
    frame = spark.read.schema("rid bigint, a bigint, b string, c double").parquet(str(root))
    check_table(spark, root, predicates, frame=frame, build={"bloom": ["a", "b", "c"], "segment_blocks": 1})
    assert_addresses(sc.prune(sc.open_table(str(root)), "a = 3", strict=True), ["3.parquet"])


def assert_addresses(plan: Any, files: Sequence[str]) -> None:
    assert plan.files == list(files)
    assert np.all(np.diff(plan.survivors.blocks.file) >= 0)
