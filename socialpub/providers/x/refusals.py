"""X's reactions, row by row: how a refusal is recognized, and what it leads to.

X tells many cases apart by their wording alone, so the known wordings stand here beside types and codes. The first row
that fits decides, so what concerns the app comes before what concerns the account, and that before the post.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

HOUR = 3600.0


class Why(StrEnum):
    """The refusals that somebody reacts to in a way of their own."""

    MEDIA_INVALID = "media-invalid"
    DUPLICATE = "duplicate"
    TOO_LARGE = "too-large"
    GONE = "gone"
    OTHER = "other"


class Then(StrEnum):
    REFUSE = "refuse"
    HOLD_APP = "hold-app"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of X's reactions. It fits when the status is one of `statuses` (empty: any) and, where at least one of
    the other marks is given, one of them is found."""

    advice: str
    statuses: frozenset[int] = frozenset()
    types: frozenset[str] = frozenset()
    """Last path segments of problem types, and `reason`s."""
    codes: frozenset[int] = frozenset()
    wordings: tuple[str, ...] = ()
    """Parts of X's own sentences, lower case."""
    then: Then = Then.REFUSE
    why: Why = Why.OTHER
    rest_seconds: float = 0.0
    reauth: bool = False


def _any(*values: Any) -> frozenset[Any]:
    return frozenset(values)


DAILY_LIMIT_CODES = frozenset({185, 344})

RULES: tuple[Rule, ...] = (
    # The app, whatever the status.
    Rule("The app has no credits left or is at its spending limit: top it up at console.x.com.", _any(402),
         then=Then.HOLD_APP),
    Rule("The app has no credits left or is at its spending limit: top it up at console.x.com.",
         types=_any("credits", "credits-depleted", "creditsdepleted"), then=Then.HOLD_APP),
    Rule("The app's plan is used up for this period.", types=_any("usage-capped", "usagecapexceeded"),
         then=Then.HOLD_APP),
    Rule("The app may not use this endpoint: put it into a project with a fitting plan at console.x.com.",
         types=_any("client-forbidden", "client-not-enrolled", "official-client-forbidden"), codes=_any(453),
         then=Then.HOLD_APP),
    Rule("X suspended the app: see console.x.com.", types=_any("app-suspended"), then=Then.HOLD_APP),
    # The account.
    Rule("The account is suspended or locked: log in on x.com and follow what it says there.", _any(400, 403),
         types=_any("user-suspended"), codes=_any(64, 326), rest_seconds=24 * HOUR),
    Rule("X takes no posts from this account for now; it was left alone for a while. Try again later.", _any(403),
         wordings=("not permitted to access this feature",), rest_seconds=HOUR),
    Rule("X takes this for automated spam; the account was left alone for some hours. Change the text and try later.",
         _any(400, 403), codes=_any(226), wordings=("might be automated",), rest_seconds=6 * HOUR),
    Rule("The account reached its posts per day.", _any(400, 403, 429), codes=DAILY_LIMIT_CODES, then=Then.WAIT),
    Rule("The window of this endpoint is full.", _any(429), then=Then.WAIT),
    Rule("The window of this endpoint is full.", codes=_any(88), types=_any("rate-limit-exceeded"), then=Then.WAIT),
    Rule("Connect the account again: X wants a token of the account, not of the app.", _any(403),
         types=_any("unsupported-authentication"), wordings=("application-only is forbidden",), reauth=True),
    # The post.
    Rule("Upload the media again, within X's limits.", _any(400, 403), wordings=("media ids are invalid",),
         why=Why.MEDIA_INVALID),
    Rule("Shorten the text.", _any(400, 403), codes=_any(186), wordings=("text is too long",)),
    Rule("Give only one of media and quotePostId.", _any(400), wordings=("you can only provide one of",)),
    Rule("This is a fault of socialpub: please report it.", _any(400),
         wordings=("request body must be a json object", "requests with bodies must have content-type",
                   "request body is not valid json")),
    Rule("X has this text already: change it.", _any(400, 403), codes=_any(187), wordings=("duplicate content",),
         why=Why.DUPLICATE),
    Rule("Keep at most one cashtag ($TICKER) in the text.", _any(400, 403), wordings=("one cashtag",)),
    Rule("Shorten the video, or post it from an account with X Premium.", _any(400, 403),
         wordings=("post a video longer than",)),
    Rule("X lets an app reply only where the account was mentioned or quoted, or to its own posts: "
         "drop inReplyToPostId or quotePostId, or choose another post.", _any(400, 403), codes=_any(385),
         wordings=("you can only reply to or quote posts", "reply to this conversation is not allowed",
                   "deleted or not visible")),
    Rule("X blocks a link of the text: remove it.", _any(400, 403), wordings=("contains an invalid url",)),
    Rule("Check the text's length, the media, the options, and that the app may write (console.x.com).", _any(403),
         wordings=("not permitted to perform this action",)),
    Rule("What it refers to is gone, or the app has no access to it.", _any(404), why=Why.GONE),
    Rule("Not found any more.", _any(400), wordings=("badrequest: not found",), why=Why.GONE),
    Rule("Send less at once.", _any(413, 431), why=Why.TOO_LARGE),
    Rule("Change what it names and post again.", _any(400)),
    Rule("Check the options, the account's state on x.com and the app's permissions at console.x.com.", _any(403)),
)  # fmt: skip
