"""Somebody who pins on the sandbox's Pinterest with a token."""

from typing import Any
from urllib.parse import urlsplit

from httpx2 import Response
from starlette.testclient import TestClient

from socialpub.sandbox import World
from socialpub.sandbox.pinterest.network import ALL_SCOPES
from tests.sandbox.client import SandboxClient
from tests.sandbox.files import MP4, base64_text, picture


class PinterestClient(SandboxClient):
    def __init__(
        self,
        web: TestClient,
        world: World,
        username: str = "demo",
        scopes: tuple[str, ...] = ALL_SCOPES,
    ) -> None:
        super().__init__(web, "/pinterest/v5", world.pinterest.grant(username, scopes))
        self.board_id = world.pinterest.boards_of(username)[0].id

    def pin(self, source: dict[str, Any] | None = None, **body: Any) -> Response:
        media_source = source or {
            "source_type": "image_base64",
            "content_type": "image/jpeg",
            "data": base64_text(picture()),
        }
        return self.call("POST", "/pins", json={"board_id": self.board_id, "media_source": media_source, **body})

    def pins(self, **query: str) -> Any:
        answer = self.call("GET", f"/boards/{self.board_id}/pins", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()["items"]

    def register(self) -> Any:
        return self.call("POST", "/media", json={"media_type": "video"}).json()

    def upload(self, registered: Any, data: bytes = MP4, **fields: str) -> Response:
        """The form of the upload host, with fields changed or (empty) left out."""
        form = {name: value for name, value in (registered["upload_parameters"] | fields).items() if value}
        return self.web.post(urlsplit(registered["upload_url"]).path, data=form, files={"file": ("video.mp4", data)})

    def video(self, data: bytes = MP4) -> str:
        """Registered and uploaded, not yet processed; the media id."""
        registered = self.register()
        assert self.upload(registered, data).status_code == 204
        return str(registered["media_id"])

    def look(self, media_id: str) -> str:
        return str(self.call("GET", f"/media/{media_id}").json()["status"])


def refusal(answer: Response) -> tuple[int, int]:
    """Status and code."""
    return answer.status_code, answer.json()["code"]
