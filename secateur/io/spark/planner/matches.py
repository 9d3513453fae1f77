"""Spark's file lists matched with the index, kept from query to query.

What the index says of a list is computed once. Whether its files are still those of the index is a question of now:
Spark keeps its listings, and reads what the files hold when the query runs. So on a local disk, where this is cheap,
every plan reads the files' change times, which no tool can set back.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from secateur.index.segments.snapshot import Snapshot
from secateur.io.spark.planner.file_list import FileList, KnownFiles
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.io.tables.partitions import overlapping
from secateur.pruning.predicate.variant_paths import is_variant

EXTRACTED = "__VARIANT_METADATA_KEY"  # of fields, as in VariantValue.java
THREADS = 2  # a lookup on a local disk waits for nothing
CHUNK = 1024  # files that one thread looks up


@dataclass
class MatchedList:
    """A list of files matched with a snapshot of the index. Its files may have changed since: ask :meth:`current`."""

    table: ParquetDirectory
    snapshot: Snapshot
    known: KnownFiles
    schema: pa.Schema  # the columns that mean the same in the relation and in the index
    _paths: Sequence[str]  # of the files with an entry, on a local disk; else empty
    _last: tuple[float, KnownFiles] | None = None  # when change times were read last, and the result

    def current(self) -> KnownFiles:
        """Return the files with those that have changed among the others.

        Change times are as old as the table's `freshness` allows, by default from now.
        """
        if not self._paths:
            return self.known
        now = time.monotonic()
        if self._last is not None and now - self._last[0] < self.table.freshness:
            return self._last[1]
        unchanged = _change_times(self._paths) == self.known.listing.witness
        files = self.known if unchanged.all() else self.known.among(unchanged)
        self._last = now, files
        return files


def match(files: FileList, table: ParquetDirectory, snapshot: Snapshot) -> MatchedList:
    """Match a list of files with the index."""
    known = files.known_to(snapshot)
    columns = _without_directories(common_schema(files.columns, snapshot.schema), files)
    schema = overlapping(columns, known.listing.partitions.fields)
    is_local = isinstance(table.filesystem, pafs.LocalFileSystem)
    paths = [os.path.join(table.root, path) for path in known.listing.paths.to_pylist()] if is_local else []
    return MatchedList(table, snapshot, known, schema, paths)


def _without_directories(columns: pa.Schema, files: FileList) -> pa.Schema:
    """Leave out columns that directories name, where Spark reads no partition values from these names.

    The option ``recursiveFileLookup`` makes it read such a column from the files. The index was built for the other
    reading of the table, and is not asked about it.
    """
    if files.partitions.fields or not pc.any(pc.match_substring(files.paths, "=")).as_py():
        return columns
    named = pc.unique(pc.list_flatten(pc.split_pattern(files.paths, "/")))
    parts = {unquote(name.split("=", 1)[0]).lower() for name in named.to_pylist() if "=" in name}
    return pa.schema([field for field in columns if field.name.lower() not in parts])


def _change_times(paths: Sequence[str]) -> np.ndarray:
    """Return nanoseconds since the epoch; -1 for a file that cannot be looked up."""
    chunks = [paths[i : i + CHUNK] for i in range(0, len(paths), CHUNK)]
    if len(chunks) < THREADS:
        return np.array([file for chunk in chunks for file in _looked_up(chunk)], np.int64)
    with ThreadPoolExecutor(THREADS) as threads:
        return np.concatenate([np.array(times, np.int64) for times in threads.map(_looked_up, chunks)])


def _looked_up(paths: Sequence[str]) -> list[int]:
    return [_changed(path) for path in paths]


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_ctime_ns
    except OSError:
        return -1


def common_schema(relation: StructType, indexed: pa.Schema) -> pa.Schema:
    """Return the columns that the relation and the index share: names in the same case, and equal types.

    A struct of the relation may have fewer fields. Columns whose names differ only in case are left out.
    """
    counts: dict[str, int] = {}
    for name in indexed.names:
        counts[name.lower()] = counts.get(name.lower(), 0) + 1
    types: Mapping[str, DataType] = {field.name: field.dataType for field in relation}
    return pa.schema(
        [
            field
            for field in indexed
            if field.name in types and counts[field.name.lower()] == 1 and _is_part(types[field.name], field.type)
        ]
    )


def _is_part(type_: DataType, indexed: pa.DataType) -> bool:
    """Return whether a Spark type equals the indexed type, or is a struct with some of its fields.

    A VARIANT is one, or a struct of the values that Spark has its reader extract.
    """
    if pa.types.is_struct(indexed) and is_variant(indexed):
        return type_.simpleString() == "variant" or _is_extracted(type_)
    if isinstance(type_, StructType):
        known = {field.name: field.type for field in indexed} if pa.types.is_struct(indexed) else {}
        return all(field.name in known and _is_part(field.dataType, known[field.name]) for field in type_)
    try:
        read_type = from_arrow_type(indexed, prefer_timestamp_ntz=True)
    except Exception:  # an Arrow type that Spark does not have
        return False
    return _nullable(read_type) == _nullable(type_)


def _is_extracted(type_: DataType) -> bool:
    return isinstance(type_, StructType) and bool(type_.fields) and all(EXTRACTED in field.metadata for field in type_)


def _nullable(type_: DataType) -> DataType:
    """Return a type with every part nullable."""
    match type_:
        case ArrayType():
            return ArrayType(_nullable(type_.elementType))
        case MapType():
            return MapType(_nullable(type_.keyType), _nullable(type_.valueType))
        case StructType():
            struct = StructType()
            for field in type_:
                struct = struct.add(field.name, _nullable(field.dataType))
            return struct
        case _:
            return type_
