"""Somebody who calls the sandbox's X with a token."""

from typing import Any

from httpx2 import Response
from starlette.testclient import TestClient

from socialpub.sandbox import World
from socialpub.sandbox.x.network import ALL_SCOPES
from tests.sandbox.client import SandboxClient
from tests.sandbox.files import MP4, PNG


class XClient(SandboxClient):
    def __init__(
        self, web: TestClient, world: World, username: str = "demo", scopes: tuple[str, ...] = ALL_SCOPES
    ) -> None:
        super().__init__(web, "/x", world.x.grant(username, scopes))
        self.account = world.x.existing_account(username)

    def post(self, text: str | None = None, **body: Any) -> Response:
        return self.call("POST", "/2/tweets", json=({} if text is None else {"text": text}) | body)

    def posts(self, **query: str) -> Response:
        return self.call("GET", f"/2/users/{self.account.id}/tweets", params=query)

    def upload(self, data: bytes = PNG, category: str = "tweet_image", mime_type: str = "image/png") -> str:
        """One-shot; the media id."""
        answer = self.call(
            "POST", "/2/media/upload", data={"media_category": category}, files={"media": ("file", data, mime_type)}
        )
        assert answer.status_code == 200, answer.text
        return str(answer.json()["data"]["id"])

    def initialize(self, total_bytes: int, category: str = "tweet_video", mime_type: str = "video/mp4") -> str:
        body = {"media_type": mime_type, "total_bytes": total_bytes, "media_category": category}
        answer = self.call("POST", "/2/media/upload/initialize", json=body)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["data"]["id"])

    def append(self, media_id: str, index: int, data: bytes) -> Response:
        return self.call(
            "POST",
            f"/2/media/upload/{media_id}/append",
            data={"segment_index": str(index)},
            files={"media": ("chunk", data, "application/octet-stream")},
        )

    def finalize(self, media_id: str) -> Response:
        return self.call("POST", f"/2/media/upload/{media_id}/finalize", json={})

    def look(self, media_id: str) -> Response:
        return self.call("GET", "/2/media/upload", params={"command": "STATUS", "media_id": media_id})

    def video(self, data: bytes = MP4, category: str = "tweet_video", mime_type: str = "video/mp4") -> str:
        """Upload in segments and finalize. It is not yet processed."""
        media_id = self.initialize(len(data), category, mime_type)
        self.append(media_id, 0, data)
        assert self.finalize(media_id).status_code == 200
        return media_id


def message(answer: Response) -> str:
    """What an X error says, wherever it says it."""
    body = answer.json()
    for error in body.get("errors", []):
        return str(error["message"] if isinstance(error, dict) else error)
    return str(body.get("detail") or body.get("error_description"))
