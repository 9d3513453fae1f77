"""Check that the filters of a block hold its values, looking them up one by one as a query does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.index.build.column_sketch import elements
from secateur.index.container.checked_matrix import STRIP, read_rows
from secateur.index.filters import parquet_bloom
from secateur.index.filters.bloom import positions
from secateur.index.filters.bloom_matrix import BloomMatrices
from secateur.index.filters.hashing import hash_keys
from secateur.index.filters.ngrams import hash_parts, token_key
from secateur.index.filters.postings import blocks_with
from secateur.index.filters.probe import matrix_rows
from secateur.index.filters.size_class import FilterShape, shape_of
from secateur.index.model import BLOOM, NGRAM, POSTINGS, Filter, name_of
from secateur.index.read.loader import IndexMemory, readable
from secateur.index.verify.check_statistics import Contradiction, value_text
from secateur.pruning.predicate.patterns.substrings import fold, tokens_in
from secateur.values.conversion import keys_of
from secateur.values.key import Key
from secateur.values.kinds import ordered_kind

MOST_READ = 1 << 26  # bytes of a filter read for one block; of wider matrices fewer values are looked up
MOST_VALUES = 1 << 16  # values of a block looked up in a bloom filter; takes some tenths of a second
MOST_POSTED = 1 << 11  # in postings, one by one; takes as long
MOST_TEXT = 1 << 17  # bytes of texts whose grams or tokens are looked up; takes as long


def wanted(filter_: Filter, values: pa.Array, draw: np.random.Generator) -> pa.Array:
    """Draw the values to look up: distinct values without NULL, or some texts, uniformly."""
    inner = elements(values).drop_null()
    inner = inner.cast(filter_.type) if inner.type != filter_.type else inner
    if filter_.kind in (BLOOM, POSTINGS):
        most = MOST_VALUES if filter_.kind == BLOOM else MOST_POSTED
        inner = inner.unique()
        return inner if len(inner) <= most else inner.take(pa.array(draw.choice(len(inner), most, replace=False)))
    order = draw.permutation(len(inner))
    lengths = pc.binary_length(inner).to_numpy(zero_copy_only=False)[order]
    return inner.take(pa.array(order[: int(np.searchsorted(np.cumsum(lengths), MOST_TEXT)) + 1]))


def lost(memory: IndexMemory, f: int, segment: int, within: int, values: pa.Array) -> Contradiction | None:
    """Return the first value that the filter of a block lacks; `values` come from :func:`wanted`.

    Raises IndexFault.
    """
    filter_ = memory.snapshot.filters[f]
    keys = _asked(filter_, values)
    if not keys:
        return None
    find = _in_postings if filter_.kind == POSTINGS else _in_bloom_matrices
    is_held = find(memory, f, segment, within, keys)
    if is_held is None or is_held.all():
        return None
    key = keys[int(np.argmin(is_held))]
    type_ = filter_.type if filter_.kind in (BLOOM, POSTINGS) else pa.binary()
    return Contradiction(name_of(filter_.path), f"the filter ({filter_.kind})", "without it", value_text(key, type_))


def _asked(filter_: Filter, values: pa.Array) -> list[Key]:
    """Return the distinct keys, grams or tokens of values that a filter should hold."""
    if filter_.kind in (BLOOM, POSTINGS):
        keys = keys_of(values)
        return [keys.at(i) for i in range(len(keys))]
    texts = [fold(text) if filter_.folded else text for text in values.cast(pa.binary()).to_pylist()]
    if filter_.kind == NGRAM:
        return list({text[i : i + filter_.gram] for text in texts for i in range(len(text) - filter_.gram + 1)})
    return list({token_key(token) for text in texts for token in tokens_in(text)})


# ---- postings --------------------------------------------------------------------------------------------------------


def _in_postings(memory: IndexMemory, f: int, segment: int, within: int, keys: Sequence[Key]) -> np.ndarray | None:
    """Mark the values whose postings include the block; None if there are no postings."""
    (stored,) = memory.postings(f, np.array([segment]))
    if stored is None:
        return None
    name = memory.snapshot.segments.name[segment]
    hashes = hash_keys(keys, ordered_kind(memory.snapshot.filters[f].type))
    kept: dict[int, np.ndarray] = {}

    def rows(indices: np.ndarray) -> np.ndarray:
        new = np.array([i for i in indices.tolist() if i not in kept], np.int64)
        if len(new):
            read = read_rows(stored.rows, new, lambda ranges: memory.chunks.read_ranges(name, ranges), name)
            kept.update(zip(new.tolist(), read, strict=True))
        return np.stack([kept[i] for i in indices.tolist()])

    return np.array([blocks_with(stored.table, hashes[i : i + 1], rows, name)[within] for i in range(len(hashes))])


# ---- bloom matrices --------------------------------------------------------------------------------------------------


def _in_bloom_matrices(
    memory: IndexMemory, f: int, segment: int, within: int, keys: Sequence[Key]
) -> np.ndarray | None:
    """Mark the values that the block's filter holds; None if it has no filter."""
    bloom_matrices = memory.bloom_matrices(f)
    if bloom_matrices is None:
        return None
    for run in np.flatnonzero(bloom_matrices.segment == segment).tolist():
        members = _members(memory, f, bloom_matrices, run, segment)
        if within in members:
            column = int(bloom_matrices.begin[run]) + int(np.searchsorted(members, within))
            return _in_column(memory, f, bloom_matrices, int(bloom_matrices.run_matrix[run]), column, keys)
    return None


def _members(memory: IndexMemory, f: int, bloom_matrices: BloomMatrices, run: int, segment: int) -> np.ndarray:
    """Return the blocks of a run, as positions in its segment."""
    total = int(memory.snapshot.segments.block_count[segment])
    if bloom_matrices.count[run] == total:
        return np.arange(total)
    (classes,) = memory.size_classes(f, np.array([segment]))
    return np.flatnonzero(readable(classes, memory.groups.names[segment]) == bloom_matrices.run_size_class[run])


def _in_column(
    memory: IndexMemory, f: int, bloom_matrices: BloomMatrices, matrix: int, column: int, keys: Sequence[Key]
) -> np.ndarray | None:
    filter_ = memory.snapshot.filters[f]
    shape = shape_of(int(bloom_matrices.size_class[matrix]))
    strips = range(column // (8 * STRIP), column // (8 * STRIP) + 1)
    width = min(STRIP, bloom_matrices.row_bytes(matrix) - strips.start * STRIP)
    most = max(1, MOST_READ // (width * shape.probes))
    alternatives = _alternatives(filter_, keys[:most], shape)
    rows = np.unique(
        np.concatenate([np.zeros(0, np.int64), *(part.ravel() for part in alternatives if part is not None)])
    )
    bytes_ = matrix_rows(bloom_matrices, matrix, rows, strips, memory.filter_files(bloom_matrices))
    bits = bytes_[:, column // 8 - strips.start * STRIP] >> (column % 8) & 1
    return np.array([part is None or _any(bits, rows, part) for part in alternatives], bool)


def _any(bits: np.ndarray, rows: np.ndarray, alternatives: np.ndarray) -> bool:
    """Whether all bits of some alternative are set; False if there are no alternatives."""
    return bool(bits[np.searchsorted(rows, alternatives)].all(axis=1).any())


def _alternatives(filter_: Filter, keys: Sequence[Key], shape: FilterShape) -> list[np.ndarray | None]:
    """Return the bits of each form of every value; None where a filter of this shape cannot be asked."""
    if shape.encoding is None:
        if filter_.kind == BLOOM:
            hashes = hash_keys(keys, ordered_kind(filter_.type))
        else:
            hashes = hash_parts(keys, grams=filter_.kind == NGRAM)  # type: ignore[arg-type]
        return list(positions(hashes, shape.probes, shape.bits)[:, None, :])
    stored = parquet_bloom.encoding_of_code(shape.encoding)
    forms = [parquet_bloom.hashes_of(key, filter_.type, stored) for key in keys]
    return [
        None if hashes_of_key is None else parquet_bloom.positions(np.array(hashes_of_key, np.uint64), shape.bits)
        for hashes_of_key in forms
    ]
