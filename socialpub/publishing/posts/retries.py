"""Retries: publish a post again for the profiles where it failed (contract 1.18), with or without changes.

A delivery with a retry in progress, or with a published retry, is not retried again. All retries of a delivery refer to
the first delivery, so a retry of a retry follows the same rule.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from socialpub.accounts.api_keys import Caller
from socialpub.core.errors import Conflict, FieldError, InvalidRequest
from socialpub.db.connection import Database
from socialpub.db.models import DeliveryRow
from socialpub.db.states import ProfileStatus, State
from socialpub.db.tables import delivery_rows, post_rows, profile_rows
from socialpub.db.tables.audit_log import AuditAction
from socialpub.publishing.delivery import read_back
from socialpub.publishing.posts import drafts, posts
from socialpub.publishing.posts.drafts import Draft, DraftMedia, Target
from socialpub.runtime import Runtime

NOTHING_FAILED = "No delivery of this post has failed, so there is nothing to retry."
ONLY_UNKNOWN = (
    "The failed deliveries may have been published anyway (outcome unknown). Look at the account first. To publish "
    "them again, set includeUnknown (--include-unknown)."
)


def retry(rt: Runtime, tx: Database, post_id: str, caller: Caller, include_unknown: bool = False) -> str:
    """Accept the post again, now, for each profile whose delivery failed. Return the new post's id.

    `include_unknown`: also where the outcome is unknown. Raises NotFound, Conflict when no delivery can be retried,
    InvalidRequest for a disconnected profile and for removed media, RateLimited.
    """
    post = posts.find_visible(tx, post_id, caller)
    failed = _select_failed(tx, post_id, include_unknown)
    media = tuple(DraftMedia(artifact_id, alt) for artifact_id, alt in post_rows.list_media(tx, post_id))
    new_id = posts.accept(rt, tx, Draft(post.body, media=media), _targets(rt, tx, failed, media), caller)
    _read_back_first(tx, post_id, new_id)
    posts.record(tx, AuditAction.POST_RETRIED, post_id, post.body, new_post_id=new_id)
    return new_id


def retry_changed(rt: Runtime, tx: Database, post_id: str, draft: Draft, caller: Caller) -> str:
    """Accept a changed post for the failed deliveries of this one. Return the new post's id.

    A target whose account definitely failed is the next retry of that delivery. Raises NotFound, and InvalidRequest as
    `posts.create`, including for an account that a later retry has or may have reached.
    """
    post = posts.find_visible(tx, post_id, caller)
    targets = drafts.check_targets(rt, tx, draft, caller, tx.now, post_id)
    outlook = load_outlook(tx, post_id)
    errors, tries = [], list[Target]()
    for index, target in enumerate(targets):
        account = (target.profile.provider, target.profile.account_id)
        first = next((row for row in outlook.certain if _account(row) == account), None)
        tries.append(target if first is None else replace(target, retry_of=first.first_id))
        if account in outlook.taken:
            errors.append(FieldError(("profiles", index), outlook.taken[account]))
    if errors:
        raise InvalidRequest.from_errors(errors)
    if not any(target.retry_of for target in tries):
        return posts.create(rt, tx, draft, caller)
    media = post_rows.list_media(tx, post_id)
    earlier = {
        _account(row): {"body": post.body, "media": media, "options": json.loads(row.options)}
        for row in outlook.certain
    }
    new_id = posts.accept(rt, tx, draft, tries, caller)
    _read_back_first(tx, post_id, new_id, earlier)
    posts.record(tx, AuditAction.POST_RETRIED, post_id, post.body, new_post_id=new_id)
    return new_id


@dataclass(frozen=True, slots=True)
class RetryOutlook:
    """The deliveries of a post that can be published again."""

    certain: list[DeliveryRow]
    """Deliveries that definitely failed."""
    unknown: list[DeliveryRow]
    """Failed deliveries that may be public."""
    why: str
    """The reason why no delivery can be retried, if both lists are empty."""
    taken: Mapping[tuple[str, str], str]
    """By account (network and id): the reason why the failed delivery is not retried automatically."""

    @property
    def content_refused(self) -> bool:
        """Return whether a delivery was refused for its content: the same post would fail again."""
        return any(row.content_refused for row in self.certain)

    @property
    def may_pass(self) -> bool:
        """Return whether the same post may succeed in a retry."""
        return bool(self.unknown) or any(not row.content_refused for row in self.certain)


def load_outlook(db: Database, post_id: str) -> RetryOutlook:
    certain, unknown, why = list[DeliveryRow](), list[DeliveryRow](), NOTHING_FAILED
    taken: dict[tuple[str, str], str] = {}
    for delivery in delivery_rows.list_of_post(db, post_id):
        if State(delivery.state).outcome not in ("failed", "unknown"):
            continue
        tries = [(State(row.state), row.post_id) for row in delivery_rows.list_tries(db, delivery.first_id)]
        open_in = [at for state, at in tries if not state.final]
        published_in = [at for state, at in tries if state is State.PUBLISHED]
        account = _account(delivery)
        if published_in:
            taken[account] = f"already has the post from a later retry ({published_in[-1]}); leave this profile out"
            why = f"A later post has published the failed deliveries: {published_in[-1]}."
        elif open_in:
            taken[account] = f"gets the post from another retry ({open_in[-1]}); leave this profile out"
            why = f"Another post already retries the failed deliveries: {open_in[-1]}."
        elif any(state is State.UNCONFIRMED for state, _ in tries):
            taken[account] = "may already have the post; look at the account, then use “Post again” on the post's page"
            unknown.append(delivery)
        else:
            certain.append(delivery)
    return RetryOutlook(certain, unknown, why, taken)


def _account(delivery: DeliveryRow) -> tuple[str, str]:
    return delivery.provider, delivery.account_id


def _select_failed(tx: Database, post_id: str, include_unknown: bool) -> list[DeliveryRow]:
    outlook = load_outlook(tx, post_id)
    chosen = outlook.certain + outlook.unknown if include_unknown else outlook.certain
    if not chosen:
        raise Conflict(ONLY_UNKNOWN if outlook.unknown else outlook.why)
    return sorted(chosen, key=lambda delivery: delivery.position)


def _read_back_first(
    tx: Database, post_id: str, new_id: str, earlier: Mapping[tuple[str, str], Mapping[str, Any]] | None = None
) -> None:
    """Read back first if another installation may have retried the post. `earlier`: the earlier content by account."""
    since = post_rows.elsewhere_since(tx, post_id)
    if since is None:
        return
    for delivery in delivery_rows.list_open_of_post(tx, new_id):
        content = (earlier or {}).get((delivery.provider, delivery.account_id))
        read_back.require_first(tx, delivery, since, [] if content is None else [content])


def _targets(rt: Runtime, tx: Database, failed: Sequence[DeliveryRow], media: Sequence[DraftMedia]) -> list[Target]:
    """Return the profiles and options of the failed deliveries. Raises InvalidRequest."""
    targets, gone = [], []
    errors = drafts.check_media(rt, tx, media)
    for delivery in failed:
        profile = profile_rows.find(tx, delivery.profile_id)
        options = json.loads(delivery.options)
        if profile is None or profile.status == ProfileStatus.DISCONNECTED:
            gone.append(f"{delivery.provider} “{delivery.profile_name}”")
        else:
            targets.append(Target(profile, options, delivery.first_id, delivery.reply_to))
        errors += drafts.check_option_media(tx, {delivery.provider: options})
    errors += drafts.check_option_sizes(targets)
    if gone:
        what = f"can no longer be reached: {', '.join(gone)} was disconnected; create a post for its new profile"
        errors.insert(0, FieldError(("profiles",), what))
    if errors:
        raise InvalidRequest.from_errors(drafts.first_by_path(errors))
    return targets
