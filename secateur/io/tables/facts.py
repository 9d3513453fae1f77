"""Show a table in a notebook."""

from __future__ import annotations

import datetime as dt

from secateur.io.tables.table import Table
from secateur.markup import facts_html, table_html
from secateur.pruning.report import counted, human_bytes


def html_of(table: Table) -> str:
    """Return where a table lies, its live files, and its columns if its format declares them. Lists the files."""
    snapshot = table.snapshot()
    listing = snapshot.listing(dt.UTC)
    facts = [
        ("location", table.location),
        ("snapshot", "" if snapshot.id is None else str(snapshot.id)),
        ("data", f"{counted(len(listing.paths), 'file')}, {human_bytes(int(listing.size.sum()))}"),
        ("index", table.store.location),
    ]
    schema = snapshot.declared_schema
    columns = [] if schema is None else [(field.name, str(field.type)) for field in schema]
    return facts_html(type(table).__name__, facts) + (table_html(("column", "type"), columns) if columns else "")
