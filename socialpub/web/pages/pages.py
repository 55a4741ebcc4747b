"""The pages outside of the dashboard: home, the API reference, problems.

They load nothing from other hosts. Only the reference viewer uses a script.
"""

import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from socialpub.core import errors
from socialpub.core.errors import NotFound
from socialpub.runtime import Runtime
from socialpub.web.http import static
from socialpub.web.http.endpoint import public
from socialpub.web.http.responses import HTML, Headers, JSONResponse, prefers_page, relative_root

_BACKTICKS = re.compile(r"`([^`]+)`")
_FILE_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_BOLD = re.compile(r"\*\*([^*]+)\*\*")

HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "vary": "Accept",
}


def reference_values(document: dict[str, Any]) -> dict[str, Any]:
    schemas = document["components"]["schemas"]
    options = [field["$ref"].rpartition("/")[2] for field in schemas["ProviderOptions"]["properties"].values()]
    objects = [name for name in schemas if name not in options]
    return {"document": document, "schemas": schemas, "options": options, "objects": objects}


def render(template: str, **values: Any) -> str:
    return _renderer()(template, values)


def respond(template: str, status: int = 200, headers: Headers = HEADERS, **values: Any) -> Response:
    return Response(render(template, **values), status, headers, HTML)


@cache
def _renderer() -> Callable[[str, dict[str, Any]], str]:
    # jinja2 needs much memory, so only an appliance whose pages are opened imports it.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("socialpub.web.pages"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["kind"] = _kind
    environment.filters["code"] = _code
    environment.filters["prose"] = _prose
    environment.filters["anchor"] = lambda name: name.lower().replace(" ", "-")
    return lambda template, values: environment.get_template(template).render(values)


def _code(text: str) -> Markup:
    """Return the text with backticks as code and pairs of stars as bold."""
    escaped = _BACKTICKS.sub(r"<code>\1</code>", str(escape(text)))
    return Markup(_BOLD.sub(r"<strong>\1</strong>", escaped))  # noqa: S704  # escaped right here


def _prose(text: str) -> Markup:
    """Return the text as paragraphs and fenced blocks."""
    blocks = []
    for block in text.split("\n\n"):
        if block.startswith("```"):
            blocks.append(Markup("<pre>{}</pre>").format("\n".join(block.splitlines()[1:-1])))
        else:
            blocks.append(Markup("<p>{}</p>").format(_code(block)))
    return Markup("\n").join(blocks)


def _kind(schema: dict[str, Any]) -> Markup:
    """Return a short description of a schema, with links to named schemas."""
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

_NONCE = "the-nonce-of-this-response"
"""A placeholder in the rendered page. The response contains the real value."""

# The viewer creates four style elements and writes style attributes into markup. The elements get a nonce. Attributes
# cannot have a nonce, and their hashes change with every version. The rest of this policy lets styles load nothing.
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
    """The two pages of one set of routes, rendered on the first request: rendering takes as long as 100 requests."""

    def __init__(self, build: Callable[[str, tuple[str, ...]], dict[str, Any]]) -> None:
        """`build` returns the OpenAPI document for a base_url and the networks beyond the specification."""
        self._plain = cache(lambda *about: render("reference.html", **reference_values(build(*about))))
        self._viewer = cache(lambda *about, root: _render_viewer(build(*about), root))

    def plain(self, base_url: str, extensions: tuple[str, ...]) -> Response:
        return Response(self._plain(base_url, extensions), headers=HEADERS, media_type=HTML)

    def viewer(self, base_url: str, extensions: tuple[str, ...], root: str) -> Response:
        nonce = secrets.token_urlsafe(16)
        page = self._viewer(base_url, extensions, root=root).replace(_NONCE, nonce)
        headers = {
            "content-security-policy": _POLICY.format(nonce=nonce),
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cache-control": "no-store",
            "vary": "Accept",
        }
        return Response(page, headers=headers, media_type=HTML)


def _render_viewer(document: dict[str, Any], root: str) -> str:
    return render(
        "viewer.html",
        **reference_values(document),
        root=root,
        nonce=_NONCE,
        style=static.static_url("reference.css"),
        start=static.static_url("reference.js"),
        viewer=static.vendored_url("@scalar/api-reference", "standalone.js"),
    )


# --- home -------------------------------------------------------------------------------------------------------------


class HomeLink(NamedTuple):
    name: str
    """In the JSON."""
    path: str
    label: str
    meaning: str


LINKS = (
    HomeLink("reference", "/api/v1/openapi-docs", "API reference", "read about every endpoint and try it"),
    HomeLink(
        "openapi", "/api/v1/openapi-docs?format=json", "OpenAPI document", "the reference as JSON, for generators"
    ),
    HomeLink("manual", "/manual", "Manual", "how to install, use and operate this appliance"),
    HomeLink("readiness", "/readyz", "Readiness", "whether the appliance works, and the reasons if it does not"),
)


@public
async def show_home(rt: Runtime, request: Request) -> Response:
    """Return the public links: as a page for browsers, otherwise as JSON."""
    base_url = rt.settings.base_url
    if prefers_page(request):
        return respond("home.html", base_url=base_url, links=LINKS)
    document = {"name": "socialpub", **{link.name: base_url + link.path for link in LINKS}}
    return JSONResponse(document, headers={"vary": "Accept"})


@public
async def show_tiktok_verification(rt: Runtime, request: Request) -> Response:
    """Return the file with which TikTok verifies the domain. The owner puts it into data_dir."""
    name = request.path_params["name"]
    file = rt.settings.data_dir / f"tiktok{name}.txt"
    if not _FILE_NAME.fullmatch(name) or not file.is_file():
        raise NotFound("There is no such file.")
    return PlainTextResponse(file.read_text("utf-8").strip())


# --- pages about problems --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProblemPage:
    meaning: str
    remedy: str


PROBLEM_PAGES: dict[str, ProblemPage] = {
    "invalid-request": ProblemPage(
        "The request is not valid. `errors` lists every failing field with its path.",
        "Change the fields that `errors` lists, then send the request again.",
    ),
    "unauthorized": ProblemPage(
        "The request does not contain an API key, or the key is unknown, expired or revoked.",
        "Send `Authorization: Bearer <API_KEY>`. The owner creates and lists keys in the dashboard, under Keys. The "
        "commands are `socialpub admin create-key NAME` and `socialpub admin list-keys`.",
    ),
    "forbidden": ProblemPage(
        "The key may only read. Or a signed URL has expired, or is not valid for this request.",
        "Use a key with the scope `write`. For a signed URL, request a new URL and use it unchanged.",
    ),
    "not-found": ProblemPage(
        "The URL or the resource does not exist, or the resource is outside the scope of the key.",
        "Check the id and the path. Check whether the key is limited to other providers or profiles.",
    ),
    "method-not-allowed": ProblemPage(
        "The URL exists but does not support this method.", "Use one of the methods in the `Allow` header."
    ),
    "request-timeout": ProblemPage(
        "The request body was not complete within 20 seconds. This limit does not apply to file uploads.",
        "Send the whole request again. Nothing was changed.",
    ),
    "conflict": ProblemPage(
        "The request is valid, but the current state does not allow it. Publishing of the post may have started. The "
        "upload may be complete. The Idempotency-Key may belong to another request, or to a request that is running.",
        "Read the resource, then decide what to do from its state.",
    ),
    "payload-too-large": ProblemPage(
        "The request body is too large. The limit for JSON is 1 MiB, or 8 KiB without a valid key or session. The "
        "limit for an upload is its reserved size.",
        "Upload media instead of sending it inside the JSON. Reserve each upload with its exact size.",
    ),
    "unsupported-media-type": ProblemPage(
        "This URL does not accept this `Content-Type`.",
        "Send `application/json`. To create a post, you can also send `multipart/form-data`.",
    ),
    "rate-limited": ProblemPage(
        "The key sent too many requests in one minute, or reached its number of posts a day. Or the client's IP "
        "address sent too many wrong keys.",
        "Wait for the number of seconds in `Retry-After`. To avoid polling, use `GET /api/v1/posts/{postId}?wait=30`.",
    ),
    "headers-too-large": ProblemPage(
        "The request line and the headers together are larger than 32 KiB.",
        "Shorten the URL and the headers, and send long values in the body. Check whether a proxy adds a large cookie "
        "or token.",
    ),
    "internal-error": ProblemPage(
        "An unexpected error occurred. Nothing was changed unless `detail` says so.",
        "Search the log for the id of the request (`X-Request-Id`). The log line contains the cause.",
    ),
    "unavailable": ProblemPage(
        "The appliance cannot process the request at the moment. The disk or the media quota may be full, or the "
        "database may be locked. Request bodies may use all available memory. The appliance may be stopping.",
        "Wait for the number of seconds in `Retry-After`, then send the same request again. If the error persists, "
        "check `/readyz`. If a quota is full, `detail` identifies the quota.",
    ),
}

_KINDS = {kind.slug: kind for kind in errors.ALL}


@public
async def show_problem(rt: Runtime, request: Request) -> Response:
    slug = request.path_params["slug"]
    if slug not in PROBLEM_PAGES:
        raise NotFound("The appliance does not have a problem page with this name.")
    return respond("problem.html", kind=_KINDS[slug], page=PROBLEM_PAGES[slug], root=relative_root(request))
