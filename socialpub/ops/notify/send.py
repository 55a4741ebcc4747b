"""The services that get notifications: those of `[notify] urls`, and those that the owner added in the dashboard.

An address contains a password, so messages and pages show only its scheme and host. Each service gets the messages one
after the other, and one that fails delays no other. A message is sent twice only if this process is killed between
sending and recording it.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from pydantic import SecretStr

from socialpub.accounts import hints
from socialpub.accounts.hints import Surface
from socialpub.core import commands, logging, units
from socialpub.core.clock import after, new_id
from socialpub.core.errors import Conflict, InvalidRequest, NotFound, OperatorError, SocialpubError
from socialpub.core.secrets.crypto import Secrets
from socialpub.core.settings.loader import Settings
from socialpub.core.settings.schema import check_form, display_url
from socialpub.db.connection import Database
from socialpub.db.models import NotificationServiceRow, NotifyAddressRow
from socialpub.db.tables import audit_log, notifications
from socialpub.db.tables.audit_log import AuditAction
from socialpub.db.tables.notifications import ADDRESS_PLACE
from socialpub.ops import alerts
from socialpub.ops.doctor import machine
from socialpub.ops.health import Finding, note, ok, problem
from socialpub.ops.notify import apprise_process, channels, messages
from socialpub.ops.notify.channels import Incomplete, NeedsApprise
from socialpub.providers.http import Http
from socialpub.runtime import Runtime

ROUND_SECONDS = 60.0
"""More than a message takes, except to a mail server that sends slowly. Its thread goes on without the others."""
RETRY_SECONDS = 300.0
MAX_ADDED = 20
MAX_URL_CHARACTERS = 2000
FORMATS = "https://appriseit.com/services/"
URL_FORMATS = f"For the address of each service, see {FORMATS}"

log = logging.get_logger(__name__)


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
    services = [*list_configured(rt.settings, rt.secrets), *_list_added(rt, store or rt.reader)]
    seen: Counter[str] = Counter()
    for index, service in enumerate(services):
        seen[service.name] += 1
        if seen[service.name] > 1:
            services[index] = replace(service, name=f"{service.name} ({seen[service.name]})")
    return services


def list_configured(settings: Settings, secrets: Secrets) -> list[Service]:
    return [
        Service(secrets.sign("notify", url.get_secret_value()), display_url(url.get_secret_value()), url)
        for url in settings.notify.urls
    ]


def _list_added(rt: Runtime, store: Database) -> Iterator[Service]:
    table, column = ADDRESS_PLACE
    for row in notifications.addresses(store):
        try:
            url = rt.secrets.open(bytes(row.url), table, row.id, column)
        except OperatorError:
            url = ""  # sending fails, and the System page and `doctor` report the failure
        yield Service(row.id, row.name, SecretStr(url), is_added=True)


def parse_address(text: str) -> tuple[SecretStr, str]:
    """Return the address in `text` and its name. Blocks. Raises InvalidRequest at `url`."""
    url = text.strip()
    fault = check_form(url)
    if not fault and len(url) > MAX_URL_CHARACTERS:
        fault = f"may have at most {MAX_URL_CHARACTERS} characters"
    elif not fault and (fault := find_fault(url)):
        fault = f"{fault}. See {FORMATS} for the format"
    if fault:
        raise InvalidRequest.at("url", message=fault)
    return SecretStr(url), display_url(url)


def add_service(rt: Runtime, tx: Database, url: SecretStr, name: str) -> str:
    """Store an address that `parse_address` accepted. Return its id. Raises Conflict if the address cannot be added.

    The service receives later alerts only. Running processes use the address within seconds.
    """
    services = list_services(rt, tx)
    if any(service.url == url for service in services):
        raise Conflict("This address is already in the list.")
    if sum(service.is_added for service in services) >= MAX_ADDED:
        raise Conflict(
            f"There are already {MAX_ADDED} notification addresses. Remove an address, then add the new address."
        )
    address_id = new_id(tx.now)
    table, column = ADDRESS_PLACE
    sealed = rt.secrets.seal(url.get_secret_value(), table, address_id, column)
    tx.insert(NotifyAddressRow, {"id": address_id, "name": name, "url": sealed, "added_at": tx.stamp})
    notifications.set_services(tx, {service.id: service.name for service in list_services(rt, tx)})
    alerts.start_reporting_failures(rt, tx)
    audit_log.record(tx, AuditAction.NOTIFY_ADDED, address_id, name)
    return address_id


def remove_service(rt: Runtime, tx: Database, address_id: str) -> str:
    """Remove an address that the owner added. Return its name. Raises NotFound."""
    name = notifications.delete_address(tx, address_id)
    if name is None:
        raise NotFound("This address is no longer in the list.")
    audit_log.record(tx, AuditAction.NOTIFY_REMOVED, address_id, name)
    return name


# --- sending ---------------------------------------------------------------------------------------------------------


def send_message(http: Http, url: str, title: str, body: str) -> str | None:
    """Send one message. Return None, or the reason for the failure as a clause. Blocks."""
    if not url:
        return "the address cannot be decrypted with this secret.key"
    try:
        return channels.send(http, url, title, body)
    except (Incomplete, NeedsApprise):
        return apprise_process.ask(url, title, body)


def find_fault(url: str) -> str | None:
    """Return why nothing can be sent to this URL, as the end of a sentence, or None. Blocks."""
    try:
        channels.prepare(url, "", "")
    except Incomplete:
        return "is not complete"
    except NeedsApprise:
        return apprise_process.ask(url)
    return None


def send_waiting(rt: Runtime, accepted: dict[str, int]) -> None:
    """Send each service its oldest waiting message. Blocks until all have responded, for less than a minute.

    `accepted` keeps the last message that each service accepted, so that a failed write repeats no message.
    """
    states = {state.id: state for state in notifications.services(rt.reader)}
    running = {thread.name for thread in threading.enumerate()}
    threads = [
        threading.Thread(target=_send_oldest, args=(rt, service, state, accepted), name=name, daemon=True)
        for service in list_services(rt)
        if (state := states.get(service.id)) is not None
        and state.waiting
        and (state.next_at is None or state.next_at <= rt.stamp())
        and (name := f"notify-{service.id}") not in running
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(ROUND_SECONDS)


def _send_oldest(rt: Runtime, service: Service, state: NotificationServiceRow, accepted: dict[str, int]) -> None:
    message = notifications.oldest_waiting(rt.reader, state.sent_through)
    if message is None:
        return
    failure = None
    if accepted.get(service.id, 0) < message.id:
        failure = send_message(rt.http, service.url.get_secret_value(), message.title, message.body)
    if failure is not None and rt.stopping.is_set():
        return  # the stop interrupted the call
    try:
        if failure is None:
            accepted[service.id] = message.id
            rt.db.write(notifications.note_sent, service.id, message.id)
            log.info("notification sent", service=service.name)
        else:
            rt.db.write(notifications.note_failed, service.id, failure, after(rt.stamp(), RETRY_SECONDS))
            log.warning("notification failed", service=service.name, reason=failure, waiting=state.waiting)
    except SocialpubError as error:
        log.warning("the result of a notification could not be stored", service=service.name, reason=error.detail)


def send_test(rt: Runtime) -> list[tuple[Service, str | None]]:
    """Send a test message to every service. Return the reason for each failure, or None. Blocks."""
    title, body = messages.compose_test(messages.load_sender(rt), rt.now())
    results = []
    for service in list_services(rt):
        failure = send_message(rt.http, service.url.get_secret_value(), title, body)
        rt.db.write(notifications.note_tested, service.id, service.name, failure)
        results.append((service, failure))
    return results


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
    return [ServiceHealth(service, states.get(service.id)) for service in list_services(rt, reader)]


def find_wrong_addresses(settings: Settings) -> list[str]:
    """Return a sentence for each address of `[notify] urls` to which nothing can be sent, without its secrets."""
    urls = [url.get_secret_value() for url in settings.notify.urls]
    return [
        f"notify.urls: number {number}, {display_url(url)}, {fault}."
        for number, url in enumerate(urls, 1)
        if (fault := find_fault(url)) is not None
    ]


def refuse_wrong_addresses(settings: Settings) -> None:
    wrong = find_wrong_addresses(settings)
    if wrong:
        raise OperatorError(" ".join(wrong), URL_FORMATS)


def describe_outdated_processes(rt: Runtime, surface: Surface) -> str | None:
    """Return the sentence about processes that run with other addresses, or None."""
    roles = [role for role, keys in machine.find_changed_keys(rt).items() if "notify.urls" in keys]
    if not roles:
        return None
    names = " and the ".join("web server" if role == "web" else role for role in roles)
    use = "use" if len(roles) > 1 else "uses"
    restart = "Restart socialpub" if surface is Surface.DASHBOARD else commands.restart()
    return (
        f"The {names} still {use} earlier addresses of [notify] urls, and nothing is sent to new addresses. {restart}."
    )


def check_services(rt: Runtime, surface: Surface) -> Iterator[Finding]:
    services = read_service_health(rt, rt.reader)
    if not services:
        yield note("notify", "No notification address is set.", hints.add_address(surface))
    for sentence in find_wrong_addresses(rt.settings):
        yield problem("notify", sentence, URL_FORMATS)
    for service in services:
        yield _check_service(service, surface)


def _check_service(service: ServiceHealth, surface: Surface) -> Finding:
    state, test = service.state, hints.test_message(surface)
    if state is not None and state.failing_since is not None:
        place = "under System in the dashboard" if service.service.is_added else "in [notify] urls"
        if not state.waiting:
            message = f"{service.name} did not accept the last test: {state.failure}."
            return problem("notify", message, f"Check its address {place}. Then {test}.")
        waiting = units.count(state.waiting, "message is waiting", "messages are waiting")
        message = f"{service.name} has not accepted messages since {state.failing_since}: {state.failure}. {waiting}."
        return problem("notify", message, f"Check its address {place}. To retry at once, {test}.")
    if state is None or state.sent_at is None:
        message = f"{service.name} has not received a message yet."
        return note("notify", message, f"To test the service, {test}.")
    return ok("notify", f"{service.name} accepted its last message at {state.sent_at}.")
