"""What a network tells only after a post is up."""

from socialpub.db.states import State
from socialpub.providers.base import Published
from socialpub.providers.responses import NoAnswer
from socialpub.publishing.delivery import backfill
from tests.support.appliance import accept, state_of
from tests.support.drain import drain


def told(rt):
    row = rt.reader.one("SELECT provider_post_id, url FROM delivery")
    assert row is not None
    return row[0], row[1]


def test_an_id_that_is_told_late_is_filled_in_and_nothing_else_changes(rt, network, profile, clock):
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
        backfill.ask(rt)
    assert len(jobs) == 3, "asked at its ages, not every time"
    assert (state_of(rt, post), told(rt)) == (State.PUBLISHED, ("99", "https://t.example/99"))
    assert [row[0] for row in rt.reader.all("SELECT type FROM log_entry ORDER BY n")] == ["pending", "published"]
    clock.forward(7200)
    backfill.ask(rt)
    assert len(jobs) == 3


def test_an_id_that_another_delivery_holds_is_not_adopted(rt, network, profile, clock):
    network.fill_in = lambda job: Published("1")
    network.results["create_post"] = [Published("1"), Published(None)]
    accept(rt, profile, body="one")
    late = accept(rt, profile, body="two")
    drain(rt)
    clock.forward(61)
    backfill.ask(rt)
    assert rt.reader.value("SELECT provider_post_id FROM delivery WHERE post_id = ?", (late,)) is None
