"""Limit the time until a store answers for the first time: some libraries try for minutes without a message."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

import pyarrow.fs as pafs

from secateur.errors import StoreUnreachable
from secateur.io.storage.list_files import FileSystem

VARIABLE, SECONDS = "SECATEUR_OPEN_SECONDS", 20.0

T = TypeVar("T")


def in_time(ask: Callable[[], T], filesystem: FileSystem, redacted: str) -> T:
    """Return a store's answer, as :func:`answered` does. A local disk has no limit."""
    return ask() if isinstance(filesystem, pafs.LocalFileSystem) else answered(ask, redacted)


def answered(ask: Callable[[], T], redacted: str) -> T:
    """Return a store's answer. Raises StoreUnreachable if there is none in time, and whatever `ask` raises.

    The waiting thread is left behind; it does not keep the process from ending.
    """
    seconds = float(os.environ.get(VARIABLE, SECONDS))
    answer = done_within(seconds, ask)
    if answer is None:
        raise StoreUnreachable(
            f"{redacted} did not answer within {seconds:g} s: the store is out of reach of this machine, or there are "
            f"no credentials for it. Check both; for a store that is slow, {VARIABLE} sets the limit in seconds"
        )
    return answer.result()


def done_within(seconds: float, work: Callable[[], T]) -> Future[T] | None:
    """Do some work in a thread that does not keep the process from ending; None if it takes too long."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future if wait([future], seconds).done else None
