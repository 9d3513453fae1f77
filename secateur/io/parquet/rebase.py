"""Dates and timestamps in the calendar that Spark 2 wrote: Julian before 1582; only Spark converts them.

Source: ``DataSourceUtils.datetimeRebaseSpec`` and ``int96RebaseSpec``, ``RebaseDateTime``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

_SPARK_VERSION = b"org.apache.spark.version"
_LEGACY_CALENDAR = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_CALENDARS_AGREE = {  # from here on; source: RebaseDateTime.lastSwitchJulianDay, lastSwitchJulianTs
    pa.date32(): dt.date(1582, 10, 15),
    pa.timestamp("us", "UTC"): dt.datetime(1900, 1, 1, tzinfo=dt.UTC),
}


def has_legacy_calendar(metadata: Mapping[bytes, bytes]) -> bool:
    """Return whether days and instants of a file with this key_value_metadata are in the hybrid calendar."""
    version = metadata.get(_SPARK_VERSION, b"").split(b".")[0]
    old = version.isdigit() and int(version) < 3
    return old or any(key in metadata for key in _LEGACY_CALENDAR)


def calendars_differ(array: pa.Array) -> bool:
    """Return whether an array holds a day or an instant before the point from which both calendars agree."""
    match array.type:
        case pa.StructType():
            return any(map(calendars_differ, array.flatten()))
        case pa.ListType():
            return calendars_differ(array.flatten())
        case pa.MapType():
            return calendars_differ(array.keys) or calendars_differ(array.items)
        case type_:
            since = _CALENDARS_AGREE.get(type_)
            return since is not None and bool(pc.any(pc.less(array, pa.scalar(since, type_))).as_py())
