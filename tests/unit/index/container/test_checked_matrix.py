"""Matrices: whatever rows and strips are read are those that were written, or an IndexFault.

Of every shape: none, narrow rows that share bands, rows of several strips; one row, some, or all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from unittest.mock import patch

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from secateur.errors import IndexFault
from secateur.index.container import checked_matrix
from secateur.index.container.checked_matrix import BAND, CHECKSUM, STRIP, Matrix, Range, encode_rows, read_rows
from tests.support.profiles import examples

AT = 24  # where a matrix lies in its file
WIDTHS = [1, 2, 3, 7, 8, 100, 255, 256, 257, 511, 512, 513, 1000, STRIP - 1, STRIP, STRIP + 1, 2 * STRIP, 3 * STRIP + 5]
ROWS = [0, 1, 2, 3, 5, 63, 64, 65, 130]


@dataclass
class File:
    """The bytes of a file, and what was read of them."""

    data: bytes
    ranges: list[Range] = field(default_factory=list)

    def __call__(self, wanted: Sequence[Range]) -> list[bytes]:
        self.ranges += wanted
        assert all(at >= 0 and at + size <= len(self.data) for at, size in wanted)
        return [self.data[at : at + size] for at, size in wanted]

    def with_bytes(self, at: int, data: bytes) -> File:
        return File(self.data[:at] + data + self.data[at + len(data) :])


def random_rows(n: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, n, width]).integers(0, 256, (n, width), np.uint8)


def written(rows: np.ndarray) -> tuple[Matrix, File]:
    salt, parts = encode_rows(rows)
    return Matrix(AT, *rows.shape, salt), File(b"\xaa" * AT + b"".join(parts) + b"\xaa" * 40)


shapes = st.tuples(st.sampled_from(ROWS) | st.integers(0, 200), st.sampled_from(WIDTHS) | st.integers(1, 20)).filter(
    lambda shape: shape[0] * shape[1] < 1 << 20
)


@st.composite
def chosen_rows(draw: st.DrawFn, n: int) -> np.ndarray:
    """One row, some in any order and repeated, most of them, or all."""
    if not n:
        return np.zeros(0, np.int64)
    few = st.lists(st.integers(0, n - 1), max_size=6)
    one, all_of_them = st.integers(0, n - 1).map(lambda i: [i]), st.just(list(range(n)))
    most = st.integers(0, n - 1).map(lambda gone: [i for i in range(n) if i != gone])
    return np.array(draw(st.one_of(one, few, most, all_of_them)), np.int64)


@st.composite
def chosen_strips(draw: st.DrawFn, strips: int) -> range | None:
    """Some neighbouring strips of every row; None for all."""
    if draw(st.booleans()):
        return None
    first = draw(st.integers(0, strips - 1))
    return range(first, draw(st.integers(first + 1, strips)))


def part_of(rows: np.ndarray, strips: range | None) -> np.ndarray:
    return rows if strips is None else rows[:, strips.start * STRIP : strips.stop * STRIP]


# ---- there and back --------------------------------------------------------------------------------------------------


@examples(300)
@given(shapes, st.sampled_from([0.0, 1 / 16, 2.0]), st.sampled_from([0, 5_000, 1 << 26]), st.data())
def test_rows_are_read_as_they_were_written(
    shape: tuple[int, int], share: float, most: int, data: st.DataObject
) -> None:
    """Any rows, any strips of them, one by one and all at once: it never matters how."""
    rows = random_rows(*shape)
    placed, file = written(rows)
    chosen = data.draw(chosen_rows(shape[0]))
    strips = data.draw(chosen_strips(placed.strips))
    with patch.multiple(checked_matrix, WHOLE_SHARE=share, MOST_AT_ONCE=most):
        read = read_rows(placed, chosen, file, "it", strips)
    expected = part_of(rows, strips)[chosen]
    assert (read.dtype, read.shape) == (np.uint8, expected.shape)
    assert np.array_equal(read, expected)


@examples(200)
@given(shapes)
def test_a_matrix_lies_where_it_says(shape: tuple[int, int]) -> None:
    """As many bytes as are told; bands of no less than half of BAND bytes, strips of no more than STRIP."""
    placed, file = written(random_rows(*shape))
    assert len(file.data) == AT + placed.nbytes + 40
    assert placed.bands * placed.band_rows >= placed.rows > (placed.bands - 1) * placed.band_rows or not placed.rows
    assert placed.band_width <= max(BAND, placed.width)
    assert placed.band_width > BAND // 2 or placed.bands <= 1
    assert placed.stride == placed.band_width + CHECKSUM * -(-placed.band_width // STRIP)


@examples(150)
@given(shapes.filter(lambda shape: shape[0] > 0), st.data())
def test_no_more_is_read_than_has_to_be(shape: tuple[int, int], data: st.DataObject) -> None:
    """Of every row its band, or the strips that are asked for; at once where most bands are wanted."""
    placed, file = written(random_rows(*shape))
    chosen = data.draw(chosen_rows(shape[0]))
    strips = data.draw(chosen_strips(placed.strips))
    read_rows(placed, chosen, file, "it", strips)
    bands = np.unique(chosen // placed.band_rows)
    size = sum(size for _, size in file.ranges)
    of_one = len(part_of(np.zeros((1, placed.band_width)), strips)[0])
    of_one += CHECKSUM * (placed.strips if strips is None else len(strips))
    if len(file.ranges) == len(bands):
        assert size == len(bands) * of_one or len(bands) == 1
    else:
        assert len(file.ranges) == 1
        assert of_one == placed.stride
        assert size <= 16 * len(bands) * placed.stride


def test_a_row_over_a_million_blocks_is_read_in_part() -> None:
    """A strip of one of 128 KiB costs a strip."""
    rows = random_rows(3, 1 << 17)
    placed, file = written(rows)
    read = read_rows(placed, np.array([1]), file, "it", range(2, 3))
    assert np.array_equal(read, rows[1:2, 2 * STRIP : 3 * STRIP])
    assert file.ranges == [(AT + placed.stride + 2 * (STRIP + CHECKSUM), STRIP + CHECKSUM)]


def test_no_rows_and_no_width() -> None:
    for shape in ((0, 1), (0, 9000), (0, 0), (5, 0)):
        placed, file = written(random_rows(*shape))
        assert placed.nbytes == 0
        nothing = np.zeros(0, np.int64)
        assert read_rows(placed, nothing, file, "it").shape == (0, shape[1])
    assert read_rows(placed, np.arange(5), file, "it").shape == (5, 0)


@pytest.mark.parametrize("row", [-1, 5, 2**40])
def test_a_matrix_has_only_its_rows(row: int) -> None:
    file = File(b"")
    with pytest.raises(IndexFault, match="it has no row"):
        read_rows(Matrix(16, 5, 3, 0), np.array([0, row]), file, "it")
    assert file.ranges == []


# ---- harm ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (700, 1), (9, 100), (3, 257), (3, 600)])
@pytest.mark.parametrize("flip", [0x01, 0x80])
def test_every_byte_may_be_flipped(shape: tuple[int, int], flip: int) -> None:
    """Of checksums and of what fills the last band up too."""
    placed, file = written(random_rows(*shape))
    for at in range(AT, AT + placed.nbytes):
        harmed = file.with_bytes(at, bytes([file.data[at] ^ flip]))
        with pytest.raises(IndexFault, match="it does not match its checksum"):
            read_rows(placed, np.arange(shape[0]), harmed, "it")


@examples(200)
@given(shapes.filter(lambda shape: shape[0] > 0), st.data())
def test_a_flipped_bit_is_noticed_by_who_reads_it(shape: tuple[int, int], data: st.DataObject) -> None:
    """And by nobody else, who gets what was written."""
    rows = random_rows(*shape)
    placed, file = written(rows)
    chosen, strips = data.draw(chosen_rows(shape[0])), data.draw(chosen_strips(placed.strips))
    at = data.draw(st.integers(0, placed.nbytes - 1))
    harmed = file.with_bytes(AT + at, bytes([file.data[AT + at] ^ 1 << data.draw(st.integers(0, 7))]))
    band, within = divmod(at, placed.stride)
    is_read = band in chosen // placed.band_rows and (strips is None or within // (STRIP + CHECKSUM) in strips)
    if is_read:
        with pytest.raises(IndexFault, match=f"band {band} of it does not match its checksum"):
            read_rows(placed, chosen, harmed, "it", strips)
    else:
        assert np.array_equal(read_rows(placed, chosen, harmed, "it", strips), part_of(rows, strips)[chosen])


def strips_of(placed: Matrix) -> list[tuple[int, int, int]]:
    """Band, offset and size of every strip with its checksum."""
    return [
        (b, b * placed.stride + s * (STRIP + CHECKSUM), min(STRIP, placed.band_width - s * STRIP) + CHECKSUM)
        for b in range(placed.bands)
        for s in range(placed.strips)
    ]


@examples(150)
@given(st.sampled_from([(1030, 1), (9, 200), (4, 600), (3, 2 * STRIP), (2, 3 * STRIP)]), st.booleans(), st.data())
def test_a_strip_in_the_place_of_another_is_noticed(
    shape: tuple[int, int], of_another: bool, data: st.DataObject
) -> None:
    """Whole and sound with its checksum, of the same matrix or from its place in another: the seed tells."""
    (placed, file), (_, other) = written(random_rows(*shape)), written(random_rows(*shape, seed=1))
    spots = strips_of(placed)
    band, target, size = data.draw(st.sampled_from(spots))
    same_size = [at for _, at, strip_size in spots if strip_size == size and (of_another or at != target)]
    source = data.draw(st.sampled_from(same_size))
    taken = (other if of_another else file).data[AT + source : AT + source + size]
    harmed = file.with_bytes(AT + target, taken)
    with pytest.raises(IndexFault, match=f"band {band} of it does not match its checksum"):
        read_rows(placed, np.arange(shape[0]), harmed, "it")


@pytest.mark.parametrize("shape", [(5, 3), (2000, 1), (3, 700), (2, STRIP + 1)])
def test_a_matrix_in_the_place_of_another_is_noticed(shape: tuple[int, int]) -> None:
    """Each of its rows: what a file of the same layout has there."""
    (placed, _), (other, file) = written(random_rows(*shape)), written(random_rows(*shape, seed=1))
    assert placed[:3] == other[:3]
    for row in range(shape[0]):
        with pytest.raises(IndexFault, match="does not match its checksum"):
            read_rows(placed, np.array([row]), file, "it")


@pytest.mark.parametrize("change", [(0, 1, 0), (0, 0, 1), (8, 0, 0), (0, -1, 0), (0, 0, -1)])
@pytest.mark.parametrize("shape", [(40, 100), (40, 600), (9, STRIP)])
def test_a_matrix_of_another_shape_is_noticed(shape: tuple[int, int], change: tuple[int, int, int]) -> None:
    """Whoever is told a wrong width or place reads nothing; more or fewer rows move none."""
    rows = random_rows(*shape)
    placed, file = written(rows)
    at, more_rows, more_width = change
    claimed = Matrix(placed.at + at, placed.rows + more_rows, placed.width + more_width, placed.salt)
    if at or more_width:
        with pytest.raises(IndexFault, match="does not match its checksum"):
            read_rows(claimed, np.arange(3), file, "it")
    else:
        assert np.array_equal(read_rows(claimed, np.arange(3), file, "it"), rows[:3])


# ---- golden ----------------------------------------------------------------------------------------------------------


def test_the_layout_golden() -> None:
    """Byte by byte: docs/format.md."""
    narrow = random_rows(3, 200)
    salt, stored = encode_rows(narrow)
    data = b"".join(stored)
    assert salt == xxhash.xxh3_64_intdigest(narrow.tobytes())
    bands = [narrow[:2].tobytes(), narrow[2:].tobytes()]
    sums = [xxhash.xxh3_64_intdigest(band, seed=salt + b & 2**64 - 1) for b, band in enumerate(bands)]
    assert data == b"".join(band + sum_.to_bytes(8, "little") for band, sum_ in zip(bands, sums, strict=True))
    wide = random_rows(2, STRIP + 5)
    salt, stored = encode_rows(wide)
    data = b"".join(stored)
    parts = [wide[r, s * STRIP : (s + 1) * STRIP].tobytes() for r in range(2) for s in range(2)]
    sums = [xxhash.xxh3_64_intdigest(part, seed=salt + i & 2**64 - 1) for i, part in enumerate(parts)]
    assert data == b"".join(part + sum_.to_bytes(8, "little") for part, sum_ in zip(parts, sums, strict=True))
