"""Timestamps shifted from UTC to a zone's clock, and back.

Source: Spark's ``DateTimeUtils.fromUTCTime`` and ``toUTCTime``. The session's time zone matters only if a date or a
time without zone is first cast to TIMESTAMP.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from secateur.pruning.functions.calendar import SECOND
from secateur.pruning.functions.clocks import clock
from secateur.pruning.functions.spans import chain, function_of, instants_of, integers, shifted
from secateur.pruning.functions.types import INSTANT, is_temporal
from secateur.pruning.functions.zone_names import zone_of
from secateur.pruning.interval import Argument, Function, Rule


def _rule(name: str, *, to_utc: bool) -> Rule:
    def rule(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
        match arguments:
            case [Argument(type=source), Argument(key=bytes(key))] if is_temporal(source):
                there = zone_of(key.decode("utf-8", "replace"))
            case _:
                return None
        instants = instants_of(source, zone)
        if there is None or instants is None:
            return None
        moved = clock(there, SECOND)
        step = chain(instants, shifted(moved.instants if to_utc else moved.local))
        full_name = f"{name}[{zone}]" if source != INSTANT else name
        direction = 1 if source == INSTANT else 0
        return function_of(full_name, integers(INSTANT), source, step, zone=there, direction=direction, position=(0, 2))

    return rule


RULES: dict[str, Rule] = {
    "from_utc_timestamp": _rule("from_utc_timestamp", to_utc=False),
    "to_utc_timestamp": _rule("to_utc_timestamp", to_utc=True),
}
