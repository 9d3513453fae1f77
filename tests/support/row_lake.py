"""Tables whose rows are known, and predicates that plain Python evaluates on a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

import secateur as sec
from secateur.index.build.tasks import run_in_process
from secateur.io.scan.audit_findings import AuditFault
from secateur.io.scan.opened_table import opened_strictly
from secateur.io.tables.table import Table
from secateur.maintain.audit import compared
from secateur.scan import Scan

Row = dict[str, Any]
Truth = bool | None


@dataclass(frozen=True)
class Asked:
    """A predicate as SQL, and what it is on a row."""

    sql: str
    on: Callable[[Row], Truth]


def of_column(name: str, sql: str, test: Callable[[Any], bool]) -> Asked:
    """A test of a column's value; NULL where the column is."""
    return Asked(sql, lambda row: None if row[name] is None else test(row[name]))


def negated(asked: Asked) -> Asked:
    def on(row: Row) -> Truth:
        truth = asked.on(row)
        return None if truth is None else not truth

    return Asked(f"NOT ({asked.sql})", on)


def both(parts: Sequence[Asked]) -> Asked:
    def on(row: Row) -> Truth:
        truths = [part.on(row) for part in parts]
        return False if False in truths else None if None in truths else True

    return Asked("(" + " AND ".join(part.sql for part in parts) + ")", on)


def either(parts: Sequence[Asked]) -> Asked:
    turned = negated(both([negated(part) for part in parts]))
    return Asked("(" + " OR ".join(part.sql for part in parts) + ")", turned.on)


def combined(leaves: st.SearchStrategy[Asked], max_leaves: int) -> st.SearchStrategy[Asked]:
    """Some predicates under AND, OR and NOT."""
    return st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, min_size=2, max_size=3).map(both)
            | st.lists(inner, min_size=2, max_size=3).map(either)
            | inner.map(negated)
        ),
        max_leaves=max_leaves,
    )


@dataclass
class RowLake:
    """A table, its rows by file, and how rows are drawn for a new file, given the first row id."""

    root: Path
    schema: pa.Schema
    draw: Callable[[np.random.Generator, int], list[Row]]
    pages: Sequence[int]  # rows of a page, one of which is drawn for every file
    rows: dict[str, list[Row]] = field(default_factory=dict)

    def add(self, random: np.random.Generator, name: str) -> None:
        """Write a file, or write it anew."""
        rows = self.draw(random, 1000 * (len(self.rows) + 1))
        self.write(name, rows, int(random.choice([7, 20, 64])), int(random.choice(self.pages)))

    def write(self, name: str, rows: Sequence[Row], group: int, page: int) -> None:
        """Write a file of these rows."""
        self.rows[name] = list(rows)
        pq.write_table(
            pa.Table.from_pylist(self.rows[name], self.schema),
            self.root / name,
            row_group_size=group,
            write_page_index=True,
            max_rows_per_page=page,
            write_batch_size=page,
        )

    def change(self, random: np.random.Generator) -> None:
        """Add a file, remove one and write one anew."""
        self.add(random, "new.parquet")
        (self.root / "f1.parquet").unlink()
        del self.rows["f1.parquet"]
        self.add(random, "f2.parquet")

    @property
    def table(self) -> Table:
        return sec.open_table(str(self.root))

    def check(self, asked: Asked, *, strict: bool = True) -> Scan:
        """The rows are those that match; every one lies in a row range of its block."""
        plan = sec.prune(self.table, asked.sql, strict=strict)
        expected = sorted(row["rid"] for rows in self.rows.values() for row in rows if asked.on(row))
        assert sorted(plan.to_arrow(columns=["rid"])["rid"].to_pylist()) == expected
        assert plan.count() == len(expected)
        assert self.selected(plan) >= set(expected)
        return plan

    def selected(self, plan: Scan) -> set[int]:
        """The ids of the rows in the row ranges of a plan."""
        selected = set()
        for block in plan.blocks.to_pylist():
            rows, before = self.rows[block["file"]], self._rows_before(block["file"], block["row_group"])
            for span in block["row_ranges"]:
                assert 0 <= span["start"] < span["stop"] <= block["row_count"]
                selected |= {rows[before + row]["rid"] for row in range(span["start"], span["stop"])}
        return selected

    def _rows_before(self, file: str, row_group: int) -> int:
        footer = pq.read_metadata(self.root / file)
        return sum(footer.row_group(i).num_rows for i in range(row_group))

    def flip(self, position: int, bit: int) -> None:
        """Turn a bit of every segment file."""
        for segment in (self.root / "_secateur" / "segments").iterdir():
            data = bytearray(segment.read_bytes())
            data[position % len(data)] ^= 1 << bit
            segment.write_bytes(data)

    def audited(self) -> list[AuditFault]:
        """What the values of all blocks contradict."""
        opened = opened_strictly(self.table)
        findings, blocks = compared(opened, run_in_process, lambda count: 1, None, 0, lambda *progress: None)
        assert findings.blocks == blocks
        assert findings.skipped == []
        return findings.faults


def lakes_below(root: Path, make: Callable[[Path], RowLake]) -> Callable[[int, int], RowLake]:
    """Return what makes tables by a seed and a number of files, each below a folder of its own."""
    folders = iter(range(10**6))

    def new(seed: int, files: int) -> RowLake:
        folder = root / str(next(folders))
        folder.mkdir()
        lake, random = make(folder), np.random.default_rng(seed)
        for i in range(files):
            lake.add(random, f"f{i}.parquet")
        return lake

    return new
