"""One-time setup of a Python process on Spark's executors, when it first reads for a task."""

from __future__ import annotations

import gc
from functools import cache


@cache
def freeze_gc() -> None:
    """Exclude loaded modules from garbage collection, because Spark's daemon collects after every task.

    With pyarrow, numpy and pandas loaded a collection visits half a million objects, which takes 30 ms or more.
    """
    gc.collect()
    gc.freeze()
