"""Bind a semi join: to the set of keys of every column, and for several columns also to the set of their tuples.

The sets of keys prune like IN lists; the tuples decide about rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from secateur.pruning.bounds import rangeset
from secateur.pruning.bounds.key_tuples import key_tuples
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.predicate.binding.resolve import Binder, resolve
from secateur.pruning.predicate.bound import Field, Joined, Missing, Unsupported, Within
from secateur.pruning.predicate.joins.join_keys import JoinKeys, ManyKeys
from secateur.pruning.predicate.joins.key_casts import cast_keys
from secateur.pruning.predicate.nodes import And, IsNull, Or, Predicate, SemiJoin, Truth
from secateur.values.conversion import keys_of
from secateur.values.kinds import Kind, kind_of, ordered_kind, same_keys


def joined(join: SemiJoin, binder: Binder) -> Predicate:
    """Bind a semi join. Raises UnknownColumn, AmbiguousColumn, IncomparableLiteral."""
    fields = [resolve(column, binder) for column in join.columns]
    if isinstance(join.keys, ManyKeys):
        return _within_intervals(fields, join.keys, join)
    columns = cast_rows(fields, join.keys, binder)
    if not len(columns[0]):
        return Truth(False)
    sets = [
        _one(field, values, SemiJoin((column,), join.keys.column(i)))
        for i, (field, values, column) in enumerate(zip(fields, columns, join.columns, strict=True))
    ]
    if len(sets) == 1:
        return sets[0]
    keys = [(keys_of(values), values.is_null().to_numpy(zero_copy_only=False)) for values in columns]
    return And((*sets, Joined(tuple(fields), key_tuples(keys, null_safe=join.keys.null_safe), join)))


def cast_rows(fields: Sequence[Field], keys: JoinKeys, binder: Binder) -> list[pa.Array]:
    """Return the keys that some row may equal, with the types of their columns. Raises as :func:`joined`."""
    given = [_chunk(values) for values in keys.table.columns]
    cast = [cast_keys(field, values, binder) for field, values in zip(fields, given, strict=True)]
    usable = [
        pc.or_(values.is_valid(), before.is_null()) if keys.null_safe else values.is_valid()
        for values, before in zip(cast, given, strict=True)
    ]
    return [values.filter(reduce(pc.and_, usable)) for values in cast]


def _within_intervals(fields: Sequence[Field], keys: ManyKeys, join: SemiJoin) -> Predicate:
    """Return the condition of the keys' intervals; the rest is left to Spark, or all of it if NULL equals NULL."""
    known = [
        Within(field, _ranges(ends), join)
        for field, ends in zip(fields, keys.intervals, strict=True)
        if ends is not None and not keys.null_safe and are_alike(field.type, ends.schema.field(0).type)
    ]
    return And((*known, Unsupported(join, "there are too many of them", tuple(fields))))


def are_alike(a: pa.DataType, b: pa.DataType) -> bool:
    """Return whether a value of a column equals one of the join's other side exactly if they have the same key here."""
    if kind_of(a) is None or kind_of(b) is None:  # such as nanoseconds
        return False
    if pa.types.is_timestamp(a) and pa.types.is_timestamp(b):
        return (a.tz is None) == (b.tz is None)
    return same_keys(a, b)


def _ranges(ends: pa.Table) -> RangeSet:
    """Return the keys of a table of intervals (`first`, `last`), which ascend and do not overlap."""
    first, last = (_chunk(values) for values in ends.columns)
    match ordered_kind(first.type):
        case Kind.WORD:
            return rangeset.integer_spans(keys_of(first).words[0], keys_of(last).words[0])
        case Kind.WIDE:
            return rangeset.joined_spans(Kind.WIDE, _wide_keys(first), [key + 1 for key in _wide_keys(last)])
        case Kind.BYTES:
            binary = (values.cast(pa.large_binary()).to_pylist() for values in (first, last))
            starts, ends_of = binary
            return rangeset.joined_spans(Kind.BYTES, starts, [end + b"\0" for end in ends_of])


def _wide_keys(values: pa.Array) -> list[int]:
    high, low = (word.astype(object) for word in keys_of(values).words)
    keys: list[int] = (high << 64 | low).tolist()
    return keys


def _chunk(values: pa.ChunkedArray) -> pa.Array:
    """Return the values as one array."""
    return values.combine_chunks() if values.num_chunks != 1 else values.chunk(0)


def _one(field: Field, values: pa.Array, sql: SemiJoin) -> Predicate:
    """Return the condition on one column; a null among the values stands for NULL."""
    (column,) = sql.columns
    within = Within(field, _points(values.drop_null()), sql)
    return Or((within, Missing(field, IsNull(column)))) if values.null_count else within


def _points(values: pa.Array) -> RangeSet:
    match kind_of(values.type):
        case Kind.BYTES:
            return rangeset.byte_points(values.cast(pa.large_binary()))
        case Kind.WIDE:
            return rangeset.points(Kind.WIDE, _wide_keys(values))
        case _:
            return rangeset.integer_points(keys_of(values).words[0])
