"""The command line: ``python -m benchmarks.peer_engines [PEER ...] [--scale X] [--page FILE] [--json] [--list]``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from benchmarks.__main__ import DATA
from benchmarks.peer_engines.environments import ROOT, NotAvailable, python_of
from benchmarks.peer_engines.page import disagreements, page, text
from benchmarks.peer_engines.peers import PEERS, Peer
from benchmarks.peer_engines.questions import write
from benchmarks.peer_engines.table import orders
from benchmarks.setting import Setting

SCALE = 0.2  # of the read benchmarks' 5 million rows


@click.command()
@click.argument("names", nargs=-1, metavar="[PEER]...")
@click.option("--scale", type=click.FloatRange(min=0, min_open=True), default=SCALE, show_default=True, help="Size.")
@click.option("--directory", type=click.Path(path_type=Path), default=DATA, help="Where everything made is kept.")
@click.option("--page", "page_file", type=click.Path(path_type=Path), help="Write all that is kept as a page.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--list", "only_list", is_flag=True, help="Name the peers.")
def main(
    names: tuple[str, ...], scale: float, directory: Path, page_file: Path | None, as_json: bool, only_list: bool
) -> None:
    """Ask PEERs, or all of them, the same questions of the same rows."""
    if only_list:
        for peer in PEERS:
            click.echo(f"{peer.name:15} {peer.title} ({', '.join(peer.pins) or 'this package'})")
        return
    known = {peer.name: peer for peer in PEERS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise click.UsageError(f"no peer {', '.join(unknown)}; there are {', '.join(known)}")
    table, asked = orders(Setting(directory.absolute(), scale))
    home = directory.absolute() / f"peers-{table.rows}"
    home.mkdir(parents=True, exist_ok=True)
    write(home / "questions.json", asked)
    for peer in [known[name] for name in names] or PEERS:
        click.echo(f"{peer.title}", err=True)
        answer = _run(peer, table.data, home)
        (home / f"{peer.name}.json").write_text(json.dumps(answer))
    kept = {peer.name: json.loads(file.read_text()) for peer in PEERS if (file := home / f"{peer.name}.json").exists()}
    if page_file:
        page_file.write_text(page(table, asked, kept))
    wrong = disagreements(kept)
    click.echo(json.dumps({"table": {**asdict(table), "data": None}, "peers": kept}) if as_json else text(kept))
    for line in wrong:
        click.echo(line, err=True)
    sys.exit(1 if wrong else 0)


def _run(peer: Peer, data: Path, home: Path) -> dict[str, Any]:
    """Run a peer's process; return its answers, or why there are none."""
    try:
        python = python_of(peer, home.parent / "peer-environments")
    except NotAvailable as trouble:
        click.echo(f"  left out: {trouble}", err=True)
        return {"trouble": str(trouble)}
    arguments = [peer.engine, str(data), str(home / "questions.json"), str(home / peer.name)]
    command = [str(python), "-m", "benchmarks.peer_engines.process", *arguments]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        click.echo(f"  left out: its process ended with {done.returncode}", err=True)
        return {"trouble": f"its process ended with {done.returncode}"}
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.peer_engines")
