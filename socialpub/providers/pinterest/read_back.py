"""Finds a pin with an unknown outcome: reads the board and compares its pins with the sent pin.

An uncertain pin counts as a match or as similar, which rules out "absent". Pinterest has no duplicate protection, and a
second pin does more harm than a wrong match. Only a list that was read far enough is a read-back.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from socialpub.core.settings.networks import PinterestSection
from socialpub.providers.base import CannotTell, Job, Published, Readback
from socialpub.providers.comparison import same_link, same_text
from socialpub.providers.pinterest.check import alt_text
from socialpub.providers.pinterest.client import TABLE, call, pages, permalink, read_id
from socialpub.providers.responses import HttpResponse, Reason, object_at, text_at

MAX_PAGES = 10
"""Of 250 pins each."""

IMAGE, SEVERAL_IMAGES, VIDEO = "image", "multiple_images", "video"
MEDIA_KINDS = frozenset({IMAGE, SEVERAL_IMAGES, VIDEO, "multiple_videos", "multiple_mixed"})
"""OpenAPI 5.23.0."""


class _NotReadable(Exception):
    pass


@dataclass(frozen=True, slots=True)
class _Pin:
    id: str
    made_at: datetime | None
    fits: bool
    """The pin does not belong to another member, and none of its texts differs from ours."""
    shows_all: bool
    """The pin shows every text that was sent."""

    def made_since(self, since: datetime) -> bool:
        return self.made_at is None or self.made_at >= since


def check_account(job: Job, section: PinterestSection) -> Readback | CannotTell:
    """Read the pins since the commit once. Raises when Pinterest did not answer."""
    if "boardId" not in job.options:
        return CannotTell("The post does not contain a board to check. Check the account on Pinterest.")
    job.since()  # raises before a commit
    try:
        pins, complete = _search(job, f"{section.api_url}/boards/{job.options['boardId']}/pins")
    except _NotReadable as reason:
        return CannotTell(f"The board cannot be read: {reason} {_where(job, section)}")
    since = job.since()
    pins = [pin for pin in pins if pin.made_since(since)]
    # A pin without texts may be another member's, so pins with our texts come first.
    pins.sort(key=lambda pin: (not pin.shows_all, pin.made_at or since, int(pin.id)))
    candidates = tuple(Published(pin.id, permalink(section, pin.id)) for pin in pins if pin.fits)
    if not candidates and not complete:
        return CannotTell(f"The board has too many pins to find this pin. {_where(job, section)}")
    similar = tuple(pin.id for pin in pins if not pin.fits)
    return Readback(candidates, similar=similar, vague=tuple(pin.id for pin in pins if pin.fits and not pin.shows_all))


def _search(job: Job, url: str) -> tuple[list[_Pin], bool]:
    """Return the pins of our kind, each once, and whether all relevant pins were read.

    A board's list includes the pins of its sections.
    """

    def get(url: str, params: dict[str, str]) -> HttpResponse:
        response = call(job, "GET", url, params=params)
        if not response.ok:
            rejection = TABLE.classify(response)
            if rejection.reason in (Reason.DENIED, Reason.GONE):
                raise _NotReadable(rejection.message)
            raise rejection
        return response

    pins_by_id: dict[str, _Pin] = {}
    seen: list[datetime] = []
    for pins, last in pages(get, url, MAX_PAGES):
        for pin in pins:
            made_at, pin_id = _time_of(pin), read_id(pin, "id")
            if made_at is not None:
                seen.append(made_at)
            if pin_id is not None and _kind_fits(pin, job) and _place_fits(pin, job):
                pins_by_id[pin_id] = _Pin(pin_id, made_at, _could_be(pin, job), _shows_all(pin, job))
        # The response shows Pinterest's clock, which may narrow `since`.
        if last or _past(seen, job.since()):
            return list(pins_by_id.values()), True
    return list(pins_by_id.values()), False


def _past(seen: list[datetime], since: datetime) -> bool:
    """Return whether a list from new to old has passed `since`.

    The order is not documented, so the dates must prove it. A board that was arranged by hand is read to its end.
    """
    falling = len(seen) > 1 and seen[0] > seen[-1] and all(a >= b for a, b in pairwise(seen))
    return falling and seen[-1] < since


def _kind_fits(pin: dict[str, Any], job: Job) -> bool:
    media, count = object_at(pin, "media"), len(job.content.media)
    ours = VIDEO if job.content.has_video else IMAGE if count == 1 else SEVERAL_IMAGES
    theirs, items = text_at(media, "media_type"), media.get("items")
    if theirs in MEDIA_KINDS and theirs != ours:
        return False
    return theirs != SEVERAL_IMAGES or not isinstance(items, list) or len(items) == count


def _place_fits(pin: dict[str, Any], job: Job) -> bool:
    for name, option in (("board_id", "boardId"), ("board_section_id", "boardSectionId")):
        ours, theirs = job.options.get(option), read_id(pin, name)
        if ours is not None and theirs is not None and ours != theirs:
            return False
    return True


def _could_be(pin: dict[str, Any], job: Job) -> bool:
    """Return whether the pin is not another member's and each of its texts is ours.

    A null or absent text proves nothing.
    """
    return pin.get("is_owner") is not False and all(
        (same_link if name == "link" else same_text)(ours, theirs)
        for name, ours in _texts(job).items()
        if isinstance(theirs := pin.get(name), str)
    )


def _shows_all(pin: dict[str, Any], job: Job) -> bool:
    return all(isinstance(pin.get(name), str) for name, ours in _texts(job).items() if ours)


def _texts(job: Job) -> dict[str, str]:
    return {
        "title": job.options.get("title") or "",
        "description": job.content.text.strip(),
        "alt_text": alt_text(job.content) or "",
        "link": job.options.get("link") or "",
    }


def _time_of(pin: dict[str, Any]) -> datetime | None:
    """Return `created_at`, which is UTC without a zone, or None for an unreadable value."""
    try:
        at = datetime.fromisoformat(text_at(pin, "created_at") or "")
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _where(job: Job, section: PinterestSection) -> str:
    name = f"{section.site_url}/{job.account.username}/" if job.account.username else "the account on Pinterest"
    return f"Check {name}, board {job.options['boardId']}."
