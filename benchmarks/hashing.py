"""Hashing keys for bloom filters, against a loop over mmh3."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mmh3
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.results import Ratio, Result, timed
from benchmarks.setting import Setting
from benchmarks.timing import race
from secateur.index.bitsliced import hash_values

KEYS = 500_000


def hashing(setting: Setting) -> Result:
    """Distinct values hashed: bigint and wide decimals by the vectorised MurmurHash3, strings by the loop within."""
    n = setting.scaled(KEYS, least=100)
    numbers = np.random.default_rng(5).integers(0, 2**60, n)
    words = pa.array(numbers)
    wide = pa.array(numbers).cast(pa.decimal128(38, 0))
    texts = pa.array([f"user-{number:020d}" for number in numbers.tolist()])
    repeated = texts.take(pa.array(np.arange(n) % max(1, n // 100)))
    return Result(
        {"keys": n},
        (
            *_against_loop("bigint", words, _little_endian(numbers, 8), lambda: np.unique(numbers), setting),
            *_against_loop("decimal(38, 0)", wide, _little_endian(numbers, 16), None, setting),
            *_against_loop("string", texts, _encoded(texts), lambda: pc.unique(texts), setting),
            *_against_loop(
                "string, each 100 times", repeated, _encoded(repeated), lambda: pc.unique(repeated), setting
            ),
        ),
    )


def _little_endian(numbers: np.ndarray, width: int) -> list[bytes]:
    return [number.to_bytes(width, "little", signed=True) for number in numbers.tolist()]


def _encoded(texts: pa.Array) -> list[bytes]:
    return [text.encode() for text in texts.to_pylist()]


def _against_loop(
    name: str, values: pa.Array, canonical: Sequence[bytes], distinct: Callable[[], object] | None, setting: Setting
) -> list[Ratio]:
    """hash_values() against the loop over bytes that are ready; it also finds the distinct values, shown apart."""

    def loop() -> list[tuple[int, int]]:
        hash64 = mmh3.hash64
        return [hash64(value, signed=False) for value in canonical]

    contenders = [lambda: hash_values(values), loop, *([distinct] if distinct else [])]
    timings = race(contenders, setting.repetitions)
    subject = f"hash_values() of {name}"
    ratios = [timed(subject, timings[0], "loop of mmh3 over ready bytes", timings[1])]
    return ratios if len(timings) < 3 else [*ratios, timed(subject, timings[0], "finding the distinct", timings[2])]
