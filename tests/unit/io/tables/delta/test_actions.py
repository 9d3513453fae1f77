"""The files of a Delta log, read by columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import secateur as sec
from secateur.io.tables.delta import actions
from secateur.io.tables.delta.actions import BLOCK_BYTES, PARSED, LogReader, changes_schema, json_changes, table_actions
from secateur.io.tables.delta.live_files import reconciled
from tests.support.formats.delta_tables import LoggedTable, numbered
from tests.support.profiles import takes_seconds


def lines(*entries: Any, separators: tuple[str, str] = (",", ":")) -> bytes:
    return "\n".join(json.dumps(entry, separators=separators) for entry in entries).encode()


def added(path: str, **more: Any) -> dict[str, Any]:
    return {"add": {"path": path, "size": 1, "modificationTime": 1, "partitionValues": {}, **more}}


def removed(path: str) -> dict[str, Any]:
    return {"remove": {"path": path, "dataChange": True}}


PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
METADATA = {"metaData": {"id": "one", "schemaString": "{}"}}


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" , ", " : ")])
def test_actions_about_the_table_are_among_any_lines(separators: tuple[str, str]) -> None:
    """However lines are spaced, and whatever the names of files say."""
    entries = [{"commitInfo": {}}, added('a"protocol"'), PROTOCOL, removed("sidecar"), {"add": None, **METADATA}]
    known = table_actions(lines(*entries, separators=separators) + b"\n")
    assert known.protocol == PROTOCOL["protocol"]
    assert known.metadata == METADATA["metaData"]
    assert table_actions(b"") == table_actions(b"\n{}\n") == actions.TableActions()


@takes_seconds
def test_a_line_may_be_longer_than_what_is_parsed_at_once() -> None:
    long = "x" * (BLOCK_BYTES + 1)
    for entries in ([added("a"), added(long), added("b")], [added(str(i).zfill(20)) for i in range(80_000)]):
        data = lines(*entries, {"commitInfo": {}})
        assert json_changes(data, ())["path"].to_pylist() == [entry["add"]["path"] for entry in entries]


def test_changes_lie_together_or_not() -> None:
    entries = [added("b"), {"commitInfo": {}}, removed("a"), {"txn": {}}, added("a")]
    changes = json_changes(lines(*entries), ())
    assert changes.select(["path", "is_add"]).to_pylist() == [
        {"path": "b", "is_add": True},
        {"path": "a", "is_add": False},
        {"path": "a", "is_add": True},
    ]
    assert reconciled([changes], changes_schema(()))["path"].to_pylist() == ["a", "b"]


@pytest.mark.parametrize("paths", [["a", "b", "c"], ["c", "a", "b"], ["a", "a", "b"]])
def test_the_last_change_of_a_path_counts(paths: list[str]) -> None:
    """Whether paths ascend, in which case no two are equal, or not."""
    schema = changes_schema(())
    for gone in range(len(paths)):
        entries = [removed(path) if i == gone else added(path) for i, path in enumerate(paths)]
        last = {path: i != gone for i, path in enumerate(paths)}
        live = reconciled([json_changes(lines(*entries), ())], schema)
        assert sorted(live["path"].to_pylist()) == sorted(path for path, is_live in last.items() if is_live)


@pytest.mark.parametrize("in_pieces", [False, True])
@pytest.mark.parametrize("kept", [["stats"], ["stats_parsed"], ["stats", "stats_parsed"], []])
def test_statistics_of_a_checkpoint_are_text_or_typed(
    tmp_path: Path, kept: list[str], in_pieces: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that it has prune files, also where its other rows lie between the files; without any, all are kept."""
    made = LoggedTable(tmp_path / "t", numbered(0, 0).schema)
    made.append(*(numbered(start, start + 10) for start in range(0, 50, 10)))
    (checkpoint,) = made.log.checkpoint("classic")
    _with_statistics(checkpoint, kept)
    for version in range(made.log.version + 1):
        made.log.path(version).unlink()
    if in_pieces:
        monkeypatch.setattr(actions, "WHOLE_BYTES", 0)
    handle = sec.open_table(made.directory)
    plan = sec.prune(handle, "rid = 23", strict=True)
    assert plan.to_arrow(["rid"])["rid"].to_pylist() == [23]
    assert plan.report.stages[0].after.files == (1 if kept else 5)
    assert sorted(sec.prune(handle, "true").to_arrow(["rid"])["rid"].to_pylist()) == list(range(50))
    log = LogReader(pafs.LocalFileSystem(), str(made.directory), "t")
    assert (PARSED in log.parquet(checkpoint.name).changes(()).column_names) == (kept == ["stats_parsed"])


def _with_statistics(checkpoint: Path, kept: list[str]) -> None:
    """Writes a checkpoint anew, with its statistics as text, typed, both or none; its first rows come last."""
    table = pq.read_table(checkpoint).combine_chunks()
    add = table["add"].combine_chunks()
    children = {field.name: pc.struct_field(add, field.name) for field in add.type}
    texts = children.pop("stats")
    if "stats" in kept:
        children["stats"] = texts
    if "stats_parsed" in kept:
        children["stats_parsed"] = pa.array([text and json.loads(text) for text in texts.to_pylist()])
    written = pa.StructArray.from_arrays(list(children.values()), names=list(children), mask=pc.is_null(add))
    table = table.set_column(table.schema.get_field_index("add"), "add", written)
    pq.write_table(pa.concat_tables([table[3:5], table[:3], table[5:]]), checkpoint)
