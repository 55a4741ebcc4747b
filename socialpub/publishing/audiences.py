"""Each distinct set of target profiles, stored once; a post carries its number.

Counters per audience and status change in the transaction that changes a post. What a key sees, and the filters by
profile and provider, thereby become a short list of audiences, and a total becomes a short sum.
"""

import json
from collections.abc import Collection, Sequence

from socialpub.accounts.api_keys import Caller
from socialpub.db.transaction import Reader, Tx, Value, placeholders


def number(tx: Tx, members: Sequence[tuple[str, str]]) -> int:
    """The audience of these (profile id, provider) pairs, made when it is new."""
    key = json.dumps(sorted(profile for profile, _ in members), separators=(",", ":"))
    row = tx.one("SELECT id FROM audience WHERE members = ?", (key,))
    if row is not None:
        return int(row[0])
    audience = tx.execute("INSERT INTO audience (members) VALUES (?)", (key,)).lastrowid
    assert audience is not None
    tx.many("INSERT INTO audience_member VALUES (?, ?, ?)", [(audience, *member) for member in members])
    return audience


def count(tx: Tx, audience: int, status: str, change: int) -> None:
    """One post more (+1) or less (-1) in this status."""
    tx.execute(
        "INSERT INTO audience_count VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET posts = posts + excluded.posts",
        (audience, status, change),
    )


def count_posts(reader: Reader) -> list[tuple[str, int]]:
    """How many posts there are in each status."""
    rows = reader.all("SELECT status, sum(posts) FROM audience_count GROUP BY status ORDER BY status")
    return [(row[0], row[1]) for row in rows]


def visible(
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


def sees(store: Reader | Tx, caller: Caller, audience: int) -> bool:
    """Whether the key sees every member of this audience."""
    if not caller.limited:
        return True
    members = store.all("SELECT provider, profile_id FROM audience_member WHERE audience_id = ?", (audience,))
    return all(caller.sees(provider, profile) for provider, profile in members)
