"""`socialpub mcp`: MCP over stdin and stdout, for agents that start a program (contract 10.4.3).

Every line is one message. The command sends each message to the appliance, and writes the response as one line. It
remembers only which requests still need a response.
"""

import base64
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import IO, TYPE_CHECKING, Any

import click
import orjson

from socialpub.cli.client import upload
from socialpub.cli.client.connection import UNREACHABLE_HINT, open_client
from socialpub.cli.client.upload import find_arguments
from socialpub.web.mcp import messages
from socialpub.web.mcp.messages import failure

if TYPE_CHECKING:
    import httpx2

MAX_CALLS = 32
"""Simultaneous calls. Further lines wait, so that a client cannot start any number of threads."""

Message = dict[str, Any]


@click.command()
def mcp() -> None:
    """Serve the tools for agents over stdin and stdout. An agent starts this command.

    The URL and the key come from SOCIALPUB_URL and SOCIALPUB_KEY, or from ~/.config/socialpub/client.toml.
    """
    with open_client() as (client, url):
        Relay(client, url, sys.stdout.buffer).serve(sys.stdin.buffer)


class Relay:
    """Passes messages to the appliance at `url`, and writes each response as soon as it arrives."""

    def __init__(self, client: "httpx2.Client", url: str, output: IO[bytes]) -> None:
        self._client = client
        self._url = url
        self._output = output
        self._lock = threading.Lock()
        self._open: set[str] = set()
        """The ids of the requests that need a response, as JSON: 1 and "1" are two ids."""

    def serve(self, lines: Iterable[bytes]) -> None:
        """Handle the lines until the end of the input. Return when the last response is written."""
        with ThreadPoolExecutor(MAX_CALLS) as pool:
            for line in lines:
                if not line.strip():
                    continue
                try:
                    message = orjson.loads(line)
                except orjson.JSONDecodeError:
                    self._write(failure(None, messages.PARSE_ERROR, "The line is not valid JSON."))
                    continue
                if not isinstance(message, dict):
                    text = "A line must contain one JSON object. Batches are not supported."
                    self._write(failure(None, messages.INVALID_REQUEST, text))
                    continue
                if "id" in message:
                    with self._lock:
                        self._open.add(_id_of(message))
                elif message.get("method") == "notifications/cancelled":
                    self._cancel(message)
                pool.submit(self._handle, message, line)

    def _cancel(self, message: Message) -> None:
        """Leave out the response. The appliance finishes the call: a post cannot be called back."""
        params = message.get("params")
        if isinstance(params, dict):
            with self._lock:
                self._open.discard(_id_of({"id": params.get("requestId")}))

    def _handle(self, message: Message, line: bytes) -> None:
        try:
            response = self._call(message, line)
        except Exception as error:
            response = failure(message.get("id"), messages.INTERNAL_ERROR, self._explain(error))
        if response is None or "id" not in message:  # a notification has no response, also if it failed
            return
        with self._lock:
            is_open = _id_of(message) in self._open
            self._open.discard(_id_of(message))
        if is_open:
            self._write(response)

    def _write(self, message: Message) -> None:
        with self._lock:
            try:
                self._output.write(orjson.dumps(message) + b"\n")
                self._output.flush()
            except BrokenPipeError:
                pass  # the agent ended, and reads no further response

    # --- calls -------------------------------------------------------------------------------------------------------

    def _call(self, message: Message, line: bytes) -> Message | None:
        if (arguments := find_arguments(message)) is not None:
            result = upload.upload_file(self._client, self._url, arguments)
            if messages.requested_revision(message) is not None:
                result["resultType"] = "complete"
            return messages.response(message.get("id"), result)
        response = self._forward(message, line)
        if message.get("method") == "tools/list" and response is not None:
            upload.describe_path(response)
        return response

    def _forward(self, message: Message, line: bytes) -> Message | None:
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            **_routing_headers(message),
        }
        answer = self._client.post(f"{self._url}/mcp", content=line, headers=headers)
        if "id" not in message:
            return None
        request_id = message.get("id")
        try:
            content = orjson.loads(answer.content)
        except orjson.JSONDecodeError:
            content = None
        if isinstance(content, dict) and content.get("jsonrpc") == "2.0":
            # A client finds its request by the id, also if the appliance could not read it.
            return content if content.get("id") is not None else {**content, "id": request_id}
        if isinstance(content, dict) and isinstance(content.get("detail"), str):
            return failure(request_id, messages.INTERNAL_ERROR, content["detail"], content)
        text = f"{self._url} answered {answer.status_code}, and not in the form of a socialpub appliance."
        return failure(
            request_id, messages.INTERNAL_ERROR, f"{text} Check the URL, and the proxy before the appliance."
        )

    def _explain(self, error: Exception) -> str:
        import httpx2

        from socialpub.providers.failures import NOTHING_LEFT, describe_failure

        if not isinstance(error, httpx2.HTTPError | httpx2.StreamError | httpx2.InvalidURL):
            return f"The call failed: {type(error).__name__}."
        text = f"{self._url} did not answer: {describe_failure(error)}."
        if isinstance(error, NOTHING_LEFT):
            return f"{text} Nothing was sent. {UNREACHABLE_HINT}"
        return f"{text} The call may have had its effect. Repeat it only with the same idempotencyKey."


def _id_of(message: Message) -> str:
    return orjson.dumps(message.get("id")).decode()


def _routing_headers(message: Message) -> dict[str, str]:
    """Return the headers of a stateless revision, which has no headers over stdin."""
    revision = messages.requested_revision(message)
    if revision is None:
        return {}
    headers = {
        messages.REVISION_HEADER: revision,
        messages.METHOD_HEADER: message.get("method"),
        messages.NAME_HEADER: messages.repeated_name(message),
    }
    return {name: _encoded(value) for name, value in headers.items() if isinstance(value, str)}


def _encoded(value: str) -> str:
    """Return a value for a header: in Base64 if it is not plain ASCII."""
    is_plain = value.isascii() and value.isprintable() and value == value.strip() and not value.startswith("=?base64?")
    return value if is_plain else f"=?base64?{base64.b64encode(value.encode()).decode()}?="
