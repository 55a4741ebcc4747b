"""The form on every feed: what the next call of the network meets."""

from collections.abc import Callable
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from socialpub.sandbox.faults import FaultScript
from socialpub.sandbox.network import SandboxNetwork

FaultChoices = dict[str, tuple[str, str, Callable[[FaultScript], FaultScript]]]
"""By the form's value: endpoint, words that follow "The next call", what to script."""


def labels(choices: FaultChoices) -> dict[str, str]:
    return {key: words for key, (_, words, _) in choices.items()}


def chosen_label(choices: FaultChoices, request: Request) -> str:
    """What was scripted a moment ago, for the page that the form leads back to."""
    chosen = choices.get(request.query_params.get("scripted", ""))
    return chosen[1] if chosen else ""


async def script(network: SandboxNetwork, choices: FaultChoices, request: Request) -> Response:
    chosen = parse_qs((await request.body()).decode("utf-8", "replace")).get("fault", [""])[0]
    if chosen not in choices:
        return RedirectResponse("../feed", 303)
    endpoint, _, add_fault = choices[chosen]
    add_fault(network.next(endpoint))
    return RedirectResponse(f"../feed?scripted={chosen}", 303)
