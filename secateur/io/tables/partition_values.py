"""Convert partition values, which a Delta log or a catalog has as text, to the types of their columns.

Source: Delta's protocol, "Partition Value Serialization"; Spark's ``CatalogTablePartition.toRow``.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import UnsupportedTable
from secateur.io.tables.partitions import Partitions
from secateur.pruning.predicate.binding.temporal import instant_micros

_ZONED = re.compile(r".*([zZ]|[+-]\d{2}:\d{2})")


def typed_partitions(values: pa.StructArray, fields: tuple[pa.Field, ...], zone: dt.tzinfo) -> Partitions:
    """Return the partition values of files; timestamps without a zone are read in `zone`. Raises UnsupportedTable."""
    columns = [_typed(values.field(i), field, zone) for i, field in enumerate(fields)]
    return Partitions(fields, tuple(columns))


def depends_on_zone(fields: tuple[pa.Field, ...]) -> bool:
    """Return whether the values of some column depend on the zone in which they are read."""
    return any(pa.types.is_timestamp(field.type) and field.type.tz is not None for field in fields)


def _typed(texts: pa.Array, field: pa.Field, zone: dt.tzinfo) -> pa.Array:
    """Convert every distinct text once; an empty one is NULL."""
    encoded = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts).dictionary_encode()
    distinct = encoded.dictionary
    try:
        return _converted(distinct, field.type, zone).take(encoded.indices)
    except (pa.ArrowException, ValueError) as error:
        raise UnsupportedTable(f"a partition value of {field.name} is no {field.type}: {error}") from None


def _converted(texts: pa.Array, type_: pa.DataType, zone: dt.tzinfo) -> pa.Array:
    if pa.types.is_timestamp(type_) and type_.tz is not None:
        return _map(texts, type_, lambda text: _instant(text, zone))
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return texts.cast(type_)
    if pa.types.is_null(type_):
        return pa.nulls(len(texts))
    return texts.cast(type_)


def _map(texts: pa.Array, type_: pa.DataType, convert: Callable[[str], int]) -> pa.Array:
    return pa.array([convert(text) for text in texts.to_pylist()], pa.int64()).cast(type_)


def _instant(text: str, zone: dt.tzinfo) -> int:
    """Return the microseconds since the epoch of a time that names its zone, or is read in one."""
    if _ZONED.fullmatch(text):
        return int(pa.array([text]).cast(pa.timestamp("us", "UTC"))[0].value)
    return instant_micros(dt.datetime.fromisoformat(text), zone)
