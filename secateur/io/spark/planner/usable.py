"""The part of a Spark query that can be asked here: its filters, and its LIMIT and ORDER BY where they are sound."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from secateur.errors import SecateurError
from secateur.io.scan.planned_scan import Settings
from secateur.io.spark.planner.catalyst import PushedFilter, ScanQuestion
from secateur.pruning.aggregates.answers import AggregateCall
from secateur.pruning.functions.zone_names import known_zone
from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.binding.resolve import Binder, resolve
from secateur.pruning.predicate.bound_walks import is_total
from secateur.pruning.predicate.nodes import And, Column, Predicate, Truth


@dataclass(frozen=True)
class Usable:
    """A query as it is planned here: a filter, the settings with its zone and limit, and what is aggregated by what."""

    predicate: Predicate
    settings: Settings
    aggregates: tuple[AggregateCall, ...] = ()
    groups: tuple[Column, ...] = ()


def usable(question: ScanQuestion, schema: pa.Schema, settings: Settings) -> Usable:
    """Return the conjunction of the filters that can be bound here, and what else of a query is sound with them.

    Other filters are left to Spark. All filters use one time zone: the zone when the query was analysed, even if the
    session's has changed since.

    Soundness
    ---------
    A limit and an aggregate count the rows of blocks that match whole. So they are used only if every filter is: a
    block that matches the others may not match one that is left to Spark. And only if no filter can raise an error,
    which a block that is not read would hide.
    """
    filters, settings = _in_one_zone(question.filters, settings)
    bound = [(pushed.predicate, _bound(pushed.predicate, schema, settings)) for pushed in filters]
    known = [(predicate, condition) for predicate, condition in bound if condition is not None]
    is_exact = len(known) == len(question.filters) and all(is_total(condition) for _, condition in known)
    if question.limit is not None and is_exact and _is_ordered(question, schema, settings):
        settings = replace(settings, limit=question.limit, order_by=question.order or ())
    of_rows = Usable(And((Truth(True), *(predicate for predicate, _ in known))), settings)
    if not is_exact or settings.limit is not None or question.aggregates is None or question.groups is None:
        return of_rows
    binder = _binder(schema, settings)
    columns = [*question.groups, *(call.column for call in question.aggregates if call.column is not None)]
    if not all(_resolves(column, binder) for column in columns):
        return of_rows
    return replace(of_rows, aggregates=question.aggregates, groups=question.groups)


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
    binder = _binder(schema, settings)
    return question.order is not None and all(_resolves(item.column, binder) for item in question.order)


def _binder(schema: pa.Schema, settings: Settings) -> Binder:
    return Binder(schema, known_zone(settings.session_time_zone), case_sensitive=True)


def _resolves(column: Column, binder: Binder) -> bool:
    try:
        resolve(column, binder)
    except SecateurError:
        return False
    return True


def _in_one_zone(filters: Iterable[PushedFilter], settings: Settings) -> tuple[list[PushedFilter], Settings]:
    """Keep the filters that use the first zone found in them, or no zone; return the settings with this zone."""
    known = list(filters)
    zones = [zone for part in known for zone in part.zones]
    zone = zones[0] if zones else settings.session_time_zone
    return [part for part in known if part.zones <= {zone}], replace(settings, session_time_zone=zone)
