"""Replaces Apprise: keeps the messages to the owner."""

import threading
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from pydantic import SecretStr


@dataclass
class Postbox:
    received: list[tuple[str, str, str]] = field(default_factory=list)
    """Service, title, body."""
    failing: dict[str, str] = field(default_factory=dict)
    """By what an address begins with: why it takes nothing."""
    waits_for: dict[str, threading.Event] = field(default_factory=dict)
    """By what an address begins with: a service that answers nothing before this has happened."""
    took: dict[str, threading.Event] = field(default_factory=lambda: defaultdict(threading.Event))
    """By service: whether it ever took a message."""
    dies: bool = False
    """This process dies once the message went out."""

    def send(self, url: SecretStr, title: str, body: str, **_: Any) -> str | None:
        service = url.get_secret_value().partition(":")[0]
        if service in self.failing:
            return self.failing[service]
        if service in self.waits_for and not self.waits_for[service].wait(30):
            return "it does not answer in time"
        self.received.append((service, title, body))
        self.took[service].set()
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
