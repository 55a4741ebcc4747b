"""Profile queues and holds: each profile has its turn, and one probe asks a network that refuses the app."""

import logging
import sqlite3
from datetime import timedelta

import pytest

from socialpub.accounts import upkeep
from socialpub.core.errors import Unavailable
from socialpub.db.models import ProfileRow
from socialpub.db.process_lock import ProcessLock
from socialpub.db.states import State
from socialpub.db.tables import waits
from socialpub.providers.base import Held, Kind, More, Wait
from socialpub.providers.responses import AppRefused
from socialpub.publishing import backfill, profile_queue
from socialpub.publishing.delivery import claim, engine, resume, settle
from socialpub.worker.reconciler import Reconciler
from tests.support.appliance import accept, add_profile, message_of, state_of
from tests.support.drain import drain
from tests.support.queue_threads import background_tasks
from tests.support.scripted_network import ScriptedNetwork
from tests.support.select import select_value

FILM = (("upload", Kind.PREPARE), ("create_post", Kind.COMMIT))
FILM_ONCE = [name for name, _ in FILM]


# --- holds -----------------------------------------------------------------------------------------------------------


def test_an_upload_that_passes_does_not_end_the_hold_on_the_posts(rt, network, clock):
    network.steps = ScriptedNetwork(*FILM).steps
    profiles = [add_profile(rt, account_id=str(number)) for number in range(4)]
    network.results["create_post"] = [AppRefused("out of credits")] * 3
    held = [accept(rt, profile) for profile in profiles]
    drain(rt)
    assert network.asked.count("create_post") == 1
    run = network.run

    held_at = []

    def side_by_side(step, job):
        if step == "create_post":
            held_at.append(select_value(rt.db, "SELECT count(*) FROM stored_wait WHERE reason = 'app'"))
        return run(step, job)

    network.run = side_by_side
    for probes in (2, 3):
        clock.forward(waits.PROBE_SECONDS + 1)
        drain(rt)
        assert network.asked.count("create_post") == probes, "one probe, however many uploads go well"
    assert held_at == [1, 1], "its upload went well, and still the other queues do not ask"
    drain(rt, clock)
    assert {state_of(rt, post) for post in held} == {State.PUBLISHED}


def test_posts_that_wait_locally_neither_end_a_hold_nor_use_its_probes(rt, network, clock):
    lost, sound = add_profile(rt, account_id="lost"), add_profile(rt, account_id="sound")
    network.results["create_post"] = [Held("out of credits"), Held("out of credits")]
    good = accept(rt, sound)
    drain(rt)
    dead = [accept(rt, lost, body=str(number)) for number in range(5)]
    long_ago = "2026-10-12T08:00:00.000Z"
    rt.db.write(lambda tx: tx.execute_sql("UPDATE delivery SET due_at = ? WHERE profile_id = ?", (long_ago, lost)))
    rt.db.write(lambda tx: tx.update(ProfileRow, lost, status="disconnected"))
    clock.forward(waits.PROBE_SECONDS + 1)
    engine.work(rt, lost)
    assert {state_of(rt, post) for post in dead} == {State.FAILED}
    assert select_value(rt.db, "SELECT count(*) FROM stored_wait WHERE reason = 'app'") == 1
    drain(rt)
    assert network.asked == ["create_post", "create_post"]
    drain(rt, clock)
    assert state_of(rt, good) is State.PUBLISHED


def test_a_video_upload_continues_in_slices_while_its_network_is_held(rt, network, clock):
    network.steps = ScriptedNetwork(*FILM).steps
    network.results["upload"] = [AppRefused("not approved"), *[More({"chunk": n}) for n in range(20)], Wait(30, "...")]
    post = accept(rt, add_profile(rt))
    began = clock.now()
    drain(rt, clock)
    assert state_of(rt, post) is State.PUBLISHED
    assert clock.now() - began < timedelta(minutes=20)


def test_resume_asks_a_held_network_at_once(rt, network, profile):
    network.results["create_post"] = [Held("out of credits")]
    post = accept(rt, profile)
    drain(rt)
    rt.write(resume.pause)
    rt.write(resume.end_pause)
    drain(rt)
    assert state_of(rt, post) is State.PUBLISHED


def test_a_hold_is_logged_when_it_begins_and_when_it_ends(rt, network, profile, clock, caplog):
    network.results["create_post"] = [Held("out of credits")] * 3
    accept(rt, profile)
    with caplog.at_level(logging.INFO, logger="socialpub"):
        drain(rt, clock)
    said = [record.getMessage() for record in caplog.records if "this app" in record.getMessage()]
    assert said == [
        "the network refuses this app; its deliveries are held",
        "the network accepts this app again; held deliveries are sent",
    ]
    assert not any("out of credits" in record.getMessage() for record in caplog.records)
    (begins,) = [record for record in caplog.records if "refuses this app" in record.getMessage()]
    assert (begins.levelname, begins.fields["provider"], begins.fields["reason"]) == ("WARNING", "x", "out of credits")


# --- turns -----------------------------------------------------------------------------------------------------------


def drain_once(rt):
    for _, profile_id in engine.list_due_queues(rt):
        engine.work(rt, profile_id)


def test_a_long_video_upload_releases_the_worker_between_slices(rt, network, profile, clock):
    network.steps = ScriptedNetwork(*FILM).steps
    network.results["upload"] = [More({"chunk": n}) for n in range(3)]
    accept(rt, profile)
    run = network.run

    def takes_a_while(step, job):
        clock.forward(9)
        return run(step, job)

    network.run = takes_a_while
    drain_once(rt)
    assert network.asked == ["upload"]
    drain(rt)
    assert network.asked == ["upload"] * 4 + ["create_post"]


def test_a_long_queue_lets_other_profiles_run_after_each_delivery(rt, network, profile):
    for number in range(3):
        accept(rt, profile, body=str(number))
    others = [True, False, False]
    assert engine.work(rt, profile, lambda: others.pop(0)), "more may be due"
    assert network.effects == ["0"]
    assert not engine.work(rt, profile, lambda: others.pop(0))
    assert network.effects == ["0", "1", "2"], "it goes on at once when none waits"


@pytest.mark.parametrize("why", ["paused", "the disk takes no result", "the disk takes no claim"])
def test_a_blocked_queue_does_not_ask_to_run_again(rt, profile, monkeypatch, why):
    """Otherwise profiles that wait for each other would be taken up without end."""
    accept(rt, profile, body="one")

    def full(*_):
        raise Unavailable("the disk is full")

    match why:
        case "paused":
            rt.write(resume.pause)
        case "the disk takes no result":
            monkeypatch.setattr(settle, "settle", full)
            engine.work(rt, profile, lambda: True)  # it was claimed, and called
        case _:
            monkeypatch.setattr(claim, "claim", full)
    try:
        assert not engine.work(rt, profile, lambda: True)
    except Unavailable:
        assert why == "the disk takes no claim", "the worker goes on to the next profile"


def test_long_steps_of_another_post_make_no_post_late(rt, network, profile, clock):
    run = network.run

    def takes_ten_hours(step, job):
        clock.forward(10 * 3600)
        return run(step, job)

    network.run = takes_ten_hours
    posts = [accept(rt, profile, body=str(number), at=clock.now() + timedelta(minutes=1)) for number in range(5)]
    drain(rt, clock)
    assert {(state_of(rt, post), message_of(rt, post)) for post in posts} == {(State.PUBLISHED, "None")}


# --- green lights ----------------------------------------------------------------------------------------------------


def test_a_delivery_that_runs_for_ever_is_overdue(rt, profile, clock):
    other = ProcessLock(rt.process.folder, "suspended")
    accept(rt, profile)
    rt.db.write(lambda tx: tx.execute_sql("UPDATE delivery SET state = 'running', owner = 'suspended'"))
    clock.forward(600)
    assert profile_queue.find_overdue(rt.db, rt.stamp()).count == 0, "a big file may take that long"
    clock.forward(3600)
    assert profile_queue.find_overdue(rt.db, rt.stamp()).count == 1
    other.close()


def test_the_reconciler_survives_a_database_that_cannot_be_read(rt, monkeypatch):
    def fails(*_):
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr("socialpub.db.queries.profile_queue.next_run_at", fails)
    with background_tasks(rt) as tasks:
        reconciler = Reconciler(rt, tasks)
        assert reconciler._pause(reconciler._next_at()) > 0


def test_a_network_that_hangs_at_a_revocation_delays_no_wake_up(rt, profile, monkeypatch):
    for task in (upkeep, "revoke_disconnected"), (upkeep, "renew_idle_tokens"), (backfill, "fill_in_missing"):
        monkeypatch.setattr(*task, lambda *_: pytest.fail("the reconciler's own thread waits for no network"))
    accept(rt, profile)
    with background_tasks(rt) as tasks:
        assert Reconciler(rt, tasks).once() == 1
    assert select_value(rt.db, "SELECT 1 FROM appliance WHERE name = 'heartbeat'") == 1
