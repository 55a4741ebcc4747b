"""Badges of states, excerpts of texts and unique names for the pages."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from socialpub.core.post_summary import OUTCOME_UNKNOWN, api_outcome
from socialpub.db.models import ProfileRow
from socialpub.db.queries.calendar import UNAPPROVED
from socialpub.db.queries.log_list import LogEntry
from socialpub.db.states import ProfileStatus
from socialpub.providers.registry import LABELS
from socialpub.publishing.posts import details

MAX_EXCERPT_LETTERS = 200
MAX_TITLE_LETTERS = 60


class Badge(NamedTuple):
    """A state as a short text. `kind` is its color: `good`, `bad`, `warn` or none."""

    text: str
    kind: str = ""


class NetworkState(NamedTuple):
    """The state of a post on one network. `accounts` is the profile name or the number of profiles."""

    label: str
    accounts: str
    state: Badge


DELIVERY_STATES = {
    "pending": Badge("Not published yet"),
    "published": Badge("Published", "good"),
    "failed": Badge("Failed", "bad"),
    "unknown": Badge("Outcome unknown", "warn"),
    "canceled": Badge("Canceled"),
}
"""The badges by outcome, as in the API filter `deliveryStatus`."""

POST_STATES = {
    "scheduled": Badge("Scheduled"),
    "pending": Badge("In progress"),
    "settled": Badge("Settled"),
    "canceled": Badge("Canceled"),
}
"""The badges by status. For a settled post, `_SETTLED` contains the badge of its deliveries."""

_IN_APP = Badge("In the TikTok app")
WAITS_FOR_APPROVAL = Badge("Waits for approval", "warn")
_OUTCOMES = {**DELIVERY_STATES, details.IN_APP: _IN_APP, UNAPPROVED: WAITS_FOR_APPROVAL}
_SETTLED = {
    frozenset({"published"}): Badge("Published", "good"),
    frozenset({"failed"}): Badge("Failed", "bad"),
    frozenset({"unknown"}): Badge("Outcome unknown", "warn"),
    frozenset({"failed", "unknown"}): Badge("Failed, partly unknown", "bad"),
    frozenset({"published", "unknown"}): Badge("Partly unknown", "warn"),
    frozenset({details.IN_APP}): _IN_APP,
    frozenset({"published", details.IN_APP}): Badge("Partly in the TikTok app"),
    frozenset({"unknown", details.IN_APP}): Badge("Partly unknown", "warn"),
    frozenset({"failed", details.IN_APP}): Badge("Partly failed", "bad"),
    frozenset({"canceled", details.IN_APP}): Badge("Partly canceled"),
}
_ATTEMPTS = {
    "done": Badge("Done", "good"),
    "waiting": Badge("Waiting"),
    "held": Badge("Held", "warn"),
    "retrying": Badge("Retrying", "warn"),
    "refused": Badge("Refused", "bad"),
    "unknown": Badge("Unknown", "warn"),
    "published": Badge("Published", "good"),
}


def post_badge(post: Mapping[str, Any], *, unapproved: bool = False) -> Badge:
    return outcomes_badge(post["status"], (delivery_outcome(delivery, unapproved) for delivery in post["deliveries"]))


def outcomes_badge(status: str, outcomes: Iterable[str]) -> Badge:
    kinds = frozenset(outcomes)
    if UNAPPROVED in kinds:
        return WAITS_FOR_APPROVAL
    if status != "settled":
        return POST_STATES[status]
    return _SETTLED.get(kinds, Badge("Partly published", "bad"))


def delivery_badge(shown: Mapping[str, Any], post_status: str, *, unapproved: bool = False) -> Badge:
    return _network_badge(post_status, {delivery_outcome(shown, unapproved)})


def delivery_outcome(shown: Mapping[str, Any], unapproved: bool = False) -> str:
    """Return the outcome of a delivery from the API.

    A draft in the TikTok app and an open delivery of an `unapproved` post have their own outcomes.
    """
    outcome, mode = api_outcome(shown), shown["providerOptions"].get("mode")
    if unapproved and outcome == "pending":
        return UNAPPROVED
    return details.owner_outcome(shown["provider"], outcome, mode, shown.get("providerPostId"))


def attempt_badge(outcome: str, delivery: Mapping[str, Any]) -> Badge:
    is_in_app = outcome == "published" and delivery_outcome(delivery) == details.IN_APP
    return _IN_APP if is_in_app else _ATTEMPTS[outcome]


def entry_badge(entry: LogEntry) -> Badge:
    return Badge("Accepted") if entry.type == "pending" else _OUTCOMES[entry_outcome(entry)]


def entry_outcome(entry: LogEntry) -> str:
    outcome = "unknown" if (entry.error or "").startswith(OUTCOME_UNKNOWN) else entry.type
    return details.owner_outcome(entry.provider, outcome, entry.mode, entry.provider_post_id)


def post_networks(post: Mapping[str, Any], names: Mapping[str, str], *, unapproved: bool = False) -> list[NetworkState]:
    """Return one state for each network of a post. `names` comes from `profile_names`."""
    networks = (
        (
            delivery["provider"],
            profile_name(delivery["profileId"], delivery["profileName"], names),
            delivery_outcome(delivery, unapproved),
        )
        for delivery in post["deliveries"]
    )
    return network_states(post["status"], networks)


def network_states(status: str, deliveries: Iterable[tuple[str, str, str]]) -> list[NetworkState]:
    """Return one state for each network of these deliveries (provider, profile name, outcome)."""
    grouped: dict[str, list[tuple[str, str]]] = {}
    for provider, name, outcome in deliveries:
        grouped.setdefault(provider, []).append((name, outcome))
    return [
        NetworkState(
            LABELS[provider],
            f"“{states[0][0]}”" if len(states) == 1 else f"({len(states)} profiles)",
            _network_badge(status, {outcome for _, outcome in states}),
        )
        for provider, states in grouped.items()
    ]


def _network_badge(post_status: str, outcomes: set[str]) -> Badge:
    if post_status == "scheduled" and outcomes == {"pending"}:
        return POST_STATES["scheduled"]
    if UNAPPROVED in outcomes:
        return WAITS_FOR_APPROVAL
    if len(outcomes) == 1:
        return _OUTCOMES[outcomes.pop()]
    return POST_STATES["pending"] if "pending" in outcomes else outcomes_badge("settled", outcomes)


def excerpt(post: Mapping[str, Any], max_letters: int = MAX_EXCERPT_LETTERS) -> str:
    """Return the start of the text on one line, or the number of media."""
    text = " ".join(post.get("body", "").split())
    if not text:
        return f"Post without text ({count_media(post['media'])})"
    return text if len(text) <= max_letters else f"{text[: max_letters - 1].rstrip()}…"


def title(post: Mapping[str, Any]) -> str:
    return excerpt(post, MAX_TITLE_LETTERS)


def count_media(media: list[dict[str, Any]]) -> str:
    """Return `2 images and 1 video`."""
    counts = []
    for kind, word in (("image/", "image"), ("video/", "video")):
        number = sum(item.get("contentType", "").startswith(kind) for item in media)
        if number:
            counts.append(f"{number} {word}{'' if number == 1 else 's'}")
    return " and ".join(counts) or "no media"


def list_accounts(deliveries: Sequence[Mapping[str, Any]]) -> str:
    """Return `X “Shop” and Pinterest “Shop”`."""
    named = [f"{LABELS[delivery['provider']]} “{delivery['profileName']}”" for delivery in deliveries]
    return " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)


def profile_names(rows: Iterable[ProfileRow], *, network_is_shown: bool = False) -> dict[str, str]:
    """Return a unique name of each profile by id: its label, with network or handle if needed.

    Disconnected profiles do not make the label of a connected profile ambiguous.
    """
    same: dict[tuple[str, str], list[ProfileRow]] = {}
    for row in rows:
        same.setdefault((row.name.casefold(), row.provider if network_is_shown else ""), []).append(row)
    return {row.id: _unique_name(row, namesakes, network_is_shown) for namesakes in same.values() for row in namesakes}


def _unique_name(row: ProfileRow, same: Sequence[ProfileRow], network_is_shown: bool) -> str:
    label = str(row.name)
    others = [other for other in same if other.id != row.id and other.status != ProfileStatus.DISCONNECTED]
    if not others:
        return label
    network = [] if network_is_shown else [LABELS[row.provider]]
    if network and all(other.provider != row.provider for other in others):
        return f"{label} ({network[0]})"
    handle = f"@{row.username}" if row.username else row.id[-6:]
    return f"{label} ({' '.join([*network, handle])})"


def profile_name(profile_id: str, name: str, names: Mapping[str, str]) -> str:
    """Return the unique name, if the label has not changed since the post was created."""
    label = names.get(profile_id, name)
    return label if label.startswith(name) else name


def step_name(name: str) -> str:
    """Return `Create post` for `create_post`, and `Upload 1` for `upload:0`."""
    word, _, index = name.replace("_", " ").capitalize().partition(":")
    return f"{word} {int(index) + 1}" if index.isdigit() else word
