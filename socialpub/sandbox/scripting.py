"""The little form on every feed: what the next call of the network meets."""

from collections.abc import Callable
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from socialpub.sandbox.faults import Upcoming
from socialpub.sandbox.network import Network

Scripts = dict[str, tuple[str, str, Callable[[Upcoming], Upcoming]]]
"""By the form's value: endpoint, words that follow "The next call", what to arrange."""


def offered(scripts: Scripts) -> dict[str, str]:
    return {key: words for key, (_, words, _) in scripts.items()}


def noted(scripts: Scripts, request: Request) -> str:
    """What was arranged a moment ago, for the page that the form leads back to."""
    chosen = scripts.get(request.query_params.get("scripted", ""))
    return chosen[1] if chosen else ""


async def arrange(network: Network, scripts: Scripts, request: Request) -> Response:
    chosen = parse_qs((await request.body()).decode("utf-8", "replace")).get("fault", [""])[0]
    if chosen not in scripts:
        return RedirectResponse("../feed", 303)
    endpoint, _, script = scripts[chosen]
    script(network.next(endpoint))
    return RedirectResponse(f"../feed?scripted={chosen}", 303)
