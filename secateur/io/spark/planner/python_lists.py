"""The function that PySpark applies to a list of the driver's, as it goes to Spark: it changes nothing.

Spark sees an RDD with a function of Python, and cannot tell this one from a user's. Its bytes tell.
"""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext
from pyspark.serializers import BatchedSerializer, CloudPickleSerializer

SIZES = ((1, 255), (256, 1023))  # objects that lie together, at most 1,024: a byte in the function's bytes, or two


def unchanging(context: SparkContext) -> list[tuple[bytes, bytes]]:
    """Return pairs of bytes: the function is known by those in which a pair agrees; the others tell a size."""
    return [(_of_size(context, small), _of_size(context, large)) for small, large in SIZES]


def _of_size(context: Any, size: int) -> bytes:
    rows = context.parallelize([], 1)
    rows._jrdd_deserializer = BatchedSerializer(context._unbatched_serializer, size)
    sent = rows._pickled()
    command = (sent.func, None, sent._prev_jrdd_deserializer, sent._jrdd_deserializer)  # as _wrap_function has it
    return bytes(CloudPickleSerializer().dumps(command))
