"""Which files of a table to rewrite together, in which order, and what queries then read, as values."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from secateur.pruning.report import human_bytes

MOST_SHOWN = 20  # groups in text
MOST_TEXT = 400  # characters of a statement in text


@dataclass(frozen=True)
class OrderCost:
    """An order of the rows, and the bytes that a query would read if every partition were rewritten in it."""

    order: str
    bytes_then: float
    is_writable: bool  # by the table's own writer


@dataclass(frozen=True)
class FileGroup:
    """Files of one partition to rewrite together."""

    partition: str  # its values; empty if the table has none
    files: tuple[str, ...]
    bytes: int
    blocks: int
    bytes_now: float  # that a query reads of these files
    bytes_then: float  # when they are rewritten
    statement: str  # what rewrites them

    @property
    def pays_after(self) -> float:
        """The number of queries that save as many bytes as the rewrite reads and writes."""
        return 2 * self.bytes / (self.bytes_now - self.bytes_then)


@dataclass(frozen=True)
class Reclustering:
    """The answer of :func:`secateur.plan_recluster`; prints as text.

    All figures of what is read are expected values for one query: a look-up of a value of any row, or one of the given
    predicates. `groups` are ordered best first.
    """

    table: str
    queries: str  # what they are
    data_bytes: int
    budget: int | None  # bytes
    order: str  # in which groups are rewritten
    orders: tuple[OrderCost, ...]  # that were compared, the best first
    groups: tuple[FileGroup, ...]
    bytes_now: float  # that a query reads of the whole table
    sampled: int  # blocks that were read
    done: str  # what is to be said when the groups are rewritten
    applied: bool = False

    @property
    def bytes(self) -> int:
        """The bytes of the files to rewrite."""
        return sum(group.bytes for group in self.groups)

    @property
    def bytes_then(self) -> float:
        """What a query reads of the whole table when all groups are rewritten."""
        return self.bytes_now - sum(group.bytes_now - group.bytes_then for group in self.groups)

    def to_table(self) -> pa.Table:
        """Return one row per file to rewrite: its group, and what is known of that."""
        rows = [
            {
                "group": number,
                "file": file,
                "partition": group.partition,
                "group_bytes": group.bytes,
                "bytes_now": group.bytes_now,
                "bytes_then": group.bytes_then,
                "pays_after": group.pays_after,
            }
            for number, group in enumerate(self.groups, 1)
            for file in group.files
        ]
        return pa.Table.from_pylist(rows, _SCHEMA)

    def __str__(self) -> str:
        lines = [
            f"{self.queries}, by a sample of {self.sampled:,} blocks",
            f"bytes read per query: {human_bytes(self.bytes_now)} now",
            "if the whole table were rewritten, every partition by itself:",
        ]
        for cost in self.orders:
            unable = "" if cost.is_writable else "; the table's own writer cannot write it"
            lines.append(f"  {cost.order}: {human_bytes(cost.bytes_then)}{unable}")
        if not self.groups:
            lines.append("no files are worth rewriting" + ("" if self.budget is None else " within the budget"))
            return "\n".join(lines)
        within = "" if self.budget is None else f", of a budget of {human_bytes(self.budget)}"
        files = sum(len(group.files) for group in self.groups)
        lines += [
            f"to rewrite in the order {self.order}: {_counted(files, 'file')} of {human_bytes(self.bytes)}{within}",
            f"then read per query: {human_bytes(self.bytes_then)}",
        ]
        for number, group in enumerate(self.groups[:MOST_SHOWN], 1):
            place = f" of {group.partition}" if group.partition else ""
            reads = f"{human_bytes(group.bytes_now)} -> {human_bytes(group.bytes_then)} per query"
            pays = f"pays after {_counted(max(round(group.pays_after), 1), 'query', 'queries')}"
            counted = f"{_counted(len(group.files), 'file')}{place}, {human_bytes(group.bytes)}"
            lines += [f"  {number}. {counted}: {reads}, {pays}", f"     {_cut(group.statement)}"]
        if len(self.groups) > MOST_SHOWN:
            lines.append(f"  and {len(self.groups) - MOST_SHOWN:,} more groups")
        lines.append(self.done if self.applied else "nothing was changed")
        return "\n".join(lines)


_SCHEMA = pa.schema(
    [
        ("group", pa.int64()),
        ("file", pa.string()),
        ("partition", pa.string()),
        ("group_bytes", pa.int64()),
        *((name, pa.float64()) for name in ("bytes_now", "bytes_then", "pays_after")),
    ]
)


def _counted(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _cut(statement: str) -> str:
    """Leave the middle of a long statement out."""
    if len(statement) <= MOST_TEXT:
        return statement
    return f"{statement[: MOST_TEXT // 2]} ... {statement[-MOST_TEXT // 2 :]} (whole: groups[n].statement, or --json)"
