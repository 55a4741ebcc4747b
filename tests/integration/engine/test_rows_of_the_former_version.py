"""Rows as the former version left them: absent by its looks, the mark cleared, waiting for the second call."""

import json
from importlib import import_module

from socialpub.db.states import State
from socialpub.providers.base import Published, Readback
from socialpub.providers.responses import NoAnswer
from socialpub.publishing.posts import posts
from tests.support.appliance import accept, message_of, state_of
from tests.support.drain import drain

HOLD_SCOPES = import_module("socialpub.db.migrations.0004_hold_scopes")
PHASES = import_module("socialpub.db.migrations.0025_phases")
FORMER = {
    "tries": 0,
    "commits": 1,
    "reading_back": False,
    "looks": 0,
    "unknown": "timed out",
    "restored": False,
    "stopped": False,
    "again": {},
}


def waiting_for_its_second_call(rt, profile, clock, body="Hello"):
    post = accept(rt, profile, body=body)
    at = rt.stamp()
    clock.forward(125)
    rt.db.write(
        lambda tx: tx.execute(
            "UPDATE delivery SET plan = ?, step = 0, started_at = ?, committed_at = NULL, run_at = ?, progress = ? "
            "WHERE post_id = ?",
            (json.dumps([["create_post", "commit"]]), at, tx.stamp, json.dumps({**FORMER, "since": at}), post),
        )
    )
    upgrade(rt)
    return post


def upgrade(rt):
    """What the migrations do to such rows."""
    for statement in (HOLD_SCOPES.AN_UNKNOWN_OUTCOME, HOLD_SCOPES.WAITS_OF_A_DAY.replace("'now'", f"'{rt.stamp()}'")):
        rt.db.write(lambda tx, sql=statement: tx.execute(sql))
    for row in rt.reader.all(PHASES.OPEN_ROWS):
        stored, committed_at = PHASES.convert_row(*row[1:])
        rt.db.write(lambda tx, values=(stored, committed_at, row[0]): tx.execute(PHASES.STORE, values))


def test_a_stop_does_not_fail_a_delivery_whose_first_call_may_have_arrived(rt, network, profile, clock):
    post = waiting_for_its_second_call(rt, profile, clock)
    network.results["recover"] = [Readback((Published("77"),))]
    rt.write(lambda _, tx: posts.stop(rt, tx, post))
    drain(rt, clock)
    assert state_of(rt, post) is State.PUBLISHED, message_of(rt, post)


def test_a_stop_during_its_second_call_does_not_say_that_nothing_was_sent(rt, network, profile, clock):
    post = waiting_for_its_second_call(rt, profile, clock)

    def arrives(job):
        rt.write(lambda _, tx: posts.stop(rt, tx, post))
        return network.publish("Hello")

    network.results["create_post"] = [arrives]
    drain(rt, clock)
    assert state_of(rt, post) is not State.FAILED, "it is public"


def test_an_equal_post_waits_until_it_is_clear(rt, network, profile, clock):
    waiting_for_its_second_call(rt, profile, clock)
    rt.db.write(lambda tx: tx.execute("UPDATE delivery SET run_at = ?", ("2026-10-12T10:00:00.000Z",)))
    accept(rt, profile)
    drain(rt)
    assert network.asked == [], "the first of the two equal ones may be public"


def test_a_deadline_during_the_confirmation_is_no_plain_failure(rt, network, profile, clock):
    post = waiting_for_its_second_call(rt, profile, clock)
    network.results["recover"] = [NoAnswer("down")] * 5000
    drain(rt, clock)
    assert state_of(rt, post) is State.UNCONFIRMED, message_of(rt, post)


def test_a_stored_wait_of_decades_does_no_harm(rt, network, profile, clock):
    rt.db.write(
        lambda tx: tx.insert(
            "not_before", profile_id=profile, endpoint="create_post", until="2085-01-01T00:00:00.000Z", reason="429"
        )
    )
    upgrade(rt)
    post = accept(rt, profile)
    drain(rt, clock)
    assert state_of(rt, post) is State.PUBLISHED, message_of(rt, post)


def test_two_minutes_of_read_backs_by_the_former_version_allow_no_second_call(rt, network, profile, clock):
    made_at = clock.monotonic()
    post = waiting_for_its_second_call(rt, profile, clock)
    network.effects.append("Hello")

    def late_list(job):
        return Readback((Published("77"),)) if clock.monotonic() - made_at >= 300 else Readback()

    network.results["recover"] = [late_list] * 50
    drain(rt, clock)
    assert (state_of(rt, post), len(network.effects)) == (State.PUBLISHED, 1)
