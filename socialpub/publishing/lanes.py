"""Who may start: the pause, the hold of a whole network, the lane of a profile, what a network said about "not before".

Everything here is asked inside the claim, so that no answer can be out of date when it is acted on.
"""

from socialpub.core.clock import after
from socialpub.db.database import Reader, Row, Tx
from socialpub.db.locks import ProcessLock
from socialpub.db.models import Delivery

PROBE_SECONDS = 15 * 60
"""How often one delivery asks whether a held network takes the app again."""

ANY_ENDPOINT = ""

COMMITS = "commit"
"""Stands for whatever call makes a post of this profile public."""


def paused_at(store: Reader | Tx) -> str | None:
    """Since when nothing starts, or None."""
    row = store.one("SELECT value FROM appliance WHERE name = 'paused_at'")
    return None if row is None else str(row[0])


def restored_from(store: Reader | Tx) -> str | None:
    """The instant of the copy that this house was restored from, until it has been resumed; else None."""
    row = store.one("SELECT value FROM appliance WHERE name = 'restored_from'")
    return None if row is None else str(row[0])


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


# --- holds: the app, not a post --------------------------------------------------------------------------------------


def may_pass(tx: Tx, provider: str) -> bool:
    """Whether this network's lane is open, or a probe is due: then this one is the probe."""
    hold = tx.one("SELECT probe_at FROM hold WHERE provider = ?", (provider,))
    if hold is None:
        return True
    if hold["probe_at"] > tx.stamp:
        return False
    tx.execute("UPDATE hold SET probe_at = ? WHERE provider = ?", (after(tx.stamp, PROBE_SECONDS), provider))
    return True


def hold(tx: Tx, provider: str, reason: str, code: str | None) -> str:
    """Hold everything of this network; when the next probe is due."""
    probe_at = after(tx.stamp, PROBE_SECONDS)
    tx.execute(
        """INSERT INTO hold (provider, reason, code, since, probe_at) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (provider) DO UPDATE SET reason = excluded.reason, code = excluded.code,
                probe_at = excluded.probe_at""",
        (provider, reason, code, tx.stamp, probe_at),
    )
    return probe_at


def holds(reader: Reader | Tx) -> list[Row]:
    """The networks that refuse this app: provider, reason, code, since, probe_at."""
    return reader.all("SELECT provider, reason, code, since, probe_at FROM hold ORDER BY provider")


def probe_at(tx: Tx, provider: str, at: str) -> None:
    """Let the next probe of a held network begin at `at`, when that is earlier: the last one showed nothing."""
    tx.execute("UPDATE hold SET probe_at = min(probe_at, ?) WHERE provider = ?", (at, provider))


def is_held(store: Reader | Tx, provider: str) -> bool:
    """Whether this network refuses the app."""
    return store.one("SELECT 1 FROM hold WHERE provider = ?", (provider,)) is not None


def release(tx: Tx, provider: str) -> bool:
    """The network takes the app again: what was held goes out. Whether it was held."""
    return tx.execute("DELETE FROM hold WHERE provider = ?", (provider,)).rowcount == 1


# --- what a network said ---------------------------------------------------------------------------------------------


def endpoint_of(step_name: str) -> str:
    """The step's family: `upload:3` and `upload:4` ask the same endpoint."""
    return step_name.partition(":")[0]


def rest(tx: Tx, profile_id: str, endpoint: str, until: str, reason: str) -> None:
    """Ask this endpoint (`ANY_ENDPOINT`: none) not before `until` for this profile. A later time that is
    known already stays."""
    tx.execute(
        """INSERT INTO not_before (profile_id, endpoint, until, reason) VALUES (?, ?, ?, ?)
            ON CONFLICT (profile_id, endpoint) DO UPDATE SET until = max(until, excluded.until),
                reason = excluded.reason""",
        (profile_id, endpoint, until, reason),
    )


def rests_until(tx: Tx, delivery: Delivery) -> tuple[str, str] | None:
    """Until when the network wants to hear nothing of what this delivery does next, and why."""
    row = tx.one(
        """SELECT until, reason FROM not_before WHERE profile_id = ? AND endpoint IN ('', ?, ?) AND until > ?
            ORDER BY until DESC LIMIT 1""",
        (
            delivery.profile_id,
            endpoint_of(delivery.step_name),
            # What has not begun does not begin either: what it would upload now might lapse before its turn.
            COMMITS if delivery.commits_next or delivery.started_at is None else ANY_ENDPOINT,
            tx.stamp,
        ),
    )
    return None if row is None else (row["until"], row["reason"])


# --- equal content ---------------------------------------------------------------------------------------------------


def blocked_by_equal(tx: Tx, delivery: Delivery) -> bool:
    """Whether a delivery of equal content to the same profile must be resolved before this one's next step.

    Nothing of equal content is sent while one is past its commit, and of several unknowns the oldest is read back
    first: otherwise the post of one could be taken for that of another.
    """
    others = tx.all(
        """SELECT committed_at, id FROM delivery WHERE profile_id = ? AND content_key = ? AND id <> ?
            AND committed_at IS NOT NULL AND state IN ('queued', 'running')""",
        (delivery.profile_id, delivery.content_key, delivery.id),
    )
    if delivery.progress.reading_back:
        mine = (delivery.committed_at or "", delivery.id)
        return any((row["committed_at"], row["id"]) < mine for row in others)
    return delivery.commits_next and bool(others)
