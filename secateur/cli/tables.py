"""Arrow tables on the command line: as a sheet of text, or as a JSON list with an object per row."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from secateur.cli.output import Cell, OutputColumn, Sheet, count, print_json, show_sheet
from secateur.pruning.report import human_bytes

# functions of secateur.inspect
TABLES = ("snapshots", "manifests", "files", "blocks", "segments", "coverage", "clustering")

_NAMES = ("_id", "row_group", "segment")  # suffixes of numeric columns that are identifiers, not quantities


def show_table(table: pa.Table, as_json: bool) -> None:
    """Print a table."""
    if as_json:
        print_json([_plain(row) for row in table.to_pylist(maps_as_pydicts="strict")])
        return
    columns = tuple(OutputColumn(field.name.replace("_", " "), right=_is_number(field.type)) for field in table.schema)
    cells = ([Cell(_text(field.name, value)) for value in _values(table, field)] for field in table.schema)
    rows = zip(*cells, strict=True)
    show_sheet(Sheet(columns, tuple(rows)))


def _values(table: pa.Table, field: pa.Field) -> list[Any]:
    values: list[Any] = table[field.name].to_pylist(maps_as_pydicts="strict")
    return values


def _is_number(type_: pa.DataType) -> bool:
    return pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)


def _text(column: str, value: Any) -> str:
    """Format a value for people."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case int() if column == "bytes":
            return human_bytes(value)
        case float():
            return f"{value:,.4g}"
        case int():
            return str(value) if column.endswith(_NAMES) else count(value)
        case Mapping():
            return ", ".join(f"{name}={_nested(item)}" for name, item in value.items())
        case list():
            return "; ".join(_nested(item) for item in value)
        case _:
            return str(_plain(value))


def _nested(value: Any) -> str:
    return ", ".join(f"{k}={_nested(v)}" for k, v in value.items()) if isinstance(value, Mapping) else str(value)


def _plain(value: Any) -> Any:
    """Convert a value for JSON."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            return {str(name): _plain(item) for name, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case dt.datetime():
            return value.isoformat()
        case bytes():
            return value.hex()
        case _:
            return str(value)
