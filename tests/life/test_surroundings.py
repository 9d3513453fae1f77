"""What surrounds a table: open files, credentials, caches given as text, filters that a later version wrote."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import secateur as sec
from secateur.errors import TooManyOpenFiles
from secateur.index.segments import snapshot as snapshots
from secateur.io.storage.disk_cache import DEFAULT_BYTES, DiskCache
from secateur.io.storage.redaction import trouble
from secateur.io.storage.s3_object import s3_object


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "lake"
    root.mkdir()
    for i in range(3):
        pq.write_table(pa.table({"id": range(10 * i, 10 * i + 10)}), root / f"{i}.parquet", row_group_size=5)
    sec.build_index(sec.open_table(str(root)), bloom=["id"], segment_blocks=2)
    yield root


def test_no_file_can_be_opened(root: Path) -> None:
    """The table is there: it is this process that has too many files."""
    table = sec.open_table(str(root))
    assert sec.prune(table, "id = 3").count() == 1  # and all modules are imported
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = os.open(root, os.O_RDONLY)
    os.close(opened)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (opened, limits[1]))
        with pytest.raises(TooManyOpenFiles, match="Too many open files"):
            sec.prune(table, "id = 3")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert sec.prune(table, "id = 3", strict=True).count() == 1


@pytest.mark.parametrize("error", [OSError(errno.EMFILE, "so many"), OSError("x: Too many open files")])
def test_trouble_tells_too_many_files(error: OSError) -> None:
    assert type(trouble("cannot list", error, sec.errors.TableNotFound)) is TooManyOpenFiles


@pytest.mark.parametrize(
    ("disabled", "role", "has_client"), [("true", "", False), ("false", "", True), ("true", "x", True)]
)
def test_a_machine_that_is_not_to_be_asked_for_credentials(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, disabled: str, role: str, has_client: bool
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", disabled)
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", role)
    assert (s3_object(pafs.S3FileSystem(region="eu-central-1"), "bucket/key") is not None) == has_client


def test_a_disk_cache_is_where_a_text_says(tmp_path: Path) -> None:
    cache = DiskCache(str(tmp_path))
    assert (cache.directory, cache.most_bytes) == (tmp_path, DEFAULT_BYTES)
    assert cache.get("key", lambda: b"value") == b"value"
    assert cache.find("key") == b"value"


def test_a_filter_of_unknown_kind_stays_as_it_is(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = snapshots.filter_of

    def unknown(meta: dict[str, Any]) -> Any:
        return replace(known(meta), kind="cuckoo")

    monkeypatch.setattr(snapshots, "filter_of", unknown)
    table = sec.open_table(str(root))
    assert sec.prune(table, "id = 3", strict=True).count() == 1
    assert sec.verify_index(table).sound
    assert "cuckoo" in {entry.structure for entry in sec.describe_index(table).coverage}
    assert sec.optimize_index(table).segments_after >= 1
    assert sec.prune(table, "id = 3", strict=True).count() == 1
