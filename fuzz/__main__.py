"""Run targets under atheris: ``python -m fuzz [--seconds N] [TARGET ...]``.

Each target runs in a process of its own, with bounds on memory and on the time of one input. An input on which a target
fails is left in ``fuzz/found``; the first ends the target, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
FOUND, WORK = HERE / "found", HERE / "work"
INPUT_SECONDS = 5
MOST_MEGABYTES = 2048  # of a process, half of it once Python and Arrow are loaded
MOST_ADDRESSES = 8 << 30  # bytes: what is allocated and not touched counts here


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    options.add_argument("targets", nargs="*")
    options.add_argument("--seconds", type=int, default=60, help="for each target")
    options.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.inside:
        fuzz(asked.targets[0], asked.seconds)
    from fuzz.targets import TARGETS

    codes = {}
    for name in asked.targets or TARGETS:
        command = [sys.executable, "-m", "fuzz", name, "--inside", "--seconds", str(asked.seconds)]
        done = subprocess.run(command, capture_output=True, text=True)
        codes[name] = done.returncode
        (WORK / f"{name}.log").write_text(done.stderr)
        print(f"{name:10} {'ok' if not done.returncode else 'FAILED'}  {summary(done.stderr)}", flush=True)
        if done.returncode:
            print(done.stderr[-3000:], flush=True)
    return int(any(codes.values()))


def summary(log: str) -> str:
    """What libFuzzer says at the end."""
    last = [line for line in log.splitlines() if line.startswith(("Done", "stat::number_of_executed_units"))]
    return "; ".join(last)


def fuzz(name: str, seconds: int) -> None:
    """Run one target in this process; does not return."""
    import atheris

    with atheris.instrument_imports(include=["secateur"]):
        from fuzz.seeds import seeds
        from fuzz.targets import run
    corpus = WORK / name
    corpus.mkdir(parents=True, exist_ok=True)
    FOUND.mkdir(exist_ok=True)
    for i, seed in enumerate(seeds(name)):
        (corpus / f"seed-{i:04d}").write_bytes(seed)
    limits = [f"-max_total_time={seconds}", f"-timeout={INPUT_SECONDS}", f"-rss_limit_mb={MOST_MEGABYTES}"]
    places = [f"-artifact_prefix={FOUND}/{name}-", "-print_final_stats=1", "-max_len=65536", str(corpus)]
    atheris.Setup([sys.argv[0], *limits, *places], lambda data: run(name, data))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
