"""The list of the classes: what each is about, the formats to which it applies, and its cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from conformance.engine import FORMATS

Run = Callable[[Any], None]
Version = Literal[2, 3]  # of Iceberg's format


@dataclass(frozen=True)
class Case:
    """One thing that happens to a table, and what is asked then."""

    name: str
    formats: tuple[str, ...]
    run: Run
    partitioned_by: tuple[str, ...] = ()
    version: Version = 2


@dataclass(frozen=True)
class BugClass:
    """One way in which engines have lost rows."""

    number: int
    title: str
    about: str  # what went wrong elsewhere
    outside: Mapping[str, str] = field(default_factory=dict)  # by format: why the class does not apply to it
    cases: list[Case] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"C{self.number}"

    def case(self, *formats: str, partitioned_by: tuple[str, ...] = (), version: Version = 2) -> Callable[[Run], Run]:
        """Registers a case, for some formats or for all to which the class applies."""

        def register(run: Run) -> Run:
            chosen = formats or tuple(name for name in FORMATS if name not in self.outside)
            self.cases.append(Case(run.__name__, chosen, run, partitioned_by, version))
            return run

        return register

    def cases_of(self, format: str) -> list[Case]:
        return [case for case in self.cases if format in case.formats]


CLASSES: dict[int, BugClass] = {}


def bug_class(number: int, title: str, about: str, **outside: str) -> BugClass:
    """A class of the list; `outside` says for a format why the class does not apply to it."""
    assert number not in CLASSES, f"C{number} is there twice"
    CLASSES[number] = BugClass(number, title, about, outside)
    return CLASSES[number]
