"""Random queries over a few tables: joins, subqueries, aggregates, windows, unions. Every result is deterministic.

The tables have the columns ``id``, ``k``, ``x``, ``s``, ``d`` and ``ts``; a LIMIT always follows an ORDER BY of all
columns.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

TOTALS = ("count(*)", "count(a.x)", "count(a.k)", "min(a.id)", "max(a.s)", "min(a.d)", "max(a.x)", "min(a.k)")


@dataclass(frozen=True)
class RandomSql:
    """Draws queries of some tables or views, by a seed."""

    chance: random.Random
    tables: tuple[str, ...]
    most_id: int

    def query(self) -> str:
        """A whole query."""
        shapes: list[Callable[[], str]] = [
            self._rows,
            self._aggregate,
            self._join,
            self._union,
            self._window,
            self._top,
        ]
        return self.chance.choice(shapes)()

    def _table(self) -> str:
        return self.chance.choice(self.tables)

    def _number(self) -> int:
        return self.chance.choice((0, 1, self.chance.randint(-5, self.most_id + 5), self.most_id))

    def _leaf(self, t: str) -> str:
        n, m = self._number(), self.chance.randint(0, 20)
        day = f"DATE'2026-01-{self.chance.randint(1, 28):02d}'"
        operator = self.chance.choice(("=", "<", "<=", ">", ">=", "<>", "<=>"))
        hour = f"TIMESTAMP'2026-01-01 {self.chance.randint(0, 23):02d}:00:00'"
        return self.chance.choice(
            (
                f"{t}.id {operator} {n}",
                f"{t}.id BETWEEN {n} AND {n + m}",
                f"{t}.id IN ({', '.join(str(self._number()) for _ in range(m + 1))})",
                f"{t}.id NOT IN ({n}, {n + 1}, NULL)",
                f"{t}.k {operator} {m}",
                f"{t}.k IS {self.chance.choice(('', 'NOT '))}NULL",
                f"{t}.x {operator} {n / 2}",
                f"isnan({t}.x)",
                f"{t}.s LIKE 's{m:02d}%'",
                f"upper({t}.s) {operator} 'S{m:02d}'",
                f"{t}.s {operator} 's{m:02d}'",
                f"substring({t}.s, 2, 2) = '{m:02d}'",
                f"{t}.d {operator} {day}",
                f"month({t}.d) = {self.chance.randint(1, 3)}",
                f"{t}.ts {operator} {hour}",
                f"hour({t}.ts) = {self.chance.randint(0, 23)}",
                f"CAST({t}.ts AS DATE) {operator} DATE'2026-01-02'",
                f"{t}.id % 7 = {m % 7}",
                f"{t}.id / {t}.k > {m}",
                f"coalesce({t}.k, {m}) = {m}",
                f"{t}.id + {n} {operator} {n + m}",
            )
        )

    def _condition(self, t: str, depth: int = 2) -> str:
        draw = self.chance.random()
        if depth and draw < 0.5:
            connective = self.chance.choice(("AND", "AND", "OR"))
            return f"({self._condition(t, depth - 1)} {connective} {self._condition(t, depth - 1)})"
        if depth and draw < 0.6:
            return f"NOT ({self._condition(t, depth - 1)})"
        return self._subquery(t) if depth and draw < 0.75 else self._leaf(t)

    def _subquery(self, t: str) -> str:
        inner, leaf = self._table(), self._leaf("i")
        return self.chance.choice(
            (
                f"{t}.k IN (SELECT i.k FROM {inner} i WHERE {leaf})",
                f"{t}.id NOT IN (SELECT i.id FROM {inner} i WHERE {leaf} AND i.id IS NOT NULL)",
                f"EXISTS (SELECT 1 FROM {inner} i WHERE i.id = {t}.k AND {leaf})",
                f"NOT EXISTS (SELECT 1 FROM {inner} i WHERE i.k = {t}.k AND {leaf})",
                f"{t}.id > (SELECT avg(i.id) FROM {inner} i WHERE {leaf})",
                f"{t}.id = (SELECT max(i.id) FROM {inner} i WHERE i.k = {t}.k AND {leaf})",
            )
        )

    def _rows(self) -> str:
        return f"SELECT a.id, a.s, a.ts, a.x FROM {self._table()} a WHERE {self._condition('a')}"

    def _aggregate(self) -> str:
        having = self.chance.choice(("", " HAVING count(*) > 1"))
        return (
            f"SELECT a.k, count(*), count(a.x), min(a.id), max(a.s), min(a.d) FROM {self._table()} a "
            f"WHERE {self._condition('a')} GROUP BY a.k{having}"
        )

    def _join(self) -> str:
        kind = self.chance.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"))
        hint = self.chance.choice(("", "/*+ BROADCAST(b) */ ", "/*+ BROADCAST(a) */ ", "/*+ MERGE(a) */ "))
        on = self.chance.choice(("a.k = b.id", "a.id = b.id", "a.id = b.k AND a.s = b.s", "a.d = b.d AND a.k <=> b.k"))
        chosen = "a.id, a.k" if "SEMI" in kind or "ANTI" in kind else "a.id, a.k, b.id AS other, b.s"
        extra = f" AND {self._leaf('b')}" if self.chance.random() < 0.5 else ""
        right = f"(SELECT * FROM {self._table()} c WHERE {self._leaf('c')})"
        return (
            f"SELECT {hint}{chosen} FROM {self._table()} a {kind} {right} b ON {on}{extra} WHERE {self._condition('a')}"
        )

    def _union(self) -> str:
        kind = self.chance.choice(("UNION ALL", "UNION", "INTERSECT", "EXCEPT"))
        parts = [f"SELECT t.id, t.k FROM {self._table()} t WHERE {self._condition('t', 1)}" for _ in range(2)]
        return f" {kind} ".join(parts)

    def _window(self) -> str:
        return (
            f"SELECT * FROM (SELECT a.*, row_number() OVER (PARTITION BY a.k ORDER BY a.id) AS n "
            f"FROM {self._table()} a WHERE {self._condition('a', 1)}) w WHERE w.n <= 2 AND {self._leaf('w')}"
        )

    def _top(self) -> str:
        order = self.chance.choice(("a.id DESC", "a.x, a.id", "a.d DESC, a.s, a.id"))
        return (
            f"SELECT a.id, a.x FROM {self._table()} a WHERE {self._condition('a')} "
            f"ORDER BY {order} LIMIT {self.chance.randint(0, 9)}"
        )

    def partial(self) -> str:
        """A query that does not need all rows that match: the first of an order, or aggregates that statistics tell."""
        draw = self.chance.random()
        if draw < 0.2:
            return self._totals()
        if draw < 0.35:
            return self._groups()
        if draw < 0.5:
            return self._first_of_partition()
        if draw < 0.8:
            return self._first("a.id, a.x")
        few = self._first("a.*")
        return self.chance.choice(
            (
                f"SELECT w.id, w.s FROM ({few}) w WHERE {self._leaf('w')}",
                f"SELECT w.id, b.id AS other FROM ({few}) w JOIN {self._table()} b ON w.k = b.k AND b.id < 90",
                f"({self._first('a.id')}) UNION ALL SELECT id FROM {self._table()} t WHERE {self._leaf('t')}",
                f"SELECT t.id FROM {self._table()} t WHERE t.k IN (SELECT q.k FROM ({few}) q)",
            )
        )

    def _simple(self, t: str) -> str:
        """A condition that some blocks match whole, most of the time."""
        wide = f"{t}.id {self.chance.choice(('>=', '<'))} {self._number()}"
        return self.chance.choice((wide, "TRUE", f"({wide} OR {self._leaf(t)})", f"{wide} AND {self._leaf(t)}"))

    def _first(self, chosen: str) -> str:
        """The first rows of an order without ties, by a column or by what is derived from one."""
        by = self.chance.choice(("a.id", "a.x", "a.k", "a.s", "a.d", "a.ts", "-a.id", "upper(a.s)"))
        direction, nulls = self.chance.choice(("", " DESC")), self.chance.choice(("", " NULLS FIRST", " NULLS LAST"))
        offset = self.chance.choice(("", "", f" OFFSET {self.chance.randint(0, 30)}"))
        return (
            f"SELECT {chosen} FROM {self._table()} a WHERE {self._simple('a')} "
            f"ORDER BY {by}{direction}{nulls}, a.id LIMIT {self.chance.randint(0, 9)}{offset}"
        )

    def _first_of_partition(self) -> str:
        """The first rows of one partition or of several, by an order without ties."""
        k, x = self.chance.randint(-3, 19), self.chance.randint(0, 3)
        by, bound = self.chance.choice(
            (
                ("a.k", f"a.k = {k}"),
                ("a.k", f"a.k <=> {self.chance.choice((k, 'NULL'))}"),
                ("a.k", f"a.k IN ({k}, {k + 1})"),
                ("a.k, a.x", f"a.k = {k} AND a.x = {x}"),
                ("a.k, a.x", f"a.k = {k}"),
                ("a.x", f"a.x = {self.chance.choice(('0.0D', '-0.0D', 'double(' + repr('NaN') + ')'))}"),
            )
        )
        order = self.chance.choice(("a.id", "a.id DESC", "a.ts DESC, a.id", "a.d DESC, a.id", "a.s NULLS LAST, a.id"))
        number = f"row_number() OVER (PARTITION BY {by} ORDER BY {order}) AS n"
        rows = f"SELECT a.*, {number} FROM {self._table()} a WHERE {bound} AND {self._simple('a')}"
        return f"SELECT w.id, w.k, w.x, w.n FROM ({rows}) w WHERE w.n <= {self.chance.randint(0, 4)}"

    def _totals(self) -> str:
        one, other = self.chance.sample(TOTALS, 2)
        return f"SELECT {one} AS m, {other} AS n FROM {self._table()} a WHERE {self._simple('a')}"

    def _groups(self) -> str:
        """Aggregates of groups, or of distinct values, of which some blocks have one."""
        by = self.chance.choice(("a.k", "a.k", "a.d", "a.k, a.d", "a.x, a.k"))
        one, other = self.chance.sample([*TOTALS, f"count(DISTINCT {by})", "sum(a.k)"], 2)
        rows = f"FROM {self._table()} a WHERE {self._simple('a')}"
        return self.chance.choice(
            (
                f"SELECT {by}, {one} AS m, {other} AS n {rows} GROUP BY {by}",
                f"SELECT {one} AS m, {by} {rows} GROUP BY {by} HAVING count(*) > {self.chance.randint(0, 9)}",
                f"SELECT DISTINCT {by} {rows}",
                f"SELECT count(DISTINCT {by}) AS m, {other} AS n {rows}",
                f"SELECT a.k, {one} IS NULL AS nothing, {other} AS n {rows} GROUP BY a.k ORDER BY a.k LIMIT 100",
            )
        )
