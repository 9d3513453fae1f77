"""GROUP BY: which blocks hold rows of one group only, and rows split by their groups.

A group is known by the keys of its values, None for NULL: as Spark groups, 0.0 and -0.0 are one value, and so is NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from secateur.errors import InvalidAggregate
from secateur.pruning.aggregates.answers import Aggregate, Result, by_statistics, combined, over_rows
from secateur.pruning.aggregates.null_counts import null_counts
from secateur.pruning.bounds.valued_bounds import has_one_value
from secateur.pruning.bounds.zones import unknown_zones
from secateur.pruning.predicate.binding.resolve import Binder, resolve
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.nodes import Column
from secateur.pruning.rows.arrow_texts import is_null
from secateur.pruning.rows.row_values import column
from secateur.pruning.statistics import Blocks
from secateur.values.conversion import keys_of
from secateur.values.key import Key
from secateur.values.keys import Keys
from secateur.values.kinds import kind_of, ordered_kind

Group: TypeAlias = tuple[Key | None, ...]
Results: TypeAlias = dict[Group, list[Result]]
Values: TypeAlias = tuple[Keys, np.ndarray]  # of n units, and which of them are NULL


def bind_group(name: Column, binder: Binder) -> Field:
    """Bind a column of GROUP BY. Raises UnknownColumn, AmbiguousColumn, InvalidAggregate."""
    field = resolve(name, binder)
    if len(field.path) < len(name.path) or kind_of(field.type) is None:
        raise InvalidAggregate(f"rows are not grouped here by {name}, which is {field.type}: use Spark")
    return field


@dataclass(frozen=True)
class BlockGroups:
    """The groups of n blocks."""

    code: np.ndarray  # int64 of shape (n,): the number of a block's only group; -1 if it may hold rows of several
    first: np.ndarray  # int64: of every group, one of its blocks
    values: tuple[Values, ...]  # of the columns, per block

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """All groups by their numbers."""
        return tuple(_group(self.values, block) for block in self.first.tolist())

    @classmethod
    def of(cls, fields: Sequence[Field], blocks: Blocks) -> BlockGroups:
        """Return the groups of blocks by their statistics; blocks without rows are in none."""
        code, values = np.full(len(blocks), -1), []
        is_known = blocks.row_count > 0
        for field in fields:
            zones = blocks.zones(field) or unknown_zones(ordered_kind(field.type), len(blocks))
            nulls = null_counts(field, blocks)
            is_missing = nulls == blocks.row_count
            is_known &= is_missing | ((nulls == 0) & has_one_value(zones))
            values.append((zones.lower, is_missing))
        known = np.flatnonzero(is_known)
        code[known], first = _numbered([(keys.take(known), null[known]) for keys, null in values])
        return cls(code, known[first], tuple(values))


def grouped_by_statistics(
    asked: Sequence[Aggregate], blocks: Blocks, live: np.ndarray, by: BlockGroups
) -> tuple[np.ndarray, Results]:
    """Return which blocks must be read, ascending, and the aggregates of every group over the others.

    Soundness
    ---------
    Combined with those over the rows of the blocks that are read, they are the aggregates over all rows that count, as
    :func:`secateur.pruning.aggregates.answers.by_statistics` says for the blocks of each group.
    """
    order = np.argsort(by.code, kind="stable")
    ends = np.searchsorted(by.code[order], np.arange(-1, len(by.groups)), "right")
    unread, results = [order[: ends[0]]], Results()
    for group, begin, end in zip(by.groups, ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        of_group = order[begin:end]
        answered, results[group] = by_statistics(asked, blocks.take(of_group), live[of_group])
        unread.append(of_group[~answered])
    wanted = np.sort(np.concatenate(unread))
    return wanted[blocks.row_count[wanted] > 0], results


def grouped_rows(asked: Sequence[Aggregate], fields: Sequence[Field], batches: Iterable[pa.RecordBatch]) -> Results:
    """Return the aggregates of every group over all rows of some batches."""
    results = Results()
    for batch in batches:
        arrays = [column(batch, field) for field in fields]
        values = [(keys_of(array), is_null(array)) for array in arrays]
        code, first = _numbered(values)
        order = np.argsort(code, kind="stable")
        rows = batch.take(pa.array(order))
        begins = np.searchsorted(code[order], np.arange(len(first) + 1))
        for row, begin, end in zip(first.tolist(), begins[:-1].tolist(), begins[1:].tolist(), strict=True):
            add(asked, results, _group(values, row), over_rows(asked, [rows.slice(begin, end - begin)]))
    return results


def add(asked: Sequence[Aggregate], results: Results, group: Group, others: Sequence[Result]) -> None:
    """Add the aggregates over other rows of a group."""
    known = results.get(group)
    results[group] = (
        list(others) if known is None else [combined(*parts) for parts in zip(asked, known, others, strict=True)]
    )


def in_order(groups: Iterable[Group]) -> list[Group]:
    """Return groups in the order of their values, NULL first."""
    return sorted(groups, key=lambda group: [(key is not None, key) for key in group])


def _group(values: Sequence[Values], unit: int) -> Group:
    return tuple(None if null[unit] else keys.at(unit) for keys, null in values)


def _numbered(values: Sequence[Values]) -> tuple[np.ndarray, np.ndarray]:
    """Number the different combinations of values: return the number of every unit, and a unit of every number."""
    words = [word for keys, null in values for word in (null, *(np.where(null, 0, word) for word in keys.words))]
    order = np.lexsort(words[::-1])
    begins = np.zeros(len(order), bool)
    begins[:1] = True
    for word in words:
        begins[1:] |= word[order[1:]] != word[order[:-1]]
    code = np.empty(len(order), np.int64)
    code[order] = np.cumsum(begins) - 1
    return code, order[begins]
