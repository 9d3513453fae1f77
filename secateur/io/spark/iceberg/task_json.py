"""Write Iceberg file scan tasks as JSON texts, which Iceberg's Java class FileScanTaskParser reads.

A task reads the row groups of one data file in one byte range, without the rows that its delete files delete. A text
has the partition spec of the file, and only those columns of the schema that the spec needs: the whole schema in every
task would be most of what is sent and kept. Delete files have the spec of their data file, because the parser takes no
other, and no partition, because which deletes apply is already decided.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["DataFile", "DeleteFile", "ReadTask", "Spec", "byte_ranges", "spec_of", "task_texts"]

Json = Mapping[str, Any]
Range = tuple[int, int]  # start, length


@dataclass(frozen=True)
class DataFile:
    """A live data file, from its manifest entry."""

    path: str
    spec_id: int
    record_count: int
    size: int
    partition: Mapping[int, Any] = field(default_factory=dict)  # partition field id -> single-value JSON, not null
    format: str = "parquet"
    split_offsets: tuple[int, ...] = ()
    sort_order_id: int | None = None
    key_metadata: bytes | None = None
    first_row_id: int | None = None  # format version 3, if row ids are read


@dataclass(frozen=True)
class DeleteFile:
    """A delete file, or deletion vector, that applies to a data file."""

    content: Literal["position", "equality"]
    path: str
    record_count: int
    size: int
    format: str = "parquet"  # puffin: a deletion vector
    equality_ids: tuple[int, ...] = ()
    sort_order_id: int | None = None
    key_metadata: bytes | None = None
    content_offset: int | None = None  # in the puffin file; a deletion vector needs this and the next two
    content_size: int | None = None
    referenced_data_file: str | None = None


@dataclass(frozen=True)
class ReadTask:
    """What to read of one data file: the row groups in `ranges`, without the rows that `deletes` delete."""

    file: DataFile
    deletes: tuple[DeleteFile, ...]
    ranges: tuple[Range, ...]


@dataclass(frozen=True)
class Spec:
    """A partition spec as JSON, with a schema of its source columns."""

    spec: Json
    schema: Json


def spec_of(spec: Json, schemas: Sequence[Json]) -> Spec:
    """Return the spec with the columns that it needs, each from the last of `schemas` that has it.

    Both are written as in the table's metadata file: ``{"spec-id": 0, "fields": [...]}``, and ``{"type": "struct",
    "schema-id": 0, "fields": [...]}``. An old spec may name columns that were dropped since.
    """
    wanted = {source for field in spec["fields"] for source in field.get("source-ids", [field.get("source-id")])}
    columns: dict[int, Any] = {}
    for schema in reversed(schemas):
        for column in schema["fields"]:
            sources = wanted & set(_ids(column))
            if sources:
                columns.setdefault(column["id"], column)
                wanted -= sources
    fields = [columns[id_] for id_ in sorted(columns)]
    return Spec(dict(spec), {"type": "struct", "schema-id": 0, "fields": fields})


def _ids(column: Json) -> Iterator[int]:
    """Yield the ids of a column and of the fields of its structs. (Partitions never use lists or maps.)"""
    yield column["id"]
    type_ = column["type"]
    if isinstance(type_, Mapping) and type_["type"] == "struct":
        for inner in type_["fields"]:
            yield from _ids(inner)


def byte_ranges(starts: Sequence[int], stop: int, row_groups: Iterable[int]) -> tuple[Range, ...]:
    """Return the ranges that cover exactly these row groups of a file; adjacent ones are merged.

    `starts` has the first byte of every row group of the file; `stop` is after the last one, for example the file size.
    A reader takes the row groups whose middle is in its range, so bytes between row groups do no harm.
    """
    ends = [*starts, stop]
    merged: list[list[int]] = []
    for number in sorted(set(row_groups)):
        if merged and merged[-1][1] == ends[number]:
            merged[-1][1] = ends[number + 1]
        else:
            merged.append([ends[number], ends[number + 1]])
    return tuple((start, end - start) for start, end in merged)


def task_texts(tasks: Iterable[ReadTask], specs: Mapping[int, Spec]) -> Iterator[str]:
    """Yield one JSON text without line breaks per range of each task; `specs` by spec id."""
    heads = {id_: _inside({"schema": spec.schema, "spec": spec.spec}) for id_, spec in specs.items()}
    for task in tasks:
        file = _inside({"data-file": _data_file(task.file)})
        deletes = _inside({"delete-files": [_delete_file(delete, task.file.spec_id) for delete in task.deletes]})
        for start, length in task.ranges:
            yield f'{{{heads[task.file.spec_id]},{file},"start":{start},"length":{length},{deletes}}}'


def _inside(value: Json) -> str:
    """Return the JSON of an object without its braces."""
    return json.dumps(value, separators=(",", ":"))[1:-1]


def _data_file(file: DataFile) -> Json:
    return _present(
        {
            "spec-id": file.spec_id,
            "content": "DATA",  # versions before 1.11 accept only capitals, later ones both
            "file-path": file.path,
            "file-format": file.format,
            "partition": {str(id_): value for id_, value in file.partition.items() if value is not None},
            "file-size-in-bytes": file.size,
            "record-count": file.record_count,
            "split-offsets": list(file.split_offsets) or None,
            "sort-order-id": file.sort_order_id,
            "key-metadata": _hex(file.key_metadata),
            "first-row-id": file.first_row_id,
        }
    )


def _delete_file(file: DeleteFile, spec_id: int) -> Json:
    return _present(
        {
            "spec-id": spec_id,
            "content": "POSITION_DELETES" if file.content == "position" else "EQUALITY_DELETES",
            "file-path": file.path,
            "file-format": file.format,
            "file-size-in-bytes": file.size,
            "record-count": file.record_count,
            "equality-ids": list(file.equality_ids) or None,
            "sort-order-id": file.sort_order_id,
            "key-metadata": _hex(file.key_metadata),
            "content-offset": file.content_offset,
            "content-size-in-bytes": file.content_size,
            "referenced-data-file": file.referenced_data_file,
        }
    )


def _present(entry: Json) -> Json:
    return {key: value for key, value in entry.items() if value is not None}


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex().upper()
