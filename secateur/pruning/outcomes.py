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
    not_false_a = a | (a << 2)  # bit 4 is set where a may be TRUE or NULL
    not_false_b = b | (b << 2)
    return (a & b & TRUE) | ((a | b) & FALSE) | ((a | b) & not_false_a & not_false_b & NULL)


def negation(a: np.ndarray) -> np.ndarray:
    """Outcomes of ``NOT x``: TRUE and FALSE change places, which is exact."""
    return ((a & TRUE) << 1) | ((a & FALSE) >> 1) | (a & NULL)


def disjunction(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Outcomes of ``x OR y``, by De Morgan's law, which Kleene's logic keeps."""
    return negation(conjunction(negation(a), negation(b)))


def equality(a: np.ndarray, value: bool | None) -> np.ndarray:
    """Outcomes of ``x IS value``: TRUE if x can be the value, FALSE if it can be another, never NULL."""
    wanted = of_truth(value)
    other = EVERYTHING & ~wanted
    return ((a & wanted) != 0).view(np.uint8) | (((a & other) != 0).view(np.uint8) << 1)


def of_truth(value: bool | None) -> int:
    """The set that holds just one truth value."""
    return NULL if value is None else TRUE if value else FALSE


def survives(outcomes: np.ndarray) -> np.ndarray:
    """Which blocks can hold a matching row."""
    return (outcomes & TRUE) != 0


def fully_matching(outcomes: np.ndarray) -> np.ndarray:
    """Which blocks hold only matching rows."""
    return outcomes == TRUE
