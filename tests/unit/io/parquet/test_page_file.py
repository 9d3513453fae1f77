"""Columns whose pages hold the same rows are decoded together, others one by one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secateur.errors import InvalidParquet
from secateur.io.parquet import page_file
from secateur.io.parquet import thrift_fields as spec
from secateur.io.parquet.file_locations import read_locations
from secateur.io.parquet.footer import read_footer
from secateur.io.parquet.page_reader import PageReader
from secateur.io.parquet.row_selection import chosen_rows
from secateur.io.parquet.thrift_encoding import tag

A, TEXT, B, ELEMENTS, X, Y, C = range(7)  # leaves
DATA = pa.table(
    {
        "a": range(4_000),
        "text": [f"text {i}" * 9 for i in range(4_000)],
        "b": np.arange(4_000) * 0.5,
        "list": [[i, i + 1] for i in range(4_000)],
        "struct": [{"x": i, "y": -i} for i in range(4_000)],
        "c": range(0, 8_000, 2),
    }
)


@pytest.fixture
def reader(tmp_path: Path) -> PageReader:
    options = {"data_page_size": 2_000, "write_batch_size": 50, "use_dictionary": False}
    pq.write_table(DATA, tmp_path / "a.parquet", write_page_index=True, **options)
    file = pa.OSFile(str(tmp_path / "a.parquet"))
    footer = read_footer(file)
    locations = read_locations(file, footer, 0, range(len(footer.head.columns)))
    return PageReader("a.parquet", file, footer.head, lambda _, leaves: locations.of(leaves))


def test_columns_in_step_take_one_call(reader: PageReader, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[int]] = []
    decode = page_file._decoded_leaves

    def noted(file: object, leaves: list[int], read: object) -> pa.Table:
        asked.append(leaves)
        return decode(file, leaves, read)

    monkeypatch.setattr(page_file, "_decoded_leaves", noted)
    rows = np.array([3, 777, 3_999])
    (table,) = reader.read(0, DATA.column_names, chosen_rows(rows))
    assert table.equals(DATA.take(rows))
    assert sorted(asked) == [[A, B, C], [TEXT], [ELEMENTS], [X], [Y]]


def test_a_damaged_page_is_named_among_columns_in_step(reader: PageReader, tmp_path: Path) -> None:
    pages = reader.locations(0, [C]).chunks[C].pages
    assert pages is not None
    path = tmp_path / "a.parquet"
    data = bytearray(path.read_bytes())
    end = int(pages.offset[0] + pages.size[0])
    data[end - 400 : end] = b"\xff" * 400
    path.write_bytes(data)
    damaged = replace(reader, file=pa.OSFile(str(path)))
    with pytest.raises(InvalidParquet, match=r"column c, page 0 "):
        list(damaged.read(0, ["a", "b", "c"], chosen_rows(np.array([3]))))


def test_a_tag_says_how_far_the_field_is_from_the_last() -> None:
    assert tag(spec.ColumnMetaData.data_page_offset, spec.ColumnMetaData.total_compressed_size.id) == b"\x26"
