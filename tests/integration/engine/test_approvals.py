"""A post of a key with approval is sent only after the owner approved this version of the post (contract 10.3)."""

import json
from datetime import timedelta

import pytest

from socialpub.accounts import profiles
from socialpub.accounts.api_keys import Caller
from socialpub.core.clock import stamp
from socialpub.core.errors import Conflict
from socialpub.db import appliance_state
from socialpub.db.states import State
from socialpub.db.tables import delivery_rows, profile_rows
from socialpub.ops import health
from socialpub.providers.base import Readback, Refused
from socialpub.publishing.delivery import resume
from socialpub.publishing.posts import details, posts, retries
from socialpub.publishing.posts.drafts import Draft
from tests.support.appliance import OWNER, accept, approve, attempts_of, connect_again, message_of, state_of, status_of
from tests.support.copies import become_restored
from tests.support.drain import DAY, drain
from tests.support.select import select_value

HOUR = 3600.0
AGENT = Caller("agent", "write", approval=True)


@pytest.fixture
def asked(rt, profile):
    """A post of the agent, in this number of hours or now."""

    def create(hours: float | None = None, body: str = "Draft", options=None) -> str:
        at = None if hours is None else rt.now() + timedelta(hours=hours)
        return rt.write(posts.create, Draft(body, at, (profile,), options=options), AGENT)

    return create


def edit(rt, post, caller, body="Changed"):
    rt.write(posts.edit, post, Draft.change(body=body), caller)


def last_attempt(rt, post):
    """The outcome, the message and the end of the wait, as the API shows them."""
    shown = json.loads(details.load_attempts(rt, rt.db, post))
    return tuple(shown[-1].get(name) for name in ("outcome", "message", "nextAt")) if shown else None


def waits(rt, post):
    return delivery_rows.unapproved_among(rt.db, [post]) == {post}


@pytest.mark.parametrize("hours", [None, 2])
def test_a_post_is_held_from_acceptance_on_and_starts_at_its_time_after_the_approval(rt, clock, network, asked, hours):
    post = asked(hours)
    until = stamp(rt.now() + timedelta(hours=24 + (hours or 0)))
    held = ("held", f"Waits for the owner's approval: {rt.settings.base_url}/posts/{post}", until)
    assert last_attempt(rt, post) == held
    clock.forward(HOUR)
    drain(rt)
    assert (network.asked, last_attempt(rt, post)) == ([], held)
    assert approve(rt, post)
    assert not approve(rt, post), "a second press changes nothing"
    drain(rt)
    assert state_of(rt, post) is (State.QUEUED if hours else State.PUBLISHED)
    drain(rt, clock)
    assert (network.effects, state_of(rt, post)) == (["Draft"], State.PUBLISHED)
    started_at = select_value(rt.db, "SELECT started_at FROM delivery")
    assert hours is None or started_at >= select_value(rt.db, "SELECT scheduled_at FROM post")


@pytest.mark.parametrize("hours", [None, 2])
@pytest.mark.parametrize("meanwhile", ["worker", "pause", "nothing"])
def test_a_post_that_is_not_approved_in_time_fails_and_says_so(rt, clock, network, asked, hours, meanwhile):
    post = asked(hours)
    if meanwhile == "pause":
        rt.write(resume.pause)
    clock.forward((24 + (hours or 0)) * HOUR - 1)
    if meanwhile == "worker":
        drain(rt)
    assert (state_of(rt, post), status_of(rt, post)) == (State.QUEUED, "scheduled" if hours else "pending")
    clock.forward(2)
    with pytest.raises(Conflict, match="did not approve the post within 24 hours"):
        approve(rt, post)
    assert resume.load_outlook(rt, rt.db).too_late == 1
    rt.write(resume.end_pause)
    drain(rt, clock)
    assert (state_of(rt, post), status_of(rt, post), network.asked) == (State.FAILED, "settled", [])
    assert message_of(rt, post).startswith("Not sent: the owner did not approve the post within 24 hours of its time.")


def test_a_post_that_is_approved_after_its_time_is_sent_at_once_and_is_late_from_then_on(
    rt, clock, network, asked, profile
):
    post = asked(1)
    clock.forward(24.9 * HOUR)
    drain(rt)
    assert list(health.worker_problems(rt.db, rt.now()))[1:] == [], "a post that waits for its owner is not overdue"
    rt.write(resume.pause)
    assert approve(rt, post)
    clock.forward(20 * HOUR)
    rt.write(resume.end_pause)
    drain(rt)
    assert (network.effects, state_of(rt, post)) == (["Draft"], State.PUBLISHED)


def test_a_change_by_the_agent_needs_approval_again_and_other_changes_keep_an_approval(rt, clock, network, asked):
    post = asked(2)
    edit(rt, post, OWNER, "By another key")
    assert waits(rt, post), "another key approves nothing"
    edit(rt, post, AGENT, "Again")
    assert len(attempts_of(rt, post)) == 1, "changes of a waiting post leave one attempt"
    approve(rt, post)
    edit(rt, post, OWNER, "By another key again")
    assert not waits(rt, post)
    edit(rt, post, AGENT, "Final")
    assert waits(rt, post)
    clock.forward(5 * HOUR)
    drain(rt)
    assert network.asked == []
    approve(rt, post)
    drain(rt)
    assert network.effects == ["Final"]


def test_a_change_of_an_ordinary_post_by_the_agent_needs_approval(rt, clock, network, profile):
    post = accept(rt, profile, at=rt.now() + timedelta(hours=1))
    now = Draft.change(scheduled_at=None)
    rt.write(posts.edit, post, now, AGENT)
    drain(rt, clock, within=HOUR)
    assert (network.asked, status_of(rt, post), waits(rt, post)) == ([], "pending", True)


def test_a_claim_before_the_change_makes_the_change_a_conflict(rt, clock, network, asked):
    post = asked(1)
    approve(rt, post)
    clock.forward(HOUR + 1)
    with pytest.raises(Conflict):
        edit(rt, post, AGENT)
    drain(rt)
    assert network.effects == ["Draft"]


def test_the_new_time_of_a_waiting_post_moves_its_deadline(rt, clock, asked):
    post = asked(1)
    rt.write(posts.edit, post, Draft.change(scheduled_at=rt.now() + timedelta(hours=50)), OWNER)
    until = stamp(rt.now() + timedelta(hours=74))
    assert last_attempt(rt, post)[2] == until
    clock.forward(73 * HOUR)
    drain(rt)
    assert waits(rt, post)


@pytest.mark.parametrize("by_agent", [True, False])
def test_a_retry_by_the_agent_of_any_post_needs_approval(rt, clock, network, profile, by_agent):
    network.results["create_post"] = [Refused("No."), Refused("No.")]
    post = accept(rt, profile)
    drain(rt)
    again = rt.write(retries.retry, post, AGENT if by_agent else OWNER)
    drain(rt)
    assert (waits(rt, again), network.asked.count("create_post")) == (by_agent, 1 if by_agent else 2)
    if by_agent:
        with pytest.raises(Conflict, match="already retries"):
            rt.write(retries.retry, post, AGENT)
        approve(rt, again)
        drain(rt)
        assert network.asked.count("create_post") == 2


def test_a_stopped_post_cannot_be_approved(rt, clock, network, asked):
    now, later = asked(), asked(1)
    for post in (now, later):
        rt.write(posts.stop, post)
        with pytest.raises(Conflict, match="nothing to approve"):
            approve(rt, post)
    drain(rt, clock)
    assert [state_of(rt, post) for post in (now, later)] == [State.FAILED, State.CANCELED]
    assert network.asked == []


def test_the_agent_can_cancel_its_scheduled_post(rt, asked):
    post = asked(1)
    rt.write(posts.cancel, post, AGENT)
    assert (status_of(rt, post), waits(rt, post)) == ("canceled", False)


@pytest.mark.parametrize("is_first", [True, False])
def test_an_account_that_is_connected_again_sends_nothing_without_approval(
    rt, clock, network, profile, asked, is_first
):
    rt.write(lambda _, tx: profile_rows.require_reauth(tx, profile, "X has ended the grant."))
    post = asked()
    drain(rt)
    for approves in (is_first, not is_first):
        if approves:
            approve(rt, post)
        else:
            connect_again(rt)
        drain(rt)
        assert approves is not is_first or network.effects == []
    assert network.effects == ["Draft"]


@pytest.mark.parametrize("hours", [None, 2])
def test_a_disconnected_profile_fails_its_waiting_posts_at_their_time(rt, clock, network, profile, asked, hours):
    post = asked(hours)
    rt.write(profiles.disconnect, profile)
    drain(rt)
    assert state_of(rt, post) is (State.QUEUED if hours else State.FAILED)
    drain(rt, clock, within=3 * HOUR)
    assert (state_of(rt, post), network.asked) == (State.FAILED, [])
    assert "The profile was disconnected." in message_of(rt, post)


@pytest.mark.parametrize("seconds", [-5 * HOUR, 5 * HOUR])
@pytest.mark.parametrize("hours", [None, 30])
def test_the_deadline_of_an_approval_follows_a_clock_that_is_set(rt, clock, network, asked, hours, seconds):
    post = asked(hours)
    clock.jump(seconds)
    rt.db.follow_clock()
    due_at = select_value(rt.db, "SELECT due_at FROM delivery")
    assert waits(rt, post)
    assert stamp(clock.now() + timedelta(hours=24)) == last_attempt(rt, post)[2] or hours
    approve(rt, post)
    assert select_value(rt.db, "SELECT run_at FROM delivery") == due_at or not hours
    drain(rt, clock)
    assert network.effects == ["Draft"]


# --- restored backups ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nothing_was_sent", [True, False])
@pytest.mark.parametrize("hours", [None, 3])
def test_a_restored_post_still_needs_approval_and_is_only_read_back(rt, clock, network, asked, hours, nothing_was_sent):
    post = asked(hours)
    become_restored(rt)
    clock.forward(HOUR)
    rt.write(resume.resume, nothing_was_sent=nothing_was_sent)
    drain(rt, clock, within=HOUR)
    clock.forward(3 * HOUR)
    drain(rt)
    assert network.effects == []
    if hours is None and not nothing_was_sent:
        assert (state_of(rt, post), waits(rt, post)) == (State.FAILED, False), "the account does not show it"
        return
    assert "upload" not in network.asked
    approve(rt, post)
    drain(rt, clock)
    assert network.effects == ["Draft"]
    assert ("recover" in network.asked) is not nothing_was_sent


def test_an_approval_that_is_in_the_backup_stays_and_a_restored_post_that_was_sent_is_found(rt, clock, network, asked):
    approved, open_one = asked(3, "Approved"), asked(3, "Open")
    approve(rt, approved)
    become_restored(rt)
    rt.write(resume.resume)
    network.results["recover"] = [Readback(), Readback((network.publish("Open"),))]
    drain(rt, clock, within=4 * HOUR)
    assert (state_of(rt, approved), waits(rt, open_one)) == (State.PUBLISHED, True)
    approve(rt, open_one)
    drain(rt)
    assert (state_of(rt, open_one), network.effects) == (State.PUBLISHED, ["Open", "Approved"])


def test_a_restored_post_that_is_never_approved_is_read_back_before_it_fails(rt, clock, network, asked):
    post = asked(1)
    become_restored(rt)
    rt.write(resume.resume)
    drain(rt, clock, within=2 * DAY)
    assert (state_of(rt, post), network.effects) == (State.FAILED, [])
    assert "did not approve" in message_of(rt, post)
    assert "recover" in network.asked
    other = asked(1)
    become_restored(rt)
    rt.write(resume.resume)
    rt.write(posts.edit, other, Draft.change(scheduled_at=None), OWNER)
    rt.write(posts.stop, other)
    drain(rt, clock, within=HOUR)
    assert (state_of(rt, other), network.effects) == (State.FAILED, [])
    assert appliance_state.paused_at(rt.db) is None


# --- threads ---------------------------------------------------------------------------------------------------------


def test_a_reply_of_the_agent_waits_for_the_approval_and_then_for_its_parent(rt, clock, network, asked):
    first = asked(body="1")
    second = asked(body="2", options={"x": {"replyToPostId": first}})
    assert "Waits for the owner's approval" in last_attempt(rt, second)[1]
    edits = asked(2, "3", {"x": {"replyToPostId": first}})
    edit(rt, edits, OWNER, "3 changed")
    assert waits(rt, edits), "a change of a reply by another key approves nothing"
    approve(rt, second)
    assert last_attempt(rt, second)[:2] == ("held", f"Waits for the post {first}, to which this post replies.")
    drain(rt, clock, within=HOUR)
    assert network.effects == []
    approve(rt, first)
    drain(rt, clock, within=HOUR)
    assert network.effects == ["1", "2"]
    assert waits(rt, edits)
