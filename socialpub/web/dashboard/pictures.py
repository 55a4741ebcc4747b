"""Pictures of the dashboard's own, as pages load them: thumbnails and the accounts' pictures."""

from socialpub.web.answer import Answer
from socialpub.web.dashboard.visit import Visit

KEPT_SECONDS = 7 * 86400
"""In the browser: a picture's address changes with its bytes."""
HEADERS = (
    (b"cache-control", b"private, max-age=%d, immutable" % KEPT_SECONDS),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"sandbox; default-src 'none'"),
)


def answer(visit: Visit, jpeg: bytes) -> Answer:
    """The picture, harmless also where it is opened by itself."""
    return Answer(200, jpeg, (*visit.headers, *HEADERS), b"image/jpeg")
