"""The owner tries from the System page whether messages arrive, and sees there which service takes none."""

from typing import Any

import pytest

from socialpub.core.settings.notify import NotifySection
from socialpub.ops.notify import apprise_client, rounds
from socialpub.runtime import Runtime
from tests.support.dashboard_browser import DashboardBrowser
from tests.support.postbox import Postbox


@pytest.fixture
def urls() -> list[str]:
    return ["ntfy://topic-nobody-knows", "tgram://123456789:HiddenHiddenHidden/12345/"]


@pytest.fixture
def appliance_options(appliance_options: dict[str, Any], urls: list[str]) -> dict[str, Any]:
    return {**appliance_options, "notify": NotifySection.model_validate({"urls": urls})}


@pytest.fixture
def postbox(monkeypatch: pytest.MonkeyPatch) -> Postbox:
    box = Postbox()
    monkeypatch.setattr(apprise_client, "send", box.send)
    return box


def test_a_test_message_is_sent_and_what_became_of_it_is_told(
    owner: DashboardBrowser, rt: Runtime, postbox: Postbox
) -> None:
    page = owner.open("/system")
    assert "1 ntfy was sent no message yet" in page.text
    assert "Hidden" not in page.text
    assert "nobody-knows" not in page.text
    assert "Sent to 1 ntfy, 2 tgram" in owner.press("Send a test message").role("status")
    postbox.failing["tgram"] = "its host is not found"
    owner.open("/system")
    assert "2 tgram did not take the message: its host is not found" in owner.press("Send a test message").role("alert")


def test_a_service_that_takes_nothing_is_shown(owner: DashboardBrowser, rt: Runtime) -> None:
    rt.write(rounds.begin)
    (service, *_) = rt.reader.all("SELECT id FROM notification_service ORDER BY name")
    rt.db.write(
        lambda tx: tx.update(
            "notification_service", service[0], failing_since=tx.stamp, next_at=tx.stamp, failure="it hangs"
        )
    )
    assert "has taken no message since" in owner.open("/system").text


@pytest.mark.parametrize("urls", [[]])
def test_without_an_address_the_page_says_where_one_belongs(owner: DashboardBrowser, urls: list[str]) -> None:
    page = owner.open("/system")
    assert "Nobody is told when something needs you" in page.text
    assert not page.has_button("Send a test message")
