"""Holds of one scope and what they do to the rest."""

from socialpub.db.states import State
from socialpub.db.tables import holds
from socialpub.ops import health
from socialpub.providers.base import Held, Kind
from tests.support.appliance import accept, add_profile, state_of
from tests.support.drain import drain
from tests.support.scripted_network import ScriptedNetwork


def film_and_photo(network):
    steps = ScriptedNetwork(
        ("init_video", Kind.PREPARE), ("send_last", Kind.COMMIT), ("init_photos", Kind.COMMIT)
    ).steps
    network.plan = lambda content, options: steps[2:] if content.text == "photo" else steps[:2]
    network.steps = steps
    network.results["init_video"] = [Held("upload_hosts does not list it", "upload_host", this_step=True)] * 1000


def test_a_held_step_keeps_no_other_post_of_the_same_profile_waiting(rt, network, profile, clock):
    film_and_photo(network)
    accept(rt, add_profile(rt, account_id="other"), body="film one")
    drain(rt)
    film = accept(rt, profile, body="film two")
    photo = accept(rt, profile, body="photo")
    drain(rt)
    clock.forward(300)
    drain(rt)
    assert (state_of(rt, film), state_of(rt, photo)) == (State.QUEUED, State.PUBLISHED)


def test_what_a_held_step_keeps_is_not_overdue(rt, network, profile, clock):
    film_and_photo(network)
    accept(rt, add_profile(rt, account_id="other"), body="film one")
    drain(rt)
    accept(rt, profile, body="film two")
    drain(rt)
    clock.forward(300)
    drain(rt)
    assert health.overdue(rt.reader, rt.now()).count == 0


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
        clock.forward(holds.PROBE_SECONDS + 1)
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
    clock.forward(holds.PROBE_SECONDS + 1)
    drain(rt)
    assert [state_of(rt, post) for post in posts] == [State.QUEUED, State.PUBLISHED]
