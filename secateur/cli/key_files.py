"""Read join keys from a file for the command prune."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq

import secateur as sec
from secateur.io.tables.table import Table
from secateur.pruning.predicate.expressions import split_name
from secateur.values.kinds import kind_of

ARROW = (".arrow", ".feather", ".ipc")


def joined_columns(text: str) -> dict[str, str]:
    """Return the table's columns with the file's names for them, from ``COLUMN`` or ``COLUMN=NAME``, with commas."""
    pairs = (item.strip().partition("=") for item in text.split(","))
    return {column.strip(): name.strip() or column.strip() for column, _, name in pairs}


def read_keys(file: str, on: Mapping[str, str], table: Table) -> pa.Table:
    """Read a file of keys by its ending. CSV is read as the types of the table's columns. Raises UsageError."""
    ending = Path(file).suffix.lower()
    try:
        match ending:
            case ".parquet":
                return pq.read_table(file, columns=list(on.values()))
            case ".csv":
                schema = sec.prune(table, "FALSE").opened.schema
                types = {name: _type(schema, column) for column, name in on.items()}
                known = {name: type_ for name, type_ in types.items() if type_ is not None}
                return pyarrow.csv.read_csv(file, convert_options=pyarrow.csv.ConvertOptions(column_types=known))
            case _ if ending in ARROW:
                return pyarrow.feather.read_table(file)
    except (pa.ArrowException, KeyError) as error:
        raise click.UsageError(f"cannot read the keys in {file}: {error}") from None
    raise click.UsageError(
        f"keys are read from files that end in .parquet, .csv or {', '.join(ARROW)}, not from {file}"
    )


def _type(schema: pa.Schema, column: str) -> pa.DataType | None:
    """Return the type of a top-level column, if it has an order; None lets the file decide."""
    (name, *rest) = split_name(column)
    type_ = None if rest or name not in schema.names else schema.field(name).type
    return type_ if type_ is not None and kind_of(type_) is not None else None
