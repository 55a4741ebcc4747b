"""What TikTok says of its accounts while a form for a post is open: asked for all of them at once."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from socialpub.accounts import tiktok_creator
from socialpub.accounts.remedies import Door
from socialpub.accounts.tiktok_creator import PostingBarred
from socialpub.core.errors import OperatorError
from socialpub.db.transaction import Row
from socialpub.providers.tiktok.options import PRIVATE
from socialpub.runtime import Runtime
from socialpub.web.dashboard import open_questions

PATIENCE_SECONDS = 5.0
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


async def of_profiles(rt: Runtime, profiles: Sequence[Row], *, anew: bool) -> Mapping[str, Creator]:
    """By profile, in their order. `anew` when the form opens: then nothing comes from memory."""
    found = await asyncio.gather(*(_ask(rt, row, anew) for row in profiles))
    return {creator.profile_id: creator for creator in found}


async def _ask(rt: Runtime, row: Row, anew: bool) -> Creator:
    profile_id, name, username = row["id"], row["name"], row["username"] or ""
    try:
        ask = partial(tiktok_creator.ask_lately, rt, profile_id, Door.DASHBOARD, anew=anew)
        info = await open_questions.answer(rt, ("creator", profile_id, str(anew)), ask, PATIENCE_SECONDS)
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
