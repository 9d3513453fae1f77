"""Bloom matrices: filters from fragments to look-ups, against the filters themselves, block by block.

Whatever the sizes of filters, fragments, parts and bloom matrices, and wherever segments have gone since: a column of a
matrix is the filter of its block, bit by bit, and a look-up finds the columns that a look at every column finds.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from unittest.mock import patch

import numpy as np
import pytest
from bitarray import bitarray
from hypothesis import example, given
from hypothesis import strategies as st

from secateur.errors import IndexFault
from secateur.index.container import checked_matrix
from secateur.index.container.checked_matrix import Range, read_rows
from secateur.index.container.index_file import SNAPSHOT
from secateur.index.filters import probe
from secateur.index.filters.bands import FilesInTurn
from secateur.index.filters.bloom import bits_per_value
from secateur.index.filters.bloom_fragment import BloomFragment, BloomFragmentWriter, read_fragment
from secateur.index.filters.bloom_matrix import (
    BloomMatrices,
    bloom_matrices_of,
    no_bloom_matrices,
)
from secateur.index.filters.hashing import hash_texts
from secateur.index.filters.probe import columns_with
from secateur.index.filters.size_class import NONE, native_class, own_class, shape_of
from secateur.index.filters.transpose import JOINED_SHARE, plan_files, plan_matrices
from secateur.index.read import matrix_columns
from secateur.index.read.lookup import holders
from secateur.index.read.matrix_columns import AskedHashes, MatrixReader, find_columns
from secateur.pruning.report import Faults
from tests.support.profiles import examples, takes_seconds
from tests.support.stores.filter_files import (
    FRAGMENT_BYTES,
    JOINED_BYTES,
    MATRIX_BLOCKS,
    PART_BYTES,
    Cuts,
    OwnShapes,
    bits_of,
    bloom_matrices_in,
    positions_of,
    text_hash,
)
from tests.support.stores.index_files import (
    ASKED,
    ONLY,
    SNAPSHOT_NAME,
    Arrays,
    Memory,
    everything_of_filters,
    memory_of,
    opened,
    sound_store,
    with_arrays,
)

NATIVE = 2  # an encoding, of filters whose bits come from elsewhere
WHERE = "here"


@dataclass(frozen=True)
class World:
    """Filters of the blocks of some segments, and the bloom matrices that were made of them."""

    store: Memory
    fpr: float
    segments: list[list[tuple[int, bitarray | None]]]  # of every block the code and the bits of its filter
    values: list[bytes]  # that some block holds
    fragments: list[list[BloomFragment]]
    size_classes: list[np.ndarray]
    bloom_matrices: BloomMatrices

    @property
    def block_count(self) -> np.ndarray:
        return np.array([len(segment) for segment in self.segments], np.int64)

    def read(self, name: str, ranges: Sequence[Range]) -> list[bytes]:
        return self.store.read_many(name, ranges)


@dataclass(frozen=True)
class Shape:
    """How many blocks segments have, and how their filters differ."""

    counts: Sequence[int]
    pool: Sequence[int]  # numbers of values that a block may have
    fpr: float
    cuts: Cuts
    seed: int


shapes = st.builds(
    Shape,
    counts=st.lists(st.sampled_from([0, 1, 2, 7, 8, 9, 17, 40]), min_size=1, max_size=6),
    pool=st.sampled_from([[3], [0, 5, 30], [1, 100], [0, 1, 4, 16, 60, 250]]),
    fpr=st.sampled_from([0.5, 0.1, 0.01]),
    cuts=st.builds(Cuts, *map(st.sampled_from, (MATRIX_BLOCKS, PART_BYTES, FRAGMENT_BYTES, JOINED_BYTES))),
    seed=st.integers(0, 2**32 - 1),
)


def world_of(shape: Shape) -> World:
    """Blocks without a filter, with one of their own values, and with one that their file had, in any order."""
    random, store, values = np.random.default_rng(shape.seed), Memory(), set()
    segments, fragments, size_classes = [], [], []
    unknown, foreign = random.choice([0.0, 0.2, 1.0], p=[0.5, 0.4, 0.1]), random.choice([0.0, 0.3])
    with shape.cuts.prevailing():
        for s, count in enumerate(shape.counts):
            writer, own_shapes = BloomFragmentWriter(store, f"fragments/{s}", shape.fpr), OwnShapes(shape.fpr)
            blocks: list[tuple[int, bitarray | None]] = []
            for _ in range(count):
                held = [b"%d" % v for v in random.choice(1000, int(random.choice(shape.pool)), replace=False)]
                if random.random() < unknown:
                    writer.add(None)
                    blocks.append((NONE, None))
                elif random.random() < foreign:
                    log2_bits = int(random.integers(8, 10))
                    bits = bits_of((positions_of(text_hash(v), 8, 1 << log2_bits) for v in held), 1 << log2_bits)
                    writer.add_native(NATIVE, np.array(bits.tolist(), np.uint8))
                    blocks.append((native_class(NATIVE, log2_bits), bits))
                else:
                    writer.add(hash_texts(held))
                    size_class, probes, size = own_shapes.of(len(held))
                    bits = bits_of((positions_of(text_hash(value), probes, size) for value in held), size)
                    blocks.append((size_class, bits))
                    values |= set(held)
            segments.append(blocks)
            size_classes.append(writer.finish())
            fragments.append(writer.fragments)
        kept = dict(store.data)
        bloom_matrices = bloom_matrices_in(store, "bloom matrix", fragments) or no_bloom_matrices()
    store.data |= kept  # to look at the fragments too
    return World(store, shape.fpr, segments, sorted(values), fragments, size_classes, bloom_matrices)


worlds = shapes.map(world_of)


def column_of(bits: bitarray, size: int) -> np.ndarray:
    """A filter as a column of a matrix of filters at least as large."""
    array = np.array(bits.tolist(), bool)
    assert size % len(array) == 0
    return np.repeat(array, size // len(array))


def dense(world: World, bloom_matrices: BloomMatrices, m: int, segments: Sequence[int]) -> np.ndarray:
    """A matrix as its runs say it is: bool of shape (rows, columns); `segments` has their numbers.

    A run of a segment that is no more is left out.
    """
    size = shape_of(int(bloom_matrices.size_class[m])).bits
    matrix = np.zeros((size, int(bloom_matrices.columns[m])), bool)
    for run in np.flatnonzero((bloom_matrices.run_matrix == m) & (bloom_matrices.segment >= 0)).tolist():
        blocks = world.segments[segments[int(bloom_matrices.segment[run])]]
        filters = [
            bits for size_class, bits in blocks if size_class == bloom_matrices.run_size_class[run] and bits is not None
        ]
        assert len(filters) == bloom_matrices.count[run]
        for i, bits in enumerate(filters):
            matrix[:, int(bloom_matrices.begin[run]) + i] = column_of(bits, size)
    return matrix


# ---- fragments, side by side -----------------------------------------------------------------------------------------


@examples(150)
@given(shapes)
def test_fragments_hold_the_filters_of_their_blocks(shape: Shape) -> None:
    """All blocks of one size class, in order; whole columns but in the last fragment. Any rows of them are read."""
    world, random = world_of(shape), np.random.default_rng(shape.seed)
    for blocks, fragments, size_classes in zip(world.segments, world.fragments, world.size_classes, strict=True):
        assert size_classes.dtype == np.int16
        assert size_classes.tolist() == [size_class for size_class, _ in blocks]
        for size_class in {size_class for size_class, _ in blocks} - {NONE}:
            of_class, bits = (
                [fragment for fragment in fragments if fragment.size_class == size_class],
                [b for c, b in blocks if c == size_class],
            )
            assert sum(fragment.blocks for fragment in of_class) == len(bits)
            assert all(fragment.blocks % 8 == 0 for fragment in of_class[:-1])
            assert all((fragment.width - 1) * fragment.bits < shape.cuts.fragment_bytes for fragment in of_class)
            for fragment in of_class:
                here, bits = bits[: fragment.blocks], bits[fragment.blocks :]
                expected = np.stack(
                    [column_of(block_bits, fragment.bits) for block_bits in here if block_bits is not None], axis=1
                )
                first, end = sorted(random.integers(0, fragment.bits + 1, 2).tolist())
                rows = read_fragment(world.store, fragment, first, end)
                assert rows.shape == (end - first, fragment.width)
                unpacked = np.unpackbits(rows, axis=1, bitorder="little")
                assert np.array_equal(unpacked[:, : fragment.blocks], expected[first:end])
                assert not unpacked[:, fragment.blocks :].any()


@examples(200)
@given(worlds)
def test_columns_of_matrices_are_the_filters_of_blocks(world: World) -> None:
    """Bit by bit, repeated where sizes are joined; nothing is set elsewhere."""
    bloom_matrices = world.bloom_matrices
    for m in range(len(bloom_matrices.size_class)):
        parts = np.flatnonzero(bloom_matrices.part_matrix == m).tolist()
        rows = []
        for p in parts:
            name = bloom_matrices.file_name[int(bloom_matrices.file[p])]

            def read(ranges: Sequence[Range], name: str = name) -> list[bytes]:
                return world.read(name, ranges)

            part = bloom_matrices.part(p)
            rows.append(read_rows(part, np.arange(part.rows), read, WHERE))
        expected = dense(world, bloom_matrices, m, range(len(world.segments)))
        bits = np.unpackbits(np.concatenate(rows), bitorder="little")
        assert np.array_equal(bits[: expected.size].reshape(expected.shape), expected)
        assert not bits[expected.size :].any()
        assert len(bits) - expected.size < 8 * expected.shape[1]


@examples(200)
@example(Shape([40, 40, 40], [1, 100], 0.1, Cuts(1 << 20, 1000, 1, 1 << 16), 380044))  # a size that no part divides
@given(shapes)
def test_bloom_matrices_are_laid_as_they_should_be(shape: Shape) -> None:
    """Every filter has one column; bloom matrices, parts and files are no larger than they may be."""
    world = world_of(shape)
    bloom_matrices, cuts = world.bloom_matrices, shape.cuts
    runs = list(
        zip(
            bloom_matrices.segment.tolist(),
            bloom_matrices.run_size_class.tolist(),
            bloom_matrices.count.tolist(),
            strict=True,
        )
    )
    size_classes = [
        (s, size_class) for s, blocks in enumerate(world.segments) for size_class, _ in blocks if size_class != NONE
    ]
    assert sorted(runs) == sorted(
        (s, size_class, size_classes.count((s, size_class))) for s, size_class in set(size_classes)
    )
    in_matrix = [bloom_matrices.segment[bloom_matrices.run_matrix == m] for m in range(len(bloom_matrices.size_class))]
    for m, segments in enumerate(in_matrix):
        held = sum(count for s, _, count in runs if segments.min() <= s <= segments.max())
        assert held <= cuts.matrix_blocks or len(set(segments.tolist())) == 1
        run_classes = bloom_matrices.run_size_class[bloom_matrices.run_matrix == m]
        assert all(shape_of(c).divides(shape_of(int(bloom_matrices.size_class[m]))) for c in run_classes.tolist())
        assert int(bloom_matrices.size_class[m]) in run_classes.tolist()
    parts = [bloom_matrices.part(p) for p in range(len(bloom_matrices.rows))]
    of_parts = np.array([part.rows * part.width for part in parts], np.int64)
    assert ((of_parts <= cuts.part_bytes) | np.array([part.rows == 1 for part in parts], bool)).all()
    in_files = np.bincount(bloom_matrices.file, of_parts, minlength=len(bloom_matrices.file_name))
    assert ((in_files <= cuts.part_bytes) | (np.bincount(bloom_matrices.file) == 1)).all()
    assert [world.store.size(name) for name in bloom_matrices.file_name] == bloom_matrices.file_size.tolist()


@examples(100)
@given(st.dictionaries(st.integers(1, 99), st.integers(1, 3000), min_size=1, max_size=8), st.sampled_from([0, 1 << 16]))
def test_few_small_filters_join_larger_ones(of_size: dict[int, int], least: int) -> None:
    """Where that costs little: all grow by a twenty-fifth, or by what does not matter."""
    counts = {own_class(4, size): blocks for size, blocks in of_size.items()}
    bits = {size_class: shape_of(size_class).bits for size_class in counts}
    cuts = Cuts(joined_bytes=least)
    with cuts.prevailing():
        rows = checked_matrix.Matrix(0, 1, 1, 0)
        plans = plan_matrices(
            [[BloomFragment("p", size_class, blocks, rows) for size_class, blocks in sorted(counts.items())]]
        )
    total = sum(blocks * bits[size_class] for size_class, blocks in counts.items()) / 8
    stored = sum(run.count * bits[plan.size_class] for plan in plans for run in plan.runs) / 8
    assert sorted((run.size_class, run.count) for plan in plans for run in plan.runs) == sorted(counts.items())
    assert all(bits[plan.size_class] % bits[run.size_class] == 0 for plan in plans for run in plan.runs)
    room = max(JOINED_SHARE * total, least) - (stored - total)
    assert room >= 0
    kept = {plan.size_class for plan in plans}
    for size_class in kept:  # with all that joined it, moving on would have cost more
        size = bits[size_class]
        greater = sorted(bits[other] for other in kept if bits[other] > size and bits[other] % size == 0)
        held = sum(run.count for plan in plans for run in plan.runs if plan.size_class == size_class)
        assert not greater or held * (greater[0] - size) / 8 > room


@pytest.mark.parametrize(
    ("blocks", "values"),
    [(1, (5_000, 5_001)), (16, (500, 501)), (200, (20, 21)), (200, (500, 501)), (100, (1, 1_000)), (300, (10, 200))],
)
def test_filters_take_what_their_rates_need(blocks: int, values: tuple[int, int]) -> None:
    """Within a tenth, and what describes a file, whose contents name each size."""
    random, store, fpr = np.random.default_rng(1), Memory(), 0.01
    counts = random.integers(*values, blocks)
    fragments = []
    for segment, first in enumerate(range(0, blocks, 64)):
        writer = BloomFragmentWriter(store, f"fragments/{segment}", fpr)
        for count in counts[first : first + 64].tolist():
            writer.add(random.integers(0, 2**63, count).astype(np.uint64))
        writer.finish()
        fragments.append(writer.fragments)
    bloom_matrices = bloom_matrices_in(store, "bloom matrix", fragments)
    assert bloom_matrices is not None
    needed = float(counts.sum()) * bits_per_value(fpr) / 8
    assert int(bloom_matrices.file_size.sum()) <= 1.1 * needed + 160 + 32 * len(bloom_matrices.size_class)


def test_no_filters_make_no_bloom_matrices() -> None:
    for fragments in ([], [[]], [[], []]):
        assert plan_matrices(fragments) == []
        assert plan_files([]) == []
        assert bloom_matrices_in(Memory(), "bloom matrix", fragments) is None
    assert no_bloom_matrices().take(np.array([0, 2]), 3).arrays()[1].tolist() == []


# ---- looking for values ----------------------------------------------------------------------------------------------


@contextmanager
def narrow(strip: int = 16) -> Iterator[None]:
    """Strips so small that rows over a few hundred blocks have many."""
    with patch.multiple(checked_matrix, STRIP=strip, BAND=strip), patch.object(probe, "STRIP", strip):
        yield


ROWS_CLASS = own_class(4, 16)  # 64 rows


@dataclass(frozen=True)
class Rows:
    """A matrix of its own: rows of random bits, of several strips, in several parts."""

    bits: np.ndarray  # bool
    bloom_matrices: BloomMatrices
    store: Memory = field(repr=False)

    def read(self, name: str, ranges: Sequence[Range]) -> list[bytes]:
        return self.store.read_many(name, ranges)


def random_rows(seed: int, columns: int, share: float, parts: int) -> Rows:
    random, store = np.random.default_rng(seed), Memory()
    bits = random.random((64, columns)) < share
    cut = 64 // parts
    width = np.lcm(columns, 8) // 8
    table = []
    for p in range(parts):
        packed = np.packbits(bits[p * cut : (p + 1) * cut], bitorder="little").reshape(-1, width)
        salt, stored = checked_matrix.encode_rows(packed)
        store.put(f"filters/{p}", b"before  " + b"".join(stored))
        table.append((0, p * cut, cut, p, 8, salt - (1 << 64) if salt >= 1 << 63 else salt))
    run = [np.array([number]) for number in (0, 0, ROWS_CLASS, 0, columns)]
    sizes = np.array([store.size(name) for name in store.data])
    one = [np.array([number]) for number in (ROWS_CLASS, columns)]
    return Rows(bits, BloomMatrices(list(store.data), sizes, *one, *np.array(table, np.int64).T.copy(), *run), store)


@examples(250)
@given(
    seed=st.integers(0, 2**32 - 1),
    width=st.sampled_from([1, 3, 61, 64, 68, 128, 200, 320, 333, 576]),
    share=st.sampled_from([0.0, 0.02, 0.3, 0.6, 1.0]),
    parts=st.sampled_from([1, 2, 8]),
    at_once=st.sampled_from([1, 3, 64]),
    most_read=st.sampled_from([1, 500, 1 << 28]),
    sample=st.sampled_from([1, 1 << 10]),
    data=st.data(),
)
def test_columns_with_all_rows_of_some_alternative(
    seed: int, width: int, share: float, parts: int, at_once: int, most_read: int, sample: int, data: st.DataObject
) -> None:
    """One alternative, some, and thousands, over all columns or some."""
    with narrow(), patch.multiple(probe, AT_ONCE=at_once, MOST_READ=most_read, SAMPLE=sample):
        rows = random_rows(seed, width, share, parts)
        random = np.random.default_rng(seed)
        n, k = data.draw(st.sampled_from([1, 1, 2, 7, 3000 if most_read > 1000 else 30])), data.draw(st.integers(1, 6))
        wanted = random.integers(0, 64, (n, k))
        first, end = sorted(data.draw(st.tuples(*2 * [st.integers(0, width)])))
        columns = columns_with(rows.bloom_matrices, 0, wanted, (first, end), FilesInTurn(rows.read))
    has_all = np.zeros(width, bool)
    for alternative in wanted:
        has_all |= rows.bits[alternative].all(axis=0)
    assert columns.tolist() == [column for column in np.flatnonzero(has_all).tolist() if first <= column < end]


@takes_seconds
def test_of_wide_rows_only_the_strips_asked_for_are_read() -> None:
    rows = random_rows(1, 64 * checked_matrix.STRIP, 0.5, 2)
    ranges: list[Range] = []

    def read(name: str, wanted: Sequence[Range]) -> list[bytes]:
        ranges.extend(wanted)
        return rows.read(name, wanted)

    bits = 8 * checked_matrix.STRIP
    columns = columns_with(rows.bloom_matrices, 0, np.array([[3, 60]]), (3 * bits + 5, 4 * bits), FilesInTurn(read))
    expected = np.flatnonzero(rows.bits[[3, 60]].all(axis=0))
    assert columns.tolist() == expected[(expected >= 3 * bits + 5) & (expected < 4 * bits)].tolist()
    assert [size for _, size in ranges] == [checked_matrix.STRIP + checked_matrix.CHECKSUM] * 2


def test_rows_that_many_values_share_are_read_once() -> None:
    """Thousands of values in filters of 64 bits."""
    rows = random_rows(1, 512, 0.5, 1)
    ranges: list[Range] = []

    def read(name: str, wanted: Sequence[Range]) -> list[bytes]:
        ranges.extend(wanted)
        return rows.read(name, wanted)

    wanted = np.random.default_rng(1).integers(0, 64, (5_000, 12))
    with patch.object(probe, "MOST_READ", 64 * 64):
        columns_with(rows.bloom_matrices, 0, wanted, (0, 512), FilesInTurn(read))
    assert sum(size for _, size in ranges) == rows.bloom_matrices.part(0).nbytes


def test_no_column_at_all() -> None:
    rows = random_rows(1, 128, 1.0, 1)
    assert columns_with(rows.bloom_matrices, 0, np.array([[3]]), (128, 128), FilesInTurn(rows.read)).tolist() == []
    assert columns_with(rows.bloom_matrices, 0, np.array([[3]]), (0, 0), FilesInTurn(rows.read)).tolist() == []


@examples(60)
@given(seed=st.integers(0, 99), part=st.integers(0, 3), bit=st.integers(0, 2**30), row=st.integers(0, 63))
def test_a_flipped_bit_is_a_fault_where_it_is_read(seed: int, part: int, bit: int, row: int) -> None:
    with narrow():
        rows = random_rows(seed, 192, 0.5, 4)
        name = rows.bloom_matrices.file_name[part]
        data = bytearray(rows.store.data[name])
        at = 8 + bit // 8 % (len(data) - 8)
        data[at] ^= 1 << bit % 8
        rows.store.data[name] = bytes(data)
        placed = rows.bloom_matrices.part(part)
        if row == part * 16 + (at - placed.at) // placed.stride:
            with pytest.raises(IndexFault, match=name):
                columns_with(rows.bloom_matrices, 0, np.array([[row]]), (0, 192), FilesInTurn(rows.read))
        else:
            columns = columns_with(rows.bloom_matrices, 0, np.array([[row]]), (0, 192), FilesInTurn(rows.read))
            assert columns.tolist() == np.flatnonzero(rows.bits[row]).tolist()


# ---- the whole way, and through refreshes ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Version:
    """Bloom matrices as some segments of a world see them, in their order."""

    bloom_matrices: BloomMatrices
    segments: list[tuple[World, int]]

    def blocks(self) -> list[tuple[int, int, int, bitarray | None]]:
        """Segment, position, code and bits of all blocks."""
        return [
            (s, i, size_class, bits)
            for s, (world, segment) in enumerate(self.segments)
            for i, (size_class, bits) in enumerate(world.segments[segment])
        ]

    def holders(
        self, values: Sequence[bytes], read: Callable[[str, Sequence[Range]], Sequence[bytes]]
    ) -> list[tuple[int, int]]:
        """Segment and position of the blocks that may hold one of the values; those with other filters may."""
        bloom_matrices, blocks = self.bloom_matrices, []
        asked = AskedHashes(hash_texts(values)[:, None], np.arange(len(values)))
        runs = np.flatnonzero(bloom_matrices.segment >= 0)
        reader = MatrixReader(bloom_matrices, runs, FilesInTurn(read), Faults(strict=True))
        hits, known = find_columns(reader, lambda encoding: asked if encoding is None else None)
        assert known[bloom_matrices.run_matrix[runs]].all()
        columns = set(zip(hits.matrix.tolist(), hits.column.tolist(), strict=True))
        for run in runs.tolist():
            matrix, begin = int(bloom_matrices.run_matrix[run]), int(bloom_matrices.begin[run])
            segment = int(bloom_matrices.segment[run])
            world, number = self.segments[segment]
            members = np.flatnonzero(world.size_classes[number] == bloom_matrices.run_size_class[run]).tolist()
            assert len(members) == bloom_matrices.count[run]
            blocks += [(segment, block) for i, block in enumerate(members) if (matrix, begin + i) in columns]
        return sorted(blocks)

    def expected(self, values: Sequence[bytes]) -> list[tuple[int, int]]:
        known = [(s, i, shape_of(size_class), bits) for s, i, size_class, bits in self.blocks() if bits is not None]
        return [
            (s, i) for s, i, shape, bits in known if shape.encoding is not None or _holds(bits, values, shape.probes)
        ]


def _holds(bits: bitarray, values: Sequence[bytes], probes: int) -> bool:
    return any(all(bits[p] for p in positions_of(text_hash(value), probes, len(bits))) for value in values)


def some_values(data: st.DataObject, *worlds: World) -> list[bytes]:
    held = sorted({value for world in worlds for value in world.values})
    absent = st.integers(0, 10**6).map(lambda v: b"-%d" % v)
    one = (st.sampled_from(held) | absent) if held else absent
    return data.draw(st.lists(one, min_size=1, max_size=3) | st.just(held or [b"-"]))


@examples(80)
@given(worlds, st.data(), st.sampled_from([0, 8, 512]), st.sampled_from([0, 200, 1 << 22]))
def test_values_are_found_where_they_are(world: World, data: st.DataObject, most_rows: int, most_bytes: int) -> None:
    """Exactly where the bits of a block's own filter say so: one value, some, or all; matrices together or singly."""
    version = Version(world.bloom_matrices, [(world, i) for i in range(len(world.segments))])
    with patch.multiple(matrix_columns, MOST_ROWS=most_rows, MOST_BYTES=most_bytes):
        for _ in range(3):
            values = some_values(data, world)
            assert version.holders(values, world.read) == version.expected(values)


def taken(version: Version, random: np.random.Generator) -> Version:
    """Most of the segments, in any order."""
    n = len(version.segments)
    chosen = random.permutation(n)[: int(np.ceil(n * random.choice([0.0, 0.5, 0.8, 1.0], p=[0.1, 0.3, 0.3, 0.3])))]
    return Version(version.bloom_matrices.take(chosen, n), [version.segments[i] for i in chosen.tolist()])


@examples(100)
@given(shapes, shapes, st.lists(st.sampled_from(["take", "join", "join and take"]), max_size=4))
def test_bloom_matrices_through_refreshes(first: Shape, second: Shape, steps: list[str]) -> None:
    """Segments dropped, put into another order and joined with those of another build, again and again."""
    one, random = world_of(first), np.random.default_rng(second.seed)
    other = world_of(Shape(second.counts, second.pool, first.fpr, second.cuts, second.seed))
    stores = Memory({**one.store.data, **{f"{name}/other": d for name, d in other.store.data.items()}})
    renamed = replace(other.bloom_matrices, file_name=[f"{name}/other" for name in other.bloom_matrices.file_name])
    version = Version(one.bloom_matrices, [(one, i) for i in range(len(one.segments))])
    added = taken(Version(renamed, [(other, i) for i in range(len(other.segments))]), random)
    for step in steps:
        if "join" in step and all(world is one for world, _ in version.segments):
            segments = [*version.segments, *added.segments]
            version = Version(version.bloom_matrices.followed_by(added.bloom_matrices, len(version.segments)), segments)
        if "take" in step:
            version = taken(version, random)
    bloom_matrices = version.bloom_matrices
    assert set(bloom_matrices.run_matrix[bloom_matrices.segment >= 0].tolist()) == {
        *range(len(bloom_matrices.size_class))
    }
    assert set(bloom_matrices.file.tolist()) == {*range(len(bloom_matrices.file_name))}
    counts = np.array([len(world.segments[i]) for world, i in version.segments], np.int64)
    assert_same(bloom_matrices, bloom_matrices_of(bloom_matrices.file_name, bloom_matrices.arrays(), counts, WHERE))
    held = sorted({*one.values, *other.values})
    for n in (1, 1, 3, len(held)):
        values = [b"absent", *random.permutation(np.array(held, object))[:n].tolist()][n == 3 :]
        assert version.holders(values or [b"-"], stores.read_many) == version.expected(values or [b"-"])


def assert_same(a: BloomMatrices, b: BloomMatrices) -> None:
    assert list(a.file_name) == list(b.file_name)
    assert [array.tolist() for array in a.arrays()] == [array.tolist() for array in b.arrays()]


@examples(100)
@given(worlds)
def test_arrays_there_and_back(world: World) -> None:
    bloom_matrices = world.bloom_matrices
    again = bloom_matrices_of(bloom_matrices.file_name, bloom_matrices.arrays(), world.block_count, WHERE)
    assert_same(bloom_matrices, again)
    assert [again.part(p) for p in range(len(again.at))] == [
        bloom_matrices.part(p) for p in range(len(bloom_matrices.at))
    ]
    assert again.nbytes == sum(array.nbytes for array in bloom_matrices.arrays())


# ---- lies ------------------------------------------------------------------------------------------------------------

NAMES = ("file_size", "size-class", "columns")
NAMES += ("part_matrix", "first_row", "rows", "file", "at", "salt")
NAMES += ("run_matrix", "segment", "run_size_class", "begin", "count")
AWKWARD = [0, 1, -1, 2, 7, 8, 9, 64, 2**31, 2**40, 2**40 + 8, 2**59, 2**60, 2**62, 2**63 - 1, -(2**63), 64 * 1024 + 8]


def changed(arrays: Arrays, which: int, change: Callable[[np.ndarray], np.ndarray]) -> Arrays:
    return [*arrays[:which], change(arrays[which]), *arrays[which + 1 :]]


def put(i: int, value: int) -> Callable[[np.ndarray], np.ndarray]:
    def change(array: np.ndarray) -> np.ndarray:
        copy = array.copy()
        copy[i % len(copy)] = value
        return copy

    return change


REFUSED = {
    "file_size": [put(0, 0), put(0, -1), put(0, 50)],
    "size-class": [
        put(0, -1),
        put(0, 32),
        put(0, 512 * 31 + 32),
        put(0, 1024),
        put(0, 1052),
        put(0, 1535),
        put(0, 2**40),
        put(0, 2**62),
    ],
    "columns": [put(0, 0), put(0, -8), put(0, 1), put(0, 2**40 + 8), put(0, 2**40), put(0, 2**36), put(0, 2**62)],
    "part_matrix": [put(0, 1), put(0, -1), put(0, 2**62)],
    "first_row": [put(0, 1), put(0, -1), put(0, 2**62)],
    "rows": [put(0, 53), put(0, 55), put(0, 0), put(0, -54), put(0, 2**40), put(0, 2**62)],
    "file": [put(0, 1), put(0, -1), put(0, 2**62)],
    "at": [put(0, -8), put(0, 3000), put(0, 2**60), put(0, 2**62), put(0, 2**63 - 1)],
    "run_matrix": [put(0, 1), put(0, -1), put(1, 2**62)],
    "segment": [put(0, 1), put(1, -2), put(0, 2**62)],
    "run_size_class": [put(0, 32), put(0, -1), put(0, 1026), put(0, 513), put(0, 1052), put(1, 2**62)],
    "begin": [put(0, 1), put(0, -8), put(1, 0), put(2, 1), put(0, 2**62)],
    "count": [put(0, 0), put(0, -1), put(0, 9), put(0, 4), put(2, 60), put(1, 2**40), put(1, 2**62)],
}
HUGE = {"size-class": put(0, 1392), "rows": put(0, 2**27), "run_size_class": put(1, 1025)}
LIES = [{name: change} for name, changes in REFUSED.items() for change in changes]
LIES += [  # each of which fits the others
    {**HUGE, "columns": put(0, 2**40), "file_size": put(0, 2**62)},
    {**HUGE, "columns": put(0, 2**27), "at": put(0, 2**60)},
    {"columns": put(0, 2**40), "file_size": put(0, 2**62)},
    {"columns": put(0, 2**36), "file_size": put(0, 2**62)},
    {
        "size-class": lambda a: a * 0 + native_class(2, 7),
        "rows": lambda a: a * 0 + 128,
        "run_size_class": lambda a: a * 0 + native_class(2, 7),
    },  # smaller than native ones are
]


@pytest.mark.parametrize("lie", range(len(LIES)), ids=[f"{'+'.join(lie)}-{i}" for i, lie in enumerate(LIES)])
def test_bloom_matrices_that_lie_are_a_fault(lie: int) -> None:
    """Three runs of one segment of four blocks, in two matrices, each in one part."""
    good = opened(sound_store()).bloom_matrices(0)
    assert good is not None
    assert (good.count.tolist(), good.rows.tolist(), good.columns.tolist()) == ([1, 1, 1], [54, 248], [2, 1])
    arrays = good.arrays()
    for name, change in LIES[lie].items():
        arrays = changed(arrays, NAMES.index(name), change)
    with pytest.raises(IndexFault, match=WHERE):
        bloom_matrices_of(good.file_name, arrays, np.array([4]), WHERE)


def test_parts_within_a_packed_row_are_a_fault() -> None:
    """Three columns: eight rows lie in three bytes."""
    store = Memory()
    with Cuts(part_bytes=30).prevailing():
        writer = BloomFragmentWriter(store, "fragments/0", 0.1)
        for block in range(3):
            writer.add(hash_texts([b"%d" % value for value in range(block, block + 30)]))
        counts = np.array([len(writer.finish())])
        good = bloom_matrices_in(store, "bloom matrix", [writer.fragments])
    assert good is not None
    assert (good.rows[:2] % 8).tolist() == [0, 0]
    assert_same(bloom_matrices_of(good.file_name, good.arrays(), counts, WHERE), good)
    moved = np.zeros_like(good.rows)
    moved[1] = 1
    for step in (moved, 8 * moved):
        lie = replace(good, first_row=good.first_row - step, rows=good.rows + step - np.append(step[1:], 0))
        if step[1] == 8:
            assert_same(bloom_matrices_of(lie.file_name, lie.arrays(), counts, WHERE), lie)
        else:
            with pytest.raises(IndexFault, match=WHERE):
                bloom_matrices_of(lie.file_name, lie.arrays(), counts, WHERE)


@pytest.mark.parametrize("which", range(len(NAMES)))
@pytest.mark.parametrize(
    "change",
    [
        lambda a: a[:0],
        lambda a: np.append(a, a),
        lambda a: a.astype(np.int32),
        lambda a: a.view(np.uint64),
        lambda a: np.broadcast_to(a[:1], 1 << 50),
    ],
    ids=["none", "twice", "narrow", "unsigned", "endless"],
)
def test_arrays_of_bloom_matrices_that_do_not_fit_are_a_fault(
    which: int, change: Callable[[np.ndarray], np.ndarray]
) -> None:
    good = opened(sound_store()).bloom_matrices(0)
    assert good is not None
    with pytest.raises(IndexFault, match=WHERE):
        bloom_matrices_of(good.file_name, changed(good.arrays(), which, change), np.array([4]), WHERE)


@pytest.mark.parametrize("names", [NAMES[1:3], NAMES[3:9], NAMES[9:]], ids=["matrices", "parts", "runs"])
def test_endless_arrays_are_a_fault(names: Sequence[str]) -> None:
    """That agree in length, and take no memory: nobody may look at all of them."""
    good = opened(sound_store()).bloom_matrices(0)
    assert good is not None
    arrays = good.arrays()
    for name in names:
        arrays = changed(arrays, NAMES.index(name), lambda a: np.broadcast_to(a[:1], 1 << 50))
    with pytest.raises(IndexFault, match=f"{WHERE}: the bloom matrices claim"):
        bloom_matrices_of(good.file_name, arrays, np.array([4]), WHERE)


def test_c36_an_encoding_that_nobody_knows_refutes_nothing() -> None:
    """As a newer version may write it: the blocks of its matrix are kept, and it is told."""
    store, size_class = sound_store(), native_class(9, 8)
    changes: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        name: lambda a: a * 0 + size_class for name in ("size-class", "run_size_class")
    }
    changes["rows"] = lambda a: a * 0 + 256

    def newer(arrays: Arrays) -> Arrays:
        for name, change in changes.items():
            arrays = changed(arrays, 2 + NAMES.index(name), change)
        return arrays

    store.data[SNAPSHOT_NAME] = with_arrays(store.data[SNAPSHOT_NAME], SNAPSHOT, {"bloom-matrices/0": newer}).data
    assert opened(store).bloom_matrices(0) is not None
    with pytest.raises(IndexFault, match="unknown encoding 9"):
        everything_of_filters(store)
    faults = Faults(strict=False)
    blocks = holders(replace(memory_of(store), faults=faults), ASKED[0], ONLY)
    assert blocks is not None
    assert blocks.tolist() == [0, 1, 2, 3]
    assert "unknown encoding 9" in faults.drain()[0]


def test_bloom_matrices_of_another_snapshot_are_a_fault() -> None:
    """Of fewer files, of fewer arrays, or over other segments."""
    good = opened(sound_store()).bloom_matrices(0)
    assert good is not None
    for names, arrays, counts in (
        ([], good.arrays(), [4]),
        (good.file_name, good.arrays()[:-1], [4]),
        (good.file_name, [*good.arrays(), good.count], [4]),
        (good.file_name, good.arrays(), [2]),
        (good.file_name, good.arrays(), []),
    ):
        with pytest.raises(IndexFault, match=WHERE):
            bloom_matrices_of(names, arrays, np.array(counts, np.int64), WHERE)


@examples(300)
@given(
    st.lists(st.tuples(st.integers(0, 13), st.integers(0, 1), st.sampled_from(AWKWARD)), min_size=1, max_size=3),
)
def test_whatever_bloom_matrices_say_is_a_fault_or_an_answer(changes: list[tuple[int, int, int]]) -> None:
    """Never another error, nor more memory than the file has; blocks that are there, ascending."""
    store = sound_store()

    def lie(arrays: Arrays) -> Arrays:
        for which, i, value in changes:
            arrays = changed(arrays, which + 2, put(i, value))
        return arrays

    tracemalloc.start()
    try:
        data = with_arrays(store.data[SNAPSHOT_NAME], SNAPSHOT, {"bloom-matrices/0": lie}).data
        store.data[SNAPSHOT_NAME] = data
        numbers, *_ = everything_of_filters(store)
    except IndexFault:
        pass
    else:
        assert numbers == sorted(set(numbers))
        assert {*numbers} <= {0, 1, 2, 3}
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 50_000_000
