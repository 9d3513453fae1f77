"""Create an object only if its name is free: a put with ``If-None-Match: *``.

pyarrow's filesystems overwrite. S3, stores with its interface, and Azure support this condition. On other stores, and
without a suitable client (:mod:`secateur.io.storage.stored_object`), nothing is created here.
"""

from __future__ import annotations

import pyarrow.fs as pafs

from secateur.io.storage.object_client import writing_client
from secateur.io.storage.stored_object import stored_object

_CONDITIONAL = ("s3", "azure")  # Google's storage has it too, but no server to test it with was found


def create_object(filesystem: pafs.FileSystem, path: str, data: bytes) -> bool | None:
    """Create a complete object: True if created, False if it exists, None if the store does not support the condition.

    An attempt whose response was lost is repeated, and may then find its own object: False does not say who created it.
    Raises OSError if the store refuses or cannot be reached.
    """
    target = stored_object(filesystem, path)
    if target is None or target.kind not in _CONDITIONAL:
        return None
    import obstore
    from obstore.exceptions import AlreadyExistsError, BaseError

    try:
        obstore.put(writing_client(target, len(data)), target.key, data, mode="create", use_multipart=False)
    except AlreadyExistsError:
        return False
    except BaseError as error:
        raise OSError(str(error).partition("\n")[0]) from None
    return True
