"""Conditions of remembered verdicts as text, for other processes: SQL, and what it meant to the one that wrote it.

docs/format.md, "Verdicts on local disk". A condition is written only if its text, read again, is the same condition;
and it is used only where the text means what it meant then: the same columns of the same types, and the same keys.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache

import pyarrow as pa

from secateur.errors import SecateurError
from secateur.io.scan.kept.fingerprint import fingerprint
from secateur.io.scan.kept.verdict_memory import KnownCondition
from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.predicate.rewrite import rewrite

MOST_TEXT = 4 << 10  # characters of a condition that is written; longer ones take long to parse


@dataclass(frozen=True)
class KeptCondition:
    """A condition as it is written, with what its text does not say."""

    sql: str
    fingerprint: str
    names: tuple[str, ...]  # of its top-level columns
    stored: tuple[tuple[tuple[str, ...], str], ...]  # paths of its fields as an index names them, and their types
    session_time_zone: str
    ansi: bool
    rests_on: str | None

    @cached_property
    def digest(self) -> str:
        """What distinguishes it from every other condition of the table."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    @cached_property
    def columns(self) -> frozenset[str]:
        """The names of its columns, for quick comparison."""
        return frozenset(self.names)

    def read(self, schema: pa.Schema) -> Predicate | None:
        """Return the condition bound to a table's schema; None where its text has another meaning there, or none."""
        columns = [schema.field(name) for name in self.names if name in schema.names]
        if len(columns) < len(self.names):
            return None
        condition = _bound(self.sql, pa.schema(columns), self.session_time_zone, ansi=self.ansi)
        return condition if condition is not None and fingerprint(condition) == self.fingerprint else None


def written(known: KnownCondition, schema: pa.Schema) -> KeptCondition | None:
    """Return a condition as text; None if its text is not the same condition when it is read again."""
    condition, zone = known.condition, known.session_time_zone
    sql, names = str(condition), tuple(sorted(known.columns))
    if len(sql) > MOST_TEXT or not set(names) <= set(schema.names):
        return None
    if _bound(sql, pa.schema([schema.field(name) for name in names]), zone, ansi=known.ansi) != condition:
        return None
    return KeptCondition(sql, fingerprint(condition), names, types_of(known.stored), zone, known.ansi, known.rests_on)


def types_of(fields: Sequence[Field]) -> tuple[tuple[tuple[str, ...], str], ...]:
    """Return the paths and types of fields as they are written."""
    return tuple((field.path, str(field.type)) for field in fields)


@lru_cache(maxsize=1024)
def _bound(sql: str, schema: pa.Schema, session_time_zone: str, *, ansi: bool) -> Predicate | None:
    """Parse and bind a condition without a Spark session; None where that fails."""
    from secateur.pruning.predicate.sql.parse import parse  # importing sqlglot takes longer than planning

    try:
        tree = parse(sql)
        return rewrite(bind(tree, schema, session_time_zone=session_time_zone, case_sensitive=False, ansi=ansi))
    except (SecateurError, ValueError):
        return None
