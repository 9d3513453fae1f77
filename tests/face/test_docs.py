"""The examples of the documentation run as they stand."""

from __future__ import annotations

import datetime as dt
import doctest
import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from prometheus_client import REGISTRY
from pyiceberg.catalog import Catalog
from pyspark.sql import SparkSession

import secateur as sec
import secateur.pruning.predicate.expressions as expressions
from secateur.cli import main
from secateur.exporters import opentelemetry_reporter, prometheus_reporter
from tests.support.formats.iceberg_tables import catalog_in

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.fixture
def lake(tmp_path: Path) -> str:
    """Three days of a thousand events, one every second, in blocks of a hundred."""
    rng = np.random.default_rng(7)
    for day in range(3):
        start = dt.datetime(2026, 1, 1 + day, tzinfo=dt.UTC)
        seconds = np.arange(1000) * 1_000_000 + int(start.timestamp()) * 1_000_000
        table = pa.table(
            {
                "ts": pa.array(seconds, pa.timestamp("us", "UTC")),
                "user_id": rng.integers(0, 100, 1000),
                "name": pa.array([f"{'Ada' if i % 10 == 0 else 'Bob'} {i}" for i in range(1000)]),
                "price": rng.random(1000) * 100,
            }
        )
        folder = tmp_path / "lake" / "events" / f"day={start:%Y-%m-%d}"
        folder.mkdir(parents=True)
        pq.write_table(table, folder / "events.parquet", row_group_size=100, write_page_index=True)
    return str(tmp_path / "lake" / "events")


def examples(page: str) -> str:
    """All Python of a page as one program, line numbers kept."""
    text = (ROOT / page).read_text()
    kept = [" "] * (text.count("\n") + 1)
    for match in BLOCK.finditer(text):
        first = text[: match.start(1)].count("\n")
        for i, line in enumerate(match.group(1).splitlines()):
            kept[first + i] = line
    return "\n".join(kept)


def test_readme(spark: SparkSession, tmp_path: Path, remembering: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first example needs nothing that it does not make, but for the packages and a place for its table.

    The commands below it are about that table, and the last reads the log that the first ones leave.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SECATEUR_LOG", "plans.jsonl")
    program = examples("README.md").replace("lake/events", str(tmp_path / "lake" / "events"))
    try:
        exec(compile(program, "README.md", "exec"), {})
    finally:
        sec.disable(spark)
    commands = re.findall("^    secateur (.* lake/events .*)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["index", "index", "prune", "tune"]
    for command in commands:
        run = CliRunner().invoke(main, shlex.split(command, comments=True))
        assert run.exit_code == 0, f"secateur {command}: {run.output}"


@pytest.mark.parametrize("page", ["docs/index.md", "docs/howto.md"])
def test_page(page: str, spark: SparkSession, lake: str, tmp_path: Path, remembering: None) -> None:
    program = examples(page).replace("lake/events", lake)
    names = {"spark": spark, "lake": lake, "elsewhere": tmp_path / "index", "catalog": with_orders(tmp_path, lake)}
    try:
        exec(compile(program, page, "exec"), names)
    finally:
        sec.disable(spark)
        for view in spark.catalog.listTables():
            if view.isTemporary:
                spark.catalog.dropTempView(view.name)


def test_how_to_operate(lake: str) -> None:
    """Without Spark, with what the examples registered in the registry of prometheus_client."""
    names: dict[str, object] = {}
    try:
        exec(compile(examples("docs/operate.md").replace("lake/events", lake), "docs/operate.md", "exec"), names)
    finally:
        sec.remove_reporter(prometheus_reporter())
        sec.remove_reporter(opentelemetry_reporter())
    assert REGISTRY.get_sample_value("secateur_plans_total", {"table": lake}) == 2


def test_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The first page needs no Spark, and prints what its comments say."""
    page = "docs/start.md"
    monkeypatch.chdir(tmp_path)
    program = examples(page)
    before, after = program.split("more = pa.table", 1)
    names: dict[str, object] = {}
    exec(compile(before, page, "exec"), names)
    printed = capsys.readouterr().out
    commands = [line for line in (ROOT / page).read_text().splitlines() if line.startswith("secateur ")]
    assert commands
    for command in commands:
        run = CliRunner().invoke(main, shlex.split(command)[1:])
        assert run.exit_code == 0, run.output
        assert "user_id" in run.output
    exec(compile("more = pa.table" + after, page, "exec"), names)
    printed += capsys.readouterr().out
    assert printed.splitlines() == re.findall(r"^print\(.*\)  # (.*)$", program, re.MULTILINE)


def with_orders(directory: Path, lake: str) -> Catalog:
    """A catalog with the events as an Iceberg table in two snapshots."""
    catalog = catalog_in(directory)
    files = sorted(Path(lake).rglob("*.parquet"))
    parts = [pq.read_table(file, partitioning=None) for file in files]
    orders = catalog.create_table("db.orders", parts[0].schema)
    for part in parts[:2]:
        orders.append(part)
    return catalog


def test_docstrings() -> None:
    assert doctest.testmod(expressions).failed == 0


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert "://" in target or (page.parent / target).exists(), f"{page.name} links to {target}"
