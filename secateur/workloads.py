"""Summarise the logged plans of a table: what they ask for, and what they read."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from statistics import median
from typing import TYPE_CHECKING, Any

from secateur.errors import InvalidOption, SecateurError
from secateur.io.storage.line_log import read_lines
from secateur.io.storage.redaction import redacted_location, without_secrets
from secateur.io.tables.open import as_table
from secateur.plan_log import PATH_VARIABLE, log_path

if TYPE_CHECKING:
    from secateur.io.tables.open import Source
    from secateur.io.tables.table import Table

_COUNTED = ("blocks", "bytes")
_HASH = re.compile("[0-9a-f]{8}")
_COLUMN = re.compile(r"`(?:[^`]|``)+`(?:\.`(?:[^`]|``)+`)*")  # as shapes have names, which have no literals
MOST_EXAMPLES = 8  # lists of literals that are kept of a shape


@dataclass(frozen=True)
class ShapeUse:
    """The plans of one shape over one table."""

    table: str
    shape: str  # the predicate with `?` for every literal, and the order if first rows are asked for
    plans: int
    literals: int  # different lists of literals
    bytes_read: int  # that survive pruning, summed over the plans
    bytes_before: int
    blocks_read: int
    blocks_before: int
    planning_ms: float  # median
    most_planning_ms: float
    degraded: int  # plans that could not use some of the index
    bytes_after_stage: Mapping[str, int]  # that each stage left, summed over the plans, in their order
    first: str  # when the first and the last of the plans was made
    last: str
    order: str = ""  # the ORDER BY and LIMIT that the shape ends with, if first rows are asked for
    examples: tuple[tuple[str, ...], ...] = ()  # some lists of literals, if the log has them as they are
    bytes_judged: int = 0  # read by reads of which it is known which row groups held a match
    bytes_matched: int = 0  # of these, in row groups that held one
    ideal_bytes: int | None = None  # of `bytes_read`, in such row groups, by their share in those; None: unknown

    @property
    def predicate(self) -> str:
        """The shape without an order."""
        return self.shape.removesuffix(_order_by(self.order))


@dataclass(frozen=True)
class ColumnUse:
    """The plans over one table that name a column."""

    table: str
    column: str  # as SQL: in back-quotes, nested ones with dots
    plans: int
    bytes_read: int  # by these plans, in all columns


@dataclass(frozen=True)
class Workload:
    """The logged plans by shape, the most expensive first."""

    log: str
    plans: int
    unreadable: int  # lines that are not plans
    shapes: tuple[ShapeUse, ...]

    @property
    def bytes_read(self) -> int:
        """Bytes that survive pruning, summed over all plans."""
        return sum(shape.bytes_read for shape in self.shapes)

    @property
    def columns(self) -> tuple[ColumnUse, ...]:
        """The columns that predicates name, those for whose plans most bytes are read first.

        A plan that names several counts for each of them.
        """
        sums: dict[tuple[str, str], tuple[int, int]] = {}
        for use in self.shapes:
            for column in dict.fromkeys(_COLUMN.findall(use.predicate)):
                plans, size = sums.get((use.table, column), (0, 0))
                sums[use.table, column] = plans + use.plans, size + use.bytes_read
        uses = (ColumnUse(*key, *counts) for key, counts in sums.items())
        return tuple(sorted(uses, key=lambda use: (-use.bytes_read, -use.plans, use.table, use.column)))

    @property
    def bytes_judged(self) -> int:
        """Bytes read, summed over all plans of shapes of which it is known what an ideal index would read."""
        return sum(shape.bytes_read for shape in self.shapes if shape.ideal_bytes is not None)

    @property
    def ideal_bytes(self) -> int:
        """Bytes that an ideal index would read for the plans of these shapes: of row groups that hold a match."""
        return sum(shape.ideal_bytes or 0 for shape in self.shapes)


def workload(table: Table | Source | None = None, *, log: str | os.PathLike[str] | None = None) -> Workload:
    """Summarise the logged plans of a table, or of all tables.

    Plans are logged to the file that ``SECATEUR_LOG`` or ``sec.enable(spark, log=...)`` names. A plan counts what
    survives pruning; Spark may plan a query more than once. Which row groups held a match is known of plans without a
    limit that this library reads itself, to their end (`to_arrow`, `to_batches`, `count`), and of those that leave
    nothing.

    Parameters
    ----------
    log
        The log; by default the one to which this process logs.

    Returns
    -------
    Workload
        The shapes of predicates, those for which most bytes are read first.

    Raises
    ------
    InvalidOption
        If no log is named, or it cannot be read.
    """
    path = log_path() if log is None else os.fspath(log)
    if path is None:
        raise InvalidOption(f"there is no log: name it by log=, or set {PATH_VARIABLE}")
    names = None if table is None else _names_of(table)
    uses: dict[tuple[str, str], _Use] = {}
    plans = unreadable = 0
    try:
        for record in _records(path):
            if record is None:
                unreadable += 1
            elif names is None or _plain(record["table"]) in names:
                key = record["table"], record["shape"] + _order_by(record["order"])
                use = uses.setdefault(key, _Use(*key, record["order"]))
                if "matched" in record:
                    use.add_read(record)
                else:
                    plans += 1
                    use.add(record)
    except OSError as error:
        raise InvalidOption(f"cannot read the log {path}: {error}") from None
    planned = (use.done() for use in uses.values() if use.times)
    shapes = sorted(planned, key=lambda use: (-use.bytes_read, -use.plans, use.shape))
    return Workload(path, plans, unreadable, tuple(shapes))


def _order_by(order: str) -> str:
    return f" ORDER BY {order}" if order else ""


def _names_of(table: Table | Source) -> set[str]:
    """Return the names under which a table may be logged; for a table that is gone, its name as given."""
    names = {_plain(without_secrets(redacted_location(str(getattr(table, "location", table)))))}
    if isinstance(table, str | os.PathLike):
        names.add(_plain(os.path.abspath(table)))
    try:
        names.add(_plain(without_secrets(redacted_location(as_table(table).location))))
    except (SecateurError, OSError, ValueError):
        return names
    return names


def _plain(location: str) -> str:
    return location.removeprefix("file://").rstrip("/")


def _records(path: str) -> Iterator[dict[str, Any] | None]:
    """Yield the plans of a log; None for a line that is no plan, such as one that a full disk has truncated."""
    for line in read_lines(path):
        if line.strip():
            try:
                yield _checked(json.loads(line))
            except (ValueError, KeyError, TypeError):
                yield None


def _checked(record: Any) -> dict[str, Any]:
    """Return a record with the fields that a summary needs. Raises KeyError, TypeError, ValueError."""
    texts = {name: str(record[name]) for name in ("table", "shape", "order", "at")}
    if "matched" in record:
        return {**texts, "matched": _pair(record["matched"]["bytes"])}
    counts = {unit: _pair(record[unit]) for unit in _COUNTED}
    stages = [(str(stage["name"]), _pair(stage["bytes"])[1]) for stage in record["stages"]]
    return {
        **texts,
        **counts,
        "stages": stages,
        "literals": tuple(map(str, record["literals"])),
        "ms": float(record["planning_ms"]),
        "degraded": bool(record["degraded"]),
    }


def _pair(values: Iterable[int | None]) -> tuple[int, int]:
    before, after = (0 if value is None else int(value) for value in values)
    return before, after


class _Use:
    """A shape while its plans are counted."""

    def __init__(self, table: str, shape: str, order: str) -> None:
        self.table, self.shape, self.order = table, shape, order
        self.times: list[float] = []
        self.literals: dict[tuple[str, ...], None] = {}
        self.counts = dict.fromkeys(_COUNTED, (0, 0))
        self.after: dict[str, int] = {}
        self.degraded = 0
        self.moments: list[str] = []
        self.judged = self.matched = 0

    def add(self, record: Mapping[str, Any]) -> None:
        self.times.append(record["ms"])
        self.literals[record["literals"]] = None
        self.degraded += record["degraded"]
        self.moments = [min([*self.moments, record["at"]]), max([*self.moments, record["at"]])]
        for unit in _COUNTED:
            before, after = self.counts[unit]
            self.counts[unit] = before + record[unit][0], after + record[unit][1]
        for name, left in record["stages"]:
            self.after[name] = self.after.get(name, 0) + left

    def add_read(self, record: Mapping[str, Any]) -> None:
        read, matched = record["matched"]
        self.judged += read
        self.matched += matched

    def _ideal(self) -> int | None:
        """Return the bytes that held a match of all that the plans read, by the share in what is known."""
        read = self.counts["bytes"][1]
        if not read:
            return 0
        return round(read * self.matched / self.judged) if self.judged else None

    def done(self) -> ShapeUse:
        """Return the sums."""
        return ShapeUse(
            table=self.table,
            shape=self.shape,
            plans=len(self.times),
            literals=len(self.literals),
            bytes_read=self.counts["bytes"][1],
            bytes_before=self.counts["bytes"][0],
            blocks_read=self.counts["blocks"][1],
            blocks_before=self.counts["blocks"][0],
            planning_ms=median(self.times),
            most_planning_ms=max(self.times),
            degraded=self.degraded,
            bytes_after_stage=self.after,
            first=self.moments[0],
            last=self.moments[1],
            order=self.order,
            examples=tuple(islice(filter(_as_they_are, self.literals), MOST_EXAMPLES)),
            bytes_judged=self.judged,
            bytes_matched=self.matched,
            ideal_bytes=self._ideal(),
        )


def _as_they_are(literals: tuple[str, ...]) -> bool:
    """Whether a list of literals may be as written; one in which each looks like a hash is taken for hashed."""
    return not literals or not all(map(_HASH.fullmatch, literals))
