"""The pages that the appliance shows in a browser: the API's reference, and what a problem means.

Served by us alone: no foreign host, and no script but that of the reference's viewer.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from markupsafe import Markup, escape

from socialpub.accounts.profiles import Connected
from socialpub.core.errors import OperatorError, SocialpubError
from socialpub.web.http.answer import Header

_BACKTICKS = re.compile(r"`([^`]+)`")
_BOLD = re.compile(r"\*\*([^*]+)\*\*")

HTML = b"text/html; charset=utf-8"
HEADERS: tuple[Header, ...] = (
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"vary", b"Accept"),
)


def reference(document: dict[str, Any]) -> bytes:
    """The OpenAPI document as something to read."""
    return _render("reference.html", **_reference_values(document))


def viewer(document: dict[str, Any], **values: str) -> bytes:
    """Return the same with JavaScript: a viewer that makes calls. Without it the page shows what `reference` does.

    `root` is the way up from the page, `nonce` what its policy asks of styles; `style`, `start` and `viewer` are the
    addresses of what the page loads, below `root`.
    """
    return _render("viewer.html", **_reference_values(document), **values)


def _reference_values(document: dict[str, Any]) -> dict[str, Any]:
    schemas = document["components"]["schemas"]
    options = [field["$ref"].rpartition("/")[2] for field in schemas["ProviderOptions"]["properties"].values()]
    objects = [name for name in schemas if name not in options]
    return {"document": document, "schemas": schemas, "options": options, "objects": objects}


def home(base_url: str, links: Sequence[object]) -> bytes:
    """Where to go from `/`."""
    return _render("home.html", base_url=base_url, links=links)


def problem(kind: type[SocialpubError], meaning: str, remedy: str) -> bytes:
    """What a problem means and what to do about it."""
    return _render("problem.html", kind=kind, meaning=meaning, remedy=remedy)


def failure(error: SocialpubError) -> bytes:
    """A failure outside of the API, for a browser."""
    return _render("failure.html", error=error)


def connected(label: str, account: str, name: str, finished: Connected, way_back: str | None) -> bytes:
    """An account was connected in this browser. `way_back`: the address to go on at, where there is one."""
    values = {"label": label, "account": account, "profile_name": name, "finished": finished, "way_back": way_back}
    return _render("connected.html", **values)


def not_connected(label: str, error: OperatorError, way_back: str | None = None) -> bytes:
    """Why no account was connected, and what to do."""
    return _render("not_connected.html", label=label, error=error, way_back=way_back)


def _render(template: str, **values: Any) -> bytes:
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
    """A name as the target of a link, which holds no space."""
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
