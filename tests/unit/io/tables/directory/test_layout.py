"""Which files of a directory are the table."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import secateur as sec
from secateur.errors import InvalidParquet
from secateur.io import footer_progress
from secateur.io.parquet.footer import Footer
from secateur.io.parquet.known_footer import KnownFooter
from secateur.io.scan import opened_table
from tests.support.tables import write_file


def test_files_without_a_byte_are_left_out_but_type_their_partition(tmp_path: Path) -> None:
    write_file(tmp_path / "p=1" / "a.parquet", {"id": [1, 2]})
    (tmp_path / "p=x").mkdir()
    (tmp_path / "p=x" / "empty.parquet").touch()
    table = sec.open_table(tmp_path)
    sec.build_index(table)
    plan = sec.prune(table, "id = 2 AND p = '1'", strict=True)
    assert plan.files == ["p=1/a.parquet"]
    assert plan.to_arrow().to_pylist() == [{"id": 2, "p": "1"}]


def test_a_foreign_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    write_file(tmp_path / "a.parquet", {"id": [1, 2]})
    (tmp_path / "notes.csv").write_text("a,b\n")
    with pytest.raises(InvalidParquet, match=r"notes\.csv: not a Parquet file.*begins with _"):
        sec.prune(sec.open_table(tmp_path), "id = 2")
    assert sec.prune(sec.open_table(f"{tmp_path}/**/*.parquet"), "id = 2").count() == 1
    (tmp_path / "notes.csv").rename(tmp_path / "_notes.csv")
    assert sec.prune(sec.open_table(tmp_path), "id = 2").count() == 1


def test_a_broken_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    write_file(tmp_path / "a.parquet", {"id": [1, 2]})
    (tmp_path / "b.parquet").write_text("an upload that was cut off")
    with pytest.raises(InvalidParquet, match=r"b\.parquet: not a Parquet file.*; restore it, or, if .*begins with _"):
        sec.prune(sec.open_table(tmp_path), "id = 2")
    (tmp_path / "b.parquet").rename(tmp_path / "_b.parquet")
    assert sec.prune(sec.open_table(tmp_path), "id = 2").count() == 1


def test_many_footers_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for i in range(3):
        write_file(tmp_path / f"{i}.parquet", {"id": [i]})
    assert sec.prune(sec.open_table(tmp_path), "id = 2").count() == 1
    assert "footers" not in caplog.text
    monkeypatch.setattr(footer_progress, "QUIET_SECONDS", 0.0)
    with caplog.at_level(logging.WARNING):
        sec.prune(sec.open_table(tmp_path), "id = 2")
    assert (
        f"1 of 3 footers read, about 0 s left; queries with an index read none: secateur index {tmp_path}"
        in caplog.text
    )


def test_footers_are_counted_when_they_are_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which takes longer than to read them."""
    for i in range(3):
        write_file(tmp_path / f"{i}.parquet", {"id": [i]})
    decode, decoded, seen = KnownFooter.decoded, set(), []

    def counting(footer: KnownFooter, file: pa.NativeFile) -> Footer:
        decoded.add(id(footer))
        return decode(footer, file)

    def counted(footers: Iterable[object], count: int, location: str) -> Iterator[object]:
        yield from footers
        seen.append(len(decoded))

    monkeypatch.setattr(KnownFooter, "decoded", counting)
    monkeypatch.setattr(opened_table, "with_progress", counted)
    sec.prune(sec.open_table(tmp_path), "id = 2")
    assert seen == [3]
