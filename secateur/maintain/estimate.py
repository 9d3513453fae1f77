"""Estimate the cost of an index: build a part of it in a temporary directory, and extrapolate."""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import pyarrow as pa

from secateur.index.build.assemble import Recipe, recipe
from secateur.index.build.build import new_build, total, write_segments
from secateur.index.build.survey import FileSurvey, cut
from secateur.index.build.tasks import run_in_process
from secateur.index.filters.size_class import shape_of
from secateur.index.model import NGRAM, OF_ROWS, BuildOptions, is_tuple_column
from secateur.index.naming import ColumnNaming
from secateur.index.segments.segment_file import BLOCKS, FILTER_KINDS, PAGE, PLACE, SIZE_CLASS, ZONE
from secateur.index.segments.segment_table import SegmentSummary
from secateur.io.storage.index_store import FileStore
from secateur.io.storage.locations import resolve_location
from secateur.io.tables.table import TableSnapshot
from secateur.maintain.publish import summarised_columns
from secateur.pruning.explain.advice import CLUSTERING, Advice
from secateur.pruning.explain.explanation import STRUCTURES
from secateur.pruning.predicate.index_paths import is_sum
from secateur.pruning.report import human_bytes, human_seconds

MOST_SAMPLED = 256 << 20  # bytes of data files
LARGE = 0.1  # share of the data above which an index is large
BYTES_PER_FILE = 64  # of a file in a snapshot, besides its path
_REST = ("", "files and row groups")


@dataclass(frozen=True)
class Expected:
    """The bytes that one structure would take in the index; `column` is empty for what serves all of them."""

    column: str
    structure: str  # zone map, pages, page locations, sum, bloom, postings, ngram, tokens, or files and row groups
    bytes: int


@dataclass(frozen=True)
class Saving:
    """The bytes that a predicate reads now and with the new structures, and when the index has paid for itself."""

    predicate: str
    bytes_now: float
    bytes_then: float
    queries: int | None  # after so many, as many bytes are saved as the build reads; None if nothing is saved


@dataclass(frozen=True)
class BuildEstimate:
    """The cost of an index that was not built: measured by building a part of it, and extrapolated by rows."""

    files: int
    blocks: int
    rows: int
    data_bytes: int
    sampled_files: int
    sampled_rows: int
    seconds: float  # with threads of this process
    structures: tuple[Expected, ...]  # the largest first
    gram_rate: float | None = None  # the share of row groups in which one n-gram errs; None without n-grams

    @property
    def index_bytes(self) -> int:
        """The bytes of the whole index."""
        return sum(expected.bytes for expected in self.structures)

    def savings(self, advice: Advice) -> tuple[Saving, ...]:
        """Return what each predicate of an advice would save by the structures in this estimate."""
        asked = {(expected.structure, expected.column) for expected in self.structures}
        left = [
            proposal.left
            for proposal in advice.proposals
            if proposal.structure != CLUSTERING and (proposal.structure, proposal.column) in asked
        ]
        savings = []
        for i, question in enumerate(advice.questions):
            then = min((of_predicate[i].bytes for of_predicate in left), default=question.now.bytes)
            saved = question.now.bytes - then
            queries = ceil(self.data_bytes / saved) if saved > 0 else None
            savings.append(Saving(question.predicate, question.now.bytes, then, queries))
        return tuple(savings)

    def __str__(self) -> str:
        part = "all" if self.sampled_files == self.files else f"{self.sampled_files:,} of {self.files:,}"
        share = f"{self.index_bytes / max(self.data_bytes, 1):.1%} of the data"
        lines = [
            f"the index would take {human_bytes(self.index_bytes)}, {share}, and {human_seconds(self.seconds)} in this "
            f"process: measured by building {part} files"
        ]
        lines += [
            f"  {human_bytes(item.bytes):>9}  {item.structure}" + (f" of {item.column}" if item.column else "")
            for item in self.structures
        ]
        if self.gram_rate is not None:
            lines.append(
                f"of texts that are not there, n-grams keep {self.gram_rate:.2g} of all row groups if a text is one "
                f"gram, {self.gram_rate**2:.2g} if it has a byte more, and so on: a lower rate (fpr) takes more bytes"
            )
        return "\n".join(lines)


def estimated(
    table: TableSnapshot, surveys: Sequence[FileSurvey], schema: pa.Schema, options: BuildOptions, survey_seconds: float
) -> BuildEstimate:
    """Estimate the index of surveyed files; `options` are those of a build."""
    files, rows, size = total((1, item.row_count, item.byte_count) for item in surveys)
    blocks = sum(item.block_count for item in surveys)
    what = recipe(schema, summarised_columns(schema, options), options, blocks)
    parts = cut(surveys, options.segment_blocks, has_postings=any(filter_.kind in OF_ROWS for filter_ in what.filters))
    sample = _sample(parts)
    begun = time.monotonic()
    summaries = _built(table, sample, what)
    seconds = time.monotonic() - begun
    sampled_files, sampled_rows, _ = total((1, item.row_count, item.byte_count) for part in sample for item in part)
    scale = rows / max(sampled_rows, 1)
    taken = _taken(summaries, what, table.naming, scale)
    taken[_REST] += sum(len(item.file.path) + BYTES_PER_FILE for item in surveys)
    structures = (Expected(*key, count) for key, count in taken.most_common() if count)
    return BuildEstimate(
        files,
        blocks,
        rows,
        size,
        sampled_files,
        sampled_rows,
        survey_seconds + seconds * scale,
        tuple(structures),
        next((rate for filter_, rate in zip(what.filters, what.rates, strict=True) if filter_.kind == NGRAM), None),
    )


def _sample(parts: Sequence[Sequence[FileSurvey]]) -> list[list[FileSurvey]]:
    """Return the first files of some segments, spread over the table: as many segments as there are threads."""
    count = min(len(parts), os.cpu_count() or 1)
    chosen = [parts[i] for i in np.unique(np.linspace(0, len(parts) - 1, count).astype(int)).tolist()]
    sample = []
    for part in chosen:
        ends = np.cumsum([item.byte_count for item in part])
        sample.append(list(part[: max(1, int(np.searchsorted(ends, MOST_SAMPLED // len(chosen), "right")))]))
    return sample


def _built(table: TableSnapshot, sample: Sequence[Sequence[FileSurvey]], what: Recipe) -> list[SegmentSummary]:
    """Build the segments of a sample in a temporary directory."""
    with tempfile.TemporaryDirectory(prefix="secateur-estimate-") as root:
        _, filesystem, path = resolve_location(root, None)
        store = FileStore(filesystem, path)
        with new_build(store) as build:
            return write_segments(run_in_process, build, table.open_for_index, store, sample, what)


def _taken(
    summaries: Sequence[SegmentSummary], what: Recipe, naming: ColumnNaming, scale: float
) -> Counter[tuple[str, str]]:
    """Return the bytes of every structure, by column and name, in an index `scale` times as large as some segments."""
    taken: Counter[tuple[str, str]] = Counter()
    filtered: Counter[tuple[int, int]] = Counter()  # blocks, by filter and size class
    for summary in summaries:
        for name, place in summary.places.items():
            taken[_structure(name, what, naming)] += round(scale * place.size)
        for f, fragments in summary.fragments.items():
            for fragment in fragments:
                filtered[f, fragment.size_class] += fragment.blocks
        rest = summary.size - sum(place.size for place in summary.places.values())
        for key, share in _of_the_rest(what, naming):
            taken[key] += round(scale * rest * share)
    for (f, size_class), blocks in filtered.items():
        taken[_structure(f"{SIZE_CLASS}/{f}", what, naming)] += ceil(scale * blocks * shape_of(size_class).bits / 8)
    return taken


def _of_the_rest(what: Recipe, naming: ColumnNaming) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield the structures with bytes outside of a segment's chunks, mainly rows of postings, each with its share."""
    postings = [f for f, filter_ in enumerate(what.filters) if filter_.kind in OF_ROWS]
    if not postings:
        yield _REST, 1.0
    for f in postings:
        yield _structure(f"{SIZE_CLASS}/{f}", what, naming), 1 / len(postings)


def _structure(chunk: str, what: Recipe, naming: ColumnNaming) -> tuple[str, str]:
    """Return the column and the structure that a chunk belongs to."""
    kind, _, number = chunk.partition("/")
    if kind in FILTER_KINDS:
        filter_ = what.filters[int(number)]
        return ".".join(naming.in_table(filter_.path)), STRUCTURES[filter_.kind]
    if kind == ZONE or kind in (PAGE, PLACE):
        column = what.columns[int(number)]
        if is_tuple_column(column.path):
            return "", "sort key"
        kept = "sum" if is_sum(column.path) else "zone map"
        return ".".join(naming.in_table(column.path)), kept if kind == ZONE else "pages"
    return _REST if kind == BLOCKS else ("", "page locations")
