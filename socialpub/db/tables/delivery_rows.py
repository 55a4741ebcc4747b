"""Statements about the table `delivery`. `queries/api_json.py` has the API's view of the table."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta

from socialpub.db.connection import Database, Row, Value, placeholders, shift_by
from socialpub.db.delivery import Delivery
from socialpub.db.models import DeliveryRow
from socialpub.db.states import State

PREPARED = "each claim, step and settle"

_OPEN = "state IN ('queued', 'running')"

# --- one -------------------------------------------------------------------------------------------------------------


def find(store: Database, delivery_id: str) -> Delivery | None:
    row = store.one(f"SELECT {Delivery.COLUMNS} FROM delivery WHERE id = ?", (delivery_id,))
    return None if row is None else Delivery.from_row(row)


def reload_state(store: Database, delivery_id: str) -> Row | None:
    """Return the columns that may change during a call.

    The row has state, held_by, due_at, run_at, started_at, committed_at, progress (JSON) and profile_status.
    """
    return store.one(
        """SELECT d.state, d.owner AS held_by, d.due_at, d.run_at, d.started_at, d.committed_at, d.progress,
                p.status AS profile_status
            FROM delivery d LEFT JOIN profile p ON p.id = d.profile_id WHERE d.id = ?""",
        (delivery_id,),
    )


def queued_until(reader: Database, delivery_id: str) -> str | None:
    """Return the time of the next run of a queued delivery. None: the delivery is not queued."""
    at: str | None = reader.value("SELECT run_at FROM delivery WHERE id = ? AND state = 'queued'", (delivery_id,))
    return at


def is_open(reader: Database, delivery_id: str) -> bool:
    return reader.one(f"SELECT 1 FROM delivery WHERE id = ? AND {_OPEN}", (delivery_id,)) is not None


# --- writing ---------------------------------------------------------------------------------------------------------


def insert_many(tx: Database, rows: Sequence[Mapping[str, Value]]) -> None:
    """Insert rows with the same columns."""
    tx.insert(DeliveryRow, *rows)


def update(tx: Database, delivery_id: str, **columns: Value) -> None:
    """Set columns. `options`, `plan`, `memo` and `progress` are JSON (`as_json`), and `owner` is the process.

    Raise sqlite3.IntegrityError for a `provider_post_id` of another delivery of the account.
    """
    tx.update(DeliveryRow, delivery_id, **columns)


def store(tx: Database, delivery: Delivery) -> None:
    """Store all values that claim and settle change."""
    tx.update(
        DeliveryRow,
        delivery.id,
        state=delivery.state,
        run_at=delivery.run_at,
        started_at=delivery.started_at,
        owner=delivery.held_by,
        plan=None if delivery.plan is None else as_json(delivery.plan),
        step=delivery.step,
        memo=as_json(delivery.memo),
        progress=as_json(delivery.progress.as_dict()),
        committed_at=delivery.committed_at,
    )


def reseal(tx: Database, reseal: Callable[[bytes, str, str, str], bytes]) -> None:
    """Replace every sealed upload URL by `reseal(sealed, table, id, column)`."""
    address = "$.upload.address"
    rows = tx.all(
        "SELECT id, json_extract(memo, ?) AS sealed FROM delivery WHERE json_type(memo, ?) = 'text'", (address, address)
    )
    for row in rows:
        sealed = reseal(row.sealed.encode(), "delivery", row.id, "memo").decode()
        tx.execute_sql("UPDATE delivery SET memo = json_set(memo, ?, ?) WHERE id = ?", (address, sealed, row.id))


def fill_in(tx: Database, delivery_id: str, provider_post_id: str, url: str | None) -> None:
    """Store the id, and the URL if the row has none. Raise sqlite3.IntegrityError."""
    tx.execute_sql(
        """UPDATE delivery SET provider_post_id = ?, url = ifnull(url, ?)
            WHERE id = ? AND state = 'published' AND provider_post_id IS NULL""",
        (provider_post_id, url, delivery_id),
    )


as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_moved_by = "strftime('%Y-%m-%dT%H:%M:%fZ', {}, {})".format


def move_waits(tx: Database, seconds: float, of_former_runs: float, booted_at: str) -> None:
    """Shift the waits and ages of open deliveries after the clock was set. The owners' times stay.

    A post that was accepted before this boot (`booted_at`) and has not started shifts by `of_former_runs` seconds,
    because the machine may have been off.
    """
    shift = """CASE WHEN due_at = scheduled_at THEN '+0 seconds'
        WHEN started_at IS NULL AND due_at < :booted_at THEN :of_former_runs ELSE :by END"""
    # The parent of a reply was published after the reply's own time.
    time_of_post = f"max(ifnull(scheduled_at, ''), {_moved_by('due_at', shift)})"
    reconnected_at = "json_extract(progress, '$.reconnected_at')"
    since = "json_extract(progress, '$.since')"
    params = {"by": shift_by(seconds), "of_former_runs": shift_by(of_former_runs), "booted_at": booted_at}
    # One statement for each index: most deliveries have ended.
    for open_ones in ("state = 'queued' AND run_at > ''", "state = 'running'"):
        tx.execute_sql(
            f"""UPDATE delivery SET due_at = {time_of_post},
                run_at = CASE WHEN started_at IS NULL AND run_at = due_at THEN {time_of_post}
                    WHEN started_at IS NULL AND run_at > due_at THEN max({_moved_by("run_at", ":by")}, {time_of_post})
                    ELSE {_moved_by("run_at", ":by")} END,
                started_at = {_moved_by("started_at", ":by")}, committed_at = {_moved_by("committed_at", ":by")},
                progress = CASE WHEN {since} IS NULL OR json_extract(progress, '$.restored') THEN progress
                    ELSE json_set(progress, '$.since', {_moved_by(since, ":by")}) END
            WHERE {open_ones}""",
            params,
        )
        tx.execute_sql(
            f"""UPDATE delivery
                SET progress = json_set(progress, '$.reconnected_at', {_moved_by(reconnected_at, ":by")})
                WHERE {open_ones} AND {reconnected_at} IS NOT NULL""",
            {"by": shift_by(seconds)},
        )


# --- of one post -----------------------------------------------------------------------------------------------------


def list_of_post(store: Database, post_id: str) -> list[Row]:
    """Return the deliveries of a post in their order."""
    return store.all("SELECT * FROM delivery WHERE post_id = ? ORDER BY position", (post_id,))


def list_open_of_post(tx: Database, post_id: str) -> list[Delivery]:
    """Return the deliveries of a post without an outcome."""
    rows = tx.all(f"SELECT {Delivery.COLUMNS} FROM delivery WHERE post_id = ? AND {_OPEN}", (post_id,))
    return [Delivery.from_row(row) for row in rows]


def list_states(tx: Database, post_id: str) -> list[tuple[str, State]]:
    """Return the network and the state of each delivery, in the order of the profiles' ids."""
    rows = tx.all("SELECT provider, state FROM delivery WHERE post_id = ? ORDER BY profile_id", (post_id,))
    return [(row[0], State(row[1])) for row in rows]


def named_in_options(tx: Database, post_id: str) -> set[str]:
    """Return the ids of artifacts in the options of a post's deliveries."""
    rows = tx.all(
        """SELECT DISTINCT o.value FROM delivery d, json_each(d.options) o
            WHERE d.post_id = ? AND o.type = 'text' AND length(o.value) = 36""",
        (post_id,),
    )
    return {row[0] for row in rows}


def list_retries(store: Database, delivery: Row) -> list[Row]:
    """Return the id, the post_id and the state of every try of this delivery, including this delivery."""
    first = delivery.retry_of or delivery.id
    return store.all("SELECT id, post_id, state FROM delivery WHERE id = ? OR retry_of = ? ORDER BY id", (first, first))


def newest_try(store: Database, first: str) -> Row | None:
    """Return the published try of this first delivery, else its newest try.

    The row has post_id, state, published_at and provider_post_id.
    """
    return store.one(
        """SELECT post_id, state, published_at, provider_post_id FROM delivery WHERE id = :first OR retry_of = :first
            ORDER BY state = 'published' DESC, id DESC LIMIT 1""",
        {"first": first},
    )


def find_first(store: Database, post_id: str, profile_id: str) -> str | None:
    """Return the first delivery of this post, or of the post that it retries, to this profile."""
    sql = "SELECT ifnull(retry_of, id) FROM delivery WHERE post_id = ? AND profile_id = ?"
    first: str | None = store.value(sql, (post_id, profile_id))
    return first


def find_first_of_account(store: Database, post_id: str, provider: str, account_id: str) -> str | None:
    """Do the same for an account, which may have another profile now."""
    sql = "SELECT ifnull(retry_of, id) FROM delivery WHERE post_id = ? AND provider = ? AND account_id = ?"
    first: str | None = store.value(sql, (post_id, provider, account_id))
    return first


def list_replies(store: Database, delivery_id: str, limit: int = -1) -> list[str]:
    """Return the posts that reply to this delivery or to another try of it, oldest first."""
    rows = store.all(
        """SELECT post_id FROM delivery WHERE reply_to = (SELECT ifnull(retry_of, id) FROM delivery WHERE id = ?)
            ORDER BY id LIMIT ?""",
        (delivery_id, limit),
    )
    return [row[0] for row in rows]


def replies_to_itself(store: Database, reply_to: str, first: str) -> bool:
    """Return whether a try of `first` that replies to `reply_to` would wait for itself. Both are first deliveries."""
    row = store.one(
        """WITH RECURSIVE above (id) AS (
                SELECT :reply_to UNION SELECT d.reply_to FROM above JOIN delivery d
                    ON (d.id = above.id OR d.retry_of = above.id) WHERE d.reply_to IS NOT NULL AND state <> 'published')
            SELECT 1 FROM above WHERE id = :first""",
        {"reply_to": reply_to, "first": first},
    )
    return row is not None


def wake_replies(tx: Database, delivery_id: str, *, published: bool) -> bool:
    """Make the replies to this delivery due: each at its time if the parent is `published`, else now, so that it ends.

    Return whether there are any.
    """
    replies = """FROM delivery WHERE state = 'queued'
        AND (phase IN ('preparing', 'committing') OR json_extract(progress, '$.then') = 'preparing')
        AND reply_to = (SELECT ifnull(retry_of, id) FROM delivery WHERE id = :id)"""
    params = {"id": delivery_id, "now": tx.stamp}
    if tx.one(f"SELECT 1 {replies} LIMIT 1", params) is None:
        return False
    run_at = "max(run_at, :now)" if published else ":now"
    tx.execute_sql(f"UPDATE delivery SET run_at = {run_at} WHERE id IN (SELECT id {replies})", params)
    return True


def wake_equal(tx: Database, delivery: Delivery) -> None:
    """Let the deliveries with equal content, which waited for this delivery, be due from now on."""
    tx.execute_sql(
        """UPDATE delivery SET run_at = :now WHERE profile_id = :profile AND content_key = :key AND state = 'queued'
            AND run_at < :now""",
        {"now": tx.stamp, "profile": delivery.profile_id, "key": delivery.content_key},
    )


def delete_of_post(tx: Database, post_id: str) -> None:
    tx.execute_sql("DELETE FROM delivery WHERE post_id = ?", (post_id,))


# --- of one profile --------------------------------------------------------------------------------------------------


def running_in(store: Database, profile_id: str) -> list[Row]:
    """Return the id and the held_by of the deliveries to this profile that a process is running."""
    return store.all(
        "SELECT id, owner AS held_by FROM delivery WHERE profile_id = ? AND state = 'running'", (profile_id,)
    )


def rename_open(tx: Database, profile_id: str, name: str) -> None:
    """Store the new name of a profile in its open deliveries. An ended delivery keeps the name at its end."""
    for is_open in ("state = 'queued'", "state = 'running'"):  # one statement for each index
        sql = f"UPDATE delivery SET profile_name = ? WHERE profile_id = ? AND {is_open} AND profile_name <> ?"
        tx.execute_sql(sql, (name, profile_id, name))


def is_outcome_of_another(reader: Database, delivery: Delivery, provider_post_id: str | None) -> bool:
    """Return whether this post of the network belongs to another delivery."""
    row = reader.one(
        "SELECT 1 FROM delivery WHERE provider = ? AND account_id = ? AND provider_post_id = ? AND id <> ?",
        (delivery.provider, delivery.account_id, provider_post_id, delivery.id),
    )
    return row is not None


def others_past_commit(reader: Database, delivery: Delivery) -> bool:
    """Return whether another delivery to this profile may have published a post without a known id.

    Such a delivery is open past its commit, or its outcome became unknown after this delivery's commit.
    """
    sql = f"""SELECT 1 FROM delivery WHERE profile_id = ? AND id <> ? AND committed_at IS NOT NULL
        AND ({_OPEN} OR (state = 'unconfirmed' AND failed_at >= ?)) LIMIT 1"""
    return reader.one(sql, (delivery.profile_id, delivery.id, delivery.committed_at or "")) is not None


# --- of all ----------------------------------------------------------------------------------------------------------


def running(reader: Database) -> list[Row]:
    """Return the id, the network, the profile and the held_by of every delivery that a process is running."""
    return reader.all("SELECT id, provider, profile_id, owner AS held_by FROM delivery WHERE state = 'running'")


def running_after_death(tx: Database) -> list[Row]:
    """Return the id and the held_by of the running deliveries whose last process died."""
    return tx.all(
        """SELECT id, owner AS held_by FROM delivery
            WHERE state = 'running' AND json_extract(progress, '$.deaths') > 0"""
    )


def wake_reconnected(tx: Database, profile_id: str) -> None:
    """Let the due deliveries of a profile run again: the account was connected again."""
    tx.execute_sql(
        """UPDATE delivery SET run_at = :now, progress = json_set(progress, '$.reconnected_at', :now)
            WHERE profile_id = :profile AND state = 'queued' AND run_at <= :now""",
        {"now": tx.stamp, "profile": profile_id},
    )


def wake_postponed(tx: Database, profile_id: str, until: str) -> None:
    """Make deliveries due that were postponed until this instant."""
    _wake(tx, profile_id, "run_at = :until", until=until)


def wake_begun(tx: Database, profile_id: str) -> None:
    """Make deliveries due that were due before, so that they end: this profile can no longer publish."""
    _wake(tx, profile_id, "(started_at IS NOT NULL OR run_at > due_at)")


def _wake(tx: Database, profile_id: str, which: str, *, until: str = "") -> None:
    tx.execute_sql(
        f"""UPDATE delivery SET run_at = CASE WHEN started_at IS NULL THEN max(:now, due_at) ELSE :now END
            WHERE profile_id = :profile AND state = 'queued' AND run_at > :now AND {which}""",
        {"now": tx.stamp, "profile": profile_id, "until": until},
    )


_UNAPPROVED = """FROM stored_wait w JOIN delivery ON delivery.id = w.subject JOIN post p ON p.id = post_id
    WHERE w.reason = 'approval'"""


def list_unapproved(reader: Database, limit: int, max_lateness: timedelta) -> list[Row]:
    """Return the first posts that wait for the owner's approval, the oldest first.

    The rows have post_id, text (the beginning), key_name, required_at, and until, the deadline.
    """
    return reader.all(
        f"""SELECT post_id, substr(p.body, 1, 100) AS text, key_name,
                min(since) AS required_at, {_moved_by("min(due_at)", ":lateness")} AS until
            {_UNAPPROVED} GROUP BY post_id LIMIT :limit""",
        {"limit": limit, "lateness": shift_by(max_lateness.total_seconds())},
    )


def list_unread_cards(reader: Database) -> list[str]:
    """Return the deliveries that wait for the owner's approval and for the page of their link card, oldest first."""
    sql = f"SELECT delivery.id {_UNAPPROVED} AND json_extract(memo, '$.link_card.unread') ORDER BY delivery.id"
    return [row[0] for row in reader.all(sql)]


def count_unapproved(reader: Database) -> int:
    """Count the posts that wait for the owner's approval."""
    return int(reader.value(f"SELECT count(DISTINCT post_id) {_UNAPPROVED}"))


def unapproved_among(reader: Database, post_ids: Collection[str]) -> set[str]:
    """Return the posts among these that wait for the owner's approval."""
    sql = f"SELECT post_id {_UNAPPROVED} AND post_id IN ({placeholders(post_ids)})"
    return {row[0] for row in reader.all(sql, tuple(post_ids))}


def open_elsewhere(store: Database, restore_count: int) -> list[Delivery]:
    """Return the open deliveries that come from a backup: their posts have a lower `restore_count`."""
    rows = store.all(
        f"""SELECT {Delivery.COLUMNS} FROM delivery WHERE {_OPEN}
            AND post_id IN (SELECT id FROM post WHERE restore_count < ?)""",
        (restore_count,),
    )
    return [Delivery.from_row(row) for row in rows]


def due_later(store: Database, instant: str) -> set[str]:
    """Return the open deliveries that are due after this instant, and those that wait for one of them."""
    rows = store.all(
        f"""WITH RECURSIVE later (id, first) AS (
                SELECT id, ifnull(retry_of, id) FROM delivery WHERE {_OPEN} AND due_at > ?
                UNION SELECT d.id, ifnull(d.retry_of, d.id) FROM later JOIN delivery d ON d.reply_to = later.first
                    WHERE {_OPEN})
            SELECT id FROM later""",
        (instant,),
    )
    return {row[0] for row in rows}


def published_without_id(reader: Database, since: str, providers: Collection[str]) -> list[Row]:
    """Return the published deliveries without a public id, oldest first."""
    return reader.all(
        f"""SELECT id, post_id, profile_id, provider, published_at, options, memo FROM delivery
            WHERE state = 'published' AND provider_post_id IS NULL AND published_at > ?
                AND provider IN ({placeholders(providers)}) ORDER BY published_at""",
        (since, *providers),
    )


def drafts_in_inbox(reader: Database, since: str) -> list[Row]:
    """Return the unpublished drafts in a network's app since then, oldest first. `text` is the post's beginning."""
    return reader.all(
        """SELECT d.id, d.post_id, d.provider, d.profile_name, substr(p.body, 1, 100) AS text
            FROM delivery d JOIN post p ON p.id = d.post_id
            WHERE d.state = 'published' AND d.provider_post_id IS NULL AND d.published_at > ?
                AND json_extract(d.memo, '$.in_inbox') ORDER BY d.published_at""",
        (since,),
    )
