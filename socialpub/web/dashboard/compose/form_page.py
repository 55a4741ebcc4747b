"""The page of Compose: messages, profiles, and the choices that networks offer their accounts.

A page waits a few seconds for a network. After this timeout, the form shows a text field and the reason. The query
continues, and the next page uses its response. Equal queries share one thread, so a network that hangs blocks only one
thread.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, TypeVar
from zoneinfo import available_timezones

from starlette.responses import Response

from socialpub.accounts import avatars, choices, queries
from socialpub.accounts.choices import NetworkChoices, OptionChoice, PostingBarred, value_label
from socialpub.accounts.remedies import Surface
from socialpub.core.errors import OperatorError, end_sentence
from socialpub.db import appliance_state
from socialpub.db.models import ProfileRow
from socialpub.db.states import ProfileStatus
from socialpub.db.tables import profile_rows
from socialpub.media.types import ACCEPTED_TYPES, NAMES_WITHOUT_TYPE
from socialpub.providers.registry import LABELS, OPTIONS
from socialpub.providers.tiktok import creator
from socialpub.providers.tiktok.options import (
    DIRECT,
    DRAFT,
    INTERACTIONS,
    PRIVACY_LEVELS,
    PRIVATE,
)
from socialpub.publishing.posts import previews
from socialpub.publishing.posts.drafts import MAX_MEDIA
from socialpub.publishing.posts.previews import PostPreview
from socialpub.runtime import Runtime
from socialpub.web.dashboard import labels
from socialpub.web.dashboard.browser import times
from socialpub.web.dashboard.browser.visit import Visit
from socialpub.web.dashboard.compose import media, option_fields
from socialpub.web.dashboard.compose.form import ComposeForm
from socialpub.web.dashboard.compose.option_fields import OptionField

T = TypeVar("T")

CHOICES_TIMEOUT_SECONDS, CREATOR_TIMEOUT_SECONDS = choices.TIMEOUT_SECONDS, 5.0
UNTIL_THEN = "Until TikTok reports what this account can do, you can only send drafts to it."
FIRST = {
    "x": ("replySettings",),
    "pinterest": ("boardId", "boardSectionId", "title", "link"),
    "bluesky": ("replyControl", "contentLabels"),
}
"""The options above “More options”."""
TIKTOK_MORE = ("title", "videoCoverTimestampMs", "photoCoverIndex", "autoAddMusic", "isAigc")
"""The options that TikTok's guidelines do not mention."""
VARIOUS = "different for each profile"

_REGIONS = ("Africa", "America", "Antarctica", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")


@dataclass(frozen=True, slots=True)
class FormProblem:
    """A problem at a field. `anchor` is the id of the field."""

    anchor: str
    label: str
    message: str

    @property
    def sentence(self) -> str:
        return end_sentence(self.message[:1].upper() + self.message[1:])


@dataclass(frozen=True, slots=True)
class Messages:
    problems: Sequence[FormProblem] = ()
    notes: Sequence[tuple[str, Sequence[str]]] = ()
    """Names of profiles, and the notes about these profiles."""
    without_problems: Sequence[str] = ()
    """The profiles without problems."""
    may_publish_anyway: bool = False
    message: str = ""
    post_id: str = ""
    notice: str = ""
    """A message that is not an error."""
    present: Mapping[str, Any] | None = None
    """The post as the API shows it, if it changed after the form was opened."""
    ended: bool = False
    """Whether the post can no longer be edited."""


def by_field(problems: Iterable[FormProblem]) -> dict[str, str]:
    """Return the messages of each field by the id of the field."""
    messages: dict[str, list[str]] = {}
    for problem in problems:
        messages.setdefault(problem.anchor, []).append(problem.sentence)
    return {anchor: " ".join(dict.fromkeys(sentences)) for anchor, sentences in messages.items()}


@dataclass(frozen=True, slots=True)
class Creator:
    """A TikTok account. `levels` are empty if TikTok did not answer, and only `SELF_ONLY` for an unaudited app."""

    profile_id: str
    name: str
    nickname: str
    username: str
    levels: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    """The interactions (`comment`, `duet`, `stitch`) that the account's settings turn off."""
    longest_seconds: int | None = None
    stop: str | None = None
    """The reason why the account cannot receive posts now."""
    unknown: str | None = None
    """The reason why the choices are unknown, and the remedy."""


@dataclass(frozen=True)
class FormContext:
    """The profiles of a form and the choices of its TikTok accounts."""

    connected: Sequence[ProfileRow]
    fixed: bool = False
    """Whether the profiles cannot be changed, because the form edits a post."""
    creators: Mapping[str, Creator] = field(default_factory=dict)

    @property
    def networks(self) -> list[str]:
        networks = {row.provider for row in self.connected}
        return [name for name in LABELS if name in networks]

    def chosen_networks(self, profiles: Collection[str]) -> set[str]:
        return {row.provider for row in self.connected if row.id in profiles}

    @cached_property
    def names(self) -> dict[str, str]:
        return labels.profile_names(self.connected)

    def of_network(self, network: str, chosen: Sequence[str] = ()) -> list[ProfileRow]:
        rows = [row for row in self.connected if row.provider == network]
        return [row for row in rows if row.id in chosen] or rows


async def load_context(visit: Visit, *, refresh: bool = False, only: Sequence[str] | None = None) -> FormContext:
    """Load the connected profiles, or the profiles in `only`. With `refresh`, TikTok is asked again."""
    rows = profile_rows.list_all(visit.rt.db)
    if only is None:
        connected = [row for row in rows if row.status != ProfileStatus.DISCONNECTED]
    else:
        connected = [row for row in rows if row.id in only]
    tiktok = [row for row in connected if row.provider == "tiktok" and row.status != ProfileStatus.DISCONNECTED]
    creators = await asyncio.gather(*(_ask_creator(visit, row, refresh=refresh) for row in tiktok))
    return FormContext(connected, only is not None, {creator.profile_id: creator for creator in creators})


async def _ask_creator(visit: Visit, row: ProfileRow, *, refresh: bool) -> Creator:
    rt, profile_id, name, username = visit.rt, row.id, row.name, row.username or ""
    try:
        query = choices.creator(rt, profile_id)
        with queries.explain_failures(rt, query.profile, choices.CREATOR_UNKNOWN, Surface.DASHBOARD):
            async with asyncio.timeout(CREATOR_TIMEOUT_SECONDS):
                info = await queries.load_soon(rt, query, again=refresh)
    except TimeoutError:
        return Creator(profile_id, name, name, username, unknown=f"TikTok did not answer in time. {UNTIL_THEN}")
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


async def ask_choices(visit: Visit, profile: ProfileRow, shown: Mapping[str, Any]) -> NetworkChoices:
    """Return the choices of this account. `shown` are the values in the form: sections depend on the board."""
    board_id = str(shown.get(choices.BOARD, ""))
    try:
        async with asyncio.timeout(CHOICES_TIMEOUT_SECONDS):
            loaded = await choices.load(visit.rt, profile, board_id, Surface.DASHBOARD)
    except TimeoutError:
        label = visit.rt.providers[profile.provider].label
        return NetworkChoices(unknown=f"{label} did not answer in time. Reload this page in a moment.")
    except OperatorError as error:
        return NetworkChoices(unknown=error.sentence)
    return _with_board_in_sections(loaded, board_id)


def _with_board_in_sections(known: NetworkChoices, board_id: str) -> NetworkChoices:
    """Return the choices with sections that contain their board, because the form may show another board later."""
    if known.unknown:
        return replace(known, choices={})
    if choices.BOARD not in known.choices:
        return known
    board = next((choice.label for choice in known.choices[choices.BOARD] if choice.value == board_id), "")
    sections = known.choices.get(choices.SECTION, ())
    named = [OptionChoice(f"{board_id}/{choice.value}", f"{board}: {choice.label}") for choice in sections]
    return replace(known, choices={**known.choices, choices.SECTION: named})


async def show(
    visit: Visit,
    form: ComposeForm,
    context: FormContext,
    messages: Messages | None = None,
    *,
    http_status: int = 200,
    editing: str | None = None,
) -> Response:
    """Render the form. `editing` is the id of the edited post."""
    rt, messages = visit.rt, messages or Messages()
    form = _with_mode(rt, form, context, editing)
    at_field = by_field(messages.problems)
    return visit.show(
        "compose.html",
        http_status=http_status,
        form=form,
        editing=editing,
        messages=messages,
        wrong=at_field,
        context=context,
        avatars=avatars.list_versions(rt),
        options=await _fields(visit, form, context, at_field),
        previewed=await form_previews(rt, form),
        first=FIRST,
        media=media.list_attached(rt, form),
        only_photos=media.only_photos(rt, form),
        accepted=",".join((*ACCEPTED_TYPES, *NAMES_WITHOUT_TYPE)),
        max_media=MAX_MEDIA,
        zones=_zones(),
        browser_zone=times.zone_name(visit.zone),
        paused_at=appliance_state.paused_at(rt.db),
        tiktok=_tiktok(rt, form, context),
        guidelines=creator,
    )


async def _fields(
    visit: Visit, form: ComposeForm, context: FormContext, at_field: Mapping[str, str]
) -> dict[str, dict[str, OptionField]]:
    board_choices = await _board_choices(visit, form, context)
    for network in context.networks:
        keys = [key for key, of in option_fields.ARTIFACTS.items() if of == network]
        if keys:
            chosen = [str(value) for key in keys if (value := form.options.get(network, {}).get(key))]
            offered = dict.fromkeys(keys, media.offered_images(visit.rt, form, chosen))
            before = board_choices.get(network, NetworkChoices())
            board_choices[network] = replace(before, choices={**before.choices, **offered})
    return {name: _options(name, form, context, at_field, board_choices.get(name)) for name in context.networks}


def _options(
    network: str, form: ComposeForm, context: FormContext, at_field: Mapping[str, str], known: NetworkChoices | None
) -> dict[str, OptionField]:
    stored: dict[str, Any] = {}
    rows = context.of_network(network, form.draft.profiles)
    for key in (option.name for option in OPTIONS[network]):
        values = [row.options.get(key) for row in rows]
        if values[0] is not None and values.count(values[0]) == len(values):
            stored[key] = values[0]
        elif any(value is not None for value in values):
            stored[key] = VARIOUS
    start = f"options-{network}-"
    errors = {anchor.removeprefix(start): text for anchor, text in at_field.items() if anchor.startswith(start)}
    options = form.options.get(network, {})
    return option_fields.build_fields(
        network, options, stored=stored, blank="Profile default", errors=errors, known=known
    )


async def _board_choices(visit: Visit, form: ComposeForm, context: FormContext) -> dict[str, NetworkChoices]:
    rows = context.of_network("pinterest", form.draft.profiles) if "pinterest" in context.networks else []
    options = form.options.get("pinterest", {})
    loaded = await asyncio.gather(
        *(ask_choices(visit, profile, options) for row in rows if (profile := profile_rows.find(visit.rt.db, row.id)))
    )
    if not loaded:
        return {}
    by_key: dict[str, list[OptionChoice]] = {}
    for row, of_account in zip(rows, loaded, strict=True):
        for key, offered in of_account.choices.items():
            name = f" – {context.names[row.id]}" if len(rows) > 1 else ""
            by_key.setdefault(key, []).extend(OptionChoice(item.value, item.label + name) for item in offered)
    unknown = " ".join(dict.fromkeys(of_account.unknown for of_account in loaded if of_account.unknown))
    if unknown:
        # With unknown boards of one account, the owner enters an id.
        by_key = {}
    return {"pinterest": NetworkChoices(by_key, unknown=unknown or None)}


def _with_mode(rt: Runtime, form: ComposeForm, context: FormContext, editing: str | None) -> ComposeForm:
    """Set the TikTok mode: from the post, else from the profile, else the mode that the app can use.

    A post that was accepted without a mode is a direct post.
    """
    chosen = form.options.get("tiktok", {})
    if "mode" in chosen or not context.creators:
        return form
    mode = DIRECT
    if editing is None:
        stored = {row.options.get("mode") for row in context.of_network("tiktok", form.draft.profiles)}
        mode = (stored.pop() if len(stored) == 1 else None) or (
            DRAFT if rt.providers["tiktok"].app_limits() else DIRECT
        )
    return form.with_draft(options={**form.options, "tiktok": {**chosen, "mode": mode}})


def _tiktok(rt: Runtime, form: ComposeForm, context: FormContext) -> dict[str, Any] | None:
    """Return the additional values of the TikTok group."""
    if not context.creators:
        return None
    creators = [context.creators.get(row.id) for row in context.of_network("tiktok", form.draft.profiles)]
    answered = [of_account for of_account in creators if of_account and of_account.levels]
    levels = answered[0].levels if answered else ()
    common = [level for level in levels if all(level in of_account.levels for of_account in answered)]
    chosen, limits = form.options.get("tiktok", {}), rt.providers["tiktok"].app_limits()
    modes = (DRAFT, DIRECT) if limits else (DIRECT, DRAFT)
    gone = chosen.get("privacyLevel")
    locked = {name: bool(answered) and all(name in of_account.off for of_account in answered) for name in INTERACTIONS}
    return {
        "creators": list(context.creators.values()),
        "levels": [OptionChoice(level, value_label(level)) for level in common],
        "every_level": [OptionChoice(level, value_label(level)) for level in PRIVACY_LEVELS],
        "gone": gone if gone and gone not in common else None,
        "chosen": chosen,
        "mode": chosen.get("mode"),
        "modes": [OptionChoice(mode, value_label(mode)) for mode in modes],
        "limits": limits,
        "locked": locked,
        "label": creator.brand_label(chosen),
        "more": TIKTOK_MORE,
    }


@cache
def _zones() -> tuple[str, ...]:
    return ("UTC", *sorted(name for name in available_timezones() if name.partition("/")[0] in _REGIONS))


async def form_previews(rt: Runtime, form: ComposeForm) -> list[PostPreview]:
    if not form.draft.profiles:
        return []
    options = form.sent_options(LABELS, only_photos=media.only_photos(rt, form))
    draft = replace(form.draft, body=form.text or None, options=options)
    return await rt.read_in_thread(lambda db: previews.draft_previews(rt, db, draft))
