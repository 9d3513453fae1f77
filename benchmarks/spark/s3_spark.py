"""Spark's own reader over S3, by Hadoop's s3a, in a process of its own; see :mod:`secateur.demo.partners`.

Started with the endpoint, it answers each (location, SQL) with the number of matching rows. The settings are s3a's own:
since Hadoop 3.5 it reads files of some hundred kilobytes whole, which takes fewer requests.
"""

from __future__ import annotations

import sys
from typing import Any

from secateur.demo.partners import answer_all
from secateur.demo.s3a import session_settings


def main(endpoint: str) -> None:
    """Answer until the asking process is gone."""
    from secateur.session import local_session

    session = local_session(**session_settings(endpoint))

    def answer(asked: Any) -> Any:
        location, sql = asked
        return len(session.read.parquet(location).where(sql).collect())

    answer_all(answer)
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1])
