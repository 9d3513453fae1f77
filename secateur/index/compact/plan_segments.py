"""Plan which segments of an index to rebuild, and from which files, after appends and removals.

The files are taken in key order, as a build takes them. A segment stays if its files are adjacent in that order and it
is full enough; the files between such segments are cut into new ones. So an index that is in order stays as it is, and
the cost of appends is proportional to what was appended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from secateur.index.build.survey import FileSurvey, as_bytes, in_key_order, target_blocks
from secateur.index.compact.merge_filters import live_blocks_by_build
from secateur.index.file_names import build_of
from secateur.index.filters.bloom_matrix import MATRIX_BLOCKS
from secateur.index.model import OF_ROWS, BuildOptions, Filter, Store
from secateur.index.segments.segment_table import Segments
from secateur.index.segments.snapshot import Snapshot
from secateur.index.segments.stored_segment import stored_segment
from secateur.index.zones import zonemap
from secateur.index.zones.sort_key import parse_sort_key
from secateur.index.zones.zonemap import ZoneMap
from secateur.ragged import offsets_of

LEAST_FILLED = 1 / 2  # share of the target blocks that a segment needs to stay
LEAST_LIVE = 3 / 4  # share of live blocks that a segment needs to stay
LEAST_MATRIX = 1 / 4  # share of the table's blocks, or of a full matrix, below which a build's matrices count as small
_NO_SCHEMA = pa.schema([])


@dataclass(frozen=True)
class Regrouping:
    """The segments that stay, ascending, and for every new segment its entries in the table of files, in order."""

    stay: np.ndarray
    merged: Sequence[np.ndarray]


def regroup(store: Store, snapshot: Snapshot, is_live: np.ndarray, fixed: np.ndarray) -> Regrouping:
    """Plan how to bring an index in order; `is_live` marks live entries, `fixed` segments that stay in any case.

    Raises IndexFault if bounds of the sort key cannot be read.
    """
    segments = snapshot.as_segments()
    free = np.flatnonzero(is_live & ~fixed[segments.files.segment])
    blocks = int(segments.files.block_count[is_live].sum())
    target = merged_target(snapshot.options, snapshot.filters, blocks, int(segments.files.row_count[is_live].sum()))
    orders = _orders(store, snapshot, free)
    worth = _is_filled(segments, is_live, target) & ~fixed
    cut = _cut(segments, orders, worth, target)
    in_small = np.zeros(len(segments), bool)
    while True:  # segments that leave a build make its matrices smaller; a second run must find nothing to do
        cut = Regrouping(np.union1d(np.flatnonzero(fixed), cut.stay), cut.merged)
        smaller = _in_small_matrices(segments, cut, blocks) & ~in_small
        if not smaller.any():
            return cut
        in_small |= smaller
        cut = _cut(segments, orders, worth & ~in_small, target)


def merged_target(options: BuildOptions, filters: Sequence[Filter], blocks: int, rows: int) -> int:
    """Return how many blocks a merged segment should have in a table with these blocks and rows.

    By default a power of two, so that a growing table is seldom cut differently.
    """
    has_postings = any(filter_.kind in OF_ROWS for filter_ in filters)
    target = target_blocks(blocks, rows, options.segment_blocks, has_postings=has_postings)
    return 1 << (target.bit_length() - 1) if options.segment_blocks is None else target


def cut_anew(store: Store, snapshot: Snapshot, is_live: np.ndarray, target: int) -> list[np.ndarray]:
    """Cut all live entries of the table of files, in key order, into segments of about `target` blocks.

    Raises IndexFault if bounds of the sort key cannot be read.
    """
    orders = _orders(store, snapshot, np.flatnonzero(is_live))
    return [group for order in orders for group in _groups(snapshot.files.block_count, order, target)]


def _orders(store: Store, snapshot: Snapshot, entries: np.ndarray) -> list[np.ndarray]:
    """Return entries in key order: those of files that span few others, and separately those of wide files."""
    surveys = _surveys(store, snapshot, entries)
    entry_of = {survey.file: int(entry) for survey, entry in zip(surveys, entries, strict=True)}
    return [np.array([entry_of[survey.file] for survey in part], np.int64) for part in in_key_order(surveys)]


def _is_filled(segments: Segments, is_live: np.ndarray, target: int) -> np.ndarray:
    """Mark the segments with enough live blocks."""
    weights = np.where(is_live, segments.files.block_count, 0)
    live = np.bincount(segments.files.segment, weights, minlength=len(segments))
    return (live >= LEAST_FILLED * target) & (live >= LEAST_LIVE * segments.block_count)


def _in_small_matrices(segments: Segments, cut: Regrouping, blocks: int) -> np.ndarray:
    """Mark the segments with filters in small matrices, if that leaves matrices to merge.

    A look-up reads its rows from every matrix, so there should be few: those of recent builds are merged until they are
    a good part of the whole. The segments that are made have one more build.
    """
    in_small = np.zeros(len(segments), bool)
    stays = np.zeros(len(segments), bool)
    stays[cut.stay] = True
    for bloom_matrices in segments.bloom_matrices.values():
        least = LEAST_MATRIX * min(blocks, MATRIX_BLOCKS)
        small = {name for name, n in live_blocks_by_build(bloom_matrices, stays).items() if 0 < n < least}
        if cut.merged or len(small) > 1:
            in_small[bloom_matrices.segments_in(build_of(name) in small for name in bloom_matrices.file_name)] = True
    return in_small


def _cut(segments: Segments, orders: Sequence[np.ndarray], worth: np.ndarray, target: int) -> Regrouping:
    """Regroup the files of several orders, each on its own."""
    stay: list[int] = []
    merged: list[np.ndarray] = []
    for order in orders:
        whole = _together(segments, order) & worth
        for is_whole, entries in _stretches(segments.files.segment[order], whole, order):
            if is_whole:
                stay.append(int(segments.files.segment[entries[0]]))
                continue
            for group in _groups(segments.files.block_count, entries, target):
                same = _is_segment(segments, group)
                stay.append(int(segments.files.segment[group[0]])) if same else merged.append(group)
    return Regrouping(np.array(sorted(stay), np.int64), merged)


def _together(segments: Segments, order: np.ndarray) -> np.ndarray:
    """Mark the segments whose free files are all adjacent in an order: bool of shape (n_segments,)."""
    segment = segments.files.segment[order]
    n = len(segments)
    first, last = np.full(n, len(order)), np.full(n, -1)
    np.minimum.at(first, segment, np.arange(len(order)))
    np.maximum.at(last, segment, np.arange(len(order)))
    return (last >= 0) & (last - first + 1 == np.bincount(segment, minlength=n))


def _stretches(segment: np.ndarray, whole: np.ndarray, order: np.ndarray) -> Iterator[tuple[bool, np.ndarray]]:
    """Yield the files of every segment that stays, and the files between two such segments."""
    label = np.where(whole[segment], segment, -1)
    cuts = np.flatnonzero(np.diff(label)) + 1
    for entries, labels in zip(np.split(order, cuts), np.split(label, cuts), strict=True):
        if len(entries):
            yield bool(labels[0] >= 0), entries


def _groups(block_count: np.ndarray, entries: np.ndarray, target: int) -> Iterator[np.ndarray]:
    """Split consecutive files into groups of about `target` blocks, as even as files allow."""
    total = int(block_count[entries].sum())
    number = max(1, round(total / target))
    middle = offsets_of(block_count[entries])[:-1] + block_count[entries] / 2
    group = np.minimum((middle * number / max(total, 1)).astype(np.int64), number - 1)
    yield from (part for part in np.split(entries, np.flatnonzero(np.diff(group)) + 1) if len(part))


def _is_segment(segments: Segments, entries: np.ndarray) -> bool:
    """Whether entries are exactly those of one segment."""
    numbers = segments.files.segment[entries]
    return bool((numbers == numbers[0]).all()) and len(entries) == int((segments.files.segment == numbers[0]).sum())


# ---- keys of files ---------------------------------------------------------------------------------------------------


def _surveys(store: Store, snapshot: Snapshot, entries: np.ndarray) -> list[FileSurvey]:
    """Return entries as a survey would; without a sort key they stay in the order of their segments."""
    chosen = snapshot.files.take(entries)
    keys = [ends for c in _key_columns(snapshot) if (ends := _ends(store, snapshot, c)) is not None]
    if keys:
        begins = [tuple(begin[e] for begin, _ in keys) for e in entries.tolist()]
        last = [keys[0][1][e] for e in entries.tolist()]
    else:
        last = [int(s).to_bytes(8, "big") for s in chosen.segment]
        begins = [(last_key,) for last_key in last]
    counts = zip(chosen.block_count.tolist(), chosen.row_count.tolist(), chosen.byte_count.tolist(), strict=True)
    return [
        FileSurvey(file, *count, _NO_SCHEMA, begin, end)
        for file, count, begin, end in zip(chosen.identities(), counts, begins, last, strict=True)
    ]


def _key_columns(snapshot: Snapshot) -> list[int]:
    """Return the numbers of the sort key's columns in the index."""
    paths = [column.path for column in snapshot.columns]
    return [
        paths.index(sort_column.path)
        for sort_column in parse_sort_key(snapshot.options.sort_key)
        if sort_column.path in paths
    ]


def _ends(store: Store, snapshot: Snapshot, c: int) -> tuple[list[bytes], list[bytes]] | None:
    """Return the least lower and the greatest upper bound of a column in every entry, as order-preserving bytes."""
    parts = [stored_segment(store, snapshot, s).zone_map(c) for s in range(len(snapshot.segments))]
    if not parts:
        return None
    whole, count = zonemap.concat([_bare(part) for part in parts]), snapshot.files.block_count
    filled = np.flatnonzero(count)
    if not len(filled):
        return None
    merged = zonemap.merge(whole, np.full(len(whole), -1), offsets_of(count)[filled])
    ends = []
    for bounds in (merged.lower, merged.upper):
        ends_of_entries = [b""] * len(count)
        for entry, end in zip(filled.tolist(), as_bytes(bounds), strict=True):
            ends_of_entries[entry] = end
        ends.append(ends_of_entries)
    return ends[0], ends[1]


def _bare(zone_map: ZoneMap) -> ZoneMap:
    """Drop the gaps."""
    return ZoneMap(zone_map.lower, zone_map.upper, zone_map.null_count, zone_map.nan_count)
