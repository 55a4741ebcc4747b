"""What there is to publish: a post's text and media as a network's adapter takes them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from socialpub.core.errors import FieldError
from socialpub.db.connection import Reader, Row
from socialpub.db.delivery import Delivery
from socialpub.db.tables import artifact_rows, delivery_rows, post_rows
from socialpub.db.tables.profile_rows import Profile
from socialpub.providers.base import Account, Content, MediaFile
from socialpub.providers.options import artifacts as option_artifacts
from socialpub.providers.registry import OPTIONS
from socialpub.publishing.media.uploads import Examined
from socialpub.publishing.posts import drafts
from socialpub.publishing.posts.drafts import Draft
from socialpub.runtime import Runtime


def load_content(rt: Runtime, store: Reader, post_id: str) -> Content:
    """What there is to publish. Paths of media may point at files that are gone."""
    post = post_rows.find(store, post_id)
    given = [(row.provider, json.loads(row.options)) for row in delivery_rows.of_post(store, post_id)]
    files = _files(rt, store, post_rows.media_of(store, post_id))
    return Content((post and post.body) or "", files, _option_files(rt, store, given), rt.settings.base_url)


def earlier_contents(rt: Runtime, delivery: Delivery) -> list[tuple[Content, dict[str, Any]]]:
    """Return the other contents and options with which another installation may have published this delivery."""
    post = post_rows.find(rt.reader, delivery.post_id)
    media = [list(one) for one in post_rows.media_of(rt.reader, delivery.post_id)]
    present = {"body": post and post.body, "media": media, "options": delivery.options}
    return [
        (Content(kept["body"] or "", _files(rt, rt.reader, kept["media"]), {}), kept["options"])
        for kept in delivery.phase.earlier
        if kept != present
    ]


def draft_content(
    rt: Runtime, reader: Reader, draft: Draft, options: Sequence[tuple[str, Mapping[str, Any]]]
) -> Content:
    """Return the same for a draft. `options`: per delivery its provider and its options."""
    files = [
        _arriving_file(rt, media.arriving, position, media.alt)
        if media.arriving
        else _known_file(rt, reader, media.artifact_id, position, media.alt)
        for position, media in enumerate(draft.media)
    ]
    return Content(draft.body or "", tuple(files), _option_files(rt, reader, options), rt.settings.base_url)


def check_content(rt: Runtime, profile: Profile, content: Content, given: Mapping[str, Any]) -> list[FieldError]:
    """Everything about this content that the profile's network would refuse."""
    provider = rt.providers[profile.provider]
    options, problems = provider.read_options(given)
    return problems + provider.check(content, options, to_account(profile))


def to_account(profile: Profile) -> Account:
    return Account(profile.account_id, profile.username, profile.scopes, profile.facts, profile.id)


def _files(rt: Runtime, store: Reader, media: Sequence[tuple[str, str | None]]) -> tuple[MediaFile, ...]:
    return tuple(_known_file(rt, store, artifact_id, at, alt) for at, (artifact_id, alt) in enumerate(media))


def _known_file(rt: Runtime, store: Reader, artifact_id: str, position: int, alt: str | None) -> MediaFile:
    row = artifact_rows.find(store, artifact_id)
    assert row is not None
    return _file(rt, row, position, alt)


def _arriving_file(rt: Runtime, file: Examined, position: int, alt: str | None) -> MediaFile:
    path, facts = rt.files.path(file.storage_key), file.facts
    return MediaFile(position, facts.kind, facts.mime_type, facts.size_bytes, path, file.file_name, alt, facts.facts)


def _option_files(rt: Runtime, store: Reader, given: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, MediaFile]:
    """The artifacts that options name, by id; without those that cannot be used."""
    files = {}
    for provider, options in given:
        for _, artifact_id in option_artifacts(OPTIONS.get(provider, ()), options):
            row = artifact_rows.find(store, artifact_id)
            if row is not None and drafts.why_unusable(row) is None:
                files[artifact_id] = _file(rt, row, 0, None)
    return files


def _file(rt: Runtime, row: Row, position: int, alt: str | None) -> MediaFile:
    # Of a post that is only looked at the bytes may be gone: then there is no key.
    path, facts = rt.files.path(row.storage_key or ""), json.loads(row.facts or "{}")
    return MediaFile(position, row.kind, row.mime_type, row.size_bytes, path, row.file_name, alt, facts)
