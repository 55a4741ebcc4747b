"""Files inside a JSON body: Base64 with a known length."""

import asyncio
import base64
import json
import tracemalloc
from contextlib import closing
from typing import Any

import pytest

from socialpub.providers.bodies import BASE64_PIECE_BYTES, Base64File, Body, build


def sent(body: Body) -> bytes:
    async def collect() -> bytes:
        return b"".join([piece async for piece in body])

    with closing(body):
        return asyncio.run(collect())


def made(**given: Any) -> Body:
    body = build(**given)
    assert body is not None
    return body


@pytest.mark.parametrize("size", [0, 1, 2, 3, BASE64_PIECE_BYTES - 1, BASE64_PIECE_BYTES, 2 * BASE64_PIECE_BYTES + 1])
def test_a_file_of_any_length_is_one_string_of_base64(tmp_path, size):
    data = bytes(n % 251 for n in range(size))
    (tmp_path / "a").write_bytes(data)
    body = made(json={"title": 'Ä "b"', "items": [{"data": Base64File(tmp_path / "a", size)}] * 2, "last": None})
    announced = body.length_bytes
    content = sent(body)
    assert len(content) == announced
    assert json.loads(content) == {
        "title": 'Ä "b"',
        "items": [{"data": base64.b64encode(data).decode()}] * 2,
        "last": None,
    }


def test_json_without_files_is_plain_json():
    body = made(json={"a": [1, "ö"]})
    assert (body.has_file, body.content_type) == (False, "application/json")
    assert sent(body) == '{"a":[1,"ö"]}'.encode()


def test_a_missing_or_shorter_file_is_an_error_before_anything_leaves(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    for path, length in ((tmp_path / "b", 3), (tmp_path / "a", 4)):
        with pytest.raises(FileNotFoundError):
            build(json=[Base64File(tmp_path / "a", 3), Base64File(path, length)])


def test_a_value_that_is_not_json_is_refused():
    with pytest.raises(TypeError, match="bytes"):
        build(json={"a": b"raw"})


def test_a_large_file_is_never_whole_in_memory(tmp_path):
    size = 8 * 1024 * 1024
    with (tmp_path / "a").open("wb") as file:
        file.truncate(size)

    async def swallow(body: Body) -> int:
        return sum([len(piece) async for piece in body])

    tracemalloc.start()
    try:
        with closing(made(json={"data": Base64File(tmp_path / "a", size)})) as body:
            assert asyncio.run(swallow(body)) == body.length_bytes
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * 1024 * 1024
