"""Disk space for the tokens that a network is about to hand out.

A refresh token works once. When the disk cannot take the answer, the account is lost. So the disk grants the space
first.
"""

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from socialpub.core.errors import Unavailable
from socialpub.db import appliance_state
from socialpub.db.transaction import Tx
from socialpub.runtime import Runtime

FILE_BYTES = 256 * 1024
"""More than the pages that one stored pair adds to the write-ahead log."""
ROW_BYTES = 16 * 1024
"""More than the longest pair of tokens with everything that is stored beside it."""


@contextmanager
def reserved(rt: Runtime) -> Iterator[None]:
    """Reserve disk space until the block ends; store the new tokens right after it.

    The database accepts a write of the size of the tokens first. Raises Unavailable when it does not, or when the disk
    is full: the block does not run then, and the network is not asked.
    """
    with ExitStack() as opened:
        try:
            # The accepted write may take the last free pages. This file keeps others for the write that follows the
            # answer. It has no name, so the space is free again when the process dies.
            file = opened.enter_context(tempfile.TemporaryFile(dir=rt.settings.database_file.parent))
            os.posix_fallocate(file.fileno(), 0, FILE_BYTES)
        except OSError as error:
            message = f"The disk cannot store new tokens ({error.strerror}), so the network was not asked for them."
            raise Unavailable(f"{message} Free some space on it.", retry_after_seconds=60) from error
        rt.write(_write_row)
        yield


def _write_row(_: Runtime, tx: Tx) -> None:
    appliance_state.put(tx, appliance_state.TOKEN_SPACE, secrets.token_hex(ROW_BYTES // 2))
