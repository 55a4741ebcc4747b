"""A post as the readers of each network would see it, for its owner: before it is accepted and afterwards.

Networks show the same to the readers of several profiles more often than not: those stand together.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from socialpub.accounts import avatars
from socialpub.db.connection import Reader
from socialpub.db.tables import artifact_rows, delivery_rows, post_rows, profile_rows
from socialpub.db.tables.profile_rows import Profile
from socialpub.providers.base import Content
from socialpub.providers.options import OptionType
from socialpub.providers.preview import Preview
from socialpub.providers.registry import OPTIONS
from socialpub.publishing.media import uploads
from socialpub.publishing.posts import content as post_content
from socialpub.publishing.posts import drafts
from socialpub.publishing.posts.drafts import Draft
from socialpub.runtime import Runtime


@dataclass(frozen=True, slots=True)
class PreviewedProfile:
    """`picture` names the version of its picture; None where there is none."""

    id: str
    name: str
    username: str | None
    picture: str | None


@dataclass(frozen=True, slots=True)
class PreviewedMedia:
    """`artifact_id` is None where there are no bytes any more."""

    number: int
    """Which of the post's media: the first is 1."""
    kind: str
    alt: str | None
    artifact_id: str | None


@dataclass(frozen=True, slots=True)
class PostPreview:
    """What one network shows. `profiles` are all to whose readers it is the same, at least one."""

    provider: str
    label: str
    shown: Preview
    media: tuple[PreviewedMedia, ...]
    """As readers see them, in their order."""
    profiles: tuple[PreviewedProfile, ...]


def draft_previews(rt: Runtime, reader: Reader, draft: Draft) -> list[PostPreview]:
    """Of what there is already: profiles that cannot be posted to and media that cannot be used are left out."""
    usable = tuple(item for item in draft.media if item.arriving or _is_usable(reader, item.artifact_id))
    whole = Draft(draft.body, draft.scheduled_at, draft.profiles, usable, draft.options)
    profiles = [profile for wanted in draft.profiles if (profile := profile_rows.find(reader, wanted)) is not None]
    given = [(profile, drafts.options_for(rt, profile, draft.options)) for profile in profiles]
    content = drafts.draft_content(rt, reader, whole, [(profile.provider, options) for profile, options in given])
    return _previews(rt, content, [None if item.arriving else item.artifact_id for item in usable], given)


def post_previews(rt: Runtime, reader: Reader, post_id: str) -> list[PostPreview]:
    """Of an accepted post, with the options that it keeps. Whose profile is gone has none."""
    given = []
    for row in delivery_rows.of_post(reader, post_id):
        profile = profile_rows.find(reader, row.profile_id)
        if profile is not None:
            given.append((profile, json.loads(row.options)))
    artifacts = [artifact_id for artifact_id, _ in post_rows.media_of(reader, post_id)]
    there = [artifact_id if _is_usable(reader, artifact_id) else None for artifact_id in artifacts]
    return _previews(rt, post_content.load_content(rt, reader, post_id), there, given)


def _is_usable(reader: Reader, artifact_id: str) -> bool:
    return uploads.why_unusable(artifact_rows.find(reader, artifact_id)) is None


def _shown(rt: Runtime, profile: Profile, content: Content, given: Mapping[str, Any]) -> Preview:
    provider = rt.providers[profile.provider]
    options = provider.read_options(given)[0]
    # A text that is too long is no option that could be sent, but the owner wants to see it and how long it is.
    texts = {
        option.name: given[option.name]
        for option in OPTIONS[profile.provider]
        if option.type is OptionType.TEXT and isinstance(given.get(option.name), str)
    }
    return provider.preview(content, {**texts, **options}, post_content.to_account(profile))


def _previews(
    rt: Runtime,
    content: Content,
    artifacts: Sequence[str | None],
    given: Sequence[tuple[Profile, Mapping[str, Any]]],
) -> list[PostPreview]:
    pictures = avatars.versions(rt)
    found: dict[tuple[str, Preview], list[PreviewedProfile]] = {}
    for profile, options in given:
        one = PreviewedProfile(profile.id, profile.name, profile.username, pictures.get(profile.id))
        found.setdefault((profile.provider, _shown(rt, profile, content, options)), []).append(one)
    media = [
        PreviewedMedia(item.position + 1, item.kind, item.alt, artifact_id)
        for item, artifact_id in zip(content.media, artifacts, strict=True)
    ]
    return [
        PostPreview(
            provider,
            rt.providers[provider].label,
            shown,
            tuple(media[position] for position in shown.media),
            tuple(profiles),
        )
        for (provider, shown), profiles in found.items()
    ]
