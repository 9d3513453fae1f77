"""Texts that are read as numbers of entries of dictionaries are the texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.io.parquet import dictionary_texts
from secateur.io.parquet.dictionary_texts import LEAST_ROWS, encoded_texts, in_parts, looked_up, pays
from secateur.io.parquet.footer import read_footer
from secateur.io.parquet.row_group_reader import RowGroupReader
from tests.support.profiles import examples

ROWS = 2 * LEAST_ROWS
NUMBERS = np.arange(ROWS)
TEXTS = pc.binary_join_element_wise("text", pa.array(NUMBERS % 7).cast(pa.string()), " ")
COLUMNS = {
    "few": TEXTS,
    "With Case": TEXTS,
    "a.dot": TEXTS,
    "null": pa.nulls(ROWS, pa.string()),
    "some_null": pc.if_else(pa.array(NUMBERS % 3 == 0), None, TEXTS),
    "bytes": TEXTS.cast(pa.binary()),
    "large": TEXTS.cast(pa.large_string()),
    "category": TEXTS.dictionary_encode(),
    "nested": pa.StructArray.from_arrays([TEXTS], ["text"]),
    "list": pa.ListArray.from_arrays(pa.array(np.arange(ROWS + 1), pa.int32()), TEXTS),
    "many": pa.array(NUMBERS).cast(pa.string()),
    "number": pa.array(NUMBERS % 7),
    "key": pa.array(np.random.default_rng(0).random(ROWS)),
}


def written(path: Path, columns: dict[str, pa.Array], **options: Any) -> Path:
    pq.write_table(pa.table(columns), path, row_group_size=LEAST_ROWS, **options)
    return path


def chosen(path: Path, row_groups: Sequence[int] = (0, 1)) -> set[str]:
    with pa.OSFile(str(path)) as file:
        footer = read_footer(file)
    return set(encoded_texts(footer, row_groups, range(pq.read_metadata(path).num_columns)))


def test_top_level_texts_with_small_dictionaries_are_read_so(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", COLUMNS)
    assert chosen(path) == {"few", "With Case", "null", "some_null", "bytes", "large", "category"}


def test_texts_of_which_some_are_not_encoded_are_not(tmp_path: Path) -> None:
    unique = pa.array(NUMBERS).cast(pa.string())
    mixed = pa.concat_arrays([TEXTS[:LEAST_ROWS], unique[LEAST_ROWS:]])
    path = written(tmp_path / "a.parquet", {"mixed": mixed}, dictionary_pagesize_limit=1 << 10)
    assert chosen(path, [0]) == {"mixed"}
    assert chosen(path, [1]) == chosen(path) == set()


@pytest.mark.parametrize(
    "options", [{"use_dictionary": False}, {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"}]
)
def test_texts_in_other_encodings_are_not(tmp_path: Path, options: dict[str, Any]) -> None:
    assert chosen(written(tmp_path / "a.parquet", {"few": TEXTS}, **options)) == set()


@pytest.mark.parametrize("predicate", ["key >= 0", "key < 0.5", "key < 0.01", "few = 'text 3'"])
@pytest.mark.parametrize("page", [None, 500])
def test_rows_are_those_that_pyarrow_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, predicate: str, page: int | None
) -> None:
    written(tmp_path / "a.parquet", COLUMNS, write_page_index=page is not None, max_rows_per_page=page or ROWS)
    asked = []
    reader_of = RowGroupReader._encoded_texts
    monkeypatch.setattr(dictionary_texts, "DECODING", 0.0)
    monkeypatch.setattr(RowGroupReader, "_encoded_texts", lambda *a: asked.append(reader_of(*a)) or asked[-1])
    plan = sec.prune(sec.open_table(str(tmp_path)), predicate, strict=True)
    rows = plan.to_arrow()
    with monkeypatch.context() as patch:
        patch.setattr(RowGroupReader, "_encoded_texts", lambda *_: ())
        assert rows.equals(plan.to_arrow(), check_metadata=True)
    assert any("few" in names for names in asked)
    assert all(not pa.types.is_dictionary(field.type) for field in rows.schema)


@given(
    st.lists(st.none() | st.text(max_size=9), max_size=30), st.integers(1, 40), st.sampled_from(["a", "b"]), st.data()
)
@examples(40)
def test_parts_are_the_rows(texts: list[str | None], most: int, kept: str, data: st.DataObject) -> None:
    array = pa.array(texts, pa.string())
    batch = pa.record_batch({"a": array.dictionary_encode(), "b": array.dictionary_encode(), "c": array})
    begin = data.draw(st.integers(0, len(texts)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dictionary_texts, "TEXT_BYTES", most)
        parts = list(in_parts(batch.slice(begin), ["a", "b"]))
    assert all(
        part.num_rows == 1 or pc.sum(pc.binary_length(part["c"])).as_py() in (None, *range(most + 1)) for part in parts
    )
    rows = pa.Table.from_batches(
        [looked_up(part, {"a", "b"} - {kept}) for part in parts], None if parts else batch.schema
    )
    assert pa.types.is_dictionary(rows[kept].type)
    assert rows.to_pydict() == dict.fromkeys("abc", texts[begin:])


def test_a_footer_is_decoded_where_that_pays() -> None:
    counts = np.array([LEAST_ROWS, 10 * LEAST_ROWS])
    assert pays(counts, 1, 0)
    assert not pays(counts - 1, 1, 0), "the row groups are short"
    assert pays(counts, 2, 40)
    assert not pays(counts, 2, 400)
