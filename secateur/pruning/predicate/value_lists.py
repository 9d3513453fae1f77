"""Value lists for IN: short ones as literals, long ones as an Arrow array.

A list of 100,000 keys stays an array until it becomes column keys (:mod:`.binding.listed_keys`). It stands for the
literals that :func:`literal` makes of its values; iterating over it yields them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import InvalidPredicate
from secateur.pruning.functions.types import INSTANT, LOCAL
from secateur.pruning.predicate.calls import NULL
from secateur.pruning.predicate.constructors import integer
from secateur.pruning.predicate.nodes import Literal
from secateur.pruning.predicate.python_values import literal

FEW = 64  # at most this many values are kept as literals
_FIRST_DAY, _LAST_DAY = ((day - dt.date(1970, 1, 1)).days for day in (dt.date.min, dt.date.max))
_DAY = 86_400_000_000  # microseconds
_NAMES = {  # literal types for arrays of these types, the only ones in value lists; integers get theirs by size
    pa.null(): "null",
    pa.bool_(): "boolean",
    pa.float64(): "double",
    pa.large_string(): "string",
    pa.large_binary(): "binary",
    pa.date32(): "date",
    INSTANT: "timestamp",
    LOCAL: "timestamp_ntz",
}
_PLAIN = {  # Python types whose lists become an array of one type; datetimes have two
    int: pa.int64(),
    bool: pa.bool_(),
    float: pa.float64(),
    str: pa.large_string(),
    bytes: pa.large_binary(),
    dt.date: pa.date32(),
}


@dataclass(frozen=True, eq=False, repr=False)
class ValueList(Sequence[Literal]):
    """The literals of an array of int64, decimal128, or a type in `_NAMES`. Nulls are NULL."""

    array: pa.Array

    def __len__(self) -> int:
        return len(self.array)

    @property
    def name(self) -> str:
        """The type of the literals; for integers the widest."""
        type_ = self.array.type
        return "bigint" if type_ == pa.int64() else "decimal" if pa.types.is_decimal(type_) else _NAMES[type_]

    def __iter__(self) -> Iterator[Literal]:
        if self.array.type == pa.int64():
            return (NULL if value is None else integer(value) for value in self.array.to_pylist())
        name = self.name
        return (NULL if value is None else Literal(value, name) for value in self.array.to_pylist())

    @overload
    def __getitem__(self, index: int) -> Literal: ...
    @overload
    def __getitem__(self, index: slice) -> ValueList: ...
    def __getitem__(self, index: int | slice) -> Literal | ValueList:
        if isinstance(index, slice):
            return ValueList(self.array[index])
        (literal,) = ValueList(self.array[index : index + 1 or None])
        return literal

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, ValueList) and self.array.equals(other.array))

    def __hash__(self) -> int:
        return hash((str(self.array.type), len(self.array)))


def listed(values: Iterable[object]) -> Sequence[Literal]:
    """Convert values to literals: a numpy array, an Arrow array (chunked or not), or any Python values.

    numpy's datetime64 are dates if their unit is a day or more, else times without zone; NaT, Arrow's nulls and masked
    values are NULL; NaN is NaN. Raises TypeError for types without literals, InvalidPredicate for dates beyond the
    years 1 to 9999, for times finer than a microsecond and for strings that are not UTF-8.
    """
    match values:
        case pa.Array() | pa.ChunkedArray():
            literals = _of_arrow(values)
        case np.ndarray():
            literals = _of_numpy(values)
        case _:
            literals = _of_items(tuple(values))
    return tuple(literals) if len(literals) <= FEW else literals


def compact(literals: tuple[Literal, ...]) -> Sequence[Literal]:
    """Return the literals, as a value list if they are many integers or many strings given as Python values."""
    if len(literals) <= FEW:
        return literals
    types = {literal.type for literal in literals} - {"null"}
    if not types or not (types <= {"int", "bigint"} or types == {"string"}):
        return literals
    array = _plain_array([literal.value for literal in literals])
    suffixed = any(literal.type == "bigint" and integer(literal.value).type == "int" for literal in literals)  # type: ignore[arg-type]
    return literals if array is None or suffixed else ValueList(array)


def types_of(literals: Sequence[Literal]) -> set[str]:
    """Return the types of literals; for a value list without looking at its values."""
    if isinstance(literals, ValueList):
        return {literals.name}
    return {literal.type for literal in literals}


def present(literals: Sequence[Literal]) -> Sequence[Literal]:
    """Return the literals that are not NULL."""
    if isinstance(literals, ValueList):
        return ValueList(literals.array.drop_null()) if literals.array.null_count else literals
    return tuple(literal for literal in literals if literal.value is not None)


# ---- Python values ---------------------------------------------------------------------------------------------------


def _of_items(values: Sequence[object]) -> Sequence[Literal]:
    if len(values) <= FEW:
        return tuple(map(literal, values))
    types = set(map(type, values))
    if len(types) == 1 and issubclass(types.pop(), np.number | np.bool):
        return _of_numpy(np.array(values))
    array = _plain_array(values)
    return tuple(map(literal, values)) if array is None else ValueList(array)


def _plain_array(values: Sequence[object]) -> pa.Array | None:
    """Convert values of one type to an array; None if they have several, or if the array cannot hold them all."""
    types = set(map(type, values)) - {type(None)}
    if len(types) != 1:
        return None
    (python,) = types
    if python is dt.datetime:
        zoned = {value.tzinfo is not None for value in values if value is not None}  # type: ignore[attr-defined]
        type_ = None if len(zoned) > 1 else INSTANT if True in zoned else LOCAL
    else:
        type_ = _PLAIN.get(python)
    if type_ is None:
        return None
    try:
        array = pa.array(values, type_)
    except (ValueError, OverflowError):  # integers beyond 64 bits, text that is not UTF-8
        return None
    return array if _in_calendar(array) else None


# ---- Arrow -----------------------------------------------------------------------------------------------------------


def _of_arrow(values: pa.Array | pa.ChunkedArray) -> Sequence[Literal]:
    type_ = values.type
    if pa.types.is_dictionary(type_):
        return _of_arrow(values.cast(type_.value_type))
    target = _array_type(type_)
    if target is None:
        return _of_items(values.to_pylist())
    try:
        array = values.cast(target)
        array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
        if target == pa.large_string():
            array.validate(full=True)
    except pa.ArrowInvalid as error:
        if pa.types.is_uint64(type_):
            return _of_items(values.to_pylist())  # beyond 63 bits they are decimals
        raise InvalidPredicate(f"an array of {type_} holds a value without a literal in Spark SQL: {error}") from None
    return ValueList(_checked(array))


def _array_type(type_: pa.DataType) -> pa.DataType | None:
    """Return the value list type that holds an Arrow type's values; None if no type holds them all."""
    is_a = pa.types
    if is_a.is_integer(type_):
        return pa.int64()
    if is_a.is_floating(type_):
        return pa.float64()
    if is_a.is_string(type_) or is_a.is_large_string(type_) or is_a.is_string_view(type_):
        return pa.large_string()
    if is_a.is_binary(type_) or is_a.is_large_binary(type_) or is_a.is_binary_view(type_):
        return pa.large_binary()
    if is_a.is_fixed_size_binary(type_):
        return pa.large_binary()
    if is_a.is_date(type_):
        return pa.date32()
    if is_a.is_timestamp(type_):
        return LOCAL if type_.tz is None else INSTANT
    if is_a.is_null(type_) or is_a.is_boolean(type_) or is_a.is_decimal128(type_):
        return type_
    return None


def _checked(array: pa.Array) -> pa.Array:
    if not _in_calendar(array):
        raise InvalidPredicate("a list of values holds a date or time beyond the years 1 to 9999")
    return array


def _in_calendar(array: pa.Array) -> bool:
    """Return whether all days and times are within the range of Python's ``datetime`` and of SQL literals."""
    if pa.types.is_date32(array.type):
        first, last, numbers = _FIRST_DAY, _LAST_DAY, array.cast(pa.int32())
    elif pa.types.is_timestamp(array.type):
        first, last, numbers = _FIRST_DAY * _DAY, (_LAST_DAY + 1) * _DAY - 1, array.cast(pa.int64())
    else:
        return True
    ends = pc.min_max(numbers)
    return not ends["min"].is_valid or bool(ends["min"].as_py() >= first and ends["max"].as_py() <= last)


# ---- numpy -----------------------------------------------------------------------------------------------------------


def _of_numpy(values: np.ndarray) -> Sequence[Literal]:
    if values.ndim != 1:
        raise TypeError(f"a list of values has one dimension, not {values.ndim}")
    if isinstance(values, np.ma.MaskedArray):
        present = _of_numpy(values.compressed())
        return _with_null(present) if len(present) < len(values) else present
    kind = values.dtype.kind
    match kind:
        case "O":
            return _of_items(values.tolist())
        case "M":
            return _of_moments(values)
        case "U" | "S" | "T" | "b":
            return _of_texts(values)
        case "u" if values.max(initial=0) >= 2**63:
            return _of_items(values.tolist())
        case "i" | "u":
            return ValueList(pa.array(values.astype(np.int64)))  # a copy, which nobody changes
        case "f" if values.dtype.itemsize <= 8:
            return ValueList(pa.array(values.astype(np.float64)))
        case _:
            raise _refused(values)


def _refused(values: np.ndarray) -> TypeError:
    return TypeError(f"values of numpy's {values.dtype} are not literals of Spark SQL")


def _with_null(literals: Sequence[Literal]) -> Sequence[Literal]:
    if not isinstance(literals, ValueList):
        return (*literals, NULL)
    return ValueList(pa.concat_arrays([literals.array, pa.nulls(1, literals.array.type)]))


def _of_texts(values: np.ndarray) -> Sequence[Literal]:
    """Convert text, bytes and booleans."""
    try:
        return _of_arrow(pa.array(values))
    except (UnicodeEncodeError, pa.ArrowNotImplementedError):
        return _of_items(values.tolist())


def _of_moments(values: np.ndarray) -> Sequence[Literal]:
    unit, count = np.datetime_data(values.dtype)
    if unit == "generic" or count != 1:
        raise _refused(values)
    known = values[~np.isnat(values)]
    is_date = unit in ("Y", "M", "W", "D")
    if is_date and (np.abs(known.astype(np.int64)) > 10**9).any():  # in days they may need more than 64 bits
        raise InvalidPredicate("a list of values holds a date beyond the years 1 to 9999")
    days = known.astype("datetime64[D]").astype(np.int64)
    if len(days) and not _FIRST_DAY <= days.min() <= days.max() <= _LAST_DAY:
        raise InvalidPredicate("a list of values holds a date or time beyond the years 1 to 9999")
    if is_date:
        return ValueList(pa.array(values.astype("datetime64[D]")))
    micros = values.astype("datetime64[us]")
    if (known.astype("datetime64[us]").astype(values.dtype) != known).any():
        raise InvalidPredicate("a list of values holds a time finer than a microsecond")
    return ValueList(pa.array(micros))
