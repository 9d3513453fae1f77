"""Random tables in directories of every type of partition column, and queries by these columns: joins, groups, windows.

Values of a column come from a few, so that tables meet; several files have the same. Every result is deterministic.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import secateur as sec

VALUES: Mapping[
    str, tuple[str, Sequence[str]]
] = {  # of partition columns: the type, and values by the names of directories
    "whole": ("INT", ("0", "1", "2", "-1")),
    "long": ("BIGINT", ("0", "1", "2", "5")),
    "text": ("STRING", ("a", "A", "b ü", "x%3Dy", "1", "01", "%25")),
    "day": ("DATE", ("2026-01-01", "1970-01-01", "0001-01-01")),
    "ts": ("TIMESTAMP", ("2026-01-01 00%3A00%3A00", "2026-03-08 02%3A30%3A00", "2026-11-01 01%3A30%3A00")),
    "flag": ("BOOLEAN", ("true", "false")),
    "amount": ("DECIMAL(5, 2)", ("1.50", "0.00", "-1.50")),
    "ratio": ("DOUBLE", ("0.0", "-0.0", "NaN", "1.5")),
    "fixed": ("CHAR(3)", ("a", "b")),
    "local": ("TIMESTAMP_NTZ", ("2026-01-01 00%3A00%3A00", "2026-03-08 02%3A30%3A00")),
}
NUMBERS = ("whole", "long")
NULL = "__HIVE_DEFAULT_PARTITION__"
JOINS = ("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
HINTS = ("", "", "/*+ MERGE(b) */", "/*+ SHUFFLE_HASH(b) */", "/*+ BROADCAST(b) */")


def partition_columns(chance: random.Random, tables: int) -> list[list[str]]:
    """The partition columns of some tables, most of them in several tables."""
    shared = chance.sample(list(VALUES), chance.randint(1, 3))
    return [chance.sample(shared, chance.randint(1, len(shared))) for _ in range(tables)]


def write(spark: SparkSession, name: str, root: Path, columns: Sequence[str], chance: random.Random) -> None:
    """A table in the catalog, of which an index covers all files or some."""
    listed = ", ".join(f"{column} {VALUES[column][0]}" for column in columns)
    spark.sql(
        f"CREATE TABLE {name} (id INT, x INT, y STRING, {listed}) USING parquet "
        f"PARTITIONED BY ({', '.join(columns)}) LOCATION '{root}'"
    )
    files, begin = chance.randint(3, 9), chance.randint(0, 20)
    indexed = chance.choice((files, files, files // 2 + 1))
    for file in range(files):
        names = [
            f"{column}={NULL if chance.random() < 0.1 else chance.choice(VALUES[column][1])}" for column in columns
        ]
        folder = root.joinpath(*names)
        folder.mkdir(parents=True, exist_ok=True)
        ids = np.arange(8, dtype=np.int32) + begin + 8 * file
        rows = {"id": ids, "x": pa.array(ids % 4, mask=ids % 5 == 0), "y": [f"y{i % 3}" for i in ids]}
        pq.write_table(pa.table(rows), folder / f"{file}.parquet", row_group_size=chance.choice((1, 2, 4)))
        if file == indexed - 1:
            sec.build_index(str(root), sort_key=["id"], bloom=["x"])
    spark.sql(f"MSCK REPAIR TABLE {name}")


@dataclass(frozen=True)
class GroupedSql:
    """Draws queries of such tables, by a seed."""

    chance: random.Random
    tables: Mapping[str, Sequence[str]]  # their partition columns

    def query(self) -> str:
        """A whole query."""
        return self.chance.choice(
            (self._join, self._join, self._semi_join, self._of_groups, self._groups, self._window)
        )()

    def _table(self) -> str:
        return self.chance.choice(list(self.tables))

    def _condition(self, a: str, table: str) -> str:
        column, n = self.chance.choice(list(self.tables[table])), self.chance.randint(0, 90)
        return self.chance.choice(
            (
                "TRUE",
                f"{a}.id < {n}",
                f"{a}.id + 0 BETWEEN {n} AND {n + 9}",
                f"{a}.x = {n % 4}",
                f"{a}.id IN ({n}, {n + 1})",
                f"{a}.{column} IS {self.chance.choice(('', 'NOT '))}NULL",
                f"{a}.y = 'y1'",
                f"{a}.id = -1",
            )
        )

    def _part(self, table: str, a: str) -> str:
        return f"(SELECT * FROM {table} {a} WHERE {self._condition(a, table)}) {a}"

    def _on(self, a: str, table: str, b: str, other: str) -> str:
        ours, theirs = self.tables[table], self.tables[other]
        shared = [column for column in ours if column in theirs]
        equal = self.chance.choice(("=", "=", "<=>"))
        chosen = self.chance.sample(shared, self.chance.randint(1, len(shared))) if shared else []
        keys = [f"{a}.{column} {equal} {b}.{column}" for column in chosen]
        numbers, other_numbers = ([c for c in columns if c in NUMBERS] for columns in (ours, theirs))
        if numbers and other_numbers and self.chance.random() < 0.3:
            keys.append(f"{a}.{numbers[0]} = {b}.{other_numbers[-1]}")
        if not keys or self.chance.random() < 0.3:
            keys.append(self.chance.choice((f"{a}.id = {b}.id", f"{a}.x = {b}.x", f"{a}.id = {b}.id + 3")))
        return " AND ".join(keys)

    def _join(self) -> str:
        t, u, w = (self._table() for _ in range(3))
        first = f"{self._part(t, 'a')} {self.chance.choice(JOINS)} {self._part(u, 'b')} ON {self._on('a', t, 'b', u)}"
        chosen = f"SELECT {self.chance.choice(HINTS)} a.id, a.{self.tables[t][0]}, b.id AS other"
        if self.chance.random() < 0.6:
            return f"{chosen}, b.{self.tables[u][-1]} AS theirs FROM {first}"
        third = f"{self.chance.choice(JOINS)} {self._part(w, 'c')} ON {self._on('a', t, 'c', w)}"
        return f"{chosen}, c.id AS last FROM {first} {third}"

    def _semi_join(self) -> str:
        t, u = self._table(), self._table()
        kind = self.chance.choice(("LEFT SEMI JOIN", "LEFT ANTI JOIN"))
        return f"SELECT a.* FROM {self._part(t, 'a')} {kind} {self._part(u, 'b')} ON {self._on('a', t, 'b', u)}"

    def _of_groups(self) -> str:
        """A join with what was grouped before."""
        t, u = self._table(), self._table()
        by = ", ".join(self.tables[u])
        groups = f"(SELECT {by}, count(*) AS n, max(id) AS id, max(x) AS x FROM {self._part(u, 'b')} GROUP BY {by}) b"
        kind, keys = self.chance.choice(JOINS), self._on("a", t, "b", u)
        return f"SELECT a.id, b.n FROM {self._part(t, 'a')} {kind} {groups} ON {keys}"

    def _by(self, table: str) -> str:
        columns = [*self.tables[table], "x"]
        return ", ".join(f"a.{column}" for column in self.chance.sample(columns, self.chance.randint(1, len(columns))))

    def _groups(self) -> str:
        t = self._table()
        by = self._by(t)
        aggregates = "count(*), sum(a.x), min(a.id), count(DISTINCT a.y)"
        return f"SELECT {by}, {aggregates} FROM {self._part(t, 'a')} GROUP BY {by}"

    def _window(self) -> str:
        t = self._table()
        by = self._by(t)
        number = f"row_number() OVER (PARTITION BY {by} ORDER BY a.id, a.x)"
        return f"SELECT a.id, {by}, {number} AS n, sum(a.x) OVER (PARTITION BY {by}) AS s FROM {self._part(t, 'a')}"
