"""What a predicate implies for sort key tuples: byte ranges that contain the tuple of every matching row.

Conditions on the leading columns of a key fix a prefix of its bytes (:mod:`secateur.pruning.bounds.key_bytes`). So
``a = 5 AND b >= 50`` gives one range from (5, 50) to the end of (5, ...), and a block with tuples from (5, 90) to
(6, 10) holds no row of ``a = 5 AND b = 50``, although its values of a are 5 and 6 and those of b may be anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import NamedTuple

from secateur.pruning.bounds import rangeset
from secateur.pruning.bounds.key_bytes import AFTER_VALUES, VALUE, Component
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.column_keys import ColumnKeys, keys_where
from secateur.pruning.predicate.nodes import And, Is, Or, Predicate
from secateur.pruning.predicate.trees import Steps, each_of, unrolled
from secateur.values.key import Key, least_key, prefix_successor, successor
from secateur.values.kinds import Kind, kind_of

MOST_INTERVALS = 512  # for example a year of days; comparing a million blocks with this many takes 0.2 s
MOST_ALTERNATIVES = 64  # under one OR


class KeyColumn(NamedTuple):
    """A column of a sort key, bound to the table's schema."""

    field: Field
    descending: bool
    nulls_first: bool


def key_ranges(
    predicate: Predicate, key: Sequence[KeyColumn | tuple[Field, bool, bool]], most: int = MOST_INTERVALS
) -> RangeSet | None:
    """Return the tuples of rows on which a bound, rewritten predicate can be TRUE, as byte ranges.

    Sound: the tuple of every row on which it is TRUE is inside, so a block is dead if [least, greatest] of its tuples,
    or looser bounds, contain no byte string inside. This only removes TRUE: a block whose tuples are all inside need
    not match. None if the result would add nothing to the first column's zone map: that column is nowhere a point, or
    no other column is restricted beside one. Each conjunction gives about `most` ranges; if there would be more, those
    of the last columns are merged first.
    """
    columns = [KeyColumn(*column) for column in key]
    tuples = _tuples(predicate, columns, most)
    return None if tuples == _tuples(predicate, columns[:1], most) else tuples


def _tuples(predicate: Predicate, key: Sequence[KeyColumn], most: int) -> RangeSet:
    """Return a set of about `most` ranges: the union for OR, the intersection for AND.

    An AND is also evaluated as a whole, as each child restricts only one column.
    """
    return unrolled(partial(_tuples_of, key=key), (predicate, most), {})


def _tuples_of(asked: tuple[Predicate, int], key: Sequence[KeyColumn]) -> Steps[RangeSet]:
    predicate, most = asked
    match predicate:
        case And(children):
            alternatives = yield from each_of((child, most) for child in children if isinstance(child, Or))
            return reduce(rangeset.intersection, alternatives, _box(predicate, key, most))
        case Or(children) if len(children) <= MOST_ALTERNATIVES:
            share = max(1, most // len(children))
            return reduce(rangeset.union, (yield from each_of((child, share) for child in children)))
        case Is(child, True):
            return (yield child, most)
        case _:
            return _box(predicate, key, most)


def _box(predicate: Predicate, key: Sequence[KeyColumn], most: int) -> RangeSet:
    """Return the tuples whose components can be TRUE, column by column, up to the first unrestricted column.

    A first column that is nowhere a point is used without the others: those would only narrow the ends of its ranges,
    at most two blocks if the data is sorted, which does not justify reading tuple bounds.
    """
    restricted: list[tuple[Component, ColumnKeys]] = []
    for column in key:
        kind = kind_of(column.field.type)
        if kind is None or (ranges := keys_where(predicate, True, column.field)).is_everything:
            break
        restricted.append((Component(kind, column.descending, column.nulls_first), ranges))
    spans: list[list[_Span]] = []
    for i, (component, ranges) in enumerate(restricted):
        spans.append(_spans(component, ranges, most, split=i + 1 < len(restricted)))
        most = max(1, most // max(1, len(spans[-1])))
    if spans and not any(span.is_point for span in spans[0]):
        spans = spans[:1]
    return _ranges(_joined(spans))


def _ranges(intervals: Sequence[tuple[bytes, bytes | None]]) -> RangeSet:
    """Return the union of intervals [start, stop), which ascend and do not overlap."""
    thresholds: list[Key] = []
    for start, stop in intervals:
        if thresholds and thresholds[-1] == start:
            thresholds.pop()
        else:
            thresholds.append(start)
        if stop is not None:
            thresholds.append(stop)
    return rangeset.of_thresholds(Kind.BYTES, thresholds)


def _joined(spans: Sequence[Sequence[_Span]]) -> list[tuple[bytes, bytes | None]]:
    """Return the ascending intervals of tuples with one component in each list of spans; without lists, all tuples.

    Sound: a tuple whose component is a point continues in an interval of the other columns. In a wider span only tuples
    at its first or last value are restricted by the other columns. A tuple with a later value than the first sorts
    after everything that begins with the first; the same holds at the last. So the hull of the span from (first, start
    of the others) to (last, end of the others) contains all.
    """
    if not spans:
        return [(b"", None)]
    rest = _joined(spans[1:])
    if not rest:
        return []
    joined: list[tuple[bytes, bytes | None]] = []
    for span in spans[0]:
        if span.is_point:
            assert span.first is not None, "a point has a first key"
            ends = ((start, _continued(span.first, stop, span.stop)) for start, stop in rest)
            joined += [(span.first + start, stop) for start, stop in ends]
        else:
            start = span.start if span.first is None else max(span.start, span.first + rest[0][0])
            joined.append((start, _continued(span.last, rest[-1][1], span.stop)))
    return joined


def _continued(component: bytes | None, stop: bytes | None, otherwise: bytes) -> bytes:
    return otherwise if component is None or stop is None else component + stop


# ---- spans of one component ------------------------------------------------------------------------------------------


class _Span(NamedTuple):
    """Adjacent components: exactly the tuples with one of them begin in [start, stop).

    `first` and `last` are the components of the values at its ends, None where the span is open.
    """

    start: bytes
    stop: bytes
    first: bytes | None
    last: bytes | None

    @property
    def is_point(self) -> bool:
        return self.first is not None and self.first == self.last


def _spans(component: Component, keys: ColumnKeys, most: int, *, split: bool) -> list[_Span]:
    """Return the spans of a column's values in byte order: about `most`, or one over all of them."""
    runs = _runs(keys.values, most)
    spans = [_span(component, start, stop) for start, stop in (_split_runs(runs, most) if split else runs)]
    if component.descending:
        spans.reverse()
    if keys.null:
        null = _point(component.null)
        spans = [null, *spans] if component.nulls_first else [*spans, null]
    return spans


def _runs(ranges: RangeSet, most: int) -> list[tuple[Key, Key | None]]:
    """Return the ranges [start, stop) of a set of keys, or one hull if there are more than `most`."""
    thresholds = ranges.thresholds
    if len(thresholds) > 2 * most:
        thresholds = thresholds[[0]] if len(thresholds) % 2 else thresholds[[0, -1]]
    cuts: list[Key | None] = thresholds.tolist()
    if len(cuts) % 2:
        cuts.append(None)
    return list(zip(cuts[::2], cuts[1::2], strict=True))  # type: ignore[arg-type]


def _split_runs(runs: Sequence[tuple[Key, Key | None]], most: int) -> list[tuple[Key, Key | None]]:
    """Split runs of few integers into single ones, as long as the total is at most `most`."""
    split: list[tuple[Key, Key | None]] = []
    spare = most - len(runs)
    for start, stop in runs:
        if isinstance(start, int) and isinstance(stop, int) and stop - start - 1 <= spare:
            split += [(key, key + 1) for key in range(start, stop)]
            spare -= stop - start - 1
        else:
            split.append((start, stop))
    return split


def _span(component: Component, start: Key, stop: Key | None) -> _Span:
    """Return the span of the keys in [start, stop); a `stop` of None is unbounded."""
    if stop == successor(start, component.kind):
        return _point(component.encode(start))
    at_start = None if start == least_key(component.kind) else component.encode(start)
    before_stop = None if stop is None else _before(stop)
    at_last = None if before_stop is None else component.encode(before_stop)
    at_stop = None if stop is None else component.encode(stop)
    if component.descending:
        begin, end = (_after(at_stop) if at_stop else VALUE), (_after(at_start) if at_start else AFTER_VALUES)
        return _Span(begin, end, at_last, at_start)
    return _Span(at_start or VALUE, at_stop or AFTER_VALUES, at_start, at_last)


def _point(component: bytes) -> _Span:
    return _Span(component, _after(component), component, component)


def _before(key: Key) -> Key | None:
    """Return the key just before another, or None: bytes have a predecessor only after a final zero byte."""
    match key:
        case bytes():
            return key[:-1] if key.endswith(b"\0") else None
        case int():
            return key - 1


def _after(component: bytes) -> bytes:
    """Return the least byte string greater than all that begin with a component."""
    successor = prefix_successor(component)
    assert successor is not None, "the first byte is at most 2"
    return successor
