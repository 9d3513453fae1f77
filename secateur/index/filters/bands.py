"""Read rows of many bloom matrices together: each file is asked once, and nothing is done in Python per matrix.

Blocks with different numbers of values have filters of many sizes, each in a matrix of a few columns. A look-up of one
value then needs some hundred rows of a few bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import NamedTuple, Protocol

import numpy as np
import xxhash

from secateur.concurrency import Result, Wanted, in_turn
from secateur.errors import IndexFault
from secateur.index.container.checked_matrix import CHECKSUM, STRIP, Range
from secateur.index.filters.bloom_matrix import BloomMatrices
from secateur.integers import distinct_and_places

NEAR = 1 << 12  # bytes between bands that are read with them: on a local disk they cost less than another call
_HALF = 32  # bits of the second number of a key: rows are fewer than 2^27, and so are columns


class FilterFiles(Protocol):
    """The filter files of an index."""

    def read(self, name: str, ranges: Sequence[Range]) -> Sequence[bytes]:
        """Read ranges of a file. Raises IndexFault."""

    def concurrently(self, read: Callable[[Wanted], Result], wanted: Sequence[Wanted]) -> list[Result]:
        """Return `read` of everything wanted, in order, perhaps several at a time."""


@dataclass(frozen=True)
class FilesInTurn:
    """Filter files that are read one after the other."""

    read_many: Callable[[str, Sequence[Range]], Sequence[bytes]]

    def read(self, name: str, ranges: Sequence[Range]) -> Sequence[bytes]:
        """Read ranges of a file."""
        return self.read_many(name, ranges)

    def concurrently(self, read: Callable[[Wanted], Result], wanted: Sequence[Wanted]) -> list[Result]:
        """Return `read` of everything wanted, in order."""
        return in_turn(read, wanted)


class BitRows(NamedTuple):
    """Rows of bits within bytes that were read."""

    data: np.ndarray  # uint8; a byte follows the last row
    begin: np.ndarray  # the bit of `data` with which each row begins: int64


class _Bands(NamedTuple):
    """Bands of rows: arrays of shape (n,)."""

    file: np.ndarray
    at: np.ndarray
    end: np.ndarray
    seed: np.ndarray  # of their checksums, uint64


def have_short_rows(bloom_matrices: BloomMatrices, matrices: np.ndarray) -> np.ndarray:
    """Whether a row of each of these matrices has a single checksum: bool of shape (n,)."""
    short: np.ndarray = bloom_matrices.columns[matrices] <= 8 * STRIP
    return short


def read_bit_rows(bloom_matrices: BloomMatrices, matrix: np.ndarray, row: np.ndarray, files: FilterFiles) -> BitRows:
    """Read the given rows of matrices with short rows, in any order: both arguments are int64 of shape (n,).

    Raises IndexFault.
    """
    shape = bloom_matrices.part_shapes
    first = bloom_matrices.part_matrix << _HALF | bloom_matrices.first_row
    part = np.searchsorted(first, matrix << _HALF | row, side="right") - 1
    packed, place = np.divmod(row - bloom_matrices.first_row[part], shape.together[part])
    band, within = np.divmod(packed, shape.band_rows[part])
    keys, which = distinct_and_places(part << _HALF | band)
    data, begin = _read(bloom_matrices.file_name, _bands(bloom_matrices, keys >> _HALF, keys & (1 << _HALF) - 1), files)
    byte = begin[which] + within * shape.width[part]
    return BitRows(data, 8 * byte + place * bloom_matrices.columns[matrix])


def _bands(bloom_matrices: BloomMatrices, part: np.ndarray, number: np.ndarray) -> _Bands:
    """Return where bands of parts lie; the last one of a part may be smaller than the others."""
    shape = bloom_matrices.part_shapes
    begin = number * shape.stride[part]
    size = np.minimum(shape.stride[part], shape.nbytes[part] - begin)
    at = bloom_matrices.at[part] + begin
    seed = bloom_matrices.salt[part].view(np.uint64) + number.view(np.uint64)
    return _Bands(bloom_matrices.file[part], at, at + size, seed)


def _read(names: Sequence[str], bands: _Bands, files: FilterFiles) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of bands and others, and where each band begins in them. Raises IndexFault."""
    order = np.lexsort((bands.at, bands.file))
    file, at, end, seed = (array[order] for array in bands)
    far = (np.diff(file, prepend=-1) != 0) | (at - np.append(0, end[:-1]) > NEAR)
    starts = np.flatnonzero(far)  # of the bands that are read at once
    ends = np.maximum.reduceat(end, starts) if len(starts) else end
    sizes = ends - at[starts]
    ranges = zip(file[starts].tolist(), at[starts].tolist(), sizes.tolist(), strict=True)
    joined = b"".join([*_contents(names, ranges, files), b"\0"])
    before = np.cumsum(sizes) - sizes
    begin = (before - at[starts])[np.cumsum(far) - 1] + at
    _check(joined, begin, end - at, seed, (names[i] for i in file.tolist()))
    place = np.empty(len(order), np.int64)
    place[order] = begin
    return np.frombuffer(joined, np.uint8), place


def _contents(names: Sequence[str], ranges: Iterable[tuple[int, int, int]], files: FilterFiles) -> Iterator[bytes]:
    """Return the bytes of ranges, each a file, an offset and a size, ordered by file. Raises IndexFault."""
    wanted = [
        (names[number], [(at, size) for _, at, size in of_file])
        for number, of_file in groupby(ranges, key=lambda range_: range_[0])
    ]
    return chain.from_iterable(files.concurrently(lambda file: files.read(*file), wanted))


def _check(data: bytes, begin: np.ndarray, size: np.ndarray, seed: np.ndarray, names: Iterator[str]) -> None:
    """Raise IndexFault for a band that does not match the checksum after it."""
    view, stops = memoryview(data), begin + size - CHECKSUM
    digest = xxhash.xxh3_64_intdigest
    digests = map(digest, [view[b:e] for b, e in zip(begin.tolist(), stops.tolist(), strict=True)], seed.tolist())
    stored = np.frombuffer(data, np.uint8)[stops[:, None] + np.arange(CHECKSUM)].view("<u8")[:, 0]
    wrong = np.fromiter(digests, np.uint64, len(seed)) != stored
    if wrong.any():
        name = list(names)[int(np.argmax(wrong))]
        raise IndexFault(f"a band of the bloom matrices in {name} does not match its checksum")
