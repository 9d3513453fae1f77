"""Files of which some columns are encrypted: the others are read, and those are named."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import secateur as sec
from secateur.errors import InvalidParquet

ROWS = 1_000


class Keys(pe.KmsClient):  # type: ignore[misc]
    """Wraps keys by writing them down, as no real one does."""

    def wrap_key(self, key: bytes, master: str) -> bytes:
        return base64.b64encode(key)

    def unwrap_key(self, wrapped: bytes, master: str) -> bytes:
        return base64.b64decode(wrapped)


def write(path: Path, **options: Any) -> None:
    factory = pe.CryptoFactory(lambda _: Keys())
    configuration = pe.EncryptionConfiguration(footer_key="f", column_keys={"c": ["secret"]}, **options)
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), configuration)
    data = pa.table({"id": range(ROWS), "secret": ["hidden"] * ROWS, "name": [f"n{i}" for i in range(ROWS)]})
    with pq.ParquetWriter(path, data.schema, encryption_properties=properties) as writer:
        writer.write_table(data, row_group_size=250)


def test_other_columns_are_read(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", plaintext_footer=True)
    table = sec.open_table(str(tmp_path))
    plan = sec.prune(table, "id = 707", strict=True)
    assert plan.to_arrow(["name", "id"]).to_pylist() == [{"name": "n707", "id": 707}]
    with pytest.raises(InvalidParquet, match=r"row group 2 of .*a\.parquet: .*[Dd]ecrypt"):
        plan.to_arrow()
    with pytest.raises(InvalidParquet, match=r"a\.parquet: .*[Dd]ecrypt"):
        sec.build_index(table)


def test_a_file_whose_footer_is_encrypted_is_named(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", plaintext_footer=False)
    with pytest.raises(InvalidParquet, match=r"a\.parquet: encrypted footer \(PARE\) is not supported"):
        sec.prune(sec.open_table(str(tmp_path)), "id = 707")
