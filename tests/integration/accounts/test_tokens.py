"""Tokens are renewed once, kept whole, and given up only when the network itself refuses them."""

import threading
from typing import Any

import pytest

from socialpub.accounts import connect, profiles, tokens
from socialpub.accounts.tokens import Credentials
from socialpub.core import clock as clocks
from socialpub.db.connection import Database
from socialpub.db.models import ProfileRow
from socialpub.db.tables import profile_rows
from socialpub.providers.auth import Identity, Tokens
from socialpub.providers.base import Withdrawn
from socialpub.providers.responses import AppRefused, NoAnswer, NotSent, Rejected, Throttled
from socialpub.publishing.delivery import resume
from socialpub.runtime import Runtime, TokenKeeper
from tests.support.appliance import add_profile
from tests.support.select import select_one

TWO_HOURS = 7200
REFUSED = Rejected("X no longer accepts the authorization.", status=400, reauth=True, code="invalid_request")


def stored(rt: Runtime, profile_id: str) -> tuple[str | None, str | None]:
    profile = profile_rows.find(rt.db, profile_id)
    assert profile is not None
    return tokens.open_access_token(rt.secrets, profile), tokens.open_refresh_token(rt.secrets, profile)


def row(rt: Runtime, profile_id: str) -> Any:
    return select_one(rt.db, "SELECT * FROM profile WHERE id = ?", (profile_id,))


def test_a_token_with_time_left_is_used_without_a_call(rt, network, profile, clock):
    clock.forward(TWO_HOURS - 300)
    assert tokens.load_fresh(rt, profile) == "access-0"
    assert network.auth.refreshes == []


def test_an_expiring_token_is_renewed_and_the_pair_is_stored_before_its_use(rt, network, profile, clock):
    network.auth.answers = [Tokens("access-1", "refresh-1", TWO_HOURS, scopes=frozenset({"tweet.write"}))]
    clock.forward(TWO_HOURS - 299)
    asked_at = rt.stamp()
    assert tokens.load_fresh(rt, profile) == "access-1"
    assert stored(rt, profile) == ("access-1", "refresh-1")
    assert row(rt, profile)["access_expires_at"] == clocks.after(asked_at, TWO_HOURS)
    assert row(rt, profile)["scopes"] == "tweet.write"
    assert row(rt, profile)["expires_at"] is None, "X does not report the end of a refresh token"
    assert row(rt, profile)["updated_at"] == asked_at
    assert tokens.load_fresh(rt, profile) == "access-1"
    assert network.auth.refreshes == ["refresh-0"]


def test_a_second_thread_does_not_renew_a_stored_pair_again(rt, network, profile, clock):
    """The pair is on the disk, and this process still remembers that it was to be written."""
    asked, got = threading.Event(), list[str]()
    late = threading.Thread(target=lambda: got.append(tokens.load_fresh(rt, profile)))

    class Watched(TokenKeeper):
        def find_pending(self, profile_id: str) -> Any:
            if threading.current_thread() is late:
                asked.set()
            return super().find_pending(profile_id)

        def end_pending(self, profile_id: str) -> None:
            late.start()
            assert asked.wait(60)
            super().end_pending(profile_id)

    rt.tokens = Watched()
    clock.forward(TWO_HOURS - 299)
    assert tokens.load_fresh(rt, profile) == "access-1"
    late.join()
    assert got == ["access-1"]
    assert network.auth.refreshes == ["refresh-0"]


def test_the_expiry_of_the_refresh_token_is_shown_if_the_network_reports_it(rt, network, profile):
    network.auth.answers = [Tokens("access-1", "refresh-1", 86400, refresh_expires_in_seconds=30 * 86400)]
    tokens.replace_spent(rt, profile, spent="access-0")
    assert row(rt, profile)["expires_at"] == clocks.after(rt.stamp(), 30 * 86400)


@pytest.mark.parametrize("left_out", [None, ""])
def test_a_refresh_token_that_the_answer_leaves_out_stays(rt, network, profile, left_out):
    network.auth.answers = [Tokens("access-1", left_out, TWO_HOURS)]
    assert tokens.replace_spent(rt, profile, spent="access-0") == "access-1"
    assert stored(rt, profile) == ("access-1", "refresh-0")


def test_an_answer_without_an_access_token_overwrites_nothing(rt, network, profile):
    network.auth.answers = [Tokens("", "refresh-1")]
    with pytest.raises(tokens.NotRenewed):
        tokens.replace_spent(rt, profile, spent="access-0")
    assert stored(rt, profile) == ("access-0", "refresh-0")


def test_two_workers_that_need_a_token_at_once_refresh_once(rt, network, profile):
    both_are_at_it = threading.Barrier(2, timeout=60)
    arrived = threading.Event()
    refresh = network.auth.refresh

    def slow_refresh(http: object, account: object, refresh_token: str) -> Tokens:
        assert arrived.wait(60), "the second one never came"
        return refresh(http, account, refresh_token)

    network.auth.refresh = slow_refresh  # type: ignore[method-assign]
    got: list[str] = []

    def use(last: bool) -> None:
        both_are_at_it.wait()
        if last:
            arrived.set()
        got.append(tokens.replace_spent(rt, profile, spent="access-0"))

    threads = [threading.Thread(target=use, args=(last,)) for last in (False, True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert got == ["access-1", "access-1"]
    assert network.auth.refreshes == ["refresh-0"], "a spent refresh token may cost the whole account"


def test_after_a_401_a_token_that_was_renewed_meanwhile_is_used(rt, network, profile):
    assert tokens.replace_spent(rt, profile, spent="an older one") == "access-0"
    assert network.auth.refreshes == []


def test_an_unanswered_refresh_is_repeated_once_with_the_same_token(rt, network, profile):
    network.auth.answers = [NoAnswer("X did not answer in time."), Tokens("access-1", "refresh-1", TWO_HOURS)]
    assert tokens.replace_spent(rt, profile, spent="access-0") == "access-1"
    assert network.auth.refreshes == ["refresh-0", "refresh-0"]


@pytest.mark.parametrize(
    "outage",
    [
        NotSent("api.x.com could not be reached"),
        NoAnswer("X did not answer in time."),
        Throttled("X asks to wait.", retry_after_seconds=60),
    ],
)
def test_an_outage_never_costs_the_account(rt, network, profile, outage):
    network.auth.answers = [outage, outage]
    with pytest.raises((NotSent, Throttled)):
        tokens.replace_spent(rt, profile, spent="access-0")
    assert row(rt, profile)["status"] == "active"
    assert stored(rt, profile) == ("access-0", "refresh-0")


def test_wrong_app_credentials_hold_the_network_and_keep_every_account(rt, network, profile):
    network.auth.answers = [Rejected("X does not know the app.", status=401, code="invalid_client")]
    with pytest.raises(AppRefused) as refused:
        tokens.replace_spent(rt, profile, spent="access-0")
    assert refused.value.code == "invalid_client"
    assert row(rt, profile)["status"] == "active"
    assert stored(rt, profile) == ("access-0", "refresh-0")


def test_a_refused_refresh_token_asks_for_the_owner_once(rt, network, profile):
    network.auth.answers = [REFUSED]
    for _ in range(2):
        with pytest.raises(Rejected) as refused:
            tokens.replace_spent(rt, profile, spent="access-0")
        assert refused.value.reauth
    assert row(rt, profile)["status"] == "reauthRequired"
    assert row(rt, profile)["reason"] == REFUSED.message
    assert network.auth.refreshes == ["refresh-0"], "a token that was refused is not sent again"


def test_without_a_refresh_token_a_refused_access_token_asks_for_the_owner(rt, network):
    profile = add_profile(rt, refresh_token=None)
    assert tokens.load_fresh(rt, profile) == "access-0"
    with pytest.raises(Rejected) as refused:
        tokens.replace_spent(rt, profile, spent="access-0")
    assert refused.value.reauth
    assert row(rt, profile)["status"] == "reauthRequired"


def test_new_tokens_that_came_while_the_old_ones_were_refused_win(rt, network, profile):
    def reconnected_meanwhile(http: object, account: object, refresh_token: str) -> Tokens:
        connect.import_account(rt, "x", Credentials("imported", "imported-refresh"))
        raise REFUSED

    network.auth.refresh = reconnected_meanwhile  # type: ignore[method-assign]
    assert tokens.replace_spent(rt, profile, spent="access-0") == "imported"
    assert row(rt, profile)["status"] == "active"


def test_an_import_during_a_refresh_is_not_overwritten(rt, network, profile):
    def imported_meanwhile(http: object, account: object, refresh_token: str) -> Tokens:
        connect.import_account(rt, "x", Credentials("imported", "imported-refresh"))
        return Tokens("access-1", "refresh-1", TWO_HOURS)

    network.auth.refresh = imported_meanwhile  # type: ignore[method-assign]
    assert tokens.replace_spent(rt, profile, spent="access-0") == "imported"
    assert stored(rt, profile) == ("imported", "imported-refresh")


def test_a_crash_between_the_answer_and_the_store_leaves_the_old_pair_whole(rt, network, profile, monkeypatch):
    def dies(rt: Runtime, tx: Database, *args: object) -> None:
        tx.update(ProfileRow, profile, access_token=b"half of it")
        raise KeyError("the process is gone")

    with monkeypatch.context() as crash:
        crash.setattr(tokens, "_store", dies)
        with pytest.raises(KeyError):
            tokens.replace_spent(rt, profile, spent="access-0")
    assert stored(rt, profile) == ("access-0", "refresh-0")
    rt.tokens.end_pending(profile)
    # Later the network reports a spent token: no other call is made.
    network.auth.answers = [REFUSED]
    with pytest.raises(Rejected):
        tokens.replace_spent(rt, profile, spent="access-0")
    assert row(rt, profile)["status"] == "reauthRequired"


def test_a_grant_that_no_longer_allows_publishing_requires_a_reconnection(rt, network, profile):
    network.auth.can_publish = lambda scopes: "tweet.write" in scopes  # type: ignore[method-assign]
    network.auth.missing_scopes = lambda scopes: ["tweet.write is missing."]  # type: ignore[method-assign]
    network.auth.answers = [Tokens("access-1", "refresh-1", TWO_HOURS, scopes=frozenset({"users.read"}))]
    with pytest.raises(Rejected, match=r"tweet\.write is missing") as refused:
        tokens.replace_spent(rt, profile, spent="access-0")
    assert refused.value.reauth
    assert stored(rt, profile) == ("access-1", "refresh-1")


def test_a_paused_appliance_refreshes_nothing(rt, network, profile, clock):
    rt.write(resume.pause)
    assert tokens.load_fresh(rt, profile) == "access-0"
    clock.forward(TWO_HOURS)
    with pytest.raises(tokens.Paused):
        tokens.load_fresh(rt, profile)
    assert network.auth.refreshes == []
    rt.write(resume.end_pause)
    assert tokens.load_fresh(rt, profile) == "access-1"


def test_a_disconnected_profile_has_no_usable_token(rt, network, profile):
    rt.write(profiles.disconnect, profile)
    for ask in (lambda: tokens.load_fresh(rt, profile), lambda: tokens.replace_spent(rt, profile, "access-0")):
        with pytest.raises(Withdrawn):
            ask()
    assert network.auth.refreshes == []


def test_a_pair_that_arrives_after_a_disconnection_is_only_revoked(rt, network, profile):
    def disconnected_meanwhile(http: object, account: object, refresh_token: str) -> Tokens:
        rt.write(profiles.disconnect, profile)
        return Tokens("access-1", "refresh-1", TWO_HOURS)

    network.auth.refresh = disconnected_meanwhile  # type: ignore[method-assign]
    with pytest.raises(Withdrawn):
        tokens.replace_spent(rt, profile, spent="access-0")
    assert row(rt, profile)["status"] == "disconnected"
    assert stored(rt, profile) == ("access-1", "refresh-1")


def test_tokens_are_sealed_in_the_database(rt, network):
    network.auth.identify = lambda http, account, token: Identity("7", "seven", None, None)  # type: ignore[method-assign]
    imported = connect.import_account(rt, "x", Credentials("plain-access", "plain-refresh"))
    found = row(rt, imported.profile_id)
    assert b"plain" not in bytes(found["access_token"]) + bytes(found["refresh_token"])
    assert "plain" not in repr(profile_rows.find(rt.db, imported.profile_id))
    assert "plain" not in repr(Credentials("plain-access", "plain-refresh"))
