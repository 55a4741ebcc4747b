"""A form creates one post, even if it is submitted several times, and edits only the version of a post that it shows.

Each form has an id, under which its post is stored for one day. After “Back”, a script restores the id. Without
scripts, the browser loads the form with a new id and the old fields. So the post is also stored under its content, and
the page asks before it publishes equal content.

The calendar, the API and other tabs can change a post while a form is open. A form that edits a post contains the
`updatedAt` of the post. The write compares it in the same transaction. If the post was changed, nothing is written: the
page shows the post as it is now and keeps the owner's form.
"""

import secrets
from datetime import timedelta
from typing import Any

from socialpub.accounts.api_keys import OWNER
from socialpub.core.clock import stamp
from socialpub.db.connection import Database
from socialpub.db.states import OUTCOME_LETTERS, PostStatus
from socialpub.db.tables import artifact_rows, post_rows
from socialpub.publishing.posts import idempotency, posts, retries
from socialpub.publishing.posts.drafts import Draft
from socialpub.publishing.posts.idempotency import RequestKey, StoredResponse
from socialpub.runtime import Runtime

FIELD, VERSION_FIELD = "form", "updatedAt"
"""The hidden fields: the id of the form, and the version of the post that the form shows."""
MAX_ID_LETTERS = 100

SUBMITTED = "You already submitted this form. This is the post that it created."
CHANGED = (
    "You already submitted this form with different content. Press the button again to publish this version as a new "
    "post."
)
EQUAL = "You already published this content in the last hour. Press the button again to publish it a second time."
EQUAL_FOR = timedelta(hours=1)
"""The same text on another day is another post."""

CHANGED_MEANWHILE = "The post was changed after this form was opened. Nothing is saved."
SAME = "Nothing was changed."

_ENDED = {
    PostStatus.SCHEDULED: "its time has come",
    PostStatus.PENDING: "it is being published",
    PostStatus.SETTLED: "it has been sent",
    PostStatus.CANCELED: "it was canceled",
}

_ENDED_UNSENT = {OUTCOME_LETTERS["failed"], OUTCOME_LETTERS["canceled"]}


class EqualPost(Exception):
    """Another form with the same content created this post."""

    def __init__(self, post_id: str) -> None:
        super().__init__(post_id)
        self.post_id = post_id


def new_id() -> str:
    return secrets.token_urlsafe(16)


def request_key(form_id: str, path: str, sent: Any, files: list[tuple[str, str, str]] | None = None) -> RequestKey:
    name = f"form {form_id[:MAX_ID_LETTERS]}"
    return RequestKey(OWNER.key_id, name, idempotency.fingerprint(path, sent, files or []))


def submit(
    rt: Runtime, tx: Database, key: RequestKey, draft: Draft, confirmed: str | None, failed_post: str = ""
) -> tuple[str, bool]:
    """Create the post of this form. Return its id and whether it is new.

    Raises EqualPost if another form created an equal post. `confirmed` is the post that the owner wants a second time.
    None: only the form id prevents duplicates. `failed_post`: the post whose failed deliveries the draft replaces.
    """
    stored = idempotency.find(tx, key, tx.now)
    if stored is not None:
        return str(stored.location), False
    content = _content_key(tx, draft)
    earlier = idempotency.find(tx, content, tx.now)
    if earlier is not None and confirmed is not None:
        equal = str(earlier.location)
        if equal != confirmed and _was_just_made(tx, equal):
            raise EqualPost(equal)
    if failed_post:
        post_id = retries.retry_changed(rt, tx, failed_post, draft, OWNER)
    else:
        post_id = posts.create(rt, tx, draft, OWNER)
    for request_key in (key, content):
        idempotency.store(tx, request_key, StoredResponse(303, post_id, b""))
    return post_id, True


def submit_retry(rt: Runtime, tx: Database, key: RequestKey, post_id: str, include_unknown: bool) -> tuple[str, bool]:
    """Retry the post once for this form. Return the id of the new post and whether it is new."""
    stored = idempotency.find(tx, key, tx.now)
    if stored is not None:
        return str(stored.location), False
    new_post_id = retries.retry(rt, tx, post_id, OWNER, include_unknown)
    idempotency.store(tx, key, StoredResponse(303, new_post_id, b""))
    return new_post_id, True


def _was_just_made(tx: Database, post_id: str) -> bool:
    """Return whether the post is recent and was or can still be published."""
    post = post_rows.find(tx, post_id)
    if post is None or post.created_at <= stamp(tx.now - EQUAL_FOR):
        return False
    return not set(post.outcomes) <= _ENDED_UNSENT


def _content_key(db: Database, draft: Draft) -> RequestKey:
    """Return the key of the content. Files count by name and size, because a second upload is another artifact."""
    files = [(artifact_rows.find(db, item.artifact_id), item.alt) for item in draft.media]
    content = [
        draft.body,
        stamp(draft.scheduled_at) if draft.scheduled_at else None,
        sorted(draft.profiles),
        [[row.file_name, row.declared_bytes, alt] if row else alt for row, alt in files],
        draft.options or {},
    ]
    fingerprint = idempotency.fingerprint("content", content)
    return RequestKey(OWNER.key_id, f"content {fingerprint}", fingerprint)


class ChangedMeanwhile(Exception):
    """The post was changed after the form was opened."""


def edit_version(rt: Runtime, tx: Database, post_id: str, version: str, draft: Draft) -> None:
    """Edit the post if `version` is still its `updatedAt`. Raises ChangedMeanwhile and the errors of `posts.edit`."""
    post = posts.find_visible(tx, post_id, OWNER)
    posts.check_changeable(post.status, post.scheduled_at, tx.stamp)
    if version != post.updated_at:
        raise ChangedMeanwhile
    posts.edit(rt, tx, post_id, draft, OWNER)


def why_ended(status: str) -> str:
    return f"The post can no longer be edited: {_ENDED[PostStatus(status)]}."
