"""Sending one chunk to the address that TikTok named for it.

The upload host answers with a bare status; a page in its place comes from something in between and proves nothing.
"""

import re

from socialpub.core.settings.networks import TikTokSection
from socialpub.providers import upload_address
from socialpub.providers.bodies import FileBody
from socialpub.providers.errors import NoAnswer
from socialpub.providers.job import Job
from socialpub.providers.outcomes import Memo
from socialpub.providers.responses import HttpResponse
from socialpub.providers.tiktok import chunks

TAKEN = frozenset({200, 201, 206})
PAGE = re.compile(rb"\s*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)


def put(job: Job, cut: chunks.Chunks, index: int) -> HttpResponse:
    """Send one chunk, whose address was judged before. The address is the credential: no token goes with it.

    Raises `NoAnswer` for everything that is no answer of the upload host."""
    media = job.content.media[0]
    offset, length = cut.slice(index)
    response: HttpResponse = job.call(
        "PUT",
        job.open(job.memo["upload"]["address"]),
        headers={"content-type": media.mime_type, "content-range": cut.content_range(index)},
        content=FileBody(media.path, offset, length),
    )
    code = response.status
    job.trace.code = None if code in TAKEN else str(code)
    if _is_page(response):
        raise NoAnswer(
            f"Something between here and TikTok's upload host answered in its place (HTTP {code}).", code=str(code)
        )
    if response.ok and code not in TAKEN:
        raise NoAnswer(f"TikTok's upload host answered in a way that it does not document (HTTP {code}).")
    return response


def complaint(job: Job, section: TikTokSection) -> str | None:
    """Why nothing may be sent to the address of this task. It is judged each time."""
    return address_complaint(job.open(job.memo["upload"]["address"]), section)


def address_complaint(address: str, section: TikTokSection) -> str | None:
    return upload_address.complaint(address, section, "tiktok", "TikTok")


def ended(job: Job) -> bool:
    """Whether the address is over, or so nearly that nothing is begun with it."""
    return bool(job.now.timestamp() >= job.memo["upload"]["ends_at"])


def progress(job: Job, sent: int, **more: object) -> Memo:
    """The memo with so many chunks sent; `tries` counts anew."""
    return {**job.memo, "upload": {**job.memo["upload"], "sent": sent, "tries": 0, **more}}


def is_doubtful(response: HttpResponse) -> bool:
    """Whether a success may be another's: it has words, but not a word on the progress."""
    return bool(response.body.strip()) and "content-range" not in response.headers


def _is_page(response: HttpResponse) -> bool:
    return "html" in response.headers.get("content-type", "").lower() or PAGE.match(response.body) is not None
