"""The files that Spark listed for a scan, matched with the files that the index covers.

Java sends every list once (FileList.java), and refers to it by its digest afterwards. Files match by
path, length and modification time in milliseconds, because Spark knows no more.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, StructType

from secateur.arrays import from_numpy
from secateur.index.segments.snapshot import Snapshot
from secateur.io.tables.listing import Listing
from secateur.io.tables.partitions import Partitions
from secateur.pruning.functions.types import INSTANT, LOCAL

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_NANOSECONDS = 1_000_000  # of a millisecond


@dataclass(frozen=True)
class FileList:
    """The files that Spark reads: arrays of shape (n_files,), in Spark's order."""

    location: str
    columns: StructType  # of the files
    paths: pa.Array  # relative to the location; "" for a file elsewhere
    size: np.ndarray  # bytes
    modified: np.ndarray  # milliseconds since the epoch
    partitions: Partitions  # only columns of types that `_values` decodes

    def known_to(self, snapshot: Snapshot) -> KnownFiles:
        """Match the files with the entries of the index by path, length and modification time."""
        files = snapshot.files
        at = pc.fill_null(pc.index_in(files.path, value_set=self.paths.cast(files.path.type)), -1)
        at = at.to_numpy().astype(np.int64)
        same = at >= 0
        same[same] = files.size[same] == self.size[at[same]]
        same[same] = files.stamp[same] // _NANOSECONDS == self.modified[at[same]]
        entries = np.flatnonzero(same)
        count = np.bincount(at[entries], minlength=len(self.size))
        entries = entries[count[at[entries]] == 1]  # two entries of one millisecond are ambiguous
        entries = entries[pc.sort_indices(self.paths.take(from_numpy(at[entries]))).to_numpy()]
        order = at[entries]
        chosen, identity = from_numpy(order), (self.size[order], files.stamp[entries], files.witness[entries])
        listing = Listing(self.paths.take(chosen), *identity, self.partitions.take(chosen), has_metadata_column=True)
        return KnownFiles(listing, order, np.setdiff1d(np.arange(len(self.size)), order, assume_unique=True))


@dataclass(frozen=True)
class KnownFiles:
    """Spark's files, divided into those with an index entry and the others."""

    listing: Listing  # the files with an entry
    ordinals: np.ndarray  # of these files in Spark's list
    others: np.ndarray  # ordinals of the files without an entry, ascending

    def among(self, kept: np.ndarray) -> KnownFiles:
        """Return the same files; of those with an entry, only those where `kept` (bool, one per such file)."""
        listing = self.listing.take(np.flatnonzero(kept))
        return KnownFiles(listing, self.ordinals[kept], np.union1d(self.others, self.ordinals[~kept]))


def file_list(data: bytes) -> FileList:
    """Decode the list that Java's ``FileList`` wrote."""
    reader = Reader(data)
    location = reader.text()
    columns, partition_columns = (StructType.fromJson(json.loads(reader.text())) for _ in range(2))
    n = reader.number()
    paths = reader.texts(n)
    size, modified = (reader.array(">i8", n).astype(np.int64) for _ in range(2))
    directory = reader.array(">i4", n).astype(np.int64)
    texts = [[reader.optional_text() for _ in partition_columns] for _ in range(reader.number())]
    fields, values = [], []
    for number, field in enumerate(partition_columns):
        partition_values = _values(field.dataType, [row[number] for row in texts])
        if partition_values is not None:
            fields.append(pa.field(field.name, partition_values.type))
            values.append(partition_values.take(from_numpy(directory)))
    return FileList(location, columns, paths, size, modified, Partitions(tuple(fields), tuple(values)))


def _values(type_: DataType, texts: Sequence[str | None]) -> pa.Array | None:
    """Decode partition values: dates are days, timestamps microseconds. None if the type is not supported here."""
    values, name = pa.array(texts, pa.string()), type_.simpleString()
    if name in _INTEGERS:
        return values.cast(to_arrow_type(type_))
    if name == "date":
        return values.cast(pa.int32()).cast(pa.date32())
    if name in ("timestamp", "timestamp_ntz"):
        return values.cast(pa.int64()).cast(INSTANT if name == "timestamp" else LOCAL)
    return values if name == "string" else None


class Reader:
    """Reads big-endian numbers, texts and arrays."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def bytes(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self) -> int:
        (value,) = struct.unpack(">i", self.bytes(4))
        return int(value)

    def text(self) -> str:
        return self.bytes(self.number()).decode()

    def optional_text(self) -> str | None:
        return self.text() if self.bytes(1) == b"\1" else None

    def texts(self, n: int) -> pa.Array:
        """Read n texts: first the end offset of each, then their bytes."""
        offsets = np.concatenate([[0], self.array(">i4", n)]).astype(np.int32)
        blob = self.bytes(int(offsets[-1]))
        texts = pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(blob))
        texts.validate(full=True)
        return texts

    def array(self, dtype: str, n: int) -> np.ndarray[Any, Any]:
        return np.frombuffer(self.bytes(n * np.dtype(dtype).itemsize), dtype)
