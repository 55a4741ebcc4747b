"""What a form for a post depends on beyond its fields: the profiles, and what their networks let an account choose.

A page that asks a network waits a few seconds. After that, the form has a text field and the reason instead, and the
question goes on: its answer is remembered for the next page. Equal questions share one thread, so a network that hangs
holds one thread and not one for every page.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from socialpub import runtime
from socialpub.accounts import questions as pinterest_boards
from socialpub.accounts.hints import Surface
from socialpub.accounts.questions import PostingBarred
from socialpub.core.errors import OperatorError
from socialpub.db.models import ProfileRow
from socialpub.db.states import ProfileStatus
from socialpub.db.tables import profile_rows
from socialpub.db.tables.profile_rows import Profile
from socialpub.providers.registry import PROVIDERS
from socialpub.providers.tiktok.creator import CreatorInfo
from socialpub.providers.tiktok.options import INTERACTIONS, INTERACTIONS_PLURAL, PRIVATE
from socialpub.runtime import Runtime
from socialpub.web.dashboard import labels
from socialpub.web.dashboard.browser.visit import Visit
from socialpub.web.dashboard.compose import option_fields
from socialpub.web.dashboard.compose.option_fields import NetworkChoices, OptionChoice

T = TypeVar("T")

CHOICES_TIMEOUT_SECONDS, CREATOR_TIMEOUT_SECONDS = 8.0, 5.0
UNTIL_THEN = "Until TikTok has said what this account may do, only a draft can be sent to it."


@dataclass(frozen=True, slots=True)
class Creator:
    """An account as the form shows it. `levels` are empty when TikTok did not answer. An app without TikTok's audit
    offers only `SELF_ONLY`."""

    profile_id: str
    name: str
    nickname: str
    username: str
    levels: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    """The interactions (`comment`, `duet`, `stitch`) that the account's own settings switch off."""
    longest_seconds: int | None = None
    stop: str | None = None
    """Why nothing can be posted to the account now."""
    unknown: str | None = None
    """Why TikTok did not answer, and what to do."""


@dataclass(frozen=True, slots=True)
class FormContext:
    """The profiles of a form, and what TikTok lets its accounts choose."""

    connected: Sequence[ProfileRow]
    fixed: bool = False
    """Whether the profiles are those of a post that exists."""
    creators: Mapping[str, Creator] = field(default_factory=dict)

    @property
    def networks(self) -> list[str]:
        known = {row.provider for row in self.connected}
        return [name for name in PROVIDERS if name in known]

    def chosen_networks(self, profiles: Collection[str]) -> set[str]:
        return {row.provider for row in self.connected if row.id in profiles}

    @property
    def names(self) -> dict[str, str]:
        return labels.profile_names(self.connected)

    def of_network(self, network: str, chosen: Sequence[str] = ()) -> list[ProfileRow]:
        """Return the chosen profiles of this network, or all if none is chosen."""
        rows = [row for row in self.connected if row.provider == network]
        return [row for row in rows if row.id in chosen] or rows


async def load_context(visit: Visit, *, refresh: bool = False, only: Sequence[str] | None = None) -> FormContext:
    """Load the connected profiles, or `only` those of a post. With `refresh`, TikTok is asked again: a form opens."""
    rows = profile_rows.list_all(visit.rt.reader)
    if only is None:
        connected = [row for row in rows if row.status != ProfileStatus.DISCONNECTED]
    else:
        connected = [row for row in rows if row.id in only]
    tiktok = [row for row in connected if row.provider == "tiktok" and row.status != ProfileStatus.DISCONNECTED]
    creators = await asyncio.gather(*(_ask_creator(visit, row, refresh=refresh) for row in tiktok))
    return FormContext(connected, only is not None, {creator.profile_id: creator for creator in creators})


async def _ask_creator(visit: Visit, row: ProfileRow, *, refresh: bool) -> Creator:
    profile_id, name, username = row.id, row.name, row.username or ""
    try:
        ask = partial(pinterest_boards.ask_creator_lately, visit.rt, profile_id, Surface.DASHBOARD, again=refresh)
        info = await _ask_once(visit, ("creator", profile_id, str(refresh)), ask, CREATOR_TIMEOUT_SECONDS)
    except TimeoutError:
        return Creator(profile_id, name, name, username, unknown=f"TikTok takes long to answer. {UNTIL_THEN}")
    except OperatorError as error:
        return Creator(profile_id, name, name, username, unknown=f"{error.sentence} {UNTIL_THEN}")
    if isinstance(info, PostingBarred):
        return Creator(profile_id, name, name, username, stop=info.message)
    is_limited = visit.rt.providers["tiktok"].app_limits() is not None
    return Creator(
        profile_id,
        name,
        info.nickname or name,
        info.username or username,
        tuple(level for level in info.privacy_levels if not is_limited or level == PRIVATE),
        info.off,
        info.longest_video_seconds,
    )


# --- choices of an account --------------------------------------------------------------------------------------------


Question = Callable[[Runtime, Profile, str], NetworkChoices]
"""Takes the account and the board that is chosen in the form (empty: none)."""


async def ask_choices(visit: Visit, profile: Profile, shown: Mapping[str, Any]) -> NetworkChoices:
    """Return the choices of this account. `shown` are the values in the form: a chosen board has sections."""
    ask = _QUESTIONS.get(profile.provider)
    if ask is None:
        return NetworkChoices()
    board_id = str(shown.get("boardId", ""))
    try:
        question = "choices", profile.id, board_id
        return await _ask_once(visit, question, lambda: ask(visit.rt, profile, board_id), CHOICES_TIMEOUT_SECONDS)
    except TimeoutError:
        label = visit.rt.providers[profile.provider].label
        return NetworkChoices(unknown=f"{label} takes long to answer. Load this page again in a moment.")
    except OperatorError as error:
        return NetworkChoices(unknown=error.sentence)


def _ask_boards(rt: Runtime, profile: Profile, board_id: str) -> NetworkChoices:
    found = pinterest_boards.list_boards_lately(rt, profile.id, board_id, Surface.DASHBOARD)
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
    info = pinterest_boards.ask_creator_lately(rt, profile.id, Surface.DASHBOARD)
    return NetworkChoices(stop=info.message) if isinstance(info, PostingBarred) else creator_choices(info)


def creator_choices(info: CreatorInfo) -> NetworkChoices:
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


# --- questions to networks --------------------------------------------------------------------------------------------


async def _ask_once(visit: Visit, question: tuple[str, ...], ask: Callable[[], T], timeout_seconds: float) -> T:
    """Return what `ask()` returns in a thread of its own, or what the same question returns that was asked before.

    Raises what `ask` raises, and TimeoutError. Answers to one question have one type.
    """
    tasks = visit.request.state.open_questions

    def ended(task: asyncio.Task[Any]) -> None:
        del tasks[question]
        task.exception()  # the page may have gone on without the answer

    if question not in tasks:
        tasks[question] = asyncio.create_task(runtime.run_in_thread(ask))
        tasks[question].add_done_callback(ended)
    asking: asyncio.Task[T] = tasks[question]
    await asyncio.wait({asking}, timeout=timeout_seconds)
    if not asking.done():
        raise TimeoutError
    return asking.result()
