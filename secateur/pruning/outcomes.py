"""Sets of possible outcomes: what a predicate can be over the rows of a block.

SQL is three-valued, so a predicate is TRUE, FALSE or NULL on a row; over the rows of a summarised block it
takes some *subset* of these. A subset is three bits of a uint8; n blocks are an array of shape (n,).

- a block is dead            iff TRUE is not in its set
- a block is fully matching  iff its set is {TRUE}

The connectives are Kleene's tables lifted to sets: the result holds x op y for every x of one set and y of
the other. That is sound for any two predicates, and exact where they are independent. The bit operations below
suppose non-empty sets; a block without rows is dead, which :mod:`secateur.pruning.evaluate` settles at the root.
"""

from __future__ import annotations

import numpy as np

TRUE, FALSE, NULL = 1, 2, 4
EVERYTHING = TRUE | FALSE | NULL


def conjunction(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Outcomes of ``x AND y``: FALSE if either is; TRUE if both are; NULL if one is and the other is not FALSE."""
    not_false = (a | _quadrupled(a)) & (b | _quadrupled(b))  # has NULL's bit where both may be TRUE or NULL
    either = a | b
    return (a & b & TRUE) | (either & FALSE) | (either & not_false & NULL)


def negation(a: np.ndarray) -> np.ndarray:
    """Outcomes of ``NOT x``: TRUE and FALSE change places, which is exact."""
    was_true = a & TRUE
    return (was_true + was_true) | _bit(a & FALSE) | (a & NULL)


def _quadrupled(a: np.ndarray) -> np.ndarray:
    """TRUE's bit moved to NULL's; numpy adds bytes many times faster than it shifts them."""
    twice = a + a
    return twice + twice


def _bit(flags: np.ndarray) -> np.ndarray:
    """1 where a flag is set, else 0: uint8."""
    return (flags != 0).view(np.uint8)


def disjunction(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Outcomes of ``x OR y``, by De Morgan's law, which Kleene's logic keeps."""
    return negation(conjunction(negation(a), negation(b)))


def equality(a: np.ndarray, value: bool | None) -> np.ndarray:
    """Outcomes of ``x IS value``: TRUE if x can be the value, FALSE if it can be another, never NULL."""
    wanted = of_truth(value)
    other = EVERYTHING & ~wanted
    return of_sides(_bit(a & wanted), _bit(a & other))


def of_sides(may_be_true: np.ndarray, may_be_false: np.ndarray) -> np.ndarray:
    """The sets with TRUE and FALSE as two arrays of zeros and ones say: uint8 of shape (n,)."""
    return may_be_true | (may_be_false + may_be_false)


def of_truth(value: bool | None) -> int:
    """The set that holds just one truth value."""
    return NULL if value is None else TRUE if value else FALSE


def survives(outcomes: np.ndarray) -> np.ndarray:
    """Which blocks can hold a matching row."""
    return (outcomes & TRUE) != 0


def undecided(outcomes: np.ndarray) -> np.ndarray:
    """Which sets hold more than one truth value: on a row, that evaluating it fails."""
    return (outcomes & (outcomes - np.uint8(1))) != 0


def fully_matching(outcomes: np.ndarray) -> np.ndarray:
    """Which blocks hold only matching rows."""
    return outcomes == TRUE
