"""Files with types that Parquet got lately, as DuckDB writes them: they open, are indexed, and lose no row."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import secateur as sec
from conformance.delta_log import DeltaLog, metadata, protocol
from secateur.errors import InvalidOption, UnknownColumn, UnsupportedPredicate, UnsupportedTable
from secateur.io.parquet import variant_reader
from secateur.io.scan.audit_findings import AuditFindings
from secateur.io.scan.opened_table import open_snapshot_of
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.maintain.audit import compared
from secateur.pruning.interval import RowValues
from secateur.pruning.report import Faults
from tests.support.profiles import takes_seconds

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


def check(lake: Path, only_spark: list[str], column: str, pruned: dict[str, int] | None = None) -> None:
    """Asks before and after a build, by a plain column and by conditions that only Spark answers.

    `pruned` are the blocks that such a condition rules out by the statistics of footers.
    """
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
            gone = 0 if indexed else (pruned or {}).get(condition, 0)
            assert len(sec.prune(table, condition, strict=True).blocks) == blocks - gone, condition
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


def test_c56_shredded_variant_keeps_blocks_with_values_that_are_not_shredded(tmp_path: Path) -> None:
    """One file has the path as integers, for which it has a column that it does not use, one as texts, one not at all,
    and one as both, of which only the texts are shredded. The file of texts alone prunes.
    """
    shapes = ["""'{"user":' || i || '}'""", """'{"user":"u' || i || '"}'""", """'{"other":' || i || '}'"""]
    shapes.append("""CASE WHEN i % 2 = 0 THEN '{"user":' || i || '}' ELSE '{"user":"u' || i || '"}' END""")
    for i, shape in enumerate(shapes):
        write(tmp_path / f"{i}.parquet", f"SELECT ({shape})::JSON::VARIANT payload, (i + {i * ROWS})::BIGINT id")
    check(tmp_path, PATHS, "payload", {"variant_get(payload, '$.user', 'string') = 'u7'": 2})
    with pytest.raises(UnsupportedTable, match="leave the column out"):
        sec.prune(tmp_path, "id = 5").to_arrow()
    with pytest.raises(UnknownColumn):
        sec.prune(tmp_path, "payload.typed_value.user.typed_value = 7")


def test_an_index_keeps_the_bounds_at_a_path_that_is_named(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", """SELECT ('{"user":"u' || (i + 10000) || '"}')::JSON::VARIANT payload, i id""")
    table = sec.open_table(tmp_path)
    asked = ["payload:user::string = 'u10007'", "NOT (try_variant_get(payload, '$.user', 'string') < 'u16000')"]
    left = [[0], [2]]

    def row_groups() -> list[list[int]]:
        return [sec.prune(table, one, strict=True).blocks["row_group"].to_pylist() for one in asked]

    assert row_groups() == left
    sec.build_index(table)
    assert row_groups() == [[0, 1, 2]] * 2
    proposed = "zone_map=[\"CAST(variant_get(`payload`, '$.user') AS STRING)\"]"
    assert proposed in sec.prune(table, asked[0], strict=True).explain()
    sec.refresh_index(table, zone_map=["payload:user::string"])
    assert row_groups() == left
    assert sec.verify_index(table).faults == ()
    write(tmp_path / "b.parquet", """SELECT ('{"user":"v' || (i + 10000) || '"}')::JSON::VARIANT payload, i id""")
    sec.refresh_index(table)
    assert row_groups() == [[0], [2, 0, 1, 2]]
    assert proposed not in sec.prune(table, asked[0], strict=True).explain()


@takes_seconds
def test_c56_filters_of_a_path_hold_every_value_however_files_shred_it(tmp_path: Path) -> None:
    """Integers and texts as another writer shreds them; in the last file both, and odd ones, in each of its blocks."""
    shapes = ["""'{"user":' || (i * 7919 % 5000) || '}'""", """'{"user":"' || (i * 7919 % 5000) || '"}'"""]
    shapes.append("""CASE i % 4 WHEN 0 THEN '{"user":' || i || '}' WHEN 1 THEN '{"user":"' || i || '"}'
        WHEN 2 THEN '[7]' ELSE '{"user":{"x":7}}' END""")
    for i, shape in enumerate(shapes):
        write(tmp_path / f"{i}.parquet", f"SELECT ({shape})::JSON::VARIANT payload, (i + {i * ROWS})::BIGINT id")
    table = sec.open_table(tmp_path)
    kinds = {"payload:user::int": "rows", "payload:user::string": "blocks"}
    sec.build_index(table, bloom=list(kinds), postings=kinds, gaps=["payload:user::int"])
    findings = audited(table)
    assert (findings.faults, findings.skipped) == ([], [])
    assert findings.values > 2 * ROWS
    places = [7 * pow(7919, -1, 5000) % 5000, 4000 * pow(7919, -1, 5000) % 5000]  # where 7 and 4000 stand
    for number, place in zip((7, 4000), places, strict=True):
        holders = {(f, row // BLOCK) for f in (0, 1) for row in range(place, ROWS, 5000)}
        mixed = {(2, group) for group in range(ROWS // BLOCK)}
        for condition, wanted in {
            f"payload:user::string = '{number}'": holders | mixed,
            f"try_variant_get(payload, '$.user', 'int') = {number}": holders - {(1, g) for g in range(3)} | mixed,
        }.items():
            blocks = sec.prune(table, condition, strict=True).blocks
            kept = {(int(row["file"][0]), row["row_group"]) for row in blocks.to_pylist()}
            texts = {(1, group) for group in range(ROWS // BLOCK)} if "int" in condition else set()
            assert kept == wanted | texts, condition


def test_c56_an_audit_compares_what_an_index_keeps_of_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.parquet", """SELECT ('{"user":' || (i * 7919 % 5000) || '}')::JSON::VARIANT payload, i id""")
    table = sec.open_table(tmp_path)
    sec.build_index(table, bloom=["payload:user::int"], postings={"payload:user::int": "rows"})
    plain = variant_reader.values_at

    def others(*asked: Any) -> RowValues:
        values = plain(*asked)
        return RowValues(pc.add(values.values, pa.scalar(10_000, pa.int32())), values.unknown)

    assert audited(table).faults == []
    monkeypatch.setattr(variant_reader, "values_at", others)
    wrong = {fault.statistic for fault in audited(table).faults}
    assert {"the lower bound", "the upper bound", "the filter (bloom)", "the filter (postings)"} <= wrong


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_c56_variant_in_a_delta_table(tmp_path: Path, mode: str) -> None:
    """Other columns prune as ever, paths by footers and by an index; a file that lacks the column has NULL there."""
    names = {"payload": "payload", "id": "id"} if mode == "none" else {"payload": "col-7", "id": "col-8"}
    mapping = {"delta.columnMapping.mode": mode} if mode != "none" else {}
    fields = []
    for number, (name, type_) in enumerate({"payload": "variant", "id": "long"}.items(), 1):
        ids = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": names[name]} if mapping else {}
        fields.append({"name": name, "type": type_, "nullable": True, "metadata": ids})
    log = DeltaLog(tmp_path)
    features = ("variantType", "variantShredding", *(["columnMapping"] if mapping else []))
    declared = metadata(json.dumps({"type": "struct", "fields": fields}))
    declared["metaData"]["configuration"] = mapping
    log.commit(protocol(*features), declared)
    shape = """('{"user":"u' || ((i + 10000) * 7 % 30011) || '","n":' || i || '}')::JSON::VARIANT"""
    for number, column in enumerate([f'{shape} "{names["payload"]}", '] * 2 + [""]):
        of_payload = f"'{names['payload']}': 1, " if column else ""
        numbers = f", FIELD_IDS {{{of_payload}'{names['id']}': 2}}" if mode == "id" else ""
        path = tmp_path / f"{number}.parquet"
        write(path, f"""SELECT {column}(i + {number * ROWS})::BIGINT "{names["id"]}\"""", numbers)
        added = {"path": path.name, "partitionValues": {}, "size": path.stat().st_size, "modificationTime": 1}
        log.commit({"add": {**added, "dataChange": True, "stats": json.dumps({"numRecords": ROWS})}})
    table = sec.open_table(tmp_path)
    user = f"u{(17 + 10000) * 7 % 30011}"
    for options in ({}, {"zone_map": ["payload:user::string"]}, {"bloom": ["payload:user::string", "payload:n::int"]}):
        if options:
            sec.build_index(table, **options)
            assert sec.verify_index(table).faults == ()
        assert sec.prune(table, "id = 5", strict=True).to_arrow(columns=["id"])["id"].to_pylist() == [5]
        blocks = sec.prune(table, f"payload:user::string = '{user}' OR id = 5", strict=True).blocks.to_pylist()
        kept = {(row["file"], row["row_group"]) for row in blocks}
        assert kept >= {("0.parquet", 0), ("1.parquet", 0)}
        assert len(kept) < 9
        assert len(kept) <= 3 or "bloom" not in options
        lacking = sec.prune(table, "try_variant_get(payload, '$.user', 'string') IS NULL", strict=True)
        assert {("2.parquet", group) for group in range(3)} <= {
            (b["file"], b["row_group"]) for b in lacking.blocks.to_pylist()
        }
        with pytest.raises(UnsupportedPredicate, match="only Spark"):
            sec.prune(table, f"payload:user::string = '{user}'").count()
        if mode != "none":
            with pytest.raises(UnsupportedTable, match="leave the column out"):
                sec.prune(table, "id = 5").to_arrow()


def test_advice_and_reports_pass_over_what_only_spark_reads(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", """SELECT ('{"user":' || (i * 7919 % 5000) || '}')::JSON::VARIANT payload, i id""")
    table = sec.open_table(tmp_path)
    advice = str(sec.advise(table, ["payload:user::int = 7 AND id < 3000", "id = 7"]))
    assert "payload:user::int = 7 AND id < 3000: 2 blocks" in advice
    assert "only Spark can tell the least" in advice
    sec.build_index(table, bloom=["payload:user::int"])
    report = str(sec.report_index(table))
    assert "bloom" in report
    assert "payload.metadata" not in report


def audited(table: ParquetDirectory) -> AuditFindings:
    """What an audit of all blocks finds, in this process."""
    opened = open_snapshot_of(table, dt.UTC, Faults())
    findings, blocks = compared(opened, lambda work, n: work(range(n)), lambda blocks: 1, 1.0, 7, lambda *step: None)
    assert findings.blocks == blocks > 0
    return findings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bloom": ["payload:user"]}, "is VARIANT: name the type"),
        ({"postings": {"payload:user::string": "ordered"}}, "ordered postings are kept of columns"),
        ({"zone_map": ["lower(payload:user::string)"]}, "only Spark can evaluate it"),
        ({"zone_map": ["payload:user"]}, "is VARIANT: name the type"),
        ({"zone_map": ["variant_get(payload, '$.items[*]', 'int')"]}, "only Spark reads the values of VARIANT"),
    ],
)
def test_what_an_index_cannot_keep_of_variant_is_refused(tmp_path: Path, options: Any, message: str) -> None:
    write(tmp_path / "a.parquet", """SELECT ('{"user":"u' || i || '"}')::JSON::VARIANT payload, i id""")
    with pytest.raises(InvalidOption, match=message):
        sec.build_index(tmp_path, **options)


def write(path: Path, query: str, more: str = "") -> None:
    duckdb.sql(f"COPY ({query} FROM range({ROWS}) t(i)) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE {BLOCK}{more})")
