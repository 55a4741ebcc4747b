"""A commit whose repetition cannot create a second post is repeated at once, and is read back only before a failure."""

from contextlib import closing
from datetime import timedelta
from itertools import pairwise

import pytest

from socialpub.accounts import profiles
from socialpub.core.settings.schema import PublishingSection
from socialpub.db.states import State
from socialpub.providers.base import Again, Done, Kind, Published, Readback, Refused, Unknown
from socialpub.providers.responses import AppRefused, AuthExpired, NoAnswer, NotSent, Rejected, Throttled
from socialpub.publishing.delivery import read_back, resume
from socialpub.publishing.posts import posts
from tests.integration.engine.lives import Lives, die
from tests.support.appliance import (
    accept,
    add_profile,
    attempts_of,
    connect_again,
    message_of,
    open_appliance,
    state_of,
)
from tests.support.copies import become_restored
from tests.support.drain import drain
from tests.support.sandbox_http import ProcessKilled
from tests.support.scripted_network import ScriptedNetwork
from tests.support.select import select_value

FOR_EVER = 10_000
HOUR = 3600.0
REFUSED = "The text is not allowed."


class KeyedNetwork(ScriptedNetwork):
    """The key of a record is chosen before the first call, so the same call again changes nothing."""

    def __init__(self, clock):
        super().__init__(("record", Kind.PREPARE), ("publish", Kind.REPEATABLE))
        self.clock = clock
        self.records = {}
        self.late = []
        """A key, its text, and the instant at which a delayed call takes effect."""
        self.called_at = []
        self.looked_at = []

    def run(self, step, job):
        self._take_late_effects()
        if step == "publish":
            self.called_at.append(self.clock.monotonic())
        return super().run(step, job)

    def goes_well(self, step, job):
        return self.put(job) if step == "publish" else Done({"key": f"key-{self.asked.count('record')}"})

    def put(self, job):
        return self._store(job.memo["key"], job.content.text)

    def _store(self, key, text):
        if key not in self.records:
            self.records[key] = text
            self.effects.append(text)
        return Published(key)

    def recover(self, job):
        self._take_late_effects()
        self.looked_at.append(self.clock.monotonic())
        found = super().recover(job)
        return Readback((Published(job.memo["key"]),)) if job.memo.get("key") in self.records else found

    def _take_late_effects(self):
        for key, text, at in self.late:
            if at <= self.clock.monotonic():
                self._store(key, text)

    def lost(self, job):
        """The call takes effect, and its response is lost."""
        self.put(job)
        raise NoAnswer("The connection was cut.")

    def late_by(self, seconds):
        def run(job):
            self.late.append((job.memo["key"], job.content.text, self.clock.monotonic() + seconds))
            raise NoAnswer("The call timed out.")

        return run

    def killed(self, job):
        raise ProcessKilled

    def killed_after(self, job):
        self.put(job)
        raise ProcessKilled

    @property
    def pauses(self):
        return [after - before for before, after in pairwise(self.called_at)]


@pytest.fixture
def network(clock):
    return KeyedNetwork(clock)


@pytest.fixture
def lives(tmp_path, network, clock):
    return Lives(tmp_path, network, clock)


def stopped(rt, post, then):
    """The owner stops the post during the call."""

    def run(job):
        rt.write(posts.stop, post)
        return then(job)

    return run


def no_answer(job):
    raise NoAnswer("The connection was cut.")


def is_published_once(rt, network, post):
    assert state_of(rt, post) is State.PUBLISHED, message_of(rt, post)
    assert len(network.effects) == 1
    return True


# --- the repetition --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", ["the response", "the request"])
@pytest.mark.parametrize("resend_after", ["1m", "10m", "never"])
def test_a_call_without_a_response_is_repeated_at_once_with_any_resend_after(tmp_path, clock, resend_after, lost):
    network = KeyedNetwork(clock)
    network.results["publish"] = [network.lost if lost == "the response" else no_answer]
    section = PublishingSection.model_validate({"resend_after": resend_after})
    with closing(open_appliance(tmp_path, clock, providers={"x": network}, publishing=section)) as rt:
        post = accept(rt, add_profile(rt))
        drain(rt)
        assert is_published_once(rt, network, post)
        assert (len(network.called_at), network.looked_at) == (2, [])


def test_an_adapter_can_ask_for_the_repetition_and_keep_its_memo(rt, network, profile):
    network.results["publish"] = [lambda job: Unknown("HTTP 502", memo={**job.memo, "seen": True})]
    post = accept(rt, profile)
    drain(rt)
    assert is_published_once(rt, network, post)
    assert network.jobs[-1].memo == {"key": "key-1", "seen": True}
    assert network.jobs[-1].unknown_before


def test_the_repetitions_follow_at_once_then_with_growing_pauses_of_at_most_three_minutes(rt, network, profile, clock):
    network.results["publish"] = [no_answer] * 12
    post = accept(rt, profile)
    drain(rt, clock)
    assert is_published_once(rt, network, post)
    assert network.pauses[0] == 0
    for pause, least in zip(network.pauses[1:], (1, 2, 4, 8, 16, 32, 64, 128, 180, 180, 180), strict=True):
        assert least <= pause <= least * 1.25 + 0.1
    assert network.looked_at == []


def test_the_attempts_say_that_the_same_call_is_repeated(rt, network, profile):
    network.results["publish"] = [no_answer]
    post = accept(rt, profile)
    drain(rt)
    assert attempts_of(rt, post) == [("record", "done"), ("publish", "unknown"), ("publish", "published")]
    assert select_value(rt.db, "SELECT message FROM attempt WHERE outcome = 'unknown'") == (
        "The connection was cut. The outcome is unknown. The same call is repeated; it cannot create a second post."
    )


def test_a_request_that_takes_effect_after_its_repetition_changes_nothing(rt, network, profile, clock):
    network.results["publish"] = [network.late_by(30)]
    post = accept(rt, profile)
    drain(rt)
    clock.forward(60)
    network._take_late_effects()
    assert is_published_once(rt, network, post)


@pytest.mark.parametrize("effect", [True, False])
def test_a_call_that_kills_three_workers_is_read_back_and_not_repeated_again(lives, network, effect):
    rt = lives.begin()
    post = accept(rt, add_profile(rt))
    die(rt)
    network.results["publish"] = [network.killed_after if effect else network.killed] * FOR_EVER
    rt = lives.go_on()
    assert (lives.deaths, len(network.called_at)) == (3, 3)
    assert state_of(rt, post) is (State.PUBLISHED if effect else State.FAILED)
    if not effect:
        assert message_of(rt, post).startswith(
            "Not sent again: the worker died 3 times in a row during the step publish"
        )
        assert network.looked_at[-1] - network.called_at[-1] >= read_back.LATE_EFFECT_SECONDS
    rt.close()


# --- what delays the repetition, and what does not --------------------------------------------------------------------


@pytest.mark.parametrize(
    "then",
    [
        Throttled("slow down", retry_after_seconds=900),
        Throttled("slow down"),
        NotSent("no route"),
        AppRefused("capped"),
        AuthExpired("401"),
    ],
    ids=["429 with a time", "429", "never left", "hold", "token"],
)
def test_a_delayed_repetition_needs_no_read_back(rt, network, profile, clock, then):
    network.results["publish"] = [network.lost, then]
    post = accept(rt, profile)
    drain(rt, clock)
    assert is_published_once(rt, network, post)
    assert (len(network.called_at), network.looked_at) == (3, [])
    if isinstance(then, Throttled):
        assert network.pauses[1] >= (then.retry_after_seconds or 60)


def test_a_repetition_goes_on_after_a_pause_and_after_a_reconnection(rt, network, profile, clock):
    network.results["publish"] = [network.lost, AuthExpired("401"), AuthExpired("401"), no_answer, no_answer]
    post = accept(rt, profile)
    drain(rt)
    assert (state_of(rt, post), attempts_of(rt, post)[-1]) == (State.QUEUED, ("publish", "held"))
    clock.forward(HOUR)
    connect_again(rt)
    drain(rt)
    rt.write(resume.pause)
    clock.forward(6 * HOUR)
    drain(rt)
    assert state_of(rt, post) is State.QUEUED
    rt.write(resume.end_pause)
    drain(rt, clock)
    assert is_published_once(rt, network, post)
    assert network.looked_at == []


def test_the_gap_between_posts_delays_the_next_post_and_no_repetition(tmp_path, clock):
    network, gap = KeyedNetwork(clock), timedelta(minutes=15)
    network.results["publish"] = [no_answer] * 3
    section = PublishingSection(min_gap=gap)
    with closing(open_appliance(tmp_path, clock, providers={"x": network}, publishing=section)) as rt:
        profile = add_profile(rt)
        first, second = accept(rt, profile, body="1"), accept(rt, profile, body="2")
        drain(rt, clock)
        assert [state_of(rt, post) for post in (first, second)] == [State.PUBLISHED] * 2
        assert network.effects == ["1", "2"]
        assert sum(network.pauses[:3]) < 10
        assert network.pauses[3] >= gap.total_seconds()


def test_an_equal_post_waits_for_the_unknown_outcome_and_delays_no_repetition(rt, network, profile, clock):
    network.results["publish"] = [network.lost, no_answer, no_answer]
    first, second = accept(rt, profile), accept(rt, profile)
    drain(rt, clock)
    assert [state_of(rt, post) for post in (first, second)] == [State.PUBLISHED] * 2
    assert sorted(network.records) == ["key-1", "key-2"]
    assert len(network.called_at) == 5


def test_an_earlier_step_again_leads_to_the_same_call(rt, network, profile):
    network.steps = KeyedNetwork(None).steps
    network.results["record"] = [Done({"key": "chosen"}), lambda job: Done(job.memo)]
    network.results["publish"] = [no_answer, lambda job: Again("record", job.memo, "missing", "The image is missing.")]
    post = accept(rt, profile)
    drain(rt)
    assert is_published_once(rt, network, post)
    assert list(network.records) == ["chosen"]


# --- the ends ---------------------------------------------------------------------------------------------------------


def closing_round(network):
    """The length of the read-backs after the last call."""
    return network.looked_at[-1] - network.called_at[-1]


REFUSALS = {"refused": Refused(REFUSED), "rejected": Rejected(REFUSED, status=400)}


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("resend_after", ["1m", "10m", "never"])
def test_a_refused_repetition_fails_after_two_minutes_of_read_backs(tmp_path, clock, resend_after, refusal):
    network = KeyedNetwork(clock)
    network.results["publish"] = [no_answer, REFUSALS[refusal]]
    section = PublishingSection.model_validate({"resend_after": resend_after})
    with closing(open_appliance(tmp_path, clock, providers={"x": network}, publishing=section)) as rt:
        post = accept(rt, add_profile(rt))
        drain(rt, clock)
        assert (state_of(rt, post), message_of(rt, post)) == (State.FAILED, REFUSED)
        assert len(network.called_at) == 2
        assert 120 <= closing_round(network) <= 130


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_late_effect_after_a_refused_repetition_is_found(rt, network, profile, clock, refusal):
    network.results["publish"] = [network.late_by(115), REFUSALS[refusal]]
    post = accept(rt, profile)
    drain(rt, clock)
    assert is_published_once(rt, network, post)


def test_a_refused_first_call_fails_at_once(rt, network, profile):
    network.results["publish"] = [Refused(REFUSED)]
    post = accept(rt, profile)
    drain(rt)
    assert (state_of(rt, post), network.looked_at) == (State.FAILED, [])


@pytest.mark.parametrize("effect", [True, False])
def test_a_stop_ends_the_repetitions_and_the_record_is_looked_up(rt, network, profile, clock, effect):
    post = accept(rt, profile)
    network.results["publish"] = [no_answer, stopped(rt, post, network.lost if effect else no_answer)]
    drain(rt, clock)
    assert len(network.called_at) == 2
    if effect:
        assert is_published_once(rt, network, post)
    else:
        assert (state_of(rt, post), message_of(rt, post)) == (State.FAILED, read_back.STOPPED)
        assert closing_round(network) >= 120


@pytest.fixture
def patient_for_an_hour(tmp_path, network, clock):
    section = PublishingSection(give_up_after=timedelta(hours=1), max_lateness=timedelta(hours=1))
    with closing(open_appliance(tmp_path, clock, providers={"x": network}, publishing=section)) as rt:
        yield rt


@pytest.mark.parametrize("effect", [True, False])
def test_a_deadline_ends_the_repetitions_and_the_record_is_looked_up(patient_for_an_hour, network, clock, effect):
    rt = patient_for_an_hour
    network.results["publish"] = [network.lost if effect else no_answer] * FOR_EVER
    post = accept(rt, add_profile(rt))
    drain(rt, clock)
    assert network.called_at[-1] - network.called_at[0] <= HOUR
    if effect:
        assert is_published_once(rt, network, post)
    else:
        assert state_of(rt, post) is State.FAILED
        assert message_of(rt, post).startswith("Not sent again: ")
        assert closing_round(network) >= 120


def test_only_a_server_that_never_answers_leaves_the_outcome_unknown(patient_for_an_hour, network, clock):
    rt = patient_for_an_hour
    network.results["publish"] = [no_answer] * FOR_EVER
    network.results["recover"] = [NoAnswer("The connection was cut.")] * FOR_EVER
    post = accept(rt, add_profile(rt))
    drain(rt, clock)
    assert state_of(rt, post) is State.UNCONFIRMED


def test_a_profile_disconnected_between_two_calls_leaves_the_outcome_unknown(rt, network, profile, clock):
    network.results["publish"] = [no_answer, no_answer]
    post = accept(rt, profile)
    drain(rt)
    rt.write(profiles.disconnect, profile)
    drain(rt, clock)
    assert state_of(rt, post) is State.UNCONFIRMED
    assert len(network.called_at) == 2


# --- restored backups -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("effect", [True, False])
def test_a_restored_delivery_that_was_due_is_looked_up_and_never_repeated(rt, network, profile, clock, effect):
    network.results["publish"] = [network.lost if effect else no_answer, no_answer]
    post = accept(rt, profile)
    drain(rt)
    become_restored(rt)
    clock.forward(60)
    rt.write(resume.resume)
    drain(rt, clock)
    assert len(network.called_at) == 2
    assert state_of(rt, post) is (State.PUBLISHED if effect else State.FAILED)
    assert closing_round(network) >= (5 if effect else 120)


def test_a_restored_delivery_that_is_due_later_is_looked_up_once_and_then_repeated(rt, network, profile, clock):
    post = accept(rt, profile, at=clock.now() + timedelta(hours=2))
    become_restored(rt)
    clock.forward(60)
    rt.write(resume.resume)
    network.results["publish"] = [no_answer] * 3
    drain(rt, clock)
    assert is_published_once(rt, network, post)
    assert (len(network.looked_at), len(network.called_at)) == (1, 4)
    assert network.looked_at[0] <= network.called_at[0]
