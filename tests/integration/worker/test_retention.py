"""Expired rows are removed in small writes. Needed rows stay at any age."""

import json
from collections import Counter
from datetime import timedelta

import pytest

from socialpub.db import appliance_state
from socialpub.db.models import PostRow
from socialpub.db.tables import post_rows
from socialpub.db.tables.audit_log import AuditAction, record
from socialpub.ops import health
from socialpub.ops.doctor import checks
from socialpub.publishing import retention
from socialpub.publishing.posts import posts, retries
from socialpub.publishing.posts.drafts import Draft, DraftMedia
from socialpub.publishing.retention import Retention
from tests.support.appliance import OWNER, accept, add_profile, open_appliance, status_of
from tests.support.drain import drain
from tests.support.rows import artifact
from tests.support.select import select_all, select_value

DAY = 86_400.0


@pytest.fixture
def kept():
    """The settings of `[retention]`; a test may add to them before the appliance opens."""
    return {"posts": "30d"}


@pytest.fixture
def appliance_options(network, kept):
    return {"providers": {"x": network}, "retention": kept}


def keep_house(rt, clock):
    """One whole round; how many rows went."""
    clock.forward(retention.EVERY_SECONDS)
    rounds, removed = Retention(), 0
    while (some := rounds.remove_expired(rt)) or rounds.is_under_way:
        removed += some
    return removed


def published(rt, clock, *profiles, **parts):
    post_id = accept(rt, *profiles, **parts)
    drain(rt, clock, within=120)
    assert status_of(rt, post_id) == "settled"
    return post_id


def rows_of(rt, table):
    return int(select_value(rt.db, f"SELECT count(*) FROM {table}"))


OF_POSTS = ("post", "delivery", "attempt", "media", "log_entry", "audience", "audience_member")


def check_counters(rt):
    """What lists say there is, is what there is."""
    in_all = Counter(row[0] for row in select_all(rt.db, "SELECT status FROM post"))
    assert dict(post_rows.count_by_status(rt.db)) == dict(in_all)


def test_by_default_retention_removes_nothing(tmp_path, clock, network):
    (tmp_path / "default").mkdir()
    rt = open_appliance(tmp_path / "default", clock, providers={"x": network})
    published(rt, clock, add_profile(rt))
    before = {table: rows_of(rt, table) for table in OF_POSTS}
    clock.forward(4000 * DAY)
    assert keep_house(rt, clock) == 0
    assert {table: rows_of(rt, table) for table in OF_POSTS} == before
    rt.close()


def test_an_expired_post_is_removed_with_all_its_rows(rt, clock, profile):
    shown = artifact(rt)
    gone = published(rt, clock, profile, media=(DraftMedia(shown),))
    clock.forward(10 * DAY)
    stays = published(rt, clock, profile, add_profile(rt, account_id="two"))
    clock.forward(20 * DAY - 2 * 3600)
    assert keep_house(rt, clock) == 0
    clock.forward(3600)
    assert keep_house(rt, clock) > 0
    assert [status_of(rt, one) for one in (gone, stays)] == ["None", "settled"]
    for table in ("delivery", "attempt", "log_entry", "media"):
        column = "post_id" if table != "attempt" else "(SELECT post_id FROM delivery d WHERE d.id = delivery_id)"
        assert {row[0] for row in select_all(rt.db, f"SELECT {column} FROM {table}")} <= {stays}, table
    assert rows_of(rt, "audience") == 1
    check_counters(rt)
    assert select_value(rt.db, "SELECT deliveries FROM delivery_count WHERE outcome = 'published'") == 3, (
        "all that ever was"
    )
    assert retention.remove_unused_media(rt) == 1
    assert rows_of(rt, "artifact") == 0, "its media are unused since it was settled"
    clock.forward(30 * DAY)
    keep_house(rt, clock)
    left = {table: rows_of(rt, table) for table in OF_POSTS}
    assert left == dict.fromkeys(OF_POSTS, 0) | {"log_entry": 1}, "the newest entry's number is not given twice"


def test_unfinished_posts_stay(rt, clock, profile):
    scheduled = accept(rt, profile, at=clock.now() + timedelta(days=300))
    clock.forward(200 * DAY)
    assert keep_house(rt, clock) == 0
    assert status_of(rt, scheduled) == "scheduled"
    assert rows_of(rt, "log_entry") == 1
    rt.write(posts.cancel, scheduled, OWNER)
    clock.forward(29 * DAY)
    assert keep_house(rt, clock) == 0
    clock.forward(DAY)
    assert keep_house(rt, clock) > 0
    check_counters(rt)


def failed(rt, clock, network, profile):
    post_id = accept(rt, profile)
    rt.write(posts.stop, post_id)
    rt.db.write(
        lambda tx: tx.execute_sql(
            "UPDATE delivery SET state = 'failed', failed_at = ? WHERE post_id = ?", (tx.stamp, post_id)
        )
    )
    return post_id


def test_a_retry_stays_while_another_retry_of_the_same_post_stays(rt, clock, network, profile):
    """Otherwise the remaining post could be published again."""
    first = failed(rt, clock, network, profile)
    second = rt.write(retries.retry, first, OWNER)
    drain(rt, clock, within=120)
    assert status_of(rt, second) == "settled"
    clock.forward(20 * DAY)
    rt.db.write(lambda tx: tx.update(PostRow, first, updated_at=tx.stamp))  # a backfill, a late settling
    clock.forward(11 * DAY)
    assert keep_house(rt, clock) == 0
    assert "A later post has published" in retries.load_outlook(rt.db, first).why
    clock.forward(20 * DAY)
    assert keep_house(rt, clock) > 0
    assert rows_of(rt, "post") == 0


def test_network_ids_stay_while_an_older_outcome_is_unknown(rt, clock, profile):
    """Else what a removed post became could be taken for the outcome of that call."""
    other = add_profile(rt, account_id="two")
    open_one = accept(rt, other, at=clock.now() + timedelta(days=100))
    since = rt.stamp()
    phase = json.dumps({"phase": "inherited", "since": since})
    rt.db.write(lambda tx: tx.execute_sql("UPDATE delivery SET progress = ? WHERE post_id = ?", (phase, open_one)))
    known = published(rt, clock, profile)
    clock.forward(60 * DAY)
    assert keep_house(rt, clock) == 0
    assert status_of(rt, known) == "settled"
    rt.write(posts.cancel, open_one, OWNER)
    assert keep_house(rt, clock) > 0


def test_a_restored_installation_keeps_ids_until_its_resume(rt, clock, profile):
    known = published(rt, clock, profile)
    rt.db.write(lambda tx: appliance_state.note_restore(tx, tx.stamp))
    clock.forward(60 * DAY)
    assert keep_house(rt, clock) == 0
    assert status_of(rt, known) == "settled"


def test_a_thousand_posts_are_removed_in_small_writes_and_limited_rounds(rt, clock, profile, monkeypatch):
    for _ in range(10):
        rt.write(
            lambda rt, tx: [
                posts.accept(rt, tx, Draft("Hi", None, ()), [_target(tx, profile)], OWNER) for _ in range(100)
            ]
        )
    rt.db.write(lambda tx: tx.execute_sql("UPDATE delivery SET state = 'published'"))
    for row in select_all(rt.db, "SELECT id FROM post"):
        rt.db.write(lambda tx, post=row[0]: post_rows.settle_if_resolved(tx, post))
    clock.forward(40 * DAY)
    monkeypatch.setattr(retention, "MAX_WRITES", 3)
    rounds = Retention()
    assert rounds.remove_expired(rt) == 3 * retention.MAX_DELIVERIES
    assert rows_of(rt, "post") == 700
    check_counters(rt)
    accepted = accept(rt, profile)
    while rounds.is_under_way:
        rounds.remove_expired(rt)
    assert [row[0] for row in select_all(rt.db, "SELECT id FROM post")] == [accepted]
    assert rows_of(rt, "log_entry") == 1
    check_counters(rt)


def test_a_round_ends_after_two_seconds(rt, clock, profile, monkeypatch):
    for _ in range(6):
        published(rt, clock, profile)
    clock.forward(40 * DAY)
    monkeypatch.setattr(retention, "MAX_DELIVERIES", 1)
    remove_post = retention.remove_post

    def slowly(*args):
        clock.forward(1.0)
        return remove_post(*args)

    monkeypatch.setattr(retention, "remove_post", slowly)
    rounds = Retention()
    rounds.remove_expired(rt)
    assert rows_of(rt, "post") == 4
    rounds.remove_expired(rt)
    assert rows_of(rt, "post") == 2, "it goes on at its next turn"


def _target(tx, profile):
    from socialpub.db.tables import profile_rows
    from socialpub.publishing.posts.drafts import Target

    found = profile_rows.find(tx, profile)
    assert found is not None
    return Target(found, {})


def test_a_post_that_changed_after_the_search_stays(rt, clock, profile):
    known = published(rt, clock, profile)
    clock.forward(40 * DAY)
    before = retention.retention_limit(rt)
    assert before is not None
    rt.db.write(lambda tx: tx.update(PostRow, known, updated_at=tx.stamp))
    assert rt.db.write(lambda tx: retention.remove_post(tx, known, before)) is False


# --- the others ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [{"posts": "7d"}])
def test_old_audit_entries_are_removed(rt, clock, kept):
    for at in range(1200):
        rt.db.write(lambda tx, at=at: record(tx, AuditAction.BACKUP_MADE, None, str(at)))
        clock.forward(DAY / 100)
    keep_house(rt, clock)
    labels = [int(row[0]) for row in select_all(rt.db, "SELECT subject_label FROM trail ORDER BY id")]
    assert labels == list(range(labels[0], 1200))
    assert 490 < labels[0] < 510


# --- reports ---------------------------------------------------------------------------------------------------------


def report(rt):
    (finding,) = [finding for finding in checks.check(rt) if finding.subject == "housekeeping"]
    return finding.message


@pytest.mark.parametrize("kept", [{"posts": "30d"}])
def test_the_doctor_reports_the_next_removal_and_the_last_housekeeping(rt, clock, profile, kept):
    published(rt, clock, profile)
    assert "Housekeeping has not run here yet. Posts and their history are kept for 30d. 0 posts are due" in report(rt)
    clock.forward(40 * DAY)
    rt.write(health.record_housekeeping)
    assert f"Housekeeping last ran at {rt.stamp()}. Posts and their history are kept for 30d. 1 post is" in report(rt)
