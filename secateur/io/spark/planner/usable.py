"""The part of a Spark query that can be asked here: its filters, and its LIMIT and ORDER BY where they are sound."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from secateur.errors import SecateurError
from secateur.io.scan.planned_scan import Settings
from secateur.io.spark.planner.catalyst import PushedFilter, ScanQuestion
from secateur.pruning.functions.zone_names import known_zone
from secateur.pruning.order import bind_order
from secateur.pruning.predicate.bind import bind
from secateur.pruning.predicate.bound import is_total
from secateur.pruning.predicate.nodes import And, Predicate, Truth
from secateur.pruning.predicate.resolve import Binder


def usable(question: ScanQuestion, schema: pa.Schema, settings: Settings) -> tuple[Predicate, Settings]:
    """Return the conjunction of the filters that can be bound here, and the settings with the query's zone and limit.

    The others are left to Spark. All filters use one time zone: the zone when the query was analysed, even if the
    session's has changed since.

    Soundness
    ---------
    A limit counts the rows of blocks that match whole. So it is used only if every filter is: a block that matches
    the others may not match one that is left to Spark. And only if no filter can raise an error, which a block that is
    not read would hide.
    """
    filters, settings = _in_one_zone(question.filters, settings)
    bound = [(each.predicate, _bound(each.predicate, schema, settings)) for each in filters]
    found = [predicate for predicate, known in bound if known is not None]
    is_exact = len(found) == len(question.filters) and all(is_total(known) for _, known in bound if known is not None)
    if question.limit is not None and is_exact and _is_ordered(question, schema, settings):
        settings = replace(settings, limit=question.limit, order_by=question.order or ())
    return And((Truth(True), *found)), settings


def without_limit(settings: Settings) -> Settings:
    """Return the settings of a plan of all rows that match."""
    return replace(settings, limit=None, order_by=())


def _bound(predicate: Predicate, schema: pa.Schema, settings: Settings) -> Predicate | None:
    try:
        return bind(predicate, schema, session_time_zone=settings.session_time_zone, case_sensitive=True, ansi=True)
    except (SecateurError, RecursionError):
        return None


def _is_ordered(question: ScanQuestion, schema: pa.Schema, settings: Settings) -> bool:
    """Return whether the order is one of columns that mean the same in Spark and here."""
    if question.order is None:
        return False
    try:
        bind_order(question.order, Binder(schema, known_zone(settings.session_time_zone), case_sensitive=True))
    except SecateurError:
        return False
    return True


def _in_one_zone(filters: Iterable[PushedFilter], settings: Settings) -> tuple[list[PushedFilter], Settings]:
    """Keep the filters that use the first zone found in them, or no zone; return the settings with this zone."""
    known = list(filters)
    zones = [zone for each in known for zone in each.zones]
    zone = zones[0] if zones else settings.session_time_zone
    return [each for each in known if each.zones <= {zone}], replace(settings, session_time_zone=zone)
