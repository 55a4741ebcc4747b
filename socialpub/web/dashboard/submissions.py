"""A form that makes a post makes one post, however often it is sent.

Each form has an id, and the post that it made is kept under that id for a day. A script gives the form its id back when
the browser goes back. Without scripts a browser loads the form again, with another id and the fields as they were. So
the post is kept under its content as well, and the page asks before it publishes equal content.
"""

import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Concatenate

from socialpub.accounts.api_keys import OWNER
from socialpub.core.clock import stamp
from socialpub.db import artifact_rows, post_rows
from socialpub.db.models import OUTCOME_LETTERS
from socialpub.db.transaction import Reader, Tx
from socialpub.publishing import idempotency
from socialpub.publishing.drafts import Draft
from socialpub.publishing.idempotency import Kept, Ticket
from socialpub.runtime import Runtime

FIELD = "form"
"""The hidden field with the id."""
LONGEST_ID = 100

SUBMITTED = "You already submitted this form. This is the post that it created."
CHANGED = (
    "You already submitted this form with different content. Press the button again to publish this version as a new "
    "post."
)
EQUAL = "You already published this content in the last hour. Press the button again to publish it a second time."
EQUAL_FOR = timedelta(hours=1)
"""Going back takes minutes. The same words on another day are another post."""

Make = Callable[Concatenate[Runtime, Tx, ...], str]

_ENDED_UNSENT = {OUTCOME_LETTERS["failed"], OUTCOME_LETTERS["canceled"]}


class EqualPost(Exception):
    """A form with the same content made this post."""

    def __init__(self, post_id: str) -> None:
        super().__init__(post_id)
        self.post_id = post_id


def new_id() -> str:
    """Return the id of a form that is shown for the first time."""
    return secrets.token_urlsafe(16)


def ticket(form_id: str, path: str, sent: Any, files: list[tuple[str, str, str]] | None = None) -> Ticket:
    """Return the ticket of a form that was sent to this address."""
    return Ticket(OWNER.key_id, f"form {form_id[:LONGEST_ID]}", idempotency.fingerprint(path, sent, files or []))


def do(rt: Runtime, tx: Tx, ticket: Ticket, make: Make, *args: Any) -> tuple[str, bool]:
    """Return the post of this form, and whether it is new: `make` makes it, or another request with the form did."""
    kept = idempotency.begin(rt, tx, ticket)
    if kept is not None:
        return str(kept.location), False
    return idempotency.keep(rt, tx, ticket, _keep, make, *args), True


def do_unless_equal(
    rt: Runtime, tx: Tx, ticket: Ticket, draft: Draft, confirmed: str | None, make: Make, *args: Any
) -> tuple[str, bool]:
    """Do the same for the form of a draft.

    Raises EqualPost for the content of another form's post. `confirmed` is the post beside which the owner wants this
    one, or None where the id of the form is enough."""
    kept = idempotency.begin(rt, tx, ticket)
    if kept is not None:
        return str(kept.location), False
    content = _content_ticket(tx.reader, draft)
    earlier = idempotency.begin(rt, tx, content)
    if earlier is not None and confirmed is not None:
        equal = str(earlier.location)
        if equal != confirmed and _was_just_made(tx, equal):
            raise EqualPost(equal)
    post_id = idempotency.keep(rt, tx, ticket, _keep, make, *args)
    idempotency.keep(rt, tx, content, _keep, lambda _rt, _tx: post_id)
    return post_id, True


def _keep(_rt: Runtime, _tx: Tx, post_id: str) -> Kept:
    return Kept(303, post_id, b"")


def _was_just_made(tx: Tx, post_id: str) -> bool:
    """Whether the post is that young, and was or may still be published somewhere."""
    post = post_rows.find(tx, post_id)
    if post is None or post["created_at"] <= stamp(tx.now - EQUAL_FOR):
        return False
    return not set(post["outcomes"]) <= _ENDED_UNSENT


def _content_ticket(reader: Reader, draft: Draft) -> Ticket:
    """Under the content of the draft. Its files count by name and size: one that is sent again is another artifact."""
    files = [(artifact_rows.find(reader, item.artifact_id), item.alt) for item in draft.media]
    content = [
        draft.body,
        stamp(draft.scheduled_at) if draft.scheduled_at else None,
        sorted(draft.profiles),
        [[row["file_name"], row["declared_bytes"], alt] if row else alt for row, alt in files],
        draft.options or {},
    ]
    fingerprint = idempotency.fingerprint("content", content)
    return Ticket(OWNER.key_id, f"content {fingerprint}", fingerprint)
