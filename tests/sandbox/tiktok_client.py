"""Somebody who posts to the sandbox's TikTok with a token."""

from typing import Any
from urllib.parse import urlsplit

from httpx2 import Response
from starlette.testclient import TestClient

from socialpub.sandbox import World
from socialpub.sandbox.oauth import TIKTOK_SCOPES
from tests.sandbox.client import SandboxClient
from tests.sandbox.files import MP4


class TikTokClient(SandboxClient):
    def __init__(
        self,
        web: TestClient,
        world: World,
        username: str = "demo",
        scopes: tuple[str, ...] = tuple(TIKTOK_SCOPES),
        **grant: Any,
    ) -> None:
        super().__init__(web, "/tiktok/v2", world.tiktok.grant(username, scopes, **grant))
        self.user = world.tiktok.existing_account(username)

    def ask(self, path: str, body: Any = None, **how: Any) -> Response:
        return self.call("POST", path, **(how if body is None else {"json": body, **how}))

    def creator(self) -> Response:
        return self.ask("/post/publish/creator_info/query/", {})

    def begin(self, size: int = len(MP4), chunk_size: int | None = None, count: int = 1, **info: Any) -> Response:
        """`video/init` of a file upload."""
        source = {
            "source": "FILE_UPLOAD",
            "video_size": size,
            "chunk_size": size if chunk_size is None else chunk_size,
            "total_chunk_count": count,
        }
        post_info = {"title": "A film", "privacy_level": "SELF_ONLY"} | info
        return self.ask("/post/publish/video/init/", {"post_info": post_info, "source_info": source})

    def draft(self, size: int = len(MP4)) -> Response:
        source = {"source": "FILE_UPLOAD", "video_size": size, "chunk_size": size, "total_chunk_count": 1}
        return self.ask("/post/publish/inbox/video/init/", {"source_info": source})

    def photos(self, *urls: str, mode: str = "DIRECT_POST", cover: int = 0, **info: Any) -> Response:
        source = {"source": "PULL_FROM_URL", "photo_images": list(urls), "photo_cover_index": cover}
        post_info = {"title": "Photos", "privacy_level": "SELF_ONLY"} | info
        body = {"media_type": "PHOTO", "post_mode": mode, "post_info": post_info, "source_info": source}
        return self.ask("/post/publish/content/init/", body)

    def put(self, begun: Response, data: bytes, first: int = 0, total: int | None = None, **headers: str) -> Response:
        """One chunk to the URL that an init answered."""
        url = begun.json()["data"]["upload_url"]
        parts = urlsplit(url)
        sent = {
            "content-type": "video/mp4",
            "content-range": f"bytes {first}-{first + len(data) - 1}/{len(data) if total is None else total}",
        } | {name.replace("_", "-"): value for name, value in headers.items()}
        return self.web.put(f"{parts.path}?{parts.query}", content=data, headers=sent)

    def status(self, publish_id: str) -> Any:
        """The data of the answer."""
        answer = self.look(publish_id)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    def look(self, publish_id: str) -> Response:
        return self.ask("/post/publish/status/fetch/", {"publish_id": publish_id})

    def post(self, data: bytes = MP4, **info: Any) -> str:
        """Begun and uploaded, not yet processed; the publish_id."""
        begun = self.begin(len(data), **info)
        assert self.put(begun, data).status_code == 201
        return publish_id(begun)


def publish_id(begun: Response) -> str:
    assert begun.json()["error"]["code"] == "ok", begun.text
    return str(begun.json()["data"]["publish_id"])


def error_code(answer: Response) -> str:
    return str(answer.json()["error"]["code"])
