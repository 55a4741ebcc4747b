"""Questions to a network for one profile whose owner waits for the answer: its boards, what a creator may do now.

An answer is kept for a minute, so that a form that is shown again does not ask again. A failure is kept as well, so
that a network that hangs does not occupy a thread each time the form is shown.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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


def ask(rt: Runtime, profile: Profile, question: Callable[[Http, str], T]) -> T:
    """Return the network's answer to `question(http, token)`, with another token when it refuses the first one.

    Asks the network, so not from the event loop. Raises `errors.py` and `Withdrawn`.
    """
    http, token = rt.http_of(profile.provider), tokens.load_fresh(rt, profile.id)
    try:
        return redaction.mask_value(question(http, token))
    except AuthExpired:
        return redaction.mask_value(question(http, tokens.replace_spent(rt, profile.id, spent=token)))


@contextmanager
def explain_failures(rt: Runtime, profile: Profile, failure: str, surface: Surface = Surface.SHELL) -> Iterator[None]:
    """Turn what questions raise into an OperatorError that begins with `failure` and says what to do."""
    provider = rt.providers[profile.provider]
    try:
        yield
    except Withdrawn:
        hint = f"To connect the account as a new profile, {hints.connect(provider.name, surface)}."
        raise OperatorError(f"The profile “{profile.name}” is disconnected.", hint) from None
    except tokens.Paused as paused:
        raise OperatorError(f"{failure} {paused.message}", f"To continue, {hints.resume(surface)}.") from None
    except ProviderError as error:
        raise OperatorError(f"{failure} {error.message}", hints.after_question(provider, error, surface)) from error


def remember(rt: Runtime, profile: Profile, what: str, answer: object) -> None:
    """Make `remembered` return this for a minute: the owner has just changed what the network answers."""
    question = (profile.id, profile.access_token, what)
    rt.tokens.answers[question] = (rt.clock.monotonic() + REMEMBERED_SECONDS, answer)


def remembered(rt: Runtime, profile: Profile, what: str, answer: Callable[[], T], *, again: bool = False) -> T:
    """Return the answer of the last minute, else `answer()`. `what` names the question; its answers have one type.

    Raises OperatorError, which is kept as well. `again`: ask again, unless the last minute brought a failure.
    """
    question = (profile.id, profile.access_token, what)
    known, now = rt.tokens.answers, rt.clock.monotonic()
    for old in [name for name, (until, _) in list(known.items()) if until <= now]:
        known.pop(old, None)
    found: object
    if question in known and not (again and not isinstance(known[question][1], OperatorError)):
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


# --- what a TikTok account may do now ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PostingBarred:
    """Nothing can be posted to this account now."""

    message: str
    """Why, and what to do."""


def ask_creator(rt: Runtime, profile_id: str, surface: Surface = Surface.SHELL) -> CreatorInfo | PostingBarred:
    """Return what TikTok says of this account now. When it may post again, the posts that wait for this continue.

    TikTok wants its choices shown in every form for a post, and a form that stops when nothing can be posted
    (https://developers.tiktok.com/doc/content-sharing-guidelines, "Required UX Implementation in Your App", 2026-10).
    Asks the network, so not from the event loop. Raises NotFound when there is no such profile, OperatorError when it
    is no account of TikTok or TikTok does not answer.
    """
    profile = profiles.get(rt.reader, profile_id)
    provider = rt.providers[profile.provider]
    if not isinstance(provider, TikTok):
        raise OperatorError(f"“{profile.name}” is an account of {provider.label}, not of TikTok.")
    with explain_failures(rt, profile, "TikTok did not say what this account may do.", surface):
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
    rt: Runtime, profile_id: str, surface: Surface = Surface.SHELL, *, again: bool = False
) -> CreatorInfo | PostingBarred:
    """Return the answer of the last minute, for a form that is shown again. Raises as `ask_creator` does.

    `again`: a form that opens asks again, unless TikTok did not answer a moment ago.
    """
    profile, what = profiles.get(rt.reader, profile_id), f"creator for the {surface}"
    return remembered(rt, profile, what, lambda: ask_creator(rt, profile_id, surface), again=again)
