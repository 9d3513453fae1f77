"""A table format's snapshots, manifests and files as Arrow tables.

The schemas are the same for every format. What a format lacks is an empty table, or null.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from secateur.arrays import from_numpy

if TYPE_CHECKING:
    from secateur.io.tables.listing import Listing

INSTANT = pa.timestamp("ms", "UTC")

SNAPSHOTS = pa.schema(
    [
        ("snapshot_id", pa.int64()),
        ("parent_id", pa.int64()),
        ("sequence_number", pa.int64()),
        ("committed_at", INSTANT),
        ("operation", pa.string()),
        ("summary", pa.map_(pa.string(), pa.string())),
        ("refs", pa.list_(pa.string())),  # branches and tags that lead to it
        ("schema_id", pa.int32()),
        ("manifest_list", pa.string()),
        ("selected", pa.bool_()),  # whether queries of this handle read it
    ]
)

MANIFESTS = pa.schema(
    [
        ("manifest", pa.string()),
        ("content", pa.string()),  # "data" or "deletes"
        ("bytes", pa.int64()),
        ("spec_id", pa.int32()),
        ("sequence_number", pa.int64()),
        ("min_sequence_number", pa.int64()),
        ("snapshot_id", pa.int64()),
        ("added_files", pa.int64()),
        ("existing_files", pa.int64()),
        ("deleted_files", pa.int64()),
        ("added_rows", pa.int64()),
        ("existing_rows", pa.int64()),
        ("deleted_rows", pa.int64()),
        (
            "partitions",
            pa.list_(
                pa.struct(
                    [
                        ("field", pa.string()),
                        ("contains_null", pa.bool_()),
                        ("contains_nan", pa.bool_()),
                        ("lower", pa.string()),
                        ("upper", pa.string()),
                    ]
                )
            ),
        ),
    ]
)

FILES = (  # `partition` follows `row_count`: a struct of the table's own type
    ("file", pa.string()),
    ("content", pa.string()),
    ("format", pa.string()),
    ("bytes", pa.int64()),
    ("row_count", pa.int64()),
    ("spec_id", pa.int32()),
    ("sequence_number", pa.int64()),
    ("snapshot_id", pa.int64()),
    ("modified", pa.timestamp("ns", "UTC")),
    ("delete_files", pa.int64()),  # that apply to the file
)

CONTENTS = ("data", "position deletes", "equality deletes")  # by the number of a file's content


@dataclass(frozen=True)
class ManifestCounts:
    """Numbers of manifests by content."""

    data: int = 0
    deletes: int = 0

    def since(self, before: ManifestCounts) -> ManifestCounts:
        """Return how many were added since `before`."""
        return ManifestCounts(self.data - before.data, self.deletes - before.deletes)


class MetadataTables(Protocol):
    """The metadata of one snapshot of a table."""

    def snapshots(self) -> pa.Table:
        """Return all snapshots of the table, with the schema :data:`SNAPSHOTS`."""

    def manifests(self) -> pa.Table:
        """Return the manifests of the snapshot, with the schema :data:`MANIFESTS`."""

    def files(self, listing: Listing) -> pa.Table:
        """Return the data files of a listing in order, then the delete files, with the schema :data:`FILES`."""

    @property
    def manifest_counts(self) -> ManifestCounts:
        """The number of manifests of the snapshot, once it is listed."""

    @property
    def manifests_read(self) -> ManifestCounts:
        """The number of manifests read so far, because they were neither in memory nor stored beside the index."""


class DirectoryTables:
    """The metadata of a directory of files: no snapshots, no manifests, only a listing."""

    manifest_counts = manifests_read = ManifestCounts()

    def snapshots(self) -> pa.Table:
        """A directory has no snapshots."""
        return SNAPSHOTS.empty_table()

    def manifests(self) -> pa.Table:
        """A directory has no manifests."""
        return MANIFESTS.empty_table()

    def files(self, listing: Listing) -> pa.Table:
        """Return path, size and time of every file, and its Hive partition values."""
        return listed_files(listing, np.zeros(len(listing.size), np.int64))


def listed_files(listing: Listing, delete_files: np.ndarray) -> pa.Table:
    """Return the files of a listing, with the schema :data:`FILES`.

    `delete_files` has the number of delete files of each.
    """
    n = len(listing.size)
    known = {
        "file": listing.paths,
        "content": pa.repeat("data", n),
        "format": pa.repeat("PARQUET", n),
        "bytes": from_numpy(listing.size),
        "modified": from_numpy(listing.stamp).cast(pa.timestamp("ns", "UTC")),
        "delete_files": from_numpy(delete_files),
    }
    return files_table(known, partition_struct(listing.partitions.fields, listing.partitions.values, n))


def files_table(known: dict[str, pa.Array], partition: pa.Array) -> pa.Table:
    """Return a table with the schema :data:`FILES`; missing columns are null."""
    n = len(partition)
    columns = {name: known[name].cast(type_) if name in known else pa.nulls(n, type_) for name, type_ in FILES}
    table = pa.table(columns)
    return table.add_column(table.column_names.index("row_count") + 1, "partition", partition)


def partition_struct(fields: tuple[pa.Field, ...], values: tuple[pa.Array, ...], n: int) -> pa.Array:
    """Return the partition values of n files as structs; null if the table has no partitions."""
    return pa.StructArray.from_arrays(values, fields=fields) if fields else pa.nulls(n, pa.struct([]))
