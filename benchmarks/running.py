"""Run a workload, here or in a process of its own, which imports what it runs from this module."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

from benchmarks.planning.repeat import remembering
from benchmarks.results import Result
from benchmarks.setting import Setting
from benchmarks.workloads import Workload


def measured(workload: Workload, setting: Setting) -> Result:
    """The figures of a workload, by no plan that is remembered."""
    with remembering(0):
        return workload.run(setting)


def measured_apart(workload: Workload, setting: Setting) -> Result:
    """The figures of a workload that is run by another process: a JVM takes its jars when it starts."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(measured, workload, setting).result()
