"""A command that was suspended with the lock of an account's tokens: its profile queue waits, and says why."""

import pytest

from socialpub.accounts import tokens
from socialpub.core.locks import FileLock
from socialpub.db.states import State
from socialpub.providers.base import Job
from socialpub.providers.responses import AuthExpired
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


def test_a_post_that_needs_the_token_waits_shows_why_and_goes_out_when_the_command_ends(
    rt, network, profile, clock, suspended
):
    def wants_another(job: Job) -> object:
        if job.token == "access-0":
            raise AuthExpired("401")
        return network.publish(job.content.text)

    network.results["create_post"] = [wants_another] * 20
    post = accept(rt, profile)
    drain(rt, clock, within=120)
    assert set(attempts_of(rt, post)) == {("create_post", "retrying")}
    assert len(attempts_of(rt, post)) <= 5, "it backs off"
    assert "a command that hangs, end it" in select_value(rt.db, "SELECT message FROM attempt")
    assert network.auth.refreshes == []
    suspended.release()
    drain(rt, clock)
    assert state_of(rt, post) is State.PUBLISHED
    assert network.auth.refreshes == ["refresh-0"]
