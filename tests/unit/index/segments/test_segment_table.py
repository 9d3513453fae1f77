"""What a snapshot says of its segments: whatever is done with many of them, each keeps what belongs to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from secateur.index.container.index_file import Place
from secateur.index.filters.bloom_matrix import BloomMatrices
from secateur.index.filters.size_class import own_class
from secateur.index.identity import FileIdentity
from secateur.index.model import BLOOM, NGRAM, POSTINGS, TOKEN, BuildOptions, Filter, IndexedColumn
from secateur.index.segments.file_table import LEAST_BLOCK
from secateur.index.segments.segment_file import COLUMN_KINDS, POSTING, SIZE_CLASS
from secateur.index.segments.segment_table import (
    BLOCK_TABLE,
    Segments,
    SegmentSummary,
    in_key_order,
    joined,
    summarised,
)
from secateur.index.segments.snapshot_files import open_snapshot
from secateur.index.segments.snapshot_writer import encode_snapshot
from secateur.index.zones import zonemap
from secateur.index.zones.zonemap import ZoneMap
from secateur.pruning.predicate.bound import Field
from secateur.values.kinds import kind_of, same_keys
from tests.support.checks.units import measured
from tests.support.drawn.strategies import BY_NAME
from tests.support.profiles import examples
from tests.support.stores.index_files import SNAPSHOT_NAME, Memory, keys_list

# Columns of one path may come in several types, some with the same keys; values are those that all types can have.
TYPES: dict[str, list[pa.DataType]] = {
    "i": [pa.int32(), pa.int64(), pa.float64()],
    "s": [pa.string(), pa.binary()],
    "w": [pa.decimal128(38, 2), pa.decimal128(30, 2), pa.decimal128(10, 2)],
    "x": [pa.float64(), pa.float32()],
}
SIZES = (8, 16, 32, 48)  # of sections of 8, 16, 32 and 64 bits
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
    size_classes: tuple[tuple[str, Place], ...]  # by filter
    runs: tuple[tuple[str, tuple[Any, ...]], ...]  # of filters: the filter, the matrix with its parts, the columns


def records(segments: Segments) -> list[Record]:
    """Segment by segment."""
    return [_record(segments, i) for i in range(len(segments))]


def _record(segments: Segments, i: int) -> Record:
    files = segments.files
    members = np.flatnonzero(files.segment == i)
    arrays = (
        files.size,
        files.stamp,
        files.witness,
        files.end,
        files.block_count,
        files.row_count,
        files.byte_count,
    )
    rows = zip(files.path.take(pa.array(members)).to_pylist(), *(a[members].tolist() for a in arrays), strict=True)
    chunks = [
        (c.path[0], kind, place)
        for number, c in enumerate(segments.columns)
        for kind in COLUMN_KINDS
        if (place := _place(segments, (kind, number), i)) is not None
    ]
    size_classes = [
        (named(filter_), place)
        for f, filter_ in enumerate(segments.filters)
        if (place := _place(segments, (chunk_of(filter_), f), i)) is not None
    ]
    runs = [
        (named(filter_), run)
        for f, filter_ in enumerate(segments.filters)
        for run in (runs_of(segments.bloom_matrices[f], i) if f in segments.bloom_matrices else ())
    ]
    counts = (int(segments.size[i]), int(segments.block_count[i]), int(segments.row_count[i]))
    blocks = _place(segments, BLOCK_TABLE, i)
    assert blocks is not None
    zones = [(c.path[0], zone_of(z, i)) for c, z in zip(segments.columns, segments.zone_maps, strict=True)]
    return Record(segments.name[i], counts, tuple(rows), blocks, *map(tuple, (chunks, zones, size_classes, runs)))


def _place(segments: Segments, chunk: tuple[str, int], i: int) -> Place | None:
    directory = segments.directory.get(chunk)
    if directory is None or not directory.size[i]:
        return None
    return Place(int(directory.at[i]), int(directory.size[i]), int(directory.crc[i]))


def named(filter_: Filter) -> str:
    """A filter, whatever its number and the width of its column."""
    return f"{filter_.kind} of {filter_.path[0]}, {filter_.gram}, {filter_.folded}"


def chunk_of(filter_: Filter) -> str:
    return POSTING if filter_.kind == POSTINGS else SIZE_CLASS


def runs_of(bloom_matrices: BloomMatrices, segment: int) -> list[tuple[Any, ...]]:
    """All that bloom matrices say of a segment, whatever the numbers of matrices and files."""
    runs = []
    for run in np.flatnonzero(bloom_matrices.segment == segment).tolist():
        m = int(bloom_matrices.run_matrix[run])
        parts = [
            (
                bloom_matrices.file_name[bloom_matrices.file[p]],
                int(bloom_matrices.file_size[bloom_matrices.file[p]]),
                int(bloom_matrices.first_row[p]),
                bloom_matrices.part(p),
            )
            for p in np.flatnonzero(bloom_matrices.part_matrix == m).tolist()
        ]
        columns = (
            int(bloom_matrices.run_size_class[run]),
            int(bloom_matrices.begin[run]),
            int(bloom_matrices.count[run]),
        )
        runs.append((int(bloom_matrices.size_class[m]), *columns, *parts))
    return runs


def zone_of(zone_map: ZoneMap, i: int) -> Any:
    bounds = keys_list(zone_map.lower.take(slice(i, i + 1))), keys_list(zone_map.upper.take(slice(i, i + 1)))
    return (*bounds, int(zone_map.null_count[i]), int(zone_map.nan_count[i]))


def well_formed(segments: Segments) -> bool:
    """Whether all arrays are about the same segments, and files follow them."""
    n = len(segments)
    arrays = [segments.size, segments.block_count, segments.row_count]
    arrays += [array for d in segments.directory.values() for array in (d.at, d.size, d.crc)]
    ascending = bool((np.diff(segments.files.segment) >= 0).all())
    about = all(len(a) == n for a in arrays) and all(len(z) == n for z in segments.zone_maps)
    return (
        ascending
        and about
        and all(f < len(segments.filters) and well_laid(s) for f, s in segments.bloom_matrices.items())
    )


def well_laid(bloom_matrices: BloomMatrices) -> bool:
    """Whether no matrix is without a segment, and no file without a part; runs and parts follow their matrices."""
    used = set(bloom_matrices.run_matrix[bloom_matrices.segment >= 0].tolist()) == {
        *range(len(bloom_matrices.size_class))
    }
    held = set(bloom_matrices.file.tolist()) == {*range(len(bloom_matrices.file_name))} and len(
        bloom_matrices.file_size
    ) == len(bloom_matrices.file_name)
    return (
        used
        and held
        and all((np.diff(array) >= 0).all() for array in (bloom_matrices.part_matrix, bloom_matrices.run_matrix))
    )


# ---- random segments -------------------------------------------------------------------------------------------------


@st.composite
def some_columns(draw: st.DrawFn) -> list[IndexedColumn]:
    """Columns in any order, each of one of its types."""
    names = draw(st.lists(st.sampled_from(sorted(TYPES)), unique=True))
    return [IndexedColumn((name,), draw(st.sampled_from(TYPES[name]))) for name in names]


@st.composite
def some_filters(draw: st.DrawFn) -> list[Filter]:
    """Filters in any order, each of a column of one of its types."""
    pairs = st.tuples(st.sampled_from([BLOOM, POSTINGS, NGRAM, TOKEN]), st.sampled_from(sorted(TYPES)))
    chosen = draw(st.lists(pairs, unique=True, max_size=4))
    grams, folds = st.sampled_from([3, 5]), st.booleans()
    return [
        Filter(kind, (name,), draw(st.sampled_from(TYPES[name])), draw(grams) if kind == NGRAM else 0, draw(folds))
        for kind, name in chosen
    ]


some_shape = st.tuples(some_columns(), some_filters())
Shape = tuple[Sequence[IndexedColumn], Sequence[Filter]]
numbers = st.integers(0, 2**40)


@st.composite
def segments_of(draw: st.DrawFn, shape: Shape, prefix: str) -> tuple[Segments, list[Record]]:
    """Segments with these columns and filters, and what is said of each."""
    summaries = [
        draw(summary_of(shape, f"segments/{prefix * 12}-{i:06d}.segment")) for i in range(draw(st.integers(0, 5)))
    ]
    bloom_matrices = {f: draw(bloom_matrices_over(summaries, f"{prefix * 11}{f:x}")) for f in range(len(shape[1]))}
    known = {f: matrices for f, matrices in bloom_matrices.items() if matrices is not None}
    return summarised(*shape, summaries, known), [_expected(shape, known, i, s) for i, s in enumerate(summaries)]


@st.composite
def summary_of(draw: st.DrawFn, shape: Shape, name: str) -> SegmentSummary:
    columns, filters = shape
    files = [FileIdentity(f"{name}/ä {i}", *(draw(numbers) for _ in range(4))) for i in range(draw(st.integers(0, 3)))]
    rows = [(draw(st.integers(0, 2**24)), draw(numbers), draw(numbers)) for _ in files]  # blocks, rows, bytes
    counts = np.array(rows, np.int64).reshape(-1, 3)
    files = [
        replace(file, size=file.size + LEAST_BLOCK * n) for file, n in zip(files, counts[:, 0].tolist(), strict=True)
    ]
    chunks = [f"{kind}/{c}" for kind in COLUMN_KINDS for c in range(len(columns))]
    chunks += [f"{chunk_of(filter_)}/{f}" for f, filter_ in enumerate(filters)]
    places = {
        chunk: Place(draw(numbers), 1 + draw(numbers), draw(st.integers(0, 2**32 - 1)))
        for chunk in ["blocks", *(chunk for chunk in chunks if draw(st.booleans()))]
    }
    zones = [draw(zone_map_of(column)) for column in columns]
    blocks = int(counts[:, 0].sum())
    return SegmentSummary(name, draw(numbers), draw(numbers), blocks, files, counts, zones, places, {})


@st.composite
def bloom_matrices_over(draw: st.DrawFn, summaries: Sequence[SegmentSummary], prefix: str) -> BloomMatrices | None:
    """A few matrices over some of the segments, each in one part or two; None where no segment has a filter."""
    room = [summary.block_count for summary in summaries]
    matrices, parts, runs = [], [], []
    for m in range(draw(st.integers(0, 3))):
        octaves, end = draw(st.integers(0, 3)), 0
        for segment in range(len(summaries)):
            if room[segment] and draw(st.booleans()):
                count = draw(st.integers(1, min(20, room[segment])))
                room[segment] -= count
                runs.append((len(matrices), segment, own_class(8, SIZES[draw(st.integers(0, octaves))]), end, count))
                end += count
        if end:
            rows = (64 << octaves) // draw(st.sampled_from([1, 2]))
            for first in range(0, 64 << octaves, rows):
                salt = draw(st.integers(-(2**63), 2**63 - 1))
                parts.append((len(matrices), first, rows, draw(st.sampled_from([m, 0])), draw(numbers), salt))
            matrices.append((own_class(8, SIZES[octaves]), end))
    if not matrices:
        return None
    used = sorted({file for _, _, _, file, _, _ in parts})
    parts = [(*part[:3], used.index(part[3]), *part[4:]) for part in parts]
    columns = [np.array(table, np.int64).T.copy() for table in (matrices, parts, runs)]
    sizes = np.full(len(used), 2**60, np.int64)
    return BloomMatrices(
        [f"filters/{prefix}-{file:06d}.filter" for file in used],
        sizes,
        *(array for table in columns for array in table),
    )


@st.composite
def zone_map_of(draw: st.DrawFn, column: IndexedColumn) -> ZoneMap:
    values = BY_NAME["bin"].values if column.type == pa.binary() else VALUES[column.path[0]]
    kind = replace(BY_NAME["s"], type=column.type)
    zone_map, _ = measured(kind, [draw(st.lists(values | st.none(), max_size=3))])
    return zone_map


def _expected(shape: Shape, bloom_matrices: Mapping[int, BloomMatrices], i: int, summary: SegmentSummary) -> Record:
    columns, filters = shape
    chunks = [
        (c.path[0], kind, summary.places[f"{kind}/{number}"])
        for number, c in enumerate(columns)
        for kind in COLUMN_KINDS
        if f"{kind}/{number}" in summary.places
    ]
    names = [f"{chunk_of(filter_)}/{f}" for f, filter_ in enumerate(filters)]
    size_classes = [(named(e), summary.places[n]) for e, n in zip(filters, names, strict=True) if n in summary.places]
    runs = [
        (named(filter_), run)
        for f, filter_ in enumerate(filters)
        for run in (runs_of(bloom_matrices[f], i) if f in bloom_matrices else ())
    ]
    files = tuple(
        (*astuple(file), *counts) for file, counts in zip(summary.files, summary.file_counts.tolist(), strict=True)
    )
    counts = (summary.size, summary.block_count, summary.row_count)
    zones = [(c.path[0], zone_of(z, 0)) for c, z in zip(columns, summary.zone_maps, strict=True)]
    return Record(
        summary.name, counts, files, summary.places["blocks"], *map(tuple, (chunks, zones, size_classes, runs))
    )


def under(record: Record, before: Shape, after: Shape) -> Record:
    """The record with other columns and filters: what belongs to one stays where keys stay the same."""
    column_types = {column.path: column.type for column in before[0]}
    served = [c for c in after[0] if c.path in column_types and same_keys(column_types[c.path], c.type)]
    chunks = tuple(chunk for c in served for chunk in record.chunks if chunk[0] == c.path[0])
    known = dict(record.zones)
    zones = tuple((c.path[0], known[c.path[0]] if c in served else nothing_of(c)) for c in after[0])
    types = {named(filter_): filter_.type for filter_ in before[1]}
    kept = [
        named(filter_)
        for filter_ in after[1]
        if named(filter_) in types and same_keys(types[named(filter_)], filter_.type)
    ]
    size_classes, runs = (
        tuple(entry for f in kept for entry in of_all if entry[0] == f) for of_all in (record.size_classes, record.runs)
    )
    return replace(record, chunks=chunks, zones=zones, size_classes=size_classes, runs=runs)


def nothing_of(column: IndexedColumn) -> Any:
    kind = kind_of(column.type)
    assert kind is not None
    return zone_of(zonemap.unknown(kind, 1), 0)


# ---- laws ------------------------------------------------------------------------------------------------------------

random_segments = some_shape.flatmap(lambda shape: segments_of(shape, "a"))


@examples(150)
@given(random_segments)
def test_summaries_become_segments(case: tuple[Segments, list[Record]]) -> None:
    segments, expected = case
    assert well_formed(segments)
    assert records(segments) == expected


@examples(150)
@given(random_segments, st.data())
def test_taken_segments_keep_what_is_theirs(case: tuple[Segments, list[Record]], data: st.DataObject) -> None:
    """In whatever order; none twice, for a run of columns belongs to one segment."""
    segments, expected = case
    chosen = data.draw(st.permutations(range(len(segments))))[: data.draw(st.integers(0, len(segments)))]
    taken = segments.take(np.array(chosen, np.int64))
    assert well_formed(taken)
    assert records(taken) == [expected[i] for i in chosen]


@examples(200)
@given(random_segments, some_shape)
def test_segments_under_other_columns(case: tuple[Segments, list[Record]], shape: Shape) -> None:
    """And other filters: renumbered, widened, of other types, new or gone."""
    segments, expected = case
    adapted = segments.under(*shape)
    assert well_formed(adapted)
    assert (adapted.columns, adapted.filters) == shape
    assert records(adapted) == [under(record, (segments.columns, segments.filters), shape) for record in expected]


@examples(150)
@given(some_shape.flatmap(lambda shape: st.tuples(segments_of(shape, "a"), segments_of(shape, "b"))))
def test_joined_segments_keep_what_is_theirs(pair: tuple[tuple[Segments, list[Record]], ...]) -> None:
    (first, records_of_first), (second, records_of_second) = pair
    both = joined(first, second)
    assert well_formed(both)
    assert records(both) == records_of_first + records_of_second


@examples(150)
@given(random_segments, st.sampled_from([*sorted(TYPES), "other"]))
def test_segments_in_key_order(case: tuple[Segments, list[Record]], name: str) -> None:
    """By the lower bounds of the first column of the sort key; as they were where it is not indexed, or they tie."""
    segments, expected = case
    ordered = in_key_order(segments, [(name,), ("s",)])
    assert well_formed(ordered)
    if any(c.path == (name,) for c in segments.columns):
        expected = sorted(expected, key=lambda record: dict(record.zones)[name][0][0])
    assert records(ordered) == expected
    assert records(in_key_order(segments, [])) == case[1]


@examples(150)
@given(random_segments, some_shape, st.data())
def test_segments_through_refreshes(case: tuple[Segments, list[Record]], shape: Shape, data: st.DataObject) -> None:
    """As a refresh does: those with live files, under the new columns, joined with new ones, in order, published."""
    segments, expected = case
    columns, filters = shape
    kept = data.draw(st.lists(st.booleans(), min_size=len(segments), max_size=len(segments)))
    added, new = data.draw(segments_of(shape, "b"))
    after = in_key_order(joined(segments.take(np.flatnonzero(kept)).under(*shape), added), [("i",)])
    before = (segments.columns, segments.filters)
    wanted = [under(r, before, shape) for r, k in zip(expected, kept, strict=True) if k] + new
    schema = pa.schema([(c.path[0], c.type) for c in columns])
    huge = replace(after, size=np.full(len(after), 2**62))  # so that all places lie within their files
    store = Memory({SNAPSHOT_NAME: encode_snapshot(1, 0.0, huge, BuildOptions(fan_out=2), schema)})
    snapshot = open_snapshot(store, 1)
    read = replace(snapshot.as_segments(), size=after.size)
    assert well_formed(read)
    assert records(read) == records(after)
    assert sorted(records(read), key=lambda r: r.name) == sorted(wanted, key=lambda r: r.name)
    assert [snapshot.number_of(Field(c.path, c.type)) for c in columns] == [*range(len(columns))]
    assert snapshot.filters == filters
