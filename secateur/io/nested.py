"""Nested values put together of parts that were read leaf by leaf.

Sibling leaves under one repeated node cannot be read in one go where their pages differ: on rows that only one of them
has, their lists have other lengths. Read alone, and cut to rows that both have, they agree.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import from_numpy
from secateur.errors import InvalidParquet
from secateur.ragged import offsets_of


def joined(type_: pa.DataType, parts: Sequence[pa.Array]) -> pa.Array:
    """An array of a type, of its projections to some of its leaves each; together they have them all.

    Raises InvalidParquet for lists that do not agree in their lengths.
    """
    if len(parts) == 1 and parts[0].type == type_:
        return parts[0]
    match type_:
        case pa.StructType():
            children = [joined(field.type, _children(parts, field.name)) for field in type_]
            return pa.StructArray.from_arrays(children, fields=list(type_), mask=_nulls(parts[0]))
        case pa.MapType():
            entries = joined(pa.struct([type_.key_field, type_.item_field]), _elements(parts))
            offsets = from_numpy(_offsets(parts).astype(np.int32))
            return pa.MapArray.from_arrays(offsets, *entries.flatten(), type=type_, mask=_nulls(parts[0]))
        case pa.FixedSizeListType():
            n = type_.list_size
            slots = [part.values.slice(part.offset * n, len(part) * n) for part in parts]
            values = joined(type_.value_type, slots)
            return pa.FixedSizeListArray.from_arrays(values, type=type_, mask=_nulls(parts[0]))
        case pa.ListType() | pa.LargeListType():
            values = joined(type_.value_type, _elements(parts))
            large = pa.types.is_large_list(type_)
            offsets = from_numpy(_offsets(parts).astype(np.int64 if large else np.int32))
            of = pa.LargeListArray if large else pa.ListArray
            return of.from_arrays(offsets, values, type=type_, mask=_nulls(parts[0]))
        case _:
            raise InvalidParquet(f"a value of type {type_} was read as {', '.join(str(part.type) for part in parts)}")


def _children(parts: Sequence[pa.Array], name: str) -> list[pa.Array]:
    """The child of that name, of every part that has it."""
    found = [(part, part.type.get_field_index(name)) for part in parts]
    return [part.field(i) for part, i in found if i >= 0]


def _elements(parts: Sequence[pa.Array]) -> list[pa.Array]:
    """What is in the lists that are not null, list after list."""
    return [part.flatten() for part in parts]


def _offsets(parts: Sequence[pa.Array]) -> np.ndarray:
    """Where every list begins among the elements, and behind the last. Raises InvalidParquet where parts disagree."""
    first, *others = (offsets_of(pc.fill_null(pc.list_value_length(part), 0).to_numpy()) for part in parts)
    if any(not np.array_equal(first, other) for other in others):
        raise InvalidParquet("the leaves of a list have other lengths each")
    return first


def _nulls(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None
