"""What is wrong with this installation, and what to do about each finding.

Every check is about one thing, changes nothing that stays, and tells what it found in a sentence; a check that cannot
be made says so instead of passing.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from socialpub.accounts import profiles, remedies
from socialpub.accounts.idle_tokens import SOON
from socialpub.accounts.remedies import Door
from socialpub.core.clock import parse, stamp
from socialpub.core.errors import Unavailable
from socialpub.core.settings.loader import Settings
from socialpub.db import appliance_state, post_rows
from socialpub.db.transaction import Row, Tx
from socialpub.ops import configuration_in_use, health, last_copy, offline_checks, web_address
from socialpub.ops.finding import Finding, note, ok, problem
from socialpub.providers.errors import NotSent, ProviderError
from socialpub.providers.responses import HttpResponse
from socialpub.publishing import holds
from socialpub.runtime import Runtime

MOST_SKEW = timedelta(minutes=2)
"""Clocks may differ by so much; signed addresses and what is read back allow for it."""
EARLIEST = datetime(2026, 1, 1, tzinfo=UTC)
"""A clock that shows an earlier time was never set."""
CALL_SECONDS = 10.0
SET_CLOCK = "Set the clock, and keep it set with NTP (timedatectl set-ntp true)."

NEEDED_TO_OPEN = frozenset({"data_dir", "secret.key", "database"})


def check_offline(settings: Settings) -> tuple[list[Finding], bool]:
    """What can be found before anything is opened, and whether the rest can be opened and checked."""
    found = list(offline_checks.check(settings))
    blocked = any(finding.level == "problem" and finding.subject in NEEDED_TO_OPEN for finding in found)
    # A database that is missing or older is left as it is: opening it would create one, or update it.
    unopened = any(finding.level == "note" and finding.subject == "database" for finding in found)
    if blocked or unopened:
        until = "until that is fixed" if blocked else "before the first start"
        if (differ := web_address.ports_differ(settings)) is not None:
            found.append(differ)
        found.append(note("the rest", f"Worker, profiles and networks cannot be checked {until}."))
    return found, not (blocked or unopened)


def check(rt: Runtime, door: Door = Door.SHELL) -> Iterator[Finding]:
    """What database, disk, worker and networks show, with remedies that name what stands at this door. Calls the
    networks; not from the event loop."""
    connected = [row for row in profiles.list_all(rt.reader) if row["status"] != "disconnected"]
    yield _check_database(rt)
    yield _check_disk(rt)
    yield from _check_clock(rt)
    yield web_address.check(rt)
    yield from _check_worker(rt, door)
    yield _check_copy(rt, door)
    yield from _check_configuration_in_use(rt)
    yield from _check_holds(rt, door)
    yield from _check_profiles(rt, connected, door)
    yield from _check_networks(rt, {row["provider"] for row in connected})


def _check_database(rt: Runtime) -> Finding:
    try:
        rt.write(_write_nothing)
    except Unavailable as error:
        remedy = f"Find out what locks it (fuser {rt.db.path}), and check the disk."
        return problem("database", f"Nothing can be written to {rt.db.path}. {error.detail}", remedy)
    count = post_rows.count(rt.reader)
    return ok("database", f"{rt.db.path} is sound and can be written ({count} post{'' if count == 1 else 's'}).")


def _write_nothing(rt: Runtime, tx: Tx) -> None:
    """A transaction that leaves nothing."""


def _check_disk(rt: Runtime) -> Finding:
    floor, free = int(rt.settings.health.disk_floor_bytes), rt.files.free_bytes()
    room = f"{free // 1_000_000:,} MB are free for {rt.settings.data_dir}"
    if free < floor:
        message = f"{room}, less than health.disk_floor_bytes ({floor // 1_000_000:,} MB)."
        return problem("disk", message, "Free disk space, or move data_dir to a larger disk.")
    return ok("disk", f"{room}.")


def _check_clock(rt: Runtime) -> Iterator[Finding]:
    now, shows = rt.now(), f"this machine's clock shows {stamp(rt.now())}"
    heartbeat_at = appliance_state.get(rt.reader, appliance_state.HEARTBEAT)
    written_at = max(
        (at for at in (post_rows.newest_created_at(rt.reader), heartbeat_at) if at is not None), default=None
    )
    if now < EARLIEST:
        yield problem("clock", f"{shows[0].upper()}{shows[1:]}.", SET_CLOCK)
    elif written_at is not None and parse(written_at) > now + MOST_SKEW:
        yield problem("clock", f"Something was written at {written_at}, but {shows}.", SET_CLOCK)
    else:
        yield ok("clock", f"{shows[0].upper()}{shows[1:]}.")
    jump = health.clock_jump(rt.reader, now)
    if jump is not None:
        yield note("clock", jump, "If the clock is right now, nothing is to be done; else set it.")


def _check_worker(rt: Runtime, door: Door) -> Iterator[Finding]:
    paused, restored = appliance_state.paused_at(rt.reader), appliance_state.restored_from(rt.reader)
    if restored:
        message = f"This installation was restored from a copy of {restored} and is still paused: nothing is published."
        yield note("paused", message, f"Once the original is stopped for good: {remedies.resume(door)}")
    elif paused:
        message = f"Publishing has been paused since {paused}."
        yield note("paused", message, f"To continue: {remedies.resume(door)}")
    found = list(health.worker_problems(rt.reader, rt.now()))
    yield from found
    age = health.heartbeat_age(rt.reader, rt.now())
    if not found and age is not None:
        yield ok("worker", f"The worker last reported {max(age, 0):.0f} seconds ago.")


def _check_copy(rt: Runtime, door: Door) -> Finding:
    copy = last_copy.read(rt.reader)
    reminder = copy.reminder(rt.now())
    if reminder is not None:
        return note("copy", reminder, last_copy.remedy(door))
    return ok("copy", f"The last copy is of {copy.made_at}.")


def _check_configuration_in_use(rt: Runtime) -> Iterator[Finding]:
    changed = configuration_in_use.changed_keys(rt)
    if changed:
        keys = dict.fromkeys(key for of_role in changed.values() for key in of_role)
        names = " and the ".join("web server" if role == "web" else role for role in changed)
        run = "run" if len(changed) > 1 else "runs"
        yield problem(
            "configuration",
            f"The {names} {run} with other values of {', '.join(keys)} than {rt.settings.config_file} has now.",
            f"{configuration_in_use.RESTART} {configuration_in_use.SEEN_FROM_HERE}",
        )


def _check_holds(rt: Runtime, door: Door) -> Iterator[Finding]:
    for hold in holds.list_all(rt.reader):
        label = rt.providers[hold["provider"]].label
        yield problem(
            "network",
            f"{label} has refused this app since {hold['since']} ({holds.what(hold['scope'])}): {hold['reason']}",
            f"Resolve this with {label}. socialpub tries again at {hold['probe_at']}; "
            f"to try at once: {remedies.try_held(door)}",
        )


def _check_profiles(rt: Runtime, connected: list[Row], door: Door) -> Iterator[Finding]:
    for row in connected:
        name, remedy = (
            f"{row['name']} ({rt.providers[row['provider']].label})",
            remedies.reconnect(row["provider"], door),
        )
        ends = row["expires_at"]
        if row["status"] == "reauthRequired":
            why = (row["reason"] or "its tokens are refused").rstrip(".")
            yield problem("profile", f"{name} must be connected again: {why}.", remedy)
        elif ends is not None and parse(ends) < rt.now() + SOON:
            can = "could" if parse(ends) <= rt.now() else "can"
            yield problem("profile", f"{name} {can} publish only until {ends}.", remedy)
        else:
            yield ok("profile", f"{name} is active.")


def _check_networks(rt: Runtime, used: set[str]) -> Iterator[Finding]:
    for name, provider in rt.providers.items():
        section = getattr(rt.settings.providers, name)
        missing = section.missing_keys()
        if missing and name in used and section.half_given() is None:
            keys, are = " and ".join(missing), "is" if len(missing) == 1 else "are"
            message = f"{provider.label} has profiles, but {keys} of its app {are} empty: no token can be renewed."
            yield problem("credentials", message, f"Set {keys} in [providers.{name}]; the app's page shows it.")
        elif missing:
            continue
        yield from _check_connection(rt, provider.label, section.api_url, name in used)


def _check_connection(rt: Runtime, label: str, api_url: str, used: bool) -> Iterator[Finding]:
    """Whether the network can be reached at all; what it answers without a token does not matter."""
    try:
        answer = rt.http.call("GET", api_url, deadline_seconds=CALL_SECONDS)
    except NotSent as error:
        finding = problem if used else note
        yield finding("network", f"{label}: {error.message}", "Check this machine's network and DNS, and api_url.")
    except ProviderError as error:
        yield note("network", f"{label} gave no usable answer: {error.message}", "Try again in a while.")
    else:
        yield ok("network", f"{label} answers.")
        yield from _compare_clocks(rt, label, answer)


def _compare_clocks(rt: Runtime, label: str, answer: HttpResponse) -> Iterator[Finding]:
    try:
        theirs = parsedate_to_datetime(answer.headers.get("date", ""))
    except ValueError:
        return
    if theirs.tzinfo is not None and abs(theirs - rt.now()) > MOST_SKEW:
        message = f"The clock of {label} shows {stamp(theirs)}, and this machine's clock {stamp(rt.now())}."
        yield problem("clock", message, SET_CLOCK)
