"""Drafts that arrived in the inbox of a network's app, where the owner finishes them: each is a cause of its own.

The owner is notified of a cause once while it lasts. A draft is a cause until the network reports a post that came of
it, or until the network drops it. So this needs no rows of its own.
"""

from datetime import timedelta

from socialpub.core.cause_kinds import CauseKind
from socialpub.core.clock import stamp
from socialpub.db import delivery_rows
from socialpub.db.transaction import Row
from socialpub.ops.causes import Cause
from socialpub.ops.notify.failures import TEXT_CHARACTERS, cut
from socialpub.providers.registry import LABELS
from socialpub.runtime import Runtime

KEPT_BY_NETWORK = timedelta(hours=24)
"""TikTok drops a draft that was not finished in about a day (integrators, 2026)."""
REMEDY = (
    "Open the notification in the network's app and finish the post there. The post's page has the caption to copy."
)


def find(rt: Runtime) -> list[Cause]:
    """Every draft that waits for the owner now, oldest first."""
    since = stamp(rt.now() - KEPT_BY_NETWORK)
    return [_cause(row) for row in delivery_rows.drafts_in_inbox(rt.reader, since)]


def _cause(row: Row) -> Cause:
    label = LABELS.get(row["provider"], row["provider"])
    text = cut(" ".join((row["text"] or "").split()), TEXT_CHARACTERS)
    about = f": “{text}”" if text else ""
    return Cause(
        CauseKind.DRAFT,
        f"draft:{row['id']}:inbox",
        f"A draft waits in the {label} inbox of {row['profile_name']}{about}.",
        REMEDY,
        f"/posts/{row['post_id']}",
        must_be_fixed=False,
        passes=True,
    )
