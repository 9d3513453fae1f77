"""An index that somebody else wrote leads to no file outside of the index and the table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog

import secateur as sec
from secateur.errors import IndexFault, SecateurError
from secateur.index.container.index_file import SNAPSHOT
from secateur.index.model import BLOOM, BuildOptions, FilterOption
from secateur.io.parquet import parquet_file
from secateur.io.storage.index_store import FileStore
from secateur.io.storage.locations import all_below
from secateur.io.tables.iceberg.manifest_arrays import FILES, Manifest
from secateur.io.tables.iceberg.manifest_cache import ManifestKey, encode_manifests
from secateur.io.tables.iceberg.snapshot import IcebergSnapshot
from tests.support.stores.index_files import Arrays, with_arrays, with_contents
from tests.support.stores.local_build import index_here
from tests.support.tables import WriteTable

ROWS = pa.table({"id": np.arange(200)})
OPTIONS = BuildOptions(filters=(FilterOption(BLOOM, "id"),), segment_blocks=5)
PATHS = ["../outside.parquet", "a/../../outside.parquet", "{tmp}/outside.parquet"]


@pytest.fixture
def lake(write_table: WriteTable, tmp_path: Path) -> Path:
    """A table of two files with an index, and a file beside it with other rows."""
    root = write_table({"a.parquet": ROWS.slice(0, 100), "b.parquet": ROWS.slice(100, 100)}, row_group_size=10)
    index_here(sec.open_table(root), OPTIONS)
    pq.write_table(pa.table({"id": np.arange(10**6, 10**6 + 100)}), tmp_path / "outside.parquet", row_group_size=10)
    return root


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The Parquet files that are opened while a test runs."""
    paths: list[str] = []
    real = parquet_file.open_data

    def watched(filesystem: pa.fs.FileSystem, path: str, *others: Any) -> pa.NativeFile:
        paths.append(path)
        return real(filesystem, path, *others)

    monkeypatch.setattr(parquet_file, "open_data", watched)
    return paths


def rewrite(root: Path, change: Callable[[bytes], bytes]) -> None:
    snapshot = root / "_secateur" / "snapshots" / "0000000001.snapshot"
    snapshot.write_bytes(change(snapshot.read_bytes()))


def texts(*values: str) -> Callable[[Arrays], Arrays]:
    """Arrays that begin with texts, which are others now."""
    ends = np.cumsum([0, *(len(value.encode()) for value in values)])
    return lambda arrays: [ends, np.frombuffer("".join(values).encode(), np.uint8), *arrays[2:]]


def matching(root: Path, predicate: str) -> list[int]:
    return sorted(sec.prune(sec.open_table(root), predicate).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("listed", [True, False], ids=["same files", "other files"])
@pytest.mark.parametrize("path", PATHS)
def test_entries_for_files_outside_are_not_followed(
    lake: Path, tmp_path: Path, opened: list[str], path: str, listed: bool
) -> None:
    """Whether the snapshot claims to be of just the files that are live, or not."""
    outside = path.format(tmp=tmp_path)
    rewrite(lake, lambda data: with_arrays(data, SNAPSHOT, {"paths": texts(outside, "b.parquet")}).data)
    if not listed:
        rewrite(lake, lambda data: with_contents(data, lambda contents: contents["meta"].update(listing="0" * 32)))
    assert matching(lake, "id >= 0") == list(range(200))
    assert matching(lake, "id = 42 OR id = 142 OR id > 999999") == [42, 142]
    with suppress(SecateurError):
        sec.verify_index(sec.open_table(lake))
        sec.inspect.blocks(sec.open_table(lake))
    assert {Path(name).resolve().parent for name in opened} == {lake}


@pytest.mark.parametrize("name", ["../../secret", "segments/../../../secret", "{tmp}/secret"])
@pytest.mark.parametrize("chunk", ["segments", "bloom-matrices/0", "manifests"])
def test_names_that_lead_out_are_neither_read_nor_removed(lake: Path, tmp_path: Path, name: str, chunk: str) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes((lake / "_secateur/snapshots/0000000001.snapshot").read_bytes())
    secret.chmod(0o600)
    wrong = name.format(tmp=tmp_path)
    if chunk == "manifests":
        made_of = {"id": 1, "manifests": [[wrong, secret.stat().st_size]]}
        rewrite(lake, lambda data: with_contents(data, lambda contents: contents["meta"].update(made_of=made_of)))
    else:
        rewrite(lake, lambda data: with_arrays(data, SNAPSHOT, {chunk: first_named(wrong)}).data)
    table = sec.open_table(lake)
    assert matching(lake, "id = 42") == [42]
    with pytest.raises(IndexFault, match=re.escape(f"{wrong!r} is not the name of an index file")):
        sec.prune(table, "id = 42", strict=True)
    assert not sec.verify_index(table).sound
    with suppress(SecateurError):
        sec.vacuum_index(table, grace_seconds=0)
    assert secret.exists()
    sec.drop_index(table)
    assert secret.exists()
    assert matching(lake, "id = 42") == [42]


def first_named(name: str) -> Callable[[Arrays], Arrays]:
    """Arrays of texts, the first of which is another now."""

    def change(arrays: Arrays) -> Arrays:
        offsets, data = arrays[0].tolist(), bytes(arrays[1])
        values = [data[begin:end].decode() for begin, end in pairwise(offsets)]
        return texts(name, *values[1:])(arrays)

    return change


# ---- what an index keeps of an Iceberg table's manifests ------------------------------------------------------------


def test_kept_manifests_lead_to_no_file_outside_of_the_table(catalog: Catalog, tmp_path: Path) -> None:
    """Where they name one, the manifests themselves are read."""
    catalog.create_table("db.t", schema=ROWS.schema).append(ROWS)
    pq.write_table(pa.table({"id": np.arange(10**6, 10**6 + 100)}), tmp_path / "outside.parquet")
    index_here(sec.open_table("db.t", catalog=catalog), BuildOptions())
    snapshot = sec.open_table("db.t", catalog=catalog).snapshot()
    assert isinstance(snapshot, IcebergSnapshot)
    ((key, good),) = snapshot._read_manifests.items()
    assert snapshot.read == ([], [])
    root = snapshot.location
    for path in (f"{root}/../../outside.parquet", f"{tmp_path}/outside.parquet", f"file://{tmp_path}/outside.parquet"):
        column = good.files.schema.get_field_index("path")
        wrong = replace(good, files=good.files.set_column(column, FILES.field("path"), pa.array([path])))
        keep(snapshot.store, {key: wrong})
        opened = sec.open_table("db.t", catalog=catalog)
        assert sorted(sec.prune(opened, "id >= 0").to_arrow()["id"].to_pylist()) == list(range(200))
        assert opened.snapshot().read == ([key.path], [])
    keep(snapshot.store, {key: good})
    opened = sec.open_table("db.t", catalog=catalog)
    assert sorted(sec.prune(opened, "id >= 0").to_arrow()["id"].to_pylist()) == list(range(200))
    assert opened.snapshot().read == ([], [])


def keep(store: FileStore, manifests: Mapping[ManifestKey, Manifest]) -> None:
    """Put other manifests in the place of those that an index keeps."""
    data = encode_manifests(manifests)
    (file,) = store.files("manifests")
    store.delete(file.name)
    store.put(file.name, data)
    name = "snapshots/0000000001.snapshot"
    content = store.read(name, 0, store.size(name))
    store.delete(name)
    files = [[file.name, len(data)]]
    store.put(name, with_contents(content, lambda contents: contents["meta"]["made_of"].update(manifests=files)))


@pytest.mark.parametrize(
    ("location", "below"),
    [
        ("s3://b/t/data/x.parquet", True),
        ("s3a://b/t/data/x.parquet", True),
        ("s3://b/t2/x.parquet", False),
        ("s3://b/t", False),
        ("s3://b/t/../u/x.parquet", False),
        ("/lake/t/a..b/x.parquet", True),
        ("file:/lake/t/x.parquet", True),
        ("file:///lake/t/x.parquet", True),
        ("/lake/u/x.parquet", False),
        ("hdfs://lake/t/x.parquet", False),
    ],
)
def test_what_is_below_a_directory(location: str, below: bool) -> None:
    assert all_below(pa.array(["s3://b/t/y.parquet", location]), ["s3://b/t/", "file:/lake/t"]) == below
    assert all_below(pa.array([], pa.string()), ["s3://b/t"])
