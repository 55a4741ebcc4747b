"""The content of an appliance before a measurement: connected accounts, and posts published long ago.

The rows are those that the appliance would write. Each statement inserts thousands of them, because a hundred thousand
requests take too long.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from socialpub.accounts import connect
from socialpub.accounts import grants as grants_accounts
from socialpub.core.clock import new_id, stamp
from socialpub.db.connection import Tx
from socialpub.db.states import State
from socialpub.db.tables import audience_rows
from socialpub.runtime import Runtime

PROFILES = 50
CHUNK = 10_000
WITH_PICTURE = 4
"""The interval of posts with an image."""
BODY = "A post of the stock, number {number}: as long as people write them, with a café and a 🌅, of no use. #bench"


def connect_accounts(rt: Runtime, grants: Iterable[dict[str, Any]]) -> list[str]:
    """Profiles with these tokens; their ids."""
    return [
        connect.import_account(rt, "x", grants_accounts.read_credentials(json.dumps(grant))).profile_id
        for grant in grants
    ]


def fill(rt: Runtime, profile_ids: list[str], count: int) -> None:
    """Insert this number of posts to two profiles each: most settled, a few canceled, a few scheduled for next year."""
    rt.write(_picture)
    now = rt.now()
    pairs = [(one, profile_ids[(at + 1) % len(profile_ids)]) for at, one in enumerate(profile_ids)]
    for start in range(0, count, CHUNK):
        rt.write(_chunk, pairs, range(start, min(start + CHUNK, count)), now - timedelta(seconds=10 * count))
    rt.write(_count)


def _picture(rt: Runtime, tx: Tx) -> None:
    tx.insert(
        "artifact",
        id=_PICTURE,
        status="verified",
        file_name="evening.jpg",
        declared_type="image/jpeg",
        declared_bytes=400_000,
        created_at=tx.stamp,
        kind="image",
        mime_type="image/jpeg",
        size_bytes=400_000,
        storage_key=f"{_PICTURE[-2:]}/{_PICTURE}-0123456789abcdef.jpg",
        facts='{"width": 1200, "height": 800}',
        verified_at=tx.stamp,
    )


_PICTURE = new_id(datetime(2023, 11, 14, tzinfo=UTC))


def _chunk(rt: Runtime, tx: Tx, pairs: list[tuple[str, str]], numbers: range, began: datetime) -> None:
    numbered = {pair: audience_rows.find_or_create(tx, [(profile, "x") for profile in pair]) for pair in pairs}
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in _INSERTS}
    for number in numbers:
        pair = pairs[number % len(pairs)]
        for table, row in _rows(number, pair, numbered[pair], began + timedelta(seconds=10 * number), tx.now):
            rows[table].append(row)
    for table, sql in _INSERTS.items():
        tx.many(sql, rows[table])


def _count(rt: Runtime, tx: Tx) -> None:
    """Count all posts once, because counting after each chunk makes a large stock quadratic."""
    groups = "SELECT audience_id, status, outcomes, count(*) FROM post GROUP BY 1, 2, 3"
    tx.execute(f"INSERT OR REPLACE INTO audience_count {groups}")
    days = "SELECT substr(created_at, 1, 10), audience_id, status, outcomes, count(*) FROM post GROUP BY 1, 2, 3, 4"
    tx.execute(f"INSERT OR REPLACE INTO post_day {days}")
    tx.execute("INSERT OR REPLACE INTO post_count SELECT status, count(*) FROM post GROUP BY 1")


_INSERTS = {
    "post": """INSERT INTO post (id, status, body, created_at, updated_at, scheduled_at, canceled_at, audience_id,
        outcomes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
    "media": "INSERT INTO media VALUES (?, ?, ?, ?, ?)",
    "delivery": """INSERT INTO delivery (id, post_id, position, profile_id, provider, profile_name, account_id, state,
        options, scheduled_at, published_at, provider_post_id, url, due_at, run_at, started_at, plan, content_key)
        VALUES (?, ?, ?, ?, 'x', 'A profile', ?, ?, '{"replySettings":"everyone"}', ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
    "attempt": """INSERT INTO attempt (delivery_id, profile_id, provider, step, started_at, ended_at, outcome)
        VALUES (?, ?, 'x', 'create_post', ?, ?, 'published')""",
    "log_entry": """INSERT INTO log_entry (id, delivery_id, post_id, profile_id, provider, type, occurred_at,
        text_version, profile_name) VALUES (?, ?, ?, ?, 'x', ?, ?, 0, 'A profile')""",
}


def _rows(
    number: int, pair: tuple[str, str], audience: int, at: datetime, now: datetime
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    status = {0: "canceled", 1: "scheduled"}.get(number % 50, "settled")
    state = {"canceled": "canceled", "scheduled": "queued", "settled": "published"}[status]
    when = stamp(at)
    scheduled_at = stamp(now + timedelta(days=365, seconds=number)) if status == "scheduled" else None
    published_at = when if status == "settled" else None
    canceled_at = when if status == "canceled" else None
    post_id, body = new_id(at), BODY.format(number=number)
    outcomes = State(state).letter * len(pair)
    yield "post", (post_id, status, body, when, when, scheduled_at, canceled_at, audience, outcomes)
    if number % WITH_PICTURE == 0:
        yield "media", (new_id(at), post_id, 0, _PICTURE, "An evening sky over violet hills")
    for position, profile in enumerate(pair):
        delivery_id = new_id(at)
        network_id = f"{1_900_000_000_000_000_000 + 2 * number + position}" if published_at else None
        url = f"https://x.com/i/status/{network_id}" if published_at else None
        due_at = scheduled_at or when
        yield (
            "delivery",
            (
                *(delivery_id, post_id, position, profile, profile, state, scheduled_at, published_at, network_id, url),
                *(due_at, due_at, published_at, '[["create_post","commit"]]', f"{number:032x}"),
            ),
        )
        yield "log_entry", (new_id(at), delivery_id, post_id, profile, "pending", when)
        if published_at:
            yield "attempt", (delivery_id, profile, when, when)
            yield "log_entry", (new_id(at), delivery_id, post_id, profile, "published", when)
