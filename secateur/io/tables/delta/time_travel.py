"""Find the version of a Delta table that was current at some time.

Source: Delta's protocol, "Recommendations for Readers of Tables with In-Commit Timestamps".
"""

from __future__ import annotations

import datetime as dt

from secateur.concurrency import at_once
from secateur.errors import UnknownSnapshot
from secateur.io.tables.delta.actions import LogReader
from secateur.io.tables.delta.log_files import LogListing
from secateur.io.tables.delta.log_state import LOG_THREADS
from secateur.io.tables.delta.metadata_tables import commit_info, committed_at


def version_at(reader: LogReader, listing: LogListing, moment: dt.datetime) -> int:
    """Return the newest version committed at `moment` or before. Raises UnknownSnapshot if the log has none.

    Times of versions ascend: where clocks of writers disagree, a version counts as committed a millisecond after the
    one before it.
    """
    commits = sorted(listing.commits.items())
    infos = at_once(lambda commit: commit_info(reader, commit[1]), commits, LOG_THREADS)
    newest, before, wanted = None, float("-inf"), moment.timestamp() * 1000
    for (version, file), info in zip(commits, infos, strict=True):
        committed = max(float(int(committed_at(file, info))), before + 1)
        if committed > wanted:
            break
        newest, before = version, committed
    if newest is None:
        raise UnknownSnapshot(f"{listing.location} had no version at {moment}, or its log begins later")
    return newest
