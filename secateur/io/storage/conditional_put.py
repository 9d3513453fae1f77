"""Creating an object only where there is none of its name: a put with ``If-None-Match: *``.

pyarrow's filesystems overwrite. S3 and stores of its interface are asked on that condition; of other stores, and where
there is no client that could (:mod:`secateur.io.storage.s3_client`), nothing is created here.
"""

from __future__ import annotations

import pyarrow.fs as pafs

from secateur.io.storage.filesystem_settings import innermost
from secateur.io.storage.s3_client import s3_object, writing_client


def create_object(filesystem: pafs.FileSystem, path: str, data: bytes) -> bool | None:
    """Create an object whole: True if it was created, False if there is one, None where the store is not asked so.

    An attempt whose answer was lost is made again, and then finds what it had created: False does not say by whom.
    Raises OSError where the store refuses, or is not reached.
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
