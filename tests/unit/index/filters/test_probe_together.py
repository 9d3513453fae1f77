"""Many matrices probed together give the columns that their bits give, in one request per file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.errors import IndexFault
from secateur.index.container import checked_matrix
from secateur.index.container.checked_matrix import Range
from secateur.index.filters import bands, probe_together
from secateur.index.filters.bands import FilesInTurn, have_short_rows
from secateur.index.filters.bloom_matrix import BloomMatrices
from secateur.index.filters.packed_rows import pack, row_bytes
from secateur.index.filters.probe_together import Probes, columns_of_all
from secateur.index.filters.size_class import own_class
from tests.support.profiles import examples
from tests.support.stores.index_files import Memory

COLUMNS = [1, 3, 7, 8, 9, 64, 100, 128, 333, 512, 600]


@dataclass(frozen=True)
class Matrices:
    """Matrices of random bits, of 16 to 64 rows, in parts that lie in a few files."""

    bits: list[np.ndarray]  # bool of shape (rows, columns)
    bloom_matrices: BloomMatrices
    store: Memory = field(repr=False)
    asked: list[tuple[str, list[Range]]] = field(default_factory=list)

    def read(self, name: str, ranges: Sequence[Range]) -> list[bytes]:
        self.asked.append((name, list(ranges)))
        return self.store.read_many(name, ranges)


def matrices_of(seed: int, count: int, share: float, gap: int) -> Matrices:
    random = np.random.default_rng(seed)
    contents = [b"before"] * int(random.integers(1, 4))
    bits, size_classes, parts = [], [], []
    for m in range(count):
        size = int(random.integers(4, 16))  # of a section
        bits.append(random.random((4 * size, int(random.choice(COLUMNS)))) < share)
        size_classes.append(own_class(4, size))
        cuts = np.unique(np.append(random.integers(0, 4 * size // 8, 2) * 8, [0, 4 * size])).tolist()
        for first, end in pairwise(cuts):
            rows = np.zeros((end - first, row_bytes(bits[m].shape[1])), np.uint8)
            rows[...] = np.packbits(bits[m][first:end], axis=1, bitorder="little")
            salt, stored = checked_matrix.encode_rows(pack(rows, bits[m].shape[1]))
            file = int(random.integers(0, len(contents)))
            signed = checked_matrix.signed_salt(salt)
            parts.append((m, first, end - first, file, len(contents[file]), signed))
            contents[file] += b"".join(stored) + bytes(int(random.integers(0, gap + 1)))
    store = Memory({f"filters/{i}": data for i, data in enumerate(contents)})
    columns = np.array([of_matrix.shape[1] for of_matrix in bits])
    every = np.arange(count)
    runs = [every, every * 0, np.array(size_classes), every * 0, columns]
    sizes = np.array([len(data) for data in contents])
    part_arrays = np.array(parts, np.int64).T.copy()
    table = BloomMatrices(list(store.data), sizes, np.array(size_classes), columns, *part_arrays, *runs)
    return Matrices(bits, table, store)


def probes_of(matrices: Matrices, random: np.random.Generator, alternatives: int, rows: int) -> list[Probes]:
    """Rows asked of all matrices, or of some and then of others."""
    order = random.permutation(len(matrices.bits))
    return [
        Probes(chosen, np.stack([random.integers(0, len(matrices.bits[m]), (alternatives, rows)) for m in chosen]))
        for chosen in np.array_split(order, int(random.integers(1, 3)))
        if len(chosen)
    ]


@examples(200)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 12),
    share=st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]),
    alternatives=st.sampled_from([0, 1, 2, 9]),
    rows=st.integers(1, 6),
    limits=st.tuples(st.sampled_from([0, 1, 20, 1 << 10]), st.sampled_from([-1, 0, 40, 1 << 12])),
)
def test_columns_are_those_with_all_bits(
    seed: int, count: int, share: float, alternatives: int, rows: int, limits: tuple[int, int]
) -> None:
    matrices = matrices_of(seed, count, share, 60)
    asked = probes_of(matrices, np.random.default_rng(seed), alternatives, rows)
    with patch.object(probe_together, "GATHERED", limits[0]), patch.object(bands, "NEAR", limits[1]):
        columns = columns_of_all(matrices.bloom_matrices, asked, FilesInTurn(matrices.read))
    for probes, of_probes in zip(asked, columns, strict=True):
        expected = [
            (m, column, alternative)
            for m, of_matrix in zip(probes.matrix.tolist(), probes.rows, strict=True)
            for alternative, wanted in enumerate(of_matrix)
            for column in np.flatnonzero(matrices.bits[m][wanted].all(axis=0)).tolist()
        ]
        assert sorted(zip(*(array.tolist() for array in of_probes), strict=True)) == sorted(expected)
    names = [name for name, _ in matrices.asked]
    assert len(set(names)) == len(names)
    read = sum(size for _, ranges in matrices.asked for _, size in ranges)
    assert read <= sum(map(len, matrices.store.data.values()))


@examples(100)
@given(seed=st.integers(0, 2**32 - 1), at=st.integers(0, 2**20), bit=st.integers(0, 7))
def test_c36_a_flipped_bit_is_a_fault_where_it_is_used(seed: int, at: int, bit: int) -> None:
    """All bits are asked for: whatever byte of a matrix is changed, it is seen."""
    matrices = matrices_of(seed, 4, 0.5, 0)
    asked = [Probes(np.array([m]), np.arange(len(matrices.bits[m]))[None, None]) for m in range(4)]
    name = list(matrices.store.data)[at % len(matrices.store.data)]
    data = bytearray(matrices.store.data[name])
    if len(data) == len(b"before"):
        return
    place = len(b"before") + at % (len(data) - len(b"before"))
    data[place] ^= 1 << bit
    matrices.store.data[name] = bytes(data)
    with pytest.raises(IndexFault, match=name):
        columns_of_all(matrices.bloom_matrices, asked, FilesInTurn(matrices.read))


def test_rows_of_several_strips_are_not_short() -> None:
    matrices = matrices_of(1, 2, 0.5, 0)
    of_each = np.array([8 * checked_matrix.STRIP, 8 * checked_matrix.STRIP + 1])
    table = BloomMatrices(**{**vars(matrices.bloom_matrices), "columns": of_each})
    assert have_short_rows(table, np.arange(2)).tolist() == [True, False]
