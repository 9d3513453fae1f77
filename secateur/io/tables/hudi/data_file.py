"""A base file of a Hudi table: its statistics for index builds, and its rows, on the driver and on executors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from secateur.errors import StalePlan
from secateur.io.parquet.known_footer import GivenFooter
from secateur.io.parquet.parquet_file import open_parquet, open_rows
from secateur.io.storage.file_version import ListedFile
from secateur.io.tables.file_rows import FileBlocks
from secateur.io.tables.listing import FileConstants
from secateur.io.tables.named_file import NamedFile
from secateur.io.tables.places import TablePlaces
from secateur.io.tables.plain_rows import PlainRows


def _nothing() -> None:
    """Do nothing: `expire` in a process that caches no snapshot."""


@dataclass(frozen=True)
class HudiReader:
    """Opens the base files of a snapshot."""

    places: TablePlaces
    schema: pa.Schema  # the columns that files hold
    expire: Callable[[], None] = field(default=_nothing, repr=False, compare=False)  # called if a file has vanished

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "expire": _nothing}

    def open(self, path: str, given: GivenFooter | None = None) -> NamedFile:
        """Open a base file by its path in the listing. If it has vanished, the next query looks at the timeline.

        Raises StalePlan, InvalidParquet, AccessDenied.
        """
        try:
            return NamedFile(
                open_parquet(*self.places.of(path), self.places.full_path(path), given=given).rows, self.schema
            )
        except StalePlan:
            self.expire()
            raise

    def open_rows(self, file: FileBlocks) -> PlainRows:
        """Open the rows of a base file. Raises as :meth:`open`."""
        place = *self.places.of(file.path), self.places.full_path(file.path)
        listed = ListedFile(*place, file.size, 0)
        try:
            rows = open_rows(*place, listed, file.stored)
        except StalePlan:
            self.expire()
            raise
        constants = FileConstants(file.path, file.size, file.options)
        return PlainRows(rows, constants, listed)
