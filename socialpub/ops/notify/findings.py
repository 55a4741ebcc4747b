"""Whether the owner can be told: what the doctor and the System page say of each service, and what refuses a start."""

from collections.abc import Iterator
from dataclasses import dataclass

from socialpub.accounts import remedies
from socialpub.accounts.remedies import Door
from socialpub.core import commands
from socialpub.core.errors import OperatorError
from socialpub.core.settings.loader import Settings
from socialpub.core.settings.notify import name_of
from socialpub.db import notifications
from socialpub.db.notifications import ServiceState
from socialpub.db.transaction import Reader
from socialpub.ops import configuration_in_use
from socialpub.ops.finding import Finding, note, ok, problem
from socialpub.ops.notify import apprise_client, services
from socialpub.ops.notify.services import Service
from socialpub.runtime import Runtime

WRITTEN = "How the address of each service is written: https://appriseit.com/services/"


@dataclass(frozen=True, slots=True)
class ServiceHealth:
    service: Service
    state: ServiceState | None
    """None before it was used for the first time."""

    @property
    def name(self) -> str:
        return self.service.name


def read(rt: Runtime, reader: Reader) -> list[ServiceHealth]:
    """Every service, in the order of the list."""
    states = {state.id: state for state in notifications.services(reader)}
    return [ServiceHealth(one, states.get(one.id)) for one in services.list_all(rt, reader)]


def wrong_addresses(settings: Settings) -> list[str]:
    """A sentence for each address of `[notify] urls` that Apprise cannot use, without its secrets."""
    wrong = apprise_client.check(settings.notify.urls)
    return [
        f"notify.urls: number {number}, {name_of(url.get_secret_value())}, {why}."
        for number, (url, why) in enumerate(zip(settings.notify.urls, wrong, strict=True), 1)
        if why is not None
    ]


def refuse_wrong_addresses(settings: Settings) -> None:
    """Raise OperatorError when an address cannot be used."""
    wrong = wrong_addresses(settings)
    if wrong:
        raise OperatorError(" ".join(wrong), WRITTEN)


def unknown_to_processes(rt: Runtime, door: Door) -> str | None:
    """Return the sentence that processes run with other addresses than this one, or None if all have the same."""
    changed = configuration_in_use.changed_keys(rt)
    roles = [role for role, keys in changed.items() if "notify.urls" in keys]
    if not roles:
        return None
    names = " and the ".join("web server" if role == "web" else role for role in roles)
    run, know = ("run", "They send") if len(roles) > 1 else ("runs", "It sends")
    restart = "Restart socialpub" if door is Door.DASHBOARD else commands.restart()
    return (
        f"The {names} {run} with other addresses in [notify] urls. {know} nothing to an address that it does not list. "
        f"{restart}."
    )


def check(rt: Runtime, door: Door) -> Iterator[Finding]:
    """The doctor's findings."""
    found = read(rt, rt.reader)
    if not found:
        yield note("notify", "No notification is sent when something needs the owner.", remedies.add_address(door))
        return
    for sentence in wrong_addresses(rt.settings):
        yield problem("notify", sentence, WRITTEN)
    for one in found:
        yield _of(one, door)


def _of(service: ServiceHealth, door: Door) -> Finding:
    state = service.state
    if state is not None and state.failing_since is not None:
        fix = f"Check its address {_place(service)}."
        test = remedies.test_message(door)
        if not state.waiting:
            return problem(
                "notify", f"{service.name} did not accept the last test: {state.failure}.", f"{fix} Then {test}."
            )
        waiting = "1 message waits" if state.waiting == 1 else f"{state.waiting:,} messages wait"
        return problem(
            "notify",
            f"{service.name} has accepted no message since {state.failing_since}: {state.failure}. {waiting}; the next "
            f"try is at {state.next_at or 'once'}.",
            f"{fix} To try it at once, {test}.",
        )
    if state is None or state.sent_at is None:
        message = f"{service.name} has received no message yet."
        return note("notify", message, f"To test it, {remedies.test_message(door)}.")
    return ok("notify", f"{service.name} accepted its last message at {state.sent_at}.")


def _place(service: ServiceHealth) -> str:
    return "under System in the dashboard" if service.service.is_added else "in [notify] urls"
