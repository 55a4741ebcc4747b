"""The pages people look at, from templates; everything that a post brings along is escaped."""

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

SOURCES = (
    "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""What a page may load, and that no other page may frame it."""
HEADERS = {
    "content-security-policy": f"{SOURCES}; form-action 'self'",
    "cache-control": "no-store",
}
HERE = Path(__file__).parent / "templates"


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


def render_template(template: str, **facts: Any) -> str:
    return _environment().get_template(template).render(**facts)


def page(template: str, status: int = 200, **facts: Any) -> HTMLResponse:
    return HTMLResponse(render_template(template, **facts), status, HEADERS)


@cache
def stylesheet() -> bytes:
    return (HERE / "sandbox.css").read_bytes()
