"""Plans of files to rewrite: what they promise is what queries then read, and what is in order is left alone."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from statistics import fmean

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyiceberg.schema import Schema
from pyiceberg.table import Table as PyIcebergTable
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType, TimeType
from pyspark.sql import SparkSession

import secateur as sec
from secateur import plan_log
from secateur.cli import main
from secateur.errors import InvalidOption, UnknownColumn
from tests.support.formats.iceberg_tables import catalog_in
from tests.support.profiles import sweep, takes_seconds
from tests.support.tables import write_file

FILES, ROWS, BLOCK = 16, 2_000, 200
RNG = np.random.default_rng(5)


def rows(n: int = FILES * ROWS) -> pa.Table:
    """Rows in no order, every hundredth user NULL."""
    user = RNG.integers(0, n // 20, n)
    return pa.table(
        {
            "ts": RNG.permutation(n),
            "user": pa.array(user, mask=user % 100 == 7),
            "name": [f"user-{number:07d}" for number in user.tolist()],
            "amount": RNG.random(n),
        }
    )


def write(root: Path, data: pa.Table, files: int = FILES, prefix: str = "") -> None:
    root.mkdir(parents=True, exist_ok=True)
    for i in range(files):
        part = data.slice(i * len(data) // files, (i + 1) * len(data) // files - i * len(data) // files)
        write_file(root / f"{prefix}{i:03d}.parquet", part, row_group_size=BLOCK)


def rewrite(root: Path, plan: sec.Reclustering) -> None:
    """Do what the plan's statements do, for a sorted order."""
    assert plan.order.startswith("sort(")
    by = plan.order.removeprefix("sort(").removesuffix(")").split(", ")
    for number, group in enumerate(plan.groups):
        whole = pa.concat_tables([pq.read_table(root / file) for file in group.files])
        write(root, whole.sort_by([(name, "ascending") for name in by]), len(group.files), f"rewritten-{number}-")
        for file in group.files:
            (root / file).unlink()


def share_of_look_ups(root: Path, data: pa.Table, columns: list[str], count: int = 30) -> float:
    """The share of the table's bytes that look-ups of the values of some rows read on average."""
    table, shares = sec.open_table(str(root)), []
    for column in columns:
        for value in RNG.choice(data[column].drop_null().to_pylist(), count).tolist():
            stages = sec.prune(table, sec.col(column) == value).report.stages
            after = next(stage.after.bytes for stage in stages if stage.name == "zone maps")
            shares.append((after or 0) / (stages[0].before.bytes or 1))
    return fmean(shares)


def content(root: Path) -> pa.Table:
    """All rows, in an order of their own."""
    table = sec.prune(str(root), "true").to_arrow(columns=["ts", "user", "name", "amount"])
    return table.sort_by("ts").combine_chunks()


@takes_seconds
@pytest.mark.parametrize("by", sweep([["ts"], ["name"], ["user", "ts"]], 2))
def test_queries_read_what_is_promised(tmp_path: Path, by: list[str]) -> None:
    data, root = rows(), tmp_path / "lake"
    write(root, data)
    before = content(root)
    plan = sec.plan_recluster(str(root), by)
    assert plan.bytes == plan.data_bytes == sum(path.stat().st_size for path in root.iterdir())
    assert plan.bytes_now / plan.data_bytes == pytest.approx(share_of_look_ups(root, data, by), rel=0.1)
    rewrite(root, plan)
    assert content(root) == before
    assert plan.bytes_then / plan.data_bytes == pytest.approx(share_of_look_ups(root, data, by), rel=0.35)
    assert not sec.plan_recluster(str(root), by).groups, "what was rewritten is left alone"


def test_a_budget_is_kept_and_spent_where_it_saves(tmp_path: Path) -> None:
    """Half of the table is in order; the budget goes to the other half, a part at a time."""
    data, root = rows(), tmp_path / "lake"
    write(root, data.slice(0, len(data) // 2).sort_by("ts"), FILES // 2, "sorted-")
    write(root, data.slice(len(data) // 2), FILES // 2, "mixed-")
    sec.build_index(str(root), sort_key=["ts"])
    plan = sec.plan_recluster(str(root), "ts", budget_bytes="20%")
    assert 0.1 * plan.data_bytes < plan.bytes <= 0.2 * plan.data_bytes
    assert plan.budget == int(0.2 * plan.data_bytes)
    assert {file.rpartition("-")[0] for group in plan.groups for file in group.files} == {"mixed"}
    rewrite(root, plan)
    assert plan.bytes_then / plan.data_bytes == pytest.approx(share_of_look_ups(root, data, ["ts"]), rel=0.1)
    following = sec.plan_recluster(str(root), "ts", budget_bytes="20%")
    assert {file.rpartition("-")[0] for group in following.groups for file in group.files} == {"mixed"}


def test_files_of_other_partitions_are_not_mixed(tmp_path: Path) -> None:
    data, root = rows(8_000), tmp_path / "lake"
    for day in ("2026-01-01", "2026-01-02", "__HIVE_DEFAULT_PARTITION__"):
        write(root / f"day={day}", data, 4)
    plan = sec.plan_recluster(str(root), "ts")
    assert sorted(group.partition for group in plan.groups) == ["day=2026-01-01", "day=2026-01-02", "day=None"]
    for group in plan.groups:
        (directory,) = {file.split("/")[0] for file in group.files}
        assert group.statement.endswith(f"/{directory}')"), "the copy's directory has the same name"


def test_the_order_serves_the_queries(tmp_path: Path) -> None:
    """Look-ups by name alone are not served by an order that begins with time."""
    root = tmp_path / "lake"
    write(root, rows())
    by_name = sec.plan_recluster(str(root), ["ts", "name"], predicates=["name = 'user-0000042'"])
    assert by_name.order == "sort(name, ts)"
    by_time = sec.plan_recluster(str(root), ["name", "ts"], predicates=["ts BETWEEN 100 AND 900"] * 3)
    assert by_time.order == "sort(ts, name)"
    assert by_time.queries == "3 queries"
    assert [cost.order for cost in by_time.orders if not cost.is_writable] == ["hilbert(name, ts)", "zorder(name, ts)"]
    rewrite(root, by_time)
    kept = sec.prune(str(root), "ts BETWEEN 100 AND 900").report.stages
    share = (kept[-1].after.bytes or 0) / (kept[0].before.bytes or 1)
    assert by_time.bytes_then / by_time.data_bytes == pytest.approx(share, rel=0.35)


def test_what_filters_leave_out_is_not_counted(tmp_path: Path) -> None:
    root = tmp_path / "lake"
    write(root, rows())
    without = sec.plan_recluster(str(root), "user", predicates=["user = 4"])
    sec.build_index(str(root), bloom=["user"])
    with_filter = sec.plan_recluster(str(root), "user", predicates=["user = 4"])
    assert with_filter.bytes_now < 0.5 * without.bytes_now
    assert with_filter.bytes_now == sec.prune(str(root), "user = 4").report.stages[-1].after.bytes


def test_queries_of_a_log_are_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, log = tmp_path / "lake", tmp_path / "plans.jsonl"
    write(root, rows())
    monkeypatch.setenv(plan_log.PATH_VARIABLE, str(log))
    for ts in range(5):
        sec.prune(str(root), f"ts = {ts}")
    logged = len(log.read_text().splitlines())
    plan = sec.plan_recluster(str(root), ["user", "ts"], log=log)
    assert plan.order == "sort(ts, user)"
    assert len(log.read_text().splitlines()) == logged, "planning asks nothing of the table that is logged"
    write(tmp_path / "other", rows(400), 1)
    with pytest.raises(InvalidOption, match="has no plan of"):
        sec.plan_recluster(str(tmp_path / "other"), "ts", log=log)


@pytest.mark.parametrize("values", [[], [None, None], [float("nan"), 1.0]])
def test_tables_with_nothing_to_order_are_left_alone(tmp_path: Path, values: list[float | None]) -> None:
    pq.write_table(pa.table({"x": pa.array(values, pa.float64())}), tmp_path / "a.parquet")
    plan = sec.plan_recluster(str(tmp_path), "x")
    assert not plan.groups
    assert plan.bytes == 0
    assert "no files are worth rewriting" in str(plan)


def test_calls_that_make_no_sense(tmp_path: Path) -> None:
    root = tmp_path / "lake"
    write(root / "day=1", rows(400), 1)
    table = str(root)
    for by, options, error, message in [
        ([], {}, InvalidOption, "by is empty"),
        (["ts", "ts"], {}, InvalidOption, "twice"),
        ("tss", {}, UnknownColumn, "did you mean ts"),
        ("day", {}, InvalidOption, "one value in every file"),
        ("ts", {"budget_bytes": "much"}, InvalidOption, "budget is 'much'"),
        ("ts", {"pays_after": 0}, InvalidOption, "pays_after is 0"),
        ("ts", {"curve": "peano"}, InvalidOption, "'sort', 'zorder', 'hilbert'"),
        ("ts", {"curve": "hilbert"}, InvalidOption, "it can write: sort(ts)"),
        ("ts", {"sample_blocks": 0}, InvalidOption, "sample_blocks is 0"),
        ("ts", {"predicates": "ts = 1"}, InvalidOption, "write a list"),
    ]:
        with pytest.raises(error) as raised:
            sec.plan_recluster(table, by, **options)  # type: ignore[arg-type]
        assert message in str(raised.value)


def test_the_plan_is_shown_and_is_data(tmp_path: Path) -> None:
    root = tmp_path / "lake"
    write(root, rows(8_000), 4)
    arguments = ["recluster", str(root), "--by", "ts", "--by", "user", "--budget", "1GB"]
    printed = CliRunner().invoke(main, arguments)
    assert printed.exit_code == 0, printed.output
    for part in ("sort(ts, user)", "zorder(ts, user)", "4 files", "pays after", "spark.read", "nothing was changed"):
        assert part in printed.output
    at_once = CliRunner().invoke(main, ["recluster", str(root), "--by", "ts,user", "--budget", "1GB"])
    assert at_once.output == printed.output
    answer = json.loads(CliRunner().invoke(main, [*arguments, "--json"]).output)
    plan = sec.plan_recluster(str(root), ["ts", "user"], budget_bytes="1GB")
    assert answer["groups"][0]["files"] == list(plan.groups[0].files)
    assert answer["groups"][0]["statement"].count(str(root)) == 5, "four files, and the copy"
    table = plan.to_table()
    assert table["file"].to_pylist() == list(plan.groups[0].files)
    assert table["pays_after"][0].as_py() == plan.groups[0].pays_after > 1


def test_without_a_session_nothing_is_applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    with pytest.raises(InvalidOption, match="no session is running: pass spark="):
        sec.plan_recluster(str(tmp_path), "ts", apply=True)


@pytest.mark.parametrize("column", ["day", "at"])
def test_statements_of_identity_partitions(tmp_path: Path, column: str) -> None:
    """They name a whole partition, unless files of an older spec may have its values, or SQL cannot write them."""
    schema = Schema(
        NestedField(1, "ts", LongType()), NestedField(2, "day", StringType()), NestedField(3, "at", TimeType())
    )
    table = catalog_in(tmp_path).create_table("db.days", schema)
    with table.update_spec() as update:
        update.add_field(column, IdentityTransform(), "part")
    append_unordered(table)
    groups = sec.plan_recluster(sec.open_table(table), "ts").groups
    assert len(groups) == 2
    wheres = {f"where => '`day` = {value}'" for value in ("\\'it\\\\\\'s\\'", "\\'b\\'")}
    for group in groups:
        if column == "at":
            assert group.statement.startswith("-- none"), "Spark has no time of day"
        else:
            assert any(where in group.statement for where in wheres), group.statement
    with table.update_spec() as update:
        update.remove_field("part")
    append_unordered(table)
    for group in sec.plan_recluster(sec.open_table(table), "ts").groups:
        assert group.statement.startswith("-- none"), "files without a partition may hold any value"


def append_unordered(table: PyIcebergTable) -> None:
    rng = np.random.default_rng(7)
    for _ in range(4):
        data = {
            "ts": rng.integers(0, 10**9, 4_000),
            "day": ["it's", "b"] * 2_000,
            "at": pa.array([dt.time(1), dt.time(2)] * 2_000, pa.time64("us")),
        }
        table.append(pa.table(data))
