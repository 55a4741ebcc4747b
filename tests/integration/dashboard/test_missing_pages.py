"""An unknown address shows a page to browsers and a problem to programs."""

import json

import pytest

UNKNOWN = (
    "/nowhere",
    "/nowhere/at/all",
    "/posts/nothing",
    "/posts/00000000-0001-7000-8000-000000000000",
    "/problems/nothing",
    "/static/no.css",
)
ID = "01999999-0000-7000-8000-000000000000"
NOT_HERE = (
    *(f"/posts/{ID}{action}" for action in ("", "/cancel", "/publish", "/stop", "/again", "/edit", "/reschedule")),
    *(f"/profiles/nobody{page}" for page in ("", "/disconnect", "/picture")),
    f"/profiles/connecting/{ID}",
    "/keys/000000000000/revoke",
    f"/system/notify/{ID}/remove",
)


@pytest.mark.parametrize("path", UNKNOWN + NOT_HERE)
def test_the_owner_gets_a_page_with_the_menu(owner, path):
    page = owner.open(path)
    assert (page.status, page.heading) == (404, "Not found")
    assert page.role("alert") != ""
    assert {"Overview", "Posts", "System", "Go to the overview"} <= page.links().keys()
    assert owner.follow("Go to the overview").heading == "Overview"


@pytest.mark.parametrize("path", UNKNOWN)
def test_a_stranger_gets_a_page_without_it(stranger, path):
    page = stranger.open(path)
    if page.heading == "Set a password first":
        return  # an address that could exist asks who calls before it says whether it does
    assert (page.status, page.heading) == (404, "Not found")
    assert page.links().keys() <= {"Skip to content", "Go to the overview"}


@pytest.mark.parametrize("path", ["/api/v1/nowhere", "/storage/nowhere"])
def test_an_api_path_returns_a_problem_to_browsers(owner, path):
    reply = owner.ask("GET", path)
    assert (reply.status, json.loads(reply.body)["code"]) == (404, "notFound")


def test_a_program_gets_a_problem(owner):
    reply = owner.ask("GET", "/nowhere", headers={"accept": "*/*"})
    assert reply.headers["content-type"] == "application/problem+json"
    assert json.loads(reply.body)["status"] == reply.status == 404
