"""A form with a post and its files is accepted or rejected as a whole (spec 4.2, contract 5.8)."""

import json
from pathlib import Path

import pytest

from tests.integration.uploads.caller import Gone
from tests.samples import hostile, media
from tests.support.select import select_all, select_one, select_value

BOUNDARY = "----0123456789"


@pytest.fixture
def jpeg(tmp_path: Path) -> bytes:
    return media.jpeg(tmp_path / "a.jpg", 64, 48).read_bytes()


def file(name, data, mime_type="image/png", file_name="a.png"):
    disposition = f'form-data; name="{name}"' + (f'; filename="{file_name}"' if file_name is not None else "")
    head = f"Content-Disposition: {disposition}\r\n" + (f"Content-Type: {mime_type}\r\n" if mime_type else "")
    return head.encode() + b"\r\n" + data


def text(name, value):
    return f'Content-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + value


def payload(profile, *media_items, **more):
    return text(
        "payload", json.dumps({"post": {"body": "Hello"}, "profiles": [profile], "media": media_items, **more}).encode()
    )


def form(*parts, end=True, boundary=BOUNDARY):
    dashes = f"--{boundary}".encode()
    body = b"".join(dashes + b"\r\n" + part + b"\r\n" for part in parts)
    return body + (dashes + b"--\r\n" if end else b"")


def headers(caller, boundary=BOUNDARY, **more):
    fields = {"authorization": f"Bearer {caller.key}", "content-type": f"multipart/form-data; boundary={boundary}"}
    return fields | {name.replace("_", "-"): value for name, value in more.items()}


def send(caller, *parts, boundary=BOUNDARY, **more):
    return caller.ask("POST", "/api/v1/posts", form(*parts, boundary=boundary), headers(caller, boundary, **more))


def nothing_left(rt):
    posts = select_value(rt.db, "SELECT count(*) FROM post")
    artifacts = select_value(rt.db, "SELECT count(*) FROM artifact")
    return (posts, artifacts, [path for path in rt.settings.media_dir.rglob("*") if path.is_file()]) == (0, 0, [])


def test_a_post_brings_its_files_along(rt, caller, profile, png, jpeg):
    reply = send(
        caller,
        payload(profile, {"fileField": "one", "alt": "A picture"}, {"fileField": "two"}),
        file("one", png),
        file("two", jpeg, "image/jpeg", "b.jpg"),
    )
    assert reply.status == 201, reply.body
    first, second = reply.data["media"]
    assert (first["alt"], first["contentType"], first["artifactStatus"]) == ("A picture", "image/png", "verified")
    assert caller.ask("GET", first["url"]).body == png
    assert caller.ask("GET", second["url"]).body == jpeg
    assert reply.headers["location"].endswith(f"/api/v1/posts/{reply.data['id']}")
    rows = select_all(rt.db, "SELECT file_name, kind, facts FROM artifact ORDER BY id")
    assert [row["file_name"] for row in rows] == ["a.png", "b.jpg"]
    assert json.loads(rows[0]["facts"])["width"] == 64
    assert (
        rt.files.remove_orphans(
            lambda keys: [k for k in keys if select_one(rt.db, "SELECT 1 FROM artifact WHERE storage_key = ?", (k,))]
        )
        == 0
    )


def test_the_payload_may_come_last_and_anything_may_come_in_pieces(rt, caller, profile, png):
    body = form(file("one", png), payload(profile, {"fileField": "one"}))
    for size in (1, 7, 100):
        pieces = [body[at : at + size] for at in range(0, len(body), size)]
        reply = caller.ask("POST", "/api/v1/posts", pieces, headers(caller))
        assert reply.status == 201, reply.body
        assert caller.ask("GET", reply.data["media"][0]["url"]).body == png


def test_bytes_that_look_like_a_boundary_are_bytes(caller, profile, tmp_path):
    almost = f"\r\n--{BOUNDARY[:-1]}\r\n--".encode() * 50
    tricky = hostile.jpeg_with_comment(tmp_path / "a.jpg", almost).read_bytes()
    reply = send(caller, payload(profile, {"fileField": "one"}), file("one", tricky, "image/jpeg", "a.jpg"))
    assert reply.status == 201, reply.body
    assert caller.ask("GET", reply.data["media"][0]["url"]).body == tricky


@pytest.mark.parametrize("name", ["täglich.png", 'a \\"quoted\\" name.png', "C:\\\\fake\\\\path.png", ""])
def test_file_names_of_all_kinds(rt, caller, profile, png, name):
    assert send(caller, payload(profile, {"fileField": "one"}), file("one", png, file_name=name)).status == 201
    stored = select_value(rt.db, "SELECT file_name FROM artifact")
    assert stored == {"": "one", "C:\\\\fake\\\\path.png": "path.png"}.get(name, name.replace('\\"', '"'))


@pytest.mark.parametrize("mime_type", ["image/png", "application/octet-stream"])
def test_a_part_that_names_no_file_but_a_media_type_is_a_file(caller, profile, png, mime_type):
    reply = send(caller, payload(profile, {"fileField": "one"}), file("one", png, mime_type, file_name=None))
    assert reply.status == 201, reply.body


FOUND = [
    (media.jpeg, "image/jpeg"),
    (media.jpeg_mpo, "image/jpeg"),
    (media.png, "image/png"),
    (media.webp, "image/webp"),
    (media.gif_animated, "image/gif"),
    (lambda path: media.video_mp4(path, 0.25), "video/mp4"),
    (lambda path: media.video_m4v(path, 0.25), "video/mp4"),
    (lambda path: media.video_mov(path, 0.25), "video/quicktime"),
    (lambda path: media.video_webm(path, 0.25), "video/webm"),
    (lambda path: media.video_matroska(path, 0.25), "video/webm"),
]


@pytest.mark.parametrize("undeclared", [None, "application/octet-stream", "Application/Octet-Stream; charset=binary"])
def test_a_file_without_a_declared_type_has_the_type_of_its_content(rt, caller, profile, tmp_path, undeclared):
    """curl declares application/octet-stream for .mp4 and .webp."""
    samples = FOUND if undeclared is None else FOUND[::5]
    parts = [
        file(f"f{n}", make(tmp_path / f"{n}").read_bytes(), undeclared, "clip") for n, (make, _) in enumerate(samples)
    ]
    reply = send(caller, payload(profile, *({"fileField": f"f{n}"} for n in range(len(parts)))), *parts)
    assert reply.status == 201, reply.body
    expected = [mime_type for _, mime_type in samples]
    assert [item["contentType"] for item in reply.data["media"]] == expected
    assert [row[0] for row in select_all(rt.db, "SELECT declared_type FROM artifact ORDER BY id")] == expected


@pytest.mark.parametrize(
    ("items", "parts", "paths"),
    [
        ([{"fileField": "one"}], [], [["media", 0, "fileField"]]),
        ([{"fileField": "one"}], ["one", "two"], [["media"]]),
        ([{"fileField": "one"}, {"fileField": "one"}], ["one"], [["media", 1, "fileField"]]),
        ([{"fileField": "one"}], ["one", "one"], [["media", 0, "fileField"]]),
        ([{"fileField": "one"}, {"fileField": "x"}], ["one", "y"], [["media", 1, "fileField"], ["media"]]),
    ],
)
def test_every_part_is_named_once_and_every_name_has_a_part(rt, caller, profile, png, items, parts, paths):
    reply = send(caller, payload(profile, *items), *(file(name, png) for name in parts))
    assert (reply.status, reply.paths()) == (400, paths)
    assert nothing_left(rt)


@pytest.mark.parametrize("order", [1, -1])
def test_one_bad_file_leaves_no_post_and_no_file(rt, caller, profile, png, order):
    parts = [payload(profile, {"fileField": "good"}, {"fileField": "bad"}), file("good", png), file("bad", b"<html>")]
    reply = send(caller, *parts[::order])
    assert (reply.status, reply.paths()) == (400, [["media", 1, "fileField"]])
    assert "image/png" in reply.json()["errors"][0]["message"]
    assert nothing_left(rt)


def test_the_errors_of_a_payload_have_their_paths(rt, caller, profile, png):
    reply = send(caller, payload("nobody", {"fileField": "one", "alt": ""}, surplus=1), file("one", png))
    assert reply.status == 400
    assert {tuple(path) for path in reply.paths()} >= {("media", 0, "alt"), ("profiles", 0), ("surplus",)}
    assert nothing_left(rt)


@pytest.mark.parametrize(
    ("parts", "path"),
    [
        ([], ["payload"]),
        ([text("payload", b"{}"), text("payload", b"{}")], ["payload"]),
        ([text("payload", b"{}"), text("extra", b"1")], ["extra"]),
        ([text("payload", b"not json")], []),
        ([text("payload", b"\xff")], []),
    ],
)
def test_exactly_one_text_field_holds_the_json(rt, caller, png, parts, path):
    reply = send(caller, file("one", png), *parts)
    assert (reply.status, reply.paths()) == (400, [path])
    assert nothing_left(rt)


def test_twenty_files_are_taken_and_not_one_more(rt, caller, profile, png):
    def sent(number):
        items = [{"fileField": f"f{n}"} for n in range(min(number, 20))]
        return send(caller, payload(profile, *items), *(file(f"f{n}", png) for n in range(number)))

    reply = sent(21)
    assert (reply.status, reply.paths()) == (400, [["media"]])
    assert nothing_left(rt)
    assert len(sent(20).data["media"]) == 20


def test_a_file_over_its_limit_is_not_read_to_its_end(rt, caller, profile):
    head = form(payload(profile, {"fileField": "one"}), file("one", b""), end=False)[:-2]
    endless = [head] + [b"\xff" * (1 << 20)] * 200
    reply = caller.ask("POST", "/api/v1/posts", endless, headers(caller))
    assert (reply.status, reply.json()["code"]) == (413, "payloadTooLarge")
    assert reply.headers["connection"] == "close"
    assert caller.taken < 45 << 20
    assert nothing_left(rt)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nonsense",
        form(text("payload", b"{}"), end=False),
        form(b"\r\nno headers"),
        form(b"Content-Type: image/png\r\n\r\nno name"),
        form(b'Content-Disposition: attachment; name="a"\r\n\r\n'),
        form(b"X: " + b"y" * 100_000 + b"\r\n\r\n"),
    ],
)
def test_a_form_that_cannot_be_read_is_a_400(rt, caller, body):
    reply = caller.ask("POST", "/api/v1/posts", body, headers(caller))
    assert (reply.status, reply.paths()) == (400, [[]])
    assert nothing_left(rt)


def test_a_key_that_may_only_read_has_its_form_refused_unread(rt, caller, profile, png):
    from socialpub.accounts import api_keys

    caller.key = rt.write(api_keys.create, "reader", "read")
    assert send(caller, payload(profile, {"fileField": "one"}), file("one", png)).status == 403
    assert caller.taken == 0


def test_a_caller_who_goes_away_leaves_nothing(rt, caller, profile, png):
    body = form(payload(profile, {"fileField": "one"}), file("one", png))
    with pytest.raises(Gone):
        caller.run(caller.asking("POST", "/api/v1/posts", [body[:-60]], headers(caller), goes_away=True))
    assert nothing_left(rt)


# --- repeated under one Idempotency-Key ------------------------------------------------------------------------------


def test_a_repeated_form_is_replayed_though_its_boundary_differs(rt, caller, profile, png):
    parts = payload(profile, {"fileField": "one"}), file("one", png)
    first = send(caller, *parts, idempotency_key="k")
    again = send(caller, *parts[::-1], boundary="another", idempotency_key="k")
    assert (first.status, again.status, again.headers["idempotency-replayed"]) == (201, 201, "true")
    assert again.data["id"] == first.data["id"]
    assert select_value(rt.db, "SELECT count(*) FROM artifact") == 1
    assert len([path for path in rt.settings.media_dir.rglob("*") if path.is_file()]) == 1


@pytest.mark.parametrize("change", ["bytes", "type", "field"])
def test_another_file_under_the_same_key_is_a_409(rt, caller, profile, png, jpeg, change):
    assert send(caller, payload(profile, {"fileField": "one"}), file("one", png), idempotency_key="k").status == 201
    field = "two" if change == "field" else "one"
    mime_type = "image/jpeg" if change == "type" else "image/png"
    data = jpeg if change == "bytes" else png
    reply = send(caller, payload(profile, {"fileField": field}), file(field, data, mime_type), idempotency_key="k")
    assert (reply.status, reply.json()["code"]) == (409, "conflict")
    assert len([path for path in rt.settings.media_dir.rglob("*") if path.is_file()]) == 1
