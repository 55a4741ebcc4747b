"""Somebody who does everything that the API allows, in any order, while the worker works, dies and is paused."""

import shutil
import tempfile
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from socialpub.accounts import api_keys, connect
from socialpub.accounts.tokens import Credentials
from socialpub.core.clock import parse, stamp
from socialpub.core.errors import Conflict
from socialpub.core.settings.schema import RateLimitSection
from socialpub.db import appliance_state
from socialpub.providers.auth import Identity
from socialpub.providers.base import Kind
from socialpub.publishing import retention
from socialpub.publishing.delivery import resume
from socialpub.publishing.posts import posts
from socialpub.runtime import Runtime
from socialpub.web.http.app import create_app
from tests.integration.api.client import Client
from tests.integration.states import model
from tests.integration.states.model import ModelPost, ModelProfile
from tests.integration.states.network import Fate, RememberingNetwork
from tests.support.appliance import add_profile, approve, open_appliance
from tests.support.drain import DAY, drain
from tests.support.hand_clock import HandClock
from tests.support.oracle import find_row_contradictions
from tests.support.sandbox_http import ProcessKilled

NETWORKS = {"x": Kind.COMMIT, "pinterest": Kind.REPEATABLE}
"""The kinds of their calls that publish."""
SPANS = (0.0, 40.0, 90.0, 700.0, 4 * 3600.0)
"""Seconds: around the looks at an account, and the waits that networks name."""
MOST_DEATHS = 200

ACTS = {
    "create": 5,
    "repeat": 1,
    "retry": 2,
    "edit": 2,
    "reschedule": 2,
    "publish_now": 1,
    "cancel": 3,
    "approve": 3,
    "stop": 1,
    "meet": 4,
    "work": 4,
    "no_work": 4,
    "set_clock": 1,
    "die": 1,
    "pause": 1,
    "resume": 2,
    "clean_up": 1,
    "connect": 1,
    "disconnect": 1,
}
"""How often each is drawn. Rules of hypothesis's own would be left out by whole sets, and most orders never tried."""


class StateMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="socialpub-states-"))
        self.clock = HandClock()
        self.networks = {name: RememberingNetwork(name, self._check_approval, kind) for name, kind in NETWORKS.items()}
        self.known: dict[str, ModelPost] = {}
        self.families: list[set[str]] = []
        """By number: every text that its posts ever had."""
        self.profiles: list[ModelProfile] = []
        self.requests: list[tuple[str, dict[str, Any], str, datetime]] = []
        """Creates with an idempotency key: the key, the body, the post's id, when it was asked."""
        self.texts = self.deaths = 0
        self.rt = self._open()
        self.key = self.rt.write(api_keys.create, "states")
        self.agent = self.rt.write(api_keys.create, "agent", approval=True)
        self.unapproved: list[str] = []
        """The calls that no approval allowed. The engine catches what a network raises."""
        self.client = Client(create_app(self.rt), self.key)

    def _open(self) -> Runtime:
        plenty = RateLimitSection(requests_per_minute=10**6)
        return open_appliance(self.folder, self.clock, providers=self.networks, rate_limit=plenty)

    def die(self) -> None:
        """As by SIGKILL: the lock is free, its file stays, and another process begins."""
        self.deaths += 1
        assert self.deaths < MOST_DEATHS, "it dies for ever"
        self.client.__exit__()
        self.rt.process._lock.release()
        self.rt.db.stop()
        self.rt = self._open()
        self.client = Client(create_app(self.rt), self.key)

    def teardown(self) -> None:
        try:
            self._come_to_rest()
        finally:
            self.client.__exit__()
            self.rt.close()
            shutil.rmtree(self.folder)

    @rule(act=st.sampled_from([act for act, weight in ACTS.items() for _ in range(weight)]), data=st.data())
    def do(self, act: str, data: st.DataObject) -> None:
        self.draw = data.draw
        getattr(self, act)()

    @property
    def now(self) -> datetime:
        return self.clock.now()

    # --- accounts -----------------------------------------------------------------------------------------------------

    @initialize()
    def accounts(self) -> None:
        for name in NETWORKS:
            profile_id = add_profile(self.rt, name, f"account-{name}")
            self.profiles.append(ModelProfile(profile_id, name, f"account-{name}"))
        for which, ahead in (((0,), None), ((0, 1), 30.0), ((1,), 5 * DAY)):
            self._create(which, ahead, self.key)

    def connect(self) -> None:
        self._connect(self.draw(st.integers(0, 1)))

    def _connect(self, number: int) -> None:
        """A new profile where the account was disconnected, else the same one, active again."""
        profile = self.profiles[number]
        tokens = Credentials("access-new", "refresh-new", None, None, frozenset())
        identity = Identity(profile.account_id, "demo", "Demo", None)
        found = self.rt.write(connect.store, self.networks[profile.provider], identity, tokens, None).profile_id
        assert (found != profile.id) == profile.disconnected
        if profile.disconnected:
            self.profiles[number] = ModelProfile(found, profile.provider, profile.account_id)

    def disconnect(self) -> None:
        number = self.draw(st.integers(0, 1))
        assert self.client.send("POST", f"/profiles/{self.profiles[number].id}/disconnect").status == 204
        self.profiles[number].disconnected = True

    # --- making posts -------------------------------------------------------------------------------------------------

    def create(self) -> None:
        if self.draw(st.integers(0, 3)) == 0:
            self._create_with_a_key(self.draw(st.integers(0, 1)))
            return
        which = self.draw(st.sampled_from([(0,), (1,), (0, 1)]))
        self._create(which, self.draw(st.sampled_from([None, 30.0, 30.0, 600.0, 5 * DAY])), self._key())

    def _create(self, which: tuple[int, ...], ahead: float | None, key: str) -> None:
        targets = [self.profiles[number] for number in which]
        body = self._body(targets)
        if ahead is not None:
            body["post"]["scheduledAt"] = stamp(self.now + timedelta(seconds=ahead))
        answer = self.client.send("POST", "/posts", body, key=key)
        gone = [["profiles", at] for at, profile in enumerate(targets) if profile.disconnected]
        if gone:
            assert (answer.status, answer.paths()) == (400, gone)
        else:
            self._accepted(answer, targets, key=key)

    def _create_with_a_key(self, number: int) -> None:
        profile = self.profiles[number]
        if profile.disconnected:
            return
        body = self._body([profile])
        key = f"key-{self.texts}"
        post_id = self._accepted(self.client.send("POST", "/posts", body, idempotency_key=key), [profile])
        self.requests.append((key, body, post_id, self.now))

    def repeat(self) -> None:
        """Repeat a request whose answer was lost."""
        if not self.requests:
            return
        key, body, post_id, asked_at = self.draw(st.sampled_from(self.requests))
        if not timedelta(0) <= self.now - asked_at < timedelta(hours=23):
            return
        answer = self.client.send("POST", "/posts", body, idempotency_key=key)
        assert (answer.status, answer.data["id"]) == (201, post_id)
        assert answer.headers["idempotency-replayed"] == "true"

    def retry(self) -> None:
        failed = [
            one for one in self.known.values() if any(each["status"] == "failed" for each in one.told["deliveries"])
        ]
        post = self.draw(st.sampled_from(failed)) if failed and self.draw(st.booleans()) else self._one()
        include_unknown, key = self.draw(st.booleans()), self._key()
        family = [each for each in self.known.values() if each.family == post.family]
        targets = model.to_retry(post, family, include_unknown)
        answer = self.client.send("POST", f"/posts/{post.id}/retry", {"includeUnknown": include_unknown}, key=key)
        if not targets:
            assert answer.status == 409
        elif any(profile.disconnected for profile in targets):
            assert (answer.status, answer.paths()) == (400, [["profiles"]])
        else:
            self._accepted(answer, targets, post.family, key)

    def _one(self) -> ModelPost:
        """One of the late posts."""
        return self.draw(st.sampled_from(list(self.known.values())[-5:]))

    def _body(self, targets: list[ModelProfile]) -> dict[str, Any]:
        self.texts += 1
        return {"post": {"body": f"Text {self.texts}"}, "profiles": [profile.id for profile in targets]}

    def _key(self) -> str:
        """The key of the next request: that of the agent, whose posts need approval, or the other one."""
        return self.agent if self.draw(st.integers(0, 2)) == 0 else self.key

    def _accepted(self, answer: Any, targets: list[ModelProfile], family: int | None = None, key: str = "") -> str:
        assert answer.status == 201, answer.body
        told = answer.data
        if family is None:
            self.families.append({told["body"]})
            family = len(self.families) - 1
        at = parse(told["scheduledAt"]) if "scheduledAt" in told else None
        post = ModelPost(told["id"], told["body"], targets, at, family, may_have_begun=at is None)
        post.needs_approval = post.is_of_agent = key == self.agent
        self.known[post.id] = post
        return post.id

    # --- changing them ------------------------------------------------------------------------------------------------

    def edit(self) -> None:
        post_id = self._one().id
        self.texts += 1
        text = f"Text {self.texts}"
        if self._patched(post_id, {"post": {"body": text}}):
            self.known[post_id].body = text
            self.families[self.known[post_id].family].add(text)

    def reschedule(self) -> None:
        post_id = self._one().id
        at = self.now + timedelta(seconds=60)
        if self._patched(post_id, {"post": {"scheduledAt": stamp(at)}}):
            self.known[post_id].scheduled_at = parse(stamp(at))

    def publish_now(self) -> None:
        post_id = self._one().id
        if self._patched(post_id, {"post": {"scheduledAt": None}}):
            self.known[post_id].scheduled_at = None
            self.known[post_id].may_have_begun = True

    def _patched(self, post_id: str, change: dict[str, Any]) -> bool:
        post, key = self.known[post_id], self._key()
        may, is_foreign = post.may_be_changed(self.now), key == self.agent and not post.is_of_agent
        answer = self.client.send("PATCH", f"/posts/{post_id}", change, key=key)
        assert answer.status == (403 if is_foreign else 200 if may else 409), answer.body
        is_new = post.scheduled_at is None or change["post"].get("scheduledAt") != stamp(post.scheduled_at)
        post.needs_approval |= may and is_new and key == self.agent and not is_foreign
        return may and not is_foreign

    def cancel(self) -> None:
        post_id = self._one().id
        may = self.known[post_id].may_be_canceled()
        answer = self.client.send("POST", f"/posts/{post_id}/cancel")
        assert answer.status == (200 if may else 409), answer.body
        self.known[post_id].canceled |= may

    def approve(self) -> None:
        """The owner's: the present version may be sent, if the post has not ended and is not too late."""
        post = self._one()
        try:
            waited = approve(self.rt, post.id)
        except Conflict:
            assert post.status in ("settled", "canceled") or post.needs_approval, "nothing hinders this approval"
        else:
            connected = any(not profile.disconnected for profile in post.profiles)  # otherwise, the post fails
            assert waited == (post.needs_approval and post.status in ("scheduled", "pending") and connected), post
            post.needs_approval = False

    def _check_approval(self, account_id: str, text: str) -> None:
        if not model.may_be_sent(list(self.known.values()), account_id, text):
            self.unapproved.append(f"{account_id}: {text}")

    def stop(self) -> None:
        """The owner's: what is scheduled is canceled, of the rest no more is sent."""
        post_id = self._one().id
        self.known[post_id].canceled |= self.known[post_id].may_be_canceled()
        self.rt.write(posts.stop, post_id)

    # --- what happens meanwhile ---------------------------------------------------------------------------------------

    def meet(self) -> None:
        """What becomes of the next calls to this network."""
        network = self.networks[self.draw(st.sampled_from([*NETWORKS]))]
        network.fates.extend(self.draw(st.lists(st.sampled_from(Fate), min_size=1, max_size=4)))

    def work(self) -> None:
        self._work(self.draw(st.sampled_from(SPANS)))

    def _work(self, seconds: float) -> None:
        """Run the worker for some seconds."""
        until = self.clock.monotonic() + seconds
        while True:
            try:
                drain(self.rt, self.clock, within=max(0.0, until - self.clock.monotonic()))
                break
            except ProcessKilled:
                self.die()
        self.clock.forward(max(0.0, until - self.clock.monotonic()))
        self._note_begun()

    def no_work(self) -> None:
        """Let the time pass without a worker."""
        self.clock.forward(self.draw(st.sampled_from([*SPANS, 1.5 * DAY])))

    def set_clock(self) -> None:
        self.clock.jump(self.draw(st.sampled_from([-7200.0, 3 * 3600.0])))
        self.rt.db.follow_clock()

    def pause(self) -> None:
        self.rt.write(resume.pause)

    def resume(self) -> None:
        if appliance_state.paused_at(self.rt.db):
            self.rt.write(resume.end_pause)

    def clean_up(self) -> None:
        retention.remove_unused_media(self.rt)

    def _note_begun(self) -> None:
        for post in self.known.values():
            post.may_have_begun |= post.scheduled_at is not None and post.scheduled_at <= self.now

    # --- what must hold -----------------------------------------------------------------------------------------------

    @invariant()
    def all_that_is_told_is_true(self) -> None:
        assert self.unapproved == []
        self._look_at_posts()
        self._look_at_lists_and_log()

    def _look_at_posts(self) -> None:
        for post in self.known.values():
            answer = self.client.send("GET", f"/posts/{post.id}")
            assert answer.status == 200, answer.body
            found = list(model.untruths(post, answer.data, self.now))
            assert not found, (post, answer.data, found)
            post.told = answer.data
        made = self._made()
        for number, texts in enumerate(self.families):
            family = [post for post in self.known.values() if post.family == number]
            found = list(model.contradictions(family, texts, made))
            assert not found, (family, found)

    def _look_at_lists_and_log(self) -> None:
        told = [post.told for post in self.known.values()]
        by_status = Counter(post["status"] for post in told)
        for status in ("pending", "scheduled", "settled", "canceled"):
            page = self.client.send("GET", f"/posts?status={status}&perPage=100").json()
            assert page["pagination"]["total"] == by_status[status], status
            assert {post["id"] for post in page["data"]} == {post["id"] for post in told if post["status"] == status}
            made_at = [post["createdAt"] for post in page["data"]]
            assert made_at == sorted(made_at, reverse=True)
        entries: dict[str, list[str]] = {}
        for entry in reversed(self._log()):
            entries.setdefault(entry["postId"], []).append(entry["type"])
        for post in told:
            ends = [one["status"] for one in post["deliveries"] if one["status"] != "pending"]
            assert Counter(entries[post["id"]]) == Counter(["pending"] * len(post["deliveries"]) + ends)
        assert not list(find_row_contradictions(self.rt.db.execute_sql))

    def _made(self) -> Counter[tuple[str, str]]:
        return sum((network.made() for network in self.networks.values()), Counter())

    def _log(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            page = self.client.send("GET", f"/publish/logs?limit=100&offset={len(found)}").data
            found += page
            if len(page) < 100:
                return found

    def _come_to_rest(self) -> None:
        """Trouble is over, accounts are connected: everything comes to an end, and the ends are true."""
        for network in self.networks.values():
            network.fates.clear()
            network.auth.answers.clear()
        self.resume()
        for number in range(len(self.profiles)):
            self._connect(number)
        self._work(9 * DAY)
        self.all_that_is_told_is_true()
        assert {post.status for post in self.known.values()} <= {"settled", "canceled"}
