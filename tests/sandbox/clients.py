"""Callers of the sandbox's networks, each with a token of one account."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

from httpx2 import Response
from starlette.testclient import TestClient

from socialpub.sandbox import World
from socialpub.sandbox.tiktok.api import TikTokSandbox
from tests.sandbox.files import MP4, PNG, base64_text, picture


class SandboxClient:
    def __init__(self, web: TestClient, base: str, granted: dict[str, str]) -> None:
        self.web = web
        self.base = base
        self.token = granted["accessToken"]
        self.refresh_token = granted.get("refreshToken")

    def call(self, method: str, path: str, *, headers: dict[str, str] | None = None, **how: Any) -> Response:
        sent = {"authorization": f"Bearer {self.token}"} | (headers or {})
        return self.web.request(method, self.base + path, headers=sent, **how)


def redirect_parameters(answer: Response) -> dict[str, str]:
    """What the browser brings back to the app."""
    assert answer.status_code == 302, answer.text
    return {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["location"]).query).items()}


class XClient(SandboxClient):
    def __init__(
        self, web: TestClient, world: World, username: str = "demo", scopes: tuple[str, ...] | None = None
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


class TikTokClient(SandboxClient):
    def __init__(
        self,
        web: TestClient,
        world: World,
        username: str = "demo",
        scopes: tuple[str, ...] = tuple(TikTokSandbox.scopes),
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
        post_info = {"title": "A video", "privacy_level": "SELF_ONLY"} | info
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


class PinterestClient(SandboxClient):
    def __init__(
        self,
        web: TestClient,
        world: World,
        username: str = "demo",
        scopes: tuple[str, ...] | None = None,
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


POST = "app.bsky.feed.post"
BLUESKY_CREATED_AT = "2026-11-22T16:50:23.000Z"


class BlueskyClient(SandboxClient):
    """A client with a session of an app password."""

    def __init__(self, web: TestClient, world: World, username: str = "demo") -> None:
        super().__init__(web, "/bluesky", world.bluesky.grant(username))
        self.account = world.bluesky.existing_account(username)
        self._key = 0

    def key(self) -> str:
        """A record key, greater than the ones before."""
        self._key += 1
        digits = "234567abcdefghijklmnopqrstuvwxyz"
        return "3n2w2w2w2w" + "".join(digits[self._key >> shift & 31] for shift in (10, 5, 0))

    def procedure(self, method: str, body: Any = None, **how: Any) -> Response:
        return self.call("POST", f"/xrpc/com.atproto.{method}", **({} if body is None else {"json": body}), **how)

    def look(self, method: str, **query: Any) -> Response:
        """A query without a token."""
        return self.web.get(f"{self.base}/xrpc/com.atproto.{method}", params=query)

    def record(self, text: str = "Hello", **fields: Any) -> dict[str, Any]:
        return {"$type": POST, "text": text, "createdAt": BLUESKY_CREATED_AT} | fields

    def put(self, record: dict[str, Any], rkey: str | None = None, **fields: Any) -> Response:
        """`putRecord` that creates the post or finds it there."""
        body = {"repo": self.account.did, "collection": POST, "rkey": rkey or self.key(), "swapRecord": None}
        return self.procedure("repo.putRecord", {**body, "record": record, **fields})

    def post(self, text: str = "Hello", **fields: Any) -> Response:
        return self.put(self.record(text, **fields))

    def get(self, rkey: str) -> Response:
        return self.look("repo.getRecord", repo=self.account.did, collection=POST, rkey=rkey)

    def upload(self, data: bytes = PNG, mime_type: str = "image/png") -> dict[str, Any]:
        """The blob."""
        answer = self.procedure("repo.uploadBlob", content=data, headers={"content-type": mime_type})
        assert answer.status_code == 200, answer.text
        blob: dict[str, Any] = answer.json()["blob"]
        return blob


def xrpc_error(answer: Response) -> tuple[int, str]:
    """Status and name of an error of Bluesky."""
    return answer.status_code, str(answer.json()["error"])


def sign_in_to_bluesky(
    web: TestClient, identifier: str = "demo.test", password: str = "demo-demo-demo-demo"
) -> Response:
    """Sign in with the app password of the account `demo.test`."""
    return web.post(
        "/bluesky/xrpc/com.atproto.server.createSession", json={"identifier": identifier, "password": password}
    )
