"""Has a child process (`apprise_process.py`) send a message or look at addresses, and says in words what failed.

The child is given a time, and is killed when that is over or when this process stops: whatever a service does, nobody
waits for it. Apprise is imported nowhere else.
"""

import json
import os
import subprocess
import sys
import threading
import time
from typing import Any

from pydantic import SecretStr

SECONDS = 45.0
"""One message through one service, Apprise's own start included."""
LOOK_SECONDS = 0.05

_COMMAND = (sys.executable, "-I", "-m", "socialpub.ops.notify.apprise_process")
_PASSED_ON = (
    *("PATH", "LANG", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
    *(name for proxy in ("http_proxy", "https_proxy", "all_proxy", "no_proxy") for name in (proxy, proxy.upper())),
)
"""Of our environment, which may hold secrets besides: how the network and the time are here."""

_REASONS = {
    "login": "it does not accept the user name or the password",
    "receiver": "it does not accept the receiver",
    "sender": "it does not accept the sender",
    "certificate": "its certificate is not valid for its name, or nobody known has signed it",
    "tls": "no encrypted connection can be made",
    "name": "its host is not found",
    "refused": "nothing listens at its address",
    "timeout": "it does not answer in time",
    "cut": "it ended the connection before it answered",
    "address": "Apprise does not accept the address",
    "unknown": "it did not accept the message and gave no reason",
}
_STATUSES = {
    401: "it does not accept the user name, the password or the token (401)",
    403: "it does not allow this with the user name, the password or the token given (403)",
    404: "it does not know the topic, the chat or the token (404)",
    413: "the message is too large for it (413)",
    429: "it takes no more messages for now (429)",
}
_FAULTS = {"unknown": "is of no service that Apprise knows", "incomplete": "is not complete"}


class SendingStopped(Exception):
    """This process is stopping: whether the message went out is not known."""


def send(
    url: SecretStr, title: str, body: str, *, stopping: threading.Event | None = None, seconds: float = SECONDS
) -> str | None:
    """Send one message; None when the service took it, else why not, as the end of a sentence. Blocks."""
    request = {"url": url.get_secret_value(), "title": title, "body": body}
    answer = _ask(request, stopping or threading.Event(), seconds)
    if answer is None:
        return _REASONS["timeout"]
    if answer.get("sent"):
        return None
    status = answer.get("status")
    if status is not None:
        return _STATUSES.get(status, f"it answered with status {status}")
    return _REASONS.get(str(answer.get("why")), _REASONS["unknown"])


def check(urls: tuple[SecretStr, ...], *, seconds: float = SECONDS) -> list[str | None]:
    """Of each address None, or what is wrong with it, as the end of a sentence. What cannot be checked passes."""
    answer = _ask({"urls": [url.get_secret_value() for url in urls]}, threading.Event(), seconds) if urls else None
    found = (answer or {}).get("wrong") or [None] * len(urls)
    return [_FAULTS.get(one) for one in found]


def examine(url: SecretStr, *, seconds: float = SECONDS) -> str | None:
    """Return what is wrong with one address, as `check` does. An address that cannot be checked is refused as well."""
    answer = _ask({"urls": [url.get_secret_value()]}, threading.Event(), seconds)
    if answer is None or "wrong" not in answer:
        return "cannot be checked now, because Apprise did not answer; try again"
    return _FAULTS.get(answer["wrong"][0])


def _ask(request: dict[str, Any], stopping: threading.Event, seconds: float) -> dict[str, Any] | None:
    """The child's answer; None when it was given up."""
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    with subprocess.Popen(  # noqa: S603  our own
        _COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=environment,
        start_new_session=True,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.write(json.dumps(request).encode() + b"\n")
            child.stdin.flush()
            until = time.monotonic() + seconds
            while child.poll() is None and time.monotonic() < until:
                if stopping.wait(LOOK_SECONDS):
                    raise SendingStopped
            answered = child.stdout.read() if child.poll() is not None else b""
        except BrokenPipeError:
            answered = b""
        finally:
            child.kill()
    try:
        return dict(json.loads(answered)) if answered else ({"why": "unknown"} if child.returncode >= 0 else None)
    except ValueError:
        return {"why": "unknown"}
