"""Delta tables in every form that their log may take: what is read is what was written, whatever the form."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from conformance.delta_log import DeltaLog, inline_vector, metadata, protocol, schema_text, stored_vectors
from secateur.errors import (
    IndexFault,
    InvalidParquet,
    SecateurError,
    StalePlan,
    TableNotFound,
    UnknownColumn,
    UnknownSnapshot,
    UnsupportedTable,
)
from tests.support.formats.delta_tables import LoggedTable, numbered
from tests.support.profiles import examples

SCHEMA = numbered(0, 0).schema
CHECKPOINTS = ("classic", "parts", "json", "parquet", "inline")


def ids(table: Any, predicate: str = "true", **options: Any) -> list[int]:
    """The ids of the rows of a predicate; every way to them says the same."""
    plan = sec.prune(table, predicate, strict=True, **options)
    read = sorted(plan.to_arrow(["rid"])["rid"].to_pylist())
    assert plan.count() == len(read)
    return read


@pytest.fixture
def table(tmp_path: Path) -> LoggedTable:
    """Three files of ten rows each, the second of which lost a few."""
    made = LoggedTable(tmp_path / "t", SCHEMA)
    _, second, _ = made.append(numbered(0, 10), numbered(10, 20), numbered(20, 30))
    made.delete(second, inline_vector([0, 5, 9]))
    return made


HOLDS: dict[str, Callable[[int], bool]] = {
    "true": lambda i: True,
    "rid % 3 = 0": lambda i: i % 3 == 0,
    "rid > 50": lambda i: i > 50,
    "s = 'text 3'": lambda i: i % 7 == 3,
}
LIVE = [*range(10), 11, 12, 13, 14, 16, 17, 18, *range(20, 30)]


# ---- forms of the log


@given(data=st.data())
@examples(60)
def test_checkpoints_and_compactions_change_nothing(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Whatever files of the log stand for the commits before them, and whatever commits are cleaned up."""
    made = LoggedTable(tmp_path_factory.mktemp("delta") / "t", SCHEMA)
    live: dict[str, tuple[Any, list[int]]] = {}
    states = [[]]
    for step in range(data.draw(st.integers(1, 6), label="steps")):
        change = data.draw(st.sampled_from(["append", "delete", "remove"] if live else ["append"]), label="change")
        name = None if change == "append" else data.draw(st.sampled_from(sorted(live)), label="file")
        if name is None:
            (add,) = made.append(numbered(step * 10, step * 10 + 10))
            live[add["add"]["path"]] = add, list(range(step * 10, step * 10 + 10))
        elif change == "remove":
            add, _ = live.pop(name)
            gone = {key: add["add"][key] for key in ("path", "deletionVector") if key in add["add"]}
            made.log.commit({"remove": {**gone, "deletionTimestamp": 1, "dataChange": True}})
        else:
            add, _ = live[name]
            first = int(json.loads(add["add"]["stats"])["minValues"]["rid"])
            positions = sorted(data.draw(st.sets(st.integers(0, 9)), label="positions"))
            kept = [first + i for i in range(10) if i not in positions]
            live[name] = made.delete(add, inline_vector(positions)), kept
        states.append(sorted(id_ for _, live_ids in live.values() for id_ in live_ids))
    last = made.log.version
    handle = sec.open_table(made.directory)
    for kind in data.draw(st.lists(st.sampled_from(CHECKPOINTS), max_size=2), label="checkpoints"):
        version = data.draw(st.integers(0, last), label="version")
        made.log.checkpoint(kind, version)
        if data.draw(st.booleans(), label="clean"):
            for old in range(version + 1):
                made.log.path(old).unlink(missing_ok=True)
    kept = sorted(v for v in range(last + 1) if made.log.path(v).exists())
    if len(kept) > 2 and data.draw(st.booleans(), label="compact"):
        first = data.draw(st.sampled_from(kept[:-1]), label="first")
        made.log.compact(first, last)
        made.log.path(first).unlink()
    for opened in (sec.open_table(made.directory), handle):
        assert ids(opened) == states[last]
        assert ids(opened, "rid % 2 = 0 AND s <> 'text 3'") == [i for i in states[last] if i % 2 == 0 and i % 7 != 3]


@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_a_checkpoint_alone_gives_the_table(table: LoggedTable, kind: str) -> None:
    table.log.checkpoint(kind)
    for version in range(table.log.version + 1):
        table.log.path(version).unlink()
    assert ids(sec.open_table(table.directory)) == LIVE
    assert ids(sec.open_table(table.directory), "rid = 16") == [16]


def test_versions(table: LoggedTable) -> None:
    assert ids(sec.open_table(table.directory, version=0)) == []
    assert ids(sec.open_table(table.directory, version=1)) == list(range(30))
    with pytest.raises(UnknownSnapshot, match="no version 7: its latest is 2"):
        sec.open_table(table.directory, version=7)
    with pytest.raises(ValueError, match="version and as_of"):
        sec.open_table(table.directory, version=1, as_of="2026-01-01")
    with pytest.raises(ValueError, match="choose one by version="):
        sec.open_table(table.directory, snapshot_id=1)


def test_times(table: LoggedTable) -> None:
    """By the times of the commits' files, or those that the commits themselves tell."""
    import os

    for version in range(3):
        os.utime(table.log.path(version), ns=(0, (1_000 + version) * 10**9))
    assert ids(sec.open_table(table.directory, as_of="1970-01-01T00:16:41.5")) == list(range(30))
    assert ids(sec.open_table(table.directory, as_of="2030-01-01")) == LIVE
    with pytest.raises(UnknownSnapshot, match="had no version at"):
        sec.open_table(table.directory, as_of="1970-01-01")
    path = table.log.path(2)
    commit = path.read_text().replace('"operation"', '"inCommitTimestamp": 2000000, "operation"', 1)
    path.write_text(commit)
    assert ids(sec.open_table(table.directory, as_of="1970-01-01T00:33:19")) == list(range(30))
    assert ids(sec.open_table(table.directory, as_of="1970-01-01T00:33:20")) == LIVE


def test_a_handle_follows_the_log(table: LoggedTable) -> None:
    handle = sec.open_table(table.directory)
    before = handle.snapshot()
    assert handle.snapshot() is before
    table.append(numbered(30, 33))
    assert ids(handle) == [*LIVE, 30, 31, 32]
    shutil.rmtree(table.directory)
    LoggedTable(table.directory, SCHEMA).append(numbered(100, 101))
    assert ids(handle) == [100]


def test_an_index_survives_deletes_and_covers_what_was_there(table: LoggedTable) -> None:
    handle = sec.open_table(table.directory)
    sec.build_index(handle, bloom=["rid"], sort_key=["rid"])
    assert ids(handle) == LIVE
    third = table.log.state()[2]["part-00002.parquet", ""]
    table.delete(third, inline_vector(range(10)))
    left = [i for i in LIVE if i < 20]
    plan = sec.prune(handle, "rid >= 15", strict=True)
    assert ids(handle) == left
    assert len(plan.blocks) == 2, plan.explain()  # row groups of the second file; those of the third are gone
    assert {stage.name for stage in plan.report.stages} >= {"deletes"}
    table.append(numbered(40, 50))
    assert ids(handle, "rid > 12") == [i for i in [*left, *range(40, 50)] if i > 12]
    refreshed = sec.refresh_index(handle)
    assert (refreshed.files_added, refreshed.files_removed) == (1, 0)
    assert sec.verify_index(handle).sound


def test_plans_are_audited_explained_and_advised_on(table: LoggedTable) -> None:
    """Over deleted rows and a file without an entry; and the index may be moved together and cleaned up."""
    handle = sec.open_table(table.directory)
    sec.build_index(handle, sort_key=["rid"], segment_blocks=2)
    table.append(numbered(30, 40))
    plan = sec.prune(handle, "rid IN (12, 15, 33) AND s > 'text'", strict=True, audit=1.0)
    assert plan.report.audit is not None and plan.report.audit.blocks == plan.report.audit.excluded > 0
    assert "deletes" in plan.explain()
    assert sorted(plan.to_arrow(["rid"])["rid"].to_pylist()) == [12, 33]
    advice = sec.advise(handle, ["s = 'text 3'"])
    assert {proposal.column for proposal in advice.proposals} == {"s"}, advice
    sec.refresh_index(handle, postings=["s"])
    sec.optimize_index(handle)
    assert sec.vacuum_index(handle, grace_seconds=0)
    assert ids(handle, "s = 'text 3'") == [i for i in [*LIVE, *range(30, 40)] if i % 7 == 3]
    assert sec.verify_index(handle).sound


def test_an_index_of_an_empty_table_grows_with_it(tmp_path: Path) -> None:
    made = LoggedTable(tmp_path / "t", SCHEMA)
    handle = sec.open_table(made.directory)
    sec.build_index(handle, bloom=["rid"], sort_key=["s"])
    assert ids(handle) == []
    with pytest.raises(UnknownColumn, match="nothing"):
        sec.build_index(handle, bloom=["nothing"])
    made.append(numbered(0, 10), numbered(10, 20))
    assert ids(handle, "rid IN (3, 15, 99)") == [3, 15]
    refreshed = sec.refresh_index(handle)
    assert (refreshed.files_added, refreshed.files_removed) == (2, 0)
    assert ids(handle, "rid IN (3, 15, 99)") == [3, 15]
    assert ids(handle, "s = 'text 3'") == [3, 10, 17]
    assert sec.verify_index(handle).sound


def test_a_plan_and_a_table_can_be_sent(table: LoggedTable) -> None:
    plan = sec.prune(sec.open_table(table.directory), "rid > 5")
    assert pickle.loads(pickle.dumps(plan)).to_arrow(["rid"]) == plan.to_arrow(["rid"])


# ---- deletion vectors


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("prefix", ["", "ab"])
def test_stored_vectors(tmp_path: Path, prefix: str, absolute: bool) -> None:
    made = LoggedTable(tmp_path / "a table", SCHEMA)
    adds = made.append(numbered(0, 10), numbered(10, 20))
    vectors = stored_vectors(made.directory, [[1, 2], list(range(3, 10))], prefix, absolute=absolute)
    for add, vector in zip(adds, vectors, strict=True):
        made.delete(add, vector)
    live = [0, *range(3, 10), 10, 11, 12]
    handle = sec.open_table(made.directory)
    assert ids(handle) == live
    assert ids(handle, "rid IN (1, 3, 12, 13)") == [3, 12]
    assert sec.prune(handle, "true", limit=9).to_arrow().num_rows == 9
    assert sec.aggregate(handle, "count(*), max(rid), min(rid), count(DISTINCT rid) AS n").to_pylist() == [
        {"count(*)": 11, "max(rid)": 12, "min(rid)": 0, "n": 11}
    ]
    assert sec.prune(handle, "true").report.metrics()["indexed-delete-files"]["value"] == 2
    sec.build_index(handle, sums=["rid"])  # of deleted rows too: such blocks are read
    assert sec.aggregate(handle, "sum(rid) AS s, avg(rid) AS a", strict=True).to_pylist() == [
        {"s": sum(live), "a": sum(live) / 11}
    ]


@given(
    positions=st.sets(st.integers(0, 99)),
    predicate=st.sampled_from(["true", "rid % 3 = 0", "rid > 50", "s = 'text 3'"]),
)
@examples(60)
def test_deleted_rows_are_never_read(
    tmp_path_factory: pytest.TempPathFactory, positions: set[int], predicate: str
) -> None:
    made = LoggedTable(tmp_path_factory.mktemp("delta"), SCHEMA)
    (add,) = made.append(numbered(0, 100))
    made.delete(add, stored_vectors(made.directory, [sorted(positions)])[0])
    expected = [i for i in range(100) if i not in positions and HOLDS[predicate](i)]
    assert ids(sec.open_table(made.directory), predicate) == expected


def harmed(data: bytes, how: str) -> bytes:
    match how:
        case "a bit":
            return data[:30] + bytes([data[30] ^ 1]) + data[31:]
        case "cut":
            return data[:-6]
        case "version":
            return b"\x02" + data[1:]
    raise AssertionError(how)


@pytest.mark.parametrize("how", ["a bit", "cut", "version"])
def test_a_vector_that_is_corrupt_is_named(tmp_path: Path, how: str) -> None:
    made = LoggedTable(tmp_path / "t", SCHEMA)
    (add,) = made.append(numbered(0, 10))
    made.delete(add, stored_vectors(made.directory, [[1, 2]])[0])
    (path,) = made.directory.glob("*.bin")
    path.write_bytes(harmed(path.read_bytes(), how))
    plan = sec.prune(sec.open_table(made.directory), "rid >= 0")
    with pytest.raises(InvalidParquet, match=path.name):
        plan.to_arrow()
    with pytest.raises(InvalidParquet, match=path.name):
        plan.count()


def test_a_vector_that_is_gone_or_counts_otherwise_is_named(tmp_path: Path) -> None:
    made = LoggedTable(tmp_path / "t", SCHEMA)
    (add,) = made.append(numbered(0, 10))
    vector = stored_vectors(made.directory, [[1, 2]])[0]
    add = made.delete(add, {**vector, "cardinality": 3})
    with pytest.raises(InvalidParquet, match="has 2 rows, and the log says 3"):
        sec.prune(sec.open_table(made.directory), "true").to_arrow()
    for path in made.directory.glob("*.bin"):
        path.unlink()
    with pytest.raises(StalePlan, match="deletion_vector_"):
        sec.prune(sec.open_table(made.directory), "true").to_arrow()
    made.delete(add, {**vector, "storageType": "x"})
    with pytest.raises(UnsupportedTable, match="stored by 'x'"):
        sec.prune(sec.open_table(made.directory), "true").to_arrow()


# ---- trouble


def test_a_gap_is_named(table: LoggedTable) -> None:
    table.append(numbered(30, 40))
    table.log.path(1).unlink()
    with pytest.raises(TableNotFound, match=r"has a gap.*00001\.json is missing"):
        sec.open_table(table.directory)


def test_a_missing_part_of_a_checkpoint_is_named(table: LoggedTable) -> None:
    parts = table.log.checkpoint("parts")
    parts[1].unlink()
    assert ids(sec.open_table(table.directory)) == LIVE  # the commits tell the same
    table.log.path(0).unlink()
    with pytest.raises(TableNotFound, match="part 2 of the checkpoint 2"):
        sec.open_table(table.directory)


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_a_missing_sidecar_is_named(table: LoggedTable, kind: str) -> None:
    _, sidecar, _ = table.log.checkpoint(kind)
    sidecar.unlink()
    with pytest.raises(TableNotFound, match=sidecar.name):
        sec.open_table(table.directory)


@pytest.mark.parametrize("text", ['{"add": {"path": "x', '{"add": {"size": 3}}', '{"add": {"path": 3}}', "no json"])
def test_a_malformed_commit_is_named(table: LoggedTable, text: str) -> None:
    handle = sec.open_table(table.directory)
    (table.log.folder / f"{3:020}.json").write_text(text + "\n")
    for opening in (lambda: sec.open_table(table.directory), lambda: sec.prune(handle, "true")):
        with pytest.raises(TableNotFound, match=r"00003\.json"):
            opening()


def test_a_malformed_checkpoint_is_named(table: LoggedTable) -> None:
    (path,) = table.log.checkpoint("classic")
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(TableNotFound, match=path.name):
        sec.open_table(table.directory)


def test_a_file_that_is_gone_is_named(table: LoggedTable) -> None:
    (table.directory / "part-00002.parquet").unlink()
    with pytest.raises(StalePlan, match=r"part-00002\.parquet"):
        ids(sec.open_table(table.directory))
    assert ids(sec.open_table(table.directory), "rid < 15") == [i for i in LIVE if i < 15]  # by the log's bounds


@pytest.mark.parametrize(
    ("features", "reason"),
    [(("fromTheFuture",), "fromTheFuture"), (("catalogManaged",), "only the catalog")],
)
def test_unknown_features_are_named(tmp_path: Path, features: tuple[str, ...], reason: str) -> None:
    with pytest.raises(UnsupportedTable, match=reason):
        sec.open_table(LoggedTable(tmp_path, SCHEMA, features).directory)


def test_later_protocols_and_types_are_refused(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path / "a")
    log.commit({"protocol": {"minReaderVersion": 4, "minWriterVersion": 7}}, metadata(schema_text(SCHEMA)))
    with pytest.raises(UnsupportedTable, match="version 4"):
        sec.open_table(log.directory)
    log = DeltaLog(tmp_path / "b")
    log.commit(protocol(), metadata(schema_text(SCHEMA).replace('"long"', '"geometry"')))
    with pytest.raises(UnsupportedTable, match="rid of the type geometry"):
        sec.open_table(log.directory)
    log = DeltaLog(tmp_path / "c")
    log.commit(protocol())
    with pytest.raises(TableNotFound, match="no metadata"):
        sec.open_table(log.directory)


def test_errors_are_of_the_package(table: LoggedTable) -> None:
    """Whatever byte of the log is harmed: a clear error, or all rows."""
    path = table.log.path(2)
    data = path.read_bytes()
    for i in range(0, len(data), 17):
        path.write_bytes(data[:i] + bytes([data[i] ^ 0x15]) + data[i + 1 :])
        try:
            ids(sec.open_table(table.directory))
        except (SecateurError, UnicodeError) as error:
            assert str(error)


# ---- column mapping


@pytest.mark.parametrize("is_indexed_first", [True, False])
def test_c28_a_table_begins_to_map_columns_whose_names_are_the_ids_of_others(
    tmp_path: Path, is_indexed_first: bool
) -> None:
    """Its files stay, and an index by name says nothing about columns by id, nor one by id about the past by name."""
    log = DeltaLog(tmp_path / "t")
    rows = pa.table({"rid": range(40), "1": [i // 10 for i in range(40)], "2": [1000 - i for i in range(40)]})
    log.commit(protocol(), metadata(schema_text(rows.schema)))
    for i in range(4):
        pq.write_table(rows.slice(i * 10, 10), log.directory / f"{i}.parquet")
        size = (log.directory / f"{i}.parquet").stat().st_size
        log.commit(
            {
                "add": {
                    "path": f"{i}.parquet",
                    "partitionValues": {},
                    "size": size,
                    "modificationTime": 5,
                    "dataChange": True,
                }
            }
        )
    named = sec.open_table(log.directory)
    if is_indexed_first:
        sec.build_index(named, bloom=["1", "2"], sort_key=["rid"])
    fields = json.loads(schema_text(rows.schema))["fields"]
    for number, name in enumerate(("2", "1", "rid"), 1):
        for field in fields:
            if field["name"] == name:
                field["metadata"] = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": name}
    schema = json.dumps({"type": "struct", "fields": fields})
    log.commit(protocol("columnMapping"), metadata(schema, **{"delta_columnMapping_mode": "name"}))
    mapped, past = sec.open_table(log.directory), sec.open_table(log.directory, version=4)
    other = mapped if is_indexed_first else past
    if not is_indexed_first:
        sec.build_index(mapped, bloom=["1", "2"], sort_key=["rid"])
    for _ in range(2):
        for predicate, wanted in (
            ("`1` = 2", list(range(20, 30))),
            ("`2` = 980", [20]),
            ("`2` > 990", list(range(10))),
        ):
            plan = sec.prune(other, predicate)
            assert plan.to_arrow(["rid"])["rid"].to_pylist() == wanted
            assert "build the index anew" in plan.explain()
    if is_indexed_first:
        with pytest.raises(IndexFault, match="knows columns by name, and the table now by id: build the index anew"):
            sec.refresh_index(mapped)
        sec.build_index(mapped, bloom=["1", "2"], sort_key=["rid"])
        assert sec.prune(mapped, "`1` = 2", strict=True).to_arrow(["rid"])["rid"].to_pylist() == list(range(20, 30))


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_go_by_physical_names_or_ids(tmp_path: Path, mode: str) -> None:
    """A column renamed, another dropped and added anew under its name, in files, statistics and partition values."""
    log = DeltaLog(tmp_path / "t")
    struct = pa.struct([("x", pa.int64()), ("y", pa.string())])
    schema = pa.schema([("rid", pa.int64()), ("a", pa.int64()), ("p", pa.string()), ("n", struct)])
    numbers = {"rid": 1, "a": 2, "p": 3, "n": 4, "n.x": 5, "n.y": 6}
    held = protocol("columnMapping")
    log.commit(held, metadata(schema_text(schema, numbers), ["p"], **{"delta_columnMapping_mode": mode}))

    def with_ids(name: str, type_: pa.DataType, number: int) -> pa.Field:
        named = name if mode == "name" else f"whatever {name}"
        return pa.field(named, type_, metadata={"PARQUET:field_id": str(number if mode == "id" else number + 50)})

    inner = pa.struct([with_ids("col-5", pa.int64(), 5), with_ids("col-6", pa.string(), 6)])
    stored = pa.schema(
        [with_ids("col-1", pa.int64(), 1), with_ids("col-2", pa.int64(), 2), with_ids("col-4", inner, 4)]
    )
    adds = []
    for i, value in enumerate(["one", None]):
        ids_ = list(range(i * 4, i * 4 + 4))
        nested = pa.StructArray.from_arrays([pa.array(ids_), pa.array([str(k) for k in ids_])], fields=list(inner))
        rows = pa.Table.from_arrays([pa.array(ids_), pa.array([k * 10 for k in ids_]), nested], schema=stored)
        pq.write_table(rows, log.directory / f"{i}.parquet")
        stats = {"numRecords": 4, "minValues": {"col-2": i * 40, "col-4": {"col-5": i * 4}}}
        stats |= {"maxValues": {"col-2": i * 40 + 30, "col-4": {"col-5": i * 4 + 3}}, "nullCount": {"col-2": 0}}
        size = (log.directory / f"{i}.parquet").stat().st_size
        added = {"path": f"{i}.parquet", "partitionValues": {"col-3": value}, "size": size, "modificationTime": 5}
        adds.append({"add": {**added, "dataChange": True, "stats": json.dumps(stats)}})
    log.commit(*adds)
    handle = sec.open_table(log.directory)
    assert ids(handle, "a = 50") == [5]
    assert ids(handle, "p = 'one' AND n.x > 1") == [2, 3]
    assert ids(handle, "p IS NULL") == [4, 5, 6, 7]
    assert sec.prune(handle, "n.x = 6").report.stages[0].after.files == 1  # by the log's bounds
    sec.build_index(handle, bloom=["a", "n.y"], sort_key=["rid"])
    assert ids(handle, "n.y = '6' AND p IS NULL") == [6]

    renamed = pa.schema([("rid", pa.int64()), ("b", pa.int64()), ("q", pa.string()), ("n", struct), ("a", pa.int64())])
    numbers = {"rid": 1, "b": 2, "q": 3, "n": 4, "n.x": 5, "n.y": 6, "a": 7}
    log.commit(metadata(schema_text(renamed, numbers), ["q"], **{"delta_columnMapping_mode": mode}))
    assert ids(handle, "b = 50 AND q IS NULL") == [5]
    assert ids(handle, "a IS NULL") == list(range(8))
    assert ids(handle, "a = 50") == []
    assert sec.prune(handle, "b = 30", strict=True).to_arrow().to_pylist() == [
        {"rid": 3, "b": 30, "q": "one", "n": {"x": 3, "y": "3"}, "a": None}
    ]
    assert sec.verify_index(handle).sound
