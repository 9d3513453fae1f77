"""Columns that say where a row lies, `_file` and `_pos`, or which row it is: `_row_id`, all as Iceberg calls them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from secateur.errors import UnsupportedTable
from secateur.io.tables.listing import Listing
from secateur.io.tables.row_ids import LAST_UPDATED, ROW_ID

FILE, POSITION = "_file", "_pos"
_NUMBERED = {field.name: field for field in (ROW_ID, LAST_UPDATED)}
PLACES = {
    FILE: pa.field(FILE, pa.string()),  # the path of the row's file, as in ``plan.files``
    POSITION: pa.field(POSITION, pa.int64()),  # of the row in its file, from 0, deleted rows counted
    **_NUMBERED,
}


def place_called(name: str, schema: pa.Schema, listing: Listing) -> pa.Field | None:
    """Return the column of places that a name asks for; None for a column of the table.

    Raises UnsupportedTable for row ids of a table that has none.
    """
    if any(name.lower() == column.lower() for column in schema.names):
        return None
    if name in _NUMBERED and not listing.has_row_ids:
        raise UnsupportedTable(
            f"the table has no {name}: only Iceberg tables of format version 3 number their rows. "
            f"{FILE} and {POSITION} say where a row lies"
        )
    return PLACES.get(name)


def places_among(fields: Sequence[pa.Field], schema: pa.Schema) -> frozenset[str]:
    """Return the names of the fields that are columns of places and not of the table."""
    return frozenset(field.name for field in fields if field.name in PLACES and field.name not in schema.names)
