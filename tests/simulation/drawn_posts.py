"""The drawing of posts: of every kind, to every profile, each with a number in its words that every reading leaves."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from socialpub.accounts.api_keys import Caller
from socialpub.core.errors import SocialpubError
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.providers.grid import Story
from tests.providers.networks import NETWORKS
from tests.simulation.ledger import DrawnPost, DrawnProfile, Ledger
from tests.support.appliance import OWNER, accept
from tests.support.select import select_value

AGENT = Caller("agent", "write", name="agent", approval=True)
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


@dataclass(frozen=True, slots=True)
class Content:
    """What a post says, and to which account."""

    network: str
    username: str
    title: str
    """Of its story (`tests/providers/networks.py`)."""
    marker: str
    body: str
    options: Mapping[str, Any]


@dataclass
class Contents:
    """What was drawn for all installations of an episode: the posts of one may equal those of another."""

    posts: list[Content] = field(default_factory=list)
    edits: int = 0


@dataclass
class DrawnPosts:
    """The posts of one installation. `scheduled_rate`: how many have a time, `most_hours`: how far ahead at most."""

    dice: random.Random
    world: World
    samples: Path
    contents: Contents = field(default_factory=Contents)
    ledger: Ledger = field(default_factory=Ledger)
    equal_rate: float = 0.25
    scheduled_rate: float = 0.25
    most_hours: float = 48.0
    reply_rate: float = 0.3
    """How many posts to X and Bluesky reply to an earlier post of the account."""
    approval_rate: float = 0.1
    """How many posts wait for the owner's approval."""

    def connect(self, rt: Runtime) -> None:
        for network, played in NETWORKS.items():
            for username in ("demo", "second", "third")[: self.dice.choice([1, 2, 2, 3])]:
                profile_id = played.connect(rt, self.world, username)
                account = select_value(rt.db, "SELECT account_id FROM profile WHERE id = ?", (profile_id,))
                self.ledger.profiles.append(DrawnProfile(profile_id, network, username, account))

    def draw(self, rt: Runtime) -> None:
        """One more post, or one equal to an earlier one."""
        if self.contents.posts and self.dice.random() < self.equal_rate:
            content = self.dice.choice(self.contents.posts)
        else:
            content = self._draw_content()
            self.contents.posts.append(content)
        owner = (content.network, content.username)
        profile = next(one for one in self.ledger.profiles if (one.network, one.username) == owner)
        at = self.draw_time(rt) if self.dice.random() < self.scheduled_rate else None
        options = {**content.options, **self._draw_parent(profile)}
        given = {content.network: options} if options else None
        media = _story(content.network, content.title).make(rt, self.samples)
        try:
            caller = AGENT if self.dice.random() < self.approval_rate else OWNER
            post = accept(rt, profile.id, body=content.body, at=at, media=media, options=given, caller=caller)
        except SocialpubError:
            return  # its profile is no longer connected
        self.ledger.accepted.append(
            DrawnPost(post, content.network, profile.account_id, content.marker, chance=post, first=post)
        )

    def _draw_parent(self, profile: DrawnProfile) -> dict[str, str]:
        account = (profile.network, profile.account_id)
        earlier = [post for post in self.ledger.accepted if (post.network, post.account_id) == account]
        if profile.network not in ("x", "bluesky") or not earlier or self.dice.random() >= self.reply_rate:
            return {}
        return {"replyToPostId": self.dice.choice(earlier[-6:]).id}

    def draw_time(self, rt: Runtime) -> datetime:
        far = self.dice.uniform(0, self.most_hours)
        hours = self.dice.choice([0.05, 1, far] if self.most_hours <= 48 else [0.05, 1, far, far, far])
        return rt.now() + timedelta(hours=hours)

    def draw_edit(self, marker: str) -> tuple[str, str]:
        """Return another text for a post of this number, and its unique marker."""
        self.contents.edits += 1
        version = f"e{self.contents.edits:04}e"
        words = [self.dice.choice(FLAVOURS), version]
        self.dice.shuffle(words)
        return " ".join((marker, *words)), version

    def _draw_content(self) -> Content:
        profile = self.dice.choice(self.ledger.profiles)
        network = NETWORKS[profile.network]
        weights = {name: 0.3 if name == "video in chunks" else 1.0 for name in network.stories}
        title = self.dice.choices(list(weights), list(weights.values()))[0]
        number = f"n{len(self.contents.posts):04}n"
        options = {**network.options(self.world, profile.username), **network.stories[title].options}
        marker = "" if title == "draft" else number  # such a draft sends only its bytes to TikTok
        body = f"{number} {self.dice.choice(FLAVOURS)}"
        return Content(profile.network, profile.username, title, marker, body, options)


def _story(network: str, title: str) -> Story:
    return NETWORKS[network].stories[title]
