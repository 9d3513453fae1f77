"""Cast types, by all the names that Spark SQL has for them."""

from __future__ import annotations

import re

from secateur.errors import InvalidPredicate

_NAMES = {
    **{name: name.upper() for name in ("bigint", "binary", "boolean", "date", "double", "float", "int", "smallint")},
    **{name: name.upper() for name in ("string", "timestamp", "timestamp_ltz", "timestamp_ntz", "tinyint")},
    **{"byte": "TINYINT", "short": "SMALLINT", "integer": "INT", "long": "BIGINT", "real": "FLOAT"},
}
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")


def sql_type(name: str) -> str:
    """Return the type as a cast prints it: ``long`` is BIGINT. Raises InvalidPredicate for other types."""
    plain = name.strip().lower()
    if plain in _NAMES:
        return _NAMES[plain]
    if (match := _DECIMAL.fullmatch(plain)) is not None:
        parameters = ", ".join(number for number in match.groups() if number is not None)
        return f"DECIMAL({parameters})" if parameters else "DECIMAL"
    raise InvalidPredicate(f"cannot cast to {name!r}: only to numbers, strings, binary, booleans, dates and timestamps")
