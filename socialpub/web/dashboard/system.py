"""What keys and networks used, as rows of a table: today and within a week (days of UTC)."""

import asyncio
import platform
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from socialpub.accounts import api_keys, sign_in
from socialpub.accounts.api_keys import Key
from socialpub.accounts.hints import Surface
from socialpub.core import units, version
from socialpub.core.clock import stamp
from socialpub.core.errors import Conflict, InvalidRequest, NotFound
from socialpub.db import appliance_state
from socialpub.db.tables import counters
from socialpub.db.tables.counters import DayUsage
from socialpub.ops import alerts, health, storage
from socialpub.ops.alerts import DiskRoom, Needs
from socialpub.ops.backup import create, last_backup
from socialpub.ops.backup.last_backup import LastBackup
from socialpub.ops.doctor import checks, machine
from socialpub.ops.health import Finding, Level
from socialpub.ops.notify import send
from socialpub.ops.notify.send import Service
from socialpub.providers.provider import Provider
from socialpub.providers.registry import LABELS
from socialpub.publishing.delivery import resume
from socialpub.publishing.posts import audiences
from socialpub.runtime import Runtime
from socialpub.web import threads
from socialpub.web.dashboard.browser.visit import Visit, page
from socialpub.web.dashboard.labels import Badge
from socialpub.web.http import files
from socialpub.web.http.answer import Answer

USAGE_DAYS = 7


@dataclass(frozen=True, slots=True)
class KeyUse:
    name: str
    today: int
    week: int


@dataclass(frozen=True, slots=True)
class NetworkUse:
    """`calls` and outcomes: today, and within a week."""

    label: str
    calls: tuple[int, int]
    published: tuple[int, int]
    failed: tuple[int, int]
    """Also those whose outcome is not known."""


@dataclass(frozen=True, slots=True)
class UsageTable:
    keys: list[KeyUse]
    networks: list[NetworkUse]


def build_usage(days: Sequence[DayUsage], keys: Collection[Key], providers: Mapping[str, Provider]) -> UsageTable:
    """`days` newest first. Keys and networks that were not used are left out."""
    names = {key.id: key.name for key in keys}
    used_keys = list(dict.fromkeys(key_id for day in days for key_id in day.requests))
    of_keys = [
        KeyUse(names.get(key_id, key_id), *_usage_sums([day.requests.get(key_id, 0) for day in days]))
        for key_id in used_keys
    ]
    networks = []
    for name, provider in providers.items():
        use = NetworkUse(
            provider.label,
            _usage_sums([day.calls.get(name, 0) for day in days]),
            _usage_sums([day.ended.get((name, "published"), 0) for day in days]),
            _usage_sums([sum(day.ended.get((name, outcome), 0) for outcome in ("failed", "unknown")) for day in days]),
        )
        if any((*use.calls, *use.published, *use.failed)):
            networks.append(use)
    return UsageTable(sorted(of_keys, key=lambda use: (-use.week, use.name)), networks)


def _usage_sums(counts: Sequence[int]) -> tuple[int, int]:
    return counts[0], sum(counts)


# MERGED from web/dashboard/system.py: `/system`: how this installation is, who is signed in, and the password.


@dataclass(frozen=True, slots=True)
class AtAGlance:
    """One of the four things that the page begins with. `at` is a stamp that belongs behind the text."""

    name: str
    state: Badge
    text: str
    at: str | None = None
    more: str = ""
    """Where on the page there is more."""


@page()
async def show(rt: Runtime, visit: Visit) -> Answer:
    """The whole page."""
    return await render(rt, visit)


async def render(
    rt: Runtime,
    visit: Visit,
    errors: dict[str, str] | None = None,
    *,
    notify_url: str = "",
    notify_error: str | None = None,
) -> Answer:
    """The page, with what is wrong in its forms."""
    needs = alerts.read_needs(rt, Surface.DASHBOARD)
    paused = needs.paused_at is not None
    outlook = await rt.read_aside(lambda reader: resume.outlook(rt, reader)) if paused else None
    return visit.show(
        "system.html",
        http_status=400 if errors or notify_error else 200,
        problem=f"The address is not added. {notify_error}" if notify_error else None,
        needs=needs,
        glance=list(_glance(rt, needs)),
        next_copy_at=_next_copy_at(rt, needs.copy),
        services=send.read_service_health(rt, rt.reader),
        notify_url=notify_url,
        notify_error=notify_error,
        labels=LABELS,
        outlook=outlook,
        too_late=alerts.too_late_sentence(outlook.too_late, rt.settings) if outlook else None,
        storage=await asyncio.to_thread(storage.read_use, rt),
        housekeeping=await asyncio.to_thread(health.read_housekeeping, rt),
        posts=sum(count for _, count in audiences.count_posts(rt.reader)),
        usage=build_usage(
            counters.usage_by_day(rt.reader, rt.now(), USAGE_DAYS), api_keys.list_all(rt.reader), rt.providers
        ),
        version=version.current(),
        python_version=platform.python_version(),
        sqlite_version=sqlite3.sqlite_version,
        settings=rt.settings,
        sessions=sign_in.list_sessions(rt, rt.reader),
        has_password=sign_in.is_password_set(rt.reader),
        errors=errors or {},
    )


def _glance(rt: Runtime, needs: Needs) -> Iterator[AtAGlance]:
    """Worker, disk, clock and backup."""
    if needs.worker:
        for one in needs.worker:
            yield AtAGlance("Worker", Badge("fix this", "bad"), one.sentences)
    else:
        reported_at = appliance_state.get(rt.reader, appliance_state.HEARTBEAT)
        yield AtAGlance("Worker", Badge("running", "good"), "It last reported", reported_at)
    yield _disk(needs.disk)
    yield _clock(rt, needs)
    yield _backup(needs)


def _disk(disk: DiskRoom) -> AtAGlance:
    free, floor = (units.size(one).partition(" (")[0] for one in (disk.free_bytes, disk.floor_bytes))
    if disk.is_full:
        text = f"{free} are left, less than the {floor} that are kept free: no upload is accepted."
        return AtAGlance("Disk", Badge("full", "bad"), text, more="#storage")
    state = Badge("nearly full", "warn") if disk.is_nearly_full else Badge("enough space", "good")
    return AtAGlance("Disk", state, f"{free} are free, {floor} of them are kept free.", more="#storage")


def _clock(rt: Runtime, needs: Needs) -> AtAGlance:
    if needs.clock_jump:
        return AtAGlance("Clock", Badge("was set", "warn"), needs.clock_jump)
    if machine.clock_is_kept() is False:
        text = "Nothing keeps this machine's clock set. Switch NTP on. It shows"
        return AtAGlance("Clock", Badge("may drift", "warn"), text, rt.stamp())
    return AtAGlance("Clock", Badge("steady", "good"), "It shows", rt.stamp())


def _backup(needs: Needs) -> AtAGlance:
    copy = needs.copy
    if copy.failed_at is not None:
        return AtAGlance("Backup", Badge("failed", "bad"), "The last backup failed", copy.failed_at, more="#copies")
    if copy.made_at is None:
        return AtAGlance("Backup", Badge("none yet", "warn"), "No backup was ever made.", more="#copies")
    state = Badge("too old", "warn") if needs.copy_reminder else Badge("made", "good")
    return AtAGlance("Backup", state, "The last one was made", copy.made_at, more="#copies")


def _next_copy_at(rt: Runtime, copy: LastBackup) -> str | None:
    """When the worker makes the next one; None when that is left to a timer."""
    every, now = rt.settings.backup.every, rt.now()
    return None if every is None else stamp(max(now, last_backup.next_at(copy, every, now)))


# MERGED from web/dashboard/findings.py: `/system/findings`: what the doctor says. It asks the networks, which may

_LEVELS = (Level.PROBLEM, Level.NOTE, Level.OK)


@page()
async def show_findings(rt: Runtime, visit: Visit) -> Answer:
    """Every finding, what must be fixed first."""
    found = await threads.run_in_thread(lambda: _run_doctor(rt))
    return visit.show(
        "findings.html",
        findings=sorted(found, key=lambda finding: _LEVELS.index(finding.level)),
        problems=sum(finding.level is Level.PROBLEM for finding in found),
    )


def _run_doctor(rt: Runtime) -> list[Finding]:
    found, can_be_opened = checks.check_offline(rt.settings)
    return found + (list(checks.check(rt, Surface.DASHBOARD)) if can_be_opened else [])


# MERGED from web/dashboard/pause.py: `/system/pause`, `/system/resume`, `/system/try-held`: whether anything is pu

NOTHING_SENT = "nothing"
"""The value of the choice that is the owner's word: the original sent nothing since the backup."""


@page()
async def pause_publishing(rt: Runtime, visit: Visit) -> Answer:
    """From now on nothing starts."""
    await rt.write_soon(resume.pause)
    said = "Publishing is paused. Calls in progress are finished; nothing else starts. The API goes on accepting posts."
    return visit.go("/system", status=said)


@page()
async def resume_form(rt: Runtime, visit: Visit) -> Answer:
    """What going on will mean, and after a restore the choice that only the owner can make."""
    return await _ask_resume(rt, visit)


@page()
async def resume_publishing(rt: Runtime, visit: Visit) -> Answer:
    """Deliveries start again."""
    if appliance_state.paused_at(rt.reader) is None:
        raise Conflict("Publishing is not paused.")
    restored, choice = appliance_state.restored_from(rt.reader) is not None, visit.form.text("original")
    if restored and choice not in (NOTHING_SENT, "maybe"):
        return await _ask_resume(rt, visit, problem="Say first what the original did since the backup was made.")
    resumed = await rt.write_soon(resume.resume, nothing_was_sent=restored and choice == NOTHING_SENT)
    too_late = alerts.too_late_sentence(resumed.too_late, rt.settings)
    said = [*alerts.resume_sentences(resumed), *([too_late] if too_late else [])]
    return visit.go("/system", status=" ".join(said))


@page()
async def try_held(rt: Runtime, visit: Visit) -> Answer:
    """Networks that refuse this app are asked again at once."""
    held = await rt.write_soon(resume.try_held)
    said = "The next delivery to each held network is tried now. Look here again in a minute."
    return visit.go("/system", status=said if held else "No network refuses this app any more.")


async def _ask_resume(rt: Runtime, visit: Visit, problem: str | None = None) -> Answer:
    if appliance_state.paused_at(rt.reader) is None:
        return visit.go("/system", status="Publishing is not paused.")
    outlook = await rt.read_aside(lambda reader: resume.outlook(rt, reader))
    return visit.show(
        "resume.html",
        http_status=400 if problem else 200,
        outlook=outlook,
        too_late=alerts.too_late_sentence(outlook.too_late, rt.settings),
        still_scheduled=alerts.STILL_SCHEDULED,
        valid_keys=api_keys.list_undecided(rt.reader, rt.stamp()),
        sentences=alerts,
        problem=problem,
    )


# MERGED from web/dashboard/copies.py: `/system/copy`: a consistent copy of everything but secret.key, as a file fo


@page()
async def download_backup(rt: Runtime, visit: Visit) -> Answer | None:
    """Made while everything goes on, then sent piece by piece."""
    with await threads.run_in_thread(partial(create.make_download, rt)) as file:
        name = f"socialpub-{visit.now.astimezone(visit.zone):%Y-%m-%d-%H%M}.tar"
        await visit.request.start(
            200,
            (
                *visit.headers,
                (b"content-type", b"application/x-tar"),
                (b"content-length", b"%d" % file.size_bytes),
                (b"content-disposition", f'attachment; filename="{name}"'.encode()),
                (b"x-content-type-options", b"nosniff"),
                (b"cache-control", b"no-store"),
            ),
        )
        await files.send_file(visit.request, file, 0, file.size_bytes)
    return None


# MERGED from web/dashboard/notify_addresses.py: `/system/notify…`: where notifications go, and whether they arrive


@page()
async def add_address(rt: Runtime, visit: Visit) -> Answer:
    """One more address, as soon as Apprise has accepted it."""
    given = visit.form.text("url")
    try:
        url, name = await threads.run_in_thread(partial(send.parse_address, given))
        await rt.write_soon(send.add_service, url, name)
    except InvalidRequest as error:
        return await render(rt, visit, notify_url=given, notify_error=f"The address {error.errors[0].message}.")
    except Conflict as error:
        return await render(rt, visit, notify_url=given, notify_error=error.detail)
    said = f"Notifications go to {name} from now on. “Send a test message” shows whether they arrive."
    return visit.go("/system", status=said)


@page()
async def ask_remove_address(rt: Runtime, visit: Visit) -> Answer:
    """What removing an address means."""
    service = _load_address(rt, visit)
    others = [one for one in send.list_services(rt) if one.id != service.id]
    return visit.show("notify_remove.html", service=service, others=others)


@page()
async def remove_address(rt: Runtime, visit: Visit) -> Answer:
    """The address is forgotten."""
    name = await rt.write_soon(send.remove_service, _load_address(rt, visit).id)
    return visit.go("/system", status=f"{name} is removed and gets no more notifications.")


@page()
async def test_addresses(rt: Runtime, visit: Visit) -> Answer:
    """A test message to every service, and what became of each."""
    if not send.list_services(rt):
        raise Conflict("There is no address to send a message to. Add one under System.")
    results = await threads.run_in_thread(partial(send.send_test, rt))
    refused = [f"{service.name} did not accept the message: {failure}." for service, failure in results if failure]
    taken = [service.name for service, failure in results if failure is None]
    said = [*refused, *([f"Sent to {', '.join(taken)}. Check whether it arrived."] if taken else [])]
    unknown = send.unknown_to_processes(rt, Surface.DASHBOARD)
    if unknown is not None:
        said.append(unknown)
    if refused:
        return visit.go("/system", alert=" ".join(said))
    return visit.go("/system", status=" ".join(said))


def _load_address(rt: Runtime, visit: Visit) -> Service:
    """The address that the path names. Raises NotFound."""
    for service in send.list_services(rt):
        if service.is_added and service.id == visit.params["addressId"]:
            return service
    raise NotFound("This address is no longer in the list.")
