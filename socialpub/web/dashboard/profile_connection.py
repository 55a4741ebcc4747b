"""Connecting an account in the browser, renewing its tokens, and ending the connection."""

import asyncio
from functools import partial

from socialpub.accounts import account_data, connect, consents, profiles, questions, redirect_addresses, renewal
from socialpub.accounts.connect import Begun
from socialpub.accounts.profiles import Connected
from socialpub.accounts.remedies import Door
from socialpub.core.errors import NotFound, OperatorError
from socialpub.db.models import ProfileStatus
from socialpub.db.transaction import Row
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
    """New tokens now, without the owner's consent, and the account data again."""
    profile = profiles.get(rt.reader, visit.params["profileId"])
    renewable = profile.refresh_token is not None

    def renew() -> list[str]:
        if renewable:
            with questions.explained(rt, profile, "The tokens could not be renewed.", Door.DASHBOARD):
                renewal.renew(rt, profile.id)
        with questions.explained(rt, profile, "The account data could not be fetched.", Door.DASHBOARD):
            return account_data.fetch(rt, profile.id)

    changes = await asyncio.to_thread(renew)
    done = "has a new access token" if renewable else "has its account data fetched again"
    return visit.go(f"/profiles/{profile.id}", status=" ".join([f"“{profile.name}” {done}.", *changes]))


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


@page()
async def waiting(rt: Runtime, visit: Visit) -> Answer:
    """An attempt that waits for the owner's consent, with the field for the address at which the browser ended."""
    row = _attempt(rt, visit)
    outcome = consents.outcome(rt, row["id"])
    if outcome is None:
        return _show_waiting(rt, visit, row)
    if visit.is_fragment:
        visit.headers.append((b"hx-redirect", visit.href(visit.path).encode()))  # the whole page, with its outcome
        return Answer(200, b"", tuple(visit.headers))
    if isinstance(outcome, consents.Failed):
        return visit.go("/profiles", alert=f"{outcome.message} {outcome.hint or ''}".strip())
    return _connected(rt, visit, outcome)


@page()
async def paste(rt: Runtime, visit: Visit) -> Answer:
    """Finish this very attempt with the address at which the browser ended."""
    row = _attempt(rt, visit)
    try:
        query = redirect_addresses.read_answer(visit.form.text("address"), row["redirect_uri"])
        finished = await asyncio.to_thread(connect.finish, rt, row["provider"], query, row["id"])
    except OperatorError as error:
        if consents.outcome(rt, row["id"]) is not None:
            return visit.go("/profiles", alert=error.sentence)
        return _show_waiting(rt, visit, row, problem=error.sentence)
    return _connected(rt, visit, finished)


def _attempt(rt: Runtime, visit: Visit) -> Row:
    row = consents.find(rt.reader, visit.params["consentId"])
    if row is None or consents.door_of(row) is not Door.DASHBOARD:
        raise NotFound("There is no attempt to connect at this address.")
    return row


def _connected(rt: Runtime, visit: Visit, finished: Connected) -> Answer:
    profile = profiles.get(rt.reader, finished.profile_id)
    label = rt.providers[profile.provider].label
    return visit.go(f"/profiles/{profile.id}", status=profiles.connected_sentence(profile, label, finished))


def _show_waiting(rt: Runtime, visit: Visit, row: Row, *, problem: str | None = None) -> Answer:
    provider = rt.providers[row["provider"]]
    return visit.show(
        "to_consent.html",
        http_status=400 if problem else 200,
        problem=problem,
        label=provider.label,
        rule=redirect_addresses.check(rt.settings, provider),
        attempt=row["id"],
        redirect_uri=row["redirect_uri"],
        consent_url=None,
        goes_on=False,
    )


def _leave(rt: Runtime, visit: Visit, provider_name: str, begun: Begun) -> Answer:
    """The page that waits for the consent. Where the browser comes back here by itself, the page goes on to the
    network by itself.

    Not a redirect: browsers apply `form-action` to every step of a form's redirects, and a network's consent page may
    lead anywhere (its sign-in, its site for a country).
    """
    provider = rt.providers[provider_name]
    rule = redirect_addresses.check(rt.settings, provider)
    accepted = rule is None or rule.remedy is None
    return visit.show(
        "to_consent.html",
        label=provider.label,
        rule=rule,
        attempt=begun.id,
        redirect_uri=begun.redirect_uri,
        consent_url=begun.url,
        goes_on=accepted and redirect_addresses.comes_back(rt.settings, provider_name),
    )
