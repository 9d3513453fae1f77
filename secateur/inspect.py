"""Tables about a table: ``sec.inspect.files(table)`` and others, each a ``pyarrow.Table``.

>>> import secateur as sec
>>> table = sec.open_table("lake/events")                              # doctest: +SKIP
>>> sec.inspect.coverage(table)                                        # doctest: +SKIP

They describe the snapshot that the handle's queries read, which may be a past one.
"""

from secateur.io.scan.clustering import clustering
from secateur.io.scan.index_coverage import coverage
from secateur.io.scan.inspection import blocks, files, manifests, segments, snapshots
from secateur.reporting import clustering_page

__all__ = ["blocks", "clustering", "clustering_page", "coverage", "files", "manifests", "segments", "snapshots"]
