"""Plan with the files and the index that the last query saw, while the store is asked whether they are still current.

On an object store, listing a table and its index takes a round trip, and so does the first page of a filter. Here both
are under way at once. The plan counts only if the store then names the same files and the same index, so it is the one
that would have been made afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar
from weakref import ref

from secateur.errors import SecateurError
from secateur.io.scan.opened_table import OpenedTable, TableState
from secateur.io.tables.table import TableSnapshot

Plan = TypeVar("Plan")
Open = Callable[["TableState | None"], OpenedTable]  # with a known state, or after asking the store


@dataclass(eq=False)
class _LastState:
    """The state of a table that the last query saw, as long as anything else holds on to it."""

    listing: Callable[[], object] = lambda: None
    index: Callable[[], object] = lambda: None

    def get(self) -> TableState | None:
        listing, index = self.listing(), self.index()
        return None if listing is None or index is None else TableState(listing, index)  # type: ignore[arg-type]

    def remember(self, state: TableState | None) -> None:
        if state is not None and state.index is not None:
            self.listing, self.index = ref(state.listing), ref(state.index)


def has_last_state(table: TableSnapshot) -> bool:
    """Whether it takes a round trip to look up the state of a table, and nothing has to be read before."""
    return table.id is None and not table.store.is_local


def plan_with_last_state(table: TableSnapshot, open_table: Open, plan: Callable[[OpenedTable], Plan]) -> Plan:
    """Return the plan over the current state of a table. Raises what `open_table` and `plan` raise for that state."""
    last: _LastState = table.cache.get("last state", _LastState)
    known, assumed = last.get(), None
    if known is None:
        opened = open_table(None)
    else:
        with ThreadPoolExecutor(1) as thread:
            current = thread.submit(open_table, None)
            with suppress(SecateurError):  # if there is something wrong with the current state, too, that is raised
                assumed = plan(open_table(known))
            opened = current.result()
    last.remember(opened.state)
    return assumed if assumed is not None and opened.state == known else plan(opened)
