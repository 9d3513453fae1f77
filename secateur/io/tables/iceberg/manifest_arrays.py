"""The files of an Iceberg snapshot as arrays, per manifest and joined by kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from secateur.arrays import flags
from secateur.ragged import offsets_of

DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2  # the content of a file

FILES = pa.schema(
    [
        pa.field("content", pa.int8()),
        pa.field("path", pa.string()),
        pa.field("format", pa.string()),
        pa.field("record_count", pa.int64()),
        pa.field("size", pa.int64()),
        pa.field("key_metadata", pa.binary()),
        pa.field("split_offsets", pa.list_(pa.int64())),
        pa.field("equality_ids", pa.list_(pa.int32())),
        pa.field("sort_order_id", pa.int32()),
        pa.field("first_row_id", pa.int64()),
        pa.field("referenced", pa.string()),  # the data file of a deletion vector
        pa.field("content_offset", pa.int64()),
        pa.field("content_size", pa.int64()),
        pa.field("snapshot_id", pa.int64()),
        pa.field("sequence", pa.int64()),
        pa.field("spec", pa.int32()),
    ]
)


@dataclass(frozen=True)
class ByField:
    """Sparse values by file and field: file `row[i]` has `value[i]` for field `id[i]`."""

    row: np.ndarray  # int32, ascending
    id: np.ndarray  # int32
    value: pa.Array

    def of(self, field_id: int) -> tuple[np.ndarray, pa.Array]:
        """Return the files for which a field's value is known, and the values."""
        chosen = np.flatnonzero(self.id == field_id)
        return self.row[chosen], self.value.take(pa.array(chosen))

    def where(self, kept: np.ndarray) -> ByField:
        """Return the values of the kept files, numbered anew; `kept` is bool of shape (n_files,)."""
        chosen, number = np.flatnonzero(kept[self.row]), np.cumsum(kept, dtype=np.int32) - 1
        return ByField(number[self.row[chosen]].astype(np.int32), self.id[chosen], self.value.take(pa.array(chosen)))

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.row.nbytes + self.id.nbytes + int(self.value.nbytes)


@dataclass(frozen=True)
class Manifest:
    """The live files of one manifest, in manifest order."""

    files: pa.RecordBatch  # of FILES
    partition: Mapping[int, pa.Array]  # by partition field id; days, months and times as numbers
    null_counts: ByField
    nan_counts: ByField
    lower: ByField  # single-value bytes
    upper: ByField

    def where(self, kept: np.ndarray) -> Manifest:
        """Return the kept files only; `kept` is bool of shape (n_files,)."""
        if kept.all():
            return self
        mask = flags(kept)
        return Manifest(
            self.files.filter(mask),
            {field_id: values.filter(mask) for field_id, values in self.partition.items()},
            self.null_counts.where(kept),
            self.nan_counts.where(kept),
            self.lower.where(kept),
            self.upper.where(kept),
        )

    @property
    def has_doubles(self) -> bool:
        """Whether files are partitioned by a double."""
        return any(values.type == pa.float64() for values in self.partition.values())

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        parts = (self.files, *self.partition.values(), self.null_counts, self.nan_counts, self.lower, self.upper)
        return sum(int(part.nbytes) for part in parts)


@dataclass(frozen=True)
class Entries:
    """The files of several manifests, in order."""

    manifests: Sequence[Manifest]

    def __len__(self) -> int:
        return int(self._begin[-1])

    @cached_property
    def _begin(self) -> np.ndarray:
        return offsets_of(np.array([manifest.files.num_rows for manifest in self.manifests], np.int64))

    def where(self, kept: np.ndarray) -> Entries:
        """Return the kept files only; `kept` is bool of shape (n_files,)."""
        bounds = zip(self._begin[:-1].tolist(), self._begin[1:].tolist(), strict=True)
        return Entries([manifest.where(kept[i:j]) for manifest, (i, j) in zip(self.manifests, bounds, strict=True)])

    @cached_property
    def files(self) -> pa.RecordBatch:
        """One row of FILES per file."""
        table = pa.Table.from_batches([manifest.files for manifest in self.manifests], FILES).combine_chunks()
        return table.to_batches()[0] if len(table) else pa.RecordBatch.from_pylist([], FILES)

    def values(self, name: str, field_id: int) -> tuple[np.ndarray, pa.Array]:
        """Return the files, ascending, with a value (``null_counts``, ``lower``) for a field, and the values."""
        rows, values = [np.zeros(0, np.int64)], []
        for begin, manifest in zip(self._begin.tolist(), self.manifests, strict=False):
            entries, of_manifest = getattr(manifest, name).of(field_id)
            rows.append(begin + entries.astype(np.int64))
            values.append(of_manifest)
        return np.concatenate(rows), pa.concat_arrays(values) if values else pa.nulls(0)

    @cached_property
    def spec(self) -> np.ndarray:
        """The partition spec of every file."""
        spec: np.ndarray = self.files.column("spec").to_numpy()
        return spec

    def partition(self, spec: int, field_id: int) -> tuple[np.ndarray, pa.Array]:
        """Return the files of a partition spec, ascending, and their values of a partition field."""
        rows, values = [np.zeros(0, np.int64)], []
        for begin, manifest in zip(self._begin.tolist(), self.manifests, strict=False):
            n = manifest.files.num_rows
            if n and self.spec[begin] == spec and field_id in manifest.partition:
                rows.append(np.arange(begin, begin + n))
                values.append(manifest.partition[field_id])
        return np.concatenate(rows), _joined(values)


def _joined(values: Sequence[pa.Array]) -> pa.Array:
    """Concatenate arrays of one column; their types differ if the column was widened between manifests."""
    if not values:
        return pa.nulls(0)
    if len({array.type for array in values}) == 1:
        return pa.concat_arrays(values)
    tables = [pa.table({"": array}) for array in values]
    return pa.concat_tables(tables, promote_options="permissive")[""].combine_chunks()
