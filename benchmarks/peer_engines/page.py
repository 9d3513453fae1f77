"""docs/peers.md, and the same as text: what each peer takes for each question, wins and losses alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.peer_engines.peers import PEERS, Peer
from benchmarks.peer_engines.questions import Question
from benchmarks.peer_engines.table import Orders

Answers = Mapping[str, Any]
MORE = 1.5  # times as fast: less is noise


def page(table: Orders, asked: Sequence[Question], kept: Mapping[str, Answers]) -> str:
    """Return the page as Markdown."""
    answered = [name for name in kept if "answers" in kept[name]]
    on_spark = [name for name in answered if peer_of(name).on_spark]
    parts = [
        INTRODUCTION.format(
            rows=f"{table.rows:,}", files=table.files, row_groups=f"{table.row_groups:,}", size=_mega(table.bytes)
        ),
        "## In one process\n",
        *_section([name for name in answered if name not in on_spark], kept, "secateur"),
        "## On Spark\n",
        SPARK,
        *_section(on_spark, kept, "secateur-spark"),
        "## What is built first\n",
        _built(kept),
        "\n## What is asked\n",
        *(f"- {question.name}: `{question.sql('orders', question.conditions[0])}`" for question in asked),
        "\n## Versions\n",
        *(f"- {title(name)}: {kept[name].get('version') or 'left out: ' + kept[name]['trouble']}" for name in kept),
    ]
    return "\n".join(parts) + "\n"


INTRODUCTION = """# Beside peers

The same questions of the same rows, answered whole: {rows} orders in {files} Parquet files of {row_groups} row groups,
{size} MB, with a page index and bloom filters, which every engine uses as it can. They lie by time and order number;
all other columns are in no order. `make bench-peers` makes the table and an environment for each peer by the pins in
`benchmarks/peer_engines/peers.py`, and runs each in a process of its own; `python -m benchmarks.peer_engines NAME` runs
one. All answers are compared: as many rows, with the same sum of order numbers.

Times are medians of three or more calls with other literals, after a first call, on two cores of a shared machine, with
everything in the page cache and nothing else running; with other work beside it, all took up to 3.6 times as long.
*Bytes* are all that a call reads, and hardly differ between runs; *reads* are the calls to the operating system for
them. What is mapped into memory, or held in an engine's own buffers, as all of DuckDB's copy is, is in neither. Copies
are in the engine's own format: the table has to be rewritten to have one.

Iceberg's planner in Java is measured alone in [performance](performance.md#iceberg) (`python -m benchmarks
plan_iceberg`); blocks left by Spark's push-down, PyIceberg and deltalake are in [pruning rates](pruning-rates.md).
"""

SPARK = """The same questions by SQL in a session of Spark, in local mode, answered as Arrow. Bytes and reads are those
of the JVM and of Python; Spark does not count row groups. Planning is that of the physical plan: Spark lists the files
of a directory, and Hudi and Delta choose theirs, when the query runs.
"""


def _section(names: Sequence[str], kept: Mapping[str, Answers], ours: str) -> list[str]:
    if not names:
        return ["Nothing was measured.\n"]
    parts = [
        "Milliseconds; bold is the fastest.\n",
        _table(names, kept, _time),
        "\nMegabytes read, and reads.\n",
        _table(names, kept, lambda _, answer: f"{_mega(answer['bytes'])}; {answer['reads']:,}"),
        "\nWhat is left to read, as far as a peer says it: files, row groups, rows that the scan hands on.\n",
        _table(names, kept, lambda _, answer: _left(answer)),
    ]
    planned = [name for name in names if any(answer["plan_ms"] is not None for answer in kept[name]["answers"])]
    if planned:
        parts += ["\nMilliseconds of planning alone, where it is a step of its own.\n"]
        parts += [_table(planned, kept, lambda _, answer: _milliseconds(answer["plan_ms"]))]
    if ours in names and any(name != ours and kept[name]["preparation"]["copy_bytes"] is None for name in names):
        parts += ["", *_verdicts(names, kept, ours)]
    return [*parts, ""]


def _table(names: Sequence[str], kept: Mapping[str, Answers], cell: Any) -> str:
    rows = [f"| question | rows | {' | '.join(map(title, names))} |", f"|---|---|{'---|' * len(names)}"]
    for beside in zip(*(kept[name]["answers"] for name in names), strict=True):
        cells = " | ".join(cell(beside, answer) for answer in beside)
        rows.append(f"| {beside[0]['name']} | {beside[0]['rows']:,} | {cells} |")
    return "\n".join(rows)


def _time(beside: Sequence[Answers], answer: Answers) -> str:
    figure = _milliseconds(answer["ms"])
    return f"**{figure}**" if answer["ms"] == min(other["ms"] for other in beside) else figure


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _left(answer: Answers) -> str:
    counts = [
        f"{answer[unit]:,} {word}"
        for unit, word in (("files", "files"), ("row_groups", "groups"), ("scanned_rows", "rows"))
        if answer[unit] is not None
    ]
    return ", ".join(counts) or "-"


def _verdicts(names: Sequence[str], kept: Mapping[str, Answers], ours: str) -> list[str]:
    """Say in words where secateur loses to any peer, and where it wins of all that read the same files."""
    lost, won = [], []
    same_files = [name for name in names if name != ours and kept[name]["preparation"]["copy_bytes"] is None]
    milliseconds_of = {answer["name"]: answer["ms"] for answer in kept[ours]["answers"]}
    for question, milliseconds in milliseconds_of.items():
        times = {name: _answer(kept[name], question)["ms"] for name in names if name != ours}
        ahead = sorted((name for name in times if times[name] * MORE <= milliseconds), key=lambda name: times[name])
        if ahead:
            said = ", ".join(f"{title(name)} {milliseconds / times[name]:.1f} times" for name in ahead)
            lost.append(f"- {question}: {said} as fast")
        best = min(same_files, key=lambda name: times[name])
        if milliseconds * MORE <= times[best]:
            won.append(f"- {question}: {times[best] / milliseconds:.1f} times as fast as {title(best)}")
    least = f"at least {MORE} times"
    return [
        f"What secateur loses ({least} as fast as it):\n",
        *(lost or ["- nothing here"]),
        f"\nWhat it wins ({least} as fast as all others that read these files):\n",
        *(won or ["- nothing here"]),
    ]


def _answer(answers: Answers, question: str) -> Answers:
    return next(answer for answer in answers["answers"] if answer["name"] == question)


def _built(kept: Mapping[str, Answers]) -> str:
    rows = [
        "| peer | what | seconds | CPU seconds | beside the rows, MB | its copy of the rows, MB |",
        "|---|---|---|---|---|---|",
    ]
    for name, answers in kept.items():
        if preparation := answers.get("preparation"):
            copy = "" if preparation["copy_bytes"] is None else _mega(preparation["copy_bytes"])
            cpu = preparation["cpu_seconds"]
            times = f"{preparation['seconds']:.1f} | {'' if cpu is None else f'{cpu:.1f}'}"
            costs = f"{times} | {_mega(preparation['index_bytes'])} | {copy}"
            rows.append(f"| {title(name)} | {preparation['what']} | {costs} |")
    return "\n".join(rows)


def _mega(size: int) -> str:
    return f"{size / 1e6:,.0f}" if size >= 10_000_000 else f"{size / 1e6:.2g}"


def title(name: str) -> str:
    """Return the title of a peer."""
    return peer_of(name).title


def peer_of(name: str) -> Peer:
    """Return the peer of a name."""
    return next(peer for peer in PEERS if peer.name == name)


def text(kept: Mapping[str, Answers]) -> str:
    """Return one line for each peer and question: times, bytes, and the number of reads."""
    lines = []
    for name, answers in kept.items():
        lines.append(f"{title(name)}: {answers.get('version') or answers['trouble']}")
        lines += [
            f"  {a['name']:39} {a['ms']:8.1f} ms, CPU {a['cpu_ms']:8.1f} {_mega(a['bytes']):>7} MB {a['reads']:5}"
            for a in answers.get("answers", ())
        ]
    return "\n".join(lines)


def disagreements(kept: Mapping[str, Answers]) -> list[str]:
    """Say which peers have another answer than the first, question by question."""
    answered = {name: answers["answers"] for name, answers in kept.items() if "answers" in answers}
    first = next(iter(answered.values()), ())
    return [
        f"{title(name)} gives {answer['rows']:,} rows for {answer['name']!r}, not the {expected['rows']:,} of the first"
        for name, answers in answered.items()
        for expected, answer in zip(first, answers, strict=True)
        if (answer["rows"], answer["checksum"]) != (expected["rows"], expected["checksum"])
    ]
