"""`POST /posts`: every rule of the body, and both sides of every limit (spec 4.2 and 8)."""

import codecs
import gzip
import json
from datetime import timedelta
from typing import Any

import pytest

from socialpub.core.clock import stamp
from socialpub.core.errors import FieldError
from socialpub.runtime import Runtime
from tests.integration.api.client import Client, form
from tests.samples import media
from tests.support.appliance import add_profile
from tests.support.rows import artifact
from tests.support.select import select_value

UNKNOWN = "019ac5d2-6b00-7a31-9f0e-4f1f6f3f7a01"


def draft(profile: str, **changes: Any) -> dict[str, Any]:
    return {"post": {"body": "Hello"}, "profiles": [profile], **changes}


def refused(client: Client, body: Any) -> list[list[str | int]]:
    reply = client.send("POST", "/posts", body)
    assert reply.status == 400, reply.body
    assert reply.json()["code"] == "invalidRequest"
    return reply.paths()


def test_an_accepted_post_has_a_location(client, profile):
    reply = client.send("POST", "/posts", draft(profile))
    assert reply.status == 201
    assert reply.headers["location"] == f"http://127.0.0.1:8000/api/v1/posts/{reply.data['id']}"
    assert reply.data["status"] == "pending"
    assert reply.data["createdAt"] == "2026-10-12T09:00:00.000Z"
    assert [delivery["profileId"] for delivery in reply.data["deliveries"]] == [profile]
    assert client.send("GET", f"/posts/{reply.data['id']}").data == reply.data


def test_a_trimmed_body_has_1_to_5000_characters(client, profile):
    for body in ("x", "x" * 5000, "é" * 5000, "  x  ", " " + "x" * 5000 + "\n"):
        reply = client.send("POST", "/posts", draft(profile, post={"body": body}))
        assert reply.status == 201
        assert reply.data["body"] == body.strip()
    for body in ("", "   \n", "x" * 5001, 5, None, ["x"], True):
        assert refused(client, draft(profile, post={"body": body})) == [["post", "body"]]


def test_a_post_needs_a_body_or_media(client, rt, profile):
    assert refused(client, {"post": {}, "profiles": [profile]}) == [["post", "body"]]
    picture = [{"artifactId": artifact(rt)}]
    assert client.send("POST", "/posts", {"post": {}, "profiles": [profile], "media": picture}).status == 201
    assert refused(client, {"post": {}, "profiles": [profile], "media": []}) == [["media"]]


def test_missing_required_fields_are_refused(client, profile):
    assert refused(client, {}) == [["post"], ["profiles"]]
    assert refused(client, {"post": None, "profiles": None}) == [["post"], ["profiles"]]
    assert refused(client, {"post": {"body": "x"}, "profiles": []}) == [["profiles"]]


@pytest.mark.parametrize("body", [b"", b"  ", b"{", b"[]", b"5", b"null", b'"x"', b"\xff", b'{"a": NaN}', b"[" * 2000])
def test_a_body_that_is_not_a_json_object_is_refused(client, body):
    reply = client.send("POST", "/posts", body)
    assert reply.status == 400
    assert reply.paths() == [[]]


def test_unknown_fields_are_refused_at_every_level(client, rt, profile):
    body = draft(
        profile,
        post={"body": "x", "title": "y"},
        media=[{"artifactId": artifact(rt), "fileField": "a"}],
        providerOptions={"facebook": {}},
        note="z",
    )
    paths = [["post", "title"], ["media", 0, "fileField"], ["providerOptions", "facebook"], ["note"]]
    assert refused(client, body) == paths


def test_one_response_lists_every_failing_field(client, profile):
    body = {
        "post": {"body": "", "scheduledAt": "2020-01-01T00:00:00Z"},
        "profiles": ["nonsense", UNKNOWN, profile],
        "media": [{"artifactId": "x"}, {"artifactId": UNKNOWN, "alt": ""}, {"artifactId": UNKNOWN}],
        "extra": 1,
    }
    assert sorted(map(str, refused(client, body))) == sorted(
        map(
            str,
            [
                ["post", "body"],
                ["profiles", 0],
                ["media", 0, "artifactId"],
                ["media", 1, "alt"],
                ["extra"],
                ["post", "scheduledAt"],
                ["profiles", 1],
                ["media", 1, "artifactId"],
                ["media", 2, "artifactId"],
            ],
        )
    )


# --- times -----------------------------------------------------------------------------------------------------------


def test_a_time_in_the_future_schedules_and_is_shown_in_utc(client, profile):
    reply = client.send(
        "POST", "/posts", draft(profile, post={"body": "x", "scheduledAt": "2026-10-12T12:00:00+02:00"})
    )
    assert reply.status == 201
    assert reply.data["status"] == "scheduled"
    assert reply.data["scheduledAt"] == "2026-10-12T10:00:00.000Z"
    assert reply.data["deliveries"][0]["scheduledAt"] == "2026-10-12T10:00:00.000Z"


def test_the_current_time_is_not_in_the_future(client, rt, profile):
    now = {"body": "x", "scheduledAt": stamp(rt.now())}
    assert refused(client, draft(profile, post=now)) == [["post", "scheduledAt"]]
    soon = {"body": "x", "scheduledAt": stamp(rt.now() + timedelta(milliseconds=1))}
    assert client.send("POST", "/posts", draft(profile, post=soon)).status == 201


@pytest.mark.parametrize(
    "time",
    [
        "2026-12-01T10:00:00",  # no offset
        "2026-12-01",
        "1795264200",  # a Unix time
        "1795264200.5",
        1795264200,
        None,
        "tomorrow",
        "2026-02-30T10:00:00Z",
        "2026-12-01T25:00:00Z",
        "9999-12-31T23:59:59-01:00",  # not in the calendar in UTC
        "0001-01-01T00:00:00+01:00",
        "2026-12-01T10:00:00+2",
        " 2026-12-01T10:00:00Z",
        "２０２６-12-01T10:00:00Z",
    ],
)
def test_an_invalid_date_time_is_refused(client, profile, time):
    assert refused(client, draft(profile, post={"body": "x", "scheduledAt": time})) == [["post", "scheduledAt"]]


# --- text ------------------------------------------------------------------------------------------------------------


def test_errors_beside_invalid_unicode_are_listed_also(client, profile):
    post = {"body": "HALF", "scheduledAt": "tomorrow"}
    raw = json.dumps(draft(UNKNOWN, post=post, media=[], HALF=1)).replace("HALF", "\\udead").encode()
    paths = [["post", "body"], [], ["post", "scheduledAt"], ["media"], ["\ufffd"], ["profiles", 0]]
    reply = client.send("POST", "/posts", raw)
    assert reply.status == 400
    assert sorted(map(str, reply.paths())) == sorted(map(str, paths))
    reply = client.send("POST", "/posts", form(raw), content_type="multipart/form-data; boundary=x")
    assert reply.status == 400
    assert sorted(map(str, reply.paths())) == sorted(map(str, paths))


def test_a_whole_surrogate_pair_is_one_character(client, profile):
    raw = json.dumps(draft(profile, post={"body": "🌻" * 5000})).encode()
    assert b"\\ud83c" in raw
    reply = client.send("POST", "/posts", raw)
    assert reply.status == 201
    assert reply.data["body"] == "🌻" * 5000


@pytest.mark.parametrize("text", ['"\\', "\u2028", "\t", "</script>", "\n\n", "\u200b", "\ufffd", "\ue000"])
def test_any_text_is_returned_unchanged(client, profile, text):
    reply = client.send("POST", "/posts", draft(profile, post={"body": f"a{text}b"}))
    assert reply.status == 201
    assert client.send("GET", f"/posts/{reply.data['id']}").data["body"] == f"a{text}b"


@pytest.mark.parametrize("way", ["create", "validate", "form", "change"])
def test_line_ends_become_lf_and_unreadable_texts_are_refused(client, rt, profile, way):
    at = stamp(rt.now() + timedelta(hours=1))
    post = client.send("POST", "/posts", draft(profile, post={"body": "old", "scheduledAt": at})).data["id"]
    image = artifact(rt)

    def send(body: str, alt: str = "alt") -> Any:
        sent = draft(profile, post={"body": body}, media=[{"artifactId": image, "alt": alt}])
        if way == "change":
            return client.send("PATCH", f"/posts/{post}", {"post": sent["post"], "media": sent["media"]})
        if way == "form":
            raw = form(json.dumps(sent).encode())
            return client.send("POST", "/posts", raw, content_type="multipart/form-data; boundary=x")
        return client.send("POST", "/posts/validate" if way == "validate" else "/posts", sent)

    sent = send("\r\n a\r\nb\rc\n\rd\t \r", "a\r\nb\rc")
    assert sent.status in (200, 201)
    if way != "validate":
        assert (sent.data["body"], sent.data["media"][0]["alt"]) == ("a\nb\nc\n\nd", "a\nb\nc")
    for control in (0x00, 0x08, 0x0B, 0x0C, 0x0E, 0x1C, 0x1F, 0x7F, 0x80, 0x85, 0x9F):
        for text in (f"a{chr(control)}b", f"{chr(control)}a", f"a{chr(control)}"):
            assert send(text).paths() == [["post", "body"]]
        reply = send("a", text)
        assert reply.paths() == [["media", 0, "alt"]]
        assert f"control character U+{control:04X}; remove it" in reply.json()["detail"]
    for blank in (
        "\u200b",
        "\u2060\ufeff",
        "\u3164",
        "\u2800",
        "\u200d\ufe0f",
        "\U000e0041",
        "\u00ad \u2063",
        "\u202e",
    ):
        assert send(blank).paths() == [["post", "body"]]
        assert send("a", blank).paths() == [["media", 0, "alt"]]
    assert send("a", " \r\n").paths() == [["media", 0, "alt"]]


def test_a_repeated_name_is_refused_at_every_level(client, profile):
    image = "01a1347d-7680-7040-a833-0b530134b46a"
    for raw, path in (
        ('{"post":{"body":"a"},"profiles":["P"],"post":{"body":"b"}}', ["post"]),
        ('{"post":{"body":"a","body" : "a"},"profiles":["P"]}', ["post", "body"]),
        ('{"post":{"body":"a","\\u0062ody":"b"},"profiles":["P"]}', ["post", "body"]),
        ('{"post":{"body":"\\":\\":"},"profiles":["P"],"profiles":["P"]}', ["profiles"]),
        ('{"post":{"body":"a"},"profiles":["P"],"providerOptions":{"x":{},"x":{}}}', ["providerOptions", "x"]),
        (
            '{"post":{"body":"a"},"profiles":["P"],"providerOptions":{"x":{"replySettings":"a","replySettings":"b"}}}',
            ["providerOptions", "x", "replySettings"],
        ),
        (
            f'{{"profiles":["P"],"media":[{{"url":"https://a.example/b","artifactId":"{image}","url":"https://a.example/b"}}]}}',
            ["media", 0, "url"],
        ),
    ):
        body = raw.replace("P", profile).encode()
        content_type = "multipart/form-data; boundary=x"
        for reply in (
            client.send("POST", "/posts", body, idempotency_key="k"),
            client.send("POST", "/posts/validate", body),
            client.send("POST", "/posts", form(body), content_type=content_type),
        ):
            assert reply.status == 400
            assert {"path": path, "message": "is given twice"} in reply.json()["errors"]
    for path, raw in (
        ("/uploads/import", b'{"url": "https://a.example/a", "url": "https://a.example/b"}'),
        (f"/posts/{image}/retry", b'{"includeUnknown": false, "includeUnknown": true}'),
        ("/uploads/complete", b'{"artifactId": "a", "artifactId": "b"}'),
    ):
        assert client.send("POST", path, raw).status in (400, 404)
    text = json.dumps(draft(profile, post={"body": 'a":1,"a":2, https://a.example 10:30'})).encode()
    assert client.send("POST", "/posts", text).status == 201


@pytest.mark.parametrize("key", ["replyToPostId", "reply_to_post_id"])
def test_a_reply_to_null_is_refused(client, rt, profile, key):
    """It would be a post of its own."""
    at = stamp(rt.now() + timedelta(hours=1))
    post = client.send("POST", "/posts", draft(profile, post={"body": "a", "scheduledAt": at})).data["id"]
    options = {"providerOptions": {"x": {key: None}}}
    for method, path, body in (
        ("POST", "/posts", draft(profile, **options)),
        ("POST", "/posts/validate", draft(profile, **options)),
        ("PATCH", f"/posts/{post}", options),
    ):
        assert client.send(method, path, body).paths() == [["providerOptions", "x", key]]
    assert client.send("POST", "/posts", draft(profile, providerOptions={"x": {"replySettings": None}})).status == 201


def test_what_is_wrong_with_the_bytes_of_a_body_is_named(client, profile):
    good = json.dumps(draft(profile)).encode()
    assert client.send("POST", "/posts", codecs.BOM_UTF8 + good).status == 201
    for body, said in (
        (good.replace(b"Hello", b"H\xe9llo"), "The body is not UTF-8: byte 21 is wrong."),
        (good.decode().encode("utf-16"), "The body is UTF-16. Encode the JSON as UTF-8."),
        (gzip.compress(good), "The body is compressed with gzip. Send the JSON without compression."),
    ):
        reply = client.send("POST", "/posts", body)
        assert (reply.status, reply.json()["code"]) == (400, "invalidRequest")
        assert reply.json()["detail"].startswith(said)
    for sent in (good, gzip.compress(good)):
        refused = client.send("POST", "/posts", sent, content_encoding="gzip")
        assert (refused.status, refused.json()["code"]) == (415, "unsupportedMediaType")
        assert "remove the header Content-Encoding" in refused.json()["detail"]
    assert client.send("POST", "/posts", good, content_encoding="identity").status == 201


@pytest.mark.parametrize(
    ("time", "fault"),
    [
        ("2036-11-21", "no time of day and no offset"),
        ("2036-11-21T11:30Z", "no seconds"),
        ("2036-11-21T11:30:00", "no offset"),
        ("2036-11-21T11:30:00+0100", "an offset that is not in the form +01:00"),
        ("2036-11-21T11:30+01", "no seconds and an offset that is not in the form +01:00"),
    ],
)
def test_what_is_missing_in_a_time_is_named(client, profile, time, fault):
    reply = client.send("POST", "/posts", draft(profile, post={"body": "a", "scheduledAt": time}))
    assert reply.paths() == [["post", "scheduledAt"]]
    assert reply.json()["detail"].endswith(f"such as 2026-11-21T11:30:00Z; this value has {fault}.")


def test_two_slashes_in_a_url_are_named(client):
    for path in ("/api//v1/posts", "/api/v1//posts", "/api/v1/posts//"):
        reply = client.ask("GET", path, b"", {"authorization": f"Bearer {client.key}"})
        assert reply.status == 404 and "two slashes in a row" in reply.json()["detail"]


def test_the_largest_number_is_named(client):
    for number in ("9007199254740992", "9" * 30, "9" * 4000):
        reply = client.send("GET", f"/posts?page={number}")
        assert reply.json()["detail"] == "page must be at most 9007199254740991."
    assert client.send("GET", f"/posts?perPage={'9' * 30}").json()["detail"] == "perPage must be at most 100."


# --- profiles --------------------------------------------------------------------------------------------------------


def test_profiles_must_be_known_unique_and_connected(client, rt, profile):
    gone = add_profile(rt, "tiktok", "b", status="disconnected")
    waiting = add_profile(rt, "tiktok", "c", status="reauthRequired")
    assert refused(client, draft(profile) | {"profiles": [profile, UNKNOWN]}) == [["profiles", 1]]
    assert refused(client, draft(profile) | {"profiles": [profile, profile.upper()]}) == [["profiles", 1]]
    assert refused(client, draft(profile) | {"profiles": [gone]}) == [["profiles", 0]]
    assert refused(client, draft(profile) | {"profiles": "x"}) == [["profiles"]]
    assert refused(client, draft(profile) | {"profiles": [5, "", profile]}) == [["profiles", 0], ["profiles", 1]]
    assert client.send("POST", "/posts", draft(profile) | {"profiles": [profile.upper(), waiting]}).status == 201


# --- media -----------------------------------------------------------------------------------------------------------


def test_a_post_has_1_to_20_media_items(client, rt, profile):
    items = [{"artifactId": artifact(rt)} for _ in range(21)]
    for count in (1, 20):
        reply = client.send("POST", "/posts", draft(profile, media=items[:count]))
        assert reply.status == 201
        assert [item["artifactId"] for item in reply.data["media"]] == [item["artifactId"] for item in items[:count]]
    assert refused(client, draft(profile, media=items)) == [["media"]]
    assert refused(client, draft(profile, media=[])) == [["media"]]
    assert refused(client, draft(profile, media=None)) == [["media"]]


def test_alt_text_has_1_to_1000_characters(client, rt, profile):
    used = artifact(rt)
    for alt in ("x", "x" * 1000):
        reply = client.send("POST", "/posts", draft(profile, media=[{"artifactId": used, "alt": alt}]))
        assert reply.status == 201
        assert reply.data["media"][0]["alt"] == alt
    for wrong in ("", "x" * 1001, None, 5):
        assert refused(client, draft(profile, media=[{"artifactId": used, "alt": wrong}])) == [["media", 0, "alt"]]


def test_only_verified_artifacts_can_be_used(client, rt, profile):
    items = [{"artifactId": one} for one in (artifact(rt), artifact(rt, "reserved"), artifact(rt, "rejected"), UNKNOWN)]
    paths = [["media", index, "artifactId"] for index in (1, 2, 3)]
    assert refused(client, draft(profile, media=items)) == paths


# --- options ---------------------------------------------------------------------------------------------------------


def test_options_belong_to_a_selected_provider(client, profile):
    assert refused(client, draft(profile, providerOptions={"tiktok": {}})) == [["providerOptions", "tiktok"]]
    reply = client.send("POST", "/posts", draft(profile, providerOptions={"x": {"any": {"thing": [1, None, "é"]}}}))
    assert reply.status == 201
    assert reply.data["deliveries"][0]["providerOptions"] == {"any": {"thing": [1, None, "é"]}}


def test_options_are_objects_with_limited_depth(client, profile):
    for wrong in (None, [], "x", 5):
        assert refused(client, draft(profile, providerOptions={"x": wrong})) == [["providerOptions", "x"]]
        assert refused(client, draft(profile, providerOptions=wrong)) == [["providerOptions"]]

    def nested(levels: int) -> Any:
        value: Any = {}
        for _ in range(levels - 1):
            value = {"a": value}
        return value

    assert client.send("POST", "/posts", draft(profile, providerOptions={"x": nested(20)})).status == 201
    assert refused(client, draft(profile, providerOptions={"x": nested(21)})) == [["providerOptions", "x"]]
    assert refused(client, draft(profile, providerOptions={"x": nested(900)})) == [["providerOptions", "x"]]


# --- `POST /posts?strict=true`: what a network would refuse is not accepted (contract 1.17) ---------------------------


TOO_LONG = FieldError(("post", "body"), "X allows this account 280 characters and counts 281 here.")


def count(rt: Runtime, table: str = "post") -> int:
    return int(select_value(rt.db, f"SELECT count(*) FROM {table}"))


def test_strict_returns_the_problems_of_validate(client, rt, three_networks):
    profiles = [add_profile(rt, "x", "a"), add_profile(rt, "x", "b"), add_profile(rt, "tiktok", "c")]
    three_networks["x"].problems = [TOO_LONG]
    three_networks["tiktok"].problems = [FieldError(("media",), "TikTok needs media.")]
    body = {"post": {"body": "x"}, "profiles": profiles}
    checked = client.send("POST", "/posts/validate", body).data["deliveries"]
    problems = [problem for delivery in checked for problem in delivery["problems"]]
    reply = client.send("POST", "/posts?strict=true", body)
    assert reply.status == 400
    assert all(error in problems for error in reply.json()["errors"])
    assert reply.paths() == [["post", "body"], ["media"]]
    assert reply.json()["detail"].startswith(f"post.body: {TOO_LONG.message}")
    assert count(rt) == 0


@pytest.mark.parametrize("query", ["", "?strict=false"])
def test_without_strict_the_post_is_accepted(client, rt, profile, three_networks, query):
    three_networks["x"].problems = [TOO_LONG]
    assert client.send("POST", f"/posts{query}", {"post": {"body": "x"}, "profiles": [profile]}).status == 201


@pytest.mark.parametrize("value", ["", "yes", "1", "TRUE"])
def test_strict_is_true_or_false(client, profile, value):
    reply = client.send("POST", f"/posts?strict={value}", {"post": {"body": "x"}, "profiles": [profile]})
    assert (reply.status, reply.paths()) == (400, [["strict"]])


def test_a_strictly_refused_post_can_be_sent_again_with_the_same_key(client, rt, profile, three_networks):
    body = {"post": {"body": "x"}, "profiles": [profile]}
    three_networks["x"].problems = [TOO_LONG]
    assert client.send("POST", "/posts?strict=true", body, idempotency_key="k").status == 400
    three_networks["x"].problems = []
    assert client.send("POST", "/posts?strict=true", body, idempotency_key="k").status == 201
    three_networks["x"].problems = [TOO_LONG]
    # An accepted request replays, although the network would now refuse it.
    assert client.send("POST", "/posts?strict=true", body, idempotency_key="k").status == 201
    assert count(rt) == 1


def test_strict_checks_the_files_of_a_form_before_storing_anything(client, rt, profile, three_networks, tmp_path):
    png = media.png(tmp_path / "a.png", 64, 48).read_bytes()
    seen: list[Any] = []

    def check(content: Any, _options: Any, _account: Any) -> list[FieldError]:
        seen.append(content.media)
        return [FieldError(("media", 0), "The picture is too small.")]

    three_networks["x"].check = check  # type: ignore[method-assign]
    payload = json.dumps({"post": {"body": "x"}, "profiles": [profile], "media": [{"fileField": "one", "alt": "A"}]})
    body = form(payload.encode(), ("one", "image/png", png))
    kind = "multipart/form-data; boundary=x"
    reply = client.send("POST", "/posts?strict=true", body, content_type=kind)
    assert (reply.status, reply.paths()) == (400, [["media", 0]])
    ((one,),) = seen
    assert (one.alt, one.mime_type, one.facts["width"], one.file_name) == ("A", "image/png", 64, "a.png")
    assert (count(rt), count(rt, "artifact")) == (0, 0)
    assert [path for path in rt.settings.media_dir.rglob("*") if path.is_file()] == []
    three_networks["x"].check = lambda *_: []  # type: ignore[method-assign]
    assert client.send("POST", "/posts?strict=true", body, content_type=kind).status == 201
