"""Describe the current index of a table."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from typing import TYPE_CHECKING

from secateur.errors import IndexFault
from secateur.index.model import BLOOM, NGRAM, ORDERED, POSTINGS, TOKEN, BuildOptions, Choice, Filter, is_own
from secateur.index.naming import Path
from secateur.index.segments.named_columns import called_in_table
from secateur.index.segments.segment_file import LOCATION_TABLE, PAGE_LOCATIONS
from secateur.index.segments.snapshot import Snapshot
from secateur.index.segments.snapshot_files import snapshot_numbers
from secateur.io.scan.index_coverage import Covered, covered
from secateur.io.scan.opened_table import opened_strictly
from secateur.io.tables.listing import Listing
from secateur.io.tables.open import as_table
from secateur.io.tables.table import Table
from secateur.maintain.entries import require_snapshot
from secateur.maintain.estimate import LARGE, BuildEstimate
from secateur.markup import facts_html, table_html, text_of
from secateur.pruning.report import human_bytes

if TYPE_CHECKING:
    from secateur.io.tables.open import Source


KINDS = ("bloom", "postings", "ordered", "ngram", "tokens", "gaps", "sums")


@dataclass(frozen=True)
class IndexSnapshot:
    """The contents of an index: counts of the snapshot, its bytes, and how each column was indexed."""

    number: int
    created: float
    location: str
    segments: int
    files: int
    blocks: int
    rows: int
    data_bytes: int
    index_bytes: int
    location_bytes: int  # part of the above that stores page locations; 0 if not kept
    columns: tuple[str, ...]
    bloom: tuple[str, ...]
    postings: tuple[str, ...]
    ordered: tuple[str, ...]  # with ordered postings
    ngram: tuple[str, ...]
    tokens: tuple[str, ...]
    gaps: tuple[str, ...]
    sums: tuple[str, ...]
    sort_key: tuple[str, ...]
    choices: tuple[Choice, ...]  # what the build decided for `auto` columns, and why
    table_snapshot: int | None  # the one that the index was built or refreshed for, if the format has snapshots
    coverage: tuple[Covered, ...]  # one per column and structure
    estimate: BuildEstimate | None = None  # of a dry run, which built nothing

    @property
    def age_seconds(self) -> float:
        """Seconds since it was published."""
        return max(0.0, time.time() - self.created)

    @property
    def is_large(self) -> bool:
        """Whether it takes more than a tenth of the data's bytes."""
        return self.index_bytes > LARGE * self.data_bytes

    def facts(self) -> list[tuple[str, str]]:
        """Return its contents as names and values, for people; a value is empty if there is none."""
        created = dt.datetime.fromtimestamp(self.created, UTC)
        share = f", {self.index_bytes / self.data_bytes:.1%} of the data" if self.data_bytes else ""
        return [
            ("index", f"{self.location}, snapshot {self.number} of {created:%Y-%m-%d %H:%M:%S} UTC"),
            ("segments", f"{self.segments:,}"),
            ("files", f"{self.files:,}"),
            ("blocks", f"{self.blocks:,}"),
            ("rows", f"{self.rows:,}"),
            ("data", human_bytes(self.data_bytes)),
            ("index size", human_bytes(self.index_bytes) + share),
            ("page locations", human_bytes(self.location_bytes) if self.location_bytes else ""),
            ("columns", f"{len(self.columns):,}"),
            ("sort key", ", ".join(self.sort_key)),
            *((kind, ", ".join(getattr(self, kind))) for kind in KINDS),
            *((f"{choice.column} by", f"{choice.structure}: {choice.why}") for choice in self.choices),
        ]

    def __str__(self) -> str:
        return text_of(self.facts())

    def _repr_html_(self) -> str:
        """Return the same for a notebook, and what each structure costs and covers."""
        rows = [
            (part.column, part.structure, human_bytes(part.bytes), f"{part.blocks:,}", part.why or "")
            for part in self.coverage
        ]
        columns = ("column", "structure", "bytes", "blocks covered", "")
        return facts_html("Index", self.facts()) + table_html(columns, rows)


def undone(location: str, options: BuildOptions, columns: Sequence[Path], estimate: BuildEstimate) -> IndexSnapshot:
    """Describe an index that was not built; options and columns have the table's names."""
    filters = [(option.kind, option.column) for option in options.filters]
    return IndexSnapshot(
        number=0,
        created=0.0,
        location=location,
        segments=0,
        files=estimate.files,
        blocks=estimate.blocks,
        rows=estimate.rows,
        data_bytes=estimate.data_bytes,
        index_bytes=estimate.index_bytes,
        location_bytes=sum(item.bytes for item in estimate.structures if item.structure == "page locations"),
        columns=tuple(".".join(path) for path in columns),
        bloom=tuple(column for kind, column in filters if kind == BLOOM),
        postings=tuple(column for kind, column in filters if kind == POSTINGS),
        ordered=tuple(column for kind, column in filters if kind == ORDERED),
        ngram=tuple(column for kind, column in filters if kind == NGRAM),
        tokens=tuple(column for kind, column in filters if kind == TOKEN),
        gaps=options.gaps,
        sums=options.sums,
        sort_key=options.sort_key,
        choices=options.choices,
        table_snapshot=None,
        coverage=(),
        estimate=estimate,
    )


def describe_index(table: Table | Source) -> IndexSnapshot:
    """Describe the current index of a table, and what it covers now.

    Returns
    -------
    IndexSnapshot
        Counts, bytes, and the coverage of every column and structure.

    Raises
    ------
    IndexMissing, IndexFault
    """
    table = as_table(table)
    return described(table)


def described(table: Table, listing: Listing | None = None) -> IndexSnapshot:
    """Describe the index for the files of a fresh listing. Raises IndexMissing, IndexFault."""
    while True:
        snapshot = require_snapshot(table, table.snapshot().cache)
        try:
            return _described(table, snapshot, listing)
        except IndexFault:
            if snapshot.number in snapshot_numbers(table.store):
                raise  # otherwise the snapshot was removed meanwhile: describe the current one


def _described(table: Table, snapshot: Snapshot, listing: Listing | None) -> IndexSnapshot:
    naming = table.snapshot().naming
    options = called_in_table(snapshot.options, naming)
    filters = [replace(filter_, path=naming.in_table(filter_.path)) for filter_ in snapshot.filters]
    segments = snapshot.segments
    return IndexSnapshot(
        number=snapshot.number,
        created=snapshot.created,
        location=table.store.location,
        segments=len(segments),
        files=int(segments.file_count.sum()),
        blocks=int(segments.block_count.sum()),
        rows=int(segments.row_count.sum()),
        data_bytes=int(snapshot.segment_files.byte_count.sum()),
        index_bytes=_index_bytes(snapshot),
        location_bytes=_location_bytes(snapshot),
        columns=tuple(".".join(naming.in_table(column.path)) for column in snapshot.columns if is_own(column.path)),
        bloom=_filtered(filters, BLOOM),
        postings=_filtered(filters, POSTINGS),
        ordered=_filtered(filters, ORDERED),
        ngram=_filtered(filters, NGRAM),
        tokens=_filtered(filters, TOKEN),
        gaps=options.gaps,
        sums=options.sums,
        sort_key=options.sort_key,
        choices=options.choices,
        table_snapshot=None if snapshot.made_of is None else snapshot.made_of.id,
        coverage=tuple(covered(opened_strictly(table, listing))),
    )


def _filtered(filters: Sequence[Filter], kind: str) -> tuple[str, ...]:
    """Return the columns that have a filter of this kind."""
    return tuple(".".join(filter_.path) for filter_ in filters if filter_.kind == kind)


def _index_bytes(snapshot: Snapshot) -> int:
    manifests = 0 if snapshot.made_of is None else sum(file.size for file in snapshot.made_of.manifests)
    return int(snapshot.segments.size.sum()) + sum(filter_files(snapshot).values()) + manifests + snapshot.nbytes


def _location_bytes(snapshot: Snapshot) -> int:
    directories = (snapshot.directory(kind, None) for kind in (PAGE_LOCATIONS, LOCATION_TABLE))
    return sum(int(directory.size.sum()) for directory in directories if directory is not None)


def filter_files(snapshot: Snapshot) -> dict[str, int]:
    """Return all bloom matrix files with their sizes. Raises IndexFault."""
    bloom_matrices = [
        matrices for f in range(len(snapshot.filters)) if (matrices := snapshot.bloom_matrices(f)) is not None
    ]
    return {
        name: size
        for matrices_of_filter in bloom_matrices
        for name, size in zip(matrices_of_filter.file_name, matrices_of_filter.file_size.tolist(), strict=True)
    }
