"""The alerts: problems that need the owner, each with a sentence, a remedy and a page.

The dashboard, `doctor` and notifications use the same words. All facts come from rows and the disk within milliseconds,
so this code may run on the event loop. It does not call networks. An alert keeps its key while it lasts.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from socialpub.accounts import api_keys, remedies, upkeep
from socialpub.accounts.remedies import Surface
from socialpub.core import commands, units
from socialpub.core.clock import after, parse, stamp
from socialpub.core.errors import cut
from socialpub.core.settings.loader import Settings
from socialpub.core.settings.schema import AlertKind
from socialpub.db import appliance_state, clock_jumps
from socialpub.db.connection import Database
from socialpub.db.models import ApiKeyRow, ProfileRow, StoredWaitRow
from socialpub.db.queries import log_list
from socialpub.db.queries.log_list import FailedDeliveries, FailedDelivery
from socialpub.db.states import ProfileStatus
from socialpub.db.tables import delivery_rows, post_rows, profile_rows, waits
from socialpub.ops import health
from socialpub.ops.backup import last_backup
from socialpub.ops.backup.last_backup import LastBackup
from socialpub.ops.health import Finding
from socialpub.ops.webhooks import receivers
from socialpub.ops.webhooks.receivers import WebhookHealth
from socialpub.providers.registry import LABELS
from socialpub.publishing.delivery.resume import Resumed
from socialpub.runtime import Runtime

FAILED_SINCE = timedelta(days=7)
NEAR_FLOOR = 2.0
"""The multiple of the floor below which the next videos may not fit."""
MAX_FAILED = 5
MAX_TEXT = 60
"""The characters of a post's text in an alert."""
MAX_UNAPPROVED = 10
"""The posts without approval that have an alert. An agent may create thousands."""


@dataclass(frozen=True, slots=True)
class DiskSpace:
    free_bytes: int
    floor_bytes: int
    """`health.disk_floor_bytes`, below which nothing is accepted."""

    @property
    def is_full(self) -> bool:
        return self.free_bytes < self.floor_bytes

    @property
    def is_nearly_full(self) -> bool:
        return not self.is_full and self.free_bytes < NEAR_FLOOR * self.floor_bytes


@dataclass(frozen=True, slots=True)
class AlertFacts:
    """The facts behind the alerts. Instants are stamps."""

    paused_at: str | None
    restored_from: str | None
    """The instant of the restored backup, until publishing is resumed."""
    restored_keys: list[ApiKeyRow]
    """Valid API keys that came with a restored backup, until the owner keeps or revokes them."""
    profiles: list[tuple[ProfileRow, str]]
    """The accounts to reconnect now or within a week, each with the reason and the remedy."""
    failed: FailedDeliveries
    """The failures of the last 7 days, except retried deliveries and deliveries that the owner stopped."""
    holds: list[tuple[StoredWaitRow, str]]
    """The networks that refuse this app, each with a description of the waiting work."""
    unapproved: list[Any]
    """The first posts that wait for the owner's approval (`delivery_rows.list_unapproved`)."""
    unapproved_count: int
    worker: list[Finding]
    failing_tasks: str | None
    clock_jump: str | None
    disk: DiskSpace
    webhooks: list[WebhookHealth]
    """The webhooks that are an hour late or disabled."""
    backup: LastBackup
    backup_reminder: str | None


def load_alert_facts(rt: Runtime, surface: Surface = Surface.DASHBOARD) -> AlertFacts:
    """Return the facts, with remedies for this surface."""
    db, now = rt.db, rt.now()
    backup = last_backup.load(db)
    return AlertFacts(
        paused_at=appliance_state.paused_at(db),
        restored_from=appliance_state.restored_from(db),
        restored_keys=api_keys.list_undecided(db, stamp(now)),
        profiles=[
            (row, warning)
            for row in profile_rows.list_all(db)
            if (warning := upkeep.describe_warning(row, now, surface)) is not None
        ],
        failed=log_list.recent_failures(db, _failed_since(db, now), MAX_FAILED),
        holds=[(hold, waits.describe_hold(hold.calls)) for hold in waits.list_holds(db)],
        unapproved=delivery_rows.list_unapproved(db, MAX_UNAPPROVED, rt.settings.publishing.max_lateness),
        unapproved_count=delivery_rows.count_unapproved(db),
        worker=list(health.worker_problems(db, now)),
        failing_tasks=health.describe_failing_tasks(db, now),
        clock_jump=health.describe_clock_jump(db, now),
        disk=DiskSpace(rt.files.free_bytes(), int(rt.settings.health.disk_floor_bytes)),
        webhooks=[webhook for webhook in receivers.list_health(db, now) if webhook.is_late or webhook.row.disabled_at],
        backup=backup,
        backup_reminder=backup.reminder(now),
    )


def _failed_since(db: Database, now: datetime) -> str:
    """Return the start of the reported failures, without those of the original installation of a restored backup."""
    original_until = appliance_state.get(db, appliance_state.ORIGINAL_UNTIL)
    return max(stamp(now - FAILED_SINCE), after(original_until, 0.001) if original_until else "")


CONTINUES = "Publishing continues. Due posts are published now, the oldest first."
STILL_SCHEDULED = (
    "These posts are still scheduled. Each post is published at its scheduled time, unless the account already shows "
    "the post. "
    "The original installation may have changed or canceled posts since the backup. "
    "Cancel the posts that must not be published."
)


def paused_sentences(db: Database, surface: Surface) -> tuple[str, str] | None:
    """Return why publishing is paused and how to resume, or None if publishing is not paused."""
    restored_from, paused_at = appliance_state.restored_from(db), appliance_state.paused_at(db)
    if paused_at is None:
        return None
    if restored_from is not None:
        return (
            f"This installation was restored from a backup of {restored_from} and is still paused.",
            f"Stop the original installation permanently. Then {remedies.resume(surface)}.",
        )
    return f"Publishing has been paused since {paused_at}.", f"To continue, {remedies.resume(surface)}."


def resume_sentences(resumed: Resumed) -> Iterator[str]:
    """Yield the sentences about a resume, except the sentence about late posts."""
    yield CONTINUES
    if resumed.read_back:
        were = units.count(resumed.read_back, "delivery was", "deliveries were")
        yield f"{were} due since the backup. socialpub reads the accounts back and does not send these posts again."


def too_late_sentence(posts: int, settings: Settings) -> str | None:
    """Return the sentence about posts that are too late to be sent, or None if there are none."""
    if not posts:
        return None
    are, limit = units.count(posts, "post is", "posts are"), units.duration(settings.publishing.max_lateness)
    return f"{are} more than {limit} late (publishing.max_lateness) and will not be sent."


KEYS_MAY_BE_REVOKED = "A key that was revoked after the backup is valid again."


def valid_keys_sentence(keys: Sequence[ApiKeyRow]) -> str:
    came = units.count(len(keys), "API key", "API keys")
    return f"{came} came with the restored backup and {'is' if len(keys) == 1 else 'are'} valid."


def describe_key(key: ApiKeyRow) -> str:
    used = f"last used at {key.last_used_at}" if key.last_used_at else "never used"
    return f"“{key.name}” ({key.id}, {key.scope}), {used}"


def decide_keys(surface: Surface) -> str:
    """Return how the owner keeps or revokes the restored keys."""
    if surface is Surface.DASHBOARD:
        return "Press “Keep keys” on the overview, or revoke the keys under Keys."
    return (
        f"To revoke them, run `{commands.line('admin', 'resume', '--revoke-keys')}`. "
        f"To keep them, run `{commands.line('admin', 'resume', '--keep-keys')}`. "
        f"Either command also ends a pause. To revoke a single key, run `{commands.line('admin', 'revoke-key', 'ID')}`."
    )


PAUSED_FOR_LONG = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Alert:
    kind: AlertKind
    key: str
    """The part before the last colon is the subject. A subject has one alert at a time."""
    sentence: str
    remedy: str
    path: str
    """The page of the dashboard that shows the alert."""
    must_be_fixed: bool = True
    """False if the state is allowed and may be intended."""
    notifies: bool = True
    """Whether the owner is notified. Otherwise, the alert is only shown."""
    is_event: bool = False
    """Whether the owner is notified only once, without reminders and without an end."""
    details: tuple[str, ...] = ()
    """The single cases, one per line."""


def subject_of(key: str) -> str:
    return key.rpartition(":")[0]


def list_alerts(rt: Runtime, surface: Surface, facts: AlertFacts | None = None) -> Iterator[Alert]:
    """Yield an alert for each fact except failed deliveries, with remedies for this surface."""
    facts = facts or load_alert_facts(rt, surface)
    yield from _paused(rt, facts, surface)
    for finding in facts.worker:
        yield Alert(AlertKind.WORKER, f"worker:{finding.code}:", finding.message, finding.remedy or "", "/system")
    if facts.failing_tasks is not None:
        remedy = f"Read {commands.log('socialpub-worker')} for the reason."
        yield Alert(AlertKind.WORKER, "worker:tasks:", facts.failing_tasks, remedy, "/system")
    yield from _holds(rt, facts, surface)
    yield from (_account(rt, profile, surface) for profile, _ in facts.profiles)
    yield from (_approval(post, surface) for post in facts.unapproved)
    yield from _disk(rt, facts)
    yield from _clock(rt, facts)
    yield from _webhooks(facts)
    yield from _backup(rt, facts, surface)


def _paused(rt: Runtime, facts: AlertFacts, surface: Surface) -> Iterator[Alert]:
    sentences = paused_sentences(rt.db, surface)
    if sentences is not None and facts.paused_at is not None:
        notifies = rt.now() - parse(facts.paused_at) >= PAUSED_FOR_LONG
        yield Alert(AlertKind.PAUSED, "paused:", *sentences, "/system", must_be_fixed=False, notifies=notifies)


def _holds(rt: Runtime, facts: AlertFacts, surface: Surface) -> Iterator[Alert]:
    for hold, what in facts.holds:
        label = rt.providers[hold.subject].label
        yield Alert(
            AlertKind.NETWORK,
            f"network:{hold.subject}/{hold.calls}:",
            f"{label} has refused this app since {hold.since} ({what}): {hold.message}",
            f"Resolve this with {label}. socialpub tries again at {hold.until}. "
            f"To try at once, {remedies.try_held(surface)}.",
            "/system",
            notifies=hold.calls != waits.QUESTIONS,
        )


def _account(rt: Runtime, profile: ProfileRow, surface: Surface) -> Alert:
    name = f"{profile.name} ({rt.providers[profile.provider].label})"
    if profile.status == ProfileStatus.REAUTH_REQUIRED:
        why = (profile.reason or "its tokens are refused").rstrip(".")
        state, sentence = "reconnect", f"{name} must be connected again: {why}."
    else:
        ends = profile.expires_at or ""
        can = "could" if parse(ends) <= rt.now() else "can"
        state, sentence = "lapses", f"{name} {can} publish only until {ends}."
    remedy = remedies.sentence(remedies.reconnect(profile.provider, surface))
    return Alert(AlertKind.ACCOUNT, f"account:{profile.id}:{state}", sentence, remedy, f"/profiles/{profile.id}")


def _approval(post: Any, surface: Surface) -> Alert:
    # A post that needs approval again is another alert.
    since = "".join(filter(str.isdigit, post.required_at))
    text = _beginning(post.text) or "a post without text"
    how = remedies.sentence(remedies.approve(post.post_id, surface))
    return Alert(
        AlertKind.APPROVAL,
        f"approval:{post.post_id}/{since}",
        f"A post of the key “{post.key_name}” waits for your approval: {text}",
        f"{how} Without your approval, it fails at {post.until}.",
        f"/posts/{post.post_id}",
        must_be_fixed=False,
        is_event=True,
    )


def _disk(rt: Runtime, facts: AlertFacts) -> Iterator[Alert]:
    disk = facts.disk
    room = f"{disk.free_bytes // 1_000_000:,} MB are free for {rt.settings.data_dir}"
    floor = f"health.disk_floor_bytes ({disk.floor_bytes // 1_000_000:,} MB)"
    remedy = "Free disk space, or move data_dir to a larger disk."
    if disk.is_full:
        yield Alert(AlertKind.DISK, "disk:full", f"{room}, less than {floor}.", remedy, "/system")
    elif disk.is_nearly_full:
        sentence = f"{room}. Below {floor}, socialpub does not accept media."
        yield Alert(AlertKind.DISK, "disk:low", sentence, remedy, "/system", must_be_fixed=False)


def _clock(rt: Runtime, facts: AlertFacts) -> Iterator[Alert]:
    jumped = clock_jumps.recent_jump(rt.db, rt.now())
    if jumped is not None and facts.clock_jump is not None:
        yield Alert(
            AlertKind.CLOCK,
            f"clock:{jumped.jumped_at}",
            facts.clock_jump,
            "If the clock is correct now, no action is needed. Otherwise, set it.",
            "/system",
            must_be_fixed=False,
            is_event=True,
        )


def _webhooks(facts: AlertFacts) -> Iterator[Alert]:
    for webhook in facts.webhooks:
        state = "disabled" if webhook.row.disabled_at else "late"
        key = f"webhook:{webhook.row.id}:{state}"
        yield Alert(AlertKind.WEBHOOK, key, *describe_webhook(webhook), "/system")


def describe_webhook(webhook: WebhookHealth) -> tuple[str, str]:
    """Return the problem of a webhook and its remedy."""
    row = webhook.row
    if row.disabled_at:
        remove = commands.line("admin", "remove-webhook", row.id)
        add = commands.line("admin", "add-webhook", "URL")
        return (
            f"The webhook {row.name} answered 410 (gone) at {row.disabled_at} and gets no more events.",
            f"Run `{remove}`. To send events there again, run `{add}`.",
        )
    answer = f" Its last response, at {row.last_response_at}: {row.last_response}." if row.last_response else ""
    retry = f" socialpub retries at {row.next_at}." if row.next_at else ""
    return (
        f"The webhook {row.name} is late: an event has waited since {webhook.waiting_since}.{answer}",
        f"Check the receiver.{retry} To test it, run `{commands.line('admin', 'test-webhook', row.id)}`.",
    )


def _backup(rt: Runtime, facts: AlertFacts, surface: Surface) -> Iterator[Alert]:
    if facts.backup_reminder is None:
        return
    # Without posts there is nothing to lose and no reason to notify the owner.
    notifies = True
    if facts.backup.made_at is None and facts.backup.failed_at is None:
        first = post_rows.oldest_created_at(rt.db)
        notifies = first is not None and rt.now() - parse(first) > last_backup.MAX_AGE
    state = "failed" if facts.backup.failed_at else "old"
    yield Alert(
        AlertKind.BACKUP,
        f"backup:{state}",
        facts.backup_reminder,
        last_backup.describe_remedy(surface, failed=facts.backup.failed_at is not None),
        "/system",
        # A scheduled backup that fails is more than a reminder: its owner relies on it.
        must_be_fixed=facts.backup.failed_at is not None,
        notifies=notifies,
    )


# --- failed deliveries and drafts, which only notifications report as alerts ------------------------------------------

FAILURES_NOT_OLDER_THAN = timedelta(days=7)
DRAFT_KEPT_BY_NETWORK = timedelta(hours=24)
"""The time until TikTok drops an unfinished draft (integrators, 2026)."""
DRAFT_REMEDY = (
    "Open the notification in the network's app and finish the post there. Copy the caption from the post's page."
)
ERROR_CHARACTERS = 200


def start_reporting_failures(rt: Runtime, tx: Database) -> None:
    """Report failures from now on, unless reporting has already started."""
    newest = log_list.newest_failure(tx)
    appliance_state.put_if_absent(tx, appliance_state.FAILURES_ALERTED, str(newest))


def record_sent_failures(tx: Database, through: int) -> None:
    """Record the log entry through which failures were sent, so that a change of the clock has no effect."""
    appliance_state.put(tx, appliance_state.FAILURES_ALERTED, str(through))


def find_failures(rt: Runtime) -> tuple[int, Alert | None]:
    """Return the log's last failure, and the alert about unsent failures, without retried and stopped deliveries."""
    sent = int(appliance_state.get(rt.db, appliance_state.FAILURES_ALERTED) or 0)
    through = log_list.newest_failure(rt.db)
    if through <= sent:
        return sent, None
    since = stamp(rt.now() - FAILURES_NOT_OLDER_THAN)
    failures = log_list.failures_after(rt.db, sent, since, MAX_FAILED)
    if not failures.newest:
        return through, None
    count = failures.failed + failures.unknown
    sentences = []
    if failures.failed:
        sentences.append(units.count(failures.failed, "delivery failed", "deliveries failed"))
    if failures.unknown:
        what = units.count(failures.unknown, "delivery", "deliveries")
        sentences.append(f"the outcome of {what} is unknown")
    sentence = f"{'At least ' if count >= log_list.MAX_FAILURES else ''}{', and '.join(sentences)}."
    remedy = "Check each delivery, and retry the posts that you still want to publish."
    if failures.unknown:
        remedy = "If the outcome is unknown, check the account first: the post may be published. Then retry the post."
    details = [_describe_failure(failure) for failure in failures.newest]
    if count > len(details):
        details.append(f"and {count - len(details):,} more")
    return through, Alert(
        AlertKind.DELIVERY,
        f"delivery:{sent}",
        f"{sentence[0].upper()}{sentence[1:]}",
        remedy,
        f"/posts/{failures.newest[0].post_id}" if count == 1 else "/",
        is_event=True,
        details=tuple(details),
    )


def _describe_failure(failure: FailedDelivery) -> str:
    text = _beginning(failure.text)
    post = f"“{text}”" if text else "A post without text"
    label = LABELS.get(failure.provider, failure.provider)
    return f"{post} to {failure.profile_name} ({label}): {cut(failure.error, ERROR_CHARACTERS)}"


def find_drafts(rt: Runtime) -> Iterator[Alert]:
    """Yield an alert for each draft in an app's inbox, oldest first, until the draft is posted or dropped."""
    rows = delivery_rows.published_without_id(rt.db, stamp(rt.now() - DRAFT_KEPT_BY_NETWORK))
    for row in (row for row in rows if json.loads(row.memo).get("in_inbox")):
        post = post_rows.find(rt.db, row.post_id)
        text = _beginning(None if post is None else post.body)
        where = f"the {LABELS.get(row.provider, row.provider)} inbox of {row.profile_name}"
        yield Alert(
            AlertKind.DRAFT,
            f"draft:{row.id}:inbox",
            f"A draft is waiting in {where}{f': “{text}”' if text else ''}.",
            DRAFT_REMEDY,
            f"/posts/{row.post_id}",
            must_be_fixed=False,
            is_event=True,
        )


def _beginning(text: str | None) -> str:
    return cut(" ".join((text or "").split()), MAX_TEXT)
