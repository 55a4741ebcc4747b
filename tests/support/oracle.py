"""The oracle: what an appliance states about its posts, compared with what the networks have and with its own rows.

The grid, the state machine, the simulation, the chaos run and the end-to-end tests ask it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

UNKNOWN = "Outcome unknown: "


@dataclass(frozen=True, slots=True)
class Stated:
    """What the appliance states about one delivery."""

    outcome: str
    """pending, published, failed, unknown or canceled."""
    post_id: str | None
    message: str

    @classmethod
    def from_api(cls, delivery: Mapping[str, Any]) -> "Stated":
        """Read a delivery as the API shows it."""
        message = delivery.get("errorMessage", "")
        unknown = delivery["status"] == "failed" and message.startswith(UNKNOWN)
        return cls("unknown" if unknown else delivery["status"], delivery.get("providerPostId"), message)

    @classmethod
    def from_row(cls, row: Any) -> "Stated":
        outcome = {"queued": "pending", "running": "pending", "unconfirmed": "unknown"}.get(row.state, row.state)
        return cls(outcome, row.provider_post_id, row.error_message or "")


def find_untruths(
    stated: Sequence[Stated], made: Collection[str | None], *, at_most: int | None = None, ids_are_known: bool = True
) -> Iterator[str]:
    """Compare what is stated about equal content on one account with the ids of what the network has.

    Nothing distinguishes posts of equal content, so they are counted together. `at_most` is how many may exist, if it
    is not the number of deliveries that are published, unknown or pending.
    """
    published = [one for one in stated if one.outcome == "published"]
    if at_most is None:
        at_most = sum(one.outcome in ("published", "unknown", "pending") for one in stated)
    if len(made) > at_most:
        yield f"PUBLISHED TOO OFTEN: {len(made)} exist and at most {at_most} may"
    if len(made) < len(published):
        yield f"PUBLISHED AND NOT THERE: {len(made)} exist and {len(published)} are stated"
    ids = [one.post_id for one in published if one.post_id is not None]
    if len(set(ids)) < len(ids):
        yield f"ONE ID FOR TWO POSTS: {ids}"
    if ids_are_known and not set(ids) <= set(made):
        yield f"ANOTHER ID: {ids} are stated, and {list(made)} exist"
    for one in stated:
        if one.outcome == "unknown" and not one.message.startswith(UNKNOWN):
            yield f"UNKNOWN WITHOUT SAYING SO: {one.message!r}"
        if one.outcome == "failed" and len(one.message) <= 10:
            yield f"FAILED WITHOUT A REASON: {one.message!r}"


def find_misplaced_replies(
    query: Callable[[str], Iterable[Sequence[Any]]], answered: Mapping[str | None, str | None]
) -> Iterator[str]:
    """Compare what each published reply answers with the post that it must answer.

    `answered`: by the id of each post of the network, the id of the post that it answers.
    """
    for reply, parent in query(_REPLIES):
        if parent is None:
            yield f"A REPLY WITHOUT ITS POST: {reply}"
        elif reply in answered and answered[reply] != parent:
            yield f"A REPLY TO ANOTHER POST: {reply} answers {answered[reply]} and must answer {parent}"


_REPLIES = """SELECT provider_post_id, (SELECT provider_post_id FROM delivery p WHERE p.state = 'published'
        AND (p.id = d.reply_to OR p.retry_of = d.reply_to))
    FROM delivery d WHERE reply_to IS NOT NULL AND state = 'published'"""


def find_row_contradictions(query: Callable[[str], Iterable[Sequence[Any]]]) -> Iterator[str]:
    """Compare the counters, the log and the status of posts with the deliveries. `query` runs one statement."""
    for name, (kept, counted) in ROWS.items():
        shown, true = (set(map(tuple, query(statement))) for statement in (kept, counted))
        if shown != true:
            yield f"ROWS: {name}: {sorted(shown - true)[:5]} is kept, and {sorted(true - shown)[:5]} is true"


_OUTCOME = "CASE state WHEN 'unconfirmed' THEN 'unknown' ELSE state END"
_LETTER = (
    "CASE state WHEN 'published' THEN 'p' WHEN 'failed' THEN 'f' WHEN 'unconfirmed' THEN 'u' WHEN 'canceled' THEN 'c'"
    " ELSE '.' END"
)
_LOG = (
    "CASE WHEN state = 'unconfirmed' THEN ',failed' WHEN state IN ('queued', 'running') THEN '' ELSE ',' || state END"
)

ROWS = {
    "outcomes of a post": (
        "SELECT id, outcomes FROM post",
        f"SELECT post_id, group_concat({_LETTER}, '') FROM"
        " (SELECT post_id, state FROM delivery ORDER BY post_id, profile_id) GROUP BY 1",
    ),
    "status of a post": (
        "SELECT id, status IN ('settled', 'canceled'), status = 'canceled' FROM post",
        "SELECT post_id, min(state NOT IN ('queued', 'running')), min(state = 'canceled') FROM delivery GROUP BY 1",
    ),
    "deliveries by outcome": (
        "SELECT provider, outcome, deliveries FROM delivery_count WHERE deliveries > 0",
        f"SELECT provider, {_OUTCOME}, count(*) FROM delivery WHERE state NOT IN ('queued', 'running') GROUP BY 1, 2",
    ),
    "published posts of a profile": (
        "SELECT id, posts_count FROM profile WHERE posts_count > 0",
        "SELECT profile_id, count(*) FROM delivery WHERE state = 'published' GROUP BY 1",
    ),
    "log entries": (
        "SELECT delivery_id, group_concat(type, ',') FROM"
        " (SELECT delivery_id, type FROM log_entry ORDER BY delivery_id, n) GROUP BY 1",
        f"SELECT id, 'pending' || {_LOG} FROM delivery",
    ),
    "former texts": (
        "SELECT post_id, version FROM former_text",
        "SELECT post_id, e.text_version FROM log_entry e JOIN post p ON p.id = post_id"
        " WHERE e.text_version < p.text_version",
    ),
    "the entry that ends a post": (
        "SELECT post_id, n FROM log_entry WHERE ends_post AND post_id IN (SELECT id FROM post)",
        "SELECT post_id, max(n) FROM log_entry WHERE post_id IN"
        " (SELECT id FROM post WHERE status IN ('settled', 'canceled')) GROUP BY 1",
    ),
    "stored media": (
        "SELECT files, size_bytes FROM stored_media",
        "SELECT count(*), total(declared_bytes) FROM artifact WHERE storage_key > ''",
    ),
}
"""By name: what the appliance keeps, and what the rows say."""
