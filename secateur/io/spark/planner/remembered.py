"""The values used last, by key."""

from __future__ import annotations

from collections import OrderedDict

from secateur.forks import lock_for


class Remembered(OrderedDict[object, object]):
    """The values used last, by key. Thread-safe."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most, self._lock = most, lock_for(self, "_lock")

    def keep(self, key: object, value: object) -> None:
        with self._lock:
            self[key] = value
            self.move_to_end(key)
            while len(self) > self._most:
                self.popitem(last=False)
