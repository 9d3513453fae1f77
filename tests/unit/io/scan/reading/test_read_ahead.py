"""Files that are read ahead come in order, and a single one is read by the thread that asks."""

from __future__ import annotations

import threading

import pytest

from secateur.io.scan.reading.read_ahead import read_ahead


@pytest.mark.parametrize("n", [0, 1, 2, 3, 20])
def test_results_come_in_order(n: int) -> None:
    assert list(read_ahead(lambda i: i * i, iter(range(n)), 2)) == [i * i for i in range(n)]


def test_no_thread_is_started_for_one_file() -> None:
    (reader,) = read_ahead(lambda _: threading.current_thread(), ["file"], 2)
    assert reader is threading.current_thread()
    assert threading.current_thread() not in read_ahead(lambda _: threading.current_thread(), ["a", "b"], 2)
