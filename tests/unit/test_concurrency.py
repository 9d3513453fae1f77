"""Several things are read in order, in turn or by threads that wait at the same time."""

from __future__ import annotations

from threading import Barrier

import pytest

from secateur.concurrency import at_once, in_turn

PATIENCE = 60  # seconds after which a thread that waits for the others fails


def test_threads_wait_at_the_same_time() -> None:
    together = Barrier(3)

    def read(one: int) -> int:
        together.wait(PATIENCE)
        return -one

    assert at_once(read, [5, 3, 4, 1, 2, 6], 3) == [-5, -3, -4, -1, -2, -6]


@pytest.mark.parametrize("wanted", [[], [7], [7, 8]])
def test_results_are_in_order(wanted: list[int]) -> None:
    assert in_turn(str, wanted) == at_once(str, wanted, 2) == list(map(str, wanted))


def test_the_first_error_propagates() -> None:
    with pytest.raises(ZeroDivisionError):
        at_once(lambda one: 1 // one, [1, 0, 2], 2)
