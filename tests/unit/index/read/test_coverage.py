"""Entries are matched with live files the same, wherever they are stored, and whatever is compared or searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from secateur.index.read.coverage import NamesOnly, matching
from secateur.index.segments.base_file import write_base
from secateur.index.segments.file_table import FileTable
from secateur.index.segments.segment_files import SegmentFiles
from secateur.ragged import offsets_of
from tests.support.stores.memory_store import MemoryStore

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
def test_how_entries_are_stored_changes_nothing(
    live: dict[str, int], others: list[tuple[str, int]], data: st.DataObject
) -> None:
    """Entries of live files, of files gone, and of old versions, in any order of segments, in a base or not."""
    listed = sorted(live.items(), key=lambda file: file[0].encode())
    files = Files(pa.array([path for path, _ in listed], pa.string()), np.array([size for _, size in listed], np.int64))
    some = data.draw(st.lists(st.sampled_from(listed), unique=True)) if listed else []
    entries = data.draw(st.permutations([*some, *others]))
    n = len(entries)
    counts = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n).map(lambda cuts: np.array(cuts, np.int64)))
    counts = np.append(np.diff(np.minimum(offsets_of(counts), n)), n - min(n, int(counts.sum())))
    table = of_entries(entries, np.repeat(np.arange(len(counts), dtype=np.int32), counts))
    plain = SegmentFiles.of(table, len(counts))
    matched = matching(files, plain)
    assert matching(files, read_from_a_base(plain)).tolist() == matched.tolist()
    in_base = np.array(data.draw(st.lists(st.booleans(), min_size=len(counts), max_size=len(counts))), bool)
    split = partly_in_a_base(plain, in_base)
    assert split.path.to_pylist() == [path for path, _ in entries]
    assert split.size.tolist() == plain.size.tolist()
    assert np.argsort(split.rank).tolist() == sorted(range(n), key=lambda i: (entries[i][0].encode(), split.rank[i]))
    once = matching(files, split)
    for way in (matched, once):
        for entry, file in enumerate(way.tolist()):
            assert file < 0 or listed[file] == entries[entry]
        assert {listed[file] for file in way.tolist() if file >= 0} == set(listed) & set(entries)
    asked = [*live, "never"]
    assert split.holds(pa.array(asked, pa.large_string())).tolist() == [p in {q for q, _ in entries} for p in asked]


def of_entries(entries: Sequence[tuple[str, int]], segment: np.ndarray) -> FileTable:
    """A table with these paths and sizes."""
    zeros = np.zeros(len(entries), np.int64)
    paths = pa.array([path for path, _ in entries], pa.large_string())
    return FileTable(paths, np.array([size for _, size in entries], np.int64), *[zeros] * 6, segment=segment)


def read_from_a_base(files: SegmentFiles) -> SegmentFiles:
    """The same files after all were written to a base."""
    return write_base(MemoryStore(), "0" * 12, files)


def partly_in_a_base(files: SegmentFiles, chosen: np.ndarray) -> SegmentFiles:
    """The same files, those of the chosen segments in a base that was written when there were others in their place."""
    first, rest = np.flatnonzero(chosen), np.flatnonzero(~chosen)
    n = len(first)
    once = SegmentFiles.of(of_entries([("", 1), ("a", 2), ("é", 0)], np.zeros(3, np.int32)), 1)
    in_base = read_from_a_base(files.take(first[: n // 2]).followed_by(once).followed_by(files.take(first[n // 2 :])))
    joined = in_base.take(np.delete(np.arange(n + 1), n // 2)).followed_by(files.take(rest))
    return joined.take(np.argsort(np.concatenate([first, rest])))
