"""Files with types that Parquet got lately, as DuckDB writes them: they open, are indexed, and lose no row."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import secateur as sec
from secateur.errors import UnknownColumn, UnsupportedPredicate, UnsupportedTable

BLOCK = 2048  # rows, the fewest of a row group that DuckDB writes
ROWS = 3 * BLOCK

BOXES = [
    "ST_Intersects(g, ST_GeomFromWKB(X'0101000000000000000000F03F0000000000000040'))",
    "NOT ST_Intersects(g, ST_GeomFromWKB(X'0101000000000000000000F03F0000000000000040'))",
    "ST_Srid(g) = 4326",
]
PATHS = [
    "payload:user::int = 7",
    "NOT (payload:user::int = 7)",
    "variant_get(payload, '$.user', 'string') = 'u7'",
    "try_variant_get(payload, '$.user', 'int') IS NULL",
    "is_variant_null(payload:user)",
]


def check(lake: Path, only_spark: list[str], column: str) -> None:
    """Asks before and after a build, by a plain column and by conditions that only Spark answers."""
    table = sec.open_table(lake)
    files = len(list(lake.iterdir()))
    blocks = files * ROWS // BLOCK
    for indexed in (False, True):
        if indexed:
            built = sec.build_index(table, bloom=["id"])
            assert not [name for name in built.columns if name.startswith(f"{column}.")]
            assert sec.verify_index(table).faults == ()
        plan = sec.prune(table, f"id IN (5, {ROWS + 5}, 999999999)", strict=True)
        assert (len(plan.blocks), plan.count()) == (2, 2)
        assert sorted(plan.to_arrow(columns=["id"])["id"].to_pylist()) == [5, ROWS + 5]
        for condition in only_spark:
            assert len(sec.prune(table, condition, strict=True).blocks) == blocks, condition
            beside = sec.prune(table, f"({condition}) AND id = 5", strict=True)
            assert len(beside.blocks) == 1, condition
            with pytest.raises(UnsupportedPredicate, match="to_spark"):
                beside.count()


@pytest.mark.parametrize("version", ["V1", "V2", "BOTH"])
def test_c57_geometry_keeps_every_block(tmp_path: Path, version: str) -> None:
    """With Parquet's own type, and as bytes that a key in the file's metadata tells of; boxes are not used."""
    for i in range(2):
        write(
            tmp_path / f"{i}.parquet",
            f"SELECT ('POINT(' || (i % 360 - 180) || ' ' || (i % 90) || ')')::GEOMETRY g, (i + {i * ROWS})::BIGINT id",
            f", GEOPARQUET_VERSION '{version}'",
        )
    check(tmp_path, BOXES, "g")
    assert sec.prune(tmp_path, "g IS NULL", strict=True).count() == 0
    assert sec.prune(tmp_path, "g IS NOT NULL AND id < 9", strict=True).to_arrow().num_rows == 9


def test_c56_shredded_variant_keeps_every_block(tmp_path: Path) -> None:
    """One file has the path as integers, one as texts, one not at all, and one as both: in the bytes of the whole."""
    shapes = ["""'{"user":' || i || '}'""", """'{"user":"u' || i || '"}'""", """'{"other":' || i || '}'"""]
    shapes.append("""CASE WHEN i % 2 = 0 THEN '{"user":' || i || '}' ELSE '{"user":"u' || i || '"}' END""")
    for i, shape in enumerate(shapes):
        write(tmp_path / f"{i}.parquet", f"SELECT ({shape})::JSON::VARIANT payload, (i + {i * ROWS})::BIGINT id")
    check(tmp_path, PATHS, "payload")
    with pytest.raises(UnsupportedTable, match="leave the column out"):
        sec.prune(tmp_path, "id = 5").to_arrow()
    with pytest.raises(UnknownColumn):
        sec.prune(tmp_path, "payload.typed_value.user.typed_value = 7")


def write(path: Path, query: str, more: str = "") -> None:
    duckdb.sql(f"COPY ({query} FROM range({ROWS}) t(i)) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE {BLOCK}{more})")
