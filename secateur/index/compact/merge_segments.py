"""Merge files of several segments into one, from the index only: no data is read.

Statistics are copied block by block, so the new segment prunes exactly as the old ones did. In postings, a value keeps
as many bits of its hash as the segment that kept fewest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from secateur.index.filters.ordered import BlockEntries, all_entries, ordered_of
from secateur.index.filters.postings import Postings, rows_by_block, values_by_block
from secateur.index.filters.postings_build import postings_of, postings_with_rows
from secateur.index.filters.row_lists import ValueRows
from secateur.index.identity import FileIdentity
from secateur.index.model import BlockTable, Store
from secateur.index.segments.segment_file import SegmentData
from secateur.index.segments.snapshot import Snapshot
from secateur.index.segments.stored_segment import read_segment
from secateur.index.zones import zonemap
from secateur.index.zones.gaps import gap_table
from secateur.index.zones.page_locations import BlockLocations, concat_locations, unknown_locations
from secateur.index.zones.page_statistics import PageTable, concat_pages, take_pages, whole_blocks
from secateur.index.zones.zonemap import ZoneMap
from secateur.ragged import offsets_of, spread


@dataclass(frozen=True)
class Part:
    """Files of one segment: the blocks they have there, and the new segment's file of each block."""

    segment: int
    blocks: np.ndarray  # positions in the segment
    file: np.ndarray  # of every block, its file's number in the new segment


@dataclass(frozen=True)
class MergePlan:
    """A segment to be built from blocks of others."""

    files: Sequence[FileIdentity]
    parts: Sequence[Part]
    order: np.ndarray  # of the blocks of all parts, by file


def plan_merge(snapshot: Snapshot, entries: np.ndarray) -> MergePlan:
    """Plan the segment of some entries of the table of files, in their order. Raises IndexFault."""
    table = snapshot.files
    first = (
        offsets_of(table.block_count)[:-1] - snapshot.segments.block_begin[table.segment]
    )  # first block within the segment
    segment, count = table.segment[entries], table.block_count[entries]
    by_segment = np.argsort(segment, kind="stable")
    cuts = np.flatnonzero(np.diff(segment[by_segment])) + 1
    parts = []
    for of_segment in np.split(by_segment, cuts) if len(entries) else ():
        blocks = spread(first[entries[of_segment]], count[of_segment])
        parts.append(Part(int(segment[of_segment[0]]), blocks, np.repeat(of_segment, count[of_segment])))
    file = np.concatenate([np.zeros(0, np.int64), *(part.file for part in parts)])
    chosen = table.take(entries)
    return MergePlan(chosen.identities(), parts, np.argsort(file, kind="stable"))


def merge(store: Store, snapshot: Snapshot, plan: MergePlan, size_classes: Mapping[int, np.ndarray]) -> SegmentData:
    """Build the planned segment; `codes` are the size classes of its blocks' filters. Raises IndexFault."""
    taken = [_taken(read_segment(store, snapshot, part.segment), part) for part in plan.parts]
    order = plan.order
    blocks = BlockTable(
        np.concatenate([part.file for part in plan.parts]).astype(np.int32)[order],
        *(np.concatenate([getattr(segment.blocks, name) for segment in taken])[order] for name in _COUNTS),
    )
    zone_maps = [_joined([segment.zone_maps[c] for segment in taken]).take(order) for c in range(len(snapshot.columns))]
    pages = {c: take_pages(_pages(taken, c), order) for c in sorted({c for segment in taken for c in segment.pages})}
    postings = {f: _postings([segment.postings[f] for segment in taken], order) for f in taken[0].postings}
    with_rows = {f: _postings([segment.with_rows[f] for segment in taken], order) for f in taken[0].with_rows}
    ordered = {f: _in_order([segment.ordered[f] for segment in taken], order) for f in taken[0].ordered}
    return SegmentData(
        plan.files,
        blocks,
        snapshot.columns,
        zone_maps,
        pages,
        dict(size_classes),
        {f: postings_of(*merged) for f, merged in postings.items()}
        | {f: postings_with_rows(*merged) for f, merged in with_rows.items()},
        _locations(taken, order),
        {f: ordered_of(merged) for f, merged in ordered.items()},
    )


_COUNTS = ("row_group", "row_count", "byte_count")
Value = TypeVar("Value")
_Hashes = tuple[list[np.ndarray | None], int]  # hashes of every block, and the number of unknown last bits
_WithRows = tuple[list[ValueRows | None], int]  # the same with the rows that hold them


@dataclass(frozen=True)
class _Taken:
    """Some blocks of a segment."""

    blocks: BlockTable
    zone_maps: Sequence[ZoneMap]
    pages: Mapping[int, PageTable]
    postings: Mapping[int, _Hashes]  # those without row lists
    with_rows: Mapping[int, _WithRows]
    page_locations: BlockLocations | None
    ordered: Mapping[int, list[BlockEntries | None]]


def _taken(segment: SegmentData, part: Part) -> _Taken:
    chosen, table = part.blocks, segment.blocks
    return _Taken(
        BlockTable(*(getattr(table, name)[chosen] for name in ("file", *_COUNTS))),
        [zone_map.take(chosen) for zone_map in segment.zone_maps],
        {c: take_pages(pages, chosen) for c, pages in segment.pages.items()},
        {f: _values(of, values_by_block(of, _OF), chosen) for f, of in segment.postings.items() if of.lists is None},
        {f: _values(of, rows_by_block(of, _OF), chosen) for f, of in segment.postings.items() if of.lists is not None},
        None if segment.page_locations is None else segment.page_locations.take(chosen),
        {f: _in_order([all_entries(of, _OF)], chosen) for f, of in segment.ordered.items()},
    )


_OF = "postings"  # in messages


def _values(postings: Postings, values: Sequence[Value], chosen: np.ndarray) -> tuple[list[Value], int]:
    return [values[block] for block in chosen.tolist()], postings.table.shift


def _joined(parts: Sequence[ZoneMap]) -> ZoneMap:
    """Concatenate zone maps; parts without gaps get empty ones if other parts have gaps."""
    gaps = [part.gaps for part in parts if part.gaps is not None]
    most = max((len(gaps_of_one.low) for gaps_of_one in gaps), default=0)
    return zonemap.concat([_with_gaps(part, most) for part in parts])


def _with_gaps(zone_map: ZoneMap, most: int) -> ZoneMap:
    if not most:
        return zone_map
    nothing = gap_table([None] * len(zone_map), most)
    if zone_map.gaps is None:
        return replace(zone_map, gaps=nothing)
    of_map = zone_map.gaps
    low, high = (
        np.concatenate([a, b[: most - len(a)]]) for a, b in ((of_map.low, nothing.low), (of_map.high, nothing.high))
    )
    return replace(zone_map, gaps=replace(of_map, low=low, high=high))


def _pages(parts: Sequence[_Taken], c: int) -> PageTable:
    """Return the pages of a column in all parts; a part without pages has one page per block."""
    return concat_pages([part.pages.get(c) or whole_blocks(part.zone_maps[c]) for part in parts])


def _locations(parts: Sequence[_Taken], order: np.ndarray) -> BlockLocations | None:
    """Return the page locations of all parts; None if no part has any."""
    if all(part.page_locations is None for part in parts):
        return None
    every = [
        unknown_locations(len(part.blocks)) if part.page_locations is None else part.page_locations for part in parts
    ]
    return concat_locations(every).take(order)


def _in_order(parts: Sequence[list[Value]], order: np.ndarray) -> list[Value]:
    every = [value for part in parts for value in part]
    return [every[i] for i in order.tolist()]


def _postings(parts: Sequence[tuple[list[Value], int]], order: np.ndarray) -> tuple[list[Value], int]:
    return _in_order([part for part, _ in parts], order), max(shift for _, shift in parts)
