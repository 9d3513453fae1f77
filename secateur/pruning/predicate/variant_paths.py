"""Paths into VARIANT: the values that Spark reads there as one type are an expression that statistics and indexes know.

Its path is that of an indexed expression, then ``variant``, the type, n, the n names of the VARIANT column, and the
steps that lead to the value: names of fields, and for items of arrays ``?`` and their number, which is no name here.
"""

from __future__ import annotations

import re

import pyarrow as pa

from secateur.pruning.predicate.index_paths import expression_path, is_expression
from secateur.pruning.predicate.nodes import Call, Cast, Column, Literal

_MARK = 3  # place of the word that tells such a path from those of other expressions, which have a type there
_VARIANT = "variant"
_PLAIN = r"[A-Za-z_][A-Za-z0-9_]*"
_STEP = rf"\.{_PLAIN}|\['[^'\\?]+'\]|\[[0-9]{{1,9}}\]"
_ITEM = "?"
_PATH = re.compile(rf"\$((?:{_STEP})*)", re.ASCII)

Path = tuple[str, ...]


def variant_path(column: Path, steps: Path, type_: str) -> Path:
    """Return the path of the values of a type, named as in SQL, at the end of `steps` into a VARIANT column."""
    text = "".join(map(_written, steps))
    value = Cast(Call("variant_get", (Column(column), Literal(f"${text}", "string"))), type_)
    return (*expression_path(str(value), ()), _VARIANT, type_, str(len(column)), *column, *steps)


def _written(step: str) -> str:
    item = item_of(step)
    if item is not None:
        return f"[{item}]"
    return f".{step}" if re.fullmatch(_PLAIN, step) else f"['{step}']"


def item_of(step: str) -> int | None:
    """Return which item of an array a step leads to; None for the name of a field."""
    return int(step[len(_ITEM) :]) if step.startswith(_ITEM) else None


def is_variant_path(path: Path) -> bool:
    """Whether a path is of the values at a path into VARIANT."""
    return is_expression(path) and path[_MARK : _MARK + 1] == (_VARIANT,)


def column_of(path: Path) -> Path:
    """Return the path of the VARIANT column."""
    return path[_MARK + 3 : _begin(path)]


def of_column(path: Path, column: Path) -> Path:
    """Return the path of the same values of another VARIANT column."""
    return variant_path(column, steps_of(path), type_name_of(path))


def steps_of(path: Path) -> Path:
    """Return the steps that lead from the VARIANT column to the value."""
    return path[_begin(path) :]


def type_name_of(path: Path) -> str:
    """Return the type, named as in SQL, as which the value is read."""
    return path[_MARK + 1]


def _begin(path: Path) -> int:
    return _MARK + 3 + int(path[_MARK + 2])


def steps_in(text: str) -> Path | None:
    """Return the steps of a path as ``variant_get`` takes it; None if it is another text."""
    match = _PATH.fullmatch(text)
    return None if match is None else tuple(map(_read, re.findall(_STEP, match[1])))


def _read(step: str) -> str:
    if step.startswith("."):
        return step[1:]
    return step[2:-2] if step.startswith("['") else f"{_ITEM}{int(step[1:-1])}"


def has_variant(type_: pa.DataType) -> bool:
    """Return whether a type is a VARIANT, or a struct with one."""
    if not pa.types.is_struct(type_):
        return False
    return is_variant(type_) or any(has_variant(child.type) for child in type_)


def is_variant(struct: pa.StructType) -> bool:
    """Return whether a struct is a VARIANT as Parquet stores it, which Spark does not show as a struct.

    What bounds its parts does not bound the values at a path: one file has them shredded, another in the whole's bytes.
    """
    parts = {child.name: child.type for child in struct}
    is_stored = "metadata" in parts and len(parts) > 1 and parts.keys() <= {"metadata", "value", "typed_value"}
    return is_stored and parts["metadata"] == parts.get("value", pa.binary()) == pa.binary()
