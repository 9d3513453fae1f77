"""Golden tables of cases: what predicates can be over blocks of which only zone maps are known, as a specification.

The head of a table is some blocks, one a column, with their rows and the zone maps of columns. Below the rule stand
predicates with what each can be over each block, and what it became when it was bound::

    blocks   |  low   high  some         none
    rows     |  4     4     4            4
    a int    |  1..5  6..9  1..9,null    null
    -------------------------------------------
    a < 3    |  TF    f     TFN          n     |  a in (, 3)

T, F and N are the outcomes TRUE, FALSE and NULL that some row may have. A dead block is in lower case; TFN is also what
overflow and other errors leave. A zone map is ``lower..upper`` or one value; ``?`` is not known; ``,null`` and ``,nan``
say that there are some, ``,null?`` and ``,nan?`` that there may be; ``null`` and ``nan`` alone, that there is nothing
else. A line ``zone Europe/Paris`` before a table sets the session's time zone, a line ``ansi off`` its mode.

``REWRITE=1 pytest tests/laws/predicates/test_cases.py`` writes outcomes and bound forms anew, to be reviewed as a diff.
"""

from __future__ import annotations

import ast
import datetime as dt
import itertools
import os
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import secateur as sec
from secateur.errors import SecateurError
from secateur.io.spark.file_reader import spark_schema
from secateur.pruning.bounds.outcomes import FALSE, NULL, TRUE
from secateur.pruning.functions import types
from secateur.pruning.functions.registry import RULES
from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.bound_walks import is_supported
from secateur.pruning.predicate.node_walks import children
from secateur.pruning.predicate.nodes import Call, Case, Cast, Comparison, Duration, Expression, Predicate
from secateur.pruning.predicate.rewrite import rewrite
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.rows.truth import truth
from tests.support.checks.bound_form import bound_form
from tests.support.checks.oracle import ask

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = sorted((Path(__file__).parents[2] / "cases").glob("*.txt"))
OUTCOME = {True: TRUE, False: FALSE, None: NULL}
SINGLE = (TRUE, FALSE, NULL)
LETTERS = {"T": TRUE, "F": FALSE, "N": NULL}
ROWS_OF_BLOCK = 48

# ---- reading ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ZoneMap:
    """One cell: bounds of which None is unknown, and counts of which None is unknown."""

    lower: Any
    upper: Any
    nulls: int | None
    nans: int | None
    has_values: bool = True


@dataclass
class Line:
    """A predicate, what it is over every block, and what it became."""

    number: int  # of the line in its file
    predicate: str
    outcomes: list[str]
    became: str


@dataclass
class Table:
    """Blocks and the predicates over them."""

    zone: str
    ansi: bool
    head: list[tuple[int, str, list[str]]] = field(default_factory=list)  # line number, label, cells
    lines: list[Line] = field(default_factory=list)

    @property
    def rows(self) -> list[int | None]:
        return [None if cell == "?" else int(cell) for cell in self.head[1][2]]

    @property
    def schema(self) -> pa.Schema:
        named = (label.split(maxsplit=1) for _, label, _ in self.head[2:])
        return pa.schema([(name, _type(type_)) for name, type_ in named])

    def column(self, i: int) -> list[ZoneMap]:
        cells = self.head[2 + i][2]
        return [zone_map(cell, self.schema.types[i], n) for cell, n in zip(cells, self.rows, strict=True)]

    def zone_maps(self) -> pa.Table:
        """As :func:`secateur.evaluate` takes them."""
        columns: dict[str, pa.Array] = {"row_count": pa.array(self.rows, pa.int64())}
        for i, name in enumerate(self.schema.names):
            cells, type_ = self.column(i), self.schema.types[i]
            columns[f"{name}.lower"] = pa.array([c.lower for c in cells], type_)
            columns[f"{name}.upper"] = pa.array([c.upper for c in cells], type_)
            columns[f"{name}.null_count"] = pa.array([c.nulls for c in cells], pa.int64())
            columns[f"{name}.nan_count"] = pa.array([c.nans for c in cells], pa.int64())
        return pa.table(columns)

    def bound(self, predicate: str) -> Predicate:
        return bind(parse(predicate), self.schema, session_time_zone=self.zone, ansi=self.ansi)


@cache
def _type(name: str) -> pa.DataType:
    type_ = types.named(name.upper())
    assert type_ is not None, name
    return type_


def read(path: Path) -> list[Table]:
    """The tables of a file."""
    tables: list[Table] = []
    zone, ansi, in_head = "UTC", True, False
    for number, line in enumerate(path.read_text().splitlines()):
        if not line or line.startswith("#"):
            continue
        if line.startswith("zone "):
            zone = line.split()[1]
        elif line.startswith("ansi "):
            ansi = line.split()[1] == "on"
        elif line.startswith("---"):
            in_head = False
        else:
            label, cells, *became = (part.strip() for part in line.split(" | "))
            in_head = in_head or label == "blocks"
            if label == "blocks":
                tables.append(Table(zone, ansi))
            parts = re.split(r"\s{2,}", cells)
            if in_head:
                tables[-1].head.append((number, label, parts))
            else:
                tables[-1].lines.append(Line(number, label, parts, "".join(became)))
    return tables


def zone_map(cell: str, type_: pa.DataType, rows: int | None) -> ZoneMap:
    """The zone map that a cell says."""
    bounds, *some = re.split(r",(?=(?:null|nan)\b)", cell)
    is_float = pa.types.is_floating(type_)
    counts = {name: None if f"{name}?" in some else int(name in some) for name in ("null", "nan")}
    match bounds:
        case "?":
            return ZoneMap(None, None, counts["null"] if some else None, counts["nan"] if some else None)
        case "null":
            return ZoneMap(None, None, rows, 0, has_values=False)
        case "nan":
            assert rows is not None
            return ZoneMap(None, None, counts["null"], rows - (counts["null"] or 0), has_values=False)
    lower, _, upper = bounds.partition("..")
    low, high = value(lower, type_), value(upper or lower, type_)
    return ZoneMap(low, high, counts["null"], counts["nan"] if is_float else 0)


def value(text: str, type_: pa.DataType) -> Any:
    """A bound; None for ``?``."""
    if text == "?":
        return None
    if pa.types.is_string(type_):
        quoted, _, times = text.partition("*")
        return ast.literal_eval(quoted) * int(times or 1)
    if pa.types.is_binary(type_):
        return bytes.fromhex(text)
    if pa.types.is_boolean(type_):
        return {"true": True, "false": False}[text]
    if pa.types.is_date(type_):
        return dt.date.fromisoformat(text)
    if pa.types.is_timestamp(type_):
        return dt.datetime.fromisoformat(text)
    if pa.types.is_floating(type_):
        return float(text)
    return Decimal(text) if pa.types.is_decimal(type_) else int(text)


# ---- what the library says -------------------------------------------------------------------------------------------


def letters(may_be_true: bool, may_be_false: bool, may_be_null: bool) -> str:
    """TFN and so on; lower case where TRUE is not among them."""
    said = "".join(letter for letter, may in zip("TFN", (may_be_true, may_be_false, may_be_null), strict=True) if may)
    return said if may_be_true else said.lower() or "-"


def said_of(table: Table, predicate: str) -> tuple[list[str], str]:
    """The outcomes over all blocks and the bound form, or why the predicate is refused."""
    try:
        evaluated = sec.evaluate(
            predicate, table.zone_maps(), schema=table.schema, session_time_zone=table.zone, ansi=table.ansi
        )
    except SecateurError as error:
        return ["!"] * len(table.rows), f"{type(error).__name__}: {error}"
    outcomes = [letters(*row.values()) for row in evaluated.to_pylist()]
    return outcomes, bound_form(rewrite(table.bound(predicate)))


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_outcomes_are_those_of_the_tables(path: Path) -> None:
    tables = read(path)
    said = {line.number: said_of(table, line.predicate) for table in tables for line in table.lines}
    if os.environ.get("REWRITE"):
        rewrite_file(path, tables, said)
        return
    wrong = [
        f"{path.name}:{line.number + 1}: {line.predicate}\n"
        f"    says {' '.join(line.outcomes)} | {line.became}\n    is   {' '.join(outcomes)} | {became}"
        for table in tables
        for line in table.lines
        for outcomes, became in [said[line.number]]
        if (outcomes, became) != (line.outcomes, line.became)
    ]
    assert not wrong, "\n".join(["REWRITE=1 would change:", *wrong])


def rewrite_file(path: Path, tables: Sequence[Table], said: dict[int, tuple[list[str], str]]) -> None:
    """The file with what is so in place of what it says, in aligned columns; all other lines stay."""
    lines = path.read_text().splitlines()
    for table in tables:
        rows = [(number, label, cells, "") for number, label, cells in table.head]
        rows += [(line.number, line.predicate, *said[line.number]) for line in table.lines]
        width = max(len(label) for _, label, _, _ in rows)
        widths = [max(map(len, column)) for column in zip(*(cells for _, _, cells, _ in rows), strict=True)]
        for number, label, cells, became in rows:
            aligned = "  ".join(cell.ljust(w) for cell, w in zip(cells, widths, strict=True))
            lines[number] = (
                f"{label.ljust(width)} |  {aligned} |  {became}"
                if became
                else f"{label.ljust(width)} |  {aligned}".rstrip()
            )
        lines[table.head[-1][0] + 1] = "-" * (width + sum(widths) + 2 * len(widths) + 3)
    path.write_text("\n".join(lines) + "\n")


def test_every_function_has_cases() -> None:
    """No function of the registry, no cast and no conditional is without a line."""
    tables = [table for path in FILES for table in read(path)]
    used = {name for table in tables for line in table.lines for name in functions(parse(line.predicate))}
    wanted = {*RULES, "cast", "try_cast", "case"}
    assert not wanted - used, f"no cases for {sorted(wanted - used)}"


def functions(node: Predicate | Expression) -> Iterator[str]:
    """The names of the functions that a tree calls; ``case`` and ``cast`` for what has a node of its own."""
    match node:
        case Call(("try_add" | "try_subtract"), (*_, Duration())):
            yield "try_plus_interval"
        case Call(name):
            yield name
        case Cast(safe=safe):
            yield "try_cast" if safe else "cast"
        case Case():
            yield "case"
        case Comparison(left=Duration()) | Comparison(right=Duration()):
            yield "elapsed"
        case Duration():
            yield "plus_interval"
    for child in children(node):
        yield from functions(child)


# ---- Spark -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_spark_agrees_on_rows_within_the_zone_maps(spark: SparkSession, path: Path) -> None:
    """Rows are the bounds themselves, what is between, NULL and NaN; none has a truth value that its block lacks."""
    by_session: dict[tuple[str, bool], list[Table]] = {}
    for table in read(path):
        by_session.setdefault((table.zone, table.ansi), []).append(table)
    for (zone, ansi), tables in by_session.items():
        spark.conf.set("spark.sql.session.timeZone", zone)
        spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
        samples = sampled(tables)
        frame = spark.createDataFrame(samples.rows, spark_schema(samples.rows.schema))
        frame = frame.repartition(1)  # Spark computes with the values of a query before it optimizes comparisons
        questions = list(asked(tables, samples))
        answers = ask(frame, [question.masked for question in questions])
        for question in questions:
            assert question.masked in answers.truth, f"Spark refuses {question.line.predicate}"
            check(question, answers.truth[question.masked], samples)
        for refused in (line.predicate for table in tables for line in table.lines if line.outcomes[0] == "!"):
            assert not ask(frame, [refused]).truth, f"Spark answers {refused}"


@dataclass(frozen=True)
class Samples:
    """Rows of all blocks of some tables; `blocks` says of every row id its table and block."""

    rows: pa.Table
    blocks: list[tuple[int, int]]

    def of(self, table: int) -> tuple[list[int], pa.RecordBatch]:
        ids = [i for i, (t, _) in enumerate(self.blocks) if t == table]
        (batch,) = self.rows.slice(ids[0], len(ids)).combine_chunks().to_batches()
        return ids, batch


def sampled(tables: Sequence[Table]) -> Samples:
    """Rows that respect the zone maps; columns of one name have one type in all tables of a file."""
    blocks: list[tuple[int, int]] = []
    parts: list[pa.Table] = []
    for t, table in enumerate(tables):
        cells = [table.column(i) for i in range(len(table.schema))]
        for b, count in enumerate(table.rows):
            pools = [pool(column[b], type_) for column, type_ in zip(cells, table.schema.types, strict=True)]
            drawn = combinations(pools) if count != 0 else []
            blocks += [(t, b)] * len(drawn)
            columns = zip(*drawn, strict=True) if drawn else ([] for _ in pools)
            parts.append(
                pa.table([pa.array(c, f.type) for c, f in zip(columns, table.schema, strict=True)], table.schema)
            )
    whole = pa.concat_tables(parts, promote_options="default").combine_chunks()
    return Samples(whole.add_column(0, "rid", pa.array(range(len(whole)), pa.int64())), blocks)


def combinations(pools: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """All rows of values from the pools, or so many at random that each value is among them."""
    every = list(itertools.islice(itertools.product(*pools), 5_000))
    if len(every) <= ROWS_OF_BLOCK:
        return every
    chance = random.Random(len(every))
    return [tuple(chance.choice(p) for p in pools) for _ in range(ROWS_OF_BLOCK)] + [
        tuple(p[i % len(p)] for p in pools) for i in range(max(map(len, pools)))
    ]


ANYTHING: dict[str, list[Any]] = {
    "int": [0, 1, -1, 5, 100],
    "float": [0.0, -0.0, 0.5, -1.0, 3.0, float("inf"), float("-inf")],
    "decimal": [Decimal(v) for v in ("0.00", "0.01", "1.00", "-1.00", "0.50")],
    "string": ["", "a", "A", "abc", "ab\0", "b", "x" * 70, "\U0010ffff", "é"],
    "binary": [b"", b"\0", b"a", b"\xff" * 70],
    "bool": [False, True],
    "date": [dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(2024, 3, 31), dt.date(1, 1, 1)],
    "timestamp": [
        dt.datetime(2024, 3, 31, 0, 59, 59, 999999),
        dt.datetime(2024, 10, 27, 0, 30),
        dt.datetime(1970, 1, 1),
    ],
}


def pool(cell: ZoneMap, type_: pa.DataType) -> list[Any]:
    """The values that a column may have in a block: bounds, some between, NULL, NaN."""
    values: list[Any] = [None] if cell.nulls != 0 else []
    if pa.types.is_floating(type_) and cell.nans != 0:
        values.append(float("nan"))
    if not cell.has_values:
        return values
    values += [bound for bound in (cell.lower, cell.upper) if bound is not None]
    inside = [v for v in anything(type_) if _between(v, cell)]
    return list({repr(v): v for v in [*values, *_middle(cell), *inside]}.values())


def anything(type_: pa.DataType) -> list[Any]:
    """Values of a type."""
    kind = next(kind for kind in ANYTHING if kind in str(type_).replace("double", "float"))
    values = ANYTHING[kind]
    if kind == "timestamp" and type_.tz:
        return [moment.replace(tzinfo=dt.UTC) for moment in values]
    if kind == "int":
        values = [*values, -(2 ** (type_.bit_width - 1)), 2 ** (type_.bit_width - 1) - 1]
    if kind == "decimal":
        greatest = Decimal(10**type_.precision - 1).scaleb(-type_.scale)
        return [
            v
            for v in [*(v.quantize(Decimal(1).scaleb(-type_.scale)) for v in values), greatest, -greatest]
            if abs(v) <= greatest
        ]
    return values


def _between(v: Any, cell: ZoneMap) -> bool:
    return (cell.lower is None or v >= cell.lower) and (cell.upper is None or v <= cell.upper)


def _middle(cell: ZoneMap) -> Iterator[Any]:
    low, high = cell.lower, cell.upper
    if isinstance(low, bool) or low is None or high is None or low == high:
        return
    if isinstance(low, int | float | dt.date):
        middle = low + (high - low) // 2 if not isinstance(low, float) else (low + high) / 2
        yield from [middle] if _between(middle, cell) else []
    elif isinstance(low, str | bytes):
        longer = low + ("m" if isinstance(low, str) else b"m")  # type: ignore[operator]
        yield from [longer] if _between(longer, cell) else []


@dataclass(frozen=True)
class Question:
    """A predicate as Spark is asked it: on rows of its own table on which it does not fail, NULL elsewhere."""

    line: Line
    masked: str
    ids: list[int]
    expected: dict[int, int]  # what rows are here, by row id


def asked(tables: Sequence[Table], samples: Samples) -> Iterator[Question]:
    """What there is to ask: not what is refused, nor what may be anything everywhere and has no answer here."""
    for t, table in enumerate(tables):
        ids, batch = samples.of(t)
        for line in table.lines:
            if line.outcomes[0] == "!":
                continue
            bound = table.bound(line.predicate)
            rows = dict(zip(ids, truth(bound, batch).tolist(), strict=True)) if is_supported(bound) else {}
            known = [i for i in ids if not rows or rows[i] in SINGLE]
            mask = f"rid BETWEEN {ids[0]} AND {ids[-1]}" if known == ids else f"rid IN ({', '.join(map(str, known))})"
            if known and (rows or set(line.outcomes) != {"TFN"}):
                yield Question(
                    line, f"IF({mask}, ({line.predicate}), NULL)", known, {i: rows[i] for i in known if rows}
                )


def check(question: Question, answer: dict[int, bool | None], samples: Samples) -> None:
    line = question.line
    for i in question.ids:
        outcome, said = OUTCOME[answer[i]], line.outcomes[samples.blocks[i][1]].upper()
        row = {name: v for name, v in samples.rows.slice(i, 1).to_pylist()[0].items() if name in line.predicate}
        assert outcome & sum(LETTERS[letter] for letter in said), (
            f"{line.predicate} is {answer[i]} on {row}, not {said}"
        )
        assert question.expected.get(i, outcome) == outcome, f"{line.predicate} is {answer[i]} on {row} in Spark"
