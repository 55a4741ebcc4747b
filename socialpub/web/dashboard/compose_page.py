"""The page of Compose: the form with everything that stands around its fields."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any
from zoneinfo import available_timezones

from socialpub.accounts import avatars, profiles
from socialpub.db import appliance_state
from socialpub.db.models import ProfileStatus
from socialpub.db.transaction import Row
from socialpub.media.types import ACCEPTED_TYPES
from socialpub.providers.registry import LABELS, OPTIONS, PROVIDERS
from socialpub.providers.tiktok import sharing_guidelines
from socialpub.providers.tiktok.options import DIRECT, DRAFT, INTERACTIONS, PRIVACY_LEVELS, is_draft
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.api.requests import MOST_MEDIA
from socialpub.web.dashboard import (
    compose_media,
    compose_previews,
    compose_problems,
    network_choices,
    option_fields,
    option_words,
    post_words,
    tiktok_creators,
    times,
)
from socialpub.web.dashboard.compose_form import ComposeForm
from socialpub.web.dashboard.compose_problems import FormProblem
from socialpub.web.dashboard.forms import Form
from socialpub.web.dashboard.option_fields import NetworkChoices, OptionChoice, OptionField
from socialpub.web.dashboard.post_versions import PostVersion
from socialpub.web.dashboard.tiktok_creators import Creator
from socialpub.web.dashboard.visit import Visit

FIRST = {"x": ("replySettings",), "pinterest": ("boardId", "boardSectionId", "title", "link")}
"""The options that stand in front; others are behind “More options”."""
TIKTOK_MORE = ("title", "videoCoverTimestampMs", "photoCoverIndex", "autoAddMusic", "isAigc")
"""What TikTok's guidelines say nothing about."""
VARIOUS = "as each profile says"

_REGIONS = ("Africa", "America", "Antarctica", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")


@dataclass(frozen=True, slots=True)
class ComparedValue:
    """A field of the post in words: as the post has it by now, and as the form has it."""

    label: str
    present: str
    ours: str
    is_ours: bool
    """Whether the form changes it."""


@dataclass(frozen=True, slots=True)
class Said:
    """What was found out about a form."""

    problems: Sequence[FormProblem] = ()
    notes: Sequence[tuple[str, Sequence[str]]] = ()
    """Profile and what is worth knowing there."""
    fine: Sequence[str] = ()
    """The profiles whose network takes it as it is."""
    may_publish_anyway: bool = False
    message: str = ""
    """What went wrong."""
    post_id: str = ""
    """The post that it is about."""
    notice: str = ""
    """What the form is, where nothing went wrong."""
    compared: Sequence[ComparedValue] = ()
    """The fields of two versions of the post, between which the owner chooses."""
    version: PostVersion | None = None
    """The version that the post has by now, where the owner chooses."""
    ended: bool = False
    """Whether the post that the form was made from can no longer be edited."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the form depends on beyond what was typed: who can be posted to, and what TikTok says of them."""

    connected: Sequence[Row]
    fixed: bool = False
    """Whether the profiles are those of a post that is there already."""
    creators: Mapping[str, Creator] = field(default_factory=dict)

    @property
    def networks(self) -> list[str]:
        """Those of the profiles, in the networks' order."""
        known = {row["provider"] for row in self.connected}
        return [name for name in PROVIDERS if name in known]

    @property
    def names(self) -> dict[str, str]:
        return post_words.profile_names(self.connected)

    def of_network(self, network: str, chosen: Sequence[str] = ()) -> list[Row]:
        """The profiles of this network: the chosen ones, or all where none is chosen."""
        rows = [row for row in self.connected if row["provider"] == network]
        return [row for row in rows if row["id"] in chosen] or rows


async def look(rt: Runtime, *, refresh: bool, only: Sequence[str] | None = None) -> Circumstances:
    """Who can be posted to. `refresh` when the form opens; `only` the profiles of a post."""
    rows = profiles.list_all(rt.reader)
    if only is None:
        connected = [row for row in rows if row["status"] != ProfileStatus.DISCONNECTED]
    else:
        connected = [row for row in rows if row["id"] in only]
    tiktok = [row for row in connected if row["provider"] == "tiktok" and row["status"] != ProfileStatus.DISCONNECTED]
    creators = await tiktok_creators.of_profiles(rt, tiktok, anew=refresh)
    return Circumstances(connected, only is not None, creators)


async def show(
    rt: Runtime,
    visit: Visit,
    form: ComposeForm,
    around: Circumstances,
    said: Said | None = None,
    *,
    http_status: int = 200,
    editing: str | None = None,
) -> Answer:
    """The form as it stands. `editing` is the id of the post that it changes."""
    said, form = said or Said(), _with_mode(rt, form, around, editing)
    at_field = compose_problems.by_field(said.problems)
    networks = await _fields(rt, form, around, at_field)
    return visit.show(
        "compose.html",
        http_status=http_status,
        form=form,
        editing=editing,
        said=said,
        wrong=at_field,
        around=around,
        labels=LABELS,
        avatars=avatars.versions(rt),
        options=networks,
        found=await compose_previews.of_form(rt, form),
        first=FIRST,
        media=compose_media.of_form(visit, form),
        only_photos=compose_media.only_photos(rt, form),
        accepted=",".join(ACCEPTED_TYPES),
        most_media=MOST_MEDIA,
        zones=_zones(),
        browser_zone=times.zone_name(visit.zone),
        paused_at=appliance_state.paused_at(rt.reader),
        tiktok=_tiktok(rt, form, around),
        guidelines=sharing_guidelines,
    )


async def untouched(rt: Runtime, form: ComposeForm, around: Circumstances) -> ComposeForm:
    """Return the form with the options that a browser sends from an untouched page."""
    shown, tiktok = await _fields(rt, form, around, {}), _tiktok(rt, form, around)
    sent = [pair for name, one in shown.items() if name != "tiktok" for pair in option_fields.untouched(one)]
    if tiktok is not None:
        chosen, levels = tiktok["chosen"], [level.value for level in tiktok["levels"]]
        level = chosen.get("privacyLevel")
        choices = {"mode": DRAFT if is_draft(chosen) else DIRECT, "privacyLevel": level if level in levels else ""}
        for name, key in INTERACTIONS.items():
            choices[key] = "false" if chosen.get(key) is False and not tiktok["locked"][name] else "true"
        choices |= {key: "true" if chosen.get(key) is True else "false" for key in sharing_guidelines.BRANDS}
        sent += [(f"{option_fields.PREFIX}tiktok.{key}", value) for key, value in choices.items()]
        sent += option_fields.untouched({key: shown["tiktok"][key] for key in TIKTOK_MORE})
    return replace(form, options={name: option_fields.read(Form(sent), name) for name in PROVIDERS})


async def _fields(
    rt: Runtime, form: ComposeForm, around: Circumstances, at_field: Mapping[str, str]
) -> dict[str, dict[str, OptionField]]:
    """The options of each network as fields."""
    known = await _boards(rt, form, around)
    for network in around.networks:
        keys = [key for key, of in option_fields.ARTIFACTS.items() if of == network]
        if keys:
            chosen = [str(value) for key in keys if (value := form.options.get(network, {}).get(key))]
            offered = dict.fromkeys(keys, compose_media.pictures(rt, form, chosen))
            before = known.get(network, NetworkChoices())
            known[network] = replace(before, choices={**before.choices, **offered})
    return {name: _options(name, form, around, at_field, known.get(name)) for name in around.networks}


def _options(
    network: str, form: ComposeForm, around: Circumstances, at_field: Mapping[str, str], known: NetworkChoices | None
) -> dict[str, OptionField]:
    stored: dict[str, Any] = {}
    rows = around.of_network(network, form.profiles)
    for key in (option.name for option in OPTIONS[network]):
        values = [json.loads(row["options"]).get(key) for row in rows]
        if values[0] is not None and values.count(values[0]) == len(values):
            stored[key] = values[0]
        elif any(value is not None for value in values):
            stored[key] = VARIOUS
    errors = compose_problems.option_errors(network, at_field)
    shown = form.options.get(network, {})
    return option_fields.fields(network, shown, stored=stored, blank="As stored", errors=errors, known=known)


async def _boards(rt: Runtime, form: ComposeForm, around: Circumstances) -> dict[str, NetworkChoices]:
    """Pinterest's boards: of the chosen profiles, else of all."""
    rows = around.of_network("pinterest", form.profiles) if "pinterest" in around.networks else []
    shown = form.options.get("pinterest", {})
    found = await asyncio.gather(
        *(
            network_choices.of_profile(rt, profile, shown)
            for row in rows
            if (profile := profiles.find(rt.reader, row["id"]))
        )
    )
    if not found:
        return {}
    choices: dict[str, list[OptionChoice]] = {}
    for row, one in zip(rows, found, strict=True):
        for key, offered in one.choices.items():
            name = f" – {around.names[row['id']]}" if len(rows) > 1 else ""
            choices.setdefault(key, []).extend(OptionChoice(item.value, item.label + name) for item in offered)
    unknown = " ".join(dict.fromkeys(one.unknown for one in found if one.unknown))
    if unknown:
        # Where one account's boards are not known, an id has to be typed.
        choices = {}
    return {"pinterest": NetworkChoices(choices, unknown=unknown or None)}


def _with_mode(rt: Runtime, form: ComposeForm, around: Circumstances, editing: str | None) -> ComposeForm:
    """The form with TikTok's mode chosen: the post's own, else the stored one, else the mode that works for this app.

    A post that was accepted without a mode is a direct one."""
    chosen = form.options.get("tiktok", {})
    if "mode" in chosen or not around.creators:
        return form
    mode = DIRECT
    if editing is None:
        stored = {json.loads(row["options"]).get("mode") for row in around.of_network("tiktok", form.profiles)}
        mode = (stored.pop() if len(stored) == 1 else None) or (
            DRAFT if rt.providers["tiktok"].app_limits() else DIRECT
        )
    return replace(form, options={**form.options, "tiktok": {**chosen, "mode": mode}})


def _tiktok(rt: Runtime, form: ComposeForm, around: Circumstances) -> dict[str, Any] | None:
    """What TikTok's group shows beyond fields of the table."""
    creators = [
        around.creators[row["id"]] for row in around.of_network("tiktok", form.profiles) if row["id"] in around.creators
    ]
    if not around.creators:
        return None
    answered = [one for one in creators if one.levels]
    common = [
        level for level in (answered[0].levels if answered else ()) if all(level in one.levels for one in answered)
    ]
    chosen, limits = form.options.get("tiktok", {}), rt.providers["tiktok"].app_limits()
    modes = (DRAFT, DIRECT) if limits else (DIRECT, DRAFT)
    gone = chosen.get("privacyLevel")
    locked = {
        name: all(name in one.off for one in answered) and bool(answered) for name in ("comment", "duet", "stitch")
    }
    return {
        "creators": list(around.creators.values()),
        "levels": [OptionChoice(level, option_words.value(level)) for level in common],
        "every_level": [OptionChoice(level, option_words.value(level)) for level in PRIVACY_LEVELS],
        "gone": gone if gone and gone not in common else None,
        "chosen": chosen,
        "mode": chosen.get("mode"),
        "modes": [OptionChoice(mode, option_words.value(mode)) for mode in modes],
        "limits": limits,
        "locked": locked,
        "label": sharing_guidelines.label_of(chosen),
        "more": TIKTOK_MORE,
    }


@cache
def _zones() -> tuple[str, ...]:
    """The zones that are offered, `UTC` first."""
    return ("UTC", *sorted(name for name in available_timezones() if name.partition("/")[0] in _REGIONS))
