"""Check the values of a block against the index: zone maps, gaps, pages and tuples.

Nothing is measured the way a build measures it: values are compared one by one with the recorded statistics, as keys or
as bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import truths
from secateur.index.model import IndexedColumn, name_of
from secateur.index.zones.sort_key import SortColumn
from secateur.index.zones.zonemap import ZoneMap
from secateur.pruning.bounds.key_bytes import encode_rows
from secateur.values.conversion import keys_of, scalar_of
from secateur.values.key import Key, least_key, successor
from secateur.values.keys import UNBOUNDED, greatest_keys
from secateur.values.kinds import Kind, is_float, kind_of, ordered_kind

MOST_SHOWN = 80  # bytes of a value in a message


@dataclass(frozen=True)
class Contradiction:
    """A statistic of a column, its recorded value, and its actual value."""

    column: str
    statistic: str
    recorded: str
    actual: str

    def __str__(self) -> str:
        return f"{self.statistic} of {self.column} is recorded as {self.recorded}, and {self.actual} was found"


@dataclass(frozen=True)
class Unit:
    """The recorded statistics of one column in one unit; a bound of None is unknown."""

    kind: Kind
    lower: Key | None
    upper: Key | None
    null_count: int
    nan_count: int
    gaps: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def of(zone_map: ZoneMap, i: int) -> Unit:
        """Return the statistics of unit i of a zone map."""
        kind = zone_map.lower.kind
        endless = bool(zone_map.upper.words[-1][i] == UNBOUNDED) if kind is Kind.BYTES else False
        lower, upper = zone_map.lower.at(i), None if endless else zone_map.upper.at(i)
        stored = zone_map.stored_gaps
        ends = () if stored is None else zip(stored.low[:, i], stored.high[:, i], strict=True)
        gaps = tuple((int(low), int(high)) for low, high in ends if low < high)
        return Unit(
            kind,
            None if lower == least_key(kind) else lower,
            None if upper is None or (kind is not Kind.BYTES and upper == greatest_keys(kind, 1).at(0)) else upper,
            int(zone_map.null_count[i]),
            int(zone_map.nan_count[i]),
            gaps,
        )

    def outside(self, values: pa.Array) -> Iterator[tuple[str, Key, Key]]:
        """Yield each statistic that a value contradicts, its recorded bound, and the value's key; nulls are skipped."""
        present = values.drop_null()
        for name, bound, wrong in (("lower", self.lower, _below), ("upper", self.upper, _above)):
            at = None if bound is None else _first(wrong(present, bound))
            if bound is not None and at is not None:
                yield name, bound, keys_of(present.slice(at, 1)).at(0)
        if self.gaps and len(present):
            keys = keys_of(present).words[0]
            for low, high in self.gaps:
                at = _first((keys > low) & (keys < high))
                if at is not None:
                    yield "gap", low, int(keys[at])


def _below(values: pa.Array, bound: Key) -> np.ndarray:
    if isinstance(bound, bytes):
        return truths(pc.less(values.cast(pa.binary()), pa.scalar(bound, pa.binary())))
    return ~keys_of(values).at_least(bound)


def _above(values: pa.Array, bound: Key) -> np.ndarray:
    if isinstance(bound, bytes):
        return truths(pc.greater(values.cast(pa.binary()), pa.scalar(bound, pa.binary())))
    kind = ordered_kind(values.type)
    following = successor(bound, kind)
    return np.zeros(len(values), bool) if following is None else keys_of(values).at_least(following)


def _first(wrong: np.ndarray) -> int | None:
    return int(np.argmax(wrong)) if wrong.any() else None


@dataclass
class ColumnWitness:
    """Takes all values of one column in one block, in order, and collects the statistics that they contradict."""

    column: IndexedColumn
    block: Unit
    block_rows: int
    segment: Unit | None = None  # of the leaf of the tree above it
    segment_rows: int = -1
    first_row: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # of every page of the block
    pages: Sequence[Unit] = ()
    rows: int = 0
    nulls: int = 0
    nans: int = 0
    contradictions: dict[str, Contradiction] = field(default_factory=dict)  # the first contradiction of every statistic
    _ends: list[Key] = field(default_factory=list)  # the least and the greatest key of every batch
    _page_nulls: dict[int, int] = field(default_factory=dict)
    _page_nans: dict[int, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return name_of(self.column.path)

    def add(self, values: pa.Array) -> None:
        """Check the next values of the block."""
        values = values.cast(self.column.type) if values.type != self.column.type else values
        for statistic, recorded, key in self.block.outside(values):
            self._contradicted(f"the {statistic} bound" if statistic != "gap" else "a gap", recorded, key)
        if self.segment is not None:
            for statistic, recorded, key in self.segment.outside(values):
                self._contradicted(f"the {statistic} bound of its segment in the tree", recorded, key)
        for page, part in self._by_page(values):
            for statistic, recorded, key in self.pages[page].outside(part):
                self._contradicted(f"the {statistic} bound of page {page}", recorded, key)
            self._page_nulls[page] = self._page_nulls.get(page, 0) + part.null_count
            self._page_nans[page] = self._page_nans.get(page, 0) + self._nans(part)
        self.rows += len(values)
        self.nulls += values.null_count
        self.nans += self._nans(values)
        self._ends += _ends_of(values)

    def _by_page(self, values: pa.Array) -> Iterator[tuple[int, pa.Array]]:
        """Split values by page."""
        if not len(self.pages) or not len(values):
            return
        page = max(int(np.searchsorted(self.first_row, self.rows, "right")) - 1, 0)
        begin = self.rows
        end = self.rows + len(values)
        while begin < end:
            stop = min(end, int(self.first_row[page + 1])) if page + 1 < len(self.first_row) else end
            yield page, values.slice(begin - self.rows, stop - begin)
            begin, page = stop, page + 1

    def _nans(self, values: pa.Array) -> int:
        return (pc.sum(pc.is_nan(values)).as_py() or 0) if is_float(self.column.type) else 0

    def end(self) -> list[Contradiction]:
        """Return all contradictions, after all values were added."""
        self._count("the row count", self.block_rows, self.rows)
        self._count("the null count", self.block.null_count, self.nulls)
        self._count("the NaN count", self.block.nan_count, self.nans)
        for page, unit in enumerate(self.pages):
            self._count(f"the null count of page {page}", unit.null_count, self._page_nulls.get(page, 0))
            if self._page_nans.get(page, 0) and not unit.nan_count:
                self._count(f"the NaN count of page {page}", 0, self._page_nans[page])
        if self.segment is not None:
            if self.nulls and not self.segment.null_count:
                self._count("the null count of its segment in the tree", 0, self.nulls)
            if self.rows > self.nulls and self.segment.null_count == self.segment_rows:
                text = f"{self.segment_rows}, all rows"
                self._note("the null count of its segment in the tree", text, "a value")
        self._compare_ends()
        return list(self.contradictions.values())

    def _compare_ends(self) -> None:
        """Check that known bounds, except of texts, are the least and greatest value: aggregates rely on that."""
        if self.block.kind is Kind.BYTES or not self._ends:
            return
        least, greatest = min(self._ends), max(self._ends)
        if self.block.lower is not None and self.block.lower != least:
            self._contradicted("the lower bound", self.block.lower, least)
        unknown_nans = is_float(self.column.type) and self.block.nan_count < 0
        if self.block.upper is not None and self.block.upper != greatest and not unknown_nans:
            self._contradicted("the upper bound", self.block.upper, greatest)

    def _count(self, statistic: str, recorded: int, actual: int) -> None:
        if recorded >= 0 and recorded != actual:
            self._note(statistic, str(recorded), str(actual))

    def _contradicted(self, statistic: str, recorded: Key, key: Key) -> None:
        self._note(statistic, value_text(recorded, self.column.type), value_text(key, self.column.type))

    def _note(self, statistic: str, recorded: str, actual: str) -> None:
        self.contradictions.setdefault(statistic, Contradiction(self.name, statistic, recorded, actual))


def _ends_of(values: pa.Array) -> list[Key]:
    """Return the least and the greatest key of some values, except of texts; empty without values."""
    present = values.drop_null()
    if not len(present) or kind_of(values.type) is Kind.BYTES:
        return []
    keys = keys_of(present)
    order = np.lexsort(tuple(reversed(keys.words)))
    return [keys.at(int(order[0])), keys.at(int(order[-1]))]


def value_text(key: Key, type_: pa.DataType) -> str:
    """Format a key as the value that it stands for, truncated if long."""
    if isinstance(key, bytes):
        return repr(key[:MOST_SHOWN].decode("utf-8", "backslashreplace"))
    try:
        return str(scalar_of(key, type_))[:MOST_SHOWN]
    except (pa.ArrowException, ValueError, OverflowError):  # a bound that is no value of the type
        return f"the key {key}"


def tuple_contradictions(
    columns: Sequence[pa.Array], sort_key: Sequence[SortColumn], unit: Unit
) -> Iterator[Contradiction]:
    """Yield the contradictions between a block's rows and the bounds of the sort key's tuples; one array per column."""
    components = [column.component(values.type) for column, values in zip(sort_key, columns, strict=True)]
    rows = encode_rows(columns, components)
    for statistic, recorded, actual in unit.outside(rows):
        name = ", ".join(map(str, sort_key))
        assert isinstance(recorded, bytes) and isinstance(actual, bytes), "tuples are encoded as bytes"
        yield Contradiction(
            name, f"the {statistic} bound of the tuples of the sort key", recorded.hex(), actual[:MOST_SHOWN].hex()
        )
