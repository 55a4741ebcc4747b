"""The counters of posts by audience (a distinct set of target profiles) and status, and the status behind them."""

import json
from collections.abc import Collection, Sequence

from socialpub.accounts.api_keys import Caller
from socialpub.db.connection import Reader, Row, Tx, Value, placeholders
from socialpub.db.states import PostStatus, State
from socialpub.db.tables import artifact_rows, counters, delivery_rows, post_rows

# MERGED from publishing/audiences.py: Each distinct set of target profiles, stored once; a post carries its number

MANY_AUDIENCES = 300


def find_or_create(tx: Tx, members: Sequence[tuple[str, str]]) -> int:
    """The audience of these (profile id, provider) pairs, made when it is new."""
    key = json.dumps(sorted(profile for profile, _ in members), separators=(",", ":"))
    row = tx.one("SELECT id FROM audience WHERE members = ?", (key,))
    if row is not None:
        return int(row[0])
    audience = tx.execute("INSERT INTO audience (members) VALUES (?)", (key,)).lastrowid
    assert audience is not None
    tx.many(
        "INSERT INTO audience_member (audience_id, profile_id, provider, position) VALUES (?, ?, ?, ?)",
        [(audience, *member, position) for position, member in enumerate(sorted(members))],
    )
    return audience


def add_post(tx: Tx, audience: int, status: str, outcomes: str) -> None:
    """One post more with this status and these outcomes."""
    tx.execute(
        "INSERT INTO audience_count VALUES (?, ?, ?, 1) ON CONFLICT DO UPDATE SET posts = posts + 1",
        (audience, status, outcomes),
    )
    tx.execute("UPDATE post_count SET posts = posts + 1 WHERE status = ?", (status,))


def remove_post(tx: Tx, audience: int, status: str, outcomes: str) -> None:
    """One post less. What counts none is removed: many sets of outcomes are only passed through."""
    key = (audience, status, outcomes)
    of_these = "WHERE audience_id = ? AND status = ? AND outcomes = ?"
    tx.execute(f"UPDATE audience_count SET posts = posts - 1 {of_these}", key)
    tx.execute(f"DELETE FROM audience_count {of_these} AND posts <= 0", key)
    tx.execute("UPDATE post_count SET posts = posts - 1 WHERE status = ?", (status,))


def forget_unused(tx: Tx, audience: int) -> None:
    """Forget the set of profiles when no post has it any more."""
    if tx.one("SELECT 1 FROM audience_count WHERE audience_id = ? LIMIT 1", (audience,)) is None:
        tx.execute("DELETE FROM audience_member WHERE audience_id = ?", (audience,))
        tx.execute("DELETE FROM audience WHERE id = ?", (audience,))


def are_many(reader: Reader) -> bool:
    """Whether looking through all of them, or through their counters, takes more than a moment."""
    return reader.one("SELECT 1 FROM audience_count LIMIT 1 OFFSET ?", (MANY_AUDIENCES,)) is not None


def count_posts(reader: Reader) -> list[tuple[str, int]]:
    """How many posts there are in each status."""
    rows = reader.all("SELECT status, posts FROM post_count WHERE posts > 0 ORDER BY status")
    return [(row[0], row[1]) for row in rows]


def visible_audiences(
    reader: Reader,
    caller: Caller,
    profiles: Collection[str] | None = None,
    providers: Collection[str] | None = None,
) -> tuple[int, ...] | None:
    """The audiences that the key sees and the filters let through; None when that is all of them.

    A limited key sees an audience only when it sees every member. With both filters, one member must match both.
    """
    if not caller.limited and profiles is None and providers is None:
        return None
    wanted, params = list[str](), list[Value]()
    hidden, limits = list[str](), list[Value]()
    for column, filtered, limit in (
        ("profile_id", profiles, caller.profiles),
        ("provider", providers, caller.providers),
    ):
        # Where every member is seen, the one that matches is: the limit narrows the search as a filter does.
        for values in (filtered, limit):
            if values is not None:
                wanted.append(f"{column} IN ({placeholders(values)})")
                params += values
        if limit is not None:
            hidden.append(f"h.{column} NOT IN ({placeholders(limit)})")
            limits += limit
    sql = f"SELECT DISTINCT audience_id FROM audience_member m WHERE {' AND '.join(wanted)}"
    if hidden:
        sql += f""" AND NOT EXISTS (SELECT 1 FROM audience_member h
            WHERE h.audience_id = m.audience_id AND ({" OR ".join(hidden)}))"""
    rows = reader.all(sql, params + limits)
    return tuple(sorted(row[0] for row in rows))


def sees(store: Reader, caller: Caller, audience: int) -> bool:
    """Whether the key sees every member of this audience."""
    if not caller.limited:
        return True
    members = store.all("SELECT provider, profile_id FROM audience_member WHERE audience_id = ?", (audience,))
    return all(caller.sees(provider, profile) for provider, profile in members)


# MERGED from publishing/post_status.py: A post's status, and the counters that move with it in the same write.

FINAL = (PostStatus.SETTLED, PostStatus.CANCELED)


def set_status(tx: Tx, post_id: str, status: PostStatus) -> None:
    """Put a post into this status (it may be in it already), with what became of its deliveries, and note the change's
    time."""
    post = post_rows.find(tx, post_id)
    assert post is not None
    _put(tx, post, status, delivery_rows.states_of_post(tx, post_id))


def begin_post(tx: Tx, post_id: str) -> None:
    """The first delivery of the post starts: a scheduled post is pending from now on."""
    post = post_rows.find(tx, post_id)
    if post is not None and post.status == PostStatus.SCHEDULED:
        set_status(tx, post_id, PostStatus.PENDING)


def settle_if_resolved(tx: Tx, post_id: str) -> None:
    """A post is settled in the write that resolves its last delivery."""
    post = post_rows.find(tx, post_id)
    assert post is not None
    states = delivery_rows.states_of_post(tx, post_id)
    _put(tx, post, PostStatus.SETTLED if all(state.final for _, state in states) else post.status, states)


def _put(tx: Tx, post: Row, status: str, states: Sequence[tuple[str, State]]) -> None:
    outcomes = "".join(state.letter for _, state in states)
    post_rows.update(tx, post.id, status=status, outcomes=outcomes, updated_at=tx.stamp)
    if (post.status, post.outcomes) != (status, outcomes):
        remove_post(tx, post.audience_id, post.status, post.outcomes)
        add_post(tx, post.audience_id, status, outcomes)
    if status in FINAL and post.status not in FINAL:
        # What it shows stays named by it; what only its options name is unused from now on.
        artifact_rows.drop(tx, delivery_rows.named_in_options(tx, post.id), tx.stamp)
    for before, (provider, state) in zip(post.outcomes, states, strict=True):
        if state.final and before != state.letter:
            counters.count_outcome(tx, provider, state.outcome)
