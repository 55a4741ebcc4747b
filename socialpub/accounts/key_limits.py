"""The limits of API keys for agents: posts a day, and the owner's approval (contract 10.3)."""

from datetime import datetime, timedelta
from math import ceil

from socialpub.accounts.api_keys import Caller
from socialpub.core import units
from socialpub.core.clock import parse, stamp
from socialpub.core.errors import FieldError, InvalidRequest, RateLimited
from socialpub.db.connection import Database
from socialpub.db.models import KeyUseRow
from socialpub.db.tables import access_rows
from socialpub.runtime import Runtime

WINDOW = timedelta(hours=24)


def count_left(rt: Runtime, caller: Caller) -> int | None:
    """Return the posts that the key can still create today. Each profile counts as one post. None: no daily limit."""
    if caller.posts_per_day is None:
        return None
    used = access_rows.count_key_uses(rt.db, caller.key_id, stamp(rt.now() - WINDOW))
    return max(caller.posts_per_day - used, 0)


def list_names(posts_per_day: int | None, *, approval: bool) -> list[str]:
    """Return the limits in short, such as `10 posts a day`."""
    daily = [] if posts_per_day is None else [f"{units.count(posts_per_day, 'post', 'posts')} a day"]
    return [*daily, "with approval"] if approval else daily


def describe(posts_per_day: int | None, *, approval: bool) -> str:
    """Return the limits as sentences about the key. Empty: the key has no limit."""
    sentences = []
    if posts_per_day is not None:
        may = units.count(posts_per_day, "post", "posts")
        sentences.append(f"It may publish at most {may} in 24 hours. Each profile of a post counts.")
    if approval:
        sentences.append("Each of its posts waits until you approve it.")
    if sentences:
        sentences.append("It changes only its own posts, and it cannot disconnect a profile.")
    return " ".join(sentences)


def check_profiles(caller: Caller, count: int) -> list[FieldError]:
    """Return an error if a post to this number of profiles is above the daily limit of the key."""
    limit = caller.posts_per_day
    if limit is None or count <= limit:
        return []
    may = units.count(limit, "post", "posts")
    message = f"must have at most {limit:,}: this key may publish {may} a day, and each profile counts as one post"
    return [FieldError(("profiles",), message)]


def check_day(db: Database, caller: Caller, count: int, now: datetime) -> None:
    """Raise RateLimited if a post to this number of profiles is above the daily limit of the key now.

    Raises InvalidRequest if the number alone is above the limit.
    """
    limit = caller.posts_per_day
    if limit is None:
        return
    if errors := check_profiles(caller, count):
        raise InvalidRequest.from_errors(errors)
    since = stamp(now - WINDOW)
    excess = access_rows.count_key_uses(db, caller.key_id, since) + count - limit
    if excess > 0:
        # After the clock was set back by less than the noticed jump, a row can be newer than now.
        free_at = parse(access_rows.find_key_use(db, caller.key_id, since, excess)) + WINDOW
        seconds = min(max(ceil((free_at - now).total_seconds()), 1), int(WINDOW.total_seconds()))
        may, used = units.count(limit, "post", "posts"), limit + excess - count
        raise RateLimited(
            f"This key may publish {may} in 24 hours, and each profile counts as one post. It has used {used:,}, and "
            f"this post needs {count:,}. Send the post again at {stamp(free_at)}.",
            retry_after_seconds=seconds,
        )


def record_use(tx: Database, caller: Caller, post_id: str, count: int) -> None:
    """Count a post to this number of profiles, in the accepting transaction. Raises like `check_day`."""
    check_day(tx, caller, count, tx.now)
    if caller.posts_per_day is not None:
        use = {"key_id": caller.key_id, "accepted_at": tx.stamp, "post_id": post_id, "profiles": count}
        tx.insert(KeyUseRow, use)


def clean(rt: Runtime, tx: Database) -> int:
    """Delete a batch of rows that no longer count. Return their number."""
    return tx.delete_batch(KeyUseRow, KeyUseRow.accepted_at <= stamp(tx.now - WINDOW))
