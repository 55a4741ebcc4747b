"""`/artifacts/{artifactId}/thumbnail`: a picture or film as pages show it, 320 pixels at most.

    <img src="{{ href("/artifacts/" ~ media.artifactId ~ "/thumbnail") }}" alt="…" loading="lazy">

It works from the moment an upload is verified, whether or not a post names it. What has no picture gets a sign instead.
"""

from socialpub.publishing import thumbnails
from socialpub.runtime import Runtime
from socialpub.web import static_files
from socialpub.web.answer import Answer
from socialpub.web.dashboard.page import page
from socialpub.web.dashboard.visit import Visit

KEPT_SECONDS = 7 * 86400
"""In the browser: the bytes of a verified artifact never change."""


@page()
async def show(rt: Runtime, visit: Visit) -> Answer:
    """The JPEG."""
    made = await thumbnails.read(rt, visit.params["artifactId"])
    if made is None:
        return visit.leave(visit.root + static_files.url("no_picture.svg"))
    headers = (
        *visit.headers,
        (b"cache-control", b"private, max-age=%d, immutable" % KEPT_SECONDS),
        (b"x-content-type-options", b"nosniff"),
        (b"content-security-policy", b"sandbox; default-src 'none'"),
    )
    return Answer(200, made, headers, thumbnails.MIME_TYPE.encode())
