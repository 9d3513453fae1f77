"""Stage "deletes": drop blocks whose rows are all deleted, whatever the predicate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from secateur.pruning.report import counted
from secateur.pruning.stages.survivors import Query, Survivors
from secateur.pruning.statistics import Blocks, Catalog
from secateur.ragged import offsets_of, spread


def has_deletes(query: Query) -> bool:
    """Return whether rows of some live file are deleted."""
    return query.catalog.files.touched is not None


def prune_deleted(query: Query, survivors: Survivors) -> Survivors:
    """Drop the blocks in which every position is deleted.

    Delete files are read only for files with a surviving block that has no more rows than may be deleted in the file.
    Equality deletes are ignored: they depend on the values of rows.
    """
    files, blocks = query.catalog.files, survivors.blocks
    assert files.touched is not None, "the stage runs only where has_deletes"
    surviving = np.unique(blocks.file)
    touched = surviving[files.touched[surviving]]
    most = np.zeros(len(files), np.int64)
    most[touched] = files.most_deleted(touched)
    suspects = np.flatnonzero(blocks.row_count <= most[blocks.file])
    if not len(suspects):
        return survivors
    suspected = np.unique(blocks.file[suspects])
    positions = files.deleted(suspected, touched)
    if positions is None:
        query.notes.append("delete files cannot be read")
        return survivors
    query.notes.append(f"deleted positions of {counted(len(suspected), 'file')} looked at")
    among = blocks.take(suspects)
    counts = deleted_rows(query.catalog, among, dict(zip(suspected.tolist(), positions, strict=True)))
    dead = suspects[counts == among.row_count]
    if not len(dead):
        return survivors
    gone = np.zeros(len(files), np.int64)
    np.add.at(gone, blocks.file[dead], blocks.row_count[dead])
    return replace(survivors.take(np.delete(np.arange(len(blocks)), dead)), deleted_rows=gone)


def deleted_rows(catalog: Catalog, blocks: Blocks, positions: Mapping[int, np.ndarray]) -> np.ndarray:
    """Count the deleted rows of every block, from the deleted positions of every file, ascending and distinct."""
    counts = np.zeros(len(blocks), np.int64)
    for of_file, _, start, stop in _deleted_within(catalog, blocks, positions):
        counts[of_file] = stop - start
    return counts


def deleted_places(
    catalog: Catalog, blocks: Blocks, positions: Mapping[int, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the block and the row in it of every deleted row of some blocks, as in :func:`deleted_rows`."""
    places = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
    for of_file, begin, start, stop in _deleted_within(catalog, blocks, positions):
        rows, counts = positions[int(blocks.file[of_file[0]])], stop - start
        places.append((np.repeat(of_file, counts), rows[spread(start, counts)] - np.repeat(begin, counts)))
    block, row = zip(*places, strict=True)
    return np.concatenate(block), np.concatenate(row)


def _deleted_within(
    catalog: Catalog, blocks: Blocks, positions: Mapping[int, np.ndarray]
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield the blocks of every file, their first rows, and where among its deleted positions theirs start and stop."""
    first = _first_rows(catalog, np.array(sorted(positions)), blocks.file, blocks.row_group)
    order = np.argsort(blocks.file, kind="stable")
    for of_file in np.split(order, np.flatnonzero(np.diff(blocks.file[order])) + 1):
        begin, rows = first[of_file], positions[int(blocks.file[of_file[0]])]
        start, stop = (np.searchsorted(rows, at) for at in (begin, begin + blocks.row_count[of_file]))
        yield of_file, begin, start, stop


def _first_rows(catalog: Catalog, files: np.ndarray, file: np.ndarray, row_group: np.ndarray) -> np.ndarray:
    """Return the position, within its file, of the first row of each of some blocks."""
    wanted = np.zeros(len(catalog.files), bool)
    wanted[files] = True
    every = catalog.blocks_of(wanted)
    order = np.lexsort((every.row_group, every.file))
    begin = offsets_of(every.row_count[order])[:-1]
    key = (every.file[order].astype(np.int64) << 32) | every.row_group[order]
    of_file = begin[np.searchsorted(every.file[order], file)]
    return begin[np.searchsorted(key, (file.astype(np.int64) << 32) | row_group)] - of_file
