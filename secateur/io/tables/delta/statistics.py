"""Turn the statistics in a Delta log into zone maps of files.

Bounds hold but may be loose: texts are truncated, times are truncated to milliseconds, and bounds of a file with
deleted rows may be older than its deletions. Sound: a bound that a writer may have rounded is widened by as much.

Source: Delta's protocol, "Per-file Statistics".
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from secateur.arrays import present, text_parts
from secateur.index.naming import Path
from secateur.index.zones import zonemap
from secateur.index.zones.zonemap import ZoneMap
from secateur.values.key import INT64_MAX, INT64_MIN
from secateur.values.kinds import is_float

MILLISECOND = 1_000  # microseconds
MOST_MALFORMED = 8  # malformed texts that are searched for one by one; with more, nothing is known
_LOWER, _UPPER, _NULLS = "minValues", "maxValues", "nullCount"
_ROWS, _TIGHT = "numRecords", "tightBounds"
_NOT_NUMBERS = r':\s*"(NaN|[+-]?Infinity|[+-]?(INF|inf))"'  # as some writers quote them
_QUOTED = (b'"NaN"', b'Infinity"', b'INF"', b'inf"')
_TIE_BREAKERS = "\ufffd\U0010ffff\x7f"  # a truncated upper bound ends with one of these
_HALF = "?"  # is written in place of half a surrogate pair
_ULPS = 8  # a decimal that was written as a binary number may be off by as much
_EXACT = 2.0**46  # below this many units, rounding gives back the decimal
_LINE_END = pa.scalar("\n", pa.large_string()), pa.scalar("", pa.large_string())  # to append, and the separator
_BLOCK_BYTES = 1 << 20  # parsed at once by one thread
_DAY = r"^\d{4}-\d{2}-\d{2}"
_ZONED = r"(Z|[+-]\d{2}:?\d{2})$"


@dataclass(frozen=True)
class LoggedStatistics:
    """The statistics in a log of n files: every array has shape (n,)."""

    row_count: np.ndarray  # physical rows; -1 if unknown
    is_tight: np.ndarray  # whether null counts leave deleted rows out
    lower: Mapping[Path, pa.Array]  # by physical path
    upper: Mapping[Path, pa.Array]
    null_count: Mapping[Path, np.ndarray]  # -1 if unknown

    def zone_map(self, path: Path, type_: pa.DataType, *, may_be_floats: bool = False) -> ZoneMap | None:
        """Return the bounds and counts of a column; None if the log has none.

        Sound: some writers ignore NaN, so the NaN count is unknown. A column of doubles may have been one of floats,
        whose bounds are decimal texts that name the float next to them: 0.1 is 0.10000000149011612.
        """
        if path not in self.lower:
            return None
        lower, upper = widened(self.lower[path], self.upper[path], type_)
        if may_be_floats and type_ == pa.float64():
            lower, upper = _beside_float(lower, -np.inf), _beside_float(upper, np.inf)
        nan_count = np.full(len(self.row_count), -1 if is_float(type_) else 0)
        return zonemap.from_bounds(type_, lower, upper, self._null_counts(path), nan_count, self.row_count)

    def _null_counts(self, path: Path) -> np.ndarray:
        """Return the null counts that hold: those with deleted rows only if no value is NULL, or all are."""
        counts = self.null_count[path]
        if len(path) > 1:  # writers that copy Parquet's counts do not count structs that are NULL themselves
            return np.full(len(counts), -1)
        holds = self.is_tight | (counts == 0) | (counts == self.row_count)
        return np.where(holds, counts, -1)


# ---- reading ---------------------------------------------------------------------------------------------------------


def bounded_columns(schema: pa.Schema, physical: Mapping[Path, Path]) -> dict[Path, pa.DataType]:
    """Return the types in which bounds are read, by physical path, of the columns that may have bounds."""
    return {physical[path]: kind for path, type_ in _leaves(schema, ()) if (kind := _read_as(type_)) is not None}


def _leaves(fields: Sequence[pa.Field] | pa.Schema, path: Path) -> Iterator[tuple[Path, pa.DataType]]:
    for field in fields:
        field_path = (*path, field.name)
        if pa.types.is_struct(field.type):
            yield from _leaves(list(field.type), field_path)
        else:
            yield field_path, field.type


def _read_as(type_: pa.DataType) -> pa.DataType | None:
    if pa.types.is_integer(type_):
        return pa.int64()
    if pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return pa.float64()
    if pa.types.is_boolean(type_):
        return pa.bool_()
    if pa.types.is_string(type_) or pa.types.is_date(type_) or pa.types.is_timestamp(type_):
        return pa.string()
    return None


def from_texts(texts: pa.Array, columns: Mapping[Path, pa.DataType]) -> LoggedStatistics:
    """Read statistics from JSON, one text per file. A malformed or missing text leaves them unknown."""
    table = _parsed(texts, _schema(columns))
    return _of_structs({name: table[name].combine_chunks() for name in table.column_names}, len(table), columns)


def from_structs(parsed: pa.StructArray, columns: Mapping[Path, pa.DataType]) -> LoggedStatistics:
    """Return a checkpoint's typed statistics."""
    logged_fields = {field.name: pc.struct_field(parsed, field.name) for field in parsed.type}
    return _of_structs(logged_fields, len(parsed), columns)


def _schema(columns: Mapping[Path, pa.DataType]) -> pa.Schema:
    bounds, counts = _nested(columns), _nested(dict.fromkeys(columns, pa.int64()))
    kinds = {_LOWER: bounds, _UPPER: bounds, _NULLS: counts} if columns else {}
    return pa.schema([(_ROWS, pa.int64()), (_TIGHT, pa.bool_()), *kinds.items()])


def _nested(columns: Mapping[Path, pa.DataType]) -> pa.StructType:
    """Return the struct that has these leaves."""
    children: dict[str, dict[Path, pa.DataType]] = {}
    for path, type_ in columns.items():
        children.setdefault(path[0], {})[path[1:]] = type_
    return pa.struct([(name, leaves[()] if () in leaves else _nested(leaves)) for name, leaves in children.items()])


def _parsed(texts: pa.Array, schema: pa.Schema) -> pa.Table:
    """Parse one object per text; a malformed one is left out, and counts as empty."""
    plain = pc.fill_null(texts, "{}")
    data = text_parts(plain)[1].tobytes()  # a search in one piece is ten times as fast as in texts
    if b"\n" in data:
        plain = pc.replace_substring(plain, "\n", " ")
    if any(word in data for word in _QUOTED):
        plain = pc.replace_substring_regex(plain, _NOT_NUMBERS, ":null")
    plain = pc.if_else(pc.match_substring_regex(plain, r"^\s*\{"), plain, "{}")
    left = [MOST_MALFORMED]
    return pa.concat_tables(_parts(plain, schema, left)) if len(plain) else schema.empty_table()


def _parts(texts: pa.Array, schema: pa.Schema, left: list[int]) -> Iterator[pa.Table]:
    """Parse texts; where that fails, their halves, until the malformed ones are found."""
    n = len(texts)
    try:
        rows = _at_once(texts, schema)
        if len(rows) == n:
            yield rows
            return
    except pa.ArrowInvalid:
        pass
    left[0] -= n == 1
    if n == 1 or left[0] <= 0:
        yield schema.empty_table() if not n else pa.table([pa.nulls(n, field.type) for field in schema], schema)
        return
    yield from _parts(texts.slice(0, n // 2), schema, left)
    yield from _parts(texts.slice(n // 2), schema, left)


def _at_once(texts: pa.Array, schema: pa.Schema) -> pa.Table:
    lines = pc.binary_join_element_wise(texts.cast(pa.large_string()), *_LINE_END)
    data = text_parts(lines)[1].tobytes()
    longest = max(_BLOCK_BYTES, pc.max(pc.binary_length(texts)).as_py() + 1)
    reading = pj.ReadOptions(block_size=min(longest, len(data)) + 1)
    parsing = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    return pj.read_json(io.BytesIO(data), read_options=reading, parse_options=parsing)


def _of_structs(logged_fields: Mapping[str, pa.Array], n: int, columns: Mapping[Path, pa.DataType]) -> LoggedStatistics:
    rows = _counts(logged_fields.get(_ROWS), n)
    logged = logged_fields.get(_TIGHT)
    tight = np.ones(n, bool) if logged is None else pc.fill_null(logged, True).to_numpy(zero_copy_only=False)
    lower, upper, nulls = {}, {}, {}
    for path in columns:
        low, high, count = (_at(logged_fields.get(name), path) for name in (_LOWER, _UPPER, _NULLS))
        if low is None and high is None and count is None:
            continue
        lower[path] = pa.nulls(n) if low is None else low
        upper[path] = pa.nulls(n) if high is None else high
        nulls[path] = _counts(count, n)
    return LoggedStatistics(rows, tight, lower, upper, nulls)


def _at(struct: pa.Array | None, path: Path) -> pa.Array | None:
    for name in path:
        if struct is None or not pa.types.is_struct(struct.type) or struct.type.get_field_index(name) < 0:
            return None
        struct = pc.struct_field(struct, name)
    return struct


def _counts(logged: pa.Array | None, n: int) -> np.ndarray:
    if logged is None or not pa.types.is_integer(logged.type):
        return np.full(n, -1)
    return pc.fill_null(logged.cast(pa.int64()), -1).to_numpy(zero_copy_only=False).astype(np.int64)


# ---- bounds ----------------------------------------------------------------------------------------------------------


def widened(lower: pa.Array, upper: pa.Array, type_: pa.DataType) -> tuple[pa.Array, pa.Array]:
    """Widen bounds of a type so that they hold however a writer rounded them; null where nothing is known."""
    n = len(lower)
    try:
        if pa.types.is_string(type_):
            return lower.cast(pa.binary()), _behind_cut(upper.cast(pa.string()))
        if pa.types.is_timestamp(type_):
            return _times(lower, upper, type_)
        if pa.types.is_decimal(type_):
            return _decimals(lower, type_, down=True), _decimals(upper, type_, down=False)
        if is_float(type_):
            return _numbers(lower, type_), _numbers(upper, type_)
        if pa.types.is_date(type_):
            return _days(lower).cast(type_), _days(upper).cast(type_)
        return lower.cast(type_), upper.cast(type_)
    except (pa.ArrowException, ValueError):
        return pa.nulls(n, type_), pa.nulls(n, type_)


def _numbers(bounds: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return bounds of floating-point numbers; NaN becomes null. Rounding to a narrower type keeps the order."""
    values = bounds.cast(pa.float64())
    return pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), values).cast(type_, safe=False)


def _beside_float(bounds: pa.Array, towards: float) -> pa.Array:
    """Return bounds moved so far that they hold for the floats that they may name, too."""
    values = pc.fill_null(bounds, 0.0).to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore"):
        floats = np.nextafter(values.astype(np.float32), np.float32(towards)).astype(np.float64)
    moved = np.minimum(values, floats) if towards < 0 else np.maximum(values, floats)
    return pa.array(moved, pa.float64(), mask=~present(bounds))


def _behind_cut(upper: pa.Array) -> pa.Array:
    """Return upper bounds of texts as bytes, valid for every text that they may have been truncated from.

    A truncated bound ends in a character that should be greater than anything that was cut off. With some writers it is
    not: U+FFFD is less than a character of four bytes, and half of a surrogate pair becomes a question mark. No byte of
    a text is 0xFF, so a prefix followed by 0xFF is greater than every text with that prefix.
    """
    is_cut = pc.match_substring_regex(upper, f"[{_TIE_BREAKERS}]$")
    begin = pc.utf8_rtrim(upper, characters=_TIE_BREAKERS + _HALF).cast(pa.binary())
    behind = pc.binary_join_element_wise(begin, pa.scalar(b"\xff"), pa.scalar(b""))
    return pc.if_else(is_cut, behind, upper.cast(pa.binary()))


def _days(bounds: pa.Array) -> pa.Array:
    """Return days as text, null if their form is unknown; other types unchanged."""
    return _only(bounds, _DAY + "$") if pa.types.is_string(bounds.type) else bounds


def _moments(bounds: pa.Array, type_: pa.TimestampType) -> pa.Array:
    """Return times as text, null unless they have a zone if, and only if, the type has one; other types unchanged."""
    if not pa.types.is_string(bounds.type):
        return bounds
    zoned = _only(bounds, _DAY + ".*" + _ZONED)
    if type_.tz is not None:
        return zoned
    return pc.if_else(pc.is_null(zoned), _only(bounds, _DAY), pa.scalar(None, pa.string()))


def _only(texts: pa.Array, form: str) -> pa.Array:
    return pc.if_else(pc.match_substring_regex(texts, form), texts, pa.scalar(None, pa.string()))


def _times(lower: pa.Array, upper: pa.Array, type_: pa.TimestampType) -> tuple[pa.Array, pa.Array]:
    """Return bounds of times that were truncated to milliseconds: upper ones may be up to 999 microseconds too low.

    A writer that truncates towards zero makes lower bounds before 1970 too high.
    """
    plain = pa.timestamp("us", type_.tz)
    low, high = (_moments(bounds, plain).cast(plain).cast(pa.int64()) for bounds in (lower, upper))
    slack = MILLISECOND - 1
    known_low, known_high = present(low), present(high)
    lows = pc.fill_null(low, 0).to_numpy(zero_copy_only=False)
    highs = pc.fill_null(high, 0).to_numpy(zero_copy_only=False)
    known_low &= (lows > INT64_MIN + slack) | (lows >= 0)
    known_high &= highs < INT64_MAX - slack
    lows = np.where(known_low & (lows <= 0), lows - slack, lows)
    highs = np.where(known_high, highs + slack, highs)
    return _placed(lows, known_low, plain), _placed(highs, known_high, plain)


def _placed(values: np.ndarray, known: np.ndarray, type_: pa.DataType) -> pa.Array:
    return pa.array(values, pa.int64(), mask=~known).cast(type_)


def _decimals(bounds: pa.Array, type_: pa.Decimal128Type, *, down: bool) -> pa.Array:
    """Return bounds of decimals, widened by what a writer may lose that writes them as binary numbers."""
    if pa.types.is_decimal(bounds.type):
        return bounds.cast(type_)
    values = bounds.cast(pa.float64())
    known = present(values)
    numbers = pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False)
    units = numbers * 10.0**type_.scale
    slack = _ULPS * np.spacing(np.abs(units))
    moved = np.floor(units - slack) if down else np.ceil(units + slack)
    unscaled = np.where(np.abs(units) < _EXACT, np.rint(units), moved)
    limit = 10.0**type_.precision
    known &= np.isfinite(unscaled) & (np.abs(unscaled) < limit)
    return _unscaled(np.where(known, unscaled, 0.0), known, type_)


def _unscaled(numbers: np.ndarray, known: np.ndarray, type_: pa.Decimal128Type) -> pa.Array:
    """Return decimals, given as whole floating-point numbers of units of their last digit."""
    if np.abs(numbers).max(initial=0.0) < 2.0**62:
        whole = pa.array(numbers.astype(np.int64), mask=~known).cast(pa.decimal128(19, 0))
        scaled = pa.Array.from_buffers(pa.decimal128(38, type_.scale), len(whole), whole.buffers())
        return scaled.cast(type_)
    listed = [
        Decimal(int(number)).scaleb(-type_.scale) if is_known else None
        for number, is_known in zip(numbers.tolist(), known.tolist(), strict=True)
    ]
    return pa.array(listed, type_)
