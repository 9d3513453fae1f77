"""Paths into VARIANT: the values that Spark reads there as one type are an expression that statistics and indexes know.

Its path is that of an indexed expression, then ``variant``, the type, n, the n names of the VARIANT column, and the
names that lead to the value.
"""

from __future__ import annotations

import re

import pyarrow as pa

from secateur.pruning.predicate.bound import expression_path, is_expression
from secateur.pruning.predicate.nodes import Call, Cast, Column, Literal

_MARK = 3  # place of the word that tells such a path from those of other expressions, which have a type there
_VARIANT = "variant"
_PLAIN = r"[A-Za-z_][A-Za-z0-9_]*"
_STEP = rf"\.{_PLAIN}|\['[^'\\?]+'\]"
_PATH = re.compile(rf"\$((?:{_STEP})*)", re.ASCII)

Path = tuple[str, ...]


def variant_path(column: Path, names: Path, type_: str) -> Path:
    """Return the path of the values of a type, named as in SQL, at `names` in a VARIANT column."""
    steps = "".join(f".{name}" if re.fullmatch(_PLAIN, name) else f"['{name}']" for name in names)
    value = Cast(Call("variant_get", (Column(column), Literal(f"${steps}", "string"))), type_)
    return (*expression_path(str(value), ()), _VARIANT, type_, str(len(column)), *column, *names)


def is_variant_path(path: Path) -> bool:
    """Whether a path is of the values at a path into VARIANT."""
    return is_expression(path) and path[_MARK : _MARK + 1] == (_VARIANT,)


def column_of(path: Path) -> Path:
    """Return the path of the VARIANT column."""
    return path[_MARK + 3 : _begin(path)]


def names_of(path: Path) -> Path:
    """Return the names that lead from the VARIANT column to the value."""
    return path[_begin(path) :]


def type_name_of(path: Path) -> str:
    """Return the type, named as in SQL, as which the value is read."""
    return path[_MARK + 1]


def _begin(path: Path) -> int:
    return _MARK + 3 + int(path[_MARK + 2])


def names_in(text: str) -> Path | None:
    """Return the names in a path as ``variant_get`` takes it; None if it is another text, or goes into an array."""
    match = _PATH.fullmatch(text)
    if match is None:
        return None
    return tuple(step[1:] if step.startswith(".") else step[2:-2] for step in re.findall(_STEP, match[1]))


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
