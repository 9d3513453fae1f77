"""Time limits for the steps of a demo."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from threading import Thread
from typing import TypeVar

from secateur.demo.lineitem import DemoNotPossible

T = TypeVar("T")


def within(seconds: float, what: str, work: Callable[[], T]) -> T:
    """Return what some work gives. Raises DemoNotPossible if that takes too long, and what the work raises.

    The work is done in a thread that the end of the process does not wait for, so that Ctrl-C is heard at once.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    try:
        return future.result(seconds)
    except TooLate:
        raise DemoNotPossible(f"{what} took more than {seconds:g} s, and was given up") from None
