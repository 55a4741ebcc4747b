"""The page of Compose: the form with its options, counters and previews."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any
from zoneinfo import available_timezones

from socialpub.accounts import avatars
from socialpub.db import appliance_state
from socialpub.db.tables import profile_rows
from socialpub.media.types import ACCEPTED_TYPES
from socialpub.providers.registry import OPTIONS, PROVIDERS
from socialpub.providers.tiktok import creator
from socialpub.providers.tiktok.options import DIRECT, DRAFT, INTERACTIONS, PRIVACY_LEVELS, is_draft
from socialpub.publishing.posts import previews
from socialpub.publishing.posts.drafts import MAX_MEDIA, Draft, DraftMedia
from socialpub.publishing.posts.previews import PostPreview
from socialpub.runtime import Runtime
from socialpub.web.dashboard.browser import times
from socialpub.web.dashboard.browser.forms import Form
from socialpub.web.dashboard.browser.visit import Visit
from socialpub.web.dashboard.compose import check, media, option_fields
from socialpub.web.dashboard.compose.check import Messages
from socialpub.web.dashboard.compose.context import FormContext, ask_choices
from socialpub.web.dashboard.compose.form import ComposeForm
from socialpub.web.dashboard.compose.option_fields import NetworkChoices, OptionChoice, OptionField
from socialpub.web.http.answer import Answer

FIRST = {"x": ("replySettings",), "pinterest": ("boardId", "boardSectionId", "title", "link")}
"""The options that are shown first; others are behind “More options”."""
TIKTOK_MORE = ("title", "videoCoverTimestampMs", "photoCoverIndex", "autoAddMusic", "isAigc")
"""The options that TikTok's guidelines do not mention."""
VARIOUS = "as each profile says"

_REGIONS = ("Africa", "America", "Antarctica", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")


async def show(
    visit: Visit,
    form: ComposeForm,
    context: FormContext,
    messages: Messages | None = None,
    *,
    http_status: int = 200,
    editing: str | None = None,
) -> Answer:
    """Render the form. `editing` is the id of the post that it changes."""
    rt, messages = visit.rt, messages or Messages()
    form = _with_mode(rt, form, context, editing)
    at_field = check.by_field(messages.problems)
    return visit.show(
        "compose.html",
        http_status=http_status,
        form=form,
        editing=editing,
        messages=messages,
        wrong=at_field,
        context=context,
        avatars=avatars.versions(rt),
        options=await _fields(visit, form, context, at_field),
        previewed=await form_previews(rt, form),
        first=FIRST,
        media=media.list_attached(rt, form),
        only_photos=media.only_photos(rt, form),
        accepted=",".join(ACCEPTED_TYPES),
        max_media=MAX_MEDIA,
        zones=_zones(),
        browser_zone=times.zone_name(visit.zone),
        paused_at=appliance_state.paused_at(rt.reader),
        tiktok=_tiktok(rt, form, context),
        guidelines=creator,
    )


async def untouched(visit: Visit, form: ComposeForm, context: FormContext) -> ComposeForm:
    """Return the form with the options that a browser sends from an untouched page."""
    shown, tiktok = await _fields(visit, form, context, {}), _tiktok(visit.rt, form, context)
    sent = [pair for name, one in shown.items() if name != "tiktok" for pair in option_fields.untouched(one)]
    if tiktok is not None:
        chosen, levels = tiktok["chosen"], [level.value for level in tiktok["levels"]]
        level = chosen.get("privacyLevel")
        choices = {"mode": DRAFT if is_draft(chosen) else DIRECT, "privacyLevel": level if level in levels else ""}
        for name, key in INTERACTIONS.items():
            choices[key] = "false" if chosen.get(key) is False and not tiktok["locked"][name] else "true"
        choices |= {key: "true" if chosen.get(key) is True else "false" for key in creator.BRANDS}
        sent += [(f"{option_fields.PREFIX}tiktok.{key}", value) for key, value in choices.items()]
        sent += option_fields.untouched({key: shown["tiktok"][key] for key in TIKTOK_MORE})
    return replace(form, options={name: option_fields.read(Form(sent), name) for name in PROVIDERS})


async def _fields(
    visit: Visit, form: ComposeForm, context: FormContext, at_field: Mapping[str, str]
) -> dict[str, dict[str, OptionField]]:
    known = await _board_choices(visit, form, context)
    for network in context.networks:
        keys = [key for key, of in option_fields.ARTIFACTS.items() if of == network]
        if keys:
            chosen = [str(value) for key in keys if (value := form.options.get(network, {}).get(key))]
            offered = dict.fromkeys(keys, media.offered_images(visit.rt, form, chosen))
            before = known.get(network, NetworkChoices())
            known[network] = replace(before, choices={**before.choices, **offered})
    return {name: _options(name, form, context, at_field, known.get(name)) for name in context.networks}


def _options(
    network: str, form: ComposeForm, context: FormContext, at_field: Mapping[str, str], known: NetworkChoices | None
) -> dict[str, OptionField]:
    stored: dict[str, Any] = {}
    rows = context.of_network(network, form.profiles)
    for key in (option.name for option in OPTIONS[network]):
        values = [json.loads(row.options).get(key) for row in rows]
        if values[0] is not None and values.count(values[0]) == len(values):
            stored[key] = values[0]
        elif any(value is not None for value in values):
            stored[key] = VARIOUS
    start = f"options-{network}-"
    errors = {anchor.removeprefix(start): text for anchor, text in at_field.items() if anchor.startswith(start)}
    shown = form.options.get(network, {})
    return option_fields.fields(network, shown, stored=stored, blank="As stored", errors=errors, known=known)


async def _board_choices(visit: Visit, form: ComposeForm, context: FormContext) -> dict[str, NetworkChoices]:
    """Return the boards of the chosen Pinterest profiles, or of all."""
    rows = context.of_network("pinterest", form.profiles) if "pinterest" in context.networks else []
    shown = form.options.get("pinterest", {})
    found = await asyncio.gather(
        *(ask_choices(visit, profile, shown) for row in rows if (profile := profile_rows.find(visit.rt.reader, row.id)))
    )
    if not found:
        return {}
    choices: dict[str, list[OptionChoice]] = {}
    for row, one in zip(rows, found, strict=True):
        for key, offered in one.choices.items():
            name = f" – {context.names[row.id]}" if len(rows) > 1 else ""
            choices.setdefault(key, []).extend(OptionChoice(item.value, item.label + name) for item in offered)
    unknown = " ".join(dict.fromkeys(one.unknown for one in found if one.unknown))
    if unknown:
        # If the boards of one account are not known, the owner types an id.
        choices = {}
    return {"pinterest": NetworkChoices(choices, unknown=unknown or None)}


def _with_mode(rt: Runtime, form: ComposeForm, context: FormContext, editing: str | None) -> ComposeForm:
    """Choose TikTok's mode: the post's own, else the stored one, else the mode that works for this app.

    A post that was accepted without a mode is a direct one."""
    chosen = form.options.get("tiktok", {})
    if "mode" in chosen or not context.creators:
        return form
    mode = DIRECT
    if editing is None:
        stored = {json.loads(row.options).get("mode") for row in context.of_network("tiktok", form.profiles)}
        mode = (stored.pop() if len(stored) == 1 else None) or (
            DRAFT if rt.providers["tiktok"].app_limits() else DIRECT
        )
    return replace(form, options={**form.options, "tiktok": {**chosen, "mode": mode}})


def _tiktok(rt: Runtime, form: ComposeForm, context: FormContext) -> dict[str, Any] | None:
    """Return what TikTok's group shows beyond the fields of the table."""
    if not context.creators:
        return None
    creators = [context.creators.get(row.id) for row in context.of_network("tiktok", form.profiles)]
    answered = [one for one in creators if one and one.levels]
    levels = answered[0].levels if answered else ()
    common = [level for level in levels if all(level in one.levels for one in answered)]
    chosen, limits = form.options.get("tiktok", {}), rt.providers["tiktok"].app_limits()
    modes = (DRAFT, DIRECT) if limits else (DIRECT, DRAFT)
    gone = chosen.get("privacyLevel")
    locked = {name: bool(answered) and all(name in one.off for one in answered) for name in INTERACTIONS}
    return {
        "creators": list(context.creators.values()),
        "levels": [OptionChoice(level, option_fields.value_label(level)) for level in common],
        "every_level": [OptionChoice(level, option_fields.value_label(level)) for level in PRIVACY_LEVELS],
        "gone": gone if gone and gone not in common else None,
        "chosen": chosen,
        "mode": chosen.get("mode"),
        "modes": [OptionChoice(mode, option_fields.value_label(mode)) for mode in modes],
        "limits": limits,
        "locked": locked,
        "label": creator.brand_label(chosen),
        "more": TIKTOK_MORE,
    }


@cache
def _zones() -> tuple[str, ...]:
    return ("UTC", *sorted(name for name in available_timezones() if name.partition("/")[0] in _REGIONS))


async def form_previews(rt: Runtime, form: ComposeForm) -> list[PostPreview]:
    """Return how the form would look for the readers of each chosen profile."""
    draft = Draft(
        body=form.body.strip() or None,
        scheduled_at=None,
        profiles=form.profiles,
        media=tuple(DraftMedia(item.artifact_id, item.alt.strip() or None) for item in form.media),
        options=form.sent_options(PROVIDERS, only_photos=media.only_photos(rt, form)),
    )
    # Previews weigh the text: not on the event loop.
    return await rt.read_in_thread(lambda reader: previews.draft_previews(rt, reader, draft)) if form.profiles else []
