"""What needs the owner: the facts, and each as an alert with a sentence, a remedy and a page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from socialpub.accounts import api_keys, hints, token_upkeep
from socialpub.accounts.api_keys import UnrevokedKey
from socialpub.accounts.hints import Surface
from socialpub.core import commands, units
from socialpub.core.clock import after, parse, stamp
from socialpub.core.settings.loader import Settings
from socialpub.core.settings.schema import AlertKind
from socialpub.db import appliance_state, clock_jumps
from socialpub.db.connection import Reader
from socialpub.db.queries import failed_deliveries
from socialpub.db.queries.failed_deliveries import FailedDeliveries
from socialpub.db.tables import holds, post_rows, profile_rows
from socialpub.ops import health
from socialpub.ops.backup import last_backup
from socialpub.ops.backup.last_backup import LastBackup
from socialpub.ops.health import Finding
from socialpub.publishing.delivery.resume import Resumed
from socialpub.runtime import Runtime

# MERGED from ops/overview.py: What the owner sees first: what needs them, then what is published next and what was

FAILED_SINCE = timedelta(days=7)
NEAR_FLOOR = 2.0
"""Less room than so many times what is kept free, and the next videos may not find any."""
MAX_FAILED = 5


@dataclass(frozen=True, slots=True)
class ProfileAlert:
    """An account that must be connected again, now or within a week."""

    id: str
    name: str
    provider: str
    reauth_required: bool
    expires_at: str | None
    reason: str | None
    """What the network said."""
    warning: str
    """Why, and what to do."""


@dataclass(frozen=True, slots=True)
class HeldProvider:
    """A network that refuses this app."""

    provider: str
    scope: str
    what: str
    """What that keeps back, in words."""
    reason: str
    code: str | None
    since: str
    probe_at: str
    """When it is tried again."""


@dataclass(frozen=True, slots=True)
class DiskRoom:
    free_bytes: int
    floor_bytes: int
    """What `health.disk_floor_bytes` keeps free: below that nothing is accepted."""

    @property
    def is_full(self) -> bool:
        return self.free_bytes < self.floor_bytes

    @property
    def is_nearly_full(self) -> bool:
        return not self.is_full and self.free_bytes < NEAR_FLOOR * self.floor_bytes


@dataclass(frozen=True, slots=True)
class Needs:
    """What needs the owner. Instants are stamps."""

    paused_at: str | None
    restored_from: str | None
    """The instant of the copy that this is, until it is resumed."""
    restored_keys: list[UnrevokedKey]
    """Valid API keys that came with a restored backup, until the owner keeps or revokes them."""
    profiles: list[ProfileAlert]
    failed: FailedDeliveries
    """Of the last 7 days, but for what was tried again."""
    holds: list[HeldProvider]
    worker: list[Finding]
    """Late, missing, or with overdue deliveries."""
    clock_jump: str | None
    """A sentence."""
    disk: DiskRoom
    copy: LastBackup
    copy_reminder: str | None
    """A sentence."""

    @property
    def anything(self) -> bool:
        """Whether there is anything at all to be seen to."""
        return any(
            (
                self.paused_at,
                self.restored_keys,
                self.profiles,
                self.failed.newest,
                self.holds,
                self.worker,
                self.clock_jump,
                self.disk.is_full or self.disk.is_nearly_full,
                self.copy_reminder,
            )
        )


def read_needs(rt: Runtime, door: Surface = Surface.DASHBOARD) -> Needs:
    """What needs the owner, with remedies that name what stands at this door."""
    reader, now = rt.reader, rt.now()
    copy = last_backup.read(reader)
    return Needs(
        paused_at=appliance_state.paused_at(reader),
        restored_from=appliance_state.restored_from(reader),
        restored_keys=api_keys.list_undecided(reader, stamp(now)),
        profiles=list(_profiles_in_need(rt, door)),
        failed=failed_deliveries.lately(reader, _failed_since(reader, now), MAX_FAILED),
        holds=[
            HeldProvider(
                row.provider,
                row.scope,
                holds.what(row.scope),
                row.reason,
                row.code,
                row.since,
                row.probe_at,
            )
            for row in holds.list_all(reader)
        ],
        worker=list(health.worker_problems(reader, now)),
        clock_jump=health.clock_jump(reader, now),
        disk=DiskRoom(rt.files.free_bytes(), int(rt.settings.health.disk_floor_bytes)),
        copy=copy,
        copy_reminder=copy.reminder(now, rt.settings.backup.max_age),
    )


def _failed_since(reader: Reader, now: datetime) -> str:
    """A restored installation does not report what its original failed to publish."""
    original_until = appliance_state.get(reader, appliance_state.ORIGINAL_UNTIL)
    return max(stamp(now - FAILED_SINCE), after(original_until, 0.001) if original_until else "")


def _profiles_in_need(rt: Runtime, door: Surface) -> Iterator[ProfileAlert]:
    for row in profile_rows.list_all(rt.reader):
        warning = token_upkeep.warning(row, rt.now(), door)
        if warning is not None:
            needed = row.status == "reauthRequired"
            yield ProfileAlert(row.id, row.name, row.provider, needed, row.expires_at, row.reason, warning)


# MERGED from ops/resume_sentences.py: What going on after a pause means and came to, in the words that every door

CONTINUES = "Publishing continues: what is due is sent, oldest first."
STILL_SCHEDULED = (
    "Still scheduled, and sent at its time unless the account shows it by then. The original may have changed or "
    "canceled some of it since the backup: cancel here what should not go out."
)


def paused_sentences(reader: Reader, door: Surface) -> tuple[str, str] | None:
    """That nothing goes out, why, and how that ends; None when publishing goes on."""
    restored_from, paused_at = appliance_state.restored_from(reader), appliance_state.paused_at(reader)
    if paused_at is None:
        return None
    if restored_from is not None:
        return (
            f"This installation was restored from a backup of {restored_from} and is still paused.",
            f"Stop the original for good. Then {hints.resume(door)}.",
        )
    return f"Publishing has been paused since {paused_at}.", f"To continue, {hints.resume(door)}."


def resume_sentences(resumed: Resumed) -> Iterator[str]:
    """What was resumed, sentence by sentence, but for what is too late."""
    yield CONTINUES
    if resumed.read_back:
        were = "1 delivery was" if resumed.read_back == 1 else f"{resumed.read_back} deliveries were"
        yield f"{were} due since the backup: socialpub reads the accounts back and sends none of them."


def too_late_sentence(posts: int, settings: Settings) -> str | None:
    """The sentence about posts that nothing sends any more; None when there is none."""
    if not posts:
        return None
    are = "1 post is" if posts == 1 else f"{posts} posts are"
    most = units.duration(settings.publishing.max_lateness)
    return f"{are} more than {most} late (publishing.max_lateness) and will not be sent."


KEYS_MAY_BE_REVOKED = "A key that was revoked after the backup is valid again."


def valid_keys_sentence(keys: Sequence[UnrevokedKey]) -> str:
    """How many keys came with a restored backup."""
    if len(keys) == 1:
        return "1 API key came with the restored backup and is valid."
    return f"{len(keys)} API keys came with the restored backup and are valid."


def describe_key(key: UnrevokedKey) -> str:
    """One of these keys: name, id, scope and last use."""
    used = f"last used at {key.last_used_at}" if key.last_used_at else "never used"
    return f"“{key.name}” ({key.id}, {key.scope}), {used}"


def decide_keys(door: Surface) -> str:
    """How the owner settles these keys."""
    if door is Surface.DASHBOARD:
        return "Press “Keep keys” on the overview, or revoke the keys under Keys."
    return (
        f"To revoke them, run `{commands.line('admin', 'resume', '--revoke-keys')}`. "
        f"To keep them, run `{commands.line('admin', 'resume', '--keep-keys')}`. "
        f"Either command also ends a pause. To revoke a single key, run `{commands.line('admin', 'revoke-key', 'ID')}`."
    )


# MERGED from ops/causes.py: What needs the owner, in words: a sentence, a remedy and the page where it is seen to.

PAUSED_FOR_LONG = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Alert:
    kind: AlertKind
    key: str
    """Which one it is. What stands before the last colon is the subject, which is in need in one way at a time."""
    sentence: str
    remedy: str
    path: str
    """The page of the dashboard that shows it."""
    must_be_fixed: bool = True
    """Otherwise it is allowed, and perhaps meant."""
    calls: bool = True
    """Whether the owner is told who does not look; otherwise it is only shown."""
    passes: bool = False
    """It has happened and is told once: there is no end of it to tell."""
    details: tuple[str, ...] = ()
    """Single cases, one a line."""

    @property
    def subject(self) -> str:
        return subject_of(self.key)


def subject_of(key: str) -> str:
    return key.rpartition(":")[0]


def find_all(rt: Runtime, door: Surface) -> list[Alert]:
    """All there are, but for failed deliveries, which the overview lists one by one."""
    return list(list_alerts(rt, read_needs(rt, door), door))


def list_alerts(rt: Runtime, needs: Needs, door: Surface) -> Iterator[Alert]:
    """What these needs mean in words, with remedies that name what stands at this door."""
    yield from _paused(rt, needs, door)
    yield from _worker(rt)
    yield from _holds(rt, needs, door)
    yield from (_account(rt, one, door) for one in needs.profiles)
    yield from _disk(rt, needs)
    yield from _clock(rt, needs)
    yield from _backup(rt, needs, door)


def _paused(rt: Runtime, needs: Needs, door: Surface) -> Iterator[Alert]:
    told = paused_sentences(rt.reader, door)
    if told is None or needs.paused_at is None:
        return
    sentence, remedy = told
    yield Alert(
        AlertKind.PAUSED,
        "paused:",
        sentence,
        remedy,
        "/system",
        must_be_fixed=False,
        calls=rt.now() - parse(needs.paused_at) >= PAUSED_FOR_LONG,
    )


def _worker(rt: Runtime) -> Iterator[Alert]:
    for finding in health.worker_problems(rt.reader, rt.now()):
        yield Alert(AlertKind.WORKER, f"worker:{finding.code}:", finding.message, finding.remedy or "", "/system")


def _holds(rt: Runtime, needs: Needs, door: Surface) -> Iterator[Alert]:
    for hold in needs.holds:
        label = rt.providers[hold.provider].label
        yield Alert(
            AlertKind.NETWORK,
            f"network:{hold.provider}/{hold.scope}:",
            f"{label} has refused this app since {hold.since} ({hold.what}): {hold.reason}",
            f"Resolve this with {label}. socialpub tries again at {hold.probe_at}. "
            f"To try at once, {hints.try_held(door)}.",
            "/system",
            calls=hold.scope != holds.QUESTIONS,
        )


def _account(rt: Runtime, profile: ProfileAlert, door: Surface) -> Alert:
    name = f"{profile.name} ({rt.providers[profile.provider].label})"
    if profile.reauth_required:
        why = (profile.reason or "its tokens are refused").rstrip(".")
        state, sentence = "reconnect", f"{name} must be connected again: {why}."
    else:
        ends = profile.expires_at or ""
        can = "could" if parse(ends) <= rt.now() else "can"
        state, sentence = "lapses", f"{name} {can} publish only until {ends}."
    remedy = hints.sentence(hints.reconnect(profile.provider, door))
    return Alert(AlertKind.ACCOUNT, f"account:{profile.id}:{state}", sentence, remedy, f"/profiles/{profile.id}")


def _disk(rt: Runtime, needs: Needs) -> Iterator[Alert]:
    disk = needs.disk
    room = f"{disk.free_bytes // 1_000_000:,} MB are free for {rt.settings.data_dir}"
    floor = f"health.disk_floor_bytes ({disk.floor_bytes // 1_000_000:,} MB)"
    remedy = "Free disk space, or move data_dir to a larger disk."
    if disk.is_full:
        yield Alert(AlertKind.DISK, "disk:full", f"{room}, less than {floor}.", remedy, "/system")
    elif disk.is_nearly_full:
        sentence = f"{room}; below {floor} no media is accepted."
        yield Alert(AlertKind.DISK, "disk:low", sentence, remedy, "/system", must_be_fixed=False)


def _clock(rt: Runtime, needs: Needs) -> Iterator[Alert]:
    jumped = clock_jumps.recent(rt.reader, rt.now())
    if jumped is not None and needs.clock_jump is not None:
        yield Alert(
            AlertKind.CLOCK,
            f"clock:{jumped.jumped_at}",
            needs.clock_jump,
            "If the clock is right now, nothing is to be done; else set it.",
            "/system",
            must_be_fixed=False,
            passes=True,
        )


def _backup(rt: Runtime, needs: Needs, door: Surface) -> Iterator[Alert]:
    if needs.copy_reminder is None:
        return
    # Before there is something to lose nobody is called for it.
    calls = True
    if needs.copy.made_at is None and needs.copy.failed_at is None:
        first = post_rows.oldest_created_at(rt.reader)
        calls = first is not None and rt.now() - parse(first) > rt.settings.backup.max_age
    state = "failed" if needs.copy.failed_at else "old"
    yield Alert(
        AlertKind.COPY,
        f"copy:{state}",
        needs.copy_reminder,
        last_backup.remedy(door, failed=needs.copy.failed_at is not None),
        "/system",
        # One that was to be made and was not is more than a reminder: whoever set it up relies on it.
        must_be_fixed=needs.copy.failed_at is not None,
        calls=calls,
    )
