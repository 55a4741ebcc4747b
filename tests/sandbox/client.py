"""Somebody who calls one network of the sandbox with a token."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

from httpx2 import Response
from starlette.testclient import TestClient


class SandboxClient:
    def __init__(self, web: TestClient, base: str, granted: dict[str, str]) -> None:
        self.web = web
        self.base = base
        self.token = granted["accessToken"]
        self.refresh_token = granted.get("refreshToken")

    def call(self, method: str, path: str, **how: Any) -> Response:
        return self.web.request(method, self.base + path, headers={"authorization": f"Bearer {self.token}"}, **how)


def redirect_parameters(answer: Response) -> dict[str, str]:
    """What the browser brings back to the app."""
    assert answer.status_code == 302, answer.text
    return {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["location"]).query).items()}
