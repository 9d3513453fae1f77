"""Row groups of a plan as pyarrow reads them whole: the floor of a read that decodes with pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from secateur.io.storage.byte_ranges import files_at_once, is_local
from secateur.scan import Scan


@dataclass(frozen=True)
class WholeRead:
    """The row groups that a plan keeps, file by file; footers are known, and as many files are read at once."""

    files: Sequence[tuple[str, pq.FileMetaData, list[int]]]
    filesystem: pafs.FileSystem
    names: list[str] | None

    @classmethod
    def of(
        cls, plan: Scan, directory: Path, names: list[str] | None, filesystem: pafs.FileSystem, prefix: str
    ) -> WholeRead:
        """The read of some columns of a plan, or of all; a copy of the files under the prefix lies in a directory."""
        of_file: dict[str, list[int]] = {}
        for block in plan.blocks.to_pylist():
            of_file.setdefault(block["file"], []).append(block["row_group"])
        files = [
            (f"{prefix}/{path}", pq.read_metadata(directory / path), row_groups) for path, row_groups in of_file.items()
        ]
        return cls(files, filesystem, names)

    def rows(self, chosen: Callable[[pa.Table], pa.Table] = lambda table: table) -> pa.Table:
        """Return the rows, or those that are chosen in every file."""
        with ThreadPoolExecutor(files_at_once(self.filesystem)) as threads:
            return pa.concat_tables(threads.map(lambda file: chosen(self._read(*file)), self.files))

    def _read(self, path: str, metadata: pq.FileMetaData, row_groups: list[int]) -> pa.Table:
        ahead = not is_local(self.filesystem)
        with pq.ParquetFile(path, metadata=metadata, filesystem=self.filesystem, pre_buffer=ahead) as file:
            return file.read_row_groups(row_groups, self.names, use_threads=False)
