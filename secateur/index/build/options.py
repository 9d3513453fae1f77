"""Build options, parsed from what callers pass and checked against the table's schema."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from secateur.errors import InvalidOption, UnknownColumn
from secateur.index.build.auto_index import GAPS
from secateur.index.filters.ngrams import LEAST_GRAM, MOST_GRAM
from secateur.index.model import (
    BLOOM,
    NGRAM,
    ORDERED,
    POSTINGS,
    TOKEN,
    BuildOptions,
    Choice,
    Filter,
    FilterOption,
    IndexedColumn,
    indexed_columns,
    name_of,
)
from secateur.index.naming import Path
from secateur.index.segments.named_columns import computed
from secateur.index.zones.sort_key import parse_sort_key
from secateur.pruning.aggregates.sums import is_summed
from secateur.pruning.predicate.binding.resolve import Binder, resolve
from secateur.pruning.predicate.bound import Field, element_type
from secateur.pruning.predicate.expressions import split_name
from secateur.pruning.predicate.indexed.indexed_expressions import indexed_expression, normalised
from secateur.pruning.predicate.nodes import Column
from secateur.values.kinds import Kind, kind_of

Columns = Sequence[str] | Mapping[str, object]
NGRAM_BYTES = 5
NATIVE, BLOCKS, ROWS, IN_ORDER = "native", "blocks", "rows", "ordered"
_NAME = re.compile(r"[^()+*/%<>=|:'\"-]+")  # of a column; anything else may be an expression


def filter_options(
    bloom: Columns = (), postings: Columns = (), ngram: Columns = (), tokens: Columns = ()
) -> tuple[FilterOption, ...]:
    """Parse the requested filters: names of columns, or names with settings. Raises InvalidOption."""
    wanted = ((BLOOM, bloom), (POSTINGS, postings), (NGRAM, ngram), (TOKEN, tokens))
    return tuple(_option(kind, name, setting) for kind, columns in wanted for name, setting in _settings(columns))


def _settings(columns: Columns) -> Iterable[tuple[str, object]]:
    return columns.items() if isinstance(columns, Mapping) else ((name, None) for name in listed(columns))


def listed(columns: Sequence[str]) -> tuple[str, ...]:
    """Return columns as a tuple. Raises InvalidOption for one text, which would be read as its letters."""
    if isinstance(columns, str):
        raise InvalidOption(f"{columns!r} is one text; write a list of columns: [{columns!r}]")
    return tuple(columns)


def _option(kind: str, column: str, setting: object) -> FilterOption:
    match kind, setting:
        case "ngram", None:
            return FilterOption(kind, column, gram=NGRAM_BYTES)
        case "ngram", int(gram) if LEAST_GRAM <= gram <= MOST_GRAM:
            return FilterOption(kind, column, gram=gram)
        case "ngram", {**given} if given.keys() <= {"n", "fold"}:
            option = _option(kind, column, given.get("n"))
            return replace(option, folded=bool(given.get("fold", False)))
        case "token", {**given} if given.keys() <= {"fold"}:
            return FilterOption(kind, column, folded=bool(given.get("fold", False)))
        case "bloom", "native":
            return FilterOption(kind, column, native=True)
        case "postings", "ordered":
            return FilterOption(ORDERED, column)
        case "postings", "rows":
            return FilterOption(kind, column, rows=True)
        case (("bloom" | "postings" | "token"), None) | ("postings", "blocks"):
            return FilterOption(kind, column)
    raise InvalidOption(f"{setting!r} is not a setting of {kind} for column {column!r}: {_SETTINGS[kind]}")


_SETTINGS = {
    BLOOM: f"there is {NATIVE!r}, for filters that the files have already",
    POSTINGS: f"there are {BLOCKS!r}, which hold a value, {ROWS!r}, for the rows of these blocks too, and "
    f"{IN_ORDER!r}, for the rows of ranges of values",
    NGRAM: f"give the bytes of a gram, {LEAST_GRAM} to {MOST_GRAM}, or {{'n': {NGRAM_BYTES}, 'fold': True}}",
    TOKEN: "there is {'fold': True}, for words in any case",
}


def checked(options: BuildOptions, schema: pa.Schema) -> BuildOptions:
    """Return the options with column names spelled as in the schema.

    Raises UnknownColumn, AmbiguousColumn, and InvalidOption for a column that cannot have a requested structure.
    """
    binder = Binder(schema, dt.UTC)

    def path(name: tuple[str, ...]) -> tuple[str, ...]:
        return resolve(Column(name), binder).path

    key = (replace(column, path=path(column.path)) for column in parse_sort_key(options.sort_key))
    expressions = dict.fromkeys(normalised(name, schema) for name in options.expressions)

    def called(name: str) -> str:
        column = column_called(name, schema)
        if column is not None:
            return ".".join(column)
        sql = normalised(name, schema)
        expressions[sql] = None
        return sql

    resolved = replace(
        options,
        sort_key=tuple(map(str, key)),
        filters=tuple(replace(filter_, column=called(filter_.column)) for filter_ in options.filters),
        gaps=tuple(map(called, options.gaps)),
        sums=tuple(".".join(_summed(name, binder)) for name in options.sums),
    )
    resolved = replace(resolved, expressions=tuple(expressions))
    known = {name_of(column.path): column.type for column in (*indexed_columns(schema), *computed(resolved, schema))}
    for name in resolved.gaps:
        if name not in known or kind_of(known[name]) is not Kind.WORD:
            raise InvalidOption(f"gaps are kept of numbers and times of 64 bits, and {name} holds none")
    for option in resolved.filters:
        _filter(option, schema, resolved.expressions)
    return resolved


def _summed(name: str, binder: Binder) -> Path:
    """Return the path of a column whose sums are wanted. Raises InvalidOption for one without exact sums."""
    parts = split_name(name)
    field = resolve(Column(parts), binder)
    if len(field.path) < len(parts) or not is_summed(field.type):
        raise InvalidOption(f"sums are kept for integers and decimals only, and {name} is {field.type}")
    return field.path


def column_called(name: str, schema: pa.Schema) -> Path | None:
    """Return the path of the column with a name; None for an expression.

    Raises UnknownColumn, AmbiguousColumn for what is neither.
    """
    parts = split_name(name)
    try:
        path = resolve(Column(parts), Binder(schema, dt.UTC)).path
    except UnknownColumn:
        if _NAME.fullmatch(name):
            raise
        return None
    return path if len(path) == len(parts) or _NAME.fullmatch(name) else None


def auto_columns(auto: Sequence[str] | bool, options: BuildOptions, schema: pa.Schema) -> list[IndexedColumn]:
    """Return the columns left to a sample: those named, or all without a requested structure. Raises UnknownColumn."""
    columns = indexed_columns(schema)
    if isinstance(auto, bool):
        asked = {option.column for option in options.filters} | {*options.gaps}
        return [column for column in columns if auto and ".".join(column.path) not in asked]
    binder = Binder(schema, dt.UTC)
    paths = [resolve(Column(split_name(name)), binder).path for name in auto]
    return [column for column in columns if column.path in paths]


def with_choices(options: BuildOptions, choices: Sequence[Choice]) -> BuildOptions:
    """Add the choices to the options."""
    chosen = [
        FilterOption(choice.structure, choice.column) for choice in choices if choice.structure in (BLOOM, POSTINGS)
    ]
    gaps = [choice.column for choice in choices if choice.structure == GAPS]
    filters, own_gaps = dict.fromkeys((*options.filters, *chosen)), dict.fromkeys((*options.gaps, *gaps))
    return replace(options, filters=tuple(filters), gaps=tuple(own_gaps), choices=tuple(choices))


def filters_of(options: BuildOptions, schema: pa.Schema) -> list[Filter]:
    """Return the filters that options imply for a table, except those that its columns no longer allow."""
    filters = []
    for option in options.filters:
        with suppress(InvalidOption):
            filters.append(_filter(option, schema, options.expressions))
    return filters


def _filter(option: FilterOption, schema: pa.Schema, expressions: Collection[str]) -> Filter:
    """Return the filter of an option. Raises InvalidOption if it cannot be built."""
    if option.column in expressions and option.native:
        raise InvalidOption(f"the files have no bloom filters of {option.column}, an expression")
    field = _computed_field(option, schema) if option.column in expressions else _field(option.column, schema)
    if field is None:
        raise InvalidOption(f"the table has no column {option.column}")
    type_ = hashed_type(field.type)
    if kind_of(type_) is None:
        raise InvalidOption(
            f"{option.kind} cannot be kept of {option.column}, a {field.type}: its values have no order"
        )
    if option.kind == ORDERED and (type_ != field.type or option.column in expressions):
        raise InvalidOption(f"ordered postings are kept of columns with single values, and {option.column} is not one")
    if option.kind in (NGRAM, TOKEN) and type_ != pa.string():
        raise InvalidOption(f"{option.kind} is for text, and {option.column} is a {field.type}")
    return Filter(option.kind, field.path, type_, option.gram, option.folded, option.rows)


def _computed_field(option: FilterOption, schema: pa.Schema) -> Field | None:
    """Return the field of an indexed expression; None where its columns are gone."""
    with suppress(UnknownColumn):
        return indexed_expression(option.column, schema).field
    return None


def _field(name: str, schema: pa.Schema) -> Field | None:
    """Return the column with this dotted path, spelled as in the schema."""
    pending = [Field((field.name,), field.type) for field in schema]
    while pending:
        field = pending.pop()
        if ".".join(field.path) == name:
            return field
        if pa.types.is_struct(field.type) and name.startswith(".".join(field.path) + "."):
            pending += [Field((*field.path, child.name), child.type) for child in field.type]
    return None


def hashed_type(type_: pa.DataType) -> pa.DataType:
    """Return the type of what a filter of a column hashes: an array's elements, a map's keys, else its values."""
    inner = element_type(type_)
    return type_ if inner is None else inner
