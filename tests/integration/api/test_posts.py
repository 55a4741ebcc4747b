"""Lists, changes, cancellations and attempts of posts (spec 4.2, contract section 4)."""

from datetime import timedelta
from typing import Any

import pytest

from socialpub.accounts import api_keys
from socialpub.core.clock import stamp
from socialpub.db.models import AttemptRow
from socialpub.db.tables import delivery_rows
from socialpub.publishing.delivery import resume
from socialpub.runtime import Runtime
from tests.integration.api.client import Client
from tests.support.appliance import accept, add_profile, approve
from tests.support.drain import drain
from tests.support.rows import artifact
from tests.support.select import select_all

UNKNOWN = "019ac5d2-6b00-7a31-9f0e-4f1f6f3f7a01"


def listed(client: Client, query: str = "") -> list[str]:
    reply = client.send("GET", f"/posts{query}")
    assert reply.status == 200, reply.body
    assert reply.json()["pagination"]["total"] >= len(reply.data)
    return [post["id"] for post in reply.data]


# --- lists -----------------------------------------------------------------------------------------------------------


def test_the_newest_post_is_first_and_pages_are_consecutive(client, rt, profile, clock):
    posts = []
    for _ in range(5):
        posts.insert(0, accept(rt, profile))
        clock.forward(1)
    assert listed(client) == posts
    reply = client.send("GET", "/posts?page=1&perPage=2").json()
    assert [post["id"] for post in reply["data"]] == posts[2:4]
    assert reply["pagination"] == {"page": 1, "perPage": 2, "total": 5}
    beyond = client.send("GET", "/posts?page=9007199254740991&perPage=100").json()
    assert beyond == {"data": [], "pagination": {"page": 9007199254740991, "perPage": 100, "total": 5}}


def test_filters_by_status_profile_and_provider(client, rt):
    x, other_x, tiktok = add_profile(rt, "x", "a"), add_profile(rt, "x", "b"), add_profile(rt, "tiktok", "c")
    later = rt.now() + timedelta(hours=1)
    now_x, scheduled, both, on_tiktok = (
        accept(rt, x),
        accept(rt, other_x, at=later),
        accept(rt, x, tiktok),
        accept(rt, tiktok),
    )
    assert listed(client, "?status=scheduled") == [scheduled]
    assert listed(client, "?status=settled") == []
    assert listed(client, f"?profileIds={x}") == [both, now_x]
    assert listed(client, f"?profileIds={x.upper()},{other_x}") == [both, scheduled, now_x]
    assert listed(client, "?providers=tiktok") == [on_tiktok, both]
    assert listed(client, "?providers=tiktok,x") == [on_tiktok, both, scheduled, now_x]
    assert listed(client, f"?profileIds={UNKNOWN}") == []
    assert listed(client, f"?status=pending&profileIds={x}&providers=x") == [both, now_x]
    # One delivery must match both filters.
    assert listed(client, f"?profileIds={x}&providers=tiktok") == []


def test_filters_by_scheduled_time_are_inclusive(client, rt, profile):
    first, second = (accept(rt, profile, at=rt.now() + timedelta(hours=hours)) for hours in (1, 2))
    accept(rt, profile)
    assert listed(client, "?scheduledAfter=2026-10-12T11:00:00Z") == [second]
    assert listed(client, "?scheduledBefore=2026-10-12T10:00:00Z") == [first]
    assert listed(client, "?scheduledAfter=2026-10-12T10:00:00.001Z") == [second]
    assert listed(client, "?scheduledAfter=2026-10-12T12:00:00%2B02:00&scheduledBefore=2026-10-12T10:00:00Z") == [first]
    # An unescaped + arrives as a space.
    assert listed(client, "?scheduledAfter=2026-10-12T13:00:00+02:00") == [second]


BAD_VALUES = {
    "/posts": "status=done profileIds=x,y providers=x,facebook providers=x,,tiktok page=-1 page=1.5 status=null "
    "scheduledAfter=2026-10-12T10:00:00 scheduledBefore=1795264200 page=%D9%A1 page=+1 page=9007199254740992 "
    f"page={'9' * 400} perPage=0 perPage=101 perPage=x",
    "/posts/{post}": "wait=0 wait=61 wait=null wait=x wait=-1 wait=1.5",
    "/publish/logs": "limit=101 limit=-1 limit=x limit=1.0 offset=-1 offset=1e3 after= after=null after",
}


@pytest.mark.parametrize("path", BAD_VALUES)
def test_a_known_parameter_with_a_bad_value_is_named(client, rt, profile, path):
    address = path.format(post=accept(rt, profile, at=rt.now() + timedelta(hours=1)))
    for query in BAD_VALUES[path].split():
        reply = client.send("GET", f"{address}?{query}")
        assert (reply.status, reply.paths()) == (400, [[query.partition("=")[0]]]), query


REPEATED = (
    "/posts?status=pending&status=settled",
    "/posts?page=0&page=0",
    "/posts?perPage=&perPage=5",
    "/posts?scheduledAfter=2026-10-12T10:00:00Z&scheduledAfter=2027-10-12T10:00:00Z",
    "/posts/{post}?wait=1&wait=2",
    "/publish/logs?after=start&after=start",
    "/publish/logs?limit=1&limit=2",
    "/profiles/{profile}/choices?boardId=1&boardId=2",
)


@pytest.mark.parametrize("path", REPEATED)
def test_a_repeated_parameter_is_refused(client, rt, profile, path):
    address = path.format(post=accept(rt, profile), profile=profile)
    reply = client.send("GET", address)
    name = address.partition("?")[2].partition("=")[0]
    assert (reply.status, reply.paths()) == (400, [[name]])
    assert reply.json()["detail"] == f"{name} is given twice."


def test_a_repeated_list_is_the_union(client, rt):
    x, tiktok = add_profile(rt, "x"), add_profile(rt, "tiktok", "b")
    on_x, on_tiktok = accept(rt, x), accept(rt, tiktok)
    assert listed(client, f"?profileIds={x}&profileIds={tiktok}") == [on_tiktok, on_x]
    assert listed(client, f"?profileIds={tiktok},%20{x}&profileIds=") == [on_tiktok, on_x]
    assert listed(client, f"?profileIds=&profileIds={x}") == [on_x]
    assert listed(client, "?providers=tiktok&providers=x,tiktok") == [on_tiktok, on_x]
    assert listed(client, "?providers=x,%20tiktok") == [on_tiktok, on_x]
    assert client.send("GET", f"/posts?profileIds={x}&profileIds=y").paths() == [["profileIds"]]


def test_an_empty_value_means_the_default(client, rt, profile):
    post = accept(rt, profile)
    empty = "status=&deliveryStatus=&profileIds=&providers=&scheduledAfter=&scheduledBefore=&page=&perPage="
    for query in (f"?{empty}", "?page=null&perPage=null", "?perPage=1", "?perPage=100", "?status"):
        assert listed(client, query) == [post]
    for path in (f"/posts/{post}?wait=", "/publish/logs?limit=&offset=", f"/profiles/{profile}/choices?boardId="):
        assert client.send("GET", path).status == 200, path
    assert client.send("GET", "/posts?stat=").paths() == [["stat"]]


# --- one post --------------------------------------------------------------------------------------------------------


def test_a_post_shows_the_status_of_each_delivery(client, rt, clock):
    x, tiktok = add_profile(rt, "x", "a"), add_profile(rt, "tiktok", "b", status="reauthRequired")
    post_id = accept(rt, x, tiktok, options={"x": {"replySettings": "following"}})
    drain(rt, clock)
    post = client.send("GET", f"/posts/{post_id}").data
    assert post["status"] == "settled"
    assert [delivery["provider"] for delivery in post["deliveries"]] == ["x", "tiktok"]
    assert post["deliveries"][0]["providerOptions"] == {"replySettings": "following"}
    for name in ("body", "id", "createdAt", "updatedAt", "media"):
        assert name in post
    assert None not in post.values()


def test_media_has_a_signed_url(client, rt, profile):
    used = artifact(rt)
    media = [{"artifactId": used, "alt": "A"}, {"artifactId": used}]
    post = client.send("POST", "/posts", {"post": {}, "profiles": [profile], "media": media}).data
    first, second = post["media"]
    assert first["id"] != second["id"]
    assert first["artifactStatus"] == "verified"
    assert first["contentType"] == "image/png"
    assert first["url"].startswith(f"http://127.0.0.1:8000/storage/media/ab/cd/{used}-1.png?expires=")
    assert (first["alt"], "alt" in second) == ("A", False)


def test_attempts_are_ordered_by_start_time(client, rt, clock):
    post = accept(rt, add_profile(rt, "x", "a"), add_profile(rt, "tiktok", "b"))
    first, second = (row["id"] for row in select_all(rt.db, "SELECT id FROM delivery ORDER BY position"))

    def attempt(delivery: str, step: str, seconds: int) -> None:
        # A long step is stored after steps that started later.
        started_at = stamp(rt.now() + timedelta(seconds=seconds))
        of_delivery = {"delivery_id": delivery, "profile_id": UNKNOWN, "provider": "x"}
        run = {"step": step, "started_at": started_at, "outcome": "done"}
        rt.db.write(lambda tx: tx.insert(AttemptRow, {**of_delivery, **run}))

    attempt(second, "b", 2)
    attempt(first, "c", 3)
    attempt(first, "a", 1)
    attempt(second, "d", 3)
    assert [one["step"] for one in client.send("GET", f"/posts/{post}/attempts").data] == ["a", "b", "c", "d"]
    # A due and paused delivery has its `held` attempt at the end.
    rt.write(resume.pause)
    held = client.send("GET", f"/posts/{post}/attempts").data
    assert [one["step"] for one in held] == ["a", "b", "c", "d", "start", "start"]
    assert [one["startedAt"] for one in held] == sorted(one["startedAt"] for one in held)


def test_attempts_explain_why_a_delivery_waits(client, rt, profile, clock):
    scheduled = accept(rt, profile, at=rt.now() + timedelta(hours=1))
    assert client.send("GET", f"/posts/{scheduled}/attempts").json() == {"data": []}
    rt.write(resume.pause)
    waiting = accept(rt, profile)
    assert client.send("GET", f"/posts/{waiting}/attempts").data[-1]["outcome"] == "held"
    rt.write(resume.end_pause)
    drain(rt, clock, within=60)
    attempts = client.send("GET", f"/posts/{waiting}/attempts").data
    assert attempts
    assert all(isinstance(value, str) for attempt in attempts for value in attempt.values())
    assert client.send("GET", f"/posts/{UNKNOWN}/attempts").status == 404


# --- validate --------------------------------------------------------------------------------------------------------


def test_validate_checks_like_create_and_stores_nothing(client, rt, profile):
    draft: dict[str, Any] = {"post": {"body": "Hello"}, "profiles": [profile]}
    reply = client.send("POST", "/posts/validate", draft)
    assert reply.status == 200
    assert reply.data["valid"] is True
    assert reply.data["deliveries"] == [{"profileId": profile, "provider": "x", "problems": []}]
    for broken in ({}, {**draft, "profiles": [UNKNOWN]}, {**draft, "post": {"scheduledAt": "2020-01-01T00:00:00Z"}}):
        assert client.send("POST", "/posts/validate", broken).paths() == client.send("POST", "/posts", broken).paths()
    assert listed(client) == []


# --- change ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def scheduled(rt: Runtime, profile: str) -> str:
    return accept(rt, profile, body="Before", at=rt.now() + timedelta(hours=1))


def test_a_scheduled_post_is_changed_field_by_field(client, rt, scheduled):
    def patch(body: Any) -> Any:
        reply = client.send("PATCH", f"/posts/{scheduled}", body)
        assert reply.status == 200, reply.body
        return reply.data

    assert patch({"post": {"body": " After "}})["body"] == "After"
    assert patch({"post": {"scheduledAt": "2026-10-12T12:00:00Z"}})["scheduledAt"] == "2026-10-12T12:00:00.000Z"
    used = artifact(rt)
    assert [item["artifactId"] for item in patch({"media": [{"artifactId": used}]})["media"]] == [used]
    assert patch({"media": []})["media"] == []
    assert patch({"providerOptions": {"x": {"a": 1}}})["deliveries"][0]["providerOptions"] == {"a": 1}
    unchanged = patch({"post": {"body": "After"}})
    assert (unchanged["body"], unchanged["status"]) == ("After", "scheduled")
    assert unchanged["deliveries"][0]["providerOptions"] == {"a": 1}
    assert patch({"providerOptions": {}})["deliveries"][0]["providerOptions"] == {}


MEDIA = [{"artifactId": "first", "alt": "A cat"}, {"artifactId": "second"}]
OWN_URL = [MEDIA[0], {"url": "second"}]


@pytest.mark.parametrize(
    ("change", "is_new"),
    [
        ({"post": {"body": " Hello\n"}}, False),
        ({"post": {"scheduledAt": "2026-10-12T14:00:00.0000+02:00"}}, False),
        ({"media": MEDIA}, False),
        ({"media": OWN_URL}, False),
        ({"providerOptions": {"x": {"b": [1, 2], "a": 1}}}, False),
        ({"providerOptions": {"x": {"b": [1, 2], "a": 1, "stored": "yes"}}}, False),
        ({"post": {"body": "Hello", "scheduledAt": "2026-10-12T12:00:00Z"}, "media": MEDIA}, False),
        ({"post": {"body": "Hello."}}, True),
        ({"post": {"scheduledAt": "2026-10-12T12:00:00.001Z"}}, True),
        ({"post": {"body": "Hello", "scheduledAt": None}}, True),
        ({"media": MEDIA[::-1]}, True),
        ({"media": [MEDIA[0], {**MEDIA[1], "alt": "A dog"}]}, True),
        ({"providerOptions": {"x": {"a": True, "b": [1, 2]}}}, True),
        ({"providerOptions": {"x": {"a": 1, "b": [2, 1]}}}, True),
        ({"providerOptions": {}}, True),
    ],
)
def test_a_change_that_repeats_the_current_values_keeps_the_post_and_its_approval(client, rt, clock, change, is_new):
    ids = {"first": artifact(rt), "second": artifact(rt)}
    profile = add_profile(rt, account_id="agent's", options={"stored": "yes"})
    client.key = rt.write(api_keys.create, "agent", approval=True)
    draft = {
        "post": {"body": "Hello", "scheduledAt": "2026-10-12T12:00:00Z"},
        "profiles": [profile],
        "media": [{**item, "artifactId": ids[item["artifactId"]]} for item in MEDIA],
        "providerOptions": {"x": {"a": 1, "b": [1, 2]}},
    }
    post_id = client.send("POST", "/posts", draft).data["id"]
    approve(rt, post_id)
    before = client.send("GET", f"/posts/{post_id}").data
    if "media" in change:
        items = [{name: ids.get(value, value) for name, value in item.items()} for item in change["media"]]
        change = {**change, "media": [{"url": before["media"][1]["url"]} if "url" in item else item for item in items]}
    clock.forward(1)
    changed = client.send("PATCH", f"/posts/{post_id}", change)
    assert changed.status == 200
    assert (changed.data["updatedAt"] != before["updatedAt"]) == is_new
    assert (changed.data == {**before, "media": changed.data["media"]}) == (not is_new)
    assert (delivery_rows.unapproved_among(rt.db, [post_id]) == {post_id}) == is_new


def test_a_null_time_publishes_at_once(client, scheduled):
    post = client.send("PATCH", f"/posts/{scheduled}", {"post": {"scheduledAt": None, "body": "Now"}}).data
    assert (post["status"], post["body"]) == ("pending", "Now")
    assert "scheduledAt" not in post
    assert client.send("PATCH", f"/posts/{scheduled}", {"post": {"body": "x"}}).status == 409


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ({}, [[]]),
        ({"post": {}}, [[]]),
        ({"post": {"body": ""}}, [["post", "body"]]),
        ({"post": {"body": None}}, [["post", "body"]]),
        ({"post": {"scheduledAt": "2026-10-12T09:00:00Z"}}, [["post", "scheduledAt"]]),
        ({"post": {"scheduledAt": "soon"}}, [["post", "scheduledAt"]]),
        ({"post": None}, [["post"]]),
        ({"media": None}, [["media"]]),
        ({"media": [{}] * 21}, [["media"]]),
        ({"media": [{"artifactId": UNKNOWN, "alt": ""}]}, [["media", 0, "alt"], ["media", 0, "artifactId"]]),
        ({"providerOptions": {"tiktok": {}}}, [["providerOptions", "tiktok"]]),
        ({"profiles": []}, [["profiles"]]),
    ],
)
def test_a_change_that_cannot_be_accepted_changes_nothing(client, scheduled, body, paths):
    before = client.send("GET", f"/posts/{scheduled}").data
    reply = client.send("PATCH", f"/posts/{scheduled}", body)
    assert (reply.status, reply.paths()) == (400, paths)
    assert client.send("GET", f"/posts/{scheduled}").data == before


def test_media_can_be_removed_only_if_a_body_remains(client, rt, profile):
    media = [{"artifactId": artifact(rt)}]
    later = {"scheduledAt": stamp(rt.now() + timedelta(hours=1))}
    post = client.send("POST", "/posts", {"post": later, "profiles": [profile], "media": media}).data
    assert client.send("PATCH", f"/posts/{post['id']}", {"media": []}).paths() == [["media"]]
    assert client.send("PATCH", f"/posts/{post['id']}", {"media": [], "post": {"body": "x"}}).status == 200


def test_only_a_post_scheduled_for_the_future_can_be_changed(client, rt, profile, scheduled, clock):
    change = {"post": {"body": "x"}}
    assert client.send("PATCH", f"/posts/{accept(rt, profile)}", change).status == 409
    clock.forward(3600)
    reply = client.send("PATCH", f"/posts/{scheduled}", change)
    assert (reply.status, reply.json()["code"]) == (409, "conflict")
    # An overdue post that has not started can still be canceled.
    assert client.send("POST", f"/posts/{scheduled}/cancel").data["status"] == "canceled"


def test_cancel_ends_a_scheduled_post_once(client, scheduled):
    post = client.send("POST", f"/posts/{scheduled}/cancel").data
    assert post["canceledAt"] == "2026-10-12T09:00:00.000Z"
    assert [delivery["status"] for delivery in post["deliveries"]] == ["canceled"]
    assert client.send("POST", f"/posts/{scheduled}/cancel").status == 409
    assert client.send("PATCH", f"/posts/{scheduled}", {"post": {"body": "x"}}).status == 409
    assert client.send("POST", f"/posts/{UNKNOWN}/cancel").status == 404
