"""Questions to a network for one profile whose owner waits for the answer: its boards, what a creator may do now.

What is answered is remembered for a minute, so that a form which is shown again does not ask anew; so is that nothing
was answered, so that a network which hangs does not take up a thread with every look at the form.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from socialpub.accounts import remedies, renewal
from socialpub.accounts.remedies import Door
from socialpub.core import held_secrets
from socialpub.core.errors import OperatorError
from socialpub.db.models import Profile
from socialpub.providers.errors import AuthExpired, ProviderError
from socialpub.providers.http import Http
from socialpub.providers.job import Withdrawn
from socialpub.runtime import Runtime

T = TypeVar("T")

REMEMBERED_SECONDS = 60.0


@dataclass(slots=True)
class RememberedAnswers:
    """By profile, its sealed token and what was asked: until when (monotonic) it counts, and the answer or why there
    was none. With new tokens everything is asked anew."""

    of_question: dict[tuple[str, bytes | None, str], tuple[float, object]] = field(default_factory=dict)


def ask(rt: Runtime, profile: Profile, question: Callable[[Http, str], T]) -> T:
    """What the network answers `question(http, token)`, with another token when it does not take the first one.

    Asks the network, so not from the event loop. Raises `errors.py` and `Withdrawn`.
    """
    http, token = rt.http_of(profile.provider), renewal.fresh(rt, profile.id)
    try:
        return held_secrets.masked(question(http, token))
    except AuthExpired:
        return held_secrets.masked(question(http, renewal.refresh(rt, profile.id, spent=token)))


@contextmanager
def explained(rt: Runtime, profile: Profile, failure: str, door: Door = Door.SHELL) -> Iterator[None]:
    """Around questions: what they raise as an OperatorError that begins with `failure` and says what to do."""
    provider = rt.providers[profile.provider]
    try:
        yield
    except Withdrawn:
        hint = f"To connect the account as a new profile, {remedies.connect(provider.name, door)}."
        raise OperatorError(f"The profile “{profile.name}” is disconnected.", hint) from None
    except renewal.Paused as paused:
        raise OperatorError(f"{failure} {paused.message}", f"To continue, {remedies.resume(door)}.") from None
    except ProviderError as error:
        raise OperatorError(f"{failure} {error.message}", remedies.after_question(provider, error, door)) from error


def remember(rt: Runtime, profile: Profile, what: str, answer: object) -> None:
    """Have `remembered` return this for a minute: the owner has just changed what the network answers."""
    question = (profile.id, profile.access_token, what)
    rt.memory(RememberedAnswers).of_question[question] = (rt.clock.monotonic() + REMEMBERED_SECONDS, answer)


def remembered(rt: Runtime, profile: Profile, what: str, answer: Callable[[], T], *, anew: bool = False) -> T:
    """The answer of the last minute, else `answer()`. `what` names the question; answers to one question are of one
    type. Raises OperatorError, which is remembered as well. `anew`: what was answered is asked again; only that nothing
    was answered counts for its minute."""
    question = (profile.id, profile.access_token, what)
    known, now = rt.memory(RememberedAnswers).of_question, rt.clock.monotonic()
    for old in [name for name, (until, _) in list(known.items()) if until <= now]:
        known.pop(old, None)
    found: object
    if question in known and not (anew and not isinstance(known[question][1], OperatorError)):
        found = known[question][1]
    else:
        try:
            found = answer()
        except OperatorError as error:
            found = error
        remember(rt, profile, what, found)
    if isinstance(found, OperatorError):
        raise found
    return found  # type: ignore[return-value]
