"""Reading a file: signatures, ranges, and headers for browsers (contract 5.6)."""

from pathlib import Path

import pytest

from socialpub.db.tables import artifact_rows
from tests.samples import media


@pytest.fixture
def png(tmp_path: Path) -> bytes:
    return media.png(tmp_path / "a.png", 320, 240, noise=True).read_bytes()


@pytest.fixture
def artifact(caller, png):
    return caller.upload(png)


def get(caller, artifact, method="GET", **headers):
    return caller.ask(
        method, artifact["url"], headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


def test_the_whole_file_with_its_exact_type_and_nothing_to_run(caller, artifact, png):
    reply = get(caller, artifact)
    assert (reply.status, reply.body) == (200, png)
    assert reply.headers["content-type"] == "image/png"
    assert reply.headers["content-length"] == str(len(png))
    assert reply.headers["accept-ranges"] == "bytes"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert reply.headers["x-request-id"]
    assert reply.headers["cache-control"] == "private, max-age=3600"


def test_no_key_is_needed_and_a_key_alone_is_not_enough(caller, artifact):
    bare = artifact["url"].partition("?")[0]
    reply = caller.ask("GET", bare, headers={"authorization": f"Bearer {caller.key}"})
    assert (reply.status, reply.json()["code"]) == (403, "forbidden")


def test_head_returns_the_same_headers_without_the_bytes(caller, artifact, png):
    head, whole = get(caller, artifact, "HEAD"), get(caller, artifact)
    assert (head.status, head.body) == (200, b"")
    assert {**head.headers, "x-request-id": ""} == {**whole.headers, "x-request-id": ""}
    ranged = get(caller, artifact, "HEAD", range="bytes=0-9")
    assert (ranged.status, ranged.headers["content-length"], ranged.body) == (206, "10", b"")


@pytest.mark.parametrize(
    ("asked", "start", "end"), [("bytes=0-9", 0, 10), ("bytes=100-", 100, None), ("bytes=-7", -7, None)]
)
def test_a_range_is_a_part(caller, artifact, png, asked, start, end):
    reply = get(caller, artifact, range=asked)
    part = png[start:end]
    first = start % len(png)
    assert (reply.status, reply.body) == (206, part)
    assert reply.headers["content-range"] == f"bytes {first}-{first + len(part) - 1}/{len(png)}"
    assert reply.headers["content-length"] == str(len(part))
    assert reply.headers["content-type"] == "image/png"


def test_a_range_outside_of_the_file_is_a_416_problem(caller, artifact, png):
    reply = get(caller, artifact, range=f"bytes={len(png)}-")
    assert (reply.status, reply.headers["content-type"]) == (416, "application/problem+json")
    assert reply.headers["content-range"] == f"bytes */{len(png)}"
    assert reply.json()["status"] == 416
    assert set(reply.json()) == {"type", "title", "status", "detail", "code"}


def test_several_ranges_are_parts_of_one_response(caller, artifact, png):
    reply = get(caller, artifact, range="bytes=0-1,5-6")
    assert reply.headers["content-type"].startswith("multipart/byteranges; boundary=")
    assert png[0:2] in reply.body and png[5:7] in reply.body


@pytest.mark.parametrize("asked", ["lines=1-2", "bytes=9-1", "bytes=a-b", "bytes"])
def test_a_range_that_cannot_be_read_is_a_problem(caller, artifact, asked):
    reply = get(caller, artifact, range=asked)
    assert (reply.status, reply.headers["content-type"]) == (400, "application/problem+json")
    assert reply.paths() == [["range"]]


def test_a_range_needs_the_etag_of_the_same_file(caller, artifact, png):
    etag = get(caller, artifact).headers["etag"]
    assert get(caller, artifact, range="bytes=0-9", if_range=etag).status == 206
    assert get(caller, artifact, range="bytes=0-9", if_range='"another"').body == png
    assert get(caller, artifact, range="bytes=0-9", if_range="Mon, 12 Oct 2026 09:00:00 GMT").body == png


def test_a_caller_with_the_same_etag_gets_a_304(caller, artifact):
    etag = get(caller, artifact).headers["etag"]
    reply = get(caller, artifact, if_none_match=etag)
    assert (reply.status, reply.body) == (304, b"")
    assert get(caller, artifact, if_none_match='"another"').status == 200


def test_the_url_expires(clock, caller, artifact):
    clock.forward(3599)
    assert get(caller, artifact).status == 200
    clock.forward(1)
    reply = get(caller, artifact)
    assert (reply.status, reply.json()["code"]) == (403, "forbidden")
    assert get(caller, artifact, "HEAD").status == 403


def test_a_signature_is_for_its_own_file(caller, artifact, png, tmp_path):
    other = caller.upload(media.png(tmp_path / "b.png", 10, 10).read_bytes())
    stolen = other["url"].partition("?")[0] + "?" + artifact["url"].partition("?")[2]
    assert caller.ask("GET", stolen).status == 403


@pytest.mark.parametrize("key", ["../secret.key", "..%2F..%2Fsecret.key", "/etc/passwd", "a%0Ab", ""])
def test_no_path_leads_out_of_the_media_folder(caller, artifact, key):
    query = artifact["url"].partition("?")[2]
    assert caller.ask("GET", f"http://127.0.0.1:8000/storage/media/{key}?{query}").status in (403, 404)


def test_a_file_that_is_gone_is_a_404(rt, caller, artifact):
    rt.files.remove(artifact["storageKey"])
    reply = get(caller, artifact)
    assert (reply.status, reply.json()["code"]) == (404, "notFound")
    assert str(rt.settings.media_dir) not in reply.body.decode()


def test_unverified_bytes_cannot_be_read(rt, caller, png):
    from socialpub.core.secrets import signed_urls

    reservation = caller.reserve(png)
    caller.put(reservation, png)
    key = artifact_rows.find(rt.db, reservation["artifactId"]).storage_key
    url = signed_urls.media_url(rt.settings, rt.secrets, key, rt.now())
    assert caller.ask("GET", url).status == 404
