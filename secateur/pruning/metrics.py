"""The metrics of a plan, with the names and the form of Iceberg's scan reports.

Source: ``ScanMetricsResult``, ``ScanMetricsResultParser`` and ``ScanMetricsUtil`` of Iceberg, and "ScanReport" of its
REST specification. Metrics that Iceberg does not have get names of the same form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Metric = Mapping[str, int | str]


@dataclass(frozen=True)
class FileMetrics:
    """File and manifest counts of a plan, in addition to the counts of its stages."""

    file_bytes: int = 0  # full size of the files to read
    data_manifests: int = 0
    data_manifests_read: int = 0  # by this plan
    delete_manifests: int = 0
    delete_manifests_read: int = 0
    position_deletes: int = 0  # live files of each kind
    equality_deletes: int = 0
    deletion_vectors: int = 0
    applied_deletes: int = 0  # pairs of a file to read and a delete file that applies to it
    applied_delete_bytes: int = 0
    needed_deletes: int = 0  # delete files that apply to a file to read
    touched: int | None = None  # live data files to which deletes may apply; None if the table's format has no deletes

    @property
    def delete_files(self) -> int:
        """All live delete files."""
        return self.position_deletes + self.equality_deletes + self.deletion_vectors

    def counters(self) -> dict[str, Metric]:
        """Return the metrics that Iceberg names, except numbers of data files."""
        counts = {
            "result-delete-files": self.applied_deletes,
            "total-data-manifests": self.data_manifests,
            "total-delete-manifests": self.delete_manifests,
            "scanned-data-manifests": self.data_manifests_read,
            "skipped-data-manifests": self.data_manifests - self.data_manifests_read,
            "scanned-delete-manifests": self.delete_manifests_read,
            "skipped-delete-manifests": self.delete_manifests - self.delete_manifests_read,
            "skipped-delete-files": self.delete_files - self.needed_deletes,
            "indexed-delete-files": self.delete_files,
            "equality-delete-files": self.equality_deletes,
            "positional-delete-files": self.position_deletes,
            "dvs": self.deletion_vectors,
        }
        sizes = {
            "total-file-size-in-bytes": self.file_bytes,
            "total-delete-file-size-in-bytes": self.applied_delete_bytes,
        }
        return {
            **{name: counter(value) for name, value in counts.items()},
            **{name: counter(value, "bytes") for name, value in sizes.items()},
        }


def timer(seconds: float) -> Metric:
    """Return a duration in Iceberg's form."""
    return {"count": 1, "time-unit": "nanoseconds", "total-duration": round(seconds * 1e9)}


def counter(value: int, unit: str = "count") -> Metric:
    """Return a number in Iceberg's form."""
    return {"unit": unit, "value": value}


def before_and_after(what: str, before: int | None, after: int | None) -> dict[str, Metric]:
    """Return the metrics for how many there were, are left and are not; unknown ones are omitted."""
    skipped = None if before is None or after is None else before - after
    counts: Sequence[tuple[str, int | None]] = (("total", before), ("result", after), ("skipped", skipped))
    return {f"{which}-{what}": counter(value) for which, value in counts if value is not None}
