"""`[publishing] min_gap`: a backlog does not go out as a burst that looks like spam."""

import json
from contextlib import closing
from datetime import timedelta
from itertools import pairwise

import pytest

from socialpub.core.settings.schema import PublishingSection
from socialpub.db.states import State
from socialpub.db.tables import profile_rows
from socialpub.providers.base import Done, Kind, Published, Readback, Refused, Wait
from socialpub.providers.responses import NoAnswer, NotSent, Throttled
from socialpub.publishing.delivery import engine, resume
from socialpub.publishing.posts import details, drafts
from socialpub.publishing.posts.drafts import Draft
from tests.support.appliance import (
    OWNER,
    accept,
    add_profile,
    connect_again,
    message_of,
    open_appliance,
    state_of,
    status_of,
)
from tests.support.drain import drain
from tests.support.sandbox_http import ProcessKilled
from tests.support.scripted_network import ScriptedNetwork
from tests.support.select import select_value

GAP = timedelta(minutes=15)


class Timed(ScriptedNetwork):
    """Remembers when each call was made."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock
        self.times = []

    def run(self, step, job):
        self.times.append((step, self.clock.now()))
        return super().run(step, job)

    def gaps(self, step="create_post"):
        """How long after the one before each call of this step was made, in whole seconds."""
        at = [when for name, when in self.times if name == step]
        return [timedelta(seconds=round((b - a).total_seconds())) for a, b in pairwise(at)]


@pytest.fixture
def network(clock):
    return Timed(clock)


@pytest.fixture
def appliance_options(network):
    return {"providers": {"x": network}, "publishing": PublishingSection(min_gap=GAP)}


def film(network):
    network.steps = ScriptedNetwork(
        ("upload", Kind.PREPARE), ("send_last", Kind.COMMIT), ("await_outcome", Kind.POLL)
    ).steps  # fmt: skip


@pytest.mark.parametrize("kind", [Kind.COMMIT, Kind.REPEATABLE])
def test_a_backlog_goes_out_oldest_first_with_the_gap_between(rt, network, profile, clock, kind):
    network.steps = ScriptedNetwork(("create_post", kind)).steps
    for number in range(4):
        accept(rt, profile, body=str(number), at=clock.now() + timedelta(minutes=1 + number))
    clock.forward(3600)
    drain(rt, clock)
    assert network.effects == ["0", "1", "2", "3"]
    assert network.gaps() == [GAP] * 3


def test_a_post_that_waits_for_the_gap_says_so_and_has_not_started(rt, network, profile, clock):
    film(network)
    network.results["send_last"], network.results["await_outcome"] = [Done({})], [Published("1")]
    accept(rt, profile, body="first", at=clock.now() + timedelta(minutes=1))
    second = accept(rt, profile, body="second", at=clock.now() + timedelta(minutes=1))
    clock.forward(60)
    drain(rt)
    assert network.asked == ["upload", "send_last", "await_outcome"], "what is uploaded early might lapse"
    (waits,) = json.loads(details.load_attempts(rt, rt.db, second))
    assert waits["outcome"] == "waiting"
    assert waits["message"] == "Two posts of one profile are at least 15m apart (publishing.min_gap)."
    assert waits["nextAt"] == "2026-10-12T09:16:00.000Z"
    assert status_of(rt, second) == "scheduled", "it can still be canceled"


def test_a_gap_does_not_delay_other_profiles(rt, network, profile):
    other = add_profile(rt, account_id="other")
    for target in (profile, other):
        accept(rt, target)
    drain(rt)
    assert len(network.effects) == 2


def test_a_post_long_after_the_last_one_does_not_wait(rt, network, profile, clock):
    accept(rt, profile, body="first")
    drain(rt)
    clock.forward(GAP.total_seconds())
    accept(rt, profile, body="second")
    drain(rt)
    assert network.effects == ["first", "second"]


def test_the_gap_begins_with_the_commit_and_not_with_its_confirmation(rt, network, profile, clock):
    film(network)
    network.results["send_last"] = [Done({"publish_id": "1"}), Done({"publish_id": "2"})]
    network.results["await_outcome"] = [*[Wait(600, "processing")] * 3, Published("1"), Published("2")]
    for body in ("first", "second"):
        accept(rt, profile, body=body)
    drain(rt, clock)
    assert network.gaps("send_last") == [GAP]


def test_a_call_whose_outcome_is_unknown_counts_as_a_post(rt, network, profile, clock):
    network.results["create_post"] = [NoAnswer("timed out")]
    network.results["recover"] = [Readback((Published("100"),))]
    for body in ("first", "second"):
        accept(rt, profile, body=body)
    drain(rt, clock)
    assert network.gaps() == [GAP]


def test_a_call_in_which_the_worker_died_counts_as_a_post(rt, network, profile, clock):
    network.results["create_post"] = [ProcessKilled()]
    network.results["recover"] = [Readback((Published("100"),))]
    posts = [accept(rt, profile, body=body) for body in ("first", "second")]

    def died(step, job):
        network.run = run
        network.times.append((step, clock.now()))
        raise ProcessKilled

    run = network.run
    network.run = died
    with pytest.raises(ProcessKilled):
        engine.work(rt, select_value(rt.db, "SELECT profile_id FROM delivery WHERE post_id = ?", (posts[0],)))
    network.results["create_post"] = []
    drain(rt, clock)
    assert {state_of(rt, post) for post in posts} == {State.PUBLISHED}
    assert network.gaps() == [GAP]


@pytest.mark.parametrize("no", [Refused("not like this"), NotSent("no route")])
def test_a_call_that_made_nothing_leaves_no_gap(rt, network, profile, clock, no):
    network.results["create_post"] = [no]
    for body in ("first", "second"):
        accept(rt, profile, body=body)
    drain(rt)
    assert network.effects == ["second"]


def test_reading_back_waits_for_no_gap(rt, network, profile, clock):
    network.results["create_post"] = [NoAnswer("timed out")]
    network.results["recover"] = [Readback((Published("100"),))]
    post = accept(rt, profile)
    drain(rt, clock, within=30)
    assert state_of(rt, post) is State.PUBLISHED


@pytest.fixture
def slow(tmp_path, clock, network):
    """At most one post an hour."""
    (tmp_path / "slow").mkdir()
    hourly = PublishingSection(min_gap=timedelta(hours=1))
    rt = open_appliance(tmp_path / "slow", clock, providers={"x": network}, publishing=hourly)
    yield rt
    rt.close()


def test_a_backlog_of_days_is_published_whole(slow, network, clock):
    profile = add_profile(slow)
    posts = [accept(slow, profile, body=str(number)) for number in range(60)]
    drain(slow, clock, within=70 * 3600, steps=20_000)
    assert {(state_of(slow, post), message_of(slow, post)) for post in posts} == {(State.PUBLISHED, "None")}
    assert network.gaps() == [timedelta(hours=1)] * 59


def test_an_uploaded_video_waits_for_its_gap_without_a_deadline(tmp_path, clock, network):
    (tmp_path / "rare").mkdir()
    rare = PublishingSection(min_gap=timedelta(hours=30))
    with closing(open_appliance(tmp_path / "rare", clock, providers={"x": network}, publishing=rare)) as rt:
        film(network)
        network.results["upload"] = [NotSent("no route")]
        network.results["send_last"] = [Done({"publish_id": str(number)}) for number in range(3)]
        network.results["await_outcome"] = [Published(str(number)) for number in range(3)]
        profile = add_profile(rt)
        posts = [accept(rt, profile, body=str(number)) for number in range(3)]
        drain(rt, clock)
        assert {state_of(rt, post) for post in posts} == {State.PUBLISHED}


def test_a_wait_of_the_network_counts_beside_the_gap(slow, network, clock):
    profile = add_profile(slow)
    accept(slow, profile, body="first")
    drain(slow)
    network.results["create_post"] = [Throttled("slow down", retry_after_seconds=7200)] * 100
    post = accept(slow, profile, body="second")
    drain(slow, clock, within=60 * 3600)
    assert state_of(slow, post) is State.FAILED
    assert "after the deadline (publishing.give_up_after): slow down" in message_of(slow, post)
    asked = [when for step, when in network.times if step == "create_post"]
    waited = asked[-1] - asked[1]
    assert timedelta(hours=46) <= waited < timedelta(hours=48), "give_up_after, from the first start on"


@pytest.mark.parametrize("ahead", [None, timedelta(minutes=1)])
def test_a_post_that_waited_for_its_gap_waits_as_long_for_a_reconnection(slow, network, clock, ahead):
    profile = add_profile(slow)
    at = ahead and clock.now() + ahead
    posts = [accept(slow, profile, body=str(number), at=at) for number in range(40)]
    drain(slow, clock, within=30 * 3600)
    slow.write(lambda _, tx: profile_rows.require_reauth(tx, profile, "the token was refused"))
    drain(slow, clock, within=23 * 3600)
    connect_again(slow)
    drain(slow, clock, within=70 * 3600, steps=20_000)
    assert {(state_of(slow, post), message_of(slow, post)) for post in posts} == {(State.PUBLISHED, "None")}


def test_a_post_that_was_late_before_its_gap_began_stays_late(slow, network, clock):
    profile = add_profile(slow)
    late = accept(slow, profile, body="late", at=clock.now() + timedelta(hours=1))
    accept(slow, profile, body="in time", at=clock.now() + timedelta(hours=47))
    slow.write(resume.pause)
    clock.forward(48 * 3600)
    assert slow.write(resume.end_pause) == 1
    drain(slow, clock)
    assert network.effects == ["in time"]
    assert "Not sent: the post could not start within 24 hours" in message_of(slow, late)


# --- notes before the post is accepted -------------------------------------------------------------------------------


def notes(rt, profile, at=None, editing=None):
    (checked,) = drafts.check_draft(rt, rt.db, Draft("New", at, (profile,), (), None), OWNER, editing)
    return checked.notes


def test_validation_estimates_the_end_of_the_gap_correctly(slow, network, clock):
    profile = add_profile(slow)
    assert notes(slow, profile) == []
    for number in range(3):
        accept(slow, profile, body=str(number))
    drain(slow)
    assert notes(slow, profile) == [
        "Two posts of one profile are at least 1h apart (publishing.min_gap). 2 posts are queued before this post. "
        "This post is published at about 2026-10-12 12:00 UTC."
    ]
    accept(slow, profile, body="New")
    drain(slow, clock)
    assert (network.effects[-1], network.times[-1][1].hour) == ("New", 12)


def test_validation_of_a_scheduled_post_counts_what_is_due_before_it(slow, clock):
    profile, nine = add_profile(slow), clock.now()
    for minutes in (60, 70, 300):
        accept(slow, profile, body=str(minutes), at=nine + timedelta(minutes=minutes))
    assert notes(slow, profile, nine + timedelta(minutes=30)) == [], "nothing is due before it"
    assert notes(slow, profile, nine + timedelta(minutes=190)) == [], "the queue is empty by then"
    (note,) = notes(slow, profile, nine + timedelta(minutes=90))
    assert "2 posts are queued before this post." in note
    assert "This post is published at about 2026-10-12 12:00 UTC, later than" in note
    slow.write(resume.pause)
    (note,) = notes(slow, profile, nine + timedelta(minutes=90))
    assert note.endswith("later than scheduled, unless publishing stays paused.")


def test_a_post_that_is_edited_does_not_wait_for_itself(slow, clock):
    profile, at = add_profile(slow), clock.now() + timedelta(hours=2)
    post = accept(slow, profile, body="Old", at=at)
    assert notes(slow, profile, at, editing=post) == []
