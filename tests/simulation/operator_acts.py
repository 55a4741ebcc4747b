"""What operators do meanwhile, and what the appliance does beside publishing, drawn."""

import contextlib
import random
from collections import Counter
from collections.abc import Callable, Iterable

from socialpub.accounts import connect, profiles, upkeep
from socialpub.accounts.tokens import Credentials
from socialpub.core.errors import SocialpubError
from socialpub.db import appliance_state
from socialpub.providers.auth import Identity
from socialpub.publishing import backfill
from socialpub.publishing.delivery import resume
from socialpub.publishing.posts import approvals, posts, retries
from socialpub.publishing.posts.drafts import Draft
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.simulation.drawn_posts import DrawnPosts
from tests.simulation.ledger import DrawnPost, DrawnProfile, Kind
from tests.support.appliance import OWNER, approve
from tests.support.select import select_all, select_value

FILL_IN, KEEP_ALIVE, REVOKE, READ_CARDS = "ids filled in", "tokens kept alive", "tokens revoked", "cards read"
CALLS = (FILL_IN, KEEP_ALIVE, REVOKE, READ_CARDS)


class OperatorActs:
    """The acts of one installation's owner. `done` counts them."""

    def __init__(self, dice: random.Random, world: World, drawn: DrawnPosts, done: Counter[str]) -> None:
        self._dice, self._world, self._drawn, self.done = dice, world, drawn, done
        self._acts: dict[str, tuple[float, Callable[[Runtime], object]]] = {
            "post": (8.0, drawn.draw),
            "stop": (2.0, self._stop),
            "cancel": (1.0, self._cancel),
            "edit": (2.0, self._edit),
            "publish now": (1.5, self._publish_now),
            "reschedule": (1.0, self._reschedule),
            "retry": (3.0, self._retry),
            "approve": (3.0, self._approve),
            "retry unknown": (1.0, lambda rt: self._retry(rt, include_unknown=True)),
            "pause": (0.7, lambda rt: rt.write(resume.pause)),
            "resume": (2.0, self.resume),
            "disconnect": (0.3, self._disconnect),
            "reconnect": (0.5, self._reconnect),
            "connect": (2.0, self._connect_one),
            "token runs out": (1.5, self._expire),
            "access taken back": (0.7, self._take_back),
            READ_CARDS: (1.0, approvals.read_cards),
            FILL_IN: (0.7, backfill.fill_in_missing),
            KEEP_ALIVE: (0.4, lambda rt: upkeep.renew_idle_tokens(rt, ())),
            REVOKE: (0.3, upkeep.revoke_disconnected),
        }

    def draw(self, rt: Runtime, *, in_a_call: bool = False) -> None:
        """One of them; while a call is on its way, none that calls a network itself."""
        self._draw(rt, {name: weight for name, (weight, _) in self._acts.items() if not (in_a_call and name in CALLS)})

    def decide(self, rt: Runtime) -> None:
        """One of those with which an owner decides about posts; around a restore they come close to each other."""
        self._draw(rt, DECISIONS)

    def decide_about_subject(self, rt: Runtime) -> None:
        """What an owner does to the post that they think of most: publish it early, change it, or try it again."""
        subject = self._drawn.ledger.subject
        status = select_value(rt.db, "SELECT status FROM post WHERE id = ?", (subject,))
        weights = {"publish now": 4.0, "edit": 2.0, "reschedule": 1.0}
        self._draw(rt, weights if status == "scheduled" else {"retry": 1.0})

    def _draw(self, rt: Runtime, weights: dict[str, float]) -> None:
        name = self._dice.choices(list(weights), list(weights.values()))[0]
        self.done[name] += 1
        self._acts[name][1](rt)

    def connect_all(self, rt: Runtime) -> None:
        """Every account that needs its owner is connected."""
        for profile in list(self._drawn.ledger.profiles):
            if _status(rt, profile) == "reauthRequired":
                self._connect(rt, profile)

    def resume(self, rt: Runtime) -> None:
        if appliance_state.paused_at(rt.db):
            rt.write(resume.resume)

    # --- posts -------------------------------------------------------------------------------------------------------

    def _stop(self, rt: Runtime) -> None:
        if self._drawn.ledger.accepted:
            post = self._dice.choice(self._drawn.ledger.accepted).id
            rt.write(lambda rt, tx: posts.stop(rt, tx, post))

    def _cancel(self, rt: Runtime) -> None:
        if (post := self._one_scheduled(rt)) is not None:
            with contextlib.suppress(SocialpubError):  # it has begun
                rt.write(posts.cancel, post.id, OWNER)

    def _edit(self, rt: Runtime) -> None:
        post = self._one_scheduled(rt)
        if post is None or not post.marker:
            return
        body, version = self._drawn.draw_edit(post.marker)
        if self._dice.random() < 0.1:
            body += " too long" * 300
        if self._change(rt, post, Draft.change(body=body)):
            self._drawn.ledger.note(Kind.EDITED, post.id, version)

    def _approve(self, rt: Runtime) -> None:
        rows = select_all(rt.db, "SELECT post_id FROM delivery d JOIN stored_wait w ON w.subject = d.id "
                             "WHERE w.reason = 'approval'")  # fmt: skip
        post = self._one_of(row["post_id"] for row in rows)
        if post is not None:
            with contextlib.suppress(SocialpubError):  # too late, or its card is not read
                self.done["approved"] += approve(rt, post.id)

    def _publish_now(self, rt: Runtime) -> None:
        self._move(rt, Draft.change(scheduled_at=None))

    def _reschedule(self, rt: Runtime) -> None:
        self._move(rt, Draft.change(scheduled_at=self._drawn.draw_time(rt)))

    def _move(self, rt: Runtime, change: Draft) -> None:
        post = self._one_scheduled(rt)
        if post is not None and self._change(rt, post, change):
            self._drawn.ledger.note(Kind.MOVED, post.id)

    def _change(self, rt: Runtime, post: DrawnPost, change: Draft) -> bool:
        try:
            rt.write(posts.edit, post.id, change, OWNER)
        except SocialpubError:
            return False  # its time has come
        self.done["changed"] += 1
        return True

    def _one_scheduled(self, rt: Runtime) -> DrawnPost | None:
        rows = select_all(rt.db, "SELECT id FROM post WHERE status = 'scheduled'")
        return self._one_of(row["id"] for row in rows)

    def _retry(self, rt: Runtime, include_unknown: bool = False) -> None:
        rows = select_all(rt.db, "SELECT post_id FROM delivery WHERE state IN ('failed', 'unconfirmed')")
        post = self._one_of(row["post_id"] for row in rows)
        if post is None:
            return
        of_unknown = bool(retries.load_outlook(rt.db, post.id).unknown)
        try:
            again = rt.write(retries.retry, post.id, OWNER, include_unknown)
        except SocialpubError:
            return  # another retry of it is on its way, or published it
        self.done["retried"] += 1
        ledger = self._drawn.ledger
        ledger.note(Kind.RETRIED, post.id)
        # A retry of an unknown outcome may publish the post again.
        chance = again if of_unknown else post.chance
        ledger.accepted.append(DrawnPost(again, post.network, post.account_id, post.marker, chance, post.first))
        if post.id in ledger.versions:
            ledger.versions[again] = ledger.versions[post.id]

    def _one_of(self, ids: Iterable[str]) -> DrawnPost | None:
        among = set(ids)
        found = [post for post in self._drawn.ledger.accepted if post.id in among]
        if not found:
            return None
        subject = [post for post in found if post.id == self._drawn.ledger.subject]
        return subject[0] if subject and self._dice.random() < 0.8 else self._dice.choice(found)

    # --- accounts ----------------------------------------------------------------------------------------------------

    def _disconnect(self, rt: Runtime) -> None:
        profile = self._dice.choice(self._drawn.ledger.profiles)
        rt.write(profiles.disconnect, profile.id)

    def _reconnect(self, rt: Runtime) -> None:
        """An account that was disconnected becomes a new profile."""
        self._connect_one_of(rt, "disconnected")

    def _connect_one(self, rt: Runtime) -> None:
        self._connect_one_of(rt, "reauthRequired")

    def _connect_one_of(self, rt: Runtime, status: str) -> None:
        found = [one for one in self._drawn.ledger.profiles if _status(rt, one) == status]
        if found:
            self._connect(rt, self._dice.choice(found))

    def _connect(self, rt: Runtime, profile: DrawnProfile) -> None:
        network = self._world.networks[profile.network]
        grant = network.grant(profile.username)  # type: ignore[attr-defined]
        scopes = frozenset(grant["scope"].replace(",", " ").split())
        tokens = Credentials(grant["accessToken"], grant.get("refreshToken"), None, None, scopes)
        identity = Identity(profile.account_id, profile.username, profile.username, None)
        made = rt.write(connect.store, rt.providers[profile.network], identity, tokens, None)
        known = self._drawn.ledger.profiles
        known[known.index(profile)] = DrawnProfile(
            made.profile_id, profile.network, profile.username, profile.account_id
        )

    def _expire(self, rt: Runtime) -> None:
        profile = self._dice.choice(self._drawn.ledger.profiles)
        self._world.networks[profile.network].tokens.expire(profile.account_id)

    def _take_back(self, rt: Runtime) -> None:
        profile = self._dice.choice(self._drawn.ledger.profiles)
        self._world.networks[profile.network].remove_access(profile.username)  # type: ignore[attr-defined]


DECISIONS = {
    "post": 4.0, "approve": 2.0, "publish now": 5.0, "edit": 3.0, "reschedule": 1.5, "cancel": 0.5, "stop": 1.0,
    "retry": 5.0, "retry unknown": 1.0, "disconnect": 0.3, "reconnect": 0.7, "connect": 4.0,
}  # fmt: skip
"""How often each of them."""


def _status(rt: Runtime, profile: DrawnProfile) -> str:
    return str(select_value(rt.db, "SELECT status FROM profile WHERE id = ?", (profile.id,)))
