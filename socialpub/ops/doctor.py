"""What is wrong with this installation, and what to do about each finding.

Every check is about one thing, changes nothing that stays, and tells what it found in a sentence; a check that cannot
be made says so instead of passing.
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime

from socialpub.accounts import profiles
from socialpub.accounts.api_keys import UnrevokedKey
from socialpub.accounts.remedies import Door
from socialpub.core import commands
from socialpub.core.cause_kinds import CauseKind
from socialpub.core.clock import parse, stamp
from socialpub.core.errors import Unavailable
from socialpub.core.settings.loader import Settings
from socialpub.db import appliance_state, post_rows
from socialpub.db.transaction import Row, Tx
from socialpub.ops import (
    causes,
    configuration_in_use,
    database_file,
    file_faults,
    health,
    housekeeping_report,
    machine_checks,
    network_checks,
    offline_checks,
    overview,
    resume_sentences,
    storage_checks,
    untrusted_proxies,
    upgrade_checks,
    web_address,
)
from socialpub.ops.copies import last_copy
from socialpub.ops.finding import Finding, Level, note, ok, problem
from socialpub.ops.notify import findings
from socialpub.runtime import Runtime

EARLIEST = datetime(2026, 1, 1, tzinfo=UTC)
"""A clock that shows an earlier time was never set."""
MOST_KEYS = 10
"""A finding names no more keys than this."""

SUBJECTS = {
    CauseKind.ACCOUNT: "profile",
    CauseKind.NETWORK: "network",
    CauseKind.WORKER: "worker",
    CauseKind.DISK: "disk",
    CauseKind.COPY: "backup",
    CauseKind.CLOCK: "clock",
    CauseKind.PAUSED: "paused",
}
"""What the doctor calls what it looked at; it does not look at single deliveries."""

NEEDED_TO_OPEN = frozenset({"data_dir", "secret.key", "database"})


def check_offline(settings: Settings) -> tuple[list[Finding], bool]:
    """What can be found before anything is opened, and whether the rest can be opened and checked."""
    found = list(offline_checks.check(settings))
    blocked = any(finding.level == "problem" and finding.subject in NEEDED_TO_OPEN for finding in found)
    # A database that is missing or older is left as it is: opening it would create one, or update it.
    unopened = any(finding.level == "note" and finding.subject == "database" for finding in found)
    if blocked or unopened:
        until = "until that is fixed" if blocked else "before the first start"
        again = f"Fix the problems above, then run `{commands.line('doctor')}` again."
        then = again if blocked else f"{commands.start()}."
        if (differ := web_address.ports_differ(settings)) is not None:
            found.append(differ)
        found += network_checks.before_opening(settings)
        found.append(note("the rest", f"Worker, profiles and networks cannot be checked {until}.", then))
    return found, not (blocked or unopened)


def check(rt: Runtime, door: Door = Door.SHELL) -> Iterator[Finding]:
    """What database, disk, worker and networks show, with remedies that name what stands at this door. Calls the
    networks; not from the event loop."""
    connected = [row for row in profiles.list_all(rt.reader) if row["status"] != "disconnected"]
    needs = overview.needs(rt, door)
    known: defaultdict[CauseKind, list[Finding]] = defaultdict(list)
    for cause in causes.of(rt, needs, door):
        level = Level.PROBLEM if cause.must_be_fixed else Level.NOTE
        known[cause.kind].append(Finding(level, SUBJECTS[cause.kind], cause.sentence, cause.remedy))
    yield _check_database(rt)
    yield from database_file.check(rt)
    yield from _check_disk(rt, known[CauseKind.DISK])
    yield from storage_checks.check(rt)
    yield from machine_checks.check(rt)
    yield from housekeeping_report.check(rt)
    yield from _check_clock(rt, known[CauseKind.CLOCK])
    yield web_address.check(rt)
    yield from untrusted_proxies.check(rt)
    yield from known[CauseKind.PAUSED]
    yield from _check_restored_keys(needs.restored_keys, door)
    yield from _check_worker(rt, known[CauseKind.WORKER])
    yield from _check_copy(rt, known[CauseKind.COPY])
    yield from findings.check(rt, door)
    yield from upgrade_checks.after(rt.settings)
    yield from _check_configuration_in_use(rt)
    yield from known[CauseKind.NETWORK]
    yield from _check_profiles(rt, connected, known[CauseKind.ACCOUNT], {one.id for one in needs.profiles})
    yield from network_checks.check(rt, connected)


def _check_database(rt: Runtime) -> Finding:
    try:
        rt.write(_write_nothing)
    except Unavailable as error:
        fault = file_faults.find(error, rt.settings)
        message = fault.message if fault else f"Nothing can be written to {rt.db.path}. {error.detail}"
        return problem("database", message, fault.remedy if fault else file_faults.look(rt.settings))
    count = post_rows.count(rt.reader)
    return ok("database", f"{rt.db.path} is sound and can be written ({count} post{'' if count == 1 else 's'}).")


def _write_nothing(rt: Runtime, tx: Tx) -> None:
    """A transaction that leaves nothing."""


def _check_disk(rt: Runtime, known: list[Finding]) -> Iterator[Finding]:
    yield from known
    if not known:
        yield ok("disk", f"{rt.files.free_bytes() // 1_000_000:,} MB are free for {rt.settings.data_dir}.")


def _check_clock(rt: Runtime, known: list[Finding]) -> Iterator[Finding]:
    now, shows = rt.now(), f"this machine's clock shows {stamp(rt.now())}"
    heartbeat_at = appliance_state.get(rt.reader, appliance_state.HEARTBEAT)
    written_at = max(
        (at for at in (post_rows.newest_created_at(rt.reader), heartbeat_at) if at is not None), default=None
    )
    if now < EARLIEST:
        yield problem("clock", f"{shows[0].upper()}{shows[1:]}.", network_checks.SET_CLOCK)
    elif written_at is not None and parse(written_at) > now + network_checks.MAX_SKEW:
        yield problem("clock", f"Something was written at {written_at}, but {shows}.", network_checks.SET_CLOCK)
    else:
        yield ok("clock", f"{shows[0].upper()}{shows[1:]}.")
    yield from known


def _check_restored_keys(keys: list[UnrevokedKey], door: Door) -> Iterator[Finding]:
    if keys:
        listed = "; ".join(map(resume_sentences.valid_key, keys[:MOST_KEYS]))
        more = f" and {len(keys) - MOST_KEYS:,} more" if len(keys) > MOST_KEYS else ""
        message = f"{resume_sentences.valid_keys(keys)} {resume_sentences.KEYS_MAY_BE_REVOKED}"
        yield problem("keys", f"{message} They are: {listed}{more}.", resume_sentences.decide_keys(door))


def _check_worker(rt: Runtime, known: list[Finding]) -> Iterator[Finding]:
    yield from known
    age = health.heartbeat_age(rt.reader, rt.now())
    if not known and age is not None:
        yield ok("worker", f"The worker last reported {max(age, 0):.0f} seconds ago.")


def _check_copy(rt: Runtime, known: list[Finding]) -> Iterator[Finding]:
    yield from known
    if not known:
        copy = last_copy.read(rt.reader)
        where = f" {copy.scheduled.sentence}" if copy.scheduled else ""
        yield ok("backup", f"The last backup is of {copy.made_at}.{where}")


def _check_configuration_in_use(rt: Runtime) -> Iterator[Finding]:
    changed = configuration_in_use.changed_keys(rt)
    if changed:
        keys = dict.fromkeys(key for of_role in changed.values() for key in of_role)
        names = " and the ".join("web server" if role == "web" else role for role in changed)
        run = "run" if len(changed) > 1 else "runs"
        yield problem(
            "configuration",
            f"The {names} {run} with other values of {', '.join(keys)} than {rt.settings.config_file} has now.",
            f"{configuration_in_use.restart()} {configuration_in_use.SEEN_FROM_HERE}",
        )


def _check_profiles(rt: Runtime, connected: list[Row], known: list[Finding], needed: set[str]) -> Iterator[Finding]:
    yield from known
    for row in connected:
        if row["id"] not in needed:
            yield ok("profile", f"{row['name']} ({rt.providers[row['provider']].label}) is active.")
