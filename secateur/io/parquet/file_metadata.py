"""The file metadata of a Parquet file: what its footer says about all row groups alike, kept byte for byte.

A small file assembled from pages of another file has the same file metadata, so pyarrow reads both alike: the schema,
the Arrow schema in the key-value metadata, and the writer, whose bugs pyarrow knows by name. Source: parquet.thrift,
FileMetaData, RowGroup, ColumnChunk, ColumnMetaData.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import pyarrow as pa
import pyarrow.parquet as pq

from secateur.errors import InvalidParquet
from secateur.io.parquet import thrift_encoding
from secateur.io.parquet import thrift_fields as spec
from secateur.io.parquet.page_header import PLAIN, RLE
from secateur.io.parquet.schema import SchemaColumn, read_columns
from secateur.io.parquet.thrift import (
    BINARY,
    I32,
    STRUCT,
    Struct,
    WireField,
    optional,
    optional_list,
    required,
    required_list,
    wire_fields,
)
from secateur.io.parquet.thrift_encoding import encoded, integer, list_of, structure, tag

MAGIC = b"PAR1"
_FIELDS = spec.FileMetaData
_KEPT = {
    kept_field.id
    for kept_field in (
        _FIELDS.version,
        _FIELDS.schema,
        _FIELDS.key_value_metadata,
        _FIELDS.created_by,
        _FIELDS.column_orders,
    )
}


@dataclass(frozen=True)
class ChunkPlace:
    """The location of a column chunk in a file, and its counts."""

    start: int  # byte offset in the file
    size: int  # bytes
    dictionary: int  # bytes of the dictionary page
    value_count: int
    codec: int


@dataclass(frozen=True)
class FileMetadata:
    """The footer of a file without its row groups."""

    data: bytes  # FileMetaData, as encoded

    @cached_property
    def _fields(self) -> dict[int, WireField]:
        return wire_fields(self.data)

    @property
    def _values(self) -> Struct:
        return {number: field.value for number, field in self._fields.items()}

    @cached_property
    def columns(self) -> tuple[SchemaColumn, ...]:
        """The leaf columns, by ordinal."""
        return read_columns(required_list(self._values, _FIELDS.schema))

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema as pyarrow reads it. Raises InvalidParquet."""
        try:
            return opened_small_file(MAGIC + self.footer(0, {})).schema_arrow
        except (pa.ArrowException, OSError) as error:
            raise InvalidParquet(f"the schema cannot be read: {error}") from None

    @cached_property
    def metadata(self) -> dict[bytes, bytes]:
        """The key_value_metadata."""
        return _key_values(optional_list(self._values, spec.FileMetaData.key_value_metadata) or [])

    def schema_of(self, names: Collection[str]) -> pa.Schema:
        """Return the schema of some top-level columns, in file order."""
        return _schema_of(self, frozenset(names))

    def leaves(self, names: Collection[str]) -> tuple[int, ...]:
        """Return the ordinals of all leaves of some top-level columns, ascending.

        Raises InvalidParquet if two columns have one of these names.
        """
        return _leaves_of(self, frozenset(names))

    def footer(self, row_count: int, chunks: Mapping[int, ChunkPlace]) -> bytes:
        """Return the end of a file with this file metadata: the footer, its length and the magic.

        It has one row group of `row_count` rows, in which the leaves of the given ordinals have values. The other
        leaves have empty chunks and cannot be read. Without chunks there is no row group.
        """
        described = [*self._without_values]
        for ordinal, place in chunks.items():
            described[ordinal] = _column_chunk(self._column_metadata[ordinal], place)
        group = [
            encoded(spec.RowGroup.columns, list_of(STRUCT, described)),
            encoded(spec.RowGroup.total_byte_size, integer(sum(place.size for place in chunks.values()))),
            encoded(spec.RowGroup.num_rows, integer(row_count)),
        ]
        footer = _footer(self._fields, row_count, [structure(group)] if chunks else [])
        return footer + len(footer).to_bytes(4, "little") + MAGIC

    @cached_property
    def _column_metadata(self) -> tuple[bytes, ...]:
        """The fields of ColumnMetaData that are the same in all chunks of a leaf, by the leaf's ordinal."""
        return tuple(map(_constant_metadata, self.columns))

    @cached_property
    def _without_values(self) -> tuple[bytes, ...]:
        """A ColumnChunk without values for each leaf, by its ordinal."""
        return tuple(_column_chunk(metadata, ChunkPlace(len(MAGIC), 0, 0, 0, 0)) for metadata in self._column_metadata)


@lru_cache(maxsize=256)
def _schema_of(head: FileMetadata, names: frozenset[str]) -> pa.Schema:
    return pa.schema([field for field in head.schema if field.name in names], head.schema.metadata)


@lru_cache(maxsize=256)
def _leaves_of(head: FileMetadata, names: frozenset[str]) -> tuple[int, ...]:
    chosen = _schema_of(head, names).names
    if len(set(chosen)) < len(chosen):
        raise InvalidParquet(f"several of the columns {', '.join(chosen)} have the same name")
    wanted = {name.encode() for name in names}
    return tuple(ordinal for ordinal, column in enumerate(head.columns) if column.names[0] in wanted)


@lru_cache(maxsize=64)
def known_head(data: bytes) -> FileMetadata:
    """Return file metadata stored in an index, cached: files of one writer share it and its decoded form."""
    return FileMetadata(data)


def head_of(footer: Mapping[int, WireField]) -> FileMetadata:
    """Return the file metadata, from the fields of a FileMetaData."""
    return FileMetadata(_footer({number: field for number, field in footer.items() if number in _KEPT}, 0, []))


def _footer(fields: Mapping[int, WireField], row_count: int, row_groups: Sequence[bytes]) -> bytes:
    """Encode a FileMetaData with other row groups."""
    groups = list_of(STRUCT, row_groups)
    counts = [encoded(_FIELDS.num_rows, integer(row_count)), encoded(_FIELDS.row_groups, groups)]
    kept = [(number, field.kind, field.data) for number, field in fields.items() if number in _KEPT]
    return structure(sorted([*kept, *counts]))


def _key_values(pairs: Sequence[Struct]) -> dict[bytes, bytes]:
    return {required(pair, spec.KeyValue.key): optional(pair, spec.KeyValue.value) or b"" for pair in pairs}


def _constant_metadata(column: SchemaColumn) -> bytes:
    of_column = spec.ColumnMetaData
    return thrift_encoding.fields(
        [
            encoded(of_column.type, integer(column.physical)),
            encoded(of_column.encodings, list_of(I32, [integer(PLAIN), integer(RLE)])),
            encoded(of_column.path_in_schema, list_of(BINARY, [thrift_encoding.binary(name) for name in column.names])),
        ]
    )


_OF_CHUNK, _OF_COLUMN = spec.ColumnChunk, spec.ColumnMetaData
_OFFSET, _METADATA = tag(_OF_CHUNK.file_offset), tag(_OF_CHUNK.meta_data, _OF_CHUNK.file_offset.id)
_CODEC = tag(_OF_COLUMN.codec, _OF_COLUMN.path_in_schema.id)
_VALUES = tag(_OF_COLUMN.num_values, _OF_COLUMN.codec.id)
_UNCOMPRESSED = tag(_OF_COLUMN.total_uncompressed_size, _OF_COLUMN.num_values.id)
_COMPRESSED = tag(_OF_COLUMN.total_compressed_size, _OF_COLUMN.total_uncompressed_size.id)
_DATA = tag(_OF_COLUMN.data_page_offset, _OF_COLUMN.total_compressed_size.id)
_DICTIONARY = tag(_OF_COLUMN.dictionary_page_offset, _OF_COLUMN.data_page_offset.id)
_STOP = b"\0"


def _column_chunk(metadata_of_file: bytes, place: ChunkPlace) -> bytes:
    start, size = integer(place.start), integer(place.size)
    parts = [_OFFSET, start, _METADATA, metadata_of_file, _CODEC, integer(place.codec)]
    parts += [_VALUES, integer(place.value_count), _UNCOMPRESSED, size, _COMPRESSED, size]
    parts += [_DATA, integer(place.start + place.dictionary)]
    if place.dictionary:
        parts += [_DICTIONARY, start]
    return b"".join([*parts, _STOP, _STOP])


def opened_small_file(data: bytes) -> pq.ParquetFile:
    """Open a Parquet file in memory, with the options used for a table's files; page checksums are verified."""
    return pq.ParquetFile(
        pa.BufferReader(data), coerce_int96_timestamp_unit="us", page_checksum_verification=True, pre_buffer=False
    )
