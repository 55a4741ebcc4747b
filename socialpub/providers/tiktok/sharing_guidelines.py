"""What TikTok wants of a form in which its owner makes a post: which choices are explicit, and what stops it. Pure.

https://developers.tiktok.com/doc/content-sharing-guidelines ("Required UX Implementation in Your App"), 2026-10.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from socialpub.core import commands
from socialpub.core.errors import FieldError
from socialpub.providers.base import AppLimits, Content
from socialpub.providers.options import Options
from socialpub.providers.tiktok.options import INTERACTIONS, PRIVATE, is_draft

BRANDS = {"brandOrganicToggle": "Your brand", "brandContentToggle": "Branded content"}
"""What commercial content may be, by option."""
SWITCH = "disclosed"

PRIVACY_MISSING = "Choose who can see the post. TikTok wants the choice to be yours: nothing is chosen for you."
KIND_MISSING = "You need to indicate if your content promotes yourself, a third party, or both."
SWITCH_MISSING = "Turn this on, or untick what is below it."
NOT_PRIVATE = "Branded content visibility cannot be set to private."

UNAUDITED = (
    "TikTok has not audited this app (audited = false in [providers.tiktok]).",
    f"A direct post must be “Only me” ({PRIVATE}), and the account itself must be private while it is posted.",
    "At most five accounts may post directly in 24 hours.",
)
"""Until the audit. Content Posting API (get started), 2026-09."""
OWN_APP = (
    "TikTok's guidelines refuse apps that upload to accounts that you or your team manage, so an app of your own stays "
    "unaudited."
)
"""Content Sharing Guidelines, copy of 2026-09-11."""

OF_VIDEOS = (INTERACTIONS["duet"], INTERACTIONS["stitch"])
DIRECT_ONLY = ("privacyLevel", *INTERACTIONS.values(), *BRANDS)


def is_commercial(chosen: Mapping[str, Any]) -> bool:
    """Whether a post discloses commercial content."""
    return any(chosen.get(key) is True for key in BRANDS)


def brand_label(chosen: Mapping[str, Any]) -> str | None:
    """How TikTok labels a post with these choices."""
    if chosen.get("brandContentToggle") is True:
        return "Paid partnership"
    return "Promotional content" if chosen.get("brandOrganicToggle") is True else None


def counting(chosen: Mapping[str, Any], *, only_photos: bool) -> Options:
    """The choices that go with a post: a draft is finished in TikTok's app, which asks for its own, and photos know
    comments only."""
    idle = {*(DIRECT_ONLY if is_draft(chosen) else ()), *(OF_VIDEOS if only_photos else ())}
    return {key: value for key, value in chosen.items() if key not in idle}


def choices_missing(chosen: Mapping[str, Any], disclosed: bool) -> list[FieldError]:
    """What the owner has to choose before a direct post."""
    if is_draft(chosen):
        return []
    found = []
    if chosen.get("privacyLevel") is None:
        found.append(_at("privacyLevel", PRIVACY_MISSING))
    if disclosed and not is_commercial(chosen):
        found.append(_at(SWITCH, KIND_MISSING))
    if not disclosed and is_commercial(chosen):
        found.append(_at(SWITCH, SWITCH_MISSING))
    if chosen.get("brandContentToggle") is True and chosen.get("privacyLevel") == PRIVATE:
        found.append(_at("privacyLevel", NOT_PRIVATE))
    return found


def not_offered(chosen: Mapping[str, Any], privacy_levels: Sequence[str], account: str) -> list[FieldError]:
    """A level that this account does not have at the moment."""
    level = chosen.get("privacyLevel")
    if is_draft(chosen) or level is None or level in privacy_levels:
        return []
    return [_at("privacyLevel", f"TikTok does not offer this choice to {account} at the moment: choose another one.")]


def too_long(content: Content, longest_seconds: int | None, account: str) -> list[FieldError]:
    """Videos that this account may not post."""
    found = []
    for media in content.media:
        seconds = media.facts.get("duration_seconds")
        if media.kind == "video" and longest_seconds is not None and seconds is not None and seconds > longest_seconds:
            message = (
                f"TikTok allows {account} videos of at most {longest_seconds} seconds, and this one lasts "
                f"{seconds:.1f}: shorten it, or leave this profile out."
            )
            found.append(FieldError(("media", media.position), message))
    return found


def _at(key: str, message: str) -> FieldError:
    return FieldError(("providerOptions", "tiktok", key), message)


def unaudited() -> AppLimits:
    """What TikTok does to an app that it has not audited."""
    remedy = (
        'Send drafts (mode "draft") and finish them in the TikTok app. If TikTok has audited your app, set '
        f"audited = true in [providers.tiktok]. {commands.here().restart()}."
    )
    return AppLimits(UNAUDITED, OWN_APP, remedy)
