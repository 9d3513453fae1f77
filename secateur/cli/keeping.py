"""The commands that maintain an index: inspect, verify, vacuum and drop. Only ``--spark`` starts Spark."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import click

import secateur as sec
from secateur.cli.options import TableArguments, columns_option, json_option, table_options
from secateur.cli.output import (
    BAD,
    CAUTION,
    GOOD,
    QUIET,
    Cell,
    OutputColumn,
    Sheet,
    is_terminal,
    print_json,
    print_line,
    say,
    show_facts,
    show_sheet,
)
from secateur.cli.spark import spark_session, step_progress
from secateur.cli.status import FOUND_WRONG, on_the_command_line
from secateur.cli.tables import TABLES, show_table
from secateur.index.model import StoredFile, is_own
from secateur.index.naming import ColumnNaming
from secateur.index.segments.snapshot import Snapshot
from secateur.index.zones.sort_key import parse_sort_key
from secateur.io.scan.index_coverage import Covered
from secateur.io.scan.opened_table import open_snapshot_of
from secateur.maintain.verify import RANDOM_PREDICATES, Verification
from secateur.pruning.explain.explanation import STRUCTURES
from secateur.pruning.predicate.index_paths import is_expression
from secateur.pruning.report import Faults, human_bytes


@dataclass(frozen=True)
class ColumnRow:
    """A column of an index, and how it is indexed."""

    name: str
    type: str
    zone_map: bool
    pages: bool
    filters: tuple[str, ...]
    sort_key: int | None  # position in the sort key, from 1
    bytes: Mapping[str, int]  # by structure


@click.command()
@table_options
@click.argument("what", required=False, type=click.Choice(TABLES), metavar="[TABLE]")
@columns_option("--by", help="Columns of the clustering: each of them, and their tuples in order.")
@click.option(
    "--html", "page", type=click.Path(dir_okay=False), metavar="FILE", help="Write the clustering as a page instead."
)
@json_option
def inspect(source: TableArguments, what: str | None, by: tuple[str, ...], page: str | None, as_json: bool) -> None:
    """Show what the index holds: columns, sizes, and which live files it covers.

    With TABLE, list something else instead: the snapshots, manifests, files or blocks (row groups) of the table, the
    segments of the index, what it covers of every column, or how well the table is clustered.

    \b
    Examples:
      secateur inspect lake/events
      secateur inspect lake/events coverage
      secateur inspect lake/events clustering --by country,ts
      secateur inspect lake/events clustering --by country,ts --html clustering.html
      secateur inspect db.events files --catalog prod --as-of 2026-01-31 --json
    """
    if by and what != "clustering":
        raise click.UsageError("--by is about the clustering: secateur inspect TABLE clustering --by COLUMN,...")
    if page and what != "clustering":
        raise click.UsageError("--html is about the clustering: secateur inspect TABLE clustering --html FILE")
    table = source.open()
    if page is not None:
        Path(page).write_text(sec.inspect.clustering_page(table, by=by), encoding="utf-8")
        return
    if what is not None:
        rows = sec.inspect.clustering(table, by=by) if by else getattr(sec.inspect, what)(table)
        show_table(rows, as_json)
        return
    described = sec.describe_index(table)
    opened = open_snapshot_of(table, dt.UTC, Faults(strict=True))
    assert opened.catalog.snapshot is not None, "describe_index raises without an index"
    columns = _columns(opened.catalog.snapshot, opened.table.naming, described.coverage)
    live = len(opened.catalog.files)
    covered = live - len(opened.catalog.coverage.uncovered)
    if as_json:
        coverage = {"live_files": live, "covered": covered, "uncovered": live - covered}
        print_json({**asdict(described), "columns": [asdict(column) for column in columns], "coverage": coverage})
        return
    show_facts([*described.facts(), ("covers", f"{covered:,} of {live:,} live files")])
    click.echo()
    show_sheet(_columns_sheet(columns))
    if covered < live:
        hint = on_the_command_line("secateur refresh PATH")
        say(f"{live - covered:,} files are not covered and pruned by their footers only: {hint}")


def _columns(snapshot: Snapshot, naming: ColumnNaming, coverage: Sequence[Covered]) -> list[ColumnRow]:
    """Return the index's columns by their table names; a column that the table has lost, by its index name."""
    sizes: dict[str, dict[str, int]] = {}
    for structure in coverage:
        sizes.setdefault(structure.column, {})[structure.structure] = structure.bytes

    def name_of(path: tuple[str, ...]) -> str:
        return ".".join(naming.in_table(path))

    options = snapshot.options
    filters: dict[str, list[str]] = {}
    for filter_ in snapshot.filters:
        filters.setdefault(name_of(filter_.path), []).append(filter_.kind)
    columns = [column for column in snapshot.columns if is_own(column.path)]
    names = [name_of(column.path) for column in columns]
    sort_key = [name_of(column.path) for column in parse_sort_key(options.sort_key)]
    return [
        ColumnRow(
            name,
            str(column.type),
            zone_map=True,
            pages=options.pages and not is_expression(column.path),
            filters=tuple(filters.get(name, ())),
            sort_key=sort_key.index(name) + 1 if name in sort_key else None,
            bytes=sizes.get(name, {}),
        )
        for name, column in zip(names, columns, strict=True)
    ]


def _size(column: ColumnRow, structure: str) -> str:
    return human_bytes(column.bytes[structure]) if structure in column.bytes else ""


def _columns_sheet(columns: list[ColumnRow]) -> Sheet:
    heads = ("column", "type", "zone map", "pages", "filters", "sort key")
    rows = (
        (
            Cell(column.name),
            Cell(column.type, QUIET),
            *(Cell(_size(column, structure)) for structure in ("zone map", "pages")),
            Cell(", ".join(f"{kind} {_size(column, STRUCTURES[kind])}".strip() for kind in column.filters)),
            Cell("" if column.sort_key is None else str(column.sort_key)),
        )
        for column in columns
    )
    return Sheet(tuple(OutputColumn(head, right=False) for head in heads), tuple(rows))


@click.command()
@table_options
@click.option(
    "--sample",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="SHARE",
    help="The share of the blocks to compare, 1 for all; by default at most 256 of them. Implies --spark.",
)
@click.option(
    "--predicate",
    "predicates",
    multiple=True,
    metavar="SQL",
    help="Prove that the blocks left out for this predicate hold no match. Can be repeated. Implies --spark.",
)
@click.option(
    "--random-predicates",
    type=click.IntRange(min=0),
    default=RANDOM_PREDICATES,
    show_default=True,
    metavar="N",
    help="With --spark, prove the plans of this many predicates, made of values of the table.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Draw the same blocks, values and predicates again.")
@json_option
@click.pass_context
def verify(
    context: click.Context,
    source: TableArguments,
    sample: float | None,
    predicates: tuple[str, ...],
    random_predicates: int,
    seed: int | None,
    as_json: bool,
) -> None:
    """Read every byte of the index and check it.

    Checks checksums and structure, and counts the live files that the index covers. With --spark, reads blocks again,
    compares every value with the index, and checks that the blocks left out for random and given predicates hold no
    match. Exits with 1 if a fault is found. An unreadable index leaves queries correct; one with wrong content must be
    dropped and built again.

    \b
    Examples:
      secateur verify lake/events || secateur index lake/events --sort-key ts --bloom user_id
      secateur verify lake/events --spark --sample 0.01 --predicate "user_id = 42"
    """
    table = source.open()
    with ExitStack() as stack:
        is_audit = source.cluster is not None or sample is not None or bool(predicates)
        spark = stack.enter_context(spark_session(source.cluster, context.obj)) if is_audit else None
        verification = sec.verify_index(
            table,
            spark=spark,
            sample=sample,
            predicates=predicates,
            random_predicates=random_predicates,
            seed=seed,
            on_progress=stack.enter_context(step_progress()),
        )
    if as_json:
        print_json({**asdict(verification), "sound": verification.sound})
    else:
        _show_verification(verification)
    if not verification.sound:
        context.exit(FOUND_WRONG)


def _show_verification(verification: Verification) -> None:
    show_facts(verification.facts())
    for name, text in verification.findings():
        print_line(f"{name}: {text}", BAD if name == "fault" else CAUTION)
    if verification.sound:
        print_line("no fault found", GOOD)
    elif verification.is_repairable:
        print_line(on_the_command_line("rebuild the broken files: secateur refresh --repair PATH"), BAD)
    else:
        print_line("drop the index and build it again", BAD)


@click.command()
@table_options
@click.option("--dry-run", is_flag=True, help="Only list what would be removed.")
@click.option(
    "--grace-hours",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    help="Keep what was written within these hours: readers or a build may still need it.",
)
@json_option
def vacuum(source: TableArguments, dry_run: bool, grace_hours: float, as_json: bool) -> None:
    """Remove index files that nothing uses any more.

    These are the files of older snapshots, and leftovers of interrupted builds. The data is never touched.

    \b
    Example:
      secateur vacuum lake/events --dry-run
    """
    removed = sec.vacuum_index(source.open(), dry_run=dry_run, grace_seconds=grace_hours * 3600)
    _show_removed(removed, dry_run, as_json)


@click.command()
@table_options
@click.option("--dry-run", is_flag=True, help="Only list what would be removed.")
@click.option("--yes", is_flag=True, help="Do not ask. Needed where there is no terminal to ask on.")
@json_option
def drop(source: TableArguments, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Remove the whole index. The data is never touched.

    \b
    Example:
      secateur drop lake/events --dry-run
    """
    table = source.open()
    if not dry_run and not yes:
        if not is_terminal(sys.stdin):
            raise click.UsageError(f"nothing was removed: add --yes to remove the index at {table.store.location}")
        click.confirm(f"Remove the index at {table.store.location}?", abort=True, err=True)
    _show_removed(sec.drop_index(table, dry_run=dry_run), dry_run, as_json)


def _show_removed(removed: list[StoredFile], dry_run: bool, as_json: bool) -> None:
    total = sum(file.size for file in removed)
    if as_json:
        files = [{"name": file.name, "bytes": file.size} for file in removed]
        print_json({"dry_run": dry_run, "files": files, "bytes": total})
        return
    if removed:
        rows = tuple((Cell(file.name), Cell(human_bytes(file.size))) for file in removed)
        show_sheet(Sheet((OutputColumn("file", right=False), OutputColumn("size")), rows))
    done = "would be removed" if dry_run else "removed"
    print_line(f"{len(removed):,} files {done}, {human_bytes(total)}")
