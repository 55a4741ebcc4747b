"""The owner's browser: sees a network's consent page on the sandbox, decides, and is sent back."""

import re
from collections.abc import Iterable
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import World, create_app


class Browser:
    def __init__(self, world: World) -> None:
        self._web = TestClient(create_app(world), follow_redirects=False)

    def decides(self, url: str, account: str = "demo", decision: str = "allow", *, without: Iterable[str] = ()) -> str:
        """The address that the page sends the browser back to; `without` are permissions that are not given."""
        parts = urlsplit(url)
        asked = dict(parse_qsl(parts.query))
        asked["scope"] = _less(asked["scope"], without)
        page_url = f"{parts.path}?{urlencode(asked, quote_via=quote)}"
        page = self._web.get(page_url)
        if page.status_code == 404:
            pytest.skip(f"the sandbox has no page at {parts.path}")
        assert page.status_code == 200, page.text
        given = dict.fromkeys(re.findall(r'name="(grant:[^"]+)"', page.text), "on")
        answer = self._web.post(page_url, data={**given, "account": account, "decision": decision})
        assert answer.status_code in (302, 303), answer.text
        return str(answer.headers["location"])


def _less(scopes: str, without: Iterable[str]) -> str:
    mark = "," if "," in scopes else " "
    return mark.join(scope for scope in scopes.split(mark) if scope not in set(without))


def query_of(address: str) -> dict[str, str]:
    """What the browser brings back."""
    return dict(parse_qsl(urlsplit(address).query))
