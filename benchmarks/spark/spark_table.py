"""A table of 20 million rows for Spark: 200 files of ten row groups, sorted by `id`, with keys `uid` in no order.

`ts` is a second later in every row, and `day` its date: most row groups hold one day, and one in nine holds two.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import secateur as sec
from benchmarks.setting import Setting, index_code
from secateur.index.build.options import filter_options
from secateur.index.model import BuildOptions
from secateur.io.tables.table import Table
from tests.support.stores.local_build import index_here

FILES, ROW_GROUPS, ROWS = 200, 10, 10_000  # in a file, in a row group


@dataclass(frozen=True)
class SparkTable:
    """The table with a filter of `uid`, some of its keys in random order, and where Spark reads it by itself."""

    table: Table
    location: str
    files: int
    keys: np.ndarray

    @property
    def rows(self) -> int:
        """The rows of the whole table."""
        return self.files * ROW_GROUPS * ROWS

    def key(self, call: int) -> int:
        """A value of `uid`, another in every call."""
        return int(self.keys[call % len(self.keys)])


def spark_table(setting: Setting) -> SparkTable:
    """The table at the scale of the setting, which takes fewer files; written where it is missing."""
    files = setting.scaled(FILES, least=2)
    directory = setting.prepared(f"spark-days-{files}", partial(_write, files=files))
    location, index = directory / "data", directory / f"index-{index_code()}"
    table = sec.open_table(str(location), index_location=str(index))
    if not index.exists():
        index_here(table, BuildOptions(filters=filter_options(bloom=["uid"]), sums=("price",)))
    return SparkTable(table, str(location), files, np.load(directory / "keys.npy"))


def _write(directory: Path, files: int) -> None:
    rng = np.random.default_rng(12)
    (directory / "data").mkdir()
    rows, rows_per_file = files * ROW_GROUPS * ROWS, ROW_GROUPS * ROWS
    uids = rng.permutation(rows) * 7
    names = pa.array([f"user {i:07d} of {i % 97}" for i in range(100_000)])
    for i in range(files):
        ids = np.arange(i * rows_per_file, (i + 1) * rows_per_file)
        data = pa.table(
            {
                "id": ids,
                "uid": uids[ids],
                "kind": pa.array(rng.integers(0, 50, rows_per_file), pa.int32()),
                "name": names.take(pa.array(rng.integers(0, len(names), rows_per_file))),
                "ts": pa.array(ids * 1_000_000 + 1_767_225_600_000_000, pa.timestamp("us", "UTC")),
                "day": pa.array((ids // 86_400 + 20_454).astype(np.int32)).cast(pa.date32()),
                "price": pa.array(rng.integers(0, 10**6, rows_per_file), pa.int32()).cast(pa.decimal128(12, 2)),
                "value": rng.random(rows_per_file),
            }
        )
        pq.write_table(data, directory / "data" / f"part-{i:04d}.parquet", row_group_size=ROWS)
    np.save(directory / "keys.npy", rng.permutation(uids)[:10_000])
