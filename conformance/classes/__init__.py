"""The classes, by groups; importing this registers them all."""

from conformance.classes import (
    columns,
    coverage,
    first_rows,
    index_structure,
    pages_and_deletes,
    predicates,
    statistics,
    values,
)
from conformance.registry import CLASSES

GROUPS = (coverage, statistics, columns, values, predicates, index_structure, pages_and_deletes, first_rows)

__all__ = ["CLASSES", "GROUPS"]
