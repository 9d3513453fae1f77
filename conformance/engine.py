"""The interface of an engine that is held to the cases."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

PARQUET, ICEBERG, DELTA, HUDI = "parquet", "iceberg", "delta", "hudi"
FORMATS = (PARQUET, ICEBERG, DELTA, HUDI)
ROW_ID = "rid"  # the column that every table has: a number of its own for every row


@dataclass(frozen=True)
class Rows:
    """The rows for which a condition is TRUE; with a limit, any so many of them."""

    where: str  # in Spark SQL
    limit: int | None = None

    def __str__(self) -> str:
        return self.where if self.limit is None else f"{self.where} LIMIT {self.limit}"


@dataclass(frozen=True)
class FirstRows:
    """The first rows, in order, for which a condition is TRUE; no two of them are equal in the order."""

    where: str
    order_by: str  # in Spark SQL
    limit: int

    def __str__(self) -> str:
        return f"{self.where} ORDER BY {self.order_by} LIMIT {self.limit}"


@dataclass(frozen=True)
class Aggregate:
    """The values of aggregate functions over the rows for which a condition is TRUE."""

    calls: tuple[str, ...]  # "count(*)", "min(a)"
    where: str = "TRUE"

    def __str__(self) -> str:
        return f"{', '.join(self.calls)} WHERE {self.where}"


@dataclass(frozen=True)
class Query:
    """The result of a query in Spark SQL over the table, ``lake``, and another with one column ``b``, ``few``."""

    sql: str
    few: tuple[int, ...]

    def __str__(self) -> str:
        return self.sql


Question = Rows | FirstRows | Aggregate | Query


@dataclass(frozen=True)
class Refused:
    """No answer, and why: a refusal loses no row."""

    reason: str


Answer = list[int] | tuple[Any, ...] | Refused
"""Row ids in any order, of :class:`FirstRows` in its order; the values of an :class:`Aggregate`, one per call;
the rows of a :class:`Query`, in any order."""


@dataclass(frozen=True)
class Place:
    """Where a table is, and what a reader may know of it beforehand."""

    format: str
    directory: Path  # of every format; Iceberg's metadata is in its folder ``metadata``
    schema: pa.Schema  # of the table as it is now, partition columns among them
    partitioned_by: tuple[str, ...] = ()
    metadata: Path | None = None  # of Iceberg: the file with the table's current metadata
    snapshot_id: int | None = None  # the earlier snapshot or version to read, instead of the current one
    time_zone: str = "UTC"  # of the session, for literals without one
    ansi: bool = True  # the session's mode
    index_is_sound: bool = True  # False: a file of the engine's index was harmed, which it may complain about

    @property
    def session(self) -> dict[str, str]:
        """The settings of a Spark session in which the questions are asked."""
        return {"spark.sql.session.timeZone": self.time_zone, "spark.sql.ansi.enabled": str(self.ansi).lower()}


@dataclass(frozen=True)
class Hints:
    """What questions look for, which an engine may use when it makes an index."""

    look_up: tuple[str, ...] = ()  # columns looked up by single values
    clustered_by: tuple[str, ...] = ()  # columns in whose order the rows lie
    filtered: tuple[str, ...] = ()  # columns with bloom filters in the files, to be looked up by these


class Engine(Protocol):
    """A reader of tables that skips what it takes for irrelevant."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str:
        """The engine's name and release number."""

    @property
    def formats(self) -> Collection[str]:
        """Those of :data:`FORMATS` that it reads."""

    def index(self, place: Place, hints: Hints) -> None:
        """Makes an index, if the engine keeps one, and replaces an earlier one."""

    def refresh(self, place: Place) -> None:
        """Brings the index up to date with the table."""

    def drop(self, place: Place) -> None:
        """Removes the index."""

    def index_files(self, place: Place) -> Sequence[Path]:
        """The files of the index; none where it keeps no index."""

    def prepare(self, place: Place, questions: Sequence[Question]) -> Callable[[], Sequence[Answer]]:
        """Decides now what to read, and reads it when called: the table may have changed meanwhile.

        An engine that does both at once decides when called. Threads may call it at the same time.
        """


class WithoutIndex:
    """The index methods of engines that keep no index: they do nothing."""

    def index(self, place: Place, hints: Hints) -> None: ...

    def refresh(self, place: Place) -> None: ...

    def drop(self, place: Place) -> None: ...

    def index_files(self, place: Place) -> Sequence[Path]:
        return []
