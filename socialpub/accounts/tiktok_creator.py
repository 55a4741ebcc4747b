"""What a TikTok account may do right now, asked anew whenever a form for a post to it opens: TikTok wants its choices
shown, and a form that stops when nothing can be posted.

https://developers.tiktok.com/doc/content-sharing-guidelines ("Required UX Implementation in Your App"), 2026-10.
"""

from dataclasses import dataclass

from socialpub.accounts import cooldowns, profiles, questions
from socialpub.accounts.remedies import Door
from socialpub.core.errors import OperatorError
from socialpub.providers.errors import ProviderError
from socialpub.providers.tiktok.adapter import TikTok
from socialpub.providers.tiktok.creator import BARS, CreatorInfo
from socialpub.providers.tiktok.plan import CREATOR
from socialpub.runtime import Runtime


@dataclass(frozen=True, slots=True)
class PostingBarred:
    """Nothing can be posted to this account now."""

    message: str
    """Why, and what to do."""


def ask(rt: Runtime, profile_id: str, door: Door = Door.SHELL) -> CreatorInfo | PostingBarred:
    """What TikTok says of this account at the moment. When it may post again, what waits for that goes out.

    Asks the network, so not from the event loop. Raises NotFound when there is no such profile, OperatorError when it
    is no account of TikTok or TikTok does not tell.
    """
    profile = profiles.get(rt.reader, profile_id)
    provider = rt.providers[profile.provider]
    if not isinstance(provider, TikTok):
        raise OperatorError(f"“{profile.name}” is an account of {provider.label}, not of TikTok.")
    with questions.explained(rt, profile, "TikTok did not say what this account may do.", door):
        try:
            info = questions.ask(rt, profile, lambda http, token: provider.ask_creator(http, token, profile.scopes))
            if cooldowns.until(rt.reader, profile_id, (CREATOR,), rt.stamp()):
                rt.write(cooldowns.end, profile_id, CREATOR)
            return info
        except ProviderError as error:
            why = BARS.get(error.code or "")
            if why is None:
                raise
            return PostingBarred(why)


def ask_lately(
    rt: Runtime, profile_id: str, door: Door = Door.SHELL, *, anew: bool = False
) -> CreatorInfo | PostingBarred:
    """The same, answered from memory for a minute: for a form that is shown again. `anew` when it opens: then only a
    network that did not answer a moment ago is left alone. Raises as `ask` does."""
    profile = profiles.get(rt.reader, profile_id)
    return questions.remembered(rt, profile, f"creator for the {door}", lambda: ask(rt, profile_id, door), anew=anew)
