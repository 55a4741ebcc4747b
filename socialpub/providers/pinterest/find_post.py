"""Did it go out after all? The board itself, read and compared with what was sent.

What stays uncertain counts as a match: a pin that is found twice is a smaller harm than one that is made twice. And
only a list that was read far enough to know counts as a look.
"""

import re
import unicodedata
from datetime import UTC, datetime, timedelta
from html import unescape
from itertools import pairwise
from typing import Any

from socialpub.core.settings.sections import PinterestSection
from socialpub.providers.error_table import Reason
from socialpub.providers.job import Job
from socialpub.providers.outcomes import CannotTell, Look, Published
from socialpub.providers.pinterest.check import alt_text
from socialpub.providers.pinterest.client import call, id_of, pages
from socialpub.providers.pinterest.errors import TABLE
from socialpub.providers.pinterest.publish import permalink
from socialpub.providers.responses import HttpResponse, object_at, text_at

SLACK = timedelta(minutes=2)
"""Our clock and Pinterest's need not agree."""
MOST_PAGES = 10
"""Of 250 pins each."""

MEDIA_KINDS = frozenset({"image", "multiple_images", "video"})


class _NotReadable(Exception):
    pass


def look(job: Job, section: PinterestSection) -> Look | CannotTell:
    """One look at everything put on the board since the commit. Raises when the look was not answered."""
    if job.committed_at is None:
        raise ValueError("there is nothing to read back before a commit")
    if "boardId" not in job.options:
        return CannotTell("It names no board to look at. Look at the account on Pinterest.")
    since = job.committed_at - SLACK
    board = f"{section.api_url}/boards/{job.options['boardId']}"
    section_id = job.options.get("boardSectionId")
    try:
        found, complete = _search(job, f"{board}/pins", since)
        if not found and section_id is not None:
            # Whether the board's list holds the pins of its sections is not documented.
            found, complete_too = _search(job, f"{board}/sections/{section_id}/pins", since)
            complete = complete and complete_too
    except _NotReadable as reason:
        return CannotTell(f"The board cannot be read: {reason} {_where(job)}")
    if not found and not complete:
        return CannotTell(f"The board holds too many pins to find it. {_where(job)}")
    ids = sorted(found, key=lambda pin_id: (found[pin_id] or since, int(pin_id)))
    return Look(tuple(Published(pin_id, permalink(pin_id)) for pin_id in ids))


def _search(job: Job, url: str, since: datetime) -> tuple[dict[str, datetime | None], bool]:
    """The pins of this list that could be ours, by id, with their time; and whether all in question were seen."""

    def get(url: str, params: dict[str, str]) -> HttpResponse:
        response = call(job, "GET", url, params=params)
        if not response.ok:
            rejection = TABLE.classify(response)
            if rejection.reason in (Reason.DENIED, Reason.GONE):
                raise _NotReadable(rejection.message)
            raise rejection.rejected()
        return response

    found: dict[str, datetime | None] = {}
    seen: list[datetime] = []
    for pins, last in pages(get, url, MOST_PAGES):
        for pin in pins:
            at = _time_of(pin)
            if at is not None:
                seen.append(at)
            pin_id = id_of(pin, "id")
            if pin_id is not None and (at is None or at >= since) and _could_be(pin, job):
                found[pin_id] = at
        if last or _past(seen, since):
            return found, True
    return found, False


def _past(seen: list[datetime], since: datetime) -> bool:
    """Whether a list that goes from new to old has gone beyond `since`. The order is not documented, so it has to show:
    on a board that somebody arranged by hand everything is read."""
    falling = len(seen) > 1 and seen[0] > seen[-1] and all(a >= b for a, b in pairwise(seen))
    return falling and seen[-1] < since


def _could_be(pin: dict[str, Any], job: Job) -> bool:
    return _kind_fits(pin, job) and all(
        name not in pin or _same(name, ours, pin[name])
        for name, ours in (
            ("title", job.options.get("title")),
            ("description", job.content.text),
            ("link", job.options.get("link")),
            ("alt_text", alt_text(job.content)),
        )
    )


def _kind_fits(pin: dict[str, Any], job: Job) -> bool:
    """A pin whose media are told, and are of another kind, is not ours."""
    theirs = text_at(object_at(pin, "media"), "media_type")
    ours = "video" if job.content.has_video else "image" if len(job.content.media) == 1 else "multiple_images"
    return theirs is None or theirs not in MEDIA_KINDS or theirs == ours


def _same(name: str, ours: str | None, theirs: Any) -> bool:
    plain = _plain_link if name == "link" else _plain
    return plain(ours or "") == plain(theirs if isinstance(theirs, str) else "")


def _plain(text: str) -> str:
    """One form for both sides: NFC, no HTML entities, single spaces."""
    return " ".join(unicodedata.normalize("NFC", unescape(text)).split())


def _plain_link(link: str) -> str:
    """Without what a server may add or take: scheme, `www.`, a closing slash, the fragment; the host in lower case."""
    link = re.sub(r"^https?://(www\.)?", "", unescape(link.strip()), flags=re.IGNORECASE).partition("#")[0]
    host, slash, path = link.partition("/")
    return (host.lower() + slash + path).rstrip("/")


def _time_of(pin: dict[str, Any]) -> datetime | None:
    """`created_at`, which comes without a zone and is UTC; None when it cannot be read."""
    try:
        at = datetime.fromisoformat(text_at(pin, "created_at") or "")
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _where(job: Job) -> str:
    name = f"https://www.pinterest.com/{job.account.username}/" if job.account.username else "the account on Pinterest"
    return f"Look at {name}, board {job.options['boardId']}."
