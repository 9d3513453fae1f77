"""Postings: every block that holds a value is found, and no other but by prefixes shared; in both forms, and harmed."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from secateur.errors import IndexFault
from secateur.index.container.checked_matrix import Matrix, read_rows
from secateur.index.container.index_file import SEGMENT, Contents, Writer, read_contents
from secateur.index.filters.postings import (
    PAGE_PAIRS,
    PAIRS_AT_ONCE,
    STEP,
    Form,
    Postings,
    PostingTable,
    blocks_with,
    posting_arrays,
    posting_table_of,
    size_of_bitmaps,
    size_of_pairs,
)
from secateur.index.filters.postings_build import MOST_BLOCKS, postings_of
from tests.support.drawn.integer_arrays import arrays
from tests.support.profiles import examples
from tests.support.stores.filter_files import hash_values
from tests.support.stores.index_files import NAME, Memory

GREATEST = 2**64 - 1
AWKWARD = [0, 1, 2, 2**32 - 1, 2**32, 2**63 - 1, 2**63, GREATEST - 1, GREATEST]
UNLIKE = np.uint64(0x9E3779B97F4A7C15)  # multiples of it lie apart in all bits

Hashes = Sequence[np.ndarray | None]


def hashes_of(*values: int) -> np.ndarray:
    return np.array(values, np.uint64)


@dataclass
class Rows:
    """The rows of a matrix, and how they were asked for."""

    rows: np.ndarray
    asked: list[np.ndarray] = field(default_factory=list)

    def __call__(self, indices: np.ndarray) -> np.ndarray:
        assert len(indices)
        assert (np.diff(indices) > 0).all()
        assert 0 <= indices[0] <= indices[-1] < len(self.rows)
        self.asked.append(indices)
        return self.rows[indices]


def found(postings: Postings, hashes: np.ndarray) -> list[bool]:
    """The answer of a probe, once the table went through its arrays; all rows are asked for at once."""
    table = posting_table_of(posting_arrays(postings.table), postings.table.blocks, "here")
    rows = Rows(postings.rows)
    answer = blocks_with(table, hashes, rows, "here")
    assert answer.shape == (table.blocks,)
    assert answer.dtype == bool
    assert len(rows.asked) <= 1
    return answer.tolist()  # type: ignore[no-any-return]


def expected(blocks: Hashes, wanted: np.ndarray, shift: int = 0) -> list[bool]:
    """Which blocks hold one of the hashes without their last bits, by a dict; a block that is not known may."""
    holders: dict[int, set[int]] = defaultdict(set)
    for block, hashes in enumerate(blocks):
        for value in [] if hashes is None else hashes.tolist():
            holders[value >> shift].add(block)
    held = set().union(*(holders[value >> shift] for value in wanted.tolist()))
    return [hashes is None or block in held for block, hashes in enumerate(blocks)]


# ---- against a dict --------------------------------------------------------------------------------------------------

awkward = (
    st.sampled_from(AWKWARD)
    | st.integers(0, GREATEST)
    | st.integers(0, 40)
    | st.integers(0, 40).map(lambda i: (i << 51) + i)
)
few_blocks = st.lists(st.none() | st.lists(awkward, max_size=20).map(lambda values: hashes_of(*values)), max_size=20)


@examples(300)
@given(few_blocks, st.lists(awkward, max_size=10))
def test_any_hashes_are_found_by_their_prefixes(blocks: Hashes, others: list[int]) -> None:
    """Also those that lie close together, in any order, repeated, and at both ends: exactly what prefixes tell."""
    postings = postings_of(blocks)
    held = [int(value) for hashes in blocks if hashes is not None for value in hashes]
    for wanted in ([], others, held, *([value] for value in held + others)):
        hashes = hashes_of(*wanted)
        assert found(postings, hashes) == expected(blocks, hashes, postings.table.shift)
        assert all(may or not does for may, does in zip(found(postings, hashes), expected(blocks, hashes), strict=True))


@st.composite
def many_blocks(draw: st.DrawFn) -> tuple[list[np.ndarray | None], np.ndarray]:
    """Blocks with values from a pool of any size, some of which are in most blocks; and all values, and some others."""
    random = np.random.default_rng(draw(st.integers(0, 99)))
    n = draw(st.sampled_from([1, 2, 7, 8, 9, 255, 256, 257, 1030]))
    pool = random.integers(0, 2**64, draw(st.sampled_from([1, 3, 100, 5000])), np.uint64)
    per_block, common = draw(st.sampled_from([0, 1, 5, 40])), draw(st.sampled_from([0, 1, 3]))
    unknown = draw(st.sampled_from([0, 0, 0.1, 1]))
    blocks = [
        None
        if random.random() < unknown
        else np.unique(np.concatenate([random.choice(pool, per_block), pool[:common]]))[::-1]
        for _ in range(n)
    ]
    return blocks, np.concatenate([pool, random.integers(0, 2**64, 100, np.uint64)])


@examples(150)
@given(many_blocks(), st.data())
def test_random_hashes_are_found_exactly(case: tuple[list[np.ndarray | None], np.ndarray], data: st.DataObject) -> None:
    """One value, some, and thousands at once, of up to 40,000 pairs."""
    blocks, values = case
    postings = postings_of(blocks)
    seed = data.draw(st.integers(0, 99))
    for count in (0, 1, 1, 5, len(values)):
        wanted = np.random.default_rng(seed + count).choice(values, count, replace=False)
        assert found(postings, wanted) == expected(blocks, wanted)


def test_both_forms_are_drawn() -> None:
    """The cases above would prove little of a form that none of them takes."""
    few = [hashes_of(1 << 60, 2 << 60)] * 300
    many = [np.arange(i * 40, i * 40 + 40, dtype=np.uint64) * UNLIKE for i in range(300)]
    assert postings_of(few).table.form is Form.BITMAPS
    assert postings_of(many).table.form is Form.PAIRS


@pytest.mark.parametrize("blocks", [[], [None], [None] * 9, [hashes_of()], [hashes_of(), None] * 5])
def test_no_value_at_all(blocks: Hashes) -> None:
    """Nothing is read, and what is not known is kept."""
    postings = postings_of(blocks)
    assert (postings.table.values, postings.table.pairs, postings.table.rows) == (0, 0, 0)
    for wanted in ([], [0], AWKWARD):
        assert found(postings, hashes_of(*wanted)) == [block is None for block in blocks]


@pytest.mark.parametrize("value", AWKWARD)
@pytest.mark.parametrize("n", [1, 8, 300])
def test_one_pair(value: int, n: int) -> None:
    blocks = [hashes_of()] * (n - 1) + [hashes_of(value)]
    postings = postings_of(blocks)
    assert found(postings, hashes_of(value)) == [False] * (n - 1) + [True]
    assert found(postings, hashes_of(value ^ (1 << 62))) == [False] * n


def test_a_value_in_all_blocks_spans_pages() -> None:
    """Its pairs may begin within a page and end within another; those of its neighbours are apart."""
    n, common = 2 * PAGE_PAIRS + 100, 40_000 * int(UNLIKE) & GREATEST
    blocks = [np.append(np.arange(i * 20, i * 20 + 20, dtype=np.uint64) * UNLIKE, np.uint64(common)) for i in range(n)]
    postings = postings_of(blocks)
    assert postings.table.form is Form.PAIRS
    rows = Rows(postings.rows)
    assert blocks_with(postings.table, hashes_of(common), rows, "here").all()
    assert len(rows.asked[0]) >= 3
    for i in (0, 1, n // 2, n - 1):
        assert np.flatnonzero(found(postings, blocks[i][:20])).tolist() == [i]
    assert found(postings, blocks[3][:2]) == expected(blocks, blocks[3][:2])


@pytest.mark.parametrize("extra", [0, 1, 2, 20, 31])
def test_steps_as_wide_as_can_be(extra: int) -> None:
    """A gap of which 32 bits are left, and one more where both of its ends are cut."""
    low = 2**extra - 1
    for gap in (2 ** (32 + extra) - 1, 2 ** (32 + extra) - 2**extra, 2 ** (32 + extra)):
        hashes = np.append(hashes_of(low), np.arange(30, dtype=np.uint64) + np.uint64(low + gap))
        postings = postings_of([hashes])
        assert postings.table.form is Form.PAIRS
        assert postings.table.shift in (extra, extra + 1)
        for wanted in (hashes[:1], hashes[1:2], hashes[-1:]):
            assert found(postings, wanted) == [True]


@pytest.mark.parametrize(("values", "per_block"), [(500, 400), (150_000, 150)])
def test_more_pairs_than_are_in_work_at_once(values: int, per_block: int) -> None:
    random = np.random.default_rng(8)
    pool = random.integers(0, 2**64, values, np.uint64)
    blocks = [pool[random.choice(values, per_block, replace=False)] for _ in range(3 * PAIRS_AT_ONCE // per_block // 2)]
    postings = postings_of(blocks)
    assert postings.table.form is (Form.BITMAPS if values == 500 else Form.PAIRS)
    assert postings.table.pairs > PAIRS_AT_ONCE
    held, holder = np.concatenate(blocks), np.repeat(np.arange(len(blocks)), per_block)
    some = [held[i : i + 1] for i in range(0, len(held), len(held) // 20)]
    of_every_page = [np.sort(held)[k::PAGE_PAIRS] for k in range(0, PAGE_PAIRS, 50)]
    for wanted in (*some, *of_every_page, held[-1:], held, random.integers(0, 2**64, 50, np.uint64)):
        assert np.array_equal(np.flatnonzero(found(postings, wanted)), np.unique(holder[np.isin(held, wanted)]))


def test_a_probe_reads_one_page() -> None:
    """Of a value in one block, or of none, whatever the number of pages."""
    blocks = [hash_values(pa.array(range(i * 500, i * 500 + 500))) for i in range(300)]
    postings = postings_of(blocks)
    assert postings.table.rows == -(-150_000 // PAGE_PAIRS)
    for value in (-1, 0, 77_777, 10**9):
        rows = Rows(postings.rows)
        answer = blocks_with(postings.table, hash_values(pa.array([value])), rows, "here")
        assert np.flatnonzero(answer).tolist() == ([value // 500] if 0 <= value < 150_000 else [])
        assert sum(map(len, rows.asked)) <= 1


def test_the_most_blocks() -> None:
    blocks = [hashes_of(i * int(UNLIKE) & GREATEST) for i in range(MOST_BLOCKS)]
    postings = postings_of(blocks)
    assert np.flatnonzero(found(postings, np.concatenate(blocks[-2:]))).tolist() == [MOST_BLOCKS - 2, MOST_BLOCKS - 1]
    with pytest.raises(ValueError, match="65536"):
        postings_of([*blocks, hashes_of(1)])


# ---- size, and how often it is wrong ---------------------------------------------------------------------------------


@examples(100)
@given(many_blocks())
def test_sizes_are_as_told_and_the_smaller_form_is_taken(case: tuple[list[np.ndarray | None], np.ndarray]) -> None:
    blocks, _ = case
    postings = postings_of(blocks)
    table, n = postings.table, len(blocks)
    assert postings.rows.shape == (table.rows, table.width)
    distinct = [set(hashes.tolist()) for hashes in blocks if hashes is not None]
    assert (table.values, table.pairs) == (len(set().union(*distinct)), sum(map(len, distinct)))
    sizes = {Form.BITMAPS: size_of_bitmaps(table.values, n), Form.PAIRS: size_of_pairs(table.pairs, n)}
    stored = Matrix(0, table.rows, table.width, 0).nbytes + table.prefixes.nbytes
    assert stored == sizes[table.form] == min(sizes.values())


@pytest.mark.parametrize(("blocks", "most"), [(200, 5.1), (300, 6.1)])
def test_a_pair_takes_5_or_6_bytes(blocks: int, most: float) -> None:
    """In the file: with checksums and first prefixes."""
    random = np.random.default_rng(3)
    postings = postings_of([random.integers(0, 2**64, 1000, np.uint64) for _ in range(blocks)])
    assert len(written(postings).data[NAME]) / postings.table.pairs < most


@pytest.mark.parametrize("n", [1, 64, 4096])
@pytest.mark.parametrize("distinct", [2, 100, 10_000, 1_000_000])
def test_an_absent_value_is_hardly_ever_found(distinct: int, n: int) -> None:
    """Within the bound that the module derives."""
    hashes = np.random.default_rng(distinct).integers(0, 2**64, distinct, np.uint64)
    table = postings_of(np.array_split(hashes, n)).table
    bound = (math.log(distinct) + 10) * 2.0**-31 + distinct * n * 2.0**-64
    assert table.wrong_rate == distinct * 2.0**table.shift / 2**64 < bound


def test_values_that_share_a_prefix_are_wrong_as_often_as_told() -> None:
    """Of prefixes so short that wrong answers can be counted: by a gap so wide that steps leave 20 bits of 52."""
    random = np.random.default_rng(5)
    blocks = [random.integers(0, 2**52, 1000, np.uint64) for _ in range(300)]
    postings = postings_of([*blocks, hashes_of(GREATEST)])
    assert (postings.table.form, postings.table.shift) == (Form.PAIRS, 32)
    absent = random.integers(0, 2**52, 1000, np.uint64)
    wrong = sum(any(found(postings, absent[i : i + 1])) for i in range(1000)) / 1000
    wrong_rate = postings.table.wrong_rate * 2**12  # of hashes below 2^52, where all are but one
    assert wrong_rate * 0.7 < wrong < wrong_rate


# ---- bytes -----------------------------------------------------------------------------------------------------------


def written(postings: Postings) -> Memory:
    """A file with the postings."""
    writer = Writer(SEGMENT, {})
    writer.add("postings", posting_arrays(postings.table))
    writer.add_rows("postings", postings.rows)
    return Memory({NAME: writer.finish()})


def opened(file: Memory) -> Contents:
    return read_contents(NAME, SEGMENT, len(file.data[NAME]), lambda at, size: file.read(NAME, at, size))


def answer_of(file: Memory, contents: Contents, blocks: int, hashes: np.ndarray) -> list[bool]:
    """A probe as a reader does it, of which every byte that is read is proven by a checksum."""
    table_arrays = contents.arrays("postings", lambda at, size: file.read(NAME, at, size))
    table = posting_table_of(table_arrays, blocks, NAME)
    at, _, _, salt = contents.matrices["postings"]
    matrix = Matrix(at, table.rows, table.width, salt)

    def rows(indices: np.ndarray) -> np.ndarray:
        return read_rows(matrix, indices, lambda ranges: file.read_many(NAME, ranges), NAME)

    return blocks_with(table, hashes, rows, NAME).tolist()  # type: ignore[no-any-return]


@pytest.fixture(scope="module", params=list(Form))
def stored(request: pytest.FixtureRequest) -> tuple[list[np.ndarray | None], Postings]:
    """Blocks, and their postings in either form."""
    values = np.arange(1, 900 if request.param is Form.PAIRS else 8, dtype=np.uint64) * UNLIKE
    blocks = [None if i == 5 else values[i % 3 :: 3 + i % 2] for i in range(30)]
    if request.param is Form.PAIRS:
        blocks = [None if block is None else block[i * 8 : i * 8 + 40] for i, block in enumerate(blocks)]
    postings = postings_of(blocks)
    assert postings.table.form is request.param
    return blocks, postings


@examples(300)
@given(position=st.integers(0, 2**20), bit=st.integers(0, 7))
def test_no_harm_to_a_byte_loses_a_block(
    stored: tuple[list[np.ndarray | None], Postings], position: int, bit: int
) -> None:
    blocks, postings = stored
    file = written(postings)
    contents = opened(file)
    wanted = np.concatenate([block[:5] for block in blocks if block is not None])
    assert answer_of(file, contents, len(blocks), wanted) == expected(blocks, wanted)
    ends = [place.at + place.size for place in contents.chunks.values()]
    ends += [matrix.at + matrix.nbytes for matrix in contents.matrices.values()]
    data = bytearray(file.data[NAME])
    data[16 + position % (max(ends) - 16)] ^= 1 << bit
    try:
        harmed = answer_of(Memory({NAME: bytes(data)}), contents, len(blocks), wanted)
    except IndexFault as fault:
        assert NAME in str(fault)
    else:
        assert harmed == expected(blocks, wanted)  # of what is not read


def lie(table: PostingTable, which: int, change: Callable[[np.ndarray], np.ndarray]) -> list[np.ndarray]:
    """The arrays of a table, one of them changed."""
    changed = posting_arrays(table)
    changed[which] = change(changed[which].copy())
    return changed


def put(index: int, value: int) -> Callable[[np.ndarray], np.ndarray]:
    def change(array: np.ndarray) -> np.ndarray:
        array[index] = value
        return array

    return change


LIES = {
    "header is short": (0, lambda a: a[:4]),
    "form": (0, put(0, 2)),
    "form below": (0, put(0, -1)),
    "shift below": (0, put(1, -1)),
    "shift above": (0, put(1, 64)),
    "shift that no prefix survives": (0, put(1, 63)),
    "values below": (0, put(3, -1)),
    "more values than pairs": (0, put(3, 2**40)),
    "pairs below": (0, put(4, -1)),
    "too few pairs": (0, put(4, 3)),
    "signed prefixes": (1, lambda a: a.astype(np.int64)),
    "no prefixes": (1, lambda a: a[:0]),
    "a prefix too few": (1, lambda a: a[:-1]),
    "a prefix too many": (1, lambda a: np.append(a, a[-1:])),
    "falling": (1, lambda a: a[::-1]),
    "one out of order": (1, lambda a: a[[1, 0, *range(2, len(a))]]),
    "beyond all": (1, put(-1, GREATEST)),
    "as many as one likes": (1, lambda a: np.broadcast_to(np.uint64(7), 1 << 50)),
    "unknown: wide": (2, lambda a: a.astype(np.int64)),
    "unknown: below": (2, put(0, -1)),
    "unknown: above": (2, put(0, 30)),
    "unknown: twice": (2, lambda a: np.append(a, a)),
    "unknown: as many as one likes": (2, lambda a: np.broadcast_to(np.int32(7), 1 << 50)),
}


@pytest.mark.parametrize("name", LIES)
def test_a_table_that_lies_is_a_fault(stored: tuple[list[np.ndarray | None], Postings], name: str) -> None:
    _, postings = stored
    which, change = LIES[name]
    with pytest.raises(IndexFault, match="the lie"):
        posting_table_of(lie(postings.table, which, change), postings.table.blocks, "the lie")


@pytest.mark.parametrize("page", [-1, 0, 10**9])
def test_pages_of_no_size_are_a_fault(page: int) -> None:
    table = postings_of([np.arange(i * 9, i * 9 + 9, dtype=np.uint64) * UNLIKE for i in range(50)]).table
    assert table.form is Form.PAIRS
    with pytest.raises(IndexFault, match="the lie"):
        posting_table_of(lie(table, 0, put(2, page)), table.blocks, "the lie")


def test_of_other_blocks() -> None:
    """A table whose unknown blocks are not there."""
    table = postings_of([None] * 9).table
    with pytest.raises(IndexFault, match="here"):
        posting_table_of(posting_arrays(table), 8, "here")
    with pytest.raises(IndexFault, match="here"):
        posting_table_of(posting_arrays(table)[:2], 9, "here")


@examples(300)
@given(arrays(), arrays(), arrays())
def test_any_arrays_are_a_fault_or_a_table(header: np.ndarray, prefixes: np.ndarray, unknown: np.ndarray) -> None:
    try:
        table = posting_table_of([header, prefixes, unknown], 1000, "here")
    except IndexFault as fault:
        assert "here" in str(fault)
    else:
        assert table.rows <= len(prefixes)


@examples(300)
@given(
    st.sampled_from([Form.BITMAPS, Form.PAIRS]),
    st.integers(0, 40),
    st.integers(1, 9),
    st.lists(awkward, max_size=9, unique=True),
    st.integers(0, 999),
)
def test_any_rows_are_a_fault_or_an_answer(form: Form, shift: int, page: int, hashes: list[int], seed: int) -> None:
    """Those that no checksum proves: a fault, or blocks that are there."""
    random = np.random.default_rng(seed)
    prefixes = np.unique(hashes_of(*hashes) >> np.uint64(shift))
    assume(form is Form.BITMAPS or len(prefixes) > 1)
    pairs = len(prefixes) if form is Form.BITMAPS else (len(prefixes) - 1) * page
    header = np.array([form, shift, page, min(len(prefixes), pairs), pairs])
    blocks = int(random.choice([1, 9, 300]))
    table = posting_table_of([header, prefixes, np.zeros(1, np.int32)], blocks, "here")
    rows = random.integers(0, 1 + random.integers(0, 256), (table.rows, table.width), np.uint8)
    try:
        answer = blocks_with(table, hashes_of(*hashes, *AWKWARD), Rows(rows), "here")
    except IndexFault as fault:
        assert "here" in str(fault)
    else:
        assert answer.shape == (blocks,)
        assert answer[0]


@examples(200)
@given(row=st.integers(0, 10**6), column=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_steps_and_blocks_that_lie_behind_a_right_checksum(row: int, column: int, bit: int) -> None:
    """Pages whose steps are wrong do not end where the next begins; a block that is not there is a fault too."""
    blocks = [np.arange(i * 30, i * 30 + 30, dtype=np.uint64) * UNLIKE for i in range(300)]
    postings = postings_of(blocks)
    table, rows = postings.table, postings.rows.copy()
    assert table.form is Form.PAIRS
    column %= table.width
    rows[row % table.rows, column] ^= 1 << bit
    wanted = np.concatenate(blocks)
    of_steps = column < table.page * STEP.itemsize
    beyond = not of_steps and column % 2 == 1 and bit > 0
    if of_steps or beyond:
        with pytest.raises(IndexFault, match="here"):
            blocks_with(table, wanted, Rows(rows), "here")


@pytest.mark.parametrize("n", [9, 15, 8])
def test_bits_of_blocks_that_are_not_there(n: int) -> None:
    postings = postings_of([hashes_of(1 << 60)] * n)
    rows = postings.rows.copy()
    assert blocks_with(postings.table, hashes_of(1 << 60), Rows(rows), "here").all()
    rows[0, -1] = 0xFF
    if n % 8:
        with pytest.raises(IndexFault, match="here: a bitmap has more than"):
            blocks_with(postings.table, hashes_of(1 << 60), Rows(rows), "here")
    else:
        assert blocks_with(postings.table, hashes_of(1 << 60), Rows(rows), "here").all()
