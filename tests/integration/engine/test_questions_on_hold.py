"""A refused question holds questions, never posting; and what one step meets everywhere holds that step."""

import pytest

from socialpub.db.states import State
from socialpub.db.tables import holds
from socialpub.providers.base import Held, Kind, Published, Readback
from socialpub.providers.responses import AppRefused, NoAnswer
from tests.support.appliance import accept, add_profile, attempts_of, state_of
from tests.support.drain import drain
from tests.support.scripted_network import ScriptedNetwork

PROBE = holds.PROBE_SECONDS + 1


def scopes(rt):
    return [row.scope for row in holds.list_all(rt.reader)]


def test_a_look_that_is_refused_to_the_app_stops_no_other_profile_and_no_other_post(rt, network, profile, clock):
    network.results["create_post"] = [NoAnswer("timed out")]
    network.results["recover"] = [AppRefused("The app's plan is used up.")] * 10_000
    unknown = accept(rt, profile)
    drain(rt)
    clock.forward(6)
    drain(rt)
    assert scopes(rt) == [holds.QUESTIONS]
    others = [accept(rt, add_profile(rt, account_id="other"), body="Other"), accept(rt, profile, body="Same lane")]
    drain(rt)
    assert [state_of(rt, post) for post in others] == [State.PUBLISHED] * 2
    assert (state_of(rt, unknown), attempts_of(rt, unknown)[-1]) == (State.QUEUED, ("read_back", "held"))
    drain(rt, clock)
    assert state_of(rt, unknown) is State.UNCONFIRMED, "nobody could ever tell"


def test_questions_go_on_as_soon_as_one_is_answered(rt, network, clock):
    network.results["create_post"] = [NoAnswer("timed out"), NoAnswer("timed out")]
    network.results["recover"] = [AppRefused("capped")]
    posts = [accept(rt, add_profile(rt, account_id=name), body=name) for name in ("one", "two")]
    drain(rt)
    clock.forward(6)
    drain(rt)
    assert network.asked.count("recover") == 1, "one asks for all"
    network.results["recover"] = [Readback((Published("71"),)), Readback((Published("72"),))]
    clock.forward(PROBE)
    drain(rt)
    assert [state_of(rt, post) for post in posts] == [State.PUBLISHED] * 2
    assert scopes(rt) == []


def test_a_poll_that_is_refused_to_the_app_holds_no_post_that_needs_none(rt, network, clock):
    films = [("upload", Kind.PREPARE), ("await_processing", Kind.POLL), ("create_post", Kind.COMMIT)]
    network.steps = ScriptedNetwork(*films).steps
    texts = network.steps[2:]
    network.results["await_processing"] = [AppRefused("capped")]
    film = accept(rt, add_profile(rt, account_id="one"))
    drain(rt)
    assert (state_of(rt, film), scopes(rt)) == (State.QUEUED, [holds.QUESTIONS])
    network.plan = lambda content, options: texts
    text = accept(rt, add_profile(rt, account_id="two"))
    drain(rt)
    assert state_of(rt, text) is State.PUBLISHED
    clock.forward(PROBE)
    drain(rt)
    assert (state_of(rt, film), scopes(rt)) == (State.PUBLISHED, [])


def test_a_refused_commit_holds_what_publishes_and_lets_questions_through(rt, network, clock):
    network.results["create_post"] = [NoAnswer("timed out"), AppRefused("no credits")]
    unknown = accept(rt, add_profile(rt, account_id="one"), body="One")
    held = accept(rt, add_profile(rt, account_id="two"), body="Two")
    drain(rt)
    assert scopes(rt) == [holds.PUBLISHING]
    network.results["recover"] = [Readback((Published("71"),))]
    clock.forward(6)
    drain(rt)
    assert (state_of(rt, unknown), state_of(rt, held)) == (State.PUBLISHED, State.QUEUED)
    assert scopes(rt) == [holds.PUBLISHING], "an answered question says nothing about posting"


@pytest.mark.parametrize("after_seconds", [PROBE, 1])
def test_a_step_that_nobody_can_take_holds_that_step_only(rt, network, clock, after_seconds):
    steps = [("init_video", Kind.PREPARE), ("send_last", Kind.COMMIT), ("init_photos", Kind.COMMIT)]
    all_steps = network.steps = ScriptedNetwork(*steps).steps
    network.plan = lambda content, options: all_steps[2:] if content.text == "photo" else all_steps[:2]
    network.results["init_video"] = [Held("upload_hosts does not list it", "upload_host", this_step=True)]
    films = [accept(rt, add_profile(rt, account_id=name), body=name) for name in ("one", "two", "three")]
    drain(rt)
    assert network.asked == ["init_video"], "once, and not for each post"
    assert scopes(rt) == ["init_video"]
    photo = accept(rt, add_profile(rt, account_id="four"), body="photo")
    drain(rt)
    assert state_of(rt, photo) is State.PUBLISHED
    if after_seconds < PROBE:
        rt.write(lambda _, tx: holds.probe_all(tx))  # the owner has mended the configuration and started anew
    clock.forward(after_seconds)
    drain(rt)
    assert [state_of(rt, post) for post in films] == [State.PUBLISHED] * 3
    assert scopes(rt) == []
