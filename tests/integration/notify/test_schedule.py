"""The messages to the owner: one for each alert, and one for its end."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from socialpub.accounts.api_keys import Caller
from socialpub.accounts.remedies import Surface
from socialpub.core.clock import stamp
from socialpub.core.errors import Unavailable
from socialpub.db import appliance_state
from socialpub.db.models import ProfileRow
from socialpub.db.tables import notifications, waits
from socialpub.ops.health import Level
from socialpub.ops.notify import notifier, send
from socialpub.ops.notify.notifier import Notifier
from socialpub.providers.base import Refused
from socialpub.publishing.delivery import resume
from socialpub.publishing.posts import posts
from socialpub.publishing.posts.drafts import Draft
from socialpub.runtime import Runtime
from tests.support.appliance import accept, add_profile, approve
from tests.support.copies import become_restored
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.postbox import Postbox
from tests.support.scripted_network import ScriptedNetwork
from tests.support.select import select_all, select_value

Minutes = Callable[..., None]


def hold(rt: Runtime, provider: str = "x") -> None:
    rt.db.write(lambda tx: waits.hold(tx, provider, waits.PUBLISHING, "No credits are left.", "402"))


def release(rt: Runtime, provider: str = "x") -> None:
    rt.db.write(lambda tx: waits.release(tx, provider, waits.PUBLISHING))


def test_a_held_network_is_sent_once_and_again_when_it_is_resolved(
    rt: Runtime, minutes: Minutes, postbox: Postbox
) -> None:
    minutes(1)
    hold(rt)
    minutes(120)
    assert len(postbox.received) == 1
    assert "X has refused this app" in postbox.titles[0]
    assert "No credits are left" in postbox.last
    assert "Resolve this with X" in postbox.last
    assert "https://social.example.com/system" in postbox.last
    release(rt)
    minutes(50)
    assert len(postbox.received) == 1, "the alert may return"
    minutes(20)
    assert len(postbox.received) == 2
    assert "resolved" in postbox.titles[1]
    assert "Resolved: X has refused this app" in postbox.last
    minutes(120)
    assert len(postbox.received) == 2


def test_what_is_found_within_a_minute_is_one_message(rt: Runtime, minutes: Minutes, postbox: Postbox) -> None:
    for number in range(3):
        add_profile(rt, account_id=f"account-{number}", status="reauthRequired", reason="The grant was revoked.")
    hold(rt)
    minutes(5)
    assert len(postbox.received) == 1
    assert "4 problems need you" in postbox.titles[0]
    assert postbox.last.count("must be connected again") == 3


def test_an_alert_that_ends_within_a_minute_is_not_sent(
    rt: Runtime, clock: HandClock, minutes: Minutes, postbox: Postbox
) -> None:
    minutes(1)
    hold(rt)
    Notifier(rt).run_once()
    clock.forward(30)
    release(rt)
    minutes(60)
    assert postbox.received == []


def test_fifty_failed_deliveries_are_one_message_that_names_a_few(
    rt: Runtime, clock: HandClock, network: ScriptedNetwork, profile: str, minutes: Minutes, postbox: Postbox
) -> None:
    minutes(1)
    network.results["create_post"] = [Refused("The post is not allowed.") for _ in range(50)]
    for number in range(50):
        accept(rt, profile, body=f"Post {number} " + "with many words " * 20)
    drain(rt, clock)
    minutes(2)
    assert len(postbox.received) == 1
    assert "50 deliveries failed" in postbox.titles[0]
    assert postbox.last.count("The post is not allowed") == 5
    assert "and 45 more" in postbox.last
    assert "with many words " * 5 not in postbox.last, "a message contains only the beginning of a post"
    minutes(60)
    assert len(postbox.received) == 1, "a failure is sent once"


def test_posts_that_wait_for_approval_are_sent_together_and_again_after_a_change(
    rt: Runtime, clock: HandClock, profile: str, minutes: Minutes, postbox: Postbox
) -> None:
    agent = Caller("agent", "write", name="claude", approval=True)

    def ask(text: str) -> str:
        return rt.write(posts.create, Draft(text, rt.now() + timedelta(hours=10), (profile,)), agent)

    minutes(1)
    first = ask("One")
    ask("Two\n" + "with many words " * 20)
    minutes(2)
    assert len(postbox.received) == 1
    assert "2 problems need you" in postbox.titles[0]
    assert "A post of the key “claude” waits for your approval: One" in postbox.last
    assert (
        "Press “Approve” or “Stop” on the post's page. Without your approval, it fails at 2026-10-13T" in postbox.last
    )
    assert f"https://social.example.com/posts/{first}" in postbox.last
    assert "with many words " * 5 not in postbox.last
    for number in range(8):
        ask(f"Loop {number}")
        minutes(1)
    assert len(postbox.received) == 1, "a looping agent does not fill the mailbox"
    minutes(60)
    assert len(postbox.received) == 2
    assert "Loop" in postbox.last
    approve(rt, first)
    minutes(120)
    assert len(postbox.received) == 2, "an event is sent once"
    rt.write(posts.edit, first, Draft.change(body="One, changed"), agent)
    minutes(2)
    assert len(postbox.received) == 3
    assert "waits for your approval: One, changed" in postbox.last


def test_what_failed_before_the_first_address_is_not_sent(
    rt: Runtime, clock: HandClock, network: ScriptedNetwork, profile: str, minutes: Minutes, postbox: Postbox
) -> None:
    network.results["create_post"] = [Refused("The post is not allowed.")]
    accept(rt, profile)
    drain(rt, clock)
    minutes(30)
    assert postbox.received == []


def test_what_fails_in_the_first_second_of_the_first_worker_is_reported(
    rt: Runtime, clock: HandClock, network: ScriptedNetwork, profile: str, minutes: Minutes, postbox: Postbox
) -> None:
    rt.stopping.set()  # no look of its own: the story takes each
    Notifier(rt).start()
    rt.stopping.clear()
    network.results["create_post"] = [Refused("The post is not allowed.")]
    accept(rt, profile)
    drain(rt, clock)
    minutes(2)
    assert "1 delivery failed" in postbox.titles[0]


def test_the_fallback_in_the_web_server_sends_nothing_while_a_worker_reports(rt: Runtime) -> None:
    rt.stopping.set()
    Notifier(rt, is_fallback=True).start()
    assert notifications.services(rt.db) == []


def test_lasting_alerts_are_repeated_once_a_day_in_one_message(rt: Runtime, minutes: Minutes, postbox: Postbox) -> None:
    add_profile(rt, status="reauthRequired", reason="The grant was revoked.")
    minutes(6 * 60)
    hold(rt)
    minutes(17 * 60)
    assert len(postbox.received) == 2
    minutes(2 * 60)
    assert len(postbox.received) == 3
    assert "Still needs you" in postbox.last
    assert "must be connected again" in postbox.last
    assert "X has refused this app" in postbox.last
    minutes(20 * 60)
    assert len(postbox.received) == 3


def test_an_alert_that_returns_within_an_hour_is_the_same_alert(
    rt: Runtime, minutes: Minutes, postbox: Postbox
) -> None:
    for _ in range(20):
        hold(rt)
        minutes(10)
        release(rt)
        minutes(10)
    assert len(postbox.received) == 1
    minutes(60)
    assert ["resolved" in title for title in postbox.titles] == [False, True]
    hold(rt)
    minutes(5)
    assert len(postbox.received) == 3, "after more than an hour it is another alert"


def test_the_daily_limit_says_so_and_the_next_day_has_what_lasts(
    rt: Runtime, minutes: Minutes, postbox: Postbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifier, "DAILY_LIMIT", 2)
    minutes(1)
    hold(rt)
    minutes(10)
    add_profile(rt, account_id="one", name="First", status="reauthRequired")
    minutes(10)
    assert len(postbox.received) == 2
    assert "last message of today" not in postbox.received[0][2]
    assert "last message of today" in postbox.last
    hold(rt, "tiktok")
    minutes(10)
    release(rt, "tiktok")
    add_profile(rt, account_id="two", name="Second", status="reauthRequired")
    minutes(60)
    assert len(postbox.received) == 2
    minutes(14 * 60)
    assert len(postbox.received) == 3
    assert "Second" in postbox.last
    assert "First" not in postbox.last
    assert "TikTok" not in postbox.last


def test_an_account_that_lapses_is_reported_a_week_before_and_when_it_has(
    rt: Runtime, clock: HandClock, minutes: Minutes, postbox: Postbox
) -> None:
    ends = rt.now() + timedelta(days=6)
    profile = add_profile(rt, tokens=("access", None), expires_at=stamp(ends))
    minutes(10)
    assert len(postbox.received) == 1
    assert "can publish only until" in postbox.last
    assert f"/profiles/{profile}" in postbox.last
    rt.db.write(lambda tx: tx.update(ProfileRow, profile, status="reauthRequired", reason="The token was refused."))
    minutes(10)
    assert len(postbox.received) == 2, "nothing is well again in between"
    assert "must be connected again" in postbox.last


def test_a_pause_is_reported_after_a_day(rt: Runtime, minutes: Minutes, postbox: Postbox) -> None:
    rt.write(resume.pause)
    minutes(23 * 60)
    assert postbox.received == []
    minutes(2 * 60)
    assert len(postbox.received) == 1
    assert "paused since" in postbox.last


@pytest.mark.parametrize("notify", [{"causes": ["disk"]}])
def test_alerts_that_the_owner_excludes_are_not_sent(
    rt: Runtime, minutes: Minutes, postbox: Postbox, notify: dict[str, Any]
) -> None:
    hold(rt)
    minutes(10)
    assert postbox.received == []


def test_a_restored_backup_speaks_of_nothing_but_itself(
    rt: Runtime, clock: HandClock, minutes: Minutes, postbox: Postbox
) -> None:
    postbox.failing["json"] = "it does not answer in time"
    hold(rt)
    minutes(10)
    postbox.failing.clear()
    clock.forward(3600)
    become_restored(rt)
    release(rt)
    clock.forward(3600)
    again = Notifier(rt)
    again.run_once()
    minutes(60)
    assert postbox.received == [], "the original sends both messages"
    minutes(26 * 60)
    assert len(postbox.received) == 1
    assert "restored from a backup" in postbox.titles[0]
    assert "still paused" in postbox.last


# --- processes die ---------------------------------------------------------------------------------------------------


def test_a_message_whose_result_is_not_stored_is_repeated_only_after_five_minutes(
    rt: Runtime, minutes: Minutes, postbox: Postbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise Unavailable("The disk is full.")

    minutes(1)
    hold(rt)
    with monkeypatch.context() as disk:
        disk.setattr(notifications, "note_sent", full)
        minutes(5)
        Notifier(rt).run_once()
        assert len(postbox.received) == 1
    minutes(10)
    assert postbox.received[1:] == postbox.received[:1]
    assert [(service.sent, service.waiting) for service in notifications.services(rt.db)] == [(1, 0)]


def test_nothing_is_sent_while_nothing_can_be_stored(
    rt: Runtime, minutes: Minutes, postbox: Postbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise Unavailable("The disk is full.")

    minutes(1)
    hold(rt)
    monkeypatch.setattr(notifications, "note_try", full)
    minutes(10)
    assert postbox.received == []


# --- services --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("notify", [{"urls": ["ntfy://127.0.0.1/topic", "gotify://127.0.0.1/token-of-gotify"]}])
def test_a_service_that_fails_is_tried_again_for_itself(
    rt: Runtime, minutes: Minutes, postbox: Postbox, notify: dict[str, Any]
) -> None:
    postbox.failing["gotify"] = "nothing listens at the address"
    minutes(1)
    hold(rt)
    minutes(30)
    add_profile(rt, status="reauthRequired", reason="The grant was revoked.")
    minutes(30)
    assert [service for service, _, _ in postbox.received] == ["ntfy", "ntfy"]
    (gotify,) = [service for service in notifications.services(rt.db) if service.name == "gotify://127.0.0.1"]
    assert (gotify.waiting, gotify.failure, gotify.sent) == (2, "nothing listens at the address", 0)
    assert 8 <= gotify.failed <= 12, "it is tried every five minutes"
    postbox.failing.clear()
    minutes(10)
    late = [body for service, _, body in postbox.received if service == "gotify"]
    assert len(late) == 2
    assert "No credits are left" in late[0]
    assert "must be connected again" in late[1]


def test_a_message_that_a_service_does_not_accept_for_a_day_is_dropped(
    rt: Runtime, minutes: Minutes, postbox: Postbox
) -> None:
    postbox.failing["json"] = "the host is not found"
    hold(rt)
    minutes(25 * 60)
    rt.write(notifier.clean_messages)
    postbox.failing.clear()
    minutes(10)
    assert len(postbox.received) == 1
    assert "Still needs you" in postbox.last


def test_no_row_holds_an_address(rt: Runtime, minutes: Minutes) -> None:
    minutes(1)
    rows = select_all(rt.db, "SELECT * FROM notification_service")
    assert len(rows) == 1
    assert "owner" not in json.dumps([list(row) for row in rows])


# --- the worker ------------------------------------------------------------------------------------------------------


def test_a_worker_that_is_gone_is_reported_by_the_web_server(
    rt: Runtime, clock: HandClock, minutes: Minutes, postbox: Postbox
) -> None:
    minutes(1)
    stands_in = Notifier(rt, is_fallback=True)
    for _ in range(8):
        clock.forward(60)
        stands_in.run_once()
    assert len(postbox.received) == 1
    told = postbox.titles[0].partition(": ")[2]
    assert told.startswith("The worker has not reported for ")
    assert f"- {told}." in postbox.last, "title and text are of the same moment"
    minutes(70)
    assert len(postbox.received) == 2
    assert "resolved" in postbox.titles[1]
    assert select_value(rt.db, "SELECT value FROM appliance WHERE name = ?", (appliance_state.HEARTBEAT,)) is not None


# --- what doctor and commands say ------------------------------------------------------------------------------------


def test_the_doctor_names_a_service_that_takes_nothing(rt: Runtime, minutes: Minutes, postbox: Postbox) -> None:
    postbox.failing["json"] = "the host is not found"
    minutes(1)
    hold(rt)
    minutes(5)
    (found,) = list(send.check_services(rt, Surface.SHELL))
    assert found.level is Level.PROBLEM
    assert "json://127.0.0.1 has not accepted messages since" in found.message
    assert "the host is not found. 1 message is waiting" in found.message
    assert "notify-test" in (found.remedy or "")
    postbox.failing.clear()
    minutes(60)
    (found,) = list(send.check_services(rt, Surface.SHELL))
    assert found.level is Level.OK
