"""Posts, deliveries and profiles in the words of pages: states, and what is shown where a text is too long or a label
is not unique.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from socialpub.db.connection import Row
from socialpub.db.queries.log_list import LogEntry
from socialpub.db.states import ProfileStatus
from socialpub.providers.registry import LABELS
from socialpub.publishing.delivery.deliveries import OUTCOME_UNKNOWN
from socialpub.publishing.posts import details

MAX_EXCERPT_LETTERS = 200
MAX_NAME_LETTERS = 60


class Badge(NamedTuple):
    """`kind` is how it is coloured: `good`, `bad`, `warn`, or nothing."""

    text: str
    kind: str


class NetworkState(NamedTuple):
    """What became of a post on one network. `accounts` says where: the profile, or how many there are."""

    label: str
    accounts: str
    state: Badge


DELIVERY_STATES = {
    "pending": Badge("Not out yet", ""),
    "published": Badge("Published", "good"),
    "failed": Badge("Failed", "bad"),
    "unknown": Badge("Outcome unknown", "warn"),
    "canceled": Badge("Canceled", ""),
}
"""By outcome, as the API filters by it (`deliveryStatus`)."""
ACCEPTED = Badge("Accepted", "")
"""What the log says of a delivery without an outcome."""

IN_APP_STATE = Badge("In the TikTok app", "")
_DELIVERY_WORDS = {**DELIVERY_STATES, details.IN_APP: IN_APP_STATE}

POST_STATES = {
    "scheduled": Badge("Scheduled", ""),
    "pending": Badge("In progress", ""),
    "settled": Badge("Settled", ""),
    "canceled": Badge("Canceled", ""),
}
"""By status; a settled post is told by what became of its deliveries (`of_post`)."""

_SETTLED = {
    frozenset({"published"}): Badge("Published", "good"),
    frozenset({"failed"}): Badge("Failed", "bad"),
    frozenset({"unknown"}): Badge("Outcome unknown", "warn"),
    frozenset({"failed", "unknown"}): Badge("Failed, partly unknown", "bad"),
    frozenset({"published", "unknown"}): Badge("Partly unknown", "warn"),
    frozenset({details.IN_APP}): IN_APP_STATE,
    frozenset({"published", details.IN_APP}): Badge("Partly in the TikTok app", ""),
    frozenset({"unknown", details.IN_APP}): Badge("Partly unknown", "warn"),
    frozenset({"failed", details.IN_APP}): Badge("Partly failed", "bad"),
    frozenset({"canceled", details.IN_APP}): Badge("Partly canceled", ""),
}

ATTEMPTS = {
    "done": Badge("Done", "good"),
    "waiting": Badge("Waiting", ""),
    "held": Badge("Held", "warn"),
    "retrying": Badge("Tried again", "warn"),
    "refused": Badge("Refused", "bad"),
    "unknown": Badge("Unknown", "warn"),
    "published": Badge("Published", "good"),
}


def of_post(post: Mapping[str, Any]) -> Badge:
    """The state of a post as the API shows it."""
    return of_outcomes(post["status"], (outcome_of(one) for one in post["deliveries"]))


def outcome_of(shown: Mapping[str, Any]) -> str:
    """Return the outcome of a delivery as the API shows it, where a draft that arrived has one of its own."""
    outcome, mode = details.api_outcome(dict(shown)), shown["providerOptions"].get("mode")
    return details.owner_outcome(shown["provider"], outcome, mode, shown.get("providerPostId"))


def outcome_of_entry(entry: LogEntry) -> str:
    """Return the same for an entry of the log."""
    outcome = "unknown" if (entry.error or "").startswith(OUTCOME_UNKNOWN) else entry.type
    return details.owner_outcome(entry.provider, outcome, entry.mode, entry.provider_post_id)


def of_entry(entry: LogEntry) -> Badge:
    """Return the state that an entry of the log reports."""
    return ACCEPTED if entry.type == "pending" else _DELIVERY_WORDS[outcome_of_entry(entry)]


def of_attempt(outcome: str, delivery: Mapping[str, Any]) -> Badge:
    """Return the state of an attempt of this delivery."""
    is_in_app = outcome == "published" and outcome_of(delivery) == details.IN_APP
    return IN_APP_STATE if is_in_app else ATTEMPTS[outcome]


def of_outcomes(status: str, outcomes: Iterable[str]) -> Badge:
    """The state of a post of this status whose deliveries came to this."""
    if status != "settled":
        return POST_STATES[status]
    return _SETTLED.get(frozenset(outcomes), Badge("Partly published", "bad"))


def by_network(status: str, deliveries: Iterable[tuple[str, str, str]]) -> list[NetworkState]:
    """Return one state for each network, in the order of the deliveries (provider, profile name, outcome)."""
    grouped: dict[str, list[tuple[str, str]]] = {}
    for provider, name, outcome in deliveries:
        grouped.setdefault(provider, []).append((name, outcome))
    return [
        NetworkState(
            LABELS[provider],
            f"“{found[0][0]}”" if len(found) == 1 else f"({len(found)} profiles)",
            _of_network(status, {outcome for _, outcome in found}),
        )
        for provider, found in grouped.items()
    ]


def networks_of(post: Mapping[str, Any], names: Mapping[str, str]) -> list[NetworkState]:
    """Return the same for a post as the API shows it. `names` are those of `profile_names`."""
    found = (
        (one["provider"], named(one["profileId"], one["profileName"], names), outcome_of(one))
        for one in post["deliveries"]
    )
    return by_network(post["status"], found)


def _of_network(status: str, outcomes: set[str]) -> Badge:
    if status == "scheduled" and outcomes == {"pending"}:
        return POST_STATES["scheduled"]
    if len(outcomes) == 1:
        return _DELIVERY_WORDS[outcomes.pop()]
    return POST_STATES["pending"] if "pending" in outcomes else of_outcomes("settled", outcomes)


def of_delivery(shown: Mapping[str, Any], post_status: str) -> Badge:
    """The state of one of its deliveries."""
    outcome = outcome_of(shown)
    if outcome == "pending" and post_status == "scheduled":
        return POST_STATES["scheduled"]
    return _DELIVERY_WORDS[outcome]


def excerpt(post: Mapping[str, Any], longest: int = MAX_EXCERPT_LETTERS) -> str:
    """The beginning of its text on one line, or what it is made of."""
    text = " ".join(post.get("body", "").split())
    if not text:
        return f"A post without text, of {counted(post['media'])}"
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def name(post: Mapping[str, Any]) -> str:
    """What the post is called in headings and sentences."""
    return excerpt(post, MAX_NAME_LETTERS)


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


def profile_names(rows: Iterable[Row], *, network_is_shown: bool = False) -> dict[str, str]:
    """Return what each profile is called in a list, by id: its label, and where that is not unique, its network or
    handle. Disconnected profiles make no label of a connected one ambiguous."""
    same: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        same.setdefault((row.name.casefold(), row.provider if network_is_shown else ""), []).append(row)
    return {row.id: _profile_name(row, found, network_is_shown) for found in same.values() for row in found}


def named(profile_id: str, name: str, names: Mapping[str, str]) -> str:
    """Return the name of a profile in `names`, as long as its label is still the `name` that a post was made under."""
    found = names.get(profile_id, name)
    return found if found.startswith(name) else name


def _profile_name(row: Row, same: Sequence[Row], network_is_shown: bool) -> str:
    label = str(row.name)
    others = [one for one in same if one.id != row.id and one.status != ProfileStatus.DISCONNECTED]
    if not others:
        return label
    network = [] if network_is_shown else [LABELS[row.provider]]
    if network and all(one.provider != row.provider for one in others):
        return f"{label} ({network[0]})"
    handle = f"@{row.username}" if row.username else row.id[-6:]
    return f"{label} ({' '.join([*network, handle])})"


def step(name: str) -> str:
    """A step of a plan: `create_post` becomes `Create post`, `upload:0` the first `Upload 1`."""
    word, _, index = name.replace("_", " ").capitalize().partition(":")
    return f"{word} {int(index) + 1}" if index.isdigit() else word
