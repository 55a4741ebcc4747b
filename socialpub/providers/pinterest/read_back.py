"""Did it go out after all? The board itself, read and compared with what was sent.

What stays uncertain counts as a match, or as something similar that lets nobody say "absent": a pin that is found twice
is a smaller harm than one that is made twice, and Pinterest has no guard of its own against that. And only a list that
was read far enough to know counts as a look.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from socialpub.core.settings.networks import PinterestSection
from socialpub.providers.base import CannotTell, Job, Published, Readback
from socialpub.providers.comparison import same_link, same_text
from socialpub.providers.errors import Reason
from socialpub.providers.pinterest.check import alt_text
from socialpub.providers.pinterest.client import TABLE, call, pages, permalink, read_id
from socialpub.providers.responses import HttpResponse, object_at, text_at

MAX_PAGES = 10
"""Of 250 pins each."""

IMAGE, SEVERAL_IMAGES, VIDEO = "image", "multiple_images", "video"
MEDIA_KINDS = frozenset({IMAGE, SEVERAL_IMAGES, VIDEO, "multiple_videos", "multiple_mixed"})
"""OpenAPI 5.23.0."""


class _NotReadable(Exception):
    pass


@dataclass(frozen=True, slots=True)
class _Pin:
    """A pin of the kind that was sent."""

    id: str
    made_at: datetime | None
    fits: bool
    """It does not say that it is somebody else's, and no text that it tells is another one than ours."""
    tells_all: bool
    """It tells every text that was sent."""

    def made_since(self, since: datetime) -> bool:
        return self.made_at is None or self.made_at >= since


def check_account(job: Job, section: PinterestSection) -> Readback | CannotTell:
    """One look at everything put on the board since the commit. Raises when the look was not answered."""
    if "boardId" not in job.options:
        return CannotTell("It names no board to look at. Look at the account on Pinterest.")
    job.since()  # there is nothing to look for before a commit
    try:
        found, complete = _search(job, f"{section.api_url}/boards/{job.options['boardId']}/pins")
    except _NotReadable as reason:
        return CannotTell(f"The board cannot be read: {reason} {_where(job, section)}")
    since = job.since()
    found = [pin for pin in found if pin.made_since(since)]
    # One that tells nothing may be anybody's: whatever tells our words comes before it.
    found.sort(key=lambda pin: (not pin.tells_all, pin.made_at or since, int(pin.id)))
    candidates = tuple(Published(pin.id, permalink(section, pin.id)) for pin in found if pin.fits)
    if not candidates and not complete:
        return CannotTell(f"The board holds too many pins to find it. {_where(job, section)}")
    similar = tuple(pin.id for pin in found if not pin.fits)
    return Readback(candidates, similar=similar, vague=tuple(pin.id for pin in found if pin.fits and not pin.tells_all))


def _search(job: Job, url: str) -> tuple[list[_Pin], bool]:
    """The pins of this list that are of our kind, each once, and whether all in question were seen. A board's list
    holds the pins of its sections too."""

    def get(url: str, params: dict[str, str]) -> HttpResponse:
        response = call(job, "GET", url, params=params)
        if not response.ok:
            rejection = TABLE.classify(response)
            if rejection.reason in (Reason.DENIED, Reason.GONE):
                raise _NotReadable(rejection.message)
            raise rejection
        return response

    found: dict[str, _Pin] = {}
    seen: list[datetime] = []
    for pins, last in pages(get, url, MAX_PAGES):
        for pin in pins:
            made_at, pin_id = _time_of(pin), read_id(pin, "id")
            if made_at is not None:
                seen.append(made_at)
            if pin_id is not None and _kind_fits(pin, job) and _place_fits(pin, job):
                found[pin_id] = _Pin(pin_id, made_at, _could_be(pin, job), _tells_all(pin, job))
        # The answer told the network's time: what is in question may begin later than it seemed before.
        if last or _past(seen, job.since()):
            return list(found.values()), True
    return list(found.values()), False


def _past(seen: list[datetime], since: datetime) -> bool:
    """Whether a list that goes from new to old has gone beyond `since`. The order is not documented, so it has to show:
    on a board that somebody arranged by hand everything is read."""
    falling = len(seen) > 1 and seen[0] > seen[-1] and all(a >= b for a, b in pairwise(seen))
    return falling and seen[-1] < since


def _kind_fits(pin: dict[str, Any], job: Job) -> bool:
    """Whether the media that the pin names, as far as it names them, are of the kind and number that were sent."""
    media, count = object_at(pin, "media"), len(job.content.media)
    ours = VIDEO if job.content.has_video else IMAGE if count == 1 else SEVERAL_IMAGES
    theirs, items = text_at(media, "media_type"), media.get("items")
    if theirs in MEDIA_KINDS and theirs != ours:
        return False
    return theirs != SEVERAL_IMAGES or not isinstance(items, list) or len(items) == count


def _place_fits(pin: dict[str, Any], job: Job) -> bool:
    """Whether it lies where it was put, as far as both say so."""
    for name, option in (("board_id", "boardId"), ("board_section_id", "boardSectionId")):
        ours, theirs = job.options.get(option), read_id(pin, name)
        if ours is not None and theirs is not None and ours != theirs:
            return False
    return True


def _could_be(pin: dict[str, Any], job: Job) -> bool:
    """Whether it is not another member's of a group board, and each text that it tells is ours. What is null or absent
    says nothing."""
    return pin.get("is_owner") is not False and all(
        (same_link if name == "link" else same_text)(ours, theirs)
        for name, ours in _texts(job).items()
        if isinstance(theirs := pin.get(name), str)
    )


def _tells_all(pin: dict[str, Any], job: Job) -> bool:
    return all(isinstance(pin.get(name), str) for name, ours in _texts(job).items() if ours)


def _texts(job: Job) -> dict[str, str]:
    """The texts that were sent, by the names that Pinterest has for them."""
    return {
        "title": job.options.get("title") or "",
        "description": job.content.text.strip(),
        "alt_text": alt_text(job.content) or "",
        "link": job.options.get("link") or "",
    }


def _time_of(pin: dict[str, Any]) -> datetime | None:
    """`created_at`, which comes without a zone and is UTC; None when it cannot be read."""
    try:
        at = datetime.fromisoformat(text_at(pin, "created_at") or "")
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _where(job: Job, section: PinterestSection) -> str:
    name = f"{section.site_url}/{job.account.username}/" if job.account.username else "the account on Pinterest"
    return f"Look at {name}, board {job.options['boardId']}."
