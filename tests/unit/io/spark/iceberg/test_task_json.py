"""The JSON texts of file scan tasks, without Iceberg."""

from __future__ import annotations

import json

import pytest

from secateur.io.spark.iceberg.task_json import DataFile, DeleteFile, ReadTask, Spec, byte_ranges, spec_of, task_texts

UNPARTITIONED = Spec({"spec-id": 0, "fields": []}, {"type": "struct", "schema-id": 0, "fields": []})


def column(id_: int, name: str, type_: object = "long") -> dict[str, object]:
    return {"id": id_, "name": name, "required": False, "type": type_}


def schema(*columns: dict[str, object]) -> dict[str, object]:
    return {"type": "struct", "schema-id": 7, "fields": list(columns)}


def field(source: int, id_: int) -> dict[str, object]:
    return {"name": f"p{id_}", "transform": "identity", "source-id": source, "field-id": id_}


@pytest.mark.parametrize(
    ("row_groups", "ranges"),
    [
        ([], ()),
        ([0], ((4, 96),)),
        ([3], ((300, 110),)),
        ([1, 2], ((100, 200),)),
        ([2, 1, 1], ((100, 200),)),
        ([0, 2, 3], ((4, 96), (200, 210))),
        ([0, 1, 2, 3], ((4, 406),)),
    ],
)
def test_adjacent_row_groups_are_one_range(row_groups: list[int], ranges: tuple[tuple[int, int], ...]) -> None:
    assert byte_ranges([4, 100, 200, 300], 410, row_groups) == ranges


def test_a_text_per_range() -> None:
    file = DataFile("a.parquet", spec_id=0, record_count=40, size=410)
    texts = list(task_texts([ReadTask(file, (), ((4, 96), (200, 210)))], {0: UNPARTITIONED}))
    assert [(task["start"], task["length"]) for task in map(json.loads, texts)] == [(4, 96), (200, 210)]
    assert {task["data-file"]["file-path"] for task in map(json.loads, texts)} == {"a.parquet"}


def test_a_text_has_no_line_breaks() -> None:
    file = DataFile("a\nb\u2028.parquet", spec_id=0, record_count=1, size=10)
    (text,) = task_texts([ReadTask(file, (), ((4, 6),))], {0: UNPARTITIONED})
    assert text.splitlines() == [text]
    assert json.loads(text)["data-file"]["file-path"] == file.path


def test_what_is_not_known_is_left_out() -> None:
    spec = Spec({"spec-id": 3, "fields": [field(1, 1000), field(1, 1001)]}, schema(column(1, "a")))
    file = DataFile("a.parquet", 3, 5, 50, {1000: None, 1001: "x"}, split_offsets=(4,), key_metadata=b"\x01\xff")
    delete = DeleteFile("equality", "d.parquet", 1, 10, equality_ids=(1, 2))
    (text,) = task_texts([ReadTask(file, (delete,), ((4, 46),))], {3: spec})
    task = json.loads(text)
    assert task["data-file"] == {
        "spec-id": 3,
        "content": "DATA",
        "file-path": "a.parquet",
        "file-format": "parquet",
        "partition": {"1001": "x"},
        "file-size-in-bytes": 50,
        "record-count": 5,
        "split-offsets": [4],
        "key-metadata": "01FF",
    }
    assert task["delete-files"] == [
        {
            "spec-id": 3,
            "content": "EQUALITY_DELETES",
            "file-path": "d.parquet",
            "file-format": "parquet",
            "file-size-in-bytes": 10,
            "record-count": 1,
            "equality-ids": [1, 2],
        }
    ]


def test_a_deletion_vector_says_where_it_lies() -> None:
    file = DataFile("a.parquet", spec_id=0, record_count=40, size=410)
    vector = DeleteFile(
        "position", "v.puffin", 3, 90, "puffin", content_offset=4, content_size=60, referenced_data_file="a.parquet"
    )
    (text,) = task_texts([ReadTask(file, (vector,), ((4, 6),))], {0: UNPARTITIONED})
    (entry,) = json.loads(text)["delete-files"]
    assert (entry["content"], entry["file-format"]) == ("POSITION_DELETES", "puffin")
    assert (entry["content-offset"], entry["content-size-in-bytes"]) == (4, 60)
    assert entry["referenced-data-file"] == "a.parquet"


def test_a_spec_keeps_the_columns_that_it_needs() -> None:
    inner = {"type": "struct", "fields": [column(5, "x"), column(6, "y")]}
    spec = {"spec-id": 1, "fields": [field(6, 1000), field(2, 1001)]}
    old = schema(column(1, "a"), column(2, "dropped"), column(3, "s", inner))
    new = schema(column(1, "a"), column(3, "renamed", inner), column(4, "b"))
    kept = spec_of(spec, [old, new])
    assert kept.spec == spec
    assert [(entry["id"], entry["name"]) for entry in kept.schema["fields"]] == [(2, "dropped"), (3, "renamed")]
