"""Keys of every kind, drawn, as arrays and one by one."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from hypothesis import strategies as st

from secateur.values.combination import concatenate
from secateur.values.conversion import keys_of
from secateur.values.key import INT64_MAX, INT64_MIN, INT128_MAX, INT128_MIN, Key
from secateur.values.keys import Keys, constant_keys
from secateur.values.kinds import Kind
from tests.support.drawn.strategies import KINDS, binaries

columns = st.sampled_from(KINDS).flatmap(
    lambda kind: st.tuples(st.just(kind), st.lists(kind.values, min_size=1, max_size=12))
)
words = st.sampled_from([INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX]) | st.integers(-5, 5)
wides = words | st.sampled_from([INT128_MIN, INT128_MAX, 2**64, -(2**64), 2**64 - 1, -(2**64) - 1])
KEYS = {Kind.WORD: words, Kind.WIDE: wides, Kind.BYTES: binaries | st.binary(max_size=20)}
any_keys = st.sampled_from(Kind).flatmap(
    lambda kind: st.tuples(st.just(kind), st.lists(KEYS[kind], min_size=1, max_size=20))
)


def keys(kind: Kind, values: Sequence[Key]) -> Keys:
    """The array of some keys of any kind."""
    match kind:
        case Kind.BYTES:
            return keys_of(pa.array(values, pa.binary()))
        case Kind.WORD:
            return keys_of(pa.array(values, pa.int64()))
        case Kind.WIDE:
            return concatenate([constant_keys(value, kind, 1) for value in values])


def values_of(keys: Keys) -> list[Key]:
    """The single keys of an array."""
    columns = [word.tolist() for word in keys.words]
    match keys.kind:
        case Kind.WORD:
            return columns[0]
        case Kind.WIDE:
            return [(high << 64) | low for high, low in zip(*columns, strict=True)]
        case Kind.BYTES:
            packed = [b"".join(word.to_bytes(8, "big") for word in row) for row in zip(*columns[:-1], strict=True)]
            return [data[:length] for data, length in zip(packed, columns[-1], strict=True)]
