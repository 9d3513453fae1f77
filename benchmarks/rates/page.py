"""docs/pruning-rates.md: the rates as tables and pictures.

``python -m benchmarks.rates.page`` measures and writes it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

import click

from benchmarks.__main__ import DATA
from benchmarks.pruning_rates import ALONE, Rates, measured_rates
from benchmarks.rates.pictures import draw_scans, draw_techniques
from benchmarks.rates.reasons import reason
from benchmarks.rates.scans import GOAL, TECHNIQUES, Measured
from benchmarks.rates.skipping import FOOTERS
from benchmarks.rates.summary import Group, groups, techniques
from benchmarks.setting import Setting

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE, TECHNIQUES_PICTURE, SCANS_PICTURE = "pruning-rates.md", "pruning-rates.svg", "pruning-scans.svg"
DRAWN = "events, clustered, directory"  # whose scans have a picture
MOST_MISSES = 40  # rows of the table


@click.command()
@click.option("--scale", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True, help="Size.")
@click.option("--sparse", type=click.IntRange(min=1), default=1, show_default=True, help="Of TPC, each n-th query.")
@click.option("--directory", type=click.Path(path_type=Path), default=DATA, help="Where generated data is kept.")
@click.option("--docs", type=click.Path(path_type=Path), default=DOCS, show_default=True, help="What is written into.")
def main(scale: float, sparse: int, directory: Path, docs: Path) -> None:
    """Measure all scans, and write the page and its pictures."""
    write(measured_rates(Setting(directory.absolute(), scale), sparse), docs)
    click.echo(f"{docs / PAGE} is written")


def write(rates: Rates, docs: Path) -> None:
    """Write the page and its pictures into a directory."""
    scans = rates.scans
    drawn = [group for group in groups(scans) if not group.table.endswith(("Iceberg", "Delta"))]
    draw_techniques(drawn, docs / TECHNIQUES_PICTURE)
    draw_scans([scan for scan in scans if scan.table == DRAWN], ALONE, docs / SCANS_PICTURE)
    on_files = [scan for scan in scans if not scan.table.endswith(("Iceberg", "Delta"))]
    parts = [
        INTRODUCTION,
        _paragraph(OTHERS),
        *_techniques(on_files),
        f"![The share of blocks that each technique prunes]({TECHNIQUES_PICTURE})\n",
        *_groups(drawn),
        *_formats(list(groups(scans))),
        *_queries(rates),
        *_misses(scans),
        *_scans(scans),
        *(f"- {note}" for note in rates.notes),
    ]
    (docs / PAGE).write_text("\n".join(parts).rstrip() + "\n")


INTRODUCTION = """# Pruning rates

Of every scan: how many blocks (row groups) there are, how many are kept, and how many it cannot do without, its
*ideal*: those that hold a match, found by DuckDB, which looks at all rows. `python -m benchmarks.rates.page` measures
and writes this page, `python -m benchmarks pruning_rates --json` has every figure in blocks, rows and bytes, `--scale`
grows the data. A block that is lost, and a query that has another answer, would end the run.

Sizes are those of `--scale 1`:

- *events* of a web shop, 600,000 in 300 blocks of 60 files, and *logs*, 300,000 lines in 300 blocks of 30 files: each
  as a directory, as Iceberg and as Delta. As generated, events come in batches of ten files that lie in no order, and
  logs by time; clustered, events lie by time, and logs by logger and time. Indexed are, besides bounds of all columns:
  bloom filters of `user_id`, `order_id`, `session_id`, `lower(email)`, postings of `status`, `country`, `level`,
  `logger`, n-grams of `message`, and gaps of `amount`.
- *TPC-H* (scale factor 0.05) and *TPC-DS* (0.01), run by Spark with `sec.enable`: all scans that have a filter, values
  of a join, or a limit, of the queries that are named below. As generated, and clustered by date. Bloom filters are
  those of keys.

A scan is planned in steps, one for each technique: by bounds alone (an index without filters), with bloom filters,
postings and n-grams, with the values of a join, with the limit. Each counts what it prunes of the blocks that those
before it left. Pages prune rows within kept blocks.
"""

OTHERS = f"""
*{FOOTERS}* are the row groups that pyarrow leaves by the bounds in the footers, as an engine does that pushes
comparisons, IN, LIKE with a prefix, AND, OR and NOT. *{ALONE}* counts the row groups whose rows leave Spark's own scan:
it opens every file, and prunes by dictionaries too, which it reads for that. In row groups as small as these, of 2,000
events or 1,000 lines, every column is a dictionary, that of a message the whole column: so few row groups are decoded,
and nearly all bytes of the column are read. With larger row groups there are none, more blocks hold a value, and bounds
are wider: all rates are lower then, that of the ideal too. A LIMIT without an order is counted as it is planned; where
no block matches whole, all are kept, and reading stops at the last row that is wanted, here as in Spark.
"""


def _techniques(scans: Sequence[Measured]) -> Iterator[str]:
    blocks, rows, size = (
        _percent(sum(getattr(scan.all, unit) - getattr(scan.kept, unit) for scan in scans), _all(scans, unit))
        for unit in ("blocks", "rows", "bytes")
    )
    ideal = _percent(sum(scan.all.blocks - scan.ideal.blocks for scan in scans), _all(scans, "blocks"))
    yield "## Share of blocks pruned per technique\n"
    yield _paragraph(
        f"All {len(scans):,} scans of directories, of {_all(scans, 'blocks'):,} blocks: {blocks} of the blocks are"
        f" pruned, the ideal prunes {ideal}; of the rows {rows}, of the bytes {size}."
    )
    yield "| technique | scans that ask for it | in which it prunes | blocks before | pruned | median where it prunes |"
    yield "|---|---|---|---|---|---|"
    for technique in techniques(scans):
        counts = f"{technique.scans:,} | {technique.effective:,} | {technique.before:,}"
        shares = f"{_percent(technique.pruned, technique.before)} | {technique.median:.1%}"
        yield f"| {technique.name} | {counts} | {shares} |"
    yield ""


def _groups(tables: Iterable[Group]) -> Iterator[str]:
    heads = ("scans", "blocks", *TECHNIQUES, "kept", "ideal", "kept over ideal, where served", FOOTERS, ALONE)
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for group in tables:
        pruned = (_percent(group.pruned[name], group.all) for name in TECHNIQUES)
        kept, ideal = group.served
        others = (f"{group.others[name]:,}" if name in group.others else "" for name in (FOOTERS, ALONE))
        cells = (
            f"{group.all:,}",
            *pruned,
            f"{group.kept:,}",
            f"{group.ideal:,}",
            f"{kept / max(1, ideal):.2f}",
            *others,
        )
        yield f"| {group.table}: {group.scans} | {' | '.join(cells)} |"
    yield ""


def _formats(tables: Sequence[Group]) -> Iterator[str]:
    yield "## Beside the table formats' own skipping\n"
    yield _paragraph(
        "Blocks of the files that PyIceberg's `plan_files` and deltalake's fragments leave by the bounds in their"
        " metadata, given the conditions that they know."
    )
    yield "| table | blocks | its own library | secateur | ideal |"
    yield "|---|---|---|---|---|"
    for group in tables:
        for name, blocks in group.others.items():
            if name not in (ALONE, FOOTERS):
                yield f"| {group.table} | {group.all:,} | {name}: {blocks:,} | {group.kept:,} | {group.ideal:,} |"
    yield ""


def _queries(rates: Rates) -> Iterator[str]:
    yield "## Whole queries of TPC-H and TPC-DS\n"
    yield _paragraph(
        "Blocks of all scans of the queries that were run, those without a filter included. By default these are all"
        " 22 of TPC-H, and each sixth of TPC-DS; `--sparse 5` runs each fifth of them."
    )
    yield f"| benchmark | queries | blocks | {ALONE} | with the index |"
    yield "|---|---|---|---|---|"
    for table, of_table in groupby(rates.queries, lambda query: query.table):
        queries = list(of_table)
        sums = " | ".join(f"{sum(getattr(q, unit) for q in queries):,}" for unit in ("all", "alone", "pruned"))
        yield f"| {table} | {', '.join(str(q.query) for q in queries)} | {sums} |"
    yield ""


def _misses(scans: Sequence[Measured]) -> Iterator[str]:
    served = [scan for scan in scans if scan.served]
    missed = [scan for scan in served if scan.misses]
    on_files = [scan for scan in missed if not scan.table.endswith(("Iceberg", "Delta"))]
    yield "## Where it misses, and why\n"
    yield _paragraph(
        f"The goal is at most {GOAL} times the ideal, or one block, wherever the index has a structure for the column."
        f" {len(served) - len(missed):,} of {len(served):,} such scans reach it. Those that do not, on directories"
        " (Iceberg and Delta miss it in the same questions):"
    )
    yield "| scan | kept | ideal | why |"
    yield "|---|---|---|---|"
    for scan in on_files[:MOST_MISSES]:
        name = f"{scan.table.removesuffix(', directory')}: {scan.name}"
        yield f"| {name} | {scan.kept.blocks:,} | {scan.ideal.blocks:,} | {reason(scan)} |"
    if len(on_files) > MOST_MISSES:
        yield f"\nand {len(on_files) - MOST_MISSES} more."
    unserved = [scan for scan in scans if not scan.served and scan.kept.blocks > GOAL * max(1, scan.ideal.blocks)]
    yield f"\n{len(unserved):,} further scans keep more than that, and no structure of the index is there for them.\n"


def _scans(scans: Sequence[Measured]) -> Iterator[str]:
    yield "## The scans of events and logs\n"
    yield f"![What single scans of events keep]({SCANS_PICTURE})\n"
    by_table = {group.table: [scan for scan in scans if scan.table == group.table] for group in groups(scans)}
    for name in ("events", "logs"):
        tables = [by_table[f"{name}, {layout}, directory"] for layout in ("generated", "clustered")]
        head = f"{name}, {tables[0][0].all.blocks:,} blocks"
        yield f"| {head} | served by | generated | ideal | footers | Spark | clustered | ideal | footers | Spark |"
        yield "|---" * 10 + "|"
        for pair in zip(*tables, strict=True):
            cells = [
                f"{s.kept.blocks:,} | {s.ideal.blocks:,} | {s.others[FOOTERS]:,} | {s.others[ALONE]:,}" for s in pair
            ]
            yield f"| {pair[0].name} | {pair[0].served or 'nothing'} | {' | '.join(cells)} |"
        yield ""


def _all(scans: Sequence[Measured], unit: str) -> int:
    return sum(getattr(scan.all, unit) for scan in scans)


def _paragraph(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 120, break_on_hyphens=False) + "\n"


def _percent(part: int, whole: int) -> str:
    return f"{part / max(1, whole):.1%}"


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.rates.page")
