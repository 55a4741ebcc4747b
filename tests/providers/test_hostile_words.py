"""A network with hostile refusals: only the owner sees their text."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from socialpub.accounts.remedies import Surface
from socialpub.db import appliance_state
from socialpub.db.tables import waits
from socialpub.ops import alerts
from socialpub.publishing.posts.drafts import DraftMedia
from socialpub.runtime import Runtime
from socialpub.web.http.app import create_app
from tests.integration.uploads.caller import Caller, Reply
from tests.samples import media
from tests.support.appliance import accept, add_profile, open_appliance
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import artifact, http_over, providers_of_the_sandbox
from tests.support.select import select_value

WORDS = 'quoth <script>alert(1)</script>\r\nsocialpub_held{provider="x"} 7\u202e token=hush-0123456789abcdef'


class HostileTransport(httpx2.AsyncBaseTransport):
    """Responds to every call with `status` and with WORDS in every text field."""

    status, code = 402, 3

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body: dict[str, Any] = {"title": WORDS, "detail": WORDS, "type": "about:blank", "status": self.status}
        if "/pinterest/" in request.url.path:
            body = {"code": self.code, "message": WORDS}
        if "/tiktok/" in request.url.path:
            body = {"error": {"code": "scope_not_authorized", "message": WORDS, "log_id": WORDS}, "data": {}}
        return httpx2.Response(self.status, json=body)


@pytest.fixture
def transport() -> HostileTransport:
    return HostileTransport()


@pytest.fixture
def rt(tmp_path: Path, clock: HandClock, transport: HostileTransport) -> Iterator[Runtime]:
    rt = open_appliance(tmp_path, clock, http=http_over(transport), networks=providers_of_the_sandbox())
    yield rt
    rt.close()


def asked_by_a_stranger(rt: Runtime, path: str) -> Reply:
    rt.db.write(lambda tx: appliance_state.put(tx, appliance_state.HEARTBEAT, tx.stamp))
    with Caller(create_app(rt), "no key") as stranger:
        return stranger.ask("GET", path)


def published_to(rt: Runtime, provider: str, folder: Path) -> str:
    options = {"pinterest": {"pinterest": {"boardId": "5001"}}, "tiktok": {"tiktok": {"privacyLevel": "SELF_ONLY"}}}
    items: tuple[DraftMedia, ...] = ()
    if provider != "x":
        items = (DraftMedia(artifact(rt, media.png(folder / "a.png"), "image/png")),)
    return accept(rt, add_profile(rt, provider), media=items, options=options.get(provider))


@pytest.mark.parametrize(("provider", "status"), [("x", 402), ("pinterest", 401)])
def test_a_hold_shows_the_networks_message_only_to_the_owner(
    rt: Runtime, transport: HostileTransport, clock: HandClock, tmp_path: Path, provider: str, status: int
) -> None:
    transport.status = status
    post = published_to(rt, provider, tmp_path)
    drain(rt, clock, within=60.0)
    (hold,) = waits.list_holds(rt.db)
    assert "quoth" in hold.message

    (shown,) = asked_by_a_stranger(rt, "/readyz").json()["held"]
    assert shown["code"] == "publishingHeld"
    label = rt.providers[provider].label
    assert shown["reason"].startswith(f"{label} refuses this app. Deliveries to this network wait. ")
    assert set(shown) == {"provider", "since", "code", "reason"}
    metrics = asked_by_a_stranger(rt, "/metrics").body.decode()
    (held,) = (family for family in text_string_to_metric_families(metrics) if family.name == "socialpub_held")
    assert {one.labels["provider"]: one.value for one in held.samples} == {
        name: float(name == provider) for name in rt.providers
    }

    attempts = "SELECT message FROM attempt JOIN delivery ON id = delivery_id WHERE post_id = ?"
    assert "quoth" in select_value(rt.db, attempts, (post,))
    owner = [cause.sentence for cause in alerts.list_alerts(rt, Surface.DASHBOARD)]
    assert any("quoth" in sentence for sentence in owner)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
@pytest.mark.parametrize("provider", ["x", "tiktok", "pinterest"])
def test_no_message_of_a_network_reaches_an_unauthenticated_caller(
    rt: Runtime, transport: HostileTransport, clock: HandClock, tmp_path: Path, provider: str, status: int
) -> None:
    transport.status = status
    published_to(rt, provider, tmp_path)
    drain(rt, clock, within=60.0)
    assert select_value(rt.db, "SELECT count(*) FROM attempt") > 0
    for path in ("/readyz", "/healthz", "/metrics", "/", "/problems/not-found"):
        answer = asked_by_a_stranger(rt, path)
        for word in (b"quoth", b"script>alert", b"hush", b"\\u202e"):
            assert word not in answer.body, path
