"""Byte ranges of a file: exactly the bytes asked for, by few requests, and never fewer bytes in silence."""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import pairwise
from unittest.mock import patch

import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.errors import InvalidParquet
from secateur.io.storage import byte_ranges
from secateur.io.storage.byte_ranges import LOCAL_GAP, REMOTE_GAP, gap_of, read_ranges
from tests.support.profiles import examples

DATA = bytes(i * i % 251 for i in range(3_000))
GAP, LONGEST = 40, 200  # of an object store, as the tests have them


class Recorded(io.BytesIO):
    """A file that records what is read, and may end before it says."""

    def __init__(self, data: bytes, missing: int = 0) -> None:
        super().__init__(data)
        self.reads: list[tuple[int, int]] = []
        self.missing = missing

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads.append((self.tell(), -1 if size is None else size))
        end = len(self.getbuffer()) - self.missing
        return super().read(size)[: max(0, end - self.reads[-1][0])]


def asked_for(longest: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Ranges of the data, in any order, of lengths up to `longest`."""
    offsets = st.integers(0, len(DATA))
    pairs = st.tuples(offsets, st.integers(0, longest))
    return st.lists(pairs.map(lambda pair: (pair[0], min(pair[1], len(DATA) - pair[0]))), max_size=12)


def slices(wanted: Sequence[tuple[int, int]]) -> list[bytes]:
    return [DATA[offset : offset + length] for offset, length in wanted]


@examples(300)
@given(wanted=asked_for(500), gap=st.sampled_from([0, 7, LOCAL_GAP]))
def test_a_local_disk_is_asked_once_for_what_is_close(wanted: list[tuple[int, int]], gap: int) -> None:
    file = Recorded(DATA)
    assert [bytes(data) for data in read_ranges(pa.PythonFile(file, mode="r"), wanted, gap)] == slices(wanted)
    assert file.reads == sorted(file.reads)
    for (start, length), (later, _) in pairwise(file.reads):
        assert later - (start + length) > gap
    assert len(file.reads) <= sum(1 for _, length in wanted if length)


@examples(300)
@given(wanted=asked_for(3 * LONGEST))
def test_an_object_store_is_asked_for_ranges_of_a_bounded_length(wanted: list[tuple[int, int]]) -> None:
    file = Recorded(DATA)
    with patch.object(byte_ranges, "LONGEST", LONGEST), patch.object(byte_ranges, "LOCAL_GAP", GAP - 1):
        assert [bytes(data) for data in read_ranges(pa.PythonFile(file, mode="r"), wanted, GAP)] == slices(wanted)
    assert all(0 < length <= LONGEST for _, length in file.reads)
    assert sum(length for _, length in file.reads) <= sum(length + GAP for _, length in wanted)


def test_what_lies_between_is_not_kept() -> None:
    apart, side_by_side = [(0, 10), (20, 10)], [(0, 10), (10, 10)]
    for wanted, kept in ((apart, 10), (side_by_side, 20)):
        for part in read_ranges(pa.PythonFile(Recorded(DATA), mode="r"), wanted):
            assert len(part.obj if isinstance(part, memoryview) else part) == kept


@pytest.mark.parametrize("place", [(0, 3001), (3001, 0), (2999, 2), (-1, 1), (5, -1), (2**62, 2**62)])
def test_a_range_outside_of_the_file_is_refused_before_anything_is_read(place: tuple[int, int]) -> None:
    file = Recorded(DATA)
    with pytest.raises(InvalidParquet, match=f"{place[1]} bytes at {place[0]} do not lie in the file.* byte 3000"):
        read_ranges(pa.PythonFile(file, mode="r"), [(0, 10), place])
    assert file.reads == []


@pytest.mark.parametrize("gap", [LOCAL_GAP, REMOTE_GAP])
def test_a_file_that_ends_before_it_says_is_an_error(gap: int) -> None:
    file = pa.PythonFile(Recorded(DATA, missing=5), mode="r")
    assert read_ranges(file, [(0, 2_995)], gap) == [DATA[:2_995]]
    with pytest.raises(InvalidParquet, match="truncated: 5 bytes at 2990 instead of 10"):
        read_ranges(file, [(2_990, 10)], gap)


def test_only_a_local_disk_is_read_in_sequence() -> None:
    assert (
        gap_of(pafs.LocalFileSystem()) == LOCAL_GAP < gap_of(pafs.S3FileSystem(region="eu-central-1", anonymous=True))
    )
