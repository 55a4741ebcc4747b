"""The log and `doctor` name a proxy that is missing in `[proxies] trusted`. Clients cannot flood them."""

import asyncio
import logging
from typing import Any

import pytest

from socialpub.core.settings.schema import ProxiesSection
from socialpub.ops.doctor import reachability
from socialpub.ops.health import Finding, Level
from socialpub.runtime import Runtime
from socialpub.web.http.app import App, create_app
from socialpub.web.http.client_address import MAX_PEERS

GATEWAY = "172.18.0.1"


@pytest.fixture
def app(rt: Runtime) -> App:
    return create_app(rt)


def call(app: App, peer: str | None, **headers: str) -> None:
    told = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": "http", "http_version": "1.1", "method": "GET", "scheme": "http", "path": "/healthz",
        "raw_path": b"/healthz", "query_string": b"", "headers": [(b"host", b"testserver"), *told],
        "client": None if peer is None else (peer, 50000), "server": ("testserver", 80),
    }  # fmt: skip

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_: object) -> None:
        pass

    async def story() -> None:
        await app(scope, receive, send)

    asyncio.run(story())


def started(app: App) -> None:
    asyncio.run(app.flush())


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [line.fields for line in caplog.records if "X-Forwarded-For" in line.message]  # type: ignore[attr-defined]


def found(rt: Runtime) -> list[Finding]:
    return list(reachability.check_untrusted_proxies(rt))


def test_the_log_names_the_peer_and_the_setting_once_an_hour(app, clock, caplog):
    with caplog.at_level(logging.WARNING, "socialpub"):
        for _ in range(5):
            call(app, GATEWAY, x_forwarded_for=f"198.51.100.7, {'x' * 5000}\x1b[2J")
        call(app, GATEWAY)
        call(app, "127.0.0.1", x_forwarded_for="198.51.100.7")
        (line,) = lines(caplog)
        assert line["peer"] == GATEWAY
        assert line["setting"] == "proxies.trusted"
        assert line["remedy"] == (
            f'If {GATEWAY} is your reverse proxy, set [proxies] trusted = ["127.0.0.1", "::1", "{GATEWAY}"]. '
            "Stop `socialpub serve` and start it again."
        )
        assert line["value"].startswith("198.51.100.7, xxx")
        assert len(line["value"]) == 100
        clock.forward(3601)
        call(app, GATEWAY, x_forwarded_for="198.51.100.7")
        assert len(lines(caplog)) == 2


def test_the_doctor_reports_a_proxy_seen_within_a_day(app, rt, clock):
    assert found(rt) == []
    call(app, f"::ffff:{GATEWAY}", x_forwarded_for="198.51.100.7")
    (finding,) = found(rt)
    assert (finding.level, finding.subject) == (Level.PROBLEM, "proxies")
    assert f"X-Forwarded-For came from {GATEWAY} at {rt.stamp()}" in finding.message
    assert f'trusted = ["127.0.0.1", "::1", "{GATEWAY}"]' in (finding.remedy or "")
    clock.forward(23 * 3600)
    call(app, GATEWAY, x_forwarded_for="198.51.100.7")
    clock.forward(23 * 3600)
    assert len(found(rt)) == 1, "it was seen again since"
    clock.forward(3601)
    assert found(rt) == []


def test_the_setting_decides_whether_a_proxy_is_reported_after_a_start(app, rt):
    call(app, GATEWAY, x_forwarded_for="198.51.100.7")
    rt.settings = rt.settings.model_copy(update={"proxies": ProxiesSection(trusted=("127.0.0.1", GATEWAY))})
    again = create_app(rt)
    started(again)
    assert found(rt) == []
    call(again, GATEWAY, x_forwarded_for="198.51.100.7")
    assert found(rt) == []
    rt.settings = rt.settings.model_copy(update={"proxies": ProxiesSection(trusted=())})
    again = create_app(rt)
    call(again, GATEWAY, x_forwarded_for="198.51.100.7")
    call(again, None, x_forwarded_for="198.51.100.7")
    assert list(reachability.read_untrusted_proxies(rt.db)) == [GATEWAY, "unix"]


def test_other_peers_fill_neither_log_nor_memory_and_hide_no_private_proxy(app, rt, clock, caplog):
    with caplog.at_level(logging.WARNING, "socialpub"):
        for number in range(MAX_PEERS + 20):
            call(app, f"8.8.8.{number}", x_forwarded_for="127.0.0.1")
        assert len(lines(caplog)) == MAX_PEERS
        assert {one.level for one in found(rt)} == {Level.NOTE}, "a stranger turns no doctor red"
        call(app, GATEWAY, x_forwarded_for="198.51.100.7")
        assert [one.level for one in found(rt)].count(Level.PROBLEM) == 1
        assert len(reachability.read_untrusted_proxies(rt.db)) == MAX_PEERS
        clock.forward(3601)
        call(app, "8.8.4.4", x_forwarded_for="127.0.0.1")
        assert "8.8.4.4" in reachability.read_untrusted_proxies(rt.db), "an hour later there is room"
        assert GATEWAY in reachability.read_untrusted_proxies(rt.db)
