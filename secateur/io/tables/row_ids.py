"""Row ids of Iceberg tables: numbers that rows keep when they are written anew into other files.

A file written for the first time has no such column: its rows are numbered from the number that the table's metadata
gives to the first. Rows that a later write copies bring theirs along. Source: Iceberg's specification, "Row Lineage".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import from_numpy
from secateur.io.tables.field_ids import id_of, with_id

_ROW_ID, _SEQUENCE = 2147483540, 2147483539  # reserved field ids
ROW_ID = with_id(pa.field("_row_id", pa.int64()), _ROW_ID)
LAST_UPDATED = with_id(pa.field("_last_updated_sequence_number", pa.int64()), _SEQUENCE)


def asks_row_ids(fields: Sequence[pa.Field]) -> bool:
    """Return whether some of the fields are those of row ids."""
    return any(id_of(field) in (_ROW_ID, _SEQUENCE) for field in fields)


@dataclass(frozen=True)
class RowIds:
    """What the table says about the rows of one file."""

    first: int | None  # the id of the file's first row; None if its rows have no ids
    sequence: int | None  # of the commit that added the rows

    def completed(self, batch: pa.RecordBatch, fields: Sequence[pa.Field], positions: np.ndarray) -> pa.RecordBatch:
        """Return a batch with values where the file has none: `positions` are those of its rows in the file."""
        arrays = [
            self._completed(id_of(field), column, positions)
            for field, column in zip(fields, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)

    def _completed(self, field_id: int | None, stored: pa.Array, positions: np.ndarray) -> pa.Array:
        if field_id not in (_ROW_ID, _SEQUENCE):
            return stored
        if self.first is None:
            return pa.nulls(len(stored), pa.int64())
        if not stored.null_count:
            return stored
        inherited = from_numpy(self.first + positions) if field_id == _ROW_ID else pa.scalar(self.sequence, pa.int64())
        return pc.coalesce(stored, inherited)
