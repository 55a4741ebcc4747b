"""A proxy in front may read a request in another way than we: what could be read in two ways is refused, and nothing
that stands behind it is taken for a request of its own.
"""

import asyncio

import pytest

from socialpub.runtime import Runtime
from socialpub.web.http.server import Server
from tests.integration.web.wire import Line, serve

INNER = b"GET /api/v1/profiles HTTP/1.1\r\nhost: x\r\n\r\n"
AMBIGUOUS = {
    "two lengths": b"content-length: 5\r\ncontent-length: 6\r\n",
    "a list of lengths": b"content-length: 5, 5\r\n",
    "a length and chunks": b"content-length: 4\r\ntransfer-encoding: chunked\r\n",
    "chunks and a length": b"transfer-encoding: chunked\r\ncontent-length: 4\r\n",
    "a length with a sign": b"content-length: +5\r\n",
    "a length in hexadecimal": b"content-length: 0x5\r\n",
    "a negative length": b"content-length: -1\r\n",
    "a length with a blank": b"content-length: 1 1\r\n",
    "a blank before the colon": b"transfer-encoding : chunked\r\n",
    "another last coding": b"transfer-encoding: chunked, identity\r\n",
    "a coding nobody knows": b"transfer-encoding: xchunked\r\n",
    "chunks twice": b"transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
    "a folded line": b"transfer-encoding:\r\n chunked\r\n",
    "a control character": b"transfer-encoding: \x0bchunked\r\n",
    "a nul": b"x-a: b\0c\r\n",
    "a lone carriage return": b"x-a: b\rtransfer-encoding: chunked\r\n",
    "no name": b": b\r\n",
}
BODY = b"0\r\n\r\n"


@pytest.mark.parametrize("head", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_what_two_servers_could_read_differently_is_refused(rt: Runtime, head: bytes) -> None:
    said: list[bytes] = []

    async def story(server: Server, key: str, port: int) -> None:
        async with Line(key, port) as line:
            start = f"POST /api/v1/posts/validate HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n".encode()
            line.writer.write(start + b"content-type: application/json\r\n" + head + b"\r\n" + BODY + INNER)
            async with asyncio.timeout(20):
                said.append(await line.reader.read())  # to its end: the connection is closed

    serve(rt, story)
    (answers,) = said
    assert answers.startswith(b"HTTP/1.1 4"), answers
    assert answers.count(b"HTTP/1.1 ") == 1, answers
    assert b"401" not in answers, "the second was taken for a request"


def test_a_plain_pair_of_requests_is_two(rt: Runtime) -> None:
    async def story(server: Server, key: str, port: int) -> None:
        async with Line(key, port) as line:
            for _ in range(2):
                line.ask("/api/v1/profiles")
            assert [(await line.answer())[0] for _ in range(2)] == [200, 200]

    serve(rt, story)
