"""Random accidents that befall the files and caches of an index between build and query."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import strategies as st

from secateur.index.read import chunk_reader, group_arrays, index_view
from secateur.index.read.memory_cache import ByteCache
from secateur.index.read.open_index import Caches, open_catalog
from secateur.index.segments.snapshot_files import open_snapshot
from secateur.pruning.report import Faults
from tests.support.checks.catalog_checks import Query
from tests.support.drawn.random_index import Index


def garbage(shape: int, dtype: Any = np.float64) -> np.ndarray:
    """Memory that nobody has filled, at its worst."""
    random = np.random.default_rng(shape)
    return random.integers(0, 256, shape * np.dtype(dtype).itemsize, np.uint8).view(dtype)


@dataclass
class Disk:
    """Entries on a local disk; every so many of them are damaged there."""

    damaged: int
    entries: dict[str, bytes] = field(default_factory=dict)

    def find(self, key: str) -> bytes | None:
        data = self.entries.get(key)
        return data[:-5] if data is not None and zlib.crc32(key.encode()) % self.damaged == 0 else data

    def keep(self, key: str, data: bytes) -> None:
        self.entries[key] = data


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
    damaged_on_disk: int | None  # one entry in so many; None: there is no cache on disk

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
