"""How an index calls the columns of its table: by their names, or by field ids that outlive their names.

Where a table's format gives columns ids, an index goes by these: a path of ids as text. So a renamed column keeps its
statistics, and a new one under an old name has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from secateur.index.model import is_tuple_column
from secateur.pruning.predicate.bound import Field

Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class ByName:
    """An index calls the columns as the table does."""

    def field(self, column: Field) -> Field:
        """The column as the index calls it."""
        return column

    def in_table(self, path: Path) -> Path:
        """The path of a column of the index, as the table calls it."""
        return path

    def is_in_table(self, path: Path) -> bool:
        """Whether the table may have a column of the index."""
        return True


@dataclass(frozen=True)
class ByFieldId:
    """An index calls the columns by their field ids."""

    index_paths: Mapping[Path, Path]  # by the path in the table
    table_paths: Mapping[Path, Path]  # by the path in the index

    def field(self, column: Field) -> Field | None:
        """The column as the index calls it; None where it cannot know it."""
        if is_tuple_column(column.path):
            return column
        path = self.index_paths.get(column.path)
        return None if path is None else replace(column, path=path)

    def in_table(self, path: Path) -> Path:
        """The path of a column of the index, as the table calls it; of one that it has no more, as the index does."""
        return self.table_paths.get(path, path)

    def is_in_table(self, path: Path) -> bool:
        """Whether the table still has a column of the index."""
        return path in self.table_paths


ColumnNaming: TypeAlias = ByName | ByFieldId

BY_NAME = ByName()
