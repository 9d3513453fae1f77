"""Iceberg tables for tests, written by PyIceberg with a catalog in SQLite, and random histories of them."""

from __future__ import annotations

import datetime as dt
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    YearTransform,
)
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

TYPES: dict[str, Any] = {
    "k": IntegerType(),
    "s": StringType(),
    "f": DoubleType(),
    "ts": TimestamptzType(),
    "local": TimestampType(),
    "day": DateType(),
    "amount": DecimalType(9, 2),
    "data": BinaryType(),
    "code": UUIDType(),
    "nested": StructType(NestedField(101, "x", IntegerType()), NestedField(102, "y", StringType())),
    "tags": ListType(103, StringType(), element_required=False),
}
TRANSFORMS: list[tuple[str, Transform[Any, Any]]] = [
    ("k", IdentityTransform()),
    ("k", BucketTransform(3)),
    ("k", TruncateTransform(5)),
    ("s", IdentityTransform()),
    ("s", TruncateTransform(2)),
    ("s", BucketTransform(4)),
    ("ts", DayTransform()),
    ("ts", HourTransform()),
    ("local", MonthTransform()),
    ("day", YearTransform()),
    ("day", IdentityTransform()),
    ("amount", BucketTransform(2)),
    ("amount", TruncateTransform(1000)),
]
WORDS = ["", "a", "ab", "abc", "äöü", "🦊", "zzzz", "a" * 70, "B"]


def catalog_in(directory: Path) -> Catalog:
    """A catalog with a namespace ``db``."""
    catalog = load_catalog(
        "tests", type="sql", uri=f"sqlite:///{directory}/catalog.db", warehouse=f"file://{directory}/warehouse"
    )
    catalog.create_namespace("db")
    return catalog


def a_value(type_: Any, draw: random.Random) -> Any:
    """A value of a type, from a few; NULL now and then."""
    if draw.random() < 0.15:
        return None
    match type_:
        case IntegerType() | LongType():
            return draw.choice([-(2**31), -7, -1, 0, 1, 2, 3, 4, 5, 10, 2**31 - 1])
        case StringType():
            return draw.choice(WORDS)
        case DoubleType():
            return draw.choice([float("nan"), -0.0, 0.0, 1.5, -2.5, float("inf"), float("-inf")])
        case TimestamptzType():
            return dt.datetime(1969, 12, 30, 23, 30, tzinfo=dt.UTC) + dt.timedelta(hours=draw.randrange(0, 100))
        case TimestampType():
            return dt.datetime(1969, 11, 30) + dt.timedelta(days=draw.randrange(0, 90), microseconds=1)
        case DateType():
            return dt.date(1968, 12, 31) + dt.timedelta(days=draw.randrange(0, 800))
        case DecimalType():
            return Decimal(draw.randrange(-(10**7), 10**7)).scaleb(-2)
        case BinaryType():
            return draw.choice([b"", b"\x00", b"\xff\xff", b"abc"])
        case UUIDType():
            return uuid.UUID(int=draw.randrange(0, 4)).bytes
        case StructType():
            return {field.name: a_value(field.field_type, draw) for field in type_.fields}
        case ListType():
            return [a_value(type_.element_type, draw) for _ in range(draw.randrange(0, 3))]
    raise AssertionError(type_)


@dataclass
class History:
    """A table that random commits change; every row has its own `rid`."""

    table: Table
    draw: random.Random
    rid: int = 0
    added: int = 0
    log: list[str] = field(default_factory=list)

    def step(self) -> None:
        """One commit."""
        choice = self.draw.choice(self._steps)
        self.log.append(choice.__name__)
        choice()

    @property
    def _steps(self) -> list[Callable[[], None]]:
        often = [self.append] * 4
        return [*often, self.delete, self.overwrite, self.rename, self.add, self.drop, self.promote, self.repartition]

    def rows(self) -> pa.Table:
        """Some new rows of the present schema."""
        n = self.draw.choice([1, 3, 10, 40])
        fields = self.table.schema().fields
        columns = {field.name: [a_value(field.field_type, self.draw) for _ in range(n)] for field in fields}
        columns["rid"] = list(range(self.rid, self.rid + n))
        self.rid += n
        return pa.table(columns, schema=self.table.schema().as_arrow())

    def append(self) -> None:
        self.table.append(self.rows())

    def overwrite(self) -> None:
        self.table.overwrite(self.rows(), overwrite_filter=f"rid < {self.draw.randrange(0, max(self.rid, 1))}")

    def delete(self) -> None:
        first = self.draw.randrange(0, max(self.rid, 1))
        self.table.delete(f"rid >= {first} and rid < {first + 5}")

    def rename(self) -> None:
        old = self._a_column()
        with self.table.update_schema() as update:
            update.rename_column(old, self._new_name())

    def add(self) -> None:
        """A column, under the name of one that was dropped or renamed if there is any."""
        known = {field.name for field in self.table.schema().fields}
        gone = [name for name in TYPES if name not in known]
        name = self.draw.choice(gone) if gone else self._new_name()
        with self.table.update_schema() as update:
            update.add_column(name, self.draw.choice([IntegerType(), StringType(), DoubleType()]))

    def drop(self) -> None:
        used = {part.source_id for spec in self.table.specs().values() for part in spec.fields}
        free = [f.name for f in self.table.schema().fields if f.field_id not in used and f.name != "rid"]
        if len(free) > 3:
            with self.table.update_schema() as update:
                update.delete_column(self.draw.choice(free))

    def promote(self) -> None:
        used = {column.source_id for spec in self.table.specs().values() for column in spec.fields}
        for column in self.table.schema().fields:
            if isinstance(column.field_type, IntegerType) and column.field_id not in used:
                with self.table.update_schema() as update:
                    update.update_column(column.name, LongType())
                return

    def repartition(self) -> None:
        known = {field.name: field for field in self.table.schema().fields}
        fitting = [
            (name, transform)
            for name, transform in TRANSFORMS
            if name in known and transform.can_transform(known[name].field_type)
        ]
        current = self.table.spec().fields
        with self.table.update_spec() as update:
            if current and self.draw.random() < 0.5:
                update.remove_field(self.draw.choice(current).name)
            elif fitting:
                name, transform = self.draw.choice(fitting)
                if not any(field.source_id == known[name].field_id for field in current):
                    update.add_field(name, transform, f"p{uuid.uuid4().hex[:6]}")

    def _a_column(self) -> str:
        return self.draw.choice([field.name for field in self.table.schema().fields if field.name != "rid"])

    def _new_name(self) -> str:
        self.added += 1
        return f"c{self.added}"


def new_history(catalog: Catalog, seed: int, format_version: int = 2) -> History:
    """A table with a random partition spec and no rows."""
    draw = random.Random(seed)
    fields = [NestedField(1, "rid", LongType())]
    fields += [NestedField(i, name, type_) for i, (name, type_) in enumerate(TYPES.items(), 2)]
    schema = Schema(*fields)
    ids = {field.name: field.field_id for field in fields}
    chosen = draw.sample(TRANSFORMS, draw.choice([0, 1, 1, 2]))
    parts = dict(chosen)
    spec = PartitionSpec(*[PartitionField(ids[n], 1000 + i, t, f"p{i}") for i, (n, t) in enumerate(parts.items())])
    properties = {"format-version": str(format_version), "write.parquet.row-group-limit": "16"}
    table = catalog.create_table(f"db.t{seed}_{format_version}", schema, partition_spec=spec, properties=properties)
    return History(table, draw)
