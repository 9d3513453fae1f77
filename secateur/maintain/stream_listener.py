"""Refresh indexes when streaming queries write: a listener of Spark's, and a thread that does the work."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from secateur.errors import InvalidOption
from secateur.maintain.watch import INTERVAL, Look, Watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from secateur.io.tables.open import Source
    from secateur.io.tables.table import Table

_log = logging.getLogger("secateur")
OnLook = Callable[[Look], None]


def stream_listener(
    *tables: Table | Source, spark: SparkSession | None = None, vacuum: bool = True, on_look: OnLook | None = None
) -> Any:
    """Return a listener that refreshes the indexes of tables after each batch of a streaming query that had rows.

    Add it with ``spark.streams.addListener(listener)``. A thread of its own refreshes, so that queries do not wait;
    batches that end meanwhile are indexed together by the next refresh. A refresh that fails is tried again, as
    :func:`secateur.watch` does. Call ``listener.close()`` after the last query: it returns when all that was written is
    indexed.

    Parameters
    ----------
    tables
        The tables that the session's streaming queries write.
    spark
        Distributes the refreshes over the executors; without it, threads of this process do them.
    vacuum
        After a refresh, remove the index files that no snapshot of the last hour needs.
    on_look
        Called in the thread with each look that found a change, or failed.

    Returns
    -------
    pyspark.sql.streaming.StreamingQueryListener
        With the method ``close(timeout=None)``, which returns whether everything is indexed.

    Raises
    ------
    InvalidOption
        For no table.
    """
    from pyspark.sql.streaming.listener import StreamingQueryListener

    if not tables:
        raise InvalidOption("there is no table whose index to refresh")
    refresher = Refresher([Watched(table, spark, INTERVAL, vacuum) for table in tables], on_look)

    class StreamListener(StreamingQueryListener):
        """Wakes the thread that refreshes."""

        def onQueryStarted(self, event: Any) -> None:  # noqa: N802
            """Do nothing: nothing is written yet."""

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802
            """Wake it after a batch with rows."""
            if event.progress.numInputRows:
                refresher.wake()

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802
            """Do nothing: nothing was written."""

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
            """Wake it: a batch that failed may have been written."""
            refresher.wake()

        def close(self, timeout: float | None = None) -> bool:
            """Look once more, end the thread, and return whether all was indexed within some seconds."""
            return refresher.close(timeout)

    return StreamListener()


class Refresher:
    """A thread that looks at tables when it is woken, and again after failures."""

    def __init__(self, tables: Sequence[Watched], on_look: OnLook | None) -> None:
        self._tables, self._on_look = tables, on_look
        self._woken, self._closing = threading.Event(), threading.Event()
        self._failed = False
        self._thread = threading.Thread(target=self._run, name="secateur-stream-listener", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Look at the tables soon."""
        self._woken.set()

    def close(self, timeout: float | None = None) -> bool:
        """Look at the tables once more, and end; return whether that was done in time, and without a failure."""
        self._closing.set()
        self._woken.set()
        self._thread.join(timeout)
        return not self._thread.is_alive() and not self._failed

    def _tell(self, look: Look) -> None:
        if self._on_look is None or look.is_unchanged:
            return
        try:
            self._on_look(look)
        except Exception:  # the indexes have to be refreshed all the same
            _log.exception("on_look of a stream listener failed")

    def _run(self) -> None:
        wait: float | None = None
        while True:
            self._woken.wait(wait)
            is_last = self._closing.is_set()  # before the look: what is written until then is seen
            self._woken.clear()
            looks = [table.look(again=True) for table in self._tables]
            for look in looks:
                self._tell(look)
            again = [look.next_seconds for look in looks if look.error is not None and look.next_seconds is not None]
            wait, self._failed = min(again, default=None), bool(again)
            if is_last:
                return
