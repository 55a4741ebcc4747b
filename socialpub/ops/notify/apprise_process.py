"""Sends one message through Apprise, or checks a URL: `python -m socialpub.ops.notify.apprise_process`.

Each request runs in a process of its own, because Apprise takes 45 MB and some of its services hang. The request is
JSON on standard input, since every user can read arguments. The response is the reason of a failure and quotes nothing.
"""

import json
import logging
import os
import signal
import ssl
import subprocess
import sys
from importlib.util import find_spec

from socialpub.ops.notify import channels

SECONDS = 45
NO_REASON = "the service refused the message without a reason"
NEEDS_EXTRA = "needs the package Apprise: install it with `pip install 'socialpub[notify]'`"

_COMMAND = (sys.executable, "-I", "-m", "socialpub.ops.notify.apprise_process")
_PASSED_ON = (
    *("path", "lang", "tz", "ssl_cert_file", "ssl_cert_dir", "requests_ca_bundle"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
)
"""The variables for the child. Others may contain secrets."""


def ask(url: str, title: str = "", body: str = "") -> str | None:
    """Send a message, or without a title, check the URL. Return the reason for a failure as a clause. Blocks."""
    if find_spec("apprise") is None:
        return NEEDS_EXTRA
    request = json.dumps([url, title, body]).encode()
    environment = {name: value for name, value in os.environ.items() if name.lower() in _PASSED_ON}
    try:
        child = subprocess.run(  # noqa: S603  our own
            _COMMAND, input=request, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/", env=environment,
            start_new_session=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "the service does not respond in time"
    return child.stdout.decode() or None if child.returncode == 0 else NO_REASON


class _Failure(logging.Handler):
    """Keeps why a service failed: the service returns only whether it failed, and logs the reason."""

    reason = NO_REASON

    def emit(self, record: logging.LogRecord) -> None:
        error, status = sys.exc_info()[1], record.getMessage().rpartition("error=")[2][:3]
        if error is not None:
            self.reason = channels.describe_error(error)
        elif status.isdecimal():
            self.reason = channels.describe_status(int(status))


def main() -> None:
    signal.alarm(SECONDS)  # if the process that waits has died
    url, title, body = json.loads(sys.stdin.read())
    failure = _Failure()
    logging.getLogger().handlers = [logging.NullHandler()]
    log = logging.getLogger("apprise")
    log.handlers, log.propagate = [failure], False
    log.setLevel(logging.DEBUG)
    # Apprise's HTTP client has its own list of authorities. Trust those of this machine, like the calls to networks.
    paths = ssl.get_default_verify_paths()
    if trusted := os.environ.get("SSL_CERT_FILE") or paths.cafile or paths.capath:
        os.environ.setdefault("REQUESTS_CA_BUNDLE", trusted)
    import apprise

    apprise.URLBase.socket_connect_timeout, apprise.URLBase.socket_read_timeout = 10.0, 15.0
    # Apprise must not store files or create keys.
    asset = apprise.AppriseAsset(
        app_id="socialpub", app_desc="", app_url="", storage_mode="memory", pgp_autogen=False, pem_autogen=False
    )
    service = apprise.Apprise.instantiate(url, asset=asset)
    if service is None:
        known = url.partition("://")[0].lower() in apprise.manager_plugins.NotificationManager()
        sys.stdout.write("is not complete" if known else "is not the address of a service that Apprise supports")
    elif title:
        plain = apprise.NotifyFormat.TEXT
        if not apprise.Apprise(service, asset=asset).notify(title=title, body=body, body_format=plain):
            sys.stdout.write(failure.reason)
    sys.stdout.flush()
    os._exit(0)  # the threads of a service may never end


if __name__ == "__main__":
    main()
