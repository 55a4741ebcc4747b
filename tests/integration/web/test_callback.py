"""The return of the browser from a consent page."""

import logging
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from socialpub.accounts import consents
from socialpub.accounts.connect import Connected
from socialpub.accounts.remedies import Surface
from socialpub.db.tables import profile_rows
from socialpub.runtime import Runtime
from socialpub.web.http.app import App, create_app
from tests.integration.uploads.caller import Caller, Reply
from tests.support.consent_browser import query_of
from tests.support.scripted_network import ScriptedSignInNetwork


@pytest.fixture
def appliance_options(sandbox_options: dict[str, Any]) -> dict[str, Any]:
    return sandbox_options


@pytest.fixture
def app(rt: Runtime) -> App:
    return create_app(rt)


@pytest.fixture
def caller(app: App) -> Iterator[Caller]:
    with Caller(app, "") as caller:
        yield caller


def visit(caller: Caller, address: str, method: str = "GET") -> Reply:
    parts = urlsplit(address)
    return caller.ask(method, f"{parts.path}?{parts.query}", headers={"accept": "text/html"})


def is_private(reply: Reply, query: dict[str, str]) -> None:
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert reply.headers["cache-control"] == "no-store"
    assert reply.headers["referrer-policy"] == "no-referrer"
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    text = reply.body.decode()
    assert not [value for name, value in query.items() if name in ("code", "state") and value in text]


def test_the_page_names_the_connected_account(rt, caller, browser, caplog):
    begun, url = consents.begin(rt, "x", "Evening <news>")
    back = browser.decides(url)
    with caplog.at_level(logging.DEBUG):
        reply = visit(caller, back)
    assert reply.status == 200
    page = reply.body.decode()
    assert "@demo on X is connected" in page
    assert "Evening &lt;news&gt;" in page
    is_private(reply, query_of(back))
    outcome = consents.load_outcome(rt, begun.id)
    assert isinstance(outcome, Connected)
    assert outcome.profile_id in page
    assert query_of(back)["code"] not in caplog.text
    assert query_of(back)["state"] not in caplog.text


def test_a_connection_from_the_dashboard_leads_back_to_it(rt, caller, browser):
    back = browser.decides(consents.begin(rt, "x", surface=Surface.DASHBOARD)[1])
    page = visit(caller, back).body.decode()
    (profile,) = profile_rows.list_all(rt.db)
    link = f'href="http://127.0.0.1:8000/profiles/{profile.id}"'
    assert link in page
    assert "close this page" not in page
    assert link in visit(caller, back).body.decode(), "a reload also links there"
    denied = browser.decides(consents.begin(rt, "x", surface=Surface.DASHBOARD)[1], decision="deny")
    page = visit(caller, denied).body.decode()
    assert "press “Connect X” under Profiles" in page
    assert 'href="http://127.0.0.1:8000/profiles"' in page


def test_the_page_reports_a_denied_consent(rt, caller, browser):
    back = browser.decides(consents.begin(rt, "x")[1], decision="deny")
    reply = visit(caller, back)
    assert reply.status == 400
    assert "did not give consent at X" in reply.body.decode()
    assert "socialpub admin connect-profile x" in reply.body.decode()
    is_private(reply, query_of(back))


def test_an_error_description_of_a_network_is_escaped(rt, caller):
    state = query_of(consents.begin(rt, "x")[1])["state"]
    said = urlencode({"state": state, "error": "server_error", "error_description": "<script>alert(1)</script>"})
    page = visit(caller, f"/oauth/x/callback?{said}").body.decode()
    assert "&lt;script&gt;" in page
    assert "<script>" not in page


def test_a_head_request_does_not_use_up_a_consent(rt, caller, browser):
    back = browser.decides(consents.begin(rt, "x")[1])
    assert visit(caller, back, "HEAD").status == 200
    assert visit(caller, back).status == 200


@pytest.mark.parametrize("path", ["/oauth/myspace/callback", "/oauth/x", "/oauth/x/callback/more"])
def test_an_unknown_network_has_no_callback(caller, path):
    assert visit(caller, path).status == 404


def test_the_callback_supports_only_get(caller):
    assert visit(caller, "/oauth/x/callback", "POST").status == 405


def test_guessed_states_are_rate_limited_and_a_valid_state_still_works(rt, caller, browser, clock, world):
    back = browser.decides(consents.begin(rt, "x")[1])
    statuses = [visit(caller, f"/oauth/x/callback?state=guess{n}&code=c").status for n in range(31)]
    assert statuses == [400] * 30 + [429]
    assert visit(caller, back).status == 200
    clock.forward(60)
    assert visit(caller, "/oauth/x/callback?state=guess&code=c").status == 400
    assert world.x.counts["token"] == 1


def test_other_requests_are_served_during_a_slow_call_to_a_network(rt, caller, browser, monkeypatch):
    import asyncio
    import threading

    asking, answered = threading.Event(), threading.Event()
    finish = consents.finish

    def slow(*args: object) -> object:
        asking.set()
        assert answered.wait(60), "no other request was served"
        return finish(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(consents, "finish", slow)
    parts = urlsplit(browser.decides(consents.begin(rt, "x")[1]))

    async def both() -> tuple[Reply, Reply]:
        first = asyncio.create_task(caller.asking("GET", f"{parts.path}?{parts.query}"))
        await asyncio.to_thread(asking.wait, 60)
        second = await caller.asking("GET", "/healthz")
        answered.set()
        return await first, second

    first, second = caller.run(both())
    assert (first.status, second.status) == (200, 200)


def test_a_network_without_a_consent_page_has_no_callback(rt: Runtime, caller: Caller) -> None:
    rt.providers["bluesky"] = ScriptedSignInNetwork()  # type: ignore[assignment]
    answered = [visit(caller, f"/oauth/{name}/callback?state=s&code=c") for name in ("bluesky", "unknown")]
    assert [reply.status for reply in answered] == [404, 404]
    assert answered[0].body == answered[1].body
