"""A full disk costs no account: a refresh token is spent only when the disk can store the answer."""

from collections.abc import Callable, Iterator

import pytest

from socialpub.accounts import connect, consents, redirects, tokens, upkeep
from socialpub.accounts.tokens import Credentials
from socialpub.core.errors import Unavailable
from socialpub.db.states import State
from socialpub.db.tables import profile_rows
from socialpub.providers.auth import Tokens
from socialpub.providers.responses import AuthExpired
from socialpub.publishing.delivery import resume
from socialpub.runtime import Runtime
from tests.support.appliance import accept, message_of, state_of
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.scripted_network import ScriptedNetwork
from tests.support.select import select_value

MONTH = 30 * 86_400.0


@pytest.fixture
def full(rt: Runtime) -> Iterator[Callable[[bool], None]]:
    """SQLite refuses every page that the database does not have yet, or takes them again."""
    pages = rt.db.write(lambda tx: select_value(tx, "PRAGMA max_page_count"))

    def limit(is_full: bool) -> None:
        rt.db.write(lambda tx: tx.execute_sql(f"PRAGMA max_page_count = {1 if is_full else pages}").fetchall())

    yield limit
    limit(False)


def stored(rt: Runtime, profile_id: str) -> tuple[str, str | None]:
    profile = profile_rows.find(rt.db, profile_id)
    assert profile is not None
    return tokens.open_access_token(rt.secrets, profile), tokens.open_refresh_token(rt.secrets, profile)


def test_a_full_disk_delays_the_renewal_of_tokens(rt, network, profile, clock, full):
    clock.forward(MONTH)
    full(True)
    for _ in range(3):
        with pytest.raises(Unavailable, match="full"):
            upkeep.renew_idle_tokens(rt, ())
        clock.forward(60)
    assert network.auth.refreshes == []
    full(False)
    assert upkeep.renew_idle_tokens(rt, ()) == profile
    assert (network.auth.refreshes, stored(rt, profile)) == (["refresh-0"], ("access-1", "refresh-next"))


def test_a_delivery_waits_with_its_old_token_until_the_disk_has_room(rt, network, profile, clock, full):
    post = accept(rt, profile)
    clock.forward(7200)
    full(True)
    drain(rt, clock, within=300)
    assert network.auth.refreshes == []
    assert state_of(rt, post) is State.QUEUED
    full(False)
    drain(rt, clock)
    assert (state_of(rt, post), network.auth.refreshes) == (State.PUBLISHED, ["refresh-0"])


def test_an_import_whose_access_token_has_ended_spends_nothing_on_a_full_disk(rt, network, full, monkeypatch):
    def ended(*_: object) -> None:
        raise AuthExpired("401")

    monkeypatch.setattr(network.auth, "identify", ended)
    full(True)
    with pytest.raises(Unavailable, match="full"):
        connect.import_account(rt, "x", Credentials("old", "refresh-of-the-owner"))
    assert network.auth.refreshes == []


# --- the disk takes the first write and not the pair -----------------------------------------------------------------


@pytest.fixture
def unstored(
    rt: Runtime, network: ScriptedNetwork, profile: str, clock: HandClock, full: Callable[[bool], None]
) -> str:
    """The profile of a pair that the network gave and the disk did not take."""

    def fills_up(*_: object) -> Tokens:
        network.auth.refreshes.append("refresh-0")
        full(True)
        return Tokens("access-1" * 1000, "refresh-1" * 900, 7200)

    refresh, network.auth.refresh = network.auth.refresh, fills_up  # type: ignore[method-assign, assignment]
    clock.forward(MONTH)
    with pytest.raises(Unavailable):
        tokens.load_fresh(rt, profile)
    network.auth.refresh = refresh  # type: ignore[method-assign]
    assert stored(rt, profile) == ("access-0", "refresh-0")
    return profile


@pytest.mark.parametrize("meanwhile", ["nothing", "a pause", "a refusal"])
def test_a_pair_that_could_not_be_stored_is_stored_later(rt, network, unstored, full, meanwhile):
    with pytest.raises(Unavailable):
        upkeep.renew_idle_tokens(rt, ())
    full(False)
    if meanwhile == "a pause":
        rt.write(resume.pause)
    elif meanwhile == "a refusal":  # another process has asked with the token that was spent
        rt.write(lambda _, tx: profile_rows.require_reauth(tx, unstored, "X no longer accepts the authorization."))
    upkeep.renew_idle_tokens(rt, ())
    assert stored(rt, unstored) == ("access-1" * 1000, "refresh-1" * 900)
    assert select_value(rt.db, "SELECT status FROM profile") == "active"
    assert network.auth.refreshes == ["refresh-0"], "the spent token is not used again"


def test_nothing_uses_the_account_before_its_new_pair_is_stored(rt, network, unstored, clock, full):
    post = accept(rt, unstored)
    drain(rt, clock, within=300)
    assert network.jobs == []
    full(False)
    drain(rt, clock)
    assert state_of(rt, post) is State.PUBLISHED, message_of(rt, post)
    assert ([job.token for job in network.jobs], network.auth.refreshes) == (["access-1" * 1000], ["refresh-0"])


def test_a_consent_keeps_its_code_on_a_full_disk(rt, network, full, monkeypatch):
    monkeypatch.setattr(redirects, "find_missing_app", lambda *_: None)
    _, url = consents.begin(rt, "x")
    query = {"state": url.rpartition("state=")[2], "code": "once"}
    full(True)
    with pytest.raises(Unavailable):
        consents.finish(rt, "x", query)
    assert network.auth.refreshes == [], "the scripted network counts a code as a refresh"
    full(False)
    assert consents.finish(rt, "x", query)
