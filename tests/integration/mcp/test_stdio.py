"""`socialpub mcp`: lines in, lines out, and the file of a path (contract 10.4.3)."""

import io
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from socialpub.cli.client.mcp import Relay
from socialpub.media.decoder import client
from socialpub.media.types import Facts, MediaRejected
from socialpub.web.mcp.messages import META_CAPABILITIES, META_REVISION
from tests.integration.mcp.agent import STATELESS, Agent

ROOT = Path(__file__).parents[3]
URL = "http://appliance.example"
Handler = Callable[[httpx2.Request], httpx2.Response]


def line(**fields: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **fields}).encode() + b"\n"


def relay(handler: Handler, *lines: bytes, key: str = "") -> list[Any]:
    """Return the messages that the command writes for these lines."""
    output = io.BytesIO()
    headers = {"authorization": f"Bearer {key}"}
    with httpx2.Client(transport=httpx2.MockTransport(handler), headers=headers) as http:
        Relay(http, URL, output).serve(lines)
    return [json.loads(one) for one in output.getvalue().splitlines()]


def echo(request: httpx2.Request) -> httpx2.Response:
    """Answer with the id and the headers of the request. A notification gets 202."""
    message = json.loads(request.content)
    if "id" not in message:
        return httpx2.Response(202)
    shown = {name: value for name, value in request.headers.items() if name.startswith("mcp-")}
    return httpx2.Response(200, json={"jsonrpc": "2.0", "id": message["id"], "result": shown})


@pytest.mark.parametrize(("text", "code"), [(b"{\n", -32700), (b"\xff\n", -32700), (b"[]\n", -32600), (b"7\n", -32600)])
def test_a_broken_line_gets_its_failure_and_the_next_line_its_response(text, code):
    broken, answered = sorted(relay(echo, text, line(id=1, method="ping")), key=lambda one: "result" in one)
    assert (broken["id"], broken["error"]["code"]) == (None, code)
    assert answered["id"] == 1


def test_a_long_call_delays_no_other_call():
    quick_was_answered = threading.Event()

    def answer(request: httpx2.Request) -> httpx2.Response:
        if b"slow" in request.content:
            assert quick_was_answered.wait(10)
        else:
            quick_was_answered.set()
        return echo(request)

    found = relay(answer, line(id=1, method="slow"), line(id=2, method="quick"))
    assert {one["id"] for one in found} == {1, 2} and all("result" in one for one in found)


def test_a_canceled_request_gets_no_response():
    canceled = threading.Event()

    def answer(request: httpx2.Request) -> httpx2.Response:
        if b"cancelled" in request.content:
            canceled.set()
        elif b"slow" in request.content:
            assert canceled.wait(10)
        return echo(request)

    cancel = line(method="notifications/cancelled", params={"requestId": 1})
    found = relay(answer, line(id=1, method="slow"), line(id="1", method="other"), cancel)
    assert [one["id"] for one in found] == ["1"]


def test_a_stateless_request_gets_the_headers_of_http():
    params = {"name": "list_posts", "_meta": {META_REVISION: STATELESS, META_CAPABILITIES: {}}}
    calls = [line(id=name, method="tools/call", params={**params, "name": name}) for name in ("list_posts", "töol")]
    found = {one["id"]: one["result"] for one in relay(echo, *calls, line(id=3, method="ping"))}
    expected = {"mcp-protocol-version": STATELESS, "mcp-method": "tools/call"}
    assert found["list_posts"] == {**expected, "mcp-name": "list_posts"}
    assert found["töol"] == {**expected, "mcp-name": "=?base64?dMO2b2w=?="}
    assert found[3] == {}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (httpx2.ConnectError("refused"), "Nothing was sent."),
        (httpx2.ReadTimeout("late"), "Repeat it only with the same idempotencyKey."),
        (httpx2.Response(502, text="<html>"), "answered 502, and not in the form of a socialpub appliance."),
        (httpx2.Response(202), "answered 202, and not in the form of a socialpub appliance."),
        (httpx2.Response(200, json={"html": 1}), "answered 200, and not in the form of a socialpub appliance."),
        (httpx2.Response(401, json={"detail": "This API key is revoked.", "status": 401}), "This API key is revoked."),
        (ValueError("spk_secret"), "The call failed: ValueError."),
    ],
)
def test_without_a_response_the_request_gets_a_failure_with_its_id(answer, message):
    def fail(_request: httpx2.Request) -> httpx2.Response:
        if isinstance(answer, Exception):
            raise answer
        response: httpx2.Response = answer
        return response

    [found] = relay(fail, line(id=1, method="ping"), line(method="notifications/initialized"))
    assert (found["id"], found["error"]["code"]) == (1, -32603)
    assert message in found["error"]["message"] and "secret" not in found["error"]["message"]


def test_the_program_writes_only_the_protocol_and_imports_no_server(tmp_path):
    program = "import atexit, sys; from socialpub.cli.main import main; "
    program += "atexit.register(lambda: print(*sys.modules, file=sys.stderr)); main(['mcp'])"
    environ = {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "SOCIALPUB_URL": URL, "SOCIALPUB_KEY": "spk_a_b"}
    ended = subprocess.run(
        [sys.executable, "-c", program], input=b"{\n", capture_output=True, check=False, env=environ, timeout=60
    )
    assert (ended.returncode, json.loads(ended.stdout)["error"]["code"]) == (0, -32700)
    heavy = {"pydantic", "peewee", "starlette", "uvicorn", "huey", "cryptography", "PIL", "av", "jinja2", "rich"}
    assert not heavy & set(ended.stderr.decode().split())


# --- files -----------------------------------------------------------------------------------------------------------


def upload(handler: Handler, key: str = "", **arguments: Any) -> Any:
    """Call `upload_media` with these arguments, and return the result."""
    params = {"name": "upload_media", "arguments": arguments, "_meta": {META_REVISION: STATELESS}}
    [found] = relay(handler, line(id=1, method="tools/call", params=params), key=key)
    result = found["result"]
    assert result["resultType"] == "complete"
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    return result


@pytest.fixture
def uploading(agent: Agent) -> Callable[[Path], Any]:
    """Call `upload_media` of an appliance with this path."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        reply = agent.ask(request.method, request.url.raw_path.decode(), request.read(), request.headers)
        return httpx2.Response(reply.status, headers=reply.headers, content=reply.body)

    return lambda path: upload(answer, agent.key, path=str(path))


@pytest.fixture
def decoder(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The declared types of the examined files. A real child process takes a quarter of a second."""
    declared_types: list[str] = []

    async def inspect_file(path: Path, declared: str, *_: Any, **__: Any) -> Facts:
        declared_types.append(declared)
        if path.read_bytes().endswith(b"damaged"):
            raise MediaRejected("The file is damaged.")
        return Facts(declared.partition("/")[0], declared, path.stat().st_size, {"width": 8, "height": 8})

    monkeypatch.setattr(client, "inspect_file_async", inspect_file)
    return declared_types


@pytest.mark.parametrize(
    ("head", "mime_type"),
    [
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBP", "image/webp"),
        (b"\0\0\0\x20ftypisom", "video/mp4"),
        (b"\0\0\0\x14ftypqt  ", "video/quicktime"),
        (b"\x1a\x45\xdf\xa3", "video/webm"),
    ],
)
def test_a_file_of_this_machine_becomes_an_artifact(uploading, tmp_path, decoder, head, mime_type):
    file = tmp_path / "a.dat"
    file.write_bytes(head + bytes(100_000))
    shown = uploading(file)
    assert (shown["isError"], decoder) == (False, [mime_type])
    artifact = shown["structuredContent"]["data"]
    assert (artifact["mimeType"], artifact["sizeBytes"]) == (mime_type, file.stat().st_size)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": "/none.png"}, "cannot be read: /none.png: No such file or directory"),
        ({"path": "none.png"}, f"cannot be read: {Path('none.png').absolute()}: No such file or directory"),
        ({"path": "/dev/zero"}, "must be a JPEG, PNG, GIF, WebP, MP4, QuickTime or WebM file"),
        ({"path": "/"}, "cannot be read: /: Is a directory"),
        ({"path": "/etc/hostname"}, "must be a JPEG, PNG, GIF, WebP, MP4, QuickTime or WebM file"),
        ({"path": "\0"}, "cannot be read: this is not a path"),
        ({"path": 7}, "must be a string"),
        ({"path": "/a.png", "url": "https://a.example/b.png"}, "must be the only argument"),
    ],
)
def test_a_path_that_is_no_media_file_is_refused_without_a_call(arguments, message):
    refused = upload(pytest.fail, **arguments)
    assert refused["isError"] is True
    assert refused["structuredContent"]["errors"] == [{"path": ["path"], "message": message}]


def test_a_refusal_of_the_appliance_is_the_result(uploading, tmp_path, decoder):
    file = tmp_path / "a.png"
    file.write_bytes(b"\x89PNG\r\n\x1a\ndamaged")
    refused = uploading(file)
    assert (refused["isError"], refused["structuredContent"]["code"]) == (True, "invalidRequest")
    assert "The file is damaged." in refused["structuredContent"]["detail"]
