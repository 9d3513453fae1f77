"""Builds, refreshes and all else that runs as Spark jobs, in this process and without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, cast
from unittest.mock import patch

import secateur.maintain
from secateur.index.build.spark_tasks import Work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_SPARK = cast("SparkSession", object())  # for jobs that run here: nothing asks it


@contextmanager
def jobs_in_this_process() -> Iterator[SparkSession]:
    """Tasks run one by one where they are started; gives what stands for the session."""
    names = (f"{secateur.maintain.__name__}.{each.name}" for each in iter_modules(secateur.maintain.__path__))
    with ExitStack() as patches:
        for module in map(import_module, names):
            if hasattr(module, "run_tasks"):
                patches.enter_context(patch.object(module, "run_tasks", _run))
        yield NO_SPARK


def _run(spark: SparkSession, work: Work, n: int) -> Iterator[bytes]:
    return work(range(n))
