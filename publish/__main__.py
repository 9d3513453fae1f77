"""Make what is uploaded to a package index: ``python -m publish URL``, with the address of the repository.

Needs ``build``. The files are those of the last commit.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

import click

from publish import with_absolute_links, with_urls

ROOT = Path(__file__).parents[1]


@click.command()
@click.argument("url")
@click.option("--into", type=click.Path(path_type=Path), default=ROOT / "dist", help="Where the package is put.")
def main(url: str, into: Path) -> None:
    """Build the sdist and the wheel with links and project addresses under URL."""
    files = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=BytesIO(files)) as archive:
            archive.extractall(folder, filter="data")
        for name, changed in (("README.md", with_absolute_links), ("pyproject.toml", with_urls)):
            path = Path(folder) / name
            path.write_text(changed(path.read_text("utf-8"), url.rstrip("/")), "utf-8")
        subprocess.run([sys.executable, "-m", "build", "--outdir", str(into.absolute()), folder], check=True)


if __name__ == "__main__":
    main()
