"""Tables, index structures and predicates for refreshes, and the blocks that a plan keeps."""

from __future__ import annotations

from typing import Any

import secateur as sec
from secateur.io.tables.directory.table import ParquetDirectory

ALL: dict[str, Any] = {
    "bloom": ["i", "s", "d", "wide"],
    "postings": {"small": "blocks", "day": "rows", "i": "ordered", "f": "ordered", "s": "ordered", "wide": "ordered"},
    "ngram": {"s": 2},
    "tokens": ["s"],
    "gaps": ["i", "f"],
}


PREDICATES = [
    *(
        "i = 3",
        "s = 'a'",
        "small IN (1, 7, 100)",
        "d = 1.50",
        "s LIKE '%xa%'",
        "has_token(s, 'b')",
        "i BETWEEN 2 AND 3",
    ),
    *("f > 1e300", "wide = 1000000000000000000.125 OR day = DATE '2000-01-01'", "NOT (i = 3 OR s = 'b')", "g IS NULL"),
]


def kept(table: ParquetDirectory, predicate: str) -> list[dict[str, Any]]:
    """The blocks of a plan, in the order of files."""
    return sorted(
        sec.prune(table, predicate, strict=True).blocks.to_pylist(), key=lambda b: (b["file"], b["row_group"])
    )
