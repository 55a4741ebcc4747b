"""Somebody who posts to the sandbox's TikTok with a token."""

from typing import Any
from urllib.parse import urlsplit

from httpx2 import Response
from starlette.testclient import TestClient

from socialpub.sandbox import World
from socialpub.sandbox.tiktok.apps import SCOPES

FILM = b"\x00\x00\x00\x18ftypisom" + bytes(988)
"""It begins like an MP4; nobody could play it."""


class TikToker:
    def __init__(
        self, web: TestClient, world: World, username: str = "demo", scopes: tuple[str, ...] = SCOPES, **grant: Any
    ) -> None:
        self.web = web
        self.token = world.tiktok.grant(username, scopes, **grant)["accessToken"]
        found = world.tiktok.account_named(username)
        assert found is not None
        self.user = found

    def call(self, path: str, body: Any = None, method: str = "POST", **how: Any) -> Response:
        how = how if body is None else {"json": body, **how}
        return self.web.request(method, f"/tiktok/v2{path}", headers={"authorization": f"Bearer {self.token}"}, **how)

    def creator(self) -> Response:
        return self.call("/post/publish/creator_info/query/", {})

    def begin(self, size: int = len(FILM), chunk_size: int | None = None, count: int = 1, **info: Any) -> Response:
        """`video/init` of a file upload."""
        source = {
            "source": "FILE_UPLOAD",
            "video_size": size,
            "chunk_size": size if chunk_size is None else chunk_size,
            "total_chunk_count": count,
        }
        post_info = {"title": "A film", "privacy_level": "SELF_ONLY"} | info
        return self.call("/post/publish/video/init/", {"post_info": post_info, "source_info": source})

    def draft(self, size: int = len(FILM)) -> Response:
        source = {"source": "FILE_UPLOAD", "video_size": size, "chunk_size": size, "total_chunk_count": 1}
        return self.call("/post/publish/inbox/video/init/", {"source_info": source})

    def pull(self, url: str, **info: Any) -> Response:
        post_info = {"title": "A film", "privacy_level": "SELF_ONLY"} | info
        source = {"source": "PULL_FROM_URL", "video_url": url}
        return self.call("/post/publish/video/init/", {"post_info": post_info, "source_info": source})

    def photos(self, *urls: str, mode: str = "DIRECT_POST", cover: int = 0, **info: Any) -> Response:
        source = {"source": "PULL_FROM_URL", "photo_images": list(urls), "photo_cover_index": cover}
        post_info = {"title": "Photos", "privacy_level": "SELF_ONLY"} | info
        body = {"media_type": "PHOTO", "post_mode": mode, "post_info": post_info, "source_info": source}
        return self.call("/post/publish/content/init/", body)

    def put(self, begun: Response, data: bytes, first: int = 0, total: int | None = None, **headers: str) -> Response:
        """One chunk to the URL that an init answered."""
        url = begun.json()["data"]["upload_url"]
        parts = urlsplit(url)
        told = {
            "content-type": "video/mp4",
            "content-range": f"bytes {first}-{first + len(data) - 1}/{len(data) if total is None else total}",
        } | {name.replace("_", "-"): value for name, value in headers.items()}
        return self.web.put(f"{parts.path}?{parts.query}", content=data, headers=told)

    def status(self, publish_id: str) -> Any:
        """The data of the answer."""
        answer = self.look(publish_id)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    def look(self, publish_id: str) -> Response:
        return self.call("/post/publish/status/fetch/", {"publish_id": publish_id})

    def post(self, data: bytes = FILM, **info: Any) -> str:
        """Begun and uploaded, not yet processed; the publish_id."""
        begun = self.begin(len(data), **info)
        assert self.put(begun, data).status_code == 201
        return publish_id(begun)


def publish_id(begun: Response) -> str:
    assert begun.json()["error"]["code"] == "ok", begun.text
    return str(begun.json()["data"]["publish_id"])


def code(answer: Response) -> str:
    return str(answer.json()["error"]["code"])
