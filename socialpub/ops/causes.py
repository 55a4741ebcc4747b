"""What needs the owner, in words: a sentence, a remedy and the page where it is seen to.

The facts are those of the overview (`overview.needs`). The doctor shows these words, and messages to the owner tell
them, so that no two places say different things. A cause keeps its key as long as it lasts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from socialpub.accounts import remedies
from socialpub.accounts.remedies import Door
from socialpub.core.cause_kinds import CauseKind
from socialpub.core.clock import parse
from socialpub.db import clock_jumps, post_rows
from socialpub.ops import health, overview, resume_sentences
from socialpub.ops.copies import last_copy
from socialpub.ops.overview import Needs, ProfileInNeed
from socialpub.publishing import holds
from socialpub.runtime import Runtime

PAUSED_FOR_LONG = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Cause:
    kind: CauseKind
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


def find(rt: Runtime, door: Door) -> list[Cause]:
    """All there are, but for failed deliveries, which the overview lists one by one."""
    return list(of(rt, overview.needs(rt, door), door))


def of(rt: Runtime, needs: Needs, door: Door) -> Iterator[Cause]:
    """What these needs mean in words, with remedies that name what stands at this door."""
    yield from _paused(rt, needs, door)
    yield from _worker(rt)
    yield from _holds(rt, needs, door)
    yield from (_account(rt, one, door) for one in needs.profiles)
    yield from _disk(rt, needs)
    yield from _clock(rt, needs)
    yield from _copy(rt, needs, door)


def _paused(rt: Runtime, needs: Needs, door: Door) -> Iterator[Cause]:
    told = resume_sentences.paused(rt.reader, door)
    if told is None or needs.paused_at is None:
        return
    sentence, remedy = told
    yield Cause(
        CauseKind.PAUSED,
        "paused:",
        sentence,
        remedy,
        "/system",
        must_be_fixed=False,
        calls=rt.now() - parse(needs.paused_at) >= PAUSED_FOR_LONG,
    )


def _worker(rt: Runtime) -> Iterator[Cause]:
    for finding in health.worker_problems(rt.reader, rt.now()):
        yield Cause(CauseKind.WORKER, f"worker:{finding.code}:", finding.message, finding.remedy or "", "/system")


def _holds(rt: Runtime, needs: Needs, door: Door) -> Iterator[Cause]:
    for hold in needs.holds:
        label = rt.providers[hold.provider].label
        yield Cause(
            CauseKind.NETWORK,
            f"network:{hold.provider}/{hold.scope}:",
            f"{label} has refused this app since {hold.since} ({hold.what}): {hold.reason}",
            f"Resolve this with {label}. socialpub tries again at {hold.probe_at}. "
            f"To try at once, {remedies.try_held(door)}.",
            "/system",
            calls=hold.scope != holds.QUESTIONS,
        )


def _account(rt: Runtime, profile: ProfileInNeed, door: Door) -> Cause:
    name = f"{profile.name} ({rt.providers[profile.provider].label})"
    if profile.reauth_required:
        why = (profile.reason or "its tokens are refused").rstrip(".")
        state, sentence = "reconnect", f"{name} must be connected again: {why}."
    else:
        ends = profile.expires_at or ""
        can = "could" if parse(ends) <= rt.now() else "can"
        state, sentence = "lapses", f"{name} {can} publish only until {ends}."
    remedy = remedies.sentence(remedies.reconnect(profile.provider, door))
    return Cause(CauseKind.ACCOUNT, f"account:{profile.id}:{state}", sentence, remedy, f"/profiles/{profile.id}")


def _disk(rt: Runtime, needs: Needs) -> Iterator[Cause]:
    disk = needs.disk
    room = f"{disk.free_bytes // 1_000_000:,} MB are free for {rt.settings.data_dir}"
    floor = f"health.disk_floor_bytes ({disk.floor_bytes // 1_000_000:,} MB)"
    remedy = "Free disk space, or move data_dir to a larger disk."
    if disk.is_full:
        yield Cause(CauseKind.DISK, "disk:full", f"{room}, less than {floor}.", remedy, "/system")
    elif disk.is_nearly_full:
        sentence = f"{room}; below {floor} no media is accepted."
        yield Cause(CauseKind.DISK, "disk:low", sentence, remedy, "/system", must_be_fixed=False)


def _clock(rt: Runtime, needs: Needs) -> Iterator[Cause]:
    jumped = clock_jumps.recent(rt.reader, rt.now())
    if jumped is not None and needs.clock_jump is not None:
        yield Cause(
            CauseKind.CLOCK,
            f"clock:{jumped.jumped_at}",
            needs.clock_jump,
            "If the clock is right now, nothing is to be done; else set it.",
            "/system",
            must_be_fixed=False,
            passes=True,
        )


def _copy(rt: Runtime, needs: Needs, door: Door) -> Iterator[Cause]:
    if needs.copy_reminder is None:
        return
    # Before there is something to lose nobody is called for it.
    calls = True
    if needs.copy.made_at is None and needs.copy.failed_at is None:
        first = post_rows.oldest_created_at(rt.reader)
        calls = first is not None and rt.now() - parse(first) > rt.settings.backup.max_age
    state = "failed" if needs.copy.failed_at else "old"
    yield Cause(
        CauseKind.COPY,
        f"copy:{state}",
        needs.copy_reminder,
        last_copy.remedy(door, failed=needs.copy.failed_at is not None),
        "/system",
        # One that was to be made and was not is more than a reminder: whoever set it up relies on it.
        must_be_fixed=needs.copy.failed_at is not None,
        calls=calls,
    )
