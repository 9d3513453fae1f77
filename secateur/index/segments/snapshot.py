"""Index snapshots: one immutable version of the index, published by one atomic create.

docs/format.md, "Snapshot files". A snapshot names its segments, records where each of their chunks lies, lists the
files that they cover, and holds the tree of zone maps over them. Snapshot files are numbered; the highest number is the
current one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from secateur.errors import IndexFault
from secateur.index.container.index_file import Contents, ReadRange
from secateur.index.file_names import FILTER_NAME, SEGMENT_NAME, build_of, require_names
from secateur.index.filters.bloom_matrix import BloomMatrices, bloom_matrices_of
from secateur.index.model import IndexedColumn, Store, type_of_name
from secateur.index.segments.base_file import MOST_FILES, KeepBase, base_described
from secateur.index.segments.file_table import COLUMNS, INT64, TEXTS, FileCounts, FileTable, StoredFiles, texts_of
from secateur.index.segments.segment_file import zone_map_of
from secateur.index.segments.segment_files import SegmentFiles
from secateur.index.segments.segment_table import ChunkName, Directory, Segments, chunk_names, written_name
from secateur.index.segments.snapshot_meta import filter_of, made_of_in, options_of
from secateur.index.zones.segment_tree import Tree, tree_over
from secateur.index.zones.zonemap import ZoneMap, unknown
from secateur.integers import all_within
from secateur.pruning.predicate.bound import Field
from secateur.ragged import offsets_of
from secateur.values.kinds import kind_of, ordered_kind, same_keys

MOST_BLOCKS = 1 << 31  # of all segments; bounds what is allocated for them
MOST_SEGMENT_BLOCKS = 1 << 26  # besides the bound by the sizes of its files


@dataclass(frozen=True)
class SegmentTable:
    """The segments of a snapshot in key order: arrays of shape (n_segments,)."""

    name: Sequence[str]
    size: np.ndarray  # bytes of the file
    block_count: np.ndarray
    row_count: np.ndarray
    file_count: np.ndarray

    def __len__(self) -> int:
        return len(self.name)

    @cached_property
    def block_begin(self) -> np.ndarray:
        """The number of the first block of every segment, and the end of the last: int64 of shape (n_segments + 1,)."""
        return offsets_of(self.block_count)

    @cached_property
    def file_begin(self) -> np.ndarray:
        """The first file of every segment, and the end of the last: int64 of shape (n_segments + 1,)."""
        return offsets_of(self.file_count)


class Snapshot:
    """A snapshot file opened for reading; arrays are read on first use."""

    def __init__(self, contents: Contents, read: ReadRange, nbytes: int, store: Store | None, keep: KeepBase) -> None:
        self._contents, self._read = contents, read
        self.name = contents.name
        try:
            meta = contents.meta
            self.number = int(meta["number"])
            self.created = float(meta["created"])
            self.listing_id = int(meta["listing"], 16)
            self.columns = [IndexedColumn(tuple(map(str, c["path"])), type_of_name(c["type"])) for c in meta["columns"]]
            self.filters = [filter_of(described) for described in meta["filters"]]
            self.options = options_of(meta["options"])
            made_of = meta.get("made_of")  # absent in snapshots of the first release
            self.made_of = None if made_of is None else made_of_in(made_of, contents.name)
            base = meta["base"]
            self.base = None if base is None or store is None else base_described(base, store, contents.name, keep)
            self.schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(meta["schema"])))
        except (KeyError, TypeError, ValueError, AttributeError, OSError, OverflowError, pa.ArrowException) as error:
            raise IndexFault(f"{contents.name}: the snapshot is malformed: {error}") from None

        self.nbytes = nbytes + (0 if self.base is None else self.base.size)  # of its files, for caches

    @cached_property
    def segments(self) -> SegmentTable:
        """The segments. Raises IndexFault if the arrays are inconsistent."""
        offsets, data, *counts = self._arrays("segments", TEXTS + 4 * (INT64,))
        names = texts_of((offsets, data), f"{self.name}: the segment names")
        require_names(names, SEGMENT_NAME, self.name)
        table = SegmentTable(names.to_pylist(), *counts)
        if any(array.shape != (len(names),) or array.min(initial=0) < 0 for array in counts) or not _countable(table):
            raise IndexFault(f"{self.name}: the table of segments is malformed")
        return table

    @cached_property
    def segment_files(self) -> SegmentFiles:
        """The files that the segments cover. Raises IndexFault if the arrays are inconsistent."""
        count, at = self.segments.file_count, self._in_base
        of_snapshot = count if at is None else np.where(at < 0, count, 0)

        def paths() -> pa.Array:
            return texts_of(self._arrays("paths", TEXTS), f"{self.name}: the file paths")

        def arrays() -> list[np.ndarray]:
            return self._arrays("files", (len(COLUMNS) + 2) * (INT64,))

        stored = StoredFiles(int(of_snapshot.sum()), paths, arrays, self.name)
        files = SegmentFiles(stored, count) if at is None else SegmentFiles(stored, count, self.base, at)
        self._require_agreement(files)
        return files

    @cached_property
    def _in_base(self) -> np.ndarray | None:
        """Where the files of every segment begin in the base, -1 where they do not. Raises IndexFault."""
        if self.base is None:
            return None
        (at,) = self._arrays("in-base", (INT64,))
        count = self.segments.file_count
        if at.shape != count.shape or not all_within(at, -1, len(self.base.files)):
            raise IndexFault(f"{self.name}: chunk in-base is not about {len(count)} segments and the files of the base")
        order = np.argsort(at, kind="stable")
        order = order[(at[order] >= 0) & (count[order] > 0)]
        begin, end = at[order], at[order] + count[order]
        if (begin[1:] < end[:-1]).any() or end.max(initial=0) > len(self.base.files):
            raise IndexFault(f"{self.name}: segments have the same files of the base, or such as it lacks")
        return at

    @property
    def files(self) -> FileTable:
        """The files that the segments cover, as one table. Raises IndexFault if the arrays are inconsistent."""
        return self.segment_files.table

    @property
    def file_counts(self) -> FileCounts:
        """The counts of every file. Raises IndexFault if the arrays are inconsistent."""
        files = self.segment_files
        return FileCounts(files.block_count, files.row_count, files.byte_count)

    @cached_property
    def builds(self) -> Mapping[str, int]:
        """The builds that wrote the segments, and how many each, most first. Raises IndexFault."""
        return dict(Counter(build_of(name) or "" for name in self.segments.name).most_common())

    @property
    def live(self) -> np.ndarray:
        """The live file of every file, if the live files' id is `listing_id`: its position when sorted by path."""
        return self.segment_files.rank

    def _require_agreement(self, files: SegmentFiles) -> None:
        """Raise IndexFault where the files do not have the blocks of their segments, or their own no place by path."""
        if not np.array_equal(files.blocks_of_segments, self.segments.block_count):
            raise IndexFault(f"{self.name}: the blocks of the files are not those of their segments")
        after, most = files.own_after, 0 if files.base is None else len(files.base.files)
        ascending = after[np.argsort(files.own_rank, kind="stable")] if after.any() else after
        if not all_within(after, 0, most) or (ascending[1:] < ascending[:-1]).any():
            raise IndexFault(f"{self.name}: the table of files is malformed")

    @cached_property
    def tree(self) -> Tree:
        """The nodes above the segments. Raises IndexFault if there are no segments."""
        return tree_over(self.segments.row_count, self.options.fan_out)

    def tree_zones(self, field: Field) -> ZoneMap | None:
        """Return the zone map of a column over all nodes of the tree; None where not indexed. Raises IndexFault."""
        number = self.number_of(field)
        if number is None or not len(self.segments):
            return None
        chunk = f"tree/{number}"
        arrays = self._contents.arrays(chunk, self._read)
        return zone_map_of(arrays, ordered_kind(field.type), len(self.tree.row_count), f"{self.name}: chunk {chunk}")

    def directory(self, kind: str, field: Field | None) -> Directory | None:
        """Return where the chunks of one kind lie, of a column (or of none, if None); None where no segment has one."""
        number = -1 if field is None else self.number_of(field)
        if number is None:
            return None
        return self._directory((kind, number))

    def filter_directory(self, kind: str, number: int) -> Directory | None:
        """Return where the chunks of one kind of a filter lie; None where no segment has one."""
        return self._directory((kind, number))

    def bloom_matrices(self, number: int) -> BloomMatrices | None:
        """Return the bloom matrices of a filter; None where it has none. Raises IndexFault."""
        if number not in self._bloom_matrices:
            self._bloom_matrices[number] = self._read_bloom_matrices(f"bloom-matrices/{number}")
        return self._bloom_matrices[number]

    def _read_bloom_matrices(self, chunk: str) -> BloomMatrices | None:
        if chunk not in self._contents.chunks:
            return None
        where = f"{self.name}: chunk {chunk}"
        arrays = self._contents.arrays(chunk, self._read)
        if [array.dtype for array in arrays[:2]] != [*TEXTS]:
            raise IndexFault(f"{where}: these are not bloom matrices")
        names = texts_of(arrays[:2], f"{self.name}: the names of filter files")
        require_names(names, FILTER_NAME, where)
        return bloom_matrices_of(names.to_pylist(), arrays[2:], self.segments.block_count, where)

    @cached_property
    def _bloom_matrices(self) -> dict[int, BloomMatrices | None]:
        return {}

    def _directory(self, chunk: ChunkName) -> Directory | None:
        if chunk not in self._directories:
            name = f"where/{written_name(chunk)}"
            self._directories[chunk] = self._read_directory(name) if name in self._contents.chunks else None
        return self._directories[chunk]

    def _read_directory(self, name: str) -> Directory:
        directory, ends = Directory(*self._arrays(name, (INT64, INT64, np.dtype("<u4")))), self.segments.size
        if any(a.shape != ends.shape for a in (directory.at, directory.size, directory.crc)):
            raise IndexFault(f"{self.name}: chunk {name} is not about {len(self.segments)} segments")
        if (
            min(directory.at.min(initial=0), directory.size.min(initial=0)) < 0
            or (directory.at > ends - directory.size).any()
        ):
            raise IndexFault(f"{self.name}: chunk {name} names places outside of the segments")
        return directory

    @cached_property
    def _directories(self) -> dict[ChunkName, Directory | None]:
        return {}

    def number_of(self, field: Field) -> int | None:
        """Return the number of the column with the same keys as a field; None where not indexed."""
        c = self._numbers.get(field.path)
        if c is None:
            return None
        type_ = self.columns[c].type
        return c if kind_of(type_) is not None and same_keys(type_, field.type) else None

    @cached_property
    def _numbers(self) -> dict[tuple[str, ...], int]:
        """The first column of every path."""
        return {column.path: c for c, column in reversed([*enumerate(self.columns)])}

    def as_segments(self) -> Segments:
        """Return everything the snapshot records about its segments, for the next snapshot. Raises IndexFault."""
        chunks = chunk_names(self.columns, self.filters)
        bloom_matrices = {
            f: matrices for f in range(len(self.filters)) if (matrices := self.bloom_matrices(f)) is not None
        }
        directory = {chunk: stored for chunk in chunks if (stored := self._directory(chunk)) is not None}
        table = self.segments
        level = np.arange(len(table))
        zone_maps = [self.tree_zones(Field(c.path, c.type)) for c in self.columns]
        kinds = [ordered_kind(c.type) for c in self.columns]
        known = [unknown(k, 0) if z is None else z.take(level) for z, k in zip(zone_maps, kinds, strict=True)]
        counts = (table.size, table.block_count, table.row_count)
        return Segments(
            self.columns, self.filters, table.name, *counts, self.segment_files, directory, known, bloom_matrices
        )

    def verify(self) -> list[str]:
        """Read every chunk of the file and return the faults found."""
        return self._contents.verify(self._read)

    def _arrays(self, chunk: str, dtypes: Sequence[np.dtype]) -> list[np.ndarray]:
        arrays = self._contents.arrays(chunk, self._read)
        if [array.dtype for array in arrays] != [*dtypes]:
            stored, expected = (", ".join(map(str, types)) for types in ([array.dtype for array in arrays], dtypes))
            raise IndexFault(f"{self.name}: chunk {chunk} has arrays of {stored or 'nothing'} instead of {expected}")
        return arrays


def _countable(table: SegmentTable) -> bool:
    """Whether blocks and files are few enough to be numbered in memory."""
    if table.block_count.max(initial=0) > MOST_SEGMENT_BLOCKS or table.file_count.max(initial=0) > MOST_FILES:
        return False
    return int(table.block_count.sum()) <= MOST_BLOCKS and int(table.file_count.sum()) <= MOST_FILES
