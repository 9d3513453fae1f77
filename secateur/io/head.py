"""The head of a Parquet file: what its footer says of all row groups alike, kept byte for byte.

A small file that is put together of pages of another has the same head, so pyarrow reads it as it reads that one: the
schema, the Arrow schema in the key-value metadata, and the writer, whose bugs pyarrow knows by name.
Source: parquet.thrift, FileMetaData.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.parquet as pq

from secateur.io import thrift_encoding as thrift
from secateur.io.parquet_schema import Column, read_columns
from secateur.io.thrift import WireField, required_list, wire_fields

MAGIC = b"PAR1"
_VERSION, _SCHEMA, _ROW_COUNT, _ROW_GROUPS, _METADATA, _CREATED_BY, _COLUMN_ORDERS = range(1, 8)
_KEPT = (_VERSION, _SCHEMA, _METADATA, _CREATED_BY, _COLUMN_ORDERS)


@dataclass(frozen=True)
class Head:
    """The footer of a file with all row groups left out."""

    data: bytes  # FileMetaData, as encoded

    @cached_property
    def _fields(self) -> dict[int, WireField]:
        return wire_fields(self.data)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The leaf columns, by ordinal."""
        return read_columns(required_list({_SCHEMA: self._fields[_SCHEMA].value}, _SCHEMA, dict, "FileMetaData.schema"))

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema as pyarrow reads it."""
        return opened_small_file(MAGIC + self.footer(0, [])).schema_arrow

    def leaves(self, names: Sequence[str]) -> list[int]:
        """The ordinals of all leaves of some top-level columns, ascending."""
        wanted = {name.encode() for name in names}
        return [ordinal for ordinal, column in enumerate(self.columns) if column.names[0] in wanted]

    def footer(self, row_count: int, row_groups: Sequence[bytes]) -> bytes:
        """The end of a file with this head: the footer, its length and the magic."""
        footer = _footer(self._fields, row_count, row_groups)
        return footer + len(footer).to_bytes(4, "little") + MAGIC


def head_of(footer: Mapping[int, WireField]) -> Head:
    """The head of a FileMetaData, of which the fields are known."""
    return Head(_footer({number: field for number, field in footer.items() if number in _KEPT}, 0, []))


def _footer(fields: Mapping[int, WireField], row_count: int, row_groups: Sequence[bytes]) -> bytes:
    """An encoded FileMetaData with other row groups."""
    groups = thrift.list_of(thrift.STRUCT, row_groups)
    own = [(_ROW_COUNT, thrift.I64, thrift.integer(row_count)), (_ROW_GROUPS, thrift.LIST, groups)]
    kept = [(number, field.kind, field.data) for number, field in fields.items() if number in _KEPT]
    return thrift.structure(sorted([*kept, *own]))


def opened_small_file(data: bytes) -> pq.ParquetFile:
    """A Parquet file in memory, read in the same way as files of a table; pages that carry a checksum are checked."""
    return pq.ParquetFile(
        pa.BufferReader(data), coerce_int96_timestamp_unit="us", page_checksum_verification=True, pre_buffer=False
    )
