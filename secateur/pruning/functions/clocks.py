"""Clocks: convert arrays of instants to local times in a time zone, and back.

A zone's clock adds an offset that changes at certain instants; the way back subtracts it. Both are tables of shifts,
made from ``zoneinfo`` by sampling every few days and bisecting between samples. Java's and Python's rules continue
forever after the last recorded change, and repeat with the calendar every 400 years.

Java's and Python's databases differ for some zones before 1970; there only this is known: no clock is more than 18
hours from UTC (``java.time.ZoneOffset``). Releases of the database agree from 1970-01-01T00:00Z on, and no clock in it
changed between 1969-11-23 and 1970-02-01, so they agree from that December on.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from secateur.pruning.functions.calendar import DAY_SECONDS
from secateur.values.key import INT64_MAX, INT64_MIN

FARTHEST = 18 * 3600  # seconds between a clock and UTC, at most
AGREED = -30 * DAY_SECONDS  # 1969-12-02: from here on Java and Python have the same offsets
_AGREED_LATER = {  # zones whose past was corrected in 2024 or later, or which became links: seconds
    **dict.fromkeys(("Asia/Tehran", "Iran"), 315_532_800),  # 1980
    "EET": 347_155_200,  # 1981
    "WET": 852_076_800,  # 1997
}
FAR = 4_102_444_800  # 2100-01-01: from here on clocks repeat every CYCLE
CYCLE = 146_097 * DAY_SECONDS  # 400 years of the Gregorian calendar, whole weeks

_PROBE = 6 * DAY_SECONDS  # every offset since 1970 lasts longer
_FAR_PROBE = 28 * DAY_SECONDS  # and by a rule without end, longer than this
_ALIASES_OF_UTC = frozenset(("GMT", "GMT+0", "GMT-0", "GMT0", "Greenwich", "UCT", "UTC", "Universal", "Zulu"))


class Changes(NamedTuple):
    """The changes of a clock: offsets[i] holds before instants[i], offsets[i + 1] from there on; seconds."""

    instants: np.ndarray
    offsets: np.ndarray


@dataclass(frozen=True)
class _Shifts:
    """A table of shifts: x becomes x + shift, plus or minus the slack; segment i begins at starts[i]."""

    starts: np.ndarray
    shift: np.ndarray
    slack: np.ndarray
    latest: np.ndarray  # the greatest value of all x before the segment
    earliest: np.ndarray  # the least value of all x after the segment


def _shifts(starts: np.ndarray, shift: np.ndarray, slack: np.ndarray) -> _Shifts:
    last, first = starts[1:] - 1 + (shift + slack)[:-1], starts[1:] + (shift - slack)[1:]
    latest = np.append(INT64_MIN, np.maximum.accumulate(last))
    earliest = np.append(np.minimum.accumulate(first[::-1])[::-1], INT64_MAX)
    return _Shifts(starts, shift, slack, latest, earliest)


class _Segments(NamedTuple):
    """Arrays of shape (n,): the segment, the least and the greatest value, and the extremes outside the segment."""

    segment: np.ndarray
    least: np.ndarray
    greatest: np.ndarray
    latest: np.ndarray
    earliest: np.ndarray


@dataclass(frozen=True)
class Shifting:
    """A piecewise shift of times with a given number of units per second: from instants to local times, or back."""

    near: _Shifts
    make_long: Callable[[], _Shifts]
    unit: int

    @cached_property
    def long(self) -> _Shifts:
        """The table that extends to the year 2500."""
        return self.make_long()

    @property
    def constant(self) -> int | None:
        """The shift, if it is the same for all times."""
        return int(self.near.shift[0]) if len(self.near.starts) == 1 else None

    def hull(self, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of the shifted times of all x in [lower, upper]; exact if the two are equal and known.

        Within a segment the ends are the extremes. Otherwise an earlier segment may end later, where a clock goes back,
        or a later one begin earlier. Values beyond 64 bits are clamped to the least or greatest int64.
        """
        if self.constant is not None:
            low = _plus(lower, self.near.shift)
            return low, low if lower is upper else _plus(upper, self.near.shift)
        table = self._table(lower, upper)
        a = self._find(table, lower)
        if lower is upper:
            return a.least, a.greatest
        b = self._find(table, upper)
        same = a.segment == b.segment
        low = np.where(same, a.least, np.minimum(a.least, a.earliest))
        return low, np.where(same, b.greatest, np.maximum(b.greatest, b.latest))

    def _table(self, lower: np.ndarray, upper: np.ndarray) -> _Shifts:
        is_near = max(lower.max(initial=0), upper.max(initial=0)) < FAR * self.unit
        return self.near if is_near else self.long

    def _find(self, table: _Shifts, x: np.ndarray) -> _Segments:
        far, cycle = FAR * self.unit, CYCLE * self.unit
        cycles = np.zeros_like(x) if table is self.near else (np.maximum(x, far) - far) // cycle
        passed = cycles * cycle
        segment = np.searchsorted(table.starts, x - passed, side="right") - 1
        value, slack = _plus(x, table.shift[segment]), table.slack[segment]
        least = greatest = value
        if slack.any():
            least, greatest = _plus(value, -slack), _plus(value, slack)
        latest, earliest = _plus(table.latest[segment], passed), _plus(table.earliest[segment], passed)
        return _Segments(segment + cycles * len(table.starts), least, greatest, latest, earliest)


def _plus(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Add, clamping to the end of int64 on overflow."""
    total = a + b
    overflows = (total < a) != (b < 0)
    return np.where(overflows, np.where(b < 0, INT64_MIN, INT64_MAX), total) if overflows.any() else total


@dataclass(frozen=True)
class Clock:
    """The clock of a zone.

    `local` gives the local times of instants. `instants` gives the instants of local times as ``java.time`` does: a
    skipped time is moved later by the length of the gap, and for a repeated time the earlier instant is taken. `later`
    takes the later one, and is for bounds.
    """

    local: Shifting
    instants: Shifting
    later: Shifting


@cache
def clock(zone: dt.tzinfo, unit: int = 1) -> Clock:
    """Return the cached clock of a zone, for times with `unit` units per second."""
    offset = fixed_offset(zone)
    if offset is not None:
        back = _constant(-offset * unit, unit)
        return Clock(_constant(offset * unit, unit), back, back)

    def shifting(table: Callable[[Changes, int, int], _Shifts]) -> Shifting:
        since = agreed(zone)
        return Shifting(table(_near(zone), since, unit), lambda: table(_long(zone), since, unit), unit)

    return Clock(shifting(_local), shifting(_instants), shifting(_later))


def fixed_offset(zone: dt.tzinfo) -> int | None:
    """Return how many seconds a zone is always ahead of UTC, or None if its offset changes or may have changed."""
    named = isinstance(zone, ZoneInfo) and (zone.key in _ALIASES_OF_UTC or zone.key.startswith("Etc/"))
    return _offset(AGREED, zone) if named or isinstance(zone, dt.timezone) else None


def agreed(zone: dt.tzinfo) -> int:
    """Return the second from which on the offsets of a zone are known."""
    return _AGREED_LATER.get(zone.key, AGREED) if isinstance(zone, ZoneInfo) else AGREED


@cache
def _near(zone: dt.tzinfo) -> Changes:
    return changes(zone, agreed(zone), FAR, _PROBE)


@cache
def _long(zone: dt.tzinfo) -> Changes:
    """Include the changes of the first cycle, and of one more year."""
    near, far = _near(zone), changes(zone, FAR, FAR + CYCLE + 366 * DAY_SECONDS, _FAR_PROBE)
    between = [FAR] if near.offsets[-1] != far.offsets[0] else []
    offsets = far.offsets if between else far.offsets[1:]
    return Changes(np.concatenate([near.instants, between, far.instants]), np.append(near.offsets, offsets))


def changes(zone: dt.tzinfo, start: int, stop: int, step: int) -> Changes:
    """Return the changes of a zone's offset between two instants; offsets shorter than `step` may be missed."""
    instants: list[int] = []
    offsets = [_offset(start, zone)]
    for probe in range(start + step, stop + step, step):
        offset = _offset(probe, zone)
        if offset != offsets[-1]:
            instants.append(_change(probe - step, probe, offset, zone))
            offsets.append(offset)
    kept = sum(instant < stop for instant in instants)
    return Changes(np.array(instants[:kept], np.int64), np.array(offsets[: kept + 1], np.int64))


def _change(low: int, high: int, after: int, zone: dt.tzinfo) -> int:
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _offset(middle, zone) == after else (middle, high)
    return high


def _offset(instant: int, zone: dt.tzinfo) -> int:
    offset = dt.datetime.fromtimestamp(instant, zone).utcoffset()
    assert offset is not None, "the moment has a zone"
    return offset.days * DAY_SECONDS + offset.seconds


def _constant(shift: int, unit: int) -> Shifting:
    table = _shifts(np.array([INT64_MIN]), np.array([shift]), np.array([0]))
    return Shifting(table, lambda: table, unit)


def _local(changes: Changes, since: int, unit: int) -> _Shifts:
    return _since(since, changes.instants, changes.offsets, unit)


def _instants(changes: Changes, since: int, unit: int) -> _Shifts:
    """Start each offset where the previous one no longer applies: at the end of the gap or overlap."""
    begin = changes.instants + np.maximum(changes.offsets[1:], changes.offsets[:-1])
    return _since(since + FARTHEST, begin, -changes.offsets, unit)


def _later(changes: Changes, since: int, unit: int) -> _Shifts:
    begin = changes.instants + np.minimum(changes.offsets[1:], changes.offsets[:-1])
    return _since(since + FARTHEST, begin, -changes.offsets, unit)


def _since(start: int, begin: np.ndarray, shift: np.ndarray, unit: int) -> _Shifts:
    """Build the table that knows nothing before `start`."""
    starts = np.append(start, np.maximum(begin, start)).astype(np.int64) * unit
    slack = np.append(FARTHEST, np.zeros(len(starts))).astype(np.int64) * unit
    return _shifts(np.append(INT64_MIN, starts), np.append(0, shift).astype(np.int64) * unit, slack)
