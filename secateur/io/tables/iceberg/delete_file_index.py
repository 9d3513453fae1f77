"""Match the delete files of an Iceberg snapshot with the data files that they apply to.

A position delete or a deletion vector applies to data files that are not younger than it, an equality delete to those
that are older. Deletes of a partition apply within it; equality deletes of an unpartitioned spec apply everywhere. A
delete file that names its data file applies to that file only, and a deletion vector replaces all position deletes of
its file. Source: Iceberg's specification, "Scan Planning", and ``DeleteFileIndex``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import present, truths
from secateur.errors import UnsupportedTable
from secateur.io.tables.iceberg.manifest_arrays import EQUALITY_DELETES, POSITION_DELETES, Entries
from secateur.io.tables.iceberg.partition_transforms import VOID, PartitionField
from secateur.io.tables.listing import DeleteCounts

FILE_PATH = 2147483546  # the id of the path in a position delete file
_NOTHING = np.zeros(0, np.int64)


@dataclass(frozen=True)
class AppliedDeletes:
    """Pairs of a data file, by ordinal, and a delete file that applies to it; sorted by data file."""

    data: np.ndarray
    delete: np.ndarray

    def of(self, ordinal: int) -> np.ndarray:
        """Return the delete files that apply to one data file."""
        return self.delete[np.searchsorted(self.data, ordinal) : np.searchsorted(self.data, ordinal, "right")]


@dataclass(frozen=True)
class DeleteFileIndex:
    """The delete files of a snapshot, matched with its data files."""

    deletes: Entries
    data: Entries
    order: np.ndarray  # of the data files among their entries
    specs: Mapping[int, Sequence[PartitionField]]

    @property
    def emptied(self) -> DeleteFileIndex:
        """Return the same data files without deletes."""
        return replace(self, deletes=Entries(()))

    @cached_property
    def files(self) -> pa.RecordBatch:
        """One row of FILES per delete file."""
        return self.deletes.files

    def matches(self, ordinals: np.ndarray) -> AppliedDeletes:
        """Return the delete files that apply to some data files, given ascending."""
        chosen = np.zeros(len(self.order), bool)
        chosen[ordinals] = True
        pairs = [_pairs(data[chosen[data]], deletes) for data, deletes in self._groups]
        pairs.append(tuple(numbers[chosen[self._named[0]]] for numbers in self._named))
        data = np.concatenate([_NOTHING, *(numbers[0] for numbers in pairs)])
        delete = np.concatenate([_NOTHING, *(numbers[1] for numbers in pairs)])
        applies = (self._data_sequence[data] < self._first_untouched[delete]) & self._within_paths(data, delete)
        data, delete = data[applies], delete[applies]
        superseded = self._is_position[delete] & ~self._is_vector[delete] & np.isin(data, data[self._is_vector[delete]])
        data, delete = data[~superseded], delete[~superseded]
        in_order = np.lexsort((delete, data))
        return AppliedDeletes(data[in_order], delete[in_order])

    @cached_property
    def touched(self) -> np.ndarray:
        """Which data files some delete file may apply to: bool of shape (n_files,)."""
        is_touched = np.zeros(len(self.order), bool)
        data, delete = self._named
        is_touched[data[self._data_sequence[data] < self._first_untouched[delete]]] = True
        for data, deletes in self._groups:
            is_touched[data[self._data_sequence[data] < self._first_untouched[deletes].max(initial=0)]] = True
        return is_touched

    def _within_paths(self, data: np.ndarray, delete: np.ndarray) -> np.ndarray:
        """Return for which pairs the data file's path lies within the delete file's path bounds."""
        paths = self.data.files.column("path").take(pa.array(self.order[data])).cast(pa.binary())
        lower, upper = (bounds.take(pa.array(delete)) for bounds in self._path_bounds)
        outside = pc.or_(pc.fill_null(pc.less(paths, lower), False), pc.fill_null(pc.greater(paths, upper), False))
        return ~truths(outside) | ~self._is_position[delete]

    @cached_property
    def bytes(self) -> np.ndarray:
        """The size of every delete file; for a deletion vector, which shares a file with others, its own size."""
        content = pc.if_else(pa.array(self._is_vector), self.files.column("content_size"), pa.scalar(None, pa.int64()))
        sizes: np.ndarray = pc.coalesce(content, self.files.column("size")).to_numpy(zero_copy_only=False)
        return sizes

    def counts(self, ordinals: np.ndarray) -> DeleteCounts:
        """Return the number of live delete files, and how far they apply to some data files, given ascending."""
        applied = self.matches(ordinals).delete
        is_position = self._is_position & ~self._is_vector
        return DeleteCounts(
            position=int(is_position.sum()),
            equality=int((~self._is_position).sum()),
            vectors=int(self._is_vector.sum()),
            applied=len(applied),
            applied_bytes=int(self.bytes[applied].sum()),
            needed=len(np.unique(applied)),
            touched=int(self.touched.sum()),
        )

    def most_deleted(self, ordinals: np.ndarray) -> np.ndarray:
        """Return an upper bound of the positions deleted in some data files, given ascending; may count those of other
        files.
        """
        pairs = self.matches(ordinals)
        chosen = self._is_position[pairs.delete]
        most = np.zeros(len(ordinals), np.int64)
        counts = self.files.column("record_count").to_numpy()[pairs.delete[chosen]]
        np.add.at(most, np.searchsorted(ordinals, pairs.data[chosen]), counts)
        return most

    def deleted_by_value(self, ordinals: np.ndarray) -> np.ndarray:
        """Return to which data files, given ascending, an equality delete applies: bool, like `ordinals`."""
        pairs = self.matches(ordinals)
        return np.isin(ordinals, pairs.data[~self._is_position[pairs.delete]])

    def sharing(self, ordinals: np.ndarray, among: np.ndarray) -> np.ndarray:
        """Return the given data files, plus those of `among` that share a position delete with one of them."""
        pairs = self.matches(among)
        shared = pairs.delete[np.isin(pairs.data, ordinals) & self._is_position[pairs.delete]]
        return np.union1d(ordinals, pairs.data[np.isin(pairs.delete, shared)])

    @cached_property
    def _data_sequence(self) -> np.ndarray:
        sequence: np.ndarray = self.data.files.column("sequence").to_numpy()[self.order]
        return sequence

    @cached_property
    def _is_position(self) -> np.ndarray:
        is_position: np.ndarray = self.files.column("content").to_numpy() == POSITION_DELETES
        return is_position

    @cached_property
    def _is_vector(self) -> np.ndarray:
        """Which delete files are deletion vectors."""
        is_puffin = pc.equal(pc.utf8_upper(self.files.column("format")), "PUFFIN")
        return self._is_position & truths(is_puffin)

    @cached_property
    def _first_untouched(self) -> np.ndarray:
        """The lowest data sequence number to which each delete file does not apply."""
        sequence = self.files.column("sequence").to_numpy()
        return np.where(self.files.column("content").to_numpy() == EQUALITY_DELETES, sequence, sequence + 1)

    @cached_property
    def _path_bounds(self) -> tuple[pa.Array, pa.Array]:
        """The path bounds of every position delete file; null if unknown."""
        n = len(self.deletes)
        ends = []
        for name in ("lower", "upper"):
            rows, values = self.deletes.values(name, FILE_PATH)
            at = np.full(n, -1)
            at[rows] = np.arange(len(rows))
            known = values.cast(pa.binary()) if len(rows) else pa.nulls(1, pa.binary())
            ends.append(known.take(pa.array(at, mask=at < 0)))
        return ends[0], ends[1]

    @cached_property
    def _target(self) -> pa.Array:
        """The data file that a delete file names; null if it may name several.

        A position delete file names one if its path bounds are equal, which means they were not cut.
        """
        lower, upper = self._path_bounds
        same = truths(pc.equal(lower, upper)) & self._is_position
        bound = pc.if_else(pa.array(same), lower, pa.scalar(None, pa.binary())).cast(pa.string())
        return pc.coalesce(self.files.column("referenced"), bound)

    @cached_property
    def _target_ordinal(self) -> np.ndarray:
        """The ordinal of the data file that a delete file names; -1 for none, -2 for one that is not live."""
        paths = self.data.files.column("path").take(pa.array(self.order))
        ordinals = pc.index_in(self._target, paths)
        return np.where(present(self._target), pc.fill_null(ordinals, -2).to_numpy(), -1).astype(np.int64)

    @cached_property
    def _named(self) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of a data file and a delete file that names it."""
        named = np.flatnonzero(self._is_position & (self._target_ordinal >= 0))
        return self._target_ordinal[named], named

    @cached_property
    def _groups(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Data files, ascending, with the delete files that may apply to them, whatever sequence numbers and paths say.

        One group per partition, and one of all data files with the equality deletes of unpartitioned specs.
        """
        unnamed = ~self._is_position | (self._target_ordinal == -1)
        return [
            group for spec in np.unique(self.deletes.spec[unnamed]).tolist() for group in self._groups_of(spec, unnamed)
        ]

    def _groups_of(self, spec: int, unnamed: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        of_spec = np.flatnonzero(unnamed & (self.deletes.spec == spec))
        fields = self.specs.get(spec, ())
        is_whole = all(field.transform == VOID for field in fields)
        everywhere = of_spec[~self._is_position[of_spec]] if is_whole else _NOTHING
        if len(everywhere):
            yield np.arange(len(self.order)), everywhere
        within = np.setdiff1d(of_spec, everywhere)
        data = np.flatnonzero(self.data.spec[self.order] == spec) if len(within) else _NOTHING
        codes = self._partition_codes(spec, fields, data, within)
        for code in np.unique(codes[len(data) :]).tolist():
            yield data[codes[: len(data)] == code], within[codes[len(data) :] == code]

    def _partition_codes(
        self, spec: int, fields: Sequence[PartitionField], data: np.ndarray, deletes: np.ndarray
    ) -> np.ndarray:
        """Return a number for the partition of every given data file, then for that of every delete file."""
        codes = np.zeros(len(data) + len(deletes), np.int64)
        for field in fields:
            values = [
                _at(self.data.partition(spec, field.id), self.order[data]),
                _at(self.deletes.partition(spec, field.id), deletes),
            ]
            field_codes = _codes(values)
            codes = np.unique(codes * (int(field_codes.max(initial=0)) + 1) + field_codes, return_inverse=True)[1]
        return codes


def _at(known: tuple[np.ndarray, pa.Array], files: np.ndarray) -> pa.Array:
    """Return the values of the given files, out of the values of all files of a spec."""
    rows, values = known
    if not np.isin(files, rows).all():
        raise UnsupportedTable("manifests of one partition spec have different partition fields")
    return values.take(pa.array(np.searchsorted(rows, files)))


def _codes(parts: Sequence[pa.Array]) -> np.ndarray:
    """Number the distinct rows of some arrays; NULL is a value."""
    types = {part.type for part in parts if len(part)}
    if len(types) > 1:
        parts = [part.cast(reduce(_wider, types)) for part in parts]
    type_ = next((part.type for part in parts if len(part)), pa.null())
    encoded = pa.chunked_array([part for part in parts if len(part)], type_).combine_chunks()
    encoded_array = encoded.dictionary_encode(null_encoding="encode")
    return encoded_array.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def _wider(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    return a if a.bit_width >= b.bit_width else b


def _pairs(data: np.ndarray, deletes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pair every data file with every delete file."""
    return np.repeat(data, len(deletes)), np.tile(deletes, len(data))
