"""Check an index: checksums, structure, coverage, and with Spark whether its statistics are true."""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from secateur.errors import IndexFault
from secateur.index.container.index_file import BASE, FILTERS, MANIFESTS, SEGMENT, Place, read_contents
from secateur.index.model import name_of
from secateur.index.read.coverage import file_of_entry
from secateur.index.segments.segment_table import Directory
from secateur.index.segments.snapshot import Snapshot
from secateur.index.segments.stored_segment import stored_segment
from secateur.index.zones.segment_tree import contradicted_nodes
from secateur.io.storage.index_store import FileStore
from secateur.io.tables.directory.recognition import recognised
from secateur.io.tables.open import as_table
from secateur.io.tables.table import Table
from secateur.maintain.describe import filter_files
from secateur.maintain.entries import require_snapshot
from secateur.markup import facts_html, text_of
from secateur.pruning.predicate.bound import Field
from secateur.pruning.report import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from secateur.io.tables.open import Source
    from secateur.maintain.audit import Audit, OnStep
    from secateur.pruning.predicate.nodes import Predicate

VERIFY_THREADS = 16
RANDOM_PREDICATES = 16


@dataclass(frozen=True)
class Verification:
    """The result of a verification: what was checked, and every fault."""

    snapshot: int
    segments: int
    files_covered: int
    files_uncovered: int
    faults: tuple[str, ...]  # in the index files
    audit: Audit | None = None  # None without a Spark session

    @property
    def sound(self) -> bool:
        """Whether no fault was found, in the index files or by comparison with the data."""
        return not self.faults and (self.audit is None or not self.audit.faults)

    def facts(self) -> list[tuple[str, str]]:
        """Return what was checked as names and values, for people."""
        live = self.files_covered + self.files_uncovered
        facts = [
            ("snapshot", str(self.snapshot) if self.snapshot else "none that can be read"),
            ("segments", f"{self.segments:,}"),
            ("covers", f"{self.files_covered:,} of {counted(live, 'live file')}"),
        ]
        audit = self.audit
        if audit is not None:
            facts += [
                ("compared", f"{audit.blocks:,} of {counted(audit.covered_blocks, 'block')}, {audit.values:,} values"),
                ("proven", f"{counted(len(audit.predicates), 'predicate')}, by {audit.pruned_rows:,} pruned rows"),
                ("seed", str(audit.seed)),
            ]
        return facts

    def findings(self) -> list[tuple[str, str]]:
        """Return every fault, and what was skipped, as names and values."""
        audit = self.audit
        faults = (*self.faults, *(() if audit is None else map(str, audit.faults)))
        skipped = () if audit is None else audit.skipped
        return [*(("fault", fault) for fault in faults), *(("skipped", reason) for reason in skipped)]

    @property
    def is_repairable(self) -> bool:
        """Whether it suffices to rebuild the broken files; else the index has to be built anew."""
        return bool(self.snapshot) and (self.audit is None or not self.audit.faults)

    def _lines(self) -> list[tuple[str, str]]:
        repair = "refresh_index(table, repair=True)" if self.is_repairable else "drop the index, and build it again"
        conclusion = ("sound", "no fault found") if self.sound else ("to do", repair)
        return [*self.facts(), *self.findings(), conclusion]

    def __str__(self) -> str:
        return text_of(self._lines())

    def _repr_html_(self) -> str:
        """Return the same for a notebook."""
        return facts_html("Verification", self._lines())


def verify_index(
    table: Table | Source,
    *,
    spark: SparkSession | None = None,
    sample: float | None = None,
    predicates: Sequence[str | Predicate] = (),
    random_predicates: int = RANDOM_PREDICATES,
    seed: int | None = None,
    on_progress: OnStep | None = None,
) -> Verification:
    """Read every byte of the current index and check checksums, structure, and which live files it covers.

    With `spark`, Spark jobs also compare the index with the data:

    - Covered blocks are read again, and every value is compared with what is recorded: row, null and NaN counts, bounds
      of blocks, pages, segments and sort key tuples, gaps, and all filters, which are asked for values of the block.
    - Predicates are planned; blocks and rows that the plans leave out are read, and Spark evaluates the predicate
      there. A matching row is a fault.

    Parameters
    ----------
    sample
        The share of covered blocks, and of each plan's pruned blocks, that is read; 1.0 for all. By default at most 256
        covered blocks, and 64 pruned ones per predicate.
    predicates, random_predicates
        Given predicates, and the number of random ones over values of the table.
    seed
        Repeats the same draws; by default random. The result records it.
    on_progress
        Called with the step (``"index files"``, ``"blocks"``, ``"predicates"``), the amount done and the total.

    Returns
    -------
    Verification
        Faults are values here, never exceptions. ``refresh_index(repair=True)`` rebuilds broken index files; if the
        index contradicts the data, or its snapshot cannot be read, drop it and build it again.

    Raises
    ------
    IndexMissing
    ValueError
        For a sample that is not a share, and for predicates without Spark.
    Also
        What :func:`secateur.prune` raises for the given predicates.
    """
    table = as_table(table)
    if sample is not None and not 0 < sample <= 1:
        raise ValueError(f"sample is {sample}; it is the share of the blocks to read, more than 0 and at most 1")
    if spark is None and (sample is not None or predicates):
        raise ValueError("sample and predicates are for an audit on the data: pass spark=")
    tell = on_progress or _silent
    verification = _verified_files(table, tell)
    if spark is None or not verification.snapshot:
        return verification
    from secateur.maintain.audit import audit_index  # imports Spark

    chosen = secrets.randbelow(1 << 32) if seed is None else seed
    audit = audit_index(table, spark, sample, predicates, random_predicates, chosen, tell)
    return Verification(
        verification.snapshot,
        verification.segments,
        verification.files_covered,
        verification.files_uncovered,
        verification.faults,
        audit,
    )


def _silent(what: str, done: int, total: int) -> None:
    """Report nothing."""


def _verified_files(table: Table, tell: OnStep) -> Verification:
    now = table.snapshot(fresh=True)
    listing = now.fresh_listing(dt.UTC)
    try:
        snapshot = require_snapshot(table)
        file = file_of_entry(recognised(now, listing, snapshot), snapshot.segment_files)
        filter_files(snapshot)  # raises if the snapshot does not list them
    except IndexFault as fault:
        return Verification(0, 0, 0, len(listing.size), (str(fault),))
    faults = [*snapshot.verify(), *_verify_trees(snapshot)]
    try:
        faults += [fault for reasons in _faults_of_files(table.store, snapshot, tell).values() for fault in reasons]
    except IndexFault as fault:
        faults.append(str(fault))
    known = len(np.unique(file[file >= 0]))
    return Verification(snapshot.number, len(snapshot.segments), known, len(listing.size) - known, tuple(faults))


def broken_files(store: FileStore, snapshot: Snapshot) -> set[str]:
    """Return the files of a snapshot that prove faulty when every byte is read. Raises IndexFault."""
    return {name for name, faults in _faults_of_files(store, snapshot, _silent).items() if faults}


def _faults_of_files(store: FileStore, snapshot: Snapshot, tell: OnStep) -> dict[str, list[str]]:
    """Return the faults of every file of a snapshot. Raises IndexFault if the snapshot does not list its files."""
    directories = list(snapshot.as_segments().directory.values())
    segments, filters, made_of = snapshot.segments, filter_files(snapshot), snapshot.made_of
    sizes = {**dict(zip(segments.name, segments.size.tolist(), strict=True)), **filters}
    checks: dict[str, Callable[[], list[str]]] = {
        **{name: partial(_verify_segment, store, snapshot, directories, i) for i, name in enumerate(segments.name)},
        **{name: partial(_verify_file, store, name, FILTERS, size) for name, size in filters.items()},
    }
    for name, size in () if made_of is None else made_of.manifests:
        sizes[name] = size
        checks[name] = partial(_verify_file, store, name, MANIFESTS, size)
    if snapshot.base is not None:
        sizes[snapshot.base.name] = snapshot.base.size
        checks[snapshot.base.name] = partial(_verify_file, store, snapshot.base.name, BASE, snapshot.base.size)
    faults = _too_long(store, sizes)
    with ThreadPoolExecutor(VERIFY_THREADS) as threads:
        results = zip(checks, threads.map(lambda check: check(), checks.values()), strict=True)
        for done, (name, reasons) in enumerate(results, 1):
            faults.setdefault(name, []).extend(reasons)
            tell("index files", done, len(checks))
    return faults


def _too_long(store: FileStore, sizes: Mapping[str, int]) -> dict[str, list[str]]:
    """Return the files that are longer than the snapshot says; missing or shorter ones fail when they are read."""
    folders = {name.partition("/")[0] for name in sizes}
    stored = {file.name: file.size for folder in sorted(folders) for file in store.files(folder)}
    return {
        name: [f"{name}: has {stored[name]:,} bytes instead of {size:,}"]
        for name, size in sizes.items()
        if stored.get(name, 0) > size
    }


def _verify_trees(snapshot: Snapshot) -> Iterator[str]:
    """Yield the tree nodes whose statistics do not hold for what is below them."""
    for column in snapshot.columns:
        try:
            nodes = snapshot.tree_zones(Field(column.path, column.type))
            wrong = [] if nodes is None else contradicted_nodes(nodes, snapshot.tree)
        except IndexFault:
            continue  # already reported when every chunk was read
        name = name_of(column.path)
        yield from (f"{snapshot.name}: node {node} of the tree of {name} denies what is below it" for node in wrong)


def _verify_segment(store: FileStore, snapshot: Snapshot, directories: Sequence[Directory], segment: int) -> list[str]:
    """Return the faults of one segment file: its chunks must be where and what the snapshot says."""
    name, size = snapshot.segments.name[segment], int(snapshot.segments.size[segment])
    read = partial(store.read, name)
    try:
        contents = read_contents(name, SEGMENT, size, read)
        places = set(contents.chunks.values())
        named = [Place(int(d.at[segment]), int(d.size[segment]), int(d.crc[segment])) for d in directories]
        lost = [f"{name}: no chunk is {place}" for place in named if place.size and place not in places]
        return lost + (contents.verify(read) or _verify_locations(store, snapshot, segment))
    except IndexFault as fault:
        return [str(fault)]


def _verify_locations(store: FileStore, snapshot: Snapshot, segment: int) -> list[str]:
    """Return the fault of a segment whose page locations fail the checksums in their table of contents."""
    try:
        stored_segment(store, snapshot, segment).page_locations()
        return []
    except IndexFault as fault:
        return [str(fault)]


def _verify_file(store: FileStore, name: str, kind: int, size: int) -> list[str]:
    """Return the faults of one file of filters or manifests."""
    read = partial(store.read, name)
    try:
        return read_contents(name, kind, size, read).verify(read)
    except IndexFault as fault:
        return [str(fault)]
