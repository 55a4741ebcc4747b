"""Where the web server listens: what systemd holds open counts, and what is wrong with it is told."""

import logging
import socket
from collections.abc import Callable

import pytest

from socialpub.core.errors import OperatorError
from socialpub.core.machine import ServiceManager
from socialpub.runtime import Runtime
from socialpub.web.http import server
from tests.integration.web.wire import free_port


def hand_over(rt: Runtime, *sockets: socket.socket) -> None:
    """As systemd does: under a number, and the object here has no say any more."""
    rt.service_manager = ServiceManager(descriptors=tuple(each.detach() for each in sockets))


def test_the_sockets_that_were_handed_over_are_used(rt: Runtime, caplog: pytest.LogCaptureFixture) -> None:
    four, six = socket.create_server(("127.0.0.1", 0)), socket.create_server(("::1", 0), family=socket.AF_INET6)
    ports = [each.getsockname()[1] for each in (four, six)]
    hand_over(rt, four, six)
    with caplog.at_level(logging.WARNING):
        sockets = server.open_for(rt)
    assert server.addresses(sockets) == f"127.0.0.1:{ports[0]}, [::1]:{ports[1]}"
    assert "its address is not `listen`" in caplog.text, "links lead to where the configuration says"
    for each in sockets:
        assert not each.getblocking()
        each.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_socket_at_the_configured_address_is_nothing_to_speak_of(
    rt: Runtime, caplog: pytest.LogCaptureFixture, host: str
) -> None:
    port = free_port()
    rt.settings = rt.settings.model_copy(update={"listen": f"{host}:{port}"})
    bound = server.bind(rt.settings)
    hand_over(rt, *bound)
    with caplog.at_level(logging.WARNING):
        for each in server.open_for(rt):
            each.close()
    assert caplog.text == ""


@pytest.mark.parametrize(
    "make",
    [
        lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
        lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM),
    ],
    ids=["datagrams", "one connection", "of this machine alone"],
)
def test_any_other_socket_is_refused_with_the_remedy(rt: Runtime, make: Callable[[], socket.socket]) -> None:
    hand_over(rt, make())
    with pytest.raises(OperatorError, match="none that listens for TCP") as refused:
        server.open_for(rt)
    assert "ListenStream=" in (refused.value.hint or "")
