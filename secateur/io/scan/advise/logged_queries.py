"""Turn the logged shapes of a table's predicates into queries, with literals as logged, or drawn from its rows."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import log
from statistics import fmean
from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from secateur.errors import InvalidPredicate, SecateurError
from secateur.io.scan.advise.block_samples import Place, Plan, read_blocks, sample
from secateur.io.scan.advise.drawn_literals import FROM, UNTIL, ComparedColumn, SampledRows, sampled_rows
from secateur.io.scan.opened_table import OpenedTable
from secateur.pruning.explain.filled_shapes import Slot, filled, slots
from secateur.pruning.explain.tuning import DRAWN, LOGGED, LoggedShape
from secateur.pruning.predicate.binding.resolve import Binder, resolve
from secateur.pruning.predicate.nodes import Column

MOST_SHAPES = 32  # for which queries are made: those that read the most
TOO_CHEAP = f"all its plans read less than those of {MOST_SHAPES} others"
QUERIES = 4  # of a shape
WIDTHS = tuple(4.0**-i for i in range(7))  # shares of the rows that drawn ranges hold
ALIKE = 1.25  # times: widths by which bounds leave as much as in the log, or nearly
DRAWN_BLOCKS = 8  # whose rows literals are drawn from
SEED = 23  # the same log and table give the same queries


@dataclass(frozen=True)
class LoggedQuery:
    """A predicate as text; `source` is the block of the row that its literals are of, if they are drawn."""

    text: str
    source: Place | None = None


@dataclass(frozen=True)
class Queries:
    """The queries that stand for a shape, by the width of their ranges, and where their literals are from.

    Without queries, `note` says why there are none.
    """

    by_width: tuple[tuple[LoggedQuery, ...], ...]
    note: str


Drawing = TypeVar("Drawing")
_Asked: TypeAlias = tuple[ComparedColumn, ...]


def queries_of(whole: Plan, shapes: Sequence[LoggedShape]) -> list[Queries]:
    """Return the queries of every shape, in order; the shapes that read the most come first. Raises as reading does."""
    ready = [_as_logged(shape) or _to_draw(shape, whole.opened) for shape in shapes[:MOST_SHAPES]]
    drawings = [item for item in ready if not isinstance(item, Queries)]
    rows = _rows(whole, [compared for drawing in drawings for compared in drawing])
    rng = np.random.default_rng(SEED)
    queries = [
        item if isinstance(item, Queries) else _drawn(shape, item, rows, rng)
        for shape, item in zip(shapes, ready, strict=False)
    ]
    return [*queries, *(Queries((), TOO_CHEAP) for _ in shapes[MOST_SHAPES:])]


def _as_logged(shape: LoggedShape) -> Queries | None:
    """Return the queries of a shape whose literals are known; None if they are not."""
    texts = [text for literals in shape.examples if (text := _filled(shape.shape, literals)) is not None]
    return Queries((tuple(map(LoggedQuery, texts[:QUERIES])),), f"literals {LOGGED}") if texts else None


def _filled(shape: str, literals: Sequence[str]) -> str | None:
    try:
        return filled(shape, literals)
    except InvalidPredicate:
        return None


def _to_draw(shape: LoggedShape, opened: OpenedTable) -> _Asked | Queries:
    """Return what each literal of a shape is compared with, or no query and why not."""
    try:
        asked = slots(shape.shape)
        if any(slot is None for slot in asked):
            return Queries((), "a literal is compared with more than a column; log literals as they are")
        return tuple(_compared(opened, asked))
    except SecateurError as error:
        return Queries((), f"cannot be read back: {str(error).splitlines()[0]}")


def _compared(opened: OpenedTable, asked: Sequence[Slot | None]) -> Iterator[ComparedColumn]:
    binder = Binder(opened.readable_schema, dt.UTC)
    for slot in asked:
        if slot is not None:
            yield ComparedColumn(resolve(Column(slot.column), binder), slot)


def _rows(whole: Plan, compared: Sequence[ComparedColumn]) -> SampledRows:
    """Read the columns that literals are compared with, in some blocks."""
    names = list(dict.fromkeys(item.field.path[0] for item in compared))
    places = sorted(sample(whole, DRAWN_BLOCKS).places) if names else []
    batches: dict[Place, pa.RecordBatch] = read_blocks(whole.opened, names, places, lambda place, batch: batch)
    return sampled_rows(batches, compared)


def _drawn(shape: LoggedShape, compared: _Asked, rows: SampledRows, rng: np.random.Generator) -> Queries:
    """Draw the literals of some queries."""
    if not compared:
        return Queries(((LoggedQuery(shape.shape),),), "it has no literals")
    widths = WIDTHS if any(item.slot.test in (*FROM, *UNTIL) for item in compared) else WIDTHS[:1]
    by_width = []
    for width in widths:
        draws = [rows.draw(compared, width, rng) for _ in range(QUERIES)]
        texts = {filled(shape.shape, drawn.literals): drawn.source for drawn in draws if drawn is not None}
        by_width.append(tuple(LoggedQuery(text, source) for text, source in texts.items()))
    known = tuple(queries for queries in by_width if queries)
    return Queries(known, f"literals {DRAWN} from the table" if known else "no row has literals for it")


def likeliest(by_width: Sequence[Sequence[Drawing]], left: Callable[[Drawing], float], logged: float) -> list[Drawing]:
    """Return drawn queries of the widths by which bounds leave the share that they left of the logged plans.

    Where bounds tell the width, that is one of them; else queries of all widths are mixed.
    """
    if len(by_width) < 2:
        return [query for queries in by_width for query in queries]
    shares = [max(fmean(map(left, queries)), sys.float_info.min) for queries in by_width]
    away = [abs(log(share / max(logged, sys.float_info.min))) for share in shares]
    alike = [q for q, apart in zip(by_width, away, strict=True) if apart <= min(away) + log(ALIKE)]
    each_in_turn = [query for queries in zip_longest(*alike) for query in queries if query is not None]
    step = max(1, len(alike) // QUERIES)
    return each_in_turn[: QUERIES * step : step]
