"""What a snapshot says of its segments: whatever is done with many of them, each keeps what belongs to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from index_files import SNAPSHOT_NAME, Memory, keys_list
from strategies import BY_NAME
from units import measured

from secateur.index import zonemap
from secateur.index.codec import Place
from secateur.index.model import BuildOptions, IndexedColumn
from secateur.index.segment import COLUMN_KINDS
from secateur.index.segments import BLOCK_TABLE, Segments, SegmentSummary, in_key_order, joined, summarised
from secateur.index.snapshot import encode_snapshot, open_snapshot
from secateur.index.zonemap import ZoneMap
from secateur.pruning.predicate.bound import Field
from secateur.values import kind_of, same_keys

# Columns of one path may come in several types, some with the same keys; values are those that all types can have.
TYPES: dict[str, list[pa.DataType]] = {
    "i": [pa.int32(), pa.int64(), pa.float64()],
    "s": [pa.string(), pa.binary()],
    "w": [pa.decimal128(38, 2), pa.decimal128(30, 2), pa.decimal128(10, 2)],
    "x": [pa.float64(), pa.float32()],
}
VALUES = {"i": st.integers(-9, 9), "s": BY_NAME["s"].values, "w": st.integers(-9, 9), "x": st.integers(-9, 9)}


@dataclass(frozen=True)
class Record:
    """All that is said of one segment, as plain values; chunks and zone maps by their columns, in their order."""

    name: str
    counts: tuple[int, int, int]  # bytes of the file, blocks, rows
    files: tuple[tuple[Any, ...], ...]
    blocks: Place
    chunks: tuple[tuple[str, str, Place], ...]  # path, kind, place
    zones: tuple[tuple[str, Any], ...]  # path; lower, upper, null count, NaN count


def records(segments: Segments) -> list[Record]:
    """Segment by segment."""
    return [_record(segments, i) for i in range(len(segments))]


def _record(segments: Segments, i: int) -> Record:
    files = segments.files
    own = np.flatnonzero(files.segment == i)
    arrays = (files.size, files.modified, files.block_count, files.row_count, files.byte_count)
    rows = zip(files.path.take(pa.array(own)).to_pylist(), *(a[own].tolist() for a in arrays), strict=True)
    chunks = [
        (c.path[0], kind, place)
        for number, c in enumerate(segments.columns)
        for kind in COLUMN_KINDS
        if (place := _place(segments, (kind, number), i)) is not None
    ]
    counts = (int(segments.size[i]), int(segments.block_count[i]), int(segments.row_count[i]))
    blocks = _place(segments, BLOCK_TABLE, i)
    assert blocks is not None
    zones = [(c.path[0], zone_of(z, i)) for c, z in zip(segments.columns, segments.zone_maps, strict=True)]
    return Record(segments.name[i], counts, tuple(rows), blocks, tuple(chunks), tuple(zones))


def _place(segments: Segments, chunk: tuple[str, int], i: int) -> Place | None:
    found = segments.directory.get(chunk)
    if found is None or not found.size[i]:
        return None
    return Place(int(found.at[i]), int(found.size[i]), int(found.crc[i]))


def zone_of(zone_map: ZoneMap, i: int) -> Any:
    bounds = keys_list(zone_map.lower.take(slice(i, i + 1))), keys_list(zone_map.upper.take(slice(i, i + 1)))
    return (*bounds, int(zone_map.null_count[i]), int(zone_map.nan_count[i]))


def well_formed(segments: Segments) -> bool:
    """Whether all arrays are about the same segments, and files follow them."""
    n = len(segments)
    arrays = [segments.size, segments.block_count, segments.row_count]
    arrays += [each for d in segments.directory.values() for each in (d.at, d.size, d.crc)]
    ascending = bool((np.diff(segments.files.segment) >= 0).all())
    return ascending and all(len(a) == n for a in arrays) and all(len(z) == n for z in segments.zone_maps)


# ---- random segments -------------------------------------------------------------------------------------------------


@st.composite
def some_columns(draw: st.DrawFn) -> list[IndexedColumn]:
    """Columns in any order, each of one of its types."""
    names = draw(st.lists(st.sampled_from(sorted(TYPES)), unique=True))
    return [IndexedColumn((name,), draw(st.sampled_from(TYPES[name]))) for name in names]


numbers = st.integers(0, 2**40)


@st.composite
def segments_of(draw: st.DrawFn, columns: Sequence[IndexedColumn], prefix: str) -> tuple[Segments, list[Record]]:
    """Segments with these columns, and what is said of each."""
    summaries = [draw(summary_of(columns, f"{prefix}-{i}")) for i in range(draw(st.integers(0, 5)))]
    return summarised(columns, summaries), [_expected(columns, summary) for summary in summaries]


@st.composite
def summary_of(draw: st.DrawFn, columns: Sequence[IndexedColumn], name: str) -> SegmentSummary:
    files = [(f"{name}/ä {i}", draw(numbers), draw(numbers)) for i in range(draw(st.integers(0, 3)))]
    counts = np.array([[draw(numbers) for _ in range(3)] for _ in files], np.int64).reshape(-1, 3)
    kept = draw(st.sets(st.sampled_from([f"{kind}/{c}" for kind in COLUMN_KINDS for c in range(len(columns))] or [""])))
    places = {
        chunk: Place(draw(numbers), 1 + draw(numbers), draw(st.integers(0, 2**32 - 1)))
        for chunk in ["blocks", *sorted(kept)]
    }
    zones = [draw(zone_map_of(column)) for column in columns]
    return SegmentSummary(name, draw(numbers), draw(numbers), draw(numbers), files, counts, zones, places)


@st.composite
def zone_map_of(draw: st.DrawFn, column: IndexedColumn) -> ZoneMap:
    values = BY_NAME["bin"].values if column.type == pa.binary() else VALUES[column.path[0]]
    kind = replace(BY_NAME["s"], type=column.type)
    found, _ = measured(kind, [draw(st.lists(values | st.none(), max_size=3))])
    return found


def _expected(columns: Sequence[IndexedColumn], summary: SegmentSummary) -> Record:
    chunks = [
        (c.path[0], kind, summary.places[f"{kind}/{number}"])
        for number, c in enumerate(columns)
        for kind in COLUMN_KINDS
        if f"{kind}/{number}" in summary.places
    ]
    files = tuple((*file, *counts) for file, counts in zip(summary.files, summary.file_counts.tolist(), strict=True))
    counts = (summary.size, summary.block_count, summary.row_count)
    zones = tuple((c.path[0], zone_of(z, 0)) for c, z in zip(columns, summary.zone_maps, strict=True))
    return Record(summary.name, counts, files, summary.places["blocks"], tuple(chunks), zones)


def under(record: Record, before: Sequence[IndexedColumn], after: Sequence[IndexedColumn]) -> Record:
    """The record with other columns: a chunk and a zone map stay where keys stay the same."""
    own = {column.path: column.type for column in before}
    served = [c for c in after if c.path in own and same_keys(own[c.path], c.type)]
    chunks = tuple(chunk for c in served for chunk in record.chunks if chunk[0] == c.path[0])
    known = dict(record.zones)
    zones = tuple((c.path[0], known[c.path[0]] if c in served else nothing_of(c)) for c in after)
    return replace(record, chunks=chunks, zones=zones)


def nothing_of(column: IndexedColumn) -> Any:
    kind = kind_of(column.type)
    assert kind is not None
    return zone_of(zonemap.unknown(kind, 1), 0)


# ---- laws ------------------------------------------------------------------------------------------------------------

random_segments = some_columns().flatmap(lambda columns: segments_of(columns, "a"))


@examples(ci=150)
@given(random_segments)
def test_summaries_become_segments(case: tuple[Segments, list[Record]]) -> None:
    segments, expected = case
    assert well_formed(segments)
    assert records(segments) == expected


@examples(ci=150)
@given(random_segments, st.data())
def test_taken_segments_keep_what_is_theirs(case: tuple[Segments, list[Record]], data: st.DataObject) -> None:
    """In whatever order, and as often as they are asked for."""
    segments, expected = case
    chosen = data.draw(st.lists(st.sampled_from(range(len(segments))), max_size=8) if len(segments) else st.just([]))
    taken = segments.take(np.array(chosen, np.int64))
    assert well_formed(taken)
    assert records(taken) == [expected[i] for i in chosen]


@examples(ci=200)
@given(random_segments, some_columns())
def test_segments_under_other_columns(case: tuple[Segments, list[Record]], columns: Sequence[IndexedColumn]) -> None:
    """Renumbered, widened, of other types, new or gone."""
    segments, expected = case
    found = segments.under(columns)
    assert well_formed(found)
    assert found.columns == columns
    assert records(found) == [under(record, segments.columns, columns) for record in expected]


@examples(ci=150)
@given(some_columns().flatmap(lambda c: st.tuples(segments_of(c, "a"), segments_of(c, "b"))))
def test_joined_segments_keep_what_is_theirs(pair: tuple[tuple[Segments, list[Record]], ...]) -> None:
    (first, records_of_first), (second, records_of_second) = pair
    found = joined(first, second)
    assert well_formed(found)
    assert records(found) == records_of_first + records_of_second


@examples(ci=150)
@given(random_segments, st.sampled_from([*sorted(TYPES), "other"]))
def test_segments_in_key_order(case: tuple[Segments, list[Record]], name: str) -> None:
    """By the lower bounds of the first column of the sort key; as they were where it is not indexed, or they tie."""
    segments, expected = case
    found = in_key_order(segments, [(name,), ("s",)])
    assert well_formed(found)
    if any(c.path == (name,) for c in segments.columns):
        expected = sorted(expected, key=lambda record: dict(record.zones)[name][0][0])
    assert records(found) == expected
    assert records(in_key_order(segments, [])) == case[1]


@examples(ci=150)
@given(random_segments, some_columns(), st.data())
def test_segments_through_refreshes(
    case: tuple[Segments, list[Record]], columns: Sequence[IndexedColumn], data: st.DataObject
) -> None:
    """As a refresh does: those with live files, under the new columns, joined with new ones, in order, published."""
    segments, expected = case
    kept = data.draw(st.lists(st.booleans(), min_size=len(segments), max_size=len(segments)))
    added, new = data.draw(segments_of(columns, "b"))
    after = in_key_order(joined(segments.take(np.flatnonzero(kept)).under(columns), added), [("i",)])
    wanted = [under(r, segments.columns, columns) for r, k in zip(expected, kept, strict=True) if k] + new
    schema = pa.schema([(c.path[0], c.type) for c in columns])
    huge = replace(after, size=np.full(len(after), 2**62))  # so that all places lie within their files
    store = Memory({SNAPSHOT_NAME: encode_snapshot(1, 0.0, huge, BuildOptions(fan_out=2), schema)})
    snapshot = open_snapshot(store, 1)
    read = replace(snapshot.as_segments(), size=after.size)
    assert well_formed(read)
    assert records(read) == records(after)
    assert sorted(records(read), key=lambda r: r.name) == sorted(wanted, key=lambda r: r.name)
    assert [snapshot.number_of(Field(c.path, c.type)) for c in columns] == [*range(len(columns))]
