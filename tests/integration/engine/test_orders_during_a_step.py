"""Stops, changes and disconnections that come while a step runs: what was ordered last is obeyed."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from socialpub.accounts import profiles
from socialpub.core.errors import FieldError
from socialpub.db.states import State
from socialpub.providers.base import Job, Kind, Outcome, Published
from socialpub.providers.oauth import Tokens
from socialpub.providers.responses import AppRefused, AuthExpired, HttpResponse, NoAnswer, Throttled
from socialpub.publishing.delivery import claim, engine, read_back
from socialpub.publishing.posts import posts
from socialpub.publishing.posts.drafts import Change
from socialpub.runtime import Runtime
from tests.support.appliance import OWNER, accept, message_of, state_of
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.scripted_network import ScriptedNetwork

FILM = (("upload", Kind.PREPARE), ("create_post", Kind.COMMIT))
FILM_ONCE = [name for name, _ in FILM]


@pytest.mark.parametrize("answer", [AppRefused("out of credits"), Throttled("slow", retry_after_seconds=60)])
def test_a_post_stopped_while_its_refused_call_was_on_the_wire_is_never_sent(
    rt: Runtime, network: ScriptedNetwork, profile: str, clock: HandClock, answer: Exception
) -> None:
    post = accept(rt, profile)
    run = network.run

    def stopped_meanwhile(step: str, job: Job) -> Outcome:
        network.run = run  # type: ignore[method-assign]
        rt.write(posts.stop, post)
        raise answer

    network.run = stopped_meanwhile  # type: ignore[method-assign]
    drain(rt)
    assert (state_of(rt, post), message_of(rt, post)) == (State.FAILED, read_back.STOPPED)
    drain(rt, clock)
    assert network.effects == []


class Wire:
    """Notes what is sent, and answers."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def call(self, method: str, url: str, *, gate: Callable[[], None], **_: object) -> HttpResponse:
        gate()
        self.sent.append(url)
        return HttpResponse(201)

    def of(self, _network: str) -> "Wire":
        return self

    def close(self) -> None:
        pass


@pytest.mark.parametrize("order", ["stop", "disconnect"])
def test_an_order_that_comes_while_the_commit_waits_for_its_token_is_obeyed(
    rt: Runtime, network: ScriptedNetwork, profile: str, order: str
) -> None:
    wire = Wire()
    rt.http = wire  # type: ignore[assignment]
    post = accept(rt, profile)
    rt.db.write(lambda tx: tx.update("profile", profile, access_expires_at=tx.stamp))

    def refresh(http: object, refresh_token: str) -> Tokens:
        if order == "stop":
            rt.write(posts.stop, post)
        else:
            rt.write(profiles.disconnect, profile)
        return Tokens("access-1", "refresh-1", 7200)

    def create(step: str, job: Job) -> Outcome:
        job.call("POST", "https://x.example/create")
        return Published("1")

    network.oauth.refresh = refresh  # type: ignore[method-assign]
    network.run = create  # type: ignore[method-assign]
    drain(rt)
    assert wire.sent == []
    assert state_of(rt, post) is State.FAILED
    assert (message_of(rt, post) == read_back.STOPPED) == (order == "stop")


def test_a_refresh_that_nobody_answered_is_not_repeated_for_a_profile_disconnected_meanwhile(
    rt: Runtime, network: ScriptedNetwork, profile: str
) -> None:
    asked: list[str] = []

    def refresh(http: object, refresh_token: str) -> Tokens:
        asked.append(refresh_token)
        rt.write(profiles.disconnect, profile)
        raise NoAnswer("timed out")

    network.oauth.refresh = refresh  # type: ignore[method-assign]
    network.results["create_post"] = [AuthExpired("401")]
    post = accept(rt, profile)
    drain(rt)
    assert asked == ["refresh-0"]
    assert state_of(rt, post) is State.FAILED


def test_a_stopping_worker_begins_no_further_step(rt: Runtime, network: ScriptedNetwork, profile: str) -> None:
    network.steps = ScriptedNetwork(*FILM).steps
    run = network.run

    def told_to_stop(step: str, job: Job) -> Outcome:
        rt.stopping.set()
        return run(step, job)

    network.run = told_to_stop  # type: ignore[method-assign]
    post = accept(rt, profile)
    drain_once(rt)
    assert (network.asked, state_of(rt, post)) == (["upload"], State.QUEUED)
    assert rt.reader.value("SELECT committed_at FROM delivery") is None
    rt.stopping.clear()
    network.run = run  # type: ignore[method-assign]
    drain(rt)
    assert (network.asked, state_of(rt, post)) == (FILM_ONCE, State.PUBLISHED)


def test_a_plan_made_from_what_was_changed_meanwhile_is_not_used(
    rt: Runtime, network: ScriptedNetwork, profile: str, clock: HandClock
) -> None:
    """The change was accepted in the last millisecond before the time, and reaches the disk after the plan was made."""
    post = accept(rt, profile, at=clock.now() + timedelta(seconds=10), options={"x": {"replySettings": "everyone"}})
    delivery = rt.reader.value("SELECT id FROM delivery")
    clock.forward(11)
    candidate = engine.next_due(rt.reader, profile, rt.stamp(), rt.process)
    assert candidate is not None
    preflight = claim.prepare(rt, candidate)
    clock.jump(-2)
    rt.write(posts.edit, post, Change(frozenset({"options"}), options={"x": {"replySetings": "wrong"}}), OWNER)
    clock.jump(2)
    assert rt.write(claim.claim, delivery, preflight) is None
    network.problems = [FieldError(("providerOptions", "x", "replySetings"), "Unknown key.")]
    drain(rt)
    assert (network.asked, state_of(rt, post)) == ([], State.FAILED)


def test_a_post_that_cannot_be_examined_fails_and_lets_the_lane_go_on(
    rt: Runtime, network: ScriptedNetwork, profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = network.check

    def breaks(content: Any, *rest: Any) -> list[FieldError]:
        if content.text == "strange":
            raise RecursionError
        return check(content, *rest)

    monkeypatch.setattr(network, "check", breaks)
    strange, plain = accept(rt, profile, body="strange"), accept(rt, profile, body="plain")
    drain(rt)
    assert (state_of(rt, strange), state_of(rt, plain)) == (State.FAILED, State.PUBLISHED)
    assert "log" in message_of(rt, strange)


def drain_once(rt: Runtime) -> None:
    for delivery_id in engine.due_queues(rt.reader, rt.stamp(), rt.process):
        engine.work(rt, delivery_id)
