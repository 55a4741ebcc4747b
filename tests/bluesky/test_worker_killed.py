"""The worker is killed (`kill -9`) during the calls that publish: the next worker publishes every post exactly once."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.bluesky.front import Held
from tests.bluesky.servers import BlueskyServer
from tests.bluesky.stories import GET, PUT, WRITES, FollowedClock
from tests.e2e.installation import Installation
from tests.e2e.processes import Process

pytestmark = pytest.mark.e2e

TEXTS = ("First of three", "Second of three", "Third of three")
CUTS = (
    (PUT, "after", 0, 1),
    (GET, "before", 0, 1),
    (PUT, "before", 0, 2),
    (PUT, "after", 1, 3),
)
"""Where each worker of the thread is killed: a method, before or after its effect, how many calls of the method pass
first, and the number of records afterwards. A worker begins with the call that the worker before it did not finish."""


class KilledWorkers:
    """An installation with a profile on the server. Its processes run on the machine's time, and so does the server."""

    def __init__(self, folder: Path, clock: FollowedClock, server: BlueskyServer) -> None:
        clock.forward((datetime.now(UTC) - clock.now()).total_seconds())
        self.server = server
        self.account = server.add_account("alice")
        self.installation = Installation(folder, pace=0, settings=_section(server))
        self.installation.create()
        self.installation.key = self.installation.admin("create-key", "kills", "--provider", "bluesky")
        command = ("connect-profile", "bluesky", "--handle", self.account.handle, "--password-file", "-")
        self.profile = self.installation.admin(*command, stdin=self.account.app_password)
        self.installation.start("web")
        self.caller = self.installation.caller()

    def accept(self, text: str, **options: Any) -> str:
        return self.caller.publish(text, self.profile, options={"bluesky": options} if options else None)

    def start_worker(self) -> Process:
        return self.installation.start("worker")

    def kill_worker_during(self, method: str, when: str, skipping: int = 0) -> None:
        """Start a worker and kill it while a call waits `before` or `after` its effect. The call then goes on."""
        held = Held(when)
        self.server.front.next(method, held, skipping=skipping)
        worker = self.start_worker()
        held.wait_until_arrived()
        worker.kill()
        held.release()

    def assert_published_once(self, *posts: str) -> None:
        """Each post is exactly one record, with the id and the link of this record."""
        told = [self.caller.delivery(post) for post in posts]
        uris = [one.uri for one in self.server.records(self.account)]
        assert [one["status"] for one in told] == ["published"] * len(posts), told
        assert [one["providerPostId"] for one in told] == uris
        site = self.server.plc_url.removesuffix("/plc")
        links = [f"{site}/profile/{self.account.did}/post/{uri.rpartition('/')[2]}" for uri in uris]
        assert [one["url"] for one in told] == links

    def close(self) -> None:
        self.installation.close()


def _section(server: BlueskyServer) -> str:
    return f'[providers.bluesky]\nenabled = true\nservice = "{server.url}"\nplc_url = "{server.plc_url}"\n'


@pytest.fixture
def killed(tmp_path: Path, clock: FollowedClock, server: BlueskyServer) -> Iterator[KilledWorkers]:
    killed = KilledWorkers(tmp_path / "installation", clock, server)
    yield killed
    killed.close()


# The thread below begins with the same cut of the first method.
@pytest.mark.parametrize(
    ("method", "options"),
    [pytest.param(PUT, {}, marks=pytest.mark.endurance), (WRITES, {"replyControl": "nobody"})],
)
def test_a_worker_killed_between_the_record_and_the_response_publishes_once(
    killed: KilledWorkers, method: str, options: dict[str, Any]
) -> None:
    post = killed.accept("Hello", **options)
    killed.kill_worker_during(method, "after")
    assert len(killed.server.records(killed.account)) == 1
    assert killed.caller.delivery(post, wait=0)["status"] == "pending"
    killed.start_worker()
    killed.assert_published_once(post)
    bodies = [call.body for call in killed.server.front.calls_of(method)]
    assert len(bodies) == 2
    assert bodies[0] == bodies[1]


def test_a_thread_cut_by_killed_workers_is_whole_in_the_end(killed: KilledWorkers) -> None:
    posts = [killed.accept(TEXTS[0])]
    for text in TEXTS[1:]:
        posts.append(killed.accept(text, replyToPostId=posts[-1]))
    for method, when, skipping, records in CUTS:
        killed.kill_worker_during(method, when, skipping)
        assert len(killed.server.records(killed.account)) == records, (method, when)
    killed.start_worker()
    killed.assert_published_once(*posts)

    records_in_order = killed.server.records(killed.account)
    assert tuple(one.value["text"] for one in records_in_order) == TEXTS
    first = {"uri": records_in_order[0].uri, "cid": records_in_order[0].cid}
    assert "reply" not in records_in_order[0].value
    for parent, reply in pairwise(records_in_order):
        assert reply.value["reply"] == {"root": first, "parent": {"uri": parent.uri, "cid": parent.cid}}
