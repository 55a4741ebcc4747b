"""The services that notify the owner: those of `[notify] urls`, then those that the owner added in the dashboard.

An address holds a password. Everywhere else a service has a name that shows no more than its scheme and its host.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from pydantic import SecretStr

from socialpub.core import ids
from socialpub.core.crypto import Secrets
from socialpub.core.errors import Conflict, InvalidRequest, NotFound, OperatorError
from socialpub.core.settings.loader import Settings
from socialpub.core.settings.notify import malformed, name_of
from socialpub.db import notifications, trail
from socialpub.db.notifications import ADDRESS_PLACE
from socialpub.db.trail import TrailAction
from socialpub.db.transaction import Reader, Tx
from socialpub.ops.notify import apprise_client, failures
from socialpub.runtime import Runtime

MAX_ADDED = 20
MAX_URL_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class Service:
    id: str
    name: str
    """Scheme and host, `ntfy://ntfy.example.com`. In a list, every further service of the same name has a number."""
    url: SecretStr = field(repr=False)
    """Empty for an added address that this `secret.key` cannot open."""
    is_added: bool = False
    """Whether the owner added it in the dashboard, and can remove it there."""


def list_all(rt: Runtime, store: Reader | Tx | None = None) -> list[Service]:
    """Return every service, those of the configuration first. No two have the same name."""
    found = [*configured(rt.settings, rt.secrets), *_added(rt, store or rt.reader)]
    seen: Counter[str] = Counter()
    named = []
    for service in found:
        seen[service.name] += 1
        number = seen[service.name]
        named.append(service if number == 1 else replace(service, name=f"{service.name} ({number})"))
    return named


def configured(settings: Settings, secrets: Secrets) -> list[Service]:
    """Return the services of the configuration, in the order of the list."""
    return [
        Service(secrets.sign("notify", url.get_secret_value()), name_of(url.get_secret_value()), url)
        for url in settings.notify.urls
    ]


def examine(text: str) -> tuple[SecretStr, str]:
    """Return the address in `text` and its name. Apprise judges the address in a child process, so this blocks.

    Raises InvalidRequest at `url`.
    """
    url = text.strip()
    fault = malformed(url)
    if not fault and len(url) > MAX_URL_CHARACTERS:
        fault = f"may have at most {MAX_URL_CHARACTERS} characters"
    if fault:
        raise InvalidRequest.at("url", message=fault)
    fault = apprise_client.examine(SecretStr(url))
    if fault:
        raise InvalidRequest.at("url", message=f"{fault}. See https://appriseit.com/services/ for the format")
    return SecretStr(url), name_of(url)


def add(rt: Runtime, tx: Tx, url: SecretStr, name: str) -> str:
    """Store an address that `examine` accepted. Return its id. Raises Conflict when it is there or there are too many.

    The service gets what happens from now on. Running processes use it from their next look.
    """
    known = list_all(rt, tx)
    if any(one.url == url for one in known):
        raise Conflict("This address is in the list already.")
    if sum(one.is_added for one in known) >= MAX_ADDED:
        raise Conflict(f"There are {MAX_ADDED} addresses already. Remove one first.")
    address_id = ids.new(int(tx.now.timestamp() * 1000))
    table, column = ADDRESS_PLACE
    notifications.insert_address(
        tx, address_id, name, rt.secrets.seal(url.get_secret_value(), table, address_id, column)
    )
    notifications.set_services(tx, {one.id: one.name for one in list_all(rt, tx)})
    failures.begin(rt, tx)
    trail.record(tx, TrailAction.NOTIFY_ADDED, address_id, name)
    return address_id


def remove(rt: Runtime, tx: Tx, address_id: str) -> str:
    """Forget an address that the owner added. Return its name. Raises NotFound."""
    name = notifications.delete_address(tx, address_id)
    if name is None:
        raise NotFound("This address is no longer in the list.")
    trail.record(tx, TrailAction.NOTIFY_REMOVED, address_id, name)
    return name


def _added(rt: Runtime, store: Reader | Tx) -> Iterator[Service]:
    table, column = ADDRESS_PLACE
    for row in notifications.addresses(store):
        try:
            url = rt.secrets.open(row["url"], table, row["id"], column)
        except OperatorError:
            url = ""  # sending to it fails, and the System page and the doctor report that
        yield Service(row["id"], row["name"], SecretStr(url), is_added=True)
