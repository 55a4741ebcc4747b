"""Queries to a network for one profile while an owner or a caller waits for the response.

A response is kept for a minute, so a form that is shown again does not ask again. A failure is also kept, so a network
that hangs does not occupy a thread for each form.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

from socialpub.accounts import profiles, remedies, tokens
from socialpub.accounts.remedies import Surface
from socialpub.core.errors import OperatorError
from socialpub.core.secrets import redaction
from socialpub.db.models import ProfileRow
from socialpub.providers.base import Withdrawn
from socialpub.providers.http import Http
from socialpub.providers.responses import AuthExpired, ProviderError
from socialpub.runtime import QueryKey, Runtime

T = TypeVar("T")

KEPT_SECONDS = 60.0


def send(rt: Runtime, profile: ProfileRow, call: Callable[[Http, str], T]) -> T:
    """Return the response to `call(http, token)`, with another token when the network refuses the first one.

    Asks the network, so do not call on the event loop. Raises ProviderError and `Withdrawn`.
    """
    http, token = rt.http_for(profile.provider), tokens.load_fresh(rt, profile.id)
    try:
        return redaction.mask_value(call(http, token))
    except AuthExpired:
        return redaction.mask_value(call(http, tokens.replace_spent(rt, profile.id, spent=token)))


class NotAnswered(OperatorError):
    """A network did not answer a query. `error` is the exception of the call."""

    def __init__(self, message: str, hint: str, error: ProviderError | Withdrawn) -> None:
        super().__init__(message, hint)
        self.error = error


@contextmanager
def explain_failures(
    rt: Runtime, profile: ProfileRow, failure: str, surface: Surface = Surface.SHELL
) -> Iterator[None]:
    """Convert an exception of a query to NotAnswered, which begins with `failure` and contains the remedy."""
    provider = rt.providers[profile.provider]
    try:
        yield
    except Withdrawn as error:
        remedy = f"To connect the account as a new profile, {remedies.connect(provider.name, surface)}."
        raise NotAnswered(f"The profile “{profile.name}” is disconnected.", remedy, error) from None
    except tokens.Paused as paused:
        remedy = f"To continue, {remedies.resume(surface)}."
        raise NotAnswered(f"{failure} {paused.message}", remedy, paused) from None
    except ProviderError as error:
        remedy = remedies.after_query(provider, error, surface)
        raise NotAnswered(f"{failure} {error.message}", remedy, error) from error


# --- one response for all who ask within a minute ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProfileQuery(Generic[T]):
    """A query about one profile. `name` identifies the query, and all its responses have one type."""

    profile: ProfileRow
    name: str
    send: Callable[[], T]
    """Asks the network. Raises ProviderError and Withdrawn."""

    @property
    def key(self) -> QueryKey:
        """The key of the response: new tokens and new account data ("Refresh") end the minute."""
        return self.profile.id, self.profile.access_token, self.profile.account_read_at, self.name


def keep(rt: Runtime, query: ProfileQuery[T], response: T | ProviderError) -> None:
    """Make `load` return this for a minute."""
    rt.queries.keep(query.key, rt.clock.monotonic() + KEPT_SECONDS, response)


def load(rt: Runtime, query: ProfileQuery[T], *, again: bool = False) -> T:
    """Return the response of the last minute, else ask the network.

    Do not call on the event loop. Raises ProviderError, which is also kept, and Withdrawn. `again`: ask again, unless
    the last minute brought a failure.
    """
    response: T | ProviderError | None = rt.queries.recall(query.key, rt.clock.monotonic())
    if response is None or (again and not isinstance(response, ProviderError)):
        try:
            response = query.send()
        except ProviderError as error:
            response = error
        profile = profiles.get(rt.db, query.profile.id)
        if profile.account_read_at == query.profile.account_read_at:
            query = replace(query, profile=profile)  # the query may have renewed the tokens
        keep(rt, query, response)
    return _raise_error(response)


async def load_soon(rt: Runtime, query: ProfileQuery[T], *, again: bool = False) -> T:
    """Do the same on the event loop. Equal queries share one thread, which a canceled caller does not end.

    Another query about the same profile waits, so a network that hangs occupies one thread for each profile.
    """
    response: T | ProviderError | None = None
    while response is None:
        if not again:
            response = rt.queries.recall(query.key, rt.clock.monotonic())
        if response is None:
            in_thread = partial(load, rt, query, again=again)
            response = await rt.queries.send(query.profile.id, (*query.key, again), in_thread)
    return _raise_error(response)


def _raise_error(response: T | ProviderError) -> T:
    if isinstance(response, ProviderError):
        raise response.with_traceback(None)  # each caller would add its frames to an error that is kept
    return response
