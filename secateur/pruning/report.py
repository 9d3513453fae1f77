"""Reports of plans: counts before and after each stage, time, and what could not be used."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import InitVar, asdict, dataclass, field, replace
from functools import cache, partial

import pyarrow as pa

from secateur.errors import IndexFault
from secateur.pruning.metrics import FileMetrics, Metric, before_and_after, counter, timer
from secateur.pruning.shape import PredicateShape

UNITS = ("segments", "files", "blocks", "pages", "rows", "bytes")


@dataclass(frozen=True)
class Counts:
    """How much survives; None is unknown, for example for blocks of a file whose footer was not read."""

    segments: int | None = None
    files: int | None = None
    blocks: int | None = None
    pages: int | None = None
    rows: int | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class StageReport:
    """One stage: its input and output counts."""

    name: str
    before: Counts
    after: Counts
    seconds: float
    degraded: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass
class Reads:
    """What a plan read of the index beside its snapshot, in chunks and bytes: from the store and the disk cache."""

    stored: int = 0
    stored_bytes: int = 0
    cached: int = 0
    cached_bytes: int = 0

    def add(self, stored: int, stored_bytes: int, cached: int, cached_bytes: int) -> None:
        """Add reads made elsewhere."""
        self.stored += stored
        self.stored_bytes += stored_bytes
        self.cached += cached
        self.cached_bytes += cached_bytes

    def __str__(self) -> str:
        parts = [f"{self.stored:,} chunks, {human_bytes(self.stored_bytes)}"] if self.stored else []
        if self.cached:
            parts.append(f"{self.cached:,} chunks, {human_bytes(self.cached_bytes)} from the disk cache")
        return "; ".join(parts) or "nothing but its snapshot and what was in memory"


@dataclass(frozen=True)
class AuditReport:
    """What an audit read of pruned blocks and pruned rows; none of the rows matched."""

    blocks: int  # blocks that were read
    excluded: int  # blocks from which they were drawn
    rows: int  # rows that were checked
    skipped: tuple[str, ...] = ()  # why blocks or rows could not be checked

    def __str__(self) -> str:
        skipped = "".join(f"; {reason}" for reason in self.skipped)
        return f"{self.blocks:,} of {self.excluded:,} pruned blocks read, {self.rows:,} rows: none matches{skipped}"


@dataclass(frozen=True)
class Since:
    """The files that a plan asks for: files that came after a snapshot of the table, or of a directory's index."""

    snapshot: int
    files: int
    live_files: int  # of the whole table

    def __str__(self) -> str:
        return f"of {self.live_files:,} files, {self.files:,} came after snapshot {self.snapshot}"


@dataclass(frozen=True)
class Report:
    """The stages of one plan in order, and the table that was planned over."""

    predicate: str
    stages: tuple[StageReport, ...]
    unsupported: tuple[str, ...] = ()
    index: str = "none"
    reads: Reads = field(default_factory=Reads)
    table: str = ""  # the table's location
    snapshot_id: int | None = None  # of the table, if its format has snapshots
    since: Since | None = None  # None: all live files are asked for
    planning_seconds: float = 0.0  # includes listing files and opening the index
    audit: AuditReport | None = None
    kept: bool = False  # the plan was made when the same was asked before: no stage has run for this one
    order: str = ""  # the ORDER BY and LIMIT of a plan that asks for the first rows
    measure: InitVar[Callable[[], FileMetrics] | None] = None  # called only on demand, as it looks at every file
    asked: InitVar[Callable[[], PredicateShape] | None] = None  # the shape of the predicate, likewise

    def __post_init__(
        self, measure: Callable[[], FileMetrics] | None, asked: Callable[[], PredicateShape] | None
    ) -> None:
        self.__dict__["measure"] = None if measure is None else cache(measure)
        self.__dict__["asked"] = None if asked is None else cache(asked)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "measure": partial(replace, self.files), "asked": partial(replace, self.shape)}

    @property
    def degraded(self) -> tuple[str, ...]:
        """Every reason why a stage could not use its index."""
        return tuple(reason for stage in self.stages for reason in stage.degraded)

    @property
    def seconds(self) -> float:
        """Time spent in all stages."""
        return sum(stage.seconds for stage in self.stages)

    @property
    def files(self) -> FileMetrics:
        """File and manifest counts of the plan, computed on first access."""
        measure = self.__dict__["measure"]
        return FileMetrics() if measure is None else measure()

    @property
    def shape(self) -> PredicateShape:
        """The predicate without its literals, printed on first access."""
        asked = self.__dict__["asked"]
        return PredicateShape("", ()) if asked is None else asked()

    def metrics(self) -> dict[str, Metric]:
        """Return the metrics of Iceberg's ScanReport by name and in its form, and some more.

        A counter is ``{"unit": "count" | "bytes", "value": n}``, the duration of planning ``{"count": 1, "time-unit":
        "nanoseconds", "total-duration": n}``.

        Manifests are read whole and kept: *scanned* are those that this plan read, *skipped* those that were in memory
        or beside the index. No manifest is skipped because of its entry in the manifest list. ``skipped-data-files``
        counts all live files not read; ``total-file-size-in-bytes`` sums whole files, even if some of their row groups
        are pruned. ``result-delete-files`` counts a delete file once for every file to read that it applies to;
        ``indexed-delete-files`` counts all live ones, ``skipped-delete-files`` those that no file to read needs.

        Further metrics count row groups, rows and pages (before, after, and their difference) and index reads. Unknown
        values have no entry, for example pages if none were examined.
        """
        first, last = self.stages[0].before, self.stages[-1].after
        pages = next((stage.before.pages for stage in self.stages if stage.before.pages is not None), None)
        files = before_and_after("data-files", first.files, last.files)
        return {
            "total-planning-duration": timer(self.planning_seconds or self.seconds),
            **files,
            **self.files.counters(),
            **before_and_after("row-groups", first.blocks, last.blocks),
            **before_and_after("rows", first.rows, last.rows),
            **before_and_after("pages", pages, last.pages),
            "result-row-group-size-in-bytes": counter(last.bytes or 0, "bytes"),
            "scanned-index-chunks": counter(self.reads.stored),
            "scanned-index-size-in-bytes": counter(self.reads.stored_bytes, "bytes"),
            "disk-cached-index-chunks": counter(self.reads.cached),
            "disk-cached-index-size-in-bytes": counter(self.reads.cached_bytes, "bytes"),
            "degraded-stages": counter(sum(bool(stage.degraded) for stage in self.stages)),
        }

    def to_table(self) -> pa.Table:
        """Return one row per stage: before and after of every unit, milliseconds, reasons for degradation."""
        columns: dict[str, list[object]] = {"stage": [stage.name for stage in self.stages]}
        for unit in UNITS:
            columns[f"{unit}_before"] = [getattr(stage.before, unit) for stage in self.stages]
            columns[f"{unit}_after"] = [getattr(stage.after, unit) for stage in self.stages]
        columns["milliseconds"] = [stage.seconds * 1000 for stage in self.stages]
        columns["degraded"] = ["; ".join(stage.degraded) for stage in self.stages]
        types = {"stage": pa.string(), "milliseconds": pa.float64(), "degraded": pa.string()}
        return pa.table({name: pa.array(values, types.get(name, pa.int64())) for name, values in columns.items()})

    def to_json(self) -> str:
        """Return the report as one JSON object."""
        return json.dumps({**asdict(self), "seconds": self.seconds, "metrics": self.metrics()}, indent=2)

    def described_table(self) -> str:
        """Describe the table: its location, its snapshot if it has one, and its files and deletes."""
        table = self.table if self.snapshot_id is None else f"{self.table}, snapshot {self.snapshot_id}"
        if self.snapshot_id is None and self.since is None:
            return table
        live, touched = self.stages[0].before.files, self.files.touched
        deletes = f", at most {touched:,} of them with deletes" if touched else ""
        return f"{table}, {_amount('files', live) + ' files' if self.since is None else self.since}{deletes}"

    def to_text(self) -> str:
        """Return the report as text: one line per stage, ``before -> after`` where a stage changed a count."""
        heads = ("stage", *UNITS, "ms")
        lines = [heads, *(_line(stage) for stage in self.stages)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
        rows = [
            "  ".join(_aligned(cell, width, i) for i, (cell, width) in enumerate(zip(line, widths, strict=True)))
            for line in lines
        ]
        rule = "  ".join("-" * width for width in widths)
        notes = [f"{stage.name}: {note}" for stage in self.stages for note in stage.notes]
        degraded = [f"degraded: {stage.name}: {reason}" for stage in self.stages for reason in stage.degraded]
        unsupported = [f"not used for pruning: {reason}" for reason in self.unsupported]
        return "\n".join(
            [
                f"predicate: {self.predicate}",
                *([f"order: {self.order}"] if self.order else []),
                *([f"table: {self.described_table()}"] if self.table else []),
                f"index: {self.index}",
                *([f"read of the index: {self.reads}"] if self.index != "none" else []),
                *(["plan: as it was made when the same was asked before of the same files"] if self.kept else []),
                *([f"audit: {self.audit}"] if self.audit else []),
                "",
                rows[0],
                rule,
                *rows[1:],
                "",
                *notes,
                *unsupported,
                *degraded,
            ]
        ).rstrip()


def _aligned(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column == 0 else cell.rjust(width)


def _line(stage: StageReport) -> tuple[str, ...]:
    cells = (_change(unit, getattr(stage.before, unit), getattr(stage.after, unit)) for unit in UNITS)
    return (stage.name, *cells, f"{stage.seconds * 1000:.2f}")


def _change(unit: str, before: int | None, after: int | None) -> str:
    if before == after or before is None:
        return _amount(unit, after)
    return f"{_amount(unit, before)} -> {_amount(unit, after)}"


def _amount(unit: str, count: int | None) -> str:
    if count is None:
        return "-"
    return human_bytes(count) if unit == "bytes" else f"{count:,}"


def human_bytes(count: float) -> str:
    """Format a number of bytes for people: ``1.2 MB``."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(count) < 1000 or unit == "TB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError


def counted(count: int | None, noun: str) -> str:
    """Format a number of things for people: ``1 block``, ``2,000 blocks``; None is unknown."""
    if count is None:
        return f"an unknown number of {noun}s"
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def human_seconds(seconds: float) -> str:
    """Format a duration for people: ``1.2 s``, ``34 minutes``, ``5 hours``, ``7 days``."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    for unit, size, most in (("minutes", 60, 100), ("hours", 3600, 48)):
        if seconds < most * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400:.0f} days"


@dataclass
class Faults:
    """Collects index faults of one query: recorded as reasons, or raised if `strict`.

    Queries catch IndexFault only here. Whatever the guarded code was about to decide stays undecided, so blocks are
    kept.
    """

    strict: bool = False
    reasons: list[str] = field(default_factory=list)

    @contextmanager
    def tolerated(self) -> Iterator[None]:
        """Guard code that reads the index: on a fault, record the reason and continue after the ``with`` block."""
        try:
            yield
        except IndexFault as fault:
            if self.strict:
                raise
            self.record(str(fault))

    def record(self, reason: str) -> None:
        """Record a reason once."""
        if reason not in self.reasons:
            self.reasons.append(reason)

    def drain(self) -> tuple[str, ...]:
        """Return the reasons since the last call."""
        reasons, self.reasons = tuple(self.reasons), []
        return reasons


def summary(stages: Sequence[StageReport]) -> str:
    """Return one line for the log: blocks, rows and bytes before the first stage and after the last."""
    first, last = stages[0].before, stages[-1].after
    parts = (
        f"{unit} {_change(unit, getattr(first, unit), getattr(last, unit))}"
        for unit in ("files", "blocks", "rows", "bytes")
    )
    return ", ".join(parts)
