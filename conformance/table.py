"""A table in a case: changes to it that every format can make, and questions about it."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from conformance.engine import ROW_ID, Hints, Place, Question, Rows
from conformance.exam import Exam, NotApplicable

Questions = Sequence[str | Question]


def numbered(first: int = 0, **columns: Any) -> pa.Table:
    """Rows with their ids, from `first` on."""
    table = pa.table(columns)
    return table.add_column(0, ROW_ID, pa.array(range(first, first + len(table)), pa.int64()))


class Table(ABC):
    """A table whose rows are known, since every step is noted here too.

    Files are named by their paths below the table's directory; options of :meth:`write` are those of
    :func:`~.files.write_file`. The columns of new files may be more, fewer or wider than those of old ones.
    """

    format: ClassVar[str]

    def __init__(self, directory: Path, exam: Exam, partitioned_by: tuple[str, ...] = ()) -> None:
        self.directory = directory
        self.exam = exam
        self.partitioned_by = partitioned_by
        self.time_zone = "UTC"
        self.ansi = True
        self._index_is_sound = True
        self._known: pa.Table | None = None

    # ---- changes

    @abstractmethod
    def write(self, files: Mapping[str, pa.Table], **options: Any) -> None:
        """Adds files in one commit."""

    @abstractmethod
    def rewrite(self, old: Sequence[str], new: Mapping[str, pa.Table], **options: Any) -> None:
        """Removes files and adds others in one commit; a path may stay, with other bytes behind it."""

    @abstractmethod
    def delete(self, *row_ids: int) -> None:
        """Deletes rows as the format does."""

    @property
    @abstractmethod
    def files(self) -> Mapping[str, pa.Table]:
        """The files, each with its live rows."""

    @abstractmethod
    def _rows(self) -> pa.Table:
        """All live rows, with the current columns."""

    def place(self) -> Place:
        """Where the table is, as it is now."""
        return Place(
            self.format,
            self.directory,
            self.rows.schema,
            self.partitioned_by,
            time_zone=self.time_zone,
            ansi=self.ansi,
            index_is_sound=self._index_is_sound,
        )

    @property
    def rows(self) -> pa.Table:
        """All live rows, with the current columns."""
        if self._known is None:
            self._known = self._rows()
        return self._known

    def changed(self) -> None:
        self._known = None

    # ---- questions

    def ask(self, questions: Questions, step: str = "", threads: int = 1) -> None:
        """Asks questions; a text is a condition on rows."""
        self.exam.ask(self.place(), self.rows, asked(questions), step, threads)

    def examine(
        self,
        questions: Questions,
        look_up: Sequence[str] = (),
        clustered_by: Sequence[str] = (),
    ) -> None:
        """Asks without an index, and with one."""
        self.ask(questions, "without an index")
        self.index(look_up, clustered_by)
        self.ask(questions, "with an index")

    def ask_around_a_refresh(self, questions: Questions, step: str) -> None:
        """Asks after a change, and again after the index is refreshed."""
        self.ask(questions, f"after {step}")
        self.refresh()
        self.ask(questions, f"after {step} and a refresh")

    def ask_across(self, change: Callable[[], None], questions: Questions, step: str) -> None:
        """Asks before a change and reads after it: the answers may be those of before or of after."""
        wanted, place, before = asked(questions), self.place(), self.rows
        pending = self.exam.prepared(place, wanted)
        change()
        truths = [self.exam.oracle.truth(rows, wanted, place.session) for rows in (before, self.rows)]
        self.exam.note(wanted, pending(), truths, step)

    def index(
        self, look_up: Sequence[str] = (), clustered_by: Sequence[str] = (), filtered: Sequence[str] = ()
    ) -> None:
        """Has the engine index the table as it is now; the arguments are those of :class:`~.engine.Hints`."""
        place, hints = self.place(), Hints(tuple(look_up), tuple(clustered_by), tuple(filtered))
        self.exam.maintain(lambda: self.exam.engine.index(place, hints), "index")
        self._index_is_sound = True

    def index_during(self, change: Callable[[], None], look_up: Sequence[str] = ()) -> None:
        """Has the engine index the table while something happens to it."""
        place = self.place()
        build = threading.Thread(
            target=self.exam.maintain, args=(lambda: self.exam.engine.index(place, Hints(tuple(look_up))), "index")
        )
        build.start()
        change()
        build.join()

    def refresh(self) -> None:
        place = self.place()
        self.exam.maintain(lambda: self.exam.engine.refresh(place), "refresh")

    def drop_index(self) -> None:
        place = self.place()
        self.exam.maintain(lambda: self.exam.engine.drop(place), "drop")

    def index_files(self) -> list[Path]:
        """The files of the index, which the case is about to harm."""
        files = sorted(self.exam.engine.index_files(self.place()))
        if not files:
            raise NotApplicable("the engine keeps no index")
        self._index_is_sound = False
        return files


@dataclass(frozen=True)
class PastVersion:
    """A version of a table, and its rows."""

    version: int
    rows: pa.Table


class VersionedTable(Table):
    """A table that tells its versions by numbers."""

    @abstractmethod
    def snapshot(self) -> PastVersion:
        """The current version, to ask for later."""

    def ask_at(self, moment: PastVersion, questions: Questions, step: str) -> None:
        """Asks for rows of an earlier version."""
        place = replace(self.place(), snapshot_id=moment.version, schema=moment.rows.schema)
        self.exam.ask(place, moment.rows, asked(questions), step)


def asked(questions: Questions) -> list[Question]:
    return [Rows(question) if isinstance(question, str) else question for question in questions]


def decoded(table: pa.Table) -> pa.Table:
    """The table with the same values, without dictionaries."""
    return table.cast(pa.schema([field.with_type(_decoded(field.type)) for field in table.schema]))


def _decoded(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(type_):
        return type_.value_type
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_decoded(field.type)) for field in type_])
    return type_
