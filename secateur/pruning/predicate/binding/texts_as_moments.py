"""Constant text among the arguments of functions of dates and timestamps, which Spark casts."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa

from secateur.errors import IncomparableLiteral
from secateur.pruning.functions.types import LOCAL
from secateur.pruning.predicate.binding.typed_constants import NoRule, constant_of
from secateur.pruning.predicate.bound import Constant, Operand
from secateur.pruning.predicate.nodes import Literal

_DATE, _MOMENT = "date", "timestamp"
_TEXTS = {  # functions, and the type that Spark casts text to for each argument
    **dict.fromkeys(("add_months", "date_add", "date_sub", "next_day", "trunc"), (_DATE, None)),
    **dict.fromkeys(("date_format", "from_utc_timestamp", "to_utc_timestamp"), (_MOMENT, None)),
    "date_trunc": (None, _MOMENT),
    "datediff": (_DATE, _DATE),
    **dict.fromkeys(("last_day", "year", "quarter", "month", "day"), (_DATE,)),
    **dict.fromkeys(("dayofweek", "dayofyear", "weekday", "weekofyear"), (_DATE,)),
    "months_between": (_MOMENT, _MOMENT, None),
    "timestampadd": (None, None, _MOMENT),
    "timestampdiff": (None, _MOMENT, _MOMENT),
}


def texts_as_moments(name: str, arguments: list[Operand], zone: dt.tzinfo) -> list[Operand]:
    """Convert constant text among the arguments of a date or timestamp function, as Spark would.

    Raises NoRule for text that is not readable here.
    """
    wanted: tuple[str | None, ...] = _TEXTS.get(name, ())
    if name == "elapsed":  # text is read as the type of the other side
        wanted = tuple(_DATE if pa.types.is_date32(other.type) else _MOMENT for other in reversed(arguments))
        wanted = wanted if LOCAL not in [argument.type for argument in arguments] else ()
    pairs = zip(arguments, (*wanted, *(None,) * len(arguments)), strict=False)
    return [_as_moment(argument, type_, zone) for argument, type_ in pairs]


def _as_moment(operand: Operand, type_: str | None, zone: dt.tzinfo) -> Operand:
    match operand:
        case Constant(key=bytes(text)) if type_ is not None and operand.type == pa.string():
            try:
                return constant_of(Literal(text.decode("utf-8", "replace"), type_), zone)
            except IncomparableLiteral as error:  # Spark fails on a row, if there is one
                raise NoRule(str(error)) from None
        case _:
            return operand
