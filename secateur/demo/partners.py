"""Helper processes of a measurement, so that their work does not slow down what is measured.

A partner is a module that answers every line of JSON on its standard input with one on its standard output.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parent.parent.parent  # modules are imported from here
MOST_SECONDS_TO_END = 10


@dataclass(frozen=True)
class Partner:
    """A running helper process."""

    process: subprocess.Popen[str]
    questions: IO[str]
    answers: IO[str]

    def ask(self, question: Any) -> Any:
        """Send a question and return the answer. Raises RuntimeError if the process has ended instead."""
        self.questions.write(json.dumps(question) + "\n")
        self.questions.flush()
        answer = self.answers.readline()
        if not answer:
            raise RuntimeError(f"{self.process.args!r} ended with {self.process.wait()} instead of an answer")
        return json.loads(answer)


@contextmanager
def partner(module: str, *arguments: str, environment: Mapping[str, str]) -> Iterator[Partner]:
    """Run a module in a process of its own until this context ends."""
    command = [sys.executable, "-m", module, *arguments]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=ROOT, env={**environment}, text=True, start_new_session=True, **pipes)
    assert process.stdin is not None and process.stdout is not None, "it was made with pipes"
    try:
        yield Partner(process, process.stdin, process.stdout)
    finally:
        process.stdin.close()  # the partner then ends by itself
        try:
            process.wait(MOST_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answer_all(answer: Callable[[Any], Any]) -> None:
    """Answer questions until standard input is closed."""
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
