"""Replaces the services: keeps the messages to the owner."""

import threading
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any


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

    def send(self, _: Any, url: str, title: str, body: str) -> str | None:
        service = url.partition(":")[0]
        if service in self.failing:
            return self.failing[service]
        if service in self.waits_for and not self.waits_for[service].wait(30):
            return "it does not answer in time"
        self.received.append((service, title, body))
        self.took[service].set()
        return None

    @property
    def titles(self) -> list[str]:
        return [title for _, title, _ in self.received]

    @property
    def last(self) -> str:
        return self.received[-1][2]
