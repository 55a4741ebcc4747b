"""`/profiles` and `/profiles/{profileId}`: the connected accounts, and what the owner can do about each."""

import asyncio
import json
from functools import partial
from typing import Any

from socialpub.accounts import (
    avatars,
    connect,
    consents,
    idle_tokens,
    pinterest_boards,
    profile_options,
    profiles,
    token_health,
)
from socialpub.accounts.pinterest_boards import CreatedSection
from socialpub.accounts.remedies import Door
from socialpub.core.errors import InvalidRequest, NotFound
from socialpub.db.models import ProfileStatus
from socialpub.providers.pinterest.adapter import Pinterest
from socialpub.providers.registry import LABELS
from socialpub.publishing import profile_queue
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.dashboard import forms, network_choices, option_fields, option_words, pictures, post_words
from socialpub.web.dashboard.page import page
from socialpub.web.dashboard.visit import Visit


@page()
async def index(rt: Runtime, visit: Visit) -> Answer:
    """Every profile, and a button for each network."""
    rows = profiles.list_all(rt.reader)
    connected = [row for row in rows if row["status"] != ProfileStatus.DISCONNECTED]
    return visit.show(
        "profiles.html",
        connected=connected,
        disconnected=[row for row in rows if row["status"] == ProfileStatus.DISCONNECTED],
        warnings={row["id"]: idle_tokens.warning(row, rt.now(), Door.DASHBOARD) for row in connected},
        names=post_words.profile_names(connected),
        waiting=profile_queue.counts(rt.reader),
        pictures=avatars.versions(rt),
        labels=LABELS,
        attempts=consents.waiting(rt.reader, Door.DASHBOARD, rt.stamp()),
        missing_apps={name: connect.app_missing(rt, name) for name in rt.providers},
    )


@page()
async def show(rt: Runtime, visit: Visit) -> Answer:
    """One profile: its tokens, what waits for it, its default options."""
    return await _page(rt, visit)


@page()
async def picture(rt: Runtime, visit: Visit) -> Answer:
    """The account's picture, as it lies here. Its address changes with it."""
    found = avatars.read(rt, visit.params["profileId"])
    if found is None:
        raise NotFound("There is no picture of this profile.")
    return pictures.answer(visit, found)


@page()
async def rename(rt: Runtime, visit: Visit) -> Answer:
    """Another label."""
    profile_id, name = visit.params["profileId"], visit.form.text("name")
    try:
        await rt.write_soon(profiles.rename, profile_id, name)
    except InvalidRequest as error:
        return await _page(rt, visit, name=name, errors=forms.field_errors(error))
    return visit.go(f"/profiles/{profile_id}", status=f"The profile is now called “{name.strip()}”.")


@page()
async def set_options(rt: Runtime, visit: Visit) -> Answer:
    """Other default options: all of them, as the form shows them."""
    profile = profiles.get(rt.reader, visit.params["profileId"])
    given = option_fields.read(visit.form, profile.provider)
    try:
        profile_options.check(rt, profile, given)  # here, where its words are those of the dashboard
        await rt.write_soon(profile_options.replace_options, profile.id, given)
    except InvalidRequest as error:
        return await _page(rt, visit, options=given, options_error=error)
    told = "The default options are saved. They apply to posts that are made from now on."
    return visit.go(f"/profiles/{profile.id}", status=told)


@page()
async def create_board(rt: Runtime, visit: Visit) -> Answer:
    """A new board of a Pinterest account; the one of that name if there is one."""
    profile_id, name, secret = visit.params["profileId"], visit.form.text("board"), visit.form.ticked("secret")
    create = partial(pinterest_boards.create_board, rt, profile_id, name, secret=secret, door=Door.DASHBOARD)
    try:
        made = await asyncio.to_thread(create)
    except InvalidRequest as error:
        return await _page(rt, visit, errors=forms.field_errors(error))
    done = "is created" if made.is_new else "exists already"
    return visit.go(f"/profiles/{profile_id}", status=f"The board “{made.board.name}” {done}.")


@page()
async def create_section(rt: Runtime, visit: Visit) -> Answer:
    """A new section of one of its boards."""
    profile_id, name, board_id = visit.params["profileId"], visit.form.text("section"), visit.form.text("of")

    def create() -> CreatedSection:
        listed = pinterest_boards.list_lately(rt, profile_id, None, Door.DASHBOARD)
        board = next((one.board for one in listed if one.board.id == board_id), None)
        if board is None:
            raise InvalidRequest.at("of", message="is not one of this account's boards")
        return pinterest_boards.create_section(rt, profile_id, board, name, Door.DASHBOARD)

    try:
        made = await asyncio.to_thread(create)
    except InvalidRequest as error:
        return await _page(rt, visit, errors=forms.field_errors(error))
    done = "is created" if made.is_new else "exists already"
    return visit.go(f"/profiles/{profile_id}", status=f"The section “{made.section.name}” {done}.")


async def _page(
    rt: Runtime,
    visit: Visit,
    *,
    name: str | None = None,
    errors: dict[str, str] | None = None,
    options: dict[str, Any] | None = None,
    options_error: InvalidRequest | None = None,
) -> Answer:
    """The page, with what was typed where something is wrong with it."""
    row = profiles.of_owner(rt.reader, visit.params["profileId"])
    shown = json.loads(row["options"]) if options is None else options
    wrong = option_fields.errors_of(row["provider"], options_error.errors) if options_error else {}
    # A page that refreshes itself shows what waits; its options stay as they are in the browser.
    asks = row["status"] == ProfileStatus.ACTIVE and not visit.is_fragment
    known = await network_choices.of_profile(rt, profiles.get(rt.reader, row["id"]), shown) if asks else None
    limits = rt.providers[row["provider"]].app_limits()
    problem = None
    if options_error is not None:
        problem = "The options were not saved: see the fields below." if wrong else options_error.detail
    return visit.show(
        "profile.html",
        http_status=400 if errors or options_error else 200,
        profile=row,
        label=rt.providers[row["provider"]].label,
        picture=avatars.versions(rt).get(row["id"]),
        health=token_health.look(rt, row, Door.DASHBOARD),
        queue=profile_queue.look(rt, row["id"]),
        account_facts=rt.providers[row["provider"]].account_facts(json.loads(row["facts"])),
        app_limits=limits,
        name=row["name"] if name is None else name,
        errors=errors or {},
        problem=problem,
        options=[
            one
            for one in option_fields.fields(
                row["provider"], shown, errors=wrong, known=known, defaults=option_words.UNAUDITED if limits else {}
            ).values()
            if one.is_given or not one.of_one_post
        ],
        known=known,
        has_boards=row["provider"] == Pinterest.name,
        permalink=f"/profiles/{row['id']}",
    )
