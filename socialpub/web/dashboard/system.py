"""`/system`: how this installation is, who is signed in, and the password."""

import asyncio
import platform
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from socialpub.accounts import api_keys, browser_sessions, password, usage
from socialpub.accounts.remedies import Door
from socialpub.core import sizes, version
from socialpub.core.clock import stamp
from socialpub.db import appliance_state
from socialpub.ops import housekeeping_report, machine_checks, overview, resume_sentences, storage_use
from socialpub.ops.copies import last_copy
from socialpub.ops.copies.last_copy import LastCopy
from socialpub.ops.notify import findings
from socialpub.ops.overview import DiskRoom, Needs
from socialpub.providers.registry import LABELS
from socialpub.publishing import audiences, resume
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.dashboard import usage_table
from socialpub.web.dashboard.page import page
from socialpub.web.dashboard.post_words import StateWord
from socialpub.web.dashboard.visit import Visit


@dataclass(frozen=True, slots=True)
class AtAGlance:
    """One of the four things that the page begins with. `at` is a stamp that belongs behind the text."""

    name: str
    state: StateWord
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
    needs = overview.needs(rt, Door.DASHBOARD)
    paused = needs.paused_at is not None
    outlook = await rt.read_aside(lambda reader: resume.outlook(rt, reader)) if paused else None
    return visit.show(
        "system.html",
        http_status=400 if errors or notify_error else 200,
        problem=f"The address is not added. {notify_error}" if notify_error else None,
        needs=needs,
        glance=list(_glance(rt, needs)),
        next_copy_at=_next_copy_at(rt, needs.copy),
        services=findings.read(rt, rt.reader),
        notify_url=notify_url,
        notify_error=notify_error,
        labels=LABELS,
        outlook=outlook,
        too_late=resume_sentences.too_late(outlook.too_late, rt.settings) if outlook else None,
        storage=await asyncio.to_thread(storage_use.read, rt),
        housekeeping=await asyncio.to_thread(housekeeping_report.read, rt),
        posts=sum(count for _, count in audiences.count_posts(rt.reader)),
        usage=usage_table.build(
            usage.read(rt.reader, rt.now(), usage_table.DAYS), api_keys.list_all(rt.reader), rt.providers
        ),
        version=version.current(),
        python_version=platform.python_version(),
        sqlite_version=sqlite3.sqlite_version,
        settings=rt.settings,
        sessions=browser_sessions.list_all(rt, rt.reader),
        has_password=password.is_set(rt.reader),
        errors=errors or {},
    )


def _glance(rt: Runtime, needs: Needs) -> Iterator[AtAGlance]:
    """Worker, disk, clock and backup."""
    if needs.worker:
        for one in needs.worker:
            yield AtAGlance("Worker", StateWord("fix this", "bad"), one.sentences)
    else:
        reported_at = appliance_state.get(rt.reader, appliance_state.HEARTBEAT)
        yield AtAGlance("Worker", StateWord("running", "good"), "It last reported", reported_at)
    yield _disk(needs.disk)
    yield _clock(rt, needs)
    yield _backup(needs)


def _disk(disk: DiskRoom) -> AtAGlance:
    free, floor = (sizes.write(one).partition(" (")[0] for one in (disk.free_bytes, disk.floor_bytes))
    if disk.is_full:
        text = f"{free} are left, less than the {floor} that are kept free: no upload is accepted."
        return AtAGlance("Disk", StateWord("full", "bad"), text, more="#storage")
    state = StateWord("nearly full", "warn") if disk.is_nearly_full else StateWord("enough space", "good")
    return AtAGlance("Disk", state, f"{free} are free, {floor} of them are kept free.", more="#storage")


def _clock(rt: Runtime, needs: Needs) -> AtAGlance:
    if needs.clock_jump:
        return AtAGlance("Clock", StateWord("was set", "warn"), needs.clock_jump)
    if machine_checks.clock_is_kept() is False:
        text = "Nothing keeps this machine's clock set. Switch NTP on. It shows"
        return AtAGlance("Clock", StateWord("may drift", "warn"), text, rt.stamp())
    return AtAGlance("Clock", StateWord("steady", "good"), "It shows", rt.stamp())


def _backup(needs: Needs) -> AtAGlance:
    copy = needs.copy
    if copy.failed_at is not None:
        return AtAGlance("Backup", StateWord("failed", "bad"), "The last backup failed", copy.failed_at, more="#copies")
    if copy.made_at is None:
        return AtAGlance("Backup", StateWord("none yet", "warn"), "No backup was ever made.", more="#copies")
    state = StateWord("too old", "warn") if needs.copy_reminder else StateWord("made", "good")
    return AtAGlance("Backup", state, "The last one was made", copy.made_at, more="#copies")


def _next_copy_at(rt: Runtime, copy: LastCopy) -> str | None:
    """When the worker makes the next one; None when that is left to a timer."""
    every, now = rt.settings.backup.every, rt.now()
    return None if every is None else stamp(max(now, last_copy.next_at(copy, every, now)))
