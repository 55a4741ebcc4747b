"""Scripts and styles: cached by browsers, and no path leads out of their folder."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from socialpub.runtime import Runtime
from socialpub.web.http import files
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
    monkeypatch.setattr(files, "FOLDER", folder)
    files.list_static.cache_clear()
    yield folder
    files.list_static.cache_clear()


@pytest.fixture
def caller(rt: Runtime) -> Iterator[Caller]:
    with Caller(create_app(rt), "") as caller:
        yield caller


def test_a_file_is_cached_for_a_year_under_a_url_with_its_hash(caller: Caller, folder: Path) -> None:
    address = files.static_url("style.css")
    reply = caller.ask("GET", f"/{address}")
    assert (reply.status, reply.body) == (200, STYLE)
    assert reply.headers["content-type"] == "text/css; charset=utf-8"
    assert reply.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["vary"] == "Accept-Encoding"
    assert "content-encoding" not in reply.headers

    (folder / "style.css").write_bytes(b"p { color: plum }")
    files.list_static.cache_clear()  # a newer version starts
    assert files.static_url("style.css") != address
    assert caller.ask("GET", f"/{address}").status == 404


@pytest.mark.parametrize("name", ["style.css", "vendored/thing-1.0/thing.min.js"])
def test_a_file_is_compressed_if_the_client_accepts_gzip(caller: Caller, name: str) -> None:
    address = f"/{files.static_url(name)}"
    plain, packed = caller.ask("GET", address), caller.ask("GET", address, headers=GZIP)
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) == len(packed.body) < len(plain.body)
    assert gzip.decompress(packed.body) == plain.body
    assert packed.headers["content-type"] == plain.headers["content-type"]
    refused = caller.ask("GET", address, headers={"accept-encoding": "gzip;q=0, *"})
    assert refused.body == plain.body


def test_a_file_that_gzip_would_enlarge_is_not_compressed(caller: Caller) -> None:
    reply = caller.ask("GET", f"/{files.static_url('start.js')}", headers=GZIP)
    assert (reply.body, "content-encoding" in reply.headers) == (b"go()", False)
    assert reply.headers["content-type"] == "text/javascript; charset=utf-8"


def test_a_cached_file_is_not_sent_again(caller: Caller) -> None:
    address = f"/{files.static_url('style.css')}"
    etag = caller.ask("GET", address).headers["etag"]
    assert etag == caller.ask("GET", address, headers=GZIP).headers["etag"]
    for known in (etag, etag.removeprefix("W/"), f'"else", {etag}', "*"):
        again = caller.ask("GET", address, headers={"if-none-match": known})
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", etag)
    assert caller.ask("GET", address, headers={"if-none-match": '"else"'}).status == 200


def test_head_returns_the_headers_of_a_file(caller: Caller) -> None:
    address = f"/{files.static_url('style.css')}"
    whole, head = caller.ask("GET", address), caller.ask("HEAD", address)
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == whole.headers["content-length"] == str(len(STYLE))
    assert caller.ask("POST", address).status == 405


@pytest.mark.parametrize(
    "address",
    [
        "/static/style.css",
        "/static/style.0000000000000000.css",
        "/static/nothing.js",
        "/static/",
        "/static/vendored/thing-1.0/LICENSE",
        "/static/../secret.js",
        "/static/%2e%2e/secret.js",
        "/static/..%2fsecret.js",
        "/static//style.css",
        "/static/vendored/../style.css",
        "/static/style.css%00.js",
        "/static/..",
        "/static/.",
    ],
)
def test_no_other_path_is_found(caller: Caller, address: str) -> None:
    assert caller.ask("GET", address).status == 404


def test_a_correct_hash_does_not_lead_out_of_the_folder(caller: Caller, folder: Path) -> None:
    outside = files.StaticFile(folder / "style.css").hash
    (folder.parent / "style.css").write_bytes(STYLE)
    for address in (f"../style.{outside}.css", f"%2e%2e/style.{outside}.css", f"x/../style.{outside}.css"):
        assert caller.ask("GET", f"/static/{address}").status == 404
    assert caller.ask("GET", f"/static/style.{outside}.css").status == 200
