"""The metadata of an Iceberg table, commit by commit, without a catalog.

Cases need what PyIceberg's own commits do not write: files with any metrics or none, delete files of every kind, format
version 3, manifests rewritten in odd ways. So manifests are written entry by entry here.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.io import OutputFile, load_file_io
from pyiceberg.manifest import (
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestListWriterV2,
    ManifestWriterV2,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadataV1, TableMetadataV2, TableMetadataV3, new_table_metadata
from pyiceberg.table.refs import SnapshotRef
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.typedef import IcebergBaseModel

FIRST_SNAPSHOT = 1000
FIRST_ROW_ID = 15  # where a manifest of version 3 has the number of its first row


class _ManifestWriter(ManifestWriterV2):
    """A manifest of data files or of delete files, in version 2 or 3."""

    kind = ManifestContent.DATA
    number: Any = 2

    def content(self) -> ManifestContent:
        return self.kind

    @property
    def version(self) -> Any:
        return self.number

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes" if self.kind == ManifestContent.DELETES else "data"}

    def new_writer(self) -> AvroOutputFile[ManifestEntry]:
        schema = self._with_partition(self.version)
        return AvroOutputFile(self._output_file, schema, "manifest_entry", schema, self._meta)


class _ListWriter(ManifestListWriterV2):
    """A list of manifests, in version 2 or 3."""

    def __enter__(self) -> _ListWriter:
        schema = MANIFEST_LIST_FILE_SCHEMAS[self._format_version]
        self._writer = AvroOutputFile(self._output_file, schema, "manifest_file", schema, self._meta)
        self._writer.__enter__()
        return self


@dataclass(frozen=True)
class Entry:
    """A live file, and the commit that added it."""

    file: DataFile
    sequence: int
    snapshot: int


@dataclass(frozen=True)
class Manifest:
    """A manifest as it was written, and its live entries."""

    file: ManifestFile
    entries: tuple[Entry, ...]


@dataclass
class IcebergLog:
    """The metadata of a table, and the folder where it is written."""

    location: Path
    metadata: TableMetadataV2 | TableMetadataV3
    manifests: list[Manifest] = field(default_factory=list)
    _past: dict[int, list[Manifest]] = field(default_factory=dict)
    _versions: int = 0

    @staticmethod
    def begin(location: Path, schema: Schema, spec: PartitionSpec, version: int) -> IcebergLog:
        properties = {"format-version": str(version)}
        metadata = new_table_metadata(schema, spec, UNSORTED_SORT_ORDER, f"file://{location}", properties)
        assert not isinstance(metadata, TableMetadataV1)
        return IcebergLog(location, metadata)

    @property
    def version(self) -> int:
        return self.metadata.format_version

    @property
    def file(self) -> Path:
        """The current metadata file."""
        return self.location / "metadata" / f"v{self._versions}.metadata.json"

    @property
    def snapshot_id(self) -> int:
        assert self.metadata.current_snapshot_id is not None
        return self.metadata.current_snapshot_id

    def entries(self, *contents: DataFileContent) -> list[Entry]:
        """The live files of some kinds."""
        return [entry for manifest in self.manifests for entry in manifest.entries if entry.file.content in contents]

    # ---- commits

    def commit(self, added: Sequence[DataFile], removed: Collection[str] = ()) -> None:
        """Commits a snapshot that adds files and, by their paths, removes others."""
        number = FIRST_SNAPSHOT + len(self._past) + 1
        sequence = self.metadata.last_sequence_number + 1
        manifests = []
        for manifest in self.manifests:
            gone = [entry for entry in manifest.entries if entry.file.file_path in removed]
            kept = [entry for entry in manifest.entries if entry.file.file_path not in removed]
            manifests.append(self._written(number, sequence, kept, gone) if gone else manifest)
        for kind in (True, False):
            files = [file for file in added if (file.content == DataFileContent.DATA) == kind]
            if files:
                entries = [Entry(file, sequence, number) for file in files]
                manifests.append(self._written(number, sequence, entries, new=True))
        self._publish(number, sequence, manifests)

    def regroup(self, group: Callable[[list[Entry]], list[list[Entry]]]) -> None:
        """Commits a snapshot of the same files in other manifests."""
        number = FIRST_SNAPSHOT + len(self._past) + 1
        sequence = self.metadata.last_sequence_number + 1
        deletes = DataFileContent.POSITION_DELETES, DataFileContent.EQUALITY_DELETES
        kinds = [self.entries(DataFileContent.DATA), self.entries(*deletes)]
        groups = [members for entries in kinds for members in group(entries) if members]
        self._publish(number, sequence, [self._written(number, sequence, members) for members in groups])

    def roll_back(self, snapshot: int) -> None:
        """Makes an earlier snapshot the current one."""
        self.manifests = self._past[snapshot]
        self.change(current_snapshot_id=snapshot, refs={"main": _branch(snapshot)})

    def evolve(self, schema: Schema) -> None:
        """Sets another schema, whose fields keep their ids."""
        number = self.metadata.current_schema_id + 1
        schema = Schema(*schema.fields, schema_id=number)
        last = max(self.metadata.last_column_id, schema.highest_field_id)
        self.change(schemas=[*self.metadata.schemas, schema], current_schema_id=number, last_column_id=last)

    def change(self, **what: Any) -> None:
        """Writes the next metadata file, and names it in the directory's hint."""
        self.metadata = self.metadata.model_copy(update=what)
        self._versions += 1
        _put(self.file, IcebergBaseModel.model_dump_json(self.metadata))  # PyIceberg's writer lacks version 3
        _put(self.file.with_name("version-hint.text"), str(self._versions))

    def output(self, path: str) -> OutputFile:
        Path(path.removeprefix("file://")).parent.mkdir(parents=True, exist_ok=True)
        return load_file_io().new_output(path if path.startswith("file://") else f"file://{path}")

    # ---- manifests

    def _written(
        self, number: int, sequence: int, live: Sequence[Entry], gone: Sequence[Entry] = (), *, new: bool = False
    ) -> Manifest:
        """Writes a manifest of files added by this commit or by earlier ones, and of files that this one removes."""
        spec, schema = self.metadata.specs()[self.metadata.default_spec_id], self.metadata.schema()
        output = self.output(f"file://{self.location}/metadata/{uuid.uuid4()}-m.avro")
        writer = _ManifestWriter(spec, schema, output, number, "null")
        writer.number = self.version
        some = next(iter([*live, *gone]))
        writer.kind = ManifestContent.DATA if some.file.content == DataFileContent.DATA else ManifestContent.DELETES
        status = ManifestEntryStatus.ADDED if new else ManifestEntryStatus.EXISTING
        with writer:
            for entry in live:
                sequences = (None, None) if new else (entry.sequence, entry.sequence)
                writer.add_entry(_entry(status, entry.snapshot, sequences, entry.file))
            for entry in gone:
                sequences = (entry.sequence, entry.sequence)
                writer.add_entry(_entry(ManifestEntryStatus.DELETED, number, sequences, entry.file))
        file = writer.to_manifest_file()
        file.sequence_number = sequence
        file.min_sequence_number = min([entry.sequence for entry in live], default=sequence)
        if self.version == 3:
            file = ManifestFile(*file._data, None)
        return Manifest(file, tuple(live))

    def _publish(self, number: int, sequence: int, manifests: Sequence[Manifest]) -> None:
        parent = self.metadata.current_snapshot_id
        path = f"file://{self.location}/metadata/snap-{number}.avro"
        writer = _ListWriter(self.output(path), number, parent, sequence, "null")
        lineage: dict[str, Any] = {}
        if self.version == 3:
            writer._format_version = 3
            writer._meta["format-version"] = "3"
            lineage = self._numbered(number, [manifest.file for manifest in manifests])
        with writer:
            writer.add_manifests([manifest.file for manifest in manifests])
        arguments: dict[str, Any] = {
            "snapshot_id": number,
            "parent_snapshot_id": parent,
            "sequence_number": sequence,
            "manifest_list": path,
            "schema_id": self.metadata.current_schema_id,
            **lineage,
        }
        snapshot = Snapshot(summary=Summary(Operation.OVERWRITE), **arguments)
        self.manifests = [manifest for manifest in manifests if manifest.entries]
        self._past[number] = self.manifests
        more = {"next_row_id": lineage["first_row_id"] + lineage["added_rows"]} if lineage else {}
        self.change(
            snapshots=[*self.metadata.snapshots, snapshot],
            current_snapshot_id=number,
            last_sequence_number=sequence,
            last_updated_ms=snapshot.timestamp_ms,
            refs={"main": _branch(number)},
            **more,
        )

    def _numbered(self, number: int, manifests: Sequence[ManifestFile]) -> dict[str, int]:
        """Numbers the first rows of new manifests of data files; returns the fields of the snapshot for that."""
        assert isinstance(self.metadata, TableMetadataV3)
        first = rows = self.metadata.next_row_id or 0
        for manifest in manifests:
            if (
                manifest.content == ManifestContent.DATA
                and manifest.added_snapshot_id == number
                and manifest[FIRST_ROW_ID] is None
            ):
                manifest[FIRST_ROW_ID] = rows
                rows += (manifest.added_rows_count or 0) + (manifest.existing_rows_count or 0)
        return {"first_row_id": first, "added_rows": rows - first}


def _put(path: Path, text: str) -> None:
    """Writes a file that is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}")
    aside.write_text(text)
    aside.replace(path)


def _branch(snapshot: int) -> SnapshotRef:
    arguments: dict[str, Any] = {"snapshot_id": snapshot, "snapshot_ref_type": "branch"}
    return SnapshotRef(**arguments)


def _entry(
    status: ManifestEntryStatus, snapshot: int, sequences: tuple[int | None, int | None], file: DataFile
) -> ManifestEntry:
    return ManifestEntry.from_args(
        status=status,
        snapshot_id=snapshot,
        sequence_number=sequences[0],
        file_sequence_number=sequences[1],
        data_file=file,
    )
