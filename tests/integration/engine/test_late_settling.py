"""A look whose answer the disk took only later, and a lock that nobody lets go."""

from socialpub.accounts import profiles, tokens, upkeep
from socialpub.core.errors import Unavailable
from socialpub.db.states import State
from socialpub.providers.base import Published, Readback
from socialpub.providers.responses import NoAnswer
from tests.support.appliance import accept, message_of, state_of
from tests.support.drain import drain


def test_a_look_that_was_written_down_half_an_hour_later_is_not_fresh(rt, network, profile, clock, monkeypatch):
    made_at = clock.monotonic()

    def made_and_cut(job):
        network.publish(job.content.text)
        raise NoAnswer("cut")

    write = rt.db.write
    full = []

    def disk(fn, *args):
        if full:
            raise Unavailable("The disk is full.")
        return write(fn, *args)

    monkeypatch.setattr(rt.db, "write", disk)

    def look(job):
        age = clock.monotonic() - made_at
        if 600 <= age < 700:
            full.append(True)  # the answer of the look that would allow the second call is not taken
        return Readback((Published("1"),)) if age >= 700 else Readback()

    network.results["create_post"] = [made_and_cut]
    network.results["recover"] = [look] * 100
    post = accept(rt, profile)
    while not full:
        drain(rt)
        clock.forward(1)
    clock.forward(1800)
    full.clear()
    drain(rt, clock)
    assert (state_of(rt, post), len(network.effects)) == (State.PUBLISHED, 1), message_of(rt, post)


def test_tokens_are_erased_after_an_hour_whoever_holds_their_lock(rt, network, profile, clock):
    assert tokens.token_lock(rt, profile).try_acquire()  # a command that was suspended
    rt.write(profiles.disconnect, profile)
    for _ in range(20):
        clock.forward(600)
        upkeep.revoke_disconnected(rt)
    assert rt.reader.value("SELECT access_token FROM profile") is None
