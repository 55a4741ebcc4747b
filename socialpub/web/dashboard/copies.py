"""`/system/copy`: a consistent copy of everything but secret.key, as a file for the owner."""

from functools import partial

from socialpub.ops.copies import copy_download
from socialpub.runtime import Runtime
from socialpub.web import aside, file_body
from socialpub.web.answer import Answer
from socialpub.web.dashboard.page import page
from socialpub.web.dashboard.visit import Visit


@page()
async def download(rt: Runtime, visit: Visit) -> Answer | None:
    """Made while everything goes on, then sent piece by piece."""
    with await aside.run(partial(copy_download.make, rt)) as file:
        name = f"socialpub-{visit.now.astimezone(visit.zone):%Y-%m-%d-%H%M}.tar"
        await visit.request.start(
            200,
            (
                *visit.headers,
                (b"content-type", b"application/x-tar"),
                (b"content-length", b"%d" % file.size_bytes),
                (b"content-disposition", f'attachment; filename="{name}"'.encode()),
                (b"x-content-type-options", b"nosniff"),
                (b"cache-control", b"no-store"),
            ),
        )
        await file_body.send(visit.request, file, 0, file.size_bytes)
    return None
