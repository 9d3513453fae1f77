"""Write the golden index of the current format version.

Run ``python -m tests.support.programs.make_golden`` once per version, and never again for an old one.
"""

from __future__ import annotations

import os
import shutil
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import secateur as sec
from secateur.index.container.index_file import VERSION

GOLDEN = Path(__file__).parents[2] / "golden"
MODIFIED = 1_700_000_000_000_000_000  # nanoseconds; an identity includes it, and a checkout does not keep it


def stamp(root: Path) -> None:
    """Give the data files the modification time that the golden index knows."""
    for file in root.rglob("*.parquet"):
        os.utime(file, ns=(MODIFIED, MODIFIED))


def table(first: int) -> pa.Table:
    """Forty rows of every kind of key, with NULL and NaN."""
    ids = range(first, first + 40)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "ratio": pa.array([float("nan") if i % 13 == 0 else i / 7 for i in ids], pa.float64()),
            "price": pa.array([Decimal(i) / 4 for i in ids], pa.decimal128(10, 2)),
            "wide": pa.array([Decimal(i) * 10**20 for i in ids], pa.decimal128(30, 0)),
            "name": pa.array([None if i % 10 == 0 else f"name-{i:03d}" + "é" * 40 for i in ids]),
            "day": pa.array([date(2026, 1, 1 + i % 28) for i in ids]),
            "nested": pa.array([{"y": i % 5} for i in ids], pa.struct([("y", pa.int32())])),
        }
    )


def main() -> None:
    root = GOLDEN / f"v{VERSION}"
    shutil.rmtree(root, ignore_errors=True)
    for part in range(2):
        folder = root / f"part={part}"
        folder.mkdir(parents=True)
        pq.write_table(
            table(part * 40), folder / "rows.parquet", row_group_size=20, write_page_index=True, max_rows_per_page=10
        )
    stamp(root)
    sec.build_index(
        sec.open_table(str(root)),
        sort_key=["id"],
        bloom=["id", "name", "wide"],
        postings={"price": "blocks", "day": "rows", "ratio": "ordered", "name": "ordered"},
        ngram={"name": {"n": 3, "fold": True}},
        tokens=["name"],
        sums=["price", "id"],
        segment_blocks=2,
        page_locations=False,  # which a refresh adds
    )


if __name__ == "__main__":
    main()
