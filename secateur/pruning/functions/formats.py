"""Format dates and timestamps by a pattern that begins with the year.

Source: Spark's ``date_format``, which reads patterns as ``DateTimeFormatter`` does. With fixed-width fields from the
year downwards the text sorts as the times do; other patterns have no rule.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.pruning.functions import calendar
from secateur.pruning.functions.calendar import DAY_SECONDS
from secateur.pruning.functions.clocks import clock
from secateur.pruning.functions.spans import (
    DATE,
    TO_SECONDS,
    chain,
    function_of,
    instants_of,
    local_seconds_of,
    text,
    through,
)
from secateur.pruning.functions.types import is_temporal
from secateur.pruning.interval import Argument, Function, Rule

_FIELDS = {"yyyy": (0, 4), "MM": (5, 7), "dd": (8, 10), "HH": (11, 13), "mm": (14, 16), "ss": (17, 19)}
_PARTS = re.compile(r"(?P<field>(?P<letter>[A-Za-z])(?P=letter)*)|(?P<mark>'[^']+'|[^A-Za-z'\[\]{}#]+)", re.ASCII)

Form = Callable[[np.ndarray], pa.Array]


def _date_format(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    """Compute ``date_format(x, pattern)``; dates and times without zone are cast to TIMESTAMP."""
    match arguments:
        case [Argument(type=source), Argument(key=bytes(pattern))] if is_temporal(source):
            form = _form(pattern.decode("utf-8", "replace"))
        case _:
            return None
    instants = instants_of(source, zone)
    if form is None or instants is None:
        return None
    by_instant = chain(instants, TO_SECONDS, through(clock(zone).local))
    step = local_seconds_of(source, zone) if source == DATE else by_instant
    return function_of("date_format", text(DAY_SECONDS, form), source, step, zone=zone, position=(0, 2))


def _form(pattern: str) -> Form | None:
    """Return the formatter of local seconds, or None for patterns whose text does not sort as the times do."""
    parts = [(match["field"] or "", match["mark"] or "") for match in _PARTS.finditer(pattern)]
    if "".join(field or mark for field, mark in parts) != pattern:
        return None
    fields = tuple(field for field, _ in parts if field)
    if not fields or fields != tuple(_FIELDS)[: len(fields)] or not parts[0][0]:
        return None

    def form(seconds: np.ndarray) -> pa.Array:
        whole = calendar.second_text(seconds)
        texts = [pc.utf8_slice_codeunits(whole, *_FIELDS[f]) if f else pa.scalar(m.strip("'")) for f, m in parts]
        return pc.binary_join_element_wise(*texts, "") if len(texts) > 1 else texts[0]

    return form


RULES: dict[str, Rule] = {"date_format": _date_format, "to_char": _date_format, "to_varchar": _date_format}
