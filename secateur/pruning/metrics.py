"""The metrics of a plan, under the names and in the form of Iceberg's reports of scans.

Source: ``ScanMetricsResult``, ``ScanMetricsResultParser`` and ``ScanMetricsUtil`` of Iceberg, and "ScanReport" of its
REST specification. What Iceberg has no name for follows under names of the same form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Metric = Mapping[str, int | str]


@dataclass(frozen=True)
class FileMetrics:
    """What a plan found of a table's files and manifests, besides what its stages counted."""

    file_bytes: int = 0  # of the files that are to be read, whole
    data_manifests: int = 0
    data_manifests_read: int = 0  # by this plan
    delete_manifests: int = 0
    delete_manifests_read: int = 0
    position_deletes: int = 0  # live files of each kind
    equality_deletes: int = 0
    deletion_vectors: int = 0
    applied_deletes: int = 0  # pairs of a file that is to be read and a delete file that applies to it
    applied_delete_bytes: int = 0
    needed_deletes: int = 0  # delete files that apply to a file that is to be read
    touched: int | None = None  # live data files to which deletes may apply; None where the table's format has none

    @property
    def delete_files(self) -> int:
        """All live delete files."""
        return self.position_deletes + self.equality_deletes + self.deletion_vectors

    def counters(self) -> dict[str, Metric]:
        """The metrics that Iceberg has a name for, but for numbers of data files."""
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
    """A duration as Iceberg reports it."""
    return {"count": 1, "time-unit": "nanoseconds", "total-duration": round(seconds * 1e9)}


def counter(value: int, unit: str = "count") -> Metric:
    """A number as Iceberg reports it."""
    return {"unit": unit, "value": value}


def before_and_after(what: str, before: int | None, after: int | None) -> dict[str, Metric]:
    """How many there are of something, how many are left and how many are not; what is unknown is left out."""
    skipped = None if before is None or after is None else before - after
    counts: Sequence[tuple[str, int | None]] = (("total", before), ("result", after), ("skipped", skipped))
    return {f"{which}-{what}": counter(value) for which, value in counts if value is not None}
