"""The parts of an index as plain values, and the store that keeps it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from secateur.errors import IndexFault
from secateur.pruning.predicate.index_paths import is_expression, is_sum, text_of_expression
from secateur.pruning.predicate.variant_paths import is_variant
from secateur.values.kinds import kind_of


@dataclass(frozen=True)
class StoredFile:
    """One file of an index."""

    name: str
    size: int
    modified: float  # seconds since the epoch
    tag: str = ""  # tells it from another of its size and time in its place, on stores that have tags


class Store(Protocol):
    """Where index files live: immutable objects whose names have at most one slash."""

    @property
    def location(self) -> str:
        """The location of the store, for messages."""

    @property
    def is_local(self) -> bool:
        """Whether reads need no request; sequential exact reads are then the fastest."""

    def files(self, folder: str) -> list[StoredFile]:
        """List the files of a folder by name; empty if there is none."""

    def last(self, folder: str, form: re.Pattern[str]) -> StoredFile | None:
        """Return the file of a folder whose name is the greatest of those that have a form; None if there is none."""

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Read exactly `size` bytes. Raises IndexFault if the file is missing or too short."""

    def read_many(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Read many (offset, size) ranges of one file. Raises as :meth:`read` does."""

    def read_each(self, wanted: Sequence[tuple[str, int, int]]) -> list[bytes | IndexFault]:
        """Read (name, offset, size) ranges of many files; each result is the bytes, or the fault :meth:`read` would
        raise.
        """

    def size(self, name: str) -> int:
        """Return the size in bytes. Raises IndexFault if the file is missing."""

    def put(self, name: str, data: bytes) -> None:
        """Write a file under a name that nothing else writes. Raises IndexNotWritable."""

    def put_aside(self, name: str, data: bytes) -> None:
        """Write a file that need not survive a crash. Raises as :meth:`put` does."""

    def create(self, name: str, data: bytes) -> None:
        """Publish a whole file atomically. Raises IndexConflict if the name exists, IndexNotWritable."""

    def delete(self, name: str) -> None:
        """Remove a file; it may be gone already."""


@dataclass(frozen=True)
class IndexedColumn:
    """A column or struct field that the index covers."""

    path: tuple[str, ...]
    type: pa.DataType


def is_derived(path: tuple[str, ...]) -> bool:
    """Whether a path is of no column of the table: its first name is empty, unlike any column's."""
    return path[0] == ""


def is_tuple_column(path: tuple[str, ...]) -> bool:
    """Whether a path is that of a sort key's tuples."""
    return is_derived(path) and not is_expression(path) and not is_sum(path)


def is_own(path: tuple[str, ...]) -> bool:
    """Whether a path is that of values: of a column, or of an expression; not of tuples or sums."""
    return not is_derived(path) or is_expression(path)


def name_of(path: tuple[str, ...]) -> str:
    """Return the name that options have for a column, or for an indexed expression."""
    return text_of_expression(path) if is_expression(path) else ".".join(path)


BLOOM, POSTINGS, ORDERED, NGRAM, TOKEN = "bloom", "postings", "ordered", "ngram", "token"
OF_ROWS = (POSTINGS, ORDERED)  # kinds that lie in segments and have an entry for every value


@dataclass(frozen=True)
class Filter:
    """A structure over a column that answers look-ups by value or by part of a text."""

    kind: str  # BLOOM, POSTINGS, ORDERED, NGRAM or TOKEN
    path: tuple[str, ...]  # path of the column
    type: pa.DataType  # type of what is hashed: the column's values, an array's elements, a map's keys
    gram: int = 0  # bytes of an n-gram
    folded: bool = False  # ASCII letters are hashed in lower case
    rows: bool = False  # postings say which rows of a block hold a value


@dataclass(frozen=True)
class FilterOption:
    """A filter as requested."""

    kind: str
    column: str
    gram: int = 0
    folded: bool = False
    native: bool = False  # taken from the data files where they have one
    rows: bool = False  # postings that say which rows of a block hold a value


@dataclass(frozen=True)
class Choice:
    """The structure chosen for a column's look-ups by value, the reason, and the bytes each structure would take."""

    column: str
    structure: str  # "zone map", "gaps", "postings" or "bloom"
    why: str
    bytes: Mapping[str, int]


@dataclass(frozen=True)
class BlockTable:
    """The blocks of a segment: arrays of shape (n_blocks,)."""

    file: np.ndarray  # int32, position in the segment's list of files
    row_group: np.ndarray  # int32
    row_count: np.ndarray  # int64
    byte_count: np.ndarray  # int64, compressed

    def __len__(self) -> int:
        return len(self.file)


@dataclass(frozen=True)
class BuildOptions:
    """The options of a build, kept in the snapshot so that a refresh builds the same way."""

    sort_key: tuple[str, ...] = ()
    filters: tuple[FilterOption, ...] = ()
    gaps: tuple[str, ...] = ()
    fpr: float | None = None
    pages: bool = True
    segment_blocks: int | None = None
    fan_out: int = 32
    choices: tuple[Choice, ...] = ()  # decisions left to the build
    page_locations: bool = True
    expressions: tuple[str, ...] = ()  # indexed as columns of their own; filters and gaps name some of them
    sums: tuple[str, ...] = ()  # columns whose sums are kept
    glob: str | None = None  # of the table's files only those whose names match are indexed


def type_name(type_: pa.DataType) -> str:
    """Return the name of a column type as docs/format.md writes it."""
    if pa.types.is_decimal128(type_):
        return f"decimal({type_.precision},{type_.scale})"
    return _NAMES[type_]


def type_of_name(name: str) -> pa.DataType:
    """Return the column type with a name. Raises IndexFault for a name not in docs/format.md."""
    if name in _TYPES:
        return _TYPES[name]
    digits = name.removeprefix("decimal(").removesuffix(")").split(",")
    try:
        type_ = pa.decimal128(int(digits[0]), int(digits[1]))
    except (ValueError, IndexError, pa.ArrowInvalid):
        raise IndexFault(f"unknown column type {name!r}") from None
    return type_


_TYPES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_NAMES = {type_: name for name, type_ in _TYPES.items()}


def indexed_columns(schema: pa.Schema) -> list[IndexedColumn]:
    """Return the ordered columns of a table, including those nested in structs but not in VARIANT, in schema order."""
    return [column for field in schema for column in _leaves(field, ())]


def _leaves(field: pa.Field, parents: tuple[str, ...]) -> list[IndexedColumn]:
    path = (*parents, field.name)
    if pa.types.is_struct(field.type):
        if is_variant(field.type):
            return []
        return [column for child in field.type for column in _leaves(child, path)]
    return [IndexedColumn(path, field.type)] if kind_of(field.type) is not None else []
