"""Real processes notify the owner that a network refuses the app. One service hangs for ever."""

from collections.abc import Iterator

import pytest

from tests.e2e.conftest import MakeInstallation
from tests.e2e.installation import Installation
from tests.e2e.processes import until
from tests.support.notify_services import HttpService, http_service

pytestmark = pytest.mark.endurance

STOP_SECONDS = 15.0
"""What `serve` promises."""


@pytest.fixture
def phone() -> Iterator[HttpService]:
    with http_service() as service:
        yield service


@pytest.fixture
def hanging() -> Iterator[HttpService]:
    with http_service() as service:
        service.hangs = True
        yield service


@pytest.fixture
def installation(make_installation: MakeInstallation, phone: HttpService, hanging: HttpService) -> Installation:
    urls = f'urls = ["json://{hanging.address}/", "ntfy://{phone.address}/owner"]'
    return make_installation(settings=f'[notify]\n{urls}\ncauses = ["network", "worker"]')


def titles(phone: HttpService) -> list[str]:
    return [str(body["title"]) for _, body in phone.taken]


def test_a_held_network_is_notified_once_despite_hangs_and_kills(
    installation: Installation, phone: HttpService, hanging: HttpService
) -> None:
    installation.sandbox()
    web, worker = installation.start("web"), installation.start("worker")
    caller = installation.caller()
    installation.x.script("create_post", "refuses", code="credits_depleted")
    post = caller.publish("Not for nothing", installation.profiles[0])
    until(lambda: len(phone.taken) == 1, "the owner is notified")
    assert "X has refused this app" in titles(phone)[0]
    until(lambda: "notification sent" in worker.output, "the worker has stored that the phone took the message")
    until(hanging.asked.is_set, "the service that hangs is asked")

    # The worker has sent one message and waits for the other. Its successor does not send the first one again.
    worker.kill()
    hanging.asked.clear()
    worker = installation.start("worker")
    until(hanging.asked.is_set, "the message that hung is sent again")
    installation.admin("resume")
    until(lambda: caller.post(post)["status"] == "settled", "the post is published despite the hang")
    assert len(phone.taken) == 1, "the end is sent after an hour"
    assert hanging.address not in worker.output
    assert worker.stop(STOP_SECONDS) == 0
    assert web.stop() == 0


def test_the_first_failures_of_a_worker_are_notified(make_installation: MakeInstallation, phone: HttpService) -> None:
    urls = f'[notify]\nurls = ["ntfy://{phone.address}/owner"]\ncauses = ["delivery"]'
    installation = make_installation(settings=urls)
    installation.sandbox()
    installation.start("web")
    caller = installation.caller()
    post = caller.publish("Too long for X. " * 100, installation.profiles[0])
    installation.start("worker")
    until(lambda: caller.post(post)["status"] == "settled", "the post has failed, in the worker's first seconds")
    until(lambda: len(phone.taken) == 1, "the owner is notified")
    assert "1 delivery failed" in titles(phone)[0]


def test_a_worker_that_is_gone_is_reported_by_the_web_server(installation: Installation, phone: HttpService) -> None:
    installation.sandbox()
    installation.start("web")
    worker = installation.start("worker")
    until(lambda: installation.caller().ask("GET", "/readyz").status_code == 200, "the worker has reported")
    worker.kill()
    installation.forward(600)
    until(lambda: len(phone.taken) == 1, "the owner is notified")
    assert "The worker has not reported" in titles(phone)[0]
