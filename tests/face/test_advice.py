"""``sec.advise``: estimates against the index, or the table, that is then really made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur import advising
from secateur.advising import SAMPLE_BLOCKS
from secateur.cli import main
from secateur.cli.status import on_the_command_line
from secateur.errors import StalePlan
from secateur.index.model import BLOOM, NGRAM, ORDERED, POSTINGS, TOKEN, BuildOptions, FilterOption
from secateur.io.tables.table import Table
from secateur.pruning.explain.advice import Amount, Proposal, QueryCost, estimated, ranked
from tests.support.drawn.made_tables import MADE, PREDICATES, Made, table_of
from tests.support.profiles import examples, takes_seconds
from tests.support.small_tables import WHERES, files, written
from tests.support.stores.local_build import index_here
from tests.support.tables import write_file

FILES, GROUPS, ROWS = 8, 25, 400  # row groups of a file, rows of a row group
BLOCKS = FILES * GROUPS
FACTOR, SLACK, ERRORS = 2.0, 2.0, 2.0  # how near an estimate is to what is then left, see close()
ABSENT = 500_000_000_000  # a user who is not there
FILTERS = {
    "bloom": FilterOption(BLOOM, ""),
    "postings": FilterOption(POSTINGS, ""),
    "ngram": FilterOption(NGRAM, "", gram=5),
    "ordered postings": FilterOption(ORDERED, ""),
    "tokens": FilterOption(TOKEN, ""),
}


@cache
def rows() -> pa.Table:
    """Rows of all blocks: `ts` clustered, the others not, or but for outliers."""
    rng = np.random.default_rng(11)
    n = BLOCKS * ROWS
    ts = np.arange(n)
    block = ts // ROWS
    shops = [rng.choice(rng.integers(0, 300, 100), ROWS) for _ in range(BLOCKS)]
    return pa.table(
        {
            "ts": ts,
            "user": rng.integers(0, 10**12, n),
            "shop": np.concatenate(shops),
            "far": np.where(ts % ROWS == 0, 10**9 + ts, ts),
            "price": rng.random(n),
            "text": [
                f"{word} on node{at} of many"
                for word, at in zip(rng.integers(0, 10**9, n), block.tolist(), strict=True)
            ],
        }
    )


def write(root: Path, data: pa.Table) -> Table:
    for file in range(FILES):
        part = data.slice(file * GROUPS * ROWS, GROUPS * ROWS)
        write_file(root / f"half={2 * file // FILES}/{file:02d}.parquet", part, row_group_size=ROWS)
    return sec.open_table(str(root))


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Table:
    table = write(tmp_path_factory.mktemp("advice") / "lake", rows())
    index_here(table, BuildOptions())
    return table


def made(table: Table, proposal: Proposal, root: Path) -> Table:
    """The table with the index of a proposal, or rewritten in its order."""
    if proposal.structure == "clustering":
        ordered = write(root / "lake", rows().sort_by(proposal.column))
        index_here(ordered, BuildOptions())
        return ordered
    other = sec.open_table(table.location, index_location=str(root / "index"))
    if proposal.structure == "gaps":
        index_here(other, BuildOptions(gaps=(proposal.column,)))
    else:
        index_here(other, BuildOptions(filters=(replace(FILTERS[proposal.structure], column=proposal.column),)))
    return other


def user(at: int) -> int:
    """One that is there."""
    return int(rows()["user"][at].as_py())


SHAPES = [
    ("an unclustered id", ["user = {user}"], "bloom", "user"),
    ("an id that is not there", [f"user = {ABSENT}"], "bloom", "user"),
    ("some ids", ["user IN ({user}, 500000000005, 500000000006)"], "bloom", "user"),
    ("few values in many blocks", ["shop = 7", "shop = 8"], "postings", "shop"),
    ("a part of a text", ["text LIKE '%node77 %'", "text LIKE '%node5%'"], "ngram", "text"),
    ("outliers", ["far BETWEEN 50000 AND 51000", "far = 777"], "gaps", "far"),
    ("a range on an unclustered column", ["price BETWEEN 0.5 AND 0.52"], "clustering", "price"),
    ("a narrow range on an unclustered column", ["price BETWEEN 0.5 AND 0.5001"], "ordered postings", "price"),
    ("one of two parts of OR", ["user = {user} OR ts < 900"], "bloom", "user"),
]


@takes_seconds
@pytest.mark.parametrize(
    ("predicates", "structure", "column"), [shape[1:] for shape in SHAPES], ids=[shape[0] for shape in SHAPES]
)
def test_the_best_is_best_and_saves_what_it_is_said_to(
    lake: Table, tmp_path: Path, predicates: Sequence[str], structure: str, column: str
) -> None:
    asked = [predicate.format(user=user(12_345)) for predicate in predicates]
    advice = sec.advise(lake, asked)
    best = advice.proposals[0]
    assert (best.structure, best.column) == (structure, column), str(advice)
    assert advice.sampled < BLOCKS
    table = made(lake, best, tmp_path)
    for predicate, question, left in zip(asked, advice.questions, best.left, strict=True):
        assert question.now.blocks == len(sec.prune(lake, predicate).blocks)
        real = len(sec.prune(table, predicate, strict=True).blocks)
        assert close(left.blocks, real), (predicate, left, real)
        assert real <= question.now.blocks / 2, "it is worth making"
        if structure != "clustering":
            assert question.least is not None
            times = sec.prune(lake, predicate).to_arrow(columns=["ts"])["ts"].to_numpy()
            assert close(question.least.blocks, len(np.unique(times // ROWS)))


def close(estimate: float, real: float) -> bool:
    """Within twice, two blocks, and two standard errors of a sample of 64 blocks."""
    slack = SLACK + ERRORS * sqrt(real * BLOCKS / SAMPLE_BLOCKS)
    return estimate <= FACTOR * real + slack and real <= FACTOR * estimate + slack


@takes_seconds
def test_sizes_are_about_what_structures_take(lake: Table, tmp_path: Path) -> None:
    """Within a factor of two: sizes are powers of two, and how often values come again is estimated."""
    advice = sec.advise(lake, [f"user = {ABSENT}", "text LIKE '%node77 %'", "shop = 7", "price < 0.0001"])
    sizes = {(p.structure, p.column): p.bytes for p in advice.proposals}
    plain = index_bytes(lake)
    for structure, column in (
        ("bloom", "user"),
        ("ngram", "text"),
        ("postings", "shop"),
        ("ordered postings", "price"),
    ):
        proposal = next(p for p in advice.proposals if (p.structure, p.column) == (structure, column))
        real = index_bytes(made(lake, proposal, tmp_path / column)) - plain
        assert real / 2 <= sizes[structure, column] <= 2 * real, (structure, real)


def index_bytes(table: Table) -> int:
    return sum(file.size for folder in ("segments", "filters") for file in table.store.files(folder))


@examples(12, shrink=False)
@given(MADE, PREDICATES)
def test_a_sample_of_all_blocks_is_exact(how: Made, predicate: str) -> None:
    """Of structures without false positives; of the others at most those come in addition."""
    how = replace(how, indexed=how.files, filters=(), gaps=False)
    with table_of(how) as table:
        advice = sec.advise(table, [predicate], sample_blocks=1000)
        (question,) = advice.questions
        assert question.now.blocks == question.sampled == len(sec.prune(table, predicate).blocks)
        assert question.least is not None
        assert question.least.blocks <= question.now.blocks
        for proposal in advice.proposals:
            (left,) = proposal.left
            if proposal.structure in FILTERS:
                option = replace(FILTERS[proposal.structure], column=proposal.column)
                if "{" in proposal.call and proposal.structure != "ordered postings":  # another length, or folded
                    continue
                with table_of(replace(how, filters=(option,))) as other:
                    real = len(sec.prune(other, predicate, strict=True).blocks)
                assert question.least.blocks <= left.blocks
                is_exact = proposal.structure in ("postings", "ordered postings")
                assert left.blocks == pytest.approx(real) if is_exact else left.blocks <= real + 1


@takes_seconds
@pytest.mark.parametrize(
    "predicate",
    [
        "price < 0.0002",
        "price > 0.9999 OR price < 0.0001",
        "NOT (price BETWEEN 0.0002 AND 2)",
        "user > 999990000000 AND ts > 5000",
        "text LIKE '12345%'",
        "price BETWEEN 0.1 AND 0.9",
    ],
)
def test_ordered_postings_leave_what_is_said(lake: Table, tmp_path: Path, predicate: str) -> None:
    """All blocks are sampled, so the estimate is exact; under AND, OR and NOT, of texts, and for a wide range."""
    advice = sec.advise(lake, [predicate], sample_blocks=BLOCKS)
    proposal = next(one for one in advice.proposals if one.structure == "ordered postings")
    real = len(sec.prune(made(lake, proposal, tmp_path), predicate, strict=True).blocks)
    assert proposal.left[0].blocks == pytest.approx(real)


def test_single_values_are_offered_what_takes_less(lake: Table) -> None:
    offered = {proposal.structure for proposal in sec.advise(lake, ["price = 0.5 OR user IN (3, 4)"]).proposals}
    assert {"bloom", "postings"} <= offered
    assert "ordered postings" not in offered


OF_EVERY_TYPE = [
    *(where.sql for where in WHERES if where.sql is not None),
    "f > 1",
    "g = 1.5 OR b",
    "ts >= TIMESTAMP '2000-01-01'",
    "day = DATE '1990-01-01'",
    "d < 3",
    "wide = 0",
    "raw = X'61'",
    "s LIKE '%xx%'",
    "f IS NULL",
    "i / 0 > 1",
    "_metadata.file_name = '0.parquet'",
]


@examples(12, shrink=False)
@given(
    files(),
    st.integers(0, 3),
    st.lists(st.sampled_from(OF_EVERY_TYPE), min_size=1, max_size=3),
    st.sampled_from([1, 2, 64]),
)
def test_columns_of_every_type(
    chosen: list[tuple[str, pa.Table, int]], covered: int, predicates: list[str], sample_blocks: int
) -> None:
    """Whatever is tried lies between what must be read and what is read now."""
    with written(chosen, covered) as table:
        advice = sec.advise(table, predicates, sample_blocks=sample_blocks)
        assert advice.to_table().num_rows == len(advice.proposals) * len(predicates)
        for proposal in advice.proposals:
            for question, left in zip(advice.questions, proposal.left, strict=True):
                if proposal.structure != "clustering":
                    assert 0 <= left.blocks <= question.now.blocks
                    if sample_blocks == 64 and question.least is not None:
                        assert question.least.blocks <= left.blocks


def test_what_is_there_is_not_proposed(lake: Table, tmp_path: Path) -> None:
    other = sec.open_table(lake.location, index_location=str(tmp_path))
    index_here(other, BuildOptions(filters=(FilterOption(BLOOM, "user"),), gaps=("far",)))
    proposed = {
        (p.structure, p.column) for p in sec.advise(other, [f"user = {ABSENT}", "far = 7", "half = 0"]).proposals
    }
    assert proposed == {
        ("postings", "user"),
        ("bloom", "far"),
        ("postings", "far"),
        ("clustering", "user"),
        ("clustering", "far"),
    }


def test_a_clustering_that_takes_away_another_is_not_best(lake: Table) -> None:
    """Sorted by `price`, what is read by `ts` now would lie everywhere."""
    advice = sec.advise(lake, ["price < 0.01", *["ts < 1000"] * 3])
    clustering = next(p for p in advice.proposals if (p.structure, p.column) == ("clustering", "price"))
    assert clustering.left[0].blocks <= 6
    assert clustering.left[1].blocks >= BLOCKS / 2
    assert clustering.bytes_left > advice.bytes_now


def test_partitions_stay(lake: Table) -> None:
    advice = sec.advise(lake, ["price BETWEEN 0.5 AND 0.52 AND half = 1"])
    best = advice.proposals[0]
    assert (best.structure, best.column, advice.questions[0].now.blocks) == ("clustering", "price", BLOCKS / 2)
    assert best.left[0].blocks <= BLOCKS / 2 * 0.02 * FACTOR + SLACK


def test_without_an_index(lake: Table, tmp_path: Path) -> None:
    bare = sec.open_table(lake.location, index_location=str(tmp_path))
    best = sec.advise(bare, [sec.col("user") == ABSENT]).proposals[0]
    assert best.call == "build_index(table, spark=spark, bloom=['user'])"


def test_what_only_spark_can_tell(lake: Table) -> None:
    advice = sec.advise(lake, ["rand() > 2", f"user = {ABSENT} AND rand() > 2"], sample_blocks=8)
    assert [question.least for question in advice.questions] == [None, None]
    assert advice.proposals[0].structure == "bloom"
    assert "only Spark can tell the least" in str(advice)


def test_text_table_and_command_line(lake: Table) -> None:
    asked = [f"user = {ABSENT}", "ts < 1000"]
    advice = sec.advise(lake, asked, sample_blocks=16)
    table = advice.to_table()
    assert table.num_rows == len(advice.proposals) * 2
    assert table["predicate"].to_pylist()[:2] == asked
    assert table["blocks_left"].to_pylist()[0] == advice.proposals[0].left[0].blocks
    assert table["call"][0].as_py() == "refresh_index(table, spark=spark, bloom=['user'])"
    text = CliRunner().invoke(main, ["advise", lake.location, *asked, "--sample-blocks", "16"])
    expected = on_the_command_line(str(advice)).replace(" PATH ", f" {lake.location} ")
    assert text.exit_code == 0 and text.output == f"{expected}\n"
    parsed = json.loads(
        CliRunner().invoke(main, ["advise", lake.location, *asked, "--sample-blocks", "16", "--json"]).stdout
    )
    assert parsed["proposals"][0]["call"] == advice.proposals[0].call
    assert parsed["questions"][1]["now"]["blocks"] == 3


def test_files_that_come_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are known by the places of their files, which another file shifts."""
    write_file(tmp_path / "b.parquet", {"x": [1, 2]})
    real = advising.prune

    def prune(*arguments: Any, **options: Any) -> Any:
        plan = real(*arguments, **options)
        write_file(tmp_path / "a.parquet", {"x": [3, 4]})
        return plan

    monkeypatch.setattr(advising, "prune", prune)
    with pytest.raises(StalePlan, match="ask again"):
        sec.advise(sec.open_table(str(tmp_path)), ["x = 1"])


@pytest.mark.parametrize("predicates", [f"user = {ABSENT}", []])
def test_what_is_no_list_of_predicates(lake: Table, predicates: Sequence[str]) -> None:
    with pytest.raises(ValueError, match="predicates is"):
        sec.advise(lake, predicates)
    with pytest.raises(ValueError, match="sample_blocks is 0"):
        sec.advise(lake, [f"user = {ABSENT}"], sample_blocks=0)


@given(st.integers(0, 64), st.integers(64, 10_000), st.none() | st.floats(0, 10_000))
def test_estimates_lie_between_what_is_known(distinct: int, units: int, typical: float | None) -> None:
    """At least as many as were found, and no more than could be."""
    estimate = estimated(distinct, 64, units, typical)
    assert min(distinct, 1) <= max(estimate, distinct) <= units
    assert estimated(distinct, units, units, typical) == distinct
    assert estimate >= distinct


def test_what_takes_least_comes_first_among_equals() -> None:
    now = Amount(1000, 1000, 1000.0)
    asked = [QueryCost("a = 1", now, None, 10)]
    left = {"large": (900, 1.0), "small": (10, 2.0), "worse": (1, 40.0), "bad": (2, 500.0), "useless": (0, 1000.0)}
    proposals = [Proposal(name, "a", "", size, (Amount(rest, rest, rest),)) for name, (size, rest) in left.items()]
    assert [proposal.structure for proposal in ranked(proposals, asked)] == [
        "small",
        "large",
        "worse",
        "bad",
        "useless",
    ]


def test_a_clustering_comes_behind_an_index_that_saves_half_as_much() -> None:
    asked = [QueryCost("a = 1", Amount(1000, 1000, 1000.0), None, 10)]

    def order(index_left: float) -> list[str]:
        left = {"clustering": 1.0, "bloom": index_left}
        proposals = [Proposal(name, "a", "", 9, (Amount(rest, rest, rest),)) for name, rest in left.items()]
        return [proposal.structure for proposal in ranked(proposals, asked)]

    assert order(450.0) == ["bloom", "clustering"]
    assert order(550.0) == ["clustering", "bloom"]
