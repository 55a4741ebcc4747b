"""The actor behind a change: set at the entry point (API, CLI, dashboard), stored in the audit log.

Every write inside `act_as` has this actor. Outside, the actor is the system. An actor's text contains no secret: for a
key, the key's id and name.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

SYSTEM = "system"
"""The appliance: its worker, or a browser that a network redirects back."""
COMMAND = "command"
"""The owner at the terminal."""
DASHBOARD = "dashboard"
"""The signed-in owner."""
VISITOR = "visitor"
"""A browser that is not signed in."""

_KEY = "key "

_actor: ContextVar[str] = ContextVar("actor", default=SYSTEM)


def key(key_id: str, name: str) -> str:
    """Return the actor for an API key: `key <id> <name>`."""
    return f"{_KEY}{key_id} {name}"


def parse_key(actor: str) -> tuple[str, str] | None:
    """Return the id and the name of the key, or None for another actor."""
    if not actor.startswith(_KEY):
        return None
    key_id, _, name = actor.removeprefix(_KEY).partition(" ")
    return key_id, name


def is_owner(actor: str) -> bool:
    return actor in (COMMAND, DASHBOARD)


def current() -> str:
    return _actor.get()


@contextmanager
def act_as(actor: str) -> Iterator[None]:
    """Set the actor of this thread or task."""
    token = _actor.set(actor)
    try:
        yield
    finally:
        _actor.reset(token)
