"""The log of plans, and what is read off it."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import secateur as sec
from secateur import plan_log
from secateur.cli import main
from secateur.errors import InvalidOption
from secateur.html.workload_page import workload_page
from secateur.pruning.report import Report
from tests.support.tables import write_file

PROCESSES = multiprocessing.get_context("fork")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    root = tmp_path / "lake"
    root.mkdir()
    for i in range(4):
        rows = {"id": range(i * 100, i * 100 + 100), "name": [f"secret {i}"] * 100}
        write_file(root / f"{i}.parquet", pa.table(rows), row_group_size=10)
    sec.build_index(str(root), bloom=["id"])
    return root


def records(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_every_plan_leaves_a_line(lake: Path, log: Path) -> None:
    plan = sec.prune(str(lake), "id = 123")
    sec.prune(str(lake), "name = 'secret 2'", order_by=["id DESC"], limit=3)
    first, second = records(log)
    report = plan.report
    assert (first["table"], first["shape"], first["order"]) == (report.table, "`id` = ?", "")
    assert first["bytes"] == [report.stages[0].before.bytes, report.stages[-1].after.bytes]
    assert first["blocks"] == [40, 1]
    assert [stage["name"] for stage in first["stages"]] == [stage.name for stage in report.stages]
    assert first["planning_ms"] == pytest.approx(report.planning_seconds * 1000, abs=0.001)
    assert second["order"].startswith("id DESC")
    assert "secret" not in log.read_text()
    assert "123" not in json.dumps([first["shape"], first["literals"]])


def test_literals_are_written_where_asked_for(lake: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(plan_log.LITERALS_VARIABLE, "1")
    sec.prune(str(lake), "id = 123 AND name LIKE 'secret%'")
    assert records(log)[0]["literals"] == ["123", "secret%"]


def test_without_a_log_nothing_is_written(lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(plan_log.PATH_VARIABLE, raising=False)
    before = sorted(tmp_path.rglob("*"))
    sec.prune(str(lake), "id = 123")
    assert sorted(tmp_path.rglob("*")) == before
    plan_log.log_to(tmp_path / "chosen.jsonl")
    try:
        sec.prune(str(lake), "id = 123")
    finally:
        plan_log.log_to(None)
    assert len(records(tmp_path / "chosen.jsonl")) == 1


def _tell(report: Report) -> None:
    for _ in range(100):
        plan_log.log_plan(report)


def test_lines_of_processes_stay_whole(lake: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is longer than what a pipe takes at once, and written while others write."""
    monkeypatch.setenv(plan_log.LITERALS_VARIABLE, "1")
    texts = ", ".join(repr(str(i) * 200) for i in range(60))
    report = sec.prune(str(lake), f"name IN ({texts})").report
    processes = [PROCESSES.Process(target=_tell, args=(report,)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert len(records(log)) == 401
    assert all(len(line) > 4096 for line in log.read_text().splitlines())


@pytest.mark.parametrize("where", ["a directory", "nowhere", "a pipe"])
def test_a_log_that_cannot_be_written_fails_no_query(
    lake: Path, tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    paths = {"a directory": tmp_path, "nowhere": tmp_path / "no" / "such", "a pipe": tmp_path / "pipe"}
    os.mkfifo(paths["a pipe"])
    monkeypatch.setenv(plan_log.PATH_VARIABLE, str(paths[where]))
    with caplog.at_level(logging.WARNING, "secateur"):
        for _ in range(3):
            assert sec.prune(str(lake), "id = 123").count() == 1
    assert len([record for record in caplog.records if "not logged" in record.message]) == 1


def test_the_most_expensive_shape_comes_first(lake: Path, log: Path) -> None:
    for i in range(3):
        sec.prune(str(lake), f"id = {i}")
    sec.prune(str(lake), "name > 'a'")
    workload = sec.workload(str(lake))
    assert [(use.shape, use.plans, use.literals) for use in workload.shapes] == [
        ("`name` > ?", 1, 1),
        ("`id` = ?", 3, 3),
    ]
    dear, cheap = workload.shapes
    assert dear.bytes_read == dear.bytes_before == cheap.bytes_before // 3
    assert cheap.blocks_read == 3
    assert workload.bytes_read == dear.bytes_read + cheap.bytes_read
    assert cheap.bytes_after_stage["pages"] == cheap.bytes_read
    assert cheap.first <= cheap.last


def test_literals_are_examples_only_as_they_are(lake: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sec.prune(str(lake), "id = 1")
    sec.prune(str(lake), "id IS NULL")
    monkeypatch.setenv(plan_log.LITERALS_VARIABLE, "1")
    sec.prune(str(lake), "name = 'a' AND id > 5", order_by="id", limit=2)
    examples = {use.predicate: use.examples for use in sec.workload(str(lake)).shapes}
    assert examples == {"`id` = ?": (), "`id` IS NULL": ((),), "(`name` = ? AND `id` > ?)": (("'a'", "5"),)}


def test_lines_that_are_no_plan_are_counted(lake: Path, log: Path) -> None:
    sec.prune(str(lake), "id = 1")
    line = log.read_text()
    log.write_text(line + line[: len(line) // 2] + "\n" + '[1]\n{"table": 1}\n\n' + line)
    workload = sec.workload(log=log)
    assert (workload.plans, workload.unreadable) == (2, 3)


def test_a_table_is_found_by_its_name(lake: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sec.prune(str(lake), "id = 1")
    other = lake.parent / "other"
    other.mkdir()
    write_file(other / "0.parquet", pa.table({"id": [1]}))
    sec.prune(str(other), "id = 1")
    monkeypatch.chdir(lake.parent)
    for name in (str(lake), f"{lake}/", f"file://{lake}", "lake", sec.open_table(str(lake))):
        assert sec.workload(name).plans == 1, name
    assert sec.workload().plans == 2
    assert sec.workload("nowhere").plans == 0


def test_without_a_log_there_is_no_workload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(plan_log.PATH_VARIABLE, raising=False)
    with pytest.raises(InvalidOption, match="SECATEUR_LOG"):
        sec.workload()
    with pytest.raises(InvalidOption, match="cannot read the log"):
        sec.workload(log=tmp_path / "nothing")


def test_the_command(lake: Path, log: Path, tmp_path: Path) -> None:
    sec.prune(str(lake), "id = 1 OR name LIKE '<b>%'")
    run = CliRunner().invoke
    text = run(main, ["workload", str(lake)])
    assert text.exit_code == 0
    assert "`id` = ?" in text.stdout
    parsed = json.loads(run(main, ["workload", str(lake), "--log", str(log), "--json"]).stdout)
    assert parsed["shapes"][0]["plans"] == 1
    page = tmp_path / "workload.html"
    assert run(main, ["workload", "--html", str(page)]).exit_code == 0
    assert workload_page(sec.workload()) == page.read_text()
    assert "<b>" not in page.read_text()
    assert "http" not in page.read_text()
    assert run(main, ["workload", "--log", str(tmp_path / "nothing")]).exit_code == 2


def test_an_ideal_index_reads_what_held_a_match(lake: Path, log: Path, tmp_path: Path) -> None:
    """By the share in what reads have told; the page, the text and the JSON have it."""
    blocks = sec.prune(str(lake), "id * 37 % 50 = 9").blocks.to_pylist()  # of ids that end in 07 or 57
    assert len(blocks) == 40
    held = [block["bytes"] for block in blocks if (int(block["file"][0]) * 10 + block["row_group"]) % 5 == 0]
    unknown = sec.workload(str(lake))
    assert [use.ideal_bytes for use in unknown.shapes] == [None]
    assert (unknown.bytes_judged, unknown.ideal_bytes) == (0, 0)
    plan = sec.prune(str(lake), "id * 37 % 50 = 9")
    assert plan.to_arrow().num_rows == plan.count() == 8
    (use,) = sec.workload(str(lake)).shapes
    every = sum(block["bytes"] for block in blocks)
    assert (use.plans, use.bytes_read) == (2, 2 * every)
    assert (use.bytes_judged, use.bytes_matched, use.ideal_bytes) == (2 * every, 2 * sum(held), 2 * sum(held))
    sec.prune(str(lake), "id = -1")
    nothing, workload = sec.workload(str(lake)).shapes[1], sec.workload(str(lake))
    assert (nothing.bytes_read, nothing.ideal_bytes) == (0, 0)
    assert (workload.plans, workload.unreadable, workload.ideal_bytes) == (3, 0, 2 * sum(held))
    assert workload.bytes_judged == 2 * every
    run = CliRunner().invoke
    parsed = json.loads(run(main, ["workload", str(lake), "--json"]).stdout)
    assert (parsed["ideal_bytes"], parsed["shapes"][0]["ideal_bytes"]) == (2 * sum(held), 2 * sum(held))
    assert "an ideal index would read" in run(main, ["workload", str(lake)]).output
    assert f'data-unit="ideal" data-count="{2 * sum(held)}"' in workload_page(workload)


def test_the_page_says_which_columns_and_how_well_the_table_is_clustered(lake: Path, log: Path, tmp_path: Path) -> None:
    sec.prune(str(lake), "id > 100 AND id < 300 AND name LIKE '%2'")
    sec.prune(str(lake), "name > 'a' AND upper(name) = 'B'")
    first, second = sec.workload(str(lake)).columns
    both, names = sorted(sec.workload(str(lake)).shapes, key=lambda use: "id" not in use.shape)
    assert (first.column, first.plans, first.bytes_read) == ("`name`", 2, both.bytes_read + names.bytes_read)
    assert (second.column, second.plans, second.bytes_read) == ("`id`", 1, both.bytes_read)
    page, run = tmp_path / "page.html", CliRunner().invoke
    assert run(main, ["workload", str(lake), "--html", str(page)]).exit_code == 0
    text = page.read_text()
    assert 'data-column="`name`"><td class="left"><code>`name`</code></td><td>2</td>' in text
    assert "<code>id</code>: mean depth 1 of 40 blocks" in text
    assert "<code>name</code>: mean depth 10 of 40 blocks" in text
    parsed = json.loads(run(main, ["workload", str(lake), "--json"]).stdout)
    assert [use["column"] for use in parsed["columns"]] == ["`name`", "`id`"]
    assert run(main, ["workload", "gone", "--log", str(log), "--html", str(page)]).exit_code == 0


def test_reads_whose_plans_are_not_in_the_log_are_no_shapes(lake: Path, log: Path) -> None:
    """A log may have been moved away in between."""
    plan = sec.prune(str(lake), "id * 37 % 50 = 9")
    log.unlink()
    plan.to_arrow()
    assert "matched" in records(log)[0]
    assert sec.workload(str(lake)).shapes == ()
