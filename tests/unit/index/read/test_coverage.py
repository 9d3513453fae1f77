"""Entries are matched with live files the same, whether all paths are hashed or only those that differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from secateur.index.read.coverage import NamesOnly, matching
from secateur.index.segments.segment_table import FileTable

NAMES = st.text("abé/", max_size=4)


@dataclass(frozen=True)
class Files(NamesOnly):
    """Live files, ordered by path."""

    paths: pa.Array
    size: np.ndarray

    @property
    def id(self) -> int:
        return 0

    @property
    def stamp(self) -> np.ndarray:
        return np.zeros(len(self.size), np.int64)

    known_as = stamp

    def zones(self, column: object) -> None:
        return None


@given(st.dictionaries(NAMES, st.integers(0, 1)), st.lists(st.tuples(NAMES, st.integers(0, 1)), max_size=8), st.data())
def test_the_order_of_the_entries_changes_nothing(
    live: dict[str, int], others: list[tuple[str, int]], data: st.DataObject
) -> None:
    """Entries of live files, of files that are gone, and of old versions, in any order of segments."""
    listed = sorted(live.items(), key=lambda file: file[0].encode())
    files = Files(pa.array([path for path, _ in listed], pa.string()), np.array([size for _, size in listed], np.int64))
    some = data.draw(st.lists(st.sampled_from(listed), unique=True)) if listed else []
    entries = data.draw(st.permutations([*some, *others]))
    n = len(entries)
    paths = pa.array([path for path, _ in entries], pa.large_string())
    zeros = np.zeros(n, np.int64)
    table = FileTable(paths, np.array([size for _, size in entries], np.int64), *[zeros] * 7)
    by_path = np.array(sorted(range(n), key=lambda i: entries[i][0].encode()), np.int64)
    matched = matching(files, table)
    assert matching(files, table, by_path).tolist() == matched.tolist()
    for entry, file in enumerate(matched.tolist()):
        assert file < 0 or listed[file] == entries[entry]
    assert {listed[file] for file in matched.tolist() if file >= 0} == set(listed) & set(entries)
