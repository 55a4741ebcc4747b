from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import SecretStr

from socialpub.core.settings.notify import NotifySection
from socialpub.ops.notify import apprise_client
from socialpub.ops.notify.notifier import Notifier
from socialpub.runtime import Runtime
from tests.support.hand_clock import HandClock
from tests.support.scripted_network import ScriptedNetwork


@dataclass
class Postbox:
    """Stands in for Apprise: what the owner was sent, and what a service says."""

    received: list[tuple[str, str, str]] = field(default_factory=list)
    """Service, title, body."""
    failing: dict[str, str] = field(default_factory=dict)
    """By what an address begins with: why it takes nothing."""
    dies: bool = False
    """This process dies once the message went out."""

    def send(self, url: SecretStr, title: str, body: str, **_: Any) -> str | None:
        service = url.get_secret_value().partition(":")[0]
        if service in self.failing:
            return self.failing[service]
        self.received.append((service, title, body))
        if self.dies:
            self.dies = False
            raise KeyboardInterrupt
        return None

    @property
    def titles(self) -> list[str]:
        return [title for _, title, _ in self.received]

    @property
    def last(self) -> str:
        return self.received[-1][2]


@pytest.fixture
def postbox(monkeypatch: pytest.MonkeyPatch) -> Postbox:
    box = Postbox()
    monkeypatch.setattr(apprise_client, "send", box.send)
    return box


@pytest.fixture
def notify() -> dict[str, Any]:
    """What `[notify]` has besides the address."""
    return {}


@pytest.fixture
def appliance_options(network: ScriptedNetwork, notify: dict[str, Any]) -> dict[str, Any]:
    section = NotifySection.model_validate({"urls": ["json://127.0.0.1/owner"], **notify})
    return {"providers": {"x": network}, "base_url": "https://social.example.com", "notify": section}


@pytest.fixture
def minutes(rt: Runtime, clock: HandClock, well: Callable[[], None], postbox: Postbox) -> Callable[..., None]:
    """So many minutes pass; the worker reports and takes a round in each, and when they are many at times."""
    notifier = Notifier(rt)

    def passed(count: int) -> None:
        pause = 1 + count // 100
        for _ in range(0, count, pause):
            well()
            notifier.once()
            clock.forward(60 * pause)
        well()
        notifier.once()

    return passed
