"""Checking an index: its checksums, its structure, what it covers, and with Spark whether what it says is true."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from secateur.errors import IndexFault
from secateur.index.btree import contradicted_nodes
from secateur.index.codec import FILTERS, MANIFESTS, SEGMENT, Place, read_contents
from secateur.index.segments import Directory
from secateur.index.snapshot import Snapshot
from secateur.io.store import FileStore
from secateur.io.table import Table
from secateur.maintain.describe import filter_files
from secateur.maintain.entries import indexed_files, live_files, require_snapshot
from secateur.pruning.predicate.bound import Field

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from secateur.maintain.audit import Audit, OnStep
    from secateur.pruning.predicate.nodes import Predicate

VERIFY_THREADS = 16
RANDOM_PREDICATES = 16


@dataclass(frozen=True)
class Verification:
    """What was checked, and every fault found."""

    snapshot: int
    segments: int
    files_covered: int
    files_uncovered: int
    faults: tuple[str, ...]  # of the index files
    audit: Audit | None = None  # None where no Spark session was given

    @property
    def sound(self) -> bool:
        """Whether no fault was found, neither in the index files nor by comparing them with the data."""
        return not self.faults and (self.audit is None or not self.audit.faults)


def verify_index(
    table: Table,
    *,
    spark: SparkSession | None = None,
    sample: float | None = None,
    predicates: Sequence[str | Predicate] = (),
    random_predicates: int = RANDOM_PREDICATES,
    seed: int | None = None,
    on_progress: OnStep | None = None,
) -> Verification:
    """Read every byte of the current index and check it: checksums, structure, and which live files it covers.

    With `spark`, the index is compared with the data as well, by Spark jobs:

    - Blocks that are covered are read anew, and every value of theirs is held against what is recorded of it: row, null
      and NaN counts, bounds of blocks, pages, segments and of the sort key's tuples, gaps, and all filters, which are
      asked for values of the block. `sample` is the share of the blocks, 1.0 for all; by default at most 256 of them.
    - `predicates`, and so many `random_predicates` about values of the table, are planned; blocks and rows that the
      plans leave out are read, the same share of them or by default at most 64 blocks for each, and Spark evaluates
      the predicate there. A row that matches is a fault.

    `seed` draws the same again; it is chosen by chance where none is given, and the result tells it. `on_progress` is
    told what is being done (``"index files"``, ``"blocks"``, ``"predicates"``), how much of it, and of how much.

    A fault is a value here, never an exception: drop the index and build it anew.

    Raises IndexMissing, ValueError for a sample that is no share and for predicates without Spark, and what
    :func:`secateur.prune` raises for the given predicates.
    """
    if sample is not None and not 0 < sample <= 1:
        raise ValueError(f"sample is {sample}; it is the share of the blocks to read, more than 0 and at most 1")
    if spark is None and (sample is not None or predicates):
        raise ValueError("sample and predicates are for an audit on the data: pass spark=")
    tell = on_progress or _silent
    found = _verified_files(table, tell)
    if spark is None or not found.snapshot:
        return found
    from secateur.maintain.audit import audit_index  # which needs Spark

    chosen = secrets.randbelow(1 << 32) if seed is None else seed
    audit = audit_index(table, spark, sample, predicates, random_predicates, chosen, tell)
    return Verification(found.snapshot, found.segments, found.files_covered, found.files_uncovered, found.faults, audit)


def _silent(what: str, done: int, total: int) -> None:
    """Tells nobody."""


def _verified_files(table: Table, tell: OnStep) -> Verification:
    live = live_files(table.snapshot(fresh=True))
    try:
        snapshot = require_snapshot(table)
        files = snapshot.files
        filters = filter_files(snapshot)
    except IndexFault as fault:
        return Verification(0, 0, 0, len(live), (str(fault),))
    faults = [*snapshot.verify(), *_verify_trees(snapshot)]
    directories = _directories(snapshot, faults)
    checks: list[Callable[[], list[str]]] = [
        *(partial(_verify_segment, table, snapshot, directories, i) for i in range(len(snapshot.segments))),
        *(partial(_verify_file, table, name, FILTERS, size) for name, size in filters.items()),
    ]
    made_of = [] if snapshot.made_of is None else [(snapshot.made_of.manifests, snapshot.made_of.size)]
    checks += [partial(_verify_file, table, name, MANIFESTS, size) for name, size in made_of]
    sizes = [*zip(snapshot.segments.name, snapshot.segments.size.tolist(), strict=True), *filters.items(), *made_of]
    faults += _verify_sizes(table.store, sizes)
    with ThreadPoolExecutor(VERIFY_THREADS) as threads:
        for done, found in enumerate(threads.map(lambda check: check(), checks), 1):
            faults += found
            tell("index files", done, len(checks))
    covered = set(indexed_files(files))
    known = sum(file in covered for file in live)
    return Verification(snapshot.number, len(snapshot.segments), known, len(live) - known, tuple(faults))


def _verify_sizes(store: FileStore, sizes: Sequence[tuple[str, int]]) -> list[str]:
    """The files that are longer than the snapshot says; what is shorter, or missing, its content tells."""
    folders = {name.partition("/")[0] for name, _ in sizes}
    try:
        found = {file.name: file.size for folder in sorted(folders) for file in store.files(folder)}
    except IndexFault as fault:
        return [str(fault)]
    return [
        f"{name}: has {found[name]:,} bytes instead of {size:,}" for name, size in sizes if found.get(name, 0) > size
    ]


def _directories(snapshot: Snapshot, faults: list[str]) -> Sequence[Directory]:
    """Where the snapshot says that chunks lie; a fault is added where it cannot be read."""
    try:
        return list(snapshot.as_segments().directory.values())
    except IndexFault as fault:
        faults.append(str(fault))
        return []


def _verify_trees(snapshot: Snapshot) -> Iterator[str]:
    """The nodes of the tree whose statistics do not hold for what is below them."""
    for column in snapshot.columns:
        try:
            nodes = snapshot.tree_zones(Field(column.path, column.type))
            wrong = [] if nodes is None else contradicted_nodes(nodes, snapshot.tree)
        except IndexFault:
            continue  # which reading every chunk has told
        name = ".".join(column.path)
        yield from (f"{snapshot.name}: node {node} of the tree of {name} denies what is below it" for node in wrong)


def _verify_segment(table: Table, snapshot: Snapshot, directories: Sequence[Directory], segment: int) -> list[str]:
    """The faults of one segment file, its chunks being where the snapshot says and what it says."""
    name, size = snapshot.segments.name[segment], int(snapshot.segments.size[segment])
    read = partial(table.store.read, name)
    try:
        contents = read_contents(name, SEGMENT, size, read)
        own = set(contents.chunks.values())
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
