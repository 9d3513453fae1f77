"""Why a block is kept or pruned: the deciding stage, conjunct and statistic, and every condition in the block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from secateur.pruning.bounds.outcomes import FALSE, NULL, TRUE
from secateur.pruning.evaluate import all_leaf_outcomes
from secateur.pruning.interval import key_range
from secateur.pruning.predicate.abbreviation import brief
from secateur.pruning.predicate.binding.typed_constants import literal_of
from secateur.pruning.predicate.bound import Constant, Field, Leaf, Operand
from secateur.pruning.predicate.bound_walks import children, fields
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.predicate.trees import Steps, each_of, unrolled
from secateur.pruning.statistics import Blocks, Statistics
from secateur.values.key import Key, least_key
from secateur.values.keys import Keys, greatest_keys
from secateur.values.kinds import Kind, ordered_kind

Evidence = Mapping[Leaf, np.ndarray]

_NAMES = {TRUE: "TRUE", FALSE: "FALSE", NULL: "NULL"}


@dataclass(frozen=True)
class ConditionOutcomes:
    """One leaf of the predicate in one block."""

    sql: str
    columns: str  # the statistics of its columns
    outcomes: str  # by zone maps
    refuted: bool  # by filters

    def __str__(self) -> str:
        absent = ", and by its filters nothing that this asks for is here" if self.refuted else ""
        statistics = f"  ({self.columns})" if self.columns else ""
        return f"{self.sql} can be {self.outcomes}{absent}{statistics}"


@dataclass(frozen=True)
class Cause:
    """Why a stage pruned a block."""

    conjunct: str | None  # TRUE on no row; None if no single one decides
    statistic: str  # in words

    def __str__(self) -> str:
        return self.statistic if self.conjunct is None else f"{self.conjunct} is TRUE on no row: {self.statistic}"


@dataclass(frozen=True)
class Why:
    """The answer to ``plan.why(file, row_group)``; prints as text."""

    file: str
    row_group: int
    survives: bool
    stage: str | None  # that pruned the block
    cause: Cause | None  # its reason
    residual: str | None  # to be checked on its rows, if it survives
    conditions: tuple[ConditionOutcomes, ...]

    def __str__(self) -> str:
        lines = [f"{self.file}, row group {self.row_group}, {verdict(self)}:"]
        lines += [] if self.cause is None else [f"  because {self.cause}"]
        return "\n".join([*lines, *(f"  {condition}" for condition in self.conditions)])

    __repr__ = __str__


@dataclass(frozen=True)
class FileWhy:
    """The answer to ``plan.why(file)``: one for every block of the file that has rows; prints as text."""

    file: str
    blocks: tuple[Why, ...]

    @property
    def survives(self) -> bool:
        """Whether some block of the file is read."""
        return any(block.survives for block in self.blocks)

    @property
    def stage(self) -> str | None:
        """The stage that pruned all blocks; None if some are read, or if several stages did."""
        stages = {block.stage for block in self.blocks}
        return stages.pop() if len(stages) == 1 else None

    def __str__(self) -> str:
        if not self.blocks:
            return f"{self.file} has no rows, and so nothing that could be read"
        first = self.blocks[0]
        if len(self.blocks) == 1 or len({_shared(block) for block in self.blocks}) > 1:
            return "\n".join(map(str, self.blocks))
        whole = f"{self.file}, each of its {len(self.blocks):,} row groups {verdict(first)}"
        if first.cause is None:
            return whole
        statistics = dict.fromkeys(block.cause.statistic for block in self.blocks if block.cause is not None)
        several = Cause(first.cause.conjunct, "; ".join(statistics))
        return f"{whole}:\n  because {several}"

    __repr__ = __str__


def _shared(why: Why) -> tuple[str | None, ...]:
    """Return what a file's blocks must share to get one verdict."""
    return why.stage, why.residual, why.cause.conjunct if why.cause is not None else None


def verdict(why: Why) -> str:
    """Say whether a block is read, with its residual, or which stage pruned it."""
    if not why.survives:
        return f"is left out by the stage {why.stage!r}"
    return f"is read, {f'and {why.residual} is left to check' if why.residual else 'and every row matches'}"


def conditions_of(predicate: Predicate, blocks: Blocks, evidence: Evidence) -> list[tuple[ConditionOutcomes, ...]]:
    """Return for each block the possible outcomes of every leaf of a predicate.

    Linear in the size of the predicate, however its leaves are nested.
    """
    outcomes = all_leaf_outcomes(predicate, blocks)
    refuted = {leaf: ~blocks.among(evidence[leaf]) for leaf in outcomes if leaf in evidence}
    parts: dict[tuple[Any, ...], tuple[object, Any]] = {}
    leaves = [(leaf, brief(leaf), unrolled(_named, leaf, parts)) for leaf in outcomes]
    described = []
    for i in range(len(blocks)):
        block = blocks.take(np.array([i]))
        known = {field: zone_map_text(field, block) for field in fields(predicate)}
        described.append(
            tuple(
                ConditionOutcomes(
                    text,
                    "; ".join(known[field] for field in named),
                    _words(int(outcomes[leaf][i])),
                    leaf in refuted and bool(refuted[leaf][i]),
                )
                for leaf, text, named in leaves
            )
        )
    return described


def _named(node: Predicate | Operand) -> Steps[tuple[Field, ...]]:
    if isinstance(node, Field):
        return (node,)
    below = yield from each_of(children(node))
    return tuple(dict.fromkeys(field for fields in below for field in fields))


def _words(outcomes: int) -> str:
    return " or ".join(name for bit, name in _NAMES.items() if outcomes & bit) or "nothing"


# ---- statistics in words ---------------------------------------------------------------------------------------------


def zone_map_text(field: Field, unit: Statistics) -> str:
    """Describe the zone map of a column over a single unit."""
    zones = unit.zones(field)
    if zones is None:
        return f"nothing is known of {field}"
    nulls = {0: "no NULL", NULL: "NULL possible"}[int(zones.null[0])]
    if not zones.value[0]:
        return f"{field} is NULL in every row"
    low, high = (_bound_text(field, keys, end) for keys, end in ((zones.lower, 0), (zones.numbers_upper, 1)))
    hidden = zones.top is not None and zones.top[0] < zones.upper.words[0]
    return f"{field} from {low} to {high}, {'NaN possible, ' if hidden else ''}{nulls}"


def gaps_text(field: Field, unit: Statistics) -> str:
    """Describe the gaps of a column over a single unit; empty if it has none."""
    zones = unit.zones(field)
    if zones is None or zones.gaps is None:
        return ""
    ends = [(low[:1], high[:1]) for low, high in zip(*zones.gaps, strict=True) if low[0] < high[0]]
    gap_texts = [" and ".join(_bound_text(field, Keys(Kind.WORD, (end,)), None) for end in pair) for pair in ends]
    return f"{field} has no value between {', nor between '.join(gap_texts)}" if gap_texts else ""


def _bound_text(field: Field, keys: Keys, end: int | None) -> str:
    """Format a bound, or "unknown" if it is the end of all keys; `end` is None for a key that is not a bound."""
    key = keys.at(0)
    if end is not None and is_unbounded(field, keys, key, end):
        return "unknown"
    literal = literal_of(Constant(field.type, key))
    if literal is None:
        return repr(key)
    return repr(literal.value) if isinstance(literal.value, str | bytes) else str(literal.value)


def is_unbounded(field: Field, keys: Keys, key: Key, end: int) -> bool:
    """Return whether the first lower (`end` 0) or upper bound of a field is the end of all keys, so unknown."""
    kind = ordered_kind(field.type)
    if not end:
        return key == least_key(kind)
    if kind is Kind.BYTES:
        ends = greatest_keys(kind, 1)
        return bool(keys.words[-1][0] == ends.words[-1][0])
    assert isinstance(key, int), "keys of WORD and WIDE are integers"
    return key > key_range(field.type)[1]
