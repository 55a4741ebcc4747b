"""Scripts and styles: cached by browsers, and no path leads out of their folder."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from socialpub.runtime import Runtime
from socialpub.web.http import static
from socialpub.web.http.app import create_app
from tests.integration.uploads.caller import Caller

STYLE = b"p { color: teal } " * 500
SCRIPT = b"let answer = 42; " * 5000
GZIP = {"accept-encoding": "br;q=1.0, gzip;q=0.8"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A style, a small script, a large compressed script, and a file that is not served."""
    folder = tmp_path / "static"
    (folder / "vendored" / "thing-1.0").mkdir(parents=True)
    (folder / "style.css").write_bytes(STYLE)
    (folder / "start.js").write_bytes(b"go()")
    (folder / "vendored" / "thing-1.0" / "thing.min.js.gz").write_bytes(gzip.compress(SCRIPT, mtime=0))
    (folder / "vendored" / "thing-1.0" / "LICENSE").write_text("Do what you like.")
    (tmp_path / "secret.js").write_text("not for you")
    monkeypatch.setattr(static, "FOLDER", folder)
    static.version.cache_clear()
    yield folder
    static.version.cache_clear()


@pytest.fixture
def caller(rt: Runtime) -> Iterator[Caller]:
    with Caller(create_app(rt), "") as caller:
        yield caller


def test_a_file_is_cached_for_a_year_under_a_url_with_a_hash(caller, folder):
    address = static.static_url("style.css")
    reply = caller.ask("GET", f"/{address}")
    assert (reply.status, reply.body) == (200, STYLE)
    assert reply.headers["content-type"] == "text/css; charset=utf-8"
    assert reply.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["vary"] == "Accept-Encoding"
    assert "content-encoding" not in reply.headers

    (folder / "style.css").write_bytes(b"p { color: plum }")
    static.version.cache_clear()  # a newer version starts
    assert static.static_url("style.css") != address
    assert caller.ask("GET", f"/{address}").status == 404


@pytest.mark.parametrize("name", ["style.css", "vendored/thing-1.0/thing.min.js"])
def test_a_file_is_compressed_if_the_client_accepts_gzip(caller, name):
    address = f"/{static.static_url(name)}"
    plain, packed = caller.ask("GET", address), caller.ask("GET", address, headers=GZIP)
    assert packed.headers["content-encoding"] == "gzip"
    assert len(packed.body) < len(plain.body)
    assert gzip.decompress(packed.body) == plain.body == (STYLE if name == "style.css" else SCRIPT)
    assert packed.headers["content-type"] == plain.headers["content-type"]
    assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"


def test_a_cached_file_is_not_sent_again(caller):
    address = f"/{static.static_url('style.css')}"
    etag = caller.ask("GET", address).headers["etag"]
    assert etag == caller.ask("GET", address, headers=GZIP).headers["etag"]
    for known in (etag, f"W/{etag}", f'"else", {etag}', "*"):
        again = caller.ask("GET", address, headers={"if-none-match": known})
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", etag)
        assert again.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert caller.ask("GET", address, headers={"if-none-match": '"else"'}).status == 200


def test_every_refusal_is_a_problem(caller):
    address = f"/{static.static_url('style.css')}"
    outside = caller.ask("GET", address, headers={"range": f"bytes={len(STYLE)}-"})
    assert outside.headers["content-range"] == f"bytes */{len(STYLE)}"
    post = caller.ask("POST", address)
    assert post.headers["allow"] == "GET, HEAD"
    unreadable = caller.ask("GET", address, headers={"range": "lines=1-2"})
    missing = caller.ask("GET", f"/{static.static_url('nothing.js')}")
    for reply, status in ((outside, 416), (post, 405), (unreadable, 400), (missing, 404)):
        assert (reply.status, reply.headers["content-type"]) == (status, "application/problem+json")
        assert reply.json()["status"] == status


@pytest.mark.parametrize(
    "name",
    [
        "nothing.js",
        "",
        "vendored",
        "vendored/thing-1.0/LICENSE",
        "vendored/thing-1.0/thing.min.js.gz",
        "../secret.js",
        "%2e%2e/secret.js",
        "..%2fsecret.js",
        "..%2f..%2fsecret.js",
        "/etc/passwd.js",
        "style.css%00.js",
        "a" * 300 + ".js",
        "..",
        ".",
    ],
)
def test_no_other_path_is_found(caller, name):
    assert caller.ask("GET", f"/{static.static_url('')}{name}").status == 404


@pytest.mark.parametrize("address", ["/static/style.css", "/static/0000000000000000/style.css", "/static/", "/static"])
def test_a_url_without_the_hash_of_this_version_is_not_found(caller, address):
    assert caller.ask("GET", address).status == 404
