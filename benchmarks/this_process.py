"""Builds, refreshes and all else that runs as Spark jobs, in this process and without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, cast
from unittest.mock import patch

from secateur.index.tasks import Work
from secateur.maintain import build, optimize, refresh

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_SPARK = cast("SparkSession", object())  # for jobs that run here


@contextmanager
def jobs_in_this_process() -> Iterator[SparkSession]:
    """Tasks run one by one where they are started; gives what stands for the session."""
    with ExitStack() as patches:
        for module in (build, optimize, refresh):
            patches.enter_context(patch.object(module, "run_tasks", _run))
        yield NO_SPARK


def _run(spark: SparkSession, work: Work, n: int) -> Iterator[bytes]:
    return work(range(n))
