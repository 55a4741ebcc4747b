"""Sends one message through Apprise, or checks addresses: `python -m socialpub.ops.notify.apprise_process`.

Each request runs in a process of its own, because Apprise takes memory and some of its services hang. The request is
one line of JSON on standard input, since every user can read arguments. The response is one line that gives the cause
of a failure in one word and quotes nothing. The process ends when standard input ends.
"""

import json
import logging
import os
import smtplib
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from typing import Any

CONNECT_SECONDS = 10.0
READ_SECONDS = 15.0
"""The read timeout. Apprise's default of 4 seconds is too short for a mail server that looks up its callers."""


class _SendErrors(logging.Handler):
    """Collects the errors that services log, because a service returns only whether it failed."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.errors: list[BaseException] = []
        self.statuses: list[int] = []

    def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002  its text may quote secrets
        error = sys.exc_info()[1]
        if error is not None:
            self.errors.append(error)

    def cause(self) -> dict[str, Any]:
        """Return the cause in one word, and a status if there is one."""
        found = [cause for error in self.errors for cause in _causes(error)]
        for word, kinds in _WORDS.items():
            if any(_is(error, kind) for error in found for kind in kinds):
                return {"why": word}
        for error in found:
            if isinstance(error, smtplib.SMTPResponseException):
                return {"why": "status", "status": error.smtp_code}
        if self.statuses:
            return {"why": "status", "status": self.statuses[-1]}
        return {"why": "unknown"}


_WORDS: dict[str, tuple[type[BaseException] | str, ...]] = {
    "login": (smtplib.SMTPAuthenticationError,),
    "receiver": (smtplib.SMTPRecipientsRefused,),
    "sender": (smtplib.SMTPSenderRefused,),
    "certificate": (ssl.SSLCertVerificationError,),
    "tls": (ssl.SSLError,),
    "name": (socket.gaierror, "NameResolutionError", "LocationParseError"),
    "refused": (ConnectionRefusedError,),
    "timeout": (TimeoutError, "ConnectTimeoutError", "ReadTimeoutError"),
    "cut": (smtplib.SMTPServerDisconnected, ConnectionResetError, "ProtocolError"),
}
"""The error types of each cause. The first match decides. Errors of Apprise's own libraries are given by name."""


def _is(error: BaseException, kind: type[BaseException] | str) -> bool:
    return type(error).__name__ == kind if isinstance(kind, str) else isinstance(error, kind)


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[object] = [error]
    while waiting:
        one = waiting.pop()
        if not isinstance(one, BaseException) or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [one.__cause__, one.__context__, getattr(one, "reason", None), *one.args]


def main() -> None:
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_standard_input, daemon=True).start()
    answer = _check(request["urls"]) if "urls" in request else _send(request)
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    os._exit(0)  # the threads of a service may never end


def _end_with_standard_input() -> None:
    while sys.stdin.readline():
        pass
    os._exit(1)


def _check(urls: list[str]) -> dict[str, Any]:
    """Return the fault of each address, or None."""
    _collect_errors()
    import apprise

    found: list[str | None] = []
    for url in urls:
        if _service(url) is not None:
            found.append(None)
        else:
            known = url.partition("://")[0].lower() in apprise.manager_plugins.NotificationManager()
            found.append("incomplete" if known else "unknown")
    return {"wrong": found}


_CERTIFICATES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora
    "/etc/ssl/ca-bundle.pem",  # openSUSE
)


def _trust_system_certificates() -> None:
    """Trust what the networks and webhooks trust: requests has its own list of authorities."""
    variables = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    places = (*variables, ssl.get_default_verify_paths().openssl_cafile, *_CERTIFICATES)
    found = next((place for place in places if place and os.path.exists(place)), None)  # noqa: PTH110
    if found is not None:
        os.environ.setdefault("REQUESTS_CA_BUNDLE", found)


def _send(request: dict[str, str]) -> dict[str, Any]:
    met = _collect_errors()
    _trust_system_certificates()
    import apprise
    import requests

    apprise.URLBase.socket_connect_timeout = CONNECT_SECONDS
    apprise.URLBase.socket_read_timeout = READ_SECONDS
    send = requests.Session.send

    def send_and_note_status(*arguments: Any, **more: Any) -> Any:
        answer = send(*arguments, **more)
        if answer.status_code >= 400:
            met.statuses.append(answer.status_code)
        return answer

    requests.Session.send = send_and_note_status
    service = _service(request["url"])
    if service is None:
        return {"why": "address"}
    # Plain text, unless the address asks for another format.
    sent = apprise.Apprise(service, asset=service.asset).notify(
        title=request["title"], body=request["body"], body_format=apprise.NotifyFormat.TEXT
    )
    return {"sent": True} if sent else met.cause()


def _service(url: str) -> Any:
    import apprise

    # Apprise must not store files or create keys.
    asset = apprise.AppriseAsset(
        app_id="socialpub", app_desc="", app_url="", storage_mode="memory", pgp_autogen=False, pem_autogen=False
    )
    return apprise.Apprise.instantiate(url, asset=asset)


def _collect_errors() -> _SendErrors:
    """Silence all logs, and collect the errors of Apprise."""
    met = _SendErrors()
    logging.getLogger().handlers = [logging.NullHandler()]
    apprise_log = logging.getLogger("apprise")
    apprise_log.handlers, apprise_log.propagate = [met], False
    apprise_log.setLevel(logging.DEBUG)
    return met


if __name__ == "__main__":
    main()
