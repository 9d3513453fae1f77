"""Which delete files apply to which data files, against the rules of Iceberg's specification said one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from secateur.errors import InvalidParquet
from secateur.io.tables.field_ids import with_id
from secateur.io.tables.iceberg.delete_file_index import FILE_PATH, DeleteFileIndex
from secateur.io.tables.iceberg.delete_files import DeletedKeys, Deletions, decoded_vector
from secateur.io.tables.iceberg.manifest_arrays import (
    DATA,
    EQUALITY_DELETES,
    FILES,
    POSITION_DELETES,
    ByField,
    Entries,
    Manifest,
)
from secateur.io.tables.iceberg.partition_transforms import PartitionField
from tests.support.profiles import examples

SPECS = {
    0: [],
    1: [PartitionField(1000, 1, "identity")],
    2: [PartitionField(1000, 1, "identity"), PartitionField(1001, 2, "day")],
}
PATHS = [f"s3://b/{c}.parquet" for c in "abcdef"]


@dataclass(frozen=True)
class Entry:
    """One file of a manifest."""

    content: int
    path: str
    sequence: int
    spec: int
    partition: tuple[Any, ...]
    referenced: str | None = None  # by a deletion vector
    bounds: tuple[str, str] | None = None  # of the paths in a position delete file

    @property
    def is_vector(self) -> bool:
        return self.referenced is not None


@st.composite
def entries(draw: st.DrawFn, content: int, path: st.SearchStrategy[str]) -> Entry:
    spec = draw(st.sampled_from([*SPECS]))
    partition = tuple(draw(st.sampled_from([None, 1, 2])) for _ in SPECS[spec])
    referenced = bounds = None
    if content == POSITION_DELETES:
        match draw(st.sampled_from(["vector", "one", "several", "unknown"])):
            case "vector":
                referenced = draw(st.sampled_from(PATHS))
            case "one":
                bounds = (draw(st.sampled_from(PATHS)),) * 2
            case "several":
                bounds = (PATHS[0], PATHS[-1])
    return Entry(content, draw(path), draw(st.integers(0, 4)), spec, partition, referenced, bounds)


def manifest_of(entry: Entry) -> Manifest:
    """A manifest of one file."""
    row: dict[str, Any] = dict.fromkeys(FILES.names)
    row |= {"content": entry.content, "path": entry.path, "sequence": entry.sequence, "spec": entry.spec}
    row |= {"format": "PUFFIN" if entry.is_vector else "PARQUET", "referenced": entry.referenced}
    fields = SPECS[entry.spec]
    partition = {field.id: pa.array([value], pa.int32()) for field, value in zip(fields, entry.partition, strict=True)}
    nothing = ByField(np.zeros(0, np.int32), np.zeros(0, np.int32), pa.nulls(0, pa.int64()))
    sides = [
        ByField(np.zeros(1, np.int32), np.array([FILE_PATH], np.int32), pa.array([side.encode()], pa.binary()))
        for side in entry.bounds or ()
    ] or [ByField(nothing.row, nothing.id, pa.nulls(0, pa.binary()))] * 2
    return Manifest(pa.RecordBatch.from_pylist([row], FILES), partition, nothing, nothing, *sides)


def applies(delete: Entry, data: Entry) -> bool:
    """Scan planning, as the specification has it, but for vectors that stand for position deletes."""
    same_partition = (delete.spec, delete.partition) == (data.spec, data.partition)
    if delete.content == EQUALITY_DELETES:
        return data.sequence < delete.sequence and (same_partition or not SPECS[delete.spec])
    target = delete.referenced or (delete.bounds[0] if delete.bounds and delete.bounds[0] == delete.bounds[1] else None)
    return data.sequence <= delete.sequence and (target == data.path if target else same_partition)


@given(
    st.lists(st.sampled_from(PATHS), unique=True, max_size=6).flatmap(
        lambda paths: st.tuples(*(entries(DATA, st.just(path)) for path in paths))
    ),
    st.lists(
        st.one_of(*(entries(content, st.just("d")) for content in (POSITION_DELETES, EQUALITY_DELETES))), max_size=6
    ),
)
@examples(300)
def test_matches_are_those_of_the_specification(data: tuple[Entry, ...], deletes: list[Entry]) -> None:
    index = DeleteFileIndex(
        Entries([manifest_of(entry) for entry in deletes]),
        Entries([manifest_of(entry) for entry in data]),
        np.argsort([entry.path for entry in data]).astype(np.int64),
        SPECS,
    )
    expected = []
    for ordinal, entry in enumerate(sorted(data, key=lambda entry: entry.path)):
        applicable = [i for i, delete in enumerate(deletes) if applies(delete, entry)]
        vectors = any(deletes[i].is_vector for i in applicable)
        applicable = [
            i for i in applicable if deletes[i].is_vector or deletes[i].content == EQUALITY_DELETES or not vectors
        ]
        expected += [(ordinal, i) for i in applicable]
    matches = index.matches(np.arange(len(data)))
    assert list(zip(matches.data.tolist(), matches.delete.tolist(), strict=True)) == expected
    some = np.arange(0, len(data), 2)
    of_some = index.matches(some)
    expected_of_some = [pair for pair in expected if pair[0] % 2 == 0]
    assert list(zip(of_some.data.tolist(), of_some.delete.tolist(), strict=True)) == expected_of_some
    assert np.flatnonzero(index.touched).tolist() == sorted({ordinal for ordinal, _ in expected})


# ---- deletion vectors ------------------------------------------------------------------------------------------------


def vector(positions: list[int]) -> bytes:
    import zlib

    body = bytes.fromhex("d1d33964") + BitMap64(positions).serialize()
    return len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


@given(st.lists(st.integers(0, 2**40), max_size=50))
@examples(100)
def test_vectors_are_read(positions: list[int]) -> None:
    assert decoded_vector(vector(positions), "v").tolist() == sorted(set(positions))


@given(st.lists(st.integers(0, 2**33), max_size=20), st.integers(0, 2**30), st.integers(1, 255))
@examples(300)
def test_a_vector_with_a_wrong_byte_is_refused(positions: list[int], at: int, change: int) -> None:
    """Never fewer deletes, or other ones: rows would come back."""
    data = bytearray(vector(positions))
    data[at % len(data)] ^= change
    with pytest.raises(InvalidParquet, match="is corrupt"):
        decoded_vector(bytes(data), "v")


@pytest.mark.parametrize("size", [0, 3, 4, 11, 12, 20])
def test_a_vector_that_is_cut_is_refused(size: int) -> None:
    with pytest.raises(InvalidParquet, match="is corrupt"):
        decoded_vector(vector([1, 2, 3])[:size], "v")


# ---- rows ------------------------------------------------------------------------------------------------------------

ID, F = with_id(pa.field("id", pa.int64()), 1), with_id(pa.field("f", pa.float64()), 2)
FLOATS = st.sampled_from([None, float("nan"), 0.0, -0.0, 1.5])
ROWS = st.lists(st.tuples(st.sampled_from([None, 0, 1, 2]), FLOATS), max_size=8)


def columns(rows: list[tuple[Any, Any]]) -> list[pa.Array]:
    return [pa.array([a for a, _ in rows], pa.int64()), pa.array([b for _, b in rows], pa.float64())]


@given(ROWS, ROWS, st.sets(st.integers(0, 12)), st.integers(1, 8), st.integers(0, 4))
@examples(300)
def test_rows_survive_that_nothing_deletes(
    rows: list[tuple[Any, Any]], keys: list[tuple[Any, Any]], positions: set[int], cut: int, first_row: int
) -> None:
    """By positions in the file and by keys: NULL and NaN are equal to themselves, and 0.0 is not -0.0."""
    deleted = {repr(key) for key in keys}
    expected = [row for i, row in enumerate(rows) if i + first_row not in positions and repr(row) not in deleted]
    deletions = Deletions(np.array(sorted(positions), np.int64), (DeletedKeys((ID, F), tuple(columns(keys))),))
    batch = pa.RecordBatch.from_arrays(columns(rows), schema=pa.schema([ID, F]))
    fields = deletions.fields([ID])
    positions_in_file = np.arange(first_row, first_row + len(rows))
    parts = [(batch.slice(i, cut), positions_in_file[i : i + cut]) for i in range(0, len(rows), cut)]
    survivors = [
        (row["id"], row["f"])
        for part, at in parts
        for row in part.filter(pa.array(deletions.alive(part, at, fields))).to_pylist()
    ]
    assert [field.name for field in fields] == ["id", "f"]
    assert list(map(repr, survivors)) == list(map(repr, expected))
