"""Files that Spark has listed are matched with the index by identity: path, length and millisecond."""

from __future__ import annotations

import json
import struct
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from secateur.io.spark.planner.file_list import FileList, file_list
from secateur.io.tables.partitions import Partitions

PATHS = ("", "a", "b", "c/ü d", "e")
FILES = st.lists(st.tuples(st.sampled_from(PATHS), st.integers(1, 2), st.integers(5, 6)), max_size=8)
TIMES = st.integers(5_000_000, 6_999_999)
ENTRIES = st.lists(st.tuples(st.sampled_from(PATHS[1:]), st.integers(1, 2), TIMES), max_size=8)


def listed(files: list[tuple[str, int, int]]) -> FileList:
    paths, size, modified = (list(column) for column in zip(*files, strict=True)) if files else ([], [], [])
    values = Partitions((pa.field("k", pa.int32()),), (pa.array(range(len(files)), pa.int32()),))
    numbers = (np.array(size, np.int64), np.array(modified, np.int64))
    return FileList("lake", StructType(), pa.array(paths, pa.string()), *numbers, values)


@given(files=FILES, entries=ENTRIES, chosen=st.data())
def test_a_file_is_known_by_its_whole_identity(
    files: list[tuple[str, int, int]], entries: list[tuple[str, int, int]], chosen: st.DataObject
) -> None:
    paths, size, modified = (list(column) for column in zip(*entries, strict=True)) if entries else ([], [], [])
    table = SimpleNamespace(
        path=pa.array(paths, pa.large_string()),
        size=np.array(size, np.int64),
        stamp=np.array(modified, np.int64),
        witness=np.zeros(len(size), np.int64),
    )
    known = listed(files).known_to(SimpleNamespace(files=table))  # type: ignore[arg-type]
    first = {path: i for i, (path, _, _) in reversed(list(enumerate(files)))}
    fits = {
        i: [entry for entry in entries if (entry[0], entry[1], entry[2] // 1_000_000) == files[i]]
        for i in first.values()
    }
    expected = sorted(i for i, fitting in fits.items() if len(fitting) == 1)
    assert sorted(known.ordinals.tolist()) == expected
    assert known.others.tolist() == [i for i in range(len(files)) if i not in expected]
    known_paths = known.listing.paths.to_pylist()
    assert known_paths == sorted(known_paths)
    for position, i in enumerate(known.ordinals.tolist()):
        assert (known_paths[position], known.listing.size[position]) == files[i][:2]
        assert known.listing.stamp[position] == fits[i][0][2]
        assert known.listing.partitions.values[0][position].as_py() == i
    kept = np.array([chosen.draw(st.booleans()) for _ in known.ordinals], bool)
    some = known.among(kept)
    assert some.listing.paths.to_pylist() == [path for path, is_kept in zip(known_paths, kept, strict=True) if is_kept]
    assert some.ordinals.tolist() == some.listing.partitions.values[0].to_pylist() == known.ordinals[kept].tolist()
    assert sorted([*some.ordinals, *some.others]) == list(range(len(files)))


def text(value: str) -> bytes:
    return struct.pack(">i", len(value.encode())) + value.encode()


def test_partition_values_as_spark_holds_them() -> None:
    values = {"integer": "-7", "date": "20454", "timestamp": "5", "string": "ü", "double": "1.5"}
    fields = [{"name": type_, "type": type_, "nullable": True, "metadata": {}} for type_ in values]
    data = b"".join(
        [
            *(text("lake"), text(json.dumps({"type": "struct", "fields": []}))),
            *(text(json.dumps({"type": "struct", "fields": fields})), struct.pack(">i", 2)),
            *(struct.pack(">ii", 1, 3), "aü".encode(), struct.pack(">qqqq", 10, 20, 1, 2), struct.pack(">ii", 1, 0)),
            struct.pack(">i", 2),
            *(b"\1" + text(value) for value in values.values()),
            b"\0" * len(fields),
        ]
    )
    files = file_list(data)
    assert (files.paths.to_pylist(), files.size.tolist(), files.modified.tolist()) == (["a", "ü"], [10, 20], [1, 2])
    assert [field.name for field in files.partitions.fields] == ["integer", "date", "timestamp", "string"]
    numbers, days, times, texts = files.partitions.values
    assert [column[0].as_py() for column in (numbers, days, times, texts)] == [None] * 4
    assert (numbers[1].as_py(), str(days[1]), times[1].value, texts[1].as_py()) == (-7, "2026-01-01", 5, "ü")
