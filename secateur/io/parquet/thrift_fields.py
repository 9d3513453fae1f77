"""The fields of Parquet's Thrift structures that are read or written here: the id and type of each, once.

Source: parquet.thrift, whose names these are.
"""

from __future__ import annotations

from secateur.io.parquet.thrift import binaries, binary, boolean, booleans, i32, i32s, i64, i64s, struct, structs


class FileMetaData:
    version = i32(1)
    schema = structs(2)
    num_rows = i64(3)
    row_groups = structs(4)
    key_value_metadata = structs(5)
    created_by = binary(6)
    column_orders = structs(7)


class KeyValue:
    key = binary(1)
    value = binary(2)


class SchemaElement:
    type = i32(1)
    type_length = i32(2)
    repetition_type = i32(3)
    name = binary(4)
    num_children = i32(5)
    converted_type = i32(6)
    scale = i32(7)
    precision = i32(8)
    logicalType = struct(10)  # noqa: N815


class DecimalType:
    scale = i32(1)
    precision = i32(2)


class IntType:
    bitWidth = i32(1)  # noqa: N815
    isSigned = boolean(2)  # noqa: N815


class TimestampType:
    isAdjustedToUTC = boolean(1)  # noqa: N815
    unit = struct(2)


class RowGroup:
    columns = structs(1)
    total_byte_size = i64(2)
    num_rows = i64(3)
    total_compressed_size = i64(6)


class ColumnChunk:
    file_path = binary(1)
    file_offset = i64(2)
    meta_data = struct(3)
    offset_index_offset = i64(4)
    offset_index_length = i32(5)
    column_index_offset = i64(6)
    column_index_length = i32(7)
    crypto_metadata = struct(8)


class ColumnMetaData:
    type = i32(1)
    encodings = i32s(2)
    path_in_schema = binaries(3)
    codec = i32(4)
    num_values = i64(5)
    total_uncompressed_size = i64(6)
    total_compressed_size = i64(7)
    data_page_offset = i64(9)
    dictionary_page_offset = i64(11)
    statistics = struct(12)
    encoding_stats = structs(13)
    bloom_filter_offset = i64(14)
    bloom_filter_length = i32(15)


class Statistics:
    max = binary(1)
    min = binary(2)
    null_count = i64(3)
    max_value = binary(5)
    min_value = binary(6)
    is_max_value_exact = boolean(7)
    is_min_value_exact = boolean(8)
    nan_count = i64(9)


class PageEncodingStats:
    page_type = i32(1)
    encoding = i32(2)
    count = i32(3)


class PageHeader:
    type = i32(1)
    uncompressed_page_size = i32(2)
    compressed_page_size = i32(3)
    data_page_header = struct(5)
    dictionary_page_header = struct(7)
    data_page_header_v2 = struct(8)


class DataPageHeader:
    num_values = i32(1)
    encoding = i32(2)


class DictionaryPageHeader:
    num_values = i32(1)
    encoding = i32(2)


class DataPageHeaderV2:
    num_values = i32(1)
    num_rows = i32(3)
    encoding = i32(4)


class OffsetIndex:
    page_locations = structs(1)


class PageLocation:
    offset = i64(1)
    compressed_page_size = i32(2)
    first_row_index = i64(3)


class ColumnIndex:
    null_pages = booleans(1)
    min_values = binaries(2)
    max_values = binaries(3)
    null_counts = i64s(5)
    nan_counts = i64s(8)


class BloomFilterHeader:
    numBytes = i32(1)  # noqa: N815
    algorithm = struct(2)
    hash = struct(3)
    compression = struct(4)
