"""One peer's process: ``python -m benchmarks.peer_engines.process ENGINE DATA QUESTIONS WORK`` prints a JSON object.

ENGINE is a module of :mod:`benchmarks.peer_engines.engines`, WORK a directory for what the peer makes.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from benchmarks.peer_engines.measured import ask
from benchmarks.peer_engines.questions import read


def main(module: str, data: str, questions: str, work: str) -> None:
    """Open the table, ask, print."""
    Path(work).mkdir(parents=True, exist_ok=True)
    engine = import_module(f"benchmarks.peer_engines.engines.{module}").open_engine(Path(data), Path(work))
    answers = []
    for question in read(Path(questions)):
        print(f"  {question.name}", file=sys.stderr, flush=True)
        answers.append(ask(engine, question))
    print(json.dumps({"version": engine.version, "preparation": asdict(engine.preparation), "answers": answers}))
    close = getattr(engine, "close", None)
    if close is not None:
        close()


if __name__ == "__main__":
    main(*sys.argv[1:])
