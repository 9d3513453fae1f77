"""A plan that is asked for again is the one that a new process would make, whatever happened to the table meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.index.model import BuildOptions
from secateur.io.scan.kept import plan_memory
from secateur.io.scan.kept.plan_memory import BYTES_VARIABLE, OF_PLAN, PlanMemory
from secateur.io.scan.kept.verdict_memory import DIRECTORY_VARIABLE, MEMORY
from secateur.io.scan.opened_table import OpenedTable
from secateur.io.scan.planned_scan import Settings
from secateur.io.scan.planning import plan_scan
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.pruning.predicate.sql.parse import parse
from secateur.scan import Scan
from tests.support.profiles import examples, takes_seconds
from tests.support.small_lake import PREDICATES, Lake, ids, lake_of_chance, lake_of_evens
from tests.support.stores.local_build import index_here

pytestmark = pytest.mark.usefixtures("remembering")
SQL = "i = 8 AND s = 'ab'"
STEPS = st.sampled_from(
    ["append", "rewrite", "delete", "index", "refresh", "drop", "replace", "touch", "harm", "read", "forget", "nothing"]
)
SETTINGS: list[dict[str, Any]] = [
    {},
    {"session_time_zone": "Asia/Tokyo"},
    {"ansi": False},
    {"case_sensitive": True},
    {"use_index": False},
    {"use_verdicts": False},
    {"limit": 3, "order_by": "rid"},
]


def opened(lake: Lake) -> ParquetDirectory:
    table = sec.open_table(lake.root)
    assert isinstance(table, ParquetDirectory)
    return table


def blocks(plan: Scan) -> list[dict[str, Any]]:
    """All that a plan says of its blocks."""
    rows = plan.blocks.to_pylist()
    return sorted(rows, key=lambda row: (row["file"], row["row_group"]))


class Steps:
    """What happens to a lake between two questions."""

    def __init__(self, lake: Lake) -> None:
        self.lake, self.is_harmed = lake, False

    def take(self, what: str, sql: str, seed: int) -> None:
        """Do one thing by other handles than that which is asked."""
        lake, table, rng = self.lake, opened(self.lake), np.random.default_rng(seed)
        index = sorted(path for path in (lake.root / "_secateur").rglob("*") if path.is_file())
        match what:
            case "append" | "rewrite" | "delete":
                lake.step(what, table)
            case "index":
                index_here(table, BuildOptions(segment_blocks=4, fan_out=2))
                self.is_harmed = False
            case "refresh" if index and not self.is_harmed:
                sec.refresh_index(table)
            case "drop":
                sec.drop_index(table)
                self.is_harmed = False
            case "replace":  # other rows in a file of the same size and time, but for a nanosecond
                name = str(rng.choice(sorted(lake.files)))
                before = (lake.root / name).stat()
                lake.write(name, lake.files[name].num_rows)
                os.utime(lake.root / name, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
            case "touch":
                (lake.root / str(rng.choice(sorted(lake.files)))).touch()
            case "harm" if index:
                path = index[int(rng.integers(len(index)))]
                data = bytearray(path.read_bytes())
                if data:
                    data[int(rng.integers(len(data)))] ^= 0x55
                    path.write_bytes(bytes(data))
                    self.is_harmed = True
            case "read":
                sec.prune(table, sql).to_arrow()
            case "forget":
                MEMORY.forget(table.location)


def ask(table: ParquetDirectory, lake: Lake, sql: str, settings: dict[str, Any], *, is_harmed: bool) -> Scan:
    """The plan of a handle that has been asked before, beside that of one that has not, and the rows."""
    plan, anew = sec.prune(table, sql, **settings), sec.prune(opened(lake), sql, **settings)
    assert not anew.report.kept
    expected = lake.matching(sql)
    if "limit" in settings:
        assert plan.to_arrow(["rid"])["rid"].to_pylist() == expected[: settings["limit"]]
    else:
        assert ids(plan.to_arrow(["rid"])) == expected
        if not is_harmed:  # what was read before the harm may still prune
            assert blocks(plan) == blocks(anew)
            assert str(plan.residual) == str(anew.residual)
            assert [stage.after for stage in plan.report.stages] == [stage.after for stage in anew.report.stages]
    return plan


@examples(60, shrink=False)
@given(
    st.integers(0, 99),
    st.lists(PREDICATES, min_size=2, max_size=2),
    st.lists(st.tuples(STEPS, st.integers(0, 99), st.sampled_from(SETTINGS), st.integers(0, 1)), max_size=12),
)
def test_a_kept_plan_is_that_of_a_new_handle(
    seed: int, predicates: list[str], steps: list[tuple[str, int, dict[str, Any], int]]
) -> None:
    """C51 to C53: files come, go, and are replaced; the index is built, refreshed, dropped and harmed; reads leave
    verdicts, and settings change.
    """
    with tempfile.TemporaryDirectory() as directory:
        lake = lake_of_chance(Path(directory), seed)
        done, table = Steps(lake), opened(lake)
        index_here(table, BuildOptions(segment_blocks=4, fan_out=2))
        for what, chance, settings, which in steps:
            done.take(what, predicates[which], chance)
            for _ in range(2):
                ask(table, lake, predicates[which], settings, is_harmed=done.is_harmed)
        MEMORY.forget(table.location)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = lake_of_evens(tmp_path)
    sec.build_index(opened(made), segment_blocks=4)
    return made


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_same_question_is_planned_once(lake: Lake, settings: dict[str, Any]) -> None:
    """And any other anew: other settings, literals of other types, other texts."""
    table = opened(lake)
    plans = [sec.prune(table, SQL, **settings) for _ in range(2)]
    assert [plan.report.kept for plan in plans] == [False, True]
    assert blocks(plans[0]) == blocks(plans[1])
    assert plans[1].report.reads.stored == 0
    assert not sec.prune(table, SQL.replace("8", "8.0"), **settings).report.kept
    others = [other for other in SETTINGS if other != settings]
    assert not any(sec.prune(table, SQL, **other).report.kept for other in others)


@pytest.mark.parametrize(
    "change", ["append", "rewrite", "delete", "index", "drop", "replace", "touch", "forget", "read"]
)
def test_no_plan_outlives_what_it_rests_on(lake: Lake, change: str) -> None:
    table, steps = opened(lake), Steps(lake)
    sec.prune(table, "i = 7").to_arrow()  # leaves verdicts
    for _ in range(2):
        sec.prune(table, SQL)
    steps.take(change, SQL, 0)
    assert not sec.prune(table, SQL).report.kept
    assert sec.prune(table, SQL).report.kept
    ask(table, lake, SQL, {}, is_harmed=False)


@pytest.mark.parametrize(
    ("sql", "settings"),
    [
        (SQL, {"budget_ms": 10_000}),
        (SQL, {"keys": [8, 10], "on": "i"}),
        (SQL, {"audit": 1.0}),
        ("i = 8 AND rand() < 2", {}),
        ("CAST(i AS TIMESTAMP) < now()", {}),
    ],
)
def test_what_may_be_another_plan_is_planned_again(lake: Lake, sql: str, settings: dict[str, Any]) -> None:
    table = opened(lake)
    if "audit" in settings:
        sec.prune(table, sql)
        assert sec.prune(table, sql, **settings).report.audit is not None
    else:
        assert [sec.prune(table, sql, **settings).report.kept for _ in range(2)] == [False, False]


def test_a_text_is_not_all_that_is_compared(lake: Lake) -> None:
    """Whoever plans may pass a predicate that its text does not say."""
    table, settings = opened(lake), Settings(use_verdicts=True)
    plans = [plan_scan(table, parse(sql), "i = 8", settings) for sql in ("i = 8", "i = 10", "i = 8")]
    assert [plan.report.kept for plan in plans] == [False] * 3
    assert [ids(plan.to_arrow(["rid"])) for plan in plans] == [lake.matching(f"i = {i}") for i in (8, 10, 8)]


@pytest.mark.parametrize(("sql", "is_kept"), [("i = hash(3)", False), ("i = 8", True)])
def test_constants_of_a_session_are_computed_each_time(lake: Lake, sql: str, is_kept: bool) -> None:
    """In a process with Spark a plan is kept where it asked Spark for nothing."""
    values = iter(range(100))
    settings = Settings(use_verdicts=True, value_of=lambda zone, ansi, text: pa.scalar(next(values)))
    table, tree = opened(lake), parse(sql)
    plans = [plan_scan(table, tree, sql, settings) for _ in range(3)]
    assert [plan.report.kept for plan in plans] == [False, is_kept, is_kept]
    assert [ids(plan.to_arrow(["rid"])) for plan in plans] == [
        lake.matching("i = 8" if is_kept else f"i = {i}") for i in range(3)
    ]


def test_a_degraded_plan_is_not_kept(lake: Lake) -> None:
    """So that the index serves again as soon as it is whole."""
    table = opened(lake)
    (path,) = (lake.root / "_secateur" / "snapshots").iterdir()
    data = path.read_bytes()
    path.write_bytes(data[:-9])
    for _ in range(2):
        plan = sec.prune(table, SQL)
        assert plan.report.degraded and not plan.report.kept
    path.write_bytes(data)
    assert not sec.prune(table, SQL, strict=True).report.degraded


@pytest.mark.parametrize("variable", [BYTES_VARIABLE, DIRECTORY_VARIABLE])
def test_plans_are_kept_unless_the_environment_says_no(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """Nor where verdicts come from other processes too."""
    monkeypatch.setenv(variable, "0" if variable == BYTES_VARIABLE else str(tmp_path / "verdicts"))
    table = opened(lake)
    assert [sec.prune(table, SQL).report.kept for _ in range(2)] == [False, False]


def test_plans_take_so_many_bytes_at_most(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plans that were used longest ago go first."""
    monkeypatch.setenv(BYTES_VARIABLE, str(12 * OF_PLAN))
    table = opened(lake)
    for i in range(30):
        sec.prune(table, f"i = {i}")
        sec.prune(table, "i = 0")
    memory: PlanMemory[Scan] = table.cache.get("plans", PlanMemory)
    assert 4 <= len(memory) <= 12
    assert memory.nbytes <= 12 * OF_PLAN
    assert sec.prune(table, "i = 0").report.kept
    assert not sec.prune(table, "i = 1").report.kept
    monkeypatch.setattr(plan_memory, "SHARE", 100)
    assert [sec.prune(table, "i = 77").report.kept for _ in range(2)] == [False, False], "it is too large"


def test_plans_of_another_state_are_forgotten(lake: Lake) -> None:
    table = opened(lake)
    for i in range(5):
        sec.prune(table, f"i = {i}")
    memory: PlanMemory[Scan] = table.cache.get("plans", PlanMemory)
    nbytes = memory.nbytes
    Steps(lake).take("append", SQL, 1)
    sec.prune(table, "i = 5")
    assert len(memory) == 1 and 0 < memory.nbytes < nbytes


def test_keeping_a_plan_takes_no_longer_where_many_are_kept(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The states of all were compared once: a plan took three times as long after two thousand others."""
    compared: list[OpenedTable] = []

    def is_same(before: OpenedTable, now: OpenedTable) -> bool:
        compared.append(now)
        return before.state == now.state

    monkeypatch.setattr(plan_memory, "_is_same", is_same)
    table = opened(lake)
    for i in range(20):
        assert not sec.prune(table, f"i = {i}").report.kept
    assert len(compared) <= 20


def test_a_kept_plan_says_so(lake: Lake) -> None:
    table = opened(lake)
    first, again = sec.prune(table, SQL), sec.prune(table, SQL)
    assert "asked before" not in first.explain() and "asked before" in again.explain()
    assert (json.loads(first.explain("json"))["kept"], json.loads(again.explain("json"))["kept"]) == (False, True)
    assert again.report.planning_seconds < 60 and again.report.metrics().keys() == first.report.metrics().keys()


@takes_seconds
def test_another_process_makes_the_same_plan(lake: Lake) -> None:
    """After each of some changes."""
    program = (
        "import json, sys, secateur as sec\n"
        "rows = sec.prune(sec.open_table(sys.argv[1]), sys.argv[2]).blocks.to_pylist()\n"
        "print(json.dumps(sorted([row['file'], row['row_group']] for row in rows)))"
    )
    table, steps = opened(lake), Steps(lake)
    for change in ("nothing", "replace", "append", "refresh"):
        steps.take(change, SQL, 1)
        for _ in range(2):
            plan = sec.prune(table, SQL)
        assert plan.report.kept
        said = subprocess.run(
            [sys.executable, "-c", program, str(lake.root), SQL], capture_output=True, text=True, check=True
        )
        assert json.loads(said.stdout) == [[row["file"], row["row_group"]] for row in blocks(plan)]
