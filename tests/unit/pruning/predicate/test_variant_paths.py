"""Paths into VARIANT as paths of columns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.variant_paths import column_of, is_variant_path, steps_in, steps_of, variant_path


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("$", ()),
        ("$.user", ("user",)),
        ("$.nest.k", ("nest", "k")),
        ("$['a b'].k", ("a b", "k")),
        ("$['.a.']", (".a.",)),
        ("$[0]", ("?0",)),
        ("$.items[0].id", ("items", "?0", "id")),
        ("$[1][007]['a b']", ("?1", "?7", "a b")),
        ("$[1234567890]", None),
        ("$[-1]", None),
        ("$['?0']", None),
        ("$[*]", None),
        ("$.*", None),
        ("$.ü", None),
        ("user", None),
        ("$.a b", None),
        ("$['it\\'s']", None),
    ],
)
def test_steps_in_a_path(text: str, names: tuple[str, ...] | None) -> None:
    assert steps_in(text) == names


def test_a_path_has_its_parts_and_prints_as_sql() -> None:
    assert str(Field(variant_path(("v",), ("?2", "k"), "INT"), pa.int32())) == "CAST(variant_get(`v`, '$[2].k') AS INT)"
    path = variant_path(("event", "payload"), ("nest", "a b"), "INT")
    assert is_variant_path(path)
    assert not is_variant_path(("", "", "lower(a)"))
    assert (column_of(path), steps_of(path)) == (("event", "payload"), ("nest", "a b"))
    assert str(Field(path, pa.int32())) == "CAST(variant_get(`event`.`payload`, '$.nest[\\'a b\\']') AS INT)"
