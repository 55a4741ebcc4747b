"""`/compose/check`: what the page's script asks while somebody writes: counters, problems, notes and previews, as parts
of the page. Nothing is stored."""

import asyncio
from dataclasses import dataclass, field

from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.dashboard import compose_check, compose_form, compose_page, compose_previews
from socialpub.web.dashboard.compose_page import Said
from socialpub.web.dashboard.page import page
from socialpub.web.dashboard.visit import Visit

AT_ONCE = 2
"""A text of a hundred thousand characters takes a second of a thread; a script of ours asks one question at a time."""


@dataclass(slots=True)
class LiveChecks:
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))


@page()
async def show(rt: Runtime, visit: Visit) -> Answer:
    """What there is to say of the form as it stands."""
    form = compose_form.read(visit.form, visit.zone)
    said = Said()
    async with rt.memory(LiveChecks).turns:
        if form.profiles and (form.body.strip() or form.media):
            # Before there is anything to publish, that there is nothing is no news.
            around = await compose_page.look(rt, refresh=False, only=form.profiles)
            said = (await compose_check.check(rt, form, around, [], editing=visit.form.text("editing"))).said
        found = await compose_previews.of_form(rt, form)
    return visit.show("_checked.html", form=form, said=said, found=found)
