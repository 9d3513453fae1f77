"""What earlier reads found never changes an answer: not by other files, sessions, snapshots or ways to read."""

from __future__ import annotations

import itertools
import os
import random
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.errors import AuditFailed, StalePlan
from secateur.index.model import BuildOptions, FilterOption
from secateur.io.scan.kept.verdict_memory import BYTES_VARIABLE, MEMORY
from secateur.io.scan.reading.filtered_read import RowCondition
from secateur.io.tables.table import Table
from secateur.pruning.report import counted
from secateur.scan import Scan
from tests.support.drawn.row_histories import HISTORIES
from tests.support.drawn.strategies import connected
from tests.support.profiles import by_profile, examples, takes_seconds
from tests.support.small_lake import (
    FILTERS,
    STEPS,
    Lake,
    Step,
    ask_between_changes,
    asked,
    evens,
    ids,
    lake_of_chance,
    lake_of_evens,
    survivors,
)
from tests.support.stores.local_build import index_here
from tests.support.stores.lying_index import element, lie_in_segment
from tests.support.tables import write_file

pytestmark = pytest.mark.usefixtures("remembering")


@examples(60, shrink=False)
@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.lists(STEPS, min_size=3, max_size=9),
    together=st.booleans(),
)
def test_answers_are_those_of_a_plain_evaluation(seed: int, steps: list[Step], *, together: bool) -> None:
    """C51, C52, C53: predicates are asked again and again, also parts of others, between changes of the files."""
    with tempfile.TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patch:
        if not together:  # each row group by itself, as large ones are read
            patch.setattr("secateur.io.parquet.row_group_reader.MOST_TOGETHER", 0)
        ask_between_changes(lake_of_chance(Path(root) / "lake", seed), steps, repeated=2)


NOWHERE = ["n = 7", "n > 3.5 AND n < 8.5", "s = 'aa'", "s LIKE '%c%'"]  # within the bounds of most blocks
CONSTANT = ["i = 3", "i = 9", "i IN (3, 9)", "i IN (9, 12)", "n = 1", "s = 'ab'"]  # the first ones on whole segments


@examples(60, shrink=False)
@given(
    seed=st.integers(0, 2**32 - 1),
    filters=st.sampled_from(FILTERS),
    segment_blocks=st.integers(1, 4),
    earlier=st.lists(st.sampled_from(NOWHERE), min_size=1, max_size=3),
    queries=st.lists(connected(st.sampled_from(NOWHERE + CONSTANT), ["TRUE"], max_leaves=4), min_size=1, max_size=6),
)
def test_c51_earlier_reads_and_filters_tell_of_the_same_predicate(
    seed: int, filters: tuple[FilterOption, ...], segment_blocks: int, earlier: list[str], queries: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as root:
        lake = Lake(Path(root) / "lake", np.random.default_rng(seed))
        for number, value in enumerate([3, 9, 3]):
            lake.write(f"{number}.parquet", 12, np.full(12, value))
        lake.write("any.parquet", 12)
        table = sec.open_table(lake.root)
        index_here(table, BuildOptions(segment_blocks=segment_blocks, fan_out=2, filters=filters))
        for sql in [*earlier, *queries]:
            asked(table, sql, "arrow", lake.matching(sql), (earlier, queries, sql))


@takes_seconds
@pytest.mark.parametrize("seed", by_profile(quick=range(2), full=range(20), nightly=range(200), fast=range(1)))
@pytest.mark.parametrize("kind", HISTORIES)
def test_tables_with_deletes_and_snapshots(tmp_path: Path, kind: str, seed: int) -> None:
    """C52, C53: a row that was deleted when a verdict was left is there again in an older snapshot."""
    draw = random.Random(seed)
    history = HISTORIES[kind](tmp_path, draw)
    predicates = {"rid % 5 = 4": 4, "rid % 5 = 2 AND rid >= 0": 2, "rid % 5 = 0 OR rid < 0": 0}
    for _ in range(8):
        history.step()
        for table, rids in history.now_and_before(kind):
            for sql, rest in draw.sample(sorted(predicates.items()), 2):
                expected = [rid for rid in rids if rid % 5 == rest]
                for way in draw.sample(["arrow", "batches", "count"], 2):
                    asked(table, sql, way, expected, (history.log, sql, way))


# ---- what is remembered, and what is not


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lake_of_evens(tmp_path / "lake")


NEVER = "i = 7"  # within the bounds of every block


def without_match(lake: Lake, sql: str) -> int:
    """The blocks without a match, of all."""
    kept = set(lake.matching(sql))
    blocks = [set(table["rid"].slice(at, 6).to_pylist()) for table in lake.files.values() for at in range(0, 24, 6)]
    return sum(kept.isdisjoint(block) for block in blocks)


@pytest.mark.parametrize("sql", ["i % 7 = 3", "i = 5 AND i % 7 = 5", "s = 'ab' OR n = 3", "upper(s) = 'AB'"])
@pytest.mark.parametrize("way", ["arrow", "batches", "count", "exact"])
def test_what_was_asked_once_reads_no_block_without_a_match(lake: Lake, sql: str, way: str) -> None:
    table = sec.open_table(lake.root)
    nothing = without_match(lake, sql)
    assert survivors(table, sql) > 16 - nothing, "bounds alone leave blocks without a match"
    if way == "exact":
        sec.prune(table, sql).affected(exact=True)
    else:
        asked(table, sql, way, lake.matching(sql), sql)
    plan = sec.prune(table, sql)
    assert len(plan.survivors.blocks) == 16 - nothing
    (stage,) = [stage for stage in plan.report.stages if stage.name == "remembered"]
    refuted = counted(stage.before.blocks - stage.after.blocks, "block")
    assert stage.notes == (f"earlier reads found no match in {refuted}",)
    assert ids(plan.to_arrow(["rid"])) == lake.matching(sql)
    lake.write("more.parquet", 24, evens(lake.rng))
    assert survivors(table, sql) <= 16 - nothing + 4, "of what was appended every block is read"


def test_it_serves_other_predicates(lake: Lake) -> None:
    """A wider condition that found nothing rules out a narrower one, under AND, OR and NOT."""
    table = sec.open_table(lake.root)
    sec.prune(table, NEVER).to_arrow()
    sec.prune(table, "n > 3.5 AND n < 8.5").to_arrow()
    assert survivors(table, f"{NEVER} AND s = 'a'") == 0
    assert survivors(table, "n > 5 AND n < 7") == 0
    assert survivors(table, "n > 5 AND n < 9.5") > 0
    assert survivors(table, f"{NEVER} OR n = 5 OR n = 6") == 0
    assert survivors(table, f"({NEVER} OR n = 5) AND s = 'a'") == 0
    assert survivors(table, f"{NEVER} OR s = 'a'") == survivors(table, "s = 'a'", use_index=False)
    assert survivors(table, "i = 9") == 16


def test_a_condition_that_is_true_nowhere_is_false_or_null(tmp_path: Path) -> None:
    """Its negation is then TRUE where no value is NULL, and no row is read to know that."""
    write_file(tmp_path / "a.parquet", {"s": ["a", "b"] * 4}, row_group_size=2)
    write_file(tmp_path / "b.parquet", {"s": ["a", None] * 4}, row_group_size=2)
    table = sec.open_table(tmp_path)
    assert sec.prune(table, "s LIKE '%c%'").count() == 0
    plan = sec.prune(table, "NOT (s LIKE '%c%')")
    assert plan.survivors.fully_matching.tolist() == [True] * 4 + [False] * 4
    assert plan.count() == 12


def test_c51_filters_are_not_asked_about_segments_that_match_whole(tmp_path: Path) -> None:
    """What was found about one alternative leaves the other one as it is."""
    write_file(tmp_path / "a.parquet", {"k": [1] * 4, "v": [0, 2, 4, 6]})
    write_file(tmp_path / "b.parquet", {"k": [0, 1, 2, 3], "v": [0, 2, 4, 6]})
    table = sec.open_table(tmp_path)
    sec.build_index(table, postings=["k"], segment_blocks=1)
    assert sec.prune(table, "v = 3").count() == 0
    plan = sec.prune(table, "k = 1 OR v = 3")
    assert any("all rows of 1 segment match" in note for stage in plan.report.stages for note in stage.notes)
    assert plan.to_arrow(["k"])["k"].to_pylist() == [1] * 5


def test_it_is_told_why_a_block_is_left_out(lake: Lake) -> None:
    table = sec.open_table(lake.root)
    sec.prune(table, NEVER).count()
    why = sec.prune(table, NEVER).why("0.parquet", 1)
    assert why.stage == "remembered"
    assert "an earlier read of the same condition, or of a wider one, found no row in it" in str(why)
    assert "remembered" in sec.prune(table, NEVER).to_html()


def test_c51_another_session_asks_anew(lake: Lake) -> None:
    table = sec.open_table(lake.root)
    sec.prune(table, NEVER).to_arrow()
    assert survivors(table, NEVER) == 0
    assert survivors(table, NEVER, session_time_zone="Asia/Tokyo") == 16
    assert survivors(table, NEVER, ansi=False) == 16
    assert survivors(table, NEVER, use_index=False) == 16
    assert survivors(table, NEVER, use_verdicts=False) == 16


def test_c51_a_conjunction_says_nothing_of_its_parts(lake: Lake) -> None:
    table = sec.open_table(lake.root)
    both = "i % 7 = 3 AND s = 'aa'"
    assert survivors(table, both) > 0
    sec.prune(table, both).to_arrow()
    assert survivors(table, both) == 0
    for part in ("i % 7 = 3", "i % 7 = 3 OR s = 'aa'", "i % 7 = 3 AND s IS NOT NULL"):
        assert ids(sec.prune(table, part).to_arrow(["rid"])) == lake.matching(part) != []


@pytest.mark.parametrize("settings", [{"limit": 100}, {"order_by": "i", "limit": 3}, {"keys": [1, 2], "on": "i"}])
def test_c52_a_limit_a_top_n_and_keys_leave_nothing(lake: Lake, settings: dict[str, object]) -> None:
    table = sec.open_table(lake.root)
    sec.prune(table, NEVER, **settings).to_arrow()  # type: ignore[arg-type]
    assert survivors(table, NEVER) == 16


def test_c52_who_stops_leaves_nothing_of_what_was_not_read(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """An iterator that is abandoned at its first batch, and a read that fails in the midst of a row group."""
    monkeypatch.setattr("secateur.io.parquet.row_group_reader.BATCH_ROWS", 2)
    table, sql = sec.open_table(lake.root), "s = 'ab'"
    batches = sec.prune(table, sql).to_batches()
    next(batches)
    batches.close()
    assert ids(sec.prune(table, sql).to_arrow(["rid"])) == lake.matching(sql)
    calls = itertools.count()

    class Failing(RowCondition):
        def __call__(self, batch: pa.RecordBatch) -> np.ndarray:
            if next(calls) == 1:
                raise KeyboardInterrupt
            return super().__call__(batch)

    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr("secateur.io.scan.reading.block_reader.RowCondition", Failing)
        patch.setattr("secateur.io.scan.reading.block_reader.MOST_FILES", 1)
        sec.prune(table, NEVER).to_arrow()
    assert next(calls) > 1
    assert survivors(table, NEVER) > 0, "the row group that was given up is read again"


def test_c53_a_name_that_is_used_again(lake: Lake) -> None:
    """A file of the same name, size and time is another."""
    table, path = sec.open_table(lake.root), lake.root / "0.parquet"
    lake.files["0.parquet"] = lake.files["0.parquet"].set_column(1, "i", pa.array([40] * 24))
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    write_file(path, lake.files["0.parquet"], **plain)
    sec.prune(table, "i = 77").to_arrow()
    assert survivors(table, "i = 77") == 0
    size, then = path.stat().st_size, path.stat().st_mtime_ns
    write_file(path, lake.files["0.parquet"].set_column(1, "i", pa.array([77] * 24)), **plain)
    os.utime(path, ns=(then, then))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (size, then)
    assert sec.prune(table, "i = 77").count() == 24


def test_an_audit_reads_what_was_remembered(lake: Lake) -> None:
    """It does not trust a verdict, and a wrong one is forgotten."""
    table = sec.open_table(lake.root)
    sec.prune(table, NEVER).to_arrow()
    report = sec.prune(table, NEVER, audit=1.0).report.audit
    assert report is not None
    assert report.blocks == 16
    asked_before = sec.prune(table, "s = 'ab'")
    reader = asked_before._reader(())
    for file in asked_before.blocks_at(asked_before.order(), reader).by_file():  # a verdict that no read would leave
        assert reader.without_match is not None
        reader.without_match(file, 0, file.row_groups)
    assert survivors(table, "s = 'ab'") == 0
    with pytest.raises(AuditFailed, match="an earlier read of the same condition"):
        sec.prune(table, "s = 'ab'", audit=1.0)
    assert ids(sec.prune(table, "s = 'ab'").to_arrow(["rid"])) == lake.matching("s = 'ab'")


PAGE_LOWER = 2  # of the arrays of pages


def in_two_pages(root: Path) -> tuple[Table, str]:
    """One block of two pages, an index of it, and a predicate that is TRUE on a row of the first page."""
    pages = {"write_page_index": True, "max_rows_per_page": 5, "write_batch_size": 1}
    write_file(root / "a.parquet", {"i": [10, 11, 12, 13, 14, 15, 17, 18, 19, 20]}, **pages)
    index_here(sec.open_table(root), BuildOptions())
    return sec.open_table(root), "i IN (14, 16)"


def test_c51_a_verdict_that_rests_on_wrong_bounds_of_pages_goes_with_the_index(tmp_path: Path) -> None:
    table, sql = in_two_pages(tmp_path)
    lie_in_segment(tmp_path / "_secateur", "page/0", element(PAGE_LOWER, 0, 15))
    wrong = sec.prune(sec.open_table(tmp_path), sql)
    assert (wrong.count(), wrong.residuals.whole is None) == (0, False)
    assert survivors(sec.open_table(tmp_path), sql) == 0, "as long as that index is there"
    sec.drop_index(table)
    assert sec.prune(sec.open_table(tmp_path), sql).count() == 1
    index_here(sec.open_table(tmp_path), BuildOptions())
    assert sec.prune(sec.open_table(tmp_path), sql).count() == 1


def test_a_verdict_of_rows_that_were_all_looked_at_outlives_the_index(lake: Lake) -> None:
    table, sql = sec.open_table(lake.root), "i % 7 = 3"
    index_here(table, BuildOptions())
    sec.prune(table, sql).to_arrow()
    nothing = without_match(lake, sql)
    assert survivors(table, sql) == 16 - nothing < 16
    index_here(table, BuildOptions(segment_blocks=4))
    assert survivors(table, sql) == 16 - nothing


def test_it_is_bounded_and_can_be_turned_off(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = sec.open_table(lake.root)
    sec.prune(table, NEVER).to_arrow()
    monkeypatch.setenv(BYTES_VARIABLE, "0")
    assert survivors(table, NEVER) == 16, "0 leaves what is known unused"
    sec.prune(table, "i = 9").to_arrow()
    monkeypatch.setenv(BYTES_VARIABLE, "64 kB")
    assert survivors(table, "i = 9") == 16, "and nothing was added"
    for rest in range(31, 71):
        sec.prune(table, f"i IN (11, {rest})").to_arrow()
        assert MEMORY.nbytes <= 64_000
    assert survivors(table, "i IN (11, 70)") == 0
    assert survivors(table, NEVER) == 16, "what was used longest ago is forgotten"
    monkeypatch.delenv(BYTES_VARIABLE)
    monkeypatch.setattr("secateur.io.scan.kept.verdict_memory.MOST_CONDITIONS", 3)
    for rest in range(101, 105):
        sec.prune(table, f"i IN (11, {rest})").to_arrow()
    assert survivors(table, "i IN (11, 70)") == 16
    monkeypatch.setenv(BYTES_VARIABLE, "many")
    with pytest.raises(ValueError, match=BYTES_VARIABLE):
        sec.prune(table, NEVER)


def test_what_only_spark_knows_or_the_catalog_says_is_not_remembered(tmp_path: Path) -> None:
    """Functions that may be random, the time of the query, and values that are not in the files."""
    for p in range(2):
        write_file(tmp_path / f"p={p}" / "a.parquet", {"i": [0, 40, 0, 40, 0] * 4}, row_group_size=5)
    table = sec.open_table(tmp_path)
    for sql in ("i = 7 OR i + p = 9", "i + p = 7"):
        assert sec.prune(table, sql).count() == 0
        assert len(sec.prune(table, sql).survivors.blocks) == 8
    plan = sec.prune(table, "i = 7 AND p = 1")
    assert plan.count() == 0
    assert survivors(table, "i = 7 AND p = 1") == 0, "what is left to check on rows is about i alone"


def test_a_stale_plan_leaves_nothing(lake: Lake) -> None:
    table = sec.open_table(lake.root, freshness=60)
    plan: Scan = sec.prune(table, NEVER)
    lake.write("0.parquet", 24, evens(lake.rng))
    with pytest.raises(StalePlan):
        plan.to_arrow()
    fresh = sec.open_table(lake.root)
    assert set(fates(sec.prune(fresh, NEVER), "0.parquet")) == {None}


def fates(plan: Scan, path: str) -> list[str | None]:
    return [why.stage for why in plan.why(path).blocks]


def test_files_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    lake = Lake(tmp_path, np.random.default_rng(1))
    for number in range(80):
        lake.write(f"{number}.parquet", 2, np.array([0, 20]))
    table = sec.open_table(tmp_path)
    MEMORY.forget(table.location)
    begun = MEMORY.nbytes
    sec.prune(table, NEVER).to_arrow()
    full = MEMORY.nbytes - begun
    for number in range(70):
        (tmp_path / f"{number}.parquet").unlink()
    assert survivors(table, NEVER) == 0
    assert MEMORY.nbytes - begun < full / 2
    lake.files = {name: rows for name, rows in lake.files.items() if (tmp_path / name).exists()}
    lake.write("0.parquet", 2, np.array([0, 20]))
    assert survivors(table, NEVER) == 1
    assert replace(lake, root=tmp_path).matching(NEVER) == []
