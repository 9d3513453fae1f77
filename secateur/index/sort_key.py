"""Sort keys: the columns by which a table is clustered, and the least and greatest tuple of a block.

Bounds of single columns forget which values stand side by side: of a block that ends one value of the first column and
begins the next, every value of the second is possible with both. Bounds of the tuples keep the two ends apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.pruning.key_bytes import Component, encode_rows
from secateur.pruning.predicate.expressions import split_name
from secateur.pruning.predicate.nodes import quoted_name
from secateur.values import Kind, keys_of, kind_of

_PART = r"(?:`(?:[^`]|``)+`|[^\s`.,()]+)"
_SORT_COLUMN = re.compile(
    rf"\s*(?P<name>{_PART}(?:\.{_PART})*)(?:\s+(?P<direction>ASC|DESC))?(?:\s+NULLS\s+(?P<nulls>FIRST|LAST))?\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class SortColumn:
    """One column of a sort key, by its path below the table's schema, and how it is ordered."""

    path: tuple[str, ...]
    descending: bool = False
    nulls_first: bool = True

    def __str__(self) -> str:
        name = ".".join(part if part.isidentifier() else quoted_name(part) for part in self.path)
        return f"{name} {'DESC' if self.descending else 'ASC'} NULLS {'FIRST' if self.nulls_first else 'LAST'}"

    def component(self, type_: pa.DataType) -> Component:
        """How values of a type are written in this place of the key. Raises ValueError for one without an order."""
        kind = kind_of(type_)
        if kind is None:
            raise ValueError(f"a {type_} has no order, so {self} cannot be part of a sort key")
        return Component(kind, self.descending, self.nulls_first)


def parse_sort_column(text: str) -> SortColumn:
    """A sort column as in Spark's ORDER BY: ``ts``, ``ts DESC``, ``address.zip ASC NULLS LAST``.

    NULL is the least value unless the text says otherwise: first with ASC, last with DESC. A name with dots, spaces,
    commas or parentheses stands in back-quotes. Raises ValueError for anything else.
    """
    found = _SORT_COLUMN.fullmatch(text)
    if found is None:
        raise ValueError(
            f"{text!r} is no sort column: write a column's name, then ASC or DESC, then NULLS FIRST or NULLS LAST, "
            "both as you like; a name with spaces or dots in back-quotes"
        )
    descending = (found["direction"] or "").upper() == "DESC"
    nulls_first = not descending if found["nulls"] is None else found["nulls"].upper() == "FIRST"
    return SortColumn(split_name(found["name"]), descending, nulls_first)


def tuple_bounds(columns: Sequence[pa.Array], sort_columns: Sequence[SortColumn]) -> tuple[bytes, bytes] | None:
    """The least and the greatest tuple of the rows of one block as bytes; None where there are no rows.

    `columns` are the values of the sort columns, of the table's types, in rows of any order. Exact, and of any length:
    :func:`secateur.index.zonemap.from_bounds` cuts bounds that are too long. Raises ValueError for a type without an
    order.
    """
    components = [column.component(values.type) for column, values in zip(sort_columns, columns, strict=True)]
    if not len(columns[0]):
        return None
    ends = pa.array([_row_at(columns, components, greatest) for greatest in (False, True)], pa.int64())
    least, greatest = encode_rows([values.take(ends) for values in columns], components).to_pylist()
    return least, greatest


def _row_at(columns: Sequence[pa.Array], components: Sequence[Component], greatest: bool) -> int:
    """The position of a row with the least or the greatest tuple: of the rows that tie so far, column by column."""
    rows: np.ndarray | None = None
    for values, component in zip(columns, components, strict=True):
        candidates = values if rows is None else values.take(pa.array(rows))
        tied = _at_end(candidates, component, greatest)
        rows = tied if rows is None else rows[tied]
        if len(rows) == 1:
            break
    assert rows is not None
    return int(rows[0])


def _at_end(values: pa.Array, component: Component, greatest: bool) -> np.ndarray:
    """The positions of the values that come first, or last, in a component's order; at least one value."""
    if values.null_count and (component.nulls_first != greatest or values.null_count == len(values)):
        return np.flatnonzero(pc.is_null(values).to_numpy(zero_copy_only=False))
    by_greatest_key = component.descending != greatest
    if component.kind is Kind.BYTES:
        binary = values.cast(pa.binary())
        extreme = pc.max(binary) if by_greatest_key else pc.min(binary)
        return np.flatnonzero(pc.fill_null(pc.equal(binary, extreme), False).to_numpy(zero_copy_only=False))
    positions = np.flatnonzero(pc.is_valid(values).to_numpy(zero_copy_only=False))
    for word in keys_of(values).words:
        candidates = word if len(positions) == len(values) else word[positions]
        positions = positions[candidates == (candidates.max() if by_greatest_key else candidates.min())]
    return positions
