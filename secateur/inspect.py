"""Tables about a table: ``sc.inspect.files(table)`` and its like, as ``pyarrow.Table``.

>>> import secateur as sc
>>> table = sc.open_table("lake/events")                              # doctest: +SKIP
>>> sc.inspect.coverage(table)                                        # doctest: +SKIP

They tell of the snapshot that queries of the handle read: of a past one, where it was opened so.
"""

from secateur.io.scan.index_coverage import coverage
from secateur.io.scan.inspection import blocks, files, manifests, segments, snapshots

__all__ = ["blocks", "coverage", "files", "manifests", "segments", "snapshots"]
