"""How an index names the columns of its table: by name, or by field ids that survive renames.

If a table's format gives columns ids, the index uses those: a path of ids as text. So a renamed column keeps its
statistics, and a new column under an old name has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from secateur.index.model import is_derived
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.index_paths import is_expression, is_sum, summed_path, text_of_expression
from secateur.pruning.predicate.indexed.indexed_expressions import renamed
from secateur.pruning.predicate.variant_paths import column_of, is_variant_path, of_column

Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class ByName:
    """The index names columns as the table does."""

    def field(self, column: Field) -> Field:
        """Return the column under its name in the index."""
        return column

    def in_table(self, path: Path) -> Path:
        """Return the path in the table of a column of the index, or of what it sums; the SQL of an expression."""
        if is_sum(path):
            return summed_path(path)
        return (text_of_expression(path),) if is_expression(path) else path

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
        if is_variant_path(column.path):
            stored = self.index_paths.get(column_of(column.path))
            return None if stored is None else replace(column, path=of_column(column.path, stored))
        if is_expression(column.path):
            return self._expression(column)
        if is_sum(column.path):
            path = self.index_paths.get(summed_path(column.path))
            return None if path is None else replace(column, path=(*column.path[:3], *path))
        if is_derived(column.path):
            return column
        path = self.index_paths.get(column.path)
        return None if path is None else replace(column, path=path)

    def _expression(self, column: Field) -> Field | None:
        """Return an expression with the index's names of its columns; None where it has none for one of them."""
        *empty, text = column.path[:3]
        if text not in self._stored:
            with suppress(KeyError):
                self._stored[text] = renamed(text, self.index_paths.__getitem__)
        stored = self._stored.get(text)
        return None if stored is None else replace(column, path=(*empty, stored, *column.path[3:]))

    @cached_property
    def _stored(self) -> dict[str, str]:
        """The expressions named so far, as the index has them."""
        return {}

    def in_table(self, path: Path) -> Path:
        """Return the path in the table of a column of the index; its index path if the table has dropped it.

        For an expression this is its SQL, for sums the path of the column.
        """
        if is_expression(path):
            return (renamed(text_of_expression(path), lambda column: self.table_paths.get(column, column)),)
        of_column = summed_path(path) if is_sum(path) else path
        return self.table_paths.get(of_column, of_column)

    def is_in_table(self, path: Path) -> bool:
        """Whether the table still has a column of the index."""
        return path in self.table_paths


ColumnNaming: TypeAlias = ByName | ByFieldId

BY_NAME = ByName()
