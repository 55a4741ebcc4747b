"""A command that was suspended with the lock of an account's tokens: its lane waits a minute at most, and says why."""

import pytest

from socialpub.accounts import tokens
from socialpub.core.locks import FileLock
from socialpub.db.states import State
from socialpub.providers.auth import Tokens
from socialpub.providers.base import Job
from socialpub.providers.responses import AuthExpired, NoAnswer
from socialpub.runtime import Runtime
from tests.support.appliance import accept, attempts_of, state_of
from tests.support.drain import drain
from tests.support.select import select_value


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "LOCK_PAUSE_SECONDS", 0.0)


@pytest.fixture
def suspended(rt: Runtime, profile: str) -> FileLock:
    """The lock as a command holds it that was stopped in the middle."""
    lock = tokens.token_lock(rt, profile)
    assert lock.try_acquire()
    return lock


@pytest.mark.usefixtures("suspended")
def test_a_post_that_needs_the_token_waits_shows_why_and_goes_out_within_a_minute(rt, network, profile, clock):
    def wants_another(job: Job) -> object:
        if job.token == "access-0":
            raise AuthExpired("401")
        return network.publish(job.content.text)

    network.results["create_post"] = [wants_another] * 20
    began = clock.now()
    post = accept(rt, profile)
    drain(rt)
    assert attempts_of(rt, post) == [("create_post", "retrying")]
    assert "a command that hangs" in select_value(rt.db, "SELECT message FROM attempt")
    drain(rt, clock)
    assert state_of(rt, post) is State.PUBLISHED
    assert 40 <= (clock.now() - began).total_seconds() <= 60
    assert network.auth.refreshes == ["refresh-0"]


def test_a_resumed_command_that_lost_its_lock_sends_no_spent_token(rt, network, profile, clock):
    refresh = network.auth.refresh

    def suspended_meanwhile(http: object, account: object, refresh_token: str) -> Tokens:
        network.auth.refresh = refresh  # type: ignore[method-assign]
        for _ in range(7):
            try:
                assert tokens.replace_spent(rt, profile, spent="access-0") == "access-1"
                break
            except tokens.Locked:
                clock.forward(10)
        raise NoAnswer("its own call timed out while it was suspended")

    network.auth.refresh = suspended_meanwhile  # type: ignore[method-assign]
    with pytest.raises(tokens.Locked):
        tokens.replace_spent(rt, profile, spent="access-0")
    assert network.auth.refreshes == ["refresh-0"], "a spent refresh token may cost the whole account"
    assert tokens.replace_spent(rt, profile, spent="access-0") == "access-1"
