"""What filters of texts hash: n-grams, all substrings of n bytes, and tokens, the words of a text.

A text that contains a needle contains all grams of the needle, and all its tokens but the first and the last, which
may be parts of longer ones. Both are bytes of UTF-8, hashed as they are; neither crosses from one text into the next. A
folded filter holds those of the folded texts (:mod:`secateur.index.filters.folding`). It may be asked only for folded
grams and
tokens that are ASCII: a text in lower case may hold other bytes in place of the others.

Texts are read in slices of their buffer, so memory is bounded also for a single long text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from secateur.index.filters import murmur3
from secateur.index.filters.folding import fold, foldable
from secateur.index.filters.hashing import DistinctHashes, Hashes, binary_slices, distinct_where_repeated, used_values

LEAST_GRAM, MOST_GRAM = 2, 8  # bytes: of which one word is made
MOST_TOKEN = 64  # bytes of a token that are hashed

_SLICE = 1 << 22  # bytes
_CHUNK = 1 << 14  # windows at once
_RECENT_BITS = 16  # of the table of recent grams: 512 KiB, which a core's cache holds
_SPREAD = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio, odd (Knuth, The Art of Computer Programming 3, 6.4)


def add_grams(found: DistinctHashes, texts: pa.Array, n: int, *, folded: bool) -> None:
    """Adds the hashes of all n-byte substrings of all texts that are not null, 2 <= n <= 8.

    Gives `found` up where texts are to be folded and one cannot be: a filter must not be made of it then. `texts` are
    strings or binaries, small or large, or a dictionary array of them.
    """
    if not LEAST_GRAM <= n <= MOST_GRAM:
        raise ValueError(f"grams have {LEAST_GRAM} to {MOST_GRAM} bytes, not {n}")
    recent = _Recent()
    for part in _parts(found, texts, folded=folded, behind=n - 1):
        grams = [recent.missing(words, whole) for words, whole in part.windows(n)]
        if grams:
            found.add(Hashes(*murmur3.hash_words(np.concatenate(grams), n)))


def add_tokens(found: DistinctHashes, texts: pa.Array, *, folded: bool) -> None:
    """Adds the hashes of all tokens of all texts that are not null; gives up where :func:`add_grams` does.

    A token is a longest run of digits, letters of ASCII, underscores and bytes of 0x80 and above. It is hashed by its
    first 64 bytes, so longer tokens may be taken for one another: ask for :func:`token_key`.
    """
    for part in _parts(found, texts, folded=folded, behind=MOST_TOKEN):
        found.add(Hashes(*murmur3.hash_slices(part.data, *part.tokens())))


def grams_within(text: bytes, n: int) -> list[bytes]:
    """The n-byte substrings of a needle, each once; none where it is shorter."""
    return list(dict.fromkeys(text[i : i + n] for i in range(len(text) - n + 1)))


def token_key(token: bytes) -> bytes:
    """The bytes by which a token is hashed."""
    return token[:MOST_TOKEN]


@dataclass(frozen=True)
class _Part:
    """A slice of the bytes of all texts: what starts in [begin, stop) is of this part.

    `borders` are the places where a text begins or ends: ascending integers, from 0 to the number of bytes.
    """

    data: np.ndarray
    borders: np.ndarray
    begin: int
    stop: int

    def windows(self, n: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The n bytes from every place on, in one word, and whether they are of one text: chunk by chunk."""
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
        """Where tokens start, and their lengths as far as they are hashed.

        One that does not end in these bytes has at least as many as are hashed, for so many are behind `stop`.
        """
        inside = _of_token(self.data)
        begins, ends = np.append(inside, False), np.append(False, inside)  # at a place, and behind it
        begins[1:-1] &= ~inside[:-1]
        ends[1:-1] &= ~inside[1:]
        begins[self.borders] = np.append(inside, False)[self.borders]
        ends[self.borders] = np.append(False, inside)[self.borders]
        starts = np.flatnonzero(begins)
        lengths = np.minimum(np.flatnonzero(ends) - starts, MOST_TOKEN)
        here = slice(*np.searchsorted(starts, [self.begin, self.stop]))
        return starts[here], lengths[here]


def _parts(found: DistinctHashes, texts: pa.Array, *, folded: bool, behind: int) -> Iterator[_Part]:
    """The bytes of all texts in slices, each with one byte before it and some behind, until `found` gives up."""
    data, starts, lengths = binary_slices(distinct_where_repeated(used_values(texts)).drop_null())
    if not len(starts):
        return
    borders = np.append(starts, starts[-1] + lengths[-1]).astype(np.int64)
    if folded and not foldable(data[borders[0] : borders[-1]]):
        found.abandon()
    for start in range(int(borders[0]), int(borders[-1]), _SLICE):
        if found.gave_up:
            return
        low, stop = max(start - 1, int(borders[0])), min(start + _SLICE, int(borders[-1]))
        high = min(stop + behind, int(borders[-1]))
        between = slice(*np.searchsorted(borders, [low, high + 1]))
        part = fold(data[low:high]) if folded else data[low:high]
        yield _Part(part, borders[between] - low, start - low, stop - low)


def _of_token(data: np.ndarray) -> np.ndarray:
    """Which bytes are of tokens: bool of shape (n,)."""
    found = (data | 0x20) - np.uint8(ord("a")) < 26  # modulo 256
    found |= data - np.uint8(ord("0")) < 10
    found |= data == ord("_")
    found |= data >= 0x80
    return found


class _Recent:
    """A table of grams that came before, by which most of those that come again are passed over.

    It forgets: two grams of one place drive each other out, and are then hashed again.
    """

    def __init__(self) -> None:
        self._table = np.zeros(1 << _RECENT_BITS, np.uint64)
        self._table[0] = 1  # which is of another place, as is 0 for all other places: no gram seems to have come

    def missing(self, grams: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """The chosen of some grams without those in the table, into which they come."""
        places = grams * _SPREAD
        places >>= 64 - _RECENT_BITS
        places = places.view(np.int64)
        new = self._table.take(places, mode="clip") != grams
        new &= chosen
        positions = np.flatnonzero(new)
        grams = grams.take(positions)
        self._table[places.take(positions)] = grams
        return grams
