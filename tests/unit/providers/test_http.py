"""The HTTP client: `NotSent` means for certain that nothing left this host."""

import asyncio
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import h11
import pytest

from socialpub.providers.bodies import FileBody, FilePart
from socialpub.providers.failures import find_unusable_proxies
from socialpub.providers.http import Http
from socialpub.providers.responses import HttpResponse, NoAnswer, NotSent
from tests.support.hand_loop import HandLoop

SECRET = "a-secret-token"
BODY_OF_TEN = b"Content-Length: 10\r\n\r\nabc"


class Server:
    """A socket on loopback that plays one script per connection and stores the requests."""

    def __init__(self, play: Callable[["Server", socket.socket], None]) -> None:
        self._play = play
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self.heard: list[bytes] = []
        self.over = threading.Event()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> "Server":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        # Closing a socket does not end its `accept`.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while not self.over.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                try:
                    self._play(self, connection)
                except OSError:
                    continue

    def hear(self, connection: socket.socket) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(65536)
            if not piece:
                return data
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        length = next(
            (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
        )
        while len(body) < length:
            body += connection.recv(65536)
        self.heard.append(head + b"\r\n\r\n" + body)
        return self.heard[-1]


def answering(status: str, body: bytes, *headers: str) -> Callable[[Server, socket.socket], None]:
    def play(server: Server, connection: socket.socket) -> None:
        if server.hear(connection):
            lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
            connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    return play


@pytest.fixture
def http() -> Iterator[Http]:
    http = Http()
    yield http
    http.close()


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> HandLoop:
    loop = HandLoop()
    monkeypatch.setattr(asyncio, "new_event_loop", lambda: loop)
    return loop


@contextmanager
def closed_port() -> Iterator[str]:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


def test_an_answer_comes_back_whole_with_lower_case_headers_and_exact_numbers(http):
    body = b'{"account_id": 1500000000000000001234567, "ratio": 0.5}'
    with Server(answering("402 Payment Required", body, "X-Rate-Limit-Reset: 1700000000")) as server:
        answer = http.call("POST", f"{server.url}/2/tweets", token=SECRET, json={"text": "Grüße"}, params={"a": "b c"})
    assert answer.status == 402
    assert answer.headers["x-rate-limit-reset"] == "1700000000"
    assert answer.json()["account_id"] == 1500000000000000001234567
    head, _, sent = server.heard[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /2/tweets?a=b%20c HTTP/1.1") or head.startswith(b"POST /2/tweets?a=b+c HTTP/1.1")
    assert f"authorization: bearer {SECRET}" in head.decode().lower()
    assert b"user-agent: socialpub/1.0" in head.lower()
    assert sent == '{"text":"Grüße"}'.encode()


def test_a_form_with_basic_credentials_is_sent_as_the_token_endpoints_want_it(http):
    with Server(answering("200 OK", b"{}")) as server:
        http.call("POST", server.url, form={"grant_type": "refresh_token", "scope": "a b"}, auth=("id", "secret"))
    head, _, sent = server.heard[0].partition(b"\r\n\r\n")
    assert b"authorization: basic awq6c2vjcmv0" in head.lower()
    assert b"content-type: application/x-www-form-urlencoded" in head.lower()
    assert sent == b"grant_type=refresh_token&scope=a+b"


def test_a_refused_connection_means_that_nothing_left(http):
    with closed_port() as url, pytest.raises(NotSent) as failure:
        http.call("POST", f"{url}/2/tweets?secret={SECRET}", token=SECRET)
    assert failure.value.message == "127.0.0.1 could not be reached: the connection was refused."


def test_an_unknown_name_means_that_nothing_left(http, monkeypatch):
    def no_such_name(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_such_name)
    with pytest.raises(NotSent, match="its name was not found"):
        http.call("POST", "https://api.nowhere.test/2/tweets")


def test_a_failed_handshake_means_that_nothing_left(http):
    def no_tls(_: Server, connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with Server(no_tls) as server, pytest.raises(NotSent, match="the TLS connection failed"):
        http.call("POST", server.url.replace("http:", "https:"))


def test_a_handshake_that_never_ends_means_that_nothing_left(http, loop):
    def silent(server: Server, connection: socket.socket) -> None:
        connection.recv(65536)
        loop.forward(16)
        server.over.wait()

    with Server(silent) as server, pytest.raises(NotSent, match="the connection timed out"):
        http.call("POST", server.url.replace("http:", "https:"))


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "http://127.0.0.1:notaport/", "no address at all"])
def test_an_invalid_address_means_that_nothing_left(http, url):
    with pytest.raises(NotSent):
        http.call("GET", url)


def test_a_connection_cut_after_the_request_may_have_had_an_effect(http):
    def cut(server: Server, connection: socket.socket) -> None:
        server.hear(connection)

    with Server(cut) as server, pytest.raises(NoAnswer) as failure:
        http.call("POST", f"{server.url}/2/tweets?secret={SECRET}", token=SECRET, json={"text": "hello"})
    assert len(server.heard) == 1
    assert SECRET not in str(failure.value)
    assert "127.0.0.1" in failure.value.message


def test_an_incomplete_response_may_have_had_an_effect(http):
    def half(server: Server, connection: socket.socket) -> None:
        server.hear(connection)
        connection.sendall(b'HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{"data":')

    with Server(half) as server, pytest.raises(NoAnswer):
        http.call("POST", server.url)


def test_a_trickling_answer_is_cut_at_the_deadline(http, loop):
    def trickle(server: Server, connection: socket.socket) -> None:
        server.hear(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not server.over.wait(0.001):
            connection.sendall(b"x")
            loop.forward(1)

    with Server(trickle) as server, pytest.raises(NoAnswer, match=r"127\.0\.0\.1 did not respond in time"):
        http.call("GET", server.url)


def test_silence_is_cut_at_the_deadline(http, loop):
    def silent(server: Server, connection: socket.socket) -> None:
        server.hear(connection)
        loop.forward(60)
        server.over.wait()

    with Server(silent) as server, pytest.raises(NoAnswer, match="did not respond in time"):
        http.call("POST", server.url)


def test_a_page_instead_of_json_is_an_answer_that_cannot_be_read(http):
    with Server(answering("503 Service NoAnswer", b"<html>busy</html>", "Content-Type: text/html")) as server:
        answer = http.call("GET", server.url)
    assert answer.status == 503
    with pytest.raises(NoAnswer, match="HTTP 503"):
        answer.json()
    with pytest.raises(NoAnswer):
        HttpResponse(200, {}, b"[" * 100_000).json()


def test_an_endless_answer_is_cut_off(http):
    def endless(server: Server, connection: socket.socket) -> None:
        server.hear(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b"x" * 65536)

    with Server(endless) as server, pytest.raises(NoAnswer, match="more than 4194304 bytes"):
        http.call("GET", server.url)


def test_redirects_are_not_followed_and_cookies_not_kept(http):
    with Server(answering("302 Found", b"", "Location: /elsewhere", "Set-Cookie: a=b")) as server:
        assert http.call("GET", server.url).status == 302
        http.call("GET", server.url)
    assert len(server.heard) == 2
    assert b"cookie" not in server.heard[1].lower()


def test_a_file_part_is_streamed_from_its_offset_with_its_length_announced(http, tmp_path):
    video = tmp_path / "video.mp4"
    video.write_bytes(bytes(range(256)) * 1024)
    with Server(answering("204 No Content", b"")) as server:
        http.call(
            "POST",
            server.url,
            token=SECRET,
            multipart={
                "segment_index": "3",
                "media": FilePart(video, offset=1000, length=200_000, filename='a"b.mp4', content_type="video/mp4"),
            },
        )
    head, _, body = server.heard[0].partition(b"\r\n\r\n")
    assert f"content-length: {len(body)}".encode() in head.lower()
    assert b"transfer-encoding" not in head.lower()
    boundary = head.lower().split(b"boundary=")[1].split(b"\r\n")[0]
    first, second = body.split(b"--" + boundary)[1:3]
    assert first == b'\r\nContent-Disposition: form-data; name="segment_index"\r\n\r\n3\r\n'
    head_of_file, _, sent = second.partition(b"\r\n\r\n")
    assert b'name="media"; filename="a%22b.mp4"\r\nContent-Type: video/mp4' in head_of_file
    assert sent == video.read_bytes()[1000:201_000] + b"\r\n"
    assert body.endswith(b"--" + boundary + b"--\r\n")


def test_a_file_as_the_whole_body_keeps_the_callers_content_type(http, tmp_path):
    video = tmp_path / "video.mp4"
    video.write_bytes(b"0123456789")
    with Server(answering("200 OK", b"")) as server:
        http.call("PUT", server.url, content=FileBody(video, 2, 5), headers={"content-type": "video/mp4"})
    head, _, body = server.heard[0].partition(b"\r\n\r\n")
    assert body == b"23456"
    assert b"content-type: video/mp4" in head.lower()
    assert b"content-length: 5" in head.lower()


@pytest.mark.parametrize("length", [None, 11])
def test_a_missing_or_too_short_file_body_is_an_error_before_anything_leaves(http, tmp_path, length):
    video = tmp_path / "video.mp4"
    if length:
        video.write_bytes(b"0123456789")
    with Server(answering("200 OK", b"")) as server, pytest.raises(FileNotFoundError):
        http.call("PUT", server.url, content=FileBody(video, 0, length or 10))
    assert server.heard == []


def test_a_file_upload_without_progress_is_cut(http, loop, tmp_path):
    video = tmp_path / "video.mp4"
    with video.open("wb") as handle:
        handle.truncate(64 * 1024 * 1024)

    def deaf(server: Server, _: socket.socket) -> None:
        while not server.over.wait(0.001):
            loop.forward(1)

    with Server(deaf) as server, pytest.raises(NoAnswer, match="did not respond in time"):
        http.call("PUT", server.url, content=FileBody(video, 0, 64 * 1024 * 1024))


def test_a_file_upload_with_progress_may_take_longer_than_the_deadline(http, loop, tmp_path):
    size, mega = 64 * 1024 * 1024, 1024 * 1024
    video = tmp_path / "video.mp4"
    with video.open("wb") as handle:
        handle.truncate(size)

    def slow(server: Server, connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        got = 0
        # A second for each megabyte exceeds the deadline and the stall timeout in total.
        while got < size and (piece := connection.recv(262144)):
            if (got + len(piece)) // mega > got // mega:
                loop.forward(1)
            got += len(piece)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    with Server(slow) as server:
        assert http.call("PUT", server.url, content=FileBody(video, 0, size), deadline_seconds=20).status


def test_a_call_connects_to_the_given_address_and_names_the_original_host(http):
    with Server(answering("200 OK", b"{}")) as server:
        url = server.url.replace("127.0.0.1", "images.test")
        assert http.call("GET", f"{url}/a.png", address="127.0.0.1").ok
    named = url.removeprefix("http://").encode()
    assert b"host: " + named in server.heard[0].lower()


def test_the_certificate_of_an_address_must_match_its_name(http):
    def greeted(server: Server, connection: socket.socket) -> None:
        server.heard.append(connection.recv(65536))

    with Server(greeted) as server, pytest.raises(NotSent):
        url = server.url.replace("http://127.0.0.1", "https://images.test")
        http.call("GET", url, address="127.0.0.1")
    assert b"images.test" in server.heard[0], "the greeting names whose certificate is wanted"


def test_check_allowed_runs_before_anything_leaves(http):
    class Stopped(Exception):
        pass

    def refuse() -> None:
        raise Stopped

    with Server(answering("200 OK", b"")) as server, pytest.raises(Stopped):
        http.call("POST", server.url, check_allowed=refuse)
    assert server.heard == []


def test_many_threads_share_one_client(http):
    with Server(answering("200 OK", b"{}")) as server:
        statuses: list[int] = []
        threads = [
            threading.Thread(target=lambda: statuses.append(http.call("GET", server.url).status)) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert statuses == [200] * 8


def test_closing_cancels_calls_and_sends_nothing_afterwards():
    http = Http()

    def silent(server: Server, connection: socket.socket) -> None:
        server.hear(connection)
        threading.Thread(target=http.close).start()
        server.over.wait()

    with Server(silent) as server:
        with pytest.raises(NoAnswer, match="the appliance is stopping"):
            http.call("POST", server.url)
        with pytest.raises(NotSent):
            http.call("POST", server.url)
    http.close()


GREETINGS = [
    b"SSH-2.0-OpenSSH_9.6\r\n",
    b"220 (vsFTPd 3.0.5)\r\n",
    b"\x4a\x00\x00\x00\x0a8.0.36\x00",
    b"<html>\r\n\r\n",
]


@pytest.mark.parametrize("greeting", GREETINGS)
@pytest.mark.parametrize("closes", [True, False])
def test_a_server_of_another_protocol_is_not_http(http, loop, monkeypatch, greeting, closes):
    receive = h11.Connection.receive_data

    def receives(connection: h11.Connection, data: bytes) -> None:
        receive(connection, data)
        loop.forward(60)

    def greets(server: Server, connection: socket.socket) -> None:
        server.hear(connection)
        connection.sendall(greeting)
        if not closes:
            server.over.wait()

    if not closes:
        monkeypatch.setattr(h11.Connection, "receive_data", receives)

    with Server(greets) as server, pytest.raises(NoAnswer, match="its response is not HTTP"):
        http.call("GET", server.url)


@pytest.mark.parametrize("sent", [b"", b"HT", b"HTTP/1.1 200 OK\r\nContent-Le", b"HTTP/1.1 200 OK\r\n" + BODY_OF_TEN])
def test_a_response_that_is_cut_is_http(http, sent):
    def cuts(server: Server, connection: socket.socket) -> None:
        server.hear(connection)
        connection.sendall(sent)

    with Server(cuts) as server, pytest.raises(NoAnswer, match="ended before the response was complete"):
        http.call("GET", server.url)


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    "value",
    [
        "socks5://user:hush-word@proxy.test:1080",
        "socks5h://proxy.test",
        "SOCKS4://proxy.test",
        "socks://user:hush-word@proxy.test:1080",
        "ftp://proxy.test",
        "://",
        "http://user:hush-word@[::1",
        "http://proxy.test:99999",
        "http://",
        "http://proxy.test:port",
        "user:hush-word@proxy.test:99999",
    ],
)
@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
@pytest.mark.usefixtures("no_proxies")
def test_a_proxy_variable_that_cannot_be_used_is_named_and_nothing_leaves(http, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    (sentence,) = find_unusable_proxies()
    assert name in sentence
    assert "hush" not in sentence
    with pytest.raises(NotSent) as refused:
        http.call("POST", "http://network.test/", json={}, deadline_seconds=5.0)
    assert "hush" not in refused.value.message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HTTPS_PROXY", "http://user:word@proxy.test:3128"),
        ("https_proxy", "proxy.test:3128"),
        ("ALL_PROXY", "https://proxy.test"),
        ("FTP_PROXY", "socks5://proxy.test"),
        ("HTTPS_PROXY", ""),
        ("NO_PROXY", "[::1, http://[x"),
    ],
)
@pytest.mark.usefixtures("no_proxies")
def test_other_proxy_variables_can_be_used(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert find_unusable_proxies() == []
    Http()._build_client()
    monkeypatch.setenv("https_proxy", "socks5://proxy.test")
    monkeypatch.setenv("NO_PROXY", "a.test, *")
    assert find_unusable_proxies() == []


def test_certificates_that_cannot_be_loaded_are_not_a_missing_media_file(http, monkeypatch):
    monkeypatch.setattr("socialpub.providers.http.trusted_certificates", Path("/no/such/file").read_bytes)
    with pytest.raises(NotSent, match="SSL_CERT_FILE"):
        http.call("GET", "http://network.test/")


def test_two_bodies_are_a_mistake(http):
    with pytest.raises(ValueError, match="one body"):
        http.call("POST", "http://127.0.0.1/", json={}, form={})
