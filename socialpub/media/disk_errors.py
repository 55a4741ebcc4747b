"""What a disk that cannot be written means to a caller: the same request may succeed later."""

import errno

from socialpub.core.errors import Unavailable

_FULL = {errno.ENOSPC, errno.EDQUOT}
_BROKEN = {errno.EIO, errno.EROFS, errno.EMFILE, errno.ENFILE}


def disk_full() -> Unavailable:
    return Unavailable("The disk is full. Make room and send the request again.", retry_after_seconds=60)


def as_unavailable(error: OSError) -> Exception:
    """Unavailable when the disk is at fault, else the error itself."""
    if error.errno in _FULL:
        return disk_full()
    if error.errno in _BROKEN:
        return Unavailable("The media folder cannot be written. Look at the disk.", retry_after_seconds=60)
    return error
