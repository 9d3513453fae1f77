"""What the classes of bugs that lose rows mean inside of this project: outcomes, reports, addresses, names, read paths.

C12 is class 12 of the list. The rows that each class is about are asked for by the conformance suite, whose cases any
engine can be held to (docs/conformance.md); tests of single parts carry the numbers too (``test_c36_...``).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import secateur as sec
from conformance.table import numbered
from secateur.errors import IndexFault, OldCalendar
from secateur.pruning.bounds.outcomes import FALSE, NULL, TRUE
from tests.support.checks.laws import check_table
from tests.support.checks.oracle import ask
from tests.support.tables import WriteTable, write_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def outcomes(predicate: str, **statistics: list[Any]) -> list[int]:
    """What the kernel says of blocks with these statistics of a column ``a``."""
    table = pa.table({name.replace("a_", "a."): values for name, values in statistics.items()})
    evaluated = sec.evaluate(predicate, table, schema=pa.schema([("a", pa.int64())]))
    bits = zip(*(evaluated[name].to_pylist() for name in ("may_be_true", "may_be_false", "may_be_null")), strict=True)
    return [t * TRUE | f * FALSE | n * NULL for t, f, n in bits]


def test_c04_a_segment_in_the_place_of_another(spark: SparkSession, write_table: WriteTable) -> None:
    """Whole and sound, and of the size that the snapshot names: the checksums in the snapshot tell."""
    root = write_table({f"{i:02}.parquet": numbered(i * 2, a=[i, i + 100]) for i in range(20)})
    table = sec.open_table(str(root))
    sec.build_index(table, spark=spark, bloom=["a"], segment_blocks=1)
    by_size: dict[int, list[Path]] = {}
    for path in sorted((root / "_secateur" / "segments").iterdir()):
        by_size.setdefault(path.stat().st_size, []).append(path)
    first, second = next(paths[:2] for paths in by_size.values() if len(paths) > 1)
    held = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(held)
    between = "a IS NOT NULL AND a <> 50"  # within the bounds of every segment, and nothing that filters tell of
    degraded = sec.prune(sec.open_table(str(root)), between).report.degraded
    for path in (first, second):
        assert any(path.name in reason for reason in degraded)
    assert all("does not match its checksum" in reason for reason in degraded)
    with pytest.raises(IndexFault, match="does not match its checksum"):
        sec.prune(sec.open_table(str(root)), between, strict=True)


def test_c08_an_absent_null_count_is_unknown() -> None:
    known: dict[str, list[Any]] = {"row_count": [4], "a_lower": [5], "a_upper": [9]}
    assert outcomes("a IS NULL", **known) == [TRUE | FALSE]
    assert outcomes("a < 3", **known) == [FALSE | NULL]
    assert outcomes("a > 3", **known) == [TRUE | NULL]
    assert outcomes("a > 3", **known, a_null_count=[0]) == [TRUE]
    assert outcomes("a > 3", **known, a_null_count=[4]) == [NULL]
    assert outcomes("a > 3", row_count=[4]) == [TRUE | FALSE | NULL]


def test_c10_no_rows_are_not_an_unknown_number_of_rows() -> None:
    assert outcomes("a > 3", row_count=[None, 0], a_lower=[5, 5], a_upper=[9, 9]) == [TRUE | NULL, 0]


def test_c12_columns_whose_names_differ_in_case_are_one(spark: SparkSession, write_table: WriteTable) -> None:
    root = write_table(
        {
            "0.parquet": numbered(0, kept=[1, 2]),
            "1.parquet": numbered(2, ADDED=["a", None], KEPT=[3, 4]),
            "2.parquet": numbered(4, added=["b", "a"]),
        },
        row_group_size=1,
    )
    shapes = ["{c} = {v}", "{c} IS NULL", "NOT ({c} <=> {v})", "{c} > {v} OR kept = 2", "coalesce({c}, {v}) = {v}"]
    predicates = [shape.format(c=c, v=v) for c, v in {"kept": "3", "added": "'a'"}.items() for shape in shapes]
    frame = spark.read.schema("rid bigint, kept bigint, ADDED string").parquet(str(root))
    check_table(spark, root, predicates, frame=frame)
    check_table(spark, root, predicates, frame=frame, build={"bloom": ["kept", "added"], "segment_blocks": 2})


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
    table = sec.open_table(str(tmp_path))
    sec.build_index(table, spark=spark, bloom=["d", "ts"])
    for predicate in predicates:
        wanted = sorted(rid for rid, value in answers.truth[predicate].items() if value)
        plan = sec.prune(table, predicate, strict=True)
        read = plan.to_spark(spark, ["rid"], via="native").collect()
        assert sorted(row.rid for row in read) == wanted, predicate
        recent = sec.prune(table, f"({predicate}) AND part = 1", strict=True)
        assert recent.to_arrow()["rid"].to_pylist() == [rid for rid in wanted if rid == 2]
    with pytest.raises(OldCalendar, match="via='native'"):
        sec.prune(table, "TRUE").to_arrow()


def test_c26_an_empty_list_holds_nothing(spark: SparkSession, write_table: WriteTable) -> None:
    """``isin([])`` is FALSE, on NULL too, as in Spark; so its NOT matches every row."""
    root = write_table({"a.parquet": numbered(a=[1, None])})
    table, frame = sec.open_table(str(root)), spark.read.parquet(str(root))
    assert sec.prune(table, sec.col("a").isin([])).count() == frame.where(frame.a.isin([])).count() == 0
    assert sec.prune(table, ~sec.col("a").isin([])).count() == frame.where(~frame.a.isin([])).count() == 2
    assert sec.prune(table, ~sec.col("a").isin([])).to_spark(spark).count() == 2


def test_c28_a_column_with_a_dot_in_its_name_is_no_field(spark: SparkSession, tmp_path: Path) -> None:
    for i in range(4):
        st = [{"v": i + 100, "w": {"v": i + 200}}, None]
        columns: dict[str, Any] = {"rid": [i * 2, i * 2 + 1], "st": st, "st.v": [i + 300, i + 400]}
        names = list(columns) if i % 2 else list(reversed(columns))
        write_file(tmp_path / f"{i}.parquet", {name: columns[name] for name in names})
    sec.build_index(sec.open_table(str(tmp_path)), spark=spark, bloom=["`st.v`", "st.w.v"], segment_blocks=1)
    plan = sec.prune(sec.open_table(str(tmp_path)), "st.w.v = 202", strict=True)
    assert plan.to_arrow(["rid", "`st.v`"]).to_pylist() == [{"rid": 4, "st.v": 302}]
    assert [tuple(row) for row in plan.to_spark(spark, ["`st.v`"], via="blocks").collect()] == [(302,)]


def test_c39_addresses_of_blocks(spark: SparkSession, write_table: WriteTable) -> None:
    """Several files of several row groups in one segment: a look-up names the right row group of the right file."""
    root = write_table(
        {f"{i}.parquet": numbered(i * 100, a=range(i * 100, i * 100 + 100)) for i in range(4)}, row_group_size=10
    )
    table = sec.open_table(str(root))
    for segment_blocks in (1000, 15):
        sec.build_index(table, spark=spark, sort_key=["a"], segment_blocks=segment_blocks)
        for value in (0, 9, 10, 99, 100, 257, 399):
            (block,) = sec.prune(table, f"a = {value}", strict=True).blocks.to_pylist()
            assert (block["file"], block["row_group"]) == (f"{value // 100}.parquet", value % 100 // 10)
            assert sec.prune(table, f"a = {value}", strict=True).to_arrow()["rid"].to_pylist() == [value]
