"""A directory of Parquet files, partitioned as Hive does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from conformance.engine import PARQUET, ROW_ID
from conformance.exam import Exam
from conformance.files import write_file
from conformance.table import Table, decoded

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = re.compile(r"""[\x01-\x1f"#%'*/:=?\\\x7f{\[\]^]""")  # what Spark escapes in names of folders


class DirectoryTable(Table):
    """The Parquet files of a directory."""

    format = PARQUET

    def __init__(self, directory: Path, exam: Exam, partitioned_by: tuple[str, ...] = ()) -> None:
        super().__init__(directory, exam, partitioned_by)
        self._files: dict[str, pa.Table] = {}
        self._options: dict[str, Any] = {}

    @property
    def files(self) -> Mapping[str, pa.Table]:
        return self._files

    def write(self, files: Mapping[str, pa.Table], **options: Any) -> None:
        self._options = options
        for name, rows in files.items():
            self._files[name] = rows
            path = self.path(name)
            aside = path.with_name(f".{path.name}")  # which no reader lists, so that none sees half a file
            write_file(aside, rows.drop_columns(list(self.partitioned_by)), **options)
            aside.replace(path)
        self.changed()

    def path(self, name: str) -> Path:
        """Where a file lies: in the folder of its partition, whose values are those of its first row."""
        rows, folder = self._files[name], self.directory
        for column in self.partitioned_by:
            value = rows[column][0].as_py()
            folder /= f"{column}={NULL_PARTITION if value is None else escaped(str(value))}"
        return folder / name

    def rewrite(self, old: Sequence[str], new: Mapping[str, pa.Table], **options: Any) -> None:
        for name in old:
            if name not in new:
                self.path(name).unlink()
            del self._files[name]
        self.write(new, **options)

    def delete(self, *row_ids: int) -> None:
        """Rewrites the files that hold the rows."""
        for name, rows in list(self._files.items()):
            kept = rows.filter(pc.invert(pc.is_in(rows[ROW_ID], pa.array(row_ids, pa.int64()))))
            if len(kept) < len(rows):
                self.rewrite([name], {name: kept}, **self._options)

    def _rows(self) -> pa.Table:
        tables = [decoded(rows) for rows in self._files.values()]
        return pa.concat_tables(tables, promote_options="permissive").combine_chunks()


def escaped(value: str) -> str:
    """A partition value as it stands in the name of a folder."""
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", value)
