"""Hand a plan over to other readers: an Arrow stream, pyarrow's dataset, DuckDB, DataFusion, Polars, PyIceberg."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow.dataset import FileSystemDataset

from secateur.errors import IncompatibleSchemas, PackageMissing, UnsupportedTable
from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.tables.directory.table import ParquetDirectory

__all__ = [
    "FileScanTask",
    "FileSystemDataset",
    "MatchingRows",
    "to_datafusion",
    "to_dataset",
    "to_duckdb",
    "to_polars",
    "to_pyiceberg",
]

if TYPE_CHECKING:
    import datafusion
    import duckdb
    import polars

    from secateur.io.tables.iceberg.pyiceberg_tasks import FileScanTask


@dataclass(frozen=True)
class MatchingRows:
    """The rows of a plan as an Arrow stream. Every consumer reads them again."""

    plan: PlannedScan
    columns: tuple[str, ...] | None = None

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a capsule of Arrow's C stream interface. Raises as ``plan.to_batches`` does."""
        self.plan.require_supported()
        schema = pa.schema(self.plan.fields(self.columns))
        reader = pa.RecordBatchReader.from_batches(schema, self.plan.to_batches(self.columns))
        return reader.__arrow_c_stream__(requested_schema)


def to_duckdb(plan: PlannedScan, connection: Any, columns: Sequence[str] | None) -> duckdb.DuckDBPyRelation:
    """Return the matching rows as a relation. Raises PackageMissing."""
    _require("duckdb")
    return connection.from_arrow(MatchingRows(plan, None if columns is None else tuple(columns)))


def to_datafusion(plan: PlannedScan, context: Any, columns: Sequence[str] | None) -> datafusion.DataFrame:
    """Return the matching rows as a DataFrame. Raises PackageMissing, and as ``plan.to_arrow`` does.

    DataFusion would read a stream at once too, and report any error of it as a wrong type.
    """
    _require("datafusion")
    return context.from_arrow(plan.to_arrow(columns))


def to_polars(plan: PlannedScan) -> polars.LazyFrame:
    """Return the matching rows as a lazy frame, which reads the columns that its query needs. Raises PackageMissing."""
    _require("polars")
    import polars as pl
    from polars.io.plugins import register_io_source

    plan.require_supported()
    schema = pl.DataFrame(pa.schema(plan.fields()).empty_table()).schema

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, batch_rows: int | None
    ) -> Iterator[pl.DataFrame]:
        left = rows
        for batch in plan.to_batches(columns):
            frame = pl.DataFrame(batch)
            if left is not None:
                frame = frame.head(left)
                left -= len(frame)
            yield frame if predicate is None else frame.filter(predicate)
            if left == 0:
                return

    return register_io_source(read, schema=schema)


def to_dataset(plan: PlannedScan) -> FileSystemDataset:
    """Return the surviving row groups as a dataset of pyarrow; the predicate is still to be checked.

    Raises
    ------
    UnsupportedTable
        If the table is no directory of Parquet files: a dataset applies no deletes, and finds columns by name.
    IncompatibleSchemas
        If a file names a column with other upper and lower case letters than the table: a dataset would miss it.
    ValueError
        If the plan has a limit, with which a filter of the dataset's rows would leave too few.
    StalePlan
    """
    table, listing = plan.opened.table, plan.opened.listing
    _require_no_limit(plan, "dataset")
    if not isinstance(table, ParquetDirectory):
        raise UnsupportedTable("only a directory of Parquet files can be a dataset: use to_batches() or to_arrow()")
    table.require_listed(listing, plan.file_ordinals)
    schema, blocks = pa.schema(plan.fields()), plan.survivors.blocks
    order = plan.order()
    file, row_group = blocks.file[order], blocks.row_group[order]
    fragments = []
    for ordinal, groups in zip(
        plan.file_ordinals.tolist(), np.split(row_group, np.flatnonzero(np.diff(file)) + 1), strict=False
    ):
        filesystem, path = table.places.of(listing.paths[ordinal].as_py())
        guarantee = _partition(plan, ordinal)
        fragment = ds.ParquetFileFormat().make_fragment(path, filesystem, guarantee, row_groups=groups.tolist())
        _require_names(fragment.physical_schema, schema, path)
        fragments.append(fragment)
    return FileSystemDataset(fragments, schema, ds.ParquetFileFormat(), table.filesystem)


def to_pyiceberg(plan: PlannedScan) -> list[FileScanTask]:
    """Return the surviving files of an Iceberg table as tasks of PyIceberg; the predicate is still to be checked.

    Raises
    ------
    UnsupportedTable
        If the table is none of Iceberg's, or equality deletes apply to a surviving file.
    ValueError
        If the plan has a limit, with which a filter of the tasks' rows would leave too few.
    """
    _require_no_limit(plan, "list of tasks")
    table = plan.opened.table
    if find_spec("pyiceberg") is not None:
        from secateur.io.tables.iceberg.listing import of_iceberg
        from secateur.io.tables.iceberg.pyiceberg_tasks import scan_tasks
        from secateur.io.tables.iceberg.snapshot import IcebergSnapshot

        if isinstance(table, IcebergSnapshot):
            return scan_tasks(table, of_iceberg(plan.opened.listing), plan.file_ordinals)
    raise UnsupportedTable(f"{table.location} is not an Iceberg table: use to_batches() or to_arrow()")


def _require_no_limit(plan: PlannedScan, what: str) -> None:
    if plan.limit is not None:
        raise ValueError(f"a plan with limit={plan.limit} is no {what}: leave out the limit")


def _partition(plan: PlannedScan, ordinal: int) -> pc.Expression | None:
    """Return the partition values of a file as an expression that holds for all of its rows."""
    expression = None
    partitions = plan.opened.listing.partitions
    for field, values in zip(partitions.fields, partitions.values, strict=True):
        value, column = values[ordinal], pc.field(field.name)
        condition = column == value if value.is_valid else column.is_null()
        expression = condition if expression is None else expression & condition
    return expression


def _require_names(physical: pa.Schema, schema: pa.Schema, path: str) -> None:
    folded = {name.lower(): name for name in schema.names}
    for name in physical.names:
        if folded.get(name.lower(), name) != name:
            raise IncompatibleSchemas(f"{path} calls the column {folded[name.lower()]!r} {name!r}: use to_batches()")


def _require(package: str) -> None:
    if find_spec(package) is None:
        raise PackageMissing(f"{package} is not installed: pip install 'secateur[{package}]'")
