"""The live files of a Delta table, ordered by path: after all changes of a log, or after a few more.

Source: Delta's protocol, "Action Reconciliation".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import flags, from_numpy, truths
from secateur.index.segments.path_search import is_ascending
from secateur.io.tables.delta.actions import PARSED, vector_ids
from secateur.ragged import offsets_of, spread

FEW_CHANGES = 64  # for each of which the files are cut in two
MOST_PIECES = 256  # of which the files may consist, before they are copied into one


def reconciled(parts: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """Return the live files after some changes, the oldest first, ordered by path.

    If several changes concern one path and deletion vector, the last one counts.
    """
    types = [part.schema.field(PARSED).type for part in parts if PARSED in part.column_names]
    if types:
        schema = schema.append(pa.field(PARSED, types[0]))
    table = pa.concat_tables([_aligned(part, schema) for part in parts])
    if not len(table):
        return table
    is_add = truths(table["is_add"].combine_chunks())
    if is_ascending(_whole(table["path"])):  # no two changes concern one file
        return table if is_add.all() else table.filter(flags(is_add))
    has_vectors = table["vector"].null_count < len(table)
    order, is_last = _by_key(_keys(table) if has_vectors else _whole(table["path"]))
    return table.take(from_numpy(order[is_last & is_add[order]]))


def merged(before: pa.Table, paths: pa.Array, changes: pa.Table) -> pa.Table:
    """Return the live files after a few more changes: `before`, with these `paths`, is ordered by path, as the result.

    Where the changes are few, it takes time and memory for them alone: the other files stay where they are.
    """
    changes = _aligned(changes, before.schema)
    if not len(changes):
        return before
    order, is_last = _by_key(_keys(changes))
    changes = changes.take(from_numpy(order[is_last]))
    changed = changes["path"].combine_chunks()
    begin, end = _bounds(paths, changed, or_equal=False), _bounds(paths, changed, or_equal=True)
    known = np.unique(spread(begin, end - begin))
    dead = known[truths(pc.is_in(_keys(rows_of(before, known)), value_set=_keys(changes)))]
    is_add = truths(changes["is_add"].combine_chunks())
    added, place = changes.filter(flags(is_add)), begin[is_add]
    if len(changes) > FEW_CHANGES:
        return _with_many(before, dead, added, place)
    table = pa.concat_tables(_cut(before, dead, added, place))
    return table if table["path"].num_chunks <= MOST_PIECES else table.combine_chunks()


def _cut(before: pa.Table, dead: np.ndarray, added: pa.Table, place: np.ndarray) -> list[pa.Table]:
    """Return the pieces between dead files, and added files before the places where they belong."""
    pieces, start = [], 0
    for cut in np.union1d(dead, place).tolist():
        first, after = np.searchsorted(place, [cut, cut + 1]).tolist()
        pieces += [before.slice(start, cut - start), added.slice(first, after - first)]
        start = cut + int(cut in dead)
    return [piece for piece in (*pieces, before.slice(start)) if len(piece)] or [before.slice(0, 0)]


def _with_many(before: pa.Table, dead: np.ndarray, added: pa.Table, place: np.ndarray) -> pa.Table:
    alive = np.delete(np.arange(len(before)), dead)
    at = place - np.searchsorted(dead, place)
    order = np.insert(alive, at, len(before) + np.arange(len(added)))
    return pa.concat_tables([before, added]).take(from_numpy(order))


def _bounds(paths: pa.Array, wanted: pa.Array, *, or_equal: bool) -> np.ndarray:
    """Return for each wanted path how many of the ascending `paths` are less, or at most equal."""
    compare = pc.less_equal if or_equal else pc.less
    low, high = np.zeros(len(wanted), np.int64), np.full(len(wanted), len(paths))
    while (is_open := low < high).any():
        middle = (low + high) // 2
        is_before = truths(compare(paths.take(from_numpy(np.where(is_open, middle, 0))), wanted))
        low = np.where(is_open & is_before, middle + 1, low)
        high = np.where(is_open & ~is_before, middle, high)
    return low


def rows_of(table: pa.Table, rows: np.ndarray) -> pa.Table:
    """Return some rows of a table; where they ascend, without a copy of all pieces, which Arrow would join first."""
    if not (rows[1:] > rows[:-1]).all():
        return table.take(from_numpy(rows))
    if len(rows) == len(table):
        return table
    batches = table.to_batches()
    offsets = offsets_of(np.array([len(batch) for batch in batches], np.int64))
    cuts = np.searchsorted(rows, offsets)
    taken = [
        batch.take(from_numpy(rows[first:after] - offset))
        for batch, offset, first, after in zip(batches, offsets.tolist(), cuts, cuts[1:], strict=False)
        if first < after
    ]
    return pa.Table.from_batches(taken, table.schema)


def rows_of_column(column: pa.ChunkedArray, rows: np.ndarray) -> pa.ChunkedArray:
    """Return some rows of a column, as :func:`rows_of` does."""
    return rows_of(pa.Table.from_arrays([column], names=["column"]), rows)["column"]


def _aligned(part: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return changes with the columns and types of others; typed statistics of other columns are left out."""
    has_parsed, is_parsed_wanted = PARSED in part.column_names, PARSED in schema.names
    if is_parsed_wanted and not (has_parsed and part.schema.field(PARSED).type == schema.field(PARSED).type):
        kept = part.drop_columns(PARSED) if has_parsed else part
        part = kept.append_column(PARSED, pa.nulls(len(part), schema.field(PARSED).type))
    return part if part.schema == schema else part.cast(schema)


def _by_key(keys: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the order of some keys, equal ones as they come, and which in this order are the last of their key."""
    order = pc.sort_indices(keys)
    ordered = keys.take(order)
    is_last = np.append(truths(pc.not_equal(ordered[:-1], ordered[1:])), True)
    return np.from_dlpack(order).astype(np.int64), is_last


def _keys(table: pa.Table) -> pa.Array:
    """Return what names every file: its path and its deletion vector. Names order as the paths do."""
    ids = pa.chunked_array([vector_ids(chunk) for chunk in table["vector"].chunks], pa.string())
    return _whole(pc.binary_join_element_wise(table["path"], ids, "\0"))


def _whole(texts: pa.ChunkedArray) -> pa.Array:
    return (texts if texts.nbytes < 2**31 else texts.cast(pa.large_string())).combine_chunks()
