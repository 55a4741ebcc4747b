"""Connecting an account in the browser, renewing its tokens, and ending the connection."""

import asyncio
from functools import partial

from socialpub.accounts import connect, profiles, questions, renewal
from socialpub.accounts.connect import Begun
from socialpub.accounts.remedies import Door
from socialpub.core.errors import NotFound
from socialpub.db.models import ProfileStatus
from socialpub.publishing import profile_queue
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.dashboard.page import page
from socialpub.web.dashboard.visit import Visit


@page()
async def connect_new(rt: Runtime, visit: Visit) -> Answer:
    """On to the network's consent page, for an account of the owner's choice."""
    provider_name = visit.params["provider"]
    if provider_name not in rt.providers:
        raise NotFound("There is no network of this name.")
    begun = await asyncio.to_thread(connect.begin, rt, provider_name, door=Door.DASHBOARD)
    return _leave(rt, visit, provider_name, begun)


@page()
async def connect_again(rt: Runtime, visit: Visit) -> Answer:
    """The same, for the very account of this profile."""
    profile = profiles.get(rt.reader, visit.params["profileId"])
    begin = partial(connect.begin, profile_id=profile.id, door=Door.DASHBOARD)
    begun = await asyncio.to_thread(begin, rt, profile.provider)
    return _leave(rt, visit, profile.provider, begun)


@page()
async def refresh(rt: Runtime, visit: Visit) -> Answer:
    """New tokens now, without the owner's consent."""
    profile = profiles.get(rt.reader, visit.params["profileId"])

    def renew() -> None:
        with questions.explained(rt, profile, "The tokens could not be renewed.", Door.DASHBOARD):
            renewal.renew(rt, profile.id)

    await asyncio.to_thread(renew)
    return visit.go(f"/profiles/{profile.id}", status=f"“{profile.name}” has a new access token.")


@page()
async def confirm_disconnect(rt: Runtime, visit: Visit) -> Answer:
    """What disconnecting would do, before it is done."""
    row = profiles.of_owner(rt.reader, visit.params["profileId"])
    if row["status"] == ProfileStatus.DISCONNECTED:
        return visit.go(f"/profiles/{row['id']}")
    return visit.show(
        "disconnect.html",
        profile=row,
        label=rt.providers[row["provider"]].label,
        queue=profile_queue.look(rt, row["id"]),
    )


@page()
async def disconnect(rt: Runtime, visit: Visit) -> Answer:
    """The end of the connection."""
    profile = profiles.get(rt.reader, visit.params["profileId"])
    await rt.write_soon(profiles.disconnect, profile.id)
    told = f"“{profile.name}” is disconnected: nothing is sent with its tokens any more."
    return visit.go(f"/profiles/{profile.id}", status=told)


def _leave(rt: Runtime, visit: Visit, provider_name: str, begun: Begun) -> Answer:
    """A page that goes on to the network by itself.

    Not a redirect: browsers hold the whole way on which a form's redirects lead against `form-action`, and where a
    network leads from its consent page (its sign-in, its site for a country) nobody knows beforehand.
    """
    label = rt.providers[provider_name].label
    visit.headers.append((b"referrer-policy", b"no-referrer"))
    return visit.show("to_consent.html", label=label, begun=begun)
