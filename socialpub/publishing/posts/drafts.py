"""Drafts and changes of posts, and their checks against the rows and the rules of each network."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from socialpub.accounts import grants, key_limits
from socialpub.accounts.api_keys import Caller
from socialpub.core import units, validation
from socialpub.core.clock import parse, stamp
from socialpub.core.errors import FieldCode, FieldError, InvalidRequest
from socialpub.db import appliance_state
from socialpub.db.connection import Database, Row
from socialpub.db.queries import profile_queue
from socialpub.db.states import ProfileStatus
from socialpub.db.tables import artifact_rows, delivery_rows, profile_rows, waits
from socialpub.db.tables.profile_rows import Profile
from socialpub.media.types import position_note
from socialpub.providers import options as option_tables
from socialpub.providers.base import Content, MediaFile
from socialpub.providers.registry import OPTIONS
from socialpub.publishing.delivery import replies, waiting
from socialpub.publishing.media import imports, uploads
from socialpub.publishing.media.imports import MediaUrl
from socialpub.publishing.media.uploads import Examined
from socialpub.publishing.posts import reply_targets
from socialpub.publishing.posts.content import check_content, load_file, option_files
from socialpub.runtime import Runtime

T = TypeVar("T")

MAX_MEDIA = 20


@dataclass(frozen=True, slots=True)
class DraftMedia:
    artifact_id: str
    """Empty if there is a `url`."""
    alt: str | None = None
    arriving: Examined | None = None
    """The file that came with the post. It has no row before the post is accepted."""
    url: str | None = None
    """Where the file is. `fetch_media` replaces the URL before the post is accepted."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A post before its acceptance. `options` per provider, as given."""

    body: str | None
    scheduled_at: datetime | None
    profiles: tuple[str, ...]
    media: tuple[DraftMedia, ...] = ()
    options: Mapping[str, Mapping[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a post. Only the fields in `given` (`body`, `scheduled_at`, `media`, `options`) count."""

    given: frozenset[str]
    body: str | None = None
    scheduled_at: datetime | None = None
    media: tuple[DraftMedia, ...] = ()
    options: Mapping[str, Mapping[str, Any]] | None = None
    """All options per provider, as given."""
    single_options: Mapping[str, Mapping[str, Any]] | None = None
    """Instead of all options: the changed keys per provider. None as a value: the profile's default."""


@dataclass(frozen=True, slots=True)
class Target:
    """A profile and its options for a post."""

    profile: Profile
    options: Mapping[str, Any]
    retry_of: str | None = None
    """The first delivery of the same post to this account."""
    reply_to: str | None = None
    """The first delivery of the post to which this post replies."""


def check_targets(
    rt: Runtime, store: Database, draft: Draft, caller: Caller, now: datetime, instead_of: str | None = None
) -> list[Target]:
    """Return the targets of a draft. Raises InvalidRequest for unknown ids, unusable media and past times.

    `instead_of`: the post that the draft changes or retries.
    """
    errors: list[FieldError] = []
    if draft.scheduled_at is not None and draft.scheduled_at <= now:
        message = "must be in the future; leave the time out to publish now"
        errors.append(FieldError(("post", "scheduledAt"), message, FieldCode.TIME_PAST))
    targets = []
    for index, profile_id in enumerate(draft.profiles):
        profile = profile_rows.find(store, profile_id)
        if profile is None or not caller.sees(profile.provider, profile.id):
            message = "is not the id of a profile; use an id from GET /profiles"
            errors.append(FieldError(("profiles", index), message, FieldCode.PROFILE_UNKNOWN))
        elif profile.status is ProfileStatus.DISCONNECTED:
            message = "is disconnected; connect the account again and use its new id"
            errors.append(FieldError(("profiles", index), message, FieldCode.PROFILE_DISCONNECTED))
        else:
            options = options_for(rt, profile, draft.options)
            reply_to, wrong = reply_targets.find(store, caller, profile, options, instead_of)
            targets.append(Target(profile, options, reply_to=reply_to))
            errors += wrong
    errors += key_limits.check_profiles(caller, len(draft.profiles))
    selected = {target.profile.provider for target in targets}
    if len(targets) == len(draft.profiles):
        errors += _foreign_options(draft.options, selected)
    errors += check_media(rt, store, draft.media)
    errors += check_option_media(store, draft.options)
    errors += check_option_sizes((target.profile.provider, target.options) for target in targets)
    if errors:
        raise InvalidRequest.from_errors(first_by_path(errors))
    return targets


def first_by_path(errors: Iterable[FieldError]) -> list[FieldError]:
    """Return the first error at each path: several profiles of one network share their options."""
    return list({error.path: error for error in reversed(list(errors))}.values())[::-1]


def _foreign_options(options: Mapping[str, Any] | None, selected: set[str]) -> list[FieldError]:
    message = "does not belong to a selected profile; leave the options out, or select a profile of"
    foreign = [provider for provider in options or () if provider not in selected]
    return [FieldError(("providerOptions", provider), f"{message} {provider}") for provider in foreign]


def check_option_sizes(options: Iterable[tuple[str, Mapping[str, Any]]]) -> list[FieldError]:
    """Return an error for each network with too many options, including the profile's."""
    providers = dict.fromkeys(provider for provider, given in options if option_tables.is_too_large(given))
    message = f"{option_tables.TOO_LARGE}, with those of the profile"
    return [FieldError(("providerOptions", provider), message) for provider in providers]


def check_media(rt: Runtime, store: Database, media: Sequence[DraftMedia]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, item in enumerate(media):
        if item.url is not None:
            try:
                imports.find_own(rt, store, MediaUrl(("media", index, "url"), item.url))
            except InvalidRequest as error:
                errors += error.errors
        elif not item.arriving:
            errors += _unusable(store, ("media", index, "artifactId"), item.artifact_id)
    return errors


def check_option_media(store: Database, options: Mapping[str, Mapping[str, Any]] | None) -> list[FieldError]:
    return [
        error
        for provider, given in (options or {}).items()
        for key, artifact_id in option_tables.list_artifacts(OPTIONS.get(provider, ()), given)
        for error in _unusable(store, ("providerOptions", provider, key), artifact_id)
    ]


def _unusable(store: Database, path: validation.Path, artifact_id: str) -> list[FieldError]:
    row = artifact_rows.find(store, artifact_id)
    why = uploads.explain_unusable(row)
    return [] if why is None else [FieldError(path, why, None if row else FieldCode.ARTIFACT_UNKNOWN)]


def check_change(
    rt: Runtime, store: Database, post: Row, change: Change, caller: Caller, now: datetime
) -> dict[str, str | None]:
    """Return the new `reply_to` of each delivery whose options change. Raises InvalidRequest."""
    errors: list[FieldError] = []
    reply_to: dict[str, str | None] = {}
    if change.scheduled_at is not None and change.scheduled_at <= now:
        message = "must be in the future; null publishes immediately"
        errors.append(FieldError(("post", "scheduledAt"), message, FieldCode.TIME_PAST))
    if "media" in change.given:
        errors += check_media(rt, store, change.media)
        body = change.body if "body" in change.given else post.body
        if not change.media and not body:
            errors.append(FieldError(("media",), "can be empty only if the post has a body"))
    if "options" in change.given:
        given = change.options if change.single_options is None else change.single_options
        applied = []
        for row in delivery_rows.list_of_post(store, post.id):
            if (profile := profile_rows.find(store, row.profile_id)) is not None:
                options = options_after(rt, profile, json.loads(row.options), change)
                applied.append((profile.provider, options))
                reply_to[row.id], wrong = reply_targets.find(store, caller, profile, options, post.id)
                errors += wrong
        errors += _foreign_options(given, {provider for provider, _ in applied})
        errors += check_option_sizes(applied)
        errors += check_option_media(store, given)
    if errors:
        raise InvalidRequest.from_errors(first_by_path(errors))
    return reply_to


def options_after(rt: Runtime, profile: Profile, present: Mapping[str, Any], change: Change) -> dict[str, Any]:
    """Return the options of a delivery to this profile after the change."""
    if change.single_options is None:
        return options_for(rt, profile, change.options)
    provider = rt.providers[profile.provider]
    given = change.single_options.get(profile.provider, {})
    # The merge replaces the network's own spelling of a key, so that the loop finds the key.
    options = provider.merge_options(present, given)
    for key in (key for key, value in given.items() if value is None):
        del options[key]
        options |= {key: profile.options[key]} if key in profile.options else {}
    return options


def options_for(rt: Runtime, profile: Profile, options: Mapping[str, Mapping[str, Any]] | None) -> dict[str, Any]:
    own = (options or {}).get(profile.provider, {})
    return rt.providers[profile.provider].merge_options(profile.options, own)


# --- checks of each network -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CheckedDelivery:
    """The problems that a network would report for a draft."""

    profile_id: str
    provider: str
    problems: list[FieldError]
    notes: list[str]
    """Remarks that are not problems."""


def check_draft(
    rt: Runtime, reader: Database, draft: Draft, caller: Caller, editing: str | None = None
) -> list[CheckedDelivery]:
    """Return the problems of this draft for each network. The same checks run just before sending.

    `editing` is the post that the draft would change. Raises InvalidRequest as `create` does.
    """
    checked = []
    selected = check_targets(rt, reader, draft, caller, rt.now(), editing)
    given = [(target.profile.provider, target.options) for target in selected]
    draft = _with_own_artifacts(rt, reader, draft)
    urls = [f"media[{index}].url" for index, item in enumerate(draft.media) if item.url]
    contents = [draft_content(rt, reader, draft, given, kind) for kind in (("image", "video") if urls else ("image",))]
    for target in selected:
        profile, options = target.profile, target.options
        provider = rt.providers[profile.provider]
        chosen = provider.read_options(options)[0]
        problems = _common(check_content(rt, profile, content, options) for content in contents)
        notes = _common(provider.notes(content, chosen, grants.to_account(profile)) for content in contents)
        notes += [
            f"Media item {file.position + 1}: {note}"
            for file in contents[0].media
            if (note := position_note(file.facts)) is not None
        ]
        if urls:
            one_or_more = "The file is" if len(urls) == 1 else "The files are"
            note = f"This check does not fetch {', '.join(urls)}. {one_or_more} checked when you create the post."
            notes = [note, *notes]
        if limits := provider.app_limits(chosen):
            notes = [" ".join(limits.sentences), *notes]
        if profile.status is ProfileStatus.REAUTH_REQUIRED:
            hours = waiting.format_hours(rt.settings.publishing.max_lateness)
            wait = f"Posts for this profile wait until then. A post that is more than {hours} late fails."
            notes = [f"{waiting.reconnect_reason(profile)} {wait}", *notes]
        else:
            notes = _gap_notes(rt, reader, draft, profile.id, editing) + notes
        parent = replies.find_parent(reader, target.reply_to)
        if parent is not None and parent.outlook is not None:
            notes = [parent.outlook, *notes]
        checked.append(CheckedDelivery(profile.id, profile.provider, problems, notes))
    return checked


def _common(found: Iterable[Sequence[T]]) -> list[T]:
    """Return the items that every list contains. They apply to images and to videos."""
    first, *others = found
    return [one for one in first if all(one in other for other in others)]


def _gap_notes(rt: Runtime, reader: Database, draft: Draft, profile_id: str, editing: str | None) -> list[str]:
    """Return a note if `publishing.min_gap` delays this draft, with the approximate time."""
    gap, time = rt.settings.publishing.min_gap, draft.scheduled_at or rt.now()
    if not gap:
        return []
    cooldown = waits.cooldown_until(reader, profile_id, (waiting.COMMITS,), rt.stamp())
    at = parse(cooldown[0]) if cooldown else rt.now()
    queued = profile_queue.uncommitted_due_by(reader, profile_id, stamp(time), editing)
    for due_at in queued:
        at = max(at, parse(due_at)) + gap
    if at <= time:
        return []
    before = f" {units.count(len(queued), 'post is', 'posts are')} queued before this post." if queued else ""
    when = f"{at:%Y-%m-%d %H:%M} UTC" + (", later than scheduled" if draft.scheduled_at else "")
    paused = ", unless publishing stays paused" if appliance_state.paused_at(reader) else ""
    return [
        f"Two posts of one profile are at least {units.duration(gap)} apart (publishing.min_gap).{before} This post is "
        f"published at about {when}{paused}."
    ]


def refuse_problems(rt: Runtime, reader: Database, draft: Draft, caller: Caller) -> None:
    """Raise InvalidRequest with the problems of this draft for all networks."""
    problems = [problem for delivery in check_draft(rt, reader, draft, caller) for problem in delivery.problems]
    if problems:
        raise InvalidRequest.from_errors(list(dict.fromkeys(problems)))


def draft_content(
    rt: Runtime,
    reader: Database,
    draft: Draft,
    options: Sequence[tuple[str, Mapping[str, Any]]],
    kind_at_urls: str = "image",
) -> Content:
    """Return the content of a draft. `options`: the provider and options of each delivery.

    A file at a URL is unknown. Its stand-in has the kind `kind_at_urls` and no facts.
    """
    files = [_media_file(rt, reader, media, position, kind_at_urls) for position, media in enumerate(draft.media)]
    return Content(draft.body or "", tuple(files), option_files(rt, reader, options), rt.settings.base_url)


def _media_file(rt: Runtime, reader: Database, media: DraftMedia, position: int, kind_at_urls: str) -> MediaFile:
    if media.url is not None:
        mime_type = {"image": "image/jpeg", "video": "video/mp4"}[kind_at_urls]
        return MediaFile(position, kind_at_urls, mime_type, 0, Path(), "", media.alt)
    if media.arriving is None:
        return load_file(rt, reader, media.artifact_id, position, media.alt)
    path, facts = rt.files.path(media.arriving.storage_key), media.arriving.facts
    name = media.arriving.file_name
    return MediaFile(position, facts.kind, facts.mime_type, facts.size_bytes, path, name, media.alt, facts.facts)


# --- media by URL ----------------------------------------------------------------------------------------------------


async def fetch_media(
    rt: Runtime, media: Sequence[DraftMedia], kept: ExitStack, key_id: str, *, seconds: float
) -> tuple[DraftMedia, ...]:
    """Return the media with the files at their URLs, which `kept` removes unless the post is accepted.

    Run this outside of a write, and after all checks that need no file. Raises InvalidRequest with every failing URL,
    and Unavailable.
    """
    wanted = {index: MediaUrl(("media", index, "url"), item.url) for index, item in enumerate(media) if item.url}
    found = dict(
        zip(wanted, await imports.fetch(rt, list(wanted.values()), kept, key_id, seconds=seconds), strict=True)
    )
    return tuple(_with_file(item, found[at]) if at in found else item for at, item in enumerate(media))


def _with_own_artifacts(rt: Runtime, reader: Database, draft: Draft) -> Draft:
    """Return the draft with the artifacts of URLs of this appliance."""
    own = (
        imports.find_own(rt, reader, MediaUrl(("media", at, "url"), item.url)) if item.url else None
        for at, item in enumerate(draft.media)
    )
    media = (_with_file(item, found) if found else item for item, found in zip(draft.media, own, strict=True))
    return replace(draft, media=tuple(media))


def _with_file(item: DraftMedia, found: Examined | str) -> DraftMedia:
    if isinstance(found, str):
        return DraftMedia(found, item.alt)
    return DraftMedia(found.artifact_id, item.alt, found)
