"""Time limits for the steps of a demo."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from secateur.demo.lineitem import DemoNotPossible
from secateur.io.storage.time_limit import done_within

T = TypeVar("T")


def within(seconds: float, what: str, work: Callable[[], T]) -> T:
    """Return the result of some work. Raises DemoNotPossible if it takes too long, and whatever the work raises.

    The work is done in another thread, so that Ctrl-C takes effect at once.
    """
    done = done_within(seconds, work)
    if done is None:
        raise DemoNotPossible(f"{what} took more than {seconds:g} s, and was given up")
    return done.result()
