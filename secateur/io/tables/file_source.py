"""An open data file, as an index build and a page filter see it."""

from __future__ import annotations

from typing import Protocol

from secateur.index.build.source_file import SourceFile


class OpenedFile(SourceFile, Protocol):
    """An open file of a table."""

    @property
    def path(self) -> str: ...
