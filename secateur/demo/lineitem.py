"""The demo's data: TPC-H's lineitem as its generator writes it, and the same rows sorted by ship date.

A copy is made in a temporary directory and renamed, so it appears whole or not at all. Leftovers of an interrupted run
are removed by the next one.
"""

from __future__ import annotations

import fcntl
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from secateur.errors import SecateurError

ROWS_PER_SCALE = 6_000_000
BLOCKS_PER_FILE = 10
MOST_BLOCK_ROWS, LEAST_BLOCK_ROWS = 15_000, 1_500
PAGES_PER_BLOCK = 6
BYTES_PER_ROW = 66  # as the generator counts them for --row-group-bytes

ASIDE = ".making-"
LOCK = ".lock"
Write = Callable[[Path], None]


class DemoNotPossible(SecateurError):
    """Something that the demo needs is missing or does not work."""


@dataclass(frozen=True)
class Copy:
    """One copy of the table, in its own order."""

    name: str
    path: Path
    sort_key: str


@dataclass(frozen=True)
class Shape:
    """The number of files and blocks of a table: about 400 blocks at scale factor 1."""

    files: int
    block_rows: int

    @property
    def page_rows(self) -> int:
        return self.block_rows // PAGES_PER_BLOCK


def shape_of(scale_factor: float) -> Shape:
    """Return the shape of a table: with few rows, blocks are smaller, so that there are still many."""
    rows = ROWS_PER_SCALE * scale_factor
    block_rows = int(min(max(rows / 400, LEAST_BLOCK_ROWS), MOST_BLOCK_ROWS))
    return Shape(math.ceil(rows / (block_rows * BLOCKS_PER_FILE)), block_rows)


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Lock a directory against other demos, creating it if needed. Raises DemoNotPossible."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = open(directory / LOCK, "w")  # noqa: SIM115
    except OSError as error:
        raise DemoNotPossible(f"cannot write to {directory}: {error}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DemoNotPossible(f"another demo is running in {directory}: wait for it, or use --directory") from None
        yield


def make_copies(
    directory: Path, scale_factor: float, *, fresh: bool, on_step: Callable[[str], None]
) -> tuple[Copy, Copy]:
    """Make the two copies, reusing complete ones unless `fresh`.

    Raises DemoNotPossible if the generator is missing or fails.
    """
    home = directory / f"lineitem-sf{scale_factor:g}"
    shape = shape_of(scale_factor)
    generated = Copy("generated", home / "generated", "l_orderkey")
    clustered = Copy("clustered", home / "clustered", "l_shipdate")
    home.mkdir(exist_ok=True)
    if fresh or not generated.path.is_dir():
        on_step(f"generating lineitem, scale factor {scale_factor:g}")
        whole_directory(generated.path, lambda path: _generate(path, scale_factor, shape))
    if fresh or not clustered.path.is_dir():
        on_step("sorting a copy by l_shipdate")
        whole_directory(clustered.path, lambda path: _cluster(generated.path, path, shape))
    return generated, clustered


def whole_directory(path: Path, write: Write) -> None:
    """Write a directory under a temporary name and rename it; only then is an older one removed.

    What an interrupted run left is removed first. Raises DemoNotPossible if the disk does not take it.
    """
    for left in path.parent.glob(f"{ASIDE}*"):
        shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=ASIDE, dir=path.parent) as aside:
        unfinished = Path(aside) / "new"
        try:
            write(unfinished)
        except OSError as error:
            raise DemoNotPossible(f"cannot make {path}: {error}") from None
        if path.exists():
            path.rename(Path(aside) / "old")
        unfinished.rename(path)


def _generate(path: Path, scale_factor: float, shape: Shape) -> None:
    command = [
        *(_generator(), "parquet", "--quiet", "--no-progress"),
        *("--scale-factor", f"{scale_factor:g}", "--tables", "lineitem", "--parts", str(shape.files)),
        *("--row-group-bytes", str(shape.block_rows * BYTES_PER_ROW), "--output-dir", str(path.parent / "generator")),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DemoNotPossible(f"the data generator failed: {' '.join(command)}\n{done.stderr.strip()}")
    output = path.parent / "generator" / "lineitem"
    (output if output.is_dir() else output.parent).rename(path)  # a single part is written without a directory


def _generator() -> str:
    """Return the generator of this environment, else the one on the PATH."""
    beside = Path(sys.executable).with_name("tpchgen-cli")
    program = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if program is None:
        raise DemoNotPossible("the data generator tpchgen-cli is missing: pip install 'secateur[demo]'")
    return program


def _cluster(source: Path, path: Path, shape: Shape) -> None:
    """Write the rows of a copy sorted by l_shipdate over the whole table, with a page index."""
    table = _plain_strings(pq.read_table(source))
    order = pc.sort_indices(table, [("l_shipdate", "ascending")])
    file_rows = math.ceil(len(table) / shape.files)
    path.mkdir()

    def write(number: int) -> None:
        rows = table.take(order[number * file_rows : (number + 1) * file_rows])
        pq.write_table(
            rows,
            path / f"part-{number:05d}.parquet",
            row_group_size=math.ceil(file_rows / BLOCKS_PER_FILE),
            write_page_index=True,
            # A page ends after the batch that fills it, so a limit of one byte gives pages of write_batch_size rows.
            data_page_size=1,
            write_batch_size=shape.page_rows,
        )

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(write, range(shape.files)))


def _plain_strings(table: pa.Table) -> pa.Table:
    """Return the table without string views, which some pyarrow kernels do not accept."""
    fields = [f.with_type(pa.string()) if pa.types.is_string_view(f.type) else f for f in table.schema]
    return table.cast(pa.schema(fields))
