"""Locks that are free in a forked process.

A child of `os.fork` has one thread. A lock that another thread held at that moment would stay held in it for ever, so
locks are created here: the child gets new ones. They guard only state that an unfinished step of another thread does
not harm: the step is repeated.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

_owners: WeakValueDictionary[tuple[int, str], object] = WeakValueDictionary()  # by owner id and lock name


def lock_for(owner: object, name: str) -> threading.Lock:
    """Create a lock for the attribute `name` of an object or module; a forked child replaces it."""
    _owners[id(owner), name] = owner
    return threading.Lock()


def _renew() -> None:
    for (_, name), owner in list(_owners.items()):
        object.__setattr__(owner, name, threading.Lock())
    for cached in _cached_properties():
        if hasattr(cached, "lock"):  # up to Python 3.11, where all objects of the class share one
            cached.lock = threading.RLock()


def _cached_properties() -> Iterator[cached_property[Any]]:
    """Yield the cached properties of all classes of the package."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith(f"{__package__}.")]
    classes = {member for module in modules for member in vars(module).values() if isinstance(member, type)}
    for member in classes:
        if member.__module__.startswith(f"{__package__}."):
            yield from (value for value in vars(member).values() if isinstance(value, cached_property))


os.register_at_fork(after_in_child=_renew)
