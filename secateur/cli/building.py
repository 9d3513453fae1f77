"""The commands that write an index: index, refresh and optimize."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import click

import secateur as sec
from secateur.cli.options import TableArguments, columns_option, json_option, table_options
from secateur.cli.output import CAUTION, count, print_json, say, share, show_facts
from secateur.cli.spark import build_progress, spark_for_build
from secateur.cli.status import Interrupted
from secateur.cli.structures import postings_of, text_filters
from secateur.index.segments.snapshot_files import snapshot_numbers
from secateur.io.tables.table import Table
from secateur.maintain.build import require_columns
from secateur.maintain.describe import IndexSnapshot
from secateur.maintain.estimate import BuildEstimate, Saving
from secateur.maintain.refresh import Refreshed
from secateur.pruning.report import human_bytes


@click.command()
@table_options
@columns_option("--sort-key", help="Columns by which the data is clustered, coarsest first.")
@columns_option("--bloom", help="Columns to look up by value: ids, keys.")
@columns_option("--native", help="As --bloom, with the bloom filters that the data files already have.")
@columns_option("--postings", help="Keep the blocks that hold each value of these columns.")
@columns_option("--row-postings", help="As --postings, with the rows too.")
@columns_option("--ordered-postings", help="Keep the values of these columns in order, with their rows: for ranges.")
@columns_option(
    "--ngram",
    help="Text columns to search for substrings: LIKE '%needle%'. message:fold ignores case, message:4 makes grams of "
    "4 bytes.",
)
@columns_option("--tokens", help="Text columns to search for whole words; message:fold ignores case.")
@columns_option("--auto", help="Columns that are indexed as a sample suggests; * for all.")
@columns_option("--gaps", help="Numbers and times with outliers: keep the widest gaps between their values.")
@columns_option(
    "--zone-map", metavar="SQL,...", help="Keep the bounds of these expressions, such as 'price * quantity'."
)
@columns_option("--sum", "sums", help="Keep the sums of these integers and decimals, for sum and avg.")
@click.option(
    "--fpr",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="False-positive rate of the bloom filters. By default, looking up five absent values reads one block.",
)
@click.option(
    "--no-pages",
    is_flag=True,
    help="Leave out the files' page index: the index is smaller, and queries read whole row groups.",
)
@click.option(
    "--no-page-locations", is_flag=True, help="Leave out page locations: reading single pages then opens footers."
)
@click.option("--segment-blocks", type=click.IntRange(min=1), metavar="N", help="Row groups per index segment.")
@click.option("--max-bytes", metavar="SIZE", help="Build no index larger than this: 20MB, or 5% of the data.")
@click.option("--dry-run", is_flag=True, help="Only say what the index would cost: build a part of it, and remove it.")
@click.option(
    "--for",
    "predicates",
    multiple=True,
    metavar="SQL",
    help="With --dry-run, say what the index would save for this predicate. Can be repeated.",
)
@json_option
@click.pass_obj
def index(
    verbose: bool,
    source: TableArguments,
    sort_key: tuple[str, ...],
    bloom: tuple[str, ...],
    native: tuple[str, ...],
    postings: tuple[str, ...],
    row_postings: tuple[str, ...],
    ordered_postings: tuple[str, ...],
    ngram: tuple[str, ...],
    tokens: tuple[str, ...],
    auto: tuple[str, ...],
    gaps: tuple[str, ...],
    zone_map: tuple[str, ...],
    sums: tuple[str, ...],
    fpr: float | None,
    no_pages: bool,
    no_page_locations: bool,
    segment_blocks: int | None,
    max_bytes: str | None,
    dry_run: bool,
    predicates: tuple[str, ...],
    as_json: bool,
) -> None:
    """Build the index of a table.

    Reads every file's footer, and the columns that get a filter, postings, gaps or sums. Runs in this process, or as a
    Spark job if the table is larger than 4 GiB or --spark is given. Zone maps cover every column. Most options take
    expressions as well as columns. Readers use the old index until the new one is complete.

    \b
    Examples:
      secateur index lake/events
      secateur index lake/events --sort-key ts --bloom user_id,session_id
      secateur index lake/events --bloom "user_id,lower(name)" --zone-map "price * quantity"
      secateur index lake/events --bloom user_id --dry-run --for "user_id = 42"
    """
    if predicates and not dry_run:
        raise click.UsageError("--for needs --dry-run")
    table = source.open()
    if not dry_run:
        table.store.require_writable()
    ngrams, words = text_filters(ngram), text_filters(tokens)
    filters = (*bloom, *native, *postings, *row_postings, *ordered_postings, *ngrams, *words)
    require_columns(table, sort_key, (*filters, *gaps, *zone_map, *sums, *(() if auto == ("*",) else auto)))
    with (
        interruption_explained(table),
        spark_for_build(table, source.cluster, verbose) as spark,
        build_progress("indexing") as progress,
    ):
        built = sec.build_index(
            table,
            spark=spark,
            sort_key=sort_key,
            bloom={**dict.fromkeys(bloom), **dict.fromkeys(native, "native")},
            postings=postings_of(postings, row_postings, ordered_postings),
            ngram=ngrams,
            tokens=words,
            gaps=gaps,
            zone_map=zone_map,
            sums=sums,
            auto=True if auto == ("*",) else auto,
            fpr=fpr,
            pages=not no_pages,
            page_locations=not no_page_locations,
            segment_blocks=segment_blocks,
            on_survey=progress[0],
            on_progress=progress[1],
            max_bytes=max_bytes,
            dry_run=dry_run,
        )
    if built.estimate is None:
        show_index(built, as_json)
    else:
        savings = built.estimate.savings(sec.advise(table, predicates)) if predicates else ()
        _show_estimate(built.estimate, savings, as_json)
    if built.is_large:
        say(f"the index takes {share(built.index_bytes, built.data_bytes)} of the data's bytes", CAUTION)


@click.command()
@table_options
@columns_option("--bloom", help="Add bloom filters of these columns.")
@columns_option("--postings", help="Add postings of these columns.")
@columns_option("--row-postings", help="Add postings of these columns, with rows.")
@columns_option("--ordered-postings", help="Add ordered postings of these columns.")
@columns_option("--ngram", help="Add n-grams of these text columns.")
@columns_option("--tokens", help="Add the words of these text columns.")
@columns_option("--gaps", help="Add the widest gaps between the values of these columns.")
@columns_option("--zone-map", metavar="SQL,...", help="Add the bounds of these expressions.")
@columns_option("--sum", "sums", help="Add the sums of these columns.")
@click.option(
    "--page-locations", is_flag=True, help="Add page locations, so that reading single pages opens no footer."
)
@click.option("--repair", is_flag=True, help="Read every byte of the index first, and rebuild what is broken.")
@click.option("--dry-run", is_flag=True, help="Only say what there is to do.")
@json_option
@click.pass_obj
def refresh(
    verbose: bool,
    source: TableArguments,
    bloom: tuple[str, ...],
    postings: tuple[str, ...],
    row_postings: tuple[str, ...],
    ordered_postings: tuple[str, ...],
    ngram: tuple[str, ...],
    tokens: tuple[str, ...],
    gaps: tuple[str, ...],
    zone_map: tuple[str, ...],
    sums: tuple[str, ...],
    page_locations: bool,
    repair: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Bring the index up to date with the table, and add structures to it.

    Indexes new and changed files, drops removed ones, and keeps everything else. Structures that you add cover all
    files; only their columns are read. A large table is read by a Spark job, as in the command index.

    \b
    Examples:
      secateur refresh lake/events
      secateur refresh lake/events --bloom session_id
    """
    table = source.open()
    by_row = postings_of(postings, row_postings, ordered_postings)
    by_value = {"bloom": bloom, "postings": by_row, "gaps": gaps, "zone_map": zone_map}
    structures = {**by_value, "sums": sums, "ngram": text_filters(ngram), "tokens": text_filters(tokens)}
    asked: dict[str, Any] = {**structures, "page_locations": page_locations, "repair": repair}
    done = sec.refresh_index(table, dry_run=True, **asked)
    if not dry_run and not (done.is_current and not any(structures.values()) and not page_locations):
        with (
            interruption_explained(table),
            spark_for_build(table, source.cluster, verbose) as spark,
            build_progress("indexing") as progress,
        ):
            done = sec.refresh_index(table, spark=spark, on_survey=progress[0], on_progress=progress[1], **asked)
    if as_json:
        print_json({**asdict(done.index), **{key: value for key, value in asdict(done).items() if key != "index"}})
    else:
        show_facts([*done.index.facts(), _changes(done)])


def _changes(done: Refreshed) -> tuple[str, str]:
    """Return what a refresh did, or would do, as a name and a value."""
    return ("to do" if done.dry_run else "done", done.changes() or "nothing, the index is up to date")


@click.command()
@table_options
@click.option("--dry-run", is_flag=True, help="Only say what there is to do.")
@json_option
@click.pass_obj
def optimize(verbose: bool, source: TableArguments, dry_run: bool, as_json: bool) -> None:
    """Reorganise the index after many refreshes: merge small segments, put them in key order.

    Reads and writes index files only. Keeps what is in order, and starts Spark only if there is something to do. The
    next vacuum removes the old files.

    \b
    Example:
      secateur optimize lake/events --dry-run
    """
    table = source.open()
    done = sec.optimize_index(table, dry_run=True)
    if not dry_run and not done.is_in_order:
        with (
            interruption_explained(table),
            spark_for_build(table, None, verbose) as spark,
            build_progress("merging") as progress,
        ):
            done = sec.optimize_index(table, spark=spark, on_survey=progress[0], on_progress=progress[1])
    if as_json:
        print_json({**asdict(done.index), **{key: value for key, value in asdict(done).items() if key != "index"}})
        return
    files = "" if done.filter_files_after is None else f" -> {count(done.filter_files_after)}"
    facts = [
        (
            "segments",
            f"{count(done.segments_before)} -> {count(done.segments_after)}, {done.segments_made:,} rebuilt",
        ),
        ("filter files", f"{count(done.filter_files_before)}{files}"),
    ]
    if done.is_in_order:
        facts.append(("to do" if dry_run else "done", "nothing, the index is in order"))
    show_facts([("index", f"{done.index.location}, snapshot {done.index.number}"), *facts])


def show_index(built: IndexSnapshot, as_json: bool) -> None:
    """Print the contents of an index."""
    print_json(asdict(built)) if as_json else show_facts(built.facts())


def _show_estimate(estimate: BuildEstimate, savings: Sequence[Saving], as_json: bool) -> None:
    """Print what an index would cost and save."""
    if as_json:
        print_json(
            {**asdict(estimate), "index_bytes": estimate.index_bytes, "savings": [asdict(saving) for saving in savings]}
        )
        return
    click.echo(str(estimate))
    for saving in savings:
        reads = f"{saving.predicate}: {human_bytes(int(saving.bytes_now))} -> {human_bytes(int(saving.bytes_then))}"
        paid = "nothing is saved" if saving.queries is None else f"paid by {saving.queries:,} such queries or fewer"
        click.echo(f"{reads}; {paid}")


@contextmanager
def interruption_explained(table: Table) -> Iterator[None]:
    """On Ctrl-C, say whether the index was published."""
    before = snapshot_numbers(table.store)
    try:
        yield
    except KeyboardInterrupt:
        if snapshot_numbers(table.store) != before:
            raise Interrupted("the new index was published just before") from None
        left = "the index is as it was" if before else "there is no index, as before"
        raise Interrupted(f"nothing was published, {left}") from None
