"""Tokens that run out on the way: one refresh, whatever becomes of it, and never a post because of it too many."""

import threading

import httpx2
import pytest

from socialpub.accounts import tokens
from socialpub.db.models import State
from socialpub.publishing import engine
from socialpub.runtime import Runtime
from tests.providers.grid import Call, Stage, assert_the_outcome_is_true, begin, house_in
from tests.providers.networks import NETWORKS, story_of
from tests.support.appliance import message_of, state_of
from tests.support.drain import drain
from tests.support.sandbox_http import Died

SIMPLE = {"x": "text", "tiktok": "draft", "pinterest": "picture"}
FAULTS = (
    "never left", "never leaves", "429 with a time", "429 without a time", "400", "401 for ever", "403", "500 before",
    "503 after", "503 three times", "503 for ever", "HTML after", "unreadable 2xx before", "unreadable 2xx after",
    "time-out before", "time-out after", "time-out for ever", "cut before", "cut after",
)  # fmt: skip
PASS = (
    "never left", "429 with a time", "429 without a time", "500 before", "503 three times", "unreadable 2xx before",
    "time-out before", "cut before",
)  # fmt: skip
"""The old refresh token was not spent, and the next try goes well."""

CELLS = [(network, fault) for network in NETWORKS for fault in FAULTS]


def tired(stage: Stage, network: str) -> str:
    """A profile whose access token has run out."""
    profile = NETWORKS[network].connect(stage.rt, stage.world, expires_in=60)
    stage.clock.forward(120)
    return profile


def standing(stage: Stage, profile: str) -> str:
    return str(stage.rt.reader.value("SELECT status FROM profile WHERE id = ?", (profile,)))


@pytest.mark.parametrize(("network", "fault"), CELLS, ids=[" · ".join(cell) for cell in CELLS])
def test_the_refresh_meets_a_fault(stage: Stage, network: str, fault: str) -> None:
    told, tale = story_of(network, SIMPLE[network])
    profile = tired(stage, network)
    post = begin(stage, told, tale, profile)
    told.fault(fault).strike(stage, network, Call("token"))
    drain(stage.rt, stage.clock)
    assert_the_outcome_is_true(stage.rt, stage.world, told, post)
    if fault in PASS:
        assert state_of(stage.rt, post) is State.PUBLISHED, message_of(stage.rt, post)
    if state_of(stage.rt, post) is State.PUBLISHED:
        assert standing(stage, profile) == "active"
    if standing(stage, profile) == "reauthRequired":
        assert "again" in message_of(stage.rt, post), "the owner is told to connect again"


@pytest.mark.parametrize("at_once", [False, True], ids=["known to be old", "refused with 401"])
@pytest.mark.parametrize("network", NETWORKS)
def test_ten_deliveries_due_at_once_on_an_expired_token_need_one_refresh(
    stage: Stage, network: str, at_once: bool
) -> None:
    told, tale = story_of(network, SIMPLE[network])
    stage.world.tiktok.pending_shares_per_day = 15
    if at_once:
        profile = told.connect(stage.rt, stage.world)
        account_id = stage.rt.reader.value("SELECT account_id FROM profile WHERE id = ?", (profile,))
        stage.world.networks[network].tokens.expire(account_id)
    else:
        profile = tired(stage, network)
    posts = [begin(stage, told, tale, profile, body=f"Number {number}") for number in range(10)]
    drain(stage.rt, stage.clock, within=1800)
    assert {state_of(stage.rt, post) for post in posts} == {State.PUBLISHED}
    assert stage.world.networks[network].statuses("token") == [200]


@pytest.mark.parametrize("network", NETWORKS)
def test_two_processes_that_find_the_same_token_expired_need_one_refresh(stage: Stage, network: str) -> None:
    told, tale = story_of(network, SIMPLE[network])
    profile = tired(stage, network)
    post = begin(stage, told, tale, profile)
    (delivery,) = (row[0] for row in stage.rt.reader.all("SELECT id FROM delivery"))
    second = house_in(stage.folder, stage.clock, stage.rt.http)

    def renew(rt: Runtime) -> None:
        tokens.fresh(rt, profile)
        engine.work(rt, delivery)

    try:
        threads = [threading.Thread(target=renew, args=(rt,)) for rt in (stage.rt, second, stage.rt, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        drain(stage.rt, stage.clock)
        assert state_of(stage.rt, post) is State.PUBLISHED, message_of(stage.rt, post)
        assert_the_outcome_is_true(stage.rt, stage.world, told, post)
        assert stage.world.networks[network].statuses("token") == [200]
    finally:
        second.db.close()
        second.process.close()


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("network", NETWORKS)
def test_the_worker_dies_around_the_refresh(stage: Stage, network: str, moment: str) -> None:
    told, tale = story_of(network, SIMPLE[network])
    profile = tired(stage, network)
    post = begin(stage, told, tale, profile)

    def dies(request: httpx2.Request) -> None:
        if stage.line.endpoint_of(request) == "token":
            stage.line.broken = stage.line.lost = None
            raise Died

    setattr(stage.line, "broken" if moment == "before" else "lost", dies)
    with pytest.raises(Died):
        drain(stage.rt, stage.clock)
    stage.rt.process.close()
    successor = house_in(stage.folder, stage.clock, stage.rt.http)
    try:
        drain(successor, stage.clock)
        assert_the_outcome_is_true(successor, stage.world, told, post)
        # The pair that nobody wrote down is lost when the network takes the old one no more; then the owner is told.
        # X's text begins with its commit, which was announced already: without a token nobody can tell any more.
        lives = standing(stage, profile) == "active"
        lost = State.UNCONFIRMED if network == "x" else State.FAILED
        assert state_of(successor, post) is (State.PUBLISHED if lives else lost)
        assert lives or moment == "after"
    finally:
        successor.db.close()
        successor.process.close()


@pytest.mark.parametrize("network", NETWORKS)
def test_a_token_that_dies_while_the_outcome_is_read_back_is_renewed_on_the_way(stage: Stage, network: str) -> None:
    title = {"x": "text", "tiktok": "film", "pinterest": "picture"}[network]
    told, tale = story_of(network, title)
    profile = told.connect(stage.rt, stage.world)
    post = begin(stage, told, tale, profile)
    stage.world.networks[network].next(tale.commit).times_out_after_effect()
    drain(stage.rt, stage.clock, within=1)
    account_id = stage.rt.reader.value("SELECT account_id FROM profile WHERE id = ?", (profile,))
    stage.world.networks[network].tokens.expire(account_id)
    drain(stage.rt, stage.clock)
    assert state_of(stage.rt, post) is State.PUBLISHED, message_of(stage.rt, post)
    assert_the_outcome_is_true(stage.rt, stage.world, told, post)
