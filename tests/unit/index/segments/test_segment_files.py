"""The files of segments are the same whether they stand in a base or not, through whatever a refresh does to them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from secateur.index.segments import base_file
from secateur.index.segments.base_file import is_base_due, write_base
from secateur.index.segments.file_table import COLUMNS, FileTable
from secateur.index.segments.segment_files import SegmentFiles
from tests.support.profiles import examples
from tests.support.stores.memory_store import MemoryStore

Segment = list[tuple[str, int]]  # path and size of its files
SEGMENTS = st.lists(st.lists(st.tuples(st.text("abc", max_size=4), st.integers(10, 99)), max_size=3), max_size=4)


@dataclass(frozen=True)
class Step:
    """What is done to the files of some segments: chosen among, joined by others, written as a base."""

    chosen: list[float]
    others: list[Segment]
    is_base: bool


STEPS = st.lists(st.builds(Step, st.lists(st.floats(0, 0.99), max_size=4), SEGMENTS, st.booleans()), max_size=4)


def files_of(segments: list[Segment]) -> SegmentFiles:
    files = [file for segment in segments for file in segment]
    sizes = np.array([size for _, size in files], np.int64)
    owner = np.repeat(np.arange(len(segments), dtype=np.int32), [len(segment) for segment in segments])
    columns = {name: sizes * (i + 1) for i, name in enumerate(COLUMNS)} | {"block_count": sizes // 10}
    return SegmentFiles.of(
        FileTable(pa.array([p for p, _ in files], pa.large_string()), **columns, segment=owner), len(segments)
    )


def require(files: SegmentFiles, segments: list[Segment]) -> None:
    """All that is asked of files, beside what was put in."""
    expected, every = files_of(segments), [file for segment in segments for file in segment]
    assert len(files) == len(every)
    assert files.path.to_pylist() == [path for path, _ in every]
    for name in (*COLUMNS, "segment"):
        assert getattr(files.table, name).tolist() == getattr(expected.table, name).tolist(), name
    assert files.blocks_of_segments.tolist() == [sum(size // 10 for _, size in segment) for segment in segments]
    assert sorted(files.rank.tolist()) == list(range(len(every)))
    assert [every[i][0] for i in files.by_path.tolist()] == sorted(path for path, _ in every)


@examples(150)
@given(SEGMENTS, STEPS)
def test_files_through_refreshes(segments: list[Segment], steps: list[Step]) -> None:
    """Any choice and order of segments, none twice, then more of them, some of it written as a base in between."""
    store, files = MemoryStore(), files_of(segments)
    for number, step in enumerate(steps):
        chosen = [*dict.fromkeys(int(at * len(segments)) for at in step.chosen)] if segments else []
        files = files.take(np.array(chosen, np.int64)).followed_by(files_of(step.others))
        segments = [*(segments[i] for i in chosen), *step.others]
        if step.is_base:
            files = write_base(store, f"{number:012x}", files)
        require(files, segments)
        require(files.without_base(), segments)
    if len(files):
        witness = np.arange(len(files)) + 7
        assert files.with_witnesses(witness).witness.tolist() == witness.tolist()


@examples(50)
@given(st.lists(SEGMENTS, min_size=2, max_size=3))
def test_files_of_several_bases(parts: list[list[Segment]]) -> None:
    """Joined, they are in one base at most."""
    store = MemoryStore()
    in_bases = [write_base(store, f"{i:012x}", files_of(segments)) for i, segments in enumerate(parts)]
    require(reduce(SegmentFiles.followed_by, in_bases), [segment for segments in parts for segment in segments])


def test_paths_are_stored_in_order() -> None:
    """So a refresh that looks for them among those of a listing sorts nothing, nor needs the other columns first."""
    segments = [[("c", 20), ("a", 30)], [("b", 40), ("a", 50)]]
    base = write_base(MemoryStore(), "0" * 12, files_of(segments)).base
    assert base is not None
    assert base.files.ordered_paths.to_pylist() == ["a", "a", "b", "c"]
    assert "arrays" not in vars(base.files)
    assert base.files.path.to_pylist() == ["c", "a", "b", "a"]
    assert base.files.column("size").tolist() == [20, 30, 40, 50]


def test_a_base_is_due_where_many_files_are_in_none_or_few_of_its_own_are_used() -> None:
    most = base_file.MOST_OWN
    many = files_of([[(f"{i:06}", 20)] for i in range(most + 1)])
    assert is_base_due(many) and not is_base_due(many.take(np.arange(most)))
    in_base = write_base(MemoryStore(), "0" * 12, many)
    assert not is_base_due(in_base) and in_base.of_base == most + 1
    assert not is_base_due(in_base.take(np.arange(most // 2 + 1)))
    assert is_base_due(in_base.take(np.arange(most // 2)))
    assert not is_base_due(in_base.followed_by(many.take(np.arange(most))))
    assert is_base_due(in_base.followed_by(many))
