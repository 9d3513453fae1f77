"""What ``format("secateur")`` refuses before it opens a table."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StructType

from secateur.errors import InvalidOption, UnsupportedTable
from secateur.io.spark.data_source import SecateurDataSource


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("predicat", "no option 'predicat': did you mean 'predicate'"),
        ("mergeSchema", "no option 'mergeSchema': it has"),
    ],
)
def test_a_misspelt_option_is_not_passed_over(option: str, message: str) -> None:
    source = SecateurDataSource({"path": "nowhere", option: "id = 7"})
    with pytest.raises(InvalidOption, match=message):
        source.schema()
    with pytest.raises(InvalidOption, match=message):
        source.reader(StructType([]))


def test_it_only_reads() -> None:
    source = SecateurDataSource({"path": "nowhere"})
    for asked in (source.writer, source.streamWriter):
        with pytest.raises(UnsupportedTable, match="only reads"):
            asked(StructType([]), overwrite=True)


@pytest.mark.parametrize("option", ["snapshot_id", "as_of", "version", "pushdown"])
def test_a_stream_has_no_options_of_a_batch(option: str) -> None:
    with pytest.raises(InvalidOption, match=f"a stream has no option '{option}'"):
        SecateurDataSource({"path": "nowhere", option: "1"}).streamReader(StructType([]))


def test_a_batch_has_no_option_of_streams() -> None:
    with pytest.raises(InvalidOption, match="skip_changes is an option of streams"):
        SecateurDataSource({"path": "nowhere", "skip_changes": "true"}).reader(StructType([]))
