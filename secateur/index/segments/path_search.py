"""Where paths are among others: by hashing, by comparing what is alike, or by binary search."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import common_ends, from_numpy, truths


def places(wanted: pa.Array, paths: pa.Array) -> np.ndarray:
    """Return where each of some texts is among paths, which are hashed; -1 where it is not."""
    at: np.ndarray = pc.fill_null(pc.index_in(wanted, value_set=paths), -1).to_numpy().astype(np.int64)
    return at


def places_nearby(ordered: pa.Array, paths: pa.Array, order: np.ndarray | None = None) -> np.ndarray:
    """Return the same for texts in the order of the paths, hashing only what differs.

    With the `order` in which the texts were taken, text i of the result is the i-th as it was before. In another order
    than that of the paths it is right too, but a text may be missed that equals a path where the two agree.
    """
    n = len(ordered)
    first, last = common_ends(ordered, paths)
    at = np.empty(n, np.int64)
    at[:first] = np.arange(first)
    at[n - last :] = np.arange(len(paths) - last, len(paths))
    begin, end = max(first - 1, 0), min(len(paths) - last + 1, len(paths))  # its neighbours may be there twice
    middle = places(ordered[first : n - last], paths[begin:end])
    at[first : n - last] = np.where(middle >= 0, middle + begin, -1)
    if order is None:
        return at
    as_before = np.empty(n, np.int64)
    as_before[order] = at
    return as_before


def positions_among(wanted: pa.Array, ordered: pa.Array, *, after: bool) -> np.ndarray:
    """Return how many of some ordered texts are less than each wanted one; with `after`, not greater. Binary search."""
    before = pc.less_equal if after else pc.less
    low, high = np.zeros(len(wanted), np.int64), np.full(len(wanted), len(ordered), np.int64)
    while len(still := np.flatnonzero(low < high)):
        middle = (low[still] + high[still]) // 2
        goes_on = truths(before(ordered.take(from_numpy(middle)), wanted.take(from_numpy(still))))
        low[still[goes_on]] = middle[goes_on] + 1
        high[still[~goes_on]] = middle[~goes_on]
    return low


def searched(wanted: pa.Array, ordered: pa.Array) -> np.ndarray:
    """Return where each of some texts is among ordered paths, by binary search; -1 where it is not."""
    at = positions_among(wanted, ordered, after=False)
    inside = np.flatnonzero(at < len(ordered))
    same = truths(pc.equal(ordered.take(from_numpy(at[inside])), wanted.take(from_numpy(inside))))
    result = np.full(len(wanted), -1)
    result[inside[same]] = at[inside[same]]
    return result


def is_ascending(paths: pa.Array) -> bool:
    """Whether every path is greater than the one before."""
    return bool(truths(pc.less(paths[:-1], paths[1:])).all()) if len(paths) > 1 else True


def among(paths: pa.Array, others: pa.Array) -> np.ndarray:
    """Return which paths are among others: bool of shape (n_paths,). Hashes whichever are fewer."""
    paths, others = paths.cast(pa.large_string()), others.cast(pa.large_string())
    if len(paths) < len(others):
        others = others.filter(pc.is_in(others, value_set=paths))
    return truths(pc.is_in(paths, value_set=others))
