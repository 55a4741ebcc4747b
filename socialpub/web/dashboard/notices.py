"""What an action came to, told on the next page: one sentence that travels in a cookie and is shown once.

It is signed for the browser's session, so that nobody else puts words on the owner's page.
"""

import base64
import hashlib
import hmac
from dataclasses import dataclass
from typing import Literal

import orjson

Kind = Literal["status", "alert"]

LONGEST = 1500
"""Letters; a cookie holds some 4,000 bytes."""


@dataclass(frozen=True, slots=True)
class Notice:
    """`kind` is the role of the element that says it."""

    kind: Kind
    text: str


def pack(notice: Notice, secret: str) -> str:
    """The value of the cookie."""
    text = notice.text if len(notice.text) <= LONGEST else f"{notice.text[: LONGEST - 1]}…"
    content = base64.urlsafe_b64encode(orjson.dumps([notice.kind, text])).rstrip(b"=").decode()
    return f"{content}.{_sign(content, secret)}"


def unpack(value: str, secret: str) -> Notice | None:
    """What `pack` packed for this browser, or None."""
    content, _, signature = value.partition(".")
    if not secret or not hmac.compare_digest(signature.encode(), _sign(content, secret).encode()):
        return None
    kind, text = orjson.loads(base64.urlsafe_b64decode(content + "=="))
    return Notice(kind, text)


def _sign(content: str, secret: str) -> str:
    return hmac.new(secret.encode(), f"notice {content}".encode(), hashlib.sha256).hexdigest()
