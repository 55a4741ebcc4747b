"""Everything that fails is a problem, and a problem shows nothing that is not the caller's (spec 7, contract 1.7)."""

import html
import logging
import sqlite3

import pytest

from socialpub.core import errors
from socialpub.db.queries import post_list
from socialpub.publishing.posts import posts
from socialpub.runtime import Runtime
from socialpub.web.http import problems
from socialpub.web.http.app import App
from socialpub.web.pages.pages import PROBLEM_PAGES
from tests.integration.api.client import Client, check
from tests.integration.uploads.caller import Reply

SHAPE = ["type", "title", "status", "detail", "code"]


@pytest.mark.parametrize("kind", errors.ALL)
def test_every_kind_of_failure_has_exactly_the_fields_of_the_specification(kind: type[errors.SocialpubError]) -> None:
    """A URI that explains, a title, the status again, what happened, a code; and on 400 the failing fields."""
    answer = problems.render_problem(kind("Something happened."), "https://social.example/base")
    problem = Reply(answer.status, {}, answer.body).json()
    assert answer.content_type == b"application/problem+json"
    assert list(problem) == SHAPE + (["errors"] if kind.status == 400 else [])
    assert problem["type"] == f"https://social.example/base/problems/{kind.slug}"
    assert (problem["status"], problem["title"], problem["code"]) == (kind.status, kind.title, kind.code)


def test_the_table_of_codes_is_the_specifications() -> None:
    table = {kind.status: (kind.code, kind.slug, kind.title) for kind in errors.ALL}
    assert table[400] == ("invalidRequest", "invalid-request", "Invalid request")
    assert table[401] == ("unauthorized", "unauthorized", "Unauthorized")
    assert table[403] == ("forbidden", "forbidden", "Forbidden")
    assert table[404] == ("notFound", "not-found", "Not found")
    assert table[409] == ("conflict", "conflict", "Conflict")
    assert table[415] == ("unsupportedMediaType", "unsupported-media-type", "Unsupported media type")
    assert table[429] == ("rateLimited", "rate-limited", "Too many requests")
    assert {405, 413, 500, 503} <= table.keys()


def test_a_failure_nobody_foresaw_shows_nothing_of_the_appliance(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(*_: object) -> None:
        raise RuntimeError("/srv/secret/place token=abc")

    monkeypatch.setattr(post_list, "read", breaks)
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
def test_a_locked_or_full_database_is_unavailable_for_a_while(
    client: Client, profile: str, monkeypatch: pytest.MonkeyPatch, trouble: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(*_: object) -> str:
        trouble.sqlite_errorcode = sqlite3.SQLITE_FULL  # type: ignore[attr-defined]
        raise trouble

    monkeypatch.setattr(posts, "create", breaks)
    with caplog.at_level(logging.CRITICAL):
        reply = client.send("POST", "/posts", {"post": {"body": "x"}, "profiles": [profile]})
    assert (reply.status, reply.json()["code"]) == (503, "unavailable")
    assert int(reply.headers["retry-after"]) > 0


def test_what_arrives_after_the_database_is_gone_is_told_to_come_back(client: Client, app: App) -> None:
    client.run(app.close())
    reply = client.send("GET", "/posts")
    assert (reply.status, reply.json()["code"]) == (503, "unavailable")
    assert reply.headers["retry-after"]


# --- pages -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", errors.ALL)
def test_each_problem_has_a_page_that_says_what_to_do(client: Client, kind: type[errors.SocialpubError]) -> None:
    reply = client.send("GET", f"/problems/{kind.slug}", key=None)
    assert reply.status == 200
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    page = html.unescape(reply.body.decode())
    assert kind.title in page
    assert kind.code in page
    assert PROBLEM_PAGES[kind.slug].remedy.split("`")[0] in page


def test_a_browser_outside_of_the_api_gets_a_page_and_inside_a_problem(client: Client, rt: Runtime) -> None:
    browser = {"accept": "text/html,application/xhtml+xml"}
    outside = client.ask("GET", "/nowhere", headers=browser)
    assert (outside.status, outside.headers["content-type"]) == (404, "text/html; charset=utf-8")
    for path in ("/api/v1/nowhere", "/storage/media/a"):
        inside = client.ask("GET", path, headers=browser)
        assert inside.headers["content-type"] == "application/problem+json"
        check("GET", path, inside)
