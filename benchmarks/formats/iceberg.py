"""The statistics of the synthetic table as an Iceberg table: a data file for every block, registered and never written.

pyiceberg writes the manifests, their list and the metadata, and plans from them. The table is opened by its metadata
file: finding that in a catalog is not part of planning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from pyiceberg.conversions import to_bytes
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import StaticTable
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate, update_table_metadata
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField

from benchmarks.planning.synthetic import ROWS, Bounds
from benchmarks.planning.synthetic_table import BLOCK_BYTES

MANIFEST_FILES = 12_500  # data files per manifest: with three columns some megabytes, as Iceberg's writers make them
SNAPSHOT = 1
METADATA = "table.metadata.json"


def write_iceberg(directory: Path, bounds: Mapping[str, Bounds], location: Path) -> None:
    """Write a table's metadata into `directory`, which will be moved to `location`."""
    io = PyArrowFileIO()
    schema = Schema(*(NestedField(i, name, LongType(), required=True) for i, name in enumerate(bounds, 1)))
    n = len(next(iter(bounds.values()))[0])
    manifests = []
    for start in range(0, n, MANIFEST_FILES):
        name = f"{start:09d}.avro"
        output = io.new_output(str(directory / name))
        with write_manifest(2, UNPARTITIONED_PARTITION_SPEC, schema, output, SNAPSHOT, "deflate") as writer:
            for data_file in _data_files(bounds, start, min(start + MANIFEST_FILES, n)):
                writer.add_entry(
                    ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=SNAPSHOT, data_file=data_file)
                )
        manifests.append(_moved(writer.to_manifest_file(), location / name))
    snapshot = Snapshot.model_validate(
        {
            "snapshot-id": SNAPSHOT,
            "sequence-number": 1,
            "manifest-list": str(location / "snapshot.avro"),
            "summary": Summary(Operation.APPEND),
            "schema-id": 0,
        }
    )
    output = io.new_output(str(directory / "snapshot.avro"))
    with write_manifest_list(2, output, SNAPSHOT, None, 1, "deflate") as list_writer:
        list_writer.add_manifests(manifests)
    empty = new_table_metadata(schema, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, str(location))
    branch = SetSnapshotRefUpdate.model_validate({"ref-name": "main", "type": "branch", "snapshot-id": SNAPSHOT})
    metadata = update_table_metadata(empty, (AddSnapshotUpdate(snapshot=snapshot), branch))
    ToOutputFile.table_metadata(metadata, io.new_output(str(directory / METADATA)))


def _moved(manifest: ManifestFile, path: Path) -> ManifestFile:
    """The same manifest at another place."""
    manifest[0] = str(path)
    return manifest


def _data_files(bounds: Mapping[str, Bounds], start: int, stop: int) -> Iterator[DataFile]:
    lower, upper = ([_encoded(b[side][start:stop]) for b in bounds.values()] for side in (0, 1))
    ids = range(1, len(bounds) + 1)
    for i in range(stop - start):
        yield DataFile.from_args(
            2,
            content=DataFileContent.DATA,
            file_path=f"data/part-{start + i:09d}.parquet",
            file_format=FileFormat.PARQUET,
            partition=Record(),
            record_count=ROWS,
            file_size_in_bytes=BLOCK_BYTES,
            value_counts=dict.fromkeys(ids, ROWS),
            null_value_counts=dict.fromkeys(ids, 0),
            lower_bounds={c: column[i] for c, column in zip(ids, lower, strict=True)},
            upper_bounds={c: column[i] for c, column in zip(ids, upper, strict=True)},
        )


def _encoded(values: np.ndarray) -> list[bytes]:
    return [to_bytes(LongType(), value) for value in values.tolist()]


def open_iceberg(directory: Path) -> StaticTable:
    """The table of :func:`write_iceberg`."""
    return StaticTable.from_metadata(str(directory / METADATA))


def iceberg_keeps(table: StaticTable, condition: str) -> int:
    """How many data files pyiceberg plans to read."""
    return sum(1 for _ in table.scan(row_filter=condition).plan_files())
