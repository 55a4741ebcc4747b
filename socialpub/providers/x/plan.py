"""The steps of a post on X: the files first, then one call that makes the post."""

from socialpub.providers.content import Content, MediaFile
from socialpub.providers.protocol import Kind, Step

CREATE = "create_post"
UPLOAD_IMAGE, INIT, APPEND, FINALIZE, AWAIT, ALT_TEXT = "upload", "init", "append", "finalize", "await", "alt"
"""Each is followed by `:` and the index of its media item."""


def plan(content: Content) -> list[Step]:
    """A pure function of the content."""
    files = [step for index, media in enumerate(content.media) for step in upload_steps(index, media)]
    return [*files, Step(CREATE, Kind.COMMIT)]


def upload_steps(index: int, media: MediaFile) -> list[Step]:
    """What the upload of one media item takes, before the post."""
    names = [INIT, APPEND, FINALIZE] if in_chunks(media) else [UPLOAD_IMAGE]
    steps = [Step(f"{name}:{index}", Kind.PREPARE) for name in names]
    if in_chunks(media):
        steps.append(Step(f"{AWAIT}:{index}", Kind.POLL))
    if media.alt and media.kind == "image":
        steps.append(Step(f"{ALT_TEXT}:{index}", Kind.PREPARE))
    return steps


def in_chunks(media: MediaFile) -> bool:
    """X takes pictures in one call; a GIF with a single frame is a picture."""
    return media.kind == "video" or media.animated
