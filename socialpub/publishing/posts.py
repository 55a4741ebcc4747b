"""Posts: accepted, changed, canceled, stopped.

Every function that changes something runs inside one write: all of it is on the disk, or none. A post never says more
than its deliveries: it is settled in the write that settles the last of them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from socialpub.accounts.api_keys import Caller
from socialpub.core import ids
from socialpub.core.clock import stamp
from socialpub.core.errors import Conflict, FieldError, InvalidRequest, NotFound
from socialpub.db import appliance_state, delivery_rows, post_rows, profile_rows
from socialpub.db.database import Reader, Row, Tx
from socialpub.db.models import PostStatus, Profile, ProfileStatus, State
from socialpub.providers.content import Account, Content, MediaFile, Problem
from socialpub.publishing import audiences, deliveries, equal_content, log_entries, post_status
from socialpub.runtime import Runtime


@dataclass(frozen=True, slots=True)
class DraftMedia:
    artifact_id: str
    alt: str | None = None


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
    """What a PATCH gives: only the fields named in `given` (`body`, `scheduled_at`, `media`, `options`) count."""

    given: frozenset[str]
    body: str | None = None
    scheduled_at: datetime | None = None
    media: tuple[DraftMedia, ...] = ()
    options: Mapping[str, Mapping[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class CheckedDelivery:
    """What a network would say about a draft: what it refuses, and what is worth knowing although nothing is wrong."""

    profile_id: str
    provider: str
    problems: list[Problem]
    notes: list[str]


# --- accepting -------------------------------------------------------------------------------------------------------


def create(rt: Runtime, tx: Tx, draft: Draft, caller: Caller) -> str:
    """Accept a post; its id. Raises InvalidRequest naming every failing field."""
    targets = _targets(tx, draft, caller, tx.now)
    post_id = ids.new(int(tx.now.timestamp() * 1000))
    status = PostStatus.SCHEDULED if draft.scheduled_at else PostStatus.PENDING
    scheduled_at = stamp(draft.scheduled_at) if draft.scheduled_at else None
    audience = audiences.number(tx, [(profile.id, profile.provider) for profile in targets])
    post_rows.insert(
        tx,
        id=post_id,
        status=status,
        body=draft.body,
        created_at=tx.stamp,
        updated_at=tx.stamp,
        scheduled_at=scheduled_at,
        audience_id=audience,
    )
    audiences.count(tx, audience, status, +1)
    _insert_media(tx, post_id, draft.media)
    content_key = equal_content.key(draft.body, len(draft.media))
    for position, profile in enumerate(targets):
        options = _merged(rt, profile, draft.options)
        delivery_id = ids.new(int(tx.now.timestamp() * 1000))
        delivery_rows.insert(
            tx,
            id=delivery_id,
            post_id=post_id,
            position=position,
            profile_id=profile.id,
            provider=profile.provider,
            profile_name=profile.name,
            account_id=profile.account_id,
            state=State.QUEUED,
            options=delivery_rows.as_json(options),
            scheduled_at=scheduled_at,
            due_at=scheduled_at or tx.stamp,
            run_at=scheduled_at or tx.stamp,
            content_key=content_key,
        )
        log_entries.record(tx, delivery_id, "pending")
        if not draft.scheduled_at:
            tx.after_commit(rt.wakeup.ring, delivery_id)
    return post_id


def validate(rt: Runtime, reader: Reader, draft: Draft, caller: Caller) -> list[CheckedDelivery]:
    """What each network would refuse about this draft; the same checks run just before sending. Stores nothing.

    Raises InvalidRequest where `create` would.
    """
    checked = []
    for profile in _targets(reader, draft, caller, rt.now()):
        content = Content(draft.body or "", _files(rt, reader, [(m.artifact_id, m.alt) for m in draft.media]))
        problems = check(rt, profile, content, _merged(rt, profile, draft.options))
        provider = rt.providers[profile.provider]
        notes = provider.notes(content, provider.read_options(_merged(rt, profile, draft.options))[0])
        checked.append(CheckedDelivery(profile.id, profile.provider, problems, notes))
    return checked


def check(rt: Runtime, profile: Profile, content: Content, given: Mapping[str, Any]) -> list[Problem]:
    """Everything about this content that the profile's network would refuse."""
    provider = rt.providers[profile.provider]
    options, problems = provider.read_options(given)
    return problems + provider.check(content, options, account_of(profile))


def account_of(profile: Profile) -> Account:
    return Account(profile.account_id, profile.username, profile.scopes, profile.facts)


# --- changing --------------------------------------------------------------------------------------------------------


def edit(rt: Runtime, tx: Tx, post_id: str, change: Change, caller: Caller) -> None:
    """Change a future scheduled post. Raises NotFound, InvalidRequest, Conflict."""
    post = _visible(tx, post_id, caller)
    _check_change(tx, post, change)
    if post["status"] != PostStatus.SCHEDULED or post["scheduled_at"] <= tx.stamp:
        raise Conflict("Only a scheduled post whose time is still to come can be changed.")
    body = change.body if "body" in change.given else post["body"]
    if "media" in change.given:
        post_rows.delete_media(tx, post_id)
        _insert_media(tx, post_id, change.media)
    content_key = equal_content.key(body, len(post_rows.media_of(tx, post_id)))
    scheduled_at = post["scheduled_at"]
    if "scheduled_at" in change.given:
        scheduled_at = stamp(change.scheduled_at) if change.scheduled_at else None
    due_at = scheduled_at or tx.stamp
    for delivery in delivery_rows.of_post(tx, post_id):
        options = json.loads(delivery["options"])
        if "options" in change.given:
            options = _merged(rt, _profile(tx, delivery["profile_id"]), change.options)
        delivery_rows.update(
            tx,
            delivery["id"],
            options=delivery_rows.as_json(options),
            scheduled_at=scheduled_at,
            due_at=due_at,
            run_at=due_at,
            content_key=content_key,
        )
        if scheduled_at is None:
            tx.after_commit(rt.wakeup.ring, delivery["id"])
    status = PostStatus.SCHEDULED if scheduled_at else PostStatus.PENDING
    post_rows.update(tx, post_id, body=body, scheduled_at=scheduled_at)
    post_status.move(tx, post_id, status)


def cancel(rt: Runtime, tx: Tx, post_id: str, caller: Caller) -> None:
    """Cancel a scheduled post none of whose deliveries has started. Raises NotFound, Conflict."""
    post = _visible(tx, post_id, caller)
    if post["status"] != PostStatus.SCHEDULED:
        raise Conflict(f"The post is {post['status']}; only a scheduled post that has not started can be canceled.")
    if _may_be_out(tx, post):
        raise Conflict(
            "socialpub was restored from a copy, and the original may have sent this post. `socialpub admin resume` "
            "finds that out."
        )
    _cancel(tx, post_id)


def stop(rt: Runtime, tx: Tx, post_id: str) -> dict[str, str]:
    """The owner's stop: what is not past its commit is sent no more. What became of each delivery, by its id.

    A scheduled post is canceled as a whole. Raises NotFound.
    """
    post = post_rows.find(tx, post_id)
    if post is None:
        raise NotFound("No post has this id.")
    if post["status"] == PostStatus.SCHEDULED and not _may_be_out(tx, post):
        _cancel(tx, post_id)
    else:
        deliveries.stop(tx, post_id)
    return {row["id"]: row["state"] for row in delivery_rows.of_post(tx, post_id)}


def visible(reader: Reader, caller: Caller, post_id: str) -> bool:
    """Whether there is such a post for this key."""
    post = post_rows.find(reader, post_id)
    return post is not None and audiences.sees(reader, caller, post["audience_id"])


def content(rt: Runtime, store: Reader | Tx, post_id: str) -> Content:
    """What there is to publish. Paths of media may point at files that are gone."""
    post = post_rows.find(store, post_id)
    return Content((post and post["body"]) or "", _files(rt, store, post_rows.media_of(store, post_id)))


# --- inside ----------------------------------------------------------------------------------------------------------


def _targets(store: Reader | Tx, draft: Draft, caller: Caller, now: datetime) -> list[Profile]:
    """The profiles of a draft. Raises InvalidRequest with everything that only the rows and the clock can tell."""
    errors: list[FieldError] = []
    if draft.scheduled_at is not None and draft.scheduled_at <= now:
        errors.append(FieldError(("post", "scheduledAt"), "must be in the future; leave it out to publish now"))
    targets = []
    for index, profile_id in enumerate(draft.profiles):
        profile = profile_rows.find(store, profile_id)
        if profile is None or not caller.sees(profile.provider, profile.id):
            errors.append(FieldError(("profiles", index), "is not the id of a profile; take ids from GET /profiles"))
        elif profile.status is ProfileStatus.DISCONNECTED:
            errors.append(
                FieldError(("profiles", index), "is disconnected; connect the account again and use its new id")
            )
        else:
            targets.append(profile)
    selected = {profile.provider for profile in targets}
    if len(targets) == len(draft.profiles):
        errors += _foreign_options(draft.options, selected)
    errors += _unusable_media(store, draft.media)
    if errors:
        raise InvalidRequest("The post cannot be accepted as it is.", errors)
    return targets


def _foreign_options(options: Mapping[str, Any] | None, selected: set[str]) -> list[FieldError]:
    return [
        FieldError(("providerOptions", provider), f"no selected profile is of {provider}; leave these options out")
        for provider in options or ()
        if provider not in selected
    ]


def _unusable_media(store: Reader | Tx, media: Sequence[DraftMedia]) -> list[FieldError]:
    errors = []
    for index, item in enumerate(media):
        row = store.one("SELECT status, removed_at FROM artifact WHERE id = ?", (item.artifact_id,))
        path = ("media", index, "artifactId")
        if row is None:
            errors.append(FieldError(path, "is not the id of an artifact; reserve and complete an upload first"))
        elif row["status"] != "verified":
            errors.append(FieldError(path, f"the artifact is {row['status']}; only a verified one can be used"))
        elif row["removed_at"] is not None:
            errors.append(FieldError(path, "the artifact's bytes were removed; upload the file again"))
    return errors


def _check_change(tx: Tx, post: Row, change: Change) -> None:
    errors: list[FieldError] = []
    if change.scheduled_at is not None and change.scheduled_at <= tx.now:
        errors.append(FieldError(("post", "scheduledAt"), "must be in the future; null publishes immediately"))
    if "media" in change.given:
        errors += _unusable_media(tx, change.media)
        body = change.body if "body" in change.given else post["body"]
        if not change.media and not body:
            errors.append(FieldError(("media",), "can be emptied only when a body remains"))
    if "options" in change.given:
        selected = {row["provider"] for row in delivery_rows.of_post(tx, post["id"])}
        errors += _foreign_options(change.options, selected)
    if errors:
        raise InvalidRequest("The post cannot be changed like this.", errors)


def _visible(tx: Tx, post_id: str, caller: Caller) -> Row:
    post = post_rows.find(tx, post_id)
    if post is None or not audiences.sees(tx, caller, post["audience_id"]):
        raise NotFound("No post has this id.")
    return post


def _may_be_out(tx: Tx, post: Row) -> bool:
    """Whether a scheduled post was due while this restored copy was not in charge."""
    return appliance_state.restored_from(tx) is not None and bool(post["scheduled_at"] <= tx.stamp)


def _cancel(tx: Tx, post_id: str) -> None:
    for row in delivery_rows.of_post(tx, post_id):
        delivery_rows.update(tx, row["id"], state=State.CANCELED)
        log_entries.record(tx, row["id"], "canceled")
    post_rows.update(tx, post_id, canceled_at=tx.stamp)
    post_status.move(tx, post_id, PostStatus.CANCELED)


def _profile(tx: Tx, profile_id: str) -> Profile:
    profile = profile_rows.find(tx, profile_id)
    assert profile is not None
    return profile


def _merged(rt: Runtime, profile: Profile, options: Mapping[str, Mapping[str, Any]] | None) -> dict[str, Any]:
    own = (options or {}).get(profile.provider, {})
    return rt.providers[profile.provider].merge_options(profile.options, own)


def _insert_media(tx: Tx, post_id: str, media: Sequence[DraftMedia]) -> None:
    at_ms = int(tx.now.timestamp() * 1000)
    rows = [(ids.new(at_ms), post_id, at, item.artifact_id, item.alt) for at, item in enumerate(media)]
    post_rows.insert_media(tx, rows)


def _files(rt: Runtime, store: Reader | Tx, media: Sequence[tuple[str, str | None]]) -> tuple[MediaFile, ...]:
    files = []
    for position, (artifact_id, alt) in enumerate(media):
        row = store.one(
            "SELECT kind, mime_type, size_bytes, storage_key, file_name, facts FROM artifact WHERE id = ?",
            (artifact_id,),
        )
        assert row is not None
        path = rt.files.path(row["storage_key"])
        facts = json.loads(row["facts"] or "{}")
        files.append(
            MediaFile(position, row["kind"], row["mime_type"], row["size_bytes"], path, row["file_name"], alt, facts)
        )
    return tuple(files)
