"""The steps of a pin: the board first, then the media, then one call that makes the pin."""

from collections.abc import Mapping
from typing import Any

from socialpub.providers.content import Content
from socialpub.providers.pinterest.options import COVER
from socialpub.providers.protocol import Kind, Step

BOARD, FIT, CREATE = "board", "fit", "create_pin"
UPLOAD, AWAIT = "upload", "await_processing"
REGISTER = "register"
"""In plans of the former version: it does nothing any more."""


def plan(content: Content, options: Mapping[str, Any]) -> list[Step]:
    """A pure function of what is to be published."""
    media = [Step(FIT, Kind.PREPARE)]
    if content.has_video:
        cover = media if COVER in options else []
        media = [*cover, Step(UPLOAD, Kind.PREPARE), Step(AWAIT, Kind.POLL)]
    return [Step(BOARD, Kind.PREPARE), *media, Step(CREATE, Kind.COMMIT)]
