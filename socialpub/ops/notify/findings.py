"""Whether the owner can be told: what the doctor and the System page say of each service, and what refuses a start."""

from collections.abc import Iterator
from dataclasses import dataclass

from socialpub.accounts import remedies
from socialpub.accounts.remedies import Door
from socialpub.core.errors import OperatorError
from socialpub.core.settings.loader import Settings
from socialpub.db import notifications
from socialpub.db.notifications import ServiceState
from socialpub.db.transaction import Reader
from socialpub.ops.finding import Finding, note, ok, problem
from socialpub.ops.notify import apprise_client, services
from socialpub.runtime import Runtime

WRITTEN = "How the address of each service is written: https://appriseit.com/services/"


@dataclass(frozen=True, slots=True)
class ServiceHealth:
    name: str
    state: ServiceState | None
    """None before it was used for the first time."""


def read(rt: Runtime, reader: Reader) -> list[ServiceHealth]:
    """Every service, in the order of the list."""
    states = {state.id: state for state in notifications.services(reader)}
    return [ServiceHealth(one.name, states.get(one.id)) for one in services.configured(rt.settings, rt.secrets)]


def wrong_addresses(settings: Settings) -> list[str]:
    """A sentence for each address of `[notify] urls` that Apprise cannot use, without its secrets."""
    wrong = apprise_client.check(settings.notify.urls)
    return [
        f"notify.urls number {services.name_of(number, url)}:// {why}."
        for number, (url, why) in enumerate(zip(settings.notify.urls, wrong, strict=True), 1)
        if why is not None
    ]


def refuse_wrong_addresses(settings: Settings) -> None:
    """Raise OperatorError when an address cannot be used."""
    wrong = wrong_addresses(settings)
    if wrong:
        raise OperatorError(" ".join(wrong), WRITTEN)


def check(rt: Runtime, door: Door) -> Iterator[Finding]:
    """The doctor's findings."""
    if not rt.settings.notify.urls:
        remedy = "Set [notify] urls to where you can be reached: mail, ntfy, Gotify, Telegram and others."
        yield note("notify", "Nobody is told when something needs the owner.", remedy)
        return
    for sentence in wrong_addresses(rt.settings):
        yield problem("notify", sentence, WRITTEN)
    for one in read(rt, rt.reader):
        yield _of(one, door)


def _of(service: ServiceHealth, door: Door) -> Finding:
    state = service.state
    if state is not None and state.failing_since is not None:
        waiting = "1 message waits" if state.waiting == 1 else f"{state.waiting:,} messages wait"
        return problem(
            "notify",
            f"{service.name} has taken no message since {state.failing_since}: {state.failure}. {waiting}; the next "
            f"try is at {state.next_at}.",
            f"Check its address in [notify] urls. To try it at once: {remedies.test_message(door)}",
        )
    if state is None or state.sent_at is None:
        return note("notify", f"{service.name} was sent no message yet.", f"To try it: {remedies.test_message(door)}")
    return ok("notify", f"{service.name} took its last message at {state.sent_at}.")
