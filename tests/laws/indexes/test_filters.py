"""The stage "filters": what it leaves is what filters and zone maps leave, whatever it is asked; and a row never less.

On random indexes in memory against what every filter says bit by bit, and on files with all kinds of filters against
the rows themselves. The passes of the build run in this process, one task after the other.
"""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.errors import IndexFault, UnsupportedPredicate
from secateur.index.filters import transpose
from secateur.index.filters.bloom_fragment import BloomFragmentWriter
from secateur.index.read.memory_cache import ByteCache
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.pruning.bounds.outcomes import TRUE, survives
from secateur.pruning.connectives import fold
from secateur.pruning.evaluate import leaf_outcomes
from secateur.pruning.predicate.bound import Leaf
from secateur.pruning.predicate.bound_walks import leaves
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.questions import questions
from secateur.pruning.stages import filters
from secateur.pruning.statistics import Blocks
from secateur.scan import Scan
from tests.support.checks.indexed_places import check_rows, each_of, places, run
from tests.support.checks.statistics_of import bound
from tests.support.drawn.circumstances import Circumstances, Kept, circumstances, query, seeds
from tests.support.drawn.random_filters import KINDS, asked_of
from tests.support.drawn.random_index import Index, make_index, refreshed
from tests.support.drawn.strategies import connected
from tests.support.profiles import examples, sweep, takes_seconds
from tests.support.stores.filter_files import Cuts, without_bands
from tests.support.tables import WriteTable, write_file

STAGES = ("files", "segments", "filters", "zone maps")

# ---- random predicates -----------------------------------------------------------------------------------------------

numbers = st.integers(0, 75)
texts = st.builds(lambda width, n: "x" * width + f"{n:02}", st.sampled_from([0, 0, 1, 7, 20]), numbers)
conditions = st.one_of(
    numbers.map("i = {}".format),
    st.lists(numbers, min_size=1, max_size=30).map(lambda values: f"i IN ({', '.join(map(str, values))})"),
    numbers.map("i > {}".format),
    texts.map("s = '{}'".format),
    st.lists(texts, min_size=1, max_size=5).map(lambda values: "s IN (" + ", ".join(map(repr, values)) + ")"),
    texts.map(lambda text: f"s LIKE '%{text[-2:]}'"),
    texts.map(lambda text: f"s LIKE '{text[:3]}%{text[-1]}'"),
    texts.map(lambda text: f"s LIKE '%{text[-3:]}%' OR s LIKE 'x{text}'"),
    texts.map("has_token(s, '{}')".format),
    texts.map("lower(s) = '{}'".format),
    numbers.map(lambda n: f"huge = {n * 10**20}"),
    numbers.map(lambda n: f"huge <> {n * 10**20}"),
    numbers.map(lambda n: f"date_add(DATE '1970-01-01', {19_000 + n}) = day"),
    st.sampled_from(["s IS NULL", "i IS NOT NULL", "TRUE", "huge IS NULL"]),
)
predicates = connected(conditions, max_leaves=5)


def predicate_over(index: Index, text: str) -> Predicate:
    predicate = bound(text, pa.schema([(c.path[0], c.type) for c in index.columns]))
    assert predicate is not None, text
    return predicate


def refuted(index: Index, leaf: Leaf, number: int) -> bool:
    """Whether some filter of a block denies a leaf, bit by bit."""
    asked = [(f, a) for q in questions(leaf) for f, filter_ in enumerate(index.filters) if (a := asked_of(filter_, q))]
    held = [(index.held(f, number), asked_filter) for f, asked_filter in asked]
    return any(bits is not None and not bits.by_bits(asked_filter) for bits, asked_filter in held)


def allowed(index: Index, predicate: Predicate, blocks: Blocks, block_numbers: np.ndarray) -> np.ndarray:
    """Which blocks zone maps and filters leave, leaf by leaf and block by block."""

    def outcomes_of(leaf: Leaf) -> np.ndarray:
        named = any(q.column in index.live.named for q in questions(leaf))
        total = index.begin[-1]
        denied = [n < total and not named and refuted(index, leaf, n) for n in block_numbers.tolist()]
        possible = leaf_outcomes(leaf, blocks)
        return np.where(np.array(denied, bool), possible & ~np.uint8(TRUE), possible)

    return survives(fold(predicate, blocks.row_count, outcomes_of))


@examples(60, shrink=False)
@given(circumstances, seeds, st.integers(0, 6), st.sampled_from([0.0, 1 / 8, 2.0]), predicates, predicates)
def test_c35_filters_and_zone_maps_leave_what_each_block_allows(
    around: Circumstances, seed: int, segments: int, selective: float, first: str, second: str
) -> None:
    """Under AND, OR and NOT, before and after a refresh: nothing more and nothing less.

    Of segments that lack a chunk only the tree knows bounds, by which more of their blocks are left out.
    """
    index = make_index(seed, segments, 0.0)
    later = refreshed(index, seed + 1, 0.0)
    with around.prevailing() as kept, patch.object(filters, "SELECTIVE", selective):
        for i, (state, text) in enumerate(((index, first), (later, second))):
            predicate = predicate_over(state, text)
            survivors = run(query(state, kept, seed + i, strict=True), predicate, STAGES)
            flat = query(state, Kept(ByteCache(1 << 30)), seed, strict=True).catalog
            runs = [*flat.runs(None, flat.everywhere(None)), *flat.loose_runs(None)]
            everything = np.concatenate([np.zeros(0, np.int64), *(run.begin + each_of(run) for run in runs)])
            blocks = flat.open(everything, None)
            expected = places(blocks.take(np.flatnonzero(allowed(state, predicate, blocks, blocks.numbers))))
            left = places(survivors.blocks)
            partial = [s for s, part in enumerate(state.parts) if any(c.startswith("zone/") for c in part.missing)]
            assert set(left) <= set(expected), text
            assert all(expected[place] in partial for place in set(expected) - set(left)), text
            check_rows(state, survivors)


@examples(60, shrink=False)
@given(circumstances, seeds, st.integers(1, 6), st.sampled_from([0.0, 1 / 8, 2.0]), predicates)
def test_c04_no_row_is_lost_to_broken_filters(
    around: Circumstances, seed: int, segments: int, selective: float, text: str
) -> None:
    """Chunks, rows and whole files of them, some or many; what is left is at least what a whole index leaves."""
    index = make_index(seed, segments, 0.5)
    with around.prevailing() as kept, patch.object(filters, "SELECTIVE", selective):
        survivors = run(query(index, kept, seed), predicate_over(index, text))
        check_rows(index, survivors)


@examples(40, shrink=False)
@given(seeds, st.integers(1, 6), predicates)
def test_c25_filters_only_ever_take_truth_from_leaves(seed: int, segments: int, text: str) -> None:
    """No row is denied under NOT, no block is sure to match that is not, and none is left that was left out before."""
    index = make_index(seed, segments, 0.0)
    kept = Kept(ByteCache(1 << 30))
    for form in (text, f"NOT ({text})", f"NOT (NOT ({text}))"):
        predicate = predicate_over(index, form)
        with_filters = run(query(index, kept, seed, strict=True), predicate)
        without = run(query(index, kept, seed, strict=True), predicate, [name for name in STAGES if name != "filters"])
        check_rows(index, with_filters)
        assert set(places(with_filters.blocks)) <= set(places(without.blocks))


def test_predicates_ask_every_kind_of_filter() -> None:
    """The properties above would prove little if the predicates asked nothing."""
    index = make_index(1, 3, 0.0)
    asked = {
        one.kind
        for text in ("i = 1", "s = 'x05'", "huge = 100000000000000000000", "s LIKE '%05'", "has_token(s, 'x05')")
        for leaf in leaves(predicate_over(index, text))
        for question in questions(leaf)
        for one in index.filters
        if asked_of(one, question)
    }
    assert asked == {"bloom", "postings", "ordered", "ngram", "token"}
    assert set(KINDS) == {one.path[0] for one in index.filters}


# ---- files, and an index of them with filters of all kinds -----------------------------------------------------------


def index_of(root: Path, **options: Any) -> ParquetDirectory:
    table = sec.open_table(str(root))
    sec.build_index(table, **options)
    return table


def refresh(root: Path) -> None:
    sec.refresh_index(sec.open_table(str(root)))


Row = dict[str, Any]
FILES, ROWS, GROUP = 6, 60, 10
ABSENT = 101  # a user within the bounds of all blocks
WORDS = ["error", "Warning", "info", "timeout", "näher", "überall"]
RATIOS = [None, math.nan, 0.0, -0.0, 1.5, -2.25]
ALL_KINDS: dict[str, Any] = {
    "bloom": ["user", "ratio", "tags"],
    "postings": ["level"],
    "ngram": {"message": {"n": 3, "fold": True}},
    "tokens": ["message"],
    "segment_blocks": 7,
}
TYPES = pa.schema(
    [
        ("rid", pa.int64()),
        ("user", pa.int64()),
        ("ratio", pa.float64()),
        ("level", pa.decimal128(30, 0)),
        ("message", pa.string()),
        ("tags", pa.list_(pa.string())),
    ]
)


def rows(first: int, n: int = ROWS) -> list[Row]:
    """Users and messages that bounds tell nothing of, with NULL, NaN and both zeros."""
    random = np.random.default_rng(first)
    made = []
    for rid in range(first, first + n):
        user, ratio, level, one, other = random.integers(0, [300, 6, 7, len(WORDS), len(WORDS)]).tolist()
        made.append(
            {
                "rid": rid,
                "user": None if rid % 11 == 0 else 3 * user,
                "ratio": RATIOS[ratio],
                "level": Decimal(level) * 10**20,
                "message": f"{WORDS[one]} {rid}: {WORDS[other]}",
                "tags": [WORDS[one], f"t{other}"],
            }
        )
    return made


def write_rows(path: Path, first: int) -> list[Row]:
    data = rows(first)
    write_file(path, pa.Table.from_pylist(data, TYPES), row_group_size=GROUP)
    return data


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many small files of filters over several bloom matrices."""
    root = tmp_path_factory.mktemp("filters") / "lake"
    for i in range(FILES):
        write_rows(root / f"{i}.parquet", i * ROWS)
    with Cuts(matrix_blocks=14, part_bytes=80, fragment_bytes=200, joined_bytes=0).prevailing():
        index_of(root, **ALL_KINDS)
    return root


@pytest.fixture
def lake(built: Path, tmp_path: Path) -> Path:
    """A copy that may be harmed."""
    root = tmp_path / "lake"
    shutil.copytree(built, root)  # with the modification times that the index knows
    return root


# ---- conditions, and what they are of a row --------------------------------------------------------------------------


@dataclass(frozen=True)
class Condition:
    """A predicate as text, and its value for a row: True, False or None."""

    sql: str
    of: Callable[[Row], bool | None]

    def __repr__(self) -> str:
        return self.sql


def both(a: Condition, b: Condition) -> Condition:
    def of(row: Row) -> bool | None:
        outcomes = {a.of(row), b.of(row)}
        return False if False in outcomes else None if None in outcomes else True

    return Condition(f"({a.sql} AND {b.sql})", of)


def either(a: Condition, b: Condition) -> Condition:
    def of(row: Row) -> bool | None:
        outcomes = {a.of(row), b.of(row)}
        return True if True in outcomes else None if None in outcomes else False

    return Condition(f"({a.sql} OR {b.sql})", of)


def negated(a: Condition) -> Condition:
    return Condition(f"NOT ({a.sql})", lambda row: None if (outcome := a.of(row)) is None else not outcome)


def about(column: str, sql: str, of: Callable[[Any], bool]) -> Condition:
    """A condition on the values of a column that are not NULL."""
    return Condition(sql, lambda row: None if row[column] is None else of(row[column]))


def user_is(user: int) -> Condition:
    return about("user", f"user = {user}", lambda value: value == user)


def has_word(word: str) -> Condition:
    sql = f"has_token(message, '{word}')"
    return about("message", sql, lambda text: word in re.split("[^0-9A-Za-z_\x80-\U0010ffff]+", text))


users = st.integers(0, 310).map(lambda n: 3 * n) | st.integers(0, 930)
words = st.sampled_from([*WORDS, "absent", "warning", "ERROR", "warn", "er", "t3", "9: i", "é", "berall", "timeout 5"])
leaves_on_files = st.one_of(
    users.map(user_is),
    st.lists(users, min_size=1, max_size=40).map(
        lambda some: about("user", f"user IN ({', '.join(map(str, some))})", lambda value: value in some)
    ),
    st.sampled_from(
        [
            about("ratio", "ratio = 0", lambda value: value == 0),
            about("ratio", "ratio = -0.0D", lambda value: value == 0),
            about("ratio", "ratio = CAST('NaN' AS DOUBLE)", math.isnan),
            about("ratio", "ratio = 1.25", lambda value: value == 1.25),
            about("ratio", "ratio <> 1.5", lambda value: value != 1.5),
            about("user", "user > 450", lambda value: value > 450),
            about("rid", "rid < 200", lambda value: value < 200),
            Condition("user IS NULL", lambda row: row["user"] is None),
        ]
    ),
    st.integers(0, 13).map(
        lambda n: about("level", f"level = {n * 5 * 10**19}", lambda value: value == n * 5 * 10**19)
    ),
    words.map(lambda word: about("message", f"message LIKE '%{word}%'", lambda text: word in text)),
    words.map(lambda word: about("message", f"message LIKE '{word}%'", lambda text: text.startswith(word))),
    words.map(lambda word: about("message", f"message LIKE '% {word}'", lambda text: text.endswith(" " + word))),
    words.map(lambda word: about("message", f"lower(message) LIKE '%{word}%'", lambda text: word in text.lower())),
    words.map(
        lambda word: about("message", f"lower(message) LIKE '% {word}'", lambda t: t.lower().endswith(" " + word))
    ),
    words.map(
        lambda word: about("message", f"lower(message) LIKE '{word} %'", lambda t: t.lower().startswith(word + " "))
    ),
    words.map(lambda word: about("message", f"message RLIKE '{word}|:'", lambda text: word in text or ":" in text)),
    words.map(lambda word: about("message", f"message RLIKE '{word}.*info'", lambda t: "info" in t.partition(word)[2])),
    words.filter(lambda word: " " not in word).map(has_word),
    words.map(lambda word: about("tags", f"array_contains(tags, '{word}')", lambda tags: word in tags)),
)
on_files = st.recursive(
    leaves_on_files,
    lambda inner: st.one_of(st.builds(both, inner, inner), st.builds(either, inner, inner), inner.map(negated)),
    max_leaves=4,
)


def blocks_of(plan: Scan) -> set[tuple[str, int]]:
    return set(zip(plan.blocks["file"].to_pylist(), plan.blocks["row_group"].to_pylist(), strict=True))


def blocks_without_index(root: Path, predicate: str) -> set[tuple[str, int]]:
    return blocks_of(sec.prune(sec.open_table(str(root)), predicate, use_index=False))


def check_files(root: Path, files: Mapping[str, Sequence[Row]], condition: Condition, **options: Any) -> Scan:
    """Every row for which a condition is TRUE is in a block of the plan, and is found where Arrow can tell."""
    plan = sec.prune(sec.open_table(str(root)), condition.sql, **options)
    wanted = {
        (file, i // GROUP): row["rid"]
        for file, rows in files.items()
        for i, row in enumerate(rows)
        if condition.of(row)
    }
    assert set(wanted) <= blocks_of(plan), condition.sql
    try:
        ids = plan.to_arrow(columns=["rid"])["rid"].to_pylist()
    except UnsupportedPredicate:
        return plan
    assert sorted(ids) == sorted(row["rid"] for rows in files.values() for row in rows if condition.of(row))
    return plan


BUILT = {f"{i}.parquet": rows(i * ROWS) for i in range(FILES)}


def test_the_index_has_filters_of_all_kinds_in_many_files(built: Path) -> None:
    assert sec.verify_index(sec.open_table(str(built))).sound
    assert len(filter_files(built)) > 20
    assert list((built / "_secateur" / "fragments").iterdir()) == []
    described = sec.describe_index(sec.open_table(str(built)))
    assert (described.bloom, described.postings) == (("user", "ratio", "tags"), ("level",))
    assert (described.ngram, described.tokens) == (("message",), ("message",))
    assert described.index_bytes == sum(path.stat().st_size for path in (built / "_secateur").rglob("*.*"))


@examples(70)
@given(on_files)
def test_rows_are_found_by_filters_of_all_kinds(built: Path, condition: Condition) -> None:
    """And no block is read that would not be without them."""
    plan = check_files(built, BUILT, condition, strict=True)
    assert blocks_of(plan) <= blocks_without_index(built, condition.sql)


@pytest.mark.parametrize(
    ("predicate", "most"),
    [
        (f"user = {ABSENT}", 1),
        (f"NOT (user <> {ABSENT})", 1),
        (f"level = 350000000000000000000 OR user = {ABSENT}", 1),
        ("level = 350000000000000000000", 0),
        ("message LIKE '%absent%'", 0),
        ("lower(message) LIKE '%absent%'", 0),
        ("has_token(message, 'warn')", 0),
        ("message LIKE '%ng 99: %' OR message LIKE '%o 99: %'", 1),
        ("array_contains(tags, 't9')", 1),
        ("ratio = 1.25", 1),
    ],
)
def test_absent_values_leave_hardly_a_block(built: Path, predicate: str, most: int) -> None:
    plan = sec.prune(sec.open_table(str(built)), predicate, strict=True)
    assert len(plan.blocks) <= most
    assert len(blocks_without_index(built, predicate)) > 20


# ---- harm ------------------------------------------------------------------------------------------------------------


def filter_files(root: Path) -> list[Path]:
    return sorted((root / "_secateur" / "filters").iterdir())


def gone(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:17])


def flipped(path: Path) -> None:
    path.write_bytes(without_bands(path.name, path.read_bytes()))


harms = pytest.mark.parametrize("harm", [gone, cut, flipped])
NOTHING = either(user_is(ABSENT), has_word("absent"))


@harms
@pytest.mark.parametrize(
    "condition",
    [
        user_is(42),
        user_is(ABSENT),
        has_word("absent"),
        negated(both(has_word("info"), has_word("error"))),
        negated(about("user", "user <> 42", lambda value: value != 42)),
    ],
    ids=str,
)
def test_c01_blocks_whose_filters_cannot_be_read_are_kept(
    lake: Path, harm: Callable[[Path], None], condition: Condition
) -> None:
    """Degraded, with the names of files; strict raises."""
    for path in filter_files(lake):
        harm(path)
    plan = check_files(lake, BUILT, condition)
    assert blocks_of(plan) == blocks_without_index(lake, condition.sql)
    (stage,) = [stage for stage in plan.report.stages if stage.name == "filters"]
    assert plan.report.degraded == stage.degraded
    assert stage.degraded
    assert all(".filter" in reason for reason in stage.degraded)
    with pytest.raises(IndexFault):
        sec.prune(sec.open_table(str(lake)), condition.sql, strict=True)
    assert not sec.verify_index(sec.open_table(str(lake))).sound


@takes_seconds
@harms
def test_c04_one_broken_file_costs_the_blocks_of_its_bloom_matrix(lake: Path, harm: Callable[[Path], None]) -> None:
    """One at a time: no row, and no block of another bloom matrix; every block misses its filter once."""
    assert len(check_files(lake, BUILT, NOTHING, strict=True).blocks) <= 1
    missed = set()
    for path in filter_files(lake):
        held = path.read_bytes()
        harm(path)
        plan = check_files(lake, BUILT, NOTHING)
        assert len(plan.blocks) <= 14 + 1  # of a bloom matrix
        assert plan.report.degraded or len(plan.blocks) <= 1
        missed |= blocks_of(plan)
        path.write_bytes(held)
    assert missed >= blocks_without_index(lake, f"user = {ABSENT}")


@examples(30)
@given(on_files, st.lists(st.integers(0, 10**6), min_size=1, max_size=30), st.sampled_from([gone, cut, flipped]))
def test_no_row_is_lost_to_broken_files(
    built: Path,
    tmp_path_factory: pytest.TempPathFactory,
    condition: Condition,
    which: list[int],
    harm: Callable[[Path], None],
) -> None:
    root = tmp_path_factory.mktemp("harmed") / "lake"
    shutil.copytree(built, root)
    paths = filter_files(root)
    for i in {i % len(paths) for i in which}:
        harm(paths[i])
    check_files(root, BUILT, condition)
    shutil.rmtree(root)


# ---- coverage --------------------------------------------------------------------------------------------------------


def test_c01_files_that_came_since_are_kept_and_then_indexed(lake: Path) -> None:
    """By their bounds first; once refreshed by filters, beside the bloom matrices that were there."""
    files = {**BUILT, "late.parquet": write_rows(lake / "late.parquet", FILES * ROWS)}
    user = next(row["user"] for row in files["late.parquet"] if row["user"])
    for condition in (user_is(user), NOTHING, either(has_word("timeout"), user_is(user))):
        check_files(lake, files, condition, strict=True)
    late = {("late.parquet", group) for group in range(ROWS // GROUP)}
    assert len(blocks_of(check_files(lake, files, NOTHING)) & late) >= 5
    before = filter_files(lake)
    refresh(lake)
    assert set(before) < set(filter_files(lake))
    for condition in (user_is(user), NOTHING, either(has_word("timeout"), user_is(user))):
        check_files(lake, files, condition, strict=True)
    assert len(check_files(lake, files, NOTHING, strict=True).blocks) <= 1
    assert sec.verify_index(sec.open_table(str(lake))).sound


def test_c01_segments_without_the_column_keep_their_blocks(write_table: WriteTable) -> None:
    """Files that came later brought it: of those before nothing is known but that they lack it."""
    old = [{"rid": i, "b": 7, "c": None} for i in range(20)]
    new = [{"rid": 20 + i, "b": 1 + i % 2 * 8, "c": i % 5} for i in range(20)]
    root = write_table({"a.parquet": pa.table({"rid": range(20), "b": [7] * 20})}, row_group_size=GROUP)
    index_of(root, bloom=["b"], postings=["b"])
    write_file(root / "b.parquet", pa.Table.from_pylist(new), row_group_size=GROUP)
    refresh(root)
    files = {"a.parquet": old, "b.parquet": new}
    for value in (1, 7, 5, 9):
        for condition in (
            about("b", f"b = {value}", lambda b, value=value: b == value),
            about("c", "c = 3", (3).__eq__),
        ):
            for asked in (
                condition,
                negated(condition),
                either(condition, Condition("c IS NULL", lambda r: r["c"] is None)),
            ):
                check_files(root, files, asked, strict=True)
    assert len(sec.prune(sec.open_table(str(root)), "b = 5", strict=True).blocks) == 0


def test_refreshes_drop_and_add_segments(lake: Path) -> None:
    """Files that are gone take their columns of bloom matrices along; what is left is found where it is."""
    files = dict(BUILT)
    for step in range(4):
        (lake / f"{step}.parquet").unlink()
        del files[f"{step}.parquet"]
        files[f"new-{step}.parquet"] = write_rows(lake / f"new-{step}.parquet", 1000 + step * ROWS)
        refresh(lake)
        for condition in (either(user_is(42), user_is(18)), both(has_word("info"), negated(user_is(9)))):
            check_files(lake, files, condition, strict=True)
        for row in files[f"new-{step}.parquet"][::7]:
            assert len(check_files(lake, files, user_is(row["user"] or 0), strict=True).blocks) < 8
        assert len(check_files(lake, files, NOTHING, strict=True).blocks) <= 1
        assert sec.verify_index(sec.open_table(str(lake))).sound


def test_c14_a_block_whose_values_are_not_known_is_kept(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its neighbours in the segment, the bloom matrix and the size class speak for themselves alone."""
    sec.drop_index(sec.open_table(str(lake)))
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # so that blocks come in order
    add, count = BloomFragmentWriter.add, iter(range(10**6))
    monkeypatch.setattr(
        BloomFragmentWriter, "add", lambda self, hashes: add(self, None if next(count) % 5 == 0 else hashes)
    )
    index_of(lake, bloom=["user"], segment_blocks=7)
    unknown = set(sorted((file, group) for file in BUILT for group in range(ROWS // GROUP))[::5])
    for user in (3, 42, 171, ABSENT, ABSENT + 1):
        plan = check_files(lake, BUILT, user_is(user), strict=True)
        assert unknown & blocks_without_index(lake, f"user = {user}") <= blocks_of(plan)
    assert len(check_files(lake, BUILT, user_is(ABSENT)).blocks) <= len(unknown) + 1


@pytest.mark.parametrize("predicate", ["v = 7", "v IN (7, 55)", "NOT (v <> 7)", "v = 7 AND w = 1", "v = 7 OR w = 5"])
def test_c35_segments_that_match_whole_are_kept_beside_what_filters_leave(
    write_table: WriteTable, predicate: str
) -> None:
    """No filter is asked about them: the bounds of theirs say that every row matches."""
    values = {f"{i}.parquet": [7] * 20 if i in (2, 5) else [0, 100, *range(20, 38)] for i in range(30)}
    values["9.parquet"] = [0, 100, 7, *range(20, 37)]
    files = {name: [{"v": v, "w": 1} for v in values_of_file] for name, values_of_file in values.items()}
    root = write_table({name: pa.Table.from_pylist(data) for name, data in files.items()}, row_group_size=GROUP)
    index_of(root, bloom=["v", "w"], segment_blocks=2, fpr=1e-6)
    plan = sec.prune(sec.open_table(str(root)), predicate, strict=True)
    assert blocks_of(plan) == {(f"{i}.parquet", group) for i in (2, 5) for group in (0, 1)} | {("9.parquet", 0)}
    assert plan.count() == 41
    (tree,) = [stage for stage in plan.report.stages if stage.name == "segments"]
    assert "all rows of 2 segments match" in " ".join(tree.notes)


# ---- values ----------------------------------------------------------------------------------------------------------


def files_of(root: Path, predicate: str) -> set[str]:
    return {file for file, _ in blocks_of(sec.prune(sec.open_table(str(root)), predicate, strict=True))}


def test_long_texts_are_looked_up_by_some_of_their_parts(write_table: WriteTable) -> None:
    """Of thousands of grams no more than tell: no more rows are read for them, and none is lost."""
    random = np.random.default_rng(3)
    texts = ["".join(random.choice(list("abcdefgh"), 5_000).tolist()) for _ in range(4)]
    root = write_table({f"{i}.parquet": {"t": ["b", text, "a"]} for i, text in enumerate(texts)})
    index_of(root, ngram={"t": 8}, tokens=["t"])
    for i, text in enumerate(texts):
        assert files_of(root, f"t LIKE '%{text[100:4_800]}%'") == {f"{i}.parquet"}
        assert files_of(root, f"t = '{text}'") == {f"{i}.parquet"}
        assert files_of(root, f"t LIKE '%{text[100:2_000]}%{text[3_000:]}'") == {f"{i}.parquet"}
        assert files_of(root, f"t LIKE '%{text[100:2_000][::-1]}%'") == set()
        assert files_of(root, f"has_token(t, '{text}')") == {f"{i}.parquet"}


@pytest.mark.parametrize("kind", ["bloom", "postings"])
def test_c17_zeros_and_nans_are_found_as_one(write_table: WriteTable, kind: str) -> None:
    """Among values on either side, so that bounds do not tell zeros from others."""
    values = {"minus": -0.0, "plus": 0.0, "nan": math.nan, "other": math.copysign(math.nan, -1), "one": 1.0}
    x = {name: [-5.0, value, 5.0] for name, value in values.items()}
    files = {
        f"{n}.parquet": pa.table({"x": pa.array(v, pa.float64()), "f": pa.array(v, pa.float32())}) for n, v in x.items()
    }
    root = write_table(files)
    index_of(root, **{kind: ["x", "f"]}, fpr=1e-6)
    for column in ("x", "f"):
        for literal in ("0", "0.0", "-0.0D", "CAST('-0.0' AS FLOAT)"):
            assert files_of(root, f"{column} = {literal}") == {"minus.parquet", "plus.parquet"}
            assert files_of(root, f"{column} IN ({literal}, 3)") == {"minus.parquet", "plus.parquet"}
        for literal in ("CAST('NaN' AS DOUBLE)", "CAST('NaN' AS FLOAT)"):
            assert files_of(root, f"{column} = {literal}") == {"nan.parquet", "other.parquet"}
        assert files_of(root, f"{column} = 1") == {"one.parquet"}


@takes_seconds
@pytest.mark.parametrize("kind", ["bloom", "postings"])
@pytest.mark.parametrize(
    ("narrow", "wide", "literals"),
    sweep(
        [
            (pa.int32(), pa.int64(), ["7", "7L", "7.0", "7BD", "CAST(7 AS TINYINT)", "7e0"]),
            (pa.int8(), pa.int32(), ["7", "7L", "7.0"]),
            (pa.float32(), pa.float64(), ["7", "7.0", "7D", "CAST(7 AS FLOAT)"]),
            (pa.decimal128(9, 2), pa.decimal128(17, 2), ["7", "7.00", "7.000", "7L"]),
            (pa.decimal128(20, 2), pa.decimal128(30, 2), ["7", "7.00", "7.000", "7L"]),
            (pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC"), ["TIMESTAMP '1970-01-01 00:00:07'"]),
        ],
        3,
    ),
    ids=str,
)
def test_c29_a_value_is_found_in_every_width(
    write_table: WriteTable, kind: str, narrow: pa.DataType, wide: pa.DataType, literals: Sequence[str]
) -> None:
    """Whatever the literal's type; and after a refresh under the wider type by the filter of the narrower."""

    def column(values: Sequence[int], type_: pa.DataType) -> pa.Array:
        scale = {"ms": 1_000, "us": 1_000_000}[type_.unit] if pa.types.is_timestamp(type_) else 1
        return pa.array([None if v is None else v * scale for v in values], type_)

    with_seven, without = [1, 7, None, 20], [2, 6, 8, 19, None]
    root = write_table(
        {"with.parquet": {"v": column(with_seven, narrow)}, "without.parquet": {"v": column(without, narrow)}}
    )
    index_of(root, **{kind: ["v"]}, fpr=1e-6)
    for step in range(3):
        for literal in literals:
            expected = {"with.parquet", *(["wide.parquet"] if step else [])}
            open_ = {"wide-without.parquet"} if step == 1 else set()  # which no filter knows yet
            assert files_of(root, f"v = {literal}") == expected | open_, literal
            assert files_of(root, f"v IN ({literal}, {literal})") == expected | open_, literal
            assert files_of(root, f"v <> {literal}") == files_of(root, "v IS NOT NULL")
        if step == 0:
            write_file(root / "wide.parquet", pa.table({"v": column(with_seven, wide)}))
            write_file(root / "wide-without.parquet", pa.table({"v": column(without, wide)}))
        elif step == 1:
            refresh(root)


def test_a_column_that_directories_name_is_not_looked_up(tmp_path: Path) -> None:
    """Files have one of that name too, with other values, of which the filter was made."""
    for part in (1, 2):
        data = pa.table({"rid": [part], "p": pa.array([part + 40], pa.int32())})
        write_file(tmp_path / f"p={part}" / "a.parquet", data)
    index_of(tmp_path, bloom=["p"])
    for predicate, expected in (("p = 1", [1]), ("p = 41", []), ("NOT p = 1", [2]), ("p IN (1, 42)", [1])):
        plan = sec.prune(sec.open_table(str(tmp_path)), predicate, strict=True)
        assert plan.to_arrow(columns=["rid"])["rid"].to_pylist() == expected
        assert not any("looked up" in note for stage in plan.report.stages for note in stage.notes)


# ---- what a build leaves behind --------------------------------------------------------------------------------------


def test_an_interrupted_build_leaves_nothing(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its segments are written, its fragments too, when their filters cannot be laid side by side."""
    sec.drop_index(sec.open_table(str(lake)))

    def interrupted(*_: object) -> None:
        assert list((lake / "_secateur" / "fragments").iterdir())
        raise KeyboardInterrupt

    monkeypatch.setattr(transpose, "write_file", interrupted)
    with pytest.raises(KeyboardInterrupt):
        index_of(lake, **ALL_KINDS)
    assert [path for path in (lake / "_secateur").rglob("*") if path.is_file()] == []
    check_files(lake, BUILT, user_is(42))


def test_a_dropped_index_leaves_nothing(lake: Path) -> None:
    assert len(sec.drop_index(sec.open_table(str(lake)))) > 20
    assert [path for path in (lake / "_secateur").rglob("*") if path.is_file()] == []
