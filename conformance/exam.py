"""One engine under one case: what it was asked, and what it got wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from conformance.engine import Aggregate, Answer, Engine, Place, Question, Refused, Rows
from conformance.oracle import Oracle, Truth


class NotApplicable(Exception):
    """The engine has nothing that the case is about."""


@dataclass(frozen=True)
class Wrong:
    """An answer that is not the truth."""

    question: str
    step: str  # when it was asked
    lost: tuple[int, ...] = ()  # ids of rows that match and were not found
    extra: tuple[int, ...] = ()  # ids of rows that were found and do not match, or were found again
    values: str = ""  # of an aggregate: what was found, and what is right

    def __str__(self) -> str:
        told = [f"lost {_brief(self.lost)}"] if self.lost else []
        told += [f"extra {_brief(self.extra)}"] if self.extra else []
        return f"{self.question} ({self.step}): {', '.join(told) or self.values}"


def _brief(ids: Sequence[int]) -> str:
    shown = ", ".join(map(str, ids[:6]))
    return f"{shown} and {len(ids) - 6} more" if len(ids) > 6 else shown


@dataclass
class Exam:
    """Asks an engine, compares with the oracle, and notes what is wrong."""

    engine: Engine
    oracle: Oracle
    asked: int = 0
    wrong: list[Wrong] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)  # questions, with the reason

    def ask(self, place: Place, rows: pa.Table, questions: Sequence[Question], step: str, threads: int = 1) -> None:
        """The engine's answers about a table whose rows are these; by several threads at once if told so."""
        truth = self.oracle.truth(rows, questions, place.time_zone)
        if threads == 1:
            self.note(questions, self.prepared(place, questions)(), [truth], step)
            return
        with ThreadPoolExecutor(threads) as pool:
            parts = [list(questions[i::threads]) for i in range(threads)] * 2
            found = list(pool.map(lambda part: self.prepared(place, part)(), parts))
        by_question = dict(zip(questions, truth, strict=True))
        for part, answers in zip(parts, found, strict=True):
            self.note(part, answers, [[by_question[question] for question in part]], step)

    def prepared(self, place: Place, questions: Sequence[Question]) -> Callable[[], Sequence[Answer]]:
        return self.engine.prepare(place, questions)

    def note(
        self, questions: Sequence[Question], answers: Sequence[Answer], truths: Sequence[Sequence[Truth]], step: str
    ) -> None:
        """Compares answers with what is right: one of `truths`, where the table changed meanwhile."""
        assert len(answers) == len(questions), f"{len(answers)} answers to {len(questions)} questions"
        for i, (question, answer) in enumerate(zip(questions, answers, strict=True)):
            self.asked += 1
            if isinstance(answer, Refused):
                self.refused.append(f"{question} ({step}): {answer.reason}")
                continue
            found = [compared(question, answer, truth[i], step) for truth in truths]
            if None not in found and found[0] is not None:
                self.wrong.append(found[0])


def compared(question: Question, answer: Answer, truth: Truth, step: str) -> Wrong | None:
    """What is wrong with an answer, if anything is."""
    match question:
        case Aggregate():
            if plain(answer) == plain(truth):
                return None
            return Wrong(str(question), step, values=f"{plain(answer)} instead of {plain(truth)}")
        case Rows(limit=limit):
            assert isinstance(answer, list)
            found, right = Counter(answer), Counter(truth)
            extra = tuple(sorted((found - right).elements()))
            lost = tuple(sorted((right - found).elements()))
            if limit is not None:
                missing = min(limit, right.total()) - (found & right).total()
                lost = lost[: max(missing, 0)]
                extra += tuple(sorted((found & right).elements()))[: max(-missing, 0)]
            return Wrong(str(question), step, lost, extra) if lost or extra else None


def plain(values: Any) -> str:
    """Values in a form that compares: NaN equals NaN."""
    return repr(tuple(values))
