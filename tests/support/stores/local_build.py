"""Build indexes in this process, from a BuildOptions value."""

from __future__ import annotations

from secateur.index.build.tasks import run_in_process
from secateur.index.model import BuildOptions
from secateur.io.tables.table import Table
from secateur.maintain.build import build_with


def index_here(table: Table, options: BuildOptions) -> None:
    """Index a table that can be written."""
    build_with(table, run_in_process, options)
