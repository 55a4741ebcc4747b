"""`/oauth/{provider}/callback`: the browser returns from the consent page of a network.

The code and the state must not leak. The page does not show them, is not cached and sends no referrer.
"""

import asyncio
from urllib.parse import parse_qsl

from socialpub.accounts import connect, profiles
from socialpub.accounts.hints import Surface
from socialpub.accounts.profiles import Connected
from socialpub.core.errors import NotFound, OperatorError
from socialpub.providers.oauth import OAuth
from socialpub.runtime import Runtime
from socialpub.web.dashboard.browser.visit import Visit, read_visit
from socialpub.web.http.answer import Answer, Header
from socialpub.web.http.endpoint import endpoint
from socialpub.web.http.request import Request
from socialpub.web.pages import pages

PRIVATE: tuple[Header, ...] = ((b"cache-control", b"no-store"), (b"referrer-policy", b"no-referrer"))
MAX_PARAMETERS = 50


@endpoint(scope=None)
async def callback(rt: Runtime, caller: None, request: Request) -> Answer:  # noqa: ARG001
    """Finish the connection for which this browser was sent to the network."""
    provider = rt.providers.get(request.path_params["provider"])
    if provider is None or not isinstance(provider.auth, OAuth):
        raise NotFound("There is no network with this name.")
    headers = (*PRIVATE, *pages.HEADERS)
    if request.method == "HEAD":
        return Answer(200, b"", headers, pages.HTML)  # a check whether the URL exists must not use up a consent
    try:
        query = dict(parse_qsl(request.query_string.decode("latin-1"), True, max_num_fields=MAX_PARAMETERS))
    except ValueError:
        raise NotFound("The URL contains more parameters than a network sends.") from None
    finished: Connected | OperatorError
    try:
        # The call to the network may take a minute and would block the event loop.
        finished = await asyncio.to_thread(connect.finish, rt, provider.name, query)
    except OperatorError as error:
        if isinstance(error, connect.UnknownState):
            request.state.rate_limits.count_guess(request.client_address)
        finished = error
    origin, place = connect.find_origin(rt, provider.name, query), None
    visit: Visit | None = None
    if origin is not None and origin.surface is Surface.DASHBOARD:
        place = f"/profiles/{origin.profile_id}" if origin.profile_id else "/profiles"
        visit = await read_visit(request)
        visit.headers += PRIVATE
        visit = visit if visit.session is not None else None
    way_back = rt.settings.base_url + place if place else None
    if isinstance(finished, OperatorError):
        if visit is not None:
            return visit.go(place or "/", alert=finished.sentence)
        page = pages.render("not_connected.html", label=provider.label, error=finished, way_back=way_back)
        return Answer(400, page, headers, pages.HTML)
    profile = profiles.get(rt.reader, finished.profile_id)
    if visit is not None:
        return visit.go(place or "/", status=profiles.connected_sentence(profile, provider.label, finished))
    values = {"account": profiles.handle(profile), "profile_name": profile.name, "finished": finished}
    page = pages.render("connected.html", label=provider.label, way_back=way_back, **values)
    return Answer(200, page, headers, pages.HTML)
