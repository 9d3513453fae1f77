"""Questions to a table, and the workloads that ask them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class Keys:
    """The small side of a join: the values of its column."""

    column: str
    values: pa.Array


@dataclass(frozen=True)
class Question:
    """One scan of one table, in Spark's SQL."""

    name: str
    sql: str
    served: str = ""  # the structures of the index that serve it; empty: none does, and no goal is set
    order_by: str = ""
    limit: int | None = None
    keys: Keys | None = None

    @property
    def technique(self) -> str:
        """The usual name of the technique that the question asks for besides filters."""
        if self.keys is not None:
            return "join"
        return "top-n" if self.order_by else "limit" if self.limit else "filter"

    @property
    def text(self) -> str:
        """The question as one line."""
        keys = "" if self.keys is None else f" JOIN {len(self.keys.values)} values of {self.keys.column}"
        order = f" ORDER BY {self.order_by}" if self.order_by else ""
        return f"{self.sql}{keys}{order}{f' LIMIT {self.limit}' if self.limit else ''}"


@dataclass(frozen=True)
class Layout:
    """One order of the rows."""

    name: str
    order_by: tuple[str, ...]  # empty: as generated
    sort_key: tuple[str, ...]  # of the index


@dataclass(frozen=True)
class Workload:
    """A table in some orders, and the questions to it."""

    name: str
    files: int
    groups: int  # row groups of a file
    rows: int  # of a row group
    data: Callable[[int], pa.Table]  # so many rows, as generated
    questions: Callable[[pa.Table], tuple[Question, ...]]
    filters: Mapping[str, Any]  # options of `build_index`
    gaps: tuple[str, ...]
    layouts: tuple[Layout, ...]
