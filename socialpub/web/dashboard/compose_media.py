"""The media of a post in its form: what was uploaded, as its owner sees it."""

import json
from collections.abc import Collection
from dataclasses import dataclass

from socialpub.publishing import drafts, uploads
from socialpub.runtime import Runtime
from socialpub.web.dashboard.compose_form import ComposeForm
from socialpub.web.dashboard.option_fields import OptionChoice
from socialpub.web.dashboard.visit import Visit

MAX_PICTURES = 12
"""An option offers at most this number of images. The owner can upload another one."""


@dataclass(frozen=True, slots=True)
class AttachedMedia:
    """`fault` says why it cannot be used, where it cannot."""

    artifact_id: str
    alt: str
    kind: str
    file_name: str
    size_bytes: int
    seconds: float | None
    fault: str | None


def of_form(visit: Visit, form: ComposeForm) -> list[AttachedMedia]:
    """In their order."""
    return [_shown(visit, item.artifact_id, item.alt) for item in form.media]


def pictures(rt: Runtime, form: ComposeForm, chosen: Collection[str]) -> list[OptionChoice]:
    """The images that an option can name: those of the form, the chosen ones, and those that were uploaded last."""
    named = [row for one in (*(item.artifact_id for item in form.media), *chosen) if (row := uploads.find(rt, one))]
    images = [row for row in named if row["kind"] == "image" and drafts.why_unusable(row) is None]
    found = {row["id"]: OptionChoice(row["id"], row["file_name"]) for row in images}
    for row in uploads.newest_images(rt, MAX_PICTURES):
        if len(found) < MAX_PICTURES:
            found.setdefault(row["id"], OptionChoice(row["id"], row["file_name"]))
    return list(found.values())


def only_photos(rt: Runtime, form: ComposeForm) -> bool:
    """Whether there are pictures and no video."""
    kinds = {row["kind"] for item in form.media if (row := uploads.find(rt, item.artifact_id)) is not None}
    return kinds == {"image"}


def _shown(visit: Visit, artifact_id: str, alt: str) -> AttachedMedia:
    row = uploads.find(visit.rt, artifact_id)
    fault = drafts.why_unusable(row)
    if row is None:
        return AttachedMedia(artifact_id, alt, "image", "a file that is gone", 0, None, fault)
    seconds = json.loads(row["facts"] or "{}").get("duration_seconds")
    size_bytes = row["size_bytes"] or row["declared_bytes"]
    return AttachedMedia(artifact_id, alt, row["kind"] or "image", row["file_name"], size_bytes, seconds, fault)
