"""Read texts that a dictionary encodes as numbers of its entries, and look the entries up.

That takes half the time of pyarrow's own way, which copies one text after the other. For short row groups, or large
dictionaries, it takes more: each row group's dictionary is an array of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.io.parquet.arrow_types import batch_of
from secateur.io.parquet.column_chunk import Chunk
from secateur.io.parquet.footer import Footer

LEAST_ROWS = 16_384  # of a row group
MOST_BYTES = 8.0  # uncompressed per value: its number, and its share of the dictionary
SPARED = 0.02  # microseconds per value
DECODING = 85.0  # microseconds for the metadata of a column chunk in a footer, on the same machine
TEXT_BYTES = 64 << 20  # of a column whose texts are all as long as the longest


def pays(row_counts: np.ndarray, texts: int, chunk_count: int) -> bool:
    """Return whether reading some columns of texts in row groups of so many rows may take less time.

    That includes twice the time to decode a footer with so many column chunks.
    """
    most = float(row_counts.sum()) * texts * SPARED
    return int(row_counts.min()) >= LEAST_ROWS and most > 2 * chunk_count * DECODING


def encoded_texts(footer: Footer, row_groups: Sequence[int], leaves: Collection[int]) -> tuple[str, ...]:
    """Return those of some leaves that are top-level texts encoded by small dictionaries in some row groups."""
    return tuple(
        leaf.path[0]
        for leaf in footer.leaves
        if leaf.ordinal in leaves
        and len(leaf.path) == 1
        and "." not in leaf.path[0]  # which pyarrow takes for a nested column
        and _is_text(leaf.type)
        and all(_has_small_dictionary(footer.chunks(i)[leaf.ordinal]) for i in row_groups)
    )


def _has_small_dictionary(chunk: Chunk) -> bool:
    stored = chunk.stored
    return (
        stored is not None
        and stored.dictionary > 0
        and 0 < stored.page_count == stored.by_dictionary
        and stored.uncompressed <= MOST_BYTES * stored.value_count
    )


def in_parts(batch: pa.RecordBatch, encoded: Collection[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a batch, of which some columns are encoded, in parts if the texts of all would be long.

    No such column of a part has more than TEXT_BYTES of texts, unless the part has one row.
    """
    longest = max((_longest(batch.column(i).dictionary) for i in _encoded(batch, encoded)), default=0)
    step = max(1, TEXT_BYTES // max(1, longest))
    return (batch.slice(begin, step) for begin in range(0, batch.num_rows, step))


def looked_up(batch: pa.RecordBatch, encoded: Collection[str]) -> pa.RecordBatch:
    """Return a batch with the texts of some columns, looked up where these are encoded."""
    columns = _encoded(batch, encoded)
    if not columns:
        return batch
    arrays = [column.dictionary_decode() if i in columns else column for i, column in enumerate(batch.columns)]
    return batch_of(arrays, list(batch.schema))


def _encoded(batch: pa.RecordBatch, names: Collection[str]) -> frozenset[int]:
    """Return which columns of some names are encoded."""
    schema = enumerate(batch.schema)
    return frozenset(i for i, field in schema if field.name in names and pa.types.is_dictionary(field.type))


def may_be_encoded(fields: Sequence[pa.Field]) -> list[pa.Field]:
    """Return fields of which the texts may be read as they are encoded: of dictionary types."""
    return [
        field.with_type(pa.dictionary(pa.int32(), field.type)) if _is_text(field.type) else field for field in fields
    ]


def not_encoded(fields: Sequence[pa.Field]) -> list[pa.Field]:
    """Return fields whose texts are looked up: the inverse of :func:`may_be_encoded`."""
    return [field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field for field in fields]


def _is_text(type_: pa.DataType) -> bool:
    return pa.types.is_string(type_) or pa.types.is_binary(type_)


def _longest(entries: pa.Array) -> int:
    """Return the bytes of the longest entry."""
    return pc.max(pc.binary_length(entries)).as_py() or 0
