"""Publish the next index snapshot: its parts, and the one atomic create that makes it visible to readers."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Sequence, Set
from dataclasses import replace

import pyarrow as pa

from secateur.errors import IndexConflict, IndexFault, SecateurError
from secateur.index.build.build import MANIFESTS_FOLDER
from secateur.index.file_names import build_of
from secateur.index.model import BuildOptions, IndexedColumn, indexed_columns
from secateur.index.naming import ByFieldId, ByName
from secateur.index.segments.base_file import is_base_due, write_base
from secateur.index.segments.named_columns import computed, sum_columns
from secateur.index.segments.segment_table import Segments, in_key_order
from secateur.index.segments.snapshot import Snapshot
from secateur.index.segments.snapshot_files import open_snapshot, snapshot_name, snapshot_numbers
from secateur.index.segments.snapshot_meta import MadeOf, ManifestsFile
from secateur.index.segments.snapshot_writer import encode_snapshot
from secateur.index.zones.sort_key import parse_sort_key, tuple_column
from secateur.io.parquet.arrow_types import merge_schemas
from secateur.io.storage.index_store import FileStore
from secateur.io.tables.field_ids import called_by_id
from secateur.io.tables.table import TableSnapshot
from secateur.maintain.removal_marks import builds_marked

MOST_TRIES = 20  # attempts of a build whose number others take
_log = logging.getLogger("secateur")


def declared_schema(table: TableSnapshot) -> pa.Schema:
    """Return the columns that the table's format declares and an index may have."""
    schema = table.stored_schema
    assert schema is not None, "asked only of formats with snapshots, which declare one"
    return schema


def index_schema(table: TableSnapshot, schemas: Sequence[tuple[str, pa.Schema]]) -> pa.Schema:
    """Return the schema of an index: the one that the table's format declares, else the union of the files' schemas.

    A format with snapshots declares the columns now: what the index has of columns of the same name that had another
    type is measured again. The schema declared for a directory tells not which of its columns the files hold, so it is
    taken only if there are no files, so that options may name its columns.
    """
    match table.naming:
        case ByFieldId():
            return called_by_id(declared_schema(table))
        case ByName() if table.id is not None or (not schemas and table.stored_schema is not None):
            return declared_schema(table)
        case ByName():
            return merge_schemas(schemas)


def sort_paths(options: BuildOptions) -> list[tuple[str, ...]]:
    """Return the columns of the sort key."""
    return [column.path for column in parse_sort_key(options.sort_key)]


def summarised_columns(schema: pa.Schema, options: BuildOptions) -> list[IndexedColumn]:
    """Return the columns with statistics in segments: the table's columns, expressions, sums, the sort key's tuples."""
    tuples = tuple_column(parse_sort_key(options.sort_key), schema)
    derived = [*computed(options, schema), *sum_columns(options, schema)]
    return [*indexed_columns(schema), *derived, *([] if tuples is None else [tuples])]


def publish(
    table: TableSnapshot,
    build: str,
    segments: Segments,
    schema: pa.Schema,
    options: BuildOptions,
    expected: Snapshot | None = None,
    listing: int | None = None,
    broken: Collection[str] = (),
) -> None:
    """Create the next snapshot; with `expected`, only if that is still current.

    Without `expected` it replaces any current snapshot, and builds that publish at once get different numbers.
    `listing` is the id of the files of all segments, if it is known; `broken` index files of `expected` are not taken
    over. Raises IndexConflict if a snapshot other than `expected` is current, or if files that this one needs are gone;
    IndexNotWritable.
    """
    _next_number(table.store, expected)
    segments = in_key_order(segments, sort_paths(options))
    if is_base_due(segments.files):
        segments = replace(segments, files=write_base(table.store, build, segments.files))
    before = () if expected is None or expected.made_of is None else expected.made_of.manifests
    made_of = keep_manifests(table, build, [file for file in before if file.name not in broken])
    names = {
        *segments.name,
        *(name for bloom_matrices in segments.bloom_matrices.values() for name in bloom_matrices.file_name),
    }
    names |= set() if made_of is None else {*made_of.names}
    names |= set() if segments.files.base is None else {segments.files.base.name}
    for _ in range(MOST_TRIES):
        number = _next_number(table.store, expected)
        data = encode_snapshot(number, time.time(), segments, options, schema, made_of, listing)
        require_files(table.store, names)
        try:
            table.store.create(snapshot_name(number), data)
        except IndexConflict:
            continue
        _keep_or_retract(table.store, number, names)
        _log.info("published snapshot %d of %s: %d segments", number, table.store.location, len(segments))
        return
    raise IndexConflict(f"{MOST_TRIES} times another build published first: build again when fewer do so at once")


def _next_number(store: FileStore, expected: Snapshot | None) -> int:
    """Return the number of the next snapshot. Raises IndexConflict if another than `expected` is current.

    Numbering restarts after a drop, so equal numbers do not imply equal snapshots.
    """
    numbers = snapshot_numbers(store)
    current = numbers[-1] if numbers else 0
    if expected is not None and not (current == expected.number and _is_current(store, expected)):
        raise IndexConflict(
            f"the index was at snapshot {expected.number} and is at {current or 'none'} now: another build, refresh or "
            "drop came first. Nothing was changed: refresh again"
        )
    return current + 1


def _is_current(store: FileStore, expected: Snapshot) -> bool:
    """Return whether the expected snapshot still has its number and content."""
    try:
        return open_snapshot(store, expected.number).created == expected.created
    except IndexFault:
        return False


def _keep_or_retract(store: FileStore, number: int, names: Set[str]) -> None:
    """Take a snapshot back if its files are being removed. Raises IndexConflict.

    A remover marks files first and then lists the snapshots that name them; a publisher does the reverse. So if both
    run at once, one sees the other.
    """
    try:
        require_files(store, names)
    except SecateurError:
        store.delete(snapshot_name(number))
        raise


def require_files(store: FileStore, names: Set[str]) -> None:
    """Raise IndexConflict unless all files that a snapshot names exist and are not marked for removal."""
    marked = builds_marked(store)
    there = {file.name for folder in {name.partition("/")[0] for name in names} for file in store.files(folder)}
    if gone := sorted(name for name in names if name not in there or build_of(name) in marked):
        raise IndexConflict(
            f"{len(gone):,} index files that the new snapshot needs are gone or about to be removed, {gone[0]} for "
            "one: by a vacuum with a short grace period, or by a drop. Nothing was published: try again"
        )


def keep_manifests(table: TableSnapshot, build: str, before: Sequence[ManifestsFile] = ()) -> MadeOf | None:
    """Write the manifests of a table that no file from `before` holds; return where all are, if there are any."""
    kept = table.kept_manifests(before)
    if table.id is None or kept is None:
        return None
    files, data = kept
    if data is None:
        return MadeOf(table.id, tuple(before[i] for i in files))
    name = f"{MANIFESTS_FOLDER}/{build}.manifests"
    table.store.put(name, data)
    return MadeOf(table.id, (*(before[i] for i in files), ManifestsFile(name, len(data))))
