"""Look-ups on real tables: every structure as Spark builds it, through refreshes, verification and vacuum."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secateur as sec
from secateur.index.filters import bloom_fragment, bloom_matrix, transpose
from secateur.index.filters.parquet_bloom import NativeForm
from secateur.index.filters.size_class import shape_of
from secateur.index.read.open_index import current_snapshot
from tests.support.checks.laws import check_table
from tests.support.profiles import by_profile
from tests.support.tables import WriteTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS, GROUP = 600, 50
WORDS = ["alpha", "beta", "gamma", "delta", "Epsilon", "ÉTÉ", "zeta_9", "über"]


def events(seed: int) -> pa.Table:
    """Rows of one file: columns that are not clustered, of many kinds."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, 10**9, ROWS)
    times = [None if i % 13 == 0 else int(t) for i, t in enumerate(rng.integers(0, 10**15, ROWS))]
    return pa.table(
        {
            "rid": pa.array(np.arange(ROWS) + seed * ROWS),
            "user": pa.array(ids),
            "shop": pa.array(rng.integers(0, 40, ROWS).astype(np.int32)),
            "amount": pa.array(np.append(np.repeat(rng.random(ROWS // GROUP) * 1000, GROUP)[1:], 1e9)),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "line": pa.array([f"{WORDS[i % 8]} user={i} {WORDS[(i // 7) % 8]}" for i in ids.tolist()]),
            "tags": pa.array([None if i % 11 == 0 else [f"t{i % 997}", None, f"u{i % 89}"] for i in ids.tolist()]),
            "attrs": pa.array([[(f"k{i % 211}", i % 3)] for i in ids.tolist()], pa.map_(pa.string(), pa.int64())),
            "place": pa.array([{"city": f"c{i % 307}"} for i in ids.tolist()]),
        }
    )


def conditions(table: pa.Table) -> list[str]:
    """Conditions on values that are there, and on some that are not."""
    row = table.slice(len(table) // 2, 1).to_pylist()[0]
    user, tag = row["user"], (row["tags"] or ["t1"])[0]
    return [
        f"user = {user}",
        f"user IN ({user}, 1, 2, 3)",
        "user = 12345",
        f"NOT (user <> {user})",
        f"user = {user} OR shop = 3",
        f"user = {user} AND NOT (shop = 39)",
        f"shop = {row['shop']} AND line LIKE '%user={user}%'",
        "ts = TIMESTAMP '1999-01-01 00:00:00'",
        f"line LIKE '%user={user} %'",
        f"contains(line, 'ta user={str(user)[:6]}')",
        "line LIKE 'Epsilon user=1%'",
        "lower(line) LIKE '%epsilon user=77%'",
        "line RLIKE 'user=1234[0-9]+ zeta_9'",
        "line LIKE '%ÉTÉ user=9%'",
        str(sec.has_token("line", str(user))),
        str(sec.has_token("line", "über")),
        f"array_contains(tags, '{tag}')",
        "array_contains(tags, 'nothing')",
        "map_contains_key(attrs, 'k7')",
        "attrs['k7'] = 1",
        "place.city = 'c5'",
        "amount BETWEEN 1 AND 2",
        f"amount > {float(np.median(table['amount'].to_numpy()))} AND amount < 1000",
    ]


STRUCTURES: list[dict[str, Any]] = [
    {
        "bloom": ["user", "shop", "ts", "tags", "attrs", "place.city"],
        "ngram": {"line": 6},
        "tokens": ["line"],
        "gaps": ["amount"],
    },
    {"postings": ["user", "shop", "ts", "tags", "attrs", "place.city"], "ngram": {"line": {"n": 4, "fold": True}}},
    {"bloom": {"user": "native", "shop": "native", "place.city": "native", "ts": "native"}, "fpr": 0.1},
    {"auto": True, "tokens": {"line": {"fold": True}}},
]


def check(spark: SparkSession, root: Path, texts: Sequence[str], read_paths: int = 0) -> list[int]:
    """All conditions against Spark, some by every read path; how many blocks each keeps."""
    answers = check_table(spark, root, texts, read_paths=read_paths)
    assert set(answers.truth) == set(texts)
    return blocks_left(root, texts)


def blocks_left(root: Path, texts: Sequence[str], **options: Any) -> list[int]:
    table = sec.open_table(str(root))
    return [len(sec.prune(table, text, **options).blocks) for text in texts]


@pytest.mark.parametrize("structures", by_profile(quick=STRUCTURES[:1], full=STRUCTURES, nightly=STRUCTURES))
def test_look_ups_are_right_through_a_refresh(
    spark: SparkSession, write_table: WriteTable, structures: dict[str, Any]
) -> None:
    native = {"bloom_filter_options": {"user": {"ndv": GROUP, "fpp": 0.01}, "shop": {"ndv": GROUP, "fpp": 0.01}}}
    root = write_table({f"{i}.parquet": events(i) for i in range(3)}, row_group_size=GROUP, **native)
    texts = conditions(events(1))
    built = sec.build_index(sec.open_table(str(root)), spark=spark, segment_blocks=12, sort_key=["rid"], **structures)
    assert built.segments == 3
    kept = check(spark, root, texts, read_paths=3)
    assert sec.verify_index(sec.open_table(str(root))).sound
    pq.write_table(events(7), root / "7.parquet", row_group_size=GROUP)
    (root / "0.parquet").unlink()
    check(spark, root, texts)  # a file that is not covered, and one that is gone
    assert sum(kept) < sum(blocks_left(root, texts, use_index=False))
    refreshed = sec.refresh_index(sec.open_table(str(root)), spark=spark).index
    assert refreshed.files == 3
    assert (refreshed.bloom, refreshed.postings, refreshed.ngram) == (built.bloom, built.postings, built.ngram)
    check(spark, root, [*texts, f"user = {events(7)['user'][3].as_py()}"])
    assert sec.verify_index(sec.open_table(str(root))).sound
    sec.vacuum_index(sec.open_table(str(root)), grace_seconds=0)
    assert sec.verify_index(sec.open_table(str(root))).sound


def test_native_filters_are_taken_where_they_serve(spark: SparkSession, write_table: WriteTable) -> None:
    """Of the file that has them; those of the other, and those that are too full, are made."""
    native = {"bloom_filter_options": {"user": {"ndv": GROUP, "fpp": 0.01}, "rid": {"ndv": 1, "fpp": 0.5}}}
    root = write_table({"with.parquet": events(1)}, row_group_size=GROUP, **native)
    pq.write_table(events(2), root / "without.parquet", row_group_size=GROUP)
    table = sec.open_table(str(root))
    sec.build_index(table, spark=spark, bloom={"user": "native", "rid": "native"})
    snapshot = current_snapshot(table.store)
    assert snapshot is not None
    of_user, of_rid = (snapshot.bloom_matrices(f) for f in (0, 1))
    assert of_user is not None
    assert of_rid is not None
    blocks: dict[int | None, int] = dict.fromkeys((None, NativeForm.INT64), 0)
    for size_class, count in zip(of_user.run_size_class.tolist(), of_user.count.tolist(), strict=True):
        blocks[shape_of(size_class).encoding] += count
    assert blocks[NativeForm.INT64] == blocks[None] == ROWS // GROUP
    assert not {shape_of(size_class).encoding for size_class in of_rid.run_size_class.tolist()} & {*NativeForm}
    for number in (1, 2):
        wanted = f"user = {events(number)['user'][77].as_py()}"
        assert sec.prune(table, wanted, strict=True).count() == 1
        assert len(sec.prune(table, wanted, strict=True).blocks) < 4


def test_a_needle_is_found_in_the_blocks_that_hold_it(spark: SparkSession, write_table: WriteTable) -> None:
    """Postings are exact, bloom filters of 10^-6 as good as that here."""
    files = [events(i) for i in range(2)]
    root = write_table({f"{i}.parquet": file for i, file in enumerate(files)}, row_group_size=GROUP)
    whole = pa.concat_tables(files)
    for structures in ({"postings": ["user"]}, {"bloom": ["user"], "fpr": 1e-6}):
        sec.build_index(sec.open_table(str(root)), spark=spark, **structures)
        table = sec.open_table(str(root))
        for rid in (0, 333, 1199):
            plan = sec.prune(table, f"user = {whole['user'][rid].as_py()}", strict=True)
            assert plan.blocks["row_group"].to_pylist() == [rid % ROWS // GROUP]
        assert len(sec.prune(table, "user = 12345", strict=True).blocks) == 0


def test_bloom_matrices_of_many_files_and_fragments(
    spark: SparkSession, write_table: WriteTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts and matrices so small that a job has to write them; what is left at the end is what the snapshot names."""
    root = write_table({f"{i}.parquet": events(i) for i in range(3)}, row_group_size=GROUP)
    table = sec.open_table(str(root))
    whole = sec.build_index(table, spark=spark, segment_blocks=12, bloom=["user"], ngram=["line"])
    expected = blocks_left(root, conditions(events(1)))
    monkeypatch.setattr(transpose, "PART_BYTES", 1024)
    monkeypatch.setattr(transpose, "MATRIX_BLOCKS", 24)
    sec.build_index(table, spark=spark, segment_blocks=12, bloom=["user"], ngram=["line"])
    assert check(spark, root, conditions(events(1))) == expected
    files = [path for path in (root / "_secateur").rglob("*") if path.is_file()]
    assert not [path for path in files if path.parent.name == bloom_fragment.FOLDER]
    assert len([path for path in files if path.parent.name == transpose.FOLDER]) > 20
    sec.vacuum_index(table, grace_seconds=0)
    assert sec.verify_index(table).sound
    assert len(sec.drop_index(table)) > 20
    assert whole.bloom == ("user",)
    assert bloom_matrix.MATRIX_BLOCKS > 24


def test_c04_a_filter_file_that_is_gone_or_broken_keeps_its_blocks(
    spark: SparkSession, write_table: WriteTable
) -> None:
    root = write_table({"a.parquet": events(1)}, row_group_size=GROUP)
    table = sec.open_table(str(root))
    sec.build_index(table, spark=spark, bloom=["user"])
    (file,) = (root / "_secateur" / transpose.FOLDER).iterdir()
    data = file.read_bytes()
    wanted = f"user = {events(1)['user'][3].as_py()}"
    assert len(sec.prune(table, wanted, strict=True).blocks) == 1
    for broken in (None, b"", data[: len(data) // 2], bytes(len(data)), data[::-1]):
        file.unlink(missing_ok=True)
        if broken is not None:
            file.write_bytes(broken)
        plan = sec.prune(sec.open_table(str(root)), wanted)
        assert plan.count() == 1
        assert len(plan.blocks) == ROWS // GROUP
        assert plan.report.degraded
        assert not sec.verify_index(sec.open_table(str(root))).sound


def test_c07_a_build_that_fails_leaves_nothing(
    spark: SparkSession, write_table: WriteTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_table({"a.parquet": events(1)}, row_group_size=GROUP)

    def fail(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(transpose, "write_file", fail)
    with pytest.raises(KeyboardInterrupt):
        sec.build_index(sec.open_table(str(root)), spark=spark, bloom=["user"])
    assert not [path for path in (root / "_secateur").rglob("*") if path.is_file()]
