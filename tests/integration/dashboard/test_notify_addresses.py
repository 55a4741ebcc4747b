"""The System page adds, tests and removes notification addresses."""

import sqlite3
from contextlib import closing
from typing import Any

import pytest

from socialpub.accounts.remedies import Surface
from socialpub.core.settings.schema import NotifySection
from socialpub.db.models import NotifyAddressRow
from socialpub.db.tables import audit_log, notifications, waits
from socialpub.ops import audit_text
from socialpub.ops.health import Level
from socialpub.ops.notify import send
from socialpub.ops.notify.notifier import Notifier
from socialpub.runtime import Runtime
from tests.support.postbox import Postbox
from tests.support.tab import Tab


@pytest.fixture
def urls() -> list[str]:
    return ["ntfy://secret-topic", "tgram://123456789:HiddenHiddenHidden/12345/"]


@pytest.fixture
def appliance_options(appliance_options: dict[str, Any], urls: list[str]) -> dict[str, Any]:
    return {**appliance_options, "notify": NotifySection.model_validate({"urls": urls})}


@pytest.fixture
def postbox(monkeypatch: pytest.MonkeyPatch) -> Postbox:
    box = Postbox()
    monkeypatch.setattr(send, "send_message", box.send)
    return box


def test_a_test_message_is_sent_and_its_result_is_shown(owner: Tab, postbox: Postbox) -> None:
    page = owner.open("/system")
    assert "ntfy:// No message was sent yet." in page.text
    assert "Hidden" not in page.text
    assert "secret-topic" not in page.text
    assert "Sent to ntfy://, tgram://" in owner.press("Send a test message").role("status")
    postbox.failing["tgram"] = "the host is not found"
    page = owner.press("Send a test message", on="/system")
    assert "tgram:// did not accept the message: the host is not found" in page.role("alert")


def test_a_failed_test_stays_on_the_page_until_one_succeeds(owner: Tab, rt: Runtime, postbox: Postbox) -> None:
    postbox.failing["tgram"] = "nothing listens at the address"
    owner.press("Send a test message", on="/system")
    page = owner.open("/system")
    assert "tgram:// has not accepted messages since" in page.text
    assert "nothing listens at the address. Check the address" in page.text
    assert '<span class="state verbatim bad">tgram://</span>' in page.html
    (found,) = [one for one in send.check_services(rt, Surface.SHELL) if one.level is Level.PROBLEM]
    assert found.message.endswith("nothing listens at the address.")
    assert "To try again at once, run `socialpub admin notify-test`." in str(found.remedy)
    postbox.failing.clear()
    owner.press("Send a test message")
    assert "has not accepted" not in owner.open("/system").text
    assert [one for one in send.check_services(rt, Surface.SHELL) if one.level is not Level.OK] == []


def test_a_failed_test_delays_no_message_that_waits(owner: Tab, rt: Runtime, postbox: Postbox) -> None:
    rt.write(send.register_services)
    rt.db.write(lambda tx: notifications.add(tx, "A post failed", "On X."))
    postbox.failing["tgram"] = "the host is not found"
    owner.press("Send a test message", on="/system")
    (state,) = [one for one in notifications.services(rt.db) if one.failing_since]
    assert (state.waiting, state.next_at) == (1, None)
    assert "tgram:// has not accepted messages since" in owner.open("/system").text


@pytest.mark.parametrize("urls", [[]])
def test_without_an_address_the_page_asks_for_one(owner: Tab, urls: list[str]) -> None:
    page = owner.open("/system")
    assert "No notifications are sent" in page.text
    assert not page.has_button("Send a test message")


NTFY = "ntfys://owner:HiddenPassword@ntfy.example.org/HiddenTopic"


@pytest.mark.parametrize("urls", [[]])
def test_an_added_address_is_stored_encrypted_and_shown_by_scheme_and_host(
    owner: Tab, rt: Runtime, postbox: Postbox, urls: list[str]
) -> None:
    page = owner.press("Add address", {"New address": f" {NTFY} "}, on="/system")
    assert "Notifications now go to ntfys://ntfy.example.org" in page.role("status")
    assert "ntfys://ntfy.example.org No message was sent yet" in page.text
    assert "Hidden" not in page.html
    with closing(sqlite3.connect(rt.settings.database_file)) as connection:
        assert "Hidden" not in "\n".join(connection.iterdump())
    assert "Sent to ntfys://ntfy.example.org" in owner.press("Send a test message").role("status")
    (entry, *_) = audit_log.load_page(rt.db, ["notify"]).entries
    assert audit_text.describe(entry) == "Added the notification address ntfys://ntfy.example.org."
    assert entry.actor == "dashboard"
    assert "Notifications" in owner.open("/audit").text


@pytest.mark.parametrize("urls", [[]])
def test_a_running_worker_uses_a_new_address(owner: Tab, rt: Runtime, postbox: Postbox, urls: list[str]) -> None:
    notifier = Notifier(rt)
    notifier.run_once()
    owner.press("Add address", {"New address": NTFY}, on="/system")
    rt.db.write(lambda tx: waits.hold(tx, "x", waits.PUBLISHING, "No credits are left.", "402"))
    notifier.run_once()
    rt.clock.forward(120)  # type: ignore[attr-defined]
    notifier.run_once()
    assert [service for service, _, _ in postbox.received] == ["ntfys"]
    assert "No credits are left" in postbox.last


def test_a_removed_address_gets_no_more_messages(owner: Tab, rt: Runtime, postbox: Postbox) -> None:
    owner.press("Add address", {"New address": NTFY}, on="/system")
    page = owner.follow("Remove ntfys://ntfy.example.org")
    assert page.heading == "Remove ntfys://ntfy.example.org?"
    assert "Notifications still go to ntfy://, tgram://" in page.text
    page = owner.press("Remove")
    assert "ntfys://ntfy.example.org is removed" in page.role("status")
    assert len(send.list_services(rt)) == 2
    owner.press("Send a test message")
    assert {service for service, _, _ in postbox.received} == {"ntfy", "tgram"}
    assert audit_text.describe(audit_log.load_page(rt.db).entries[0]).startswith(
        "Removed the notification address ntfys"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("owner@example.com", "must begin with a service and ://"),
        ("syslog://", "is a service of this machine, which socialpub does not support"),
        ("GNOME://", "is a service of this machine, which socialpub does not support"),
        ("mailto:// ", "is not complete: text is missing after mailto://"),
        ("nosuch://hidden@host", "is not the complete address of a service that Apprise supports"),
        ("tgram://hidden/1", "is not complete"),
        ("ntfy://secret-topic", "already in the list"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_at_its_field(owner: Tab, rt: Runtime, given: str, said: str) -> None:
    page = owner.press("Add address", {"New address": given}, on="/system")
    assert page.status == 400
    assert said in page.role("alert")
    assert page.field("New address").attributes["aria-invalid"] == "true"
    assert page.field("New address").attributes["value"].strip() == given.strip()
    assert len(send.list_services(rt)) == 2


def test_two_services_never_have_the_same_name(rt: Runtime) -> None:
    for topic in ("one", "two"):
        rt.write(send.add_service, *send.parse_address(f"ntfy://ntfy.example.org/{topic}"))
    names = [one.name for one in send.list_services(rt)]
    assert names[2:] == ["ntfy://ntfy.example.org", "ntfy://ntfy.example.org (2)"]


def test_an_address_with_another_secret_key_is_reported_and_does_not_stop_the_others(owner: Tab, rt: Runtime) -> None:
    address_id = rt.write(send.add_service, *send.parse_address(NTFY))
    rt.db.write(lambda tx: tx.update(NotifyAddressRow, address_id, url=b"2.damaged"))
    assert [one.url.get_secret_value() for one in send.list_services(rt)][2] == ""
    assert "ntfys://ntfy.example.org" in owner.open("/system").text
