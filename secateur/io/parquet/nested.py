"""Assemble nested values from parts that were read leaf by leaf, over the same rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import from_numpy
from secateur.errors import InvalidParquet
from secateur.ragged import offsets_of


def joined(type_: pa.DataType, parts: Sequence[pa.Array]) -> pa.Array:
    """Join an array's projections to some of its leaves each; together they have all leaves of the type.

    Raises InvalidParquet if list lengths disagree.
    """
    if len(parts) == 1 and parts[0].type == type_:
        return parts[0]
    match type_:
        case pa.StructType():
            children = [joined(field.type, _children(parts, field.name)) for field in type_]
            return pa.StructArray.from_arrays(children, fields=list(type_), mask=_nulls(parts[0]))
        case pa.FixedSizeListType():
            n = type_.list_size
            slots = [part.values.slice(part.offset * n, len(part) * n) for part in parts]
            values = joined(type_.value_type, slots)
            return pa.FixedSizeListArray.from_arrays(values, type=type_, mask=_nulls(parts[0]))
        case pa.MapType():
            offsets, elements = _lists(parts)
            entries = joined(pa.struct([type_.key_field, type_.item_field]), elements).flatten()
            places = from_numpy(offsets.astype(np.int32))
            return pa.MapArray.from_arrays(places, *entries, type=type_, mask=_nulls(parts[0]))
        case pa.ListType() | pa.LargeListType():
            offsets, elements = _lists(parts)
            of, width = (pa.LargeListArray, np.int64) if pa.types.is_large_list(type_) else (pa.ListArray, np.int32)
            values = joined(type_.value_type, elements)
            return of.from_arrays(from_numpy(offsets.astype(width)), values, type=type_, mask=_nulls(parts[0]))
        case pa.ListViewType() | pa.LargeListViewType():
            offsets, elements = _lists(parts)
            large = pa.types.is_large_list_view(type_)
            of, width = (pa.LargeListViewArray, np.int64) if large else (pa.ListViewArray, np.int32)
            starts, sizes = (from_numpy(ends.astype(width)) for ends in (offsets[:-1], np.diff(offsets)))
            values = joined(type_.value_type, elements)
            return of.from_arrays(starts, sizes, values, type=type_, mask=_nulls(parts[0]))
        case _:
            raise InvalidParquet(f"a value of type {type_} was read as {', '.join(str(part.type) for part in parts)}")


def _children(parts: Sequence[pa.Array], name: str) -> list[pa.Array]:
    """Return the child of that name from every part that has it."""
    places = [(part, part.type.get_field_index(name)) for part in parts]
    return [part.field(i) for part, i in places if i >= 0]


def _lists(parts: Sequence[pa.Array]) -> tuple[np.ndarray, list[pa.Array]]:
    """Return the offsets of the lists among the elements, and the elements, without those of NULL lists.

    Raises InvalidParquet if parts disagree.
    """
    first, *others = (offsets_of(pc.fill_null(pc.list_value_length(part), 0).to_numpy()) for part in parts)
    if any(not np.array_equal(first, other) for other in others):
        raise InvalidParquet("the leaves of a list have other lengths each")
    # With no elements, flatten() would have to make an array of the type, which fails for extension types.
    return first, [part.flatten() if first[-1] else part.values[:0] for part in parts]


def _nulls(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None
