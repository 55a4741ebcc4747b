"""Pictures of accounts are fetched by the appliance, and only their pixels are kept."""

import io
import socket
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from socialpub.accounts import avatars, profiles
from socialpub.db import appliance_state
from socialpub.db.models import ProfileRow
from socialpub.providers.http import Http
from socialpub.providers.responses import HttpResponse
from socialpub.runtime import Runtime
from tests.samples import media
from tests.support.appliance import add_profile
from tests.support.scripted_http import Answering

WEEK = 7 * 86400.0
CDN = "https://pictures.test/demo.png"


@pytest.fixture
def http(tmp_path: Path) -> Answering:
    """A host of pictures."""
    return Answering(HttpResponse(200, {}, media.png(tmp_path / "a.png", 400, 300).read_bytes()))


@pytest.fixture
def appliance_options(http: Answering) -> dict[str, Any]:
    return {"http": http}


@pytest.fixture(autouse=True)
def addresses(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What names stand for."""
    known = {"pictures.test": "93.184.216.34", "inside.test": "192.168.1.20"}

    def look_up(host: str, port: int, **_: Any) -> list[Any]:
        if host in known or host.replace(".", "").isdigit() or ":" in host:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (known.get(host, host), port))]
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(Http, "for_network", lambda self, network: self)
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    return known


def pictured(rt: Runtime, url: str = CDN, **columns: Any) -> str:
    return add_profile(rt, picture_url=url, **columns)


def sides(picture: bytes | None) -> tuple[str | None, tuple[int, int]]:
    assert picture is not None
    shown = Image.open(io.BytesIO(picture))
    return shown.format, shown.size


def test_an_avatar_is_fetched_once_a_week_and_kept_small(rt, http, clock):
    profile = pictured(rt)
    assert avatars.load(rt, profile) is None
    assert avatars.fetch_next(rt) == profile
    assert sides(avatars.load(rt, profile)) == ("JPEG", (96, 72))
    assert list(avatars.list_versions(rt)) == [profile]
    clock.forward(WEEK - 1)
    assert avatars.fetch_next(rt) is None
    clock.forward(1)
    assert avatars.fetch_next(rt) == profile
    assert [one["address"] for one in http.calls] == ["93.184.216.34"] * 2, "the address that was looked at"


def test_a_proxy_resolves_names(rt, http, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.test:3128")
    pictured(rt)
    avatars.fetch_next(rt)
    assert http.calls[0]["address"] is None


def test_another_address_is_another_avatar(rt, http):
    profile = pictured(rt)
    avatars.fetch_next(rt)
    before = avatars.list_versions(rt)
    rt.db.write(lambda tx: tx.update(ProfileRow, profile, picture_url="https://pictures.test/new.png"))
    assert avatars.list_versions(rt) == {}
    assert avatars.fetch_next(rt) == profile
    assert avatars.list_versions(rt) != before
    assert len(list(rt.settings.avatars_dir.iterdir())) == 1, "the former one is gone"


def test_an_avatar_that_fits_is_rewritten_anyway(rt, http, tmp_path):
    small = media.jpeg(tmp_path / "small.jpg", 90, 90).read_bytes()
    http._answers = [HttpResponse(200, {}, small)]
    profile = pictured(rt)
    avatars.fetch_next(rt)
    kept = avatars.load(rt, profile)
    assert sides(kept) == ("JPEG", (90, 90))
    assert b"Exif" in small
    assert b"Exif" not in (kept or b"")


@pytest.mark.parametrize(
    "answer",
    [
        HttpResponse(404, {}, b"gone"),
        HttpResponse(302, {"location": "http://127.0.0.1/"}, b""),
        HttpResponse(200, {}, b"<svg xmlns='http://www.w3.org/2000/svg'/>"),
        HttpResponse(200, {}, b"\xff\xd8\xff" + b"x" * 2000),
        HttpResponse(200, {}, b"\x89PNG\r\n\x1a\n" + bytes(1024 * 1024)),
    ],
    ids=["gone", "elsewhere", "drawing", "broken", "large"],
)
def test_a_file_that_is_no_image_is_not_fetched_again_for_an_hour(rt, http, clock, answer):
    good = http._answers[0]
    http._answers = [answer]
    profile = pictured(rt)
    assert avatars.fetch_next(rt) == profile
    assert avatars.load(rt, profile) is None
    assert list(rt.settings.avatars_dir.glob("*")) == []
    clock.forward(3599)
    assert avatars.fetch_next(rt) is None
    clock.forward(1)
    http._answers = [good]
    assert avatars.fetch_next(rt) == profile
    assert avatars.load(rt, profile) is not None


def test_an_expired_address_does_not_remove_the_stored_avatar(rt, http, clock):
    profile = pictured(rt)
    avatars.fetch_next(rt)
    http._answers = [HttpResponse(403, {}, b"expired")]
    clock.forward(WEEK)
    avatars.fetch_next(rt)
    assert avatars.load(rt, profile) is not None
    clock.forward(7200)
    assert avatars.fetch_next(rt) is None, "it is asked for again in a week"


@pytest.mark.parametrize(
    "url",
    [
        "http://pictures.test/a.png",
        "https://127.0.0.1/a.png",
        "https://[::ffff:10.0.0.1]/a.png",
        "https://pictures.test:22/a.png",
        "https://inside.test/a.png",
        "https://nowhere.test/a.png",
        "https://[broken/a.png",
        "file:///etc/passwd",
    ],
)
def test_only_public_https_addresses_are_fetched(rt, http, url):
    profile = pictured(rt, url)
    assert avatars.fetch_next(rt) == profile
    assert http.calls == []


def test_a_disconnected_profile_keeps_no_avatar(rt):
    profile = pictured(rt)
    avatars.fetch_next(rt)
    rt.write(profiles.disconnect, profile)
    assert avatars.load(rt, profile) is None
    assert avatars.list_versions(rt) == {}
    assert avatars.fetch_next(rt) is None
    assert list(rt.settings.avatars_dir.iterdir()) == []


def test_a_restored_installation_fetches_no_avatar_before_its_resume(rt, http):
    profile = pictured(rt)
    rt.write(lambda _, tx: appliance_state.note_restore(tx, tx.stamp))
    assert avatars.fetch_next(rt) is None
    rt.write(lambda _, tx: appliance_state.remove(tx, appliance_state.RESTORED_FROM))
    assert avatars.fetch_next(rt) == profile
