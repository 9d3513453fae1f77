"""Sort key tuples as byte strings that sort as Spark's ORDER BY sorts the tuples.

A tuple is the concatenation of its components, and no component is a proper prefix of another possible one in its
place. So two tuples first differ within the first component that differs, the tuples with given leading components are
the byte strings with a given prefix, and a truncated tuple is a lower bound of it.

The layout is in docs/format.md, "Sort keys". Bytes are encoded as by ``EncodeBytesAscending`` of CockroachDB
(pkg/util/encoding) and Google's OrderedCode. The layout depends on the kind of the key, not on the type, so the bytes
stay valid when a column is widened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.values.conversion import keys_of
from secateur.values.key import Key
from secateur.values.keys import Keys
from secateur.values.kinds import Kind

VALUE = b"\x01"  # precedes every value; AFTER_VALUES sorts after all values
AFTER_VALUES = b"\x02"
NULL_FIRST, NULL_LAST = b"\x00", b"\x02"
_ESCAPED, _END = b"\x00\xff", b"\x00\x01"  # a zero byte within a byte string; the end of the string
_INVERTED = bytes(range(255, -1, -1))


@dataclass(frozen=True)
class Component:
    """The encoding of one sort key column: the kind of its keys, and its place in ORDER BY."""

    kind: Kind
    descending: bool
    nulls_first: bool

    @property
    def null(self) -> bytes:
        """The component of a NULL."""
        return NULL_FIRST if self.nulls_first else NULL_LAST

    def encode(self, key: Key | None) -> bytes:
        """Return the component of one key; None is NULL."""
        match key:
            case None:
                return self.null
            case bytes():
                body = key.replace(b"\0", _ESCAPED) + _END
            case int():
                size = 8 if self.kind is Kind.WORD else 16
                body = (key + (1 << (8 * size - 1))).to_bytes(size, "big")
        return VALUE + (body.translate(_INVERTED) if self.descending else body)

    def encode_all(self, values: pa.Array) -> pa.Array:
        """Return the components of all values, binary of shape (n,) without nulls."""
        body = _escaped(values) if self.kind is Kind.BYTES else _big_endian(keys_of(values))
        if self.descending:
            body = _inverted(body)
        marked = pc.binary_join_element_wise(pa.scalar(VALUE), body, pa.scalar(b""))
        return pc.if_else(pc.is_valid(values), marked, pa.scalar(self.null))


def encode_rows(columns: Sequence[pa.Array], components: Sequence[Component]) -> pa.Array:
    """Return the tuples of all rows, binary of shape (n,); one array per component, at least one."""
    parts = [component.encode_all(values) for values, component in zip(columns, components, strict=True)]
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, pa.scalar(b""))


def _big_endian(keys: Keys) -> pa.Array:
    """Encode integers big-endian with the sign bit flipped, so that they sort as bytes."""
    high, *low = keys.words
    words = np.column_stack([high.view(np.uint64) ^ np.uint64(1 << 63), *low]).astype(">u8")
    size = pa.binary(8 * len(keys.words))
    return pa.FixedSizeBinaryArray.from_buffers(size, len(keys), [None, pa.py_buffer(words)]).cast(pa.binary())


def _escaped(values: pa.Array) -> pa.Array:
    """Escape zero bytes and mark the end of each string; NULL is treated as empty."""
    binary = pc.fill_null(values.cast(pa.binary()), b"")
    offsets = np.frombuffer(binary.buffers()[1], np.int32)[binary.offset : binary.offset + len(binary) + 1]
    data = np.frombuffer(binary.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    ends = np.concatenate([[0], np.cumsum(1 + (data == 0))])  # the position of every byte in the result, and the end
    grown = np.repeat(data, np.diff(ends))
    grown[ends[1:][data == 0] - 1] = _ESCAPED[1]
    moved = ends[offsets - offsets[0]].astype(np.int32)
    body = pa.BinaryArray.from_buffers(pa.binary(), len(binary), [None, pa.py_buffer(moved), pa.py_buffer(grown)])
    return pc.binary_join_element_wise(body, pa.scalar(_END), pa.scalar(b""))


def _inverted(binary: pa.Array) -> pa.Array:
    """Invert every byte of an array without nulls."""
    _, offsets, data = binary.buffers()
    flipped = ~np.frombuffer(data or b"", np.uint8)
    return pa.BinaryArray.from_buffers(
        binary.type, len(binary), [None, offsets, pa.py_buffer(flipped)], offset=binary.offset
    )
