"""Locks that a forked process finds free.

A child of `os.fork` has one thread. A lock that another thread held at that moment would be held for ever in it, and so
whoever keeps one has it made here: in the child it is a new one. What it guards is such that a step of another thread
which was not finished does no harm: it is taken again.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

_owners: WeakValueDictionary[tuple[int, str], object] = WeakValueDictionary()  # by their ids, and the lock's name


def lock_for(owner: object, name: str) -> threading.Lock:
    """A lock for an object to keep under a name, where a forked child gets another."""
    _owners[id(owner), name] = owner
    return threading.Lock()


def _renew() -> None:
    for (_, name), owner in list(_owners.items()):
        object.__setattr__(owner, name, threading.Lock())
    for cached in _cached_properties():
        if hasattr(cached, "lock"):  # up to Python 3.11, one for all objects of the class
            cached.lock = threading.RLock()


def _cached_properties() -> Iterator[cached_property[Any]]:
    """Those of all classes of the package."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith(f"{__package__}.")]
    classes = {each for module in modules for each in vars(module).values() if isinstance(each, type)}
    for each in classes:
        if each.__module__.startswith(f"{__package__}."):
            yield from (value for value in vars(each).values() if isinstance(value, cached_property))


os.register_at_fork(after_in_child=_renew)
