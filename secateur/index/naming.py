"""How an index names the columns of its table: by name, or by field ids that survive renames.

If a table's format gives columns ids, the index uses those: a path of ids as text. So a renamed column keeps its
statistics, and a new column under an old name has none.
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
    """The index names columns as the table does."""

    def field(self, column: Field) -> Field:
        """Return the column under its name in the index."""
        return column

    def in_table(self, path: Path) -> Path:
        """Return the path in the table of a column of the index."""
        return path

    def is_in_table(self, path: Path) -> bool:
        """Whether the table may have a column of the index."""
        return True


@dataclass(frozen=True)
class ByFieldId:
    """The index names columns by their field ids."""

    index_paths: Mapping[Path, Path]  # by the path in the table
    table_paths: Mapping[Path, Path]  # by the path in the index

    def field(self, column: Field) -> Field | None:
        """Return the column under its name in the index; None where the index cannot know it."""
        if is_tuple_column(column.path):
            return column
        path = self.index_paths.get(column.path)
        return None if path is None else replace(column, path=path)

    def in_table(self, path: Path) -> Path:
        """Return the path in the table of a column of the index; its index path if the table has dropped it."""
        return self.table_paths.get(path, path)

    def is_in_table(self, path: Path) -> bool:
        """Whether the table still has a column of the index."""
        return path in self.table_paths


ColumnNaming: TypeAlias = ByName | ByFieldId

BY_NAME = ByName()
