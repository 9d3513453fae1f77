"""The command line: ``python -m benchmarks [WORKLOAD ...] [--json] [--scale X] [--list]``."""

from __future__ import annotations

import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from benchmarks.running import measured, measured_apart
from benchmarks.setting import Setting
from benchmarks.show import show
from benchmarks.workloads import WORKLOADS, Workload

DATA = Path(__file__).parent / "data"
NARROWEST = 140  # columns, where the output is no terminal


@click.command()
@click.argument("workloads", nargs=-1, metavar="[WORKLOAD]...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--scale", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True, help="Size.")
@click.option("--repetitions", type=click.IntRange(min=1), default=5, show_default=True, help="Least, per time.")
@click.option("--directory", type=click.Path(path_type=Path), default=DATA, help="Where generated data is kept.")
@click.option("--list", "only_list", is_flag=True, help="Name the workloads.")
def main(
    workloads: tuple[str, ...], as_json: bool, scale: float, repetitions: int, directory: Path, only_list: bool
) -> None:
    """Measure WORKLOADs, or all of them."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=NARROWEST)
    if only_list:
        console.print(_listed())
        return
    chosen = _chosen(workloads)
    setting = Setting(directory.absolute(), scale, repetitions)
    environment = _environment()
    results = []
    if not as_json:
        console.print(", ".join(f"{name} {value}" for name, value in environment.items()), highlight=False)
    for workload in chosen:
        started = time.perf_counter()
        result = (
            measured_apart(workload, setting) if workload.has_jars and len(chosen) > 1 else measured(workload, setting)
        )
        seconds = time.perf_counter() - started
        about = {"workload": workload.name, "description": workload.description, "seconds": seconds}
        results.append({**about, **result.to_dict()})
        if not as_json:
            show(console, workload.name, workload.description, seconds, result)
    if as_json:
        click.echo(json.dumps({"environment": environment, "scale": scale, "results": results}, indent=2))


def _chosen(names: tuple[str, ...]) -> list[Workload]:
    by_name = {workload.name: workload for workload in WORKLOADS}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise click.UsageError(f"no workload {', '.join(unknown)}; there are {', '.join(by_name)}")
    return [by_name[name] for name in names] or list(WORKLOADS)


def _listed() -> Table:
    table = Table(box=None, show_header=False)
    for workload in WORKLOADS:
        table.add_row(workload.name, workload.description)
    return table


def _environment() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
    }


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
