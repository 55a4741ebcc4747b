"""A scripted Pinterest: each call gets the next response and is compared with Pinterest's document."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from socialpub.core.settings.networks import PinterestSection
from socialpub.providers.auth import Account
from socialpub.providers.base import Content, Job, MediaFile, Outcome
from socialpub.providers.pinterest import Pinterest
from socialpub.providers.responses import HttpResponse
from tests.support.scripted_calls import ScriptedCalls, SentCall, answer, counted, scripted_job
from tests.unit.providers.pinterest import official

API = "https://api.pinterest.com/v5"
STORAGE = "https://pinterest-media-upload.s3-accelerate.amazonaws.com/"
BOARD, SECTION, PIN, MEDIA = "2000000000000000001", "2100000000000000001", "4000000000000000001", "3000000000000000001"

SECTION_OF_THE_CONFIGURATION = PinterestSection(client_id="app", client_secret=SecretStr("app-secret"))
ADAPTER = Pinterest(SECTION_OF_THE_CONFIGURATION)


def error(status: int, code: Any, message: str = "No.", **headers: str) -> HttpResponse:
    return answer(status, {"code": code, "message": message}, **headers)


class CallOfPinterest(SentCall):
    @property
    def json(self) -> Any:
        return official.written(self.request.get("json"))


class Script(ScriptedCalls):
    """Compares each request with Pinterest's document."""

    def __init__(self, *answers: HttpResponse | Exception, api: str = API) -> None:
        super().__init__(*answers)
        self._api = api

    def read(self, method: str, url: str, request: dict[str, Any]) -> SentCall:
        call = CallOfPinterest(method, url.removeprefix(self._api), request)
        if url.startswith(self._api):
            assert official.complaints(method, call.path, request) == []
        return call


def image(path: Path, position: int = 0, data: bytes = b"\xff\xd8 image", **other: Any) -> MediaFile:
    file = path / f"image-{position}"
    file.write_bytes(data)
    facts = {"width": 1000, "height": 1500, "frames": 1}
    return replace(MediaFile(position, "image", "image/jpeg", len(data), file, "poster.jpg", facts=facts), **other)


def video(path: Path = Path("/media/video"), size_bytes: int = 2_500_000, **other: Any) -> MediaFile:
    facts = {"width": 1080, "height": 1920, "duration_seconds": 30.0, "frame_rate": 30.0, "has_audio": True}
    return replace(MediaFile(0, "video", "video/mp4", size_bytes, path, "studio.mp4", facts=facts), **other)


FIELDS_OF_A_JOB = frozenset({"memo", "seconds", "fit", "since", "back"})


def job(
    script: Script, *media: MediaFile, text: str = "", files: Mapping[str, MediaFile] | None = None, **more: Any
) -> Job:
    fields = {name: value for name, value in more.items() if name in FIELDS_OF_A_JOB}
    options = {"boardId": BOARD, **{name: value for name, value in more.items() if name not in FIELDS_OF_A_JOB}}
    account = Account("1000000000000000001", "studio_nord")
    return scripted_job(script, Content(text, media, files or {}), account, "pina_1", options, **fields)


def run(step: str, script: Script, *media: MediaFile, adapter: Pinterest = ADAPTER, **more: Any) -> Outcome:
    return counted(adapter.run(step, job(script, *media, **more)), more.get("back"))
