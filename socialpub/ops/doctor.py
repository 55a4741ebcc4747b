"""What is wrong with this installation, and what to do about each finding.

Every check looks at one thing, changes nothing that stays, and says what it found in a sentence; a check that cannot be
made says so instead of passing.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from socialpub.accounts import remedies
from socialpub.accounts.renewal import SOON
from socialpub.core.clock import parse, stamp
from socialpub.core.errors import Unavailable
from socialpub.core.settings.loader import Settings
from socialpub.db import appliance_state
from socialpub.db.database import Tx
from socialpub.ops import health, offline_checks
from socialpub.ops.finding import Finding, note, ok, problem
from socialpub.providers.errors import NotSent, ProviderError
from socialpub.providers.responses import HttpResponse
from socialpub.publishing import holds, scheduling
from socialpub.runtime import Runtime

SKEW = timedelta(minutes=2)
"""Clocks may differ by so much; signed addresses and what is read back allow for it."""
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
"""A clock that says less was never set."""
ASK_SECONDS = 10.0

OPENS_NOTHING = frozenset({"data_dir", "secret.key", "database"})


def look_at_premises(settings: Settings) -> tuple[list[Finding], bool]:
    """What is told before anything is opened, and whether the rest can be opened and looked at."""
    found = list(offline_checks.look_at(settings))
    stops = any(finding.level == "problem" and finding.subject in OPENS_NOTHING for finding in found)
    # A database that is missing or older is left as it is: opening it would make one, or bring it up to date.
    waits = any(finding.level == "note" and finding.subject == "database" for finding in found)
    if stops or waits:
        why = "until that is mended" if stops else "before the first start"
        found.append(note("the rest", f"Worker, profiles and networks cannot be looked at {why}."))
    return found, not (stops or waits)


def look_at(rt: Runtime) -> Iterator[Finding]:
    """What the database, the disk, the worker and the networks tell. Asks the networks; not from the event loop."""
    yield _look_at_database(rt)
    yield _look_at_disk(rt)
    yield from _look_at_clock(rt)
    yield from _look_at_worker(rt)
    yield from _look_at_holds(rt)
    yield from _look_at_profiles(rt)
    yield from _look_at_networks(rt)


def _look_at_database(rt: Runtime) -> Finding:
    try:
        rt.write(_nothing)
    except Unavailable as error:
        remedy = "Look for what holds it (fuser shows it) and at the disk."
        return problem("database", f"{rt.db.path} cannot be written: {error.detail}", remedy)
    posts = rt.reader.value("SELECT count(*) FROM post")
    return ok("database", f"{rt.db.path} is sound and can be written ({posts} post{'' if posts == 1 else 's'}).")


def _nothing(rt: Runtime, tx: Tx) -> None:
    """What begins a write and leaves nothing."""


def _look_at_disk(rt: Runtime) -> Finding:
    floor, free = int(rt.settings.health.disk_floor_bytes), rt.files.free_bytes()
    room = f"{free // 1_000_000:,} MB are free for {rt.settings.data_dir}"
    if free < floor:
        return problem("disk", f"{room}, below the floor of {floor // 1_000_000:,} MB.", "Make room, or move data_dir.")
    return ok("disk", f"{room}.")


def _look_at_clock(rt: Runtime) -> Iterator[Finding]:
    now, says = rt.now(), f"this machine says that it is {stamp(rt.now())}"
    newest = rt.reader.value("SELECT max(created_at) FROM post")
    shown = appliance_state.get(rt.reader, appliance_state.HEARTBEAT)
    latest = max((at for at in (newest, shown) if at is not None), default=None)
    remedy = "Set the clock, and keep it set with NTP (timedatectl set-ntp true)."
    if now < BEGINNING:
        yield problem("clock", f"{says[0].upper()}{says[1:]}.", remedy)
    elif latest is not None and parse(latest) > now + SKEW:
        yield problem("clock", f"Something was written at {latest}, and {says}.", remedy)
    else:
        yield ok("clock", f"{says[0].upper()}{says[1:]}.")


def _look_at_worker(rt: Runtime) -> Iterator[Finding]:
    paused, restored = appliance_state.paused_at(rt.reader), appliance_state.restored_from(rt.reader)
    if restored:
        message = f"This is a copy of {restored}, restored and not resumed: nothing is published."
        yield note("paused", message, "When the original has been stopped for good: socialpub admin resume")
    elif paused:
        yield note("paused", f"Nothing is published since {paused}.", "Go on with: socialpub admin resume")
    age = health.heartbeat_age(rt.reader, rt.now())
    start = "Start it: `socialpub serve` runs both, `socialpub worker` it alone."
    if age is None:
        yield problem("worker", "The worker has never run.", start)
    elif age > health.HEARTBEAT_SECONDS:
        yield problem("worker", f"The worker has not shown itself for {age:.0f} seconds.", start)
    else:
        yield ok("worker", f"It showed itself {max(age, 0):.0f} seconds ago.")
    late = 0 if paused else scheduling.overdue(rt.reader, rt.stamp())
    if late:
        was = "1 delivery is" if late == 1 else f"{late} deliveries are"
        yield problem("worker", f"{was} overdue by more than two minutes.", "Look at the worker's log, and restart it.")


def _look_at_holds(rt: Runtime) -> Iterator[Finding]:
    for hold in holds.list_all(rt.reader):
        label = rt.providers[hold["provider"]].label
        yield problem(
            "network",
            f"{label} refuses this app since {hold['since']}: {hold['reason']}",
            f"Mend that with {label}. The next try is at {hold['probe_at']}, or at once after: socialpub admin resume",
        )


def _look_at_profiles(rt: Runtime) -> Iterator[Finding]:
    for row in rt.reader.all("SELECT * FROM profile WHERE status <> 'disconnected' ORDER BY created_at, id"):
        who, remedy = f"{row['name']} ({rt.providers[row['provider']].label})", remedies.reconnect(row["provider"])
        ends = row["expires_at"]
        if row["status"] == "reauthRequired":
            why = (row["reason"] or "its tokens are refused").rstrip(".")
            yield problem("profile", f"{who} must be connected again: {why}.", remedy)
        elif ends is not None and parse(ends) < rt.now() + SOON:
            can = "could" if parse(ends) <= rt.now() else "can"
            yield problem("profile", f"{who} {can} publish until {ends} only.", remedy)
        else:
            yield ok("profile", f"{who} is active.")


def _look_at_networks(rt: Runtime) -> Iterator[Finding]:
    used = {row[0] for row in rt.reader.all("SELECT DISTINCT provider FROM profile WHERE status <> 'disconnected'")}
    for name, provider in rt.providers.items():
        section = getattr(rt.settings.providers, name)
        missing = section.missing_keys()
        if missing and name in used:
            keys = " and ".join(missing)
            message = f"{provider.label} has profiles, but its app's {keys} is empty: no token can be renewed."
            yield problem("credentials", message, f"Fill in [providers.{name}] from the app's page.")
        elif missing:
            continue
        yield from _ask(rt, provider.label, section.api_url, name in used)


def _ask(rt: Runtime, label: str, api_url: str, used: bool) -> Iterator[Finding]:
    """Whether the network can be reached at all; what it says to a bare question does not matter."""
    try:
        answer = rt.http.call("GET", api_url, deadline_seconds=ASK_SECONDS)
    except NotSent as error:
        tell = problem if used else note
        yield tell("network", f"{label}: {error.message}", "Look at this machine's network and DNS, and at api_url.")
    except ProviderError as error:
        yield note("network", f"{label} gave no usable answer: {error.message}", "Look again in a while.")
    else:
        yield ok("network", f"{label} answers.")
        yield from _compare_clocks(rt, label, answer)


def _compare_clocks(rt: Runtime, label: str, answer: HttpResponse) -> Iterator[Finding]:
    try:
        theirs = parsedate_to_datetime(answer.headers.get("date", ""))
    except ValueError:
        return
    if theirs.tzinfo is not None and abs(theirs - rt.now()) > SKEW:
        message = f"{label} says that it is {stamp(theirs)}, and this machine {stamp(rt.now())}."
        yield problem("clock", message, "Set the clock, and keep it set with NTP (timedatectl set-ntp true).")
