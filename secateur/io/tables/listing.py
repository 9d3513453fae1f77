"""The live files of a table at one moment, with the values that their names and directories imply."""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import from_numpy, strings, truths
from secateur.index.identity import listing_id
from secateur.index.read.coverage import NamesOnly
from secateur.index.zones import zonemap
from secateur.io.tables.partitions import Partitions, null_counts
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.predicate.binding.resolve import left_to_spark
from secateur.pruning.predicate.bound import Field
from secateur.values.kinds import is_float, kind_of

METADATA = "_metadata"  # Spark's hidden column of files
FILE_NAME, FILE_SIZE = (METADATA, "file_name"), (METADATA, "file_size")
_KNOWN = [pa.field("file_name", pa.string()), pa.field("file_size", pa.int64())]
# Spark may rewrite paths (s3a for s3), truncate times and split files, and it numbers rows as it reads them.
_LEFT_TO_SPARK = [
    left_to_spark("file_path", pa.string()),
    left_to_spark("file_block_start", pa.int64()),
    left_to_spark("file_block_length", pa.int64()),
    left_to_spark("file_modification_time", pa.timestamp("us", "UTC")),
    left_to_spark("row_index", pa.int64()),
]
METADATA_FIELD = pa.field(METADATA, pa.struct([*_KNOWN, *_LEFT_TO_SPARK]))  # as predicates may name it
KNOWN_METADATA_FIELD = pa.field(METADATA, pa.struct(_KNOWN))  # as it is read here

_UNESCAPED = frozenset(string.ascii_letters + string.digits + "-_.!~*'():@&=+$,;")
_PLAIN_NAME = r"\A[a-zA-Z0-9_.=-]*\z"


def _escaped(name: str) -> str:
    """Escape a file name for a URI's path as ``java.net.URI.quote`` does, which keeps non-ASCII letters."""
    return "".join(
        c if c in _UNESCAPED or (c > "\x7f" and unicodedata.category(c) not in ("Cc", "Zl", "Zp", "Zs")) else quote(c)
        for c in name
    )


@dataclass(frozen=True)
class Listing(NamesOnly):
    """The live files of a table at one moment: arrays of shape (n_files,), ordered by path."""

    paths: pa.Array  # below the table
    size: np.ndarray  # bytes
    stamp: np.ndarray  # int64: when files were written, in nanoseconds since the epoch, or other numbers of the format
    witness: np.ndarray  # cannot be set back by tools; see :mod:`secateur.io.storage.witness`
    partitions: Partitions
    has_metadata_column: bool = False  # whether files have a column named like Spark's hidden one
    has_row_ids: bool = False  # whether the format numbers the rows of the table
    recognised: np.ndarray | None = None  # witnesses by which the index knows the files, if different
    left_out: int = 0  # bytes of the table's other live files, which the query does not ask for

    @property
    def known_as(self) -> np.ndarray:
        """The witness by which the index may know each file."""
        return self.witness if self.recognised is None else self.recognised

    def take(self, files: np.ndarray) -> Self:
        """Return some files, given by ascending ordinals, without the others."""
        chosen, size = from_numpy(files), self.size[files]
        return replace(
            self,
            paths=self.paths.take(chosen),
            size=size,
            stamp=self.stamp[files],
            witness=self.witness[files],
            partitions=self.partitions.take(chosen),
            recognised=None if self.recognised is None else self.recognised[files],
            left_out=self.left_out + int(self.size.sum() - size.sum()),
        )

    def identity(self, ordinal: int) -> tuple[int, int, int]:
        """Return size, stamp and witness of a file as listed."""
        return int(self.size[ordinal]), int(self.stamp[ordinal]), int(self.witness[ordinal])

    @cached_property
    def id(self) -> int:
        """The identity of the files, regardless of the zone in which partition values were read."""
        return listing_id(self.paths, self.size, self.stamp, self.known_as)

    @cached_property
    def file_names(self) -> pa.Array:
        """The last part of every path, escaped as in Spark's ``_metadata.file_name``."""
        names = pc.replace_substring_regex(self.paths, "(?s)^.*/", "")
        plain = pc.match_substring_regex(names, _PLAIN_NAME)
        return names if plain.true_count == len(names) else strings([_escaped(name) for name in names.to_pylist()])

    def zones(self, column: Field) -> Zones | None:
        """Return the exact zone maps of a column given by file names and sizes; None for a column inside the files."""
        if column.path[0] == METADATA and not self.has_metadata_column:
            return _constants(from_numpy(self.size) if column.path == FILE_SIZE else self.file_names)
        for field, values in zip(self.partitions.fields, self.partitions.values, strict=True):
            if column.path == (field.name,):
                return None if kind_of(field.type) is None else _constants(values)
        return None

    @property
    def row_state(self) -> tuple[pa.Array, ...]:
        """What the rows of the files depend on besides the files: partition values, and what is deleted."""
        return self.partitions.values

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are not in the files."""
        return tuple(field.name for field in self.partitions.fields)

    @property
    def constant_columns(self) -> list[ConstantColumn]:
        """The columns of which the table's metadata says that they have one value in a file, and which."""
        every = np.ones(len(self.size), bool)
        parts = zip(self.partitions.fields, self.partitions.values, strict=True)
        return [ConstantColumn((field.name,), values, every) for field, values in parts]

    def deleted_by_value(self, files: np.ndarray) -> np.ndarray:
        """Return from which files, given ascending, rows may be deleted that no position names: bool, like `files`."""
        return np.zeros(len(files), bool)

    def delete_counts(self, ordinals: np.ndarray) -> DeleteCounts:
        """Return the delete files, and how far they apply to some files, given ascending."""
        return DeleteCounts()


@dataclass(frozen=True, eq=False)
class ConstantColumn:
    """A column with one value in every row of a file, for the files that are known to be so."""

    path: tuple[str, ...]
    values: pa.Array
    known: np.ndarray


@dataclass(frozen=True)
class DeleteCounts:
    """Numbers of the table's live delete files by kind, and how far they apply to some of its data files."""

    position: int = 0
    equality: int = 0
    vectors: int = 0
    applied: int = 0  # pairs of such a data file and a delete file that applies to it
    applied_bytes: int = 0
    needed: int = 0  # delete files that apply to such a data file
    touched: int | None = None  # all data files to which some may apply; None if the format has no deletes


def metadata_of(path: str, size: int) -> pa.StructScalar:
    """Return the known part of Spark's ``_metadata`` of a file."""
    known = [strings([_escaped(path.rpartition("/")[2])]), from_numpy(np.array([size]))]
    return pa.StructArray.from_arrays(known, fields=list(KNOWN_METADATA_FIELD.type))[0]


@dataclass(frozen=True, eq=False)
class FileConstants(Mapping[str, pa.Scalar]):
    """The columns that have one value in a file: those of its partition, and ``_metadata``, made when asked for."""

    path: str
    size: int
    partition: Mapping[str, pa.Scalar]

    def __getitem__(self, name: str) -> pa.Scalar:
        return metadata_of(self.path, self.size) if self._is_metadata(name) else self.partition[name]

    def __contains__(self, name: object) -> bool:
        return name == METADATA or name in self.partition

    def __iter__(self) -> Iterator[str]:
        return iter((METADATA, *(name for name in self.partition if name != METADATA)))

    def __len__(self) -> int:
        return len(self.partition) + self._is_metadata(METADATA)

    def _is_metadata(self, name: str) -> bool:
        """Whether a name is that of Spark's column: a column of the partition hides it."""
        return name == METADATA and METADATA not in self.partition


def _constants(values: pa.Array) -> Zones:
    n = len(values)
    nan_count = truths(pc.is_nan(values)).astype(np.int64) if is_float(values.type) else np.zeros(n, np.int64)
    ones = np.ones(n, np.int64)
    return zonemap.from_bounds(values.type, values, values, null_counts(values), nan_count, ones).zones(ones)
