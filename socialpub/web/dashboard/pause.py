"""`/system/pause`, `/system/resume`, `/system/try-held`: whether anything is published."""

from socialpub.accounts import restored_keys
from socialpub.core.errors import Conflict
from socialpub.db import appliance_state
from socialpub.ops import resume_sentences
from socialpub.publishing import deliveries, resume
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.dashboard.page import page
from socialpub.web.dashboard.visit import Visit

SENT = "nothing"
"""The value of the choice that is the owner's word: the original sent nothing since the backup."""


@page()
async def pause(rt: Runtime, visit: Visit) -> Answer:
    """From now on nothing starts."""
    await rt.write_soon(deliveries.pause)
    said = "Publishing is paused. Calls in progress are finished; nothing else starts. The API goes on accepting posts."
    return visit.go("/system", status=said)


@page()
async def resume_form(rt: Runtime, visit: Visit) -> Answer:
    """What going on will mean, and after a restore the choice that only the owner can make."""
    return await _ask(rt, visit)


@page()
async def submit(rt: Runtime, visit: Visit) -> Answer:
    """Deliveries start again."""
    if appliance_state.paused_at(rt.reader) is None:
        raise Conflict("Publishing is not paused.")
    restored, choice = appliance_state.restored_from(rt.reader) is not None, visit.form.text("original")
    if restored and choice not in (SENT, "maybe"):
        return await _ask(rt, visit, problem="Say first what the original did since the backup was made.")
    resumed = await rt.write_soon(resume.resume, nothing_was_sent=restored and choice == SENT)
    too_late = resume_sentences.too_late(resumed.too_late, rt.settings)
    said = [*resume_sentences.results(resumed), *([too_late] if too_late else [])]
    return visit.go("/system", status=" ".join(said))


@page()
async def try_held(rt: Runtime, visit: Visit) -> Answer:
    """Networks that refuse this app are asked again at once."""
    held = await rt.write_soon(resume.try_held)
    said = "The next delivery to each held network is tried now. Look here again in a minute."
    return visit.go("/system", status=said if held else "No network refuses this app any more.")


async def _ask(rt: Runtime, visit: Visit, problem: str | None = None) -> Answer:
    if appliance_state.paused_at(rt.reader) is None:
        return visit.go("/system", status="Publishing is not paused.")
    outlook = await rt.read_aside(lambda reader: resume.outlook(rt, reader))
    return visit.show(
        "resume.html",
        http_status=400 if problem else 200,
        outlook=outlook,
        too_late=resume_sentences.too_late(outlook.too_late, rt.settings),
        still_scheduled=resume_sentences.STILL_SCHEDULED,
        valid_keys=restored_keys.undecided(rt.reader, rt.stamp()),
        sentences=resume_sentences,
        problem=problem,
    )
