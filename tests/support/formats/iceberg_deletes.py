"""Write position delete files for tests: PyIceberg reads them, but does not write them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
)
from pyiceberg.table import Table, Transaction
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _FastAppendFiles


def delete_positions(table: Table, path: str, positions: Sequence[int]) -> None:
    """Commit a delete file that takes away some rows of a data file."""
    with table.transaction() as transaction:
        _DeletePositions(transaction, path, positions).commit()


class DeleteManifestWriter(ManifestWriterV2):
    """Writes a manifest of delete files."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class _DeletePositions(_FastAppendFiles):
    """Adds a manifest of one position delete file to those that there are."""

    def __init__(self, transaction: Transaction, path: str, positions: Sequence[int]) -> None:
        super().__init__(operation=Operation.OVERWRITE, transaction=transaction, io=transaction._table.io)
        self.path, self.positions = path, positions

    def _existing_manifests(self) -> list[ManifestFile]:
        return [*super()._existing_manifests(), self._delete_manifest()]

    def _delete_manifest(self) -> ManifestFile:
        metadata = self._transaction.table_metadata
        entry = self._data_entry()
        written = f"{self.path}.{self.snapshot_id}.deletes.parquet"
        rows = pa.table({"file_path": [self.path] * len(self.positions), "pos": pa.array(self.positions, pa.int64())})
        pq.write_table(rows, written.removeprefix("file://"))
        file = DataFile.from_args(
            content=DataFileContent.POSITION_DELETES,
            file_path=written,
            file_format=FileFormat.PARQUET,
            partition=entry.data_file.partition,
            record_count=len(self.positions),
            file_size_in_bytes=len(self._io.new_input(written)),
            column_sizes={},
            lower_bounds={2147483546: self.path.encode()},
            upper_bounds={2147483546: self.path.encode()},
        )
        output = self._io.new_output(f"{metadata.location}/metadata/{self.snapshot_id}-deletes.avro")
        spec = metadata.specs()[entry.data_file.spec_id]
        with DeleteManifestWriter(spec, metadata.schema(), output, self.snapshot_id, "deflate") as writer:
            added = ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED, snapshot_id=self.snapshot_id, data_file=file
            )
            writer.add_entry(added)
        return writer.to_manifest_file()

    def _data_entry(self) -> ManifestEntry:
        """The entry of the data file."""
        snapshot = self._transaction.table_metadata.current_snapshot()
        assert snapshot is not None
        entries = (
            entry for manifest in snapshot.manifests(self._io) for entry in manifest.fetch_manifest_entry(self._io)
        )
        return next(entry for entry in entries if entry.data_file.file_path == self.path)
