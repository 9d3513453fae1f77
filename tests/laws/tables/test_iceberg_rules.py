"""Rules of Iceberg tables, one by one, on tables that Spark wrote; C-numbers name classes of lost rows."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import secateur as sec
from secateur.errors import InvalidParquet, StalePlan, UnsupportedTable
from tests.support.checks import oracle
from tests.support.drawn.iceberg_histories import add_by_java, create
from tests.support.formats.iceberg_spark import add_equality_deletes, data_files, java_table, location
from tests.support.profiles import by_profile, one_in

NUMBERS = itertools.count()


@pytest.fixture
def name(iceberg: SparkSession) -> str:
    return f"lake.db.r{next(NUMBERS)}"


def opened(spark: SparkSession, name: str, **options: Any) -> Any:
    return sec.open_table(location(spark, name), **options)


def index(spark: SparkSession, name: str, **options: Any) -> None:
    sec.build_index(opened(spark, name), spark=spark, **options)


def agree(
    spark: SparkSession, name: str, predicates: Sequence[str], frame: DataFrame | None = None, **moment: Any
) -> None:
    """With the index and without, rows and counts are those of Spark over all that Iceberg reads."""
    answers = oracle.ask(spark.table(name) if frame is None else frame, predicates)
    assert set(answers.truth) == set(predicates)
    table = opened(spark, name, **moment)
    for predicate in predicates:
        expected = answers.matching(predicate)
        for use_index in (True, False):
            plan = sec.prune(table, predicate, strict=True, use_index=use_index)
            assert oracle.rows(plan.to_arrow()) == expected, (predicate, use_index, plan.explain())
            assert plan.count() == expected.total(), (predicate, use_index)


def read_paths(plan: Any, spark: SparkSession, column: str = "rid") -> dict[str, list[Any]]:
    """One column of what a plan reads, on every read path."""
    frames = {via: plan.to_spark(spark, via=via) for via in ("blocks", "iceberg")}
    values = {via: sorted(row[column] for row in frame.collect()) for via, frame in frames.items()}
    return values | {"arrow": sorted(plan.to_arrow()[column].to_pylist())}


# ---- snapshots -------------------------------------------------------------------------------------------------------


def test_c2_an_index_of_another_snapshot_decides_nothing_for_its_files(iceberg: SparkSession, name: str) -> None:
    """Of a later state, of an earlier one, and of one that was rolled back."""
    create(iceberg, name, "rid BIGINT, k INT", 2, **{"write.delete.mode": "copy-on-write"})
    iceberg.sql(f"INSERT INTO {name} SELECT id, id % 7 FROM range(0, 40)")
    first = java_table(iceberg, name).currentSnapshot().snapshotId()
    index(iceberg, name, bloom=["rid"], sort_key=["k"])
    iceberg.sql(f"DELETE FROM {name} WHERE k = 3")
    iceberg.sql(f"INSERT INTO {name} SELECT id, 100 FROM range(40, 80)")
    predicates = ["true", "k = 3", "k = 100", "rid = 10", "rid = 50", "k < 100"]
    agree(iceberg, name, predicates)
    agree(iceberg, name, predicates, iceberg.sql(f"SELECT * FROM {name} VERSION AS OF {first}"), snapshot_id=first)
    sec.refresh_index(opened(iceberg, name), spark=iceberg)
    agree(iceberg, name, predicates, iceberg.sql(f"SELECT * FROM {name} VERSION AS OF {first}"), snapshot_id=first)
    iceberg.sql(f"CALL lake.system.rollback_to_snapshot('{name.removeprefix('lake.')}', {first})")
    iceberg.sql(f"INSERT INTO {name} VALUES (90, 3), (91, NULL)")
    agree(iceberg, name, [*predicates, "rid = 90", "k IS NULL"])


# ---- columns ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", one_in(2, [3, 2]))
def test_c12_a_column_added_under_the_name_of_a_dropped_one_is_another(
    iceberg: SparkSession, name: str, version: int
) -> None:
    create(iceberg, name, "rid BIGINT, k INT, p STRUCT<x: INT, y: INT>", version)
    iceberg.sql(f"INSERT INTO {name} SELECT id, id % 3, named_struct('x', id, 'y', 1) FROM range(0, 30)")
    index(iceberg, name, bloom=["rid", "k", "p.x"], sort_key=["k"])
    iceberg.sql(f"ALTER TABLE {name} DROP COLUMNS k, p.x")
    if version == 3:
        add_by_java(iceberg, name, "k", "INT", 7)
    else:
        iceberg.sql(f"ALTER TABLE {name} ADD COLUMN k INT")
    iceberg.sql(f"ALTER TABLE {name} ADD COLUMN p.x INT")
    iceberg.sql(f"INSERT INTO {name} (rid, k, p) SELECT id, 1, named_struct('y', 2, 'x', 5) FROM range(30, 40)")
    iceberg.sql(f"INSERT INTO {name} (rid, k, p) VALUES (41, NULL, NULL)")
    predicates = [
        "k IS NULL",
        "k = 1",
        "k <> 1",
        "k = 7",
        "NOT (k > 1)",
        "p.x = 5",
        "p.x IS NULL",
        "p.y = 1",
        "k <=> 2",
    ]
    agree(iceberg, name, predicates)
    sec.refresh_index(opened(iceberg, name), spark=iceberg)
    agree(iceberg, name, predicates)


def test_c13_bounds_and_values_of_narrower_types_are_widened(iceberg: SparkSession, name: str) -> None:
    create(iceberg, name, "rid BIGINT, k INT, f FLOAT, amount DECIMAL(4, 2)", 2, "truncate(10, k)")
    iceberg.sql(
        f"INSERT INTO {name} SELECT id, id - 20, IF(id = 3, float('NaN'), float(id / 10)), id / 3 FROM range(0, 40)"
    )
    index(iceberg, name, bloom=["k", "f", "amount"], sort_key=["k"])
    for column, type_ in (("k", "BIGINT"), ("f", "DOUBLE"), ("amount", "DECIMAL(20, 2)")):
        iceberg.sql(f"ALTER TABLE {name} ALTER COLUMN {column} TYPE {type_}")
    predicates = ["k = -1", "k < -2147483648", "k <> 3", "f = 0.1D", "f = CAST(0.1F AS DOUBLE)", "f > 3D", "isnan(f)"]
    predicates += ["amount = 1.67", "amount > 12.999", "amount = 123456789.01", "k > 2147483647", "f <= 0.1D"]
    agree(iceberg, name, predicates)
    iceberg.sql(f"INSERT INTO {name} VALUES (50, 2147483648, 0.1D, 123456789.01), (51, -3000000000, 1e300D, NULL)")
    agree(iceberg, name, predicates)
    sec.refresh_index(opened(iceberg, name), spark=iceberg)
    agree(iceberg, name, predicates)


def test_c47_every_file_has_columns_of_its_own(iceberg: SparkSession, name: str) -> None:
    """Files in which one name means three columns, and one column has three names, in one plan."""
    create(iceberg, name, "rid BIGINT, a INT, b INT", 2)
    iceberg.sql(f"INSERT INTO {name} VALUES (1, 10, 20), (2, NULL, 21)")
    iceberg.sql(f"ALTER TABLE {name} RENAME COLUMN a TO c")
    iceberg.sql(f"ALTER TABLE {name} RENAME COLUMN b TO a")
    iceberg.sql(f"INSERT INTO {name} VALUES (3, 11, 22), (4, 12, NULL)")
    index(iceberg, name, bloom=["a", "c"], sort_key=["a"])
    iceberg.sql(f"ALTER TABLE {name} DROP COLUMN c")
    iceberg.sql(f"ALTER TABLE {name} ADD COLUMN b INT FIRST")
    iceberg.sql(f"ALTER TABLE {name} ALTER COLUMN a FIRST")
    iceberg.sql(f"INSERT INTO {name} (rid, a, b) VALUES (5, 23, 10), (6, 24, 20)")
    agree(iceberg, name, ["true", "a = 20", "a = 22", "a IS NULL", "b = 20", "b = 10", "b IS NULL", "a > 21 OR b = 10"])


def test_files_without_field_ids_are_read_by_the_name_mapping(iceberg: SparkSession, name: str, tmp_path: Path) -> None:
    """Files of ``add_files``; after a column was renamed, and another took its name."""
    create(iceberg, name, "rid BIGINT, k INT, p STRUCT<x: INT>, tags ARRAY<STRING>", 2)
    rows = "id AS rid, CAST(id % 4 AS INT) AS k, named_struct('x', CAST(id AS INT)) AS p, array(string(id)) AS tags"
    for start, folder in ((0, tmp_path / "old"), (20, tmp_path / "newer")):
        iceberg.sql(f"SELECT {rows} FROM range({start}, {start + 20})").coalesce(1).write.parquet(str(folder))
        iceberg.sql(f"CALL lake.system.add_files('{name.removeprefix('lake.')}', '`parquet`.`{folder}`')")
    predicates = ["true", "k = 1", "p.x > 17", "rid = 3", "array_contains(tags, '3')"]
    agree(iceberg, name, predicates)
    index(iceberg, name, bloom=["rid", "k"], sort_key=["k"])
    agree(iceberg, name, predicates)
    iceberg.sql(f"ALTER TABLE {name} RENAME COLUMN k TO old")
    agree(iceberg, name, ["old = 1", "old IS NULL"])
    iceberg.sql(f"ALTER TABLE {name} ADD COLUMN k INT")
    iceberg.sql(f"INSERT INTO {name} VALUES (100, 1, named_struct('x', 18), array('3'), 1)")
    predicates = ["old = 1", "old IS NULL", "k IS NULL", "k = 1", "k = 3", "p.x > 17", "array_contains(tags, '3')"]
    agree(iceberg, name, predicates)


# ---- partitions ------------------------------------------------------------------------------------------------------

ODD = [
    "a b",
    "50%",
    "%20",
    "x+y",
    "a/b",
    "k=v",
    "ä",
    "🦊",
    "",
    "a'b",
    "#?",
    "..",
    "a\\b",
    "a:b",
    "__HIVE_DEFAULT_PARTITION__",
]


def test_c41_partition_values_are_not_taken_from_paths(iceberg: SparkSession, name: str) -> None:
    create(iceberg, name, "rid BIGINT, s STRING", 2, "s")
    frame = iceberg.createDataFrame([(i, s) for i, s in enumerate([*ODD, None] * 2)], "rid BIGINT, s STRING")
    frame.coalesce(1).writeTo(name).append()
    iceberg.sql(f"DELETE FROM {name} WHERE rid = 0 OR rid = 3")
    quoted = ["'" + s.replace("\\", "\\\\").replace("'", "\\'") + "'" for s in ODD]
    predicates = [*(f"s = {s}" for s in quoted), "s IS NULL", "s LIKE '%/%'", "s > 'a'"]
    agree(iceberg, name, predicates)
    index(iceberg, name, bloom=["rid"], sort_key=["s"])
    agree(iceberg, name, predicates)
    for s, predicate in zip(quoted, predicates, strict=False):
        assert len(sec.prune(opened(iceberg, name), predicate).files) == 1, s
    plan = sec.prune(opened(iceberg, name), "s <> 'nothing'")
    expected = [i for i, s in enumerate([*ODD, None] * 2) if s is not None and i not in (0, 3)]
    assert read_paths(plan, iceberg) == dict.fromkeys(("blocks", "iceberg", "arrow"), expected)


OF = "rid BIGINT, i INT, l BIGINT, s STRING, d DOUBLE, amount DECIMAL(9, 2), ts TIMESTAMP, local TIMESTAMP_NTZ, "
OF += "day DATE, data BINARY, yes BOOLEAN"
TRANSFORMS = ["i", "l", "s", "d", "amount", "ts", "local", "day", "data", "yes"]
TRANSFORMS += [f"bucket(3, {name})" for name in ("i", "l", "s", "amount", "ts", "local", "day", "data")]
TRANSFORMS += [f"truncate(3, {name})" for name in ("i", "l", "s", "amount", "data")]
TRANSFORMS += [f"{unit}({name})" for unit in ("years", "months", "days") for name in ("ts", "local", "day")]
TRANSFORMS += ["hours(ts)", "hours(local)"]
VALUES = """
    (0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (1, -1, -4L, 'äöü🦊', double('NaN'), -0.01, TIMESTAMP '1969-12-31 23:59:59.999999',
        TIMESTAMP_NTZ '1969-12-31 22:59:59.999999', DATE '1969-12-31', X'FFFF', true),
    (2, -3, 3000000000L, 'abcd', double('-0'), 0.02, TIMESTAMP '1970-01-01 00:00:00',
        TIMESTAMP_NTZ '1970-01-01 00:00:00', DATE '1970-01-01', X'', false),
    (3, 2147483647, -9223372036854775808L, '', double('Infinity'), 9999999.99, TIMESTAMP '1582-01-01 00:00:00',
        TIMESTAMP_NTZ '2026-02-28 23:00:00.000001', DATE '2026-02-28', X'61626364', true)
"""


@pytest.mark.parametrize("version", by_profile(quick=[1], full=[1, 2], nightly=[1, 2]))
def test_partition_values_of_every_transform_bound_their_columns(
    iceberg: SparkSession, name: str, version: int
) -> None:
    """A table whose files were each written under a spec of its own; in version 1 former fields stay, as void ones."""
    create(iceberg, name, OF, version)
    few = [transform for transform in TRANSFORMS if re.search(r"\b(s|amount|day)\b", transform)]
    for number, transform in enumerate(few if version == 1 else TRANSFORMS):
        clause = f"REPLACE PARTITION FIELD p{number - 1} WITH" if number else "ADD PARTITION FIELD"
        iceberg.sql(f"ALTER TABLE {name} {clause} {transform} AS p{number}")
        iceberg.sql(f"INSERT INTO {name} SELECT {number} * 10 + col1, * EXCEPT (col1) FROM VALUES {VALUES}")
    predicates = ["i = -1", "i > 5", "l = 3000000000", "l < -5", "s = 'abcd'", "s LIKE 'äö%'", "s = ''", "d > 1D"]
    predicates += ["d = 0D", "isnan(d)", "amount = -0.01", "amount < 0", "ts < TIMESTAMP '1970-01-01 00:00:00Z'"]
    predicates += ["ts = TIMESTAMP '1582-01-01 00:00:00Z'", "local >= TIMESTAMP_NTZ '2026-02-28 23:00:00'"]
    predicates += ["day = DATE '1969-12-31'", "year(day) = 2026", "data = X''", "data > X'62'", "yes", "NOT yes"]
    predicates += [f"{column} IS NULL" for column in ("i", "s", "d", "ts", "data", "yes")]
    agree(iceberg, name, predicates)
    index(iceberg, name, bloom=["rid"], sort_key=["i"])
    agree(iceberg, name, predicates[::3])


# ---- deletes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", one_in(2, [3, 2]))
def test_c42_c44_deleted_rows_count_for_nothing(iceberg: SparkSession, name: str, version: int) -> None:
    """Not in a count without reading, nor for a limit that sure blocks could fill; and what they became is found."""
    create(iceberg, name, "rid BIGINT, k INT", version)
    iceberg.sql(f"INSERT INTO {name} SELECT id, 1 FROM range(0, 32, 1, 1)")
    iceberg.sql(f"INSERT INTO {name} SELECT id, 2 FROM range(32, 40, 1, 1)")
    index(iceberg, name, bloom=["k"], sort_key=["rid"])
    iceberg.sql(f"DELETE FROM {name} WHERE rid BETWEEN 1 AND 30 OR rid = 35")
    agree(iceberg, name, ["true", "k = 1", "k = 2", "rid >= 0", "k = 1 AND rid > 5", "rid = 35", "k IS NULL"])
    iceberg.sql(f"UPDATE {name} SET k = 9 WHERE rid = 36")
    agree(iceberg, name, ["k = 9", "k = 2", "rid = 36 AND k = 2", "rid = 36"])
    for limit, expected in ((1, 1), (2, 2), (5, 2)):
        plan = sec.prune(opened(iceberg, name), "k = 1", limit=limit, strict=True)
        assert plan.to_arrow().num_rows == expected
        for via in ("blocks", "iceberg"):
            assert plan.to_spark(iceberg, via=via).count() == expected
    sec.refresh_index(opened(iceberg, name), spark=iceberg)
    agree(iceberg, name, ["true", "k = 1", "rid = 35"])


@pytest.mark.parametrize("version", one_in(2, [3, 2]))
def test_position_deletes_leave_later_files_alone(iceberg: SparkSession, name: str, version: int) -> None:
    create(iceberg, name, "rid BIGINT, k INT", version, **{"write.delete.granularity": "partition"})
    iceberg.sql(f"INSERT INTO {name} SELECT id, 1 FROM range(0, 10, 1, 1)")
    iceberg.sql(f"INSERT INTO {name} SELECT id, 1 FROM range(10, 20, 1, 1)")
    iceberg.sql(f"DELETE FROM {name} WHERE rid IN (0, 1, 12)")
    iceberg.sql(f"INSERT INTO {name} SELECT id, 1 FROM range(0, 10, 1, 1)")
    iceberg.sql(f"DELETE FROM {name} WHERE rid = 5")
    expected = sorted([*range(2, 10), *range(0, 10), 10, 11, *range(13, 20)])
    expected = [rid for rid in expected if rid != 5]
    plan = sec.prune(opened(iceberg, name), "k = 1", strict=True)
    assert read_paths(plan, iceberg) == dict.fromkeys(("blocks", "iceberg", "arrow"), expected)
    assert plan.count() == len(expected)


@pytest.mark.parametrize("version", one_in(2, [3, 2]))
def test_equality_deletes_leave_rows_of_their_own_commit_and_later_ones_alone(
    iceberg: SparkSession, name: str, version: int
) -> None:
    create(iceberg, name, "rid BIGINT, k INT", version)
    iceberg.sql(f"INSERT INTO {name} SELECT id, id % 4 FROM range(0, 10, 1, 1)")
    iceberg.sql(f"INSERT INTO {name} VALUES (20, NULL), (21, 3)")
    other = f"{name}_other"
    create(iceberg, other, "rid BIGINT, k INT", version)
    iceberg.sql(f"INSERT INTO {other} VALUES (22, 1), (23, NULL)")
    keys = pa.table({"k": pa.array([1, None], pa.int32())})
    add_equality_deletes(iceberg, name, keys, spec_id=0, adding=data_files(iceberg, other))
    index(iceberg, name, bloom=["k"], sort_key=["rid"])
    iceberg.sql(f"INSERT INTO {name} VALUES (30, 1), (31, NULL)")
    agree(iceberg, name, ["true", "k = 1", "k IS NULL", "k <> 1", "rid >= 20"])
    expected = sorted([*(rid for rid in range(10) if rid % 4 != 1), 21, 22, 23, 30, 31])
    plan = sec.prune(opened(iceberg, name), "true", strict=True)
    assert read_paths(plan, iceberg) == dict.fromkeys(("blocks", "iceberg", "arrow"), expected)


def test_equality_deletes_of_a_partition_apply_within_it(iceberg: SparkSession, name: str) -> None:
    """Those of an unpartitioned spec apply everywhere, and those by a column that was dropped since, too."""
    create(iceberg, name, "rid BIGINT, k INT, s STRING", 2)
    iceberg.sql(f"ALTER TABLE {name} ADD PARTITION FIELD bucket(2, k) AS b")
    iceberg.sql(f"INSERT INTO {name} SELECT id, id % 4, string(id % 2) FROM range(0, 16, 1, 1)")
    beside = next(data_file for data_file in data_files(iceberg, name))
    add_equality_deletes(iceberg, name, pa.table({"s": ["1"]}), beside=beside)
    agree(iceberg, name, ["true", "s = '1'", "k = 1 OR k = 3"])
    add_equality_deletes(iceberg, name, pa.table({"s": ["0"], "k": pa.array([2], pa.int32())}), spec_id=0)
    agree(iceberg, name, ["true", "s = '0'", "k = 2"])
    iceberg.sql(f"ALTER TABLE {name} DROP COLUMN s")
    index(iceberg, name, bloom=["k"], sort_key=["rid"])
    agree(iceberg, name, ["true", "k = 2", "k = 1"])


@pytest.mark.parametrize("version", one_in(2, [3, 2]))
def test_a_missing_delete_file_is_an_error(iceberg: SparkSession, name: str, version: int) -> None:
    """The rows that it deletes never come back: not as rows, nor in a count; and it is not asked for needlessly."""
    create(iceberg, name, "rid BIGINT, k INT", version)
    iceberg.sql(f"INSERT INTO {name} SELECT id, 1 FROM range(0, 20, 1, 1)")
    iceberg.sql(f"INSERT INTO {name} SELECT id, 2 FROM range(20, 30, 1, 1)")
    iceberg.sql(f"DELETE FROM {name} WHERE rid = 3")
    deletes = [row[0] for row in iceberg.sql(f"SELECT file_path FROM {name}.delete_files").collect()]
    for delete in deletes:
        Path(delete.removeprefix("file:")).unlink()
    plan = sec.prune(opened(iceberg, name), "k = 1", strict=True)
    for read in (plan.to_arrow, plan.count, lambda: plan.to_spark(iceberg, via="blocks").collect()):
        with pytest.raises(StalePlan, match="has vanished"):
            read()
    with pytest.raises(Exception, match=r"delete|exist|found"):
        plan.to_spark(iceberg, via="iceberg").collect()
    assert sec.prune(opened(iceberg, name), "k = 2").count() == 10


# ---- files that are not read -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", ["orc", "avro"])
def test_a_file_of_another_format_is_named(iceberg: SparkSession, name: str, format_: str) -> None:
    create(iceberg, name, "rid BIGINT, k INT", 2, **{"write.format.default": format_})
    iceberg.sql(f"INSERT INTO {name} VALUES (1, 2)")
    with pytest.raises(UnsupportedTable, match=rf"/data/.*\.{format_} is a file of {format_.upper()}"):
        sec.prune(opened(iceberg, name), "k = 2").to_arrow()


def test_files_without_field_ids_or_mapping_are_named(iceberg: SparkSession, name: str, tmp_path: Path) -> None:
    create(iceberg, name, "rid BIGINT, k INT", 2)
    iceberg.sql("SELECT id AS rid, CAST(id AS INT) AS k FROM range(0, 5)").coalesce(1).write.parquet(
        str(tmp_path / "f")
    )
    iceberg.sql(f"CALL lake.system.add_files('{name.removeprefix('lake.')}', '`parquet`.`{tmp_path / 'f'}`')")
    iceberg.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('schema.name-mapping.default')")
    with pytest.raises(InvalidParquet, match="have no field ids"):
        sec.prune(opened(iceberg, name), "k = 2").to_arrow()
