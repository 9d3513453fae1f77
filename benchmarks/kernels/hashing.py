"""Hashing columns, n-grams and tokens for filters, against a loop over mmh3."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import mmh3
import numpy as np
import pyarrow as pa

from benchmarks.results import Ratio, Result, timed
from benchmarks.setting import Setting
from benchmarks.timing import race
from secateur.index.filters.hashing import DistinctHashes, distinct, hash_present
from secateur.index.filters.ngrams import add_grams, add_tokens, grams_within

KEYS = 500_000
REPEATED = 100  # times
LOOPED = 10  # the loop gets one text in so many
_TOKEN = re.compile(rb"[0-9A-Za-z_\x80-\xff]+")


def hashing(setting: Setting) -> Result:
    """Columns of several kinds, and lines of a log: the vectorised MurmurHash3, each value once."""
    n = setting.scaled(KEYS, least=100)
    numbers = np.random.default_rng(5).integers(0, 2**60, n)
    words = pa.array(numbers)
    texts = pa.array([f"user-{number:031d}" for number in numbers.tolist()])
    some = pa.array(np.arange(n) % max(1, n // REPEATED))
    lines = _lines(numbers)
    return Result(
        {"keys": n, "bytes of lines": sum(map(len, lines))},
        (
            _columns("bigint", words, _little_endian(numbers, 8), setting),
            _columns("ascending bigint", pa.array(np.sort(numbers)), _little_endian(numbers, 8), setting),
            _columns("decimal(38, 0)", words.cast(pa.decimal128(38, 0)), _little_endian(numbers, 16), setting),
            _columns("string of 36 bytes", texts, _encoded(texts), setting),
            _columns(f"string, each {REPEATED} times", texts.take(some), _encoded(texts.take(some)), setting),
            _lines_hashed("grams of 3", lines, lambda hashes, a: add_grams(hashes, a, 3, folded=True), _grams, setting),
            _lines_hashed(
                "tokens", lines, lambda hashes, a: add_tokens(hashes, a, folded=True), _TOKEN.findall, setting
            ),
        ),
    )


def _lines(numbers: np.ndarray) -> list[bytes]:
    """Log lines with much repetition."""
    return [
        b"2026-01-01T%02d:%02d:%02dZ INFO [orders] Request completed path=/api/v2/items user=%d took=%dms"
        % (number % 24, number % 60, number % 59, number % 100_003, number % 997)
        for number in numbers.tolist()
    ]


def _grams(line: bytes) -> list[bytes]:
    return grams_within(line.lower(), 3)


def _little_endian(numbers: np.ndarray, width: int) -> list[bytes]:
    return [number.to_bytes(width, "little", signed=True) for number in numbers.tolist()]


def _encoded(texts: pa.Array) -> list[bytes]:
    return [text.encode() for text in texts.to_pylist()]


def _columns(name: str, values: pa.Array, canonical: Sequence[bytes], setting: Setting) -> Ratio:
    """Distinct hashes of a column, against a loop over bytes made beforehand."""
    vectorised, loop = race([lambda: distinct(hash_present(values)), lambda: _loop(canonical)], setting.repetitions)
    return timed(f"distinct hashes of {name}", vectorised, "loop of mmh3 over ready bytes", loop)


def _lines_hashed(
    name: str,
    lines: list[bytes],
    add: Callable[[DistinctHashes, pa.Array], None],
    parts: Callable[[bytes], list[bytes]],
    setting: Setting,
) -> Ratio:
    """All lines vectorised, against one in ten by a loop."""
    column = pa.array(lines, pa.binary())

    def vectorised() -> np.ndarray | None:
        hashes = DistinctHashes()
        add(hashes, column)
        return hashes.distinct()

    def loop() -> list[tuple[int, int]]:
        return _loop({part for line in lines[::LOOPED] for part in parts(line)})

    times = race([vectorised, loop], setting.repetitions)
    return timed(f"{name} of lines", times[0], f"loop over one in {LOOPED} lines", times[1])


def _loop(values: Sequence[bytes] | set[bytes]) -> list[tuple[int, int]]:
    hash64 = mmh3.hash64
    return [hash64(value, signed=False) for value in values]
