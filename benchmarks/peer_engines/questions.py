"""The questions, in SQL that every peer reads but for the type of a moment."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

ZONED = "TIMESTAMPTZ"  # the type of a moment, which engines name differently


@dataclass(frozen=True)
class Question:
    """Conditions of one kind, each with other literals, and what is asked of the rows that match."""

    name: str
    conditions: tuple[str, ...]
    columns: tuple[str, ...] = ()  # empty: all
    counts: bool = False  # asks for the number of rows alone
    order: str = ""
    limit: int | None = None

    def sql(self, table: str, condition: str, zoned: str = ZONED) -> str:
        """Return the query over a table, with the peer's name of the type of a moment."""
        asked = "count(*) AS n" if self.counts else ", ".join(self.columns) or "*"
        order = f" ORDER BY {self.order}" if self.order else ""
        limit = "" if self.limit is None else f" LIMIT {self.limit}"
        return f"SELECT {asked} FROM {table} WHERE {condition.replace(ZONED, zoned)}{order}{limit}"


def questions(rows: int, users: list[int], requests: list[str]) -> list[Question]:
    """Return the questions over the table of so many orders; users and requests are of some of its rows."""
    lists = [", ".join(map(str, users[i::3][:10])) for i in range(3)]
    spans = [(f"2023-11-{day} 00:00:00", f"2023-11-{day} 00:30:00") for day in (15, 18, 21)]
    ranges = [_between("ts", *(f"CAST('{moment}+00:00' AS {ZONED})" for moment in span)) for span in spans]
    return [
        Question("one key, unclustered", tuple(f"user_id = {user}" for user in users[:3])),
        Question("ten keys", tuple(f"user_id IN ({some})" for some in lists)),
        Question("an absent key", tuple(f"user_id = {3_000_000 + i}" for i in range(3))),
        Question("a key or a name", tuple(f"user_id = {a} OR name = 'user-{b}'" for a, b in _pairs(users))),
        Question("a prefix of a name", tuple(f"name LIKE 'user-{user}%'" for user in users[:3])),
        Question("a part of a message", tuple(f"message LIKE '%{part}%'" for part in requests[:3])),
        Question("a rare status", ("status = 'lost'",)),
        Question(
            "a narrow range of doubles, unclustered", tuple(_between("price", low, low + 5) for low in (700, 720, 740))
        ),
        Question("half an hour", tuple(ranges)),
        Question("the ten newest", ("order_id >= 0",), order="ts DESC", limit=10),
        Question("the ten newest of a rare status", ("status = 'lost'",), order="ts DESC", limit=10),
        Question("how many of the first 40 %", tuple(f"order_id < {rows * 2 // 5 - i}" for i in range(3)), counts=True),
        Question("all rows, two columns", ("order_id >= 0",), ("order_id", "price")),
    ]


def _between(column: str, low: object, high: object) -> str:
    return f"{column} >= {low} AND {column} <= {high}"


def _pairs(users: list[int]) -> Iterable[tuple[int, int]]:
    return zip(users[:3], users[3:6], strict=True)


def write(path: Path, asked: list[Question]) -> None:
    """Write questions for a peer's process."""
    path.write_text(json.dumps([asdict(question) for question in asked]))


def read(path: Path) -> list[Question]:
    """Read what :func:`write` has written."""
    return [
        Question(**{**given, "conditions": tuple(given["conditions"]), "columns": tuple(given["columns"])})
        for given in json.loads(path.read_text())
    ]
