"""What becomes of a delivery, with a network that says exactly what the story needs."""

import json
from datetime import timedelta

import pytest

from socialpub.core.errors import Conflict
from socialpub.db.models import DeliveryRow, ProfileRow
from socialpub.db.states import State
from socialpub.providers.base import Held, Kind, More, Published, Refused, Wait
from socialpub.providers.responses import AppRefused, AuthExpired, NoAnswer
from socialpub.publishing import backfill
from socialpub.publishing.delivery import read_back, resume
from socialpub.publishing.posts import posts
from socialpub.publishing.posts.drafts import Draft
from tests.support.appliance import (
    OWNER,
    accept,
    add_profile,
    attempts_of,
    message_of,
    state_of,
    status_of,
)
from tests.support.drain import drain
from tests.support.scripted_network import ScriptedNetwork
from tests.support.select import select_all, select_one, select_value


def test_a_post_that_goes_well_is_published_once(rt, network, profile):
    post = accept(rt, profile)
    drain(rt)
    assert network.effects == ["Hello"]
    assert (state_of(rt, post), status_of(rt, post)) == (State.PUBLISHED, "settled")
    assert attempts_of(rt, post) == [("create_post", "published")]
    assert select_value(rt.db, "SELECT posts_count FROM profile") == 1
    assert [r[0] for r in select_all(rt.db, "SELECT type FROM log_entry ORDER BY n")] == ["pending", "published"]


def test_a_scheduled_post_never_starts_before_its_time(rt, network, profile, clock):
    post = accept(rt, profile, at=clock.now() + timedelta(hours=1))
    clock.forward(3599.9)
    drain(rt)
    assert (network.effects, status_of(rt, post)) == ([], "scheduled")
    clock.forward(0.2)
    drain(rt)
    assert (network.effects, status_of(rt, post)) == (["Hello"], "settled")


def test_the_post_is_pending_from_the_start_of_its_first_delivery(rt, network, clock):
    one, two = add_profile(rt, account_id="one"), add_profile(rt, account_id="two")
    network.results["create_post"] = [Wait(60, "not yet")]
    post = accept(rt, one, two, at=clock.now() + timedelta(hours=1))
    clock.forward(3601)
    drain(rt)
    assert sorted([state_of(rt, post, 0), state_of(rt, post, 1)]) == [State.PUBLISHED, State.QUEUED]
    assert status_of(rt, post) == "pending"
    with pytest.raises(Conflict):
        rt.write(posts.cancel, post, OWNER)
    with pytest.raises(Conflict):
        rt.write(posts.edit, post, Draft.change(body="other"), OWNER)


def test_a_refusal_fails_one_delivery_and_lets_the_others_go_on(rt, network):
    one, two = add_profile(rt, account_id="one"), add_profile(rt, account_id="two")
    network.results["create_post"] = [Refused("Shorten the text.")]
    post = accept(rt, one, two)
    drain(rt)
    states = {state_of(rt, post, 0), state_of(rt, post, 1)}
    assert states == {State.FAILED, State.PUBLISHED}
    assert status_of(rt, post) == "settled"
    assert "Shorten the text." in {message_of(rt, post, 0), message_of(rt, post, 1)}


def test_a_token_that_stays_refused_asks_the_owner_to_reconnect(rt, network, profile):
    network.results["create_post"] = [AuthExpired("401"), AuthExpired("401")]
    post = accept(rt, profile)
    later = accept(rt, profile, body="later")
    drain(rt)
    assert select_value(rt.db, "SELECT status FROM profile") == "reauthRequired"
    assert (state_of(rt, post), state_of(rt, later)) == (State.QUEUED, State.QUEUED)
    assert network.asked == ["create_post", "create_post"], "the later one asks nothing"
    assert [attempts_of(rt, each)[-1][1] for each in (post, later)] == ["held", "held"]


def test_an_app_wide_refusal_holds_the_network_once_and_probes_slowly(rt, network, clock):
    one, two = add_profile(rt, account_id="one"), add_profile(rt, account_id="two")
    network.results["create_post"] = [AppRefused("out of credits", code="CreditsDepleted"), Held("out of credits")]
    held = [accept(rt, one), accept(rt, two), accept(rt, one, body="b"), accept(rt, two, body="c")]
    drain(rt)
    assert network.asked == ["create_post"], "one asked; the rest wait for its network"
    clock.forward(14 * 60)
    drain(rt)
    assert len(network.asked) == 1
    clock.forward(2 * 60)
    drain(rt)
    assert len(network.asked) == 2, "one probe, not four"
    clock.forward(16 * 60)
    drain(rt, clock)
    assert {state_of(rt, post) for post in held} == {State.PUBLISHED}
    assert select_value(rt.db, "SELECT count(*) FROM stored_wait WHERE reason = 'app'") == 0


def test_paused_nothing_starts_and_overdue_posts_can_still_be_canceled(rt, network, profile, clock):
    rt.write(resume.pause)
    due, now = accept(rt, profile, at=clock.now() + timedelta(minutes=1)), accept(rt, profile)
    clock.forward(3600)
    drain(rt)
    assert network.effects == []
    with pytest.raises(Conflict):
        rt.write(posts.edit, due, Draft.change(body="other"), OWNER)
    rt.write(posts.cancel, due, OWNER)
    assert rt.write(resume.end_pause) == 0
    drain(rt)
    assert (status_of(rt, due), status_of(rt, now)) == ("canceled", "settled")


def test_a_post_that_is_too_late_is_not_sent_and_says_so(rt, network, profile, clock):
    rt.write(resume.pause)
    late = accept(rt, profile)
    clock.forward(24 * 3600 + 1)
    assert rt.write(resume.end_pause) == 1
    drain(rt)
    assert network.effects == []
    assert message_of(rt, late).startswith("Not sent: the post could not start within 24 hours")
    assert status_of(rt, late) == "settled"


def test_overdue_posts_go_out_oldest_first(rt, network, profile, clock):
    for minutes in (3, 1, 2):
        accept(rt, profile, body=f"due {minutes}", at=clock.now() + timedelta(minutes=minutes))
    clock.forward(600)
    drain(rt)
    assert network.effects == ["due 1", "due 2", "due 3"]


def test_a_wait_of_one_post_blocks_no_other_of_the_profile(rt, network, profile):
    network.results["create_post"] = [Wait(600, "processing")]
    waiting, other = accept(rt, profile, body="waiting"), accept(rt, profile, body="other")
    drain(rt)
    assert (state_of(rt, waiting), state_of(rt, other)) == (State.QUEUED, State.PUBLISHED)


def test_runs_of_one_step_extend_one_attempt(rt, network, profile, clock):
    network.steps = [*ScriptedNetwork(("append", Kind.PREPARE), ("create_post", Kind.COMMIT)).steps]
    network.results["append"] = [More({"chunk": 1}), More({"chunk": 2})]
    post = accept(rt, profile)
    drain(rt, clock)
    assert attempts_of(rt, post) == [("append", "done"), ("create_post", "published")]
    assert [job.memo for job in network.jobs][:3] == [{}, {"chunk": 1}, {"chunk": 2}]


@pytest.mark.parametrize("committed", [False, True])
def test_a_stopped_post_is_not_sent_and_is_read_back_if_it_may_be_public(rt, network, profile, clock, committed):
    network.results["create_post"] = [NoAnswer("timed out") if committed else Wait(600, "later")]
    post = accept(rt, profile)
    drain(rt)
    rt.write(posts.stop, post)
    drain(rt, clock)
    assert network.asked.count("create_post") == 1
    assert (state_of(rt, post), message_of(rt, post)) == (State.FAILED, read_back.STOPPED)


def test_a_row_of_a_live_process_is_never_claimed_after_a_clock_jump(rt, network, profile, clock, tmp_path):
    from socialpub.db.process_lock import ProcessLock

    other = ProcessLock(rt.process.folder, "other-worker")
    accept(rt, profile)
    delivery = select_value(rt.db, "SELECT id FROM delivery")
    rt.db.write(lambda tx: tx.update(DeliveryRow, delivery, state="running", owner="other-worker", started_at=tx.stamp))
    clock.jump(7 * 3600)
    drain(rt)
    assert network.asked == []
    other.close()
    drain(rt, clock)
    assert network.effects == ["Hello"]


def test_a_disconnected_profile_sends_nothing(rt, network, profile):
    post = accept(rt, profile)
    rt.db.write(lambda tx: tx.update(ProfileRow, profile, status="disconnected"))
    drain(rt)
    assert network.asked == []
    assert "disconnected" in message_of(rt, post)


def test_the_plan_of_a_started_delivery_never_changes(rt, network, profile, clock):
    network.results["create_post"] = [Wait(60, "later")]
    accept(rt, profile)
    drain(rt)
    before = json.loads(select_value(rt.db, "SELECT plan FROM delivery"))
    network.steps = ScriptedNetwork(("other", Kind.PREPARE), ("create_post", Kind.COMMIT)).steps
    drain(rt, clock)
    assert before == [["create_post", "commit"]]
    assert network.asked == ["create_post", "create_post"]


# --- what a network reports after a post is up -----------------------------------------------------------------------


def told(rt):
    row = select_one(rt.db, "SELECT provider_post_id, url FROM delivery")
    assert row is not None
    return row[0], row[1]


def test_a_late_id_is_filled_in_and_nothing_else_changes(rt, network, profile, clock):
    answers = [
        None,
        NoAnswer("timed out"),
        Published("99", "https://t.example/99"),
    ]
    jobs = []

    def fill_in(job):
        jobs.append(job)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    network.fill_in = fill_in
    network.results["create_post"] = [Published(None)]
    post = accept(rt, profile)
    drain(rt)
    assert (state_of(rt, post), told(rt)) == (State.PUBLISHED, (None, None))
    for seconds in (30, 40, 1, 300, 1000):
        clock.forward(seconds)
        backfill.fill_in_missing(rt)
    assert len(jobs) == 3, "asked at its ages, not every time"
    assert (state_of(rt, post), told(rt)) == (State.PUBLISHED, ("99", "https://t.example/99"))
    assert [row[0] for row in select_all(rt.db, "SELECT type FROM log_entry ORDER BY n")] == [
        "pending",
        "published",
    ]
    clock.forward(7200)
    backfill.fill_in_missing(rt)
    assert len(jobs) == 3


def test_a_post_whose_id_cannot_be_asked_for_does_not_stop_the_others(rt, network, clock):
    profiles = [add_profile(rt, account_id=str(number)) for number in range(2)]
    asked = []

    def fill_in(job):
        asked.append(job.account.id)
        if job.account.id == "0":
            raise OverflowError("date value out of range")
        return Published("99")

    network.fill_in = fill_in
    network.results["create_post"] = [Published(None), Published(None)]
    for profile in profiles:
        accept(rt, profile)
    drain(rt)
    clock.forward(70)
    assert backfill.fill_in_missing(rt) == 1
    assert backfill.fill_in_missing(rt) == 0
    assert sorted(asked) == ["0", "1"], "the failing one rests until its next age"


def test_an_id_of_another_delivery_is_not_filled_in(rt, network, profile, clock):
    network.fill_in = lambda job: Published("1")
    network.results["create_post"] = [Published("1"), Published(None)]
    accept(rt, profile, body="one")
    late = accept(rt, profile, body="two")
    drain(rt)
    clock.forward(61)
    backfill.fill_in_missing(rt)
    assert select_value(rt.db, "SELECT provider_post_id FROM delivery WHERE post_id = ?", (late,)) is None
