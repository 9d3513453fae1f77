"""An Iceberg table, of version 2 or 3."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import (
    IcebergType,
    NestedField,
)

from conformance.engine import ICEBERG, ROW_ID, Place
from conformance.exam import Exam
from conformance.files import write_file
from conformance.footers import edit
from conformance.iceberg_log import Entry, IcebergLog
from conformance.iceberg_schemas import fresh, id_metadata, merged, stored_type, with_ids
from conformance.puffin import deletion_vector, puffin
from conformance.registry import Version
from conformance.table import Questions, Table, asked, decoded

FILE_PATH, POSITION = 2147483546, 2147483545  # the ids of the columns of position deletes
METRICS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
DATA, POSITIONS, KEYS = DataFileContent.DATA, DataFileContent.POSITION_DELETES, DataFileContent.EQUALITY_DELETES


class IcebergTable(Table):
    """Files that the table's metadata names. Their columns have field ids, which a rename does not change."""

    format = ICEBERG

    def __init__(self, directory: Path, exam: Exam, partitioned_by: tuple[str, ...] = (), version: Version = 2) -> None:
        super().__init__(directory, exam, partitioned_by)
        self.version = version
        self._log: IcebergLog | None = None
        self._held: dict[tuple[str, int], pa.Table] = {}  # rows of a file of a commit, columns named by their ids
        self._deleted: dict[int, set[tuple[str, int, int]]] = {}  # by snapshot: file, its commit, position
        self._numbers = itertools.count()

    @property
    def log(self) -> IcebergLog:
        assert self._log is not None, "nothing was written yet"
        return self._log

    @property
    def schema(self) -> Schema:
        return self.log.metadata.schema()

    # ---- files

    def write(self, files: Mapping[str, pa.Table], **options: Any) -> None:
        self.rewrite([], files, **options)

    def rewrite(self, old: Sequence[str], new: Mapping[str, pa.Table], **options: Any) -> None:
        """Options besides those of pyarrow: `metrics`, those of :data:`METRICS` that manifests get."""
        metrics = options.pop("metrics", METRICS)
        for rows in new.values():
            self._widen(rows.schema)
        added = [self._data_file(name, rows, metrics, dict(options)) for name, rows in new.items()]
        removed = [self.uri(name) for name in old]
        self.commit(added, removed)
        for name, rows in new.items():
            plain = decoded(rows)
            ids = [str(self.schema.find_field(column).field_id) for column in plain.column_names]
            self._held[self.uri(name), self.log.metadata.last_sequence_number] = plain.rename_columns(ids)

    def commit(self, added: Sequence[DataFile], removed: Sequence[str] = (), deleted: Any = ()) -> None:
        """Commits a snapshot; `deleted` are the rows that its delete files remove."""
        before = self._deleted.get(self.log.metadata.current_snapshot_id or 0, set())
        self.log.commit(added, removed)
        self._deleted[self.log.snapshot_id] = before | set(deleted)
        self.changed()

    def uri(self, name: str) -> str:
        return f"file://{self.directory}/data/{name}"

    def _widen(self, arrow: pa.Schema) -> None:
        """Adds the columns that the table lacks, and widens types to those of new files."""
        wanted = fresh(pa.schema([field.with_type(stored_type(field.type)) for field in arrow]))
        if self._log is None:
            fields = [
                PartitionField(wanted.find_field(name).field_id, 1000 + i, IdentityTransform(), name)
                for i, name in enumerate(self.partitioned_by)
            ]
            spec = PartitionSpec(*fields) if fields else UNPARTITIONED_PARTITION_SPEC
            self._log = IcebergLog.begin(self.directory, wanted, spec, self.version)
            return
        numbers = itertools.count(self.log.metadata.last_column_id + 1)
        wider = merged(self.schema.as_struct(), wanted.as_struct(), numbers)
        if wider != self.schema.as_struct():
            self.log.evolve(Schema(*wider.fields))

    def _data_file(self, name: str, rows: pa.Table, metrics: Sequence[str], options: dict[str, Any]) -> DataFile:
        """Writes a file, with field ids, and measures it as PyIceberg does."""
        path = Path(self.uri(name).removeprefix("file://"))
        fields = [with_ids(field, self.schema.find_field(field.name)) for field in rows.schema]
        footer = options.pop("footer", None)
        write_file(path, rows.cast(pa.schema(fields)), **options)
        measured = self._measured(path) if metrics and len(rows) else {}
        if footer is not None:
            edit(path, footer)
        values = [rows[column][0].as_py() for column in self.partitioned_by]
        return self._file(
            DATA, path, len(rows), Record(*values), **{key: value for key, value in measured.items() if key in metrics}
        )

    def _measured(self, path: Path) -> dict[str, Any]:
        plan = compute_statistics_plan(self.schema, {})
        footer = pq.read_metadata(path)
        return data_file_statistics_from_parquet_metadata(
            footer, plan, parquet_path_to_id_mapping(self.schema)
        ).to_serialized_dict()

    def _file(self, content: DataFileContent, path: Path, rows: int, partition: Record, **more: Any) -> DataFile:
        arguments = {"file_format": FileFormat.PARQUET, "file_size_in_bytes": path.stat().st_size, **more}
        file = DataFile.from_args(
            self.version,
            content=content,
            file_path=f"file://{path}",
            partition=partition,
            record_count=rows,
            **arguments,
        )
        file.spec_id = self.log.metadata.default_spec_id
        return file

    # ---- rows

    @property
    def files(self) -> Mapping[str, pa.Table]:
        prefix = self.uri("")
        return {entry.file.file_path.removeprefix(prefix): self._live(entry) for entry in self.log.entries(DATA)}

    def _live(self, entry: Entry) -> pa.Table:
        """The live rows of a file, with those of the current columns that it has."""
        key = entry.file.file_path, entry.sequence
        held = self._held[key]
        gone = {position for path, sequence, position in self._deleted[self.log.snapshot_id] if (path, sequence) == key}
        kept = [i for i in range(len(held)) if i not in gone]
        present = [field for field in self.schema.fields if str(field.field_id) in held.column_names]
        rows = held.take(pa.array(kept, pa.int64()))
        return rows.select([str(field.field_id) for field in present]).rename_columns([field.name for field in present])

    def _rows(self) -> pa.Table:
        parts = [self._completed(self._live(entry)) for entry in self.log.entries(DATA)]
        whole = pa.concat_tables([self.schema.as_arrow().empty_table(), *parts], promote_options="permissive")
        return whole.select([field.name for field in self.schema.fields]).combine_chunks()

    def _completed(self, rows: pa.Table) -> pa.Table:
        """Rows of a file with the initial defaults of the columns that it lacks."""
        for field in self.schema.fields:
            if field.initial_default is not None and field.name not in rows.column_names:
                type_ = self.schema.as_arrow().field(field.name).type
                rows = rows.append_column(field.name, pa.array([field.initial_default] * len(rows), type_))
        return rows

    def place(self) -> Place:
        schema = self.rows.schema
        return Place(
            ICEBERG,
            self.directory,
            schema,
            self.partitioned_by,
            metadata=self.log.file,
            time_zone=self.time_zone,
            ansi=self.ansi,
            index_is_sound=self._index_is_sound,
        )

    # ---- deletes

    def delete(self, *row_ids: int) -> None:
        """Deletes by files of positions, one for every partition."""
        if self.version > 2:
            self.delete_by_vectors(*row_ids)
            return
        places = self._places(row_ids)
        by_partition: dict[Record, list[tuple[str, int]]] = {}
        for entry, positions in places:
            by_partition.setdefault(entry.file.partition, []).extend(
                (entry.file.file_path, position) for position in positions
            )
        files = [self._position_deletes(sorted(places), part) for part, places in by_partition.items()]
        self.commit(files, deleted=_gone(places))

    def delete_by_key(self, column: str, *values: Any) -> None:
        """Deletes by a file of values, which applies to all older data files."""
        field = self.schema.find_field(column)
        schema = pa.schema([with_ids(pa.field(column, self.schema.as_arrow().field(column).type), field)])
        path = self._new("keys.parquet")
        rows = pa.table({column: list(values)}, schema=schema)
        pq.write_table(rows, path)
        name = str(field.field_id)
        gone = set()
        for entry in self.log.entries(DATA):
            held = self._held[entry.file.file_path, entry.sequence][name].to_pylist()
            gone |= {(entry.file.file_path, entry.sequence, i) for i, value in enumerate(held) if value in values}
        self.commit([self._file(KEYS, path, len(rows), Record(), equality_ids=[field.field_id])], deleted=gone)

    def delete_by_vectors(self, *row_ids: int) -> None:
        """Deletes by vectors, each of which covers all rows of its file that are deleted by now."""
        places = self._places(row_ids)
        earlier = self._deleted[self.log.snapshot_id]
        files, replaced = [], []
        for entry, positions in places:
            path, sequence = entry.file.file_path, entry.sequence
            whole = sorted({*positions, *(deleted[2] for deleted in earlier if deleted[:2] == (path, sequence))})
            replaced += [vector.file.file_path for vector in self.log.entries(POSITIONS) if vector.file[17] == path]
            files.append(self._vector(entry, whole))
        self.commit(files, replaced, _gone(places))

    def _places(self, row_ids: Sequence[int]) -> list[tuple[Entry, list[int]]]:
        """The files that hold some rows, with their positions there."""
        places = []
        for entry in self.log.entries(DATA):
            name = str(self.schema.find_field(ROW_ID).field_id)
            held = self._held[entry.file.file_path, entry.sequence][name].to_pylist()
            positions = [i for i, row_id in enumerate(held) if row_id in row_ids]
            if positions:
                places.append((entry, positions))
        return places

    def _position_deletes(self, places: Sequence[tuple[str, int]], partition: Record) -> DataFile:
        fields = [("file_path", pa.string(), FILE_PATH), ("pos", pa.int64(), POSITION)]
        schema = pa.schema([pa.field(name, type_, metadata=id_metadata(number)) for name, type_, number in fields])
        columns = [pa.array([path for path, _ in places]), pa.array([position for _, position in places], pa.int64())]
        path = self._new("positions.parquet")
        pq.write_table(pa.Table.from_arrays(columns, schema=schema), path)
        bounds = {
            "lower_bounds": {FILE_PATH: places[0][0].encode()},
            "upper_bounds": {FILE_PATH: places[-1][0].encode()},
        }
        return self._file(POSITIONS, path, len(places), partition, **bounds)

    def _vector(self, entry: Entry, positions: Sequence[int]) -> DataFile:
        blob, data_file = deletion_vector(positions), entry.file.file_path
        about = {"referenced-data-file": data_file, "cardinality": str(len(positions))}
        path = self._new("vector.puffin")
        path.write_bytes(puffin(blob, about))
        place = {"referenced_data_file": data_file, "content_offset": 4, "content_size_in_bytes": len(blob)}
        return self._file(POSITIONS, path, len(positions), entry.file.partition, file_format=FileFormat.PUFFIN, **place)

    def _new(self, name: str) -> Path:
        return self.directory / "data" / f"{next(self._numbers)}-{name}"

    # ---- snapshots and columns

    def snapshot(self) -> Moment:
        """The current snapshot, to ask for later or to go back to."""
        return Moment(self.log.snapshot_id, self.rows)

    def ask_at(self, moment: Moment, questions: Questions, step: str) -> None:
        """Asks for rows of an earlier snapshot."""
        place = replace(self.place(), snapshot_id=moment.snapshot_id, schema=moment.rows.schema)
        self.exam.ask(place, moment.rows, asked(questions), step)

    def roll_back(self, moment: Moment) -> None:
        self.log.roll_back(moment.snapshot_id)
        self.changed()

    def rewrite_manifests(self, group: Callable[[list[Entry]], list[list[Entry]]], forget: Sequence[str] = ()) -> None:
        """Writes the same files into other manifests, without some of their metrics."""
        before = self._deleted[self.log.snapshot_id]
        self.log.regroup(lambda entries: [[_without(entry, forget) for entry in some] for some in group(entries)])
        self._deleted[self.log.snapshot_id] = before
        self.changed()

    def rename(self, old: str, new: str) -> None:
        self._evolve(
            [field.model_copy(update={"name": new}) if field.name == old else field for field in self.schema.fields]
        )

    def drop(self, name: str) -> None:
        self._evolve([field for field in self.schema.fields if field.name != name])

    def add(self, name: str, type_: IcebergType, default: Any = None) -> None:
        """Adds a column; earlier rows have `default` in it, if the version is 3."""
        number = self.log.metadata.last_column_id + 1
        column = NestedField(number, name, type_, initial_default=default, write_default=default)
        self._evolve([*self.schema.fields, column])

    def _evolve(self, fields: Sequence[NestedField]) -> None:
        self.log.evolve(Schema(*fields))
        self.changed()


@dataclass(frozen=True)
class Moment:
    """A snapshot, and its rows."""

    snapshot_id: int
    rows: pa.Table


def _gone(places: Sequence[tuple[Entry, Sequence[int]]]) -> set[tuple[str, int, int]]:
    return {(entry.file.file_path, entry.sequence, position) for entry, positions in places for position in positions}


def _without(entry: Entry, names: Sequence[str]) -> Entry:
    """The entry with some metrics of its file removed."""
    file = copy(entry.file)
    file._data = [None if 6 <= i < 12 and METRICS[i - 6] in names else value for i, value in enumerate(file._data)]
    file.spec_id = entry.file.spec_id
    return replace(entry, file=file)
