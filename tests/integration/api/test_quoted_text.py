"""Responses and log lines repeat at most 300 characters of one text of the caller."""

import io
import json
import logging as std_logging
from collections.abc import Iterator
from typing import Any

import pytest

from socialpub.core import logging
from socialpub.core.settings.schema import LoggingSection
from tests.integration.uploads.caller import Reply

LONGEST = 300
MARK = "q"
"""A letter that no message of the appliance repeats."""


@pytest.fixture
def appliance_options(sandbox_options: dict[str, Any]) -> dict[str, Any]:
    """The real networks, which check options."""
    return sandbox_options


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """All log lines as JSON."""
    loggers = [std_logging.getLogger(name) for name in ("", logging.LOGGER)]
    before = [(one, one.level, one.handlers[:]) for one in loggers]
    stream = io.StringIO()
    logging.configure(LoggingSection(level="debug", format="json"), stream)
    yield stream
    for one, level, handlers in before:
        one.setLevel(level)
        one.handlers[:] = handlers


def longest_run(text: str) -> int:
    """Return the maximum number of MARKs in a row."""
    return max(len(run) for run in "".join(one if one == MARK else " " for one in text).split(" "))


def draft(profile: str, **more: Any) -> dict[str, Any]:
    return {"post": {"body": "x"}, "profiles": [profile], **more}


def test_an_error_names_the_first_300_characters_of_an_unknown_field(client, profile):
    name = MARK * 900_000
    reply = client.send("POST", "/posts/validate", draft(profile, **{name: 1}))
    assert (reply.status, reply.paths()) == (400, [[MARK * (LONGEST - 1) + "…"]])
    assert len(reply.body) < 1500
    inside = draft(profile, media=[{name: 1}])
    (path, _) = client.send("POST", "/posts/validate", inside).paths()
    assert path == ["media", 0, MARK * (LONGEST - 1) + "…"]


LONG = MARK * 15_000
REQUESTS: dict[str, tuple[str, str, dict[str, str]]] = {
    "query parameter": ("GET", f"/posts?{LONG}=1", {}),
    "query parameters": ("GET", "/posts?" + "&".join(f"{MARK * 250}{number}=1" for number in range(100)), {}),
    "value of a parameter": ("GET", f"/posts?status={LONG}", {}),
    "list of ids": ("GET", f"/posts?profileIds={LONG}", {}),
    "number": ("GET", f"/posts?page={LONG}", {}),
    "date-time": ("GET", f"/posts?scheduledAfter={LONG}", {}),
    "path": ("GET", f"/{LONG}", {}),
    "id": ("GET", f"/posts/{LONG}", {}),
    "storage address": ("GET", f"/storage/media/{LONG}?expires=1&signature={LONG[:1000]}", {}),
    "problem": ("GET", f"/problems/{LONG}", {}),
    "content type": ("POST", "/posts", {"content_type": LONG}),
    "boundary": ("POST", "/posts", {"content_type": f"multipart/form-data; boundary={LONG}"}),
    "Idempotency-Key": ("POST", "/posts", {"idempotency_key": LONG}),
    "request id": ("GET", "/posts", {"x_request_id": LONG}),
    "key": ("GET", "/posts", {"authorization": f"Bearer spk_{LONG}"}),
    "scheme": ("GET", "/posts", {"authorization": LONG}),
    "Accept": ("GET", "/posts?status=x", {"accept": LONG}),
}


@pytest.mark.parametrize("kind", REQUESTS)
@pytest.mark.parametrize("accept", ["application/json", "text/html"])
def test_long_headers_and_urls_are_not_repeated(client, kind, accept, lines):
    method, path, headers = REQUESTS[kind]
    body = {"post": {"body": "x"}} if method == "POST" else None
    reply = client.send(method, path, body, **{"accept": accept, **headers})
    if kind != "request id":
        assert reply.status >= 400
    assert_short(reply)
    assert longest_run(lines.getvalue()) <= LONGEST


def assert_short(reply: Reply) -> None:
    assert longest_run(reply.body.decode()) <= LONGEST
    assert longest_run(str(reply.headers)) <= LONGEST
    assert len(reply.body) < 60_000


def form(*parts: tuple[str, bytes]) -> bytes:
    """Return a form. Each part has the rest of its Content-Disposition and its content."""
    start = b"--b\r\nContent-Disposition: form-data; "
    return b"".join(b"%b%b\r\n\r\n%b\r\n" % (start, head.encode(), text) for head, text in parts) + b"--b--\r\n"


LONG_HEADER = MARK * 4000
PARTS: dict[str, tuple[str, bytes]] = {
    "name of a text": (f'name="{LONG_HEADER}"', b"x"),
    "name of a file": (f'name="{LONG_HEADER}"; filename="a"\r\nContent-Type: image/png', b"x"),
    "file name": (f'name="a"; filename="{LONG_HEADER}"', b"x"),
    "type": (f'name="a"; filename="a"\r\nContent-Type: {LONG_HEADER}', b"x"),
    "disposition": (f"{LONG_HEADER}", b"x"),
}


@pytest.mark.parametrize("kind", PARTS)
def test_long_names_in_forms_are_not_repeated(client, profile, kind):
    payload = json.dumps(draft(profile, media=[{"fileField": "a"}])).encode()
    body = form(('name="payload"', payload), PARTS[kind])
    reply = client.send("POST", "/posts", body, content_type="multipart/form-data; boundary=b")
    assert reply.status == 400
    assert_short(reply)


# --- log lines -------------------------------------------------------------------------------------------------------


def logged(lines: io.StringIO) -> dict[str, Any]:
    line: dict[str, Any] = json.loads(lines.getvalue().splitlines()[-1])
    return line


def test_a_log_line_shows_the_first_300_characters_of_a_path(client, lines):
    client.ask("GET", f"/{LONG}")
    assert logged(lines)["path"] == f"/{MARK * (LONGEST - 2)}…"
    whole = f"/{MARK * (LONGEST - 1)}"
    client.ask("GET", whole)
    assert logged(lines)["path"] == whole


def test_a_shortened_path_is_redacted_and_escaped(client, lines):
    client.ask("GET", f"/{MARK * 285}/spk_abcdefgh_hush{'hush' * 20}")
    assert "hush" not in lines.getvalue()
    client.ask("GET", "/" + "%0A%1B" * 5000)
    assert len(lines.getvalue().splitlines()) == 2
    assert logged(lines)["path"] == "/" + "\n\x1b" * 149 + "…"
