"""Advice on what to index: current cost, and estimated cost with each proposal, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, factorial

import pyarrow as pa

from secateur.markup import table_html
from secateur.pruning.report import human_bytes

LEAST_SAVED = 0.01  # share of the current cost that a proposal must save to be printed
# A proposal counts as equal to the best if it leaves at most this multiple of the least cost, this many more blocks per
# predicate, and saves at least this share of the greatest saving.
TIMES, BLOCKS_BESIDE = 2.0, 2.0
NEARLY = 0.95
ENOUGH = 0.5  # share of a clustering's saving that an index must save to be ranked before it
LEAST_TAIL = 0.01  # probability below which a sample contradicts the typical value
MOST_TERMS = 100  # terms of a Poisson distribution that are summed; beyond, only the sample counts


@dataclass(frozen=True)
class Amount:
    """What a query reads: blocks, with their rows and compressed bytes; estimates may be fractional."""

    blocks: float
    rows: float
    bytes: float

    def scaled(self, blocks: float) -> Amount:
        """Scale to a number of blocks that are like these on average."""
        share = blocks / self.blocks if self.blocks else 0.0
        return Amount(blocks, self.rows * share, self.bytes * share)

    def __str__(self) -> str:
        blocks = f"{self.blocks:,.0f}" if self.blocks >= 10 else f"{self.blocks:.1f}".removesuffix(".0")
        return f"{blocks} {'block' if blocks == '1' else 'blocks'}, {human_bytes(self.bytes)}"


@dataclass(frozen=True)
class QueryCost:
    """One predicate: what it reads now, and the least any index could leave, the blocks with a match.

    `least` is None if only Spark can tell which rows match. It is exact if all blocks were `sampled`.
    """

    predicate: str
    now: Amount
    least: Amount | None
    sampled: int  # blocks that were read, out of those it reads now


@dataclass(frozen=True)
class Proposal:
    """A structure or clustering that does not exist yet, and what every predicate would read with it."""

    structure: str  # bloom, postings, ngram, tokens, gaps or clustering
    column: str
    call: str  # the call that makes it
    bytes: int  # its size in the index; for a clustering, the size of the rewritten table
    left: tuple[Amount, ...]  # by predicate

    @property
    def bytes_left(self) -> float:
        """What all predicates together would read."""
        return sum(reads.bytes for reads in self.left)


@dataclass(frozen=True)
class Advice:
    """The answer of :func:`secateur.advise`; prints as text.

    `proposals` are ordered best first: by the bytes that all predicates would read, and if these are nearly equal, by
    size. A clustering comes after an index that saves at least half as much.
    """

    questions: tuple[QueryCost, ...]
    proposals: tuple[Proposal, ...]
    blocks: int  # in the table
    sampled: int  # blocks read in total

    @property
    def bytes_now(self) -> float:
        """What all predicates together read now."""
        return sum(question.now.bytes for question in self.questions)

    def to_table(self) -> pa.Table:
        """Return one row per proposal and predicate, in order: `rank`, what to make, its size, and what is left.

        `blocks_least` and `bytes_least` are null if only Spark can tell which rows match.
        """
        rows = [
            {
                "rank": rank,
                "structure": proposal.structure,
                "column": proposal.column,
                "call": proposal.call,
                "bytes": proposal.bytes,
                "predicate": question.predicate,
                "blocks_now": question.now.blocks,
                "bytes_now": question.now.bytes,
                "blocks_least": None if question.least is None else question.least.blocks,
                "bytes_least": None if question.least is None else question.least.bytes,
                "blocks_left": left.blocks,
                "bytes_left": left.bytes,
                "sampled": question.sampled,
            }
            for rank, proposal in enumerate(self.proposals, 1)
            for question, left in zip(self.questions, proposal.left, strict=True)
        ]
        return pa.Table.from_pylist(rows, _SCHEMA)

    def __str__(self) -> str:
        lines = [f"read now, and the least possible, by a sample of {self.sampled:,} of {self.blocks:,} blocks:"]
        for question in self.questions:
            about = "about " if question.sampled < question.now.blocks else ""
            least = "only Spark can tell the least" if question.least is None else f"at least {about}{question.least}"
            sampled = f"{question.sampled:,} of them sampled"
            lines.append(f"  {question.predicate}: {question.now} ({sampled}); {least}")
        useful = [proposal for proposal in self.proposals if self._saved(proposal) >= LEAST_SAVED]
        if not useful:
            return "\n".join([*lines, "no index and no other order would save as much as 1 % of that"])
        lines.append("what all predicates together would read, best first:")
        for proposal in useful:
            verb = "rewrites" if proposal.structure == CLUSTERING else "takes"
            saved = f"saves {self._saved(proposal):.1%}"
            left = f"{human_bytes(self.bytes_now)} -> {human_bytes(proposal.bytes_left)}, {saved}"
            lines.append(f"  {proposal.structure} of {proposal.column}: {left}; {verb} {human_bytes(proposal.bytes)}")
            lines.append(f"    {proposal.call}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the questions and the proposals for a notebook."""
        asked = [
            (
                question.predicate,
                str(question.now),
                "only Spark can tell" if question.least is None else str(question.least),
            )
            for question in self.questions
        ]
        offered = [
            (
                proposal.structure,
                proposal.column,
                human_bytes(proposal.bytes),
                human_bytes(proposal.bytes_left),
                f"{self._saved(proposal):.1%}",
                proposal.call,
            )
            for proposal in self.proposals
        ]
        columns = ("structure", "column", "its size", "read with it", "saved", "call")
        return table_html(("predicate", "read now", "least"), asked) + table_html(columns, offered)

    def _saved(self, proposal: Proposal) -> float:
        """Return the share of the current cost that a proposal saves."""
        return 1 - proposal.bytes_left / self.bytes_now if self.bytes_now else 0.0


CLUSTERING = "clustering"
_SCHEMA = pa.schema(
    [
        ("rank", pa.int64()),
        *((name, pa.string()) for name in ("structure", "column", "call")),
        ("bytes", pa.int64()),
        ("predicate", pa.string()),
        *((name, pa.float64()) for name in ("blocks_now", "bytes_now", "blocks_least", "bytes_least")),
        *((name, pa.float64()) for name in ("blocks_left", "bytes_left")),
        ("sampled", pa.int64()),
    ]
)


def ranked(proposals: Sequence[Proposal], questions: Sequence[QueryCost]) -> tuple[Proposal, ...]:
    """Sort proposals best first: among those nearly equal to the best one left, the smallest first.

    A clustering rewrites the table, which can have only one: it comes after indexes that save half as much.
    """
    now = sum(question.now.bytes for question in questions)
    a_block = max(
        (question.now.bytes / question.now.blocks for question in questions if question.now.blocks), default=0.0
    )
    beside = BLOCKS_BESIDE * len(questions) * a_block
    rest, order = list(proposals), []
    while rest:
        most = max(now - proposal.bytes_left for proposal in rest)
        enough = [
            proposal
            for proposal in rest
            if proposal.structure != CLUSTERING and now - proposal.bytes_left >= ENOUGH * most > 0
        ]
        least = min(proposal.bytes_left for proposal in enough or rest)
        most_left = max(least, min(TIMES * least + beside, now - NEARLY * (now - least)))
        alike = [proposal for proposal in enough or rest if proposal.bytes_left <= most_left]
        chosen = min(
            alike,
            key=lambda proposal: (proposal.bytes_left >= now, proposal.bytes, proposal.bytes_left, proposal.structure),
        )
        rest.remove(chosen)
        order.append(chosen)
    return tuple(order)


def estimated(hits: int, sampled: int, units: int, typical: float | None = None) -> float:
    """Estimate how many of `units` have the property that `hits` of `sampled` have.

    `typical` is the average over other values of the column. If the sample does not contradict it, it is the better
    estimate, as rare values are seldom in a sample. A property found in no sampled unit is assumed to be in one.
    """
    if sampled >= units:
        return float(hits)
    if not sampled:
        return float(units)
    if typical is not None and _agrees(hits, typical * sampled / units):
        return min(max(typical, float(hits)), float(units))
    return units * hits / sampled if hits else min(1.0, units / sampled)


def _agrees(hits: int, expected: float) -> bool:
    """Return whether a count is plausible for a Poisson distribution with this expectation."""
    if expected > MOST_TERMS or hits > MOST_TERMS:
        return False
    terms = [exp(-expected) * expected**k / factorial(k) for k in range(hits + 1)]
    return sum(terms) >= LEAST_TAIL and 1 - sum(terms[:-1]) >= LEAST_TAIL
