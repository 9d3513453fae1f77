"""One key: what follows it, and the bytes that are hashed."""

from __future__ import annotations

import datetime as dt
import math
import struct
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.values.conversion import key_of
from secateur.values.key import NAN_KEY, Key, canonical_bytes, float_key, least_key, prefix_successor, successor
from secateur.values.kinds import Kind, kind_of
from tests.support.drawn.keys import any_keys
from tests.support.drawn.strategies import binaries

ORDERED_FLOATS = [-math.inf, -1e308, -1.0, -5e-324, 0.0, 5e-324, 1.0, 1e308, math.inf, math.nan]


def test_c16_nan_is_the_greatest_float_and_equals_itself() -> None:
    keys = [float_key(value) for value in ORDERED_FLOATS]
    assert keys == sorted(set(keys))
    (negative_nan,) = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))
    assert float_key(negative_nan) == float_key(math.nan) == NAN_KEY


def test_c17_negative_zero_is_zero() -> None:
    assert float_key(-0.0) == float_key(0.0) == 0


@given(any_keys)
def test_successor_is_the_next_key(pair: tuple[Kind, list[Key]]) -> None:
    kind, values = pair
    for key in values:
        after = successor(key, kind)
        assert after is None or after > key  # type: ignore[operator]
        for other in values:
            assert (other > key) == (after is not None and other >= after)  # type: ignore[operator]
        assert key >= least_key(kind)  # type: ignore[operator]


@given(binaries | st.binary(max_size=20), st.binary(max_size=10), st.binary(max_size=20))
def test_c18_prefix_successor_is_above_all_extensions(prefix: bytes, suffix: bytes, other: bytes) -> None:
    """It is the least string above them: what is not an extension and above the prefix is at or above it."""
    after = prefix_successor(prefix)
    assert after is None or prefix + suffix < after
    if other > prefix and not other.startswith(prefix):
        assert after is not None
        assert other >= after


@pytest.mark.parametrize(
    ("prefix", "after"),
    [
        (b"", None),
        (b"\xff" * 64, None),
        (b"a\xff\xff", b"b"),
        (b"a\xfe", b"a\xff"),
        ("\U0010ffff".encode() * 2, b"\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xc0"),
        (b"\x7f", b"\x80"),
    ],
)
def test_c18_prefix_successors(prefix: bytes, after: bytes | None) -> None:
    assert prefix_successor(prefix) == after


@given(any_keys)
def test_canonical_bytes_tell_keys_apart(pair: tuple[Kind, list[Key]]) -> None:
    kind, values = pair
    assert len({canonical_bytes(key, kind) for key in values}) == len(set(values))


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        (1, pa.int8(), b"\x01" + bytes(7)),
        (1, pa.int64(), b"\x01" + bytes(7)),
        (-1, pa.int32(), b"\xff" * 8),
        (True, pa.bool_(), b"\x01" + bytes(7)),
        (-0.0, pa.float64(), bytes(8)),
        (1.0, pa.float32(), (0x3FF0 << 48).to_bytes(8, "little")),
        (-1.0, pa.float64(), 0xC00F_FFFF_FFFF_FFFF.to_bytes(8, "little")),
        (Decimal("1.20"), pa.decimal128(9, 2), b"\x78" + bytes(7)),
        (Decimal("-0.01"), pa.decimal128(38, 2), b"\xff" * 16),
        ("é", pa.string(), b"\xc3\xa9"),
        (b"\xff", pa.binary(), b"\xff"),
        (dt.date(1970, 1, 2), pa.date32(), b"\x01" + bytes(7)),
        (dt.datetime(1970, 1, 1, 0, 0, 1), pa.timestamp("us"), (10**6).to_bytes(8, "little")),
    ],
)
def test_canonical_bytes_golden(value: object, type_: pa.DataType, expected: bytes) -> None:
    """What is hashed is part of the format: docs/format.md."""
    kind = kind_of(type_)
    assert kind is not None
    assert canonical_bytes(key_of(value, type_), kind) == expected
