"""`/oauth/{provider}/callback`: the browser returns from the consent page of a network.

The code and the state must not leak. The page does not show them, is not cached and sends no referrer.
"""

import asyncio
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from socialpub.accounts import consents, profiles
from socialpub.accounts.connect import Connected
from socialpub.accounts.remedies import Surface
from socialpub.core.errors import NotFound, OperatorError
from socialpub.providers.oauth import OAuth
from socialpub.runtime import Runtime
from socialpub.web.dashboard.browser.visit import Visit, read_visit
from socialpub.web.http import client_address
from socialpub.web.http.endpoint import public
from socialpub.web.http.responses import HTML
from socialpub.web.pages import pages

PRIVATE = {"cache-control": "no-store", "referrer-policy": "no-referrer"}
MAX_PARAMETERS = 50


@public
async def callback(rt: Runtime, request: Request) -> Response:
    """Finish the connection for which this browser was sent to the network."""
    provider = rt.providers.get(request.path_params["provider"])
    if provider is None or not isinstance(provider.auth, OAuth):
        raise NotFound("There is no network with this name.")
    headers = {**PRIVATE, **pages.HEADERS}
    if request.method == "HEAD":
        return Response(headers=headers, media_type=HTML)  # a check whether the URL exists must not use up a consent
    try:
        query = dict(parse_qsl(request.scope["query_string"].decode("latin-1"), True, max_num_fields=MAX_PARAMETERS))
    except ValueError:
        raise NotFound("The URL contains more parameters than a network sends.") from None
    finished: Connected | OperatorError
    try:
        # The call to the network may take a minute and would block the event loop.
        finished = await asyncio.to_thread(consents.finish, rt, provider.name, query)
    except OperatorError as error:
        if isinstance(error, consents.UnknownState):
            request.app.state.rate_limits.count_guess(client_address.of_request(request))
        finished = error
    origin, place = consents.find_by_state(rt.db, provider.name, query), None
    visit: Visit | None = None
    if origin is not None and origin.door == Surface.DASHBOARD:
        profile_id = origin.profile_id or origin.expected_profile_id
        place = f"/profiles/{profile_id}" if profile_id else "/profiles"
        visit = await read_visit(request)
        visit.headers += PRIVATE.items()
        visit = visit if visit.session is not None else None
    way_back = rt.settings.base_url + place if place else None
    if isinstance(finished, OperatorError):
        if visit is not None:
            return visit.go(place or "/", alert=finished.sentence)
        values = {"label": provider.label, "error": finished, "way_back": way_back}
        return pages.respond("not_connected.html", 400, headers, **values)
    profile = profiles.get(rt.db, finished.profile_id)
    if visit is not None:
        return visit.go(place or "/", status=finished.sentence(profile, provider.label))
    values = {"account": profiles.handle(profile), "profile_name": profile.name, "finished": finished}
    return pages.respond("connected.html", 200, headers, label=provider.label, way_back=way_back, **values)
