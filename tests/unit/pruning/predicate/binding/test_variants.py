"""Values at paths into VARIANT are bound as columns for statistics, and left to Spark elsewhere."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from secateur.pruning import interval as intervals
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.binding.variants import or_error, or_null
from secateur.pruning.predicate.bound import Apply, Unsupported
from secateur.pruning.predicate.bound_walks import fields, leaves
from secateur.pruning.predicate.sql.parse import parse
from secateur.values.keys import Keys
from secateur.values.kinds import Kind

VARIANT = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
SCHEMA = pa.schema(
    [("payload", VARIANT), ("event", pa.struct([("v", VARIANT)])), ("s", pa.string()), ("id", pa.int64())]
)


@pytest.mark.parametrize(
    ("text", "field", "function"),
    [
        ("payload:user::int = 7", "CAST(variant_get(`payload`, '$.user') AS INT)", "variant_get"),
        ("CAST(payload:user AS LONG) = 7", "CAST(variant_get(`payload`, '$.user') AS BIGINT)", "variant_get"),
        ("try_cast(payload:user AS int) = 7", "CAST(variant_get(`payload`, '$.user') AS INT)", "try_variant_get"),
        (
            "variant_get(payload, '$.a.b', 'string') LIKE 'x%'",
            "CAST(variant_get(`payload`, '$.a.b') AS STRING)",
            "variant_get",
        ),
        (
            "try_variant_get(PAYLOAD, '$.a', 'decimal(5,2)') IN (1, 2)",
            "CAST(variant_get(`payload`, '$.a') AS DECIMAL(5, 2))",
            "try_variant_get",
        ),
        ("event.v:user::date IS NOT NULL", "CAST(variant_get(`event`.`v`, '$.user') AS DATE)", "variant_get"),
        ("payload:items[0].id::int = 7", "CAST(variant_get(`payload`, '$.items[0].id') AS INT)", "variant_get"),
        ("variant_get(payload, '$', 'int') > 3", "CAST(variant_get(`payload`, '$') AS INT)", "variant_get"),
    ],
)
def test_a_value_at_a_path_is_a_column_for_statistics(text: str, field: str, function: str) -> None:
    (asked,) = fields(bind(parse(text), SCHEMA, variant_values=True))
    assert str(asked) == field
    operands = [part for leaf in leaves(bind(parse(text), SCHEMA, variant_values=True)) for part in vars(leaf).values()]
    assert [part.function.name for part in operands if isinstance(part, Apply)] == [function]
    assert all(isinstance(leaf, Unsupported) for leaf in leaves(bind(parse(text), SCHEMA)))


@pytest.mark.parametrize(
    "text",
    [
        "variant_get(payload, '$.items[*]', 'int') = 7",
        "payload:user IS NULL",
        "is_variant_null(payload:user)",
        "variant_get(payload, s, 'int') = 7",
        "variant_get(payload, '$.a', s) = 7",
        "variant_get(payload, '$.a', 'array<int>') IS NULL",
        "variant_get(event, '$.a', 'int') = 7",
        "variant_get(s, '$.a', 'int') = 7",
    ],
)
def test_other_values_are_left_to_spark(text: str) -> None:
    assert all(isinstance(leaf, Unsupported) for leaf in leaves(bind(parse(text), SCHEMA, variant_values=True)))


def test_where_nothing_is_known_only_variant_get_may_fail() -> None:
    zones = Zones(
        Keys(Kind.WORD, (pa.array([5, -(2**31), -(2**31)]).to_numpy(),)),
        Keys(Kind.WORD, (pa.array([9, 2**31 - 1, 2**31 - 1]).to_numpy(),)),
        pa.array([3, 3, 3], pa.uint8()).to_numpy(),
        pa.array([4, 4, 0], pa.uint8()).to_numpy(),
    )
    value = intervals.of_zones(zones, pa.int32(), 3)
    assert or_error(pa.int32()).bounds([value]).fails.tolist() == [False, True, False]
    assert or_null(pa.int32()).bounds([value]).fails.tolist() == [False, False, False]


@pytest.mark.parametrize("make", [or_error, or_null])
def test_functions_pickle(make: object) -> None:
    assert callable(make)
    function = make(pa.int32())
    assert pickle.loads(pickle.dumps(function)) == function
