"""`/artifacts/{artifactId}/thumbnail`: a picture or film as pages show it, 320 pixels at most.

    <img src="{{ href("/artifacts/" ~ media.artifactId ~ "/thumbnail") }}" alt="…" loading="lazy">

It works from the moment an upload is verified, whether or not a post names it. What has no picture gets a sign instead.
"""

from socialpub.publishing import thumbnails
from socialpub.runtime import Runtime
from socialpub.web import static_files
from socialpub.web.answer import Answer
from socialpub.web.dashboard import pictures
from socialpub.web.dashboard.page import page
from socialpub.web.dashboard.visit import Visit


@page()
async def show(rt: Runtime, visit: Visit) -> Answer:
    """The JPEG."""
    made = await thumbnails.read(rt, visit.params["artifactId"])
    if made is None:
        return visit.go(static_files.url("no_picture.svg"))
    return pictures.answer(visit, made)
