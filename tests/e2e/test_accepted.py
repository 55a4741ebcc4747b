"""A 201 means that the post is on the disk: after any kill, the post is published exactly once."""

import itertools
import threading
from collections import Counter

import httpx2
import pytest

from tests.e2e.caller import Caller
from tests.e2e.conftest import MakeInstallation
from tests.e2e.installation import Installation
from tests.e2e.processes import until

CALLERS, EACH = 20, 10
BEFORE_THE_KILL = 60


def test_a_post_outlives_a_web_process_that_is_killed_right_after_its_201(
    installation: Installation, caller: Caller
) -> None:
    worker = installation.start("worker")
    web = installation.start("web")
    post = installation.fresh_caller().publish("Accepted", installation.profiles[0])
    web.kill()
    installation.start("web")
    delivery = installation.fresh_caller().delivery(post)
    assert delivery["status"] == "published", delivery
    assert worker.running
    assert installation.x.texts() == ["Accepted"]


def test_a_caller_who_missed_the_201_and_sends_again_after_the_kill_gets_the_same_post(
    installation: Installation, caller: Caller
) -> None:
    create = {"post": {"body": "Did it arrive?"}, "profiles": [installation.profiles[0]]}
    key = {"idempotency-key": "the first try"}
    web = installation.start("web")
    missed = caller.ask("POST", "/api/v1/posts", json=create, headers=key)
    web.kill()
    installation.start("web")
    installation.start("worker")
    again = installation.fresh_caller().ask("POST", "/api/v1/posts", json=create, headers=key)
    assert again.status_code == 201, again.text
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json()["data"]["id"] == missed.json()["data"]["id"]
    assert installation.caller().delivery(again.json()["data"]["id"])["status"] == "published"
    assert installation.x.texts() == ["Did it arrive?"]


@pytest.mark.endurance
def test_two_hundred_parallel_creates_and_the_end_of_everything_lose_nothing(
    make_installation: MakeInstallation,
) -> None:
    installation = make_installation()
    installation.sandbox()
    serve = installation.start("serve")
    numbers = itertools.count()
    accepted: dict[str, str] = {}
    sent: set[str] = set()

    def create(caller: Caller) -> None:
        for number in itertools.islice(numbers, EACH):
            text = f"One of many: {number}"
            sent.add(text)
            try:
                accepted[text] = caller.publish(text, installation.profiles[number % len(installation.profiles)])
            except httpx2.TransportError:
                return

    callers = [installation.fresh_caller() for _ in range(CALLERS)]
    threads = [threading.Thread(target=create, args=(caller,)) for caller in callers]
    for thread in threads:
        thread.start()
    until(lambda: len(accepted) >= BEFORE_THE_KILL, "some are accepted")
    serve.kill(children=True)
    for thread in threads:
        thread.join()

    installation.start("serve")
    caller = installation.fresh_caller()
    until(lambda: not caller.posts(status="pending"), "everything is settled")
    posts = {post["id"]: post for post in caller.posts()}
    up = Counter(installation.x.texts())
    for text, post_id in accepted.items():
        assert posts[post_id]["body"] == text
        (delivery,) = posts[post_id]["deliveries"]
        assert delivery["status"] == "published", delivery
        assert up[text] == 1, text
    # A request without a response may have been accepted, but never twice. No other post is there.
    assert Counter(post["body"] for post in posts.values()) == up
    assert set(up) <= sent
    assert max(up.values()) == 1
    published = {delivery["providerPostId"] for post in posts.values() for delivery in post["deliveries"]}
    assert published == {post["id"] for post in installation.x.posts()}
