"""Choosing what a column is looked up by, from a sample of its blocks."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import TempPathFactory

import secateur as sec
from secateur.index.build.auto_index import MOST_BYTES, SAMPLED_VALUES, ColumnSample, choose, sample_of
from secateur.index.container.checked_matrix import Matrix
from secateur.index.filters.bloom import rate_for
from secateur.index.filters.postings_build import postings_of
from secateur.index.model import Choice
from secateur.values.conversion import keys_of
from secateur.values.kinds import Kind, kind_of
from tests.support.drawn.strategies import BY_NAME, KINDS, ColumnKind, array_of
from tests.support.profiles import examples

BLOCKS, ROWS = 400, 2_000
Values = Callable[[np.random.Generator, int], np.ndarray]  # of a block, by its number


def chosen(values: Values, blocks: int = BLOCKS) -> Choice:
    rng = np.random.default_rng(3)
    sampled = np.linspace(0, blocks - 1, 24).astype(int).tolist()
    samples = [sample_of(pa.array(values(rng, block))) for block in sampled]
    known = [sample for sample in samples if sample is not None]
    return choose("c", known, blocks, 64, rate_for(blocks, None))


def clustered(rng: np.random.Generator, block: int) -> np.ndarray:
    return block * 1000 + rng.integers(0, 1000, ROWS)


def scattered(rng: np.random.Generator, block: int) -> np.ndarray:
    return rng.integers(0, 1 << 60, ROWS)


def of_few(rng: np.random.Generator, block: int) -> np.ndarray:
    """A third of three hundred shops in every block."""
    return rng.choice(rng.integers(0, 300, 100), ROWS)


def everywhere(rng: np.random.Generator, block: int) -> np.ndarray:
    return rng.integers(0, 4, ROWS)


def with_outliers(rng: np.random.Generator, block: int) -> np.ndarray:
    return np.append(clustered(rng, block), [-1, 1 << 40])


@pytest.mark.parametrize(
    ("values", "structure"),
    [
        (clustered, "zone map"),
        (scattered, "bloom"),
        (of_few, "postings"),
        (everywhere, "zone map"),
        (with_outliers, "gaps"),
    ],
)
def test_what_serves_is_chosen(values: Values, structure: str) -> None:
    choice = chosen(values)
    assert choice.structure == structure, choice.why
    assert f"of {BLOCKS} blocks about" in choice.why
    assert set(choice.bytes) == {"bloom", "postings", "gaps"}


def test_texts_are_compared_by_their_order() -> None:
    """Bounds of texts that share a long prefix still tell them apart."""
    assert chosen(lambda rng, block: np.char.mod("customer-%012d", clustered(rng, block))).structure == "zone map"
    assert chosen(lambda rng, block: np.char.mod("customer-%012d", scattered(rng, block))).structure == "bloom"


def test_one_block_is_chosen_for() -> None:
    assert chosen(scattered, blocks=1).structure == "zone map"


@pytest.mark.parametrize("values", [scattered, of_few])
def test_the_size_of_postings_is_what_they_take(values: Values) -> None:
    """Within a third: the repetition of values is estimated."""
    rng = np.random.default_rng(4)
    hashes = [sample.hashes for block in range(64) if (sample := whole(values(rng, block))) is not None]
    postings = postings_of(hashes)
    stored = Matrix(0, postings.table.rows, postings.table.width, 0).nbytes + postings.table.nbytes
    assert chosen(values, blocks=64).bytes["postings"] == pytest.approx(stored, rel=1 / 3)


def whole(values: np.ndarray) -> ColumnSample | None:
    """A sample of all values."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("secateur.index.build.auto_index.SAMPLED_VALUES", 1 << 30)
        return sample_of(pa.array(values))


columns = st.sampled_from(KINDS).flatmap(lambda kind: st.tuples(st.just(kind), st.lists(kind.values, max_size=20)))


def _cut(key: object) -> object:
    """A key as a sample has it: of long texts the first bytes."""
    return key[:MOST_BYTES] if isinstance(key, bytes) else key


@given(columns)
def test_a_sample_tells_of_all_values(column: tuple[ColumnKind, list[object]]) -> None:
    kind, values = column
    sample = sample_of(array_of([*values, None, *values], kind.type))
    keys = keys_of(array_of(values, kind.type))
    distinct = {_cut(keys.at(i)) for i in range(len(keys))}
    if not distinct:
        assert sample is None
        return
    assert sample is not None
    assert sample.distinct == len(distinct) or kind.type in (pa.float32(), pa.float64())  # where zeros are two values
    assert len(sample.hashes) == min(sample.distinct, SAMPLED_VALUES) == len(sample.keys) - 2
    sampled = [sample.keys.at(i) for i in range(len(sample.keys))]
    assert set(sampled) <= distinct
    assert sampled[-2:] == [min(distinct), max(distinct)]  # type: ignore[type-var]


tables = st.sampled_from(KINDS).flatmap(
    lambda kind: st.tuples(
        st.just(kind), st.lists(st.lists(kind.values, min_size=1, max_size=8), min_size=2, max_size=8)
    )
)


@given(tables, st.sampled_from([1, 10, 1000]))
def test_only_what_a_column_can_have_is_chosen(table: tuple[ColumnKind, list[list[object]]], wider: int) -> None:
    """Gaps are of keys of 64 bits: of text and long decimals there are none, as near to bounds as values may lie."""
    kind, blocks = table
    samples = [sample for values in blocks if (sample := sample_of(array_of(values, kind.type))) is not None]
    if samples:
        choice = choose("c", samples, wider * len(blocks), 64, 0.01)
        assert choice.structure == "zone map" or choice.structure in choice.bytes


@pytest.mark.parametrize("type_", [pa.string(), pa.binary(), pa.decimal128(30, 2), pa.int64()])
def test_gaps_are_chosen_of_keys_of_64_bits_alone(type_: pa.DataType) -> None:
    """Two blocks of those sampled lie within each other: bounds leave a little more than enough of a long table."""
    numbers = [range(1000 * i, 1000 * i + 40) for i in range(22)] + [range(90_000, 90_080, 2), range(90_001, 90_081, 2)]
    texts = pa.types.is_string(type_) or pa.types.is_binary(type_)
    blocks = [pa.array([f"{n:09d}" for n in values] if texts else list(values)).cast(type_) for values in numbers]
    samples = [sample for block in blocks if (sample := sample_of(block)) is not None]
    choice = choose("c", samples, 1000, 64, 0.01)
    assert (choice.structure == "gaps") == (kind_of(type_) is Kind.WORD)
    assert choice.structure in choice.bytes


# ---- whole builds ----------------------------------------------------------------------------------------------------

SPREAD = [0, 1, 3, 10, 30, 100]  # how far the values of a block begin after those of the one before


def numbered(kind: ColumnKind, numbers: np.ndarray) -> pa.Array:
    """Values of a kind in the order of these numbers, as far as its type has so many."""
    type_ = kind.type
    if pa.types.is_integer(type_):
        return pa.array(numbers % 2 ** min(type_.bit_width - 1, 62), type_)
    if kind.name == "unsigned":  # beyond the signed ones
        return pa.array(numbers.astype(np.uint64) + np.uint64(2**63), pa.uint64())
    if pa.types.is_decimal(type_):
        shift = 10**12 if type_.precision > 18 else 1
        return pa.array([Decimal(n * shift).scaleb(-type_.scale) for n in numbers.tolist()], type_)
    if pa.types.is_boolean(type_):
        return pa.array(numbers % 2 == 0)
    if pa.types.is_date32(type_):
        return pa.array(numbers, pa.int32()).cast(type_)
    if pa.types.is_timestamp(type_):
        return pa.array(numbers * 3_600_000_000, pa.int64()).cast(type_)
    if pa.types.is_floating(type_):
        return pa.array(numbers / 4).cast(type_)
    return pa.array([f"customer-{n:06}" for n in numbers.tolist()]).cast(type_)


def spread(rng: np.random.Generator, blocks: int, rows: int) -> np.ndarray:
    """Numbers of blocks that overlap by chance, some with outliers."""
    begin = np.repeat(np.arange(blocks) * rng.choice(SPREAD), rows)
    numbers = begin + rng.integers(0, 2 ** rng.integers(1, 9), blocks * rows)
    return np.where(rng.random(blocks * rows) < rng.choice([0, 0, 0.02]), rng.integers(0, 5000, blocks * rows), numbers)


def overlapping(seed: int) -> pa.Table:
    """A table with columns of some kinds, in 20 blocks of 10 rows."""
    rng = np.random.default_rng(seed)
    kinds = [KINDS[i] for i in rng.choice(len(KINDS), 7, replace=False)]
    return pa.table({kind.name: numbered(kind, spread(rng, 20, 10)) for kind in kinds})


@examples(120, shrink=False)
@given(st.integers(0, 2**40))
def test_every_column_has_a_structure_that_its_type_can_have(tmp_path_factory: TempPathFactory, seed: int) -> None:
    """Whatever is chosen, the build succeeds, and every value is found."""
    rows = overlapping(seed)
    root = tmp_path_factory.mktemp("choice")
    pq.write_table(rows, root / "rows.parquet", row_group_size=10)
    table = sec.open_table(str(root))
    index = sec.build_index(table, auto=True, segment_blocks=7)
    assert [choice.column for choice in index.choices] == rows.column_names
    for name, values in zip(rows.column_names, rows.columns, strict=True):
        value = values[seed % len(rows)]
        expected = pc.sum(pc.equal(values, value)).as_py()
        assert sec.prune(table, sec.col(BY_NAME[name].sql) == value.as_py(), strict=True).count() == expected, name
