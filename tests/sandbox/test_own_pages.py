"""A page of another site cannot control the sandbox through the owner's browser."""

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import World
from tests.sandbox.clients import XClient

STEERING = [
    ("POST", "/_control/reset"),
    ("POST", "/_control/x/grant"),
    ("DELETE", "/_control/x/faults"),
    ("POST", "/x/feed/faults"),
    ("POST", "/tiktok/feed/faults"),
    ("POST", "/tiktok/feed/drafts"),
    ("POST", "/pinterest/feed/faults"),
    ("POST", "/bluesky/feed/faults"),
    ("POST", "/accounts"),
    ("POST", "/x/i/oauth2/authorize"),
    ("POST", "/tiktok/v2/auth/authorize/"),
    ("POST", "/pinterest/oauth/"),
]
FOREIGN = [
    ({"origin": "https://attacker.example"}, "Origin: https://attacker.example"),
    ({"origin": "null"}, "Origin: null"),
    ({"origin": "http://["}, "Origin: http://["),
    ({"host": "127.0.0.1:8100", "origin": "http://127.0.0.1:3000"}, "Origin: http://127.0.0.1:3000"),
    ({"host": "127.0.0.1:8100", "origin": "http://127.0.0.1:8100.attacker.example"}, "Origin: http://127.0.0.1:8100."),
]
OWN = [
    {"host": "127.0.0.1:8100"},
    {"host": "localhost:8100", "origin": "http://localhost:8100"},
    {"host": "LOCALHOST", "origin": "http://localhost"},
    {"host": "[::1]:8100", "origin": "http://[::1]:8100"},
    {"host": "192.0.2.7:8100"},
    {"host": "sandbox:8100"},
    {"host": "sandbox.localhost:8100"},
]


@pytest.mark.parametrize(("headers", "says"), FOREIGN, ids=[says for _, says in FOREIGN])
@pytest.mark.parametrize(("method", "path"), STEERING, ids=[" ".join(one) for one in STEERING])
def test_what_a_foreign_page_sends_is_refused(
    world: World, web: TestClient, x: XClient, method: str, path: str, headers: dict[str, str], says: str
) -> None:
    x.post("stays")
    answer = web.request(method, path, headers=headers, data={"fault": "503_before"} if method == "POST" else None)
    assert answer.status_code == 403
    assert says in answer.text
    assert x.post("no fault was arranged").status_code == 201
    assert [post.text for post in world.x.posts] == ["stays", "no fault was arranged"]


@pytest.mark.parametrize("headers", OWN, ids=[one["host"] for one in OWN])
def test_programs_and_its_own_pages_are_let_in(web: TestClient, headers: dict[str, str]) -> None:
    assert web.post("/_control/x/grant", json={"username": "demo"}, headers=headers).status_code == 200
    assert web.post("/x/feed/faults", data={"fault": "limited"}, headers=headers).status_code == 303
    assert web.post("/x/i/oauth2/authorize", headers=headers).status_code == 400, "nothing was asked for"


def test_network_apis_and_public_pages_accept_every_origin(web: TestClient, x: XClient) -> None:
    foreign = {"host": "sandbox.example.net", "origin": "https://attacker.example"}
    token = {"authorization": f"Bearer {x.token}"}
    assert web.get("/x/2/users/me", headers=foreign | token).status_code == 200
    for path in ("/", "/x/feed", "/tiktok/feed", "/pinterest/feed"):
        assert web.get(path, headers=foreign).status_code == 200
