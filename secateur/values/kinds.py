"""Which types have an order, and how the keys of their values are laid out in words."""

from __future__ import annotations

import enum

import pyarrow as pa


class Kind(enum.Enum):
    """How the keys of a type are laid out in words."""

    WORD = "word"  # one int64
    WIDE = "wide"  # int64 high, uint64 low
    BYTES = "bytes"  # big-endian uint64 words of the zero-padded bytes, then the length


_KINDS = {
    **{type_.id: Kind.BYTES for type_ in (pa.string(), pa.binary())},
    **{type_.id: Kind.WORD for type_ in (pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.date32())},
    **{type_.id: Kind.WORD for type_ in (pa.float32(), pa.float64())},
}


def kind_of(type_: pa.DataType) -> Kind | None:
    """Return the kind of a column type's keys, or None for a type without a known order."""
    if pa.types.is_decimal128(type_):
        return Kind.WORD if type_.precision <= 18 else Kind.WIDE
    if pa.types.is_timestamp(type_):
        return Kind.WORD if type_.unit == "us" else None
    return _KINDS.get(type_.id)


def ordered_kind(type_: pa.DataType) -> Kind:
    """Return the kind of the keys of an ordered type."""
    kind = kind_of(type_)
    assert kind is not None, f"{type_} is not ordered"
    return kind


def is_float(type_: pa.DataType) -> bool:
    """Whether values of the type may be NaN."""
    return bool(pa.types.is_floating(type_))


def same_keys(a: pa.DataType, b: pa.DataType) -> bool:
    """Whether equal values of both types have equal keys, so that statistics of one serve the other.

    True along Spark's widenings int -> long, float -> double and decimal precision at one scale and kind.
    """
    if a == b:
        return True
    if pa.types.is_decimal128(a) and pa.types.is_decimal128(b):
        return a.scale == b.scale and kind_of(a) is kind_of(b)
    return bool(
        (pa.types.is_signed_integer(a) and pa.types.is_signed_integer(b))
        or (a in (pa.float32(), pa.float64()) and b in (pa.float32(), pa.float64()))
    )


COLLATED = pa.large_string()  # stands for collated strings, which do not order by their bytes
