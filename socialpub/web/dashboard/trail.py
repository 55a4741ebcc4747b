"""`/trail`: what owners and commands did, when and from where."""

from socialpub.db import trail
from socialpub.db.trail import TrailEntry
from socialpub.ops import trail_sentences
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.dashboard.page import page
from socialpub.web.dashboard.visit import Visit

PER_PAGE = 50
LABELS = {
    "key": "Keys",
    "profile": "Profiles",
    "publishing": "Pause and resume",
    "copy": "Backups",
    "secret": "secret.key",
    "notify": "Notifications",
    "password": "Password",
    "session": "Sign-ins",
    "post": "Posts",
}
_PAGES = {"post": "/posts/", "profile": "/profiles/"}


@page()
async def index(rt: Runtime, visit: Visit) -> Answer:
    """A page of it, newest first."""
    kind = visit.query.text("kind") if visit.query.text("kind") in trail.KINDS else ""
    at = visit.query.number("page") or 0
    kinds = (kind,) if kind else ()
    found = await rt.read_aside(lambda reader: trail.read(reader, kinds, at, PER_PAGE))
    return visit.show(
        "trail.html",
        found=found,
        kind=kind,
        kinds={name: LABELS.get(name, name) for name in trail.KINDS},
        at=at,
        per_page=PER_PAGE,
        address=lambda page: visit.href("/trail") + f"?page={page}" + (f"&kind={kind}" if kind else ""),
        who=trail_sentences.who,
        what=lambda entry: trail_sentences.what(trail_sentences.with_times(entry, visit.written)),
        place=_place,
    )


def _place(entry: TrailEntry) -> str | None:
    """The page of what it was done to."""
    folder = _PAGES.get(entry.action.partition(".")[0])
    return f"{folder}{entry.subject_id}" if folder and entry.subject_id else None
