"""The steps of a pin: the board first, then the media, then one call that makes the pin."""

from socialpub.providers.content import Content
from socialpub.providers.protocol import Kind, Step

BOARD, FIT, CREATE = "board", "fit", "create_pin"
REGISTER, UPLOAD, AWAIT = "register", "upload", "await_processing"


def plan(content: Content) -> list[Step]:
    """A pure function of the content."""
    media = [Step(FIT, Kind.PREPARE)]
    if content.has_video:
        media = [Step(REGISTER, Kind.PREPARE), Step(UPLOAD, Kind.PREPARE), Step(AWAIT, Kind.POLL)]
    return [Step(BOARD, Kind.PREPARE), *media, Step(CREATE, Kind.COMMIT)]
