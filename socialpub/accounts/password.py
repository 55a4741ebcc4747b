"""The owner's password for the dashboard, hashed with argon2id.

Its costs are those that OWASP's password storage cheat sheet wants at least: 19 MiB and some ten milliseconds, which
are spent on purpose, for one password at a time, and never on the event loop.
"""

import threading
from functools import cache
from typing import TYPE_CHECKING

from socialpub.accounts import browser_sessions, sign_in_links
from socialpub.core.errors import InvalidRequest
from socialpub.db import appliance_state, trail
from socialpub.db.trail import TrailAction
from socialpub.db.transaction import Reader, Tx
from socialpub.runtime import Runtime

if TYPE_CHECKING:
    from argon2 import PasswordHasher

SHORTEST = 10
LONGEST = 1000

_turn = threading.Lock()


def is_set(reader: Reader) -> bool:
    return appliance_state.get(reader, appliance_state.PASSWORD) is not None


def hashed(password: str, repeated: str) -> str:
    """What is stored of a new password. Raises InvalidRequest at `password` or `repeated`."""
    if len(password) < SHORTEST:
        raise InvalidRequest.at("password", message=f"must have at least {SHORTEST} characters")
    if len(password) > LONGEST:
        raise InvalidRequest.at("password", message=f"may have at most {LONGEST} characters")
    if password != repeated:
        raise InvalidRequest.at("repeated", message="must be the same as the password")
    with _turn:
        return _hasher().hash(_bytes(password))


def put(rt: Runtime, tx: Tx, password_hash: str) -> None:
    """Make this the password. Every browser has to sign in again, and links that were given out are worthless."""
    appliance_state.put(tx, appliance_state.PASSWORD, password_hash)
    browser_sessions.end_all(tx)
    sign_in_links.end_all(tx)
    trail.record(tx, TrailAction.PASSWORD_SET)


def matches(rt: Runtime, password: str) -> bool:
    """Whether this is the password. Takes its time: not on the event loop."""
    from argon2.exceptions import InvalidHashError, VerificationError

    stored = appliance_state.get(rt.reader, appliance_state.PASSWORD)
    if stored is None or len(password) > LONGEST:
        return False
    with _turn:
        try:
            return _hasher().verify(stored, _bytes(password))
        except (VerificationError, InvalidHashError):
            return False


def _bytes(password: str) -> bytes:
    # Terminals and browsers may write the same letter in two ways.
    import unicodedata

    return unicodedata.normalize("NFC", password).encode("utf-8", "surrogatepass")


@cache
def _hasher() -> "PasswordHasher":
    # argon2 is imported where somebody signs in, and costs no memory elsewhere.
    from argon2 import PasswordHasher

    return PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
