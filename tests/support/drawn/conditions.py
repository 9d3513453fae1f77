"""Predicates on the columns of a table, whatever they are."""

from __future__ import annotations

import random

from pyspark.sql import types as t

from tests.support.drawn.iceberg_histories import UUID, UUIDS, WORDS


def text(value: str) -> str:
    return "'" + value.replace("'", "\\'") + "'"


def conditions(schema: t.StructType, draw: random.Random) -> list[str]:
    """Some predicates on the columns of a schema, alone and in pairs."""
    alone = [text for c in schema for text in _of(f"`{c.name}`", c.dataType, c.name, draw)]
    chosen = draw.sample(alone, min(24, len(alone)))
    pairs = [f"({a}) {draw.choice(['AND', 'OR'])} NOT ({b})" for a, b in zip(chosen, chosen[5:], strict=False)]
    return ["true", f"rid <= {draw.randrange(0, 60)}", *chosen, *draw.sample(pairs, min(6, len(pairs)))]


def _of(name: str, type_: t.DataType, column: str, draw: random.Random) -> list[str]:
    nulls = [f"{name} IS NULL", f"{name} IS NOT NULL"]
    match type_:
        case t.IntegerType() | t.LongType():
            k = draw.choice([-7, -1, 0, 1, 2, 3, 4, 5, 7, 10, 2**31, 2**40])
            return [*nulls, f"{name} = {k}", f"{name} IN (1, {k}, 77)", f"{name} > {k}", f"NOT {name} <= {k}"]
        case t.StringType() if column == UUID:
            return [*nulls, f"{name} = '{draw.choice(UUIDS)}'", f"{name} > '{draw.choice(UUIDS)}'"]
        case t.StringType():
            s = draw.choice(WORDS)
            return [*nulls, f"{name} = {text(s)}", f"{name} LIKE {text(s[:2] + '%')}", f"{name} > {text(s)}"]
        case t.FloatType() | t.DoubleType():
            bounds = [f"{name} {draw.choice(['>', '>=', '<', '<=', '=', '<>'])} {x}" for x in ("0D", "1.5D", "0.1D")]
            return [*nulls, *bounds, f"isnan({name})", f"NOT {name} < 1D", f"{name} = double('NaN')"]
        case t.DecimalType():
            return [*nulls, f"{name} > 12.34", f"{name} <= {draw.randrange(-9, 9)}"]
        case t.DateType():
            return [*nulls, f"{name} < DATE '2000-02-29'", f"{name} = DATE '1970-01-01'", f"year({name}) = 2026"]
        case t.TimestampType():
            return [*nulls, f"{name} >= TIMESTAMP '1970-01-01 00:00:00Z'", f"{name} < TIMESTAMP '1969-12-31 23:30:00Z'"]
        case t.TimestampNTZType():
            return [*nulls, f"{name} >= TIMESTAMP_NTZ '1970-01-01 00:00:00.000001'"]
        case t.BinaryType():
            return [*nulls, f"{name} = X'00'", f"{name} > X'61'"]
        case t.StructType():
            return [
                *nulls,
                *(part for f in type_ for part in _of(f"{name}.`{f.name}`", f.dataType, f.name, draw)),
            ]
        case t.ArrayType():
            return [*nulls, f"array_contains({name}, {text(draw.choice(WORDS))})", f"size({name}) = 1"]
        case t.MapType():
            return [*nulls, f"map_contains_key({name}, {text(draw.choice(WORDS))})"]
    raise AssertionError(type_)
