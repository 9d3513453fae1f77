"""The live files of a Delta table after some changes, and after more, as a replay of changes one by one has them."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.index.segments.path_search import is_ascending
from secateur.io.tables.delta import live_files
from secateur.io.tables.delta.actions import PARSED, changes_schema
from secateur.io.tables.delta.live_files import merged, reconciled, rows_of

SCHEMA = changes_schema(["part"])
TYPED = pa.struct([("numRecords", pa.int64())])
PATHS = ["", "a", "a\x01", "ab", "b", "ba", "\x7f", "é", "\U0010ffff"]
VECTORS = [None, {"storageType": "u", "pathOrInlineDv": "x", "offset": 1}, {"storageType": "i", "pathOrInlineDv": "x"}]

MOST_PIECES = 8

Change = tuple[bool, str, int, int]  # added or removed, the path, the vector by its place, and a size
changes = st.lists(
    st.tuples(st.booleans(), st.sampled_from(PATHS), st.sampled_from([0, 0, 1, 2]), st.integers(0, 9)), max_size=12
)


def table_of(entries: list[Change], *, is_typed: bool = False) -> pa.Table:
    rows = [
        {
            "is_add": is_add,
            "path": path,
            "size": size,
            "modified": size,
            "stats": None if size % 2 else str(size),
            "partition": {"part": str(size)},
            "vector": VECTORS[vector],
        }
        for is_add, path, vector, size in entries
    ]
    table = pa.Table.from_pylist(rows, SCHEMA)
    return table.append_column(PARSED, pa.nulls(len(rows), TYPED)) if is_typed else table


def replayed(entries: list[Change]) -> list[tuple[str, int, int]]:
    """Path, vector and size of every live file, ordered by path."""
    last = {(path, vector): (is_add, size) for is_add, path, vector, size in entries}
    live = [(path, vector, size) for (path, vector), (is_add, size) in last.items() if is_add]
    return sorted(live, key=lambda file: (file[0].encode(), file[1]))


def listed(table: pa.Table) -> list[tuple[str, int, int]]:
    """The same of a table, whose other columns must be those of the same files, and whose paths must be in order."""
    rows = table.to_pylist()
    assert [row["path"].encode() for row in rows] == sorted(row["path"].encode() for row in rows)
    for row in rows:
        size = row["size"]
        assert (row["is_add"], row["modified"], row["partition"]) == (True, size, {"part": str(size)})
        assert row["stats"] == (None if size % 2 else str(size))
    places = [
        {**dict.fromkeys(row["vector"]), **VECTORS[1]} == row["vector"] if row["vector"] else None for row in rows
    ]
    vectors = [0 if is_first is None else 1 if is_first else 2 for is_first in places]
    live = [(row["path"], vector, row["size"]) for row, vector in zip(rows, vectors, strict=True)]
    return sorted(live, key=lambda file: (file[0].encode(), file[1]))


@given(parts=st.lists(changes, min_size=1, max_size=4))
def test_changes_are_reconciled(parts: list[list[Change]]) -> None:
    live = reconciled([table_of(part) for part in parts], SCHEMA)
    assert listed(live) == replayed([change for part in parts for change in part])


@pytest.mark.parametrize("few", [64, 0])
@given(before=changes, commits=st.lists(changes, min_size=1, max_size=6), is_typed=st.booleans())
def test_merged_changes_give_what_all_changes_give(
    few: int, before: list[Change], commits: list[list[Change]], is_typed: bool
) -> None:
    """Commit by commit, in pieces or by a copy, also where a checkpoint has typed statistics, which no commit has."""
    done = list(before)
    table = reconciled([table_of(before, is_typed=is_typed)], SCHEMA)
    for commit in commits:
        with patch.multiple(live_files, FEW_CHANGES=few, MOST_PIECES=MOST_PIECES):
            table = merged(table, table["path"].combine_chunks(), table_of(commit))
        done += commit
        assert listed(table) == replayed(done)
        assert (PARSED in table.column_names) == is_typed
        assert table["path"].num_chunks <= MOST_PIECES


@given(
    lengths=st.lists(st.integers(0, 4), max_size=5),
    data=st.data(),
)
def test_rows_of_pieces(lengths: list[int], data: st.DataObject) -> None:
    """Ascending or not, all or none."""
    pieces = [pa.array(range(10 * i, 10 * i + n), pa.int64()) for i, n in enumerate(lengths)]
    table = pa.table({"n": pa.chunked_array(pieces, pa.int64())})
    numbers = st.integers(0, max(0, len(table) - 1))
    rows = data.draw(st.lists(numbers, max_size=len(table)) | st.sets(numbers, max_size=len(table)).map(sorted))
    rows = rows if len(table) else []
    assert rows_of(table, np.array(rows, np.int64))["n"].to_pylist() == [table["n"][i].as_py() for i in rows]
    everything = rows_of(table, np.arange(len(table)))
    assert everything.equals(table)


def test_other_files_stay_where_they_are() -> None:
    """One commit of a few files: of the others nothing is copied."""
    table = reconciled([table_of([(True, f"{i:05}", 0, i) for i in range(1000)])], SCHEMA)
    grown = merged(table, table["path"].combine_chunks(), table_of([(True, "00500x", 0, 1), (False, "00900", 0, 0)]))
    assert is_ascending(grown["path"].combine_chunks())
    assert len(grown) == 1000
    before, after = ({chunk.buffers()[2].address for chunk in part["stats"].chunks} for part in (table, grown))
    assert before < after
    assert len(after) == 2
