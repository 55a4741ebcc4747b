"""The alerts: problems that need the owner, each with a sentence, a remedy and a page.

The dashboard, `doctor` and notifications use the same words. All facts come from rows and the disk within milliseconds,
so this code may run on the event loop. It does not call networks. An alert keeps its key while it lasts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from socialpub.accounts import api_keys, hints, upkeep
from socialpub.accounts.hints import Surface
from socialpub.core import commands, units
from socialpub.core.clock import after, parse, stamp
from socialpub.core.errors import cut
from socialpub.core.settings.loader import Settings
from socialpub.core.settings.schema import AlertKind
from socialpub.db import appliance_state, clock_jumps
from socialpub.db.connection import Database, Row
from socialpub.db.models import ApiKeyRow, ProfileRow, StoredWaitRow
from socialpub.db.queries import log_list
from socialpub.db.queries.log_list import FailedDeliveries
from socialpub.db.states import ProfileStatus
from socialpub.db.tables import delivery_rows, post_rows, profile_rows, waits
from socialpub.ops import health
from socialpub.ops.backup import last_backup
from socialpub.ops.backup.last_backup import LastBackup
from socialpub.ops.health import Finding
from socialpub.ops.webhooks import addresses
from socialpub.ops.webhooks.addresses import WebhookHealth
from socialpub.publishing.delivery.read_back import STOPPED
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
    unapproved: list[Row]
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
    reader, now = rt.reader, rt.now()
    backup = last_backup.load(reader)
    return AlertFacts(
        paused_at=appliance_state.paused_at(reader),
        restored_from=appliance_state.restored_from(reader),
        restored_keys=api_keys.list_undecided(reader, stamp(now)),
        profiles=[
            (row, warning)
            for row in profile_rows.list_all(reader)
            if (warning := upkeep.describe_warning(row, now, surface)) is not None
        ],
        failed=log_list.recent_failures(reader, _failed_since(reader, now), STOPPED, MAX_FAILED),
        holds=[(hold, waits.describe_hold(hold.calls)) for hold in waits.list_holds(reader)],
        unapproved=delivery_rows.list_unapproved(reader, MAX_UNAPPROVED, rt.settings.publishing.max_lateness),
        unapproved_count=delivery_rows.count_unapproved(reader),
        worker=list(health.worker_problems(reader, now)),
        failing_tasks=health.describe_failing_tasks(reader, now),
        clock_jump=health.describe_clock_jump(reader, now),
        disk=DiskSpace(rt.files.free_bytes(), int(rt.settings.health.disk_floor_bytes)),
        webhooks=[one for one in addresses.list_health(reader, now) if one.is_late or one.row.disabled_at],
        backup=backup,
        backup_reminder=backup.reminder(now),
    )


def _failed_since(reader: Database, now: datetime) -> str:
    """Return the start of the reported failures, without those of the original installation of a restored backup."""
    original_until = appliance_state.get(reader, appliance_state.ORIGINAL_UNTIL)
    return max(stamp(now - FAILED_SINCE), after(original_until, 0.001) if original_until else "")


CONTINUES = "Publishing continues. Due posts are published now, the oldest first."
STILL_SCHEDULED = (
    "These posts are still scheduled. Each post is published at its scheduled time, unless the account already shows "
    "the post. "
    "The original installation may have changed or canceled posts since the backup. "
    "Cancel the posts that must not be published."
)


def paused_sentences(reader: Database, surface: Surface) -> tuple[str, str] | None:
    """Return why publishing is paused and how to resume, or None if publishing is not paused."""
    restored_from, paused_at = appliance_state.restored_from(reader), appliance_state.paused_at(reader)
    if paused_at is None:
        return None
    if restored_from is not None:
        return (
            f"This installation was restored from a backup of {restored_from} and is still paused.",
            f"Stop the original installation permanently. Then {hints.resume(surface)}.",
        )
    return f"Publishing has been paused since {paused_at}.", f"To continue, {hints.resume(surface)}."


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
    calls: bool = True
    """Whether the owner is notified. Otherwise, the alert is only shown."""
    passes: bool = False
    """Whether the alert is an event: the owner is notified once, and not about its end."""
    details: tuple[str, ...] = ()
    """The single cases, one per line."""

    @property
    def subject(self) -> str:
        return subject_of(self.key)


def subject_of(key: str) -> str:
    return key.rpartition(":")[0]


def list_alerts(rt: Runtime, surface: Surface, needs: AlertFacts | None = None) -> Iterator[Alert]:
    """Yield an alert for each fact except failed deliveries, with remedies for this surface."""
    needs = needs or load_alert_facts(rt, surface)
    yield from _paused(rt, needs, surface)
    for finding in needs.worker:
        yield Alert(AlertKind.WORKER, f"worker:{finding.code}:", finding.message, finding.remedy or "", "/system")
    if needs.failing_tasks is not None:
        remedy = f"Read {commands.log('socialpub-worker')} for the reason."
        yield Alert(AlertKind.WORKER, "worker:tasks:", needs.failing_tasks, remedy, "/system")
    yield from _holds(rt, needs, surface)
    yield from (_account(rt, profile, surface) for profile, _ in needs.profiles)
    yield from (_approval(post, surface) for post in needs.unapproved)
    yield from _disk(rt, needs)
    yield from _clock(rt, needs)
    yield from _webhooks(needs)
    yield from _backup(rt, needs, surface)


def _paused(rt: Runtime, needs: AlertFacts, surface: Surface) -> Iterator[Alert]:
    sentences = paused_sentences(rt.reader, surface)
    if sentences is not None and needs.paused_at is not None:
        calls = rt.now() - parse(needs.paused_at) >= PAUSED_FOR_LONG
        yield Alert(AlertKind.PAUSED, "paused:", *sentences, "/system", must_be_fixed=False, calls=calls)


def _holds(rt: Runtime, needs: AlertFacts, surface: Surface) -> Iterator[Alert]:
    for hold, what in needs.holds:
        label = rt.providers[hold.subject].label
        yield Alert(
            AlertKind.NETWORK,
            f"network:{hold.subject}/{hold.calls}:",
            f"{label} has refused this app since {hold.since} ({what}): {hold.message}",
            f"Resolve this with {label}. socialpub tries again at {hold.until}. "
            f"To try at once, {hints.try_held(surface)}.",
            "/system",
            calls=hold.calls != waits.QUESTIONS,
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
    remedy = hints.sentence(hints.reconnect(profile.provider, surface))
    return Alert(AlertKind.ACCOUNT, f"account:{profile.id}:{state}", sentence, remedy, f"/profiles/{profile.id}")


def _approval(post: Row, surface: Surface) -> Alert:
    # A post that needs approval again is another alert. Each alert of a day waits longer for others.
    since = "".join(filter(str.isdigit, post.required_at))
    text = cut(" ".join((post.text or "").split()), MAX_TEXT) or "a post without text"
    return Alert(
        AlertKind.APPROVAL,
        f"approval:{post.post_id}/{since}",
        f"A post of the key “{post.key_name}” waits for your approval: {text}",
        f"{hints.sentence(hints.approve(post.post_id, surface))} Without your approval, it fails at {post.until}.",
        f"/posts/{post.post_id}",
        must_be_fixed=False,
        passes=True,
    )


def _disk(rt: Runtime, needs: AlertFacts) -> Iterator[Alert]:
    disk = needs.disk
    room = f"{disk.free_bytes // 1_000_000:,} MB are free for {rt.settings.data_dir}"
    floor = f"health.disk_floor_bytes ({disk.floor_bytes // 1_000_000:,} MB)"
    remedy = "Free disk space, or move data_dir to a larger disk."
    if disk.is_full:
        yield Alert(AlertKind.DISK, "disk:full", f"{room}, less than {floor}.", remedy, "/system")
    elif disk.is_nearly_full:
        sentence = f"{room}. Below {floor}, socialpub does not accept media."
        yield Alert(AlertKind.DISK, "disk:low", sentence, remedy, "/system", must_be_fixed=False)


def _clock(rt: Runtime, needs: AlertFacts) -> Iterator[Alert]:
    jumped = clock_jumps.recent_jump(rt.reader, rt.now())
    if jumped is not None and needs.clock_jump is not None:
        yield Alert(
            AlertKind.CLOCK,
            f"clock:{jumped.jumped_at}",
            needs.clock_jump,
            "If the clock is correct now, no action is needed. Otherwise, set it.",
            "/system",
            must_be_fixed=False,
            passes=True,
        )


def _webhooks(needs: AlertFacts) -> Iterator[Alert]:
    for one in needs.webhooks:
        state = "disabled" if one.row.disabled_at else "late"
        key = f"webhook:{one.row.id}:{state}"
        yield Alert(AlertKind.WEBHOOK, key, *describe_webhook(one), "/system")


def describe_webhook(one: WebhookHealth) -> tuple[str, str]:
    """Return the problem of a webhook and its remedy."""
    row = one.row
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
        f"The webhook {row.name} is late: an event has waited since {one.waiting_since}.{answer}",
        f"Check the receiver.{retry} To test it, run `{commands.line('admin', 'test-webhook', row.id)}`.",
    )


def _backup(rt: Runtime, needs: AlertFacts, surface: Surface) -> Iterator[Alert]:
    if needs.backup_reminder is None:
        return
    # Without posts there is nothing to lose and no reason to notify the owner.
    calls = True
    if needs.backup.made_at is None and needs.backup.failed_at is None:
        first = post_rows.oldest_created_at(rt.reader)
        calls = first is not None and rt.now() - parse(first) > last_backup.MAX_AGE
    state = "failed" if needs.backup.failed_at else "old"
    yield Alert(
        AlertKind.COPY,
        f"copy:{state}",
        needs.backup_reminder,
        last_backup.describe_remedy(surface, failed=needs.backup.failed_at is not None),
        "/system",
        # A scheduled backup that fails is more than a reminder: its owner relies on it.
        must_be_fixed=needs.backup.failed_at is not None,
        calls=calls,
    )
