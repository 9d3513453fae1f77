"""One engine under one case: what it was asked, and what it got wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa

from conformance.engine import Aggregate, Answer, Engine, FirstRows, Place, Query, Question, Refused, Rows
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
    values: str = ""  # of anything but row ids: the answer, and the right one

    def __str__(self) -> str:
        parts = [f"lost {_brief(self.lost)}"] if self.lost else []
        parts += [f"extra {_brief(self.extra)}"] if self.extra else []
        return f"{self.question} ({self.step}): {', '.join(parts) or self.values}"


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"


def _brief(ids: Sequence[int]) -> str:
    first = ", ".join(map(str, ids[:6]))
    return f"{first} and {len(ids) - 6} more" if len(ids) > 6 else first


@dataclass
class Exam:
    """Asks an engine, compares with the oracle, and notes what is wrong."""

    engine: Engine
    oracle: Oracle
    asked: int = 0
    wrong: list[Wrong] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)  # questions, with the reason

    def ask(self, place: Place, rows: pa.Table, questions: Sequence[Question], step: str, threads: int = 1) -> None:
        """Asks about a table with these rows, by so many threads at once."""
        truth = self.oracle.truth(rows, questions, place.session)
        if threads == 1:
            self.note(questions, self.prepared(place, questions)(), [truth], step)
            return
        with ThreadPoolExecutor(threads) as pool:
            parts = [list(questions[i::threads]) for i in range(threads)] * 2
            answered = list(pool.map(lambda part: self.prepared(place, part)(), parts))
        by_question = dict(zip(questions, truth, strict=True))
        for part, answers in zip(parts, answered, strict=True):
            self.note(part, answers, [[by_question[question] for question in part]], step)

    def prepared(self, place: Place, questions: Sequence[Question]) -> Callable[[], Sequence[Answer]]:
        """The engine's answers, once called; an error of any kind is a refusal of all questions."""

        def refused(error: Exception) -> Sequence[Answer]:
            return [Refused(_first_line(error))] * len(questions)

        def answers() -> Sequence[Answer]:
            try:
                return pending()
            except Exception as error:
                return refused(error)

        try:
            pending = self.engine.prepare(place, questions)
        except Exception as error:
            refusal = refused(error)
            return lambda: refusal
        return answers

    def maintain(self, work: Callable[[], None], what: str) -> None:
        """Has the engine work on its index, and notes an error as a refusal."""
        try:
            work()
        except Exception as error:
            self.refused.append(f"{what}: {_first_line(error)}")

    def note(
        self, questions: Sequence[Question], answers: Sequence[Answer], truths: Sequence[Sequence[Truth]], step: str
    ) -> None:
        """Compares answers with the truth, which is any of `truths` if the table changed meanwhile."""
        assert len(answers) == len(questions), f"{len(answers)} answers to {len(questions)} questions"
        for i, (question, answer) in enumerate(zip(questions, answers, strict=True)):
            self.asked += 1
            if isinstance(answer, Refused):
                self.refused.append(f"{question} ({step}): {answer.reason}")
                continue
            mistakes = [compared(question, answer, truth[i], step) for truth in truths]
            if None not in mistakes and mistakes[0] is not None:
                self.wrong.append(mistakes[0])


def compared(question: Question, answer: Answer, truth: Truth, step: str) -> Wrong | None:
    """What is wrong with an answer, if anything is."""
    match question:
        case Aggregate() | Query():
            assert not isinstance(answer, Refused)
            in_order = isinstance(question, Aggregate)
            given, right = ([repr(value) for value in values] for values in (answer, truth))
            if given == right or (not in_order and sorted(given) == sorted(right)):
                return None
            return Wrong(str(question), step, values=f"{given} instead of {right}")
        case FirstRows():
            assert isinstance(answer, list)
            if answer == list(truth):
                return None
            have, want = Counter(answer), Counter(truth)
            lost, extra = (tuple(sorted(difference.elements())) for difference in (want - have, have - want))
            return Wrong(str(question), step, lost, extra, f"{answer} instead of {truth}")
        case Rows(limit=limit):
            assert isinstance(answer, list)
            have, want = Counter(answer), Counter(truth)
            extra = tuple(sorted((have - want).elements()))
            lost = tuple(sorted((want - have).elements()))
            if limit is not None:
                missing = min(limit, want.total()) - (have & want).total()
                lost = lost[: max(missing, 0)]
                extra += tuple(sorted((have & want).elements()))[: max(-missing, 0)]
            return Wrong(str(question), step, lost, extra) if lost or extra else None
