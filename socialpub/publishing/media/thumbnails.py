"""Thumbnails: small JPEGs that the dashboard shows in place of an image or video.

The decoder process creates a thumbnail at the first request. It is stored until its file is removed. Backups do not
contain thumbnails. An empty file means that no thumbnail can be created.
"""

import asyncio
import os
from pathlib import Path

from socialpub.core import durable_files, logging
from socialpub.core.errors import Unavailable
from socialpub.db.tables import artifact_rows
from socialpub.media import files
from socialpub.media.decoder import client
from socialpub.media.decoder.client import DecoderFailed
from socialpub.media.reservations import as_unavailable
from socialpub.media.types import CannotFit, FitLimits
from socialpub.runtime import Runtime

SIDE_PIXELS = 320
MAX_BYTES = 64 * 1024
MIME_TYPE = "image/jpeg"

log = logging.get_logger(__name__)


async def load(rt: Runtime, artifact_id: str) -> bytes | None:
    """Return the thumbnail of a verified artifact, or None. Raises Unavailable when it cannot be created now."""
    row = artifact_rows.find(rt.db, artifact_id)
    key = None if row is None or row.status != "verified" or row.removed_at else row.storage_key
    if key is None:
        return None
    return await load_of(rt, rt.files.path(key), files.thumbnail_path(rt.files.root, key))


async def load_of(rt: Runtime, source: Path, kept: Path) -> bytes | None:
    """Return the thumbnail of a file, which is stored at `kept`. Raises as `load`."""
    made = await asyncio.to_thread(_read, kept)
    if made is None:
        made = await _make(rt, source, kept)
    return made or None


def clean(rt: Runtime) -> int:
    """Remove the thumbnails of removed files. Return their number. Do not call on the event loop."""
    removed, root = 0, rt.files.root / files.THUMBNAILS
    for folder in root.iterdir() if root.is_dir() else ():
        for path in folder.iterdir():
            if not rt.files.path(f"{folder.name}/{path.name.removesuffix('.jpg')}").exists():
                path.unlink(missing_ok=True)
                removed += 1
    return removed


def _read(kept: Path) -> bytes | None:
    try:
        return kept.read_bytes()
    except FileNotFoundError:
        return None


async def _make(rt: Runtime, source: Path, kept: Path) -> bytes | None:
    limits = FitLimits((MIME_TYPE,), MAX_BYTES, SIDE_PIXELS, SIDE_PIXELS, rewrite=True)
    # The file is locked until it is complete. The file of a dead process is removed as an orphan.
    with rt.files.reservations.reserve(MAX_BYTES), rt.files.receive() as incoming:
        try:
            await client.thumbnail_async(source, incoming.path, limits, key_id="dashboard")
        except FileNotFoundError:
            return None
        except CannotFit as error:
            log.info("no thumbnail can be created", file=source.name, reason=error.reason)
            incoming.path.write_bytes(b"")
        except DecoderFailed as error:
            raise Unavailable("The thumbnail could not be created. Try again later.") from error
        try:
            return await asyncio.to_thread(_keep, incoming.path, kept)
        except OSError as error:
            raise as_unavailable(error) from error


def _keep(part: Path, kept: Path) -> bytes:
    with part.open("rb") as file:
        os.fsync(file.fileno())
        made = file.read()
    kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part.replace(kept)
    durable_files.flush_folder(kept.parent)
    return made
