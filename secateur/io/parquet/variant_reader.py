"""Read the values at a path into a VARIANT column of a Parquet file, in the types that the file has shredded or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import NotInFile
from secateur.io.parquet.arrow_types import VARIANT
from secateur.io.parquet.row_group_reader import RowGroupReader
from secateur.pruning.functions import types
from secateur.pruning.interval import RowValues
from secateur.pruning.predicate.variant_paths import column_of, is_variant, steps_of, type_name_of
from secateur.pruning.variants.variant_values import nulls, values_at


def values_at_path(rows: RowGroupReader[Any], row_group: int, path: tuple[str, ...]) -> Iterator[RowValues]:
    """Yield the values at a path into a VARIANT column on all rows of a row group, batch by batch.

    A file without the column has NULL there. Raises NotInFile if the column is no VARIANT, OldCalendar, StalePlan,
    InvalidParquet.
    """
    type_, column = types.named(type_name_of(path)), column_of(path)
    assert type_ is not None, "such a path is bound for known types alone"
    names = rows.names([pa.field(column[0], VARIANT)])
    if len(names) > 1:
        raise NotInFile(f"{rows.path} has several columns named {column[0]}")
    for batch in rows.batches((row_group,), names):
        variants = _below(batch.column(0), column[1:]) if names else None
        values = nulls(batch.num_rows, type_) if variants is None else values_at(variants, steps_of(path), type_)
        rows.require_todays_calendar([values.values])
        yield values


def _below(array: pa.Array, names: Sequence[str]) -> pa.StructArray | None:
    """Return a VARIANT below structs; None where the file lacks it. Raises NotInFile for another column."""
    for name in names:
        children = [child.name for child in array.type] if pa.types.is_struct(array.type) else []
        same = [child for child in children if child.lower() == name.lower()]
        if len(same) != 1:
            return None
        array = pc.struct_field(array, same[0])
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if not pa.types.is_struct(array.type) or not is_variant(array.type):
        raise NotInFile("the column is no VARIANT in this file")
    return array
