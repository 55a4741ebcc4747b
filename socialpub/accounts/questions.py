"""Questions to a network for one profile while an owner or a caller waits for the answer.

An answer is kept for a minute, so a form that is shown again does not ask again. A failure is also kept, so a network
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
from socialpub.runtime import AnswerKey, Runtime

T = TypeVar("T")

REMEMBERED_SECONDS = 60.0


def ask(rt: Runtime, profile: ProfileRow, question: Callable[[Http, str], T]) -> T:
    """Return the network's answer to `question(http, token)`, with another token when it refuses the first one.

    Asks the network, so do not call on the event loop. Raises `errors.py` and `Withdrawn`.
    """
    http, token = rt.http_for(profile.provider), tokens.load_fresh(rt, profile.id)
    try:
        return redaction.mask_value(question(http, token))
    except AuthExpired:
        return redaction.mask_value(question(http, tokens.replace_spent(rt, profile.id, spent=token)))


class NotAnswered(OperatorError):
    """A network did not answer a question. `error` is the exception of the call."""

    def __init__(self, message: str, hint: str, error: ProviderError | Withdrawn) -> None:
        super().__init__(message, hint)
        self.error = error


@contextmanager
def explain_failures(
    rt: Runtime, profile: ProfileRow, failure: str, surface: Surface = Surface.SHELL
) -> Iterator[None]:
    """Convert an exception of a question to NotAnswered, which begins with `failure` and contains the remedy."""
    provider = rt.providers[profile.provider]
    try:
        yield
    except Withdrawn as error:
        hint = f"To connect the account as a new profile, {remedies.connect(provider.name, surface)}."
        raise NotAnswered(f"The profile “{profile.name}” is disconnected.", hint, error) from None
    except tokens.Paused as paused:
        raise NotAnswered(f"{failure} {paused.message}", f"To continue, {remedies.resume(surface)}.", paused) from None
    except ProviderError as error:
        hint = remedies.after_question(provider, error, surface)
        raise NotAnswered(f"{failure} {error.message}", hint, error) from error


# --- one answer for all who ask within a minute -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """A question about one profile. `name` identifies the question, and all its answers have one type."""

    profile: ProfileRow
    name: str
    ask: Callable[[], T]
    """Asks the network. Raises ProviderError and Withdrawn."""

    @property
    def key(self) -> AnswerKey:
        """The key of the answer: new tokens and new account data ("Refresh") end the minute."""
        return self.profile.id, self.profile.access_token, self.profile.account_read_at, self.name


def remember(rt: Runtime, question: Question[T], result: T | ProviderError) -> None:
    """Make `answer` return this for a minute."""
    rt.answers.keep(question.key, rt.clock.monotonic() + REMEMBERED_SECONDS, result)


def answer(rt: Runtime, question: Question[T], *, again: bool = False) -> T:
    """Return the answer of the last minute, else ask the network.

    Do not call on the event loop. Raises ProviderError, which is also kept, and Withdrawn. `again`: ask again, unless
    the last minute brought a failure.
    """
    result: T | ProviderError | None = rt.answers.recall(question.key, rt.clock.monotonic())
    if result is None or (again and not isinstance(result, ProviderError)):
        try:
            result = question.ask()
        except ProviderError as error:
            result = error
        profile = profiles.get(rt.db, question.profile.id)
        if profile.account_read_at == question.profile.account_read_at:
            question = replace(question, profile=profile)  # the question may have renewed the tokens
        remember(rt, question, result)
    return _value(result)


async def answer_soon(rt: Runtime, question: Question[T], *, again: bool = False) -> T:
    """Do the same on the event loop. Equal questions share one thread, which a canceled caller does not end.

    Another question about the same profile waits, so a network that hangs occupies one thread for each profile.
    """
    result: T | ProviderError | None = None
    while result is None:
        if not again:
            result = rt.answers.recall(question.key, rt.clock.monotonic())
        if result is None:
            ask = partial(answer, rt, question, again=again)
            result = await rt.answers.ask(question.profile.id, (*question.key, again), ask)
    return _value(result)


def _value(result: T | ProviderError) -> T:
    if isinstance(result, ProviderError):
        raise result.with_traceback(None)  # each caller would add its frames to an error that is kept
    return result
