"""A suspended worker keeps its call: no other worker takes it over, at any time."""

import httpx2
import pytest

from tests.e2e.caller import Caller
from tests.e2e.installation import Installation
from tests.e2e.processes import Process, until


@pytest.mark.endurance
def test_a_suspended_worker_keeps_its_call_and_a_second_worker_does_the_rest(
    installation: Installation, caller: Caller
) -> None:
    installation.start("web")
    first = installation.start("worker")
    installation.x.script("create_post", "times_out_after_effect")
    mine = caller.publish("Held in the air", installation.profiles[0])
    until(
        lambda: installation.x.in_flight() == 1 and installation.x.texts() == ["Held in the air"],
        "the call is on its way",
    )
    suspend_while_it_does_not_write(first, caller)
    second = installation.start("worker")
    other = caller.publish("By the second worker", installation.profiles[1])
    after = caller.publish("Behind it in the lane", installation.profiles[0])
    assert caller.delivery(other)["status"] == "published"
    # Long over by the clock, and still it is not taken from its owner.
    assert {caller.delivery(post, wait=2)["status"] for post in (mine, after)} == {"pending"}
    assert installation.x.calls("create_post") == 1
    assert first.running and second.running

    first.go_on()
    for post in (mine, after):
        delivery = caller.delivery(post)
        assert delivery["status"] == "published", delivery
    assert sorted(installation.x.texts()) == ["Behind it in the lane", "By the second worker", "Held in the air"]


def suspend_while_it_does_not_write(worker: Process, caller: Caller) -> None:
    """Stop it at a moment when it is not just writing: holding the database, it would hold up everybody."""

    def suspended() -> bool:
        worker.suspend()
        if caller.ask("POST", "/api/v1/uploads", json=RESERVATION).status_code == httpx2.codes.CREATED:
            return True
        worker.go_on()
        return False

    until(suspended, "the worker is suspended while it does not write")


RESERVATION = {"fileName": "never.png", "mimeType": "image/png", "fileSize": 1}
