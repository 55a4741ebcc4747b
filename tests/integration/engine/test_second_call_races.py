"""What may still happen between a first call of unknown outcome and a second one."""

import pytest

from socialpub.db.states import State
from socialpub.providers.base import Again, Done, Kind, Published, Readback
from socialpub.providers.oauth import Tokens
from socialpub.providers.responses import NoAnswer, NotSent
from socialpub.publishing.posts import posts
from tests.support.appliance import accept, message_of, state_of
from tests.support.drain import drain
from tests.support.scripted_network import ScriptedNetwork


class Slow(ScriptedNetwork):
    """The first create arrives and is not answered; the list shows it only after `lag_seconds`."""

    def __init__(self, clock):
        super().__init__(("upload", Kind.PREPARE), ("create_post", Kind.COMMIT))
        self.clock = clock
        self.lag_seconds = 630.0
        self.made_at = None
        self.looked = []
        self.called = []
        self.second = []
        self.uploads = [0.0]

    def run(self, step, job):
        if step == "upload":
            self.clock.forward(self.uploads.pop(0) if self.uploads else 0.0)
            return Done({"media": "1"})
        self.called.append(self.clock.monotonic())
        if self.made_at is None:
            self.publish(job.content.text)
            self.made_at = self.clock.monotonic()
            raise NoAnswer("timed out")
        if self.second:
            return self._come_to(self.second.pop(0), job)
        return self.publish(job.content.text)

    def recover(self, job):
        self.looked.append(self.clock.monotonic())
        assert self.made_at is not None
        there = self.clock.monotonic() - self.made_at >= self.lag_seconds
        return Readback((Published("1"),)) if there else Readback()


@pytest.fixture
def network(clock):
    return Slow(clock)


def test_a_repeated_upload_of_minutes_is_followed_by_a_read_back(rt, network, profile, clock):
    network.uploads = [0.0, 300.0]
    network.second = [Again("upload", {}, "X does not accept the media any more")]
    post = accept(rt, profile)
    drain(rt, clock)
    before_last = max(looked for looked in network.looked if looked <= network.called[-1])
    assert network.called[-1] - before_last <= 60 or len(network.effects) == 1
    assert (state_of(rt, post), len(network.effects)) == (State.PUBLISHED, 1)


def test_a_slow_token_renewal_is_followed_by_a_read_back(rt, network, profile, clock):
    network.second = [NotSent("no route")]
    post = accept(rt, profile)
    while len(network.called) < 2:
        drain(rt)
        clock.forward(1)
    rt.db.write(lambda tx: tx.update("profile", profile, access_expires_at=tx.stamp))

    def slowly(http, refresh_token):
        clock.forward(100)
        return Tokens("access-2", "refresh-2", 7200)

    network.oauth.refresh = slowly
    drain(rt, clock)
    assert (state_of(rt, post), len(network.effects)) == (State.PUBLISHED, 1)


def test_a_stop_just_before_the_second_call_still_reads_back(rt, network, profile, clock):
    def stopped_meanwhile(job):
        rt.write(lambda _, tx: posts.stop(rt, tx, post))
        return job.call("POST", "https://x.example/2/tweets")  # the gate lets nothing out

    network.second = [stopped_meanwhile]
    post = accept(rt, profile)
    drain(rt, clock)
    assert (state_of(rt, post), len(network.effects)) == (State.PUBLISHED, 1), message_of(rt, post)
    assert len(network.called) == 2
