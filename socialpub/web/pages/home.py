"""`/`: where to go from here, and the file by which TikTok verifies a domain."""

from typing import NamedTuple

import orjson

from socialpub.runtime import Runtime
from socialpub.web.http.answer import Answer
from socialpub.web.http.endpoint import endpoint
from socialpub.web.http.request import Request
from socialpub.web.pages import pages


class HomeLink(NamedTuple):
    name: str
    """In the JSON."""
    path: str
    label: str
    meaning: str


LINKS = (
    HomeLink("reference", "/api/v1/openapi-docs", "Reference", "every address of the API, to read and to try"),
    HomeLink("openapi", "/api/v1/openapi-docs?format=json", "OpenAPI document", "the same as JSON, for generators"),
    HomeLink("readiness", "/readyz", "Readiness", "whether the appliance works, or the reasons why not"),
)


@endpoint(scope=None)
async def show_home(rt: Runtime, caller: None, request: Request) -> Answer:  # noqa: ARG001
    """Links to what a stranger may see: a page for a browser, JSON for everybody else."""
    base_url = rt.settings.base_url
    if request.prefers_page():
        return Answer(200, pages.home(base_url, LINKS), pages.HEADERS, pages.HTML)
    shown = {"name": "socialpub", **{link.name: base_url + link.path for link in LINKS}}
    return Answer(200, orjson.dumps(shown), ((b"vary", b"Accept"),))


@endpoint(scope=None)
async def show_tiktok_verification(rt: Runtime, caller: None, request: Request) -> Answer:  # noqa: ARG001
    """The content of `[providers.tiktok] verification_file`, at the site's root and under the media prefix."""
    content = rt.settings.providers.tiktok.verification_content
    return Answer(200, content.encode(), content_type=b"text/plain; charset=utf-8")
