"""Check predicates over expressions: rows against Spark, units against rows."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import reduce

import numpy as np
import pyarrow as pa

from secateur.errors import IncomparableLiteral
from secateur.index.zones import zonemap
from secateur.pruning.bounds.outcomes import FALSE, NULL, TRUE
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.evaluate import evaluate
from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.bound_walks import all_leaves, fields, is_supported
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.predicate.rewrite import rewrite
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.rows.row_values import column
from secateur.pruning.rows.truth import truth
from secateur.values.kinds import kind_of

SINGLE = (TRUE, FALSE, NULL)


def bound(text: str, schema: pa.Schema, zone: str, *, ansi: bool = True) -> Predicate | None:
    """The predicate as bound, or None for one that Spark refuses too."""
    try:
        return bind(parse(text), schema, session_time_zone=zone, ansi=ansi)
    except IncomparableLiteral:
        return None


ROWS = 40


@dataclass(frozen=True)
class Asked:
    """A predicate, and the rows on which Spark is asked for its value."""

    text: str
    predicate: Predicate
    rows: list[int]


def defined_rows(predicate: Predicate, batch: pa.RecordBatch) -> list[int]:
    """The rows on which all conditions have a value; all rows where only Spark can evaluate them.

    Spark may raise the error of one condition although another decides the row: which it evaluates first is its affair.
    """
    if not is_supported(predicate):
        return list(range(batch.num_rows))
    decided = [np.isin(truth(predicate_part, batch), SINGLE) for predicate_part in (predicate, *all_leaves(predicate))]
    return np.flatnonzero(np.logical_and.reduce(decided)).tolist()


def within_rows(text: str, rows: list[int]) -> str:
    """The predicate on some rows only; on the others, Spark may raise an error."""
    return text if len(rows) == ROWS else f"IF(rid IN ({', '.join(map(str, rows)) or 'NULL'}), ({text}), NULL)"


def check_rows(asked: Asked, batch: pa.RecordBatch, expected: dict[int, int]) -> None:
    """The reference: what rows are here, they are in Spark."""
    for form in (asked.predicate, rewrite(asked.predicate)):
        if not is_supported(form):
            continue
        outcomes = truth(form, batch).tolist()
        for i, outcome in expected.items():
            row = {str(field): column(batch, field)[i] for field in fields(asked.predicate)}
            assert outcomes[i] == outcome, f"{asked.text} on {row}: {outcomes[i]}, {outcome} in Spark"


def check_groups(asked: Asked, batch: pa.RecordBatch, expected: dict[int, int]) -> None:
    """What is possible in a group of rows contains what its rows are."""
    for form in (asked.predicate, rewrite(asked.predicate)):
        groups = Groups(batch, cut(batch.num_rows))
        said = evaluate(form, groups)
        for (start, stop), possible in zip(groups.spans, said.tolist(), strict=True):
            really = reduce(operator.or_, (expected.get(i, 0) for i in range(start, stop)))
            assert possible & really == really, f"{asked.text} on rows {start} to {stop}: {possible} lacks {really}"


def cut(n: int) -> list[tuple[int, int]]:
    """Groups of one, two, three, ... rows."""
    spans, start = [], 0
    for size in range(1, n):
        spans.append((start, min(start + size, n)))
        start += size
        if start >= n:
            break
    return spans


@dataclass(frozen=True)
class Groups:
    """Zone maps of runs of rows; statistics of forgotten fields are unknown."""

    batch: pa.RecordBatch
    spans: list[tuple[int, int]]
    forgotten: frozenset[str] = frozenset()
    made: dict[Field, Zones] = dataclass_field(default_factory=dict)  # which groups of other forgotten fields share

    def __len__(self) -> int:
        return len(self.spans)

    @property
    def row_count(self) -> np.ndarray:
        return np.array([stop - start for start, stop in self.spans])

    def zones(self, field: Field) -> Zones | None:
        if kind_of(field.type) is None or field.path[0] in self.forgotten:
            return None
        if field not in self.made:
            self.made[field] = self._zones(field)
        return self.made[field]

    def _zones(self, field: Field) -> Zones:
        values = column(self.batch, field)
        parts = [zonemap.of_values(values.slice(start, stop - start), field.type) for start, stop in self.spans]
        lower, upper, nulls, nans = zip(*parts, strict=True)
        low, high = (pa.array([bound.as_py() for bound in side], side[0].type) for side in (lower, upper))
        zones = zonemap.from_bounds(field.type, low, high, np.array(nulls), np.array(nans), self.row_count)
        return zones.zones(self.row_count)


def windows(n: int) -> list[tuple[int, int]]:
    """Single rows, runs of two, three, five and eight, and last all rows."""
    runs = [(start, start + size) for size in (1, 2, 3, 5, 8) for start in range(0, n - size + 1, size)]
    return [*runs, (0, n)]
