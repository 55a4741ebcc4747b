"""The services that get notifications: those of `[notify] urls`, and those that the owner added in the dashboard.

An address contains a password, so messages and pages show only its scheme and host.
"""

import os
import ssl
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec

from pydantic import SecretStr

from socialpub.accounts import remedies
from socialpub.accounts.remedies import Surface
from socialpub.core import units
from socialpub.core.clock import new_id
from socialpub.core.errors import Conflict, InvalidRequest, NotFound, OperatorError
from socialpub.core.settings.loader import Settings, environment_without_settings
from socialpub.core.settings.schema import check_form, display_url
from socialpub.db.connection import Database
from socialpub.db.models import NotificationServiceRow, NotifyAddressRow
from socialpub.db.tables import audit_log, notifications
from socialpub.db.tables.audit_log import AuditAction
from socialpub.db.tables.notifications import ADDRESS_PLACE
from socialpub.ops import alerts
from socialpub.ops.health import Finding, note, ok, problem, problem_of
from socialpub.ops.notify import channels
from socialpub.ops.notify.channels import NeedsApprise
from socialpub.providers.http import Http
from socialpub.runtime import Runtime

FORMATS = "https://appriseit.com/services/"


@dataclass(frozen=True, slots=True)
class Service:
    id: str
    name: str
    """Scheme and host, `ntfy://ntfy.example.com`. Further services with the same name have a number."""
    url: SecretStr = field(repr=False)
    """Empty for an added address that this `secret.key` cannot decrypt."""
    is_added: bool = False
    """Whether the owner added the address in the dashboard."""
    state: NotificationServiceRow | None = field(default=None, compare=False)
    """None before its first use."""


def list_services(rt: Runtime, db: Database | None = None) -> list[Service]:
    """Return all services, with those of the configuration first. The names are unique."""
    db = db or rt.db
    addresses = [
        (rt.secrets.sign("notify", url.get_secret_value()), display_url(url.get_secret_value()), url, False)
        for url in rt.settings.notify.urls
    ]
    addresses += [(row.id, row.name, _decrypt(rt, row), True) for row in notifications.addresses(db)]
    states = {state.id: state for state in notifications.services(db)}
    services, uses = [], Counter[str]()
    for id, name, url, is_added in addresses:
        uses[name] += 1
        unique = name if uses[name] == 1 else f"{name} ({uses[name]})"
        services.append(Service(id, unique, url, is_added, states.get(id)))
    return services


def _decrypt(rt: Runtime, row: NotifyAddressRow) -> SecretStr:
    table, column = ADDRESS_PLACE
    try:
        return SecretStr(rt.secrets.open(bytes(row.url), table, row.id, column))
    except OperatorError:
        return SecretStr("")  # sending fails, and the System page and `doctor` report the failure


def register_services(rt: Runtime, tx: Database) -> None:
    """Store the services, which receive messages from now on. Earlier failures are not reported."""
    notifications.set_services(tx, {service.id: service.name for service in list_services(rt, tx)})
    alerts.start_reporting_failures(rt, tx)


def parse_address(text: str) -> tuple[SecretStr, str]:
    """Return the address in `text` and its name. Blocks. Raises InvalidRequest at `url`."""
    url = text.strip()
    if fault := check_form(url):
        raise InvalidRequest.at("url", message=fault)
    if fault := find_fault(url):
        raise InvalidRequest.at("url", message=f"{fault}. See {FORMATS} for the format")
    return SecretStr(url), display_url(url)


def add_service(rt: Runtime, tx: Database, url: SecretStr, name: str) -> str:
    """Store an address that `parse_address` accepted. Return its id. Raises Conflict if the address cannot be added.

    Running processes use the address within seconds.
    """
    if any(service.url == url for service in list_services(rt, tx)):
        raise Conflict("This address is already in the list.")
    address_id = new_id(tx.now)
    table, column = ADDRESS_PLACE
    sealed = rt.secrets.seal(url.get_secret_value(), table, address_id, column)
    tx.insert(NotifyAddressRow, {"id": address_id, "name": name, "url": sealed, "added_at": tx.stamp})
    register_services(rt, tx)
    audit_log.record(tx, AuditAction.NOTIFY_ADDED, address_id, name)
    return address_id


def remove_service(rt: Runtime, tx: Database, address_id: str) -> str:
    """Remove an address that the owner added. Return its name. Raises NotFound."""
    name = notifications.delete_address(tx, address_id)
    if name is None:
        raise NotFound("This address is no longer in the list.")
    audit_log.record(tx, AuditAction.NOTIFY_REMOVED, address_id, name)
    return name


def find_fault(url: str) -> str | None:
    """Return why nothing can be sent to this URL, as the end of a sentence, or None. Blocks."""
    try:
        channels.prepare(url, "", "")
    except NeedsApprise:
        return _call_apprise(url)
    except ValueError:
        return "is not complete"
    return None


def refuse_wrong_addresses(settings: Settings) -> None:
    """Raise OperatorError if nothing can be sent to an address of `[notify] urls`. The message contains no secret."""
    wrong = [
        f"notify.urls: number {number}, {display_url(url.get_secret_value())}, {fault}."
        for number, url in enumerate(settings.notify.urls, 1)
        if (fault := find_fault(url.get_secret_value())) is not None
    ]
    if wrong:
        raise OperatorError(" ".join(wrong), f"For the address of each service, see {FORMATS}")


# --- sending ---------------------------------------------------------------------------------------------------------


def send_message(http: Http, url: str, title: str, body: str) -> str | None:
    """Send one message. Return None, or the reason for the failure as a clause. Blocks."""
    if not url:
        return "the address cannot be decrypted with this secret.key"
    try:
        return channels.send(http, channels.prepare(url, title, body))
    except NeedsApprise:
        return _call_apprise(url, title, body)
    except ValueError:
        return "the address is not complete"


# Apprise takes 45 MB, and some of its services hang. Every user can read arguments, so the URL is not an argument.
_APPRISE = (sys.executable, "-I", "-c", "from apprise.cli import main; main()", "-v", "--storage-mode=memory")
APPRISE_SECONDS = 45


def _call_apprise(url: str, title: str = "", body: str = "") -> str | None:
    """Send a message, or without a title, check the URL. Return the reason for a failure as a clause. Blocks."""
    if find_spec("apprise") is None:
        return "needs the package Apprise: install it with `pip install 'socialpub[notify]'`"
    variables = environment_without_settings() | {"APPRISE_URLS": url, "APPRISE_PLUGIN_PATH": os.devnull}
    # Apprise's HTTP client has its own list of authorities. Trust those of this machine, like the calls to networks.
    paths = ssl.get_default_verify_paths()
    authorities = os.environ.get("SSL_CERT_FILE") or paths.cafile or paths.capath
    variables |= {"REQUESTS_CA_BUNDLE": authorities} if authorities else {}
    try:
        child = subprocess.run(  # noqa: S603  our own
            [*_APPRISE, "--title", title] if title else [*_APPRISE, "--dry-run"],
            input=body or "-", capture_output=True, text=True, cwd="/", env=variables, timeout=APPRISE_SECONDS,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "the service does not respond in time"
    if child.returncode == 0:
        return None
    if not title:
        return "is not the complete address of a service that Apprise supports"
    status = child.stdout.partition("error=")[2][:3]
    if status.isdecimal():
        return channels.describe_status(int(status))
    return "the service cannot be reached or refuses the message"


# --- doctor ----------------------------------------------------------------------------------------------------------


def check_services(rt: Runtime, surface: Surface) -> Iterator[Finding]:
    services = list_services(rt)
    if not services:
        yield note("notify", "No notification address is set.", remedies.add_address(surface))
    try:
        refuse_wrong_addresses(rt.settings)
    except OperatorError as error:
        yield problem_of("notify", error)
    for service in services:
        yield _check_service(service, remedies.test_message(surface))


def _check_service(service: Service, test: str) -> Finding:
    state = service.state
    if state is None or (state.failing_since is None and state.sent_at is None):
        return note("notify", f"{service.name} has not received a message yet.", f"To test the service, {test}.")
    if state.failing_since is None:
        return ok("notify", f"{service.name} accepted its last message at {state.sent_at}.")
    place = "under System in the dashboard" if service.is_added else "in [notify] urls"
    waiting = f" {units.count(state.waiting, 'message is waiting', 'messages are waiting')}." if state.waiting else ""
    return problem(
        "notify",
        f"{service.name} has not accepted messages since {state.failing_since}: {state.failure}.{waiting}",
        f"Check its address {place}. To try again at once, {test}.",
    )
