"""Create an object only if its name is free: a put with ``If-None-Match: *``.

pyarrow's filesystems overwrite. S3 and stores with its interface support this condition. On other stores, and without a
suitable client (:mod:`secateur.io.storage.s3_client`), nothing is created here.
"""

from __future__ import annotations

import pyarrow.fs as pafs

from secateur.io.storage.filesystem_settings import innermost
from secateur.io.storage.s3_client import s3_object, writing_client


def create_object(filesystem: pafs.FileSystem, path: str, data: bytes) -> bool | None:
    """Create a complete object: True if created, False if it exists, None if the store does not support the condition.

    An attempt whose response was lost is repeated, and may then find its own object: False does not say who created it.
    Raises OSError if the store refuses or cannot be reached.
    """
    target = s3_object(*innermost(filesystem, path))
    if target is None:
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
