"""What a caller wants published or changed, checked against the rows: profiles, media, options, times."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from socialpub.accounts.api_keys import Caller
from socialpub.core.errors import FieldCode, FieldError, InvalidRequest
from socialpub.core.validation import Path
from socialpub.db.connection import Reader, Row, Tx
from socialpub.db.states import ProfileStatus
from socialpub.db.tables import artifact_rows, delivery_rows, profile_rows
from socialpub.db.tables.profile_rows import Profile
from socialpub.providers import options as option_tables
from socialpub.providers.registry import OPTIONS
from socialpub.publishing.media.uploads import Examined
from socialpub.runtime import Runtime

MAX_MEDIA = 20


@dataclass(frozen=True, slots=True)
class DraftMedia:
    artifact_id: str
    alt: str | None = None
    arriving: Examined | None = None
    """The file that came with the post: no row names it before the post is accepted."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What a caller wants published. `options` per provider, as given."""

    body: str | None
    scheduled_at: datetime | None
    profiles: tuple[str, ...]
    media: tuple[DraftMedia, ...] = ()
    options: Mapping[str, Mapping[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What a PATCH or a form gives: only the fields named in `given` (`body`, `scheduled_at`, `media`, `options`)
    count."""

    given: frozenset[str]
    body: str | None = None
    scheduled_at: datetime | None = None
    media: tuple[DraftMedia, ...] = ()
    options: Mapping[str, Mapping[str, Any]] | None = None
    """All options per provider, as given."""
    single_options: Mapping[str, Mapping[str, Any]] | None = None
    """Instead of all options: the keys that change, per provider. None as a value: the profile's stored default."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a post goes: a profile, with the options that are applied there."""

    profile: Profile
    options: Mapping[str, Any]
    retry_of: str | None = None
    """The first of the deliveries that tried the same before."""


def targets(rt: Runtime, store: Reader, draft: Draft, caller: Caller, now: datetime) -> list[Target]:
    """The targets of a draft. Raises InvalidRequest with everything that only the rows and the clock can tell."""
    errors: list[FieldError] = []
    if draft.scheduled_at is not None and draft.scheduled_at <= now:
        message = "must be in the future; leave it out to publish now"
        errors.append(FieldError(("post", "scheduledAt"), message, FieldCode.TIME_PAST))
    targets = []
    for index, profile_id in enumerate(draft.profiles):
        profile = profile_rows.find(store, profile_id)
        if profile is None or not caller.sees(profile.provider, profile.id):
            message = "is not the id of a profile; take ids from GET /profiles"
            errors.append(FieldError(("profiles", index), message, FieldCode.PROFILE_UNKNOWN))
        elif profile.status is ProfileStatus.DISCONNECTED:
            message = "is disconnected; connect the account again and use its new id"
            errors.append(FieldError(("profiles", index), message, FieldCode.PROFILE_DISCONNECTED))
        else:
            targets.append(Target(profile, options_for(rt, profile, draft.options)))
    selected = {target.profile.provider for target in targets}
    if len(targets) == len(draft.profiles):
        errors += _foreign_options(draft.options, selected)
    errors += unusable_media(store, draft.media)
    errors += unusable_in_options(store, draft.options)
    errors += oversized((target.profile.provider, target.options) for target in targets)
    if errors:
        raise InvalidRequest.of(errors)
    return targets


def _foreign_options(options: Mapping[str, Any] | None, selected: set[str]) -> list[FieldError]:
    return [
        FieldError(
            ("providerOptions", provider),
            f"belongs to no selected profile; leave it out, or select a profile of {provider}",
        )
        for provider in options or ()
        if provider not in selected
    ]


def oversized(options: Iterable[tuple[str, Mapping[str, Any]]]) -> list[FieldError]:
    """The networks whose options are too many, those stored for a profile included."""
    providers = dict.fromkeys(provider for provider, given in options if option_tables.is_too_large(given))
    message = f"{option_tables.TOO_LARGE}, with those of the profile"
    return [FieldError(("providerOptions", provider), message) for provider in providers]


def unusable_media(store: Reader, media: Sequence[DraftMedia]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, item in enumerate(media):
        if not item.arriving:
            errors += _unusable(store, ("media", index, "artifactId"), item.artifact_id)
    return errors


def unusable_in_options(store: Reader, options: Mapping[str, Mapping[str, Any]] | None) -> list[FieldError]:
    errors: list[FieldError] = []
    for provider, given in (options or {}).items():
        for key, artifact_id in option_tables.artifacts(OPTIONS.get(provider, ()), given):
            errors += _unusable(store, ("providerOptions", provider, key), artifact_id)
    return errors


def _unusable(store: Reader, path: Path, artifact_id: str) -> list[FieldError]:
    row = artifact_rows.find(store, artifact_id)
    why = why_unusable(row)
    return [] if why is None else [FieldError(path, why, None if row else FieldCode.ARTIFACT_UNKNOWN)]


def why_unusable(artifact: Row | None) -> str | None:
    """Why no post can show this artifact; None when one can."""
    if artifact is None:
        return "is not the id of an artifact; reserve and complete an upload first"
    if artifact.status != "verified":
        return f"names an artifact that is {artifact.status}; only a verified one can be used"
    return None if artifact.removed_at is None else "names an artifact whose bytes were removed; upload the file again"


def check_change(rt: Runtime, tx: Tx, post: Row, change: Change) -> None:
    errors: list[FieldError] = []
    if change.scheduled_at is not None and change.scheduled_at <= tx.now:
        message = "must be in the future; null publishes immediately"
        errors.append(FieldError(("post", "scheduledAt"), message, FieldCode.TIME_PAST))
    if "media" in change.given:
        errors += unusable_media(tx, change.media)
        body = change.body if "body" in change.given else post.body
        if not change.media and not body:
            errors.append(FieldError(("media",), "can be emptied only when a body remains"))
    if "options" in change.given:
        given = change.options if change.single_options is None else change.single_options
        applied = [
            (profile.provider, options_after(rt, profile, json.loads(row.options), change))
            for row in delivery_rows.of_post(tx, post.id)
            if (profile := profile_rows.find(tx, row.profile_id)) is not None
        ]
        errors += _foreign_options(given, {provider for provider, _ in applied})
        errors += oversized(applied)
        errors += unusable_in_options(tx, given)
    if errors:
        raise InvalidRequest.of(errors)


def options_after(rt: Runtime, profile: Profile, present: Mapping[str, Any], change: Change) -> dict[str, Any]:
    """Return the options of a delivery to this profile after the change."""
    if change.single_options is None:
        return options_for(rt, profile, change.options)
    provider = rt.providers[profile.provider]
    given = change.single_options.get(profile.provider, {})
    # A spelling of the network's own gives way to the key, so that it is found below.
    options = provider.merge_options(present, given)
    for key in (key for key, value in given.items() if value is None):
        del options[key]
        options |= {key: profile.options[key]} if key in profile.options else {}
    return options


def options_for(rt: Runtime, profile: Profile, options: Mapping[str, Mapping[str, Any]] | None) -> dict[str, Any]:
    own = (options or {}).get(profile.provider, {})
    return rt.providers[profile.provider].merge_options(profile.options, own)
