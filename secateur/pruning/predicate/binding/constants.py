"""Functions of literals: Spark's value, where Python surely computes the same.

Uncertain cases (other alphabets in ``lower``, formats with month names, floats that equal no integer) have no value
here. Sources: Spark's ``UTF8String``, ``Concat``, ``StringLPad``, ``MakeDate``, ``Pow``, ``ParseToDate``.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from itertools import cycle, islice

from secateur.pruning.predicate.binding.temporal import is_agreed
from secateur.pruning.predicate.nodes import INTEGERS, Literal

MOST_CHARACTERS = 1 << 16  # in a text that is made here
_EXACT = 2**53  # doubles represent all integers up to here


def value_of(name: str, arguments: Sequence[Literal], zone: dt.tzinfo) -> Literal | None:
    """Return the value of a function of literals, NULL if one of them is NULL; None if only Spark can say."""
    if name not in _FUNCTIONS:
        return None
    if any(argument.value is None for argument in arguments):
        return Literal(None, "null")
    try:
        return _FUNCTIONS[name](arguments, zone)
    except (TypeError, ValueError, OverflowError):  # argument types that these functions do not accept here
        return None


def text_of(literal: Literal) -> str | None:
    """Return a text literal, or the text that a cast makes of a literal."""
    match literal:
        case Literal(str(text), "string"):
            return text
        case Literal(bool(truth), "boolean"):
            return "true" if truth else "false"
        case Literal(int(number), type_) if type_ in INTEGERS:
            return str(number)
        case _:
            return None


def decimal_of_text(text: str, precision: int, scale: int) -> Decimal | None:
    """Return the decimal that a cast makes of a text; None if it is not a number or does not fit."""
    if not re.fullmatch(r"\s*[+-]?(\d{1,38}\.?\d{0,38}|\.\d{1,38})\s*", text, re.ASCII):
        return None
    value = Decimal(text.strip()).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, Context(prec=100))
    return value if abs(value) < Decimal(10) ** (precision - scale) else None


def _texts(arguments: Sequence[Literal]) -> list[str]:
    texts = [text_of(argument) for argument in arguments]
    if None in texts:
        raise TypeError("no text")
    return [text for text in texts if text is not None]


def _integers(arguments: Sequence[Literal]) -> list[int]:
    if any(argument.type not in INTEGERS for argument in arguments):
        raise TypeError("no integer")
    return [int(argument.value) for argument in arguments]  # type: ignore[arg-type]


def _text(text: str) -> Literal | None:
    return Literal(text, "string") if len(text) <= MOST_CHARACTERS else None


# ---- text ------------------------------------------------------------------------------------------------------------


def _concat(arguments: Sequence[Literal], zone: dt.tzinfo) -> Literal | None:
    return _text("".join(_texts(arguments)))


def _mapped(mapping: Callable[[str], str], *, of_ascii: bool = False) -> Callable[..., Literal | None]:
    def value(arguments: Sequence[Literal], zone: dt.tzinfo) -> Literal | None:
        (text,) = _texts(arguments)
        return _text(mapping(text)) if text.isascii() or not of_ascii else None

    return value


def _replace(arguments: Sequence[Literal], zone: dt.tzinfo) -> Literal | None:
    text, old, new = _texts(arguments)
    if len(text) * (len(new) + 1) > MOST_CHARACTERS:
        return None
    return _text(text.replace(old, new) if old else text)


def _substring(arguments: Sequence[Literal], zone: dt.tzinfo) -> Literal | None:
    (text,), (at, *rest) = _texts(arguments[:1]), _integers(arguments[1:])
    start = at - 1 if at > 0 else len(text) + at if at else 0
    stop = start + (rest[0] if rest else len(text) + abs(start))
    return _text(text[max(start, 0) : max(stop, start, 0)])


def _right(arguments: Sequence[Literal], zone: dt.tzinfo) -> Literal | None:
    (text,), (count,) = _texts(arguments[:1]), _integers(arguments[1:])
    return _text(text[-count:] if count > 0 else "")


def _padded(*, left: bool) -> Callable[..., Literal | None]:
    def value(arguments: Sequence[Literal], zone: dt.tzinfo) -> Literal | None:
        (text,), (length,) = _texts(arguments[:1]), _integers(arguments[1:2])
        (pad,) = _texts(arguments[2:]) if len(arguments) > 2 else (" ",)
        if length > MOST_CHARACTERS:
            return None
        return _text(pad_to(text, length, pad, left=left))

    return value


def pad_to(text: str, length: int, pad: str, *, left: bool) -> str:
    """Pad or cut a text to exactly `length` characters; it stays shorter if there is nothing to add."""
    missing = length - len(text)
    if missing <= 0 or not pad:
        return text[: max(length, 0)]
    filling = "".join(islice(cycle(pad), missing))
    return filling + text if left else text + filling


# ---- numbers and dates -----------------------------------------------------------------------------------------------


def _power(arguments: Sequence[Literal], zone: dt.tzinfo) -> Literal | None:
    """Java's ``pow`` of integers is exact if a double can hold the result."""
    base, exponent = _integers(arguments)
    if exponent < 0 or (abs(base) > 1 and exponent > 53) or abs(base) > _EXACT or abs(base**exponent) > _EXACT:
        return None
    return Literal(float(base**exponent), "double")


def _make_date(arguments: Sequence[Literal], zone: dt.tzinfo) -> Literal | None:
    year, month, day = _integers(arguments)
    return Literal(dt.date(year, month, day), "date")


_FIELDS: Mapping[str, str] = {  # fields of a format, each with a fixed number of digits
    "yyyy": r"(?P<year>\d{4})",
    "MM": r"(?P<month>\d\d)",
    "dd": r"(?P<day>\d\d)",
    "HH": r"(?P<hour>\d\d)",
    "mm": r"(?P<minute>\d\d)",
    "ss": r"(?P<second>\d\d)",
}
_FORMAT = re.compile("|".join(_FIELDS) + r"|[-/.: ]")


def _moment(arguments: Sequence[Literal]) -> dt.datetime:
    """Parse a text by a format. Raises ValueError if either is not a simple one."""
    text, layout = _texts(arguments)
    parts = _FORMAT.findall(layout)
    fields = [part for part in parts if part in _FIELDS]
    if "".join(parts) != layout or len(set(fields)) < len(fields) or not {"yyyy", "MM", "dd"} <= set(fields):
        raise ValueError("a format that only Spark knows")
    match = re.fullmatch("".join(_FIELDS.get(part, re.escape(part)) for part in parts), text, re.ASCII)
    if match is None:
        raise ValueError("a text of another format")
    return dt.datetime(**{name: int(digits) for name, digits in match.groupdict().items()})  # type: ignore[arg-type]


def _to_date(arguments: Sequence[Literal], zone: dt.tzinfo) -> Literal | None:
    """Convert by way of an instant, which a clock change may move to another day."""
    moment = _moment(arguments)
    local = moment.replace(tzinfo=zone).astimezone(dt.UTC).astimezone(zone)
    same = is_agreed(moment, zone) and local.date() == moment.date()
    return Literal(moment.date(), "date") if same else None


def _to_timestamp(arguments: Sequence[Literal], zone: dt.tzinfo) -> Literal | None:
    return Literal(str(_moment(arguments)), "timestamp")


_FUNCTIONS: Mapping[str, Callable[[Sequence[Literal], dt.tzinfo], Literal | None]] = {
    "concat": _concat,
    "lower": _mapped(str.lower, of_ascii=True),
    "upper": _mapped(str.upper, of_ascii=True),
    "trim": _mapped(lambda text: text.strip(" ")),
    "ltrim": _mapped(lambda text: text.lstrip(" ")),
    "rtrim": _mapped(lambda text: text.rstrip(" ")),
    "replace": _replace,
    "substring": _substring,
    "right": _right,
    "lpad": _padded(left=True),
    "rpad": _padded(left=False),
    "pow": _power,
    "make_date": _make_date,
    "to_date": _to_date,
    "to_timestamp": _to_timestamp,
}
