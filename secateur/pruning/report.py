"""What every stage of a plan did: counts before and after, time, and what could not be used."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

import pyarrow as pa

from secateur.errors import IndexFault

UNITS = ("segments", "files", "blocks", "pages", "rows", "bytes")


@dataclass(frozen=True)
class Counts:
    """How much survives; None is unknown, as the blocks of a file whose footer was not read."""

    segments: int | None = None
    files: int | None = None
    blocks: int | None = None
    pages: int | None = None
    rows: int | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class StageReport:
    """One stage: what went in, what came out."""

    name: str
    before: Counts
    after: Counts
    seconds: float
    degraded: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass
class Reads:
    """What a plan read of the index, in pieces and bytes: from its store, from the cache on local disk."""

    stored: int = 0
    stored_bytes: int = 0
    cached: int = 0
    cached_bytes: int = 0

    def add(self, stored: int, stored_bytes: int, cached: int, cached_bytes: int) -> None:
        """Count what was read elsewhere."""
        self.stored += stored
        self.stored_bytes += stored_bytes
        self.cached += cached
        self.cached_bytes += cached_bytes

    def __str__(self) -> str:
        parts = [f"{self.stored:,} pieces, {human_bytes(self.stored_bytes)}"] if self.stored else []
        if self.cached:
            parts.append(f"{self.cached:,} pieces, {human_bytes(self.cached_bytes)} from the disk cache")
        return "; ".join(parts) or "nothing, all that was asked for lay in memory"


@dataclass(frozen=True)
class Report:
    """The stages of one plan in order."""

    predicate: str
    stages: tuple[StageReport, ...]
    unsupported: tuple[str, ...] = ()
    index: str = "none"
    reads: Reads = field(default_factory=Reads)

    @property
    def degraded(self) -> tuple[str, ...]:
        """Every reason for which a stage could not use its index."""
        return tuple(reason for stage in self.stages for reason in stage.degraded)

    @property
    def seconds(self) -> float:
        """Time spent in all stages."""
        return sum(stage.seconds for stage in self.stages)

    def to_table(self) -> pa.Table:
        """One row per stage: before and after of every unit, milliseconds, reasons for degradation."""
        columns: dict[str, list[object]] = {"stage": [stage.name for stage in self.stages]}
        for unit in UNITS:
            columns[f"{unit}_before"] = [getattr(stage.before, unit) for stage in self.stages]
            columns[f"{unit}_after"] = [getattr(stage.after, unit) for stage in self.stages]
        columns["milliseconds"] = [stage.seconds * 1000 for stage in self.stages]
        columns["degraded"] = ["; ".join(stage.degraded) for stage in self.stages]
        types = {"stage": pa.string(), "milliseconds": pa.float64(), "degraded": pa.string()}
        return pa.table({name: pa.array(values, types.get(name, pa.int64())) for name, values in columns.items()})

    def to_json(self) -> str:
        """The report as one JSON object."""
        return json.dumps({**asdict(self), "seconds": self.seconds}, indent=2)

    def to_text(self) -> str:
        """The report as a table of text: one line per stage, ``before -> after`` where a stage changed a count."""
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
                f"index: {self.index}",
                f"read of the index: {self.reads}",
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
    """A number of bytes as people read it: ``1.2 MB``."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(count) < 1000 or unit == "TB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError


@dataclass
class Faults:
    """Collects index trouble of one query: kept as a reason, or raised if `strict`.

    This is the only place where an IndexFault is caught on the way of a query. What the guarded code was about to
    decide stays undecided, so blocks are kept.
    """

    strict: bool = False
    reasons: list[str] = field(default_factory=list)

    @contextmanager
    def tolerated(self) -> Iterator[None]:
        """Run code that reads the index; on a fault record the reason and go on behind the block."""
        try:
            yield
        except IndexFault as fault:
            if self.strict:
                raise
            self.record(str(fault))

    def record(self, reason: str) -> None:
        """Note a reason once."""
        if reason not in self.reasons:
            self.reasons.append(reason)

    def drain(self) -> tuple[str, ...]:
        """The reasons since the last call."""
        reasons, self.reasons = tuple(self.reasons), []
        return reasons


def summary(stages: Sequence[StageReport]) -> str:
    """One line for the log: blocks, rows and bytes before the first stage and after the last."""
    first, last = stages[0].before, stages[-1].after
    parts = (
        f"{unit} {_change(unit, getattr(first, unit), getattr(last, unit))}"
        for unit in ("files", "blocks", "rows", "bytes")
    )
    return ", ".join(parts)
