from collections.abc import Callable
from typing import Any

import pytest

from socialpub.core.settings.schema import NotifySection
from socialpub.ops.notify import send
from socialpub.ops.notify.notifier import Notifier
from socialpub.runtime import Runtime
from tests.support.hand_clock import HandClock
from tests.support.postbox import Postbox
from tests.support.scripted_network import ScriptedNetwork


@pytest.fixture
def postbox(monkeypatch: pytest.MonkeyPatch) -> Postbox:
    box = Postbox()
    monkeypatch.setattr(send, "send_message", box.send)
    return box


@pytest.fixture
def notify() -> dict[str, Any]:
    """The keys of `[notify]` without the address."""
    return {}


@pytest.fixture
def appliance_options(network: ScriptedNetwork, notify: dict[str, Any]) -> dict[str, Any]:
    section = NotifySection.model_validate({"urls": ["json://127.0.0.1/owner"], **notify})
    return {"providers": {"x": network}, "base_url": "https://social.example.com", "notify": section}


@pytest.fixture
def minutes(rt: Runtime, clock: HandClock, well: Callable[[], None], postbox: Postbox) -> Callable[..., None]:
    """Let minutes pass, with a report of the worker and a check of the alerts in each."""
    notifier = Notifier(rt)

    def passed(count: int) -> None:
        pause = 1 + count // 100
        for _ in range(0, count, pause):
            well()
            notifier.run_once()
            clock.forward(60 * pause)
        well()
        notifier.run_once()

    return passed
