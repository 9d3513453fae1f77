"""Answers on local disk, by choice: the rows of a plan that was read to its end, and counts.

An answer belongs to a key that has all on which it depends: the identities of all files that the plan covers, also of
those that it prunes; what is deleted of them; the predicate as it was bound, with its literals resolved; columns, order
and limit; the session; and the index by which it was planned, so that what rests on a wrong index goes when that is
built anew. So nothing is ever wrong by age: a table that has changed has other keys.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from secateur.index.identity import listing_id
from secateur.io.scan.kept.fingerprint import fingerprint
from secateur.io.scan.kept.versions import versions
from secateur.io.storage.cache_directory import bytes_set
from secateur.io.storage.disk_cache import DiskCache, default_directory
from secateur.pruning.verdicts import can_be_remembered

if TYPE_CHECKING:
    from secateur.io.scan.opened_table import OpenedTable
    from secateur.io.scan.planned_scan import PlannedScan

BYTES_VARIABLE = "SECATEUR_ANSWER_BYTES"
DIRECTORY_VARIABLE = "SECATEUR_ANSWER_DIR"
SHARE = 8  # an answer takes at most one part in so many of the bytes
COUNT_BYTES = 8


def kept_rows(
    plan: PlannedScan, columns: Sequence[str] | None, read: Callable[[Sequence[str] | None], pa.Table]
) -> pa.Table:
    """Return the rows of a plan: those that are kept, else those that are read, which are then kept if they are few."""
    cache = _cache_for(plan)
    if cache is None:
        return read(columns)
    schema = pa.schema(plan.fields(columns))
    key = _key(plan, "rows", hashlib.sha256(schema.serialize()).hexdigest())
    value = cache.find(key)
    if value is not None:
        kept = _rows(value)
        if kept is not None and kept.schema.equals(schema, check_metadata=True):
            return kept
    rows = read(columns)
    if rows.nbytes <= cache.most_bytes // SHARE:
        cache.keep(key, _encoded(rows))
    return rows


def kept_count(plan: PlannedScan, count: Callable[[], int]) -> int:
    """Return the count of a plan: the one that is kept, else as counted, which is then kept."""
    cache = _cache_for(plan)
    if cache is None or plan.complete_blocks.all():  # metadata alone tells
        return count()
    key = _key(plan, "count")
    value = cache.find(key)
    if value is not None and len(value) == COUNT_BYTES:
        return int.from_bytes(value, "little")
    counted = count()
    cache.keep(key, counted.to_bytes(COUNT_BYTES, "little"))
    return counted


def forget_answers() -> None:
    """Forget all answers, of every table."""
    cache = _cache()
    if cache is not None:
        cache.clear()


def _cache_for(plan: PlannedScan) -> DiskCache | None:
    """Return where answers are kept; None if they are not, or not those of this plan.

    A plan with keys is left out because keys may be many, one with an audit because it asks for reads, a part of a plan
    because its key is that of the whole; and a condition that is too long, or that only Spark can evaluate, which may
    be random or depend on the time of the query.
    """
    if not os.environ.get(BYTES_VARIABLE, "").strip():
        return None
    settings = plan.origin.settings
    asks_anew = not settings.use_verdicts or settings.semi_join is not None or plan.report.audit is not None
    if asks_anew or plan.is_part or not len(plan.survivors.blocks) or not can_be_remembered(plan.predicate):
        return None
    return _cache()


def _cache() -> DiskCache | None:
    """Return the cache of answers, of ``SECATEUR_ANSWER_BYTES`` in ``SECATEUR_ANSWER_DIR``, or beside other caches.

    None without a number of bytes, and without a place. Raises ValueError if it is not a number.
    """
    most = bytes_set(BYTES_VARIABLE, 0)
    chosen, default = os.environ.get(DIRECTORY_VARIABLE, "").strip(), default_directory()
    if not most or not (chosen or default):
        return None
    return _cache_in(chosen or f"{default}/answers", most)


@lru_cache(maxsize=8)
def _cache_in(directory: str, most: int) -> DiskCache:
    return DiskCache(directory, most)


# ---- keys ------------------------------------------------------------------------------------------------------------


def _key(plan: PlannedScan, what: str, columns: str = "") -> str:
    settings, opened = plan.origin.settings, plan.opened
    snapshot = opened.catalog.snapshot
    parts = (
        "answers",
        versions(),
        what,
        columns,
        opened.table.location,
        opened.table.id,
        _files(opened),
        hashlib.sha256(opened.schema.serialize()).hexdigest(),
        None if snapshot is None else (snapshot.name, snapshot.created, snapshot.listing_id),
        str(plan.predicate),
        fingerprint(plan.predicate),
        plan.limit,
        [str(column) for column in plan.order_by.columns] if plan.order_by is not None else None,
        (plan.session_time_zone, plan.ansi, settings.case_sensitive),
    )
    return "\n".join(map(repr, parts))


def _files(opened: OpenedTable) -> str:
    """Return a digest of the files that a plan covers, and of what else their rows depend on."""
    listing = opened.listing
    digest = hashlib.sha256(
        listing_id(listing.paths, listing.size, listing.stamp, listing.witness).to_bytes(16, "little")
    )
    for array in listing.row_state:
        digest.update(_bytes_of(array))
    return digest.hexdigest()


def _bytes_of(array: pa.Array | pa.ChunkedArray) -> bytes:
    whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    batch = pa.RecordBatch.from_arrays([whole], ["values"])
    return b"".join((batch.schema.serialize().to_pybytes(), batch.serialize().to_pybytes()))


# ---- bytes -----------------------------------------------------------------------------------------------------------


def _encoded(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue().to_pybytes()


def _rows(value: bytes) -> pa.Table | None:
    """Decode rows; None where that fails."""
    try:
        rows = pa.ipc.open_stream(value).read_all()
        rows.validate(full=True)
    except (pa.ArrowException, OSError, ValueError):
        return None
    return rows
