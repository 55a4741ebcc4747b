"""Questions to a network for one profile whose owner waits for the answer: its boards, what a creator may do now.

What is answered is remembered for a minute, so that a form which is shown again does not ask anew; so is that nothing
was answered, so that a network which hangs does not take up a thread with every look at the form.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from socialpub.accounts import hints, profiles, rate_limits, tokens
from socialpub.accounts.hints import Surface
from socialpub.core.errors import OperatorError
from socialpub.core.secrets import redaction
from socialpub.db.tables import waits
from socialpub.db.tables.profile_rows import Profile
from socialpub.providers.base import Withdrawn
from socialpub.providers.errors import AuthExpired, ProviderError
from socialpub.providers.http import Http
from socialpub.providers.tiktok import TikTok
from socialpub.providers.tiktok.creator import BARS, CreatorInfo
from socialpub.providers.tiktok.plan import CREATOR
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
    http, token = rt.http_of(profile.provider), tokens.load_fresh(rt, profile.id)
    try:
        return redaction.mask_value(question(http, token))
    except AuthExpired:
        return redaction.mask_value(question(http, tokens.replace_spent(rt, profile.id, spent=token)))


@contextmanager
def explain_failures(rt: Runtime, profile: Profile, failure: str, door: Surface = Surface.SHELL) -> Iterator[None]:
    """Around questions: what they raise as an OperatorError that begins with `failure` and says what to do."""
    provider = rt.providers[profile.provider]
    try:
        yield
    except Withdrawn:
        hint = f"To connect the account as a new profile, {hints.connect(provider.name, door)}."
        raise OperatorError(f"The profile “{profile.name}” is disconnected.", hint) from None
    except tokens.Paused as paused:
        raise OperatorError(f"{failure} {paused.message}", f"To continue, {hints.resume(door)}.") from None
    except ProviderError as error:
        raise OperatorError(f"{failure} {error.message}", hints.after_question(provider, error, door)) from error


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


# MERGED from accounts/tiktok_creator.py: What a TikTok account may do right now, asked anew whenever a form for a


@dataclass(frozen=True, slots=True)
class PostingBarred:
    """Nothing can be posted to this account now."""

    message: str
    """Why, and what to do."""


def ask_creator(rt: Runtime, profile_id: str, door: Surface = Surface.SHELL) -> CreatorInfo | PostingBarred:
    """What TikTok says of this account at the moment. When it may post again, what waits for that goes out.

    Asks the network, so not from the event loop. Raises NotFound when there is no such profile, OperatorError when it
    is no account of TikTok or TikTok does not tell.
    """
    profile = profiles.get(rt.reader, profile_id)
    provider = rt.providers[profile.provider]
    if not isinstance(provider, TikTok):
        raise OperatorError(f"“{profile.name}” is an account of {provider.label}, not of TikTok.")
    with explain_failures(rt, profile, "TikTok did not say what this account may do.", door):
        try:
            info = ask(rt, profile, lambda http, token: provider.ask_creator(http, token, profile.scopes))
            if waits.cooldown_until(rt.reader, profile_id, (CREATOR,), rt.stamp()):
                rt.write(rate_limits.end, profile_id, CREATOR)
            return info
        except ProviderError as error:
            why = BARS.get(error.code or "")
            if why is None:
                raise
            return PostingBarred(why)


def ask_creator_lately(
    rt: Runtime, profile_id: str, door: Surface = Surface.SHELL, *, anew: bool = False
) -> CreatorInfo | PostingBarred:
    """The same, answered from memory for a minute: for a form that is shown again. `anew` when it opens: then only a
    network that did not answer a moment ago is left alone. Raises as `ask` does."""
    profile = profiles.get(rt.reader, profile_id)
    return remembered(rt, profile, f"creator for the {door}", lambda: ask_creator(rt, profile_id, door), anew=anew)
