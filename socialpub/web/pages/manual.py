"""`/manual`: the operations manual as pages. They do not need a session, a script or another host.

The dashboard may be disabled, but the manual is always served: doctor and problem pages link to it.
"""

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from socialpub.core import manual
from socialpub.core.errors import NotFound
from socialpub.core.validation import nearest
from socialpub.runtime import Runtime
from socialpub.web.http.endpoint import public
from socialpub.web.http.responses import relative_root
from socialpub.web.pages import pages

if TYPE_CHECKING:
    from markdown_it.token import Token

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'"
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
    "referrer-policy": "same-origin",
}
IMAGE_HEADERS = {"x-content-type-options": "nosniff", "cache-control": "max-age=3600"}


class ManualSection(NamedTuple):
    level: int
    anchor: str
    title: str


class RenderedTopic(NamedTuple):
    title: str
    body: str
    """The text without the title."""
    sections: list[ManualSection]


@public
async def show_index(rt: Runtime, request: Request) -> Response:
    return _show(manual.INDEX, request)


@public
async def show_topic(rt: Runtime, request: Request) -> Response:
    name = request.path_params["topic"].removesuffix(".md")
    topics = manual.list_topics()
    if name != manual.INDEX and name not in topics:
        near = nearest(name, topics)
        raise NotFound(f"The manual does not contain this topic.{f' Did you mean {near}?' if near else ''}")
    return _show(name, request)


@public
async def show_image(rt: Runtime, request: Request) -> Response:
    image = manual.read_image(request.path_params["name"])
    if image is None:
        raise NotFound("The manual does not contain this image.")
    return Response(image, headers=IMAGE_HEADERS, media_type="image/png")


def _show(name: str, request: Request) -> Response:
    root = relative_root(request)
    topic, topics = _render(name, root), manual.list_topics().values()
    return pages.respond("manual.html", headers=HEADERS, name=name, topics=topics, topic=topic, root=root)


@cache
def _render(name: str, root: str) -> RenderedTopic:
    """Return a topic as HTML. `root` is the way up to the appliance's own `/`."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(manual.read_topic(name))
    sections = list(_add_anchors(tokens))
    for token in _all_tokens(tokens):
        for attribute in ("href", "src"):
            if attribute in token.attrs:
                token.attrs[attribute] = _address(str(token.attrs[attribute]), root)
    body = parser.renderer.render(tokens[3:], parser.options, {})
    # A table scrolls where it does not fit, and the keyboard must reach it.
    body = body.replace("<table>", '<div class="table" tabindex="0"><table>').replace("</table>", "</table></div>")
    return RenderedTopic(sections[0].title, body, sections[1:])


def _add_anchors(tokens: "list[Token]") -> Iterator[ManualSection]:
    for token, text in pairwise(tokens):
        if token.type == "heading_open":
            title = "".join(part.content for part in text.children or ())
            anchor = token.attrs["id"] = manual.anchor(title)
            yield ManualSection(int(token.tag[1:]), anchor, title)


def _all_tokens(tokens: "list[Token]") -> "Iterator[Token]":
    for token in tokens:
        yield token
        yield from token.children or ()


def _address(link: str, root: str) -> str:
    """Return a link between files (`backups.md#restore`) as a link between pages."""
    if link.startswith(("#", "https://")):
        return link
    name, mark, place = link.partition("#")
    name = name.removesuffix(".md")
    return f"{root}manual{'' if name == manual.INDEX else f'/{name}'}{mark}{place}"
