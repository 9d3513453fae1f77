"""Parquet files as several writers write them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import arro3.io
import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq

from conformance.footers import Change, edit

WRITERS = ("pyarrow", "arro3", "polars", "duckdb")


def write_file(
    path: Path,
    rows: pa.Table,
    writer: str = "pyarrow",
    groups: Sequence[int] = (),
    footer: Change | None = None,
    **options: Any,
) -> None:
    """Writes a file, and makes the folders above it.

    `groups` are the row counts of its row groups, which may be 0; `footer` edits the footer that the writer made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    match writer:
        case "arro3":
            arro3.io.write_parquet(rows, path, **options)
        case "polars":
            polars.from_arrow(rows).write_parquet(path, **options)  # type: ignore[union-attr]
        case "duckdb":
            listed = ", ".join(["FORMAT parquet", *(f"{name} {value}" for name, value in options.items())])
            duckdb.from_arrow(rows).query("r", f"COPY r TO '{path}' ({listed})")
        case _ if groups:
            _write_groups(path, rows, groups, options)
        case _:
            pq.write_table(rows, path, **options)
    if footer is not None:
        edit(path, footer)


def _write_groups(path: Path, rows: pa.Table, groups: Sequence[int], options: dict[str, Any]) -> None:
    with pq.ParquetWriter(path, rows.schema, **options) as out:
        at = 0
        for size in groups:
            out.write_table(rows.slice(at, size), row_group_size=max(size, 1))
            at += size
