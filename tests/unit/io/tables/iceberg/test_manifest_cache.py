"""Whatever commits do to a table's manifests, the files beside its index hold all of them, and are few."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log2
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.catalog import Catalog

import secateur as sec
from secateur.index.container.index_file import ReadRange
from secateur.io.tables.iceberg import snapshot
from secateur.io.tables.iceberg.manifest_arrays import FILES, ByField, Manifest
from secateur.io.tables.iceberg.manifest_cache import ManifestKey, decode_manifests, manifest_bytes, shared_manifests
from secateur.io.tables.iceberg.table import IcebergTable
from tests.support.formats.iceberg_rows import SCHEMA, ids, rows
from tests.support.profiles import examples


def manifest(number: int, files: int) -> Manifest:
    """One that lists files whose names do not compress."""
    rng = np.random.default_rng(number)
    listed = [{"path": f"s3://lake/{rng.bytes(24).hex()}.parquet", "content": 0, "size": 10} for _ in range(files)]
    nothing = ByField(np.zeros(0, np.int32), np.zeros(0, np.int32), pa.nulls(0, pa.int64()))
    binary = ByField(nothing.row, nothing.id, pa.nulls(0, pa.binary()))
    batch = pa.RecordBatch.from_pylist(listed, schema=FILES)
    return Manifest(batch, {1000: pa.array(range(files), pa.int64())}, nothing, nothing, binary, binary)


def key_of(number: int) -> ManifestKey:
    return ManifestKey(f"s3://lake/m{number}.avro", 100, number, False)


@dataclass
class Beside:
    """The files of manifests beside an index, in the order in which they were written."""

    files: list[bytes] = field(default_factory=list)
    written: int = 0

    def held(self) -> list[dict[ManifestKey, int]]:
        return [manifest_bytes("file", len(data), reader(data)) for data in self.files]

    def keep(self, manifests: Mapping[ManifestKey, Manifest]) -> None:
        kept, data = shared_manifests(self.held(), manifests)
        self.files = [self.files[i] for i in kept] + ([] if data is None else [data])
        self.written += 0 if data is None else len(data)

    def read(self, wanted: Sequence[ManifestKey]) -> dict[ManifestKey, Manifest]:
        decoded: dict[ManifestKey, Manifest] = {}
        for data in self.files:
            decoded |= decode_manifests("file", len(data), reader(data), wanted)
        return decoded


def reader(data: bytes) -> ReadRange:
    return lambda at, size: data[at : at + size]


STEPS = st.lists(
    st.tuples(st.lists(st.integers(1, 40), max_size=3), st.floats(0, 1), st.booleans()), min_size=1, max_size=12
)


@examples(150)
@given(STEPS)
def test_all_manifests_are_held(steps: list[tuple[list[int], float, bool]]) -> None:
    """Some come, a share of the earlier ones goes, and a file may be lost."""
    beside, manifests = Beside(), dict[ManifestKey, Manifest]()
    number = 0
    for new, stays, is_lost in steps:
        manifests = dict(list(manifests.items())[: round(stays * len(manifests))])
        for files in new:
            number += 1
            manifests[key_of(number)] = manifest(number, files)
        if is_lost and beside.files:
            beside.files[0] = beside.files[0][:-1]
        beside.keep(manifests)
        decoded = beside.read([*manifests])
        assert decoded.keys() == manifests.keys()
        assert all(decoded[key].files.equals(manifests[key].files) for key in manifests)
        assert len(beside.files) <= 2 + log2(1 + sum(map(len, beside.files)))


def test_little_is_written_again() -> None:
    """Of one small manifest after another each is written some ten times, not hundreds of times."""
    beside, manifests, most = Beside(), dict[ManifestKey, Manifest](), 0
    for number in range(400):
        manifests[key_of(number)] = manifest(number, 5)
        beside.keep(manifests)
        most = max(most, len(beside.files))
    size = sum(map(len, beside.files))
    assert beside.written < 12 * size
    assert most <= 10
    beside.keep(manifests)
    assert beside.written < 12 * size, "nothing is written where all is held"


@pytest.fixture
def read_manifests(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The manifests that are read, and not taken from beside an index."""
    paths: list[str] = []
    original = snapshot.read_manifest
    monkeypatch.setattr(
        snapshot, "read_manifest", lambda io, file: (paths.append(file.manifest_path), original(io, file))[1]
    )
    return paths


def test_a_refresh_writes_new_manifests_only(catalog: Catalog, read_manifests: list[str]) -> None:
    """What was written stays; a vacuum keeps it, and a repair replaces what is broken."""
    table = catalog.create_table("db.t", SCHEMA)
    for number in range(12):
        table.append(rows(number))
    opened = sec.open_table(table)
    assert isinstance(opened, IcebergTable)
    sec.build_index(opened)
    folder = Path(opened.store.root) / "manifests"
    (whole,) = folder.iterdir()
    table.append(rows(12))
    sec.refresh_index(sec.open_table(table))
    (added,) = {*folder.iterdir()} - {whole}
    assert added.stat().st_size < whole.stat().st_size / 2
    table.append(rows(13))
    sec.refresh_index(sec.open_table(table))
    sec.vacuum_index(opened, grace_seconds=-1)
    assert whole in {*folder.iterdir()}
    read_manifests.clear()
    assert ids(sec.open_table(table)) == [*range(14)]
    assert read_manifests == []
    assert sec.verify_index(sec.open_table(table)).sound
    data = bytearray(whole.read_bytes())
    data[40] ^= 1
    whole.write_bytes(data)
    assert ids(sec.open_table(table)) == [*range(14)]
    assert len(read_manifests) == 12, "of a file with a broken chunk none is taken; those of the other are"
    assert not sec.verify_index(sec.open_table(table)).sound
    sec.refresh_index(sec.open_table(table), repair=True)
    assert sec.verify_index(sec.open_table(table)).sound
    sec.vacuum_index(opened, grace_seconds=-1)
    assert whole not in {*folder.iterdir()}
    for file in folder.iterdir():
        file.unlink()
    table.append(rows(14))
    sec.refresh_index(sec.open_table(table))
    read_manifests.clear()
    assert ids(sec.open_table(table)) == [*range(15)]
    assert read_manifests == []
