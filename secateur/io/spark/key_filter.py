"""A bloom filter of more keys than are collected, which executors apply to rows before they read the other columns.

Sound: a row is dropped only if the hash of its values is that of no key, or if a value is NULL and NULL equals nothing.
Rows that pass by chance are dropped by the join that Spark makes in any case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StringType

from secateur.arrays import present
from secateur.index.build.spark_calls import arrow_of
from secateur.index.build.spark_tasks import require_package
from secateur.index.filters.bloom import bits_for, positions, probes_for
from secateur.index.filters.hashing import hash_each, hash_words
from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.scan.reading.block_reader import BlockReader
from secateur.io.scan.surviving_blocks import surviving_bytes
from secateur.io.spark.file_reader import arrow_schema
from secateur.pruning.conjuncts import conjuncts
from secateur.pruning.functions.zone_names import known_zone
from secateur.pruning.predicate.binding.resolve import Binder, resolve
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.bound_walks import is_supported
from secateur.pruning.predicate.joins.join_keys import ManyKeys
from secateur.pruning.predicate.joins.semi_join import are_alike
from secateur.pruning.predicate.nodes import And, Predicate
from secateur.pruning.rows.row_values import column
from secateur.pruning.rows.truth import possible_rows

FPR = 0.01
MOST_HASHED = 20_000_000  # keys: 160 MB of hashes in the driver, and a filter of 16 MiB with a rate of 4 %
LEAST_BYTES = 64 << 20  # to read; of fewer, Spark hashes the keys no sooner than all columns are read
CHUNK = 1 << 16  # hashes whose places are computed at once
_NULL = np.uint64(0x9E3779B97F4A7C15)  # the hash of NULL


@dataclass(frozen=True)
class KeyFilter:
    """Which tuples of values may be keys."""

    packed: np.ndarray  # uint8: the bits, the least significant of a byte first
    bits: int
    probes: int

    @classmethod
    def of(cls, hashes: np.ndarray) -> KeyFilter:
        """Return the filter of the hashes of some keys."""
        probes = probes_for(FPR)
        bits = np.zeros(bits_for(max(len(hashes), 1), FPR), bool)
        for places in _places(hashes, probes, len(bits)):
            bits[places] = True
        return cls(np.packbits(bits, bitorder="little"), len(bits), probes)

    def may_hold(self, hashes: np.ndarray) -> np.ndarray:
        """Return which hashes may be those of keys: bool of shape (n,)."""
        parts = [
            (self.packed[places >> 3] >> (places & 7).astype(np.uint8) & 1).all(axis=1)
            for places in _places(hashes, self.probes, self.bits)
        ]
        return np.concatenate([np.zeros(0, bool), *parts])


def _places(hashes: np.ndarray, probes: int, bits: int) -> Iterator[np.ndarray]:
    return (positions(hashes[at : at + CHUNK], probes, bits) for at in range(0, len(hashes), CHUNK))


def tuple_hashes(columns: Sequence[pa.Array]) -> tuple[np.ndarray, np.ndarray]:
    """Return a hash of every row's values, and which rows have a NULL: uint64 and bool of shape (n,)."""
    hashes = np.zeros(len(columns[0]), np.uint64)
    has_null = np.zeros(len(columns[0]), bool)
    for values in columns:
        there = present(values)
        of_column = np.full(len(values), _NULL)
        of_column[there] = hash_each(values)
        hashes = hash_words(hashes ^ of_column)
        has_null |= ~there
    return hashes, has_null


@dataclass(frozen=True)
class KeyedRows:
    """Chooses the rows that may match and may have a key; a function as :func:`possible_rows` is one."""

    fields: tuple[Field, ...]
    keys: KeyFilter
    null_safe: bool

    def __call__(self, predicate: Predicate, batch: pa.RecordBatch) -> np.ndarray:
        hashes, has_null = tuple_hashes([column(batch, field) for field in self.fields])
        may_match = self.keys.may_hold(hashes)
        if not self.null_safe:
            may_match &= ~has_null
        known = [part for part in conjuncts(predicate) if is_supported(part)]
        return may_match & possible_rows(And(tuple(known)), batch) if known else may_match


def with_key_filter(reader: BlockReader, scan: PlannedScan) -> BlockReader:
    """Return the reader of a plan, which leaves rows out by a filter of its keys, if these are too many to collect.

    The same reader if few bytes are read, if the keys are even more, or if Spark casts them to compare them.
    """
    join = scan.origin.settings.semi_join
    if join is None or not isinstance(join.keys, ManyKeys) or int(surviving_bytes(scan).sum()) < LEAST_BYTES:
        return reader
    settings = scan.origin.settings
    binder = Binder(
        scan.opened.binding_schema, known_zone(scan.session_time_zone), settings.case_sensitive, settings.ansi
    )
    fields = tuple(resolve(name, binder) for name in join.columns)
    filter_ = key_filter(join.keys, fields)
    if filter_ is None:
        return reader
    return replace(reader, residuals=scan.residuals.distinct, rows=KeyedRows(fields, filter_, join.keys.null_safe))


def key_filter(keys: ManyKeys, fields: Sequence[Field]) -> KeyFilter | None:
    """Return a filter of keys, whose hashes Spark computes; None if there are too many, or if Spark casts them."""
    frame = keys.frame
    if not isinstance(frame, DataFrame):
        return None
    types = [field.dataType for field in frame.schema]
    if any(isinstance(type_, StringType) and type_ != StringType() for type_ in types):
        return None
    pairs = zip(fields, arrow_schema(frame.schema), strict=True)
    if not all(are_alike(field.type, given.type) for field, given in pairs):
        return None
    require_package(frame.sparkSession)

    def hashed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            hashes, _ = tuple_hashes(batch.columns)
            yield pa.record_batch([pa.array(hashes.view(np.int64))], ["hash"])

    hashes = arrow_of(frame.mapInArrow(hashed, "hash bigint").limit(MOST_HASHED + 1))
    if hashes.num_rows > MOST_HASHED:
        return None
    return KeyFilter.of(hashes["hash"].to_numpy().view(np.uint64))
