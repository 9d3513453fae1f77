"""Merge the small increments of an index before it is published, so that it stays fast without being optimized."""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import partial

import numpy as np
import pyarrow as pa

from secateur.errors import IndexFault, SecateurError
from secateur.index.build.build import discard
from secateur.index.build.tasks import run_in_process
from secateur.index.compact.increments import due_to_merge
from secateur.index.compact.plan_segments import cut_anew, merged_target
from secateur.index.file_names import build_of
from secateur.index.model import BuildOptions
from secateur.index.segments.segment_table import Segments, joined
from secateur.index.segments.snapshot_files import snapshot_in_memory
from secateur.io.storage.index_store import FileStore
from secateur.maintain.merge import Sources, write_merged

_log = logging.getLogger("secateur")


def with_increments_merged(
    store: FileStore,
    build: str,
    segments: Segments,
    is_live: np.ndarray,
    options: BuildOptions,
    schema: pa.Schema,
) -> tuple[Segments, int]:
    """Return the segments with small increments merged by a build, and how many were merged.

    Merged segments keep only the entries with a live file, by `is_live` of shape (n_entries,). If a segment cannot be
    read, nothing is merged: the segments are used as they are, and an optimization reports the fault. Raises
    IndexNotWritable.
    """
    counts = int(segments.block_count.sum()), int(segments.row_count.sum())
    target = merged_target(options, segments.filters, *counts)
    small = due_to_merge(segments, target)
    if not len(small):
        return segments, 0
    snapshot = snapshot_in_memory(segments.take(small), options, schema)
    is_small = np.isin(np.arange(len(segments)), small)
    is_live_small = is_live[np.repeat(is_small, segments.files.count)]
    sources = Sources(store, snapshot, partial(snapshot_in_memory, segments.take(small), options, schema))
    try:
        merged = write_merged(sources, run_in_process, build, cut_anew(store, snapshot, is_live_small, target))
    except IndexFault as fault:
        _log.warning("%d small segments are not merged, as one cannot be read: %s", len(small), fault)
        discard(store, build)
        return segments, 0
    stay = np.ones(len(segments), bool)
    stay[small] = False
    return joined(segments.take(np.flatnonzero(stay)), merged), len(small)


def remove_merged(store: FileStore, build: str, written: Segments, published: Segments) -> None:
    """Remove files that a build wrote and then merged, which no snapshot names. A vacuum removes what stays behind."""
    with suppress(SecateurError):
        for name in sorted(_files(written) - _files(published)):
            if build_of(name) == build:
                store.delete(name)


def _files(segments: Segments) -> set[str]:
    return {*segments.name, *(name for m in segments.bloom_matrices.values() for name in m.file_name)}
