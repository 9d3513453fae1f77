"""Index snapshots: one immutable version of the index, published by one atomic create.

docs/format.md, "Snapshot files". A snapshot names its segments, lists the files that they cover, and holds the tree
of zone maps over the segments. Snapshot files are numbered; the highest number is the current one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from secateur.errors import IndexFault
from secateur.index import btree
from secateur.index.codec import SNAPSHOT, Contents, ReadRange, Writer, read_contents
from secateur.index.model import BuildOptions, IndexedColumn, Store, StoredFile, type_name, type_of_name
from secateur.index.segment import add_zone_map, read_zone_map
from secateur.index.zonemap import ZoneMap, concat, unknown
from secateur.pruning.predicate.bound import Field
from secateur.pruning.zones import Zones
from secateur.values import kind_of, same_keys

FOLDER = "snapshots"
_NAME = re.compile(r"(\d{10})\.snapshot")


@dataclass(frozen=True)
class SegmentSummary:
    """What a build task returns of a segment that it wrote: all that the driver ever sees of it."""

    name: str
    size: int
    row_count: int
    block_count: int
    files: Sequence[tuple[str, int, int]]  # path, size, modified (ns)
    file_counts: np.ndarray  # int64 of shape (n_files, 3): blocks, rows, bytes
    zone_maps: Sequence[ZoneMap]  # one unit each, by column


@dataclass(frozen=True)
class FileTable:
    """The files of all segments, segment by segment: arrays of shape (n_files,)."""

    path: pa.Array
    size: np.ndarray
    modified: np.ndarray
    block_count: np.ndarray
    row_count: np.ndarray
    byte_count: np.ndarray
    segment: np.ndarray


def encode_snapshot(
    number: int,
    created: float,
    columns: Sequence[IndexedColumn],
    segments: Sequence[SegmentSummary],
    options: BuildOptions,
    schema: pa.Schema,
) -> bytes:
    """The bytes of a snapshot file."""
    meta = {
        "number": number,
        "created": created,
        "columns": [{"path": list(c.path), "type": type_name(c.type)} for c in columns],
        "segments": [{"name": s.name, "size": s.size, "blocks": s.block_count} for s in segments],
        "options": asdict(options),
        "schema": schema.serialize().to_pybytes().hex(),
    }
    writer = Writer(SNAPSHOT, meta)
    files = [file for s in segments for file in s.files]
    paths = pa.array([path for path, _, _ in files], pa.large_string())
    counts = np.concatenate([s.file_counts for s in segments]) if segments else np.zeros((0, 3), np.int64)
    writer.add("file/path_offsets", np.frombuffer(paths.buffers()[1], np.int64, len(paths) + 1))
    writer.add("file/path_bytes", np.frombuffer(paths.buffers()[2] or b"", np.uint8))
    writer.add("file/size", np.array([size for _, size, _ in files], np.int64))
    writer.add("file/modified", np.array([modified for _, _, modified in files], np.int64))
    for i, name in enumerate(("block_count", "row_count", "byte_count")):
        writer.add(f"file/{name}", counts[:, i])
    writer.add("file/segment", np.repeat(np.arange(len(segments), dtype=np.int32), [len(s.files) for s in segments]))
    row_count = np.array([s.row_count for s in segments], np.int64)
    writer.add("segment/row_count", row_count)
    if segments:
        for c in range(len(columns)):
            levels = btree.merge_up(concat([s.zone_maps[c] for s in segments]), row_count)
            for level, zone_map in enumerate(levels):
                add_zone_map(writer, f"tree/{level}/{c}", zone_map)
    return writer.finish()


class Snapshot:
    """A snapshot file opened for reading; arrays are read when they are first asked for."""

    def __init__(self, contents: Contents, read: ReadRange, nbytes: int) -> None:
        self._contents, self._read = contents, read
        self.nbytes = nbytes  # of the file, for caches
        try:
            meta = contents.meta
            self.number = int(meta["number"])
            self.created = float(meta["created"])
            self.columns = [IndexedColumn(tuple(c["path"]), type_of_name(c["type"])) for c in meta["columns"]]
            self.segments: list[dict[str, Any]] = [
                {"name": str(s["name"]), "size": int(s["size"]), "blocks": int(s["blocks"])} for s in meta["segments"]
            ]
            self.options = _options(meta["options"])
            self.schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(meta["schema"])))
        except (KeyError, TypeError, ValueError, AttributeError, OSError) as error:
            raise IndexFault(f"{contents.name}: the snapshot is malformed: {error}") from None

    @cached_property
    def row_count(self) -> np.ndarray:
        """Rows of every segment."""
        return self._vector("segment/row_count", len(self.segments))

    @cached_property
    def files(self) -> FileTable:
        """The files that the segments cover. Raises IndexFault where the arrays do not fit together."""
        offsets = self._contents.array("file/path_offsets", self._read)
        data = self._contents.array("file/path_bytes", self._read)
        n = len(offsets) - 1
        if n < 0 or offsets[0] != 0 or offsets[-1] != len(data) or (np.diff(offsets) < 0).any():
            raise IndexFault(f"{self._contents.name}: the file paths are malformed")
        buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(data.tobytes())]
        paths = pa.Array.from_buffers(pa.large_string(), n, buffers)
        names = ("size", "modified", "block_count", "row_count", "byte_count", "segment")
        arrays = [self._vector(f"file/{name}", n) for name in names]
        segment = arrays[-1]
        if n and not (segment[0] >= 0 and (np.diff(segment) >= 0).all() and segment[-1] < len(self.segments)):
            raise IndexFault(f"{self._contents.name}: the files do not follow the segments")
        try:
            paths.validate(full=True)
        except pa.ArrowInvalid as error:
            raise IndexFault(f"{self._contents.name}: the file paths are malformed: {error}") from None
        return FileTable(paths, *arrays)

    def zones_at(self, level: int, field: Field) -> Zones | None:
        """The zone maps of a column over the nodes of one level of the tree; None where it is not indexed."""
        counts = btree.row_counts(self.row_count)[level]
        zone_map = self.zone_map_at(level, field)
        return None if zone_map is None else zone_map.zones(counts)

    def zone_map_at(self, level: int, field: Field) -> ZoneMap | None:
        """The zone map of a column over the nodes of one level of the tree; None where it is not indexed."""
        n = len(btree.row_counts(self.row_count)[level])
        for c, column in enumerate(self.columns):
            kind = kind_of(column.type)
            if column.path == field.path and kind and same_keys(column.type, field.type):
                return (
                    read_zone_map(self._contents, f"tree/{level}/{c}", kind, n, self._read) if n else unknown(kind, 0)
                )
        return None

    def verify(self) -> list[str]:
        """Every fault found by reading every array of the file."""
        return self._contents.verify(self._read)

    def _vector(self, section: str, n: int) -> np.ndarray:
        array = self._contents.array(section, self._read)
        if array.shape != (n,):
            raise IndexFault(f"{self._contents.name}: section {section} has shape {array.shape} instead of ({n},)")
        return array


def _options(meta: dict[str, Any]) -> BuildOptions:
    blocks, fpr = meta["segment_blocks"], meta["fpr"]
    return BuildOptions(
        sort_key=tuple(map(str, meta["sort_key"])),
        bloom=tuple(map(str, meta["bloom"])),
        fpr=None if fpr is None else float(fpr),
        pages=bool(meta["pages"]),
        segment_blocks=None if blocks is None else int(blocks),
    )


def snapshot_name(number: int) -> str:
    """The name of the snapshot file with this number."""
    return f"{FOLDER}/{number:010d}.snapshot"


def snapshot_files(store: Store) -> dict[int, StoredFile]:
    """The snapshot files of a store by number, ascending."""
    found = {}
    for file in store.files(FOLDER):
        match = _NAME.fullmatch(file.name.rsplit("/", 1)[-1])
        if match:
            found[int(match.group(1))] = file
    return dict(sorted(found.items()))


def snapshot_numbers(store: Store) -> list[int]:
    """The numbers of all snapshots in a store, ascending."""
    return list(snapshot_files(store))


def open_snapshot(store: Store, number: int) -> Snapshot:
    """The snapshot with this number. Raises IndexFault."""
    name = snapshot_name(number)

    def read(offset: int, size: int) -> bytes:
        return store.read(name, offset, size)

    size = store.size(name)
    snapshot = Snapshot(read_contents(name, SNAPSHOT, size, read), read, size)
    if snapshot.number != number:
        raise IndexFault(f"{name} says that it is number {snapshot.number}")
    return snapshot
