"""Runs the cases of a class on a format, and returns the result."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from conformance.delta import DeltaTable
from conformance.directory import DirectoryTable
from conformance.engine import DELTA, HUDI, ICEBERG, Engine
from conformance.exam import Exam, NotApplicable, Wrong
from conformance.hudi import HudiTable
from conformance.iceberg import IcebergTable
from conformance.oracle import Oracle
from conformance.registry import BugClass, Case
from conformance.table import Table


@dataclass(frozen=True)
class Result:
    """What an engine made of a class on a format."""

    number: int
    format: str
    asked: int = 0
    wrong: tuple[Wrong, ...] = ()
    refused: tuple[str, ...] = ()
    outside: str = ""  # why there was nothing to ask

    @property
    def lost(self) -> bool:
        """Whether some row that matches was not found, or an aggregate is wrong."""
        return any(mistake.lost or mistake.values for mistake in self.wrong)


def run_class(engine: Engine, oracle: Oracle, bug: BugClass, format: str) -> Result:
    """All cases of a class on tables of one format."""
    cases = bug.cases_of(format)
    if format not in engine.formats:
        return Result(bug.number, format, outside=f"{engine.name} does not read it")
    if not cases:
        return Result(bug.number, format, outside=bug.outside[format])
    exam = Exam(engine, oracle)
    reasons = []
    for case in cases:
        with tempfile.TemporaryDirectory() as directory:
            table = new_table(case, format, Path(directory).resolve() / "table", exam)
            try:
                case.run(table)
            except NotApplicable as reason:
                reasons.append(str(reason))
    outside = "; ".join(dict.fromkeys(reasons)) if len(reasons) == len(cases) and not exam.asked else ""
    return Result(bug.number, format, exam.asked, tuple(exam.wrong), tuple(exam.refused), outside)


def new_table(case: Case, format: str, directory: Path, exam: Exam) -> Table:
    """A table without files."""
    directory.mkdir()
    if format == ICEBERG:
        return IcebergTable(directory, exam, case.partitioned_by, case.version)
    tables: dict[str, type[Table]] = {DELTA: DeltaTable, HUDI: HudiTable}
    return tables.get(format, DirectoryTable)(directory, exam, case.partitioned_by)


def run_all(engine: Engine, oracle: Oracle, classes: Collection[BugClass], formats: Collection[str]) -> list[Result]:
    return [run_class(engine, oracle, bug, format) for bug in classes for format in formats]
