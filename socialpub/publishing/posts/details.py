"""The details of one post for pages and commands: each delivery with its plan, attempts and wait."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from socialpub.accounts import remedies
from socialpub.core.clock import later, parse, stamp
from socialpub.db.connection import Database
from socialpub.db.delivery import Delivery
from socialpub.db.models import DeliveryRow
from socialpub.db.queries import api_json
from socialpub.db.states import COMMITS, State
from socialpub.db.tables import artifact_rows, audit_log, delivery_rows, profile_rows, waits
from socialpub.db.tables.audit_log import AuditEntry
from socialpub.db.tables.log_entries import AttemptOutcome
from socialpub.db.tables.waits import REASONS, WaitReason
from socialpub.providers.base import LINK_CARD
from socialpub.providers.registry import DRAFT_MODES
from socialpub.publishing.delivery import waiting
from socialpub.runtime import Runtime

IN_APP = "inApp"
"""The outcome of a draft that the owner finishes in the network's app."""
AT_WORK = "A worker is processing it now."
ITS_TIME = "The scheduled time."
MAX_REPLIES = 20
ITS_TURN = "Earlier posts to the same account."


@dataclass(frozen=True, slots=True)
class PlanStep:
    name: str
    kind: str
    """`prepare`, `poll`, `commit` or `repeatable`."""
    done: bool
    is_next: bool

    @property
    def commits(self) -> bool:
        return self.kind in COMMITS


@dataclass(frozen=True, slots=True)
class DeliveryWait:
    """The sentence of a delivery's wait, and the end of the wait if it is known."""

    sentence: str
    until: str | None = None
    reason: WaitReason | None = None
    """None: no other post and no network delays the delivery."""
    since: str = ""
    code: str | None = None
    post_id: str | None = None
    """The post to which this post replies, if the delivery waits for it."""


@dataclass(frozen=True, slots=True)
class DeliveryDetails:
    delivery: Delivery
    shown: dict[str, Any]
    """As the API shows it."""
    steps: list[PlanStep]
    attempts: list[dict[str, Any]]
    """As the API shows them, oldest first."""
    waits_for: DeliveryWait | None
    other_tries: list[str]
    """The posts of the delivery's other retries."""
    replies: list[str]
    """The first posts that reply to this delivery, at most MAX_REPLIES."""

    @property
    def link_card(self) -> dict[str, Any] | None:
        """The link card that waits for the owner's approval or was approved, as `read_card` returns it."""
        return self.delivery.memo.get(LINK_CARD)

    def waits_by(self, reason: WaitReason) -> bool:
        """Return whether this is the wait to show."""
        return self.waits_for is not None and self.waits_for.reason is reason

    @property
    def is_unapproved(self) -> bool:
        return self.waits_by(WaitReason.APPROVAL)

    @property
    def outcome(self) -> str:
        """`pending`, `published`, `failed`, `unknown` or `canceled`."""
        return self.delivery.state.outcome


@dataclass(frozen=True, slots=True)
class PostDetails:
    post: dict[str, Any]
    """As the API shows it."""
    deliveries: list[DeliveryDetails]
    attempts: list[dict[str, Any]]
    file_names: dict[str, str]
    """The file names by artifact."""
    history: list[AuditEntry]
    """The actions of owners."""

    @property
    def waits_for_approval(self) -> bool:
        return any(delivery.is_unapproved for delivery in self.deliveries)

    @property
    def reads_card(self) -> bool:
        """Whether the worker still reads the page of a link card, so that the post cannot be approved yet."""
        return any(
            "unread" in (delivery.link_card or ()) for delivery in self.deliveries if not delivery.delivery.state.final
        )

    @property
    def version(self) -> str:
        """A digest of everything that will be public, and where: an approval applies to one version."""
        content = [self.post.get(name) for name in ("updatedAt", "body", "scheduledAt")]
        content.append([[item["artifactId"], item.get("alt")] for item in self.post["media"]])
        for delivery in self.deliveries:
            row = delivery.delivery
            content.append(
                [row.profile_id, delivery.shown["profileName"], row.options, row.reply_to, delivery.link_card]
            )
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]

    @property
    def waits_for_post(self) -> bool:
        return any(delivery.waits_by(WaitReason.PARENT) for delivery in self.deliveries)


def load_attempts(rt: Runtime, db: Database, post_id: str) -> bytes:
    """Return the JSON of the attempts of a post. A present wait is the last attempt of its delivery."""
    return _attempts(rt, db, post_id, list_waits(rt, db, post_id))


def _attempts(rt: Runtime, db: Database, post_id: str, waits_by_delivery: Mapping[str, DeliveryWait]) -> bytes:
    rows = {}
    for delivery_id, wait in waits_by_delivery.items():
        is_held = wait.reason not in (None, WaitReason.EQUAL) and REASONS[wait.reason].needs_act
        outcome = AttemptOutcome.HELD if is_held else AttemptOutcome.WAITING
        values = {"message": wait.sentence, "code": wait.code, "until": wait.until}
        rows[delivery_id] = {"since": wait.since, "outcome": outcome, **values}
    return api_json.attempts(db, post_id, rt.stamp(), rows)


def list_waits(rt: Runtime, db: Database, post_id: str) -> dict[str, DeliveryWait]:
    """Return the waits of a post's deliveries that attempts and pages show, by delivery."""
    return {row.delivery_id: _describe_wait(rt, db, row) for row in waits.list_of_post(db, post_id, rt.stamp())}


def _describe_wait(rt: Runtime, db: Database, row: Any) -> DeliveryWait:
    reason, until, parent = WaitReason(row.reason), row.until, None
    sentence = REASONS[reason].sentence.format(message=row.message, since=row.since)
    match reason:
        case WaitReason.RECONNECT:
            profile = profile_rows.get(db, row.profile_id)
            sentence = remedies.reconnect_message(profile.provider, profile.reason)
            own = waits.total_spans(db, profile.id, parse(row.due_at), (WaitReason.GAP, WaitReason.STEP))
            until = stamp(later(parse(row.due_at), rt.settings.publishing.max_lateness) + own)
        case WaitReason.APPROVAL:
            until = stamp(waiting.approval_deadline(rt, row.due_at))
        case WaitReason.PARENT:
            parent = row.message
    return DeliveryWait(sentence, until, reason, row.since, row.code, parent)


def load_details(rt: Runtime, db: Database, post_id: str) -> PostDetails | None:
    """Return the details of a post. None: no post has this id."""
    post_json = api_json.post(db, post_id)
    if post_json is None:
        return None
    post = json.loads(post_json)
    waits_by_delivery = list_waits(rt, db, post_id)
    attempts = json.loads(_attempts(rt, db, post_id, waits_by_delivery))
    rows = delivery_rows.list_of_post(db, post_id)
    artifacts = [artifact_rows.find(db, item["artifactId"]) for item in post["media"]]
    return PostDetails(
        post,
        [
            _details(db, row, delivery, attempts, _wait(row, waits_by_delivery.get(row.id), attempts, rt.stamp()))
            for row, delivery in zip(rows, post["deliveries"], strict=True)
        ],
        attempts,
        {row.id: row.file_name for row in artifacts if row is not None},
        audit_log.list_of_subject(db, post_id),
    )


def owner_outcome(provider: str, outcome: str, mode: str | None, provider_post_id: str | None) -> str:
    """Return the outcome for the owner: `IN_APP` for a published draft without a post id.

    The network does not report when the owner finishes a draft in its app.
    """
    is_draft = mode is not None and DRAFT_MODES.get(provider) == mode
    return IN_APP if is_draft and outcome == "published" and provider_post_id is None else outcome


def _details(
    db: Database, row: DeliveryRow, shown: dict[str, Any], attempts: list[dict[str, Any]], wait: DeliveryWait | None
) -> DeliveryDetails:
    delivery = Delivery.from_row(row)
    own = [attempt for attempt in attempts if attempt["deliveryId"] == delivery.id]
    tries = [attempt.post_id for attempt in delivery_rows.list_tries(db, row.first_id) if attempt.id != delivery.id]
    replies = delivery_rows.list_replies(db, row.first_id, MAX_REPLIES)
    return DeliveryDetails(delivery, shown, _steps(delivery), own, wait, tries, replies)


def _steps(delivery: Delivery) -> list[PlanStep]:
    done = len(delivery.plan or ()) if delivery.state is State.PUBLISHED else delivery.step
    return [
        PlanStep(name, kind, index < done, not delivery.state.final and index == delivery.step)
        for index, (name, kind) in enumerate(delivery.plan or [])
    ]


def _wait(row: DeliveryRow, wait: DeliveryWait | None, attempts: list[dict[str, Any]], now: str) -> DeliveryWait | None:
    if State(row.state).final:
        return None
    if row.state == State.RUNNING:
        return DeliveryWait(AT_WORK)
    if wait is not None:
        return wait
    if row.run_at <= now:
        return DeliveryWait(ITS_TURN)
    last: dict[str, Any] = next((attempt for attempt in reversed(attempts) if attempt["deliveryId"] == row.id), {})
    # The message of an ended attempt, such as an approval, is not the reason of this wait.
    sentence = ITS_TIME if last.get("outcome") == AttemptOutcome.DONE else last.get("message", ITS_TIME)
    return DeliveryWait(sentence, row.run_at)
