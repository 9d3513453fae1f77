"""Peers are asked the same questions, and answers that differ are found. Those of this environment run here."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import secateur as sec
from benchmarks.peer_engines.measured import ask
from benchmarks.peer_engines.page import disagreements, page, text
from benchmarks.peer_engines.peers import PEERS
from benchmarks.peer_engines.questions import Question, read, write
from benchmarks.peer_engines.table import Orders, orders
from benchmarks.setting import Setting
from tests.support.profiles import slow, takes_seconds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MISSING = ("pylance", "databend")  # in this environment
HERE = [peer for peer in PEERS if not peer.on_spark and not any(pin.startswith(MISSING) for pin in peer.pins)]
Made = tuple[Orders, list[Question], dict[str, Any]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    home = tmp_path_factory.mktemp("peers")
    table, asked = orders(Setting(home, 0.01))
    kept = {}
    for peer in HERE:
        (home / peer.name).mkdir()
        module = import_module(f"benchmarks.peer_engines.engines.{peer.engine}")
        engine = module.open_engine(table.data, home / peer.name)
        answers = [ask(engine, question) for question in asked]
        kept[peer.name] = {"version": engine.version, "preparation": asdict(engine.preparation), "answers": answers}
    return table, asked, json.loads(json.dumps(kept))


@takes_seconds
def test_all_answers_are_equal(made: Made) -> None:
    _, asked, kept = made
    assert len(kept) == 5
    assert disagreements(kept) == []
    rows = {answer["name"]: answer["rows"] for answer in kept["secateur"]["answers"]}
    assert rows.pop("an absent key") == 0
    assert all(rows.values()), "every other question finds rows"
    assert list(rows) == [question.name for question in asked if question.name != "an absent key"]


@slow
def test_spark_gives_the_same_answers(spark: SparkSession, made: Made, tmp_path: Path) -> None:
    """With secateur and without. What Iceberg, Delta and Hudi answer is seen where they are measured."""
    table, asked, kept = made
    names = ("one key, unclustered", "a rare status", "the ten newest", "how many of the first 40 %")
    expected = [answer for answer in kept["secateur"]["answers"] if answer["name"] in names]
    for name in ("spark_files", "secateur_spark"):
        module = import_module(f"benchmarks.peer_engines.engines.{name}")
        engine = module.open_engine(table.data, tmp_path)
        try:
            answers = [ask(engine, question) for question in asked if question.name in names]
        finally:
            sec.disable(spark)
        for answer, first in zip(answers, expected, strict=True):
            assert (answer["rows"], answer["checksum"]) == (first["rows"], first["checksum"]), (name, answer["name"])
            assert answer["scanned_rows"] is not None and answer["bytes"] > 0


@takes_seconds
def test_an_answer_that_differs_is_named(made: Made) -> None:
    kept = json.loads(json.dumps(made[2]))
    kept["polars"]["answers"][3]["checksum"] += 1
    (line,) = disagreements(kept)
    assert "Polars" in line and "a key or a name" in line


def test_the_page_has_every_figure_and_every_loss(made: Made) -> None:
    table, asked, kept = made
    for answer in kept["secateur"]["answers"]:
        answer["ms"] = 10.0
    for name in set(kept) - {"secateur"}:
        for answer in kept[name]["answers"]:
            answer["ms"] = 40.0
    kept["duckdb"]["answers"][0]["ms"] = 2.0
    kept["polars"]["answers"][1]["ms"] = 9.0
    written = page(table, asked, {**kept, "lance": {"trouble": "not there"}})
    lost, won = written.partition("What secateur loses")[2].split("What it wins")
    assert lost.count("\n- ") == 1 and "one key, unclustered: DuckDB, these files 5.0 times as fast" in lost
    assert "an absent key: 4.0 times as fast" in won and "ten keys" not in won.partition("## ")[0]
    assert all(f"| {question.name} |" in written for question in asked)
    assert "Lance, its own copy: left out: not there" in written
    assert len(text(kept).splitlines()) == len(kept) * (1 + len(asked))


def test_questions_are_read_as_written(made: Made, tmp_path: Path) -> None:
    write(tmp_path / "questions.json", made[1])
    assert read(tmp_path / "questions.json") == made[1]
