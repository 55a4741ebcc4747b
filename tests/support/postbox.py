"""Stands in for Apprise: keeps what the owner was sent."""

from dataclasses import dataclass, field
from typing import Any

from pydantic import SecretStr


@dataclass
class Postbox:
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
