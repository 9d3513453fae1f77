"""The header of a page, held against what the layout says of the page before anything of it is decoded.

Source: parquet.thrift, PageHeader, DataPageHeader, DataPageHeaderV2, DictionaryPageHeader.
"""

from __future__ import annotations

from dataclasses import dataclass

from secateur.errors import InvalidParquet
from secateur.io import thrift_encoding as thrift
from secateur.io.thrift import MalformedThrift, decode_leading, optional, required

DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 0, 2, 3  # PageType
PLAIN, RLE = 0, 3  # Encoding
_BY_DICTIONARY = frozenset((2, 8))  # PLAIN_DICTIONARY, RLE_DICTIONARY


@dataclass(frozen=True)
class PageHeader:
    """What a page says of itself."""

    type: int
    size: int  # bytes of the header
    compressed: int  # bytes behind the header
    uncompressed: int  # bytes behind the header once they are decompressed
    value_count: int  # of a data page; of a dictionary page its entries
    row_count: int | None  # of a data page v2
    encoding: int

    @property
    def needs_dictionary(self) -> bool:
        """Whether its values are places in the dictionary."""
        return self.type != DICTIONARY_PAGE and self.encoding in _BY_DICTIONARY


def page_header(data: memoryview) -> PageHeader:
    """The header at the first byte. Raises InvalidParquet."""
    try:
        fields, size = decode_leading(data)
        type_ = required(fields, 1, int, "PageHeader.type")
        place = _SPECIFIC.get(type_)
        if place is None:
            raise InvalidParquet(f"a page of type {type_}")
        number, name, encoding = place
        own = required(fields, number, dict, f"PageHeader.{name}")
        header = PageHeader(
            type=type_,
            size=size,
            compressed=required(fields, 3, int, "PageHeader.compressed_page_size"),
            uncompressed=required(fields, 2, int, "PageHeader.uncompressed_page_size"),
            value_count=required(own, 1, int, f"{name}.num_values"),
            row_count=optional(own, 3, int, f"{name}.num_rows") if type_ == DATA_PAGE_V2 else None,
            encoding=required(own, encoding, int, f"{name}.encoding"),
        )
    except MalformedThrift as error:
        raise InvalidParquet(f"the page header is malformed: {error}") from error
    if min(header.compressed, header.uncompressed, header.value_count) < 0:
        raise InvalidParquet(
            f"the page header has a negative size or count: {header.compressed} bytes, {header.uncompressed} "
            f"uncompressed, {header.value_count} values"
        )
    return header


_SPECIFIC = {  # by PageType: the field of PageHeader, its name, and within it the field of the encoding
    DATA_PAGE: (5, "data_page_header", 2),
    DICTIONARY_PAGE: (7, "dictionary_page_header", 2),
    DATA_PAGE_V2: (8, "data_page_header_v2", 4),
}


def null_page(rows: int, definition: int, repetition: int, plain: bytes) -> bytes:
    """An uncompressed data page v2 of so many rows: NULLs or empty lists at definition level 0.

    Where the greatest definition level is 0 there are no NULLs; the rows then hold the values that are given, as PLAIN.
    """
    levels = thrift.varint(rows << 1)  # one run of the level 0: RLE, the hybrid's header, then the level
    repetitions = levels + bytes(_level_bytes(repetition)) if repetition else b""
    definitions = levels + bytes(_level_bytes(definition)) if definition else b""
    body = repetitions + definitions + plain
    own = thrift.structure(
        [
            (1, thrift.I32, thrift.integer(rows)),
            (2, thrift.I32, thrift.integer(rows if definition else 0)),
            (3, thrift.I32, thrift.integer(rows)),
            (4, thrift.I32, thrift.integer(PLAIN)),
            (5, thrift.I32, thrift.integer(len(definitions))),
            (6, thrift.I32, thrift.integer(len(repetitions))),
            (7, thrift.FALSE, b""),
        ]
    )
    header = [
        (1, thrift.I32, thrift.integer(DATA_PAGE_V2)),
        (2, thrift.I32, thrift.integer(len(body))),
        (3, thrift.I32, thrift.integer(len(body))),
        (8, thrift.STRUCT, own),
    ]
    return thrift.structure(header) + body


def _level_bytes(level: int) -> int:
    """Bytes of a level in a run: as many as its width in bits needs."""
    return (level.bit_length() + 7) // 8
