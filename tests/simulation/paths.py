"""The interesting paths of an appliance's deliveries, as their attempts show."""

from collections import Counter

from socialpub.runtime import Runtime
from tests.support.select import select_all, select_value

OF_ATTEMPTS = {
    "read back": "step = 'read_back'",
    "second call": "message LIKE '%The post is sent again%'",
    "hold": "outcome = 'held' AND next_at IS NOT NULL AND step <> 'start' AND message NOT LIKE '%connect%again%'",
    "owner wait": "outcome = 'held' AND message LIKE '%connected again%'",
    "published after reading back": "step = 'read_back' AND outcome = 'published'",
    "looked at before a second call": "message LIKE '%still does not show the post%'",
}
EQUAL_CONTENT = "equal content"
OF_DELIVERIES = {
    "similar post": "error_message LIKE '%with different words%'",
    "reply": "reply_to IS NOT NULL AND state = 'published'",
    "failed with its post": "error_message LIKE '%this post replies to the post%'",
    "stopped": "error_message LIKE '%Stopped by the owner%'",
    "given up": "error_message LIKE '%gave up%' OR error_message LIKE '%after the deadline%'",
    "not in time": "error_message LIKE '%could not start within%' OR error_message LIKE '%not connected within%'",
    "died too often": "error_message LIKE '%times in a row%'",
    "unknown after the second call": "error_message LIKE '%even after the second call%'",
}


def met(rt: Runtime) -> Counter[str]:
    """By path, how many deliveries."""
    found: Counter[str] = Counter()
    for name, where in OF_ATTEMPTS.items():
        found[name] = select_value(rt.db, f"SELECT count(DISTINCT delivery_id) FROM attempt WHERE {where}")
    for name, where in OF_DELIVERIES.items():
        found[name] = select_value(rt.db, f"SELECT count(*) FROM delivery WHERE {where}")
    return +found


def waiting_for_an_equal_one(rt: Runtime) -> set[str]:
    """Deliveries that wait for one of equal content: the next thing that they do writes over that."""
    rows = select_all(rt.db, "SELECT delivery_id FROM wait WHERE reason = 'equal'")
    return {row["delivery_id"] for row in rows}
