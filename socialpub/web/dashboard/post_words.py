"""Posts and their deliveries in the words of pages: states, and what a post is called where its text is too long."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from socialpub.providers.registry import LABELS
from socialpub.publishing import post_details

LONGEST_EXCERPT = 200
LONGEST_NAME = 60


class StateWord(NamedTuple):
    """`kind` is how it is coloured: `good`, `bad`, `warn`, or nothing."""

    text: str
    kind: str


DELIVERY_STATES = {
    "pending": StateWord("Not out yet", ""),
    "published": StateWord("Published", "good"),
    "failed": StateWord("Failed", "bad"),
    "unknown": StateWord("Outcome unknown", "warn"),
    "canceled": StateWord("Canceled", ""),
}
"""By outcome, as the API filters by it (`deliveryStatus`)."""

POST_STATES = {
    "scheduled": StateWord("Scheduled", ""),
    "pending": StateWord("In progress", ""),
    "settled": StateWord("Settled", ""),
    "canceled": StateWord("Canceled", ""),
}
"""By status; a settled post is told by what became of its deliveries (`of_post`)."""

_SETTLED = {
    frozenset({"published"}): StateWord("Published", "good"),
    frozenset({"failed"}): StateWord("Failed", "bad"),
    frozenset({"unknown"}): StateWord("Outcome unknown", "warn"),
    frozenset({"failed", "unknown"}): StateWord("Failed, partly unknown", "bad"),
    frozenset({"published", "unknown"}): StateWord("Partly unknown", "warn"),
}

ATTEMPTS = {
    "done": StateWord("Done", "good"),
    "waiting": StateWord("Waiting", ""),
    "held": StateWord("Held", "warn"),
    "retrying": StateWord("Tried again", "warn"),
    "refused": StateWord("Refused", "bad"),
    "unknown": StateWord("Unknown", "warn"),
    "published": StateWord("Published", "good"),
}


def of_post(post: Mapping[str, Any]) -> StateWord:
    """The state of a post as the API shows it."""
    return of_outcomes(post["status"], (post_details.outcome_of(one) for one in post["deliveries"]))


def of_outcomes(status: str, outcomes: Iterable[str]) -> StateWord:
    """The state of a post of this status whose deliveries came to this."""
    if status != "settled":
        return POST_STATES[status]
    return _SETTLED.get(frozenset(outcomes), StateWord("Partly published", "bad"))


def of_delivery(shown: Mapping[str, Any], post_status: str) -> StateWord:
    """The state of one of its deliveries."""
    outcome = post_details.outcome_of(dict(shown))
    if outcome == "pending" and post_status == "scheduled":
        return POST_STATES["scheduled"]
    return DELIVERY_STATES[outcome]


def excerpt(post: Mapping[str, Any], longest: int = LONGEST_EXCERPT) -> str:
    """The beginning of its text on one line, or what it is made of."""
    text = " ".join(post.get("body", "").split())
    if not text:
        return f"A post without text, of {counted(post['media'])}"
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def name(post: Mapping[str, Any]) -> str:
    """What the post is called in headings and sentences."""
    return excerpt(post, LONGEST_NAME)


def counted(media: list[dict[str, Any]]) -> str:
    """`2 pictures and 1 video`."""
    found = []
    for kind, word in (("image/", "picture"), ("video/", "video")):
        number = sum(item.get("contentType", "").startswith(kind) for item in media)
        if number:
            found.append(f"{number} {word}{'' if number == 1 else 's'}")
    return " and ".join(found) or "nothing"


def accounts(deliveries: Sequence[Mapping[str, Any]]) -> str:
    """Where they go: `X “Shop” and Pinterest “Shop”`."""
    named = [f"{LABELS[one['provider']]} “{one['profileName']}”" for one in deliveries]
    return " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)


def step(name: str) -> str:
    """A step of a plan: `create_post` becomes `Create post`, `upload:0` the first `Upload 1`."""
    word, _, index = name.replace("_", " ").capitalize().partition(":")
    return f"{word} {int(index) + 1}" if index.isdigit() else word
