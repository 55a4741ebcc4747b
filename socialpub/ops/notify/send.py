"""Sending messages to the notification services, through Apprise in a child process.

The services are those of `[notify] urls` and those that the owner added in the dashboard. An address contains a
password, so messages and pages show only its scheme and host. Each service is served separately. A failing service is
retried less and less often, and then receives all missed messages as one message. A message is sent twice only if this
process is killed between sending and recording it.

The child process has a timeout. It also ends a few seconds after this process stops.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import SecretStr

from socialpub.accounts import hints
from socialpub.accounts.hints import Surface
from socialpub.core import commands, logging
from socialpub.core.clock import after, new_id
from socialpub.core.errors import Conflict, InvalidRequest, NotFound, OperatorError
from socialpub.core.secrets.crypto import Secrets
from socialpub.core.settings.loader import Settings
from socialpub.core.settings.schema import check_form, display_url
from socialpub.db.connection import Database
from socialpub.db.models import NotificationServiceRow, NotifyAddressRow
from socialpub.db.tables import audit_log, notifications
from socialpub.db.tables.audit_log import AuditAction
from socialpub.db.tables.notifications import ADDRESS_PLACE
from socialpub.ops.doctor import machine
from socialpub.ops.health import Finding, note, ok, problem
from socialpub.ops.notify import messages
from socialpub.runtime import Runtime

SECONDS = 45.0
"""The timeout of one message to one service, including the start of Apprise."""
POLL_SECONDS = 0.05
STOP_SECONDS = 3.0
"""The time that a stop waits for a response. Without a response, the outcome of the message is unknown."""
AT_ONCE = 4
"""The number of messages sent at the same time, so that a hanging service does not delay the others. Each child process
takes 45 MB."""
BACK_OFF_SECONDS = (60.0, 300.0, 900.0, 3600.0)
MAX_ADDED = 20
MAX_URL_CHARACTERS = 2000
URL_FORMATS = "For the address of each service, see https://appriseit.com/services/"

_COMMAND = (sys.executable, "-I", "-m", "socialpub.ops.notify.apprise_process")
_PASSED_ON = (
    *("PATH", "LANG", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
    *(name for proxy in ("http_proxy", "https_proxy", "all_proxy", "no_proxy") for name in (proxy, proxy.upper())),
)
"""The variables for the child process. Others may contain secrets."""

_REASONS = {
    "login": "the service refuses the user name or the password",
    "receiver": "the service refuses the recipient",
    "sender": "the service refuses the sender",
    "certificate": "the certificate is invalid for the host name, or not signed by a trusted authority",
    "tls": "no encrypted connection can be made",
    "name": "the host is not found",
    "refused": "nothing listens at the address",
    "timeout": "the service does not respond in time",
    "cut": "the service closed the connection before it responded",
    "address": "Apprise does not accept the address",
    "unknown": "the service refused the message without a reason",
}
_STATUSES = {
    401: "the service refuses the user name, the password or the token (401)",
    403: "the user name, the password or the token does not have permission (403)",
    404: "the service does not know the topic, the chat or the token (404)",
    413: "the message is too large for the service (413)",
    429: "the service does not currently accept messages (429)",
}
_FAULTS = {"unknown": "is not the address of a service that Apprise supports", "incomplete": "is not complete"}
_UNCHECKED = "cannot be checked now, because Apprise did not respond. Try again"

log = logging.get_logger("socialpub.notify")


class SendingStopped(Exception):
    """This process is stopping. The message may have been sent."""


def send_message(
    url: SecretStr, title: str, body: str, *, stopping: threading.Event | None = None, seconds: float = SECONDS
) -> str | None:
    """Send one message. Return None, or the reason for the failure as a clause. Blocks."""
    request = {"url": url.get_secret_value(), "title": title, "body": body}
    answer = _ask_process(request, stopping or threading.Event(), seconds)
    if answer is None:
        return _REASONS["timeout"]
    if answer.get("sent"):
        return None
    status = answer.get("status")
    if status is not None:
        return _STATUSES.get(status, f"the service responded with status {status}")
    return _REASONS.get(str(answer.get("why")), _REASONS["unknown"])


def check_addresses(urls: tuple[SecretStr, ...]) -> list[str | None] | None:
    """Return the fault of each address, or None if Apprise did not respond."""
    if not urls:
        return []
    answer = _ask_process({"urls": [url.get_secret_value() for url in urls]}, threading.Event(), SECONDS)
    return None if answer is None or "wrong" not in answer else [_FAULTS.get(one) for one in answer["wrong"]]


def _wait_at_stop(child: "subprocess.Popen[bytes]") -> None:
    try:
        child.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        raise SendingStopped from None


def _ask_process(request: dict[str, Any], stopping: threading.Event, seconds: float) -> dict[str, Any] | None:
    """Return the child's response, or None after the timeout."""
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
            give_up_at = time.monotonic() + seconds
            while child.poll() is None and time.monotonic() < give_up_at:
                if stopping.wait(POLL_SECONDS):
                    _wait_at_stop(child)
            answered = child.stdout.read() if child.poll() is not None else b""
        except BrokenPipeError:
            answered = b""
        finally:
            child.kill()
    try:
        return dict(json.loads(answered)) if answered else ({"why": "unknown"} if child.returncode >= 0 else None)
    except ValueError:
        return {"why": "unknown"}


# --- services --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Service:
    id: str
    name: str
    """Scheme and host, `ntfy://ntfy.example.com`. Further services with the same name have a number."""
    url: SecretStr = field(repr=False)
    """Empty for an added address that this `secret.key` cannot decrypt."""
    is_added: bool = False
    """Whether the owner added the address in the dashboard."""


def list_services(rt: Runtime, store: Database | None = None) -> list[Service]:
    """Return all services, with those of the configuration first. The names are unique."""
    found = [*list_configured(rt.settings, rt.secrets), *_added(rt, store or rt.reader)]
    seen: Counter[str] = Counter()
    named = []
    for service in found:
        seen[service.name] += 1
        number = seen[service.name]
        named.append(service if number == 1 else replace(service, name=f"{service.name} ({number})"))
    return named


def list_configured(settings: Settings, secrets: Secrets) -> list[Service]:
    return [
        Service(secrets.sign("notify", url.get_secret_value()), display_url(url.get_secret_value()), url)
        for url in settings.notify.urls
    ]


def parse_address(text: str) -> tuple[SecretStr, str]:
    """Return the address in `text` and its name. Apprise checks the address in a child process, so this blocks.

    Raises InvalidRequest at `url`.
    """
    url = text.strip()
    fault = check_form(url)
    if not fault and len(url) > MAX_URL_CHARACTERS:
        fault = f"may have at most {MAX_URL_CHARACTERS} characters"
    if fault:
        raise InvalidRequest.at("url", message=fault)
    found = check_addresses((SecretStr(url),))
    fault = _UNCHECKED if found is None else found[0]
    if fault:
        raise InvalidRequest.at("url", message=f"{fault}. See https://appriseit.com/services/ for the format")
    return SecretStr(url), display_url(url)


def add_service(rt: Runtime, tx: Database, url: SecretStr, name: str) -> str:
    """Store an address that `parse_address` accepted. Return its id. Raises Conflict if the address cannot be added.

    The service receives later alerts only. Running processes use the address within seconds.
    """
    known = list_services(rt, tx)
    if any(one.url == url for one in known):
        raise Conflict("This address is already in the list.")
    if sum(one.is_added for one in known) >= MAX_ADDED:
        raise Conflict(
            f"There are already {MAX_ADDED} notification addresses. Remove an address, then add the new address."
        )
    address_id = new_id(tx.now)
    table, column = ADDRESS_PLACE
    sealed = rt.secrets.seal(url.get_secret_value(), table, address_id, column)
    tx.insert(NotifyAddressRow, {"id": address_id, "name": name, "url": sealed, "added_at": tx.stamp})
    notifications.set_services(tx, {one.id: one.name for one in list_services(rt, tx)})
    messages.start_reporting_failures(rt, tx)
    audit_log.record(tx, AuditAction.NOTIFY_ADDED, address_id, name)
    return address_id


def remove_service(rt: Runtime, tx: Database, address_id: str) -> str:
    """Remove an address that the owner added. Return its name. Raises NotFound."""
    name = notifications.delete_address(tx, address_id)
    if name is None:
        raise NotFound("This address is no longer in the list.")
    audit_log.record(tx, AuditAction.NOTIFY_REMOVED, address_id, name)
    return name


def _added(rt: Runtime, store: Database) -> Iterator[Service]:
    table, column = ADDRESS_PLACE
    for row in notifications.addresses(store):
        try:
            url = rt.secrets.open(bytes(row.url), table, row.id, column)
        except OperatorError:
            url = ""  # sending fails, and the System page and `doctor` report the failure
        yield Service(row.id, row.name, SecretStr(url), is_added=True)


# --- waiting messages ------------------------------------------------------------------------------------------------


def send_waiting(rt: Runtime, accepted: dict[str, tuple[int, int]]) -> None:
    """Send each service its waiting messages. Blocks for less than a minute, or longer if many services hang.

    `accepted` keeps the last message that each service accepted, and the number of messages, until a write has recorded
    both. Earlier entries are recorded first, so a failed write does not repeat a message. Raises `SendingStopped` if
    this process stops.
    """
    for service_id in list(accepted):
        _record_accepted(rt, accepted, service_id)
    states = {state.id: state for state in notifications.services(rt.reader)}
    ready = [one for one in list_services(rt) if _is_ready(rt, states.get(one.id))]
    # Services that failed come last.
    ready.sort(key=lambda one: states[one.id].tries)
    if ready:
        with ThreadPoolExecutor(min(len(ready), AT_ONCE), thread_name_prefix="notify") as pool:
            list(pool.map(lambda service: _send(rt, service, states[service.id], accepted), ready))


def send_test(rt: Runtime) -> list[tuple[Service, str | None]]:
    """Send a test message to every service. Return the reason for each failure, or None. Blocks."""
    title, body = messages.test_message(messages.load_sender(rt), rt.now())
    found = []
    for service in list_services(rt):
        failure = send_message(service.url, title, body, stopping=rt.stopping)
        rt.db.write(notifications.note_tested, service.id, service.name, failure)
        found.append((service, failure))
    return found


def _is_ready(rt: Runtime, state: NotificationServiceRow | None) -> bool:
    return state is not None and state.waiting > 0 and (state.next_at is None or state.next_at <= rt.stamp())


def _send(rt: Runtime, service: Service, state: NotificationServiceRow, accepted: dict[str, tuple[int, int]]) -> None:
    waiting = notifications.waiting(rt.reader, state.sent_through)
    failure = send_message(service.url, *messages.join_waiting(waiting), stopping=rt.stopping)
    if failure is None:
        accepted[service.id] = waiting[-1].id, len(waiting)
        _record_accepted(rt, accepted, service.id)
        log.info("notification sent", service=service.name, messages=len(waiting))
        return
    pause = BACK_OFF_SECONDS[min(state.tries, len(BACK_OFF_SECONDS) - 1)]
    rt.db.write(notifications.note_failed, service.id, failure, after(rt.stamp(), pause))
    log.warning("notification failed", service=service.name, reason=failure, waiting=len(waiting))


def _record_accepted(rt: Runtime, accepted: dict[str, tuple[int, int]], service_id: str) -> None:
    rt.db.write(notifications.note_sent, service_id, *accepted[service_id])
    del accepted[service_id]


# --- health ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ServiceHealth:
    service: Service
    state: NotificationServiceRow | None
    """None before its first use."""

    @property
    def name(self) -> str:
        return self.service.name


def read_service_health(rt: Runtime, reader: Database) -> list[ServiceHealth]:
    states = {state.id: state for state in notifications.services(reader)}
    return [ServiceHealth(one, states.get(one.id)) for one in list_services(rt, reader)]


def find_wrong_addresses(settings: Settings) -> list[str]:
    """Return a sentence for each address of `[notify] urls` that Apprise cannot use, without its secrets."""
    wrong = check_addresses(settings.notify.urls) or [None] * len(settings.notify.urls)
    return [
        f"notify.urls: number {number}, {display_url(url.get_secret_value())}, {why}."
        for number, (url, why) in enumerate(zip(settings.notify.urls, wrong, strict=True), 1)
        if why is not None
    ]


def refuse_wrong_addresses(settings: Settings) -> None:
    wrong = find_wrong_addresses(settings)
    if wrong:
        raise OperatorError(" ".join(wrong), URL_FORMATS)


def describe_outdated_processes(rt: Runtime, surface: Surface) -> str | None:
    """Return the sentence about processes that run with other addresses, or None."""
    changed = machine.find_changed_keys(rt)
    roles = [role for role, keys in changed.items() if "notify.urls" in keys]
    if not roles:
        return None
    names = " and the ".join("web server" if role == "web" else role for role in roles)
    use = "use" if len(roles) > 1 else "uses"
    restart = "Restart socialpub" if surface is Surface.DASHBOARD else commands.restart()
    return (
        f"The {names} still {use} earlier addresses of [notify] urls, and nothing is sent to new addresses. {restart}."
    )


def check_services(rt: Runtime, surface: Surface) -> Iterator[Finding]:
    found = read_service_health(rt, rt.reader)
    if not found:
        yield note("notify", "No notification address is set.", hints.add_address(surface))
        return
    for sentence in find_wrong_addresses(rt.settings):
        yield problem("notify", sentence, URL_FORMATS)
    for one in found:
        yield _service_finding(one, surface)


def _service_finding(service: ServiceHealth, surface: Surface) -> Finding:
    state = service.state
    if state is not None and state.failing_since is not None:
        fix = f"Check its address {_place(service)}."
        test = hints.test_message(surface)
        if not state.waiting:
            return problem(
                "notify", f"{service.name} did not accept the last test: {state.failure}.", f"{fix} Then {test}."
            )
        waiting = "1 message is waiting" if state.waiting == 1 else f"{state.waiting:,} messages are waiting"
        return problem(
            "notify",
            f"{service.name} has not accepted messages since {state.failing_since}: {state.failure}. {waiting}. The "
            f"next attempt is {f'at {state.next_at}' if state.next_at else 'due now'}.",
            f"{fix} To retry at once, {test}.",
        )
    if state is None or state.sent_at is None:
        message = f"{service.name} has not received a message yet."
        return note("notify", message, f"To test the service, {hints.test_message(surface)}.")
    return ok("notify", f"{service.name} accepted its last message at {state.sent_at}.")


def _place(service: ServiceHealth) -> str:
    return "under System in the dashboard" if service.service.is_added else "in [notify] urls"
