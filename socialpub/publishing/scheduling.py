"""What comes next, and when: a lane per profile, oldest first, one delivery at a time.

What may start is decided inside the claim, so that no answer can be out of date when it is acted on.
"""

from socialpub.accounts import cooldowns
from socialpub.db.database import Reader, Tx
from socialpub.db.locks import ProcessLock
from socialpub.db.models import Delivery

COMMITS = "commit"
"""As an endpoint of cooldowns: whatever call makes a post of this profile public."""


def next_due(reader: Reader, profile_id: str, now: str, process: ProcessLock) -> Delivery | None:
    """What of this lane comes next: what nobody works on any more, else the oldest due one. None while one runs."""
    row = reader.one(
        f"SELECT {Delivery.COLUMNS} FROM delivery WHERE profile_id = ? AND state = 'running'", (profile_id,)
    )
    if row is None:
        row = reader.one(
            f"""SELECT {Delivery.COLUMNS} FROM delivery WHERE profile_id = ? AND state = 'queued' AND run_at <= ?
                ORDER BY due_at, id LIMIT 1""",
            (profile_id, now),
        )
    elif process.works_on(row["owner"], row["id"]):
        return None
    return None if row is None else Delivery.of(row)


def due_lanes(reader: Reader, now: str, process: ProcessLock) -> list[str]:
    """One delivery of each profile that has something due or orphaned, the longest waiting first."""
    orphans = [
        row["id"] for row in reader.all("SELECT id, owner FROM delivery WHERE state = 'running'")
        if not process.works_on(row["owner"], row["id"])
    ]  # fmt: skip
    due = reader.all(
        """SELECT min(id), min(run_at) FROM delivery WHERE state = 'queued' AND run_at <= ?
            AND provider NOT IN (SELECT provider FROM hold WHERE probe_at > ?)
            GROUP BY profile_id ORDER BY 2""",
        (now, now),
    )
    return orphans + [row[0] for row in due]


def next_run_at(reader: Reader, now: str) -> str | None:
    """When the next delivery that is not due yet will be."""
    at: str | None = reader.value("SELECT min(run_at) FROM delivery WHERE state = 'queued' AND run_at > ?", (now,))
    return at


def cooldown_of(tx: Tx, delivery: Delivery) -> tuple[str, str] | None:
    """Until when the network wants to hear nothing of what this delivery does next, and why."""
    # What has not begun does not begin either: what it would upload now might lapse before its turn.
    commits = COMMITS if delivery.commits_next or delivery.started_at is None else cooldowns.ANY_ENDPOINT
    endpoints = (cooldowns.endpoint_of(delivery.step_name), commits)
    return cooldowns.until(tx, delivery.profile_id, endpoints, tx.stamp)
