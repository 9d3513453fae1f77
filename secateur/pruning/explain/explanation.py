"""What serves every conjunct of a plan, and what could: the answer to ``plan.explain(verbose=True)``, as values."""

from __future__ import annotations

from dataclasses import dataclass

CONSULTED, IDLE, MISSING = "consulted", "not consulted", "missing"
STRUCTURES = {"bloom": "bloom", "postings": "postings", "ngram": "ngram", "token": "tokens"}  # by kind of a filter
_SPELLED = {"bloom": "bloom filter", "ngram": "n-grams"}
REFRESH = "refresh_index(table, spark=spark)"


def spelled(structure: str) -> str:
    """The name of a structure in words."""
    return _SPELLED.get(structure, structure)


@dataclass(frozen=True)
class Structure:
    """One structure that can serve a conjunct: whether it was consulted, and what it leaves by itself."""

    structure: str  # as ``sc.inspect.coverage`` names it, or "partition values", "table metadata", "gaps"
    columns: tuple[str, ...]
    state: str  # CONSULTED, IDLE or MISSING
    blocks_left: int | None = None  # of all blocks, by it alone
    note: str = ""
    argument: str = ""  # of build_index and refresh_index, which makes it

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
    """One conjunct of the predicate, and all that can serve it."""

    sql: str
    blocks_left: int  # by all that was consulted for it
    structures: tuple[Structure, ...]
    unsupported: tuple[str, ...]  # its conditions that statistics do not bound, with the reason


@dataclass(frozen=True)
class Explanation:
    """Every conjunct by itself, over all blocks that are known without opening a data file."""

    blocks: int
    files_not_known: int  # live files whose blocks only their footers tell, and nothing has read these
    conjuncts: tuple[Conjunct, ...]
    together: tuple[Structure, ...]  # what serves several conjuncts at once
    blocks_left: int  # by everything

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
