"""This project, held to the classes of bugs by which pruning engines have lost rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from pyspark.sql import SparkSession

from conformance.classes import CLASSES
from conformance.engine import FORMATS, Answer, Place, Question
from conformance.engines.secateur_scan import SecateurScan
from conformance.oracle import Oracle
from conformance.run import run_class

APPLYING = [
    pytest.param(number, format, id=f"C{number}-{format}")
    for number, bug in sorted(CLASSES.items())
    for format in FORMATS
    if bug.cases_of(format)
]


@pytest.fixture(scope="module")
def oracle(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    return Oracle(spark, tmp_path_factory.mktemp("oracle"))


@pytest.mark.parametrize(("number", "format"), APPLYING)
def test_no_row_is_lost(spark: SparkSession, oracle: Oracle, number: int, format: str) -> None:
    result = run_class(SecateurScan(spark), oracle, CLASSES[number], format)
    assert result.asked
    assert not result.wrong, "\n".join(map(str, result.wrong))
    assert not result.refused, "\n".join(result.refused)


class Forgetful(SecateurScan):
    """Loses one row of every answer that has some."""

    def prepare(self, place: Place, questions: Sequence[Question]) -> Callable[[], Sequence[Answer]]:
        answers = super().prepare(place, questions)
        return lambda: [each[1:] if isinstance(each, list) else each for each in answers()]


@pytest.mark.parametrize("format", FORMATS)
def test_a_lost_row_is_told(spark: SparkSession, oracle: Oracle, format: str) -> None:
    result = run_class(Forgetful(spark), oracle, CLASSES[5], format)
    assert result.lost
    assert not any(wrong.extra for wrong in result.wrong)
