"""Known bugs of Parquet writers in statistics and bloom filters.

A bound must hold, so statistics that a writer is known to get wrong are unknown in its files: only those fields, types
and versions that the bug affects. Source: FileMetaData.created_by, "<application> version <version> (build <hash>)",
and the bug reports named in the table.

One bug needs no row: a writer that compares with the wrong signedness throughout (unsigned integers as signed, decimals
as unsigned bytes) records lower > upper exactly where the two orders disagree, and such a pair is unknown anyway. Only
mixed or bytewise-signed comparisons give wrong bounds that look right.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass


class Doubt(enum.Enum):
    """A kind of statistic that a writer may have recorded wrongly."""

    NUMBERS = "bounds of booleans, integers, dates, timestamps"
    FLOATS = "bounds of float and double"
    BYTES = "bounds of strings and binary"
    DECIMAL_BYTES = "bounds of decimals stored as FIXED_LEN_BYTE_ARRAY"
    VARIABLE_DECIMALS = "bounds of decimals stored as BYTE_ARRAY"
    NULL_COUNTS = "null counts"
    NESTED_NULL_COUNTS = "null counts of leaves inside a struct"
    BYTES_NULL_COUNTS = "null counts of strings and binary"
    NESTED_BYTES_NULL_COUNTS = "null counts of strings and binary inside a struct"
    BLOOM_FILTERS = "bloom filters"


@dataclass(frozen=True)
class _Bug:
    application: str  # created_by's application, in lower case
    fixed: tuple[int, ...]  # the first version that is known to be right; () if there is none
    doubts: frozenset[Doubt]


_NEVER: tuple[int, ...] = ()
_BUGS = (
    # A NaN that comes first stays, and hides the other values of its page when pages are merged:
    _Bug("parquet-cpp", (1, 4, 0), frozenset({Doubt.FLOATS})),  # PARQUET-1225
    _Bug("impala", (3, 0, 0), frozenset({Doubt.FLOATS})),  # IMPALA-6527
    _Bug("parquet-rs", (5, 0, 0), frozenset({Doubt.FLOATS})),  # apache/arrow-rs#255
    _Bug("github.com/parquet-go/parquet-go", (0, 32, 0), frozenset({Doubt.FLOATS, Doubt.BYTES})),  # #459, #53
    # Its ancestor, which also hashed out of bounds, #96:
    _Bug("github.com/segmentio/parquet-go", _NEVER, frozenset({Doubt.FLOATS, Doubt.BYTES, Doubt.BLOOM_FILTERS})),
    # Decimals compared byte by byte as signed bytes, PARQUET-1655:
    _Bug("parquet-cpp", _NEVER, frozenset({Doubt.DECIMAL_BYTES})),  # all before Arrow 4
    _Bug("parquet-cpp-arrow", (4, 0, 0), frozenset({Doubt.DECIMAL_BYTES})),
    # Arrow's dictionaries of bytes, which are written without decoding: null counts left at 0, apache/arrow#10729; only
    # the first batch considered, #15042 and #34106; nulls of the struct not counted, to this day:
    _Bug("parquet-cpp", _NEVER, frozenset({Doubt.BYTES_NULL_COUNTS, Doubt.NESTED_BYTES_NULL_COUNTS})),
    _Bug("parquet-cpp-arrow", (12, 0, 0), frozenset({Doubt.BYTES, Doubt.BYTES_NULL_COUNTS})),
    _Bug("parquet-cpp-arrow", _NEVER, frozenset({Doubt.NESTED_BYTES_NULL_COUNTS})),
    # Pages merged by unsigned bytes, pola-rs/polars#29347; nulls of the struct itself not counted, #20621:
    _Bug("polars", _NEVER, frozenset({Doubt.DECIMAL_BYTES, Doubt.NESTED_NULL_COUNTS})),
    # Bounds of one page used for the chunk, pola-rs/polars#7842:
    _Bug("arrow2", _NEVER, frozenset(Doubt)),
    # fraugster/parquet-go#69 (null counts), xitongsys/parquet-go#587 (bounds); both sign as "parquet-go":
    # The latter is Arrow's for Go too, whose adaptive filters were freed before they were written, apache/arrow-go#525.
    _Bug("parquet-go", _NEVER, frozenset(Doubt)),
    # Filters without the values of pages written before the dictionary was abandoned, trinodb/trino#22701:
    _Bug("parquet-mr-trino", (461,), frozenset({Doubt.BLOOM_FILTERS})),
)
_APPLICATION = re.compile(r"\s*([^\s(]+)")
_VERSION = re.compile(r"version v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?")


def doubts(created_by: str) -> frozenset[Doubt]:
    """Return the kinds of statistic that must not be used from this writer."""
    application = _APPLICATION.match(created_by)
    name = application[1].lower() if application else ""
    version = _VERSION.search(created_by)
    numbers = tuple(int(part) for part in version.groups() if part) if version else ()
    known = {
        doubt
        for bug in _BUGS
        if name == bug.application and (not bug.fixed or numbers < bug.fixed)
        for doubt in bug.doubts
    }
    # Encodings of different lengths do not compare as their bytes do. Only parquet-mr is known to compare values
    # (BINARY_AS_SIGNED_INTEGER_COMPARATOR); apache/arrow-rs#10860 and #11073 did not.
    if name != "parquet-mr":
        known.add(Doubt.VARIABLE_DECIMALS)
    return frozenset(known)
