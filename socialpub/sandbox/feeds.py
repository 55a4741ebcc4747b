"""The public pages of the networks: a feed with a form that scripts the next fault, and a page for each post."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from socialpub.sandbox.endpoint import OWN_FORM
from socialpub.sandbox.media import sniff
from socialpub.sandbox.network import SandboxNetwork
from socialpub.sandbox.pages import avatar, read_form

NetworkT = TypeVar("NetworkT", bound=SandboxNetwork[Any])

SHOWN_POSTS = 100
MEDIA_HEADERS = {
    "content-security-policy": "sandbox; default-src 'none'",
    "x-content-type-options": "nosniff",
    "accept-ranges": "bytes",
}

FaultChoices = Mapping[str, tuple[str, str, str, dict[str, Any]]]
"""By the form's value: endpoint, words that follow "The next call", the fault and its arguments."""


class NetworkPages(ABC, Generic[NetworkT]):
    """A feed with a form that scripts the next fault, the media of its posts, and a page for each post."""

    name: ClassVar[str]
    faults: ClassVar[FaultChoices]

    def routes(self) -> list[Route]:
        """Return the routes below the network's path. Its own come last, since they would match others."""
        return [
            Route("/feed", self.show_feed),
            Route("/feed/faults", self.script_fault, methods=["POST"], middleware=[OWN_FORM]),
            Route("/media/{id}", self.show_media),
            Route("/avatars/{name}.png", show_avatar),
            *self.own_routes(),
        ]

    @abstractmethod
    def own_routes(self) -> list[Route]: ...

    @abstractmethod
    async def show_feed(self, request: Request) -> Response: ...

    def network(self, request: Request) -> NetworkT:
        network: NetworkT = request.app.state.world.networks[self.name]
        return network

    def fault_form(self, request: Request) -> dict[str, Any]:
        """Return the data of the form. `scripted` is the fault that was just scripted."""
        words = {key: choice[1] for key, choice in self.faults.items()}
        return {"scripts": words, "scripted": words.get(request.query_params.get("scripted", ""), "")}

    async def script_fault(self, request: Request) -> Response:
        chosen = (await read_form(request)).get("fault", "")
        if chosen not in self.faults:
            return RedirectResponse("../feed", 303)
        endpoint, _, fault, how = self.faults[chosen]
        getattr(self.network(request).next(endpoint), fault)(**how)
        return RedirectResponse(f"../feed?scripted={chosen}", 303)

    async def show_media(self, request: Request) -> Response:
        """Return the bytes, or the range that was requested. Only images and videos have a type."""
        data = self.network(request).cache.get(request.path_params["id"])
        if data is None:
            return Response(status_code=404)
        begin, end = _range(request.headers.get("range", ""), len(data))
        kind = sniff(data) or "application/octet-stream"
        if (begin, end) == (0, len(data)):
            return Response(data, 200, MEDIA_HEADERS, kind)
        headers = {**MEDIA_HEADERS, "content-range": f"bytes {begin}-{end - 1}/{len(data)}"}
        return Response(data[begin:end], 206, headers, kind)


def _range(header: str, size: int) -> tuple[int, int]:
    """Return the one range of a `Range` header, or everything if there is none or it does not fit."""
    unit, _, asked = header.partition("=")
    first, dash, last = asked.partition("-")
    if unit != "bytes" or not dash or not (first + last).isdecimal():
        return 0, size
    begin = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    return (begin, end) if begin < end else (0, size)


def show_avatar(request: Request) -> Response:
    return avatar(request.path_params["name"].removesuffix("_normal"))
