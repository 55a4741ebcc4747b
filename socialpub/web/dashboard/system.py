"""`/system`: how this installation is, who is signed in, and the password."""

import asyncio
import platform
import sqlite3
from importlib import metadata

from socialpub.accounts import api_keys, browser_sessions, password, usage
from socialpub.accounts.remedies import Door
from socialpub.core.clock import stamp
from socialpub.ops import housekeeping_report, overview, resume_sentences, storage_use
from socialpub.ops.copies import last_copy
from socialpub.ops.copies.last_copy import LastCopy
from socialpub.ops.notify import findings
from socialpub.providers.registry import LABELS
from socialpub.publishing import audiences, resume
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.dashboard import usage_table
from socialpub.web.dashboard.page import page
from socialpub.web.dashboard.visit import Visit


@page()
async def show(rt: Runtime, visit: Visit) -> Answer:
    """The whole page."""
    return await render(rt, visit)


async def render(rt: Runtime, visit: Visit, errors: dict[str, str] | None = None) -> Answer:
    """The page, with what is wrong in its form."""
    needs = overview.needs(rt, Door.DASHBOARD)
    paused = needs.paused_at is not None
    outlook = await rt.read_aside(lambda reader: resume.outlook(rt, reader)) if paused else None
    return visit.show(
        "system.html",
        http_status=400 if errors else 200,
        needs=needs,
        next_copy_at=_next_copy_at(rt, needs.copy),
        services=findings.read(rt, rt.reader),
        labels=LABELS,
        outlook=outlook,
        too_late=resume_sentences.too_late(outlook.too_late, rt.settings) if outlook else None,
        storage=await asyncio.to_thread(storage_use.read, rt),
        housekeeping=await asyncio.to_thread(housekeeping_report.read, rt),
        posts=sum(count for _, count in audiences.count_posts(rt.reader)),
        usage=usage_table.build(
            usage.read(rt.reader, rt.now(), usage_table.DAYS), api_keys.list_all(rt.reader), rt.providers
        ),
        version=metadata.version("socialpub"),
        python_version=platform.python_version(),
        sqlite_version=sqlite3.sqlite_version,
        settings=rt.settings,
        sessions=browser_sessions.list_all(rt, rt.reader),
        has_password=password.is_set(rt.reader),
        errors=errors or {},
    )


def _next_copy_at(rt: Runtime, copy: LastCopy) -> str | None:
    """When the worker makes the next one; None when that is left to a timer."""
    every, now = rt.settings.backup.every, rt.now()
    return None if every is None else stamp(max(now, last_copy.next_at(copy, every, now)))
