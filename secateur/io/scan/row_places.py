"""Columns that say where a row lies: `_file` and `_pos`, as Iceberg calls them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from secateur.errors import UnsupportedTable

FILE, POSITION, ROW_ID = "_file", "_pos", "_row_id"
PLACES = {
    FILE: pa.field(FILE, pa.string()),  # the path of the row's file, as in ``plan.files``
    POSITION: pa.field(POSITION, pa.int64()),  # of the row in its file, from 0, deleted rows counted
}


def place_called(name: str, schema: pa.Schema) -> pa.Field | None:
    """Return the column of places that a name asks for; None for a column of the table. Raises UnsupportedTable."""
    if any(name.lower() == column.lower() for column in schema.names):
        return None
    if name == ROW_ID:
        raise UnsupportedTable(f"{ROW_ID} is not read; {FILE} and {POSITION} say where a row lies")
    return PLACES.get(name)


def places_among(fields: Sequence[pa.Field], schema: pa.Schema) -> frozenset[str]:
    """Return the names of the fields that are columns of places and not of the table."""
    return frozenset(field.name for field in fields if field.name in PLACES and field.name not in schema.names)
