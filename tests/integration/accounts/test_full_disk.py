"""A full disk costs no account: a refresh token is spent only when the disk can store the answer."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from socialpub.accounts import connect, grants, tokens, upkeep
from socialpub.accounts.grants import Credentials
from socialpub.core import clock as clocks
from socialpub.core.errors import Unavailable
from socialpub.db.states import State
from socialpub.db.tables import profile_rows
from socialpub.providers.auth import Tokens
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
    return grants.open_access_token(rt.secrets, profile), grants.open_refresh_token(rt.secrets, profile)


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


@pytest.fixture
def no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database still has pages to write in, and the disk gives out no more."""

    def refuse(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", refuse)


def test_reusable_database_pages_do_not_count_as_space_for_tokens(rt, network, profile, clock, no_file):
    clock.forward(MONTH)
    with pytest.raises(Unavailable) as raised:
        tokens.load_fresh(rt, profile)
    assert raised.value.detail == (
        "The disk cannot store new tokens (No space left on device), so the network was not asked for them. "
        "Free some disk space."
    )
    assert network.auth.refreshes == []


def test_an_import_whose_access_token_has_ended_spends_nothing_on_a_full_disk(rt, network, clock, no_file):
    with pytest.raises(Unavailable):
        connect.import_account(rt, "x", Credentials("old", "given", expires_at=clock.now()))
    assert network.auth.refreshes == []


def test_disk_space_is_reserved_during_the_call_and_used_for_the_pair(rt, network, profile, clock, monkeypatch):
    seen: list[tuple[str, int]] = []
    room = tokens.RESERVED_FILE_BYTES

    def open_bytes() -> int:
        found = 0
        for file in Path("/proc/self/fd").iterdir():
            with suppress(FileNotFoundError):  # the listing itself
                seen_file = file.stat()
                found += seen_file.st_blocks * 512 * (seen_file.st_nlink == 0 and seen_file.st_size == room)
        return found

    def watched(name: str, function: Callable[..., object]) -> Callable[..., object]:
        def call(*what: object) -> object:
            seen.append((name, open_bytes()))
            return function(*what)

        return call

    monkeypatch.setattr(network.auth, "refresh", watched("asked", network.auth.refresh))
    monkeypatch.setattr(tokens, "_store", watched("stored", tokens._store))
    clock.forward(7200)
    assert tokens.load_fresh(rt, profile) == "access-1"
    assert seen == [("asked", room), ("stored", 0)]


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


def test_a_consent_keeps_its_code_on_a_full_disk(rt, network, no_file, monkeypatch):
    monkeypatch.setattr(connect, "find_missing_app", lambda *_: None)
    begun = connect.begin(rt, "x")
    state = begun.url.rpartition("state=")[2]
    with pytest.raises(Unavailable):
        connect.finish(rt, "x", {"state": state, "code": "once"})
    assert network.auth.refreshes == [], "the scripted network counts a code as a refresh"
    assert clocks.stamp(begun.expires_at) > rt.stamp()
