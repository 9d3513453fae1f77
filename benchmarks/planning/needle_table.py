"""The table of the look-ups, with values that one of its blocks holds and values that no block holds."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import secateur as sec
from benchmarks.planning.synthetic import KEY_SPACE, Shape, blocks_between, open_synthetic, write_index
from benchmarks.planning.synthetic_table import FILE_BLOCKS, SyntheticTable
from benchmarks.setting import Setting
from secateur.index.filters.bloom import positions
from secateur.index.filters.bloom_matrix import BloomMatrices
from secateur.index.filters.hashing import hash_keys
from secateur.index.filters.packed_rows import rows_packed
from secateur.index.filters.size_class import shape_of
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.questions import Values
from secateur.scan import Scan
from secateur.values.kinds import Kind

BLOCKS = 1_000_000
NEEDLES = 20_000  # values of each kind, kept beside the index
Read = tuple[str, int, int]  # file, offset, size
USER = Field(("user_id",), pa.int64())


@dataclass(frozen=True)
class NeedleTable:
    """A table with a filter of `user_id`, which spans all values in every block; and the directory of its index."""

    table: SyntheticTable
    shape: Shape
    directory: Path
    value: np.ndarray  # values that one block holds
    block: np.ndarray  # that block
    absent: np.ndarray  # values that no block holds

    def __len__(self) -> int:
        return self.shape.blocks

    def prune(self, predicate: str | Predicate) -> Scan:
        """Prune by a predicate: the call that is measured."""
        return sec.prune(self.table, predicate, strict=True, session_time_zone="UTC")

    def find(self, value: int) -> Scan:
        """The plan for one value."""
        return self.prune(sec.col("user_id") == value)

    def warm(self) -> None:
        """Load the zone maps of `user_id` and the tables of all blocks into memory."""
        self.prune(f"user_id > {KEY_SPACE // 2}")

    def probe(self, scan: Scan, values: np.ndarray) -> np.ndarray:
        """The blocks that filters leave for some values, in the catalog of an earlier plan."""
        catalog = scan.opened.catalog
        blocks = catalog.holders(Values(USER, USER.type, np.unique(values)), catalog.everywhere(None))
        assert blocks is not None
        return blocks

    def bloom_matrices(self) -> BloomMatrices:
        """The bloom matrices of the filter: one matrix over all blocks, unless the table is tiny."""
        snapshot = self.find(0).opened.catalog.snapshot
        assert snapshot is not None
        matrices = snapshot.bloom_matrices(0)
        assert matrices is not None
        return matrices


def needle_table(setting: Setting, blocks: int = BLOCKS) -> NeedleTable:
    """The table of so many blocks at the scale of the setting, its index written where it is missing."""
    shape = Shape(setting.scaled(blocks, least=400) // FILE_BLOCKS * FILE_BLOCKS, others=0, has_pages=False)
    directory = setting.prepared_index(f"needles-{shape.blocks}", partial(_write, shape=shape))
    with np.load(directory / "needles.npz") as needles:
        return NeedleTable(open_synthetic(directory, shape), shape, directory, **needles)


def _write(directory: Path, shape: Shape) -> None:
    write_index(directory, shape)
    value, block, absent = _needles(shape)
    np.savez(directory / "needles.npz", value=value, block=block, absent=absent)


def _needles(shape: Shape) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values that one block holds, with that block, in random order; and values that no block holds."""
    keys = np.concatenate([blocks_between(shape, *segment).keys for segment in shape.segments])
    count = np.bincount(keys.ravel(), minlength=KEY_SPACE)
    rng = np.random.default_rng(3)
    single = rng.permutation(np.flatnonzero(count[keys.ravel()] == 1))[:NEEDLES]
    absent = rng.permutation(np.flatnonzero(count == 0))[:NEEDLES]
    return keys.ravel()[single], single // keys.shape[1], absent


def rows_of(bloom_matrices: BloomMatrices, values: np.ndarray) -> Iterator[list[Read]]:
    """For every value, the rows of the widest matrix that a probe reads."""
    hashes, widest = hash_keys(values, Kind.WORD), int(bloom_matrices.columns.argmax())  # type: ignore[arg-type]
    shape = shape_of(int(bloom_matrices.size_class[widest]))
    for rows in positions(hashes, shape.probes, shape.bits):
        yield reads_of(bloom_matrices, widest, rows)


def reads_of(bloom_matrices: BloomMatrices, matrix: int, rows: np.ndarray) -> list[Read]:
    """Where rows of a matrix lie, checksums included."""
    reads, together = [], rows_packed(int(bloom_matrices.columns[matrix]))
    for part in np.flatnonzero(bloom_matrices.part_matrix == matrix).tolist():
        piece, first = bloom_matrices.part(part), int(bloom_matrices.first_row[part])
        of_part = rows[(rows >= first) & (rows < first + bloom_matrices.rows[part])] - first
        bands = np.unique(of_part // (together * piece.band_rows))
        name = bloom_matrices.file_name[int(bloom_matrices.file[part])]
        end = piece.at + piece.nbytes
        places = (piece.at + band * piece.stride for band in bands.tolist())
        reads += [(name, at, min(piece.stride, end - at)) for at in places]
    return reads


def and_of_rows(directory: Path, ranges: Sequence[Read]) -> np.ndarray:
    """The floor of a probe: the rows read and ANDed as they lie; each file is opened once."""
    files: dict[str, int] = {}
    conjunction = None
    for name, at, size in ranges:
        if name not in files:
            files[name] = os.open(directory / name, os.O_RDONLY)
        row = np.frombuffer(os.pread(files[name], size, at), np.uint8)
        conjunction = row if conjunction is None else conjunction[: len(row)] & row[: len(conjunction)]
    for descriptor in files.values():
        os.close(descriptor)
    assert conjunction is not None
    return np.flatnonzero(conjunction)
