"""Versions of a picture that a network takes, made from the stored original and kept until the delivery is settled."""

import json
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from socialpub.core.errors import Unavailable
from socialpub.db import delivery_rows
from socialpub.media import decoder_client
from socialpub.media.types import CannotFit
from socialpub.providers.content import ImageLimits, MediaFile
from socialpub.providers.job import Unfit
from socialpub.runtime import Runtime

FITTED = "fitted"
"""The folder of the media folder in which they lie, one below it per delivery."""


def fitted(rt: Runtime, delivery_id: str, media: MediaFile, limits: ImageLimits) -> MediaFile:
    """The media file within the limits: itself, or a version made for this delivery.

    Raises Unfit, FileNotFoundError (the original is gone), Unavailable (it could not be made just now).
    """
    name = sha256(f"{media.path.name} {limits}".encode()).hexdigest()[:24]
    folder = _folder(rt, delivery_id)
    verdict = folder / f"{name}.json"
    if not verdict.exists():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        verdict.with_suffix(".part").write_text(json.dumps(_fit(media, folder / name, limits)))
        verdict.with_suffix(".part").rename(verdict)  # from here on it counts
    media.path.stat()
    answer = json.loads(verdict.read_text())
    if not answer["changed"]:
        return media
    facts = {**media.facts, "width": answer["width"], "height": answer["height"], "frames": 1}
    return replace(
        media, path=folder / name, mime_type=answer["mime_type"], size_bytes=answer["size_bytes"], facts=facts
    )


def key_of(rt: Runtime, media: MediaFile) -> str:
    """The storage key under which exactly this file is read, an original or a fitted version."""
    return media.path.relative_to(rt.files.root).as_posix()


def type_of(rt: Runtime, storage_key: str) -> str | None:
    """The media type of a fitted version, or None when there is none under this key."""
    folder, _, name = storage_key.rpartition("/")
    if not folder.startswith(f"{FITTED}/"):
        return None
    try:
        return str(json.loads(rt.files.path(f"{folder}/{name}.json").read_text())["mime_type"])
    except FileNotFoundError:
        return None


def forget(rt: Runtime, delivery_id: str) -> None:
    """Remove the versions of a delivery that is settled."""
    shutil.rmtree(_folder(rt, delivery_id), ignore_errors=True)


def clean(rt: Runtime) -> int:
    """Remove what was made for deliveries that ended without their worker; how many."""
    removed = 0
    for folder in rt.files.path(FITTED).glob("*"):
        if delivery_rows.is_open(rt.reader, folder.name):
            continue
        shutil.rmtree(folder, ignore_errors=True)
        removed += 1
    return removed


def _fit(media: MediaFile, target: Path, limits: ImageLimits) -> dict[str, Any]:
    try:
        return decoder_client.fit(
            media.path,
            target,
            limits.types,
            limits.max_bytes,
            limits.max_width,
            limits.max_height,
            limits.max_short_side,
        )
    except CannotFit as error:
        raise Unfit(f"{media.file_name}: {error.reason}") from None
    except decoder_client.DecoderFailed as error:
        raise Unavailable("The picture could not be made to fit just now.") from error


def _folder(rt: Runtime, delivery_id: str) -> Path:
    return rt.files.path(f"{FITTED}/{delivery_id}")
