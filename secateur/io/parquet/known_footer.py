"""What is known of a file by its footer: kept in the process, so that the next query does not look it up again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from secateur.errors import InvalidParquet
from secateur.index.read.memory_cache import ByteCache
from secateur.io.parquet.chunk_locations import ColumnLocations
from secateur.io.parquet.file_metadata import MAGIC
from secateur.io.parquet.footer import Footer, footer_bytes, footer_of, read_footer
from secateur.io.parquet.rebase import has_legacy_calendar
from secateur.io.parquet.thrift import MalformedThrift
from secateur.io.parquet.thrift_encoding import without_file_paths
from secateur.io.storage.object_file import ObjectFile

KnownLocations: TypeAlias = dict[int, dict[int, ColumnLocations | None]]  # by row group and leaf

_LENGTH = 4  # bytes of the footer's length
EXPANSION = 2  # uncompressed bytes per compressed byte, about
MOST_CHOICES = 64  # of columns, whose leaves are kept


@dataclass(eq=False)
class KnownFooter:
    """The footer of a file: as pyarrow has it, as decoded here on first use, and the page locations read so far."""

    metadata: pq.FileMetaData
    paths: Sequence[Sequence[str]]  # of the leaves, by ordinal
    page_locations: KnownLocations = field(default_factory=dict)  # those read so far
    _footer: Footer | None = None

    def decoded(self, file: pa.NativeFile) -> Footer:
        """Return the footer, decoded from the open file the first time. Raises InvalidParquet."""
        if self._footer is None:
            self._footer = _of_object(file) if isinstance(file, ObjectFile) else read_footer(file)
        return self._footer

    @property
    def nbytes(self) -> int:
        """Approximate bytes in memory: Python's objects take some ten times the stored size."""
        return 10 * int(self.metadata.serialized_size)

    @cached_property
    def row_count(self) -> np.ndarray:
        """Rows of every row group, as stated: int64."""
        return np.array([self.metadata.row_group(i).num_rows for i in range(self.metadata.num_row_groups)], np.int64)

    @cached_property
    def chunk_bytes(self) -> list[int]:
        """About how many compressed bytes a column of every row group has, as if all columns were alike.

        Takes microseconds, where decoding the footer takes milliseconds.
        """
        metadata = self.metadata
        sizes = [metadata.row_group(i).total_byte_size or sys.maxsize for i in range(metadata.num_row_groups)]
        return [int(size / max(1, metadata.num_columns) / EXPANSION) for size in sizes]

    @property
    def is_decoded(self) -> bool:
        """Whether the footer was decoded here before."""
        return self._footer is not None

    @property
    def chunk_count(self) -> int:
        """How many column chunks the file has."""
        return int(self.metadata.num_row_groups * self.metadata.num_columns)

    @cached_property
    def texts(self) -> frozenset[int]:
        """The leaves, by ordinal, whose values are stored as bytes of any length."""
        schema = self.metadata.schema
        return frozenset(leaf for leaf in range(len(self.paths)) if schema.column(leaf).physical_type == "BYTE_ARRAY")

    @cached_property
    def names(self) -> list[str]:
        """The names of the top-level columns. Raises an error of pyarrow for a schema that it cannot read."""
        return self.metadata.schema.to_arrow_schema().names

    def names_of(self, columns: tuple[str, ...]) -> list[str]:
        """Return the file's names of those columns of a table that it has, ignoring case, in the file's order."""
        names = self._names_of.get(columns)
        if names is None:
            names = among(self.names, columns)
            if len(self._names_of) < MOST_CHOICES:
                self._names_of[columns] = names
        return names

    def leaves_of(self, names: tuple[str, ...]) -> list[int]:
        """Return the ordinals of the leaves of some top-level columns, ascending."""
        leaves = self._leaves.get(names)
        if leaves is None:
            wanted = frozenset(names)
            leaves = [leaf for leaf, path in enumerate(self.paths) if path[0] in wanted]
            if len(self._leaves) < MOST_CHOICES:
                self._leaves[names] = leaves
        return leaves

    def are_flat(self, names: tuple[str, ...]) -> bool:
        """Return whether none of some top-level columns is nested."""
        return all(len(self.paths[leaf]) == 1 for leaf in self.leaves_of(names))

    @cached_property
    def is_legacy(self) -> bool:
        """Whether days and instants are of the calendar of Spark 2."""
        return has_legacy_calendar(self.metadata.metadata or {})

    @cached_property
    def _names_of(self) -> dict[tuple[str, ...], list[str]]:
        return {}

    @cached_property
    def _leaves(self) -> dict[tuple[str, ...], list[int]]:
        return {}


def _of_object(file: ObjectFile) -> Footer:
    """Return the footer of an object, decoded once for equal bytes: its time, in whole seconds, does not identify it.

    Raises InvalidParquet.
    """
    size = file.size()
    data = footer_bytes(file, size)
    return _DECODED.get((xxhash.xxh3_128_digest(data), size), lambda: footer_of(data, size))


_DECODED = ByteCache(64 << 20)


@dataclass(eq=False)
class GivenFooter:
    """A footer that the program which wrote a file hands over, as the bytes at the end of the file.

    It is used where the end of the file is the same.
    """

    size: int  # bytes of the file, as listed
    data: bytes  # from the first byte of the footer
    is_equal: bool = False  # to the end of its file, when that was compared

    def is_of(self, file: pa.NativeFile) -> bool:
        """Return whether it is the footer of an open file, whose end is read once. Raises OSError."""
        if not self.is_equal and file.size() == self.size:
            self.is_equal = file.read_at(len(self.data), self.size - len(self.data)) == self.data
        return self.is_equal

    def known(self) -> KnownFooter:
        """Return what is known by it. Raises InvalidParquet, an error of pyarrow."""
        reader = pq.ParquetFile(pa.BufferReader(MAGIC + self.data))
        return KnownFooter(reader.metadata, reader.reader.column_paths, _footer=footer_of(self.data, self.size))


def end_of_file(metadata: pq.FileMetaData) -> bytes:
    """Return the bytes with which pyarrow ends a file of this metadata: the footer, its length, the magic.

    Paths of files, which pyarrow sets in the metadata that it collects, are in no file and are left out. Raises
    InvalidParquet.
    """
    sink = pa.BufferOutputStream()
    metadata.write_metadata_file(sink)
    data = sink.getvalue().to_pybytes()[len(MAGIC) :]
    try:
        footer = without_file_paths(data[: -len(MAGIC) - _LENGTH])
    except MalformedThrift as error:
        raise InvalidParquet(f"the footer is malformed: {error}") from None
    return footer + len(footer).to_bytes(_LENGTH, "little") + MAGIC


def among(names: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Return those names that some column has, too, ignoring case."""
    wanted = {column.lower() for column in columns}
    return [name for name in names if name.lower() in wanted]
