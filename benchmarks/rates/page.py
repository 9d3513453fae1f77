"""docs/pruning-rates.md: the rates as tables and pictures.

``python -m benchmarks.rates.page`` measures and writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

import click

from benchmarks.__main__ import DATA
from benchmarks.pruning_rates import ALONE, Rates, measured_rates
from benchmarks.rates.pictures import draw_scans, draw_techniques
from benchmarks.rates.reasons import reason
from benchmarks.rates.scans import GOAL, TECHNIQUES, Measured
from benchmarks.rates.summary import Group, groups, techniques
from benchmarks.setting import Setting

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE, TECHNIQUES_PICTURE, SCANS_PICTURE = "pruning-rates.md", "pruning-rates.svg", "pruning-scans.svg"
DRAWN = "events, clustered, directory"  # whose scans have a picture
MOST_MISSES = 40  # of queries of TPC


@click.command()
@click.option("--scale", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True, help="Size.")
@click.option("--directory", type=click.Path(path_type=Path), default=DATA, help="Where generated data is kept.")
@click.option("--docs", type=click.Path(path_type=Path), default=DOCS, show_default=True, help="What is written into.")
def main(scale: float, directory: Path, docs: Path) -> None:
    """Measure all scans, and write the page and its pictures."""
    write(measured_rates(Setting(directory.absolute(), scale)), docs)
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


INTRODUCTION = f"""# Pruning rates

Of every scan: how many blocks (row groups) there are, how many are kept, and how many it cannot do without, its
*ideal*: those that hold a match, found by DuckDB, which looks at all rows. `python -m benchmarks.rates.page` measures
and writes this page, `python -m benchmarks pruning_rates --json` has every figure in blocks, rows and bytes, `--scale`
grows the data. A block that is lost, and a query that has another answer, would end the run.

- *events* of a web shop, 600,000 in 300 blocks of 60 files, and *logs*, 300,000 lines in 300 blocks of 30 files: each
  as a directory, as Iceberg and as Delta. As generated, events come in batches of ten files that lie in no order, and
  logs by time; clustered, events lie by time, and logs by logger and time. Indexed are, besides bounds of all columns:
  bloom filters of `user_id`, `order_id`, `session_id`, `lower(email)`, postings of `status`, `country`, `level`,
  `logger`, n-grams of `message`, and gaps of `amount`.
- *TPC-H* (22 queries, scale factor 0.05) and *TPC-DS* (each third query, scale factor 0.01), run by Spark with
  `sec.enable`: all scans that have a filter, values of a join, or a limit. As generated, and clustered by date. Bloom
  filters are those of keys.

Techniques are told apart by planning a scan step by step: by bounds alone (an index without filters), with bloom
filters, postings and n-grams, with the values of a join, with the limit. Each counts what it prunes of the blocks that
those before it left. Pages prune rows within kept blocks. *{ALONE}* counts the row groups whose rows leave Spark's own
scan, which prunes by the bounds and dictionaries in the files, after opening each. Small tables make small numbers: a
block of these is 2,000 events or 1,000 lines, and a rate says as much of blocks of a million.
"""


def _techniques(scans: Sequence[Measured]) -> Iterator[str]:
    everything, kept = sum(scan.all.blocks for scan in scans), sum(scan.kept.blocks for scan in scans)
    rows, ideal = sum(scan.all.rows for scan in scans), sum(scan.ideal.blocks for scan in scans)
    yield "## Share of blocks pruned per technique\n"
    yield (
        f"All {len(scans):,} scans of directories, of {everything:,} blocks: {_percent(everything - kept, everything)}"
        f" of the blocks are pruned, the ideal prunes {_percent(everything - ideal, everything)}; of the rows,"
        f" {_percent(rows - sum(scan.kept.rows for scan in scans), rows)}.\n"
    )
    yield "| technique | scans that ask for it | in which it prunes | blocks before | pruned | median where it prunes |"
    yield "|---|---|---|---|---|---|"
    for each in techniques(scans):
        share = _percent(each.pruned, each.before)
        yield f"| {each.name} | {each.scans:,} | {each.effective:,} | {each.before:,} | {share} | {each.median:.1%} |"
    yield ""


def _groups(found: Iterable[Group]) -> Iterator[str]:
    yield f"| scans | blocks | {' | '.join(TECHNIQUES)} | kept | ideal | kept over ideal | {ALONE} |"
    yield "|---|---|" + "---|" * (len(TECHNIQUES) + 4)
    for group in found:
        pruned = " | ".join(_percent(group.pruned[name], group.all) for name in TECHNIQUES)
        over = f"{group.kept / max(1, group.ideal):.2f}"
        alone = f"{group.others[ALONE]:,}" if ALONE in group.others else "below"
        cells = (f"{group.all:,}", pruned, f"{group.kept:,}", f"{group.ideal:,}", over, alone)
        yield f"| {group.table}: {group.scans} | {' | '.join(cells)} |"
    yield ""


def _formats(found: Sequence[Group]) -> Iterator[str]:
    yield "## Beside the table formats' own skipping\n"
    yield "Blocks of the files that PyIceberg's `plan_files` and deltalake's fragments leave by the bounds in their"
    yield "metadata, given the conditions that they know.\n"
    yield "| table | blocks | its own library | secateur | ideal |"
    yield "|---|---|---|---|---|"
    for group in found:
        for name, blocks in group.others.items():
            if name != ALONE:
                yield f"| {group.table} | {group.all:,} | {name}: {blocks:,} | {group.kept:,} | {group.ideal:,} |"
    yield ""


def _queries(rates: Rates) -> Iterator[str]:
    yield "## Whole queries of TPC-H and TPC-DS\n"
    yield "Blocks of all scans of all queries, those without a filter included.\n"
    yield f"| queries | blocks | {ALONE} | with the index |"
    yield "|---|---|---|---|"
    for table, each in groupby(rates.queries, lambda query: query.table):
        read = list(each)
        sums = " | ".join(f"{sum(getattr(q, unit) for q in read):,}" for unit in ("all", "alone", "pruned"))
        yield f"| {table}: {len(read)} | {sums} |"
    yield ""


def _misses(scans: Sequence[Measured]) -> Iterator[str]:
    served = [scan for scan in scans if scan.served]
    missed = [scan for scan in served if scan.misses]
    on_files = [scan for scan in missed if not scan.table.endswith(("Iceberg", "Delta"))]
    yield "## Where it misses, and why\n"
    yield (
        f"The goal is at most {GOAL} times the ideal, or one block, wherever the index has a structure for the column."
        f" {len(served) - len(missed):,} of {len(served):,} such scans reach it. Those that do not, on directories"
        " (Iceberg and Delta miss it in the same questions):\n"
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
    yield "Blocks that are kept, of 300.\n"
    by_table = {group.table: [scan for scan in scans if scan.table == group.table] for group in groups(scans)}
    for name in ("events", "logs"):
        tables = [by_table[f"{name}, {layout}, directory"] for layout in ("generated", "clustered")]
        yield f"| {name} | served by | generated | ideal | {ALONE} | clustered | ideal | {ALONE} |"
        yield "|---|---|---|---|---|---|---|---|"
        for pair in zip(*tables, strict=True):
            cells = [f"{s.kept.blocks:,} | {s.ideal.blocks:,} | {s.others[ALONE]:,}" for s in pair]
            yield f"| {pair[0].name} | {pair[0].served or 'nothing'} | {' | '.join(cells)} |"
        yield ""


def _percent(part: int, whole: int) -> str:
    return f"{part / max(1, whole):.1%}"


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.rates.page")
