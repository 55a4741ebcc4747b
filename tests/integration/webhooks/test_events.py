"""The events of a webhook: their content, `last`, and which of them are sent (contract 10.6.2, 10.6.3)."""

import json
import re
from datetime import timedelta

import pytest

from socialpub.core import manual
from socialpub.core.errors import Conflict
from socialpub.db import appliance_state
from socialpub.db.queries import api_json
from socialpub.ops.webhooks import calls, receivers
from socialpub.ops.webhooks.sender import WebhookSender
from socialpub.providers.base import Published, Refused
from socialpub.publishing.delivery import resume
from socialpub.publishing.posts import posts
from tests.support.appliance import OWNER, accept, add_profile
from tests.support.drain import drain
from tests.support.webhook_receiver import WebhookReceiver, add_webhook, send_due


def last_of(receiver: WebhookReceiver) -> list[bool]:
    return [event["data"]["last"] for _, event in receiver.taken]


def test_an_event_contains_the_log_entry_of_the_api_with_the_profile_and_last(rt, receiver, sender, profile):
    accept(rt, profile, body="Grüße\n“quoted”")
    drain(rt)
    send_due(sender)
    [(message_id, event)] = receiver.taken
    entry = json.loads(api_json.log_entries(rt.db, OWNER, 1, 0))[0]
    assert event == {
        "type": "delivery.published",
        "timestamp": entry["occurredAt"],
        "data": {**entry, "profileId": profile, "last": True},
    }
    assert message_id == entry["id"]
    request = receiver.requests[0]
    assert (request.method, request.headers["content-type"]) == ("POST", "application/json")
    assert request.url.raw_path == b"/hook?token=hidden-in-the-query"


def test_the_example_of_the_manual_has_the_fields_of_an_event(rt, receiver, sender, profile, network):
    network.results["create_post"] = [Published("1", "https://x.com/ada/status/1")]
    accept(rt, profile)
    drain(rt)
    send_due(sender)
    [(_, event)] = receiver.taken
    [example] = [
        json.loads(block)
        for block in re.findall("```json\n(.*?)```", manual.read_topic("publishing"), re.DOTALL)
        if "delivery.published" in block
    ]
    assert [*example, *example["data"]] == [*event, *event["data"]]


def test_only_the_entry_that_ends_the_post_is_its_last(rt, receiver, sender, network):
    profiles = [add_profile(rt, account_id=f"account-{number}") for number in range(3)]
    network.results["create_post"] = [Refused("No.")]
    accept(rt, *profiles)
    drain(rt)
    send_due(sender)
    assert sorted(event["type"] for _, event in receiver.taken) == ["delivery.failed", *["delivery.published"] * 2]
    assert last_of(receiver) == [False, False, True]


@pytest.mark.parametrize("end", ["cancel", "stop"])
def test_deliveries_that_are_canceled_at_once_have_one_last_entry(rt, clock, receiver, sender, profile, end):
    other = add_profile(rt, account_id="other")
    post = accept(rt, profile, other, at=clock.now() + timedelta(hours=1))
    if end == "cancel":
        rt.write(posts.cancel, post, OWNER)
    else:
        rt.write(posts.stop, post)
    send_due(sender)
    assert [event["type"] for _, event in receiver.taken] == ["delivery.canceled"] * 2
    assert last_of(receiver) == [False, True]


def test_deliveries_that_are_stopped_at_once_have_one_last_entry(rt, receiver, sender, profile):
    rt.write(posts.stop, accept(rt, profile, add_profile(rt, account_id="other")))
    send_due(sender)
    assert [event["type"] for _, event in receiver.taken] == ["delivery.failed"] * 2
    assert last_of(receiver) == [False, True]


def test_a_webhook_gets_only_its_events_and_pending_ones_are_never_the_last(rt, receiver, other_receiver, profile):
    ids = [
        add_webhook(rt, receiver, "http://receiver.test/", "delivery.pending"),
        add_webhook(rt, other_receiver, "http://other.test/", "delivery.failed"),
    ]
    accept(rt, profile)
    drain(rt)
    for webhook_id in ids:
        sender = WebhookSender(rt, webhook_id)
        send_due(sender)
        sender.http.close()
    assert [(event["type"], event["data"]["last"]) for _, event in receiver.taken] == [("delivery.pending", False)]
    assert other_receiver.requests == []


def test_a_webhook_begins_with_the_entries_after_it_was_added(rt, receiver, profile):
    accept(rt, profile, body="before")
    drain(rt)
    sender = WebhookSender(rt, add_webhook(rt, receiver, "http://receiver.test/"))
    accept(rt, profile, body="after")
    drain(rt)
    send_due(sender)
    sender.http.close()
    assert receiver.bodies == ["after"]


def test_user_name_and_password_are_sent_as_basic_and_not_in_the_url(rt, receiver, profile):
    webhook_id = add_webhook(rt, receiver, "http://ada:p%40ss-word@receiver.test/hook")
    assert calls.send_test(rt, webhook_id).accepted
    [request] = receiver.requests
    assert request.headers["authorization"] == "Basic YWRhOnBAc3Mtd29yZA=="
    assert str(request.url) == "http://receiver.test/hook"


def test_events_continue_while_publishing_is_paused(rt, clock, receiver, sender, profile):
    rt.write(resume.pause)
    rt.write(posts.cancel, accept(rt, profile, at=clock.now() + timedelta(hours=1)), OWNER)
    send_due(sender)
    assert len(receiver.taken) == 1


def test_after_a_restore_no_address_is_called_until_resume_and_earlier_entries_are_not_sent(
    rt, clock, receiver, sender, profile
):
    accept(rt, profile, body="of the original")
    drain(rt)
    clock.forward(60)
    rt.db.write(lambda tx: appliance_state.note_restore(tx, tx.stamp))
    rt.write(resume.pause)
    rt.write(posts.cancel, accept(rt, profile, body="still paused", at=clock.now() + timedelta(hours=1)), OWNER)
    send_due(sender)
    clock.forward(7200)
    assert [one.is_late for one in receivers.list_health(rt.db, rt.now())] == [False]
    with pytest.raises(Conflict, match="until publishing is resumed"):
        calls.send_test(rt, sender.id)
    assert receiver.requests == []
    rt.write(resume.resume)
    accept(rt, profile, body="of this installation")
    drain(rt)
    send_due(sender)
    assert receiver.bodies == ["of this installation"]
