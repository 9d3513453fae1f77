"""Paths into VARIANT as paths of columns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.variant_paths import column_of, is_variant_path, names_in, names_of, variant_path


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("$", ()),
        ("$.user", ("user",)),
        ("$.nest.k", ("nest", "k")),
        ("$['a b'].k", ("a b", "k")),
        ("$['.a.']", (".a.",)),
        ("$[0]", None),
        ("$.items[0].id", None),
        ("$.*", None),
        ("$.ü", None),
        ("user", None),
        ("$.a b", None),
        ("$['it\\'s']", None),
    ],
)
def test_names_in_a_path(text: str, names: tuple[str, ...] | None) -> None:
    assert names_in(text) == names


def test_a_path_has_its_parts_and_prints_as_sql() -> None:
    path = variant_path(("event", "payload"), ("nest", "a b"), "INT")
    assert is_variant_path(path)
    assert not is_variant_path(("", "", "lower(a)"))
    assert (column_of(path), names_of(path)) == (("event", "payload"), ("nest", "a b"))
    assert str(Field(path, pa.int32())) == "CAST(variant_get(`event`.`payload`, '$.nest[\\'a b\\']') AS INT)"
