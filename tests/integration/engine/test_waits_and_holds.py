"""Waits that a network named, holds of an app, and deliveries of equal content."""

import pytest

from socialpub.core.errors import Unavailable
from socialpub.db.states import State
from socialpub.db.tables import waits
from socialpub.ops import health
from socialpub.providers.base import Held, Kind, Published, Readback, Refused
from socialpub.providers.responses import AppRefused, NoAnswer, Throttled
from socialpub.publishing.posts import posts
from tests.support.appliance import accept, add_profile, attempts_of, message_of, state_of
from tests.support.drain import drain
from tests.support.scripted_network import ScriptedNetwork


def test_a_wait_longer_than_a_day_ends_one_post_and_is_asked_about_again_for_the_others_after_a_day(
    rt, network, profile, clock
):
    network.results["create_post"] = [Throttled("monthly cap", retry_after_seconds=30 * 24 * 3600)]
    first, other = accept(rt, profile), accept(rt, profile, body="other")
    drain(rt)
    assert (state_of(rt, first), state_of(rt, other)) == (State.FAILED, State.QUEUED)
    assert "monthly cap" in message_of(rt, first)
    assert network.asked == ["create_post"]
    clock.forward(86_399)
    drain(rt)
    assert network.asked == ["create_post"], "what a network names is never shortened, up to a day"
    clock.forward(2)
    drain(rt)
    assert state_of(rt, other) is State.PUBLISHED


# --- equal content, and calls that prove nothing ---------------------------------------------------------------------


def test_many_unknowns_of_equal_content_are_all_resolved(rt, network, profile, clock):
    network.results["create_post"] = [NoAnswer("cut")] * 12
    made = [accept(rt, profile) for _ in range(4)]
    drain(rt, clock, steps=20_000)
    assert all(state_of(rt, post).final for post in made), [state_of(rt, post) for post in made]


def test_a_check_that_cannot_run_now_fails_no_post(rt, network, profile, clock):
    def busy(content, options, account):
        network.check = lambda *_: []
        raise Unavailable("The checker is busy.")

    network.check = busy
    post = accept(rt, profile)
    drain(rt, clock)
    assert state_of(rt, post) is State.PUBLISHED, message_of(rt, post)


def test_a_second_call_that_is_refused_says_nothing_about_a_hold(rt, network, profile, clock):
    """A file that is gone is found out before any call: it does not show that the network takes the app again."""
    network.results["create_post"] = [Refused("A media file is missing.")]
    rt.db.write(lambda tx: waits.hold(tx, "x", waits.PUBLISHING, "no credits", None))
    post = accept(rt, profile)
    clock.forward(901)
    drain(rt)
    assert state_of(rt, post) is State.FAILED
    assert waits.find_hold(rt.db, "x")


def test_a_stop_in_the_last_read_back_reads_back_again(rt, network, profile, clock):
    network.results["create_post"] = [NoAnswer("cut"), Throttled("slow", retry_after_seconds=300)]
    post = accept(rt, profile)
    drain(rt, clock, within=700)

    def stopped(job):
        rt.write(lambda _, tx: posts.stop(rt, tx, post))
        return Readback()

    network.results["recover"] = [stopped]
    drain(rt, clock)
    assert (state_of(rt, post), network.asked.count("create_post")) == (State.FAILED, 2)


def test_a_hold_is_probed_although_each_probe_must_read_back_first(rt, network, profile, clock):
    from socialpub.providers.responses import AppRefused

    network.results["create_post"] = [NoAnswer("cut"), *[AppRefused("no credits")] * 5]
    post = accept(rt, profile)
    drain(rt, clock)
    assert state_of(rt, post) is State.PUBLISHED
    assert waits.list_holds(rt.db) == []


# --- holds of questions ----------------------------------------------------------------------------------------------


PROBE = waits.PROBE_SECONDS + 1


def scopes(rt):
    return [row.calls for row in waits.list_holds(rt.db)]


def test_a_read_back_that_is_refused_to_the_app_stops_no_other_post(rt, network, profile, clock):
    network.results["create_post"] = [NoAnswer("timed out")]
    network.results["recover"] = [AppRefused("The app's plan is used up.")] * 10_000
    unknown = accept(rt, profile)
    drain(rt)
    clock.forward(6)
    drain(rt)
    assert scopes(rt) == [waits.QUESTIONS]
    others = [accept(rt, add_profile(rt, account_id="other"), body="Other"), accept(rt, profile, body="Same queue")]
    drain(rt)
    assert [state_of(rt, post) for post in others] == [State.PUBLISHED] * 2
    assert (state_of(rt, unknown), attempts_of(rt, unknown)[-1]) == (State.QUEUED, ("read_back", "held"))
    drain(rt, clock)
    assert state_of(rt, unknown) is State.UNCONFIRMED, "the network cannot report it"


def test_questions_continue_after_one_answer(rt, network, clock):
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
    video = accept(rt, add_profile(rt, account_id="one"))
    drain(rt)
    assert (state_of(rt, video), scopes(rt)) == (State.QUEUED, [waits.QUESTIONS])
    network.plan = lambda content, options: texts
    text = accept(rt, add_profile(rt, account_id="two"))
    drain(rt)
    assert state_of(rt, text) is State.PUBLISHED
    clock.forward(PROBE)
    drain(rt)
    assert (state_of(rt, video), scopes(rt)) == (State.PUBLISHED, [])


def test_a_refused_commit_holds_what_publishes_and_lets_questions_through(rt, network, clock):
    network.results["create_post"] = [NoAnswer("timed out"), AppRefused("no credits")]
    unknown = accept(rt, add_profile(rt, account_id="one"), body="One")
    held = accept(rt, add_profile(rt, account_id="two"), body="Two")
    drain(rt)
    assert scopes(rt) == [waits.PUBLISHING]
    network.results["recover"] = [Readback((Published("71"),))]
    clock.forward(6)
    drain(rt)
    assert (state_of(rt, unknown), state_of(rt, held)) == (State.PUBLISHED, State.QUEUED)
    assert scopes(rt) == [waits.PUBLISHING], "an answered question says nothing about posting"


@pytest.mark.parametrize("after_seconds", [PROBE, 1])
def test_a_step_that_the_network_refuses_to_the_app_holds_only_that_step(rt, network, clock, after_seconds):
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
        rt.write(lambda _, tx: waits.probe_all(tx))  # the owner has fixed the configuration and restarted
    clock.forward(after_seconds)
    drain(rt)
    assert [state_of(rt, post) for post in films] == [State.PUBLISHED] * 3
    assert scopes(rt) == []


# --- holds of a step -------------------------------------------------------------------------------------------------


def film_and_photo(network):
    steps = ScriptedNetwork(
        ("init_video", Kind.PREPARE), ("send_last", Kind.COMMIT), ("init_photos", Kind.COMMIT)
    ).steps
    network.plan = lambda content, options: steps[2:] if content.text == "photo" else steps[:2]
    network.steps = steps
    network.results["init_video"] = [Held("upload_hosts does not list it", "upload_host", this_step=True)] * 1000


def test_a_held_step_does_not_delay_other_posts_of_the_profile(rt, network, profile, clock):
    film_and_photo(network)
    accept(rt, add_profile(rt, account_id="other"), body="video one")
    drain(rt)
    video = accept(rt, profile, body="video two")
    photo = accept(rt, profile, body="photo")
    drain(rt)
    clock.forward(300)
    drain(rt)
    assert (state_of(rt, video), state_of(rt, photo)) == (State.QUEUED, State.PUBLISHED)


def test_a_delivery_that_waits_for_a_held_step_is_not_overdue(rt, network, profile, clock):
    film_and_photo(network)
    accept(rt, add_profile(rt, account_id="other"), body="video one")
    drain(rt)
    accept(rt, profile, body="video two")
    drain(rt)
    clock.forward(300)
    drain(rt)
    assert health.find_overdue(rt.db, rt.now()).count == 0


# --- whose probe is refused ------------------------------------------------------------------------------------------


def test_a_refused_probe_gives_the_next_one_to_another_profile(rt, network, profile, clock):
    accounts = [profile, *(add_profile(rt, account_id=name) for name in ("second", "third"))]
    posts = [accept(rt, account, body=str(number)) for account in accounts for number in range(3)]
    run, probes = network.run, list[str]()

    def refuses_all_but_the_third(step, job):
        probes.append(job.account.id)
        return run(step, job) if job.account.id == "third" else Held("The app is not approved for this.")

    network.run = refuses_all_but_the_third
    drain(rt)
    for _ in range(2):
        clock.forward(waits.PROBE_SECONDS + 1)
        drain(rt)
    assert probes[:3] == ["acct", "second", "third"]
    assert state_of(rt, posts[6]) is State.PUBLISHED


def test_a_refused_probe_gives_the_next_one_to_another_post_of_the_only_profile(rt, network, profile, clock):
    posts = [accept(rt, profile, body=body) for body in ("refused", "accepted")]
    run = network.run

    def refuses_one(step, job):
        return Held("not with this link") if job.content.text == "refused" else run(step, job)

    network.run = refuses_one
    drain(rt)
    clock.forward(waits.PROBE_SECONDS + 1)
    drain(rt)
    assert [state_of(rt, post) for post in posts] == [State.QUEUED, State.PUBLISHED]
