"""What a Python process of Spark's executors does once, when it first reads for a task."""

from __future__ import annotations

import gc
from functools import cache


@cache
def settle() -> None:
    """Take what is loaded out of garbage collection: Spark's daemon collects after every task.

    With pyarrow, numpy and pandas loaded a collection looks at half a million objects, which takes 30 ms and more.
    """
    gc.collect()
    gc.freeze()
