"""Removing what nobody needs any more: old reservations, unreferenced artifacts, bytes of settled posts, orphans."""

from collections.abc import Callable

from socialpub.core.clock import stamp
from socialpub.db import artifact_rows
from socialpub.db.transaction import Tx
from socialpub.runtime import Runtime

_AT_ONCE = 100
"""Finding them may take long and is a read; only so many are asked again inside one short write."""


def clean(rt: Runtime) -> int:
    """Remove old reservations, artifacts that no post references, bytes of settled posts if the owner wants that, and
    files that no row names; returns how many files went. May take long: not on the event loop."""
    now, uploads, keep = rt.clock.now(), rt.settings.uploads, rt.settings.media.keep_after_settled
    reserved, others = stamp(now - uploads.reservation_lifetime), stamp(now - uploads.unreferenced_lifetime)
    unused = artifact_rows.unused(rt.reader, reserved, others)
    removed = _remove(rt, unused, lambda tx, some: artifact_rows.delete_unused(tx, some, reserved, others))
    if keep is not None:
        before = stamp(now - keep)
        settled = artifact_rows.settled(rt.reader, before)
        removed += _remove(rt, settled, lambda tx, some: artifact_rows.empty_settled(tx, some, before))
    return removed + rt.files.remove_orphans(lambda keys: artifact_rows.named_among(rt.reader, keys))


def _remove(rt: Runtime, artifact_ids: list[str], change: Callable[[Tx, list[str]], list[str]]) -> int:
    removed = 0
    for start in range(0, len(artifact_ids), _AT_ONCE):
        for storage_key in rt.write(_change, change, artifact_ids[start : start + _AT_ONCE]):
            rt.files.remove(storage_key)
            removed += 1
    return removed


def _change(rt: Runtime, tx: Tx, change: Callable[[Tx, list[str]], list[str]], some: list[str]) -> list[str]:
    return change(tx, some)
