"""Who acts: known at the door alone, and written down far below it (`db/trail.py`).

A door says it once, and every write that is handed in meanwhile carries it. What nobody at a door asked for is done by
the system. An actor is a text without a secret: of a key its id and its name.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

SYSTEM = "system"
"""The appliance by itself: its worker, its housekeeping, a browser that comes back from a network."""
COMMAND = "command"
"""The owner at the terminal."""
DASHBOARD = "dashboard"
"""The owner, signed in."""
VISITOR = "visitor"
"""A browser that is not signed in."""

_KEY = "key "
_OWNERS = (COMMAND, DASHBOARD)

_actor: ContextVar[str] = ContextVar("actor", default=SYSTEM)


def key(key_id: str, name: str) -> str:
    """The actor behind an API key: `key <id> <name>`."""
    return f"{_KEY}{key_id} {name}"


def parse_key(actor: str) -> tuple[str, str] | None:
    """Id and name of the key that acted; None when it was no key."""
    if not actor.startswith(_KEY):
        return None
    key_id, _, name = actor.removeprefix(_KEY).partition(" ")
    return key_id, name


def is_owner(actor: str) -> bool:
    """Whether this is the owner's own hand."""
    return actor in _OWNERS


def current() -> str:
    return _actor.get()


@contextmanager
def act_as(actor: str) -> Iterator[None]:
    """Meanwhile this one acts: in this thread, or in this task."""
    token = _actor.set(actor)
    try:
        yield
    finally:
        _actor.reset(token)
