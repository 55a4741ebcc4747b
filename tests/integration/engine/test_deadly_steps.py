"""A step that kills its worker is noticed: after three deaths its delivery ends, and everything else goes on."""

import pytest

from socialpub.db.states import State
from socialpub.providers.base import Kind, More
from tests.integration.engine.four_steps import FourSteps, Place
from tests.integration.engine.lives import Lives, die
from tests.support.appliance import accept, add_profile, attempts_of, message_of, open_appliance, state_of
from tests.support.drain import drain
from tests.support.sandbox_http import ProcessKilled
from tests.support.scripted_network import ScriptedNetwork

POISON = "poison"


@pytest.fixture
def network(clock):
    return FourSteps(clock)


@pytest.fixture
def lives(tmp_path, network, clock):
    return Lives(tmp_path, network, clock)


def deadly(network, step):
    """This step of the post with the text `poison` kills its worker."""
    run = network.run

    def kills(name, job):
        if name == step and job.content.text == POISON:
            network.asked.append(name)
            raise ProcessKilled
        return run(name, job)

    network.run = kills


@pytest.mark.parametrize("step", [Place.PREPARE, Place.POLL_BEFORE])
def test_a_step_before_the_commit_that_kills_three_workers_fails_its_delivery(lives, network, step):
    rt = lives.begin()
    profile = add_profile(rt)
    poison, after = accept(rt, profile, body=POISON), accept(rt, profile, body="Behind it")
    other = accept(rt, add_profile(rt, account_id="other"), body="Elsewhere")
    die(rt)
    deadly(network, step)
    rt = lives.go_on()
    assert lives.deaths == 3
    assert state_of(rt, poison) is State.FAILED
    assert f"the worker died 3 times in a row during the step {step}" in message_of(rt, poison)
    assert [state_of(rt, post) for post in (after, other)] == [State.PUBLISHED] * 2
    assert POISON not in network.effects
    rt.close()


def test_a_commit_that_kills_its_worker_is_read_back_and_never_sent_a_third_time(lives, network):
    rt = lives.begin()
    poison = accept(rt, add_profile(rt), body=POISON)
    die(rt)
    deadly(network, Place.COMMIT)
    rt = lives.go_on()
    assert (lives.deaths, network.asked.count(Place.COMMIT)) == (2, 2)
    assert state_of(rt, poison) is State.UNCONFIRMED
    rt.close()


def test_a_step_after_the_commit_that_kills_three_workers_leaves_the_outcome_unknown(lives, network):
    rt = lives.begin()
    poison = accept(rt, add_profile(rt), body=POISON)
    die(rt)
    deadly(network, Place.POLL_AFTER)
    rt = lives.go_on()
    assert (lives.deaths, state_of(rt, poison)) == (3, State.UNCONFIRMED)
    assert "died 3 times in a row" in message_of(rt, poison)
    assert network.effects == [POISON]
    rt.close()


def test_deliveries_that_ran_beside_a_deadly_one_do_not_end(lives, network):
    """All queues run when the worker dies. Then only one runs at a time, so the next death shows the cause."""
    rt = lives.begin()
    profiles = [add_profile(rt, account_id=f"account {number}") for number in range(6)]
    posts = [accept(rt, one, body=f"Innocent {number}") for number, one in enumerate(profiles[1:])]
    poison = accept(rt, profiles[0], body=POISON)
    rows = "UPDATE delivery SET state = 'running', owner = ?, plan = ?, started_at = ?"
    plan = '[["upload","prepare"],["await_processing","poll"],["create_post","commit"],["await_outcome","poll"]]'
    rt.db.write(lambda tx: tx.execute_sql(rows, (rt.process.name, plan, tx.stamp)))
    die(rt)
    deadly(network, Place.PREPARE)
    rt = lives.go_on()
    assert (lives.deaths, state_of(rt, poison)) == (2, State.FAILED), "the one above was the first"
    assert [state_of(rt, post) for post in posts] == [State.PUBLISHED] * 5
    rt.close()


def test_a_worker_that_was_killed_during_its_stop_does_not_count_as_a_death(lives, network):
    rt = lives.begin()
    post = accept(rt, add_profile(rt))
    die(rt)

    def killed(job):
        raise ProcessKilled

    network.results[Place.PREPARE] = [killed] * 8
    rt = lives.go_on(asked_to_stop=True)
    assert (lives.deaths, state_of(rt, post)) == (8, State.PUBLISHED)
    rt.close()


def test_deaths_count_only_in_a_row(lives, network):
    rt = lives.begin()
    post = accept(rt, add_profile(rt))
    die(rt)

    def killed(job):
        raise ProcessKilled

    network.results[Place.PREPARE] = [killed, killed, More({}), killed, killed, More({}), killed, killed]
    rt = lives.go_on()
    assert (lives.deaths, state_of(rt, post)) == (6, State.PUBLISHED)
    assert attempts_of(rt, post)[-1][1] == "published"
    rt.close()


def test_a_death_that_another_process_saw_first_is_counted(lives, network):
    rt = lives.begin()
    poison = accept(rt, add_profile(rt), body=POISON)
    rt.close()
    deadly(network, Place.PREPARE)
    rt = lives.go_on(seen_by_another=True)
    assert (lives.deaths, state_of(rt, poison)) == (3, State.FAILED)
    rt.close()


@pytest.mark.parametrize("named", ["../../outside", "/{folder}/outside", "../outside", "", "."])
def test_a_row_that_names_no_process_touches_no_file(tmp_path, clock, named):
    """A row cannot name a file of the machine."""
    network = ScriptedNetwork(("create_post", Kind.COMMIT))
    rt = open_appliance(tmp_path, clock, providers={"x": network})
    owner = named.replace("{folder}", str(tmp_path))
    places = [rt.process.folder / f"{owner}.lock", tmp_path / "outside.lock"]
    for place in places:
        place.write_bytes(b"somebody's own")
    post = accept(rt, add_profile(rt))
    rt.db.write(lambda tx: tx.execute_sql("UPDATE delivery SET state = 'running', owner = ?", (owner,)))
    drain(rt)
    assert state_of(rt, post) is State.PUBLISHED
    assert [place.read_bytes() for place in places] == [b"somebody's own"] * 2
    assert not list(tmp_path.rglob("*.died"))
    rt.close()
