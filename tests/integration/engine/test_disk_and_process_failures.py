"""Full disks, threads that end, a damaged queue: what is known is kept, and no profile queue is lost."""

from contextlib import closing

import pytest

from socialpub.core.errors import Unavailable
from socialpub.core.secrets.crypto import Secrets
from socialpub.db.database import ApplianceDatabase
from socialpub.db.states import State
from socialpub.db.tables import counters
from socialpub.providers.auth import Tokens
from socialpub.providers.base import Held, Kind, Published, Readback, Refused
from socialpub.providers.responses import AuthExpired, Throttled
from socialpub.publishing.delivery import engine, settle
from tests.support.appliance import accept, attempts_of, open_appliance, state_of, status_of
from tests.support.drain import drain
from tests.support.scripted_network import ScriptedNetwork
from tests.support.select import select_all, select_one, select_value

FILM = (("upload", Kind.PREPARE), ("create_post", Kind.COMMIT))
FILM_ONCE = [name for name, _ in FILM]


# --- a settlement that cannot be written -----------------------------------------------------------------------------


class FullDisk:
    """Every settlement fails on the disk, after it did all its work, as often as the test says."""

    def __init__(self, monkeypatch):
        self.times = 0
        self._settle = settle.settle
        monkeypatch.setattr(settle, "settle", self._fail)

    def _fail(self, rt, tx, *what):
        following = self._settle(rt, tx, *what)
        if self.times:
            self.times -= 1
            raise Unavailable("The disk is full.")
        return following


@pytest.fixture
def disk(monkeypatch):
    return FullDisk(monkeypatch)


def test_an_outcome_that_could_not_be_stored_is_stored_later_without_another_call(rt, network, profile, clock, disk):
    post = accept(rt, profile)
    disk.times = 3
    for _ in range(4):
        drain(rt)
    assert network.asked == ["create_post"], "the answer is known: nothing is read back, nothing is sent again"
    assert (state_of(rt, post), status_of(rt, post)) == (State.PUBLISHED, "settled")
    assert select_value(rt.db, "SELECT posts_count FROM profile") == 1
    assert [r[0] for r in select_all(rt.db, "SELECT type FROM log_entry ORDER BY n")] == ["pending", "published"]


@pytest.mark.parametrize("times", [1, 2, 5])
def test_a_step_whose_result_could_not_be_stored_is_neither_skipped_nor_repeated(
    rt, network, profile, clock, disk, times
):
    network.steps = ScriptedNetwork(("one", Kind.PREPARE), ("two", Kind.PREPARE), *FILM).steps
    post = accept(rt, profile)
    disk.times = times
    for _ in range(times + 1):
        drain(rt)
    assert network.asked == ["one", "two", "upload", "create_post"]
    assert attempts_of(rt, post)[-1] == ("create_post", "published")


def test_an_unstored_outcome_of_a_dead_process_is_read_back(rt, network, profile, clock, disk):
    post = accept(rt, profile)
    disk.times = 1
    engine.work(rt, profile)
    assert state_of(rt, post) is State.RUNNING
    rt.process.close()
    network.results["recover"] = [Readback((Published("1", "https://x.example/1"),))]
    with closing(open_appliance(rt.settings.data_dir.parent, clock, providers={"x": network})) as successor:
        drain(successor, clock)
        assert network.asked == ["create_post", "recover"]
        assert state_of(successor, post) is State.PUBLISHED


def test_a_settlement_that_fails_unexpectedly_does_not_block_the_queue(rt, network, profile, clock, monkeypatch):
    real, left = settle.settle, [1]

    def fails(*what):
        if left[0]:
            left[0] -= 1
            raise ValueError("a bug of ours")
        return real(*what)

    monkeypatch.setattr(settle, "settle", fails)
    network.results["recover"] = [Readback((Published("1"),))]
    post, other = accept(rt, profile), accept(rt, profile, body="other")
    drain(rt, clock)
    assert network.effects == ["Hello", "other"]
    assert {state_of(rt, post), state_of(rt, other)} == {State.PUBLISHED}


HALF = "no \ud83d"
"""Half a surrogate pair, which SQLite cannot store."""


VERDICTS = pytest.mark.parametrize(
    ("result", "state"),
    [
        (Refused(HALF, HALF), State.FAILED),
        (Refused(HALF, reauth=True), State.QUEUED),
        (Published("7", f"https://x.example/{HALF}"), State.PUBLISHED),
        (Held(HALF), State.QUEUED),
        (Throttled(HALF, retry_after_seconds=9.0), State.QUEUED),
    ],
    ids=lambda value: type(value).__name__,
)


@VERDICTS
def test_a_verdict_whose_words_cannot_be_stored_stays_a_verdict(rt, network, profile, result, state):
    network.results["create_post"] = [result]
    post = accept(rt, profile)
    drain(rt)
    assert (network.asked, state_of(rt, post)) == (["create_post"], state)
    assert "unknown" not in dict(attempts_of(rt, post)).values()


def test_a_token_that_fails_before_the_call_leaves_no_doubt(rt, network, profile):
    """The network was not asked, so the post is not public."""
    network.results["create_post"] = [AuthExpired("expired")]
    network.auth.answers = [OverflowError("date value out of range")]
    post = accept(rt, profile)
    drain(rt)
    assert dict(attempts_of(rt, post)) == {"create_post": "retrying"}


class Gone(BaseException):
    """A thread that ends without a word."""


@pytest.mark.parametrize("step", ["upload", "create_post"])
def test_a_row_of_a_thread_that_ended_silently_is_claimed_again(rt, network, profile, clock, monkeypatch, step):
    network.steps = ScriptedNetwork(*FILM).steps
    run = network.run

    def ends(name, job):
        if name == step:
            monkeypatch.setattr(network, "run", run)
            network.asked.append(name)
            raise Gone
        return run(name, job)

    monkeypatch.setattr(network, "run", ends)
    network.results["recover"] = [Readback((Published("7"),))]
    post = accept(rt, profile)
    with pytest.raises(Gone):
        drain(rt, clock)
    assert state_of(rt, post) is State.RUNNING
    drain(rt, clock)
    assert state_of(rt, post) is State.PUBLISHED
    assert network.asked == (["upload", "upload", "create_post"] if step == "upload" else [*FILM_ONCE, "recover"])


def test_a_row_of_another_thread_of_this_process_is_not_claimed(rt, network, profile):
    accept(rt, profile)
    delivery = select_value(rt.db, "SELECT id FROM delivery")
    run = network.run

    def meanwhile(step, job):
        engine.work(rt, profile)
        assert rt.process.works_on(rt.process.name, delivery)
        return run(step, job)

    network.run = meanwhile
    drain(rt)
    assert network.effects == ["Hello"]
    assert not rt.process.works_on(rt.process.name, delivery)


def test_a_repeated_settlement_counts_a_refused_post_once(rt, network, profile, disk):
    network.results["create_post"] = [Refused("no")]
    post = accept(rt, profile)
    disk.times = 2
    for _ in range(4):
        drain(rt)
    assert status_of(rt, post) == "settled"
    assert counters.outcomes(rt.db) == {("x", "failed"): 1}
    assert [r[0] for r in select_all(rt.db, "SELECT type FROM log_entry ORDER BY n")] == ["pending", "failed"]


# --- the writer ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [OSError("no threads left"), RuntimeError("can't start new thread")])
def test_the_writer_survives_a_failed_wakeup(rt, profile, error):
    class Broken:
        def notify(self, network, profile_id):
            raise error

    rt.wakeup = Broken()
    accept(rt, profile)
    rt.wakeup = type("Quiet", (), {"notify": lambda *_: None})()
    accept(rt, profile, body="second")
    assert select_value(rt.db, "SELECT count(*) FROM post") == 2


def test_the_writer_survives_a_write_that_ends_silently(rt, profile):
    def ends(tx):
        tx.execute_sql("UPDATE profile SET name = 'half'")
        raise Gone

    with pytest.raises(Gone):
        rt.db.write(ends)
    accept(rt, profile)
    assert select_value(rt.db, "SELECT name FROM profile") == "x profile"


def test_a_write_after_the_close_is_refused_at_once(tmp_path, clock):
    db = ApplianceDatabase(tmp_path / "late.db", tmp_path / "run", clock, Secrets(b"k" * 32))
    db.stop()
    with pytest.raises(Unavailable):
        db.write(lambda tx: select_one(tx, "SELECT 1"))


# --- tokens ----------------------------------------------------------------------------------------------------------


def test_a_new_pair_that_could_not_be_stored_is_not_lost(rt, network, profile, clock, monkeypatch):
    from socialpub.accounts import tokens

    store, left = tokens._store, [1]

    def full(*what):
        if left[0]:
            left[0] -= 1
            raise Unavailable("The disk is full.")
        store(*what)

    monkeypatch.setattr(tokens, "_store", full)
    network.results["create_post"] = [AuthExpired("401")]
    network.auth.answers = [Tokens("access-new", "refresh-new", 7200)]
    post = accept(rt, profile)
    drain(rt, clock)
    assert network.auth.refreshes == ["refresh-0"], "the old one is spent: asking again would cost the account"
    assert [job.token for job in network.jobs] == ["access-0", "access-new"]
    assert state_of(rt, post) is State.PUBLISHED
