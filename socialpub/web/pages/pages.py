"""The pages outside of the dashboard: home, the API's reference, problems, the end of a consent.

Served by us alone: no foreign host, and no script but that of the reference's viewer.
"""

import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import orjson
from markupsafe import Markup, escape

from socialpub.core import errors
from socialpub.core.errors import NotFound
from socialpub.runtime import Runtime
from socialpub.web.http import files
from socialpub.web.http.answer import Answer, Header
from socialpub.web.http.endpoint import endpoint
from socialpub.web.http.request import Request

_BACKTICKS = re.compile(r"`([^`]+)`")
_BOLD = re.compile(r"\*\*([^*]+)\*\*")

HTML = b"text/html; charset=utf-8"
HEADERS: tuple[Header, ...] = (
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"vary", b"Accept"),
)


def reference_values(document: dict[str, Any]) -> dict[str, Any]:
    schemas = document["components"]["schemas"]
    options = [field["$ref"].rpartition("/")[2] for field in schemas["ProviderOptions"]["properties"].values()]
    objects = [name for name in schemas if name not in options]
    return {"document": document, "schemas": schemas, "options": options, "objects": objects}


def render(template: str, **values: Any) -> bytes:
    """Return a page of this package's templates."""
    return _renderer()(template, values).encode()


@cache
def _renderer() -> Callable[[str, dict[str, Any]], str]:
    # jinja2 costs memory: only an appliance whose pages are opened pays for it.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("socialpub.web.pages"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["kind"] = _kind
    environment.filters["code"] = _code
    environment.filters["prose"] = _prose
    environment.filters["anchor"] = _anchor
    return lambda template, values: environment.get_template(template).render(values)


def _code(text: str) -> Markup:
    """What stands between backticks, shown as code, and between pairs of stars, shown bold."""
    shown = _BACKTICKS.sub(r"<code>\1</code>", str(escape(text)))
    return Markup(_BOLD.sub(r"<strong>\1</strong>", shown))  # noqa: S704  # escaped right here


def _prose(text: str) -> Markup:
    """Paragraphs, and what stands between fences as it is."""
    blocks = []
    for block in text.split("\n\n"):
        if block.startswith("```"):
            blocks.append(Markup("<pre>{}</pre>").format("\n".join(block.splitlines()[1:-1])))
        else:
            blocks.append(Markup("<p>{}</p>").format(_code(block)))
    return Markup("\n").join(blocks)


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")


def _kind(schema: dict[str, Any]) -> Markup:
    """A schema in a few words; what has a name leads to it."""
    if "$ref" in schema:
        return Markup('<a href="#{0}">{0}</a>').format(schema["$ref"].rpartition("/")[2])
    if "enum" in schema:
        return escape(" | ".join(str(value) for value in schema["enum"]))
    kinds = schema.get("type", "any")
    words = escape(" or ".join(kinds) if isinstance(kinds, list) else kinds)
    if kinds == "array":
        words = Markup("array of {}").format(_kind(schema["items"]))
    limits = [
        text.format(schema[name])
        for name, text in (
            ("format", "{}"),
            ("minimum", "from {}"),
            ("exclusiveMinimum", "above {}"),
            ("maximum", "to {}"),
            ("minLength", "at least {} characters"),
            ("maxLength", "at most {} characters"),
            ("minItems", "at least {} items"),
            ("maxItems", "at most {} items"),
        )
        if name in schema
    ]
    return Markup(", ").join([words, *limits])


# --- the reference ----------------------------------------------------------------------------------------------------

Build = Callable[[str], dict[str, Any]]
"""Makes the OpenAPI document of an appliance that is reached at this base_url."""

_NONCE = b"the-nonce-of-this-answer"
"""Marks the place in the rendered page. The real value replaces it when the page is sent."""

# The viewer makes style elements, four of them, and writes style attributes into markup. The elements get a nonce; for
# attributes there is none, and a list of their hashes would end with every new version. A style can load nothing here.
_POLICY = "; ".join((
    "default-src 'none'",
    "script-src 'self'",
    "style-src-elem 'self' 'nonce-{nonce}'",
    "style-src-attr 'unsafe-inline'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
))  # fmt: skip


class ReferencePages:
    """The two pages of one set of routes. Rendered on the first request: it takes as long as a hundred requests."""

    def __init__(self, build: Build) -> None:
        self.plain = cache(
            lambda base_url: Answer(200, render("reference.html", **reference_values(build(base_url))), HEADERS, HTML)
        )
        self._viewer = cache(lambda base_url, root: _render_viewer(build(base_url), root))

    def viewer(self, base_url: str, relative_root: str) -> Answer:
        """The viewer, with a nonce that no other answer has."""
        nonce = secrets.token_urlsafe(16)
        page = self._viewer(base_url, relative_root).replace(_NONCE, nonce.encode())
        return Answer(200, page, _viewer_headers(nonce), HTML)


def _render_viewer(document: dict[str, Any], root: str) -> bytes:
    return render(
        "viewer.html",
        **reference_values(document),
        root=root,
        nonce=_NONCE.decode(),
        style=files.static_url("reference.css"),
        start=files.static_url("reference.js"),
        viewer=files.vendored_url("@scalar/api-reference", "standalone.js"),
    )


def _viewer_headers(nonce: str) -> tuple[Header, ...]:
    return (
        (b"content-security-policy", _POLICY.format(nonce=nonce).encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
        (b"cache-control", b"no-store"),
        (b"vary", b"Accept"),
    )


# --- home -------------------------------------------------------------------------------------------------------------


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
        return Answer(200, render("home.html", base_url=base_url, links=LINKS), HEADERS, HTML)
    shown = {"name": "socialpub", **{link.name: base_url + link.path for link in LINKS}}
    return Answer(200, orjson.dumps(shown), ((b"vary", b"Accept"),))


@endpoint(scope=None)
async def show_tiktok_verification(rt: Runtime, caller: None, request: Request) -> Answer:  # noqa: ARG001
    """The content of `[providers.tiktok] verification_file`, at the site's root and under the media prefix."""
    content = rt.settings.providers.tiktok.verification_content
    return Answer(200, content.encode(), content_type=b"text/plain; charset=utf-8")


# --- pages about problems --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProblemPage:
    meaning: str
    remedy: str


PROBLEM_PAGES: dict[str, ProblemPage] = {
    "invalid-request": ProblemPage(
        "Something in the request cannot be accepted. `errors` names every field that fails, each with its path.",
        "Change the fields that `errors` names and send the request again. Sent unchanged it fails again.",
    ),
    "unauthorized": ProblemPage(
        "The request has no API key, or one that is not known, has expired or was revoked.",
        "Send `Authorization: Bearer <API_KEY>`. The owner makes keys in the dashboard, under Keys, where "
        "they are listed as well, or with `socialpub admin create-key NAME` and `socialpub admin list-keys`.",
    ),
    "forbidden": ProblemPage(
        "The key may read but not change anything; or a signed URL is not valid for this use, or its time is over.",
        "Use a key with the scope `write`; ask for a new URL and use it unchanged.",
    ),
    "not-found": ProblemPage(
        "There is nothing at this address: no such resource, or one outside of the key's scope.",
        "Check the id and the path, and whether the key is limited to other providers or profiles.",
    ),
    "method-not-allowed": ProblemPage(
        "The address exists but does not support this method.", "Use one of the methods that the header `Allow` names."
    ),
    "request-timeout": ProblemPage(
        "The body of the request was not complete within 20 seconds. A file that is uploaded may take longer.",
        "Send the whole request again. Nothing of it was done.",
    ),
    "conflict": ProblemPage(
        "The request is right, but what it is about is in a state that does not allow it: a post that has started can "
        "be neither changed nor canceled, a completed upload takes no more bytes, an Idempotency-Key belongs to "
        "another request or to one that still runs.",
        "Read the resource and decide by its state.",
    ),
    "payload-too-large": ProblemPage(
        "The body is larger than allowed. JSON may have 1 MiB, and 8 KiB without a valid key or session. An upload may "
        "have the bytes that were reserved for it.",
        "Send media as an upload instead of inside the JSON, and reserve uploads with their exact size.",
    ),
    "unsupported-media-type": ProblemPage(
        "This address does not read bodies of this `Content-Type`.",
        "Send `application/json`; creating a post takes `multipart/form-data` as well.",
    ),
    "rate-limited": ProblemPage(
        "Too many requests came with this key in one minute, or too many wrong keys from one address.",
        "Wait as many seconds as `Retry-After` says. `GET /api/v1/posts/{postId}?wait=30` needs no polling loop.",
    ),
    "headers-too-large": ProblemPage(
        "The request line and the headers have more than 32 KiB together.",
        "Send less in the address and in headers, and what is long in the body. Look for a cookie or a token that a "
        "proxy adds.",
    ),
    "internal-error": ProblemPage(
        "The appliance failed unexpectedly. Nothing of the request was kept unless `detail` says so.",
        "Look for the request's id (`X-Request-Id`) in the log; the line says what happened.",
    ),
    "unavailable": ProblemPage(
        "The appliance cannot do this at the moment. Its disk is full, its media quota is used up, or its database is "
        "locked. Or request bodies use all the memory that they may use, or it is being stopped.",
        "Send the same request again after the seconds of `Retry-After`. If that keeps failing, look at `/readyz`; "
        "`detail` names a quota that is used up.",
    ),
}

_KINDS = {kind.slug: kind for kind in errors.ALL}


@endpoint(scope=None)
async def show_problem(rt: Runtime, caller: None, request: Request) -> Answer:  # noqa: ARG001
    slug = request.path_params["slug"]
    if slug not in PROBLEM_PAGES:
        raise NotFound("There is no problem of this name.")
    return Answer(200, render("problem.html", kind=_KINDS[slug], page=PROBLEM_PAGES[slug]), HEADERS, HTML)
