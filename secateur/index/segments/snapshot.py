"""Index snapshots: one immutable version of the index, published by one atomic create.

docs/format.md, "Snapshot files". A snapshot names its segments, records where each of their chunks lies, lists the
files that they cover, and holds the tree of zone maps over them. Snapshot files are numbered; the highest number is the
current one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import text_parts
from secateur.errors import IndexFault
from secateur.index.container.index_file import SNAPSHOT, Contents, ReadRange, Writer, is_repeated, read_contents
from secateur.index.file_names import FILTER_NAME, MANIFESTS_NAME, SEGMENT_NAME, build_of, require_names
from secateur.index.filters.bloom_matrix import BloomMatrices, bloom_matrices_of
from secateur.index.identity import listing_id
from secateur.index.model import (
    BuildOptions,
    Choice,
    Filter,
    FilterOption,
    IndexedColumn,
    Store,
    StoredFile,
    type_name,
    type_of_name,
)
from secateur.index.segments.segment_file import zone_arrays, zone_map_of
from secateur.index.segments.segment_table import (
    ChunkName,
    Directory,
    FileCounts,
    FileTable,
    Segments,
    chunk_names,
    summarised,
    written_name,
)
from secateur.index.zones import segment_tree
from secateur.index.zones.segment_tree import Tree, tree_over
from secateur.index.zones.zonemap import ZoneMap, unknown
from secateur.pruning.predicate.bound import Field
from secateur.ragged import offsets_of
from secateur.values import all_within, kind_of, ordered_kind, same_keys

FOLDER = "snapshots"
_NAME = re.compile(r"(\d{10})\.snapshot")
MOST_BLOCKS, MOST_FILES = 1 << 31, 1 << 31  # of all segments; bounds what is allocated for them
MOST_SEGMENT_BLOCKS = 1 << 26  # besides the bound by the sizes of its files
LEAST_BLOCK = 7  # bytes of a row group in a footer: its columns, their bytes, its rows, and where it ends
MOST_REPEATED = 1 << 16  # most repetitions of a single letter
READ_AT_ONCE = 1 << 20  # bytes read from the end of a snapshot on an object store; takes less time than two requests
_INT64 = np.dtype("<i8")
_TEXTS = (_INT64, np.dtype("u1"))  # offsets, bytes


@dataclass(frozen=True)
class MadeOf:
    """The table snapshot that an index was made of, if the table's format has snapshots."""

    id: int
    manifests: str  # the file that holds the table's manifests
    size: int  # of that file


def encode_snapshot(
    number: int,
    created: float,
    segments: Segments,
    options: BuildOptions,
    schema: pa.Schema,
    made_of: MadeOf | None = None,
) -> bytes:
    """Encode a snapshot file."""
    files = segments.files
    order = pc.sort_indices(files.path).to_numpy()
    listed = listing_id(files.path.take(pa.array(order)), *(a[order] for a in (files.size, files.stamp, files.witness)))
    meta = {
        "number": number,
        "created": created,
        "listing": f"{listed:032x}",
        "columns": [{"path": list(c.path), "type": type_name(c.type)} for c in segments.columns],
        "filters": [{**asdict(f), "type": type_name(f.type)} for f in segments.filters],
        "options": asdict(options),
        "schema": schema.serialize().to_pybytes().hex(),
        "made_of": None if made_of is None else asdict(made_of),
    }
    writer = Writer(SNAPSHOT, meta)
    names = pa.array(segments.name, pa.large_string())
    file_count = np.bincount(files.segment, minlength=len(segments)).astype(np.int64)
    writer.add("segments", [*text_parts(names), segments.size, segments.block_count, segments.row_count, file_count])
    writer.add("paths", text_parts(files.path))
    counts = (files.block_count, files.row_count, files.byte_count)
    live = np.empty(len(order), np.int64)
    live[order] = np.arange(len(order))
    writer.add("files", [files.size, files.stamp, files.witness, files.end, *counts, files.segment, live])
    for chunk, stored in segments.directory.items():
        writer.add(f"where/{written_name(chunk)}", [stored.at, stored.size, stored.crc])
    for f, bloom_matrices in segments.bloom_matrices.items():
        writer.add(
            f"bloom-matrices/{f}",
            [*text_parts(pa.array(bloom_matrices.file_name, pa.large_string())), *bloom_matrices.arrays()],
        )
    tree = tree_over(segments.row_count, options.fan_out) if len(segments) else None
    for c, zone_map in enumerate(segments.zone_maps):
        if tree is not None:
            writer.add(f"tree/{c}", zone_arrays(segment_tree.merge_up(zone_map, tree)))
    return writer.finish()


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

    def __init__(self, contents: Contents, read: ReadRange, nbytes: int) -> None:
        self._contents, self._read = contents, read
        self.nbytes = nbytes  # bytes of the file, for caches
        self.name = contents.name
        try:
            meta = contents.meta
            self.number = int(meta["number"])
            self.created = float(meta["created"])
            self.listing_id = int(meta["listing"], 16)
            self.columns = [IndexedColumn(tuple(map(str, c["path"])), type_of_name(c["type"])) for c in meta["columns"]]
            self.filters = [_filter(described) for described in meta["filters"]]
            self.options = _options(meta["options"])
            made_of = meta.get("made_of")  # absent in snapshots of the first release
            self.made_of = None if made_of is None else _tables_snapshot_of(made_of, contents.name)
            self.schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(meta["schema"])))
        except (KeyError, TypeError, ValueError, AttributeError, OSError, OverflowError, pa.ArrowException) as error:
            raise IndexFault(f"{contents.name}: the snapshot is malformed: {error}") from None

    @cached_property
    def segments(self) -> SegmentTable:
        """The segments. Raises IndexFault if the arrays are inconsistent."""
        offsets, data, *counts = self._arrays("segments", _TEXTS + 4 * (_INT64,))
        names = self._texts(offsets, data, "segment names")
        require_names(names, SEGMENT_NAME, self.name)
        table = SegmentTable(names.to_pylist(), *counts)
        if any(array.shape != (len(names),) or array.min(initial=0) < 0 for array in counts) or not _countable(table):
            raise IndexFault(f"{self.name}: the table of segments is malformed")
        return table

    @cached_property
    def files(self) -> FileTable:
        """The files that the segments cover. Raises IndexFault if the arrays are inconsistent."""
        offsets, data = self._arrays("paths", _TEXTS)
        paths = self._texts(offsets, data, "file paths")
        arrays = self._file_arrays
        if len(paths) != len(arrays[0]):
            raise IndexFault(f"{self.name}: there are {len(paths)} paths of {len(arrays[0])} files")
        return FileTable(paths, *arrays[:-1])

    @property
    def file_counts(self) -> FileCounts:
        """The counts of every file. Raises IndexFault if the arrays are inconsistent."""
        return FileCounts(*self._file_arrays[4:7])

    @cached_property
    def builds(self) -> Mapping[str, int]:
        """The builds that wrote the segments, and how many each, most first. Raises IndexFault."""
        return dict(Counter(build_of(name) or "" for name in self.segments.name).most_common())

    @property
    def live(self) -> np.ndarray:
        """The live file of every file, if the live files' id is `listing_id`: its position when sorted by path."""
        return self._file_arrays[-1]

    @property
    def by_path(self) -> np.ndarray:
        """The order of the files by path."""
        order = np.empty(len(self.live), np.int64)
        order[self.live] = np.arange(len(order))
        return order

    @cached_property
    def _file_arrays(self) -> list[np.ndarray]:
        arrays = self._arrays("files", 7 * (_INT64,) + (np.dtype("<i4"), _INT64))
        n = int(self.segments.file_begin[-1])
        segment, live = arrays[-2:]
        if any(array.shape != (n,) for array in arrays) or is_repeated(live) or not _is_permutation(live):
            raise IndexFault(f"{self.name}: the table of files is malformed")
        if not np.array_equal(segment, np.repeat(np.arange(len(self.segments)), self.segments.file_count)):
            raise IndexFault(f"{self.name}: the files do not follow the segments")
        self._require_room(FileCounts(*arrays[4:7]), arrays[0])
        return arrays

    def _require_room(self, counts: FileCounts, size: np.ndarray) -> None:
        """Raises IndexFault where files claim more blocks than their footers can hold, or segments others than these.

        A constant array stands for any number of blocks, and what is computed of it is as long.
        """
        blocks = counts.block_count
        if (blocks < 0).any() or (blocks > size // LEAST_BLOCK).any():
            raise IndexFault(f"{self.name}: a file of the table has more blocks than its bytes can describe")
        if not np.array_equal(np.diff(offsets_of(blocks)[self.segments.file_begin]), self.segments.block_count):
            raise IndexFault(f"{self.name}: the blocks of the files are not those of their segments")

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
        if [array.dtype for array in arrays[:2]] != [*_TEXTS]:
            raise IndexFault(f"{where}: these are not bloom matrices")
        names = self._texts(arrays[0], arrays[1], "names of filter files")
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
        directory, ends = Directory(*self._arrays(name, (_INT64, _INT64, np.dtype("<u4")))), self.segments.size
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
        return Segments(self.columns, self.filters, table.name, *counts, self.files, directory, known, bloom_matrices)

    def verify(self) -> list[str]:
        """Read every chunk of the file and return the faults found."""
        return self._contents.verify(self._read)

    def _arrays(self, chunk: str, dtypes: Sequence[np.dtype]) -> list[np.ndarray]:
        arrays = self._contents.arrays(chunk, self._read)
        if [array.dtype for array in arrays] != [*dtypes]:
            stored, expected = (", ".join(map(str, types)) for types in ([array.dtype for array in arrays], dtypes))
            raise IndexFault(f"{self.name}: chunk {chunk} has arrays of {stored or 'nothing'} instead of {expected}")
        return arrays

    def _texts(self, offsets: np.ndarray, data: np.ndarray, what: str) -> pa.Array:
        n = len(offsets) - 1  # at most one text is empty, and a text of one repeated letter is short
        if not 0 <= n <= max(1, len(data)) or (is_repeated(data) and len(data) > MOST_REPEATED):
            raise IndexFault(f"{self.name}: the {what} are malformed")
        if offsets[0] != 0 or offsets[-1] != len(data) or (np.diff(offsets) < 0).any():
            raise IndexFault(f"{self.name}: the {what} are malformed")
        buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(data.tobytes())]
        texts = pa.Array.from_buffers(pa.large_string(), n, buffers)
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid as error:
            raise IndexFault(f"{self.name}: the {what} are malformed: {error}") from None
        return texts


def _countable(table: SegmentTable) -> bool:
    """Whether blocks and files are few enough to be numbered in memory."""
    if table.block_count.max(initial=0) > MOST_SEGMENT_BLOCKS or table.file_count.max(initial=0) > MOST_FILES:
        return False
    return int(table.block_count.sum()) <= MOST_BLOCKS and int(table.file_count.sum()) <= MOST_FILES


def _is_permutation(live: np.ndarray) -> bool:
    """Whether the numbers are a permutation of range(n)."""
    n = len(live)
    return all_within(live, 0, n - 1) and bool((np.bincount(live, minlength=n) == 1).all())


def _tables_snapshot_of(described: dict[str, Any], where: str) -> MadeOf:
    """Decode what an index was made of. Raises IndexFault for an invalid file name or a negative size."""
    made_of = MadeOf(int(described["id"]), str(described["manifests"]), int(described["size"]))
    require_names(pa.array([made_of.manifests]), MANIFESTS_NAME, where)
    if made_of.size < 0:
        raise IndexFault(f"{where}: {made_of.manifests} cannot have {made_of.size} bytes")
    return made_of


def _filter(meta: dict[str, Any]) -> Filter:
    path = tuple(map(str, meta["path"]))
    flags = bool(meta["folded"]), bool(meta["rows"])
    return Filter(str(meta["kind"]), path, type_of_name(meta["type"]), int(meta["gram"]), *flags)


def _options(meta: dict[str, Any]) -> BuildOptions:
    blocks, fpr = meta["segment_blocks"], meta["fpr"]
    return BuildOptions(
        sort_key=tuple(map(str, meta["sort_key"])),
        filters=tuple(_filter_option(described) for described in meta["filters"]),
        gaps=tuple(map(str, meta["gaps"])),
        fpr=None if fpr is None else float(fpr),
        pages=bool(meta["pages"]),
        segment_blocks=None if blocks is None else int(blocks),
        fan_out=int(meta["fan_out"]),
        choices=tuple(_choice(described) for described in meta["choices"]),
        page_locations=bool(meta.get("page_locations", False)),  # absent in snapshots of the first release
        expressions=tuple(map(str, meta.get("expressions", ()))),  # absent in snapshots before there were any
        sums=tuple(map(str, meta.get("sums", ()))),  # likewise
    )


def _filter_option(meta: dict[str, Any]) -> FilterOption:
    kind, column = str(meta["kind"]), str(meta["column"])
    return FilterOption(kind, column, int(meta["gram"]), *(bool(meta[name]) for name in ("folded", "native", "rows")))


def _choice(meta: dict[str, Any]) -> Choice:
    sizes = {str(name): int(size) for name, size in meta["bytes"].items()}
    return Choice(str(meta["column"]), str(meta["structure"]), str(meta["why"]), sizes)


def snapshot_name(number: int) -> str:
    """Return the name of the snapshot file with this number."""
    return f"{FOLDER}/{number:010d}.snapshot"


def snapshot_files(store: Store) -> dict[int, StoredFile]:
    """Return the snapshot files of a store by number, ascending."""
    files = {}
    for file in store.files(FOLDER):
        match = _NAME.fullmatch(file.name.rsplit("/", 1)[-1])
        if match:
            files[int(match.group(1))] = file
    return dict(sorted(files.items()))


def last_snapshot_file(store: Store) -> tuple[int, StoredFile] | None:
    """Return the snapshot file with the highest number, and the number; None if a store has none."""
    file = store.last(FOLDER, _NAME)  # all numbers have ten digits, so names order as numbers do
    return None if file is None else (int(file.name[-len("0000000000.snapshot") : -len(".snapshot")]), file)


def snapshot_numbers(store: Store) -> list[int]:
    """Return the numbers of all snapshots in a store, ascending."""
    return list(snapshot_files(store))


def open_snapshot(store: Store, number: int, size: int | None = None) -> Snapshot:
    """Open the snapshot with this number; a given `size` in bytes saves a look-up. Raises IndexFault."""
    name = snapshot_name(number)
    size = store.size(name) if size is None else size

    def read_exactly(offset: int, count: int) -> bytes:
        return store.read(name, offset, count)

    read = read_exactly if store.is_local or size <= 0 else _with_end(read_exactly, size)
    snapshot = Snapshot(read_contents(name, SNAPSHOT, size, read), read, size)
    if snapshot.number != number:
        raise IndexFault(f"{name} says that it is number {snapshot.number}")
    return snapshot


def snapshot_in_memory(segments: Segments, options: BuildOptions, schema: pa.Schema) -> Snapshot:
    """Return a snapshot of segments that is in no store."""
    data = encode_snapshot(0, 0.0, segments, options, schema)

    def read(offset: int, count: int) -> bytes:
        return data[offset : offset + count]

    return Snapshot(read_contents("memory", SNAPSHOT, len(data), read), read, len(data))


@cache
def no_segments() -> Snapshot:
    """Return a snapshot without segments: a table without an index is read with it."""
    return snapshot_in_memory(summarised([], [], [], {}), BuildOptions(), pa.schema([]))


def _with_end(read: ReadRange, size: int) -> ReadRange:
    """Read the end of a file of `size` bytes at once and serve it from memory; a short file is read whole."""
    start = max(0, size - READ_AT_ONCE)
    end = read(start, size - start)

    def read_rest(offset: int, count: int) -> bytes:
        return end[offset - start : offset - start + count] if offset >= start else read(offset, count)

    return read_rest
