"""Sends what is written down: to each service for itself, at most once more than needed.

A service that fails is tried again ever more rarely; what it missed by then goes out as one message. What it took is
noted at once: a process that dies in between sends that one message again.
"""

from concurrent.futures import ThreadPoolExecutor

from socialpub.core import logging
from socialpub.core.clock import after
from socialpub.db import notifications
from socialpub.db.notifications import ServiceState
from socialpub.db.transaction import Tx
from socialpub.ops.notify import apprise_client, messages, rounds, services
from socialpub.ops.notify.services import Service
from socialpub.runtime import Runtime

AT_ONCE = 4
"""One that hangs delays no other; each takes 45 MB while it is asked."""
BACK_OFF_SECONDS = (60.0, 300.0, 900.0, 3600.0)

log = logging.get_logger("socialpub.notify")


def send_waiting(rt: Runtime) -> int:
    """Send each service what it was not sent; returns how many messages were taken. Blocks for less than a minute, or a
    few with many services that hang.

    Raises `SendingStopped` when this process stops meanwhile.
    """
    states = {state.id: state for state in notifications.services(rt.reader)}
    ready = [one for one in services.list_all(rt) if _is_ready(rt, states.get(one.id))]
    # Whoever keeps us waiting comes last.
    ready.sort(key=lambda one: states[one.id].tries)
    if not ready:
        return 0
    with ThreadPoolExecutor(min(len(ready), AT_ONCE), thread_name_prefix="notify") as pool:
        return sum(pool.map(lambda service: _send(rt, service, states[service.id]), ready))


def test(rt: Runtime) -> list[tuple[Service, str | None]]:
    """Send a test message to every service now; what became of each: None, or why it failed. Blocks."""
    title, body = messages.test_message(rounds.sender(rt), rt.now())
    found = []
    for service in services.list_all(rt):
        failure = apprise_client.send(service.url, title, body, stopping=rt.stopping)
        rt.write(_note_tested, service, failure)
        found.append((service, failure))
    return found


def _note_tested(rt: Runtime, tx: Tx, service: Service, failure: str | None) -> None:
    if failure is None:
        notifications.note_reached(tx, service.id, service.name)
    else:
        notifications.note_test_failed(tx, service.id, service.name, failure)


def _is_ready(rt: Runtime, state: ServiceState | None) -> bool:
    return state is not None and state.waiting > 0 and (state.next_at is None or state.next_at <= rt.stamp())


def _send(rt: Runtime, service: Service, state: ServiceState) -> int:
    waiting = notifications.waiting(rt.reader, state.sent_through)
    failure = apprise_client.send(service.url, *messages.together(waiting), stopping=rt.stopping)
    if failure is None:
        rt.write(lambda _, tx: notifications.note_sent(tx, service.id, waiting[-1].id, len(waiting)))
        log.info("the owner was told", service=service.name, messages=len(waiting))
        return len(waiting)
    rt.write(_note_failed, service.id, failure, state.tries)
    log.warning("the owner could not be told", service=service.name, reason=failure, waiting=len(waiting))
    return 0


def _note_failed(rt: Runtime, tx: Tx, service: str, failure: str, tries: int) -> None:
    pause = BACK_OFF_SECONDS[min(tries, len(BACK_OFF_SECONDS) - 1)]
    notifications.note_failed(tx, service, failure, after(tx.stamp, pause))
