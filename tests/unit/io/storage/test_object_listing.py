"""Objects of a store in a listing: what tells one from another in its place."""

from __future__ import annotations

import posixpath
import time
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import secateur as sec
from secateur.index.segments.snapshot_files import FOLDER
from secateur.io.storage import index_store
from secateur.io.storage.index_store import FileStore
from secateur.io.storage.locations import resolve_location
from secateur.io.storage.object_listing import objects_in
from tests.support.profiles import takes_seconds
from tests.support.s3_server import S3Server, every


def placed(s3: S3Server, path: str) -> tuple[pafs.FileSystem, str]:
    _, filesystem, root = resolve_location(f"s3://{s3.bucket}/{path}", None)
    return filesystem, root


def test_the_objects_of_a_directory(s3: S3Server) -> None:
    filesystem, root = placed(s3, "listed")
    filesystem.create_dir(f"{root}/folder/below")  # with objects that stand for directories
    names = ["folder/b", "folder/a b%20~", "folder/below/c", "folder-2/d"]
    for name in names:
        with filesystem.open_output_stream(f"{root}/{name}") as stream:
            stream.write(name.encode())
    listed = objects_in(filesystem, f"{root}/folder")
    assert listed is not None
    assert [(item.name, item.size) for item in listed] == [("a b%20~", 14), ("b", 8)]
    assert all(item.tag and abs(item.modified - time.time()) < 60 for item in listed)
    assert objects_in(filesystem, f"{root}/nothing") == []
    by_pyarrow = filesystem.get_file_info(pafs.FileSelector(f"{root}/folder"))
    files = {info.base_name: info for info in by_pyarrow if info.type == pafs.FileType.File}
    assert {item.name: (item.size, item.modified) for item in listed} == {
        name: (info.size, info.mtime_ns / 1e9) for name, info in files.items()
    }
    assert objects_in(pafs.LocalFileSystem(), "/") is None


def test_without_an_answer_pyarrow_lists(s3: S3Server) -> None:
    filesystem, root = placed(s3, "refused")
    store = FileStore(filesystem, root)
    store.put("snapshots/a", b"1")
    with s3.failing(lambda method, path: "list-type" in path or path.rstrip("/").endswith(s3.bucket), "denied"):
        assert objects_in(filesystem, posixpath.join(root, "snapshots")) is None
    assert [file.name for file in store.files("snapshots")] == ["snapshots/a"]
    with s3.failing(every(10**6)):
        assert len(store.files("snapshots")) == 1


def test_another_object_of_the_same_size_and_second_is_told_by_its_tag(s3: S3Server) -> None:
    store = FileStore(*placed(s3, "replaced"))
    for _ in range(20):  # until both puts are within one second
        store.put("snapshots/a", b"1")
        first = store.files("snapshots")
        store.put("snapshots/a", b"2")
        second = store.files("snapshots")
        assert first != second
        if first[0].modified == second[0].modified:
            break
    else:
        pytest.fail("20 times two puts were not within one second")
    assert (first[0].name, first[0].size) == (second[0].name, second[0].size)


def test_files_of_fsspec_have_their_versions_as_tags() -> None:
    class Versioned(MemoryFileSystem):  # type: ignore[misc]
        cachable = False
        versions: ClassVar[dict[str, str]] = {}

        def find(self, path: str, **options: Any) -> Any:
            listed = super().find(path, **options)
            return {name: {**info, "ETag": self.versions.get(name[-1])} for name, info in listed.items()}

    store = FileStore(pafs.PyFileSystem(pafs.FSSpecHandler(Versioned())), "/tagged")
    store.put("snapshots/a", b"1")
    Versioned.versions = {"a": "v1"}
    first = store.files("snapshots")
    Versioned.versions = {"a": "v2"}
    second = store.files("snapshots")
    assert first[0].tag and second[0].tag and first[0].tag != second[0].tag
    Versioned.versions = {}
    assert store.files("snapshots")[0].tag == ""


@takes_seconds
def test_an_index_built_anew_within_a_second_is_another(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the times: they are the same for all files here, as within one second on S3."""
    plain = index_store.objects_in

    def at_once(filesystem: pafs.FileSystem, directory: str) -> object:
        listed = plain(filesystem, directory)
        return listed and [type(item)(item.name, item.size, 1.0, item.tag) for item in listed]

    monkeypatch.setattr(index_store, "objects_in", at_once)
    filesystem, root = placed(s3, "anew")
    filesystem.create_dir(root)
    pq.write_table(pa.table({"id": range(100)}), f"{root}/a.parquet", filesystem=filesystem, row_group_size=10)
    location = f"s3://{root}"
    other = sec.open_table(location)
    sec.build_index(sec.open_table(location), bloom=["id"])
    assert sec.prune(other, "id = 7", strict=True).count() == 1
    before = other.store.files(FOLDER)
    for _ in range(100):  # until the sizes are equal too, which vary by the digits of checksums
        sec.drop_index(sec.open_table(location))
        sec.build_index(sec.open_table(location), bloom=["id"])
        if [file.size for file in other.store.files(FOLDER)] == [file.size for file in before]:
            break
    else:
        pytest.fail("no two of 100 snapshots have one size")
    plan = sec.prune(other, "id = 17", strict=True)
    assert (plan.count(), plan.report.degraded, len(plan.blocks)) == (1, (), 1)
