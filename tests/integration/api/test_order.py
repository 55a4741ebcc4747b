"""The order of checks (contract 1.1), and problems of every address (1.7)."""

import html
import logging
import sqlite3

import pytest

from socialpub.accounts import api_keys
from socialpub.core import errors
from socialpub.db.queries import post_list
from socialpub.publishing.posts import posts
from socialpub.runtime import Runtime
from socialpub.web.http import problems
from socialpub.web.pages.pages import PROBLEM_PAGES
from tests.integration.uploads.caller import Reply
from tests.support.appliance import accept

UNKNOWN = "019ac5d2-6b00-7a31-9f0e-4f1f6f3f7a01"


@pytest.fixture
def reader_key(rt: Runtime) -> str:
    return rt.write(api_keys.create, "reader", "read")


def test_checks_run_in_the_order_of_the_contract(client, rt, profile, reader_key):
    settled = accept(rt, profile)
    wrong = {"content-type": "text/plain"}

    def patch(post_id: str, body: bytes, **told: str | None) -> int:
        return client.send("PATCH", f"/posts/{post_id}", body, **told).status  # type: ignore[arg-type]

    assert patch(UNKNOWN, b"{", key=None, **wrong) == 401
    assert patch(UNKNOWN, b"{", key=reader_key, **wrong) == 403
    assert patch(UNKNOWN, b"{", **wrong) == 415
    assert patch(UNKNOWN, b"{") == 404
    assert patch("no-uuid", b"{") == 404
    assert patch(settled, b"{") == 400
    assert patch(settled, b'{"post": {"body": "x"}}') == 409
    client.app.state.rate_limits.keys._amount = 0
    assert patch(UNKNOWN, b"{", key=reader_key, **wrong) == 429
    assert patch(UNKNOWN, b"{", key=None, **wrong) == 401


def test_a_body_of_one_mebibyte_is_read_and_one_byte_more_is_not(client, profile):
    body = b'{"post": {"body": "x"}, "profiles": ["%b"]}' % profile.encode()
    padded = body + b" " * ((1 << 20) - len(body))
    assert client.send("POST", "/posts", padded).status == 201
    reply = client.send("POST", "/posts", padded + b" ")
    assert reply.status == 413
    assert reply.json()["code"] == "payloadTooLarge"
    assert reply.headers["connection"] == "close"


def test_a_body_in_pieces_is_refused_as_soon_as_it_is_too_large(client):
    told = {"authorization": f"Bearer {client.key}", "content-type": "application/json"}
    reply = client.ask("POST", "/api/v1/posts", [b" " * (1 << 19)] * 8, told)
    assert reply.status == 413
    assert client.taken_before_answer == 3 << 19


def test_the_content_type_of_a_body_is_checked(client, profile):
    body = {"post": {"body": "x"}, "profiles": [profile]}
    for fine in ("application/json", "application/json; charset=utf-8", "Application/JSON"):
        assert client.send("POST", "/posts", body, content_type=fine).status == 201
    for wrong in ("text/plain", "application/x-www-form-urlencoded", "application/jsonx", "", "json"):
        assert client.send("POST", "/posts", body, content_type=wrong).status == 415
    # Only creating a post accepts a form.
    assert client.send("POST", "/uploads", body, content_type="multipart/form-data; boundary=x").status == 415


@pytest.mark.parametrize("path", ["/api", "/api/v1/", "/api/v2/posts", "/api/v1/posts//", "/storage", "/problems/x"])
def test_an_unknown_address_is_not_found_with_or_without_a_key(client, path):
    for headers in ({}, {"authorization": f"Bearer {client.key}"}, {"authorization": "Bearer wrong"}):
        for method in ("GET", "POST", "DELETE"):
            reply = client.ask(method, path, headers=headers)
            if path == "/problems/x" and method != "GET":
                assert reply.status == 405
                continue
            assert (reply.status, reply.json()["code"]) == (404, "notFound")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/api/v1/posts", "GET, HEAD, POST"),
        ("DELETE", f"/api/v1/posts/{UNKNOWN}", "GET, HEAD, PATCH"),
        ("GET", f"/api/v1/posts/{UNKNOWN}/cancel", "POST"),
        ("GET", f"/api/v1/posts/{UNKNOWN}/retry", "POST"),
        ("GET", "/api/v1/posts/validate", "POST"),
        ("POST", "/api/v1/profiles", "GET, HEAD"),
        ("GET", "/api/v1/uploads", "POST"),
        ("OPTIONS", "/api/v1/publish/logs", "GET, HEAD"),
        ("POST", "/storage/media/a/b", "GET, HEAD"),
        ("BREW", "/healthz", "GET, HEAD"),
    ],
)
def test_an_unsupported_method_gets_the_supported_methods(client, method, path, allowed):
    reply = client.ask(method, path)
    assert (reply.status, reply.json()["code"]) == (405, "methodNotAllowed")
    assert reply.headers["allow"] == allowed


def test_a_printable_request_id_is_returned(client):
    for given in ("a", "my id/1", "x" * 128):
        assert client.send("GET", "/posts", x_request_id=given).headers["x-request-id"] == given
    for given in ("", "x" * 129, "a\tb", "é"):
        reply = client.ask("GET", "/api/v1/posts", headers={"x-request-id": given})
        assert reply.headers["x-request-id"] not in ("", given)


def test_ids_in_paths_may_be_in_upper_case(client, rt, profile):
    post_id = accept(rt, profile)
    assert client.send("GET", f"/posts/{post_id.upper()}").data["id"] == post_id
    assert client.send("GET", f"/profiles/{profile.upper()}").data["id"] == profile


# --- Everything that fails is a problem, and a problem shows nothing that is not the caller's (spec 7, contract 1.7) --


SHAPE = ["type", "title", "status", "detail", "code"]


@pytest.mark.parametrize("kind", errors.ALL)
def test_every_kind_of_failure_has_exactly_the_fields_of_the_specification(kind):
    answer = problems.render_problem(kind("Something happened."), "https://social.example/base")
    problem = Reply(answer.status_code, {}, bytes(answer.body)).json()
    assert answer.media_type == "application/problem+json"
    assert list(problem) == SHAPE + (["errors"] if kind.status == 400 else [])
    assert problem["type"] == f"https://social.example/base/problems/{kind.slug}"
    assert (problem["status"], problem["title"], problem["code"]) == (kind.status, kind.title, kind.code)


def test_the_error_codes_are_those_of_the_specification():
    table = {kind.status: (kind.code, kind.slug, kind.title) for kind in errors.ALL}
    assert table[400] == ("invalidRequest", "invalid-request", "Invalid request")
    assert table[401] == ("unauthorized", "unauthorized", "Unauthorized")
    assert table[403] == ("forbidden", "forbidden", "Forbidden")
    assert table[404] == ("notFound", "not-found", "Not found")
    assert table[409] == ("conflict", "conflict", "Conflict")
    assert table[415] == ("unsupportedMediaType", "unsupported-media-type", "Unsupported media type")
    assert table[429] == ("rateLimited", "rate-limited", "Too many requests")
    assert {405, 413, 500, 503} <= table.keys()


def test_an_unexpected_error_shows_no_details(client, monkeypatch, caplog):
    def breaks(*_: object) -> None:
        raise RuntimeError("/srv/secret/place token=abc")

    monkeypatch.setattr(post_list, "load_page", breaks)
    reply = client.send("GET", "/posts", x_request_id="find-me")
    assert (reply.status, reply.json()["code"]) == (500, "internalError")
    assert b"secret" not in reply.body
    assert b"Traceback" not in reply.body
    failed = next(record for record in caplog.records if record.message == "a request failed")
    assert failed.exc_info is not None
    assert failed.__dict__["fields"]["request_id"] == "find-me"


@pytest.mark.parametrize(
    "trouble",
    [sqlite3.OperationalError("database is locked"), sqlite3.OperationalError("database or disk is full")],
)
def test_a_locked_or_full_database_is_unavailable_for_a_while(client, profile, monkeypatch, trouble, caplog):
    def breaks(*_: object) -> str:
        trouble.sqlite_errorcode = sqlite3.SQLITE_FULL  # type: ignore[attr-defined]
        raise trouble

    monkeypatch.setattr(posts, "create", breaks)
    with caplog.at_level(logging.CRITICAL):
        reply = client.send("POST", "/posts", {"post": {"body": "x"}, "profiles": [profile]})
    assert (reply.status, reply.json()["code"]) == (503, "unavailable")
    assert int(reply.headers["retry-after"]) > 0


def test_a_request_after_the_database_is_closed_is_a_503(client, app):
    client.run(app.close())
    reply = client.send("GET", "/posts")
    assert (reply.status, reply.json()["code"]) == (503, "unavailable")
    assert reply.headers["retry-after"]


# --- pages -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", errors.ALL)
def test_each_problem_has_a_page_with_a_remedy(client, kind):
    reply = client.send("GET", f"/problems/{kind.slug}", key=None)
    assert reply.status == 200
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    page = html.unescape(reply.body.decode())
    assert kind.title in page
    assert kind.code in page
    assert PROBLEM_PAGES[kind.slug].remedy.split("`")[0] in page
