"""The grid of steps and faults: the faults of one call, and the checks of the post afterwards.

In a cell, a post is accepted, one call of one step has one fault, and time passes until nothing is due. In every cell,
the network gets at most one post, and the delivery reports the true outcome exactly once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import httpx2
import pytest

from socialpub.core.settings.schema import PublishingSection
from socialpub.db.states import State
from socialpub.providers.http import Http
from socialpub.publishing.posts.drafts import DraftMedia
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.support.appliance import accept, message_of, open_appliance, state_of
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.oracle import Stated, find_row_contradictions, find_untruths
from tests.support.sandbox_http import FaultTransport, ProcessKilled, providers_of_the_sandbox
from tests.support.select import select_one

BODY = "Once and never twice"
BASE_URL = "https://social.example.org"
PATIENCE = timedelta(hours=26)
"""Longer than a day, the longest wait of a network, and short for fast tests."""
HOURS = timedelta(hours=5)
"""The same without a wait of a day, with a fifth of the steps."""
WAITS_OF_A_DAY = ("the app's cap", "the account's cap", "too many drafts")
FOR_EVER = 10**6


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment of a cell. `samples` keeps the samples between cells."""

    rt: Runtime
    world: World
    transport: FaultTransport
    clock: HandClock
    folder: Path
    samples: Path


def hours_or_a_day(request: pytest.FixtureRequest) -> timedelta:
    cell = getattr(request.node, "callspec", None)
    return PATIENCE if cell is not None and cell.params.get("fault") in WAITS_OF_A_DAY else HOURS


def grid_appliance(folder: Path, clock: HandClock, http: Http, give_up_after: timedelta = PATIENCE) -> Runtime:
    publishing = PublishingSection(give_up_after=give_up_after)
    networks = providers_of_the_sandbox(bluesky=True)
    return open_appliance(folder, clock, http=http, networks=networks, base_url=BASE_URL, publishing=publishing)


@contextmanager
def successor_of(env: Environment) -> Iterator[Runtime]:
    rt = grid_appliance(env.folder, env.clock, env.rt.http)
    try:
        yield rt
    finally:
        rt.db.stop()
        rt.process.close()


@dataclass(frozen=True, slots=True)
class Call:
    """A call of one endpoint: `upload#2` is the second of a delivery."""

    endpoint: str
    skip: int = 0

    @classmethod
    def of(cls, written: str) -> "Call":
        endpoint, _, number = written.partition("#")
        return cls(endpoint, int(number or 1) - 1)


def let_worker_die(env: Environment, call: Call, moment: str) -> None:
    met = 0

    def dies(request: httpx2.Request) -> None:
        nonlocal met
        if env.transport.endpoint_of(request) == call.endpoint:
            met += 1
            if met == call.skip + 1:
                env.transport.before_call = env.transport.after_call = None
                raise ProcessKilled

    setattr(env.transport, f"{moment}_call", dies)


class Place(StrEnum):
    BEFORE = "before the commit"
    COMMIT = "the commit"
    AFTER = "after the commit"


class Means(StrEnum):
    """The effect of a fault on its call."""

    PASSES = "passes"
    """The call certainly had no effect, and the next call succeeds."""

    OPEN = "leaves it open"
    """The call may have had its effect, and the next call shows it."""

    OPEN_THRICE = "leaves it open three times"
    REFUSED = "refused"
    NEVER_ALLOWED = "refused as long as the delivery lasts"
    NEVER_ANSWERED = "never answered"


@dataclass(frozen=True, slots=True)
class Fault:
    means: Means
    apply: Callable[[Environment, str, Call], None]
    """(env, network, call): apply the fault to that call from now on."""


def scripted(means: Means, verb: str, *args: Any, times: float = 1, **kwargs: Any) -> Fault:
    def apply(env: Environment, network: str, call: Call) -> None:
        upcoming = env.world.networks[network].next(call.endpoint).skipping(call.skip)
        getattr(upcoming, verb)(*args, **kwargs).times(times)

    return Fault(means, apply)


def unreachable(means: Means, times: int) -> Fault:
    def apply(env: Environment, network: str, call: Call) -> None:
        left, met = times, 0

        def broken(request: httpx2.Request) -> None:
            nonlocal left, met
            if env.transport.endpoint_of(request) != call.endpoint:
                return
            met += 1
            if met > call.skip and left:
                left -= 1
                raise httpx2.ConnectError("no route to host", request=request)

        env.transport.before_call = broken

    return Fault(means, apply)


PAGES = {
    f"page with {status}": scripted(Means.OPEN, "fails_with", status, html=True)
    for status in (400, 401, 403, 404, 407, 429, 503)
} | {f"nothing with {status}": scripted(Means.OPEN, "fails_with", status, "") for status in (400, 401, 403, 404, 429)}
"""A proxy answers instead of the network, which counts as no answer."""

FAULTS: dict[str, Fault] = {
    "never left": unreachable(Means.PASSES, 2),
    "never leaves": unreachable(Means.NEVER_ALLOWED, FOR_EVER),
    "429 with a time": scripted(Means.PASSES, "rate_limited", 600),
    "429 with retry-after": scripted(Means.PASSES, "rate_limited", 120, "retry-after"),
    "429 without a time": scripted(Means.PASSES, "rate_limited", 60, "nothing"),
    "429 for ever": scripted(Means.NEVER_ALLOWED, "rate_limited", 7200, "retry-after", times=FOR_EVER),
    "401 once": scripted(Means.PASSES, "unauthorized"),
    "401 for ever": scripted(Means.REFUSED, "unauthorized", times=FOR_EVER),
    "400": scripted(Means.REFUSED, "fails_with", 400),
    "403": scripted(Means.REFUSED, "fails_with", 403),
    "404": scripted(Means.REFUSED, "fails_with", 404),
    "413": scripted(Means.REFUSED, "fails_with", 413, ""),
    "500 before": scripted(Means.OPEN, "fails_with", 500),
    "500 after": scripted(Means.OPEN, "fails_with", 500, after_effect=True),
    "503 before": scripted(Means.OPEN, "fails_with", 503),
    "503 after": scripted(Means.OPEN, "fails_with", 503, after_effect=True),
    "503 three times": scripted(Means.OPEN_THRICE, "fails_with", 503, times=3),
    "503 for ever": scripted(Means.NEVER_ANSWERED, "fails_with", 503, times=FOR_EVER),
    "HTML before": scripted(Means.OPEN, "fails_with", 502, html=True),
    "HTML after": scripted(Means.OPEN, "fails_with", 502, html=True, after_effect=True),
    "unreadable 2xx before": scripted(Means.OPEN, "answers_garbage", after_effect=False),
    "unreadable 2xx after": scripted(Means.OPEN, "answers_garbage"),
    "unreadable 2xx three times": scripted(Means.OPEN_THRICE, "answers_garbage", after_effect=False, times=3),
    "time-out before": scripted(Means.OPEN, "times_out_before_effect"),
    "time-out after": scripted(Means.OPEN, "times_out_after_effect"),
    "time-out after, three times": scripted(Means.OPEN, "times_out_after_effect", times=3),
    "time-out for ever": scripted(Means.NEVER_ANSWERED, "times_out_before_effect", times=FOR_EVER),
    "cut before": scripted(Means.OPEN, "drops_connection_before_effect"),
    "cut after": scripted(Means.OPEN, "drops_connection_after_effect"),
    "cut three times": scripted(Means.OPEN_THRICE, "drops_connection_before_effect", times=3),
    **PAGES,
}

ONE_FAULT_PER_MEANING = (
    "429 with a time", "503 before", "time-out after", "503 three times", "400", "429 for ever", "time-out for ever",
)  # fmt: skip
"""For all stories but one of each network. A fault with an unknown outcome is there twice, without and with its effect.
The engine's own table covers every fault (`tests/integration/engine/test_table.py`)."""

COMES_TO: Mapping[tuple[Means, Place], State] = {
    (Means.PASSES, Place.BEFORE): State.PUBLISHED,
    (Means.PASSES, Place.COMMIT): State.PUBLISHED,
    (Means.PASSES, Place.AFTER): State.PUBLISHED,
    (Means.OPEN, Place.BEFORE): State.PUBLISHED,
    (Means.OPEN, Place.COMMIT): State.PUBLISHED,
    (Means.OPEN, Place.AFTER): State.PUBLISHED,
    (Means.OPEN_THRICE, Place.BEFORE): State.PUBLISHED,
    # Read back, sent again, read back again, without a third call.
    (Means.OPEN_THRICE, Place.COMMIT): State.UNCONFIRMED,
    (Means.OPEN_THRICE, Place.AFTER): State.PUBLISHED,
    (Means.REFUSED, Place.BEFORE): State.FAILED,
    (Means.REFUSED, Place.COMMIT): State.FAILED,
    # A refused poll is no verdict.
    (Means.REFUSED, Place.AFTER): State.UNCONFIRMED,
    (Means.NEVER_ALLOWED, Place.BEFORE): State.FAILED,
    (Means.NEVER_ALLOWED, Place.COMMIT): State.FAILED,
    (Means.NEVER_ALLOWED, Place.AFTER): State.UNCONFIRMED,
    (Means.NEVER_ANSWERED, Place.BEFORE): State.FAILED,
    (Means.NEVER_ANSWERED, Place.COMMIT): State.UNCONFIRMED,
    (Means.NEVER_ANSWERED, Place.AFTER): State.UNCONFIRMED,
}
"""The default outcomes. A story names the exceptions of its network."""

COMES_TO_REPEATED: Mapping[tuple[Means, Place], State] = {
    (Means.OPEN_THRICE, Place.COMMIT): State.PUBLISHED,
    # The server answers the read-backs after the deadline.
    (Means.NEVER_ANSWERED, Place.COMMIT): State.FAILED,
}
"""The other outcomes of a repeatable commit."""


@dataclass(frozen=True)
class Story:
    """A kind of post, and its calls in order."""

    make: Callable[[Runtime, Path], tuple[DraftMedia, ...]]
    before: tuple[str, ...]
    commit: str
    after: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    read_back_by: str | None = None
    """The call that reads the commit back; None: the network has none."""
    every_fault: bool = False
    """One story of each network has all shared faults, the others one fault for each meaning."""
    own: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The network's own faults, by call."""
    otherwise: Mapping[str, Mapping[str, State]] = field(default_factory=dict)
    """Other outcomes than the default, by call and fault."""
    under: Callable[[], AbstractContextManager[Any]] = nullcontext
    """Changes of the settings during the story."""

    @property
    def calls(self) -> tuple[str, ...]:
        return (*self.before, self.commit, *self.after)

    def place_of(self, call: str) -> Place:
        return Place.COMMIT if call == self.commit else Place.BEFORE if call in self.before else Place.AFTER


@dataclass(frozen=True)
class Network:
    """One network of the grid."""

    name: str
    stories: Mapping[str, Story]
    connect: Callable[..., str]
    """(rt, world, username, **grant): the id of a profile."""
    made: Callable[[World], list[str]]
    """Return the ids of all visible posts with `BODY`."""
    faults: Mapping[str, Fault] = field(default_factory=dict)
    """The network's own faults."""
    options: Callable[[World, str], Mapping[str, Any]] = lambda _world, _username: {}
    """The options of every post of this account."""
    token_call: str = "token"
    """The call that renews tokens."""
    has_request_ids: bool = True
    is_repeatable: bool = False
    """Whether the repetition of a commit cannot create a second post."""

    def fault(self, name: str) -> Fault:
        return self.faults.get(name) or FAULTS[name]

    def cells(self) -> Iterator["Cell"]:
        for title, story in self.stories.items():
            for call in story.calls:
                for fault in (*(FAULTS if story.every_fault else ONE_FAULT_PER_MEANING), *story.own.get(call, ())):
                    yield self.name, title, call, fault

    def pairwise(self) -> Iterator["Cell"]:
        classes, own_faults, known = cycle(ONE_FAULT_PER_MEANING), set(self.faults), set(self.cells())
        for title, story in self.stories.items():
            for call in story.calls:
                if (self.name, title) == EVERY_PAIR:
                    faults = {*FAULTS, *story.own.get(call, ())}
                elif call == story.commit:
                    faults = set(ONE_FAULT_PER_MEANING)
                else:
                    faults = set(islice(classes, 2))
                # The network's own faults once each, and all outcomes other than the default.
                new = own_faults & set(story.own.get(call, ()))
                own_faults -= new
                for fault in faults | new | set(story.otherwise.get(call, ())):
                    if (cell := (self.name, title, call, fault)) in known:
                        yield cell


Cell = tuple[str, str, str, str]
"""(network, story, call, fault)."""

EVERY_PAIR = ("x", "video")
"""The story whose every step has every fault in every run."""


def played(rows: Iterable[tuple[Any, ...]], always: Callable[..., bool]) -> list[Any]:
    return [
        pytest.param(*row, id=" · ".join(map(str, row)), marks=() if always(*row) else pytest.mark.whole_grid)
        for row in rows
    ]


def begin(
    env: Environment, network: Network, story: Story, profile: str, *, username: str = "demo", body: str = BODY
) -> str:
    chosen = {**network.options(env.world, username), **story.options}
    options = {network.name: chosen} if chosen else None
    return accept(env.rt, profile, body=body, media=story.make(env.rt, env.samples), options=options)


def play(env: Environment, network: Network, title: str, call: str, fault: str) -> None:
    story = network.stories[title]
    fault_met, at = network.fault(fault), Call.of(call)
    with story.under():
        post = begin(env, network, story, network.connect(env.rt, env.world))
        fault_met.apply(env, network.name, at)
        drain(env.rt, env.clock)
    assert env.transport.called.count(at.endpoint) > at.skip, "the call that should meet the fault was never made"
    assert_the_outcome_is_true(env.rt, env.world, network, post)
    place = story.place_of(call)
    due = COMES_TO[fault_met.means, place]
    if network.is_repeatable:
        due = COMES_TO_REPEATED.get((fault_met.means, place), due)
    if place is Place.COMMIT and fault_met.means is Means.OPEN and story.read_back_by is None:
        due = State.UNCONFIRMED
    due = story.otherwise.get(call, {}).get(fault, due)
    assert state_of(env.rt, post) is due, message_of(env.rt, post)


def assert_the_outcome_is_true(rt: Runtime, world: World, network: Network, post: str) -> None:
    row = select_one(rt.db, "SELECT state, provider_post_id, error_message FROM delivery WHERE post_id = ?", (post,))
    stated = Stated.from_row(row)
    assert stated.outcome != "pending"
    wrong = [*find_untruths([stated], network.made(world)), *find_row_contradictions(rt.db.execute_sql)]
    assert not wrong, wrong
