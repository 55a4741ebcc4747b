"""The uploads of the script of Compose."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest

from socialpub.core import units
from socialpub.publishing.posts.drafts import Draft, DraftMedia, check_draft
from tests.integration.uploads.caller import Reply
from tests.samples import media
from tests.support.appliance import OWNER
from tests.support.select import select_value
from tests.support.tab import Tab

RESERVE, COMPLETE = "/compose/uploads", "/compose/uploads/complete"


def send(browser: Tab, path: str, body: Any, **headers: str) -> Reply:
    told = {
        "content-type": "application/json",
        "accept": "application/json",
        "x-csrf-token": browser.open("/system").token,
    }
    return browser.ask("POST", path, json.dumps(body).encode(), told | headers)


def reserve(browser: Tab, content: bytes, mime_type: str = "image/jpeg", name: str = "view.jpg") -> Reply:
    return send(browser, RESERVE, {"fileName": name, "mimeType": mime_type, "fileSize": len(content)})


def put(browser: Tab, reservation: Any, content: bytes) -> Reply:
    address = urljoin(f"http://testserver{RESERVE}", reservation["uploadUrl"])
    return browser.ask("PUT", address, content, {**reservation["requiredHeaders"], "content-length": str(len(content))})


@pytest.fixture
def photo(tmp_path: Path) -> bytes:
    return media.jpeg(tmp_path / "a.jpg", 64, 48).read_bytes()


def test_a_file_is_reserved_sent_and_completed(owner, photo):
    reservation = reserve(owner, photo).data
    assert reservation["uploadUrl"].startswith("../storage/uploads/")
    assert put(owner, reservation, photo).status == 200
    artifact = send(owner, COMPLETE, {"artifactId": reservation["artifactId"]}).data
    assert (artifact["kind"], artifact["fileName"], artifact["sizeBytes"]) == ("image", "view.jpg", len(photo))
    base = f"http://testserver{COMPLETE}"
    assert owner.ask("GET", urljoin(base, artifact["url"])).body == photo
    assert owner.ask("GET", urljoin(base, artifact["thumbnailUrl"])).headers["content-type"] == "image/jpeg"
    again = send(owner, COMPLETE, {"artifactId": reservation["artifactId"]})
    assert again.data["artifactId"] == artifact["artifactId"], "a draft that is restored asks again"


def test_a_video_with_a_position_has_a_note_with_the_remedy(owner, rt, tmp_path, x):
    place = (("location", "+48.1351+011.5820/"),)
    path = media.video_mp4(tmp_path / "a.mp4", 1.0, tags=place)
    clip = path.read_bytes()
    reservation = reserve(owner, clip, "video/mp4", "a.mp4").data
    put(owner, reservation, clip)
    artifact = send(owner, COMPLETE, {"artifactId": reservation["artifactId"]}).data
    assert "contain a position" in artifact["note"] and "-map_metadata -1" in artifact["note"]
    draft = Draft("Waves", None, (x,), (DraftMedia(artifact["artifactId"]),))
    (checked,) = check_draft(rt, rt.db, draft, OWNER)
    assert f"Media item 1: {artifact['note']}" in checked.notes
    owner.open("/compose")
    page = owner.press("Check", {"Text": "Waves", "Media": path})
    assert page.text.count("contain a position") == 2, "at the file and among the notes"


@pytest.mark.parametrize(
    ("name", "mime_type", "size", "says"),
    [
        ("a.mp4", "video/mp4", 160 << 20, f"The file must be at most {units.size(150 << 20)}"),
        ("a" * 300, "image/png", 10, "fileName may have at most 255 characters."),
    ],
)
def test_a_refused_file_gets_a_reason(owner, name, mime_type, size, says):
    reply = send(owner, RESERVE, {"fileName": name, "mimeType": mime_type, "fileSize": size})
    assert (reply.status, reply.headers["content-type"]) == (400, "application/problem+json")
    assert reply.json()["detail"].startswith(says)


@pytest.mark.parametrize(
    ("name", "declared", "make", "mime_type"),
    [
        ("a.jpg", "image/jpeg", media.webp, "image/webp"),
        ("a.mov", "video/quicktime", media.video_mp4, "video/mp4"),
        ("a.m4v", "video/x-m4v", media.video_m4v, "video/mp4"),
        ("a.jfif", "", media.jpeg, "image/jpeg"),
        ("a.apng", "image/apng", media.png_animated, "image/png"),
        ("a", "text/plain", media.video_matroska, "video/webm"),
    ],
)
def test_the_bytes_decide_and_not_the_name(owner, rt, x, tmp_path, name, declared, make, mime_type):
    path = make(tmp_path / name)
    content = path.read_bytes()
    reservation = reserve(owner, content, declared, name).data
    assert put(owner, reservation, content).status == 200
    artifact = send(owner, COMPLETE, {"artifactId": reservation["artifactId"]}).data
    assert (artifact["mimeType"], artifact["fileName"]) == (mime_type, name)
    owner.open("/compose")
    page = owner.press("Check", {"Text": "With a file", "Media": path})
    assert f"{name}, " in page.text
    assert select_value(rt.db, "SELECT count(*) FROM artifact WHERE mime_type = ?", (mime_type,)) == 2


def test_a_removed_upload_must_be_chosen_again(owner):
    reply = send(owner, COMPLETE, {"artifactId": "01a12f57-1a80-7074-9d08-074dfc0027ba"})
    assert (reply.status, reply.json()["detail"]) == (400, "The uploaded file is no longer available. Choose it again.")


def test_an_invalid_request_is_refused(owner):
    told = {"content-type": "application/json", "x-csrf-token": owner.open("/system").token}
    assert owner.ask("POST", RESERVE, b"{", told).status == 400
    assert owner.ask("POST", RESERVE, b'{"fileName":"a"}', told).status == 400
    assert owner.ask("POST", RESERVE, b" " * 70_000, told).status == 413


def test_a_file_of_another_kind_is_refused_with_the_conversion(owner, tmp_path):
    content = media.video_matroska(tmp_path / "a.mkv", 0.25, codec="libx264", audio_codec="aac").read_bytes()
    reservation = reserve(owner, content, "video/webm", "a.webm").data
    put(owner, reservation, content)
    reply = send(owner, COMPLETE, {"artifactId": reservation["artifactId"]})
    assert reply.status == 400
    assert reply.json()["detail"].endswith("Matroska with h264 and aac. Convert it to MP4 with H.264 and AAC.")
