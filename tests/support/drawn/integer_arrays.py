"""Random arrays of integers, with the shapes that indexes have and with worst cases."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from secateur.index.container.array_codec import DTYPES

LENGTHS = [0, 1, 2, 7, 8, 9, 63, 64, 65, 1000, 5000]
SHAPES = ["constant", "extremes", "random", "few", "ascending", "steps", "wrapping"]


def array_of(dtype: np.dtype, n: int, shape: str, seed: int) -> np.ndarray:
    """n integers of a dtype that lie as they do in indexes, or as they do at worst."""
    random = np.random.default_rng(seed)
    info = np.iinfo(dtype)
    anything = random.integers(0, 256, n * dtype.itemsize, np.uint8).view(dtype)
    match shape:
        case "constant":
            return np.full(n, [info.min, info.max, 0][seed % 3], dtype)
        case "extremes":
            return random.choice(np.array([info.min, info.max], dtype), n)
        case "random":
            return anything
        case "few":
            return (anything % dtype.type(3)).astype(dtype)
        case "ascending":
            return np.sort(anything)
        case "steps":
            return np.cumsum(random.integers(-3, 100, n)).astype(dtype)
        case _:  # past both ends, with steps of up to 2^64
            every = np.uint64([1, 100, 2**31, 2**62, 2**64 - 1][seed % 5])
            return np.cumsum(random.integers(0, 2, n).astype(np.uint64) * every).astype(dtype)


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    dtype = draw(st.sampled_from(DTYPES))
    return array_of(dtype, draw(st.sampled_from(LENGTHS)), draw(st.sampled_from(SHAPES)), draw(st.integers(0, 99)))
