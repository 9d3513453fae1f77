"""The values at a path into VARIANT, read as one type, on rows: from bytes, and from columns of shredded values.

A VARIANT column is a group of `metadata`, `value` and, if some of its values are shredded, `typed_value`. An object
whose fields are foreseen has them in groups below `typed_value`, of `value` and `typed_value` again, and its other
fields in the bytes of `value`. An array whose items are foreseen has a list of such groups. Any other value that is not
foreseen is in the bytes of the `value` on its level.

A value is known where Spark's ``variant_get`` gives it without an error: scalars of the type that is asked for, numbers
as other numbers where they fit, integers and booleans as text. Everything else is unknown here: text as numbers,
objects as text, values that do not fit, and whatever is not as the specifications say. Where nothing is at the path, or
VARIANT's null, the value is NULL.

Source: Parquet's VariantShredding.md; Spark's ``VariantGet.cast``, ``SparkShreddingUtils``.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import flags, from_numpy, numbers, present
from secateur.pruning.functions import casts
from secateur.pruning.functions.types import INSTANT, INTEGERS, LOCAL, is_decimal, is_numeric
from secateur.pruning.interval import RowValues
from secateur.pruning.predicate.bound import Apply, Field
from secateur.pruning.predicate.variant_paths import item_of
from secateur.pruning.rows.row_values import Rows
from secateur.pruning.variants import variant_bytes as stored

_WIDTHS = {stored.INT8: 1, stored.INT16: 2, stored.INT32: 4, stored.INT64: 8}
_DECIMALS = {stored.DECIMAL4: 4, stored.DECIMAL8: 8, stored.DECIMAL16: 16}
_MOST_DIGITS = 38
_SAME = (pa.string(), pa.binary(), pa.bool_(), pa.date32(), INSTANT, LOCAL, pa.float32())

Steps = tuple[str, ...]  # names of fields and numbers of items, as in :mod:`..predicate.variant_paths`


def values_at(variants: pa.StructArray, steps: Steps, type_: pa.DataType) -> RowValues:
    """Return the values at the end of `steps` into a VARIANT column as a file has it, read as a type."""
    values = _Values(type_, len(variants))
    if variants.type.get_field_index("metadata") < 0:
        values.give_up(np.ones(len(variants), bool))
        return values.result()
    _Levels(variants.field("metadata"), values).descend(variants, present(variants), steps)
    return values.result()


def nulls(count: int, type_: pa.DataType) -> RowValues:
    """Return the values at a path of rows that lack the column."""
    return RowValues(pa.nulls(count, type_), np.zeros(count, bool))


@dataclass
class _Values:
    """The values of rows, as far as they are known yet; rows that nothing is added for are NULL."""

    type: pa.DataType
    count: int
    parts: list[tuple[np.ndarray, pa.Array]] = field(default_factory=list)  # rows, and their values

    def __post_init__(self) -> None:
        self.unknown = np.zeros(self.count, bool)

    def give_up(self, rows: np.ndarray) -> None:
        """Make rows unknown: their numbers, or a mask."""
        self.unknown[rows] = True

    def add(self, rows: np.ndarray, values: pa.Array) -> None:
        """Add the values of some rows, of any type of VARIANT's scalars."""
        if not len(rows):
            return
        result = _read_as(values, self.type)
        if result is None:
            self.give_up(rows[present(values)])
            return
        self.give_up(rows[result.unknown])
        self.parts.append((rows, result.values))

    def result(self) -> RowValues:
        """Return the values of all rows."""
        if not self.parts:
            return RowValues(pa.nulls(self.count, self.type), self.unknown)
        place = np.zeros(self.count, np.int64)
        has_value, begin = np.zeros(self.count, bool), 0
        for rows, values in self.parts:
            place[rows], has_value[rows] = np.arange(begin, begin + len(values)), True
            begin += len(values)
        joined = pa.concat_arrays([values for _, values in self.parts])
        return RowValues(joined.take(pc.if_else(flags(has_value), from_numpy(place), None)), self.unknown)


def _read_as(values: pa.Array, type_: pa.DataType) -> RowValues | None:
    """Return scalars of one type as another, as ``variant_get`` casts them; None if they are known as none."""
    source = values.type
    nothing = np.zeros(len(values), bool)
    if source == type_:
        return RowValues(values, nothing)
    if type_ == pa.string() and (source in INTEGERS or source == pa.bool_()):
        return RowValues(values.cast(pa.string()), nothing)
    if not (is_numeric(source) and is_numeric(type_)) or type_ == pa.float32():
        return None
    function = casts.cast(source, type_, dt.UTC)
    if function is None:
        return None
    column = Field(("value",), source)
    rows = Rows(pa.RecordBatch.from_arrays([values], names=["value"]))
    return rows.values(Apply(function, (column,)))


@dataclass(frozen=True)
class _Levels:
    """Collects the values at a path, level by level."""

    metadata: pa.Array
    values: _Values

    def descend(self, group: pa.StructArray, live: np.ndarray, steps: Steps) -> None:
        """Collect the values at the end of `steps` below a group, on its live rows."""
        typed, value = _child(group, "typed_value"), _child(group, "value")
        has_typed = live & (np.zeros(len(live), bool) if typed is None else present(typed))
        has_value = live & (np.zeros(len(live), bool) if value is None else present(value))
        self._from_bytes(value, has_value & ~has_typed, steps)
        if typed is None or not has_typed.any():
            return
        if not steps:
            self._from_column(typed, has_typed, has_value)
        elif (item := item_of(steps[0])) is not None:
            self._descend_to_item(typed, has_typed, has_value, item, steps[1:])
        elif not pa.types.is_struct(typed.type):  # a scalar or an array, which has no field of that name
            self.values.give_up(has_typed & has_value)
        elif (below := _child(typed, steps[0])) is None:
            self._from_bytes(value, has_typed & has_value, steps)
        elif not pa.types.is_struct(below.type):
            self.values.give_up(has_typed)
        else:
            self._require_nowhere_else(value, has_typed & has_value, steps[0])
            self.descend(below, has_typed & present(below), steps[1:])

    def _descend_to_item(
        self, typed: pa.Array, has_typed: np.ndarray, has_value: np.ndarray, item: int, steps: Steps
    ) -> None:
        """Collect the values below an item; objects, some of which have bytes beside their columns, have no items."""
        if not pa.types.is_struct(typed.type):
            self.values.give_up(has_typed & has_value)
        if not (pa.types.is_list(typed.type) or pa.types.is_large_list(typed.type)):
            return
        if not pa.types.is_struct(typed.type.value_type):
            self.values.give_up(has_typed)
            return
        begin = numbers(typed.offsets.cast(pa.int64()), np.int64)
        has_item = has_typed & (item < np.diff(begin))
        places = pc.if_else(flags(has_item), from_numpy(begin[:-1] + item), None)
        self.descend(typed.values.take(places), has_item, steps)

    def _from_column(self, typed: pa.Array, has_typed: np.ndarray, has_value: np.ndarray) -> None:
        """Collect shredded values, which are nowhere else."""
        self.values.give_up(has_typed & has_value)
        rows = np.flatnonzero(has_typed)
        if typed.type in (*INTEGERS, *_SAME, pa.float64()) or is_decimal(typed.type):
            self.values.add(rows, typed.take(from_numpy(rows)))
        else:
            self.values.give_up(rows)

    def _require_nowhere_else(self, value: pa.Array | None, rows: np.ndarray, name: str) -> None:
        """Give up on rows whose bytes have a field that is foreseen in a column, which the specification forbids."""
        chosen = np.flatnonzero(rows)
        if value is not None and len(chosen):
            _, places = self._places(value, chosen, (name,))
            self.values.give_up(chosen[~places.lacking])

    def _places(self, value: pa.Array, rows: np.ndarray, steps: Steps) -> tuple[stored.Bytes, stored.ValuePlaces]:
        """Return the bytes of some rows, and the places of the values at the end of `steps` there."""
        chosen = from_numpy(rows)
        metadata = self.metadata.take(chosen)
        values = stored.Bytes.of(value.take(chosen))
        places = stored.roots(values)
        for step in steps:
            item = item_of(step)
            if item is None:
                places = stored.fields(values, places, *stored.ids_of(metadata, step))
            else:
                places = stored.items(values, places, item)
        return values, places

    def _from_bytes(self, value: pa.Array | None, live: np.ndarray, steps: Steps) -> None:
        """Collect values from the bytes of some rows."""
        rows = np.flatnonzero(live)
        if value is None or not len(rows):
            return
        values, places = self._places(value, rows, steps)
        heads, malformed = stored.scalars(values, places)
        self.values.give_up(rows[places.malformed | malformed])
        there = places.is_there & ~malformed
        left = there & (heads.kind != stored.NULL_VALUE)
        for chosen, array in _arrays(values, heads, there):
            left[chosen] = False
            if array is not None:
                self.values.add(rows[chosen], array)
            else:
                self.values.give_up(rows[chosen])
        self.values.give_up(rows[left])


def _child(group: pa.StructArray, name: str) -> pa.Array | None:
    """Return a child of a group, also below rows where the group is NULL; None if it has none, or two."""
    index = group.type.get_field_index(name)
    return None if index < 0 else group.field(index)


def _arrays(values: stored.Bytes, heads: stored.Scalars, there: np.ndarray) -> list[tuple[np.ndarray, pa.Array | None]]:
    """Return the scalars at places by their type: which rows have them, and their values, None where not known."""
    parts: list[tuple[np.ndarray, pa.Array | None]] = []

    def chosen(condition: np.ndarray) -> np.ndarray:
        return np.flatnonzero(there & condition)

    for kind, width in _WIDTHS.items():
        rows = chosen(heads.kind == kind)
        parts.append((rows, from_numpy(stored.words(values, heads.at[rows], width))))
    for kind, type_ in ((stored.DATE, pa.date32()), (stored.INSTANT_MICROS, INSTANT), (stored.LOCAL_MICROS, LOCAL)):
        rows = chosen(heads.kind == kind)
        word = stored.words(values, heads.at[rows], 4 if kind == stored.DATE else 8)
        parts.append((rows, from_numpy(word.astype(np.int32) if kind == stored.DATE else word).cast(type_)))
    for kind, number in ((stored.DOUBLE, np.float64), (stored.FLOAT, np.float32)):
        rows = chosen(heads.kind == kind)
        octets = values.data[heads.at[rows][:, None] + np.arange(np.dtype(number).itemsize)]
        parts.append((rows, pa.array(np.ascontiguousarray(octets).view(number)[:, 0])))
    rows = chosen((heads.kind == stored.TRUE_VALUE) | (heads.kind == stored.FALSE_VALUE))
    parts.append((rows, flags(heads.kind[rows] == stored.TRUE_VALUE)))
    for kind, width in _DECIMALS.items():
        rows = chosen(heads.kind == kind)
        scale = values.data[heads.at[rows]]
        for digits in np.unique(scale).tolist():
            of_scale = rows[scale == digits]
            parts.append((of_scale, _decimals(values, heads.at[of_scale] + 1, width, digits)))
    for type_, condition in (
        (pa.string(), (heads.basic == stored.SHORT_TEXT) | (heads.kind == stored.TEXT)),
        (pa.binary(), heads.kind == stored.BINARY),
    ):
        rows = chosen(condition)
        parts.append((rows, _texts(values, heads.at[rows], heads.length[rows], type_)))
    return parts


def _texts(values: stored.Bytes, at: np.ndarray, length: np.ndarray, type_: pa.DataType) -> pa.Array | None:
    try:
        return stored.texts(values, at, length, type_)
    except pa.ArrowInvalid:
        return None


def _decimals(values: stored.Bytes, at: np.ndarray, width: int, scale: int) -> pa.Array | None:
    """Return decimals of one scale; None if it is none of Spark's."""
    if scale > _MOST_DIGITS:
        return None
    low = stored.words(values, at, min(width, 8))
    high = stored.words(values, at + 8, 8) if width > 8 else low >> 63
    pairs = np.ascontiguousarray(np.stack([low, high], axis=1))
    return pa.Array.from_buffers(pa.decimal128(_MOST_DIGITS, scale), len(at), [None, pa.py_buffer(pairs)])
