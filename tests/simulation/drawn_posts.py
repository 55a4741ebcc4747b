"""The drawing of posts: of every kind, to every profile, each with a number in its words that every reading leaves."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from socialpub.core.errors import SocialpubError
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.providers.grid import Story
from tests.providers.networks import NETWORKS
from tests.support.appliance import accept

FLAVOURS = (
    "plain words",
    "Crème & <b>brûlée</b>",
    "cafe\u0301 decomposed",
    "zero\u200bwidth and joined\u200dup",
    "two  spaces and\na line",
    "https://studio.example/p?a=1&b=2 and more",
    "🇪🇺 flags 👩‍👩‍👧 and “quotes”…",
    "ends in a space ",
    "&amp; already escaped &lt;",
)
SCHEDULED_HOURS = 48.0


@dataclass(frozen=True, slots=True)
class DrawnProfile:
    id: str
    network: str
    username: str
    account_id: str


@dataclass(frozen=True, slots=True)
class DrawnPost:
    """A post that was accepted."""

    id: str
    network: str
    account_id: str
    marker: str
    """Its number as it stands in its words; those of equal content have the same. Empty: it has no words."""


@dataclass
class DrawnPosts:
    dice: random.Random
    world: World
    samples: Path
    profiles: list[DrawnProfile] = field(default_factory=list)
    accepted: list[DrawnPost] = field(default_factory=list)
    equal_rate: float = 0.25
    _equal: list[tuple[DrawnProfile, str, str, str, Mapping[str, Any]]] = field(default_factory=list)

    def connect(self, rt: Runtime) -> None:
        for network, played in NETWORKS.items():
            for username in ("demo", "second", "third")[: self.dice.choice([1, 2, 2, 3])]:
                profile_id = played.connect(rt, self.world, username)
                account = rt.reader.value("SELECT account_id FROM profile WHERE id = ?", (profile_id,))
                self.profiles.append(DrawnProfile(profile_id, network, username, account))

    def draw(self, rt: Runtime) -> None:
        """One more post, or one equal to an earlier one."""
        if self._equal and self.dice.random() < self.equal_rate:
            profile, title, marker, body, options = self.dice.choice(self._equal)
        else:
            profile, title, marker, body, options = drawn = self._draw_content()
            self._equal.append(drawn)
        story = _story(profile.network, title)
        at = None
        if self.dice.random() < 0.25:
            at = rt.now() + timedelta(hours=self.dice.choice([0.05, 1, self.dice.uniform(0, SCHEDULED_HOURS)]))
        given = {profile.network: dict(options)} if options else None
        try:
            post = accept(rt, profile.id, body=body, at=at, media=story.make(rt, self.samples), options=given)
        except SocialpubError:
            return  # its profile is not connected any more
        self.accepted.append(DrawnPost(post, profile.network, profile.account_id, marker))

    def _draw_content(self) -> tuple[DrawnProfile, str, str, str, Mapping[str, Any]]:
        profile = self.dice.choice(self.profiles)
        network = NETWORKS[profile.network]
        weights = {name: 0.3 if name == "film in chunks" else 1.0 for name in network.stories}
        title = self.dice.choices(list(weights), list(weights.values()))[0]
        number = f"n{len(self._equal):04}n"
        options = {**network.options(self.world, profile.username), **network.stories[title].options}
        marker = "" if title == "draft" else number  # TikTok is told nothing of such a draft but its bytes
        return profile, title, marker, f"{number} {self.dice.choice(FLAVOURS)}", options


def _story(network: str, title: str) -> Story:
    return NETWORKS[network].stories[title]
