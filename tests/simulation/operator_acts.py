"""What operators do meanwhile, and what the appliance does beside publishing, drawn."""

import contextlib
import random
from collections import Counter

from socialpub.accounts import idle_tokens, profiles, revocation
from socialpub.accounts.credentials import Credentials
from socialpub.core.errors import SocialpubError
from socialpub.db import appliance_state
from socialpub.providers.oauth import Identity
from socialpub.publishing import backfill, deliveries, posts
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.simulation.drawn_posts import DrawnPosts, DrawnProfile
from tests.support.appliance import OWNER

FILL_IN, KEEP_ALIVE, REVOKE = "ids filled in", "tokens kept alive", "tokens revoked"
CALLS = (FILL_IN, KEEP_ALIVE, REVOKE)


class OperatorActs:
    def __init__(self, dice: random.Random, world: World, drawn: DrawnPosts, done: Counter[str]) -> None:
        self._dice, self._world, self._drawn, self._done = dice, world, drawn, done
        self._acts = {
            "post": (8.0, drawn.draw),
            "stop": (2.0, self._stop),
            "cancel": (1.0, self._cancel),
            "pause": (0.7, lambda rt: rt.write(deliveries.pause)),
            "resume": (2.0, self.resume),
            "disconnect": (0.3, self._disconnect),
            "connect": (2.0, self._connect_one),
            "token runs out": (1.5, self._expire),
            "access taken back": (0.7, self._take_back),
            FILL_IN: (0.7, backfill.ask),
            KEEP_ALIVE: (0.4, lambda rt: idle_tokens.keep_alive(rt, ())),
            REVOKE: (0.3, revocation.revoke_disconnected),
        }

    def draw(self, rt: Runtime, *, in_a_call: bool = False) -> None:
        """One of them; while a call is on its way, none that calls a network itself."""
        weights = {name: weight for name, (weight, _) in self._acts.items() if not (in_a_call and name in CALLS)}
        name = self._dice.choices(list(weights), list(weights.values()))[0]
        self._done[name] += 1
        self._acts[name][1](rt)

    def connect_all(self, rt: Runtime) -> None:
        """Every account that needs its owner is connected."""
        for profile in self._drawn.profiles:
            if _status(rt, profile) == "reauthRequired":
                self._connect(rt, profile)

    def resume(self, rt: Runtime) -> None:
        if appliance_state.paused_at(rt.reader):
            rt.write(deliveries.resume)

    def _stop(self, rt: Runtime) -> None:
        if self._drawn.accepted:
            post = self._dice.choice(self._drawn.accepted).id
            rt.write(lambda rt, tx: posts.stop(rt, tx, post))

    def _cancel(self, rt: Runtime) -> None:
        scheduled = rt.reader.all("SELECT id FROM post WHERE status = 'scheduled' ORDER BY id")
        if scheduled:
            post = self._dice.choice(scheduled)["id"]
            with contextlib.suppress(SocialpubError):  # it has begun
                rt.write(lambda rt, tx: posts.cancel(rt, tx, post, OWNER))

    def _disconnect(self, rt: Runtime) -> None:
        profile = self._dice.choice(self._drawn.profiles)
        rt.write(profiles.disconnect, profile.id)

    def _connect_one(self, rt: Runtime) -> None:
        needing = [one for one in self._drawn.profiles if _status(rt, one) == "reauthRequired"]
        if needing:
            self._connect(rt, self._dice.choice(needing))

    def _connect(self, rt: Runtime, profile: DrawnProfile) -> None:
        network = self._world.networks[profile.network]
        grant = network.grant(profile.username)  # type: ignore[attr-defined]
        scopes = frozenset(grant["scope"].replace(",", " ").split())
        tokens = Credentials(grant["accessToken"], grant.get("refreshToken"), None, None, scopes)
        identity = Identity(profile.account_id, profile.username, profile.username, None)
        rt.write(profiles.save, rt.providers[profile.network], identity, tokens, None)

    def _expire(self, rt: Runtime) -> None:
        profile = self._dice.choice(self._drawn.profiles)
        self._world.networks[profile.network].tokens.expire(profile.account_id)

    def _take_back(self, rt: Runtime) -> None:
        profile = self._dice.choice(self._drawn.profiles)
        self._world.networks[profile.network].remove_access(profile.username)  # type: ignore[attr-defined]


def _status(rt: Runtime, profile: DrawnProfile) -> str:
    return str(rt.reader.value("SELECT status FROM profile WHERE id = ?", (profile.id,)))
