"""A form creates one post, even if it is submitted several times, and edits only the version of a post that it shows.

Each form has an id, under which its post is stored for one day. After “Back”, a script restores the id. Without
scripts, the browser loads the form with a new id and the old fields. So the post is also stored under its content, and
the page asks before it publishes equal content.

The calendar, the API and other tabs can change a post while a form is open. A form that edits a post contains the
version in hidden fields. The write compares the version in the same transaction.
"""

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson

from socialpub.accounts.api_keys import OWNER
from socialpub.core.clock import stamp
from socialpub.core.errors import NotFound
from socialpub.db.connection import Database
from socialpub.db.queries import api_json
from socialpub.db.states import OUTCOME_LETTERS, PostStatus
from socialpub.db.tables import artifact_rows, post_rows
from socialpub.publishing.posts import idempotency, posts
from socialpub.publishing.posts.drafts import Change, Draft
from socialpub.publishing.posts.idempotency import RequestKey, StoredResponse
from socialpub.runtime import Runtime
from socialpub.web.dashboard.browser.forms import Form

FIELD, UPDATED_AT_FIELD, CONTENT_FIELD = "form", "updatedAt", "content"
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

KEEP, SAVE = "keep", "save"
"""The answers after a concurrent change: keep the other version, or save the changes of the form."""

CHANGED_MEANWHILE = "The post was changed after this form was opened. Nothing is saved yet. Which version do you want?"
KEPT = "Your changes were discarded. The post keeps the other version."
SAME = "Nothing was changed."

_ENDED = {
    PostStatus.SCHEDULED: "its time has come",
    PostStatus.PENDING: "it is being published",
    PostStatus.SETTLED: "it has been sent",
    PostStatus.CANCELED: "it was canceled",
}

Make = Callable[[Runtime, Database], str]
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
    rt: Runtime, tx: Database, key: RequestKey, make: Make, draft: Draft | None = None, confirmed: str | None = None
) -> tuple[str, bool]:
    """Return the post of this form and whether it is new.

    With a `draft`, raises EqualPost if another form created an equal post. `confirmed` is the post that the owner wants
    a second time. None: only the form id prevents duplicates.
    """
    stored = idempotency.find(tx, key, tx.now)
    if stored is not None:
        return str(stored.location), False
    content = None if draft is None else _content_key(tx, draft)
    earlier = None if content is None else idempotency.find(tx, content, tx.now)
    if earlier is not None and confirmed is not None:
        equal = str(earlier.location)
        if equal != confirmed and _was_just_made(tx, equal):
            raise EqualPost(equal)
    post_id = make(rt, tx)
    for one in (key, content):
        if one is not None:
            idempotency.store(tx, one, StoredResponse(303, post_id, b""))
    return post_id, True


def _was_just_made(tx: Database, post_id: str) -> bool:
    """Return whether the post is recent and was or can still be published."""
    post = post_rows.find(tx, post_id)
    if post is None or post.created_at <= stamp(tx.now - EQUAL_FOR):
        return False
    return not set(post.outcomes) <= _ENDED_UNSENT


def _content_key(reader: Database, draft: Draft) -> RequestKey:
    """Return the key of the content. Files count by name and size, because a second upload is another artifact."""
    files = [(artifact_rows.find(reader, item.artifact_id), item.alt) for item in draft.media]
    content = [
        draft.body,
        stamp(draft.scheduled_at) if draft.scheduled_at else None,
        sorted(draft.profiles),
        [[row.file_name, row.declared_bytes, alt] if row else alt for row, alt in files],
        draft.options or {},
    ]
    fingerprint = idempotency.fingerprint("content", content)
    return RequestKey(OWNER.key_id, f"content {fingerprint}", fingerprint)


@dataclass(frozen=True, slots=True)
class PostVersion:
    """`content` is a digest, because two changes can share a millisecond. It is empty if a page knows only the time."""

    updated_at: str
    content: str = ""

    @classmethod
    def of(cls, post: Mapping[str, Any]) -> "PostVersion":
        """Return the version of a post from the API."""
        content = [
            post.get("body"),
            post.get("scheduledAt"),
            [[item["artifactId"], item.get("alt")] for item in post["media"]],
            [[one["profileId"], one["providerOptions"]] for one in post["deliveries"]],
        ]
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        return cls(post["updatedAt"], digest[:32])

    @classmethod
    def read(cls, form: Form) -> "PostVersion | None":
        """Return the version that the form shows. The button “Save my changes” contains a later version."""
        answer, _, named = form.text("do").partition(":")
        if answer == SAVE:
            updated_at, _, content = named.partition(" ")
        else:
            updated_at, content = form.text(UPDATED_AT_FIELD), form.text(CONTENT_FIELD)
        return cls(updated_at, content) if updated_at else None

    @property
    def save_button(self) -> str:
        """The value of the button that overwrites this version."""
        return f"{SAVE}:{self.updated_at} {self.content}"

    def is_of(self, post: Mapping[str, Any]) -> bool:
        now = PostVersion.of(post)
        return self.updated_at == now.updated_at and self.content in ("", now.content)


class ChangedMeanwhile(Exception):
    """The post has another version."""


def edit_version(rt: Runtime, tx: Database, post_id: str, version: PostVersion, change: Change) -> None:
    """Edit the post if it still has this version. Raises ChangedMeanwhile and the errors of `posts.edit`."""
    post = _load(tx, post_id)
    posts.check_changeable(post["status"], post.get("scheduledAt"), tx.stamp)
    if not version.is_of(post):
        raise ChangedMeanwhile
    posts.edit(rt, tx, post_id, change, OWNER)


def _load(tx: Database, post_id: str) -> Any:
    found = api_json.post(tx, post_id)
    if found is None:
        raise NotFound("No post has this id.")
    return orjson.loads(found)


def why_ended(status: str) -> str:
    return f"The post can no longer be edited: {_ENDED[PostStatus(status)]}."
