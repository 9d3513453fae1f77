"""An open data file, as an index build and a page filter see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from secateur.index.build.source_file import SourceFile

if TYPE_CHECKING:
    from secateur.io.parquet.known_footer import GivenFooter


class OpenedFile(SourceFile, Protocol):
    """An open file of a table."""

    @property
    def path(self) -> str: ...


class OpenForIndex(Protocol):
    """Opens a file of a table by its path, with a footer that may be given."""

    def __call__(self, path: str, given: GivenFooter | None = None) -> OpenedFile: ...
