"""Prune on executors: if many segments survive the tree and are not in memory, their chunks are read in parallel.

Every task gets some segments, checks their zone maps, filters and pages, and returns the survivors as arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from secateur.errors import IndexFault, PackageMissing
from secateur.index.build.spark_tasks import run_tasks, task_count
from secateur.index.read.index_view import IndexView
from secateur.index.read.memory_cache import ByteCache
from secateur.index.read.shard import gathered, prune_share, shares_of
from secateur.io.storage.cache_directory import memory_cache
from secateur.io.storage.index_store import FileStore
from secateur.pruning.predicate.bound_walks import fields
from secateur.pruning.report import Faults, human_bytes
from secateur.pruning.stages.survivors import Query, SurvivingSegments, Survivors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BYTES_PER_SECOND = 60e6  # of stored chunks that one core reads and decodes: three columns of 1M blocks in 0.26 s
CHUNKS_PER_SECOND = 800.0  # that the driver's threads read from an object store at 20 ms per request
JOB_SECONDS = 2.0  # that a Spark job takes to start its tasks and return their results


@dataclass(frozen=True)
class SparkExecutors:
    """The executors of a Spark session; see :class:`secateur.pruning.stages.survivors.Executors`."""

    spark: SparkSession
    catalog: IndexView
    store: FileStore
    faults: Faults
    place: str  # auto, driver or executors

    def prune(self, query: Query, left: SurvivingSegments) -> Survivors | None:
        """Return the blocks of the surviving segments; None if pruning on the driver is faster, or Spark fails."""
        segments = left.all_segments
        if self.place == "driver" or not len(segments):
            return None
        chunks, size = self.catalog.memory.missing_bytes(fields(query.predicate), segments)
        if self.place == "auto" and self._seconds(chunks, size) < JOB_SECONDS:
            return None
        shares = shares_of(self.catalog, query, left, task_count(self.spark, len(segments)))
        sent, store, predicate, strict = [share for share, _ in shares], self.store, query.predicate, self.faults.strict

        def work(numbers: Sequence[int]) -> Iterator[bytes]:
            for i in numbers:
                yield i.to_bytes(4, "little") + prune_share(sent[i], store, _cache(), predicate, strict=strict)

        with self.faults.tolerated():
            ordered = self._results(work, len(sent))
            result = gathered(ordered, [live for _, live in shares], left, self.faults, self.catalog.reads)
            query.notes.append(
                f"{len(segments):,} segments, {human_bytes(size)} of them not in memory, "
                f"pruned by {len(sent)} tasks of Spark, with their filters and pages"
            )
            return result
        return None

    def _results(self, work: Callable[[Sequence[int]], Iterator[bytes]], count: int) -> list[bytes]:
        """Return the tasks' results, one per share. Raises IndexFault, also if a job fails: the driver can do the
        work.
        """
        from pyspark.errors import PySparkException

        try:
            results = {int.from_bytes(data[:4], "little"): data[4:] for data in run_tasks(self.spark, work, count)}
        except (PySparkException, PackageMissing) as error:
            raise IndexFault(f"pruning on executors failed: {str(error).splitlines()[0]}") from error
        return [results[i] for i in range(count)]

    def _seconds(self, chunks: int, size: int) -> float:
        """Estimate the seconds that reading takes on the driver."""
        return size / BYTES_PER_SECOND + (0 if self.store.is_local else chunks / CHUNKS_PER_SECOND)


@cache
def _cache() -> ByteCache:
    """Return the cache that a Python worker keeps between tasks."""
    return memory_cache()
