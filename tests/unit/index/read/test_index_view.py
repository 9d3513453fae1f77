"""What a query reads of an index, against what was written: block by block, whatever is harmed, evicted or shared.

A row is lost where an array is stale or half filled. So here memory that is not filled holds garbage, caches are too
small, groups and runs have any size, and queries of two snapshots run at once in several threads.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.index.read import group_arrays
from secateur.values.kinds import Kind
from tests.support.checks.units import measured
from tests.support.drawn.circumstances import Circumstances, circumstances, query, seeds, sometimes
from tests.support.drawn.random_index import make_index, refreshed, zone_list
from tests.support.drawn.strategies import BY_NAME
from tests.support.profiles import examples


@examples(40, shrink=False)
@given(circumstances, seeds, st.integers(0, 6), st.sampled_from([0.0, 0.0, 0.1, 0.4]))
def test_a_query_reads_what_was_written(around: Circumstances, seed: int, segments: int, harm: float) -> None:
    """One query after the other, of one snapshot and of the next, with one cache."""
    index = make_index(seed, segments, harm)
    later = refreshed(index, seed + 1, harm)
    with around.prevailing() as kept:
        for i, version in enumerate((index, later, index, later)):
            query(version, kept, seed + i, strict=harm == 0.0).run()


@examples(20, shrink=False)
@given(circumstances, seeds, st.sampled_from([0.0, 0.2]), st.integers(2, 6))
def test_queries_at_once_read_what_was_written(around: Circumstances, seed: int, harm: float, threads: int) -> None:
    """Of two snapshots, by threads that share the cache: whoever fills an array, and whenever it is dropped."""
    index = make_index(seed, 5, harm)
    later = refreshed(index, seed + 1, harm)
    with around.prevailing() as kept, ThreadPoolExecutor(threads) as pool:
        queries = [query((index, later)[i % 2], kept, seed + i) for i in range(threads * 2)]
        for result in [pool.submit(one_query.run) for one_query in queries]:
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
        for result in [pool.submit(one_query.run_in_doubt) for one_query in queries]:
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

    def fill(share: Sequence[int]) -> None:
        gate.wait()
        for i in share:
            zone_map, row_count = parts[i]
            zones.fill(i, zone_map, row_count)
            assert zone_list(zones.zones.take(slice(3 * i, 3 * i + 3))) == zone_list(zone_map.zones(row_count))

    with ThreadPoolExecutor(8) as pool:
        shares = [random.permutation(40).tolist() for _ in range(8)]
        for result in [pool.submit(fill, share) for share in shares]:
            result.result()
    assert zone_list(zones.zones) == [zone for zone_map, rows in parts for zone in zone_list(zone_map.zones(rows))]
