"""Which filters and gaps could serve a leaf of a predicate, and the build arguments that create them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from secateur.index.build.options import NGRAM_BYTES, hashed_type
from secateur.index.filters.ngrams import LEAST_GRAM
from secateur.index.model import BLOOM, NGRAM, ORDERED, POSTINGS, TOKEN, Filter, FilterOption, name_of
from secateur.index.read.lookup import parts_to_look_up
from secateur.pruning.explain.explanation import STRUCTURES
from secateur.pruning.predicate.bound import Field, Leaf, Within
from secateur.pruning.predicate.index_paths import is_expression
from secateur.pruning.questions import Question, Ranges, Texts, Values, questions
from secateur.values.kinds import Kind, kind_of


@dataclass(frozen=True)
class Offer:
    """A possible filter of a column, under the column's name in predicates."""

    column: Field
    option: FilterOption

    @property
    def structure(self) -> str:
        """Its name in arguments and in coverage reports."""
        return STRUCTURES[self.option.kind]

    @property
    def argument(self) -> str:
        """The argument of a build or a refresh that requests it: ``bloom=['user_id']``."""
        name, option = str(self.column), self.option
        match option:
            case FilterOption(native=True):
                setting: object = {name: "native"}
            case FilterOption(rows=True):
                setting = {name: "rows"}
            case FilterOption(kind="ordered"):
                return f"{STRUCTURES[POSTINGS]}={ {name: 'ordered'} }"
            case FilterOption(kind="ngram", folded=True):
                setting = {name: {"n": option.gram, "fold": True}}
            case FilterOption(kind="ngram") if option.gram != NGRAM_BYTES:
                setting = {name: option.gram}
            case FilterOption(kind="token", folded=True):
                setting = {name: {"fold": True}}
            case _:
                setting = [name]
        return f"{self.structure}={setting}"


def offers(leaf: Leaf) -> list[Offer]:
    """Return the distinct filters that could rule out a block for a leaf."""
    return list(dict.fromkeys(offer for question in questions(leaf) for offer in _offers(question)))


def range_offers(leaf: Leaf) -> list[Offer]:
    """Return ordered postings for a leaf that asks for ranges of values, not for single ones: they take most bytes."""
    asked = questions(leaf)
    if any(isinstance(question, Values) for question in asked):
        return []
    columns = dict.fromkeys(question.column for question in asked if isinstance(question, Ranges))
    return [
        Offer(column, FilterOption(ORDERED, name_of(column.path)))
        for column in columns
        if not is_expression(column.path) and hashed_type(column.type) == column.type
    ]


def _offers(question: Question) -> Iterator[Offer]:
    name = name_of(question.column.path)
    match question:
        case Values():
            options = [FilterOption(kind, name) for kind in (BLOOM, POSTINGS)]
        case Texts(folded=folded):
            grams = (FilterOption(NGRAM, name, n, folded) for n in range(NGRAM_BYTES, LEAST_GRAM - 1, -1))
            longest = [option for option in grams if serves(option, question)][:1]
            whole = FilterOption(TOKEN, name, folded=folded)
            options = [*longest, whole] if serves(whole, question) else longest
        case Ranges():
            options = []
    return (Offer(question.column, option) for option in options)


def serves(option: FilterOption, question: Question) -> bool:
    """Whether a filter can answer a question; one on texts must contain a gram, or a whole token."""
    match question:
        case Texts(alternatives=alternatives, tokens=tokens) if option.kind in (NGRAM, TOKEN):
            return all(
                parts_to_look_up(filter_of(option, question), alternative, tokens) for alternative in alternatives
            )
        case Values():
            return option.kind in (BLOOM, POSTINGS)
        case Ranges():
            return option.kind == ORDERED
        case _:
            return False


def filter_of(option: FilterOption, question: Question) -> Filter:
    """Return the filter of an option over the column of a question."""
    type_ = question.type if isinstance(question, Values) else question.column.type
    return Filter(option.kind, question.column.path, type_, option.gram, option.folded, option.rows)


def gap_columns(leaf: Leaf) -> list[Field]:
    """Return the columns whose gaps could rule out a block for a leaf: numbers and times of 64 bits."""
    match leaf:
        case Within(Field() as column) if kind_of(column.type) is Kind.WORD:
            return [column]
        case _:
            return []


def gaps_argument(column: Field) -> str:
    """Return the argument that requests the gaps of a column."""
    return f"gaps={[str(column)]}"
