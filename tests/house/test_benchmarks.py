"""Every benchmark runs, at a size where it takes a moment, and reports the fields that the package documents.

No time is asserted: what is fast here says nothing of what is fast at size.
"""

from __future__ import annotations

import gc
import json
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from benchmarks import __main__ as benchmarks_main
from benchmarks import timing
from benchmarks.__main__ import main
from benchmarks.logs.log_tables import blocks_with
from benchmarks.logs.logs import LEVELS, UNIT, log_lines
from benchmarks.planning.bloom_matrices import add_keys
from benchmarks.planning.needle_table import NeedleTable, needle_table, rows_of
from benchmarks.planning.scale_cold import drop_cached
from benchmarks.planning.scale_tables import (
    CALLS,
    ScaleTable,
    all_values,
    by_numpy,
    changing,
    in_sql,
    nearly_all,
    numbers,
    ranges,
    require_equal,
    scale_table,
)
from benchmarks.planning.synthetic import SCATTERED, SPACE, WIDTH, blocks_of
from benchmarks.reading import s3_lookup
from benchmarks.results import Ratio, against
from benchmarks.results import Result as Outcome
from benchmarks.running import measured
from benchmarks.setting import Setting
from benchmarks.timing import Timing, once, quartiles, race
from benchmarks.workloads import WORKLOADS, Workload
from secateur.demo.s3a import has_s3a
from secateur.index.filters.bloom_fragment import BloomFragmentWriter
from secateur.index.model import BuildOptions, FilterOption
from tests.support.profiles import FULL, slow, sweep, takes_seconds
from tests.support.stores.filter_files import hash_values
from tests.support.stores.local_build import index_here
from tests.support.stores.memory_store import MemoryStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


TINY = "0.002"
IN_SPARK = [
    *("lookup_spark", "lookup_sql", "limit_sql", "count_sql", "topn_filtered", "session_overhead", "scan_spark"),
    *("join_small_side", "first_query", "lookup_source"),
]
QUICK = ["lookup_sql"]  # of these
LONG = {"read_sweep", "read_sweep_s3", "tpch_needles", "ngram_log", "one_row", "repeat"}  # ten seconds or more
OWN = {
    *("tune", "lookup_s3", "tpch_pruning", "pruning_rates", "needle_beside", "plan_synthetic", "plan_range"),
    *("keys_spark", "keys_delta", "lookup_delta", "plan_delta"),
}
ALONE = {*OWN, *IN_SPARK}  # workloads with a test of their own
WITH_FIELDS = [w.name for w in WORKLOADS if w.name not in ALONE and (FULL or w.name not in LONG)]
OUTPUT = {"environment", "scale", "results"}
ENVIRONMENT = {"python", "numpy", "pyarrow", "machine", "cpus", "load"}
RESULT = {"workload", "description", "seconds", "sizes", "ratios", "kept", "notes"}
RATIO = {"subject", "value", "unit", "reference", "reference_value", "ratio", "low", "high", "goal"}
KEPT = {"table", "predicate", "unit", "total", "ideal", "kept", "pruned"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("benchmark-data")


@pytest.fixture(scope="module")
def small(data: Path) -> ScaleTable:
    return scale_table(Setting(data), blocks=400)


@pytest.fixture(scope="module")
def needles(data: Path) -> NeedleTable:
    return needle_table(Setting(data), blocks=400)


def run(*arguments: str, data: Path) -> Result:
    """One repetition of a workload: what it answers matters, and not how long that takes."""
    with patch.multiple(timing, LEAST_SAMPLE=0, ENOUGH=0, _warmed=lambda contender, _: timing._sample(contender, 1)):
        return CliRunner().invoke(main, [*arguments, "--directory", str(data), "--scale", TINY, "--repetitions", "1"])


def run_json(name: str, data: Path) -> dict[str, Any]:
    """The one result of a workload, once the fields around it have proven to be those documented."""
    done = run(name, "--json", data=data)
    assert done.exit_code == 0, done.output
    output = json.loads(done.stdout)
    assert output.keys() == OUTPUT
    assert output["environment"].keys() == ENVIRONMENT
    assert output["scale"] == float(TINY)
    (result,) = output["results"]
    return result


def check(result: dict[str, Any], name: str) -> None:
    assert result.keys() == RESULT
    assert result["workload"] == name
    assert result["sizes"]
    assert result["ratios"] or result["kept"]
    for ratio in result["ratios"]:
        assert ratio.keys() == RATIO
        assert ratio["value"] >= 0
        if ratio["ratio"] is not None:
            assert ratio["ratio"] == pytest.approx(ratio["value"] / ratio["reference_value"])
    for kept in result["kept"]:
        assert kept.keys() == KEPT
        assert (kept["ideal"] or 0) <= kept["kept"]["secateur"] <= kept["total"], kept


@pytest.mark.parametrize("name", sweep(WITH_FIELDS, 8))
def test_workload_reports_the_documented_fields(name: str, data: Path) -> None:
    check(run_json(name, data), name)


@slow
def test_tpch_pruning_keeps_no_less_than_the_ideal(spark: SparkSession, data: Path) -> None:
    result = run_json("tpch_pruning", data)
    check(result, "tpch_pruning")
    assert {kept["table"] for kept in result["kept"]} == {"generated", "clustered"}
    assert {kept["unit"] for kept in result["kept"]} == {"blocks", "pages", "rows"}
    assert result["notes"] == []


@slow
def test_pruning_rates_are_told_by_technique(spark: SparkSession, data: Path) -> None:
    result = run_json("pruning_rates", data)
    check(result, "pruning_rates")
    formats = [f"{name}, {order}" for name in ("events", "logs") for order in ("generated", "clustered")]
    of_events_and_logs = {f"{table}, {format_}" for table in formats for format_ in ("directory", "Iceberg", "Delta")}
    sql = {f"TPC-H, {order}, SQL" for order in ("generated", "clustered")}
    assert of_events_and_logs | sql <= {kept["table"] for kept in result["kept"]}
    blocks = [kept for kept in result["kept"] if kept["unit"] == "blocks" and kept["pruned"]]
    assert all(sum(kept["pruned"].values()) == kept["total"] - kept["kept"]["secateur"] for kept in blocks)
    peers = {name for kept in blocks for name in kept["kept"]}
    assert peers == {"secateur", "Spark alone", "bounds in footers", "PyIceberg", "deltalake"}


def test_needles_are_found_by_every_peer(spark: SparkSession, data: Path) -> None:
    result = run_json("needle_beside", data)
    check(result, "needle_beside")
    assert {ratio["subject"] for ratio in result["ratios"]} == {
        "look-up in filters",
        "plan and read, a value that is there",
        "plan and read, an absent value",
    }


@takes_seconds
def test_a_look_up_on_s3_takes_few_round_trips(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark takes part where its package is there: tests do not fetch it."""
    is_there = has_s3a()
    monkeypatch.setattr(s3_lookup, "s3a_trouble", lambda: "" if is_there else "not fetched for tests")
    result = run_json("lookup_s3", data)
    check(result, "lookup_s3")
    peers = {ratio["reference"] for ratio in result["ratios"] if ratio["unit"] == "s"}
    assert peers == {"pyarrow's dataset", *([s3_lookup.SPARK] if is_there else [])}
    assert is_there or "not fetched for tests" in result["notes"][-1]
    assert all("round trips in sequence" in note for note in result["notes"][: 2 + len(peers)])


@slow
def test_tune_is_near_the_best_of_all_sets(data: Path) -> None:
    result = run_json("tune", data)
    check(result, "tune")
    assert len(result["ratios"]) == 3
    for ratio in result["ratios"]:
        assert ratio["ratio"] is None or ratio["ratio"] <= 1.1, ratio["subject"]


@pytest.mark.parametrize("workload", IN_SPARK if FULL else QUICK)
def test_queries_in_spark_give_the_same_rows(spark: SparkSession, data: Path, workload: str) -> None:
    check(run_json(workload, data), workload)


def test_keys_are_merged_with_the_same_rows(iceberg: SparkSession, data: Path) -> None:
    check(run_json("keys_spark", data), "keys_spark")


@slow
def test_keys_are_merged_into_delta_with_the_same_rows(delta: SparkSession, data: Path) -> None:
    check(run_json("keys_delta", data), "keys_delta")


def test_a_look_up_in_delta_gives_the_same_rows(delta: SparkSession, data: Path) -> None:
    result = run_json("lookup_delta", data)
    check(result, "lookup_delta")
    assert {ratio["subject"] for ratio in result["ratios"]} == {
        "SQL with enable(), one value",
        "prune().to_spark(), one value",
    }
    assert [kept["kept"] for kept in result["kept"]] == [{"secateur": 1}]


def test_three_ranges_keep_the_same_files_of_delta(spark: SparkSession, data: Path) -> None:
    require_same_files(run_json("plan_delta", data))


def test_three_ranges_are_planned_by_delta_too(delta: SparkSession, data: Path) -> None:
    result = run_json("plan_delta", data)
    require_same_files(result)
    assert not result["notes"]
    assert len({ratio["reference"] for ratio in result["ratios"]}) == 2


def require_same_files(result: dict[str, Any]) -> None:
    """Plans over a log keep the files whose bounds meet the predicate, and no others."""
    check(result, "plan_delta")
    for entry in result["kept"]:
        assert set(entry["kept"].values()) == {entry["ideal"]}, entry


def test_peers_keep_the_same_blocks_by_the_same_bounds(data: Path) -> None:
    result = run_json("plan_synthetic", data)
    check(result, "plan_synthetic")
    for entry in result["kept"]:
        assert entry["kept"]["pyarrow"] == entry["kept"]["duckdb"], entry
        if entry["predicate"] != "needle":  # only secateur has filters
            assert entry["kept"]["secateur"] == entry["kept"]["duckdb"] == entry["ideal"], entry


def test_every_peer_keeps_the_same_blocks_of_three_ranges(data: Path) -> None:
    result = run_json("plan_range", data)
    check(result, "plan_range")
    for entry in result["kept"]:
        assert set(entry["kept"].values()) == {entry["ideal"]}, entry
    assert {name for entry in result["kept"] for name in entry["kept"]} == {
        "secateur",
        "duckdb",
        "pyarrow",
        "pyiceberg",
    }


@given(call=st.integers(0, 3 * CALLS))
def test_ranges_keep_about_a_tenth_by_each_column_and_change_with_the_call(call: int) -> None:
    begin = np.arange(SPACE - WIDTH)
    for windows, least, most in ((ranges, 0.1, 0.12), (nearly_all, 1.0, 1.0), (all_values, 1.0, 1.0)):
        (low, high) = windows(call)[SCATTERED[0]]
        share = float(np.mean((begin <= high) & (begin + WIDTH >= low)))
        assert least <= share <= most
        assert in_sql(windows(call)) != in_sql(windows(call + 1))


def test_a_contender_is_told_which_call_it_is() -> None:
    asked: list[int] = []
    contender = changing(asked.append)
    for _ in range(3):
        contender()
    assert asked == [0, 1, 2]


@given(where=st.integers(0, 399))
def test_numbers_of_a_plan_are_those_of_its_blocks(where: int, small: ScaleTable) -> None:
    lower = int(small.bounds("distance")["distance"][0][where])
    windows = {"distance": (lower, lower)}
    expected = by_numpy(small.bounds("distance"), windows)
    assert where in expected
    require_equal(numbers(small.prune(in_sql(windows))), expected, "one value")
    with pytest.raises(AssertionError, match="1 are lost"):
        require_equal(expected[expected != where], expected, "one value")


@given(
    blocks=st.integers(1, 40),
    keys=st.integers(1, 60),
    space=st.sampled_from([3, 50, 1 << 40]),
    fpr=st.sampled_from([0.5, 0.01, 1e-6]),
    seed=st.integers(0, 9),
)
def test_filters_of_many_small_blocks_are_those_of_a_build(
    blocks: int, keys: int, space: int, fpr: float, seed: int
) -> None:
    values = np.random.default_rng(seed).integers(-space, space, (blocks, keys))
    at_once, one_by_one = (BloomFragmentWriter(MemoryStore(), "fragments/0", fpr) for _ in range(2))
    add_keys(at_once, values)
    for block in values:
        one_by_one.add(hash_values(pa.array(block)))
    assert at_once.finish().tolist() == one_by_one.finish().tolist()
    assert at_once.fragments == one_by_one.fragments  # with their checksums


@given(call=st.integers(0, 999))
def test_needles_are_where_they_are_said_to_be(call: int, needles: NeedleTable) -> None:
    value, block, absent = int(needles.value[call]), int(needles.block[call]), int(needles.absent[call])
    keys = blocks_of(needles.shape).keys
    assert np.flatnonzero((keys == value).any(axis=1)).tolist() == [block]
    assert not (keys == absent).any()
    scan = needles.find(value)
    assert block in numbers(scan)
    (rows,) = rows_of(needles.bloom_matrices(), np.array([value]))
    assert 0 < sum(size for _, _, size in rows) <= scan.report.reads.stored_bytes


def test_log_lines_are_the_same_in_every_part() -> None:
    whole = log_lines(0, 3 * UNIT)
    assert log_lines(0, 3 * UNIT).equals(whole)
    assert log_lines(UNIT, 2 * UNIT + 7).equals(whole.slice(UNIT, UNIT + 7))
    assert set(whole["level"].unique().to_pylist()) == set(LEVELS)


@pytest.mark.parametrize("option", [FilterOption("ngram", "message", gram=4), FilterOption("token", "message")])
def test_an_index_made_here_answers_as_the_table_does(option: FilterOption, tmp_path: Path) -> None:
    lines = log_lines(0, 2 * UNIT)
    for part in range(2):
        pq.write_table(lines.slice(part * UNIT, UNIT), tmp_path / f"{part}.parquet", row_group_size=UNIT // 10)
    table = sec.open_table(str(tmp_path))
    index_here(table, BuildOptions(filters=(option,)))
    assert sec.verify_index(table).sound
    text = re.findall(r"request=(\w+)", lines["message"][UNIT + 5].as_py())[0]
    for ask in (sec.col("message").contains(f"={text}"), sec.has_token("message", text)):
        plan = sec.prune(table, ask, strict=True)
        assert plan.count() == sec.prune(table, ask, strict=True, use_index=False).count() > 0
    assert len(plan.blocks) < 5


def test_words_stand_alone() -> None:
    messages = pa.array(["one two", "onetwo", "two", None])
    assert blocks_with(messages, "two", 1) == [0, 1, 2]
    assert blocks_with(messages, "two", 1, word=True) == [0, 2]
    assert blocks_with(messages, "two", 2) == [0, 1]


def test_forgotten_files_hold_what_they_held(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "file").write_bytes(b"kept")
    drop_cached(tmp_path)
    assert (tmp_path / "inner" / "file").read_bytes() == b"kept"


def test_a_time_is_measured_against_its_goal() -> None:
    ratio = against("a plan", Timing((0.002, 0.004, 0.003)), 0.006)
    assert ratio.ratio == pytest.approx(0.5)
    assert (ratio.low, ratio.high) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert ratio.goal == 1.0


def test_names_are_unique_and_listed() -> None:
    names = [workload.name for workload in WORKLOADS]
    assert len(set(names)) == len(names)
    listed = CliRunner().invoke(main, ["--list"])
    assert [line.split()[0] for line in listed.output.splitlines() if line.strip()] == names


def _process(setting: Setting) -> Outcome:
    """A workload that tells where it runs."""
    return Outcome({"process": os.getpid()})


@takes_seconds
def test_workloads_with_jars_have_processes_of_their_own(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JVM takes its jars when it starts; alone, a workload stays in the session that runs.

    ``python -m benchmarks`` runs its module as ``__main__``, from which another process imports nothing.
    """
    assert measured.__module__ != benchmarks_main.__name__
    workloads = [Workload(name, "", _process, has_jars) for name, has_jars in (("a", False), ("b", True), ("c", True))]
    monkeypatch.setattr(benchmarks_main, "WORKLOADS", workloads)
    done = json.loads(run("--json", data=data).stdout)
    first, *others = [result["sizes"]["process"] for result in done["results"]]
    assert first == os.getpid()
    assert len({first, *others}) == 3
    alone = json.loads(run("b", "--json", data=data).stdout)
    assert alone["results"][0]["sizes"]["process"] == os.getpid()


def test_tables_for_people(data: Path) -> None:
    done = run("needle_warm", data=data)
    assert done.exit_code == 0, done.output
    assert "needle_warm" in done.output
    assert "quartiles" in done.output


def test_unknown_workload_is_refused(data: Path) -> None:
    done = run("leaf_int65", data=data)
    assert done.exit_code == 2
    assert "leaf_int64" in done.output


def test_data_is_made_once(tmp_path: Path) -> None:
    made = []

    def make(path: Path) -> None:
        made.append(path)
        (path / "file").touch()

    setting = Setting(tmp_path)
    paths = [setting.prepared("data", make) for _ in range(2)]
    assert paths == [tmp_path / "data"] * 2
    assert len(made) == 1
    assert (tmp_path / "data" / "file").exists()


def test_interrupted_data_leaves_nothing(tmp_path: Path) -> None:
    def make(path: Path) -> None:
        (path / "half").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Setting(tmp_path).prepared("data", make)
    assert list(tmp_path.iterdir()) == []


def test_contenders_take_turns_without_the_collector() -> None:
    calls: list[tuple[str, bool]] = []
    first, second = race([lambda: calls.append(("a", gc.isenabled())), lambda: calls.append(("b", gc.isenabled()))], 3)
    assert len(first.samples) == len(second.samples) >= 3
    assert {name for name, _ in calls} == {"a", "b"}
    assert not any(enabled for _, enabled in calls)
    assert gc.isenabled()


def test_contenders_are_called_for_a_while_before() -> None:
    calls: list[float] = []

    def sleepy() -> None:
        calls.append(time.perf_counter())
        time.sleep(0.01)

    (timing,) = race([sleepy], 1, warming=0.05)
    before = len(calls) - len(timing.samples)
    assert before > 1
    assert calls[before] - calls[0] >= 0.05


def test_once_gives_the_answer() -> None:
    timing, answer = once(lambda: 42)
    assert answer == 42
    assert len(timing.samples) == 1


def test_quartiles() -> None:
    assert quartiles([1.0]) == (None, None)
    assert quartiles([4.0, 1.0, 3.0, 2.0, 5.0]) == (2.0, 4.0)


def test_ratio_to_nothing_is_unknown() -> None:
    assert Ratio("a", 1.0, "blocks", "b", 0.0).ratio is None
