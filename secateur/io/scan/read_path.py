"""Choose the cheapest read path of a plan's rows to Spark; see :mod:`secateur.io.spark.to_spark`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from secateur.index.naming import ByFieldId
from secateur.io.scan.surviving_blocks import surviving_bytes
from secateur.io.tables.listing import KNOWN_METADATA_FIELD, METADATA
from secateur.pruning.predicate import node_walks
from secateur.pruning.predicate.bound import Unsupported
from secateur.pruning.predicate.bound_walks import all_leaves
from secateur.pruning.predicate.variant_paths import is_variant
from secateur.pruning.report import human_bytes
from secateur.values.kinds import COLLATED

if TYPE_CHECKING:
    from secateur.io.scan.planned_scan import PlannedScan
    from secateur.io.tables.table import TableSnapshot

LOCAL_BYTES = 8 << 20  # the driver reads this faster than Spark starts a Python task
MOST_LOCAL_FILES = 64  # opening one on an object store takes some 10 ms; some are opened in parallel
NATIVE_SHARE = 0.5  # of the surviving files' bytes; above it, reading whole files natively is cheaper
MOST_NATIVE = 50_000  # files; each path is sent to the JVM as an object, and Spark looks up its status
_WHATEVER_THE_SPLITS = {"file_path", "file_modification_time", "row_index"}  # fields of `_metadata`
GLOB_CHARACTERS = r"[*?\[\]{}\\]"


@dataclass(frozen=True)
class ReadPath:
    """A read path to Spark, and why it was chosen."""

    name: str  # local, blocks or native
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


def choose_read_path(scan: PlannedScan, fields: Sequence[pa.Field] | None = None) -> ReadPath:
    """Return the cheapest sound read path for some fields, or all, among those available in every session.

    - ``local`` if at most LOCAL_BYTES survive, in at most MOST_LOCAL_FILES files.
    - ``native`` if at least NATIVE_SHARE of the bytes of the surviving files survive, and these files are at most
      MOST_NATIVE: above that, handing Spark their paths one by one takes longer than it saves.
    - ``blocks`` else.
    """
    if asks_hidden_metadata(scan):
        return ReadPath("native", "only Spark's own reader has all of `_metadata`")
    if needs_sparks_reader(scan, scan.opened.schema if fields is None else fields):
        return ReadPath("native", "only Spark's own reader keeps collations of strings, and VARIANT")
    bytes_ = int(surviving_bytes(scan).sum())
    if bytes_ <= LOCAL_BYTES and len(scan.file_ordinals) <= MOST_LOCAL_FILES:
        return ReadPath("local", f"{human_bytes(bytes_)} survive, which the driver reads without a Spark job")
    share = f"{human_bytes(bytes_)} survive of {len(scan.file_ordinals):,} files with {human_bytes(_whole(scan))}"
    if len(scan.file_ordinals) <= MOST_NATIVE and bytes_ >= NATIVE_SHARE * _whole(scan) and is_read_by_spark(scan):
        return ReadPath("native", f"{share}, which Spark's own reader reads by row groups, or files")
    return ReadPath("blocks", f"{share}, of which tasks read the pages that can hold a match")


def _whole(scan: PlannedScan) -> int:
    return int(scan.opened.listing.size[scan.file_ordinals].sum())


def needs_sparks_reader(scan: PlannedScan, fields: Iterable[pa.Field]) -> bool:
    """Return whether the predicate uses strings with a collation or VARIANT, or some fields contain them."""
    return asks_only_spark(scan) or any(only_spark_keeps(field.type) for field in fields)


def asks_only_spark(scan: PlannedScan) -> bool:
    """Return whether the predicate uses strings with a collation or VARIANT, which only Spark's own reader keeps."""
    unsupported = (leaf for leaf in all_leaves(scan.predicate) if isinstance(leaf, Unsupported))
    return any(only_spark_keeps(field.type) for leaf in unsupported for field in leaf.fields)


def asks_hidden_metadata(scan: PlannedScan) -> bool:
    """Whether the predicate, as given, names fields of Spark's `_metadata` that only Spark's own reader fills."""
    return METADATA in scan.named and not scan.opened.listing.has_metadata_column and bool(_hidden_metadata(scan))


def asks_splits(scan: PlannedScan) -> bool:
    """Whether the predicate depends on how Spark splits files, which depends on the bytes of all files read."""
    return asks_hidden_metadata(scan) and not _hidden_metadata(scan) <= _WHATEVER_THE_SPLITS


def _hidden_metadata(scan: PlannedScan) -> set[str]:
    """The fields of `_metadata` that a predicate names and only Spark knows; METADATA for all of them."""
    asked = scan.origin.predicate
    if any(not node.columns and METADATA in node.sql.lower() for node in node_walks.opaque(asked)):
        return {METADATA}
    known = {field.name for field in KNOWN_METADATA_FIELD.type}
    paths = [[part.lower() for part in column.path] for column in node_walks.columns(asked)]
    return {path[-1] for path in paths if path[0] == METADATA and path[-1] not in known}


def only_spark_keeps(type_: pa.DataType) -> bool:
    """Return whether a type is, or contains, that of strings with a collation, or VARIANT."""
    if pa.types.is_struct(type_) and is_variant(type_):
        return True
    inner = [type_.field(i).type for i in range(type_.num_fields)]
    return type_ == COLLATED or any(map(only_spark_keeps, inner))


def is_read_by_spark(scan: PlannedScan) -> bool:
    """Return whether Spark's own reader, given the surviving files, reads exactly these files and all of their rows."""
    if isinstance(scan.opened.table.naming, ByFieldId):
        return False  # that reader matches by name, and ignores deletes and initial defaults
    return (
        is_found_by_spark(scan.opened.table)
        and getattr(scan.opened.table, "is_by_directories", False)  # else Spark would not know partition values
        and not _has_wildcard(pa.array([scan.opened.table.location]))
        and not _has_wildcard(scan.paths.take(pa.array(scan.file_ordinals)))
    )


def is_found_by_spark(table: TableSnapshot) -> bool:
    """Return whether Spark resolves the table's location to the same place."""
    local = isinstance(getattr(table, "filesystem", None), pafs.LocalFileSystem)
    return local or ("://" in table.location and getattr(table, "found_by_location", False))


def _has_wildcard(paths: pa.Array) -> bool:
    return bool(pc.any(pc.match_substring_regex(paths, GLOB_CHARACTERS)).as_py())
