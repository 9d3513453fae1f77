"""Rows of row groups: all of them, or an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.parquet import core
from pyarrow.parquet.core import ParquetReader

import secateur as sec
from secateur.errors import InvalidParquet

LISTS: list[tuple[pa.DataType, Any]] = [
    (pa.list_(pa.int64()), [1, 2]),
    (pa.map_(pa.string(), pa.int64()), [("k", 1)]),
]


@pytest.mark.parametrize(("type_", "value"), LISTS)
@pytest.mark.parametrize("columns", [None, ["v"], ["rid", "v"]])
def test_no_row_is_left_out_without_an_error(
    tmp_path: Path, type_: pa.DataType, value: Any, columns: list[str] | None
) -> None:
    """pyarrow 26 yields no row of a row group of one row, if a list's first page is empty; other columns are read."""
    rows = pa.table({"rid": [1, 2], "v": pa.array([value, value], type_)})
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=1, data_page_size=1, write_batch_size=1)
    plan = sec.prune(sec.open_table(tmp_path), "rid > 0")
    assert plan.to_arrow(["rid"]) == rows.select(["rid"])
    try:
        read = plan.to_arrow(columns)
    except InvalidParquet as error:
        assert "0 of its 1 rows" in str(error)
    else:
        assert read == (rows if columns is None else rows.select(columns))


@pytest.mark.parametrize("kept", [0, 1])
def test_rows_that_are_not_yielded_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    pq.write_table(pa.table({"rid": [1, 2, 3]}), tmp_path / "a.parquet")

    class Fewer(ParquetReader):
        """Yields the first rows of every batch alone."""

        def iter_batches(self, *arguments: Any, **options: Any) -> Any:
            return (batch.slice(0, kept) for batch in super().iter_batches(*arguments, **options))

    monkeypatch.setattr(core, "ParquetReader", Fewer)
    with pytest.raises(InvalidParquet, match=f"pyarrow finds {kept} of its 3 rows in the columns rid"):
        sec.prune(sec.open_table(tmp_path), "rid > 0").to_arrow()
