"""What a query reads of an index, against what was written: block by block, whatever is harmed, evicted or shared.

A row is lost where an array is stale or half filled. So here memory that is not filled holds garbage, caches are too
small, groups and runs have any size, and queries of two snapshots run at once in several threads.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from threading import Barrier
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.catalog_checks import Query
from support.profiles import examples
from support.random_index import Index, make_index, refreshed, zone_list
from support.strategies import BY_NAME
from support.units import measured

from secateur.index.read import chunk_reader, group_arrays, index_view
from secateur.index.read.index_view import Caches, open_catalog
from secateur.index.read.memory_cache import ByteCache
from secateur.index.segments.snapshot import open_snapshot
from secateur.pruning.report import Faults
from secateur.values import Kind


def garbage(shape: int, dtype: Any = np.float64) -> np.ndarray:
    """Memory that nobody has filled, at its worst."""
    random = np.random.default_rng(shape)
    return random.integers(0, 256, shape * np.dtype(dtype).itemsize, np.uint8).view(dtype)


@dataclass
class Disk:
    """Pieces on a local disk; every so many of them are damaged there."""

    damaged: int
    pieces: dict[str, bytes] = field(default_factory=dict)

    def find(self, key: str) -> bytes | None:
        found = self.pieces.get(key)
        return found[:-5] if found is not None and zlib.crc32(key.encode()) % self.damaged == 0 else found

    def keep(self, key: str, data: bytes) -> None:
        self.pieces[key] = data


@dataclass(frozen=True)
class Kept:
    """What queries share."""

    memory: ByteCache
    disk: Disk | None = None


@dataclass(frozen=True)
class Circumstances:
    """What must make no difference."""

    group_blocks: int
    few_runs: int
    least_shared: int
    cache_bytes: int
    damaged_on_disk: int | None  # one piece in so many; None: there is no cache on disk

    @contextmanager
    def prevailing(self) -> Iterator[Kept]:
        with ExitStack() as stack:
            stack.enter_context(patch.object(group_arrays, "GROUP_BLOCKS", self.group_blocks))
            stack.enter_context(patch.object(index_view, "FEW_RUNS", self.few_runs))
            stack.enter_context(patch.object(chunk_reader, "LEAST_SHARED", self.least_shared))
            stack.enter_context(patch.object(group_arrays, "np", SimpleNamespace(**{**vars(np), "empty": garbage})))
            yield Kept(ByteCache(self.cache_bytes), Disk(self.damaged_on_disk) if self.damaged_on_disk else None)


circumstances = st.builds(
    Circumstances,
    group_blocks=st.sampled_from([1, 3, 10, 1 << 17]),
    few_runs=st.sampled_from([1, 2, 8]),
    least_shared=st.sampled_from([1, 16]),
    cache_bytes=st.sampled_from([0, 2_000, 6_000, 1 << 30]),
    damaged_on_disk=st.sampled_from([None, 3, 10**9]),
)
seeds = st.integers(0, 2**32 - 1)


def query(index: Index, kept: Kept, seed: int, strict: bool = False, failing: float = 0.0) -> Query:
    """A query of an index; its reads fail now and then from the moment at which it has opened the snapshot."""
    index.store.fails = sometimes(seed, 0.0)
    snapshot, faults = open_snapshot(index.store, index.number), Faults(strict)
    index.store.fails = sometimes(seed, failing)
    catalog = open_catalog(index.live, Caches(index.store, kept.memory, kept.disk), snapshot, index.live.open, faults)
    return Query(index, catalog, faults, np.random.default_rng(seed))


def sometimes(seed: int, share: float) -> Callable[[], bool]:
    random = np.random.default_rng(seed)
    return lambda: bool(random.random() < share)


@examples(40, shrink=False)
@given(circumstances, seeds, st.integers(0, 6), st.sampled_from([0.0, 0.0, 0.1, 0.4]))
def test_a_query_reads_what_was_written(around: Circumstances, seed: int, segments: int, harm: float) -> None:
    """One query after the other, of one snapshot and of the next, with one cache."""
    index = make_index(seed, segments, harm)
    later = refreshed(index, seed + 1, harm)
    with around.prevailing() as kept:
        for i, each in enumerate((index, later, index, later)):
            query(each, kept, seed + i, strict=harm == 0.0).run()


@examples(20, shrink=False)
@given(circumstances, seeds, st.sampled_from([0.0, 0.2]), st.integers(2, 6))
def test_queries_at_once_read_what_was_written(around: Circumstances, seed: int, harm: float, threads: int) -> None:
    """Of two snapshots, by threads that share the cache: whoever fills an array, and whenever it is dropped."""
    index = make_index(seed, 5, harm)
    later = refreshed(index, seed + 1, harm)
    with around.prevailing() as kept, ThreadPoolExecutor(threads) as pool:
        queries = [query((index, later)[i % 2], kept, seed + i) for i in range(threads * 2)]
        for result in [pool.submit(each.run) for each in queries]:
            result.result()


@pytest.fixture(autouse=True)
def hasty_threads() -> Iterator[None]:
    """Threads take turns after microseconds, so that they meet where they are least expected."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


# ---- faults that come and go -----------------------------------------------------------------------------------------


@examples(50, shrink=False)
@given(circumstances, seeds, st.integers(1, 6), st.sampled_from([0.1, 0.5, 0.9]))
def test_reads_that_fail_now_and_then(around: Circumstances, seed: int, segments: int, failing: float) -> None:
    """What is said is right or nothing, every block stays, and what a query has opened it keeps. Nothing sticks."""
    index = make_index(seed, segments, 0.0)
    with around.prevailing() as kept:
        for i in range(5):
            query(index, kept, seed + i, failing=failing).run_in_doubt(all_fail_in_the_end=True)
        query(index, kept, seed, strict=True).run()


@examples(20, shrink=False)
@given(circumstances, seeds, st.integers(2, 6))
def test_reads_that_fail_now_and_then_at_once(around: Circumstances, seed: int, threads: int) -> None:
    """By threads that share a cache: what one could not read another can."""
    index = make_index(seed, 5, 0.0)
    with around.prevailing() as kept, ThreadPoolExecutor(threads) as pool:
        queries = [query(index, kept, seed + i) for i in range(threads * 2)]
        index.store.fails = sometimes(seed, 0.4)
        for result in [pool.submit(each.run_in_doubt) for each in queries]:
            result.result()
        query(index, kept, seed, strict=True).run()


# ---- arrays that several threads fill --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_arrays_widen_while_others_fill_them(seed: int) -> None:
    """Longer strings need more words: what is written meanwhile is in the arrays that everybody sees from then on."""
    random = np.random.default_rng(seed)
    texts = [["x" * int(width), None, "y" * int(width)] for width in random.integers(1, 60, 40)]
    parts = [measured(BY_NAME["s"], [[text] for text in part]) for part in texts]
    zones = group_arrays.ResidentZones(Kind.BYTES, np.arange(0, 121, 3))
    gate = Barrier(8)

    def fill(mine: Sequence[int]) -> None:
        gate.wait()
        for i in mine:
            zone_map, row_count = parts[i]
            zones.fill(i, zone_map, row_count)
            assert zone_list(zones.zones.take(slice(3 * i, 3 * i + 3))) == zone_list(zone_map.zones(row_count))

    with ThreadPoolExecutor(8) as pool:
        shares = [random.permutation(40).tolist() for _ in range(8)]
        for result in [pool.submit(fill, share) for share in shares]:
            result.result()
    assert zone_list(zones.zones) == [zone for zone_map, rows in parts for zone in zone_list(zone_map.zones(rows))]
