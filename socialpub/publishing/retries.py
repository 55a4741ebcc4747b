"""A post made again for the profiles where it failed (contract 1.18).

Nothing is posted twice: a delivery that was tried again already is left alone while a try of it is on its way, or when
one of them was published. All tries of one delivery name the first of them, so that neither a second request nor a
retry of a retry goes around that.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from socialpub.accounts.api_keys import Caller
from socialpub.core.errors import Conflict, FieldError, InvalidRequest
from socialpub.db import delivery_rows, post_rows, profile_rows
from socialpub.db.models import ProfileStatus, State
from socialpub.db.trail import TrailAction
from socialpub.db.transaction import Reader, Row, Tx
from socialpub.publishing import drafts, posts, read_back
from socialpub.publishing.drafts import DraftMedia, Target
from socialpub.runtime import Runtime

NOTHING_FAILED = "Nothing of this post has failed: there is nothing to publish again."
ONLY_UNKNOWN = (
    "What failed of this post may be public all the same: its outcome is unknown. Look at the account first; with "
    "includeUnknown (--include-unknown) it is published again."
)


def retry(rt: Runtime, tx: Tx, post_id: str, caller: Caller, include_unknown: bool = False) -> str:
    """Accept the post again, now, for each profile whose delivery failed; the new post's id. What failed and may be
    public all the same is left out unless `include_unknown`.

    Raises NotFound, Conflict when there is nothing to publish again, InvalidRequest for a profile that is disconnected
    and media whose bytes were removed.
    """
    post = posts.find_visible(tx, post_id, caller)
    failed = _to_try_again(tx, post_id, include_unknown)
    media = [DraftMedia(artifact_id, alt) for artifact_id, alt in post_rows.media_of(tx, post_id)]
    new_id = posts.accept(rt, tx, post["body"], media, _targets(tx, failed, media))
    since = post_rows.elsewhere_since(tx, post_id)
    if since is not None:  # another installation may have retried the post as well
        for delivery in delivery_rows.open_of_post(tx, new_id):
            read_back.look_first(tx, delivery, since)
    posts.record(tx, TrailAction.POST_RETRIED, post_id, post["body"], new_post_id=new_id)
    return new_id


@dataclass(frozen=True, slots=True)
class RetryOutlook:
    """What of a post can be published again: what failed for certain, and what may be public all the same. With neither
    of them, `why` says why not."""

    certain: list[Row]
    unknown: list[Row]
    why: str


def outlook(store: Reader | Tx, post_id: str) -> RetryOutlook:
    """What a retry of this post would publish again, and what only with `include_unknown`."""
    certain, unknown, why = list[Row](), list[Row](), NOTHING_FAILED
    for delivery in delivery_rows.of_post(store, post_id):
        if State(delivery["state"]).outcome not in ("failed", "unknown"):
            continue
        tries = [(State(row["state"]), row["post_id"]) for row in delivery_rows.tries_of(store, delivery)]
        open_in = [at for state, at in tries if not state.final]
        published_in = [at for state, at in tries if state is State.PUBLISHED]
        if published_in:
            why = f"What failed of this post was published by a later one: {published_in[-1]}."
        elif open_in:
            why = f"What failed of this post is being published again by another one: {open_in[-1]}."
        elif any(state is State.UNCONFIRMED for state, _ in tries):
            unknown.append(delivery)
        else:
            certain.append(delivery)
    return RetryOutlook(certain, unknown, why)


def _to_try_again(tx: Tx, post_id: str, include_unknown: bool) -> list[Row]:
    found = outlook(tx, post_id)
    chosen = found.certain + found.unknown if include_unknown else found.certain
    if not chosen:
        raise Conflict(ONLY_UNKNOWN if found.unknown else found.why)
    return sorted(chosen, key=lambda delivery: delivery["position"])


def _targets(tx: Tx, failed: Sequence[Row], media: Sequence[DraftMedia]) -> list[Target]:
    """Where it goes, with the options that were applied there. Raises InvalidRequest."""
    targets, gone = [], []
    errors = drafts.unusable_media(tx, media)
    for delivery in failed:
        profile = profile_rows.find(tx, delivery["profile_id"])
        options = json.loads(delivery["options"])
        if profile is None or profile.status is ProfileStatus.DISCONNECTED:
            gone.append(f"{delivery['provider']} “{delivery['profile_name']}”")
        else:
            targets.append(Target(profile, options, delivery["retry_of"] or delivery["id"]))
        errors += drafts.unusable_in_options(tx, {delivery["provider"]: options})
    errors += drafts.oversized((target.profile.provider, target.options) for target in targets)
    if gone:
        what = f"can no longer be reached: {', '.join(gone)} was disconnected; create a post for its new profile"
        errors.insert(0, FieldError(("profiles",), what))
    if errors:
        raise InvalidRequest.of(list({error.path: error for error in reversed(errors)}.values())[::-1])
    return targets
