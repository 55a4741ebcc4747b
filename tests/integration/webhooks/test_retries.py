"""When an event is not accepted: the waits, the order, the end (contract 10.6.4, 10.6.5)."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from socialpub.accounts.remedies import Surface
from socialpub.core.clock import parse
from socialpub.core.errors import Unavailable
from socialpub.core.settings.values import MIN_KEPT
from socialpub.db.models import WebhookRow
from socialpub.db.tables import webhooks
from socialpub.ops import alerts, health
from socialpub.ops.doctor import checks
from socialpub.ops.webhooks import calls, receivers
from socialpub.ops.webhooks import sender as sending
from socialpub.ops.webhooks.sender import WebhookSender, WebhookThreads
from socialpub.publishing.retention import Retention
from socialpub.runtime import Runtime
from tests.support.appliance import accept
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.select import select_value
from tests.support.webhook_receiver import HANGS, WebhookReceiver, add_webhook, send_due

DAY = 86400


def publish(rt: Runtime, profile: str, *bodies: str) -> None:
    for body in bodies:
        accept(rt, profile, body=body)
        drain(rt)


def row_of(sender: WebhookSender) -> WebhookRow:
    row = webhooks.find(sender.rt.db, sender.id)
    assert row is not None
    return row


def wait_of(sender: WebhookSender) -> float:
    """Return the seconds until the next try."""
    return (parse(row_of(sender).next_at or "") - sender.rt.now()).total_seconds()


@pytest.mark.parametrize("status", [199, 301, 302, 400, 429, 500, HANGS])
def test_only_2xx_is_accepted_and_the_same_event_is_sent_again(
    rt: Runtime,
    clock: HandClock,
    receiver: WebhookReceiver,
    sender: WebhookSender,
    profile: str,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
) -> None:
    monkeypatch.setattr(calls, "SECONDS", 0.05)
    receiver.answers = [status]
    publish(rt, profile, "a", "b")
    send_due(sender)
    assert len(receiver.tries) == 1, "the second event waits for the first, and a redirect is not followed"
    clock.forward(7.6)
    send_due(sender)
    assert receiver.bodies == ["a", "b"]
    first, again, _ = receiver.tries
    assert first == again
    assert row_of(sender).last_response == "204"


def test_waits_begin_with_5_seconds_and_double_to_an_hour_with_jitter_of_up_to_half(
    rt: Runtime, clock: HandClock, receiver: WebhookReceiver, sender: WebhookSender, profile: str
) -> None:
    receiver.answers = [500] * 13
    publish(rt, profile, "a")
    for number in range(13):
        send_due(sender)
        base, wait = min(5 * 2**number, 3600), wait_of(sender)
        assert base <= wait <= 1.5 * base
        clock.forward(wait - 0.01)
        send_due(sender)
        assert len(receiver.tries) == number + 1, "not before its time"
        clock.forward(0.02)
    send_due(sender)
    assert receiver.bodies == ["a"]
    assert (row_of(sender).tries, row_of(sender).failing_since) == (0, None)


def test_a_restart_continues_the_wait_and_the_order(
    rt: Runtime, clock: HandClock, receiver: WebhookReceiver, sender: WebhookSender, profile: str
) -> None:
    receiver.answers = [204, 500]
    publish(rt, profile, "a", "b", "c")
    send_due(sender)
    next_at = row_of(sender).next_at
    successor = WebhookSender(rt, sender.id)
    send_due(successor)
    assert (row_of(sender).next_at, len(receiver.tries)) == (next_at, 2)
    clock.forward(8)
    send_due(successor)
    successor.http.close()
    assert receiver.bodies == ["a", "b", "c"]


@pytest.mark.parametrize("seconds", [-30 * DAY, 3 * DAY])
def test_a_set_clock_does_not_change_the_wait(
    rt: Runtime, clock: HandClock, receiver: WebhookReceiver, sender: WebhookSender, profile: str, seconds: int
) -> None:
    receiver.answers = [500]
    publish(rt, profile, "a")
    send_due(sender)
    before = wait_of(sender)
    clock.jump(seconds)
    send_due(sender)
    assert len(receiver.tries) == 1
    assert wait_of(sender) == pytest.approx(before, abs=0.01)
    clock.forward(8)
    send_due(sender)
    assert receiver.bodies == ["a"]


def test_one_address_does_not_delay_another(
    rt: Runtime,
    receiver: WebhookReceiver,
    other_receiver: WebhookReceiver,
    sender: WebhookSender,
    profile: str,
) -> None:
    other = WebhookSender(rt, add_webhook(rt, other_receiver, "http://other.test/"))
    receiver.answers = [500]
    publish(rt, profile, "a", "b")
    send_due(sender)
    send_due(other)
    other.http.close()
    assert (receiver.bodies, other_receiver.bodies) == ([], ["a", "b"])


def test_an_accepted_event_whose_write_failed_is_not_sent_again_by_the_same_process(
    rt: Runtime, receiver: WebhookReceiver, sender: WebhookSender, profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(rt, profile, "a", "b")
    with monkeypatch.context() as broken:

        def fail(*_: Any) -> None:
            raise Unavailable("The disk is full.")

        broken.setattr(webhooks, "note_accepted", fail)
        for _ in range(3):
            with pytest.raises(Unavailable):
                sender.run_once()
    send_due(sender)
    assert receiver.bodies == ["a", "b"]


def test_410_disables_the_address_and_the_owner_sees_it(
    rt: Runtime, receiver: WebhookReceiver, sender: WebhookSender, profile: str
) -> None:
    receiver.answers = [410]
    publish(rt, profile, "a", "b")
    sender.run_once()
    assert sender.run_once() is None
    assert len(receiver.tries) == 1
    [alert] = [one for one in alerts.list_alerts(rt, Surface.SHELL) if one.kind == "webhook"]
    assert alert.key == f"webhook:{sender.id}:disabled"
    assert "answered 410" in alert.sentence and "remove-webhook" in alert.remedy


def test_an_event_older_than_7_days_is_left_out_counted_and_reported(
    rt: Runtime, clock: HandClock, receiver: WebhookReceiver, sender: WebhookSender, profile: str
) -> None:
    publish(rt, profile, "old", "older than the limit")
    clock.forward(6 * DAY)
    publish(rt, profile, "new")
    clock.forward(DAY + 1)
    send_due(sender)
    assert receiver.bodies == ["new"]
    assert row_of(sender).left_out == 2
    [found] = [one for one in checks.check(rt) if one.subject == "webhook" and one.level is health.Level.NOTE]
    assert found.message.startswith("2 events were not sent to the webhook http://receiver.test")


def test_a_clock_that_is_set_forward_leaves_no_event_out_and_makes_none_late(
    rt: Runtime, clock: HandClock, receiver: WebhookReceiver, sender: WebhookSender, profile: str
) -> None:
    publish(rt, profile, "a")
    clock.jump(30 * DAY)
    send_due(sender)
    assert receiver.bodies == ["a"]
    publish(rt, profile, "b")
    clock.jump(30 * DAY)
    rt.db.follow_clock()  # the reconciler was faster
    assert [one.is_late for one in receivers.list_health(rt.db, rt.now())] == [False]
    send_due(sender)
    assert receiver.bodies == ["a", "b"]


def test_data_retention_keeps_entries_that_a_webhook_has_not_read(
    rt: Runtime, clock: HandClock, receiver: WebhookReceiver, sender: WebhookSender, profile: str
) -> None:
    publish(rt, profile, "a", "b", "c")
    clock.forward(8 * DAY)
    publish(rt, profile, "the newest entry always stays")
    rt.settings = rt.settings.model_copy(
        update={"retention": rt.settings.retention.model_copy(update={"posts": timedelta(days=7)})}
    )
    Retention().remove_expired(rt)
    send_due(sender)
    assert row_of(sender).left_out == 3
    before = select_value(rt.db, "SELECT count(*) FROM log_entry")
    Retention().remove_expired(rt)
    assert before - select_value(rt.db, "SELECT count(*) FROM log_entry") == 6


def test_an_event_has_its_text_as_long_as_it_may_be_sent(
    rt: Runtime, clock: HandClock, receiver: WebhookReceiver, sender: WebhookSender, profile: str
) -> None:
    """No post is removed before its events are too old. The entries of a removed post have no text."""
    shortest = rt.settings.retention.model_copy(update={"posts": MIN_KEPT})
    rt.settings = rt.settings.model_copy(update={"retention": shortest})
    receiver.answers = [503] * 2
    publish(rt, profile, "a")
    send_due(sender)
    clock.forward(sending.GIVEN_UP_AFTER.total_seconds() - 0.001)
    Retention().remove_expired(rt)
    send_due(sender)
    assert [event["data"]["postBody"] for _, event in receiver.tries] == ["a", "a"]
    clock.forward(0.001)
    assert Retention().remove_expired(rt) > 0
    clock.forward(3 * 3600)
    send_due(sender)
    assert (row_of(sender).left_out, receiver.taken) == (1, [])


def test_a_lag_of_an_hour_is_an_alert_and_ends_with_an_accepted_event(
    rt: Runtime, clock: HandClock, receiver: WebhookReceiver, sender: WebhookSender, profile: str
) -> None:
    def found() -> list[str]:
        return [one.sentence for one in alerts.list_alerts(rt, Surface.DASHBOARD) if one.kind == "webhook"]

    receiver.answers = [503]
    publish(rt, profile, "a")
    send_due(sender)
    clock.forward(3599)
    assert found() == []
    clock.forward(1)
    [sentence] = found()
    assert "http://receiver.test is late" in sentence and "503" in sentence
    assert "hidden-in-the-query" not in sentence
    send_due(sender)
    assert found() == []
    [health_of] = receivers.list_health(rt.db, rt.now())
    assert health_of.lag_seconds == 0


# --- threads ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def threads(rt: Runtime, monkeypatch: pytest.MonkeyPatch) -> Iterator[WebhookThreads]:
    monkeypatch.setattr(sending, "POLL_SECONDS", 0.01)
    threads = WebhookThreads()
    yield threads
    rt.stopping.set()
    threads.stop()


def test_threads_start_with_the_first_address_and_end_with_its_removal(
    rt: Runtime, receiver: WebhookReceiver, profile: str, threads: WebhookThreads
) -> None:
    threads.check(rt)
    assert threads._senders == {} and threads._lock is None
    webhook_id = add_webhook(rt, receiver, "http://receiver.test/")
    threads.check(rt)
    [sender] = threads._senders.values()
    second = WebhookThreads()
    second.check(rt)
    assert second._senders == {}, "only one process sends"
    rt.write(receivers.remove, webhook_id)
    sender.thread.join(10)
    threads.check(rt)
    assert threads._senders == {}


def test_a_stop_interrupts_a_hanging_call_without_counting_it(
    rt: Runtime,
    receiver: WebhookReceiver,
    webhook: str,
    profile: str,
    threads: WebhookThreads,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sending, "STOP_SECONDS", 0.0)
    receiver.answers = [HANGS]
    publish(rt, profile, "a")
    threads.check(rt)
    [sender] = threads._senders.values()
    assert receiver.asked.wait(10)
    rt.stopping.set()
    threads.stop()
    sender.thread.join(10)
    assert not sender.thread.is_alive()
    assert row_of(sender).tries == 0
