"""The choices of an account: each option of a post, and the values that the network offers the account now.

The forms of the dashboard, the API and the agents' entry point read the choices here (contract 10.1.1, 10.1.2).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from socialpub.accounts import boards, profiles, queries, remedies, tokens
from socialpub.accounts.queries import NotAnswered, ProfileQuery
from socialpub.accounts.remedies import Surface
from socialpub.core.clock import parse
from socialpub.core.errors import Conflict, InvalidRequest, OperatorError, Unavailable
from socialpub.db.connection import Database
from socialpub.db.models import ProfileRow
from socialpub.db.states import ProfileStatus
from socialpub.db.tables import delivery_rows, waits
from socialpub.providers.base import Provider
from socialpub.providers.options import Option
from socialpub.providers.pinterest import Pinterest
from socialpub.providers.pinterest.boards import PUBLIC
from socialpub.providers.registry import OPTIONS
from socialpub.providers.responses import ProviderError, Rejected, Throttled
from socialpub.providers.tiktok import TikTok
from socialpub.providers.tiktok.creator import POSTING_BLOCKS, CreatorInfo
from socialpub.providers.tiktok.options import CREATOR, INTERACTIONS, INTERACTIONS_PLURAL
from socialpub.runtime import Runtime

TIMEOUT_SECONDS = 8.0
RETRY_SECONDS = 10
"""The wait after a timeout. The query continues, and its response is kept."""
MAX_VALUES = 1000
BOARD, SECTION = "boardId", "boardSectionId"

VALUE_LABELS = {
    "everyone": "Everyone",
    "following": "People the author follows",
    "mentionedUsers": "People mentioned in the post",
    "subscribers": "Subscribers",
    "verified": "Verified accounts",
    "followers": "Followers",
    "mentioned": "People mentioned in the post",
    "nobody": "Only the author",
    "sexual": "Suggestive",
    "nudity": "Nudity without sexual content",
    "porn": "Adult content",
    "graphic-media": "Graphic media (violence, injuries)",
    "direct": "Publish directly",
    "draft": "Send to the TikTok app",
    "PUBLIC_TO_EVERYONE": "Everyone",
    "MUTUAL_FOLLOW_FRIENDS": "Friends (you follow each other)",
    "FOLLOWER_OF_CREATOR": "Followers",
    "SELF_ONLY": "Only me",
    "AI_MODIFIED": "AI made or changed the media",
    "SYNTHETIC_PERFORMER": "The post shows a person who does not exist",
}


def value_label(text: str) -> str:
    return VALUE_LABELS.get(text, text)


@dataclass(frozen=True, slots=True)
class OptionChoice:
    value: str
    label: str


@dataclass(frozen=True, slots=True)
class NetworkChoices:
    """The choices that a network offers an account now, by key."""

    choices: Mapping[str, Sequence[OptionChoice]] = field(default_factory=dict)
    """The choices that replace those in the table, or a text field."""
    locked: Mapping[str, str] = field(default_factory=dict)
    """The reasons why the account fixes these options at `true`."""
    account: str | None = None
    longest_video_seconds: int | None = None
    stop: str | None = None
    """The reason why the account cannot receive posts now."""
    unknown: str | None = None
    """The reason why the choices are unknown, and the remedy."""


# --- the queries of each network --------------------------------------------------------------------------------------

CREATOR_UNKNOWN = "TikTok did not return the posting options of this account."


@dataclass(frozen=True, slots=True)
class PostingBarred:
    """The reason why this account cannot post now."""

    message: str


def creator(rt: Runtime, profile_id: str) -> ProfileQuery[CreatorInfo | PostingBarred]:
    """Return the query for the posting options of this TikTok account, whose response may wake its waiting posts.

    TikTok requires that each form shows the choices, and that a form stops if the account cannot post
    (https://developers.tiktok.com/doc/content-sharing-guidelines, "Required UX Implementation in Your App", 2026-10).
    Raises NotFound for an unknown profile, and OperatorError when it is not a TikTok account.
    """
    profile = profiles.get(rt.db, profile_id)
    provider = rt.providers[profile.provider]
    if not isinstance(provider, TikTok):
        raise OperatorError(f"“{profile.name}” is an account of {provider.label}, not of TikTok.")

    def ask_tiktok() -> CreatorInfo | PostingBarred:
        try:
            info = queries.send(rt, profile, lambda http, token: provider.ask_creator(http, token, profile.scopes))
        except ProviderError as error:
            why = POSTING_BLOCKS.get(error.code or "")
            if why is None:
                raise
            return PostingBarred(why)
        if waits.ends_at(rt.db, profile_id, (CREATOR,), rt.stamp()):
            rt.write(_end_wait, profile_id)
        return info

    return ProfileQuery(profile, "creator", ask_tiktok)


def _end_wait(rt: Runtime, tx: Database, profile_id: str) -> None:
    until = waits.end(tx, profile_id, CREATOR)
    if until is not None:
        delivery_rows.wake_postponed(tx, profile_id, until)


async def load(rt: Runtime, profile: ProfileRow, board_id: str | None, surface: Surface) -> NetworkChoices:
    """Return the choices of this account. If the account has the board, they include the board's sections.

    An answer of the last minute is used again. Raises NotAnswered.
    """
    load_choices = _LOADERS.get(type(rt.providers[profile.provider]))
    return NetworkChoices() if load_choices is None else await load_choices(rt, profile, board_id, surface)


async def _load_boards(rt: Runtime, profile: ProfileRow, board_id: str | None, surface: Surface) -> NetworkChoices:
    with queries.explain_failures(rt, profile, boards.UNKNOWN, surface):
        own_boards = await queries.load_soon(rt, boards.of_profile(rt, profile.id))
        choices = {BOARD: [OptionChoice(item.id, _board_label(item.name, item.privacy)) for item in own_boards]}
        if any(item.id == board_id for item in own_boards):
            sections = await queries.load_soon(rt, boards.sections_of(rt, profile.id, str(board_id)))
            choices[SECTION] = [OptionChoice(item.id, item.name) for item in sections]
    if not own_boards:
        how = remedies.create_board(profile.id, surface)
        return NetworkChoices(choices, unknown=f"This account does not have boards yet. To create a board, {how}.")
    return NetworkChoices(choices)


def _board_label(name: str, privacy: str | None) -> str:
    return name if privacy in (None, PUBLIC) else f"{name} ({str(privacy).lower()})"


async def _load_creator(rt: Runtime, profile: ProfileRow, _board_id: str | None, surface: Surface) -> NetworkChoices:
    with queries.explain_failures(rt, profile, CREATOR_UNKNOWN, surface):
        info = await queries.load_soon(rt, creator(rt, profile.id))
    return NetworkChoices(stop=info.message) if isinstance(info, PostingBarred) else creator_choices(info)


def creator_choices(info: CreatorInfo) -> NetworkChoices:
    levels = [OptionChoice(level, value_label(level)) for level in info.privacy_levels]
    return NetworkChoices(
        {"privacyLevel": levels} if levels else {},
        {INTERACTIONS[name]: f"The account's settings turn {INTERACTIONS_PLURAL[name]} off." for name in info.off},
        account=info.nickname or info.username,
        longest_video_seconds=info.longest_video_seconds,
    )


_LOADERS: Mapping[type[Provider], Callable[[Runtime, ProfileRow, str | None, Surface], Awaitable[NetworkChoices]]] = {
    Pinterest: _load_boards,
    TikTok: _load_creator,
}


# --- the choices as a response ----------------------------------------------------------------------------------------


async def describe(rt: Runtime, profile_id: str, board_id: str | None = None) -> dict[str, Any]:
    """Return the `data` of `GET /profiles/{id}/choices`: every option of the network, with its values.

    The caller may see the profile. Raises InvalidRequest at `boardId`, Conflict if the account must be connected, and
    Unavailable while its network does not answer.
    """
    profile = profiles.get(rt.db, profile_id)
    table, label = OPTIONS[profile.provider], rt.providers[profile.provider].label
    if board_id is not None and BOARD not in (option.name for option in table):
        raise InvalidRequest.at(BOARD, message=f"is only for accounts that have boards; this is an account of {label}")
    _require_active(rt, profile)
    network_choices = await _load_in_time(rt, profile, board_id)
    listed = network_choices.choices.get(BOARD)
    if board_id is not None and listed is not None and board_id not in (choice.value for choice in listed):
        raise InvalidRequest.at(BOARD, message="is not one of this account's boards; omit it to list the boards")
    options = [_describe_option(option, profile.options, network_choices) for option in table]
    shape: dict[str, Any] = {"profileId": profile.id, "provider": profile.provider, "options": options}
    notes = _list_notes(rt, profile, network_choices)
    return {**shape, "notes": notes} if notes else shape


def _require_active(rt: Runtime, profile: ProfileRow) -> None:
    match profile.status:
        case ProfileStatus.REAUTH_REQUIRED:
            raise Conflict(remedies.reconnect_message(profile.provider, profile.reason))
        case ProfileStatus.DISCONNECTED:
            how = remedies.connect(profile.provider, Surface.ANYWHERE)
            raise Conflict(f"This profile is disconnected. To connect the account as a new profile, {how}.")


async def _load_in_time(rt: Runtime, profile: ProfileRow, board_id: str | None) -> NetworkChoices:
    """Return the choices, or the reason why the network refuses to list them. Raises Conflict and Unavailable."""
    provider = rt.providers[profile.provider]
    label, hold = provider.label, waits.find_hold(rt.db, provider.name, waits.QUESTIONS)
    if hold is not None and type(provider) in _LOADERS:
        seconds = ceil((parse(str(hold.until)) - rt.now()).total_seconds())
        raise Unavailable(f"{label} refuses queries of this app: {hold.message}", retry_after_seconds=max(seconds, 1))
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return await load(rt, profile, board_id, Surface.ANYWHERE)
    except TimeoutError:
        raise Unavailable(f"{label} did not answer in time.", retry_after_seconds=RETRY_SECONDS) from None
    except NotAnswered as failure:
        # The network may have ended the connection with this answer.
        _require_active(rt, profiles.get(rt.db, profile.id))
        if isinstance(failure.error, Rejected):
            return NetworkChoices(unknown=failure.sentence)
        named = failure.error.retry_after_seconds if isinstance(failure.error, Throttled) else None
        seconds = ceil(max(queries.KEPT_SECONDS, named or 0.0))
        raise Unavailable(failure.sentence, retry_after_seconds=seconds) from None


def _describe_option(option: Option, stored: Mapping[str, Any], network_choices: NetworkChoices) -> dict[str, Any]:
    key = option.name
    values: list[dict[str, Any]] | None = None
    if key in network_choices.locked:
        values = [{"value": True, "label": "Turned off by the account's settings"}]
    elif key in network_choices.choices:
        values = [
            {"value": choice.value, "label": choice.label} for choice in network_choices.choices[key][:MAX_VALUES]
        ]
    elif option.values:
        values = [{"value": choice, "label": value_label(choice)} for choice in option.values]
    shape = {
        "key": key,
        "required": option.required(stored),
        "type": option.type.json_type,
        "description": option.meaning,
        "default": option.default,
        "stored": stored.get(key),
        "values": values,
    }
    return {name: value for name, value in shape.items() if value is not None}


def _list_notes(rt: Runtime, profile: ProfileRow, network_choices: NetworkChoices) -> list[str]:
    limits = rt.providers[profile.provider].app_limits()
    longest = network_choices.longest_video_seconds
    cut = [key for key, values in network_choices.choices.items() if len(values) > MAX_VALUES]
    notes = [
        network_choices.stop,
        network_choices.unknown,
        *network_choices.locked.values(),
        None if longest is None else f"A video may last at most {longest} seconds.",
        None if limits is None else " ".join(limits.sentences),
        *rt.providers[profile.provider].account_notes(tokens.to_account(profile)),
        *(f"{key} lists the first {MAX_VALUES} of {len(network_choices.choices[key])} values." for key in cut),
    ]
    return [note for note in notes if note]
