"""Sets of possible outcomes: what a predicate can be over the rows of a block.

SQL is three-valued: a predicate is TRUE, FALSE or NULL on a row, so over the rows of a block it takes some *subset* of
these. A subset is three bits of a uint8; n blocks are an array of shape (n,).

- a block is dead            iff TRUE is not in its set
- a block is fully matching  iff its set is {TRUE}

The connectives are Kleene's tables lifted to sets: the result contains x op y for every x of one set and y of the
other. That is sound for any two predicates, and exact if they are independent. The bit operations below assume
non-empty sets; a block without rows is dead, which :mod:`secateur.pruning.evaluate` handles at the root.
"""

from __future__ import annotations

import numpy as np

TRUE, FALSE, NULL = 1, 2, 4
EVERYTHING = TRUE | FALSE | NULL


def conjunction(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the outcomes of ``x AND y``: FALSE if either is; TRUE if both are; NULL if one is, the other not FALSE."""
    not_false = (a | _quadrupled(a)) & (b | _quadrupled(b))  # NULL's bit is set where both may be TRUE or NULL
    either = a | b
    return (a & b & TRUE) | (either & FALSE) | (either & not_false & NULL)


def negation(a: np.ndarray) -> np.ndarray:
    """Return the outcomes of ``NOT x``: TRUE and FALSE are swapped, which is exact."""
    was_true = a & TRUE
    return (was_true + was_true) | _bit(a & FALSE) | (a & NULL)


def _quadrupled(a: np.ndarray) -> np.ndarray:
    """Move TRUE's bit to NULL's by additions: numpy adds bytes many times faster than it shifts them."""
    twice = a + a
    return twice + twice


def _bit(flags: np.ndarray) -> np.ndarray:
    """Return 1 where a flag is set, else 0: uint8."""
    return (flags != 0).view(np.uint8)


def disjunction(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the outcomes of ``x OR y``, by De Morgan's law, which holds in Kleene's logic."""
    return negation(conjunction(negation(a), negation(b)))


def equality(a: np.ndarray, value: bool | None) -> np.ndarray:
    """Return the outcomes of ``x IS value``: TRUE if x can be the value, FALSE if it can be another, never NULL."""
    wanted = of_truth(value)
    other = EVERYTHING & ~wanted
    return of_sides(_bit(a & wanted), _bit(a & other))


def of_sides(may_be_true: np.ndarray, may_be_false: np.ndarray) -> np.ndarray:
    """Build sets from two arrays of zeros and ones, for TRUE and FALSE: uint8 of shape (n,)."""
    return may_be_true | (may_be_false + may_be_false)


def of_truth(value: bool | None) -> int:
    """Return the set with exactly one truth value."""
    return NULL if value is None else TRUE if value else FALSE


def survives(outcomes: np.ndarray) -> np.ndarray:
    """Return which blocks can hold a matching row."""
    return (outcomes & TRUE) != 0


def undecided(outcomes: np.ndarray) -> np.ndarray:
    """Return which sets hold more than one truth value; for a single row that means evaluation fails."""
    return (outcomes & (outcomes - np.uint8(1))) != 0


def fully_matching(outcomes: np.ndarray) -> np.ndarray:
    """Return which blocks hold only matching rows."""
    return outcomes == TRUE
