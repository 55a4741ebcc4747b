"""A reply to one of our posts waits for that post, follows it, and ends with it (contract 10.7)."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from socialpub.accounts import profiles
from socialpub.accounts.api_keys import OWNER
from socialpub.core.clock import after, new_id
from socialpub.core.errors import InvalidRequest
from socialpub.db.models import DeliveryRow, ProfileRow
from socialpub.db.queries import profile_queue
from socialpub.db.states import State
from socialpub.db.tables import delivery_rows, waits
from socialpub.db.tables.waits import WaitReason
from socialpub.providers.base import Published, Readback, Refused, Unknown, Wait
from socialpub.providers.responses import MAX_WAIT_SECONDS
from socialpub.publishing import retention
from socialpub.publishing.delivery import claim, engine, resume
from socialpub.publishing.posts import posts, retries
from socialpub.publishing.posts.drafts import Draft
from socialpub.publishing.posts.replies import ASK_AGAIN_SECONDS, VISIBLE_SECONDS
from tests.support.appliance import (
    accept,
    add_profile,
    attempts_of,
    connect_again,
    end_deliveries,
    message_of,
    state_of,
    status_of,
    waits_of,
)
from tests.support.drain import DAY, drain
from tests.support.select import select_value

HIDDEN = Refused("The post is deleted or not visible.", content=True, parent_missing=True)


def reply_to(parent: str) -> dict[str, Any]:
    return {"x": {"replyToPostId": parent}}


@pytest.fixture
def thread(rt, profile):
    """Three posts that were accepted at once, each a reply to the one before."""

    def begin(length: int = 3, **first: Any) -> list[str]:
        accepted = [accept(rt, profile, body="1", **first)]
        for number in range(2, length + 1):
            accepted.append(accept(rt, profile, body=str(number), options=reply_to(accepted[-1])))
        return accepted

    return begin


def states(rt, accepted: Sequence[str]) -> list[State]:
    return [state_of(rt, post) for post in accepted]


def parents(network) -> list[tuple[str, str | None]]:
    """Return the text of each post that was sent, and the post that it answers."""
    return [(job.content.text, job.options.get("inReplyToPostId")) for job in network.jobs]


def move(rt, post: str, **columns: Any) -> None:
    rt.write(lambda _, tx: tx.update(DeliveryRow, delivery_rows.list_of_post(tx, post)[0].id, **columns))


def test_each_post_of_a_thread_answers_the_post_before_it(rt, clock, network, thread):
    accepted = thread()
    assert attempts_of(rt, accepted[1]) == [("start", "held")], "the reply says at once what it waits for"
    drain(rt)
    assert states(rt, accepted) == [State.PUBLISHED] * 3
    assert parents(network) == [("1", None), ("2", "1"), ("3", "2")]


def test_replies_wait_as_long_as_their_post_does_and_nothing_is_overdue(rt, clock, network, thread):
    slow = clock.now() + timedelta(days=3)
    accepted = thread(at=slow)
    drain(rt, clock, within=2 * DAY)
    assert states(rt, accepted) == [State.QUEUED] * 3
    assert profile_queue.find_overdue(rt.db, rt.stamp(), rt.stamp()) is None
    assert attempts_of(rt, accepted[1]) == [("start", "held")], "the daily claim adds nothing"
    drain(rt, clock)
    assert states(rt, accepted) == [State.PUBLISHED] * 3, message_of(rt, accepted[1])


@pytest.mark.parametrize(("seconds", "state"), [(-60, State.PUBLISHED), (60, State.FAILED)])
def test_the_lateness_of_a_reply_counts_from_the_publication_of_its_post(rt, clock, network, thread, seconds, state):
    accepted = thread(2, at=clock.now() + timedelta(hours=40))
    clock.forward(40 * 3600)
    network.results["create_post"] = [lambda job: (rt.write(resume.pause), network.publish(job.content.text))[1]]
    drain(rt)
    assert states(rt, accepted) == [State.PUBLISHED, State.QUEUED]
    clock.forward(rt.settings.publishing.max_lateness.total_seconds() + seconds)
    rt.write(resume.resume)
    drain(rt)
    assert state_of(rt, accepted[1]) is state
    assert state is State.PUBLISHED or "could not start within 24 hours" in message_of(rt, accepted[1])


def test_a_reply_is_sent_at_its_own_time_if_that_is_later(rt, clock, network, profile):
    first = accept(rt, profile, body="1")
    its_time = clock.now() + timedelta(hours=1)
    comment = accept(rt, profile, body="2", at=its_time, options=reply_to(first))
    drain(rt)
    assert states(rt, [first, comment]) == [State.PUBLISHED, State.QUEUED]
    assert (status_of(rt, comment), waits_of(rt, comment)) == ("scheduled", None)
    drain(rt, clock)
    assert parents(network) == [("1", None), ("2", "1")]
    assert clock.now() >= its_time


@pytest.mark.parametrize("end", ["failed", "canceled", "unknown", "stopped"])
def test_a_reply_fails_with_its_post_and_names_that_post(rt, clock, network, thread, end):
    accepted = thread(at=clock.now() + timedelta(hours=1) if end == "canceled" else None)
    match end:
        case "failed":
            network.results["create_post"] = [Refused("No.")]
        case "unknown":
            network.results["create_post"] = [Unknown("cut"), Unknown("cut again")]
        case "canceled":
            rt.write(posts.cancel, accepted[0], OWNER)
        case _:
            rt.write(posts.stop, accepted[0])
    drain(rt, clock)
    assert states(rt, accepted[1:]) == [State.FAILED] * 2
    for parent, reply in pairwise(accepted):
        assert parent in message_of(rt, reply)
        assert status_of(rt, reply) == "settled"
    assert message_of(rt, accepted[1]).startswith("Not sent: ")
    assert network.effects == []


def test_retrying_each_post_in_turn_continues_where_the_thread_broke_off(rt, clock, network, thread):
    network.results["create_post"] = [lambda job: network.publish(job.content.text), Refused("No.")]
    accepted = thread(4)
    drain(rt)
    assert states(rt, accepted) == [State.PUBLISHED, *[State.FAILED] * 3]
    again = [rt.write(retries.retry, post, OWNER) for post in accepted[1:]]
    drain(rt)
    assert states(rt, again) == [State.PUBLISHED] * 3
    assert parents(network)[2:] == [("2", "1"), ("3", "2"), ("4", "3")]


def test_a_retry_whose_post_has_failed_fails_at_once_and_names_it(rt, clock, network, thread):
    network.results["create_post"] = [Refused("No.")]
    accepted = thread(2)
    drain(rt)
    again = rt.write(retries.retry, accepted[1], OWNER)
    drain(rt)
    assert state_of(rt, again) is State.FAILED
    assert accepted[0] in message_of(rt, again)


def test_the_published_retry_of_a_post_counts_and_not_the_failed_one(rt, clock, network, thread):
    network.results["create_post"] = [Refused("No."), Refused("No again.")]
    first, reply = thread(2)
    drain(rt)
    rt.write(retries.retry, first, OWNER)
    drain(rt)
    published = rt.write(retries.retry, first, OWNER)
    late = rt.write(retries.retry, reply, OWNER)
    drain(rt)
    assert states(rt, [published, late]) == [State.PUBLISHED] * 2
    assert parents(network)[-1] == ("2", "1")


def test_the_published_try_counts_even_if_a_newer_try_failed(rt, clock, network, profile, thread):
    (first,) = thread(1)
    drain(rt)
    newer = accept(rt, profile, body="1")
    move(rt, newer, retry_of=delivery_rows.list_of_post(rt.db, first)[0].id)
    end_deliveries(rt, newer, State.FAILED)
    reply = accept(rt, profile, body="2", options=reply_to(newer))
    drain(rt)
    assert parents(network)[-1] == ("2", "1")
    assert state_of(rt, reply) is State.PUBLISHED


def test_a_retry_made_before_the_reply_has_ended_is_waited_for(rt, clock, network, thread):
    first, reply = thread(2)
    network.results["create_post"] = [Refused("No.")]
    engine.work(rt, delivery_rows.list_of_post(rt.db, first)[0].profile_id, lambda: True)
    assert states(rt, [first, reply]) == [State.FAILED, State.QUEUED]
    again = rt.write(retries.retry, first, OWNER)
    move(rt, again, run_at="3000")
    drain(rt)
    assert state_of(rt, reply) is State.QUEUED
    move(rt, again, run_at=rt.stamp())
    drain(rt)
    assert states(rt, [again, reply]) == [State.PUBLISHED] * 2


def test_every_reply_of_a_long_thread_ends_in_a_transaction_of_its_own(rt, clock, network, profile, thread):
    accepted = thread(60, at=clock.now() + timedelta(hours=1))
    rt.write(posts.cancel, accepted[0], OWNER)
    assert states(rt, accepted[1:3]) == [State.QUEUED] * 2, "a cancel settles no other post"
    drain(rt)
    assert set(states(rt, accepted[1:])) == {State.FAILED}


def test_a_reply_waits_for_a_post_of_a_disconnected_profile_no_longer(rt, clock, network, profile, thread):
    accepted = thread(3, at=clock.now() + timedelta(hours=1))
    rt.write(profiles.disconnect, profile)
    drain(rt, clock)
    assert states(rt, accepted) == [State.FAILED] * 3
    assert "disconnected" in message_of(rt, accepted[0])


def test_after_its_post_a_reply_waits_for_the_owner_to_connect_the_account(rt, clock, network, profile, thread):
    first, reply = thread(2)
    network.results["create_post"] = [
        lambda job: (
            rt.write(lambda _, tx: tx.update(ProfileRow, profile, status="reauthRequired")),
            network.publish(job.content.text),
        )[1]
    ]
    drain(rt)
    assert states(rt, [first, reply]) == [State.PUBLISHED, State.QUEUED]
    assert waits_of(rt, reply) is WaitReason.RECONNECT
    connect_again(rt)
    drain(rt)
    assert parents(network) == [("1", None), ("2", "1")]


def test_a_waiting_reply_can_be_stopped_and_its_own_replies_follow(rt, clock, network, thread):
    accepted = thread(3, at=clock.now() + timedelta(hours=1))
    rt.write(posts.stop, accepted[1])
    drain(rt, clock)
    assert states(rt, accepted) == [State.PUBLISHED, State.FAILED, State.FAILED]
    assert message_of(rt, accepted[1]) == "Stopped by the owner."
    assert network.effects == ["1"]


def test_an_unknown_reply_is_read_back_as_an_answer_to_the_real_post(rt, clock, network, thread):
    asked: list[Any] = []

    def found(job: Any) -> Readback:
        asked.append(job.options["inReplyToPostId"])
        return Readback((Published("77", None),))

    network.results["create_post"] = [lambda job: network.publish(job.content.text), Unknown("cut")]
    network.results["recover"] = [found]
    accepted = thread()
    drain(rt, clock)
    assert asked == ["1"]
    assert parents(network)[-1] == ("3", "77")
    assert states(rt, accepted) == [State.PUBLISHED] * 3


@pytest.mark.parametrize(("refusals", "state"), [(2, State.PUBLISHED), (20, State.FAILED)])
def test_a_network_that_does_not_show_a_young_post_yet_is_asked_again_for_two_minutes(
    rt, clock, network, thread, refusals, state
):
    network.results["create_post"] = [lambda job: network.publish(job.content.text), *[HIDDEN] * refusals]
    accepted = thread(2)
    drain(rt, clock, within=3600)
    assert states(rt, accepted) == [State.PUBLISHED, state]
    asked = len(network.jobs) - 1
    assert asked == min(refusals, VISIBLE_SECONDS // ASK_AGAIN_SECONDS + 1) + (state is State.PUBLISHED)


def test_a_reply_to_an_older_post_that_the_network_does_not_show_fails_at_once(rt, clock, network, profile, thread):
    (first,) = thread(1)
    drain(rt)
    clock.forward(VISIBLE_SECONDS + 1)
    network.results["create_post"] = [HIDDEN]
    reply = accept(rt, profile, body="2", options=reply_to(first))
    drain(rt)
    assert message_of(rt, reply) == HIDDEN.message


# --- changes ---------------------------------------------------------------------------------------------------------


def change(parent: str | None) -> Draft:
    return Draft.change(options={} if parent is None else reply_to(parent))


def test_an_edit_makes_a_scheduled_post_a_reply_to_another_post_or_to_none(rt, clock, network, profile):
    later = clock.now() + timedelta(hours=2)
    one, two = (accept(rt, profile, body=text, at=clock.now() + timedelta(hours=1)) for text in "12")
    reply = accept(rt, profile, body="3", at=later, options=reply_to(one))
    rt.write(posts.edit, reply, change(two), OWNER)
    rt.write(posts.cancel, one, OWNER)
    drain(rt)
    assert state_of(rt, reply) is State.QUEUED, "the reply no longer belongs to the canceled post"
    free = accept(rt, profile, body="4", at=later, options=reply_to(two))
    rt.write(posts.edit, free, change(None), OWNER)
    assert waits_of(rt, free) is None
    drain(rt, clock)
    assert parents(network) == [("2", None), ("3", "1"), ("4", None)]


def test_a_thread_never_answers_itself(rt, clock, network, profile, thread):
    accepted = thread(3, at=clock.now() + timedelta(hours=1))
    for target in accepted:
        with pytest.raises(InvalidRequest) as refused:
            rt.write(posts.edit, accepted[0], change(target), OWNER)
        assert refused.value.errors[0].path == ("providerOptions", "x", "replyToPostId")
        assert "wait for itself" in refused.value.errors[0].message


def test_a_changed_retry_never_answers_a_reply_to_the_post_that_it_replaces(rt, clock, network, profile, thread):
    network.results["create_post"] = [Refused("No.")]
    first, reply = thread(2)
    drain(rt)
    draft = Draft("1, changed", None, (profile,), options=reply_to(reply))
    with pytest.raises(InvalidRequest, match="wait for itself"):
        rt.write(retries.retry_changed, first, draft, OWNER)


def test_the_removal_of_old_posts_keeps_a_post_that_a_reply_waits_for(rt, clock, network, profile, thread):
    (first,) = thread(1)
    drain(rt)
    reply = accept(rt, profile, body="2", at=clock.now() + timedelta(days=400), options=reply_to(first))
    clock.forward(380 * DAY)
    removed = lambda post: rt.write(lambda _, tx: retention.remove_post(tx, post, rt.stamp()))  # noqa: E731
    assert not removed(first)
    drain(rt, clock, within=30 * DAY)
    assert parents(network) == [("1", None), ("2", "1")]
    clock.forward(1)
    assert removed(reply)
    assert removed(first)


def test_a_reply_whose_post_has_no_rows_is_never_sent_alone(rt, clock, network, thread):
    _, reply = thread(2, at=clock.now() + timedelta(hours=1))
    move(rt, reply, reply_to=new_id(rt.now()), run_at=rt.stamp())
    drain(rt)
    assert "was removed" in message_of(rt, reply)
    assert network.effects == []


def test_the_daily_claim_starts_a_reply_whose_wake_up_was_lost(rt, clock, network, thread):
    accepted = thread(2)
    drain(rt)
    with_lost_wake_up = accept(rt, select_value(rt.db, "SELECT profile_id FROM delivery LIMIT 1"), body="3",
                               options=reply_to(accepted[1]), at=None)  # fmt: skip
    move(rt, with_lost_wake_up, run_at=rt.stamp())
    clock.forward(MAX_WAIT_SECONDS / 2)
    drain(rt, clock)
    assert parents(network)[-1] == ("3", "2")


def test_two_profiles_of_a_network_each_follow_their_own_delivery(rt, clock, network, profile):
    other = add_profile(rt, account_id="other")
    first = accept(rt, profile, other, body="1")
    reply = accept(rt, profile, other, body="2", options=reply_to(first))
    network.results["create_post"] = [Refused("No."), lambda job: network.publish(job.content.text)]
    drain(rt)
    outcomes = {state_of(rt, reply, 0), state_of(rt, reply, 1)}
    assert outcomes == {State.FAILED, State.PUBLISHED}
    assert [state_of(rt, first, at) for at in (0, 1)] == [state_of(rt, reply, at) for at in (0, 1)]


@pytest.mark.parametrize("days", [-7, 7])
@pytest.mark.parametrize("moment", ["before its claim", "in a gap", "after its first call"])
def test_a_clock_that_is_set_after_the_publication_neither_delays_nor_ends_a_reply(
    rt, clock, network, profile, days, moment
):
    first = accept(rt, profile, body="1", at=clock.now() + timedelta(days=9))
    # The owner's time is past on every clock. A claim counts the lateness from the publication.
    its_time = None if moment == "before its claim" else clock.now() + timedelta(hours=1)
    reply = accept(rt, profile, body="2", at=its_time, options=reply_to(first))
    clock.forward(9 * DAY)

    def publish(job: Any) -> Published:
        if moment == "in a gap":
            rt.write(
                lambda _, tx: waits.begin(tx, WaitReason.NETWORK, profile, "commit", after(tx.stamp, 60.0), "a gap")
            )
        elif moment == "after its first call":
            network.results["create_post"] = [Wait(60.0, "X is busy")]
        return network.publish(job.content.text)

    network.results["create_post"] = [publish]
    if moment == "before its claim":
        engine.work(rt, delivery_rows.list_of_post(rt.db, first)[0].profile_id, lambda: True)
    else:
        drain(rt)
        engine.work(rt, delivery_rows.list_of_post(rt.db, reply)[0].profile_id)
    if moment == "in a gap":
        delivery_id = delivery_rows.list_of_post(rt.db, reply)[0].id
        rt.write(claim.claim, delivery_id, None, profiles.get(rt.db, profile))
    assert states(rt, [first, reply]) == [State.PUBLISHED, State.QUEUED]
    clock.jump(days * DAY)
    drain(rt, clock, within=120)
    assert state_of(rt, reply) is State.PUBLISHED, message_of(rt, reply)


def test_a_clock_that_is_set_does_not_delay_the_end_of_a_reply_whose_post_failed(rt, clock, network, thread, profile):
    (first,) = thread(1)
    reply = accept(rt, profile, body="2", at=clock.now() + timedelta(days=20), options=reply_to(first))
    network.results["create_post"] = [Refused("No.")]
    engine.work(rt, delivery_rows.list_of_post(rt.db, first)[0].profile_id, lambda: True)
    clock.jump(3600)
    drain(rt)
    assert states(rt, [first, reply]) == [State.FAILED] * 2
