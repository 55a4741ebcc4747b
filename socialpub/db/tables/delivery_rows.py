"""Statements about the table `delivery`. `queries/api_json.py` has the API's view of the table.

Each claim runs `list_running` twice, and each settlement runs `list_outcomes`, `wake_replies` and `wake_equal`. These
four have SQL text and take 0.01 to 0.02 ms each. As peewee queries, they take 0.41, 0.28, 0.56 and 0.28 ms.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from peewee import SQL, Case, ColumnBase, ModelSelect, fn

from socialpub.db.connection import Database, shifted
from socialpub.db.delivery import Delivery
from socialpub.db.models import IS_OPEN, IS_QUEUED, DeliveryRow, PostRow, StoredWaitRow
from socialpub.db.states import State

# --- one -------------------------------------------------------------------------------------------------------------


def find(db: Database, delivery_id: str) -> Delivery | None:
    row = db.get(DeliveryRow, delivery_id)
    return None if row is None else Delivery.from_row(row)


def is_open(db: Database, delivery_id: str) -> bool:
    row = db.get(DeliveryRow, delivery_id)
    return row is not None and not State(row.state).final


# --- writing ---------------------------------------------------------------------------------------------------------


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
    has_upload = fn.json_type(DeliveryRow.memo, "$.upload.address") == "text"
    for row in list(DeliveryRow.select(DeliveryRow.id, DeliveryRow.memo).where(has_upload).execute(tx)):
        memo = json.loads(row.memo)
        upload = memo["upload"]
        upload["address"] = reseal(upload["address"].encode(), "delivery", row.id, "memo").decode()
        tx.update(DeliveryRow, row.id, memo=as_json(memo))


def fill_in(tx: Database, delivery_id: str, provider_post_id: str, url: str | None) -> None:
    """Store the id, and the URL if the row has none. Raise sqlite3.IntegrityError."""
    row = DeliveryRow
    is_unknown = (row.state == State.PUBLISHED) & row.provider_post_id.is_null()
    change = row.update(provider_post_id=provider_post_id, url=fn.IFNULL(row.url, url))
    change.where((row.id == delivery_id) & is_unknown).execute(tx)


as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def move_waits(tx: Database, seconds: float, of_former_runs: float, booted_at: str) -> None:
    """Shift the waits and ages of open deliveries after the clock was set. The owners' times stay.

    A post that was accepted before this boot (`booted_at`) and has not started shifts by `of_former_runs` seconds,
    because the machine may have been off.
    """
    row, is_unstarted = DeliveryRow, DeliveryRow.started_at.is_null()
    is_of_former_run = is_unstarted & (row.due_at < booted_at)
    moved_due_at = Case(
        None,
        ((row.due_at == row.scheduled_at, row.due_at), (is_of_former_run, shifted(row.due_at, of_former_runs))),
        shifted(row.due_at, seconds),
    )
    # The parent of a reply was published after the reply's own time.
    due_at = fn.MAX(fn.IFNULL(row.scheduled_at, ""), moved_due_at)
    run_at = Case(
        None,
        (
            (is_unstarted & (row.run_at == row.due_at), due_at),
            (is_unstarted & (row.run_at > row.due_at), fn.MAX(shifted(row.run_at, seconds), due_at)),
        ),
        shifted(row.run_at, seconds),
    )
    times = {"started_at": shifted(row.started_at, seconds), "committed_at": shifted(row.committed_at, seconds)}
    row.update(due_at=due_at, run_at=run_at, **times).where(IS_OPEN).execute(tx)
    for name, is_ours in (("since", fn.json_extract(row.progress, "$.restored").is_null()), ("reconnected_at", True)):
        at = fn.json_extract(row.progress, f"$.{name}")
        progress = fn.json_set(row.progress, f"$.{name}", shifted(at, seconds))
        row.update(progress=progress).where(IS_OPEN & ~at.is_null() & is_ours).execute(tx)


# --- of one post -----------------------------------------------------------------------------------------------------


def list_of_post(db: Database, post_id: str) -> list[DeliveryRow]:
    """Return the deliveries of a post in their order."""
    query = DeliveryRow.select().where(DeliveryRow.post_id == post_id).order_by(DeliveryRow.position)
    return list(query.execute(db))


def list_open_of_post(tx: Database, post_id: str) -> list[Delivery]:
    """Return the deliveries of a post without an outcome."""
    return [Delivery.from_row(row) for row in list_of_post(tx, post_id) if not State(row.state).final]


def list_outcomes(tx: Database, post_id: str) -> list[tuple[str, State, str]]:
    """Return the provider, the state and the options of each delivery, in the order of the profiles' ids."""
    sql = "SELECT provider, state, options FROM delivery WHERE post_id = ? ORDER BY profile_id"
    return [(provider, State(state), options) for provider, state, options in tx.execute_sql(sql, (post_id,))]


def artifacts_in_options(options: Iterable[str]) -> set[str]:
    """Return the ids of artifacts in the options of deliveries."""
    values = [value for text in options for value in json.loads(text).values()]
    return {value for value in values if isinstance(value, str) and len(value) == 36}


def list_tries(db: Database, first_id: str) -> list[DeliveryRow]:
    """Return a first delivery (`DeliveryRow.first_id`) and its retries, oldest first."""
    row = DeliveryRow
    query = row.select().where((row.id == first_id) | (row.retry_of == first_id)).order_by(row.id)
    return list(query.execute(db))


def list_replies(db: Database, first_id: str, limit: int = -1) -> list[str]:
    """Return the posts that reply to any try of this first delivery, oldest first."""
    row = DeliveryRow
    query = row.select(row.post_id).where(row.reply_to == first_id).order_by(row.id).limit(limit)
    return [post_id for (post_id,) in query.tuples().execute(db)]


def replies_to_itself(db: Database, reply_to: str, first_id: str) -> bool:
    """Return whether a try of `first_id` that replies to `reply_to` would wait for itself. Both are first
    deliveries."""
    above, parents = set[str](), [reply_to]
    while parents:
        parent = parents.pop()
        if parent not in above:
            above.add(parent)
            tries = list_tries(db, parent)
            parents += [row.reply_to for row in tries if row.reply_to is not None and row.state != State.PUBLISHED]
    return first_id in above


def wake_replies(tx: Database, delivery_id: str, *, published: bool) -> bool:
    """Make the replies to this delivery due: each at its time if the parent is `published`, else now, so that it ends.

    Return whether there are any.
    """
    run_at = "max(run_at, :now)" if published else ":now"
    woken = tx.execute_sql(
        f"""UPDATE delivery SET run_at = {run_at} WHERE state = 'queued'
            AND (phase IN ('preparing', 'committing') OR json_extract(progress, '$.then') = 'preparing')
            AND reply_to = (SELECT ifnull(retry_of, id) FROM delivery WHERE id = :id)""",
        {"id": delivery_id, "now": tx.stamp},
    )
    return woken.rowcount > 0


def wake_equal(tx: Database, delivery: Delivery) -> None:
    """Let the deliveries with equal content, which waited for this delivery, be due from now on."""
    tx.execute_sql(
        """UPDATE delivery SET run_at = :now WHERE profile_id = :profile AND content_key = :key AND state = 'queued'
            AND run_at < :now""",
        {"now": tx.stamp, "profile": delivery.profile_id, "key": delivery.content_key},
    )


# --- of one profile --------------------------------------------------------------------------------------------------


class RunningDelivery(NamedTuple):
    id: str
    provider: str
    profile_id: str
    owner: str | None
    progress: str


def list_running(db: Database, profile_id: str | None = None) -> list[RunningDelivery]:
    """Return the deliveries, or those to one profile, that a process is running."""
    of_profile = "" if profile_id is None else "AND profile_id = :profile"
    sql = f"SELECT id, provider, profile_id, owner, progress FROM delivery WHERE state = 'running' {of_profile}"
    return [RunningDelivery(*row) for row in db.execute_sql(sql, {"profile": profile_id})]


def rename_open(tx: Database, profile_id: str, name: str) -> None:
    """Store the new name of a profile in its open deliveries. An ended delivery keeps the name at its end."""
    row = DeliveryRow
    is_other = (row.profile_id == profile_id) & (row.profile_name != name)
    row.update(profile_name=name).where(IS_OPEN & is_other).execute(tx)


def is_outcome_of_another(db: Database, delivery: Delivery, provider_post_id: str | None) -> bool:
    """Return whether this post of the network belongs to another delivery."""
    row = DeliveryRow
    is_on_account = (row.provider == delivery.provider) & (row.account_id == delivery.account_id)
    is_of_another = is_on_account & (row.provider_post_id == provider_post_id) & (row.id != delivery.id)
    return row.select(row.id).where(is_of_another).first(db) is not None


def others_past_commit(db: Database, delivery: Delivery) -> bool:
    """Return whether another delivery to this profile may have published a post without a known id.

    Such a delivery is open past its commit, or its outcome became unknown after this delivery's commit.
    """
    row = DeliveryRow
    is_unknown = (row.state == State.UNCONFIRMED) & (row.failed_at >= (delivery.committed_at or ""))
    others = row.select(row.id).where((row.profile_id == delivery.profile_id) & (row.id != delivery.id))
    return any(others.where(may_be_up, ~row.committed_at.is_null()).first(db) for may_be_up in (IS_OPEN, is_unknown))


def wake_reconnected(tx: Database, profile_id: str) -> None:
    """Let the due deliveries of a profile run again: the account was connected again."""
    row = DeliveryRow
    progress = fn.json_set(row.progress, "$.reconnected_at", tx.stamp)
    is_due = IS_QUEUED & (row.profile_id == profile_id) & (row.run_at <= tx.stamp)
    row.update(run_at=tx.stamp, progress=progress).where(is_due).execute(tx)


def wake_postponed(tx: Database, profile_id: str, until: str) -> None:
    """Make deliveries due that were postponed until this instant."""
    _wake(tx, profile_id, DeliveryRow.run_at == until)


def wake_begun(tx: Database, profile_id: str) -> None:
    """Make deliveries due that were due before, so that they end: this profile can no longer publish."""
    _wake(tx, profile_id, ~DeliveryRow.started_at.is_null() | (DeliveryRow.run_at > DeliveryRow.due_at))


def _wake(tx: Database, profile_id: str, condition: ColumnBase) -> None:
    row = DeliveryRow
    run_at = Case(None, ((row.started_at.is_null(), fn.MAX(tx.stamp, row.due_at)),), tx.stamp)
    is_later = IS_QUEUED & (row.profile_id == profile_id) & (row.run_at > tx.stamp)
    row.update(run_at=run_at).where(is_later, condition).execute(tx)


# --- posts that wait for the owner's approval ------------------------------------------------------------------------


def _unapproved(*columns: Any) -> "ModelSelect[StoredWaitRow]":
    wait = StoredWaitRow
    query = wait.select(*columns).join(DeliveryRow, on=DeliveryRow.id == wait.subject)
    return query.join(PostRow, on=PostRow.id == DeliveryRow.post_id).where(wait.reason == "approval")


def list_unapproved(db: Database, limit: int, max_lateness: timedelta) -> list[Any]:
    """Return the first posts that wait for the owner's approval, the oldest first.

    The rows have post_id, text (the beginning), key_name, required_at, and until, the deadline.
    """
    query = _unapproved(
        DeliveryRow.post_id,
        fn.SUBSTR(PostRow.body, 1, 100).alias("text"),
        StoredWaitRow.key_name,
        fn.MIN(StoredWaitRow.since).alias("required_at"),
        shifted(fn.MIN(DeliveryRow.due_at), max_lateness.total_seconds()).alias("until"),
    )
    return list(query.group_by(DeliveryRow.post_id).limit(limit).namedtuples().execute(db))


def list_unread_cards(db: Database) -> list[str]:
    """Return the deliveries that wait for the owner's approval and for the page of their link card, oldest first."""
    query = _unapproved(DeliveryRow.id).where(fn.json_extract(DeliveryRow.memo, "$.link_card.unread"))
    return [delivery_id for (delivery_id,) in query.order_by(DeliveryRow.id).tuples().execute(db)]


def count_unapproved(db: Database) -> int:
    """Count the posts that wait for the owner's approval."""
    return int(_unapproved(fn.COUNT(DeliveryRow.post_id.distinct())).scalar(db))


def unapproved_among(db: Database, post_ids: Collection[str]) -> set[str]:
    """Return the posts among these that wait for the owner's approval."""
    query = _unapproved(DeliveryRow.post_id).where(DeliveryRow.post_id.in_(list(post_ids)))
    return {post_id for (post_id,) in query.tuples().execute(db)}


# --- of all ----------------------------------------------------------------------------------------------------------


def open_elsewhere(db: Database, restore_count: int) -> list[Delivery]:
    """Return the open deliveries that come from a backup: their posts have a lower `restore_count`."""
    query = DeliveryRow.select(DeliveryRow).join(PostRow, on=PostRow.id == DeliveryRow.post_id)
    rows = query.where(IS_OPEN, PostRow.restore_count < restore_count).execute(db)
    return [Delivery.from_row(row) for row in rows]


def due_later(db: Database, instant: str) -> set[str]:
    """Return the open deliveries that are due after this instant, and those that wait for one of them."""
    row = DeliveryRow
    rows = list(row.select(row.id, row.retry_of, row.reply_to, row.due_at).where(IS_OPEN).execute(db))
    replies: Mapping[str | None, list[DeliveryRow]] = defaultdict(list)
    for delivery in rows:
        replies[delivery.reply_to].append(delivery)
    later, waiting = set[str](), [delivery for delivery in rows if delivery.due_at > instant]
    while waiting:
        delivery = waiting.pop()
        if delivery.id not in later:
            later.add(delivery.id)
            waiting += replies[delivery.first_id]
    return later


def published_without_id(db: Database, since: str) -> list[DeliveryRow]:
    """Return the published deliveries without a public id, oldest first."""
    row = DeliveryRow
    is_unknown = (row.state == SQL("'published'")) & row.provider_post_id.is_null()
    return list(row.select().where(is_unknown, row.published_at > since).order_by(row.published_at).execute(db))
