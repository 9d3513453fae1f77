"""LIMIT of plain queries over Iceberg tables below filters of whole partitions, which Iceberg applies and Spark drops.

Rows are counted in the files that Iceberg reads, and in no others. Classes C48 (what has no statistics is read) and C59
(deleted rows do not count).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import secateur as sec
from tests.support.enabled_session import enabled, plan_of, pruning, require_same
from tests.support.formats.iceberg_spark import metadata_file
from tests.support.limited_rows import LIMITS, require_some_rows
from tests.support.profiles import examples

TABLE = "lake.db.limited"
GROUPS = 40  # row groups in the snapshot `before`, of 50 rows; those of a part are ten, of the same 500 ids


@pytest.fixture(scope="module")
def table(iceberg: SparkSession) -> Iterator[str]:
    """Four partitions in two dimensions, a tag, and then rows deleted by position and a file without an entry."""
    iceberg.sql(f"DROP TABLE IF EXISTS {TABLE}")
    iceberg.sql(
        f"CREATE TABLE {TABLE} (id BIGINT, k INT, part INT, day DATE) USING iceberg PARTITIONED BY (part, days(day)) "
        "TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read', "
        "'write.parquet.row-group-size-bytes'='1000', 'write.parquet.row-group-check-min-record-count'='50', "
        "'write.parquet.row-group-check-max-record-count'='50')"
    )
    columns = "id, CAST(IF(id % 7 = 3, NULL, id) AS INT), CAST(id DIV 500 AS INT)"
    for start in (0, 1000):
        iceberg.sql(
            f"INSERT INTO {TABLE} SELECT {columns}, date_add(DATE'2026-01-01', CAST(id DIV 250 AS INT) % 2) "
            f"FROM range({start}, {start + 1000}, 1, 1) ORDER BY id"
        )
    iceberg.sql(f"ALTER TABLE {TABLE} CREATE TAG before")
    iceberg.sql(f"DELETE FROM {TABLE} WHERE id BETWEEN 500 AND 620 OR id = 1700")
    sec.build_index(sec.open_table(metadata_file(iceberg, TABLE)), sort_key=["id"])
    iceberg.sql(f"INSERT INTO {TABLE} SELECT {columns}, DATE'2026-01-01' FROM range(1990, 2010)")
    with enabled(iceberg):
        yield TABLE
    iceberg.sql(f"DROP TABLE {TABLE}")


BEFORE = f"{TABLE} VERSION AS OF 'before'"
KEPT = [  # and how many row groups are read
    (f"SELECT id FROM {BEFORE} WHERE part = 1", "LIMIT 3", 1),
    (f"SELECT id FROM {BEFORE} WHERE part = 1", "LIMIT 51", 2),
    (f"SELECT id FROM {BEFORE} WHERE part = 1", "LIMIT 20 OFFSET 90", 3),
    (f"SELECT * FROM {BEFORE} WHERE part IN (1, 2) AND id >= 560", "LIMIT 20", 1),
    (f"SELECT k, day FROM {BEFORE} WHERE day = DATE'2026-01-02' AND part > 1", "LIMIT 250", 5),
    (f"SELECT id FROM {BEFORE} WHERE day >= DATE'2026-01-01' AND part = 3 AND k IS NOT NULL", "LIMIT 20", 10),
    (f"SELECT id FROM {BEFORE} WHERE part = 9", "LIMIT 20", 0),
    (f"SELECT part, id FROM {BEFORE} WHERE part = 2", "LIMIT 5000", 10),
]


@pytest.mark.parametrize(("rows", "limit", "kept"), KEPT)
def test_as_few_row_groups_as_suffice(iceberg: SparkSession, table: str, rows: str, limit: str, kept: int) -> None:
    require_some_rows(iceberg, rows, limit)
    said = pruning(iceberg.sql(f"{rows} {limit}"))
    assert said == [f"{kept} of {GROUPS}"] or (kept == 0 and not said)


def test_first_rows_of_partitions(iceberg: SparkSession, table: str) -> None:
    for query, kept in (
        ("WHERE part = 1 ORDER BY id DESC LIMIT 10", 1),
        ("WHERE part IN (0, 2) ORDER BY id LIMIT 10 OFFSET 55", 2),
        ("WHERE day = DATE'2026-01-01' AND id > 900 ORDER BY id LIMIT 3", 1),
    ):
        require_same(iceberg, f"SELECT id FROM {BEFORE} {query}")
        assert pruning(iceberg.sql(f"SELECT id FROM {BEFORE} {query}")) == [f"{kept} of {GROUPS}"], query


def test_deleted_rows_and_new_files(iceberg: SparkSession, table: str) -> None:
    """C59: files with deletes are not counted on; C48: those without an entry are counted by their footers."""
    for limit in ("LIMIT 3", "LIMIT 370", "LIMIT 380", "LIMIT 400", "LIMIT 500"):
        require_some_rows(iceberg, f"SELECT id FROM {table} WHERE part = 1", limit)
        require_some_rows(iceberg, f"SELECT id FROM {table} WHERE part >= 3", limit)
    assert "IndexPruning: 1 of" in plan_of(iceberg.sql(f"SELECT id FROM {table} WHERE part = 0 LIMIT 3"))


PARTS = st.sampled_from(
    [
        "part = 1",
        "part IN (0, 3)",
        "part <> 2",
        "part IS NULL",
        "part > 2",
        "day = DATE'2026-01-02'",
        "day < DATE'2026-01-02'",
        "part = 1 AND day = DATE'2026-01-01'",
        "part = 1 OR day = DATE'2026-01-01'",
    ]
)
OTHERS = st.sampled_from(["TRUE", "id >= 620", "id < 1750", "k IS NOT NULL", "k > 100 OR part = 3", "id % 3 = 0"])


@examples(12)
@given(PARTS, OTHERS, LIMITS, st.sampled_from([TABLE, BEFORE]), st.booleans())
def test_any_limit_below_any_filter(
    iceberg: SparkSession, table: str, parts: str, others: str, limit: str, source: str, is_ordered: bool
) -> None:
    rows = f"SELECT id, k, part FROM {source} WHERE {parts} AND {others}"
    if is_ordered:
        require_same(iceberg, f"{rows} ORDER BY k DESC, id {limit}")
    else:
        require_some_rows(iceberg, rows, limit)
