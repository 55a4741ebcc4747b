"""Previews: a post as the readers of each network see it. Profiles with equal previews share one."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from socialpub.accounts import avatars, tokens
from socialpub.db.connection import Database
from socialpub.db.models import ProfileRow
from socialpub.db.tables import artifact_rows, delivery_rows, post_rows, profile_rows
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
    """`picture` is the version of its avatar, if any."""

    id: str
    name: str
    username: str | None
    picture: str | None


@dataclass(frozen=True, slots=True)
class PreviewedMedia:
    """`artifact_id` is None when the bytes were removed."""

    number: int
    """The position in the post, from 1."""
    kind: str
    alt: str | None
    artifact_id: str | None


@dataclass(frozen=True, slots=True)
class PostPreview:
    """The preview of one network for these profiles."""

    provider: str
    label: str
    shown: Preview
    media: tuple[PreviewedMedia, ...]
    profiles: tuple[PreviewedProfile, ...]


def draft_previews(rt: Runtime, db: Database, draft: Draft) -> list[PostPreview]:
    """Return the previews of a draft, without unknown profiles and media that cannot be used."""
    media = tuple(item for item in draft.media if item.arriving or _is_usable(db, item.artifact_id))
    profiles = [profile for wanted in draft.profiles if (profile := profile_rows.find(db, wanted)) is not None]
    options_by_profile = [(profile, drafts.options_for(rt, profile, draft.options)) for profile in profiles]
    options = [(profile.provider, chosen) for profile, chosen in options_by_profile]
    content = drafts.draft_content(rt, db, replace(draft, media=media), options)
    return _previews(rt, content, [None if item.arriving else item.artifact_id for item in media], options_by_profile)


def post_previews(rt: Runtime, db: Database, post_id: str) -> list[PostPreview]:
    """Return the previews of an accepted post, with its stored options. A removed profile has none."""
    options_by_profile = []
    for row in delivery_rows.list_of_post(db, post_id):
        profile = profile_rows.find(db, row.profile_id)
        if profile is not None:
            options_by_profile.append((profile, json.loads(row.options)))
    artifacts = [artifact_id for artifact_id, _ in post_rows.list_media(db, post_id)]
    there = [artifact_id if _is_usable(db, artifact_id) else None for artifact_id in artifacts]
    return _previews(rt, post_content.load_content(rt, db, post_id), there, options_by_profile)


def _is_usable(db: Database, artifact_id: str) -> bool:
    return uploads.explain_unusable(artifact_rows.find(db, artifact_id)) is None


def _shown(rt: Runtime, profile: ProfileRow, content: Content, given: Mapping[str, Any]) -> Preview:
    provider = rt.providers[profile.provider]
    options = provider.read_options(given)[0]
    # The owner wants to see even a text that is too long.
    texts = {
        option.name: given[option.name]
        for option in OPTIONS[profile.provider]
        if option.type is OptionType.TEXT and isinstance(given.get(option.name), str)
    }
    return provider.preview(content, {**texts, **options}, tokens.to_account(profile))


def _previews(
    rt: Runtime,
    content: Content,
    artifacts: Sequence[str | None],
    given: Sequence[tuple[ProfileRow, Mapping[str, Any]]],
) -> list[PostPreview]:
    pictures = avatars.list_versions(rt)
    profiles_by_preview: dict[tuple[str, Preview], list[PreviewedProfile]] = {}
    for profile, options in given:
        previewed = PreviewedProfile(profile.id, profile.name, profile.username, pictures.get(profile.id))
        profiles_by_preview.setdefault((profile.provider, _shown(rt, profile, content, options)), []).append(previewed)
    media = [
        PreviewedMedia(item.position + 1, item.kind, item.alt, artifact_id)
        for item, artifact_id in zip(content.media, artifacts, strict=True)
    ]
    return [
        PostPreview(
            provider,
            rt.providers[provider].label,
            preview,
            tuple(media[position] for position in preview.media),
            tuple(profiles),
        )
        for (provider, preview), profiles in profiles_by_preview.items()
    ]
