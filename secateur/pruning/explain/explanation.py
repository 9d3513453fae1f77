"""Which structures support each conjunct of a plan, and which could: the values of ``plan.explain(verbose=True)``."""

from __future__ import annotations

from dataclasses import dataclass

CONSULTED, IDLE, MISSING = "consulted", "not consulted", "missing"
# from the kind of a filter
STRUCTURES = {
    "bloom": "bloom",
    "postings": "postings",
    "ordered": "ordered postings",
    "ngram": "ngram",
    "token": "tokens",
}
OF_FILES = ("partition values", "table metadata")
_SPELLED = {"bloom": "bloom filter", "ngram": "n-grams"}
LEAST_BLOCKS = 2  # of a table in which a condition could prune
REFRESH = "refresh_index(table, spark=spark)"


def spelled(structure: str) -> str:
    """Return the name of a structure in words."""
    return _SPELLED.get(structure, structure)


@dataclass(frozen=True)
class Structure:
    """One structure that can support a conjunct: whether it was consulted, and what it leaves without the others."""

    structure: str  # as ``sec.inspect.coverage`` names it, or "partition values", "table metadata", "gaps"
    columns: tuple[str, ...]
    state: str  # CONSULTED, IDLE or MISSING
    blocks_left: int | None = None  # of all blocks, using only this structure
    note: str = ""
    argument: str = ""  # argument of build_index and refresh_index that creates it

    def __str__(self) -> str:
        of = f"{spelled(self.structure)} of {', '.join(self.columns)}"
        match self.state:
            case "missing":
                return f"no {of}: add {self.argument}"
            case "not consulted":
                return f"{of}: not consulted, {self.note}"
            case _:
                return f"{of}: leaves {self.blocks_left:,}{f'; {self.note}' if self.note else ''}"


@dataclass(frozen=True)
class Conjunct:
    """One conjunct of the predicate, and every structure that can support it."""

    sql: str
    blocks_left: int  # by everything that was consulted for it
    structures: tuple[Structure, ...]
    unsupported: tuple[str, ...]  # conditions that statistics cannot bound, with the reason
    fully_matching: int  # blocks in which it is TRUE on every row, by their bounds

    @property
    def is_everywhere(self) -> bool:
        """Whether postings, which tell the blocks of each value, leave all of them; it is about one column."""
        exact = [used for used in self.structures if used.structure == "postings" and used.state == CONSULTED]
        is_of_one = len({structure.columns for structure in self.structures}) == 1
        return is_of_one and any(used.blocks_left == self.blocks_left for used in exact)

    @property
    def is_of_files(self) -> bool:
        """Whether what is known of whole files, without their footers, was asked."""
        return any(used.structure in OF_FILES and used.state == CONSULTED for used in self.structures)


def _reason(conjunct: Conjunct, live: int | None) -> str:
    """Return why a conjunct rules out no block, or what would change that; of all live blocks, if all are known."""
    if conjunct.fully_matching == live:
        return "it is TRUE on every row"
    if conjunct.is_everywhere:
        return f"by postings of {', '.join(conjunct.structures[0].columns)}, every block holds what it asks for"
    arguments = [structure.argument for structure in conjunct.structures if structure.state == MISSING]
    if arguments:
        return f"add {' or '.join(arguments)}"
    return "; ".join(conjunct.unsupported) or "nothing would serve it"


@dataclass(frozen=True)
class Explanation:
    """Every conjunct separately, over all blocks that are known without opening a data file."""

    blocks: int
    files_not_known: int  # live files whose blocks only their unread footers list
    conjuncts: tuple[Conjunct, ...]  # of an indexed expression there is another with the same text
    together: tuple[Structure, ...]  # structures that support several conjuncts at once
    blocks_left: int  # by all structures

    @property
    def cautions(self) -> tuple[str, ...]:
        """What keeps the query slow: every conjunct that rules out nothing, and what would serve it."""
        if self.blocks < LEAST_BLOCKS:
            return ()
        served = {conjunct.sql for conjunct in self.conjuncts if conjunct.blocks_left < self.blocks}
        if self.files_not_known:  # files that such a conjunct has ruled out may be among those
            served |= {conjunct.sql for conjunct in self.conjuncts if conjunct.is_of_files}
        idle = [conjunct for conjunct in self.conjuncts if conjunct.sql not in served]
        live = None if self.files_not_known else self.blocks
        texts = (f"caution: {conjunct.sql} prunes nothing: {_reason(conjunct, live)}" for conjunct in idle)
        return tuple(dict.fromkeys(texts))

    def __str__(self) -> str:
        unknown = f"; files without an index entry that were not opened: {self.files_not_known:,}; {REFRESH}"
        rest = unknown if self.files_not_known else ""
        lines = [f"each conjunct, and each structure by itself, over {self.blocks:,} blocks{rest}"]
        for conjunct in self.conjuncts:
            lines.append(f"{conjunct.sql}: {self.blocks:,} -> {conjunct.blocks_left:,}")
            lines += [f"  {structure}" for structure in conjunct.structures]
            lines += [f"  not used for pruning: {reason}" for reason in conjunct.unsupported]
        lines.append(f"together: {self.blocks:,} -> {self.blocks_left:,}")
        return "\n".join([*lines, *(f"  {structure}" for structure in self.together)])
