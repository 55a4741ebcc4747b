"""What there is to publish: a post's text and media as a network's adapter takes them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from socialpub.db import artifact_rows, post_rows
from socialpub.db.models import Profile
from socialpub.db.transaction import Reader, Tx
from socialpub.providers.content import Account, Content, MediaFile, Problem
from socialpub.publishing.drafts import Draft
from socialpub.runtime import Runtime


def of_post(rt: Runtime, store: Reader | Tx, post_id: str) -> Content:
    """What there is to publish. Paths of media may point at files that are gone."""
    post = post_rows.find(store, post_id)
    return Content((post and post["body"]) or "", _files(rt, store, post_rows.media_of(store, post_id)))


def of_draft(rt: Runtime, reader: Reader, draft: Draft) -> Content:
    """The same for a post that nobody has accepted yet."""
    return Content(draft.body or "", _files(rt, reader, [(media.artifact_id, media.alt) for media in draft.media]))


def check(rt: Runtime, profile: Profile, content: Content, given: Mapping[str, Any]) -> list[Problem]:
    """Everything about this content that the profile's network would refuse."""
    provider = rt.providers[profile.provider]
    options, problems = provider.read_options(given)
    return problems + provider.check(content, options, account_of(profile))


def account_of(profile: Profile) -> Account:
    return Account(profile.account_id, profile.username, profile.scopes, profile.facts)


def _files(rt: Runtime, store: Reader | Tx, media: Sequence[tuple[str, str | None]]) -> tuple[MediaFile, ...]:
    files = []
    for position, (artifact_id, alt) in enumerate(media):
        row = artifact_rows.find(store, artifact_id)
        assert row is not None
        path = rt.files.path(row["storage_key"])
        facts = json.loads(row["facts"] or "{}")
        files.append(
            MediaFile(position, row["kind"], row["mime_type"], row["size_bytes"], path, row["file_name"], alt, facts)
        )
    return tuple(files)
