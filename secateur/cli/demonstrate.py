"""The command demo: makes a table, indexes it, and shows what queries then skip; this is its local form."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import secateur as sec
from secateur.cli.lake import s3_trouble, show_lake
from secateur.cli.options import json_option
from secateur.cli.output import (
    BAD,
    CAUTION,
    GOOD,
    QUIET,
    STRONG,
    Cell,
    OutputColumn,
    Sheet,
    count,
    is_terminal,
    milliseconds,
    print_json,
    print_line,
    say,
    share,
    show_sheet,
)
from secateur.cli.spark import build_progress, spark_session
from secateur.cli.status import FOUND_WRONG, Interrupted, on_the_command_line
from secateur.cli.waterfall import waterfall
from secateur.pruning.report import human_bytes

if TYPE_CHECKING:  # imports pyspark, which is slow
    from secateur.demo.lineitem import Copy
    from secateur.demo.run import Demo, Events, Indexed
    from secateur.demo.trials import Trial


@click.command()
@click.argument("path", required=False)
@click.argument("predicate", required=False)
@click.option("--local", is_flag=True, help="Show TPC-H's lineitem on the local disk, without S3.")
@click.option(
    "--files",
    type=click.IntRange(min=20, max=20_000),
    default=2_000,
    show_default=True,
    help="Files of the table on S3: 2,000 take about three minutes, most of it by Spark alone.",
)
@click.option(
    "--scale-factor",
    type=click.FloatRange(min=0.001, max=10),
    default=0.3,
    show_default=True,
    help="Size of the local data: 1 makes 6 million rows, twice 250 MB, and takes 3 GB of memory to sort.",
)
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo-data"),
    show_default=True,
    help="Where the data, its index and the pictures go.",
)
@click.option("--keep/--fresh", default=True, show_default=True, help="Use data of an earlier run, or make it again.")
@json_option
@click.pass_context
def demo(
    context: click.Context,
    path: str | None,
    predicate: str | None,
    local: bool,
    files: int,
    scale_factor: float,
    directory: Path,
    keep: bool,
    as_json: bool,
) -> None:
    """Make a table, index it, and show what queries then skip.

    The table has many files on an S3 server of this machine, every request to which takes 15 ms longer. The
    same SQL is run by Spark alone and after sec.enable(spark). With --local it is lineitem of TPC-H on the disk, once
    in the order of its generator and once sorted by ship date. Answers are compared. Exits with 1 if any differ.

    With PATH and PREDICATE, it shows a table of your own: what its index, or else its footers, prune, and what an index
    could add, as text and as a page. Nothing is written to the table.

    \b
    Examples:
      secateur demo
      secateur demo --files 200
      secateur demo lake/events "user_id = 42"
      secateur demo --local --scale-factor 0.1 --json
    """
    if path is not None:
        if predicate is None:
            raise click.UsageError("with PATH, give a PREDICATE too, as after WHERE in Spark SQL")
        _show_table(path, predicate, directory, as_json)
        return
    trouble = "" if local else s3_trouble()
    if trouble:
        say(f"no S3 for this demo, so here is the local one: {trouble}", CAUTION)
    try:
        if local or trouble:
            sound = _show_local(context.obj, directory, scale_factor, keep, as_json)
        else:
            sound = show_lake(context.obj, directory, files, keep, as_json)
    except KeyboardInterrupt:
        raise Interrupted(f"what is whole in {directory} will be used the next time") from None
    if not sound:
        context.exit(FOUND_WRONG)


def _show_table(path: str, predicate: str, directory: Path, as_json: bool) -> None:
    """Show what a query on the user's own table has to read, without Spark."""
    plan = sec.prune(sec.open_table(path), predicate)
    page = directory / "plan.html"
    directory.mkdir(parents=True, exist_ok=True)
    page.write_text(plan.to_html(), encoding="utf-8")
    if as_json:
        print_json({"report": json.loads(plan.explain("json")), "page": str(page)})
        return
    show_sheet(waterfall(plan.report, bars=is_terminal(sys.stdout)))
    click.echo(f"\n{on_the_command_line(str(plan.explanation), path)}")
    print_line(f"\nthe page of it, with pictures: {page}")


def _show_local(verbose: bool, directory: Path, scale_factor: float, keep: bool, as_json: bool) -> bool:
    outcome = _run(verbose, directory, scale_factor, keep, as_json)
    if as_json:
        print_json(_as_json(outcome))
    else:
        _show_end(outcome)
    return outcome.sound


def _run(verbose: bool, directory: Path, scale_factor: float, keep: bool, as_json: bool) -> Demo:
    with spark_session(verbose=verbose) as spark:
        from secateur.demo.run import run_demo

        return run_demo(spark, directory, scale_factor=scale_factor, fresh=not keep, events=_events(as_json))


def _events(as_json: bool) -> Events:
    from secateur.demo.run import Events

    if as_json:
        return Events(on_step=_say_step, indexing=_indexing)
    return Events(on_step=_say_step, on_indexed=_show_indexed, on_trial=_trial_printer(), indexing=_indexing)


def _say_step(text: str) -> None:
    if is_terminal(sys.stderr):
        say(text, QUIET)


def _indexing(copy: Copy) -> Any:
    return build_progress(f"indexing {copy.name}")


def _show_indexed(indexed: Indexed) -> None:
    built = indexed.index
    print_line(
        f"{indexed.copy.name}: {built.files:,} files, {built.blocks:,} blocks, {built.rows:,} rows, "
        f"{human_bytes(built.data_bytes)}, ordered by {indexed.copy.sort_key}; index {human_bytes(built.index_bytes)} "
        f"({share(built.index_bytes, built.data_bytes)}) built in {indexed.seconds:.1f} s"
    )


def _trial_printer() -> Callable[[Trial], None]:
    last = ""

    def show(trial: Trial) -> None:
        nonlocal last
        if trial.question.name != last:
            print_line(f"\n{trial.question.name}: {trial.question.sql}", STRONG)
            last = trial.question.name
        _show_trial(trial)

    return show


def _show_trial(trial: Trial) -> None:
    print_line(f"\n{trial.copy}")
    show_sheet(waterfall(trial.report, bars=is_terminal(sys.stdout), brief=True))
    print_line(
        f"{trial.blocks:,} blocks kept, {trial.ideal_blocks:,} hold a match; "
        f"planned in {milliseconds(trial.plan_seconds)} ms, "
        f"secateur {trial.seconds:.2f} s, Spark {trial.spark_seconds:.2f} s; "
        f"{trial.answer.rows:,} rows, sum of prices {trial.answer.price}, checksum {trial.answer.checksum:x}"
    )
    if trial.equal:
        print_line("same answer", GOOD)
    else:
        print_line(f"ANSWERS DIFFER: secateur {trial.answer}", BAD)
        print_line(f"Spark {trial.spark_answer}, without push-down {trial.reference}", BAD)


def _show_end(outcome: Demo) -> None:
    print_line("\nsummary", STRONG)
    show_sheet(_summary(outcome))
    for check in outcome.checks:
        print_line(f"{'holds' if check.holds else 'DOES NOT HOLD'}  {check.claim}", GOOD if check.holds else BAD)
    print_line(f"\npictures: {', '.join(map(str, outcome.pictures))}")
    print_line(f"done in {outcome.seconds:.0f} s")


def _summary(outcome: Demo) -> Sheet:
    columns = (
        *(OutputColumn("predicate", right=False), OutputColumn("copy", right=False)),
        *map(OutputColumn, ("kept", "ideal", "blocks", "bytes", "plan ms", "secateur s", "Spark s", "speed-up")),
        OutputColumn("equal", right=False),
    )
    return Sheet(columns, tuple(map(_summary_row, outcome.trials)))


def _summary_row(trial: Trial) -> tuple[Cell, ...]:
    numbers = (
        count(trial.blocks),
        count(trial.ideal_blocks),
        count(trial.blocks_before),
        human_bytes(trial.bytes),
        milliseconds(trial.plan_seconds),
        f"{trial.seconds:.2f}",
        f"{trial.spark_seconds:.2f}",
        f"{trial.speed_up:.1f} x",
    )
    equal = Cell("yes", GOOD) if trial.equal else Cell("NO", BAD)
    return (Cell(trial.question.name), Cell(trial.copy), *map(Cell, numbers), equal)


def _as_json(outcome: Demo) -> dict[str, Any]:
    return {
        "scale_factor": outcome.scale_factor,
        "copies": [
            {
                "name": i.copy.name,
                "path": str(i.copy.path),
                "sort_key": i.copy.sort_key,
                "index": asdict(i.index),
                "index_seconds": i.seconds,
            }
            for i in outcome.indexed
        ],
        "trials": [_trial_as_json(trial) for trial in outcome.trials],
        "checks": [asdict(check) for check in outcome.checks],
        "sound": outcome.sound,
        "pictures": [str(path) for path in outcome.pictures],
        "seconds": outcome.seconds,
    }


def _trial_as_json(trial: Trial) -> dict[str, Any]:
    blocks = {"before": trial.blocks_before, "kept": trial.blocks, "ideal": trial.ideal_blocks}
    return {**asdict(trial), "blocks": blocks, "bytes": trial.bytes, "speed_up": trial.speed_up, "equal": trial.equal}
