"""Statistics over units in memory, by column, behind the interface that the algebra uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from secateur.errors import SecateurError
from secateur.index.zones import zonemap
from secateur.index.zones.zonemap import ZoneMap
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.predicate.rewrite import rewrite
from secateur.pruning.predicate.sql.parse import parse
from tests.support.checks.units import measured
from tests.support.drawn.strategies import KINDS, ColumnKind, TableSpec, predicates

Rows = Sequence[Sequence[Any]]  # of every unit the values of a column


@dataclass(frozen=True)
class Units:
    """See :class:`secateur.pruning.statistics.Statistics`; columns that are not there are unknown."""

    row_count: np.ndarray
    columns: Mapping[Field, ZoneMap]

    def __len__(self) -> int:
        return len(self.row_count)

    def zones(self, column: Field) -> Zones | None:
        column_zones = self.columns.get(column)
        return None if column_zones is None else column_zones.zones(self.row_count)


@dataclass(frozen=True)
class Case:
    """Units of rows, and a predicate over them."""

    sql: str
    predicate: Predicate
    units: Units


def field_of(kind: ColumnKind) -> Field:
    return Field((kind.name,), kind.type)


@st.composite
def cases(draw: st.DrawFn, most: int = 12) -> Case:
    """A few columns of any type over up to `most` units, empty ones among them, some statistics forgotten."""
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3, unique_by=lambda kind: kind.name))
    pools = {kind.name: draw(st.lists(kind.values, min_size=1, max_size=5)) for kind in kinds}
    spec = TableSpec((), tuple(kinds), (), pools)
    counts = draw(st.lists(st.sampled_from([0, 1, 1, 2, 5]), min_size=1, max_size=most))
    columns = {
        field_of(kind): draw(zone_maps(kind, pools[kind.name], counts)) for kind in kinds if draw(st.integers(0, 9))
    }
    sql = draw(predicates(spec).filter(lambda text: bound(text, spec.schema) is not None))
    predicate = bound(sql, spec.schema)
    assert predicate is not None
    return Case(sql, predicate, Units(np.array(counts), columns))


@st.composite
def zone_maps(draw: st.DrawFn, kind: ColumnKind, pool: Sequence[Any], counts: Sequence[int]) -> ZoneMap:
    """Those of rows with values of a pool, in runs or at random, some of them NULL."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    choices = random.integers(0, len(pool), sum(counts))
    choices = np.sort(choices) if random.random() < 0.5 else choices
    nulls = random.random(len(choices)) < random.choice([0, 0.3, 1])
    values = [None if null else pool[i] for i, null in zip(choices.tolist(), nulls.tolist(), strict=True)]
    ends = np.cumsum(counts).tolist()
    zones, _ = measured(kind, [values[end - n : end] for n, end in zip(counts, ends, strict=True)])
    return forgotten(zones, random.random(len(counts)) < random.choice([0, 0.2]))


def forgotten(zone_map: ZoneMap, units: np.ndarray) -> ZoneMap:
    """The same with nothing known of some units."""
    blank = zonemap.unknown(zone_map.lower.kind, len(units))
    return ZoneMap(
        zonemap.choose(units, blank.lower, zone_map.lower),
        zonemap.choose(units, blank.upper, zone_map.upper),
        np.where(units, -1, zone_map.null_count),
        np.where(units, -1, zone_map.nan_count),
    )


def bound(sql: str, schema: pa.Schema) -> Predicate | None:
    """The predicate as stages get it; None where it does not bind."""
    try:
        return rewrite(bind(parse(sql), schema))
    except SecateurError:
        return None
