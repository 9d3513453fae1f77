"""The header of a page.

Source: parquet.thrift, PageHeader, DataPageHeader, DataPageHeaderV2, DictionaryPageHeader.
"""

from __future__ import annotations

from dataclasses import dataclass

from secateur.errors import InvalidParquet
from secateur.io.parquet import thrift_fields as spec
from secateur.io.parquet.thrift import MalformedThrift, decode_leading, optional, required

DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 0, 2, 3  # PageType
PLAIN, RLE = 0, 3  # Encoding
_BY_DICTIONARY = frozenset((2, 8))  # PLAIN_DICTIONARY, RLE_DICTIONARY


@dataclass(frozen=True)
class PageHeader:
    """A decoded page header."""

    type: int
    size: int  # bytes of the header
    compressed: int  # bytes after the header
    uncompressed: int  # decompressed bytes after the header
    value_count: int  # of a data page; entries of a dictionary page
    row_count: int | None  # of a data page v2
    encoding: int

    @property
    def needs_dictionary(self) -> bool:
        """Whether its values are indices into the dictionary."""
        return self.type != DICTIONARY_PAGE and self.encoding in _BY_DICTIONARY


def page_header(data: memoryview) -> PageHeader:
    """Decode the header at the first byte. Raises InvalidParquet."""
    try:
        fields, size = decode_leading(data)
        type_ = required(fields, spec.PageHeader.type)
        place = _SPECIFIC.get(type_)
        if place is None:
            raise InvalidParquet(f"a page of type {type_}")
        field, num_values, encoding = place
        of_type = required(fields, field)
        header = PageHeader(
            type=type_,
            size=size,
            compressed=required(fields, spec.PageHeader.compressed_page_size),
            uncompressed=required(fields, spec.PageHeader.uncompressed_page_size),
            value_count=required(of_type, num_values),
            row_count=optional(of_type, spec.DataPageHeaderV2.num_rows) if type_ == DATA_PAGE_V2 else None,
            encoding=required(of_type, encoding),
        )
    except MalformedThrift as error:
        raise InvalidParquet(f"the page header is malformed: {error}") from error
    if min(header.compressed, header.uncompressed, header.value_count) < 0:
        raise InvalidParquet(
            f"the page header has a negative size or count: {header.compressed} bytes, {header.uncompressed} "
            f"uncompressed, {header.value_count} values"
        )
    return header


_SPECIFIC = {  # by PageType: the field of PageHeader, and the fields of the count and the encoding within it
    DATA_PAGE: (spec.PageHeader.data_page_header, spec.DataPageHeader.num_values, spec.DataPageHeader.encoding),
    DICTIONARY_PAGE: (
        spec.PageHeader.dictionary_page_header,
        spec.DictionaryPageHeader.num_values,
        spec.DictionaryPageHeader.encoding,
    ),
    DATA_PAGE_V2: (
        spec.PageHeader.data_page_header_v2,
        spec.DataPageHeaderV2.num_values,
        spec.DataPageHeaderV2.encoding,
    ),
}
