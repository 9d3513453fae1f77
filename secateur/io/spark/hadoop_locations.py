"""Locations as Spark writes them, in this process's form: Hadoop has schemes of its own for S3, and for local disks."""

from __future__ import annotations


def as_opened_here(location: str) -> str:
    """Convert a location of Spark's: ``s3a://`` to ``s3://``, and ``file:/a`` to ``/a``."""
    bare = location.rstrip("/")
    scheme, separator, rest = bare.partition("://")
    if separator and scheme in ("s3a", "s3n"):
        return f"s3://{rest}"
    if bare.startswith("file:/"):
        return "/" + bare.removeprefix("file:").lstrip("/")
    return bare
