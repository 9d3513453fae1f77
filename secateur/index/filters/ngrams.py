"""What text filters hash: n-grams (all substrings of n bytes) and tokens (the words of a text).

A text that contains a needle contains all grams of the needle, and all its tokens except the first and last, which may
be parts of longer ones. Both are UTF-8 bytes: a gram is hashed as a little-endian integer, a token as its bytes;
neither crosses from one text into the next. A folded filter holds those of the folded texts
(:mod:`secateur.index.filters.folding`). It may only be asked for folded grams and tokens that are ASCII: a lower-case
text may have other bytes in place of non-ASCII ones.

Texts are read in slices of their buffer, so memory is bounded even for a single long text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from secateur.index.filters import murmur3
from secateur.index.filters.folding import fold, foldable
from secateur.index.filters.hashing import (
    DistinctHashes,
    Recent,
    binary_slices,
    distinct_where_repeated,
    hash_texts,
    hash_words,
    used_values,
    without_most_repeated,
)

LEAST_GRAM, MOST_GRAM = 2, 8  # bytes; a gram fits into one word
MOST_TOKEN = 64  # bytes of a token that are hashed

_FIRST_BYTES = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)  # of a word, by their number

_SLICE = 1 << 19  # bytes: what is computed of them stays in a core's cache
_CHUNK = 1 << 14  # windows processed at once


def add_grams(distinct: DistinctHashes, texts: pa.Array, n: int, *, folded: bool) -> None:
    """Add the hashes of all n-byte substrings of all non-null texts, 2 <= n <= 8.

    Makes `distinct` give up if texts must be folded and one cannot be: no filter may be built from it then. `texts` are
    strings or binaries, small or large, or a dictionary array of them.
    """
    if not LEAST_GRAM <= n <= MOST_GRAM:
        raise ValueError(f"grams have {LEAST_GRAM} to {MOST_GRAM} bytes, not {n}")
    recent = Recent()
    for part in _parts(distinct, texts, folded=folded, behind=n - 1):
        grams = [recent.missing(words, whole) for words, whole in part.windows(n)]
        if grams:
            distinct.add(hash_words(np.concatenate(grams)))


def add_tokens(distinct: DistinctHashes, texts: pa.Array, *, folded: bool) -> None:
    """Add the hashes of all tokens of all non-null texts; gives up where :func:`add_grams` does.

    A token is a maximal run of digits, ASCII letters, underscores and bytes of 0x80 and above. Only its first 64 bytes
    are hashed, so longer tokens may be confused: look up :func:`token_key`.
    """
    recent = Recent()
    for part in _parts(distinct, texts, folded=folded, behind=MOST_TOKEN):
        tokens = _without_most_repeated(part.data, *part.tokens(), recent)
        distinct.add(without_most_repeated(murmur3.hash_slices(part.data, *tokens)))


def grams_within(text: bytes, n: int) -> list[bytes]:
    """Return the distinct n-byte substrings of a needle; none if it is shorter."""
    return list(dict.fromkeys(text[i : i + n] for i in range(len(text) - n + 1)))


def hash_parts(parts: Sequence[bytes], *, grams: bool) -> np.ndarray:
    """Return the hashes of grams, or of tokens as :func:`token_key` gives them, in order."""
    if not grams:
        return hash_texts(parts)
    return hash_words(np.array([int.from_bytes(part, "little") for part in parts], np.uint64))


def token_key(token: bytes) -> bytes:
    """Return the bytes by which a token is hashed."""
    return token[:MOST_TOKEN]


@dataclass(frozen=True)
class _Part:
    """A slice of the bytes of all texts; grams and tokens that start in [begin, stop) belong to it.

    `borders` are the places where a text begins or ends: ascending integers, from 0 to the number of bytes.
    """

    data: np.ndarray
    borders: np.ndarray
    begin: int
    stop: int

    def windows(self, n: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield, chunk by chunk, the n bytes from every place as one word, and whether they belong to one text."""
        whole = np.ones(len(self.data), bool)
        for i in range(1, n):
            before = self.borders - i
            whole[before[before >= 0]] = False
        padded = np.append(self.data, np.zeros(8, np.uint8))
        words = np.ndarray(len(self.data), "<u8", padded, strides=(1,))
        stop = min(self.stop, len(self.data) - n + 1)
        for start in range(self.begin, stop, _CHUNK):
            chunk = slice(start, min(start + _CHUNK, stop))
            yield words[chunk] & ((1 << 8 * n) - 1), whole[chunk]

    def tokens(self) -> tuple[np.ndarray, np.ndarray]:
        """Return where tokens start, and their lengths up to the hashed limit.

        A token that continues past these bytes has the full hashed length, because that many bytes follow `stop`.
        """
        inside = _of_token(self.data)
        begins, ends = np.append(inside, False), np.append(False, inside)  # at a place, and after it
        begins[1:-1] &= ~inside[:-1]
        ends[1:-1] &= ~inside[1:]
        begins[self.borders] = np.append(inside, False)[self.borders]
        ends[self.borders] = np.append(False, inside)[self.borders]
        starts = np.flatnonzero(begins)
        lengths = np.minimum(np.flatnonzero(ends) - starts, MOST_TOKEN)
        here = slice(*np.searchsorted(starts, [self.begin, self.stop]))
        return starts[here], lengths[here]


def _parts(distinct: DistinctHashes, texts: pa.Array, *, folded: bool, behind: int) -> Iterator[_Part]:
    """Yield the bytes of all texts in slices, each with one byte before it and `behind` bytes after it.

    Stop when `distinct` gives up.
    """
    data, starts, lengths = binary_slices(distinct_where_repeated(used_values(texts)).drop_null())
    if not len(starts):
        return
    borders = np.append(starts, starts[-1] + lengths[-1]).astype(np.int64)
    if folded and not foldable(data[borders[0] : borders[-1]]):
        distinct.abandon()
    for start in range(int(borders[0]), int(borders[-1]), _SLICE):
        if distinct.gave_up:
            return
        low, stop = max(start - 1, int(borders[0])), min(start + _SLICE, int(borders[-1]))
        high = min(stop + behind, int(borders[-1]))
        between = slice(*np.searchsorted(borders, [low, high + 1]))
        part = fold(data[low:high]) if folded else data[low:high]
        yield _Part(part, borders[between] - low, start - low, stop - low)


def _without_most_repeated(
    data: np.ndarray, starts: np.ndarray, lengths: np.ndarray, recent: Recent
) -> tuple[np.ndarray, np.ndarray]:
    """Remove most duplicates among tokens of up to eight bytes: such a token fits into a word, as none has a byte 0."""
    words = np.zeros(len(data) // 8 + 2, "<u8")
    words.view(np.uint8)[: len(data)] = data
    kept = []
    for begin in range(0, len(starts), _CHUNK):
        at, size = starts[begin : begin + _CHUNK], lengths[begin : begin + _CHUNK]
        shift = ((at & 7) << 3).view(np.uint64)
        low = at >> 3
        word = words.take(low, mode="clip")
        word >>= shift
        low += 1
        np.subtract(64, shift, out=shift)
        word |= words.take(low, mode="clip") << shift  # numpy shifts by 64 to 0
        word &= _FIRST_BYTES.take(size, mode="clip")
        is_long = size > 8
        new = recent.where_missing(word, ~is_long)
        kept.append(np.sort(np.append(new, np.flatnonzero(is_long))) + begin)
    chosen = np.concatenate([np.zeros(0, np.int64), *kept])
    return starts.take(chosen), lengths.take(chosen)


def _of_token(data: np.ndarray) -> np.ndarray:
    """Mark the bytes that belong to tokens: bool of shape (n,)."""
    is_part = (data | 0x20) - np.uint8(ord("a")) < 26  # modulo 256
    is_part |= data - np.uint8(ord("0")) < 10
    is_part |= data == ord("_")
    is_part |= data >= 0x80
    return is_part
