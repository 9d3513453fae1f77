"""Looking for one value in many bloom filters: bit-sliced, against filters laid one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, isqrt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from benchmarks.results import Ratio, Result, timed
from benchmarks.setting import Setting
from benchmarks.timing import race
from secateur.index import bitsliced, zonemap
from secateur.index.bitsliced import Hashes
from secateur.index.blocks import SegmentFilters
from secateur.index.codec import SEGMENT, Range, read_contents, read_rows
from secateur.index.model import BlockTable, IndexedColumn
from secateur.index.segment import BLOOM, BlockFilters, SegmentData, encode_segment, filters_of
from secateur.io.store import FileStore
from secateur.values import Kind

BLOCKS = 20_000
KEYS = 1_000  # distinct values per block; block b holds b * KEYS, b * KEYS + 1, ...
ABSENT = 2_000  # values looked for that no block holds
LIST = 20  # values looked for at once
FEW = 20  # distinct values per block, where filters are small
TRANSPOSED = 2_048  # blocks per call, a multiple of 8: bounds the memory
COLUMN = IndexedColumn(("key",), pa.int64())


@dataclass(frozen=True)
class Filters:
    """The filters of all blocks, block by block and bit-sliced, and the segments that hold them on disk."""

    probes: int
    log2_bits: int
    packed: np.ndarray  # uint8 of shape (blocks, bits / 8)
    sliced: np.ndarray  # uint8 of shape (bits, blocks / 8)
    segments: Sequence[SegmentFilters]


def needle_bloom(setting: Setting) -> Result:
    """One value, and a list of values, that one block holds; and how many blocks hold none of them and are kept."""
    n = setting.scaled(BLOCKS, least=64)
    directory = setting.prepared_index(f"bloom-{n}", lambda path: _write(path, n))
    filters = _opened(directory, n)
    rng = np.random.default_rng(8)
    ratios = []
    for count in (1, LIST):
        hashes = _hashes(rng.integers(0, n * KEYS, count))
        ratios += _speed(filters, n, hashes, "one value" if count == 1 else f"{count} values", setting)
    ratios += _false_positives(filters.sliced, n, KEYS)
    ratios += _false_positives(_sliced(np.load(directory / "few.npy")), n, FEW)
    sizes = {"blocks": n, "keys_per_block": KEYS, "probes": filters.probes, "bits": 1 << filters.log2_bits}
    return Result({**sizes, "segments": len(filters.segments)}, tuple(ratios))


def _speed(filters: Filters, n: int, hashes: Hashes, subject: str, setting: Setting) -> list[Ratio]:
    laid, sliced, indexed = race(
        [
            lambda: _probe_laid(filters, hashes),
            lambda: _probe_sliced(filters, n, hashes),
            lambda: _probe_segments(filters, hashes),
        ],
        setting.repetitions,
    )
    floor = "filters one after the other, numpy in memory"
    return [
        timed(f"{subject}: probe() of one matrix in memory", sliced, floor, laid),
        timed(f"{subject}: all segments, rows read from files", indexed, floor, laid),
        timed(f"{subject}: all segments, rows read from files", indexed, "one matrix in memory", sliced),
    ]


def _probe_laid(filters: Filters, hashes: Hashes) -> np.ndarray:
    """The answer of n filters that lie one after the other: k bytes of every filter for every value."""
    found = np.zeros(len(filters.packed), bool)
    for position in bitsliced.positions(hashes, filters.probes, filters.log2_bits):
        bits = (filters.packed[:, position >> 3] >> (position & 7).astype(np.uint8)) & 1
        found |= bits.all(axis=1)
    return found


def _probe_sliced(filters: Filters, n: int, hashes: Hashes) -> np.ndarray:
    return bitsliced.probe(hashes, filters.probes, filters.log2_bits, n, lambda rows: filters.sliced[rows])


def _probe_segments(filters: Filters, hashes: Hashes) -> np.ndarray:
    return np.concatenate([segment.may_contain(hashes) for segment in filters.segments])


def _false_positives(sliced: np.ndarray, n: int, distinct: int) -> list[Ratio]:
    """Blocks kept per absent value, against the rate asked for, and against what filters of this size should give."""
    probes, log2_bits = _shape(n, distinct)
    hashes = _hashes(-1 - np.arange(ABSENT))
    kept = 0
    for i in range(ABSENT):
        value = Hashes(hashes.first[i : i + 1], hashes.second[i : i + 1])
        kept += int(bitsliced.probe(value, probes, log2_bits, n, lambda rows: sliced[rows]).sum())
    subject = f"blocks wrongly kept per absent value, {distinct:,} keys in {1 << log2_bits:,} bits"
    theory = n * (1 - exp(-probes * distinct / (1 << log2_bits))) ** probes
    asked = n * bitsliced.rate_for(n, None)
    return [
        Ratio(subject, kept / ABSENT, "blocks", "n times the rate asked for", asked, goal=1.0),
        Ratio(subject, kept / ABSENT, "blocks", "n (1 - e^(-kd/m))^k, independent bits", theory),
    ]


def _shape(n: int, distinct: int) -> tuple[int, int]:
    """Probes and log2 of the bits of the filters in a table of n blocks with so many distinct values each."""
    probes = bitsliced.probes_for(bitsliced.rate_for(n, None))
    return probes, bitsliced.log2_bits_for(distinct, probes)


def _hashes(keys: np.ndarray) -> Hashes:
    return bitsliced.hash_values(pa.array(keys))


def _write(directory: Path, n: int) -> None:
    """The filters of every block as arrays, and segments of about the square root of n blocks."""
    packed = _packed(n, KEYS)
    np.save(directory / "packed.npy", packed)
    np.save(directory / "few.npy", _packed(n, FEW))
    size = isqrt(n)
    for start in range(0, n, size):
        mine = packed[start : start + size]
        data = encode_segment(_segment(mine, *_shape(n, KEYS))).data
        (directory / f"{start:09d}-{len(mine)}.segment").write_bytes(data)


def _packed(n: int, distinct: int) -> np.ndarray:
    """The filters of n blocks with `distinct` keys each, block by block."""
    probes, log2_bits = _shape(n, distinct)
    blocks = (_hashes(np.arange(b * distinct, (b + 1) * distinct)) for b in range(n))
    return np.stack([bitsliced.build_filter(hashes, probes, log2_bits) for hashes in blocks])


def _sliced(packed: np.ndarray) -> np.ndarray:
    """Filters as one matrix by bit position, made from a bounded number of blocks at a time."""
    parts = [packed[start : start + TRANSPOSED] for start in range(0, len(packed), TRANSPOSED)]
    return np.hstack([bitsliced.transpose(list(part)) for part in parts])


def _segment(packed: np.ndarray, probes: int, log2_bits: int) -> SegmentData:
    n = len(packed)
    blocks = BlockTable(
        np.zeros(n, np.int32), np.arange(n, dtype=np.int32), np.full(n, KEYS, np.int64), np.full(n, 8 * KEYS, np.int64)
    )
    filters = BlockFilters(np.full(n, log2_bits, np.int8), list(packed), probes)
    return SegmentData([("data.parquet", 1, 1)], blocks, [COLUMN], [zonemap.unknown(Kind.WORD, n)], {}, {0: filters})


def _opened(directory: Path, n: int) -> Filters:
    packed = np.load(directory / "packed.npy")
    paths = sorted(directory.glob("*.segment"))
    segments = [_open_segment(path, int(path.stem.split("-")[1])) for path in paths]
    return Filters(*_shape(n, KEYS), packed, _sliced(packed), segments)


def _open_segment(path: Path, n: int) -> SegmentFilters:
    store = FileStore(pafs.LocalFileSystem(), str(path.parent))

    def read(offset: int, size: int) -> bytes:
        return store.read(path.name, offset, size)

    def read_many(ranges: Sequence[Range]) -> list[bytes]:
        return store.read_many(path.name, ranges)

    contents = read_contents(path.name, SEGMENT, path.stat().st_size, read)
    table = filters_of(contents.arrays(f"{BLOOM}/0", read), n, path.name)

    def rows(size: int, chosen: np.ndarray) -> np.ndarray:
        return read_rows(table.matrices[size], chosen, read_many, path.name)

    return SegmentFilters(table.probes, table.log2_bits, rows)
