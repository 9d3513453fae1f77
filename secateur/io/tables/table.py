"""A table as the rest of the package sees it: schema, live files, and how to open one of them."""

from __future__ import annotations

import datetime as dt
import string
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import strings, truths
from secateur.index.build.assemble import SourceFile
from secateur.index.identity import listing_id
from secateur.index.naming import Naming
from secateur.index.read.coverage import NamesOnly
from secateur.index.read.memory_cache import ByteCache
from secateur.index.zones import zonemap
from secateur.io.storage.index_store import FileStore
from secateur.io.tables.directory.hive_partitions import Partitions, null_counts
from secateur.pruning.predicate.bound import Field
from secateur.pruning.zones import Zones
from secateur.values import is_float, kind_of

if TYPE_CHECKING:
    from secateur.io.parquet.row_selection import ChosenRows
    from secateur.io.scan.block_list import FileBlocks
    from secateur.io.storage.disk_cache import DiskCache
    from secateur.io.tables.metadata_tables import MetadataTables
    from secateur.io.tables.page_filter import PagePruner

METADATA = "_metadata"  # Spark's hidden column of files; `file_name` of it is known here
FILE_NAME = (METADATA, "file_name")
METADATA_FIELD = pa.field(METADATA, pa.struct([pa.field("file_name", pa.string())]))

_UNESCAPED = frozenset(string.ascii_letters + string.digits + "-_.!~*'():@&=+$,;")
_PLAIN_NAME = r"\A[a-zA-Z0-9_.=-]*\z"


def _escaped(name: str) -> str:
    """A file name as in a URI's path: ``java.net.URI.quote``, which leaves letters beyond ASCII as they are."""
    return "".join(
        c if c in _UNESCAPED or (c > "\x7f" and unicodedata.category(c) not in ("Cc", "Zl", "Zp", "Zs")) else quote(c)
        for c in name
    )


@dataclass(frozen=True)
class Listing(NamesOnly):
    """The live files of a table at one moment: arrays of shape (n_files,), ordered by path."""

    paths: pa.Array  # below the table
    size: np.ndarray  # bytes
    modified: np.ndarray  # nanoseconds since the epoch
    witness: np.ndarray  # what nobody puts back; see :mod:`secateur.io.witness`
    partitions: Partitions
    own_metadata: bool = False  # whether the files have a column of the name of the one that Spark hides
    recognised: np.ndarray | None = None  # witnesses by which the index knows the files, where they are others

    @property
    def known_as(self) -> np.ndarray:
        """The witness of every file under which the index knows it, where it does."""
        return self.witness if self.recognised is None else self.recognised

    def identity(self, ordinal: int) -> tuple[int, int, int]:
        """Size, time of modification and witness of a file, as it was listed."""
        return int(self.size[ordinal]), int(self.modified[ordinal]), int(self.witness[ordinal])

    @cached_property
    def id(self) -> int:
        """The identity of the files; the zone in which partition values were read is not part of it."""
        return listing_id(self.paths, self.size, self.modified, self.known_as)

    @cached_property
    def file_names(self) -> pa.Array:
        """The last part of every path, escaped as in Spark's ``_metadata.file_name``."""
        names = pc.replace_substring_regex(self.paths, "(?s)^.*/", "")
        plain = pc.match_substring_regex(names, _PLAIN_NAME)
        return names if plain.true_count == len(names) else strings([_escaped(name) for name in names.to_pylist()])

    def zones(self, column: Field) -> Zones | None:
        """What the names of the files tell of a column, exact; None for a column inside the files."""
        if column.path == FILE_NAME and not self.own_metadata:
            return _constants(self.file_names)
        for field, values in zip(self.partitions.fields, self.partitions.values, strict=True):
            if column.path == (field.name,):
                return None if kind_of(field.type) is None else _constants(values)
        return None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are not in the files."""
        return tuple(field.name for field in self.partitions.fields)

    def delete_counts(self, ordinals: np.ndarray) -> DeleteCounts:
        """The delete files, and how far they apply to some of the files, which ascend."""
        return DeleteCounts()


@dataclass(frozen=True)
class DeleteCounts:
    """The live delete files of a table by their kind, and how far they apply to some of its data files."""

    position: int = 0
    equality: int = 0
    vectors: int = 0
    applied: int = 0  # pairs of such a data file and a delete file that applies to it
    applied_bytes: int = 0
    needed: int = 0  # delete files that apply to such a data file
    touched: int | None = None  # data files of all to which some may apply; None where the format has none


def metadata_of(path: str) -> pa.StructScalar:
    """Spark's ``_metadata`` of a file, as far as it is known here."""
    return pa.scalar({"file_name": _escaped(path.rpartition("/")[2])}, METADATA_FIELD.type)


def _constants(values: pa.Array) -> Zones:
    n = len(values)
    nan_count = truths(pc.is_nan(values)).astype(np.int64) if is_float(values.type) else np.zeros(n, np.int64)
    ones = np.ones(n, np.int64)
    return zonemap.from_bounds(values.type, values, values, null_counts(values), nan_count, ones).zones(ones)


class FileSource(SourceFile, Protocol):
    """An open file of a table."""

    @property
    def path(self) -> str: ...


class FileRows(Protocol):
    """The rows of one file, as the table has them."""

    @property
    def row_count(self) -> np.ndarray:
        """Rows of every row group, deleted ones too."""

    @property
    def constants(self) -> Mapping[str, pa.Scalar]:
        """Columns that have one value in the file, which is not read for them."""

    def positioned(
        self, row_group: int, fields: Sequence[pa.Field], rows: ChosenRows | None = None
    ) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
        """The chosen rows of a row group, or all, that are not deleted: some top-level columns, none of them constant.

        Every batch with the positions of its rows within the row group, which ascend.
        """

    def at(self, row_group: int, fields: Sequence[pa.Field], rows: ChosenRows) -> Iterator[pa.RecordBatch]:
        """Exactly the chosen rows of a row group, whether they are deleted or not: values of top-level columns."""

    @property
    def pages(self) -> PagePruner:
        """What the file's own page index rules out."""

    def is_light(self, row_group: int, fields: Sequence[pa.Field], rows: ChosenRows | None) -> bool:
        """Whether values of some columns are so few bytes that reading them costs less than a request of their own."""


@dataclass(frozen=True)
class Delivery:
    """How the rows of some files are read, here or in another process."""

    told: pa.StructArray  # of every file, what its reader is told besides its path and size
    open: Callable[[FileBlocks], FileRows]  # pickled where the reader is in another process


class Table(Protocol):
    """A table of any format, as it is from moment to moment."""

    @property
    def location(self) -> str:
        """Where the table is, as the user gave it, absolute."""

    @property
    def store(self) -> FileStore:
        """Where its index is."""

    def snapshot(self, *, fresh: bool = False) -> TableSnapshot:
        """The table as it is now: with `fresh` whatever age it allows, for builds and checks."""

    def expire(self) -> None:
        """Forget how old it is what is known of the table: the next query looks anew."""


class TableSnapshot(Table, Protocol):
    """A table at one moment; one of a format without snapshots stands for itself."""

    @property
    def cache(self) -> ByteCache:
        """What was read of its index and footers."""

    @property
    def disk(self) -> DiskCache | None:
        """Where pieces of its index are kept on local disk, if anywhere."""

    @property
    def id(self) -> int | None:
        """The number that the format gives the snapshot; None where it has none."""

    @property
    def declared_schema(self) -> pa.Schema | None:
        """The schema that the user gave, data and partition columns, or the format; None where files tell."""

    @property
    def metadata_tables(self) -> MetadataTables:
        """What the format tells of the snapshot besides its live files."""

    @property
    def naming(self) -> Naming | None:
        """How an index calls the columns; None for by their names."""

    def listing(self, zone: dt.tzinfo) -> Listing:
        """The live files, as old as the table allows; timestamps in partition values are read in `zone`.

        The same object may be given many times, to any thread; what is derived from it can be cached by its id.
        """

    def fresh_listing(self, zone: dt.tzinfo) -> Listing:
        """The live files now, whatever age :meth:`listing` allows: for builds and checks."""

    def schemas(self, listing: Listing, ordinals: np.ndarray) -> Iterator[tuple[str, pa.Schema]]:
        """The path and the schema of the given files."""

    def open_file(self, path: str) -> FileSource:
        """One file by its path, its columns called as in the table's schema."""

    def open_for_index(self, path: str) -> FileSource:
        """One file by its path, its columns called as an index calls them."""

    def kept_manifests(self) -> bytes | None:
        """What to keep of the table's own metadata beside the index; None where there is nothing."""

    def delivery(self, listing: Listing, ordinals: np.ndarray) -> Delivery:
        """How the rows of some files are read."""

    def delivery_of_all(self, listing: Listing, ordinals: np.ndarray) -> Delivery:
        """How all rows of some files are read, deleted ones too, of which an index tells as well."""

    def full_path(self, path: str) -> str:
        """The path of a file as Spark and other engines take it."""
