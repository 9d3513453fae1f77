"""How an index calls the columns of its table.

Most call them by their names. Where a table's format gives columns ids that outlive their names, an index goes by
these: a path of ids as text. So a renamed column keeps its statistics, and a new one under an old name has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from secateur.index.zones.sort_key import is_tuple_column
from secateur.pruning.predicate.bound import Field

Path = tuple[str, ...]


@dataclass(frozen=True)
class Naming:
    """Paths of columns, as the table calls them and as its index does."""

    in_index: Mapping[Path, Path]
    in_table: Mapping[Path, Path]

    def field(self, column: Field) -> Field | None:
        """The column as the index calls it; None where it cannot know it."""
        if is_tuple_column(column.path):
            return column
        path = self.in_index.get(column.path)
        return None if path is None else replace(column, path=path)
