"""Backfill: ask a network for the public id and URL of a published post (`fill_in`).

Only these two values change. The network is asked at growing intervals, for two days.
"""

import json
import sqlite3
from bisect import bisect_right
from typing import Any

from socialpub.accounts import tokens
from socialpub.core import logging
from socialpub.core.clock import after
from socialpub.core.errors import OperatorError, SocialpubError, Unavailable
from socialpub.core.secrets import redaction
from socialpub.db import appliance_state, clock_jumps
from socialpub.db.connection import Database
from socialpub.db.models import DeliveryRow, PostRow
from socialpub.db.tables import delivery_rows, profile_rows
from socialpub.providers.base import Job, Withdrawn
from socialpub.providers.responses import ProviderError
from socialpub.publishing.posts import content
from socialpub.runtime import Runtime

log = logging.get_logger(__name__)

ASK_AFTER_SECONDS = (60.0, 300.0, 900.0, 3600.0, 4 * 3600.0, 12 * 3600.0, 24 * 3600.0, 48 * 3600.0)
"""The ages of a post at which socialpub asks the network. After a restart, the last age is repeated."""


def fill_in_missing(rt: Runtime) -> int:
    """Ask the networks for the due ids. Return the number of ids that were filled in. Do not call on the event loop."""
    if appliance_state.paused_at(rt.db):
        return 0
    able = [name for name, provider in rt.providers.items() if hasattr(provider, "fill_in")]
    jumped = clock_jumps.recent_jump(rt.db, rt.now())
    set_forward = max(jumped.jumped_by, 0.0) if jumped else 0.0
    since = after(rt.stamp(), -ASK_AFTER_SECONDS[-1] - 3600 - set_forward)
    rows = [row for row in delivery_rows.published_without_id(rt.db, since) if row.provider in able]
    return sum(_ask_safely(rt, row) for row in rows if _is_due(rt, row))


def _ask_safely(rt: Runtime, row: DeliveryRow) -> bool:
    try:
        return _ask(rt, row)
    except Unavailable:
        raise  # the disk fails for every account
    except Exception:
        log.error("the id of a post could not be filled in", delivery=row.id, profile=row.profile_id, exc_info=True)
        return False  # the next age asks again


def _is_due(rt: Runtime, row: DeliveryRow) -> bool:
    """Return whether an age has passed since this process last asked."""
    age = clock_jumps.age_seconds(rt.db, rt.now(), row.published_at or "")
    return rt.engine.reaches_age(row.id, bisect_right(ASK_AFTER_SECONDS, age))


def _ask(rt: Runtime, row: DeliveryRow) -> bool:
    profile = profile_rows.find(rt.db, row.profile_id)
    if profile is None:
        return False
    provider: Any = rt.providers[row.provider]
    try:
        job = Job(
            content=content.load_content(rt, rt.db, row.post_id),
            options=provider.read_options(json.loads(row.options))[0],
            account=tokens.to_account(profile),
            memo=json.loads(row.memo),
            token=tokens.load_fresh(rt, profile.id),
            call=lambda method, url, **arguments: rt.http_for(row.provider).call(method, url, **arguments),
            fit=_no_fitting,
            wall_now=rt.now(),
            even_now=rt.now() - clock_jumps.total_shift(rt.db, rt.clock),
            slice_over=lambda: False,
            open=lambda sealed: rt.secrets.open(sealed.encode(), "delivery", row.id, "memo"),
        )
        published = redaction.mask_value(provider.fill_in(job))
    except (ProviderError, Withdrawn, SocialpubError, OperatorError):
        return False  # the next age asks again
    if published is None or published.post_id is None:
        return False
    rt.write(_fill_in, row.id, row.post_id, published.post_id, published.url)
    rt.engine.end_ages(row.id)
    return True


def _fill_in(rt: Runtime, tx: Database, delivery_id: str, post_id: str, provider_post_id: str, url: str | None) -> None:
    try:
        delivery_rows.fill_in(tx, delivery_id, provider_post_id, url)
    except sqlite3.IntegrityError:
        return  # another delivery has this id
    tx.update(PostRow, post_id, updated_at=tx.stamp)


def _no_fitting(*_: object) -> Any:
    raise AssertionError("a backfill does not send media")
