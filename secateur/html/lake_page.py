"""The page at the end of the lake demo."""

from __future__ import annotations

from html import escape

from secateur.demo.lake import LATENCY, LakeDemo, LakeTrial, QueryRun
from secateur.html.pictures import QUIET, SURVIVES, bar
from secateur.html.plan_page import page, plan_parts
from secateur.html.timeline import RequestCurve, timeline
from secateur.pruning.report import human_bytes

ALONE = "#0072B2"
UNITS = ("requests", "round_trips", "bytes", "files", "seconds")
TITLES = {"round_trips": "requests one after the other", "files": "files opened"}


def lake_page(outcome: LakeDemo) -> str:
    """Return the whole page of a demo."""
    cost, paid = outcome.cost, outcome.paid_after
    after = "It saves these queries no time." if paid is None else f"It pays for itself after {paid:.1f} such queries."
    parts = [
        "<h1>The same SQL, before and after one line</h1>",
        f'<p class="headline">{escape(outcome.headline)}</p>',
        f"<p>A table of {outcome.files:,} files, {human_bytes(outcome.data_bytes)}, on an S3 server of the same "
        f"machine; {LATENCY * 1000:.0f} ms are added to every request. First Spark's own reader over s3a, then "
        "<code>sec.enable(spark)</code>.</p>",
        f'<p class="cost">Building the index took {cost.seconds:.1f} s and {cost.requests:,} requests; it takes '
        f"{human_bytes(cost.index.index_bytes)}. {after}</p>",
        f'<p><span class="key" style="background:{ALONE}"></span>Spark alone'
        f'<span class="key" style="background:{SURVIVES}"></span>with the index; all axes are linear</p>',
    ]
    for trial in outcome.trials:
        parts += _trial_parts(trial)
    return page("secateur: the same SQL, before and after one line", parts)


def _trial_parts(trial: LakeTrial) -> list[str]:
    question = trial.question
    answer = "Same answer." if trial.equal else "THE ANSWERS DIFFER."
    rows = "".join(_unit_row(unit, trial.spark, trial.secateur) for unit in UNITS)
    parts = [
        f"<h2>{escape(question.name)}: {_ratio(trial.speed_up)} times as fast</h2>",
        f"<pre>{escape(question.sql)}</pre><p>{escape(question.why)} {answer}</p>",
        f'<table class="runs" data-question="{escape(question.name)}">{rows}</table>',
        '<p class="quiet">Requests since the query began; a dot ends the query.</p>',
        timeline([_curve("Spark alone", trial.spark, ALONE), _curve("with the index", trial.secateur, SURVIVES)]),
    ]
    if trial.plan is not None:
        pruned = "".join(plan_parts(trial.plan, 3))
        parts.append(f"<details><summary>what was pruned, and where it lies</summary>{pruned}</details>")
    return parts


def _ratio(number: float) -> str:
    return f"{number:.1f}" if number >= 1 else f"{number:.2f}"


def _curve(name: str, run: QueryRun, colour: str) -> RequestCurve:
    return RequestCurve(name, run.arrivals, run.seconds, colour)


def _unit_row(unit: str, spark: QueryRun, indexed: QueryRun) -> str:
    before, after = (getattr(run, unit) for run in (spark, indexed))
    most = max(before, after)
    cells = "".join(
        f'<td data-unit="{unit}" data-count="{number}">{_amount(unit, number)}</td><td>{bar(number, most, colour)}</td>'
        for number, colour in ((before, ALONE), (after, SURVIVES if after < before else QUIET))
    )
    return f"<tr><td>{TITLES.get(unit, unit)}</td>{cells}</tr>"


def _amount(unit: str, number: float) -> str:
    match unit:
        case "bytes":
            return human_bytes(number)
        case "seconds":
            return f"{number:.2f}"
        case _:
            return f"{number:,}"
