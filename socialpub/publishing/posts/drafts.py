"""Drafts and changes of posts, and their checks against the rows and the rules of each network."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from socialpub.accounts import key_limits, remedies, tokens
from socialpub.accounts.api_keys import Caller
from socialpub.core import units, validation
from socialpub.core.clock import parse, parse_id, stamp
from socialpub.core.errors import FieldCode, FieldError, InvalidRequest
from socialpub.db import appliance_state
from socialpub.db.connection import Database
from socialpub.db.models import PostRow, ProfileRow
from socialpub.db.queries import profile_queue
from socialpub.db.states import ProfileStatus
from socialpub.db.tables import artifact_rows, audience_rows, delivery_rows, post_rows, profile_rows, waits
from socialpub.media.types import position_note
from socialpub.providers import options as option_tables
from socialpub.providers.base import Content, MediaFile
from socialpub.providers.registry import OPTIONS
from socialpub.publishing.delivery import waiting
from socialpub.publishing.media import imports, uploads
from socialpub.publishing.media.imports import MediaUrl
from socialpub.publishing.media.uploads import Examined
from socialpub.publishing.posts import replies
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


WHOLE = frozenset({"body", "scheduled_at", "media", "options"})


@dataclass(frozen=True, slots=True)
class Draft:
    """A post before its acceptance, or the new values of a post. `options` per provider, as given."""

    body: str | None = None
    scheduled_at: datetime | None = None
    profiles: tuple[str, ...] = ()
    media: tuple[DraftMedia, ...] = ()
    options: Mapping[str, Mapping[str, Any]] | None = None
    given: frozenset[str] = WHOLE
    """The fields that replace those of an existing post. The other fields of that post stay."""

    @classmethod
    def change(cls, **values: Any) -> "Draft":
        """Return a draft that replaces only these fields of a post."""
        return cls(**values, given=frozenset(values))


@dataclass(frozen=True, slots=True)
class Target:
    """A profile and its options for a post."""

    profile: ProfileRow
    options: Mapping[str, Any]
    retry_of: str | None = None
    """The first delivery of the same post to this account."""
    reply_to: str | None = None
    """The first delivery of the post to which this post replies."""


def check_targets(
    rt: Runtime, db: Database, draft: Draft, caller: Caller, now: datetime, instead_of: str | None = None
) -> list[Target]:
    """Return the targets of a draft. Raises InvalidRequest for unknown ids, unusable media and past times.

    `instead_of`: the post that the draft changes or retries.
    """
    errors: list[FieldError] = []
    targets: list[Target] = []
    if draft.scheduled_at is not None and draft.scheduled_at <= now:
        message = "must be in the future; leave the time out to publish now"
        errors.append(FieldError(("post", "scheduledAt"), message, FieldCode.TIME_PAST))
    for index, profile_id in enumerate(draft.profiles):
        profile = profile_rows.find(db, profile_id)
        if profile is None or not caller.sees(profile.provider, profile.id):
            message = "is not the id of a profile; use an id from GET /profiles"
            errors.append(FieldError(("profiles", index), message, FieldCode.PROFILE_UNKNOWN))
        elif profile.status == ProfileStatus.DISCONNECTED:
            message = "is disconnected; connect the account again and use its new id"
            errors.append(FieldError(("profiles", index), message, FieldCode.PROFILE_DISCONNECTED))
        elif not draft.options and not profile.options:
            targets.append(Target(profile, {}))
        else:
            options = options_for(rt, profile, draft.options)
            reply_to, wrong = _find_parent(db, caller, profile, options, instead_of)
            targets.append(Target(profile, options, reply_to=reply_to))
            errors += wrong + check_option_sizes(targets[-1:])
    if caller.posts_per_day is not None:
        errors += key_limits.check_profiles(caller, len(draft.profiles))
    if draft.options and len(targets) == len(draft.profiles):
        errors += _foreign_options(draft.options, targets)
    if draft.media:
        errors += check_media(rt, db, draft.media)
    if draft.options:
        errors += check_option_media(db, draft.options)
    if errors:
        raise InvalidRequest.from_errors(first_by_path(errors))
    return targets


def check_change(
    rt: Runtime, db: Database, post: PostRow, draft: Draft, caller: Caller, now: datetime
) -> dict[str, Target]:
    """Return the new target of each delivery whose options the draft replaces. Raises InvalidRequest."""
    errors: list[FieldError] = []
    targets: dict[str, Target] = {}
    if draft.scheduled_at is not None and draft.scheduled_at <= now:
        message = "must be in the future; null publishes immediately"
        errors.append(FieldError(("post", "scheduledAt"), message, FieldCode.TIME_PAST))
    if "media" in draft.given:
        errors += check_media(rt, db, draft.media)
        body = draft.body if "body" in draft.given else post.body
        if not draft.media and not body:
            errors.append(FieldError(("media",), "can be empty only if the post has a body"))
    if "options" in draft.given:
        for row in delivery_rows.list_of_post(db, post.id):
            if (profile := profile_rows.find(db, row.profile_id)) is not None:
                options = options_for(rt, profile, draft.options)
                reply_to, wrong = _find_parent(db, caller, profile, options, post.id)
                targets[row.id] = Target(profile, options, reply_to=reply_to)
                errors += wrong
        errors += _foreign_options(draft.options or {}, targets.values())
        errors += check_option_sizes(targets.values())
        errors += check_option_media(db, draft.options or {})
    if errors:
        raise InvalidRequest.from_errors(first_by_path(errors))
    return targets


def _find_parent(
    db: Database, caller: Caller, profile: ProfileRow, options: Mapping[str, Any], instead_of: str | None = None
) -> tuple[str | None, list[FieldError]]:
    """Return the first delivery of the post that these options name, and the errors.

    `instead_of`: the post that the draft changes or retries.
    """
    table = OPTIONS.get(profile.provider, ())
    option = option_tables.find_post_option(table)
    key = None if option is None else option_tables.spelled(option.name, table, options)
    if option is None or key is None:
        return None, []
    path = ("providerOptions", profile.provider, key)

    def refuse(message: str) -> tuple[None, list[FieldError]]:
        return None, [FieldError(path, message)]

    other = option_tables.spelled(option.sent_as, table, options)
    if other is not None:
        return refuse(f"cannot be combined with {other}; leave one of them out")
    named = options[key]
    post = post_rows.find(db, parse_id(named) or "") if isinstance(named, str) else None
    if post is None or not audience_rows.sees(db, caller, post.audience_id):
        return refuse("is not the id of a post; the page of a post and the API show its id")
    rows = delivery_rows.list_of_post(db, post.id)
    first = next((row.first_id for row in rows if row.profile_id == profile.id), None)
    if first is None:
        return refuse(f"has no delivery to the profile “{profile.name}”; use a post to the same profile")
    # The account may have had another profile.
    account = (profile.provider, profile.account_id)
    own = [] if instead_of is None else delivery_rows.list_of_post(db, instead_of)
    own = [row for row in own if (row.provider, row.account_id) == account]
    if any(delivery_rows.replies_to_itself(db, first, row.first_id) for row in own):
        return refuse("makes the post wait for itself; use a post that does not reply to this post")
    return first, []


def first_by_path(errors: Iterable[FieldError]) -> list[FieldError]:
    """Return the first error at each path: several profiles of one network share their options."""
    return list({error.path: error for error in reversed(list(errors))}.values())[::-1]


def options_for(rt: Runtime, profile: ProfileRow, options: Mapping[str, Mapping[str, Any]] | None) -> dict[str, Any]:
    own = (options or {}).get(profile.provider, {})
    return rt.providers[profile.provider].merge_options(profile.options, own)


def _foreign_options(options: Mapping[str, Any], targets: Iterable[Target]) -> list[FieldError]:
    selected = {target.profile.provider for target in targets}
    message = "does not belong to a selected profile; leave the options out, or select a profile of"
    foreign = [provider for provider in options if provider not in selected]
    return [FieldError(("providerOptions", provider), f"{message} {provider}") for provider in foreign]


def check_option_sizes(targets: Iterable[Target]) -> list[FieldError]:
    """Return an error for each network with too many options, including the profile's."""
    large = dict.fromkeys(target.profile.provider for target in targets if option_tables.is_too_large(target.options))
    message = f"{option_tables.TOO_LARGE}, with those of the profile"
    return [FieldError(("providerOptions", provider), message) for provider in large]


def check_media(rt: Runtime, db: Database, media: Sequence[DraftMedia]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, item in enumerate(media):
        if item.url is not None:
            try:
                imports.find_own(rt, db, MediaUrl(("media", index, "url"), item.url))
            except InvalidRequest as error:
                errors += error.errors
        elif not item.arriving:
            errors += _unusable(db, ("media", index, "artifactId"), item.artifact_id)
    return errors


def check_option_media(db: Database, options: Mapping[str, Mapping[str, Any]]) -> list[FieldError]:
    return [
        error
        for provider, of_network in options.items()
        for key, artifact_id in option_tables.list_artifacts(OPTIONS.get(provider, ()), of_network)
        for error in _unusable(db, ("providerOptions", provider, key), artifact_id)
    ]


def _unusable(db: Database, path: validation.Path, artifact_id: str) -> list[FieldError]:
    row = artifact_rows.find(db, artifact_id)
    why = uploads.explain_unusable(row)
    return [] if why is None else [FieldError(path, why, None if row else FieldCode.ARTIFACT_UNKNOWN)]


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
    rt: Runtime, db: Database, draft: Draft, caller: Caller, editing: str | None = None
) -> list[CheckedDelivery]:
    """Return the problems of this draft for each network. The same checks run just before sending.

    `editing` is the post that the draft would change. Raises InvalidRequest as `create` does.
    """
    checked = []
    selected = check_targets(rt, db, draft, caller, rt.now(), editing)
    options_by_network = [(target.profile.provider, target.options) for target in selected]
    draft = _with_own_artifacts(rt, db, draft)
    urls = [f"media[{index}].url" for index, item in enumerate(draft.media) if item.url]
    contents = [
        draft_content(rt, db, draft, options_by_network, kind) for kind in (("image", "video") if urls else ("image",))
    ]
    for target in selected:
        profile, options = target.profile, target.options
        provider = rt.providers[profile.provider]
        chosen = provider.read_options(options)[0]
        problems = _common(check_content(rt, profile, content, options)[1] for content in contents)
        notes = _common(provider.notes(content, chosen, tokens.to_account(profile)) for content in contents)
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
        if profile.status == ProfileStatus.REAUTH_REQUIRED:
            hours = waiting.format_hours(rt.settings.publishing.max_lateness)
            wait = f"Posts for this profile wait until then. A post that is more than {hours} late fails."
            notes = [f"{remedies.reconnect_message(profile.provider, profile.reason)} {wait}", *notes]
        else:
            notes = _gap_notes(rt, db, draft, profile.id, editing) + notes
        parent = replies.find_parent(db, target.reply_to)
        if parent is not None and parent.outlook is not None:
            notes = [parent.outlook, *notes]
        checked.append(CheckedDelivery(profile.id, profile.provider, problems, notes))
    return checked


def _common(found: Iterable[Sequence[T]]) -> list[T]:
    """Return the items that every list contains. They apply to images and to videos."""
    first, *others = found
    return [note for note in first if all(note in other for other in others)]


def _gap_notes(rt: Runtime, db: Database, draft: Draft, profile_id: str, editing: str | None) -> list[str]:
    """Return a note if `publishing.min_gap` delays this draft, with the approximate time."""
    gap, time = rt.settings.publishing.min_gap, draft.scheduled_at or rt.now()
    if not gap:
        return []
    waits_until = waits.ends_at(db, profile_id, (waits.COMMITS,), rt.stamp())
    at = parse(waits_until) if waits_until else rt.now()
    queued = profile_queue.uncommitted_due_by(db, profile_id, stamp(time), editing)
    for due_at in queued:
        at = max(at, parse(due_at)) + gap
    if at <= time:
        return []
    before = f" {units.count(len(queued), 'post is', 'posts are')} queued before this post." if queued else ""
    when = f"{at:%Y-%m-%d %H:%M} UTC" + (", later than scheduled" if draft.scheduled_at else "")
    paused = ", unless publishing stays paused" if appliance_state.paused_at(db) else ""
    return [
        f"Two posts of one profile are at least {units.duration(gap)} apart (publishing.min_gap).{before} This post is "
        f"published at about {when}{paused}."
    ]


def refuse_problems(rt: Runtime, db: Database, draft: Draft, caller: Caller) -> None:
    """Raise InvalidRequest with the problems of this draft for all networks."""
    problems = [problem for delivery in check_draft(rt, db, draft, caller) for problem in delivery.problems]
    if problems:
        raise InvalidRequest.from_errors(list(dict.fromkeys(problems)))


def draft_content(
    rt: Runtime,
    db: Database,
    draft: Draft,
    options: Sequence[tuple[str, Mapping[str, Any]]],
    kind_at_urls: str = "image",
) -> Content:
    """Return the content of a draft. `options`: the provider and options of each delivery.

    A file at a URL is unknown. Its stand-in has the kind `kind_at_urls` and no facts.
    """
    files = [_media_file(rt, db, media, position, kind_at_urls) for position, media in enumerate(draft.media)]
    return Content(draft.body or "", tuple(files), option_files(rt, db, options), rt.settings.base_url)


def _media_file(rt: Runtime, db: Database, media: DraftMedia, position: int, kind_at_urls: str) -> MediaFile:
    if media.url is not None:
        mime_type = {"image": "image/jpeg", "video": "video/mp4"}[kind_at_urls]
        return MediaFile(position, kind_at_urls, mime_type, 0, Path(), "", media.alt)
    if media.arriving is None:
        return load_file(rt, db, media.artifact_id, position, media.alt)
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
    files = dict(
        zip(wanted, await imports.fetch(rt, list(wanted.values()), kept, key_id, seconds=seconds), strict=True)
    )
    return tuple(_with_file(item, files[at]) if at in files else item for at, item in enumerate(media))


def _with_own_artifacts(rt: Runtime, db: Database, draft: Draft) -> Draft:
    """Return the draft with the artifacts of URLs of this appliance."""
    own = (
        imports.find_own(rt, db, MediaUrl(("media", at, "url"), item.url)) if item.url else None
        for at, item in enumerate(draft.media)
    )
    media = (_with_file(item, artifact) if artifact else item for item, artifact in zip(draft.media, own, strict=True))
    return replace(draft, media=tuple(media))


def _with_file(item: DraftMedia, found: Examined | str) -> DraftMedia:
    if isinstance(found, str):
        return DraftMedia(found, item.alt)
    return DraftMedia(found.artifact_id, item.alt, found)
