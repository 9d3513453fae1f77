"""Read the live rows of an Iceberg table's files, on the driver and on executors.

The driver reads every delete file that applies to a surviving file once. It passes to the reader of a file its deleted
positions and the lists of deleted keys that apply. Executors need neither manifests nor PyIceberg.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from secateur.arrays import flags
from secateur.concurrency import at_once
from secateur.errors import StalePlan, UnsupportedTable
from secateur.index.read.memory_cache import ByteCache
from secateur.io.parquet.dictionary_texts import not_encoded
from secateur.io.parquet.known_footer import GivenFooter
from secateur.io.parquet.parquet_file import ParquetFile, open_parquet, open_rows
from secateur.io.parquet.row_group_reader import RowGroupReader
from secateur.io.parquet.row_selection import RowSelection, with_positions
from secateur.io.storage.byte_ranges import files_at_once, is_local
from secateur.io.storage.file_version import ListedFile, still_listed
from secateur.io.storage.locations import FileSystems
from secateur.io.storage.object_file import open_file
from secateur.io.tables.file_rows import Delivery, positions_in_file
from secateur.io.tables.iceberg.delete_files import DeletedKeys, Deletions, read_positions, read_vector, require_parquet
from secateur.io.tables.iceberg.manifest_arrays import EQUALITY_DELETES
from secateur.io.tables.mapped_file import MappedFile, View
from secateur.io.tables.page_filter import PagePruner
from secateur.io.tables.row_ids import RowIds, asks_row_ids

if TYPE_CHECKING:
    from secateur.io.tables.file_rows import FileBlocks
    from secateur.io.tables.iceberg.listing import IcebergListing

DELETE_THREADS = 16


def _nothing() -> None:
    """Do nothing: `expire` in a process that caches no snapshot."""


@dataclass(frozen=True)
class IcebergReader:
    """Opens the data files of a snapshot."""

    view: View
    files: FileSystems
    keys: tuple[DeletedKeys, ...] = field(default=(), repr=False)  # files refer to them by number
    expire: Callable[[], None] = field(default=_nothing, repr=False)  # called if a file has vanished

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "expire": _nothing}

    def open(self, path: str, given: GivenFooter | None = None) -> MappedFile:
        """Open a data file by its path in manifests. If it has vanished, the next query looks for a new snapshot.

        Raises StalePlan, InvalidParquet.
        """
        try:
            return MappedFile(open_parquet(*self.files.of(path), path, given=given).rows, self.view)
        except StalePlan:
            self.expire()
            raise

    def open_rows(self, file: FileBlocks) -> IcebergRows:
        """Open the live rows of a data file."""
        listed = ListedFile(*self.files.of(file.path), file.path, file.size, 0)
        options = file.options
        constants = {int(name): value["value"] for name, value in options["constants"].items() if value.is_valid}
        positions = options["deleted"].as_py()
        deletions = Deletions(
            np.frombuffer(positions or b"", np.int64),
            tuple(self.keys[i] for i in options["keys"].as_py() or ()),
        )
        try:
            # Positions of deleted rows count from the first row of the file, which only the footer gives.
            stored = None if len(deletions.positions) else file.stored
            rows = open_rows(*self.files.of(file.path), file.path, listed, stored)
        except StalePlan:
            self.expire()
            raise
        ids = RowIds(options["first_row_id"].as_py(), options["sequence"].as_py())
        return IcebergRows(MappedFile(rows, self.view, constants), deletions, listed, ids)


@dataclass(frozen=True)
class IcebergRows:
    """The live rows of one data file; see :class:`secateur.io.tables.file_rows.FileRows`."""

    file: MappedFile
    deletions: Deletions
    listed: ListedFile
    ids: RowIds

    @property
    def row_count(self) -> np.ndarray:
        return self.file.row_count

    @property
    def constants(self) -> Mapping[str, pa.Scalar]:
        """Empty: partition values are used only if the file lacks the column."""
        return {}

    def positioned(
        self, row_groups: Sequence[int], fields: Sequence[pa.Field], rows: RowSelection | None = None
    ) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
        """Yield the selected rows that are not deleted, with their positions within the row groups."""
        if self.deletions.keys:  # with which values are compared
            fields = not_encoded(fields)
        wanted, counted = self.deletions.fields(fields), bool(len(self.deletions.positions))
        names = list(range(len(fields))) if fields else None
        for positions, whole in with_positions(self.at(row_groups, wanted, rows), rows):
            in_file = positions_in_file(self.row_count, row_groups, positions) if counted else positions
            alive = self.deletions.alive(whole, in_file, wanted)
            batch = whole if alive.all() else whole.filter(flags(alive))
            yield positions[alive], batch if names is None or len(wanted) == len(fields) else batch.select(names)

    def at(
        self, row_groups: Sequence[int], fields: Sequence[pa.Field], rows: RowSelection | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the selected rows of some row groups, or all, deleted or not."""
        batches = still_listed(self.file.read_selected(row_groups, fields, rows), self.listed)
        return self._numbered(batches, row_groups, fields, rows) if asks_row_ids(fields) else batches

    def _numbered(
        self,
        batches: Iterator[pa.RecordBatch],
        row_groups: Sequence[int],
        fields: Sequence[pa.Field],
        rows: RowSelection | None,
    ) -> Iterator[pa.RecordBatch]:
        for positions, batch in with_positions(batches, rows):
            yield self.ids.completed(batch, fields, positions_in_file(self.row_count, row_groups, positions))

    @cached_property
    def pages(self) -> PagePruner:
        """The file's own page index."""
        return PagePruner(lambda: self.file, (), self.file.rows.is_stored)

    @property
    def reader(self) -> RowGroupReader[ParquetFile]:
        """The reader of the file's row groups."""
        return self.file.rows

    def names(self, fields: Sequence[pa.Field]) -> list[str]:
        """Return the file's names of those columns that it has."""
        return self.file.names(fields)


def delivered(
    listing: IcebergListing,
    ordinals: np.ndarray,
    reader: IcebergReader,
    fields: Mapping[int, pa.Field],
    cache: ByteCache,
) -> Delivery:
    """Return how some files are read; `fields` are the columns that equality deletes may use, by id."""
    deleted: list[bytes | None] = [None] * len(ordinals)
    applying: list[list[int] | None] = [None] * len(ordinals)
    keys: list[DeletedKeys] = []
    if listing.touched is not None:
        deletes = DeleteFiles(listing, ordinals, reader, fields, cache)
        deleted = [None if positions is None else positions.tobytes() for positions in deletes.positions()]
        keys, applying = deletes.keys()
    options = pa.StructArray.from_arrays(
        [
            listing.constants(ordinals),
            pa.array(deleted, pa.binary()),
            pa.array(applying, pa.list_(pa.int32())),
            *listing.row_ids(ordinals),
        ],
        names=["constants", "deleted", "keys", "first_row_id", "sequence"],
    )
    filesystem = reader.files.of(listing.paths[int(ordinals[0])].as_py())[0] if len(ordinals) else None
    at_once, here = (1, False) if filesystem is None else (files_at_once(filesystem), is_local(filesystem))
    return Delivery(options, replace(reader, keys=tuple(keys)).open_rows, at_once, here)


@dataclass(frozen=True)
class DeleteFiles:
    """The delete files that apply to some data files. Each is read once, and its deletions are cached."""

    listing: IcebergListing
    ordinals: np.ndarray  # of the data files, ascending
    reader: IcebergReader
    fields: Mapping[int, pa.Field]
    cache: ByteCache

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of a delete file and the place among `ordinals` of a data file that it applies to."""
        matches = self.listing.deletes.matches(self.ordinals)
        return matches.delete, np.searchsorted(self.ordinals, matches.data)

    def _row(self, delete: int) -> dict[str, object]:
        row: dict[str, object] = self.listing.deletes.files.slice(delete, 1).to_pylist()[0]
        return row

    def positions(self) -> list[np.ndarray | None]:
        """Return the deleted positions of every data file, ascending; None if no position delete applies."""
        deletes, places = self._pairs
        content = self._content
        chosen = content[deletes] != EQUALITY_DELETES
        deletes, places = deletes[chosen], places[chosen]
        positions: list[list[np.ndarray]] = [[] for _ in self.ordinals]
        distinct = np.unique(deletes).tolist()

        def read(delete: int) -> list[np.ndarray]:
            return self._kept_positions(delete, places[deletes == delete])

        for delete, parts in zip(distinct, at_once(read, distinct, DELETE_THREADS), strict=True):
            for place, part in zip(places[deletes == delete].tolist(), parts, strict=True):
                positions[place].append(part)
        return [np.unique(np.concatenate(parts)) if parts else None for parts in positions]

    def _kept_positions(self, delete: int, places: np.ndarray) -> list[np.ndarray]:
        """Return :meth:`_read_positions`, cached: delete files do not change."""
        row, data = self._row(delete), self.listing.paths.take(pa.array(self.ordinals[places])).to_pylist()
        keys = [("deleted", row["path"], row["content_offset"], path) for path in data]
        cached = [self.cache.peek(key) for key in keys]
        missing = [i for i, positions in enumerate(cached) if positions is None]
        for i, read in zip(missing, self._read_positions(delete, places[missing]) if missing else (), strict=True):
            cached[i] = self.cache.get(keys[i], lambda read=read: read)  # type: ignore[misc]
        return cached

    def _read_positions(self, delete: int, places: np.ndarray) -> list[np.ndarray]:
        """Read the positions that a delete file or deletion vector deletes in the data files at some places."""
        row = self._row(delete)
        path = str(row["path"])
        if str(row["format"]).upper() == "PUFFIN":
            offset, size = row["content_offset"], row["content_size"]
            if not isinstance(offset, int) or not isinstance(size, int):
                raise UnsupportedTable(f"the manifest does not say where in {path} a deletion vector lies")
            return [read_vector(self._open, path, offset, size)]
        require_parquet(path, str(row["format"]))
        return read_positions(self._open, path, self.listing.paths.take(pa.array(self.ordinals[places])))

    def keys(self) -> tuple[list[DeletedKeys], list[list[int] | None]]:
        """Return the lists of deleted keys, and for every data file the numbers of those that apply."""
        deletes, places = self._pairs
        chosen = self._content[deletes] == EQUALITY_DELETES
        deletes, places = deletes[chosen], places[chosen]
        distinct, numbers = np.unique(deletes, return_inverse=True)
        keys = at_once(self._kept_keys, distinct.tolist(), DELETE_THREADS)
        applying: list[list[int] | None] = [None] * len(self.ordinals)
        for number, place in zip(numbers.tolist(), places.tolist(), strict=True):
            applying[place] = [*(applying[place] or ()), number]
        return keys, applying

    def _kept_keys(self, delete: int) -> DeletedKeys:
        """Return :meth:`_read_keys`, cached by delete file and fields, because columns can be promoted."""
        row = self._row(delete)
        path, ids = str(row["path"]), row["equality_ids"]
        require_parquet(path, str(row["format"]))
        if not isinstance(ids, list) or not ids or any(number not in self.fields for number in ids):
            raise UnsupportedTable(
                f"the equality deletes of {path} are by fields {ids}; only top-level columns are read"
            )
        fields = tuple(self.fields[number] for number in ids)
        return self.cache.get(("deleted keys", path, fields), lambda: self._read_keys(path, fields))

    def _read_keys(self, path: str, fields: tuple[pa.Field, ...]) -> DeletedKeys:
        file = open_parquet(*self.reader.files.of(path), path).rows
        view = View(pa.schema(fields), {}, frozenset(), self.reader.view.mapping)
        batches = [
            batch
            for row_group in range(len(file.opened.row_count))
            for batch in MappedFile(file, view).read(row_group, fields)
        ]
        rows = pa.Table.from_batches(batches, pa.schema(fields)).combine_chunks()
        return DeletedKeys(fields, tuple(_whole(column) for column in rows.columns))

    @property
    def _content(self) -> np.ndarray:
        content: np.ndarray = self.listing.deletes.files.column("content").to_numpy()
        return content

    def _open(self, path: str) -> pa.NativeFile:
        filesystem, inner = self.reader.files.of(path)
        return open_file(filesystem, inner)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.nulls(0, column.type)
