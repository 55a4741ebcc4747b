"""Errors that name the cause, the correct place and the number of errors (contract 1.4, 1.5)."""

import json
from typing import Any

import pytest

from tests.integration.api.client import form
from tests.integration.uploads.caller import Reply
from tests.support.appliance import accept
from tests.support.rows import artifact
from tests.support.select import select_value

SOON = "2026-12-01T10:00:00Z"
UNKNOWN = "019ac5d2-6b00-7a31-9f0e-4f1f6f3f7a01"


def messages(reply: Reply) -> dict[str, str]:
    assert reply.status == 400, reply.body
    return {".".join(map(str, error["path"])): error["message"] for error in reply.json()["errors"]}


@pytest.mark.parametrize(
    ("wrong", "path", "message"),
    [
        ({"body": "x"}, "body", "belongs in post.body"),
        ({"text": "x"}, "text", "is not known; did you mean post.body?"),
        ({"scheduled_at": SOON}, "scheduled_at", "is not known; did you mean post.scheduledAt?"),
        ({"ScheduledAt": SOON}, "ScheduledAt", "is not known; did you mean post.scheduledAt?"),
        ({"sheduledAt": SOON}, "sheduledAt", "is not known; did you mean post.scheduledAt?"),
        ({"artifactId": UNKNOWN}, "artifactId", "belongs in media[].artifactId"),
        ({"boardId": "5"}, "boardId", "belongs in providerOptions.pinterest.boardId"),
        (
            {"providerOptions": {"boardId": "5"}},
            "providerOptions.boardId",
            "belongs in providerOptions.pinterest.boardId",
        ),
        ({"pinterest": {}}, "pinterest", "belongs in providerOptions.pinterest"),
        ({"provider_options": {}}, "provider_options", "is not known; did you mean providerOptions?"),
        ({"date": SOON}, "date", "is not known; did you mean post.scheduledAt?"),
        ({"providerOptions": {"twitter": {}}}, "providerOptions.twitter", "is not known; did you mean x?"),
        ({"zzzzzzzz": 1}, "zzzzzzzz", "is not known; known names are post, profiles, media, providerOptions"),
    ],
)
def test_a_misplaced_or_misspelled_name_is_refused_with_the_correct_name(client, profile, wrong, path, message):
    draft = {"post": {"body": "x"}, "profiles": [profile], **wrong}
    assert messages(client.send("POST", "/posts", draft)) == {path: message}
    assert messages(client.send("POST", "/posts/validate", draft)) == {path: message}


def test_the_detail_names_the_first_error_and_counts_the_others(client, rt, profile):
    def detail(body: Any) -> str:
        return str(client.send("POST", "/posts", body).json()["detail"])

    post = {"body": "x"}
    assert detail({"post": post, "profiles": ["x"]}) == (
        "profiles[0] must be a UUID; take ids from GET /api/v1/profiles."
    )
    assert detail({"post": {}, "profiles": ["x", "y"], "media": []}) == (
        "profiles[0] must be a UUID; take ids from GET /api/v1/profiles. There are 2 more errors."
    )
    assert detail({"post": post, "profiles": [UNKNOWN]}) == (
        "profiles[0] is not the id of a profile; use an id from GET /profiles."
    )
    gone = [{"artifactId": artifact(rt, removed_at="2026-10-12T09:00:00.000Z")}]
    assert detail({"post": post, "profiles": [profile], "media": gone}) == (
        "media[0].artifactId refers to an artifact whose bytes were removed; upload the file again."
    )
    assert detail([]) == "The body must be an object, not an array."


def test_at_most_a_hundred_errors_are_listed_and_all_are_counted(client, profile):
    body = {"post": {"body": "x"}, "profiles": [profile], **{f"k{number}": 1 for number in range(1000)}}
    reply = client.send("POST", "/posts", body)
    assert len(messages(reply)) == 100
    assert "There are 999 more errors" in reply.json()["detail"]


def test_sizes_have_their_units(client):
    upload = {"fileName": "a.mp4", "mimeType": "video/mp4", "fileSize": 157_286_401}
    assert messages(client.send("POST", "/uploads", upload)) == {
        "fileSize": "must be at most 150 MiB (157286400 bytes)"
    }
    upload = {"fileName": "a.png", "mimeType": "image/png", "fileSize": 40 << 20}
    assert messages(client.send("POST", "/uploads", upload)) == {
        "fileSize": "is 40 MiB (41943040 bytes); the limit for images is 32 MiB (33554432 bytes)"
    }
    large = client.send("POST", "/posts", b" " * ((1 << 20) + 1))
    assert (large.status, "1 MiB (1048576 bytes)" in large.json()["detail"]) == (413, True)


@pytest.mark.parametrize(
    ("payload", "detail"),
    [
        (b"{", "The field payload is not valid JSON"),
        (b" ", "The field payload is empty"),
        (b"[]", "The field payload must be an object, not an array"),
    ],
)
def test_errors_of_a_malformed_payload_name_the_payload(client, payload, detail):
    reply = client.send("POST", "/posts", form(payload), content_type="multipart/form-data; boundary=x")
    assert reply.status == 400
    assert reply.json()["detail"].startswith(detail)
    assert "body" not in json.dumps(reply.json()).lower()


# --- queries ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "path", "message"),
    [
        ("/posts?perpage=5", "perpage", "is not known; did you mean perPage?"),
        ("/posts?per_page=5", "per_page", "is not known; did you mean perPage?"),
        ("/posts?profileId=x", "profileId", "is not known; did you mean profileIds?"),
        ("/posts?limit=5", "limit", "is not known; did you mean perPage?"),
        ("/posts?pageSize=5", "pageSize", "is not known; did you mean perPage?"),
        ("/publish/logs?perPage=5", "perPage", "is not known; did you mean limit?"),
        ("/posts?pages=5", "pages", "is not known; did you mean page?"),
        ("/publish/logs?page=1", "page", "is not known; known names are limit, offset, after"),
        ("/profiles?provider=x", "provider", "is not known; remove it"),
        ("/profiles/{profile}?color=red", "color", "is not known; remove it"),
        ("/posts/{post}?waits=3", "waits", "is not known; did you mean wait?"),
        ("/posts/{post}/attempts?limit=3", "limit", "is not known; remove it"),
    ],
)
def test_an_unknown_parameter_is_refused_with_the_nearest_known_one(client, rt, profile, address, path, message):
    reply = client.send("GET", address.format(profile=profile, post=accept(rt, profile)))
    assert messages(reply) == {path: message}
    assert reply.json()["detail"].startswith(f"{path} {message}")


def test_an_unknown_parameter_changes_nothing_anywhere(client, rt, profile):
    body = {"post": {"body": "x"}, "profiles": [profile]}
    assert client.send("POST", "/posts?dryRun=true", body).paths() == [["dryRun"]]
    assert client.send("POST", f"/profiles/{profile}/disconnect?really=no").paths() == [["really"]]
    assert select_value(rt.db, "SELECT count(*) FROM post") == 0
    assert select_value(rt.db, "SELECT status FROM profile") == "active"
    # 404 and 401 come first.
    assert client.send("GET", f"/posts/{UNKNOWN}?color=red").status == 404
    assert client.send("GET", "/posts?color=red", key=None).status == 401


def test_the_document_accepts_any_parameter(client):
    assert client.send("GET", "/openapi-docs?color=red", key=None).status == 200


# --- confusions with other APIs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("{key}", "Put Bearer before the key"),
        ("Token {key}", "with the scheme Bearer"),
        ("Basic dXNlcjpwYXNz", "with the scheme Bearer"),
        ("Bearer", "Send only the key after Bearer"),
        ("Bearer Bearer {key}", "Send only the key after Bearer"),
        ('Bearer "{key}"', "Send only the key after Bearer"),
        ("Bearer spk_none_of_ours", "is unknown"),
    ],
)
def test_a_malformed_authorization_header_is_refused_with_the_correct_form(client, header, words):
    reply = client.ask("GET", "/api/v1/profiles", headers={"authorization": header.format(key=client.key)})
    assert (reply.status, reply.headers["www-authenticate"]) == (401, "Bearer")
    assert words in reply.json()["detail"]
    if "spk_none" not in header:
        assert "Authorization: Bearer <API_KEY>" in reply.json()["detail"]
    assert client.key.partition("_")[2] not in reply.body.decode()


def test_a_delivery_status_in_status_is_refused_with_the_correct_parameter(client):
    def message(query: str) -> str:
        reply = client.send("GET", f"/posts?{query}")
        assert reply.status == 400
        return messages(reply)[query.partition("=")[0]]

    for outcome in ("published", "failed", "unknown"):
        assert message(f"status={outcome}") == (
            "must be one of pending, settled, canceled, scheduled; for the outcome of a delivery, use "
            f"deliveryStatus={outcome}"
        )
    for status in ("settled", "scheduled"):
        assert message(f"deliveryStatus={status}").endswith(f"for the status of a post, use status={status}")
    assert "deliveryStatus" not in message("status=done")
    assert message("profileIds=x").endswith("take ids from GET /api/v1/profiles")


@pytest.mark.parametrize(
    ("method", "path", "words"),
    [
        ("DELETE", "/posts/{id}", "POST /api/v1/posts/{id}/cancel"),
        ("PUT", "/posts/{id}", "send PATCH"),
        ("POST", "/posts/{id}", "send PATCH"),
        ("DELETE", "/profiles/{id}", "POST /api/v1/profiles/{id}/disconnect"),
        ("POST", "/profiles", "The owner of the appliance connects accounts"),
    ],
)
def test_a_method_of_other_apis_is_refused_with_the_equivalent_request(client, method, path, words):
    reply = client.ask(method, f"/api/v1{path.format(id=UNKNOWN)}")
    assert reply.status == 405
    assert words in reply.json()["detail"]
