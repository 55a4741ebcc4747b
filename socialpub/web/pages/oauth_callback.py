"""`/oauth/{provider}/callback`: the browser comes back from a network's consent page.

Whoever reads over a shoulder, in a history or in a log of ours learns nothing from it: the page shows neither the code
nor the state, is kept nowhere, and tells no other page where it came from.
"""

import asyncio
from urllib.parse import parse_qsl

from socialpub.accounts import connect, profiles
from socialpub.core.errors import NotFound, OperatorError
from socialpub.runtime import Runtime
from socialpub.web.endpoint import Answer, Request, endpoint
from socialpub.web.request import Header

PRIVATE: tuple[Header, ...] = ((b"cache-control", b"no-store"), (b"referrer-policy", b"no-referrer"))
MOST_PARAMETERS = 50


@endpoint(scope=None)
async def callback(rt: Runtime, caller: None, request: Request) -> Answer:  # noqa: ARG001
    """Finish the attempt that this browser was sent away for."""
    from socialpub.web.pages import pages

    provider = rt.providers.get(request.path_params["provider"])
    if provider is None:
        raise NotFound("There is no network of this name.")
    headers = (*PRIVATE, *pages.HEADERS)
    if request.method == "HEAD":
        return Answer(200, b"", headers, pages.HTML)  # somebody looks whether the address exists: no consent is spent
    try:
        query = dict(parse_qsl(request.query_string.decode("latin-1"), True, max_num_fields=MOST_PARAMETERS))
        # It asks the network, which may take a minute; everybody else is answered meanwhile.
        finished = await asyncio.to_thread(connect.finish, rt, provider.name, query)
    except ValueError:
        raise NotFound("There are more parameters here than any network sends.") from None
    except connect.UnknownState as error:
        request.app.rates.count_guess(request.client_address)
        return Answer(400, pages.not_connected(provider.label, error), headers, pages.HTML)
    except OperatorError as error:
        return Answer(400, pages.not_connected(provider.label, error), headers, pages.HTML)
    profile = profiles.find(rt.reader, finished.profile_id)
    assert profile is not None
    account = f"@{profile.username}" if profile.username else f"“{profile.name}”"  # TikTok tells no handle
    return Answer(200, pages.connected(provider.label, account, profile.name, finished), headers, pages.HTML)
