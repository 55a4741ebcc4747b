"""Questions to networks that a page waits for: one that hangs holds one thread, and not one for every look at it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from socialpub.accounts import boards as pinterest_boards
from socialpub.accounts import profiles, questions
from socialpub.accounts.hints import Surface
from socialpub.accounts.questions import PostingBarred
from socialpub.core.errors import OperatorError
from socialpub.db.connection import Row
from socialpub.db.states import ProfileStatus
from socialpub.db.tables.profile_rows import Profile
from socialpub.providers.registry import PROVIDERS
from socialpub.providers.tiktok.creator import CreatorInfo
from socialpub.providers.tiktok.options import (
    INTERACTIONS,
    INTERACTIONS_PLURAL,
    PRIVATE,
)
from socialpub.runtime import Runtime
from socialpub.web import threads
from socialpub.web.dashboard import labels
from socialpub.web.dashboard.compose import option_fields
from socialpub.web.dashboard.compose.option_fields import NetworkChoices, OptionChoice

T = TypeVar("T")


@dataclass(slots=True)
class OpenQuestions:
    """Those that nobody has an answer to yet, by what is asked."""

    tasks: dict[tuple[str, ...], asyncio.Task[Any]] = field(default_factory=dict)


async def ask_once(rt: Runtime, question: tuple[str, ...], ask: Callable[[], T], patience_seconds: float) -> T:
    """What `ask()` returns, on a thread of its own, or what the same question returns that is on its way already.

    Raises what it raises, and TimeoutError when patience is over: it goes on then, and may be answered at the next
    look. Answers to one question are of one type.
    """
    tasks = rt.memory(OpenQuestions).tasks

    def ended(task: asyncio.Task[Any]) -> None:
        del tasks[question]
        task.exception()  # whoever asked may have gone on without the answer

    if question not in tasks:
        tasks[question] = asyncio.create_task(threads.run_in_thread(ask))
        tasks[question].add_done_callback(ended)
    asking: asyncio.Task[T] = tasks[question]
    await asyncio.wait({asking}, timeout=patience_seconds)
    if not asking.done():
        raise TimeoutError
    return asking.result()


# MERGED from web/dashboard/network_choices.py: What an account can choose from at the moment, asked of its network

CHOICES_TIMEOUT_SECONDS = 8.0

Question = Callable[[Runtime, Profile, str], NetworkChoices]
"""The account, and the board that is chosen in the form (empty: none)."""


async def ask_choices(rt: Runtime, profile: Profile, shown: Mapping[str, Any]) -> NetworkChoices:
    """The choices of this account; `shown` are the values in the form, whose board brings its sections."""
    ask = _QUESTIONS.get(profile.provider)
    if ask is None:
        return NetworkChoices()
    board_id = str(shown.get("boardId", ""))
    try:
        question = "choices", profile.id, board_id
        return await ask_once(rt, question, lambda: ask(rt, profile, board_id), CHOICES_TIMEOUT_SECONDS)
    except TimeoutError:
        label = rt.providers[profile.provider].label
        return NetworkChoices(unknown=f"{label} takes long to answer. Load this page again in a moment.")
    except OperatorError as error:
        return NetworkChoices(unknown=error.sentence)


def _ask_boards(rt: Runtime, profile: Profile, board_id: str) -> NetworkChoices:
    found = pinterest_boards.list_lately(rt, profile.id, board_id, Surface.DASHBOARD)
    boards = [OptionChoice(one.board.id, _board_label(one.board.name, one.board.privacy)) for one in found]
    sections = [
        OptionChoice(f"{one.board.id}/{section.id}", f"{one.board.name}: {section.name}")
        for one in found
        for section in one.sections
    ]
    if not found:
        return NetworkChoices(
            unknown="This account has no board yet. Create one on the page of the profile, under “Boards”."
        )
    return NetworkChoices({"boardId": boards, "boardSectionId": sections})


def _board_label(name: str, privacy: str | None) -> str:
    return name if privacy in (None, "PUBLIC") else f"{name} ({str(privacy).lower()})"


def _ask_creator_choices(rt: Runtime, profile: Profile, _board_id: str) -> NetworkChoices:
    info = questions.ask_creator_lately(rt, profile.id, Surface.DASHBOARD)
    return NetworkChoices(stop=info.message) if isinstance(info, PostingBarred) else creator_choices(info)


def creator_choices(info: CreatorInfo) -> NetworkChoices:
    """TikTok's answer as choices."""
    levels = [OptionChoice(level, option_fields.value_label(level)) for level in info.privacy_levels]
    return NetworkChoices(
        {"privacyLevel": levels} if levels else {},
        {INTERACTIONS[name]: f"The account's own settings have {INTERACTIONS_PLURAL[name]} off." for name in info.off},
        account=info.nickname or info.username,
        longest_video_seconds=info.longest_video_seconds,
    )


_QUESTIONS: Mapping[str, Question] = {
    "pinterest": _ask_boards,
    "tiktok": _ask_creator_choices,
}


# MERGED from web/dashboard/tiktok_creators.py: What TikTok says of its accounts while a form for a post is open: a

CREATOR_TIMEOUT_SECONDS = 5.0
"""Nobody looks at an empty page for longer; what comes later is remembered for the next look."""

UNTIL_THEN = "Until TikTok has said what this account may do, only a draft can be sent to it."


@dataclass(frozen=True, slots=True)
class Creator:
    """One account as the form shows it. `levels` are empty when TikTok did not say. An app that TikTok has not audited
    offers `SELF_ONLY` alone."""

    profile_id: str
    name: str
    """The profile's label."""
    nickname: str
    username: str
    levels: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    """Those of `comment`, `duet` and `stitch` that the account's own settings switch off."""
    longest_seconds: int | None = None
    stop: str | None = None
    """Why nothing can be posted to the account now."""
    unknown: str | None = None
    """Why TikTok did not say, and what to do."""


async def ask_creators(rt: Runtime, profiles: Sequence[Row], *, anew: bool) -> Mapping[str, Creator]:
    """By profile, in their order. `anew` when the form opens: then nothing comes from memory."""
    found = await asyncio.gather(*(_ask_creator(rt, row, anew) for row in profiles))
    return {creator.profile_id: creator for creator in found}


async def _ask_creator(rt: Runtime, row: Row, anew: bool) -> Creator:
    profile_id, name, username = row.id, row.name, row.username or ""
    try:
        ask = partial(questions.ask_creator_lately, rt, profile_id, Surface.DASHBOARD, anew=anew)
        info = await ask_once(rt, ("creator", profile_id, str(anew)), ask, CREATOR_TIMEOUT_SECONDS)
    except TimeoutError:
        return Creator(profile_id, name, name, username, unknown=f"TikTok takes long to answer. {UNTIL_THEN}")
    except OperatorError as error:
        return Creator(profile_id, name, name, username, unknown=f"{error.sentence} {UNTIL_THEN}")
    if isinstance(info, PostingBarred):
        return Creator(profile_id, name, name, username, stop=info.message)
    is_limited = rt.providers["tiktok"].app_limits() is not None
    return Creator(
        profile_id,
        name,
        info.nickname or name,
        info.username or username,
        tuple(level for level in info.privacy_levels if not is_limited or level == PRIVATE),
        info.off,
        info.longest_video_seconds,
    )


# MERGED from web/dashboard/compose_page.py: The page of Compose: the form with everything that stands around its f


@dataclass(frozen=True, slots=True)
class FormContext:
    """What the form depends on beyond what was typed: who can be posted to, and what TikTok says of them."""

    connected: Sequence[Row]
    fixed: bool = False
    """Whether the profiles are those of a post that is there already."""
    creators: Mapping[str, Creator] = field(default_factory=dict)

    @property
    def networks(self) -> list[str]:
        """Those of the profiles, in the networks' order."""
        known = {row.provider for row in self.connected}
        return [name for name in PROVIDERS if name in known]

    @property
    def names(self) -> dict[str, str]:
        return labels.profile_names(self.connected)

    def of_network(self, network: str, chosen: Sequence[str] = ()) -> list[Row]:
        """The profiles of this network: the chosen ones, or all where none is chosen."""
        rows = [row for row in self.connected if row.provider == network]
        return [row for row in rows if row.id in chosen] or rows


async def load_context(rt: Runtime, *, refresh: bool, only: Sequence[str] | None = None) -> FormContext:
    """Who can be posted to. `refresh` when the form opens; `only` the profiles of a post."""
    rows = profiles.list_all(rt.reader)
    if only is None:
        connected = [row for row in rows if row.status != ProfileStatus.DISCONNECTED]
    else:
        connected = [row for row in rows if row.id in only]
    tiktok = [row for row in connected if row.provider == "tiktok" and row.status != ProfileStatus.DISCONNECTED]
    creators = await ask_creators(rt, tiktok, anew=refresh)
    return FormContext(connected, only is not None, creators)
