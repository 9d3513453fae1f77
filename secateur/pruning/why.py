"""Why one block is kept or left out: the stage that decides, and what every condition can be there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from secateur.pruning.evaluate import evaluate, leaf_outcomes, may_match
from secateur.pruning.interval import key_range
from secateur.pruning.outcomes import FALSE, NULL, TRUE, survives
from secateur.pruning.predicate.bound import Constant, Field, Leaf, all_leaves, fields
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.predicate.operands import literal_of
from secateur.pruning.statistics import Blocks, Statistics
from secateur.pruning.survivors import evaluate_with
from secateur.values import Key, Keys, Kind, greatest_keys, kind_of, least_key

Evidence = Mapping[Leaf, np.ndarray]

_NAMES = {TRUE: "TRUE", FALSE: "FALSE", NULL: "NULL"}
LATER = "pages or limit"  # stages that are not told apart


@dataclass(frozen=True)
class Condition:
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
class Why:
    """The answer to ``plan.why(file, row_group)``; prints as text."""

    file: str
    row_group: int
    survives: bool
    stage: str | None  # that left the block out
    residual: str | None  # left to check on its rows, if it survives
    conditions: tuple[Condition, ...]

    def __str__(self) -> str:
        left = f"and {self.residual} is left to check" if self.residual else "and every row matches"
        verdict = f"is read, {left}" if self.survives else f"is left out by the stage {self.stage!r}"
        return "\n".join([f"{self.file}, row group {self.row_group}, {verdict}:", *(f"  {c}" for c in self.conditions)])

    __repr__ = __str__


def conditions_of(predicate: Predicate, block: Blocks, evidence: Evidence) -> tuple[Condition, ...]:
    """What every leaf of a predicate can be in a block."""
    return tuple(_condition(leaf, block, evidence) for leaf in dict.fromkeys(all_leaves(predicate)))


def _condition(leaf: Leaf, block: Blocks, evidence: Evidence) -> Condition:
    columns = "; ".join(_statistics(field, block) for field in fields(leaf))
    outcomes = int(leaf_outcomes(leaf, block)[0])
    refuted = leaf in evidence and not block.among(evidence[leaf])[0]
    return Condition(str(leaf), columns, _words(outcomes), refuted)


def deciding_stage(
    predicate: Predicate, implied: Predicate | None, files: Statistics, block: Blocks, evidence: Evidence
) -> str:
    """The stage that rules out a block which does not survive; `implied` is what follows for tuples of a sort key."""
    if not survives(evaluate(predicate, files))[block.file[0]]:
        return "files"
    if not survives(evaluate(predicate, block)).any():
        return "zone maps"
    if implied is not None and not may_match(implied, block).any():
        return "zone maps"
    return LATER if survives(evaluate_with(predicate, block, evidence)).any() else "filters"


def _words(outcomes: int) -> str:
    return " or ".join(name for bit, name in _NAMES.items() if outcomes & bit) or "nothing"


def _statistics(field: Field, block: Blocks) -> str:
    zones = block.zones(field)
    if zones is None:
        return f"nothing is known of {field}"
    nulls = {0: "no NULL", NULL: "NULL possible"}[int(zones.null[0])]
    if not zones.value[0]:
        return f"{field} is NULL in every row"
    low, high = (_shown(field, keys, end) for keys, end in ((zones.lower, 0), (zones.upper, 1)))
    return f"{field} from {low} to {high}, {nulls}"


def _shown(field: Field, keys: Keys, end: int) -> str:
    """A bound as a value, or as unknown where it is the end of all keys."""
    key = keys.at(0)
    if is_unbounded(field, keys, key, end):
        return "unknown"
    literal = literal_of(Constant(field.type, key))
    if literal is None:
        return repr(key)
    return repr(literal.value) if isinstance(literal.value, str | bytes) else str(literal.value)


def is_unbounded(field: Field, keys: Keys, key: Key, end: int) -> bool:
    """Whether the first of some lower (`end` 0) or upper bounds of a field is the end of all keys: not known."""
    kind = kind_of(field.type)
    assert kind is not None
    if not end:
        return key == least_key(kind)
    if kind is Kind.BYTES:
        ends = greatest_keys(kind, 1)
        return bool(keys.words[-1][0] == ends.words[-1][0])
    assert isinstance(key, int)
    return key > key_range(field.type)[1]
