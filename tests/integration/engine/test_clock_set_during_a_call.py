"""A clock that is set while a call is on its way, or while something else counts."""

import pytest

from socialpub.db.states import State
from socialpub.providers.base import Published, Readback
from socialpub.providers.responses import NoAnswer, Throttled
from socialpub.publishing import retention
from socialpub.worker import reconciler
from tests.support.appliance import accept, message_of, state_of
from tests.support.drain import drain
from tests.support.rows import artifact

WEEK = 7 * 86400.0
either_way = pytest.mark.parametrize("jump", [WEEK, -WEEK], ids=["+7d", "-7d"])


def set_during(rt, clock, jump, then):
    def call(job):
        clock.jump(jump)
        rt.write(reconciler.beat)
        raise then

    return call


@either_way
def test_patience_is_not_used_up_when_the_clock_is_set_during_a_call(rt, network, profile, clock, jump):
    network.results["create_post"] = [set_during(rt, clock, jump, Throttled("slow", retry_after_seconds=600))]
    post = accept(rt, profile)
    drain(rt)
    drain(rt, clock, within=900)
    assert state_of(rt, post) is State.PUBLISHED, message_of(rt, post)


@either_way
def test_what_may_be_public_is_read_back_when_the_clock_is_set_during_a_call(rt, network, profile, clock, jump):
    network.results["create_post"] = [set_during(rt, clock, jump, NoAnswer("cut"))]
    network.results["recover"] = [Readback(), Readback((Published("77"),))]
    post = accept(rt, profile)
    drain(rt)
    drain(rt, clock, within=900)
    assert state_of(rt, post) is State.PUBLISHED, message_of(rt, post)


@either_way
def test_ages_are_right_when_the_clock_is_set_during_a_call(rt, network, profile, clock, jump):
    ages = []

    def age(job):
        assert job.committed_at is not None
        ages.append((job.now - job.committed_at).total_seconds())
        return Readback((Published("77"),))

    network.results["create_post"] = [set_during(rt, clock, jump, NoAnswer("cut"))]
    network.results["recover"] = [age]
    accept(rt, profile)
    drain(rt)
    clock.forward(6)
    rt.db.write(lambda tx: tx.execute("UPDATE delivery SET started_at = ?, run_at = ?", (tx.stamp, tx.stamp)))
    drain(rt)
    assert len(ages) == 1
    assert 0 <= ages[0] < 60


@pytest.mark.parametrize(("status", "days"), [("reserved", 7), ("verified", 31)])
def test_what_was_uploaded_a_moment_ago_is_kept_when_the_clock_is_set_forward(rt, clock, status, days):
    fresh = artifact(rt, status)
    rt.write(reconciler.beat)
    clock.jump(days * 86400)
    rt.write(reconciler.beat)
    retention.remove_unused_media(rt)
    assert rt.reader.one("SELECT 1 FROM artifact WHERE id = ? AND removed_at IS NULL", (fresh,)) is not None
