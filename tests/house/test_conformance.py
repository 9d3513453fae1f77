"""This project, held to the classes of bugs by which pruning engines have lost rows; and the suite that holds it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

from conformance.__main__ import main, summary
from conformance.classes import CLASSES
from conformance.engine import (
    FORMATS,
    ROW_ID,
    Aggregate,
    Answer,
    Engine,
    FirstRows,
    Place,
    Query,
    Question,
    Refused,
    Rows,
)
from conformance.engines.pyiceberg_scan import PyIcebergScan
from conformance.engines.secateur_frame import SecateurFrame
from conformance.engines.secateur_scan import Planned, SecateurScan
from conformance.exam import Exam, compared
from conformance.files import write_file
from conformance.footers import MAX_VALUE, NULL_COUNT, Change, no_nulls_and_no_bounds, signed_bounds, without
from conformance.iceberg import IcebergTable
from conformance.oracle import Oracle
from conformance.registry import Version
from conformance.run import run_class
from conformance.table import numbered
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.io.tables.table import Table
from secateur.scan import Scan
from tests.support.profiles import FULL

ROOT = Path(__file__).parents[2]
FORMATS_OF = {
    number: [format_ for format_ in FORMATS if bug.cases_of(format_)] for number, bug in sorted(CLASSES.items())
}
NUMBERS = [*range(1, 52), 58, 59]  # of the list of known bugs; those between are about what this project does not do
APPLYING = [
    pytest.param(number, format, id=f"C{number}-{format}")
    for number, formats in FORMATS_OF.items()
    for format in (formats if FULL else formats[number % max(1, len(formats)) :][:1])  # quick: each class in one
]
THROUGH_SPARK = [(32, "parquet"), (5, "iceberg")]
VIAS = ["transparent", "public"]
AS_A_FRAME = [8, 15, 16, 28, 38]  # those to which Spark's own reader loses rows, and pages
QUICK_FRAMES = [28, 38]  # the others write tables for ten seconds or more


@pytest.fixture(scope="module")
def oracle(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    return Oracle(spark, tmp_path_factory.mktemp("oracle"))


class Lawful(SecateurScan):
    """Checks besides that plans count what they read, and that a fully matching block holds nothing else."""

    def _answer(self, place: Place, table: Table, question: Question, plan: Planned) -> Answer:
        answer = super()._answer(place, table, question, plan)
        if isinstance(plan, Scan) and isinstance(question, Rows | FirstRows):
            assert isinstance(answer, list)
            assert plan.count() == len(answer), question
            if plan.limit is None and isinstance(table, ParquetDirectory):  # of other tables rows may be deleted
                assert set(sure_rows(place.directory, plan)) <= set(answer), question
        return answer


def sure_rows(root: Path, plan: Scan) -> Iterator[int]:
    """The ids of the rows of fully matching blocks."""
    for block in plan.blocks.to_pylist():
        if block["fully_matching"]:
            path = root / block["file"]
            yield from row_ids(path, path.stat().st_mtime_ns, block["row_group"])


@cache
def row_ids(path: Path, modified: int, row_group: int) -> list[int]:
    return list(pq.ParquetFile(path).read_row_group(row_group, [ROW_ID])[ROW_ID].to_pylist())


@pytest.mark.parametrize(("number", "format"), APPLYING)
def test_no_row_is_lost(spark: SparkSession, oracle: Oracle, number: int, format: str) -> None:
    check(Lawful(spark), oracle, number, format)


@pytest.mark.parametrize(("number", "format"), THROUGH_SPARK)
def test_no_row_is_lost_through_spark(spark: SparkSession, oracle: Oracle, number: int, format: str) -> None:
    check(SecateurScan(spark, through_spark=True), oracle, number, format)


@pytest.mark.parametrize(
    ("number", "via"),
    [(number, via) for number in AS_A_FRAME for via in VIAS if FULL or number in QUICK_FRAMES],
)
def test_no_row_is_lost_as_a_dataframe(spark: SparkSession, oracle: Oracle, number: int, via: str) -> None:
    check(SecateurFrame(spark, via), oracle, number, "parquet")


def check(engine: Engine, oracle: Oracle, number: int, format: str) -> None:
    result = run_class(engine, oracle, CLASSES[number], format)
    assert result.asked
    assert not result.wrong, "\n".join(map(str, result.wrong))
    assert not result.refused, "\n".join(result.refused)


# ---- the suite itself


class Forgetful(SecateurScan):
    """Loses one row of every answer that has some."""

    def prepare(self, place: Place, questions: Sequence[Question]) -> Callable[[], Sequence[Answer]]:
        answers = super().prepare(place, questions)
        return lambda: [answer[1:] if isinstance(answer, list) else answer for answer in answers()]


@pytest.mark.parametrize("format", FORMATS)
def test_a_lost_row_is_told(spark: SparkSession, oracle: Oracle, format: str) -> None:
    result = run_class(Forgetful(spark), oracle, CLASSES[39], format)
    assert result.lost
    assert result.asked == len(result.wrong) == 21
    assert {len(wrong.lost) for wrong in result.wrong} == {1}
    assert not any(wrong.extra for wrong in result.wrong)
    assert summary(result) == "WRONG 21 of 21, rows lost"


class Unable(SecateurScan):
    """Fails whatever it is asked for."""

    def prepare(self, place: Place, questions: Sequence[Question]) -> Callable[[], Sequence[Answer]]:
        raise NotImplementedError("not yet")


def test_an_error_is_a_refusal(spark: SparkSession, oracle: Oracle) -> None:
    result = run_class(Unable(spark), oracle, CLASSES[39], "parquet")
    assert not result.lost
    assert len(result.refused) == result.asked == 21
    assert all(reason.endswith("NotImplementedError: not yet") for reason in result.refused)


WHERE, SOME = Rows("a = 1"), Rows("a = 1", limit=2)
FIRST = FirstRows("a = 1", "a, rid", 2)
SUM = Aggregate(("count(*)", "max(a)"))
ANSWERS: list[tuple[Question, Answer, list[int] | tuple[object, ...], tuple[int, ...], tuple[int, ...], bool]] = [
    (WHERE, [2, 1], [1, 2], (), (), True),
    (WHERE, [1], [1, 2], (2,), (), False),
    (WHERE, [1, 2, 3], [1, 2], (), (3,), False),
    (WHERE, [1, 2, 2], [1, 2], (), (2,), False),  # a row that is found twice
    (WHERE, [1, 3], [1, 2], (2,), (3,), False),
    (SOME, [1, 3], [1, 2, 3], (), (), True),
    (SOME, [3], [1, 2, 3], (1,), (), False),
    (SOME, [1, 2, 3], [1, 2, 3], (), (1,), False),
    (SOME, [1], [1], (), (), True),
    (SOME, [1, 7], [1, 2], (2,), (7,), False),
    (FIRST, [3, 1], [3, 1], (), (), True),
    (FIRST, [1, 3], [3, 1], (), (), False),  # in another order
    (FIRST, [3, 2], [3, 1], (1,), (2,), False),
    (SUM, (2, float("nan")), (2, float("nan")), (), (), True),
    (SUM, (2, 1.0), (2, float("nan")), (), (), False),
    (Query("", ()), ((1,), (2,)), ((2,), (1,)), (), (), True),
    (Query("", ()), ((1,),), ((2,), (1,)), (), (), False),
]


@pytest.mark.parametrize(("question", "answer", "truth", "lost", "extra", "right"), ANSWERS)
def test_answers_are_compared(
    question: Question,
    answer: Answer,
    truth: list[int] | tuple[object, ...],
    lost: tuple[int, ...],
    extra: tuple[int, ...],
    right: bool,
) -> None:
    comparison = compared(question, answer, truth, "")
    assert (comparison is None) == right
    if comparison is not None:
        assert (comparison.lost, comparison.extra) == (lost, extra)
        assert bool(comparison.values) == (not isinstance(question, Rows))


def test_a_refusal_loses_nothing() -> None:
    with pytest.raises(AssertionError):
        compared(WHERE, Refused("no"), [1], "")


@pytest.mark.parametrize("version", [2, 3])
def test_tables_hold_what_is_noted_of_them(tmp_path: Path, version: Version) -> None:
    """PyIceberg reads the rows that the table's writer keeps note of, through deletes, renames and a rollback."""
    table = IcebergTable(tmp_path, no_exam(), version=version)
    table.write({"0.parquet": numbered(a=range(10)), "1.parquet": numbered(10, a=range(10, 20))})
    table.delete(3, 4, 12)
    past = table.snapshot()
    table.delete(5)
    table.rename("a", "b")
    table.write({"2.parquet": numbered(20, a=[1.5], b=[7])})
    assert_read(table)
    table.rewrite(["0.parquet"], {"3.parquet": numbered(30, b=[8, 9])})
    table.rewrite_manifests(lambda entries: [entries])
    assert_read(table)
    table.roll_back(past)
    assert len(table.rows) == 17
    assert_read(table)


def no_exam() -> Exam:
    return Exam(PyIcebergScan(), None)  # type: ignore[arg-type]  # nothing is asked


def assert_read(table: IcebergTable) -> None:
    rows = StaticTable.from_metadata(f"file://{table.place().metadata}").scan().to_arrow()
    assert sorted(map(repr, rows.to_pylist())) == sorted(map(repr, table.rows.to_pylist()))


def test_footers_are_changed_as_told(tmp_path: Path) -> None:
    """And are footers still, which pyarrow reads."""
    path = tmp_path / "a.parquet"

    def written(footer: Change | None) -> Any:
        write_file(path, numbered(s=["a", None, "é"]), footer=footer)
        assert pq.read_table(path) == numbered(s=["a", None, "é"])
        return pq.read_metadata(path).row_group(0).column(1).statistics

    plain = written(None)
    assert (plain.min, plain.max, plain.null_count) == ("a", "é", 1)
    assert not written(without(NULL_COUNT)).has_null_count
    assert not written(without(MAX_VALUE)).has_min_max
    odd = written(no_nulls_and_no_bounds)
    assert (odd.has_min_max, odd.null_count) == (False, 0)
    assert written(signed_bounds) is None  # of such a writer pyarrow believes nothing
    assert pq.read_metadata(path).created_by.startswith("parquet-mr version 1.6.0")


def test_all_classes_are_there() -> None:
    assert sorted(CLASSES) == NUMBERS
    for bug in CLASSES.values():
        assert bug.cases
        for format in FORMATS:
            assert bool(bug.cases_of(format)) != (format in bug.outside), bug.name


ROW = re.compile(r"^\| C(\d+) \| \*\*(.+?)\.\*\* (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)


def test_the_documentation_lists_them() -> None:
    """Every class with its title, what went wrong elsewhere, and the formats on which its cases run."""
    rows = ROW.findall((ROOT / "docs" / "conformance.md").read_text())
    assert [int(row[0]) for row in rows] == NUMBERS
    for number, title, about, does, formats in rows:
        bug = CLASSES[int(number)]
        assert (title, about) == (bug.title, bug.about)
        assert does
        applying = [format for format in FORMATS if bug.cases_of(format)]
        assert formats == ", ".join([*applying, *(f"not {format_}: {why}" for format_, why in bug.outside.items())])


def test_the_command_lists_them() -> None:
    listed = CliRunner().invoke(main, ["--list", "--class", "16"])
    assert listed.exit_code == 0
    assert "C16" in listed.output and "NaN" in listed.output
    refused = CliRunner().invoke(main, ["--class", "52"])
    assert refused.exit_code == 2
    assert "no class 52; see --list" in refused.output
