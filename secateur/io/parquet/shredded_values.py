"""Zone maps of the values at a path into VARIANT, from the columns into which a file has shredded them.

A VARIANT column is a group of `metadata`, `value` and `typed_value`. What its shredding schema has at a path lies in
``typed_value.<name>.typed_value...``; what does not fit it lies as bytes in a `value`, at any level on the way. So
bounds of the innermost `typed_value` bound the values at the path only in row groups where

- the `value` beside it is NULL in every row, else the value may be there with another type, or as VARIANT's null; and
- no `value` further up holds an object that has the path. The specification forbids that: an object has a
  `typed_value`, and its fields that are in the shredding schema are nowhere else. It is relied upon in files that Spark
  wrote. In others every `value` on the way is NULL in every row, or the innermost `typed_value` is in none.

Then a row without a value at the path has NULL, as one has where the VARIANT is NULL, is no object, or lacks the path.
The type that is asked for may be another than the stored one: numbers are cast as ``variant_get`` casts, and a row
group in which a cast may fail is unknown. Source: Parquet's VariantShredding.md; Spark's ``SparkShreddingUtils``,
``VariantShreddingWriter``, ``VariantGet``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from secateur.index.zones import zonemap
from secateur.index.zones.zonemap import ZoneMap
from secateur.io.parquet.footer import Footer, Leaf, chunk_bounds
from secateur.pruning.bounds.zones import unbounded
from secateur.pruning.functions import casts
from secateur.pruning.functions.types import INSTANT, INTEGERS, LOCAL, is_decimal, is_numeric
from secateur.pruning.interval import applied, of_zones
from secateur.pruning.predicate.variant_paths import item_of
from secateur.values.combination import choose
from secateur.values.kinds import is_float, ordered_kind

_SHREDDED = (  # types of VARIANT's values, besides decimals, that Spark reads from columns of their own
    *INTEGERS,
    *(pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.binary(), pa.date32()),
    *(INSTANT, LOCAL),
)
_SPARK, _PARQUET_JAVA = b"org.apache.spark.version", "parquet-mr"

Path = tuple[str, ...]


def shredded_zone_map(
    footer: Footer, column: Path, steps: Path, type_: pa.DataType, zone_map_of: Callable[[Leaf], ZoneMap]
) -> ZoneMap:
    """Return the zone map of the values at the end of `steps` into a VARIANT column, read as a type, by row group.

    Of items of arrays nothing is known. `column` is spelled as in the file. `zone_map_of` gives the zone map of a leaf
    in its own type.
    """
    unknown = zonemap.unknown(ordered_kind(type_), len(footer.row_count))
    leaves = {leaf.path: leaf for leaf in footer.leaves}
    levels = [column]
    if any(item_of(step) is not None for step in steps):
        return unknown
    for name in steps:
        levels.append((*levels[-1], "typed_value", name))
    typed = leaves.get((*levels[-1], "typed_value"))
    if typed is None or typed.int96 or not (typed.type in _SHREDDED or is_decimal(typed.type)):
        return unknown
    stored = zone_map_of(typed)
    is_settled = _all_shredded(footer, leaves, levels[-1])
    if not (_SPARK in (footer.head.metadata or {}) and footer.created_by.startswith(_PARQUET_JAVA)):
        further_up = [_all_shredded(footer, leaves, level) for level in levels[:-1]]
        is_settled &= np.logical_and.reduce([np.ones_like(is_settled), *further_up]) | (stored.null_count == 0)
    values = _cast(stored, typed.type, type_, footer.row_count)
    return unknown if values is None else _where(is_settled, values)


def _all_shredded(footer: Footer, leaves: Mapping[Path, Leaf], level: Path) -> np.ndarray:
    """Return the row groups in which `value` at a level is NULL in every row: bool of shape (n,)."""
    unshredded = leaves.get((*level, "value"))
    if unshredded is None:
        return np.ones(len(footer.row_count), bool)
    return np.asarray(chunk_bounds(footer, unshredded).null_count == footer.row_count)


def _cast(zone_map: ZoneMap, source: pa.DataType, target: pa.DataType, row_count: np.ndarray) -> ZoneMap | None:
    """Return a zone map of values cast as ``variant_get`` does; unknown where a cast may fail. None: no rule."""
    if source == target:
        return zone_map
    if not (is_numeric(source) and is_numeric(target)) or target == pa.float32():
        return None
    function = casts.cast(source, target, dt.UTC)
    if function is None:
        return None
    interval = applied(function, [of_zones(zone_map.zones(row_count), source, len(row_count))])
    nan_count = zone_map.nan_count if is_float(target) and is_float(source) else np.zeros_like(zone_map.nan_count)
    values = ZoneMap(interval.lower, interval.upper, zone_map.null_count, nan_count, top=interval.top)
    return _where(~interval.fails, values)


def _where(known: np.ndarray, zone_map: ZoneMap) -> ZoneMap:
    """Keep the zone maps of the `known` units; make the others unknown."""
    least, greatest = unbounded(zone_map.lower.kind, len(zone_map))
    return replace(
        zone_map,
        lower=choose(known, zone_map.lower, least),
        upper=choose(known, zone_map.upper, greatest),
        null_count=np.where(known, zone_map.null_count, -1),
        nan_count=np.where(known, zone_map.nan_count, -1),
        top=None if zone_map.top is None else np.where(known, zone_map.top, greatest.words[0]),
    )
