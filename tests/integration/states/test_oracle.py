"""The oracle notices each kind of untrue outcome: what it does not notice, no other test does."""

import pytest

from socialpub.runtime import Runtime
from tests.support.appliance import accept
from tests.support.oracle import ROWS, Stated, find_row_contradictions, find_untruths

PUBLISHED = Stated("published", "1", "")
FAILED = Stated("failed", None, "The text is too long.")
UNKNOWN = Stated("unknown", None, "Outcome unknown: the connection was cut.")


@pytest.mark.parametrize(
    ("stated", "made"),
    [([PUBLISHED], ["1"]), ([FAILED], []), ([UNKNOWN], []), ([UNKNOWN], ["7"]), ([PUBLISHED, UNKNOWN], ["1", "7"])],
)
def test_a_true_outcome_is_accepted(stated: list[Stated], made: list[str]) -> None:
    assert list(find_untruths(stated, made)) == []


@pytest.mark.parametrize(
    ("stated", "made", "untruth"),
    [
        ([PUBLISHED], ["1", "2"], "PUBLISHED TOO OFTEN"),
        ([FAILED], ["1"], "PUBLISHED TOO OFTEN"),
        ([PUBLISHED], [], "PUBLISHED AND NOT THERE"),
        ([PUBLISHED, PUBLISHED], ["1", "2"], "ONE ID FOR TWO POSTS"),
        ([PUBLISHED], ["2"], "ANOTHER ID"),
        ([Stated("unknown", None, "Cut off.")], [], "UNKNOWN WITHOUT SAYING SO"),
        ([Stated("failed", None, "")], [], "FAILED WITHOUT A REASON"),
    ],
)
def test_an_untrue_outcome_is_named(stated: list[Stated], made: list[str], untruth: str) -> None:
    assert any(found.startswith(untruth) for found in find_untruths(stated, made))


TAMPERED = {
    "outcomes of a post": "UPDATE post SET outcomes = 'p'",
    "status of a post": "UPDATE post SET status = 'settled'",
    "deliveries by outcome": "INSERT INTO delivery_count (provider, outcome, deliveries) VALUES ('x', 'published', 1)",
    "published posts of a profile": "UPDATE profile SET posts_count = 1",
    "former texts": "UPDATE post SET text_version = 1",
    "the entry that ends a post": "UPDATE log_entry SET ends_post = 1",
    "log entries": "DELETE FROM log_entry",
    "stored media": "UPDATE stored_media SET files = files + 1",
}
"""By name of the rows: a change that makes them untrue."""


@pytest.mark.parametrize("name", ROWS)
def test_rows_that_contradict_each_other_are_named(rt: Runtime, profile: str, name: str) -> None:
    accept(rt, profile)
    assert list(find_row_contradictions(rt.db.execute_sql)) == []
    rt.db.write(lambda tx: tx.execute_sql(TAMPERED[name]))
    assert any(f"ROWS: {name}:" in found for found in find_row_contradictions(rt.db.execute_sql))
