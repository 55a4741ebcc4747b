"""What a network answers: a reply, and the refusal that a handler raises to reply at once."""

import json
from dataclasses import dataclass, field
from typing import Any

Headers = list[tuple[str, str]]


@dataclass(slots=True)
class Reply:
    status: int
    body: bytes = b""
    content_type: str = ""
    headers: Headers = field(default_factory=list)


class Refusal(Exception):
    """Raised by a handler to reply at once."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


def json_reply(status: int, data: Any, headers: Headers | None = None) -> Reply:
    body = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
    return Reply(status, body, "application/json; charset=utf-8", headers or [])


def html_reply(status: int, page: str) -> Reply:
    return Reply(status, page.encode(), "text/html; charset=utf-8", [("cache-control", "no-store")])


def redirect(url: str) -> Reply:
    return Reply(302, headers=[("location", url), ("cache-control", "no-store")])
