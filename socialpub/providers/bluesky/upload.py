"""Uploads media to the account's server: one call for each file.

The same bytes give the same blob, so an upload may be repeated. The server removes a blob that no record names.
"""

from collections.abc import Mapping
from typing import Any

from socialpub.core.settings.networks import BlueskySection
from socialpub.providers.base import (
    Again,
    Cause,
    Content,
    Done,
    ImageLimits,
    Job,
    Kind,
    MediaFile,
    Memo,
    Outcome,
    Refused,
    Step,
)
from socialpub.providers.bluesky import client, limits
from socialpub.providers.bluesky.check import unconfirmed_email
from socialpub.providers.bodies import FileBody
from socialpub.providers.error_table import as_outcome
from socialpub.providers.responses import HttpResponse, NoAnswer, Reason, as_object, json_object, object_at, text_at

UPLOAD = "upload"
"""In a step's name, `:` and the index of the media item follow."""

TOO_LARGE = "The account's server finds the images too large. socialpub makes them smaller and uploads them again."


def plan(content: Content) -> list[Step]:
    return [Step(f"{UPLOAD}:{index}", Kind.PREPARE) for index in range(len(content.media))]


def upload_item(job: Job, section: BlueskySection, index: int) -> Outcome:
    if str(index) in blobs(job.memo):
        return Done(job.memo)
    email = unconfirmed_email(job.account) if job.content.has_video else None
    if email is not None:  # the token's renewal may have reported this after the check
        return Refused(email, content=True)
    media = fitted(job, index)
    response = send(job, section, media)
    if response.ok:
        blob = {"blob": read_blob(response), "width": media.facts.get("width"), "height": media.facts.get("height")}
        return Done({**job.memo, "blobs": {**blobs(job.memo), str(index): blob}})
    rejection = client.classify(response, now=job.wall_now, sent_bytes=True)
    if rejection.reason is Reason.TOO_LARGE and media.kind == "image":
        return shrink_images(job) or as_outcome(rejection)
    return as_outcome(rejection)


def blobs(memo: Memo) -> Mapping[str, Any]:
    uploads: Mapping[str, Any] = memo.get("blobs") or {}
    return uploads


def fitted(job: Job, index: int) -> MediaFile:
    """Return the file that is sent. It is the same for each upload of the delivery."""
    media = job.content.media[index]
    if media.kind != "image":
        return media
    max_bytes = job.memo.get("max_bytes", limits.IMAGE_BYTES)
    return job.fit(
        media, ImageLimits(limits.IMAGE_TYPES, max_bytes, max_width=limits.IMAGE_SIDE, max_height=limits.IMAGE_SIDE)
    )


def send(job: Job, section: BlueskySection, media: MediaFile) -> HttpResponse:
    return client.call(
        job,
        section,
        "POST",
        "com.atproto.repo.uploadBlob",
        headers={"content-type": media.mime_type},
        content=FileBody(media.path, 0, media.size_bytes),
    )


def read_blob(response: HttpResponse) -> dict[str, Any]:
    """Return the blob, unchanged: the server compares it with its own. Raises `NoAnswer` for another form."""
    blob = object_at(json_object(response), "blob")
    link = text_at(as_object(blob.get("ref")), "$link")
    if blob.get("$type") != "blob" or link is None or text_at(blob, "mimeType") is None:
        raise NoAnswer("The account's server accepted the file but did not describe it.")
    return blob


def shrink_images(job: Job) -> Again | None:
    """Return to the first upload with the former limit. None: the images are that small already."""
    if job.memo.get("max_bytes", limits.IMAGE_BYTES) <= limits.FORMER_IMAGE_BYTES or job.content.has_video:
        return None
    return Again(f"{UPLOAD}:0", {"max_bytes": limits.FORMER_IMAGE_BYTES}, Cause.TOO_LARGE, TOO_LARGE)
