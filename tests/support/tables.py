"""Write the Parquet files of test tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

WriteTable = Callable[..., Path]


def write_file(path: Path, data: pa.Table | Mapping[str, Any], **options: Any) -> Path:
    """One Parquet file, with the directories above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = data if isinstance(data, pa.Table) else pa.table(dict(data))
    pq.write_table(table, path, **options)
    return path
