"""Downloads from URLs that callers chose: hosts on loopback that lie, drip, redirect and change their address."""

import asyncio
import socket
from collections.abc import Coroutine
from typing import Any

import h11
import pytest

from socialpub.providers import ip_addresses
from socialpub.providers.ip_addresses import AllowedHosts
from socialpub.publishing.media import download as downloads
from socialpub.publishing.media.download import DownloadFailed, download
from tests.support.file_host import FileHost, certificate, redirect, response
from tests.support.hand_loop import HandLoop

LOOPBACK = AllowedHosts.parse(["127.0.0.1"])
HEAD = b"HTTP/1.1 200 OK\r\n"
IMAGE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 300


async def fetch(url: str, allowed: AllowedHosts = LOOPBACK) -> bytes:
    async with download(url, allowed) as found:
        return b"".join([piece async for piece in found.pieces])


def run(story: Coroutine[Any, Any, Any], *, hand_loop: bool = False) -> Any:
    with asyncio.Runner(loop_factory=HandLoop if hand_loop else None) as runner:
        return runner.run(story)


async def refusal(host: FileHost, allowed: AllowedHosts = LOOPBACK) -> str:
    """Return what the caller reads about the file at `/a`."""
    async with host:
        with pytest.raises(DownloadFailed) as failed:
            await fetch(host.url(), allowed)
    return str(failed.value)


def test_a_file_arrives_unchanged_and_no_credentials_are_sent(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    host = FileHost({"/a": response(IMAGE, "Content-Type: Image/PNG; q=1", "Set-Cookie: a=b")})

    async def story() -> None:
        async with host, download(host.url("/a?sig=1#top"), LOOPBACK) as found:
            assert (found.content_type, found.length_bytes) == ("image/png", len(IMAGE))
            assert b"".join([piece async for piece in found.pieces]) == IMAGE

    run(story())
    line, *fields = host.heads[0].lower().strip().split("\r\n")
    assert line == "get /a?sig=1 http/1.1"
    assert sorted(field.partition(":")[0] for field in fields) == [
        "accept", "accept-encoding", "connection", "host", "user-agent",
    ]  # fmt: skip
    assert "accept-encoding: identity" in fields and f"host: 127.0.0.1:{host.port}" in fields


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (response(status="404 Not Found"), "answered 404 Not Found"),
        (response(status="304 Not Modified", length=None), "answered 304 Not Modified"),
        (response(status="302 Found"), "answered 302 Found"),
        (response(b"", "Content-Encoding: gzip"), "answered with the encoding gzip, which was not requested"),
        (response(b"abc", length=900), "could not be read: it ended before the response was complete"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "could not be read: its response is not HTTP"),
        (b"220 (vsFTPd 3.0.5)\r\n", "could not be read: its response is not HTTP"),
        (b"220-Welcome\r\n\r\n", "could not be read: its response is not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "could not be read: it ended before the response was complete"),
        (b"", "could not be read: it ended before the response was complete"),
        (redirect("ftp://127.0.0.1/a"), "leads to a URL that is not an http or https URL"),
        (redirect("http://[::1/a"), "leads to a URL that is not valid"),
        (redirect("/" + "a" * 9000), "leads to a URL that is too long"),
        (redirect("http://127.0.0.1:0/a"), "leads to a URL that has a host or a port that is not valid"),
        (redirect("http://127.0.0.1:70000/a"), "leads to a URL that has a host or a port that is not valid"),
        (
            redirect("http://user:word@127.0.0.1/a"),
            "leads to a URL that contains a user name or a password; the appliance sends no credentials",
        ),
    ],
)
def test_a_response_that_is_not_a_file_is_explained(sent, message):
    assert run(refusal(FileHost({"/a": sent}))) == message


@pytest.mark.parametrize(
    "url", ["", "image.png", "file:///etc/passwd", "http://", "gopher://127.0.0.1/", "http://a%00b/", "//127.0.0.1/a"]
)
def test_only_http_urls_are_fetched(url):
    with pytest.raises(DownloadFailed, match=r"is not an http or https URL|is not valid"):
        run(fetch(url))


def test_five_redirects_are_followed_without_cookies_and_a_sixth_is_not():
    steps: dict[str, Any] = {f"/{n}": redirect(f"/{n + 1}", b"", "Set-Cookie: a=1") for n in range(6)}
    host = FileHost({**steps, "/6": response(IMAGE)})

    async def story() -> None:
        async with host:
            assert await fetch(host.url("/1")) == IMAGE
            with pytest.raises(DownloadFailed, match="leads over more than 5 redirects"):
                await fetch(host.url("/0"))

    run(story())
    assert len(host.heads) == 6 + 6
    assert not any("cookie" in head.lower() for head in host.heads)


def test_the_body_of_a_redirect_is_not_read():
    """Otherwise, an endless body would fill the memory."""

    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(redirect("/b", b"").replace(b"Content-Length: 0", b"Content-Length: 99999999999"))
        while True:
            writer.write(bytes(1 << 16))
            await writer.drain()

    async def story() -> bytes:
        async with FileHost({"/a": endless, "/b": response(IMAGE)}) as host:
            return await fetch(host.url())

    assert run(story()) == IMAGE


# --- endless heads and chunks -----------------------------------------------------------------------------------------

CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


class Parser:
    """Counts what the parser of all downloads gets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        self.lines: list[int] = []
        self.iterations: list[int] = []
        """The iteration of the event loop for each piece."""
        self._now = 0
        feed = h11.Connection.receive_data

        def receive_data(connection: h11.Connection, data: bytes) -> None:
            self.sizes.append(len(data))
            self.lines.append(data.count(b"\n"))
            self.iterations.append(self._now)
            feed(connection, data)

        monkeypatch.setattr(h11.Connection, "receive_data", receive_data)

    async def count_iterations(self) -> None:
        while True:
            self._now += 1
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("begins", "forever"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"", b"HTTP/1.1 103\n\n"),
        (b"", b"HTTP/1.1 103 Early\r\n" + b"Link: a\r\n" * 90 + b"\r\n"),
        (HEAD, b"a:\r\n"),
        (HEAD, b" \r\n"),
        (HEAD + b"a: ", b"a"),
        (CHUNKED + b"1;", b"a"),
        (CHUNKED + b"0\r\n", b"a:\r\n"),
        (CHUNKED + b"1\r\nx\r\n0\r\na: ", b"a"),
    ],
)
def test_a_host_that_sends_no_content_for_ever_is_given_up(begins, forever, monkeypatch):
    parser = Parser(monkeypatch)

    async def flood(writer: asyncio.StreamWriter) -> None:
        writer.write(begins)
        for _ in range(100):
            writer.write(forever * (100_000 // len(forever)))
            await writer.drain()

    said = run(refusal(FileHost({"/a": flood})))
    assert said == "could not be read: it sent more than 64 kB or 500 lines without content"
    # The piece in which a head or content ends is not counted.
    assert sum(parser.sizes) <= (64 + 16) * 1024
    assert sum(parser.lines) <= 500 + 100
    assert max(parser.lines) <= 100


@pytest.mark.parametrize("chunk", [b"1\r\nx\r\n", b"1;aaaaaaaaaa\r\nx\r\n", b"a\r\n" + b"\n" * 10 + b"\r\n"])
def test_tiny_chunks_leave_time_for_other_tasks(chunk, monkeypatch):
    """Between two pieces of any download, all other tasks of the loop get time."""
    parser = Parser(monkeypatch)

    async def story() -> list[bytes]:
        turn = asyncio.Lock()

        async def fetch_in_turn(url: str) -> bytes:
            async with download(url, LOOPBACK, turn) as found:
                return b"".join([piece async for piece in found.pieces])

        async with FileHost({"/a": CHUNKED + chunk * 5000 + b"0\r\n\r\n"}) as host:
            counting = asyncio.ensure_future(parser.count_iterations())
            files = await asyncio.gather(*(fetch_in_turn(host.url()) for _ in range(3)))
            counting.cancel()
            return files

    content = chunk.partition(b"\r\n")[2][:-2]
    assert run(story()) == [content * 5000] * 3
    assert max(parser.lines) <= 100
    assert len(set(parser.iterations)) == len(parser.iterations)


def test_a_large_file_is_not_limited_by_its_lines(monkeypatch):
    parser = Parser(monkeypatch)
    lines = b"\n" * 300_000

    async def story(sent: bytes) -> bytes:
        async with FileHost({"/a": sent}) as host:
            return await fetch(host.url())

    assert run(story(response(lines))) == lines
    assert len(parser.sizes) < 100
    assert run(story(CHUNKED + b"%x\r\n%b\r\n0\r\na: b\r\n\r\n" % (len(lines), lines))) == lines


# --- addresses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "0x7f.1", "2130706433", "localhost", "[::ffff:10.0.0.1]"])
def test_a_private_host_is_refused_and_never_called(host):
    with pytest.raises(
        DownloadFailed,
        match=r"does not exist or is not a public host; the owner .* can allow a private host with media\.import_from",
    ):
        run(fetch(f"http://{host}:9/", AllowedHosts()))


def test_an_allowed_host_cannot_redirect_to_a_private_host():
    async def story() -> None:
        async with FileHost({"/a": response(b"secret")}, "127.0.0.2") as inner:
            outer = FileHost({"/a": redirect(inner.url())})
            assert (await refusal(outer)).startswith("leads to 127.0.0.2, which does not exist or is not a public host")
            assert inner.heads == []

    run(story())


def test_a_name_that_changes_its_address_after_the_check_leads_to_the_checked_address(
    monkeypatch,
):
    asked: list[str] = []
    system = socket.getaddrinfo

    def rebinding(name: str, *args: Any, **more: Any) -> Any:
        if name == "changing.example":
            asked.append(name)
            name = "127.0.0.1" if len(asked) == 1 else "127.0.0.2"
        return system(name, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)

    async def story() -> None:
        async with FileHost({"/a": response(IMAGE)}) as host:
            assert await fetch(host.url(host="changing.example")) == IMAGE
            assert f"Host: changing.example:{host.port}" in host.heads[0]
            assert asked == ["changing.example"], "the connection does not ask again"
            with pytest.raises(
                DownloadFailed, match=r"leads to changing\.example, which does not exist or is not a public host"
            ):
                await fetch(host.url(host="changing.example"))

    run(story())


def test_a_name_with_one_private_address_is_refused(monkeypatch):
    monkeypatch.setattr(ip_addresses, "look_up", lambda *_: ["93.184.216.34", "192.168.1.1"])
    with pytest.raises(DownloadFailed, match=r"leads to split\.example, which does not exist or is not a public host"):
        run(fetch("http://split.example/", AllowedHosts()))


def test_an_unknown_host_and_a_closed_port_are_explained(monkeypatch):
    with pytest.raises(DownloadFailed, match=r"could not be reached: the connection was refused"):
        run(fetch("http://127.0.0.1:9/"))
    monkeypatch.setattr(ip_addresses, "look_up", lambda *_: [])
    with pytest.raises(
        DownloadFailed, match=r"leads to xn--bcher-kva\.example, which does not exist or is not a public host"
    ):
        run(fetch("http://bücher.example/"))


def test_the_certificate_must_match_the_name_after_each_redirect(monkeypatch, tmp_path):
    """Both names have the same IP address. A reused connection would skip the check of the second name."""
    tls, trusting = certificate("images.example", tmp_path)
    monkeypatch.setattr(downloads, "trusted_certificates", lambda: trusting)
    monkeypatch.setattr(ip_addresses, "look_up", lambda *_: ["127.0.0.1"])

    async def story() -> None:
        async with FileHost({"/a": response(IMAGE)}, tls=tls) as host:
            assert await fetch(host.url(host="images.example")) == IMAGE
            host.responses["/b"] = redirect(host.url(host="other.example")).replace(b"Connection: close\r\n", b"")
            with pytest.raises(DownloadFailed, match="could not be reached: its certificate is not valid"):
                await fetch(host.url("/b", host="images.example"))
            assert host.paths == ["/a", "/b"]

    run(story())


# --- time ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("begins", [b"", response(b"abc", length=900)])
def test_a_host_that_sends_nothing_for_twenty_seconds_is_given_up(begins):
    async def silent(writer: asyncio.StreamWriter) -> None:
        writer.write(begins)
        await writer.drain()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, HandLoop)
        while True:  # time passes only when nothing else runs
            loop.forward(1)
            await asyncio.sleep(0)

    assert run(refusal(FileHost({"/a": silent})), hand_loop=True) == "sent nothing for 20 seconds"


def test_a_dns_query_that_hangs_is_given_up(monkeypatch):
    async def hang(_: object) -> list[str]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, HandLoop)
        loop.forward(downloads.CONNECT_SECONDS)
        return await loop.create_future()

    monkeypatch.setattr(downloads.runtime, "run_in_thread", hang)
    with pytest.raises(DownloadFailed, match=r"leads to slow\.example, which does not exist or is not a public host"):
        run(fetch("http://slow.example/"), hand_loop=True)
