"""The second call after an unknown outcome: what must come before it, and that it proves nothing about the first."""

from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from socialpub.accounts import profiles
from socialpub.core.settings.schema import PublishingSection
from socialpub.db.models import ProfileRow
from socialpub.db.states import State
from socialpub.providers.auth import Tokens
from socialpub.providers.base import Again, Done, Kind, Published, Readback, Refused
from socialpub.providers.responses import AuthExpired, NoAnswer, NotSent, Rejected, Throttled
from socialpub.publishing.delivery import read_back, resume
from socialpub.publishing.posts import posts
from tests.support.appliance import accept, add_profile, attempts_of, message_of, open_appliance, state_of
from tests.support.drain import drain
from tests.support.scripted_network import ScriptedNetwork

FOUND = Readback((Published("77", "https://x.example/77"),))
RESEND_AFTER = 600.0


class LateList(ScriptedNetwork):
    """The first call makes the post without an answer. The account's list shows it after `lag_seconds`."""

    def __init__(self, clock):
        super().__init__(("upload", Kind.PREPARE), ("create_post", Kind.COMMIT))
        self.clock = clock
        self.upload_seconds = [0.0]
        self.lag_seconds = 0.0
        self.made_at = None
        self.looked_at = []
        self.called_at = []
        self.then = []
        """What the calls after the first come to."""

    def run(self, step, job):
        if step == "upload":
            self.clock.forward(self.upload_seconds.pop(0) if self.upload_seconds else 0.0)
            return Done({"media": "1"})
        self.called_at.append(self.clock.monotonic())
        if self.made_at is None:
            self.publish(job.content.text)
            self.made_at = self.clock.monotonic()
            raise NoAnswer("timed out")
        if self.then:
            return self._come_to(self.then.pop(0), job)
        return super().run(step, job)

    def recover(self, job):
        self.asked.append("recover")
        self.looked_at.append(self.clock.monotonic())
        assert self.made_at is not None
        return FOUND if self.clock.monotonic() - self.made_at >= self.lag_seconds else Readback()


@pytest.fixture
def network(clock):
    return LateList(clock)


@pytest.mark.parametrize("lag", [100, 185, 300, 595])
def test_a_list_that_lags_for_minutes_costs_no_second_post(rt, network, profile, clock, lag):
    network.lag_seconds = lag
    post = accept(rt, profile)
    drain(rt, clock)
    assert (state_of(rt, post), len(network.called_at)) == (State.PUBLISHED, 1)


# --- what delays the second call --------------------------------------------------------------------------------------


@pytest.mark.parametrize("then", [[Throttled("slow down", retry_after_seconds=3600)], [NotSent("no route")] * 5, None])
def test_a_delayed_second_call_has_a_read_back_just_before_it(rt, network, profile, clock, then):
    network.lag_seconds = RESEND_AFTER + 20
    post = accept(rt, profile)
    until_absent(rt, network, clock)
    if then is None:
        rt.write(resume.pause)
        clock.forward(6 * 3600)
        rt.write(resume.end_pause)
    else:
        network.then = then
    drain(rt, clock)
    assert state_of(rt, post) is State.PUBLISHED
    assert len(network.effects) == 1, "the post came into sight while the second call waited"


def test_a_gap_between_posts_delays_the_second_call_and_its_read_back(tmp_path, network, clock):
    network.lag_seconds = RESEND_AFTER + 20
    with_gap = PublishingSection(min_gap=timedelta(minutes=30))
    with closing(open_appliance(tmp_path, clock, providers={"x": network}, publishing=with_gap)) as rt:
        post = accept(rt, add_profile(rt))
        drain(rt, clock)
        assert (state_of(rt, post), len(network.called_at)) == (State.PUBLISHED, 1)


def test_a_second_call_follows_its_read_back_within_a_minute(rt, network, profile, clock):
    network.lag_seconds = 10**9
    network.then = [Throttled("slow down", retry_after_seconds=3600), NotSent("no route"), Published("88")]
    post = accept(rt, profile)
    drain(rt, clock)
    assert state_of(rt, post) is State.PUBLISHED
    assert len(network.called_at) == 4
    for called in network.called_at[1:]:
        assert min(called - looked for looked in network.looked_at if looked <= called) <= 60


def until_absent(rt, network, clock):
    """Time passes until the account did not show the post for all of `resend_after`; the second call has not left."""
    drain(rt)
    stop_before = network.run
    network.run = lambda step, job: (_ for _ in ()).throw(NotSent("no route"))
    while clock.monotonic() - (network.made_at or 0) <= RESEND_AFTER + 1:
        clock.forward(1)
        drain(rt)
    network.run = stop_before


# --- what the second call comes to ------------------------------------------------------------------------------------

REFUSALS: dict[str, Any] = {
    "refused": Refused("X refused: the media were used already."),
    "rejected": Rejected("X refused: not allowed.", status=403),
}


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_second_call_that_is_refused_because_the_first_arrived_is_no_failure(rt, network, profile, clock, refusal):
    network.lag_seconds = RESEND_AFTER + 100
    network.then = [REFUSALS[refusal]]
    post = accept(rt, profile)
    drain(rt, clock)
    assert state_of(rt, post) is State.PUBLISHED
    assert ("create_post", "refused") in attempts_of(rt, post)


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_refused_second_call_fails_only_after_another_round_of_read_backs(rt, network, profile, clock, refusal):
    network.lag_seconds = 10**9
    network.then = [REFUSALS[refusal]]
    post = accept(rt, profile)
    drain(rt, clock)
    assert (state_of(rt, post), message_of(rt, post)) == (State.FAILED, REFUSALS[refusal].message)
    assert network.looked_at[-1] - network.called_at[1] >= RESEND_AFTER
    assert len(network.called_at) == 2


def test_a_stop_before_the_second_call_reads_back_for_another_round(rt, network, profile, clock):
    network.lag_seconds = RESEND_AFTER + 300
    post = accept(rt, profile)
    until_absent(rt, network, clock)
    rt.write(posts.stop, post)
    assert state_of(rt, post) is State.QUEUED, "what may be public is not called failed"
    drain(rt, clock)
    assert (state_of(rt, post), len(network.called_at)) == (State.PUBLISHED, 1)


def test_a_stop_before_the_second_call_fails_when_the_account_still_shows_nothing(rt, network, profile, clock):
    network.lag_seconds = 10**9
    post = accept(rt, profile)
    until_absent(rt, network, clock)
    rt.write(posts.stop, post)
    drain(rt, clock)
    assert (state_of(rt, post), message_of(rt, post)) == (State.FAILED, read_back.STOPPED)
    assert len(network.called_at) == 1


def test_a_profile_disconnected_before_the_second_call_leaves_the_outcome_unknown(rt, network, profile, clock):
    network.lag_seconds = 10**9
    post = accept(rt, profile)
    until_absent(rt, network, clock)
    rt.write(profiles.disconnect, profile)
    drain(rt, clock)
    assert state_of(rt, post) is State.UNCONFIRMED
    assert message_of(rt, post).startswith("Outcome unknown: timed out.")


def test_a_deadline_before_the_second_call_reads_back_again(rt, network, profile, clock):
    network.lag_seconds = 10**9
    network.then = [NotSent("no route")] * 10_000
    post = accept(rt, profile)
    drain(rt, clock)
    assert state_of(rt, post) is State.FAILED
    assert message_of(rt, post).startswith("Not sent again: socialpub ")
    assert network.looked_at[-1] - network.called_at[-1] >= RESEND_AFTER


def test_a_token_refused_at_the_second_call_waits_for_a_reconnection_and_reads_back_again(rt, network, profile, clock):
    network.lag_seconds = RESEND_AFTER + 20
    network.then = [AuthExpired("401"), AuthExpired("401")]
    post = accept(rt, profile)
    drain(rt, clock, within=3600)
    assert (state_of(rt, post), attempts_of(rt, post)[-1]) == (State.QUEUED, ("create_post", "held"))
    clock.forward(120)
    rt.db.write(lambda tx: tx.update(ProfileRow, profile, status="active"))
    rt.db.write(lambda tx: tx.execute_sql("UPDATE delivery SET run_at = ?", (tx.stamp,)))
    drain(rt, clock)
    assert (state_of(rt, post), len(network.effects)) == (State.PUBLISHED, 1)


# --- delays just before the second call -------------------------------------------------------------------------------


def test_a_repeated_upload_of_minutes_is_followed_by_a_read_back(rt, network, profile, clock):
    network.lag_seconds = 630.0
    network.upload_seconds = [0.0, 300.0]
    network.then = [Again("upload", {}, "not-accepted", "X no longer accepts the media")]
    post = accept(rt, profile)
    drain(rt, clock)
    before_last = max(looked for looked in network.looked_at if looked <= network.called_at[-1])
    assert network.called_at[-1] - before_last <= 60 or len(network.effects) == 1
    assert (state_of(rt, post), len(network.effects)) == (State.PUBLISHED, 1)


def test_a_slow_token_renewal_is_followed_by_a_read_back(rt, network, profile, clock):
    network.lag_seconds = 630.0
    network.then = [NotSent("no route")]
    post = accept(rt, profile)
    while len(network.called_at) < 2:
        drain(rt)
        clock.forward(1)
    rt.db.write(lambda tx: tx.update(ProfileRow, profile, access_expires_at=tx.stamp))

    def slowly(http, account, refresh_token):
        clock.forward(100)
        return Tokens("access-2", "refresh-2", 7200)

    network.auth.refresh = slowly
    drain(rt, clock)
    assert (state_of(rt, post), len(network.effects)) == (State.PUBLISHED, 1)


def test_a_stop_just_before_the_second_call_still_reads_back(rt, network, profile, clock):
    def stopped_meanwhile(job):
        rt.write(lambda _, tx: posts.stop(rt, tx, post))
        return job.call("POST", "https://x.example/2/tweets")  # the gate lets nothing out

    network.lag_seconds = 630.0
    network.then = [stopped_meanwhile]
    post = accept(rt, profile)
    drain(rt, clock)
    assert (state_of(rt, post), len(network.effects)) == (State.PUBLISHED, 1), message_of(rt, post)
    assert len(network.called_at) == 2


# --- similar posts ----------------------------------------------------------------------------------------------------


class SomethingElse(ScriptedNetwork):
    """The account shows something of the same kind from that time, in other words."""

    def recover(self, job):
        self.asked.append("recover")
        return Readback(similar=("55",))


def test_a_similar_post_with_other_words_leaves_the_outcome_unknown(tmp_path, clock):
    network = SomethingElse()
    network.results["create_post"] = [NoAnswer("timed out")]
    with closing(open_appliance(tmp_path, clock, providers={"x": network})) as rt:
        post = accept(rt, add_profile(rt))
        drain(rt, clock)
        assert (state_of(rt, post), network.asked.count("create_post")) == (State.UNCONFIRMED, 1)
        assert "with different words" in message_of(rt, post)


def test_a_similar_post_of_another_delivery_proves_nothing(tmp_path, clock):
    network = SomethingElse()
    with closing(open_appliance(tmp_path, clock, providers={"x": network})) as rt:
        profile = add_profile(rt)
        network.results["create_post"] = [Published("55")]
        accept(rt, profile, body="Another one")
        drain(rt)
        network.results["create_post"] = [NoAnswer("timed out")]
        post = accept(rt, profile)
        drain(rt, clock)
        assert (state_of(rt, post), network.asked.count("create_post")) == (State.PUBLISHED, 3)


@pytest.mark.parametrize(("resend_after", "calls"), [("never", 1), ("1m", 2), ("30m", 2)])
def test_resend_after_sets_the_length_of_the_round(tmp_path, clock, resend_after, calls):
    network = ScriptedNetwork()
    network.results["create_post"] = [NoAnswer("timed out")]
    section = PublishingSection.model_validate({"resend_after": resend_after})
    with closing(open_appliance(tmp_path, clock, providers={"x": network}, publishing=section)) as rt:
        began = clock.now()
        post = accept(rt, add_profile(rt))
        drain(rt, clock)
        assert network.asked.count("create_post") == calls
        assert state_of(rt, post) is (State.UNCONFIRMED if calls == 1 else State.PUBLISHED)
        if section.resend_after is not None:
            assert clock.now() - began >= section.resend_after
        else:
            assert 'resend_after is "never"' in message_of(rt, post)
