"""Which structures of an index a workload pays for, as values."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from secateur.pruning.report import human_bytes

BUILD, KEEP, DROP = "build", "keep", "drop"
LOGGED, DRAWN = "logged", "drawn"
MOST_SHOWN = 20  # shapes in text


@dataclass(frozen=True)
class LoggedShape:
    """The logged plans of one shape over a table."""

    shape: str
    plans: int
    share: float  # of the bytes that bounds alone left
    examples: tuple[tuple[str, ...], ...]  # lists of literals as they are; empty if the log has hashes


@dataclass(frozen=True)
class ShapeCost:
    """What a query of a shape reads on average: with the index as it is, and as chosen.

    Both are None for a shape that could not be simulated; `note` says why, and otherwise where its literals are from.
    """

    shape: str
    plans: int
    bytes_now: float | None
    bytes_then: float | None
    note: str


@dataclass(frozen=True)
class TunedStructure:
    """A structure of an index: one to build, to keep, or to drop."""

    action: str  # build, keep or drop
    structure: str  # bloom, postings, ngram, tokens or gaps
    column: str
    bytes: int  # estimated, but for a filter that is there
    saved: float | None  # bytes per query beside the structures ranked before it; None: not known, or dropped
    why: str
    call: str  # the call that does it; empty for what stays

    @property
    def saved_per_byte(self) -> float | None:
        """Bytes saved per query and byte of index."""
        return None if self.saved is None else self.saved / max(self.bytes, 1)


@dataclass(frozen=True)
class Tuning:
    """The answer of :func:`secateur.tune`; prints as text.

    `structures` are ranked: first those to build and to keep, by what each saves per byte of index beside those before
    it, then those to drop. Zone maps, pages and the sort key stay as they are, and are not counted.
    """

    table: str
    budget: int  # bytes
    data_bytes: int
    blocks: int  # in the table
    sampled: int  # of them read
    structures: tuple[TunedStructure, ...]
    shapes: tuple[ShapeCost, ...]
    applied: bool = False

    @property
    def to_build(self) -> tuple[TunedStructure, ...]:
        """The structures that the index lacks."""
        return self._that(BUILD)

    @property
    def to_keep(self) -> tuple[TunedStructure, ...]:
        """The structures that stay."""
        return self._that(KEEP)

    @property
    def to_drop(self) -> tuple[TunedStructure, ...]:
        """The structures that do not pay."""
        return self._that(DROP)

    def _that(self, action: str) -> tuple[TunedStructure, ...]:
        return tuple(structure for structure in self.structures if structure.action == action)

    @property
    def index_bytes(self) -> int:
        """The bytes of the chosen structures."""
        return sum(structure.bytes for structure in (*self.to_build, *self.to_keep))

    @property
    def plans(self) -> int:
        """The logged plans that were simulated."""
        return sum(shape.plans for shape in self.shapes if shape.bytes_now is not None)

    @property
    def bytes_now(self) -> float:
        """What a simulated query reads on average with the index as it is."""
        return sum(s.plans * s.bytes_now for s in self.shapes if s.bytes_now is not None) / max(self.plans, 1)

    @property
    def bytes_then(self) -> float:
        """What it reads with the chosen structures."""
        return sum(s.plans * s.bytes_then for s in self.shapes if s.bytes_then is not None) / max(self.plans, 1)

    def to_table(self) -> pa.Table:
        """Return one row per structure, in order."""
        rows = [
            {"rank": rank, **{name: getattr(structure, name) for name in _SCHEMA.names[1:]}}
            for rank, structure in enumerate(self.structures, 1)
        ]
        return pa.Table.from_pylist(rows, _SCHEMA)

    def __str__(self) -> str:
        share = f"{self.budget / max(self.data_bytes, 1):.1%} of the data"
        lines = [
            f"{self.plans:,} logged plans, simulated by a sample of {self.sampled:,} of {self.blocks:,} blocks",
            f"bytes read per query: {human_bytes(self.bytes_now)} -> {human_bytes(self.bytes_then)}",
            f"structures: {human_bytes(self.index_bytes)} of a budget of {human_bytes(self.budget)}, {share}",
        ]
        if self.to_build or self.to_keep:
            lines.append("best first, by the bytes that each saves per query and byte of index:")
        for structure in self.structures:
            lines += [f"  {_line(structure)}", *([f"    {structure.call}"] if structure.call else [])]
        lines.append("shapes of queries, the most expensive first:")
        for shape in self.shapes[:MOST_SHOWN]:
            reads = "not simulated"
            if shape.bytes_now is not None and shape.bytes_then is not None:
                reads = f"{human_bytes(shape.bytes_now)} -> {human_bytes(shape.bytes_then)} each"
            lines.append(f"  {shape.plans:,} x {shape.shape}: {reads}; {shape.note}")
        if len(self.shapes) > MOST_SHOWN:
            lines.append(f"  and {len(self.shapes) - MOST_SHOWN:,} more")
        if not self.to_build and not self.to_drop:
            lines.append("the index is as it should be")
        elif self.applied:
            lines.append("built and dropped")
        else:
            lines.append(f"to build and drop all of this: tune(table, budget={self.budget}, apply=True)")
        return "\n".join(lines)


_SCHEMA = pa.schema(
    [
        ("rank", pa.int64()),
        *((name, pa.string()) for name in ("action", "structure", "column")),
        ("bytes", pa.int64()),
        *((name, pa.float64()) for name in ("saved", "saved_per_byte")),
        *((name, pa.string()) for name in ("why", "call")),
    ]
)


def _line(structure: TunedStructure) -> str:
    takes = f"{structure.action} {structure.structure} of {structure.column}: takes {human_bytes(structure.bytes)}"
    if structure.saved is None:
        return f"{takes}; {structure.why}"
    saves = f"saves {human_bytes(structure.saved)} per query, {structure.saved_per_byte:,.3g} per byte of index"
    return "; ".join(filter(None, (f"{takes}, {saves}", structure.why)))
