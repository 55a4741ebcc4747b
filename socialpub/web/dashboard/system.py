"""`/system`: the state of this installation, pause and resume, findings, backups and notification addresses."""

import asyncio
import os
import platform
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO

from starlette.responses import Response

from socialpub import runtime
from socialpub.accounts import api_keys, sign_in
from socialpub.accounts.remedies import Surface
from socialpub.core import units, version
from socialpub.core.clock import stamp
from socialpub.core.errors import Conflict, InvalidRequest, NotFound
from socialpub.db import appliance_state
from socialpub.db.tables import counters, post_rows
from socialpub.db.tables.counters import DayUsage
from socialpub.ops import alerts, storage
from socialpub.ops.alerts import AlertFacts, DiskSpace
from socialpub.ops.backup import create, last_backup
from socialpub.ops.backup.last_backup import LastBackup
from socialpub.ops.doctor import checks
from socialpub.ops.health import Finding, Level
from socialpub.ops.notify import notifier, send
from socialpub.ops.notify.send import Service
from socialpub.ops.webhooks import receivers
from socialpub.publishing import retention
from socialpub.publishing.delivery import resume
from socialpub.runtime import Runtime
from socialpub.web.dashboard.browser.visit import Visit, page
from socialpub.web.dashboard.labels import Badge

USAGE_DAYS = 7
PIECE_BYTES = 64 * 1024
"""Limits the memory of a slow client."""
NOTHING_SENT, MAYBE_SENT = "nothing", "maybe"
"""The actions of the original installation after the backup, according to the owner."""
_LEVELS = (Level.PROBLEM, Level.NOTE, Level.OK)

Counts = tuple[int, int]
"""Today, and all days."""


@dataclass(frozen=True, slots=True)
class AtAGlance:
    """One of four summaries. `at` is a stamp after the text, `more` a URL for details."""

    name: str
    state: Badge
    text: str
    at: str | None = None
    more: str = ""


async def render(
    rt: Runtime,
    visit: Visit,
    errors: dict[str, str] | None = None,
    *,
    notify_url: str = "",
    notify_error: str | None = None,
) -> Response:
    needs = alerts.load_alert_facts(rt, Surface.DASHBOARD)
    paused = needs.paused_at is not None
    outlook = await rt.read_in_thread(lambda db: resume.load_outlook(rt, db)) if paused else None
    days = counters.usage_by_day(rt.db, rt.now(), USAGE_DAYS)
    return visit.show(
        "system.html",
        http_status=400 if errors or notify_error else 200,
        problem=f"The address is not added. {notify_error}" if notify_error else None,
        needs=needs,
        glance=list(_glance(rt, needs)),
        next_backup_at=_next_backup_at(rt, needs.backup),
        services=send.list_services(rt),
        webhooks=receivers.list_health(rt.db, rt.now()),
        notify_url=notify_url,
        notify_error=notify_error,
        outlook=outlook,
        too_late=alerts.too_late_sentence(outlook.too_late, rt.settings) if outlook else None,
        storage=await asyncio.to_thread(storage.read_use, rt),
        housekept_at=appliance_state.get(rt.db, appliance_state.HOUSEKEPT_AT),
        retention=await asyncio.to_thread(retention.describe, rt),
        posts=await rt.read_in_thread(post_rows.count),
        key_usage=_key_usage(rt, days),
        network_usage=_network_usage(rt, days),
        version=version.VERSION,
        python_version=platform.python_version(),
        sqlite_version=sqlite3.sqlite_version,
        settings=rt.settings,
        sessions=sign_in.list_sessions(rt, rt.db),
        has_password=sign_in.is_password_set(rt.db),
        errors=errors or {},
    )


show = page()(render)


def _glance(rt: Runtime, needs: AlertFacts) -> Iterator[AtAGlance]:
    if needs.worker:
        for finding in needs.worker:
            yield AtAGlance("Worker", Badge("problem", "bad"), finding.sentences)
    else:
        reported_at = appliance_state.get(rt.db, appliance_state.HEARTBEAT)
        yield AtAGlance("Worker", Badge("running", "good"), "Last report:", reported_at)
    yield _disk(needs.disk)
    yield _clock(rt, needs)
    yield _backup(needs)


def _disk(disk: DiskSpace) -> AtAGlance:
    free, floor = (units.size(size_bytes).partition(" (")[0] for size_bytes in (disk.free_bytes, disk.floor_bytes))
    if disk.is_full:
        text = f"{free} left, less than the reserve of {floor}. Uploads are refused."
        return AtAGlance("Disk", Badge("full", "bad"), text, more="#storage")
    state = Badge("nearly full", "warn") if disk.is_nearly_full else Badge("enough space", "good")
    return AtAGlance("Disk", state, f"{free} free, of which {floor} are reserved.", more="#storage")


def _clock(rt: Runtime, needs: AlertFacts) -> AtAGlance:
    if needs.clock_jump:
        return AtAGlance("Clock", Badge("adjusted", "warn"), needs.clock_jump)
    return AtAGlance("Clock", Badge("steady", "good"), "Current time:", rt.stamp())


def _backup(needs: AlertFacts) -> AtAGlance:
    backup = needs.backup
    if backup.failed_at is not None:
        return AtAGlance("Backup", Badge("failed", "bad"), "The last backup failed", backup.failed_at, more="#backups")
    if backup.made_at is None:
        return AtAGlance("Backup", Badge("none yet", "warn"), "Download a backup now.", more="#backups")
    state = Badge("too old", "warn") if needs.backup_reminder else Badge("made", "good")
    return AtAGlance("Backup", state, "Last backup:", backup.made_at, more="#backups")


def _next_backup_at(rt: Runtime, backup: LastBackup) -> str | None:
    """Return the time at which the worker makes the next backup. None: a timer makes backups."""
    every, now = rt.settings.backup.every, rt.now()
    return None if every is None else stamp(max(now, last_backup.next_backup_at(backup, every, now)))


def _key_usage(rt: Runtime, days: Sequence[DayUsage]) -> list[tuple[str, int, int]]:
    """Return the name, the requests today and those in 7 days of each used key. `days` are in UTC, newest first."""
    names = {key.id: key.name for key in api_keys.list_all(rt.db)}
    used = dict.fromkeys(key_id for day in days for key_id in day.requests)
    rows = [(names.get(used_id, used_id), *_sums([day.requests.get(used_id, 0) for day in days])) for used_id in used]
    return sorted(rows, key=lambda row: (-row[2], row[0]))


def _network_usage(rt: Runtime, days: Sequence[DayUsage]) -> list[tuple[str, Counts, Counts, Counts]]:
    """Return the label, the calls, and the published and failed deliveries of each used network.

    Unknown outcomes count as failed.
    """
    rows = [
        (
            provider.label,
            _sums([day.calls.get(name, 0) for day in days]),
            _sums([day.ended.get((name, "published"), 0) for day in days]),
            _sums([sum(day.ended.get((name, outcome), 0) for outcome in ("failed", "unknown")) for day in days]),
        )
        for name, provider in rt.providers.items()
    ]
    return [use for use in rows if any(count for counts in use[1:] for count in counts)]


def _sums(counts: Sequence[int]) -> Counts:
    return counts[0], sum(counts)


@page()
async def show_findings(rt: Runtime, visit: Visit) -> Response:
    findings = await runtime.run_in_thread(lambda: _run_doctor(rt))
    return visit.show(
        "findings.html",
        findings=sorted(findings, key=lambda finding: _LEVELS.index(finding.level)),
        problems=sum(finding.level is Level.PROBLEM for finding in findings),
    )


def _run_doctor(rt: Runtime) -> list[Finding]:
    findings, can_be_opened = checks.check_offline(rt.settings)
    return findings + (list(checks.check(rt, Surface.DASHBOARD)) if can_be_opened else [])


@page()
async def pause_publishing(rt: Runtime, visit: Visit) -> Response:
    await rt.write_soon(resume.pause)
    said = "Publishing is paused. Calls in progress continue, and nothing else starts. The API still accepts posts."
    return visit.go("/system", status=said)


async def _ask_resume(rt: Runtime, visit: Visit, problem: str | None = None) -> Response:
    if appliance_state.paused_at(rt.db) is None:
        return visit.go("/system", status="Publishing is not paused.")
    outlook = await rt.read_in_thread(lambda db: resume.load_outlook(rt, db))
    return visit.show(
        "resume.html",
        http_status=400 if problem else 200,
        outlook=outlook,
        too_late=alerts.too_late_sentence(outlook.too_late, rt.settings),
        still_scheduled=alerts.STILL_SCHEDULED,
        valid_keys=api_keys.list_undecided(rt.db, rt.stamp()),
        alerts=alerts,
        problem=problem,
    )


resume_form = page()(_ask_resume)


@page()
async def resume_publishing(rt: Runtime, visit: Visit) -> Response:
    if appliance_state.paused_at(rt.db) is None:
        raise Conflict("Publishing is not paused.")
    restored, choice = appliance_state.restored_from(rt.db) is not None, visit.form.text("original")
    if restored and choice not in (NOTHING_SENT, MAYBE_SENT):
        return await _ask_resume(rt, visit, problem="First choose what the original installation did after the backup.")
    resumed = await rt.write_soon(resume.resume, nothing_was_sent=restored and choice == NOTHING_SENT)
    too_late = alerts.too_late_sentence(resumed.too_late, rt.settings)
    said = [*alerts.resume_sentences(resumed), *([too_late] if too_late else [])]
    return visit.go("/system", status=" ".join(said))


@page()
async def try_held(rt: Runtime, visit: Visit) -> Response:
    held = await rt.write_soon(resume.probe_held_networks)
    said = "socialpub retries the next delivery to each held network now. Check this page again in a minute."
    return visit.go("/system", status=said if held else "No network refuses this app.")


@page()
async def download_backup(rt: Runtime, visit: Visit) -> Response:
    file = await runtime.run_in_thread(partial(create.make_download, rt))
    name = f"socialpub-{visit.now.astimezone(visit.zone):%Y-%m-%d-%H%M}.tar"
    size_bytes = os.fstat(file.fileno()).st_size
    return visit.download(name, "application/x-tar", _read_pieces(file), size_bytes)


def _read_pieces(file: BinaryIO) -> Iterator[bytes]:
    with file:
        yield from iter(partial(file.read, PIECE_BYTES), b"")


@page()
async def add_address(rt: Runtime, visit: Visit) -> Response:
    text = visit.form.text("url")
    try:
        url, name = await runtime.run_in_thread(partial(send.parse_address, text))
        await rt.write_soon(send.add_service, url, name)
    except InvalidRequest as error:
        return await render(rt, visit, notify_url=text, notify_error=f"The address {error.errors[0].message}.")
    except Conflict as error:
        return await render(rt, visit, notify_url=text, notify_error=error.detail)
    said = f"Notifications now go to {name}. Press “Send a test message” to check that they arrive."
    return visit.go("/system", status=said)


@page()
async def ask_remove_address(rt: Runtime, visit: Visit) -> Response:
    service = _load_address(rt, visit)
    others = [other for other in send.list_services(rt) if other.id != service.id]
    return visit.show("notify_remove.html", service=service, others=others)


@page()
async def remove_address(rt: Runtime, visit: Visit) -> Response:
    name = await rt.write_soon(send.remove_service, _load_address(rt, visit).id)
    return visit.go("/system", status=f"{name} is removed and receives no more notifications.")


@page()
async def test_addresses(rt: Runtime, visit: Visit) -> Response:
    if not send.list_services(rt):
        raise Conflict("There is no notification address. Add an address under System.")
    results = await runtime.run_in_thread(partial(notifier.send_test, rt))
    refused = [f"{service.name} did not accept the message: {failure}." for service, failure in results if failure]
    taken = [service.name for service, failure in results if failure is None]
    said = [*refused, *([f"Sent to {', '.join(taken)}. Check whether it arrived."] if taken else [])]
    text = " ".join(said)
    return visit.go("/system", alert=text if refused else None, status=text)


def _load_address(rt: Runtime, visit: Visit) -> Service:
    for service in send.list_services(rt):
        if service.is_added and service.id == visit.params["addressId"]:
            return service
    raise NotFound("This address is no longer in the list.")
