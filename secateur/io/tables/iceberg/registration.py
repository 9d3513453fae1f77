"""Name the location of an index in the table's properties, so that every reader of the table finds it."""

from __future__ import annotations

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from secateur.errors import IndexNotWritable
from secateur.io.storage.redaction import explained

PROPERTY = "secateur.index-location"


def register(table: Table, location: str) -> None:
    """Set the property to the location of an index. Raises IndexNotWritable."""
    try:
        with table.transaction() as transaction:
            transaction.set_properties({PROPERTY: location})
    except (OSError, ValueError, NotImplementedError, CommitFailedException) as error:
        what = f"cannot register the index in the metadata of {table.location()}"
        raise IndexNotWritable(f"{what}: {explained(error)}") from None
