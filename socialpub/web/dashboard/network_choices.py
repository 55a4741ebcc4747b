"""What an account can choose from at the moment, asked of its network for a form: boards, and TikTok's choices.

Nobody looks at an empty page for long: a network that does not answer in time is left to answer into memory, and the
form comes with a text field and the reason instead.
"""

from collections.abc import Callable, Mapping
from typing import Any

from socialpub.accounts import pinterest_boards, tiktok_creator
from socialpub.accounts.remedies import Door
from socialpub.accounts.tiktok_creator import PostingBarred
from socialpub.core.errors import OperatorError
from socialpub.db.models import Profile
from socialpub.providers.tiktok.creator import CreatorInfo
from socialpub.providers.tiktok.options import INTERACTIONS, INTERACTIONS_PLURAL
from socialpub.runtime import Runtime
from socialpub.web.dashboard import open_questions, option_words
from socialpub.web.dashboard.option_fields import NetworkChoices, OptionChoice

PATIENCE_SECONDS = 8.0

Question = Callable[[Runtime, Profile, str], NetworkChoices]
"""The account, and the board that is chosen in the form (empty: none)."""


async def of_profile(rt: Runtime, profile: Profile, shown: Mapping[str, Any]) -> NetworkChoices:
    """The choices of this account; `shown` are the values in the form, whose board brings its sections."""
    ask = _QUESTIONS.get(profile.provider)
    if ask is None:
        return NetworkChoices()
    board_id = str(shown.get("boardId", ""))
    try:
        question = "choices", profile.id, board_id
        return await open_questions.answer(rt, question, lambda: ask(rt, profile, board_id), PATIENCE_SECONDS)
    except TimeoutError:
        label = rt.providers[profile.provider].label
        return NetworkChoices(unknown=f"{label} takes long to answer. Load this page again in a moment.")
    except OperatorError as error:
        return NetworkChoices(unknown=error.sentence)


def _boards(rt: Runtime, profile: Profile, board_id: str) -> NetworkChoices:
    found = pinterest_boards.list_lately(rt, profile.id, board_id, Door.DASHBOARD)
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


def _creator(rt: Runtime, profile: Profile, _board_id: str) -> NetworkChoices:
    info = tiktok_creator.ask_lately(rt, profile.id, Door.DASHBOARD)
    return NetworkChoices(stop=info.message) if isinstance(info, PostingBarred) else of_creator(info)


def of_creator(info: CreatorInfo) -> NetworkChoices:
    """TikTok's answer as choices."""
    levels = [OptionChoice(level, option_words.value(level)) for level in info.privacy_levels]
    return NetworkChoices(
        {"privacyLevel": levels} if levels else {},
        {INTERACTIONS[name]: f"The account's own settings have {INTERACTIONS_PLURAL[name]} off." for name in info.off},
        account=info.nickname or info.username,
        longest_video_seconds=info.longest_video_seconds,
    )


_QUESTIONS: Mapping[str, Question] = {
    "pinterest": _boards,
    "tiktok": _creator,
}
