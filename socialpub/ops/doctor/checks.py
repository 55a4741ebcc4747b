"""All checks of this installation, each with a remedy.

A check examines one thing and changes nothing. A check that cannot run reports a finding and does not pass.
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime

from socialpub.accounts.remedies import Surface
from socialpub.core import commands, progress, units
from socialpub.core.clock import parse, stamp
from socialpub.core.errors import Unavailable
from socialpub.core.settings.loader import Settings
from socialpub.core.settings.schema import AlertKind
from socialpub.db import appliance_state
from socialpub.db.models import ApiKeyRow
from socialpub.db.process_lock import living_processes
from socialpub.db.tables import post_rows, profile_rows
from socialpub.ops import alerts, file_faults, health, storage
from socialpub.ops.doctor import configuration, offline, reachability, services
from socialpub.ops.health import Finding, Level, note, ok, problem, problem_of
from socialpub.ops.notify import send
from socialpub.ops.webhooks import receivers
from socialpub.providers.failures import PROXY_REMEDY, find_unusable_proxies
from socialpub.publishing import retention
from socialpub.runtime import Runtime

EARLIEST = datetime(2026, 1, 1, tzinfo=UTC)
"""The earliest plausible time. A clock that shows an earlier time was never set."""
MAX_KEYS_LISTED = 10
SUBJECTS = {AlertKind.ACCOUNT: "profile"}
"""The findings whose subject differs from the kind of their alert."""
NEEDED_TO_OPEN = frozenset({"data_dir", "secret.key", "database"})


def check_offline(settings: Settings) -> tuple[list[Finding], bool]:
    """Return the findings before the database is opened, and whether the other checks can run."""
    findings = list(offline.check(settings))
    blocked = any(finding.level == "problem" and finding.subject in NEEDED_TO_OPEN for finding in findings)
    # Opening a missing or older database would create or update the database.
    unopened = any(finding.level == "note" and finding.subject == "database" for finding in findings)
    if blocked or unopened:
        until = "until the problems are fixed" if blocked else "before the first start"
        again = f"Fix the problems above, then run `{commands.line('doctor')}` again."
        then = again if blocked else f"{commands.start()}."
        findings += reachability.check_networks_offline(settings)
        findings.append(note("the rest", f"The worker, profiles and networks cannot be checked {until}.", then))
    return findings, not (blocked or unopened)


def check(rt: Runtime, surface: Surface = Surface.SHELL) -> Iterator[Finding]:
    """Yield the findings about the database, the disk, the worker and the networks, with remedies for this surface.

    Calls the networks, so do not call it on the event loop.
    """
    progress.begin("Checking the appliance and the networks")
    connected = [row for row in profile_rows.list_all(rt.db) if row.status != "disconnected"]
    needs = alerts.load_alert_facts(rt, surface)
    of_alerts: defaultdict[AlertKind, list[Finding]] = defaultdict(list)
    for alert in alerts.list_alerts(rt, surface, needs):
        level = Level.PROBLEM if alert.must_be_fixed else Level.NOTE
        of_alerts[alert.kind].append(Finding(level, SUBJECTS.get(alert.kind, alert.kind), alert.sentence, alert.remedy))
    yield _check_database(rt)
    free = f"{rt.files.free_bytes() // 1_000_000:,} MB are free for {rt.settings.data_dir}."
    yield from of_alerts[AlertKind.DISK] or [ok("disk", free)]
    yield from storage.check_quota(rt)
    yield from check_machine(rt)
    yield from services.check_services(rt)
    housekept_at = appliance_state.get(rt.db, appliance_state.HOUSEKEPT_AT)
    ran = f"last ran at {housekept_at}" if housekept_at else "has not run here yet"
    yield ok("housekeeping", f"Housekeeping {ran}. {retention.describe(rt)}")
    yield _check_clock(rt)
    yield from of_alerts[AlertKind.CLOCK]
    yield reachability.check_web(rt)
    yield from reachability.check_untrusted_proxies(rt)
    yield from of_alerts[AlertKind.PAUSED]
    yield from _check_restored_keys(needs.restored_keys, surface)
    yield from of_alerts[AlertKind.WORKER] or _check_worker(rt)
    where = f" {needs.backup.scheduled.sentence}" if needs.backup.scheduled else ""
    yield from of_alerts[AlertKind.BACKUP] or [
        ok("backup", f"The last backup was made at {needs.backup.made_at}.{where}")
    ]
    yield from send.check_services(rt, surface)
    yield from of_alerts[AlertKind.WEBHOOK]
    yield from receivers.check(rt.db, rt.now())
    yield from offline.check_upgrade_backups(rt.settings)
    yield from configuration.check_in_use(rt)
    yield from of_alerts[AlertKind.NETWORK]
    yield from of_alerts[AlertKind.ACCOUNT]
    needed = {profile.id for profile, _ in needs.profiles}
    for row in connected:
        if row.id not in needed:
            yield ok("profile", f"{row.name} ({rt.providers[row.provider].label}) is active.")
    yield from reachability.check_networks(rt, connected)


def _check_database(rt: Runtime) -> Finding:
    try:
        rt.write(lambda *_: None)
    except Unavailable as error:
        message = f"Nothing can be written to {rt.db.path}. {error.detail}"
        return problem_of("database", file_faults.explain(error, message, rt.settings))
    posts = units.count(post_rows.count(rt.db), "post", "posts")
    return ok("database", f"{rt.db.path} is sound and can be written ({posts}).")


def _check_clock(rt: Runtime) -> Finding:
    now, shows = rt.now(), f"machine's clock shows {stamp(rt.now())}."
    heartbeat_at = appliance_state.get(rt.db, appliance_state.HEARTBEAT)
    written_at = max(post_rows.newest_created_at(rt.db) or "", heartbeat_at or "")
    if now < EARLIEST:
        return problem("clock", f"This {shows}", reachability.SET_CLOCK)
    if written_at and parse(written_at) > now + reachability.MAX_SKEW:
        return problem("clock", f"A row was written at {written_at}, but this {shows}", reachability.SET_CLOCK)
    return ok("clock", f"This {shows}")


def _check_restored_keys(keys: list[ApiKeyRow], surface: Surface) -> Iterator[Finding]:
    if keys:
        listed = "; ".join(map(alerts.describe_key, keys[:MAX_KEYS_LISTED]))
        more = f" and {len(keys) - MAX_KEYS_LISTED:,} more" if len(keys) > MAX_KEYS_LISTED else ""
        message = f"{alerts.valid_keys_sentence(keys)} {alerts.KEYS_MAY_BE_REVOKED}"
        yield problem("keys", f"{message} The keys: {listed}{more}.", alerts.decide_keys(surface))


def _check_worker(rt: Runtime) -> Iterator[Finding]:
    workers = [name for name in living_processes(rt.process.folder) if name.startswith("worker-")]
    if len(workers) > 1:
        yield problem(
            "worker",
            f"{len(workers)} workers are running: {', '.join(workers)}.",
            f"Stop all of them, then start one. {commands.restart()}.",
        )
    age = health.heartbeat_age(rt.db, rt.now())
    if age is not None:
        yield ok("worker", f"The worker last reported {units.count(round(max(age, 0)), 'second', 'seconds')} ago.")


def check_machine(rt: Runtime) -> Iterator[Finding]:
    report = health.read_worker_report(rt.db)
    here = find_unusable_proxies()
    for sentence in dict.fromkeys([*here, *(report.unusable_proxies if report else ())]):
        where = "" if sentence in here else " This is the environment of the worker."
        yield problem("proxy variable", f"{sentence}{where}", PROXY_REMEDY)
    if report is None or report.decoder_lacks is None or report.decoder_failure is not None:
        return
    if report.decoder_lacks:
        lacks = " and ".join(report.decoder_lacks)
        message = f"The kernel does not offer {lacks}. A malicious file that takes over a decoder can do more harm."
        yield note("decoder", message, "Run a kernel with Landlock and seccomp, and let the container use both.")
    else:
        yield ok("decoder", "A decoder can read one file. It cannot open sockets or start programs.")
