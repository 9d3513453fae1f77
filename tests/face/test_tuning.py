"""Tuning: what it chooses by the log of plans, what it leaves alone, and that it changes no answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import secateur as sec
from secateur import plan_log
from secateur.amounts import bytes_of
from secateur.cli import main
from secateur.errors import IndexMissing, InvalidOption
from secateur.index.segments.snapshot_files import snapshot_numbers
from secateur.maintain import build as builds
from secateur.pruning.explain.tuning import Tuning
from tests.support.profiles import takes_seconds
from tests.support.tables import write_file

FILES, BLOCKS, ROWS = 4, 10, 200
EVERYTHING = "100%"


def write(root: Path) -> Path:
    root.mkdir()
    rng = np.random.default_rng(3)
    for i in range(FILES):
        n = BLOCKS * ROWS
        rows = {
            "ts": i * n + np.arange(n),
            "user": rng.integers(0, 10**9, n),
            "item": rng.integers(0, 10**9, n),
            "shop": rng.integers(0, 900, n),
            "text": [f"GET /page{page} from host{host}" for page, host in rng.integers(0, 5_000, (n, 2)).tolist()],
        }
        write_file(root / f"{i}.parquet", pa.table(rows), row_group_size=ROWS)
    return root


@pytest.fixture
def lake(tmp_path: Path) -> str:
    root = str(write(tmp_path / "lake"))
    sec.build_index(root, sort_key=["ts"])
    return root


def ask(lake: str, *predicates: str) -> None:
    for predicate in predicates:
        sec.prune(lake, predicate)


def names(structures: Sequence[object]) -> list[tuple[str, str]]:
    return [(item.structure, item.column) for item in structures]  # type: ignore[attr-defined]


def bytes_read(lake: str, predicate: str) -> int:
    read = sec.prune(lake, predicate).report.stages[-1].after.bytes
    assert read is not None
    return read


def test_what_is_asked_most_is_indexed_first(lake: str, log: Path) -> None:
    ask(lake, *(f"user = {i}" for i in range(20)), "item = 5")
    both = sec.tune(lake, budget=EVERYTHING)
    assert [item.column for item in both.to_build] == ["user", "item"]
    assert both.bytes_then < both.bytes_now / 10
    first, second = both.to_build
    assert first.saved is not None and second.saved is not None
    assert first.saved > 10 * second.saved
    one = sec.tune(lake, budget=first.bytes // 2)
    assert [item.column for item in one.to_build] == ["user"]
    assert 0 < one.index_bytes <= one.budget == first.bytes // 2
    assert names(sec.tune(lake, budget=0).structures) == []


def test_what_it_expects_is_what_is_read(lake: str, log: Path) -> None:
    """All blocks are sampled, so it is but for the sizes of blocks that differ a little."""
    rows = sec.prune(lake, "ts IN (7, 4000, 7999)").to_arrow(columns=["user"])["user"].to_pylist()
    log.unlink()
    ask(lake, *(f"user = {user}" for user in rows))
    tuning = sec.tune(lake, budget=EVERYTHING, apply=True)
    assert tuning.bytes_now == sum(use.bytes_read for use in sec.workload(lake, log=log).shapes) / 3
    measured = sum(bytes_read(lake, f"user = {user}") for user in rows) / len(rows)
    assert 0.9 * measured <= tuning.bytes_then <= 1.1 * measured


def test_logged_literals_are_used(lake: str, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a value that is in every block, no filter saves anything; of values drawn, one would."""
    for file in range(FILES):
        path = Path(lake) / f"{file}.parquet"
        write_file(path, pa.table({"a": [5, *range(file * 1000, file * 1000 + 99)] * 4}), row_group_size=100)
    monkeypatch.setenv(plan_log.LITERALS_VARIABLE, "1")
    sec.build_index(lake)
    ask(lake, *["a = 5"] * 3)
    tuning = sec.tune(lake, budget=EVERYTHING)
    assert names(tuning.structures) == []
    assert tuning.shapes[0].note == "literals logged"
    monkeypatch.delenv(plan_log.LITERALS_VARIABLE)
    log.unlink()
    ask(lake, *["a = 5"] * 3)
    assert sec.tune(lake, budget=EVERYTHING).shapes[0].note == "literals drawn from the table"


def test_narrow_ranges_get_ordered_postings(lake: str, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a column by which the table is not clustered, where they fit; look-ups of single values need less."""
    monkeypatch.setenv(plan_log.LITERALS_VARIABLE, "1")
    asked = "item BETWEEN 500000000 AND 500500000"
    ask(lake, asked, asked, "user = 500000000")
    rows = sec.prune(lake, asked).to_arrow().sort_by("ts")
    tuning = sec.tune(lake, budget=EVERYTHING, apply=True)
    structures = {item.column: item.structure for item in tuning.to_build}
    assert structures["item"] == "ordered postings"
    assert structures["user"] in ("bloom", "postings")
    assert {"postings={'item': 'ordered'}" in item.call for item in tuning.to_build} == {True, False}
    assert (
        bytes_read(lake, asked) * FILES * BLOCKS
        <= 2 * rows.num_rows * sec.prune(lake, "true").report.stages[0].before.bytes
    )
    assert sec.prune(lake, asked, strict=True).to_arrow().sort_by("ts") == rows
    assert names(sec.tune(lake, budget=EVERYTHING).to_keep) == names(tuning.to_build)
    assert ("ordered postings", "item") not in names(sec.tune(lake, budget=1_000).to_keep)


def test_both_sides_of_or_are_indexed_or_none(lake: str, log: Path) -> None:
    ask(lake, "user = 1 OR item = 1")
    both = sec.tune(lake, budget=EVERYTHING)
    assert sorted(item.column for item in both.to_build) == ["item", "user"]
    assert names(sec.tune(lake, budget=both.index_bytes // 8).structures) == []


@takes_seconds
def test_what_no_plan_needs_is_dropped_and_named(lake: str, log: Path) -> None:
    sec.build_index(lake, sort_key=["ts"], bloom=["user", "item"], tokens=["text"], gaps=["shop"])
    ask(lake, "user = 1")
    tuning = sec.tune(lake, budget=EVERYTHING, apply=True)
    assert names(tuning.to_keep) == [("bloom", "user")]
    assert sorted(names(tuning.to_drop)) == [("bloom", "item"), ("gaps", "shop"), ("tokens", "text")]
    assert {item.why for item in tuning.to_drop} == {"no logged plan is served by it"}
    index = sec.describe_index(lake)
    assert (index.bloom, index.tokens, index.gaps, index.sort_key) == (("user",), (), (), ("ts",))
    again = sec.tune(lake, budget=EVERYTHING)
    assert names(again.structures) == names(again.to_keep) == [("bloom", "user")]


def test_what_may_serve_a_shape_that_cannot_be_simulated_is_kept(lake: str, log: Path) -> None:
    sec.build_index(lake, bloom=["item"], tokens=["text"], postings=["shop"])
    ask(lake, "has_token(text, 'host7')", "abs(shop) = 3", "user = 1")
    tuning = sec.tune(lake, budget=EVERYTHING)
    assert sorted(names(tuning.to_keep)) == [("postings", "shop"), ("tokens", "text")]
    assert names(tuning.to_drop) == [("bloom", "item")]
    notes = {shape.shape: shape.note for shape in tuning.shapes if shape.bytes_now is None}
    assert len(notes) == 2
    assert all("log literals" in note for note in notes.values())


def test_an_indexed_expression_that_is_asked_for_is_kept(lake: str, log: Path) -> None:
    sec.build_index(lake, bloom=["lower(text)", "upper(text)"])
    ask(lake, "lower(text) = 'x'", "user = 1")
    tuning = sec.tune(lake, budget=EVERYTHING, apply=True)
    assert ("bloom", "lower(`text`)") in names(tuning.to_keep)
    assert sec.prune(lake, "lower(text) = 'x'").blocks.num_rows == 0


QUERIES = [
    "user = 17 OR shop = 3",
    "text LIKE '%host77%' AND ts > 100",
    "shop IN (1, 2, 3) AND NOT user = 5",
    "ts BETWEEN 300 AND 900",
    "item IS NULL OR shop = 899",
]


@takes_seconds
@pytest.mark.parametrize("budget", ["2%", "30%", EVERYTHING])
def test_answers_stay(lake: str, log: Path, budget: str) -> None:
    sec.build_index(lake, sort_key=["ts"], postings=["user"], ngram=["text"], gaps=["item"])
    before = [sec.prune(lake, query).to_arrow() for query in QUERIES]
    tuning = sec.tune(lake, budget=budget, apply=True)
    index = sec.describe_index(lake)
    assert {*index.bloom, *index.postings, *index.ngram, *index.tokens, *index.gaps} == {
        item.column for item in (*tuning.to_build, *tuning.to_keep)
    }
    for query, rows in zip(QUERIES, before, strict=True):
        after = sec.prune(lake, query, strict=True, audit=1.0)
        assert after.to_arrow().sort_by("ts") == rows.sort_by("ts")
        assert after.count() == rows.num_rows


class Killed(Exception):
    """As if the process ended here."""


@pytest.mark.parametrize("structures", [{}, {"postings": ["shop"]}], ids=["a refresh", "a build"])
def test_the_old_index_stays_where_applying_ends_early(lake: str, log: Path, structures: dict[str, list[str]]) -> None:
    sec.build_index(lake, sort_key=["ts"], **structures)  # type: ignore[arg-type]
    ask(lake, "user = 1")
    store = sec.open_table(lake).store
    numbers = snapshot_numbers(store)
    with patch.object(builds, "write_bloom_matrices", side_effect=Killed), pytest.raises(Killed):
        sec.tune(lake, budget=EVERYTHING, apply=True)
    assert snapshot_numbers(store) == numbers
    assert sec.describe_index(lake).bloom == ()
    assert sec.prune(lake, "user = 1", strict=True).count() == 0


def test_nothing_is_written_and_nothing_is_logged(lake: str, log: Path) -> None:
    ask(lake, "user = 1", "text LIKE '%host%'")
    before = {path: path.stat().st_mtime_ns for path in (*Path(lake).rglob("*"), log)}
    reports: list[object] = []
    sec.add_reporter(reports.append)
    try:
        first, second = (sec.tune(lake, budget="20%") for _ in range(2))
    finally:
        sec.remove_reporter(reports.append)
    assert first == second
    assert reports == []
    assert {path: path.stat().st_mtime_ns for path in (*Path(lake).rglob("*"), log)} == before


def test_amounts() -> None:
    amounts: list[tuple[int | float | str, int]] = [
        (17, 17),
        (2.5e6, 2_500_000),
        ("20MB", 20_000_000),
        ("1.5 kb", 1_500),
        ("12", 12),
        ("5%", 50),
        ("0.5 %", 5),
    ]
    assert [bytes_of(budget, 1000) for budget, _ in amounts] == [amount for _, amount in amounts]


@pytest.mark.parametrize("budget", ["", "much", "5 parts", "-1", -1, float("nan"), float("inf"), True, "5%%"])
def test_a_budget_that_is_no_amount(lake: str, log: Path, budget: str) -> None:
    with pytest.raises(InvalidOption, match="'5%'"):
        sec.tune(lake, budget=budget)


def test_what_is_missing_is_named(lake: str, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidOption, match="cannot read the log"):
        sec.tune(lake, budget=1)
    log.write_text("")
    with pytest.raises(InvalidOption, match=f"has no plan of {lake}: set SECATEUR_LOG"):
        sec.tune(lake, budget=1)
    ask(lake, "user = 1")
    with pytest.raises(InvalidOption, match="sample_blocks is 0"):
        sec.tune(lake, budget=1, sample_blocks=0)
    sec.drop_index(lake)
    with pytest.raises(IndexMissing, match="build_index"):
        sec.tune(lake, budget=1)
    monkeypatch.delenv(plan_log.PATH_VARIABLE)
    with pytest.raises(InvalidOption, match="SECATEUR_LOG"):
        sec.tune(lake, budget=1)


def test_text_and_table(lake: str, log: Path) -> None:
    sec.build_index(lake, postings=["item"])
    ask(lake, "user = 1", "abs(shop) = 3")
    tuning = sec.tune(lake, budget=EVERYTHING)
    text = str(tuning)
    assert f"refresh_index(table, spark=spark, {tuning.to_build[0].structure}=['user'])" in text
    assert "drop postings of item" in text
    assert f"tune(table, budget={tuning.budget}, apply=True)" in text
    assert "not simulated" in text
    table = tuning.to_table()
    assert table["rank"].to_pylist() == [1, 2]
    assert table["action"].to_pylist() == ["build", "drop"]
    assert isinstance(tuning, Tuning)


def test_the_command(lake: str, log: Path) -> None:
    ask(lake, "user = 1")
    run = CliRunner().invoke
    text = run(main, ["tune", lake, "--budget", "50%"])
    assert text.exit_code == 0, text.output
    (built,) = sec.tune(lake, budget="50%").to_build
    assert f"secateur refresh {lake} --{built.structure} user" in text.stdout
    assert f"secateur tune {lake} --budget" in text.stdout
    assert f" --log {log} --apply\n" in run(main, ["tune", lake, "--budget", "50%", "--log", str(log)]).stdout
    parsed = json.loads(run(main, ["tune", lake, "--budget", "50%", "--log", str(log), "--json"]).stdout)
    assert [item["action"] for item in parsed["structures"]] == ["build"]
    assert parsed["bytes_then"] < parsed["bytes_now"]
    applied = run(main, ["tune", lake, "--budget", "50%", "--apply"])
    assert applied.exit_code == 0, applied.output
    assert getattr(sec.describe_index(lake), built.structure) == ("user",)
    assert run(main, ["tune", lake, "--budget", "much"]).exit_code == 2
    assert run(main, ["tune", lake, "--budget", "5%", "--log", lake + "/nothing"]).exit_code == 2
