"""The version of a scheduled post that a page was made from, and an edit that is made only of that version.

The calendar, the API and other tabs may change the post while a form is open. Every form that edits a post carries the
version in hidden fields. The write that edits the post compares it, so that no change gets in between.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from socialpub.accounts.api_keys import OWNER
from socialpub.core.errors import NotFound
from socialpub.db import json_views
from socialpub.db.models import PostStatus
from socialpub.db.transaction import Tx
from socialpub.publishing import posts
from socialpub.publishing.drafts import Change
from socialpub.runtime import Runtime
from socialpub.web.dashboard.forms import Form

UPDATED_AT, CONTENT = "updatedAt", "content"
"""The hidden fields."""

KEEP, SAVE = "keep", "save"
"""The answers to the question after a change in between: the post stays as it is, or the form's changes are saved."""

CHANGED_MEANWHILE = "The post was changed after this form was opened. Nothing is saved yet. Which version do you want?"
KEPT = "Your changes were discarded. The post keeps the other version."
SAME = "Nothing was changed."

_ENDED = {
    PostStatus.SCHEDULED: "its time has come",
    PostStatus.PENDING: "it is being published",
    PostStatus.SETTLED: "it has been sent",
    PostStatus.CANCELED: "it was canceled",
}


@dataclass(frozen=True, slots=True)
class PostVersion:
    """`content` is a digest of everything that an edit can change: two changes can share a millisecond. It is empty on
    pages that know only the time."""

    updated_at: str
    content: str = ""

    @classmethod
    def of(cls, post: Mapping[str, Any]) -> "PostVersion":
        """Return the version of this post, as the API shows it."""
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
        """Return the version that the form was made from, or None. The button of the question names a later one."""
        answer, _, named = form.text("do").partition(":")
        if answer == SAVE:
            updated_at, _, content = named.partition(" ")
        else:
            updated_at, content = form.text(UPDATED_AT), form.text(CONTENT)
        return cls(updated_at, content) if updated_at else None

    @property
    def save_button(self) -> str:
        """The value of the button that saves over this version."""
        return f"{SAVE}:{self.updated_at} {self.content}"

    def is_of(self, post: Mapping[str, Any]) -> bool:
        """Return whether the post is still this version."""
        now = PostVersion.of(post)
        return self.updated_at == now.updated_at and self.content in ("", now.content)


class ChangedMeanwhile(Exception):
    """The post is another version by now."""


def edit(rt: Runtime, tx: Tx, post_id: str, version: PostVersion, change: Change) -> None:
    """Edit the post if it is still this version. Raises ChangedMeanwhile, and what `posts.edit` raises."""
    found = json_views.post(tx.reader, post_id)
    if found is None:
        raise NotFound("No post has this id.")
    post = orjson.loads(found)
    posts.check_changeable(post["status"], post.get("scheduledAt"), tx.stamp)
    if not version.is_of(post):
        raise ChangedMeanwhile
    posts.edit(rt, tx, post_id, change, OWNER)


def why_ended(status: str) -> str:
    """Return why a post of this status can no longer be edited."""
    return f"The post can no longer be edited: {_ENDED[PostStatus(status)]}."
