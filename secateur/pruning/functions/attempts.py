"""``try_add`` and similar: NULL where the operator would raise an error. Source: Spark's ``EvalMode.TRY``."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import pyarrow as pa

from secateur.pruning.functions import arithmetic
from secateur.pruning.functions.or_null import null_on_error
from secateur.pruning.interval import Argument, Function, Rule


def _attempt(symbol: str) -> Rule:
    def rule(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
        function = arithmetic.RULES[symbol](arguments, zone)
        if function is None:
            return None
        certain = symbol != "*" or function.type != pa.int64()  # products are checked in doubles
        return null_on_error(function, f"try {function.name}", certain=certain, keeps_order=False)

    return rule


RULES: dict[str, Rule] = {
    "try_add": _attempt("+"),
    "try_subtract": _attempt("-"),
    "try_multiply": _attempt("*"),
    "try_divide": _attempt("/"),
    "try_mod": _attempt("%"),
}
