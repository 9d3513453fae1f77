"""Amend segments: extend a segment file with the columns, filters and page locations it lacks, reading only those.

A segment lacks what was requested, or what its table gained, after it was written. The new file begins with the bytes
of the old one, so that all chunks stay where the snapshot knows them. Files that are gone cannot be read any more:
their blocks stay unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from secateur.errors import IndexFault, StalePlan
from secateur.index.build.assemble import (
    Assembled,
    Recipe,
    assembled,
    collectors_of,
    summarise,
    unknown_statistics,
)
from secateur.index.build.source_file import OpenFile
from secateur.index.container.index_file import SEGMENT, Contents, Place, Writer, read_contents
from secateur.index.filters.bloom_fragment import FOLDER as FRAGMENTS_FOLDER
from secateur.index.identity import FileIdentity
from secateur.index.model import ORDERED, POSTINGS, BlockTable, Store
from secateur.index.segments.segment_file import (
    BLOCK_KINDS,
    BLOCKS,
    FILTER_KINDS,
    LOCATION_TABLE,
    ORDERED_POSTING,
    POSTING,
    SIZE_CLASS,
    ZONE,
    add_statistics,
    blocks_of,
    columns_meta,
)
from secateur.index.segments.segment_table import (
    ChunkName,
    Directory,
    Segments,
    SegmentSummary,
    chunk_name,
    written_name,
)
from secateur.index.zones import zonemap
from secateur.ragged import offsets_of


@dataclass(frozen=True)
class Amendment:
    """A segment, the numbers of the columns and filters that it lacks, and whether it lacks page locations."""

    segment: int
    columns: tuple[int, ...]
    filters: tuple[int, ...]
    page_locations: bool
    name: str  # of its file
    size: int
    block_count: int
    sizes: tuple[int, int, int]  # files, rows, bytes
    files: Sequence[FileIdentity]
    is_live: Sequence[bool]  # of every file


def amendments(
    segments: Segments,
    is_live: np.ndarray,
    anew: Sequence[int] = (),
    *,
    page_locations: bool,
) -> list[Amendment]:
    """Return what segments lack of their own columns and filters, and of page locations if these are kept.

    `is_live` tells which entries have a live file: bool of shape (n_entries,). The columns `anew` are measured again in
    all segments.
    """
    in_segments = {POSTINGS: POSTING, ORDERED: ORDERED_POSTING}
    kinds = [in_segments.get(filter_.kind, SIZE_CLASS) for filter_ in segments.filters]
    filters = _lack(segments, [(kind, f) for f, kind in enumerate(kinds)])
    columns = _lack(segments, [(ZONE, c) for c in range(len(segments.columns))])
    columns[:, list(anew)] = True
    unlaid = _lack(segments, [(LOCATION_TABLE, -1)])[:, 0] & page_locations
    begin = offsets_of(segments.files.count)
    result = []
    for s in np.flatnonzero(columns.any(axis=1) | filters.any(axis=1) | unlaid).tolist():
        entries = np.arange(begin[s], begin[s + 1])
        of_segment = segments.files.table.take(entries).identities()
        result.append(
            Amendment(
                s,
                tuple(np.flatnonzero(columns[s]).tolist()),
                tuple(np.flatnonzero(filters[s]).tolist()),
                bool(unlaid[s]),
                segments.name[s],
                int(segments.size[s]),
                int(segments.block_count[s]),
                (
                    len(of_segment),
                    int(segments.row_count[s]),
                    int(segments.files.byte_count[entries].sum()),
                ),
                of_segment,
                is_live[entries].tolist(),
            )
        )
    return result


def _lack(segments: Segments, chunks: Sequence[ChunkName]) -> np.ndarray:
    """Mark which segments lack which chunks: bool of shape (n_segments, n_chunks)."""
    lack = np.ones((len(segments), len(chunks)), bool)
    for i, chunk in enumerate(chunks):
        if chunk in segments.directory:
            lack[:, i] = segments.directory[chunk].size == 0
    return lack


def _recipe_for(amendment: Amendment, recipe: Recipe) -> Recipe:
    """Return the part of a recipe that a segment lacks."""
    columns = [recipe.columns[c] for c in amendment.columns]
    filters = [recipe.filters[f] for f in amendment.filters]
    has_tuples = recipe.tuples in columns
    return replace(
        recipe,
        columns=columns,
        filters=filters,
        rates=[recipe.rates[f] for f in amendment.filters],
        native=[filter_ for filter_ in recipe.native if filter_ in filters],
        gaps=[column for column in recipe.gaps if column in columns],
        sort_key=recipe.sort_key if has_tuples else (),
        tuples=recipe.tuples if has_tuples else None,
        page_locations=amendment.page_locations,
    )


@dataclass(frozen=True)
class Amended:
    """A segment's new file and the additions; places are those of chunks by their numbers in the recipe."""

    data: bytes
    blocks: BlockTable
    assembled: Assembled
    places: Mapping[str, Place]


def amend(amendment: Amendment, name: str, open_file: OpenFile, store: Store, recipe: Recipe) -> Amended:
    """Build the file of an amended segment. Raises IndexFault, InvalidParquet, StalePlan, IndexNotWritable."""
    read = partial(store.read, amendment.name)
    contents = read_contents(amendment.name, SEGMENT, amendment.size, read)
    arrays = contents.arrays(BLOCKS, read)
    blocks = blocks_of(arrays, amendment.block_count, len(amendment.files), f"{amendment.name}: chunk {BLOCKS}")
    amended_recipe = _recipe_for(amendment, recipe)
    measured = _measured(amendment, blocks, open_file, amended_recipe, store, f"{FRAGMENTS_FOLDER}/{name}")
    columns, first_filter = _columns_meta(contents), _first_free(contents)
    writer = Writer(SEGMENT, {"columns": [*columns, *columns_meta(amended_recipe.columns)]})
    writer.go_on(contents, store.read(amendment.name, 0, contents.at))
    add_statistics(writer, measured.segment, len(columns), first_filter)
    places = {}
    for chunk in writer.chunks.keys() - contents.chunks.keys():
        kind, number = chunk_name(chunk)
        is_filter = kind in FILTER_KINDS
        numbers, first = (amendment.filters, first_filter) if is_filter else (amendment.columns, len(columns))
        key = (kind, number if kind in BLOCK_KINDS else numbers[number - first])
        places[written_name(key)] = writer.chunks[chunk]
    return Amended(writer.finish(), blocks, measured, places)


def _measured(
    amendment: Amendment, blocks: BlockTable, open_file: OpenFile, recipe: Recipe, store: Store, prefix: str
) -> Assembled:
    """Measure what a segment lacks, from its files. Raises StalePlan if a file's row groups have changed."""
    collectors = collectors_of(recipe, store, prefix)
    cuts = np.searchsorted(blocks.file, np.arange(len(amendment.files) + 1))
    parts = []
    for f, (file, is_live) in enumerate(zip(amendment.files, amendment.is_live, strict=True)):
        row_count, byte_count = (counts[cuts[f] : cuts[f + 1]] for counts in (blocks.row_count, blocks.byte_count))
        if not is_live:
            parts.append(unknown_statistics(row_count, byte_count, recipe, collectors))
            continue
        part = summarise(open_file(file.path), recipe, collectors)
        if not np.array_equal(part.row_count, row_count):
            raise StalePlan(f"{file.path} was overwritten while the index was refreshed: refresh again")
        parts.append(part)
    return assembled(parts, amendment.files, recipe, collectors)


def _columns_meta(contents: Contents) -> list[object]:
    columns = contents.meta.get("columns")
    if not isinstance(columns, list):
        raise IndexFault(f"{contents.name}: the table of contents names no columns")
    return columns


def _first_free(contents: Contents) -> int:
    """Return the first number above those of all filters of a segment."""
    numbers = (chunk.partition("/")[2] for chunk in contents.chunks if chunk.partition("/")[0] in FILTER_KINDS)
    return max((int(number) + 1 for number in numbers if number.isdecimal()), default=0)


def with_amended(segments: Segments, done: Sequence[tuple[Amendment, SegmentSummary]]) -> Segments:
    """Return the segments after some were amended, without the bloom matrices of new filters."""
    name, size, directory = [*segments.name], segments.size.copy(), dict(segments.directory)
    zone_maps = [*segments.zone_maps]
    for written in {chunk for _, summary in done for chunk in summary.places}:
        directory[chunk_name(written)] = _copy_of(directory.get(chunk_name(written)), len(segments))
    for amendment, summary in done:
        s = amendment.segment
        name[s], size[s] = summary.name, summary.size
        for chunk, place in summary.places.items():
            directory_of_chunk = directory[chunk_name(chunk)]
            directory_of_chunk.at[s], directory_of_chunk.size[s], directory_of_chunk.crc[s] = place
    for c in range(len(zone_maps)):
        new = [(a.segment, summary.zone_maps[a.columns.index(c)]) for a, summary in done if c in a.columns]
        if new:
            order = np.arange(len(segments))
            order[[s for s, _ in new]] = len(segments) + np.arange(len(new))
            zone_maps[c] = zonemap.concat([zone_maps[c], *(zone_map for _, zone_map in new)]).take(order)
    return replace(segments, name=name, size=size, directory=directory, zone_maps=zone_maps)


def _copy_of(directory: Directory | None, n: int) -> Directory:
    """Return a writable copy of a directory of n segments; an empty directory for None."""
    if directory is None:
        return Directory(np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.uint32))
    return Directory(directory.at.copy(), directory.size.copy(), directory.crc.copy())
