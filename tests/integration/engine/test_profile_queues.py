"""The queue of a profile: a wait is one row of it, and its next delivery is found without reading the others."""

import json
import threading
from datetime import timedelta
from functools import partial

import pytest

from socialpub.core.clock import after
from socialpub.db.models import ProfileRow
from socialpub.db.queries import profile_queue as queue_rows
from socialpub.db.states import State
from socialpub.db.tables import waits
from socialpub.db.tables.waits import WaitReason
from socialpub.providers.base import Done, Kind, Published, Refused, Wait
from socialpub.providers.responses import Throttled
from socialpub.publishing import profile_queue
from socialpub.publishing.delivery import engine, resume
from socialpub.publishing.posts import details as post_details
from socialpub.publishing.posts import posts
from socialpub.publishing.posts.drafts import Draft
from socialpub.worker.reconciler import Reconciler
from tests.support.appliance import OWNER, accept, add_profile, message_of, state_of
from tests.support.drain import drain
from tests.support.queue_threads import answering, listening_tasks
from tests.support.scripted_network import ScriptedNetwork
from tests.support.select import select_value

WAIT_SECONDS = 60
HOUR = 3600.0


def accept_many(rt, count, *profiles):
    """Accept a number of posts for each of these profiles in one write."""

    def write(rt, tx):
        for number in range(count):
            for profile in profiles:
                posts.create(rt, tx, Draft(f"{profile} {number}", None, (profile,)), OWNER)

    rt.write(write)


def attempts(rt, post):
    """As the API shows them."""
    return json.loads(post_details.load_attempts(rt, rt.db, post))


def rest(rt, profile, endpoint, seconds, reason="slow down"):
    """The network named a wait for this endpoint."""
    rt.db.write(lambda tx: waits.begin(tx, WaitReason.NETWORK, profile, endpoint, after(tx.stamp, seconds), reason))


def begun_with(network, *steps):
    network.steps = ScriptedNetwork(*steps).steps


@pytest.fixture
def writes(rt, monkeypatch):
    """How many transactions this makes."""

    def count(act):
        made = 0
        write = rt.db.write

        def counted(fn):
            nonlocal made
            made += 1
            return write(fn)

        with monkeypatch.context() as patched:
            patched.setattr(rt.db, "write", counted)
            act()
        return made

    return count


def steps_of(rt, act):
    """How many times ten instructions SQLite runs for this."""
    ticks = 0

    def tick():
        nonlocal ticks
        ticks += 1

    rt.db.connection().set_progress_handler(tick, 10)
    try:
        act()
    finally:
        rt.db.connection().set_progress_handler(None, 0)
    return ticks


# --- turns -----------------------------------------------------------------------------------------------------------


def test_one_post_of_one_profile_does_not_wait_behind_forty_profiles_with_eighty_posts_each(rt, network):
    busy, threads_of_x = [add_profile(rt, account_id=f"busy {n}") for n in range(40)], 8
    accept_many(rt, 80, *busy)
    begun, all_wait, done = list[str](), threading.Event(), threading.Event()
    publish, lock = network.publish, threading.Lock()

    def publishes(step, job):
        assert all_wait.wait(WAIT_SECONDS)
        with lock:
            begun.append(job.content.text)
        if job.content.text == "one post":
            done.set()
        return publish(job.content.text)

    network.run = publishes
    with listening_tasks(rt) as tasks, answering(tasks.queues, "x", threads_of_x):
        assert Reconciler(rt, tasks).once() == 40
        accept(rt, add_profile(rt, account_id="quiet"), body="one post")
        all_wait.set()
        assert done.wait(WAIT_SECONDS)
        rt.stopping.set()
    assert begun.index("one post") <= len(busy) + threads_of_x
    assert len({text.split()[0] for text in begun[: len(busy)]}) >= len(busy) - threads_of_x, "they take turns"


# --- a wait is one row -----------------------------------------------------------------------------------------------


def test_a_rate_limit_with_two_thousand_posts_queued_is_written_down_once(rt, network, clock, writes):
    few, many = add_profile(rt, account_id="few"), add_profile(rt, account_id="many")
    accept_many(rt, 20, few)
    accept_many(rt, 2000, many)
    made = {}
    for profile in (few, many):
        network.results["create_post"] = [Throttled("slow down", retry_after_seconds=900)]
        made[profile] = writes(partial(engine.work, rt, profile))
    assert made[few] == made[many] <= 3
    assert writes(partial(drain, rt)) == 0, "the next rounds write nothing either"
    assert network.effects == []
    clock.forward(901)
    network.results["create_post"] = [Throttled("slow down", retry_after_seconds=900)] * 2
    assert writes(partial(drain, rt)) == 2 * made[many], "nor does the next window"


def test_after_the_wait_the_oldest_post_is_first(rt, network, profile, clock):
    network.results["create_post"] = [Throttled("slow down", retry_after_seconds=900)]
    accept_many(rt, 5, profile)
    drain(rt)
    clock.forward(600)
    accept(rt, profile, body="later")
    drain(rt, clock, within=HOUR)
    assert network.effects == [*(f"{profile} {number}" for number in range(5)), "later"]


def test_each_waiting_delivery_shows_what_it_waits_for_and_until_when(rt, network, profile, clock):
    network.results["create_post"] = [Throttled("slow down", retry_after_seconds=900)]
    first, second = accept(rt, profile, body="first"), accept(rt, profile, body="second")
    until = after(rt.stamp(), 900)
    drain(rt)
    for post in (first, second):
        (last,) = attempts(rt, post)
        assert (last["outcome"], last["message"], last["nextAt"]) == ("waiting", "slow down", until)
        details = post_details.load_details(rt, rt.db, post)
        assert details is not None
        waits = details.deliveries[0].waits_for
        assert waits is not None
        assert (waits.sentence, waits.until) == ("slow down", until)
    assert select_value(rt.db, "SELECT count(*) FROM attempt") == 1, "only the call that was made is stored"
    clock.forward(901)
    assert attempts(rt, second) == [], "it no longer waits"
    drain(rt)
    assert [one["outcome"] for one in attempts(rt, second)] == ["published"]


def test_a_pause_is_shown_before_a_wait(rt, profile):
    post = accept(rt, profile)
    rest(rt, profile, "create_post", 900)
    rt.write(resume.pause)
    assert [one["outcome"] for one in attempts(rt, post)] == ["held"]


def test_a_scheduled_post_of_a_waiting_profile_has_no_attempts(rt, profile, clock):
    post = accept(rt, profile, at=clock.now() + timedelta(minutes=5))
    rest(rt, profile, "create_post", 900)
    assert attempts(rt, post) == []
    clock.forward(301)
    assert [one["outcome"] for one in attempts(rt, post)] == ["waiting"]


# --- what a wait does not delay --------------------------------------------------------------------------------------


def test_a_delivery_whose_next_step_calls_another_endpoint_goes_on(rt, network, profile, clock):
    text = accept(rt, profile, body="text")
    begun_with(network, ("upload:0", Kind.PREPARE), ("create_post", Kind.COMMIT))
    picture = accept(rt, profile, body="picture")
    begun_with(network, ("create_post", Kind.COMMIT))
    rest(rt, profile, "upload", 900, "uploads are full")
    drain(rt)
    assert network.effects == ["text"]
    assert state_of(rt, text) is State.PUBLISHED
    assert [one["message"] for one in attempts(rt, picture)] == ["uploads are full"]


def test_an_upload_goes_on_while_posts_wait(rt, network, profile):
    begun_with(network, ("upload:0", Kind.PREPARE), ("create_post", Kind.COMMIT))
    rest(rt, profile, "create_post", 900)
    accept(rt, profile)
    drain(rt)
    assert (network.asked, network.effects) == (["upload:0"], [])


def test_a_poll_after_the_commit_goes_on_while_posts_wait(rt, network, profile, clock):
    begun_with(network, ("send", Kind.COMMIT), ("await_outcome", Kind.POLL))
    network.results["send"] = [Done({}), Throttled("slow down", retry_after_seconds=HOUR)]
    network.results["await_outcome"] = [Wait(60, "processing"), Published("1")]
    sent, waits = accept(rt, profile, body="sent"), accept(rt, profile, body="waits")
    drain(rt, clock, within=100)
    assert (state_of(rt, sent), state_of(rt, waits)) == (State.PUBLISHED, State.QUEUED)


def test_a_delivery_of_a_former_version_learns_at_its_first_claim_what_it_waits_on(rt, network, profile, writes):
    accept_many(rt, 10, profile)
    rt.db.write(lambda tx: tx.execute_sql("UPDATE delivery SET first_endpoint = NULL"))
    rest(rt, profile, "create_post", 900)
    assert writes(partial(drain, rt)) == 10
    assert writes(partial(drain, rt)) == 0
    assert network.asked == []


def test_an_edit_changes_what_a_post_waits_on(rt, network, profile, clock):
    post = accept(rt, profile, at=clock.now() + timedelta(minutes=5))
    begun_with(network, ("upload", Kind.PREPARE), ("create_post", Kind.COMMIT))
    change = Draft.change(body="with a picture")
    rt.write(posts.edit, post, change, OWNER)
    rest(rt, profile, "upload", 900)
    clock.forward(301)
    drain(rt)
    assert network.asked == []
    assert [one["outcome"] for one in attempts(rt, post)] == ["waiting"]


# --- what a wait does not hide ---------------------------------------------------------------------------------------


def test_a_delivery_that_would_wait_for_too_long_ends_at_once_and_the_others_wait(rt, network, profile, clock):
    old = accept(rt, profile, body="old")
    rest(rt, profile, "create_post", 20 * HOUR)
    drain(rt)
    clock.forward(20 * HOUR - 1)
    rest(rt, profile, "create_post", 24 * HOUR)
    clock.forward(24 * HOUR - 1)
    young = accept(rt, profile, body="young")
    rest(rt, profile, "create_post", 10 * HOUR, "the day is full")
    drain(rt)
    assert state_of(rt, old) is State.FAILED
    assert "would wait until" in message_of(rt, old)
    assert "the day is full" in message_of(rt, old)
    assert state_of(rt, young) is State.QUEUED
    assert network.asked == []


def test_a_network_that_made_a_post_late_is_not_mistaken_for_an_appliance_that_was_down(rt, network, profile, clock):
    posts_made = [accept(rt, profile, body=str(number)) for number in range(3)]
    rest(rt, profile, "create_post", 24 * HOUR)
    drain(rt)
    clock.forward(24 * HOUR + 1)
    rt.db.write(waits.delete_past)
    the_day_is_full = Throttled("the day is full", retry_after_seconds=10 * HOUR)
    network.results["create_post"] = [lambda job: network.publish(job.content.text), the_day_is_full]
    drain(rt)
    clock.forward(10 * HOUR + 1)
    rt.db.write(waits.delete_past)
    drain(rt)
    assert {state_of(rt, post) for post in posts_made} == {State.PUBLISHED}
    rt.db.write(waits.delete_past)
    assert select_value(rt.db, "SELECT count(*) FROM stored_wait") == 0


def test_a_waiting_delivery_is_not_overdue_and_counts_from_the_end_of_its_wait(rt, profile, clock):
    accept(rt, profile)
    rest(rt, profile, "create_post", HOUR)
    clock.forward(HOUR - 1)
    assert profile_queue.find_overdue(rt.db, rt.stamp()).count == 0
    clock.forward(60)
    assert profile_queue.find_overdue(rt.db, rt.stamp()).count == 0, "its turn has just come"
    clock.forward(200)
    late = profile_queue.find_overdue(rt.db, rt.stamp())
    assert (late.count, late.seconds) == (1, 259)


def test_a_delivery_that_waits_for_its_owner_says_so_though_its_profile_waits_for_its_network(rt, network, profile):
    post = accept(rt, profile)
    rest(rt, profile, "create_post", HOUR)
    rt.db.write(lambda tx: tx.update(ProfileRow, profile, status="reauthRequired", reason="no longer"))
    drain(rt)
    (last,) = attempts(rt, post)
    assert last["outcome"] == "held"
    assert "must be connected again" in last["message"]


def test_a_refusal_that_rests_the_whole_profile_is_a_wait_of_its_queue(rt, network, profile, clock):
    network.results["create_post"] = [Refused("spam risk", rest_seconds=HOUR)]
    accept_many(rt, 10, profile)
    drain(rt)
    assert len(network.asked) == 1
    drain(rt, clock)
    assert len(network.effects) == 9


# --- how it grows ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["due", "waiting", "held"])
def test_finding_what_is_due_takes_as_long_for_four_thousand_deliveries_as_for_a_hundred(rt, profile, state):
    if state == "waiting":
        rest(rt, profile, "create_post", HOUR)
    if state == "held":
        rt.db.write(lambda tx: waits.hold(tx, "x", waits.PUBLISHING, "no credits", None))
    now = after(rt.stamp(), 1)
    found = []
    for more in (100, 3900):
        accept_many(rt, more, profile)
        found.append(
            (
                steps_of(rt, lambda: engine.find_next_due(rt, profile)),
                steps_of(rt, lambda: engine.list_due_queues(rt)),
                steps_of(rt, lambda: queue_rows.next_run_at(rt.db, now, rt.settings.publishing.max_lateness)),
            )
        )
    few, many = found
    assert all(after <= before + 5 for before, after in zip(few, many, strict=True)), found
