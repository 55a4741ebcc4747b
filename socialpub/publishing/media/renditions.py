"""Renditions: versions of an image within a network's limits, stored until the delivery is settled.

Each rendition has a verdict file. If the two do not agree, both are made again.
"""

import contextlib
import json
import shutil
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any

from socialpub.core import durable_files, logging
from socialpub.core.errors import Unavailable
from socialpub.core.secrets import signed_urls
from socialpub.core.settings.loader import Settings
from socialpub.db.tables import delivery_rows
from socialpub.media import files
from socialpub.media.decoder import client
from socialpub.media.types import CannotFit, FitLimits
from socialpub.providers.base import ImageLimits, MediaFile, Unfit
from socialpub.runtime import Runtime

_VERDICT = {"mime_type": str, "width": int, "height": int, "size_bytes": int, "changed": bool, "reencoded": bool}
_NOT_NOW = "The image could not be resized. socialpub tries again."

log = logging.get_logger(__name__)


def fit_media(rt: Runtime, delivery_id: str, media: MediaFile, limits: ImageLimits) -> MediaFile:
    """Return the media file within the limits and without metadata: the original, or a version for this delivery.

    Raises Unfit, FileNotFoundError (no original), Unavailable.
    """
    name = sha256(f"{media.path.name} {limits}".encode()).hexdigest()[:24]
    version = path_of(rt, delivery_id, name)
    media.path.stat()
    verdict = _read_verdict(version) or _make(rt, media, version, limits)
    if not verdict["changed"]:
        return media
    facts = {**media.facts, "width": verdict["width"], "height": verdict["height"]}
    if verdict["reencoded"]:
        facts["frames"] = 1
    return replace(media, path=version, mime_type=verdict["mime_type"], size_bytes=verdict["size_bytes"], facts=facts)


def path_of(rt: Runtime, delivery_id: str, name: str) -> Path:
    """Return the path of a file of this delivery by its file name."""
    return rt.files.path(files.rendition_key(delivery_id, name))


def keep_source(rt: Runtime, delivery_id: str, body: bytes) -> Path:
    """Store a file of this delivery only, and return its path. Raises OSError.

    A stored file is never replaced: the owner may have seen it.
    """
    path = path_of(rt, delivery_id, sha256(body).hexdigest()[:24])
    if path.exists():
        return path
    (rt.files.root / files.RENDITIONS).mkdir(exist_ok=True, mode=0o700)
    path.parent.mkdir(exist_ok=True, mode=0o700)
    part = path.with_suffix(f".{token_hex(8)}.part")
    try:
        with durable_files.create(part) as file:
            file.write(body)
            durable_files.flush(file)
        _name(part, path)
    finally:
        part.unlink(missing_ok=True)
    return path


def public_url(rt: Runtime, media: MediaFile) -> str:
    """Return a signed URL of an original or a rendition for its network."""
    key = media.path.relative_to(rt.files.root).as_posix()
    return signed_urls.media_url(rt.settings, rt.secrets, key, rt.now(), public_url_lifetime(rt.settings))


def public_url_lifetime(settings: Settings) -> timedelta:
    """Return the lifetime of media URLs for networks: until the delivery is settled."""
    return settings.publishing.give_up_after + timedelta(hours=2)


def rendition_type(rt: Runtime, storage_key: str) -> str | None:
    """Return the media type of a rendition. None: the key has no rendition."""
    verdict = _read_verdict(rt.files.path(storage_key))
    return None if verdict is None else str(verdict["mime_type"])


def forget(rt: Runtime, delivery_id: str) -> None:
    """Remove the renditions of a settled delivery."""
    shutil.rmtree(path_of(rt, delivery_id, "0" * 24).parent, ignore_errors=True)


def clean(rt: Runtime) -> int:
    """Remove the renditions of ended deliveries. Return the number of removed renditions."""
    removed = 0
    for folder in (rt.files.root / files.RENDITIONS).glob("*"):
        if delivery_rows.is_open(rt.db, folder.name):
            continue
        shutil.rmtree(folder, ignore_errors=True)
        removed += 1
    return removed


def _read_verdict(version: Path) -> dict[str, Any] | None:
    """Return the verdict of a rendition. None: the rendition or the verdict is damaged."""
    try:
        verdict = json.loads(_verdict_path(version).read_bytes())
        types = {key: type(value) for key, value in verdict.items()}
        if types != _VERDICT or (verdict["changed"] and version.stat().st_size != verdict["size_bytes"]):
            return None
    except (OSError, ValueError, AttributeError):
        return None
    return dict(verdict)


def _verdict_path(version: Path) -> Path:
    return version.with_suffix(".json")


def _make(rt: Runtime, media: MediaFile, version: Path, limits: ImageLimits) -> dict[str, Any]:
    """Make the rendition and then its verdict. Both files are flushed to the disk before they get their final names.

    Several threads may make equal renditions. Each has its own temporary file.
    """
    part = version.with_suffix(f".{token_hex(8)}.part")
    try:
        (rt.files.root / files.RENDITIONS).mkdir(exist_ok=True, mode=0o700)
        version.parent.mkdir(exist_ok=True, mode=0o700)
        with rt.files.reservations.reserve(limits.max_bytes, for_accepted_post=True):
            verdict = _fit(media, part, limits)
        if verdict["changed"]:
            with part.open("rb") as file:
                durable_files.flush(file)
            _name(part, version)
        with durable_files.create(part) as file:
            file.write(json.dumps(verdict).encode())
            durable_files.flush(file)
        _name(part, _verdict_path(version))
        return verdict
    except OSError as error:
        media.path.stat()  # FileNotFoundError: a retry does not help
        raise Unavailable(_NOT_NOW) from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def _name(part: Path, path: Path) -> None:
    part.replace(path)
    durable_files.flush_folder(path.parent)


def _fit(media: MediaFile, target: Path, limits: ImageLimits) -> dict[str, Any]:
    try:
        return client.fit(
            media.path,
            target,
            FitLimits(limits.types, limits.max_bytes, limits.max_width, limits.max_height, limits.max_short_side),
        )
    except CannotFit as error:
        raise Unfit(f"{media.file_name}: {error.reason}") from None
    except client.DecoderFailed as error:
        log.warning("an image could not be resized", file_name=media.file_name, reason=str(error))
        raise Unavailable(_NOT_NOW) from error
