"""How much media may take here (`storage.quota`): checked when a file is announced, and again when its row names it.

What was counted in the same write decides, so that no two files at once go beyond it. What accepted posts need in order
to go out, versions for networks and thumbnails, is never refused here.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from socialpub.core import sizes
from socialpub.core.errors import Unavailable
from socialpub.db import artifact_rows
from socialpub.db.transaction import Reader, Tx
from socialpub.runtime import Runtime

RETRY_SECONDS = 3600
"""What is not needed any more is removed hourly."""


@dataclass(slots=True)
class ArrivingMedia:
    """What is on its way to this process, and named by no row yet."""

    size_bytes: int = 0


def check(rt: Runtime, store: Reader | Tx, size_bytes: int, beside_bytes: int = 0) -> None:
    """Whether so many bytes more may be stored, `beside_bytes` on their way not counting as stored yet. Raises
    Unavailable."""
    quota = rt.settings.storage.quota
    if quota is None or not size_bytes:
        return
    used = artifact_rows.stored(store)[1] + beside_bytes
    if used + size_bytes > quota:
        raise Unavailable(
            f"Media may take {sizes.write(quota)} here (storage.quota), and {sizes.write(used)} are used: there is no "
            f"room for {sizes.write(size_bytes)} more. Raise storage.quota, or have the files of settled posts removed "
            "(media.keep_after_settled). Posts that bring no new file go on.",
            retry_after_seconds=RETRY_SECONDS,
        )


def check_beside_arriving(rt: Runtime, store: Reader | Tx, size_bytes: int) -> None:
    """The same before the bytes come: those that are on their way count as stored. Raises Unavailable."""
    check(rt, store, size_bytes, rt.memory(ArrivingMedia).size_bytes)


@contextmanager
def arriving(rt: Runtime, size_bytes: int) -> Iterator[None]:
    """While so many bytes arrive; what is announced meanwhile finds less room. Raises Unavailable. On the event loop,
    which alone counts here."""
    check_beside_arriving(rt, rt.reader, size_bytes)
    on_their_way = rt.memory(ArrivingMedia)
    on_their_way.size_bytes += size_bytes
    try:
        yield
    finally:
        on_their_way.size_bytes -= size_bytes
