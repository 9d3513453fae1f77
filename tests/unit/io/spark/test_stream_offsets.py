"""How far a batch may go, and what lies between two offsets of a stream."""

from __future__ import annotations

import numpy as np
import pytest

from secateur.io.spark.stream_offsets import FileSpan, Limits, Offset, begun, limited, spans

SIZES = np.array([10, 20, 30, 5])
FIRST: Offset = {"snapshot": 1, "identity": "a"}
LAST: Offset = {"snapshot": 4, "identity": "b"}


def within(files: int) -> Offset:
    return {**LAST, "after": 1, "files": files}


@pytest.mark.parametrize(
    ("limits", "first", "stop"),
    [
        (Limits(), 0, 4),
        (Limits(files=3), 0, 3),
        (Limits(files=3), 2, 4),
        (Limits(bytes=30), 0, 2),
        (Limits(bytes=29), 0, 1),
        (Limits(bytes=1), 2, 3),
        (Limits(files=1, bytes=1000), 1, 2),
        (Limits(files=9, bytes=35), 2, 4),
    ],
)
def test_a_batch_stops_at_the_first_limit(limits: Limits, first: int, stop: int) -> None:
    assert limits.stop(SIZES, first) == stop


def test_a_stream_goes_through_a_snapshot_and_then_to_the_newest() -> None:
    at, seen = FIRST, []
    newest = LAST
    while at != newest:
        span, end = begun(at, newest)
        following = limited(span, end, SIZES, Limits(files=3))
        seen.append([*spans(at, following)])
        at, newest = following, {"snapshot": 9, "identity": "c"}
    assert seen == [[FileSpan(1, 4, 0, 3)], [FileSpan(1, 4, 3)], [FileSpan(4, 9, 0, 3)], [FileSpan(4, 9, 3)]]


def test_spans_of_a_stream_without_a_limit() -> None:
    assert [*spans(FIRST, LAST)] == [FileSpan(1, 4)]
    assert [*spans(within(2), {"snapshot": 9, "identity": "c"})] == [FileSpan(1, 4, 2), FileSpan(4, 9)]
    assert [*spans(within(1), within(3))] == [FileSpan(1, 4, 1, 3)]
    assert [*spans(LAST, LAST)] == []
