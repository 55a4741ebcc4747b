"""Hostile responses: compression bombs, deep nesting and redirects."""

import base64
import gzip
import socket
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from socialpub.core.validation import MAX_LABEL_LENGTH, is_label
from socialpub.providers.auth import Identity, Tokens
from socialpub.providers.bluesky.auth import _claims
from socialpub.providers.http import MAX_ANSWER_BYTES, Http
from socialpub.providers.oauth import read_tokens
from socialpub.providers.responses import HttpResponse, NoAnswer, http_date, json_object
from tests.unit.providers.test_http import Server, answering

ZEROS = 96 * 1024 * 1024


@pytest.fixture
def http() -> Iterator[Http]:
    http = Http()
    yield http
    http.close()


def packed_zeros(size: int) -> bytes:
    packer = zlib.compressobj(wbits=31)
    block = bytes(1024 * 1024)
    return b"".join(packer.compress(block) for _ in range(size // len(block))) + packer.flush()


@contextmanager
def allocating_at_most(size: int) -> Iterator[None]:
    """Fail if Python objects of the block take more than these bytes at once."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < size
    finally:
        tracemalloc.stop()


def test_a_compression_bomb_is_cut_before_it_uses_memory(http):
    bomb = packed_zeros(ZEROS)
    assert len(bomb) < MAX_ANSWER_BYTES
    with (
        allocating_at_most(ZEROS // 4),
        Server(answering("200 OK", bomb, "Content-Encoding: gzip")) as server,
        pytest.raises(NoAnswer, match=f"more than {MAX_ANSWER_BYTES} bytes"),
    ):
        http.call("GET", server.url)


@pytest.mark.parametrize("headers", [("gzip, gzip",), ("gzip", "gzip"), ("GZIP ,identity, gzip",)])
def test_a_body_compressed_more_than_once_is_not_decompressed(http, headers):
    """A second decompression turns a few kilobytes into terabytes."""
    twice = gzip.compress(gzip.compress(b'{"a": 1}'))
    with (
        Server(answering("200 OK", twice, *(f"Content-Encoding: {one}" for one in headers))) as server,
        pytest.raises(NoAnswer, match="compressed more than once"),
    ):
        http.call("GET", server.url)


def test_an_answer_compressed_once_is_read(http):
    with Server(answering("200 OK", gzip.compress(b'{"a": 1}'), "Content-Encoding: gzip")) as server:
        assert http.call("GET", server.url).json() == {"a": 1}


@pytest.mark.parametrize(
    "body",
    [b"[" * 500_000, b'{"a":' * 300_000, b"1" * 100_000, b'"\\ud800"', b"\xff\xfe", b"NaN", b'{"a": 1e999999}'],
    ids=["lists", "objects", "digits", "half a character", "bytes", "NaN", "infinity"],
)
def test_hostile_json_breaks_nothing(http, body):
    with Server(answering("200 OK", body)) as server:
        answer = http.call("GET", server.url)
    assert isinstance(json_object(answer), dict)


def test_json_has_only_texts_and_numbers_that_can_be_stored():
    """A network may cut a text inside an emoji: then half a surrogate pair remains."""
    numbers = b"NaN, Infinity, -1e999, 1e400, 1%s, 12345678901234567890" % (b"0" * 400)
    body = rb'{"a\ud83d": ["\udc00 \u0000 \ud83d\ude00", {"n\u0000": [%s]}]}' % numbers
    assert HttpResponse(200, {}, body).json() == {
        "a\ufffd": ["\ufffd \ufffd \U0001f600", {"n\ufffd": [None, None, None, None, None, 12345678901234567890]}]
    }
    assert HttpResponse(200, {}, b'"\xed\xa0\xbd"').json() == "\ufffd"
    assert NoAnswer("no \ud83d", code="\ud83d", request_id="\x00").message == "no \ufffd"


def test_the_claims_of_a_token_can_be_stored():
    claims = base64.urlsafe_b64encode(b'{"scope": "\\ud83d", "exp": NaN}').decode()
    assert _claims(f"a.{claims}.c") == {"scope": "\ufffd", "exp": None}


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        (7200, 7200),
        (7200.5, 7200),
        (315_000_000, 315_000_000),
        *((wrong, None) for wrong in (0, -1, 0.5, 3 * 10**11, 10**18, 10**30, float("nan"), float("inf"))),
        *((wrong, None) for wrong in (True, "7200", "1e9", [7200], {}, None)),
    ],
)
def test_a_lifetime_that_cannot_be_one_is_unknown(told, seconds):
    tokens = read_tokens({"access_token": "AT", "expires_in": told, "refresh_expires_in": told})
    assert tokens is not None
    assert (tokens.expires_in_seconds, tokens.refresh_expires_in_seconds) == (seconds, seconds)


@pytest.mark.parametrize("token", ["a" * 8193, "a b", "a\r\nX-Evil: 1", "t\u00f6ken", "\ufffd", "\x7f", "a\n"])
def test_a_response_with_a_token_that_cannot_be_one_is_refused(token):
    for found in ({"access_token": token}, {"access_token": "AT", "refresh_token": token}):
        with pytest.raises(NoAnswer, match="printable ASCII") as refused:
            read_tokens(found)
        assert token not in refused.value.message
    assert Tokens("a" * 8192).access_token


def test_a_date_to_which_nothing_can_be_added_is_no_date():
    for year in ("1800", "3000", "9999"):
        assert http_date(f"Mon, 01 Jan {year} 00:00:00 +2359") is None
    assert http_date("Sat, 21 Nov 2026 12:02:00 GMT") is not None


def test_the_texts_of_an_account_are_bounded():
    hostile = "\x00 \x1b[31mRed\u202e\r\n\tteam \u2066\ud83d\udc69\u200d\ud83d\ude80\u00a0" + "x" * 5_000_000
    hostile = hostile.encode("utf-16", "surrogatepass").decode("utf-16")
    account = Identity("7", hostile, hostile, "https://a.test/" + hostile, {"server": hostile, "blob": 7})
    assert account.name == account.username
    assert (account.name or "").startswith("[31mRed team \U0001f469\u200d\U0001f680 xxx")
    assert is_label(account.name or "")
    assert len(account.name or "") == MAX_LABEL_LENGTH
    assert (account.picture_url, account.facts) == (None, {"blob": 7})
    for empty in ("", "\u202e\u200b", "\u200d", " \x00\n"):
        assert Identity("7", empty, empty, None).name is None
    with pytest.raises(NoAnswer):
        Identity("7" * 5000, None, None, None)


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
def test_no_redirect_carries_a_token_elsewhere(http, status):
    with Server(answering("200 OK", b"mine now")) as elsewhere:
        with Server(answering(status, b"", f"Location: {elsewhere.url}/")) as server:
            for method in ("GET", "POST", "PUT"):
                assert not http.call(method, server.url, token="a-token", content=b"x").ok
        assert elsewhere.heard == []


def heads(lines: Callable[[int], bytes]) -> Callable[[Server, socket.socket], None]:
    def play(server: Server, connection: socket.socket) -> None:
        server.hear(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        number = 0
        while not server.over.is_set():
            connection.sendall(lines(number))
            number += 1

    return play


@pytest.mark.parametrize(
    "lines",
    [lambda number: f"x-{number}: {'y' * 1000}\r\n".encode(), lambda _: b"y" * 4096],
    ids=["many headers", "one that is long"],
)
def test_a_head_that_never_ends_is_not_gathered(http, lines):
    with allocating_at_most(32 * 1024 * 1024), Server(heads(lines)) as server, pytest.raises(NoAnswer):
        http.call("GET", server.url, deadline_seconds=20.0)
