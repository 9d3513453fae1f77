"""Building and keeping an index: the public functions that write."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from secateur.errors import IndexConflict, IndexFault, IndexMissing, InvalidOption, TableNotFound, UnsupportedTable
from secateur.index.assemble import FileIdentity, recipe
from secateur.index.bitsliced import rate_for
from secateur.index.btree import FAN_OUT
from secateur.index.build import FOLDERS, MANIFESTS_FOLDER, OnProgress, new_build, write_segments, write_slabs
from secateur.index.codec import FILTERS, MANIFESTS, SEGMENT, Place, read_contents
from secateur.index.model import (
    BLOOM,
    NGRAM,
    POSTINGS,
    TOKEN,
    BuildOptions,
    Choice,
    Filter,
    IndexedColumn,
    StoredFile,
    indexed_columns,
)
from secateur.index.naming import Naming
from secateur.index.options import (
    Columns,
    auto_columns,
    called_in_index,
    called_in_table,
    checked,
    filter_options,
    filters_of,
    with_choices,
)
from secateur.index.reader import current_snapshot
from secateur.index.sampling import choices
from secateur.index.segments import FileTable, Segments, in_key_order, joined, summarised
from secateur.index.snapshot import MadeOf, Snapshot, encode_snapshot, open_snapshot, snapshot_name, snapshot_numbers
from secateur.index.sort_key import is_tuple_column, parse_sort_key, tuple_column
from secateur.index.survey import FileSurvey, cut, survey
from secateur.index.tasks import RunTasks, run_tasks
from secateur.io.field_ids import called_by_id
from secateur.io.schema import merge_schemas
from secateur.io.table import Listing, Table, TableSnapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SNAPSHOTS_FOLDER = "snapshots"
DEFAULT_GRACE_SECONDS = 3600.0


@dataclass(frozen=True)
class IndexSnapshot:
    """What an index holds: counts of the snapshot, its bytes, and what was indexed how."""

    number: int
    created: float
    location: str
    segments: int
    files: int
    blocks: int
    rows: int
    data_bytes: int
    index_bytes: int
    columns: tuple[str, ...]
    bloom: tuple[str, ...]
    postings: tuple[str, ...]
    ngram: tuple[str, ...]
    tokens: tuple[str, ...]
    gaps: tuple[str, ...]
    sort_key: tuple[str, ...]
    choices: tuple[Choice, ...]  # what was left to the build, and why it chose so
    table_snapshot: int | None  # that the index was made of, or refreshed for, where the table's format has some


@dataclass(frozen=True)
class Verification:
    """What was checked, and every fault found."""

    snapshot: int
    segments: int
    files_covered: int
    files_uncovered: int
    faults: tuple[str, ...]

    @property
    def sound(self) -> bool:
        """Whether no fault was found."""
        return not self.faults


def build_index(
    table: Table,
    *,
    spark: SparkSession,
    sort_key: Sequence[str] = (),
    bloom: Columns = (),
    postings: Columns = (),
    ngram: Columns = (),
    tokens: Columns = (),
    gaps: Sequence[str] = (),
    auto: Sequence[str] | bool = (),
    fpr: float | None = None,
    pages: bool = True,
    segment_blocks: int | None = None,
    fan_out: int = FAN_OUT,
    on_progress: OnProgress | None = None,
    on_survey: OnProgress | None = None,
) -> IndexSnapshot:
    """Index a table with a Spark job and publish the index in one atomic create.

    Zone maps cover every column with an order. `sort_key` names the columns by which the data is clustered, as in ORDER
    BY (``["day", "user_id DESC NULLS LAST"]``): segments are cut in their order, and of several columns the least and
    greatest tuple of every block is kept, for which they are read. `pages` keeps the files' page index. A segment has
    about `segment_blocks` blocks, and a node of the tree above them `fan_out` children. `on_survey` is told the totals
    once footers are read, `on_progress` the files, rows and bytes done.

    Structures for look-ups are made of the columns that are named, or of a mapping of names to settings. Of an array
    its elements are looked up, of a map its keys.

    - `bloom`: bloom filters of values. `fpr` is their false-positive rate, by default such that an absent value costs
      about one wrong block in the whole table. ``{"user_id": "native"}`` takes the filters that files have already.
    - `postings`: of every value the blocks that hold it, without false positives.
    - `ngram`: parts of texts, for LIKE and RLIKE: ``["message"]``, ``{"message": 6}`` for grams of six bytes,
      ``{"message": {"n": 5, "fold": True}}`` to find them in any case.
    - `tokens`: whole words of texts, for ``has_token()`` and LIKE '% word %'.
    - `gaps`: numbers and times of which the widest gaps between values are kept, so that outliers do not blind bounds.
    - `auto`: columns, or True for all, of which a sample of blocks decides between these; ``choices`` of the result
      says what was chosen, why, and what each would take.

    Raises UnknownColumn, TableNotFound, InvalidParquet, IndexNotWritable, IndexConflict; InvalidOption for a sort key
    or a setting that cannot be read, or a fan-out below 2. Until it has returned, readers see the index as it was.
    """
    table.store.require_writable()
    if fan_out < 2:
        raise InvalidOption(f"fan_out is {fan_out}; a node of a tree has 2 children or more")
    filters = filter_options(bloom, postings, ngram, tokens)
    options = BuildOptions(tuple(sort_key), filters, tuple(gaps), fpr, pages, segment_blocks, fan_out)
    now = table.snapshot(fresh=True)
    files = _identities(now.fresh_listing(dt.UTC))
    if not files and now.declared_schema is None:
        raise TableNotFound(f"{table.location} holds no Parquet file")
    run = partial(run_tasks, spark)
    if now.naming is not None:
        options, auto = called_in_index(checked(options, _declared(now)), auto, _declared(now), now.naming)
    surveys = survey(run, now.open_for_index, files, _sort_paths(options))
    schema = _index_schema(now, [(item.file[0], item.schema) for item in surveys])
    options = _chosen(now, run, surveys, schema, checked(options, schema), auto)
    with new_build(table.store) as build:
        blocks = sum(item.block_count for item in surveys)
        segments = _write(now, run, build, surveys, schema, options, blocks, on_survey, on_progress)
        _publish(now, build, segments, schema, options)
    return describe_index(table)


def refresh_index(
    table: Table,
    *,
    spark: SparkSession,
    on_progress: OnProgress | None = None,
    on_survey: OnProgress | None = None,
) -> IndexSnapshot:
    """Index the files that are new or changed, forget those that are gone, and publish.

    Raises IndexMissing where there is no index, and as :func:`build_index` does.
    """
    snapshot = _require_snapshot(table)
    before = snapshot.as_segments()
    now = table.snapshot(fresh=True)
    live = _identities(now.fresh_listing(dt.UTC))
    kept = before.take(_with_live_files(before, set(live)))
    covered = set(_file_identities(kept.files))
    new = [file for file in live if file not in covered]
    if not new and len(kept) == len(before):
        return describe_index(table)
    table.store.require_writable()
    run = partial(run_tasks, spark)
    surveys = survey(run, now.open_for_index, new, _sort_paths(snapshot.options))
    schema = _index_schema(now, [("the index", snapshot.schema), *((item.file[0], item.schema) for item in surveys)])
    options = snapshot.options
    blocks = int(kept.block_count.sum()) + sum(item.block_count for item in surveys)
    with new_build(table.store) as build:
        added = _write(now, run, build, surveys, schema, options, blocks, on_survey, on_progress)
        segments = joined(kept.under(_columns(schema, options), filters_of(options, schema)), added)
        _publish(now, build, segments, schema, options, expected=snapshot.number)
    return describe_index(table)


def _declared(table: TableSnapshot) -> pa.Schema:
    schema = table.declared_schema
    assert schema is not None
    return schema


def _index_schema(table: TableSnapshot, schemas: Sequence[tuple[str, pa.Schema]]) -> pa.Schema:
    """The schema of an index: that of the table where columns have ids, else what the files have together."""
    return merge_schemas(schemas) if table.naming is None else called_by_id(_declared(table))


def _write(
    table: TableSnapshot,
    run: RunTasks,
    build: str,
    surveys: Sequence[FileSurvey],
    schema: pa.Schema,
    options: BuildOptions,
    blocks: int,
    on_survey: OnProgress | None,
    on_progress: OnProgress | None,
) -> Segments:
    if on_survey is not None:
        on_survey(len(surveys), sum(s.row_count for s in surveys), sum(s.byte_count for s in surveys))
    columns = _columns(schema, options)
    what = recipe(schema, columns, options, blocks)
    parts = cut(surveys, options.segment_blocks, has_postings=any(each.kind == POSTINGS for each in what.filters))
    summaries = write_segments(run, build, table.open_for_index, table.store, parts, what, on_progress)
    slabs = write_slabs(run, build, table.store, summaries, what)
    return summarised(columns, what.filters, summaries, slabs)


def _chosen(
    table: TableSnapshot,
    run: RunTasks,
    surveys: Sequence[FileSurvey],
    schema: pa.Schema,
    options: BuildOptions,
    auto: Sequence[str] | bool,
) -> BuildOptions:
    """The options with what a sample decides for the columns that are left to it. Raises UnknownColumn."""
    columns = auto_columns(auto, options, schema)
    if not columns:
        return options
    rate = rate_for(sum(item.block_count for item in surveys), options.fpr)
    found = choices(run, table.open_for_index, surveys, schema, columns, options.segment_blocks, rate)
    return with_choices(options, found)


def _sort_paths(options: BuildOptions) -> list[tuple[str, ...]]:
    return [column.path for column in parse_sort_key(options.sort_key)]


def _columns(schema: pa.Schema, options: BuildOptions) -> list[IndexedColumn]:
    """The columns of which segments keep statistics: those of the table, and the tuples of the sort key."""
    tuples = tuple_column(parse_sort_key(options.sort_key), schema)
    return [*indexed_columns(schema), *([] if tuples is None else [tuples])]


def _publish(
    table: TableSnapshot,
    build: str,
    segments: Segments,
    schema: pa.Schema,
    options: BuildOptions,
    expected: int | None = None,
) -> None:
    """Create the next snapshot; with `expected`, only if that is still the current one."""
    numbers = snapshot_numbers(table.store)
    current = numbers[-1] if numbers else 0
    if expected is not None and current != expected:
        raise IndexConflict(f"snapshot {current} was published meanwhile: refresh again")
    number = current + 1
    segments = in_key_order(segments, _sort_paths(options))
    data = encode_snapshot(number, time.time(), segments, options, schema, keep_manifests(table, build))
    table.store.create(snapshot_name(number), data)


def keep_manifests(table: TableSnapshot, build: str) -> MadeOf | None:
    """Write what the table's manifests say beside the index; the snapshot that they are of, where there are some."""
    data = table.kept_manifests()
    if table.id is None or data is None:
        return None
    name = f"{MANIFESTS_FOLDER}/{build}.manifests"
    table.store.put(name, data)
    return MadeOf(table.id, name, len(data))


def _with_live_files(segments: Segments, live: set[FileIdentity]) -> np.ndarray:
    """The segments that hold a live file, ascending."""
    known = np.array([file in live for file in _file_identities(segments.files)], bool)
    return np.flatnonzero(np.bincount(segments.files.segment[known], minlength=len(segments)))


def _file_identities(files: FileTable) -> list[FileIdentity]:
    return list(zip(files.path.to_pylist(), files.size.tolist(), files.modified.tolist(), strict=True))


def describe_index(table: Table) -> IndexSnapshot:
    """What the current index of a table holds. Raises IndexMissing, IndexFault."""
    snapshot = _require_snapshot(table)
    naming = table.snapshot().naming
    options = snapshot.options if naming is None else called_in_table(snapshot.options, naming)
    filters = [replace(each, path=_in_table(each.path, naming)) for each in snapshot.filters]
    files = snapshot.files
    return IndexSnapshot(
        number=snapshot.number,
        created=snapshot.created,
        location=table.store.location,
        segments=len(snapshot.segments),
        files=len(files.size),
        blocks=int(files.block_count.sum()),
        rows=int(files.row_count.sum()),
        data_bytes=int(files.byte_count.sum()),
        index_bytes=_index_bytes(table, snapshot),
        columns=tuple(
            ".".join(_in_table(column.path, naming)) for column in snapshot.columns if not is_tuple_column(column.path)
        ),
        bloom=_filtered(filters, BLOOM),
        postings=_filtered(filters, POSTINGS),
        ngram=_filtered(filters, NGRAM),
        tokens=_filtered(filters, TOKEN),
        gaps=options.gaps,
        sort_key=options.sort_key,
        choices=options.choices,
        table_snapshot=None if snapshot.made_of is None else snapshot.made_of.id,
    )


def _in_table(path: tuple[str, ...], naming: Naming | None) -> tuple[str, ...]:
    """What the table calls a column of the index; a column that it has no more, by its id."""
    return path if naming is None else naming.in_table.get(path, path)


def _filtered(filters: Sequence[Filter], kind: str) -> tuple[str, ...]:
    """The columns that have a kind of filter."""
    return tuple(".".join(each.path) for each in filters if each.kind == kind)


def _index_bytes(table: Table, snapshot: Snapshot) -> int:
    filters = sum(_filter_files(snapshot).values()) + (0 if snapshot.made_of is None else snapshot.made_of.size)
    return int(snapshot.segments.size.sum()) + filters + table.store.size(snapshot_name(snapshot.number))


def _filter_files(snapshot: Snapshot) -> dict[str, int]:
    """The files of all slabs, with their sizes. Raises IndexFault."""
    slabs = [found for f in range(len(snapshot.filters)) if (found := snapshot.slabs(f)) is not None]
    return {name: size for each in slabs for name, size in zip(each.file_name, each.file_size.tolist(), strict=True)}


def verify_index(table: Table) -> Verification:
    """Read every byte of the current index and check it: checksums, structure, and which live files it covers.

    Raises IndexMissing. A fault is a value here, never an exception.
    """
    faults: list[str] = []
    try:
        snapshot = _require_snapshot(table)
        files = snapshot.files
        filter_files = _filter_files(snapshot)
    except IndexFault as fault:
        return Verification(0, 0, 0, len(table.snapshot(fresh=True).fresh_listing(dt.UTC).size), (str(fault),))
    faults += snapshot.verify()
    faults += [fault for i in range(len(snapshot.segments)) for fault in _verify_segment(table, snapshot, i)]
    faults += [fault for name, size in filter_files.items() for fault in _verify_file(table, name, FILTERS, size)]
    if snapshot.made_of is not None:
        faults += _verify_file(table, snapshot.made_of.manifests, MANIFESTS, snapshot.made_of.size)
    covered = set(_file_identities(files))
    live = _identities(table.snapshot(fresh=True).fresh_listing(dt.UTC))
    known = sum(file in covered for file in live)
    return Verification(snapshot.number, len(snapshot.segments), known, len(live) - known, tuple(faults))


def _verify_segment(table: Table, snapshot: Snapshot, segment: int) -> list[str]:
    """The faults of one segment file, its chunks being where the snapshot says and what it says."""
    name, size = snapshot.segments.name[segment], int(snapshot.segments.size[segment])
    read = partial(table.store.read, name)
    try:
        contents = read_contents(name, SEGMENT, size, read)
        own = set(contents.chunks.values())
        directories = snapshot.as_segments().directory.values()
        named = [Place(int(d.at[segment]), int(d.size[segment]), int(d.crc[segment])) for d in directories]
        lost = [f"{name}: no chunk is {place}" for place in named if place.size and place not in own]
        return lost + contents.verify(read)
    except IndexFault as fault:
        return [str(fault)]


def _verify_file(table: Table, name: str, kind: int, size: int) -> list[str]:
    """The faults of one file of filters, or of manifests."""
    read = partial(table.store.read, name)
    try:
        return read_contents(name, kind, size, read).verify(read)
    except IndexFault as fault:
        return [str(fault)]


def vacuum_index(
    table: Table, *, dry_run: bool = False, grace_seconds: float = DEFAULT_GRACE_SECONDS
) -> list[StoredFile]:
    """Remove what the current snapshot does not use and no reader or build of the last `grace_seconds` can need.

    Returns the files removed, or with `dry_run` those that would be. Raises IndexMissing, IndexFault: a snapshot
    that cannot be read may name any segment.
    """
    snapshot = _require_snapshot(table)
    store = table.store
    used = _used(snapshot)
    old = time.time() - grace_seconds
    recent = [file for file in store.files(SNAPSHOTS_FOLDER) if file.modified > old]
    for number in snapshot_numbers(store):
        if any(file.name == snapshot_name(number) for file in recent):
            used |= _used(open_snapshot(store, number))
    candidates = [file for folder in (SNAPSHOTS_FOLDER, *FOLDERS) for file in store.files(folder)]
    unused = [file for file in candidates if file.name not in used and file.modified <= old]
    if not dry_run:
        for file in unused:
            store.delete(file.name)
    return unused


def _used(snapshot: Snapshot) -> set[str]:
    """The files that a snapshot needs. Raises IndexFault."""
    manifests = [] if snapshot.made_of is None else [snapshot.made_of.manifests]
    return {snapshot_name(snapshot.number), *snapshot.segments.name, *_filter_files(snapshot), *manifests}


def register_index(table: Table) -> str:
    """Name the place of the index in the metadata of an Iceberg table; the path of the file that was added.

    Whoever opens the table then finds the index there, without ``index_location``. It is a statistics file (Puffin) of
    the current snapshot, beside whose statistics it stands. Raises IndexMissing where there is no index,
    IndexNotWritable, and UnsupportedTable for a table that has no metadata.
    """
    _require_snapshot(table)
    add = getattr(table, "register_index", None)
    if add is None:
        raise UnsupportedTable(f"{table.location} is a directory: it has no metadata in which an index could be named")
    path: str = add()
    return path


def drop_index(table: Table) -> int:
    """Remove the whole index, newest snapshot first, so that no reader finds one without its segments.

    Returns the number of files removed.
    """
    store = table.store
    files = [*reversed(store.files(SNAPSHOTS_FOLDER)), *(file for folder in FOLDERS for file in store.files(folder))]
    for file in files:
        store.delete(file.name)
    return len(files)


def _require_snapshot(table: Table) -> Snapshot:
    snapshot = current_snapshot(table.store)
    if snapshot is None:
        raise IndexMissing(f"{table.location} has no index at {table.store.location}: build one with build_index()")
    return snapshot


def _identities(listing: Listing) -> list[FileIdentity]:
    return list(zip(listing.paths.to_pylist(), listing.size.tolist(), listing.modified.tolist(), strict=True))
