"""What the specification (section 3) and the contract (section 4) say of posts, without any of the appliance's code.

The model knows what was asked and what the networks made. It says what a request must be answered, and of what an
answer shows whether that can be true.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.support.oracle import Stated, find_untruths

FINAL = ("published", "failed", "canceled")


@dataclass(slots=True)
class ModelProfile:
    id: str
    provider: str
    account_id: str
    disconnected: bool = False


@dataclass(slots=True)
class ModelPost:
    """`told` is the last answer about it. A post made by a retry belongs to the `family` of the first one; all of a
    family have the same text."""

    id: str
    body: str
    profiles: Sequence[ModelProfile]
    scheduled_at: datetime | None
    family: int
    canceled: bool = False
    may_have_begun: bool = False
    """It was due while a worker ran, or its owner said so."""
    is_of_agent: bool = False
    """The key with approval created it, so this key may change it."""
    needs_approval: bool = False
    """The owner has not approved its present version, which a key with approval created, changed or retried."""
    told: dict[str, Any] = field(default_factory=dict)

    @property
    def status(self) -> str:
        return str(self.told["status"])

    def delivery(self, profile_id: str) -> dict[str, Any] | None:
        return next((one for one in self.told["deliveries"] if one["profileId"] == profile_id), None)

    def may_be_changed(self, now: datetime) -> bool:
        """PATCH: a scheduled post whose time lies ahead."""
        return self.status == "scheduled" and self.scheduled_at is not None and self.scheduled_at > now

    def may_be_canceled(self) -> bool:
        """None of its deliveries has started; what is due may wait for a worker or a pause."""
        return self.status == "scheduled"


def may_be_sent(posts: Sequence[ModelPost], account_id: str, text: str) -> bool:
    """Whether a delivery with this text to this account may call its network: it is open and needs no approval."""
    return any(
        post.body == text and not post.needs_approval and (not post.told or delivery["status"] == "pending")
        for post in posts
        for profile in post.profiles
        if profile.account_id == account_id and (delivery := post.delivery(profile.id) if post.told else {}) is not None
    )


def to_retry(post: ModelPost, family: Sequence[ModelPost], include_unknown: bool) -> list[ModelProfile]:
    """The profiles that a retry of this post is for: where it failed, and no other try succeeded or goes on."""
    found = []
    for profile in post.profiles:
        own = post.delivery(profile.id)
        if own is None or own["status"] != "failed":
            continue
        tries = {
            Stated.from_api(delivery).outcome for each in family if (delivery := each.delivery(profile.id)) is not None
        }
        if tries & {"published", "pending"} or ("unknown" in tries and not include_unknown):
            continue
        found.append(profile)
    return found


# --- what cannot be true ----------------------------------------------------------------------------------------------


def untruths(post: ModelPost, told: Mapping[str, Any], now: datetime) -> Iterator[str]:
    """Yield contradictions to the request or to an earlier answer."""
    deliveries: list[dict[str, Any]] = told["deliveries"]
    if [delivery["profileId"] for delivery in deliveries] != [profile.id for profile in post.profiles]:
        yield "it has other deliveries than were asked for"
    if told.get("body") != post.body:
        yield f"its body is {told.get('body')!r}, not {post.body!r}"
    yield from _of_status(post, told["status"], [delivery["status"] for delivery in deliveries], now)
    for delivery in deliveries:
        if (delivery["status"] == "failed") != ("errorMessage" in delivery):
            yield f"{delivery['status']} with the message {delivery.get('errorMessage')!r}"
        before = post.delivery(delivery["profileId"]) if post.told else None
        if (
            before is not None
            and before["status"] in FINAL
            and any(delivery.get(name) != before[name] for name in before)
        ):
            yield f"what was final has changed: {before} became {delivery}"


def _of_status(post: ModelPost, status: str, deliveries: Sequence[str], now: datetime) -> Iterator[str]:
    if post.canceled:
        if status != "canceled" or set(deliveries) != {"canceled"}:
            yield f"it was canceled, and is {status} with {deliveries}"
        return
    ended = "pending" not in deliveries
    if "canceled" in deliveries or (status == "settled") != ended:
        yield f"it was not canceled, but is {status} with {deliveries}"
    if not post.may_have_begun and status != "scheduled":
        yield f"its time is in the future, but it is {status}"
    if post.scheduled_at is None and status == "scheduled":
        yield "it waits for a time that it does not have"
    before = post.told.get("status")
    if before in ("settled", "canceled", "pending") and status == "scheduled":
        yield f"it was {before}, and waits again"


def contradictions(family: Sequence[ModelPost], texts: set[str], made: Mapping[tuple[str, str], int]) -> Iterator[str]:
    """What contradicts what the networks have. `texts` are all that these posts ever said; `made` counts by account and
    text."""
    accounts = {profile.account_id for post in family for profile in post.profiles}
    for account_id in sorted(accounts):
        count = sum(made.get((account_id, text), 0) for text in texts)
        stated = [
            Stated.from_api(delivery)
            for post in family
            for profile in post.profiles
            if profile.account_id == account_id and (delivery := post.delivery(profile.id)) is not None
        ]
        for untruth in find_untruths(stated, [None] * count, ids_are_known=False):
            yield f"{account_id}: {untruth}, and the deliveries are {stated}"
