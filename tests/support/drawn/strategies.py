"""Random tables and predicates: every type with its awkward values, and every writer option.

A column's values come from a small *pool*, in which awkward values are likely. They are laid out over the rows sorted,
in runs or at random, so that the bounds of row groups and pages are sometimes narrow enough to prune. Literals come
from the same pool, so that predicates often meet the bounds.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

INT64_MAX = 2**63 - 1
NAN, INF = math.nan, math.inf
FIRST_DAY, LAST_DAY = dt.date(1, 1, 1), dt.date(9999, 12, 31)
EPOCH = dt.datetime(1970, 1, 1)
DAY = 86_400_000_000  # microseconds
EXACT = Context(prec=60)
ZONES = ("UTC", "Europe/Paris", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "+05:30")

# ---- values --------------------------------------------------------------------------------------------------------


def connected(
    conditions: st.SearchStrategy[str], tests: Sequence[str] = (), *, max_leaves: int
) -> st.SearchStrategy[str]:
    """Conditions under AND, OR, NOT and, where tests of truth are given, IS."""

    def wider(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        forms = [
            st.builds("({} AND {})".format, inner, inner),
            st.builds("({} OR {})".format, inner, inner),
            st.builds("(NOT ({}))".format, inner),
        ]
        return st.one_of(*forms, *([st.builds("(({}) IS {})".format, inner, st.sampled_from(tests))] if tests else []))

    return st.recursive(conditions, wider, max_leaves=max_leaves)


def integers(bits: int) -> st.SearchStrategy[int]:
    least, greatest = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    near = [least, least + 1, -1, 0, 1, 2, 3, greatest - 1, greatest]
    if bits == 64:
        near += [2**53, 2**53 + 1, -(2**53) - 1, 2**31, -(2**31) - 1]
    return st.sampled_from(near) | st.integers(-20, 20) | st.integers(least, greatest)


def unsigned(bits: int) -> st.SearchStrategy[int]:
    return st.sampled_from([0, 1, 2 ** (bits - 1) - 1, 2 ** (bits - 1), 2**bits - 1]) | st.integers(0, 20)


def floats(width: int) -> st.SearchStrategy[float]:
    near = [NAN, -0.0, 0.0, INF, -INF, 1.0, -1.0, 0.5, 2.0**-149, -(2.0**-149), 3.4028234663852886e38, 16777216.0]
    if width == 64:
        near += [5e-324, 1.7976931348623157e308, 0.1, 9007199254740993.0, 9.223372036854775807e18]
    return st.sampled_from(near) | st.floats(width=width)  # type: ignore[arg-type]


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    greatest = 10**precision - 1
    unscaled = st.sampled_from([greatest, -greatest, 0, 1, -1, 10**scale]) | st.integers(-greatest, greatest)
    return (unscaled | st.integers(-300, 300)).map(lambda n: EXACT.scaleb(Decimal(n), -scale))


TEXTS = [
    "",
    "a",
    "a\0",
    "a\0\0",
    "ab",
    "abc",
    "B",
    "b%_c",
    "back\\slash",
    "it's",
    "é",
    "e\u0301",
    "ß",
    "\ud7ff",
    "\ue000",
    "\uffff",
    "\U00010000",
    "😀",
    "😀a",
    "\U0010ffff",
    "\U0010ffff" * 20,
    "x" * 63,
    "x" * 64,
    "x" * 65,
    "x" * 64 + "a",
    "x" * 64 + "b",
    "é" * 40,
    "😀" * 17,
    "1",
    "10",
    "2",
    " ",
    "\n",
]
BINARIES = [
    b"",
    b"\0",
    b"\0\0",
    b"a",
    b"a\0",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\xff\xff",
    b"\xff" * 64,
    b"\xff" * 65,
    b"\xff" * 80,
    b"a" + b"\xff" * 70,
    b"\xfe" + b"\xff" * 63,
    b"x" * 64,
    b"x" * 64 + b"\0",
    b"\xc3\x28",
]
texts = st.sampled_from(TEXTS) | st.text(st.characters(codec="utf-8"), max_size=12)
binaries = st.sampled_from(BINARIES) | st.binary(max_size=12)

DAYS = [
    FIRST_DAY,
    dt.date(1582, 10, 4),
    dt.date(1582, 10, 15),
    dt.date(1899, 12, 31),
    dt.date(1969, 12, 31),
    dt.date(1970, 1, 1),
    dt.date(1970, 1, 2),
    dt.date(2024, 2, 29),
    dt.date(2024, 3, 31),
    dt.date(2024, 10, 27),
    LAST_DAY,
]
MOMENTS = [
    dt.datetime(1, 1, 2),
    dt.datetime(1582, 10, 4, 23, 59, 59, 999999),
    dt.datetime(1883, 11, 18, 12),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    EPOCH,
    dt.datetime(1970, 1, 1, 0, 0, 0, 1),
    dt.datetime(2024, 3, 10, 7, 30),  # New York skips an hour
    dt.datetime(2024, 3, 10, 2, 30),
    dt.datetime(2024, 3, 31, 1, 0),  # Paris skips an hour
    dt.datetime(2024, 3, 31, 2, 30),
    dt.datetime(2024, 10, 27, 0, 30),  # Paris repeats an hour
    dt.datetime(2024, 10, 27, 1, 30),
    dt.datetime(2024, 10, 27, 2, 30),
    dt.datetime(2024, 11, 3, 5, 30),  # New York repeats an hour
    dt.datetime(2024, 11, 3, 1, 30, 0, 123456),
    dt.datetime(9999, 12, 30, 23, 59, 59, 999999),
]
dates = st.sampled_from(DAYS) | st.dates(dt.date(2023, 12, 20), dt.date(2024, 1, 10))
moments = st.sampled_from(MOMENTS) | st.datetimes(dt.datetime(2024, 3, 30), dt.datetime(2024, 4, 1))


def days_of(date: dt.date) -> int:
    return date.toordinal() - EPOCH.toordinal()


def micros_of(moment: dt.datetime) -> int:
    return (moment - EPOCH) // dt.timedelta(microseconds=1)


extreme_days = st.sampled_from([-(2**31), -(2**31) + 1, 2**31 - 1, 2**31 - 2]) | dates.map(days_of)
extreme_micros = st.sampled_from([-(2**63), -(2**63) + 1, 2**63 - 1, 2**63 - 2]) | moments.map(micros_of)

# ---- literals ------------------------------------------------------------------------------------------------------


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def plain_number(value: Decimal | int) -> str:
    """A number without exponent, as Spark reads an integer or a decimal."""
    return f"{Decimal(value):f}"


def integer_literal(value: int) -> st.SearchStrategy[str]:
    forms = [
        str(value),
        f"{value}BD",
        f"'{value}'",
        f"{value}.0",
        f"{value}.5",
        f"CAST('{value}' AS DOUBLE)",
        f"{value}e0",
    ]
    if -(2**63) < value < 2**63:
        forms += [f"{value}L", f"{value}D"]
    if abs(value) < 2**63 - 1:
        forms += [str(value + 1), str(value - 1), f"{value - 1}.999999"]
    if not -(2**63) <= value < 2**63:
        forms.remove(f"'{value}'")
    beyond_long = ["9223372036854775808", "-9223372036854775808.5", "100000000000000000000"]
    return st.sampled_from([str(value)] * 6 + forms + beyond_long)


def decimal_literal(value: Decimal) -> st.SearchStrategy[str]:
    exact = plain_number(value)
    forms = [f"{exact}BD", f"CAST('{value}' AS DOUBLE)", f"'{exact}'", plain_number(int(value))]
    forms += [f"'{plain_number(int(value) - 1)}.999'"]
    return st.sampled_from([exact] * 6 + forms)


def float_literal(value: float) -> st.SearchStrategy[str]:
    forms = [f"CAST('{value!r}' AS DOUBLE)"] * 3 + [f"CAST('{value!r}' AS FLOAT)", f"'{value!r}'"]
    if math.isfinite(value):
        forms += [f"{value!r}D"] if "e" not in repr(value) else [repr(value)]
        forms += [str(int(value))] if abs(value) < 2**62 else []
        forms += [f"{value:.3f}"] if abs(value) < 1e15 else []
        forms += [str(int(value) + 1), f"{int(value) + 1}.0"] if abs(value) < 2**62 else []
    return st.sampled_from(forms)


def text_literal(value: str) -> st.SearchStrategy[str]:
    forms = [quoted(value)] * 4 + [quoted(value + "a"), quoted(value[:-1]), quoted(value + "\0")]
    return st.sampled_from(forms)


def binary_literal(value: bytes) -> st.SearchStrategy[str]:
    return st.sampled_from([f"X'{v.hex().upper()}'" for v in (value, value, value + b"\0", value[:-1])])


def padded(date: dt.date) -> str:
    return f"{date.year:04}-{date.month:02}-{date.day:02}"


def clock(moment: dt.datetime) -> str:
    fraction = f".{moment.microsecond:06}" if moment.microsecond else ""
    return f"{padded(moment)} {moment.hour:02}:{moment.minute:02}:{moment.second:02}{fraction}"


def date_literal(days: int) -> st.SearchStrategy[str]:
    day = dt.date.fromordinal(min(max(days, days_of(FIRST_DAY)), days_of(LAST_DAY)) + EPOCH.toordinal())
    text = padded(day)
    return st.sampled_from(
        [f"DATE '{text}'"] * 4 + [f"'{text}'", f"TIMESTAMP '{text} 00:00:00'", f"TIMESTAMP_NTZ '{text} 12:00:00'"]
    )


def extreme_date_literal(days: int) -> st.SearchStrategy[str]:
    return date_literal(days).filter(lambda text: "TIMESTAMP" not in text)


def moment_of(micros: int) -> dt.datetime:
    least, greatest = micros_of(MOMENTS[0]), micros_of(MOMENTS[-1])
    return EPOCH + dt.timedelta(microseconds=min(max(micros, least), greatest))


def timestamp_literal(micros: int) -> st.SearchStrategy[str]:
    text = clock(moment_of(micros))
    forms = [
        f"TIMESTAMP '{text}'",
        f"TIMESTAMP '{text}Z'",
        f"TIMESTAMP_LTZ '{text}'",
        f"'{text}'",
        f"DATE '{text[:10]}'",
    ]
    forms += [f"TIMESTAMP_NTZ '{text}'", f"TIMESTAMP '{text}+02:00'", f"TIMESTAMP '{text} Europe/Paris'"]
    return st.sampled_from([forms[0], forms[1]] * 3 + forms)


def local_literal(micros: int) -> st.SearchStrategy[str]:
    text = clock(moment_of(micros))
    return st.sampled_from(
        [f"TIMESTAMP_NTZ '{text}'"] * 4 + [f"'{text}'", f"DATE '{text[:10]}'", f"TIMESTAMP '{text}'"]
    )


# ---- columns -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnKind:
    """A column that a random table may have: its type, its values, and the literals to compare it with."""

    name: str
    type: pa.DataType  # as Spark reads it
    values: st.SearchStrategy[Any]
    literal: Callable[[Any], st.SearchStrategy[str]]
    stored: tuple[pa.DataType, ...] = ()  # other types that a file may store it in, and that Spark widens

    @property
    def sql(self) -> str:
        return "`" + self.name.replace("`", "``") + "`"


def _kind(
    name: str,
    type_: pa.DataType,
    values: st.SearchStrategy[Any],
    literal: Callable[[Any], st.SearchStrategy[str]],
    *stored: pa.DataType,
) -> ColumnKind:
    return ColumnKind(name, type_, values, literal, stored)


KINDS = [
    _kind("tiny", pa.int8(), integers(8), integer_literal),
    _kind("small", pa.int16(), integers(16), integer_literal, pa.int8(), pa.uint8()),
    _kind("i", pa.int32(), integers(32), integer_literal, pa.int16(), pa.uint16()),
    _kind("od.d `name", pa.int64(), integers(64), integer_literal, pa.int32(), pa.int32(), pa.uint32(), pa.int8()),
    _kind("unsigned", pa.decimal128(20, 0), unsigned(64), integer_literal, pa.uint64()),
    _kind("f", pa.float32(), floats(32), float_literal),
    _kind("x", pa.float64(), floats(64), float_literal, pa.float32()),
    _kind("money", pa.decimal128(9, 2), decimals(9, 2), decimal_literal, pa.decimal128(7, 2)),
    _kind("price", pa.decimal128(18, 4), decimals(18, 4), decimal_literal, pa.decimal128(9, 4)),
    _kind(
        "huge", pa.decimal128(38, 10), decimals(38, 10), decimal_literal, pa.decimal128(20, 10), pa.decimal128(12, 10)
    ),
    _kind("whole", pa.decimal128(38, 0), decimals(38, 0), decimal_literal),
    _kind("s", pa.string(), texts, text_literal, pa.dictionary(pa.int32(), pa.string()), pa.large_string()),
    _kind("bin", pa.binary(), binaries, binary_literal, pa.large_binary()),
    _kind("flag", pa.bool_(), st.booleans(), lambda value: st.sampled_from(["TRUE", "FALSE", "'true'", "'f'"])),
    _kind("day", pa.date32(), dates.map(days_of), date_literal),
    _kind("far_day", pa.date32(), extreme_days, extreme_date_literal),
    _kind("ts", pa.timestamp("us", "UTC"), moments.map(micros_of), timestamp_literal, pa.timestamp("ms", "UTC")),
    _kind("far_ts", pa.timestamp("us", "UTC"), extreme_micros, timestamp_literal),
    _kind("local", pa.timestamp("us"), moments.map(micros_of), local_literal),
]
BY_NAME = {kind.name: kind for kind in KINDS}

RENDERED_PARTITIONS: Mapping[str, Sequence[str]] = {
    "p_day": ["2024-02-29", "2024-03-31", "1969-12-31", "__HIVE_DEFAULT_PARTITION__"],
    "p_int": ["0", "1", "-7", "2147483647", "__HIVE_DEFAULT_PARTITION__"],
    "p_long": ["1", "9223372036854775807", "-5000000000"],
    "p_num": ["1", "2.5", "-0.0", "NaN", "1e3"],
    "p_text": ["a", "b c", "50%25", "x%2Fy", "%C3%A9", "ünï", "A", "a%3Db", "__HIVE_DEFAULT_PARTITION__"],
}
PARTITION_LITERALS: Mapping[str, Sequence[str]] = {
    "p_day": ["DATE '2024-02-29'", "'1969-12-31'", "TIMESTAMP '2024-03-31 00:00:00'", "DATE '2024-03-01'"],
    "p_int": ["0", "1", "-7.5", "2147483647L", "'1'"],
    "p_long": ["1", "9223372036854775807", "0.5"],
    "p_num": ["CAST('NaN' AS DOUBLE)", "0", "2.5", "1000"],
    "p_text": ["'a'", "'b c'", "'50%'", "'x/y'", "'Ã©'", "'ünï'", "'a=b'", "''"],
}

# ---- tables --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FileSpec:
    """One file to write: its path below the table, its data, and the writer's options."""

    path: str
    data: pa.Table
    options: Mapping[str, Any]


@dataclass(frozen=True)
class TableSpec:
    """A table to write. Every row has its own `rid`."""

    files: tuple[FileSpec, ...]
    kinds: tuple[ColumnKind, ...]  # top-level columns besides `rid` and `nested`
    nested: tuple[ColumnKind, ...]  # fields of the struct `nested`
    pools: Mapping[str, Sequence[Any]] = field(repr=False)
    partitions: tuple[str, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """The table's data columns as Spark reads them."""
        fields = [pa.field("rid", pa.int64()), *(pa.field(kind.name, kind.type) for kind in self.kinds)]
        if self.nested:
            fields.append(pa.field("nested", pa.struct([pa.field(kind.name, kind.type) for kind in self.nested])))
        return pa.schema(fields)

    def write(self, root: Path, write: Callable[[FileSpec, Path], None] | None = None) -> Path:
        """The files below a directory, by pyarrow or another writer."""
        for file in self.files:
            path = root / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            if write is None:
                pq.write_table(file.data, path, **file.options)
            else:
                write(file, path)
        return root


@st.composite
def table_specs(draw: st.DrawFn, among: Sequence[ColumnKind] = KINDS, widened: bool = True) -> TableSpec:
    """A table of a few files and columns, with all that files of one table may differ in.

    Its columns are `among` these kinds; unless `widened`, no file stores one in a narrower type.
    """
    kinds = tuple(draw(st.lists(st.sampled_from(among), min_size=2, max_size=5, unique_by=lambda kind: kind.name)))
    nested = tuple(draw(st.lists(st.sampled_from(among), max_size=2, unique_by=lambda kind: kind.name)))
    pools = {}
    for prefix, chosen in (("", kinds), ("nested.", nested)):
        for kind in chosen:
            pools[prefix + kind.name] = sorted(draw(st.lists(kind.values, min_size=1, max_size=8)), key=_order)
    partitions = tuple(
        draw(st.just([]) | st.lists(st.sampled_from(sorted(RENDERED_PARTITIONS)), max_size=2, unique=True))
    )
    rid, files = 0, []
    for number in range(draw(st.integers(1, 4))):
        rows = draw(st.integers(0, 40))
        folders = [f"{name}={draw(st.sampled_from(RENDERED_PARTITIONS[name]))}" for name in partitions]
        path = "/".join([*folders, f"part {number}.parquet"])
        locations = Layout(draw(st.integers(0, 2**32 - 1)), rows)
        options = draw(write_options())
        whole = number == 0  # the first file has every column in full width, so that the table's types are known
        columns: dict[str, pa.Array] = {"rid": pa.array(np.arange(rid, rid + rows), pa.int64())}
        for kind in kinds:
            if not whole and draw(st.integers(0, 5)) == 0:
                continue
            columns[kind.name] = draw(stored_column(kind, pools[kind.name], locations, whole or not widened))
        if nested:
            columns["nested"] = draw(stored_struct(nested, pools, locations, whole, widened))
        if draw(st.booleans()):
            columns = dict(draw(st.permutations(list(columns.items()))))
        files.append(FileSpec(path, pa.table(columns), options))
        rid += rows
    return TableSpec(tuple(files), kinds, nested, pools, partitions)


def _order(value: Any) -> Any:
    return (value != value, value) if isinstance(value, float) else value


class Layout:
    """Which value of a pool every row of a file holds, -1 for NULL."""

    def __init__(self, seed: int, rows: int) -> None:
        self._random, self.rows = np.random.default_rng(seed), rows

    def choices(self, pool: int) -> np.ndarray:
        random, rows = self._random, self.rows
        numbers = random.integers(0, pool, rows)
        match random.integers(0, 3):
            case 0:
                numbers = np.sort(numbers)
            case 1:
                numbers = np.repeat(numbers, random.integers(2, 12))[:rows]
        match random.integers(0, 4):
            case 0:
                numbers = np.where(random.random(rows) < 0.2, -1, numbers)
            case 1:  # runs of NULLs, which fill whole pages and row groups
                numbers = np.where(np.repeat(random.random(rows) < 0.4, random.integers(2, 20))[:rows], -1, numbers)
        return numbers


@st.composite
def stored_column(draw: st.DrawFn, kind: ColumnKind, pool: Sequence[Any], locations: Layout, whole: bool) -> pa.Array:
    """The values of one column of a file, in the table's type or in one that widens to it."""
    types = [kind.type] if whole and kind.name != "unsigned" else [kind.type, *kind.stored]
    type_ = pa.uint64() if kind.name == "unsigned" else draw(st.sampled_from(types))
    usable = _representable(pool, kind.type, type_)
    if not usable:
        type_, usable = kind.type, list(pool)
    values = [None if choice < 0 else usable[choice] for choice in locations.choices(len(usable))]
    return array_of(values, type_)


def array_of(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """Python values as Arrow: days and microseconds are integers here, as Python's dates end at 9999."""
    if pa.types.is_date32(type_):
        return pa.array(values, pa.int32()).cast(type_)
    if pa.types.is_timestamp(type_):
        return pa.array(values, pa.int64()).cast(pa.timestamp("us", type_.tz)).cast(type_)
    if pa.types.is_dictionary(type_):
        return pa.array(values, type_.value_type).dictionary_encode()
    return pa.array(values, type_)


def _representable(pool: Sequence[Any], whole: pa.DataType, type_: pa.DataType) -> list[Any]:
    def fits(value: Any) -> bool:
        try:
            return array_of([value], type_).cast(whole).equals(array_of([value], whole)) or value != value
        except (pa.ArrowInvalid, OverflowError):
            return False

    return list(pool) if type_ == whole or pa.types.is_dictionary(type_) else [v for v in pool if fits(v)]


@st.composite
def stored_struct(
    draw: st.DrawFn,
    kinds: Sequence[ColumnKind],
    pools: Mapping[str, Sequence[Any]],
    locations: Layout,
    whole: bool,
    widened: bool,
) -> pa.Array:
    """A struct with these fields, NULL itself in some rows; later files may lack fields."""
    names, children = [], []
    for kind in kinds:
        if whole or not names or draw(st.booleans()):
            names.append(kind.name)
            children.append(draw(stored_column(kind, pools["nested." + kind.name], locations, whole or not widened)))
    mask = pa.array(locations.choices(2) < 0)
    return pa.StructArray.from_arrays(children, names, mask=mask)


@st.composite
def write_options(draw: st.DrawFn) -> dict[str, Any]:
    """Options of ``pyarrow.parquet.write_table`` that change what a file tells of itself."""
    return {
        "row_group_size": draw(st.integers(1, 20)),
        "write_page_index": draw(st.booleans()),
        "max_rows_per_page": draw(st.sampled_from([1, 2, 3, 7, 20_000])),
        "use_dictionary": draw(st.booleans()),
        "write_statistics": draw(st.sampled_from([True, True, True, False, ["rid"]])),
        "data_page_version": draw(st.sampled_from(["1.0", "2.0"])),
        "compression": draw(st.sampled_from(["none", "snappy", "zstd"])),
        "store_schema": draw(st.booleans()),
        "store_decimal_as_integer": draw(st.booleans()),
    }


# ---- predicates ----------------------------------------------------------------------------------------------------

COMPARISONS = ("=", "<=>", "!=", "<>", "<", "<=", ">", ">=", "==")
ABOUT_FILES = [
    "_metadata.file_name = 'part 1.parquet'",
    "_metadata.file_path LIKE '%/part%201.parquet'",
    "_metadata.file_size > 2000",
    "_metadata.file_modification_time > TIMESTAMP '2020-01-01 00:00:00'",
]


@st.composite
def predicates(draw: st.DrawFn, spec: TableSpec) -> str:
    """Spark SQL over a table: leaves of every kind, up to two levels of AND, OR and NOT."""
    return draw(_tree(spec, 2))


@st.composite
def tables_and_predicates(draw: st.DrawFn, count: int) -> tuple[TableSpec, list[str]]:
    """A table with columns of any kinds, and as many predicates over it."""
    spec = draw(table_specs(KINDS))
    return spec, draw(st.lists(predicates(spec), min_size=count, max_size=count))


def _tree(spec: TableSpec, depth: int) -> st.SearchStrategy[str]:
    leaf = leaves(spec)
    if depth == 0:
        return leaf
    below = _tree(spec, depth - 1)
    several = st.lists(below, min_size=2, max_size=3)
    connected = st.tuples(st.sampled_from([" AND ", " OR "]), several).map(lambda t: t[0].join(f"({p})" for p in t[1]))
    return leaf | leaf | connected | st.one_of(leaf, connected).map(lambda p: f"NOT ({p})")


@st.composite
def leaves(draw: st.DrawFn, spec: TableSpec) -> str:
    """One condition on one column, or a constant."""
    targets: list[tuple[str, ColumnKind | None, str]] = [(kind.sql, kind, kind.name) for kind in spec.kinds]
    targets += [(f"nested.{kind.sql}", kind, "nested." + kind.name) for kind in spec.nested]
    targets += [(name, None, name) for name in spec.partitions]
    if draw(st.integers(0, 25)) == 0:
        return draw(st.sampled_from(["TRUE", "FALSE", "NULL", *ABOUT_FILES]))
    sql, kind, name = draw(st.sampled_from(targets))
    if kind is None:
        return draw(conditions(sql, st.sampled_from(PARTITION_LITERALS[name])))
    values = st.sampled_from(spec.pools[name]) | kind.values
    if kind.type in (pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")) and draw(st.integers(0, 3)) == 0:
        return draw(calls(sql, kind, values))
    return draw(conditions(sql, values.flatmap(kind.literal), kind))


@st.composite
def calls(draw: st.DrawFn, sql: str, kind: ColumnKind, values: st.SearchStrategy[int]) -> str:
    """A condition on a function of a date or timestamp that may be monotone."""
    is_date = pa.types.is_date32(kind.type)
    day_literals = (values if is_date else values.map(lambda micros: micros // DAY)).flatmap(extreme_date_literal)
    unit = draw(st.sampled_from(["YEAR", "quarter", "MM", "week", "DAY", "HOUR"]))
    far = kind.name.startswith("far")  # Spark fails, or wraps around, where the result is out of range
    match draw(st.sampled_from(["year", "to_date", "CAST", "trunc", "date_trunc"])):
        case "year":
            years = st.sampled_from([1, 1582, 1883, 1969, 1970, 2023, 2024, 9999]).map(str)
            return draw(conditions(f"year({sql})", years))
        case "to_date":
            return draw(conditions(f"to_date({sql})", day_literals))
        case "CAST":
            return draw(conditions(f"CAST({sql} AS DATE)", day_literals))
        case "trunc" if is_date and not far:
            return draw(conditions(f"trunc({sql}, '{unit}')", day_literals))
        case _ if far:
            return draw(conditions(f"to_date({sql})", day_literals))
        case _:
            return draw(
                conditions(
                    f"date_trunc('{unit}', {sql})", values.flatmap(date_literal if is_date else timestamp_literal)
                )
            )


@st.composite
def conditions(draw: st.DrawFn, sql: str, literals: st.SearchStrategy[str], kind: ColumnKind | None = None) -> str:
    """A comparison, an IN list, a range, a test for NULL or NaN on a column, or on a function of one."""
    nullable = literals | literals | literals | st.just("NULL")
    forms = ["compare", "compare", "compare", "in", "not in", "between", "null", "flip", "truth"]
    if kind is not None:
        by_type = {
            "s": ["like", "like", "part", "opaque", "valued", "instr"],
            "flag": ["bare"],
            "i": ["opaque"],
            "x": ["isnan"],
            "f": ["isnan"],
        }
        forms += by_type.get(kind.name, [])
    match draw(st.sampled_from(forms)):
        case "compare":
            return f"{sql} {draw(st.sampled_from(COMPARISONS))} {draw(nullable)}"
        case "flip":
            return f"{draw(nullable)} {draw(st.sampled_from(COMPARISONS))} {sql}"
        case "between":
            form = draw(st.sampled_from(["{} BETWEEN {} AND {}", "{} NOT BETWEEN {} AND {}", "between({}, {}, {})"]))
            return form.format(sql, draw(literals), draw(literals))
        case "null":
            return draw(st.sampled_from(["{} IS NULL", "{} IS NOT NULL", "isnull({})", "isnotnull({})"])).format(sql)
        case "truth":
            value = draw(st.sampled_from(["TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "UNKNOWN", "NULL", "NOT NULL"]))
            return f"({sql} {draw(st.sampled_from(COMPARISONS))} {draw(nullable)}) IS {value}"
        case "isnan":
            return f"isnan({sql})"
        case "part":
            function = draw(st.sampled_from(["startswith", "endswith", "contains"]))
            return f"{function}({sql}, {draw(literals)})"
        case "like":
            return draw(likes(sql))
        case "valued":  # a condition as an operand
            truth = draw(likes(sql) | literals.map(lambda text: f"contains({sql}, {text})"))
            form = (
                "if({}, 1, 0) = 0",
                "({}) = TRUE",
                "coalesce({}, FALSE)",
                "CASE WHEN {} THEN 'a' END = 'a'",
                "NOT ({})",
            )
            return draw(st.sampled_from(form)).format(truth)
        case "instr":
            return f"instr({sql}, {draw(literals)}) {draw(st.sampled_from(COMPARISONS))} {draw(st.integers(0, 2))}"
        case "bare":
            return sql
        case "opaque":
            return f"coalesce({sql}, {draw(literals)}) = {draw(literals)}"
        case form:
            listed = draw(st.lists(nullable, min_size=1, max_size=6))
            return f"{sql} {form.upper()} ({', '.join(listed)})"


@st.composite
def likes(draw: st.DrawFn, sql: str) -> str:
    """LIKE with wildcards anywhere, with and without escapes."""
    mark = draw(st.sampled_from(["\\", "\\", "!"]))
    pieces = st.sampled_from(["%", "%", "_", mark + "%", mark + "_", mark + mark, "a", "b", "x", "x" * 64, "😀", "\n"])
    pieces |= st.sampled_from([text for text in TEXTS if not set(text) & set("%_\\!")])
    pattern = "".join(draw(st.lists(pieces, max_size=4)))
    escape = "" if mark == "\\" else f" ESCAPE '{mark}'"
    return f"{sql} {draw(st.sampled_from(['', 'NOT ']))}LIKE {quoted(pattern)}{escape}"
