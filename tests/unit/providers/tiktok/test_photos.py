"""Photos: fitted, sent by their addresses, and never sent twice."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from socialpub.core.settings.networks import TikTokSection
from socialpub.providers.auth import Account
from socialpub.providers.base import Again, Content, Done, ImageLimits, MediaFile, More, Refused
from socialpub.providers.responses import NoAnswer
from socialpub.providers.tiktok import TikTok
from tests.support.scripted_calls import as_it_is
from tests.unit.providers.tiktok.script import (
    ADAPTER,
    DIRECT,
    DRAFT,
    Script,
    envelope,
    job,
    ok,
    page,
    photo,
    run,
    video,
)

TASK = {"publish_id": "p_pub_url~v2.7000"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def on_disk(folder: Path, count: int = 2) -> tuple[MediaFile, ...]:
    photos = tuple(photo(index, path=folder / f"{index}", size_bytes=4) for index in range(count))
    for each in photos:
        each.path.write_bytes(b"jpeg")
    return photos


def fitted_into(folder: Path, asked: list[ImageLimits]) -> Callable[[MediaFile, ImageLimits], MediaFile]:
    def fit(media: MediaFile, limits: ImageLimits) -> MediaFile:
        asked.append(limits)
        path = folder / f"fitted-{media.position}"
        path.write_bytes(b"jpeg")
        return replace(media, path=path, mime_type="image/jpeg", size_bytes=4)

    return fit


def kept(*photos: MediaFile) -> dict[str, Any]:
    return {
        "photos": [
            {"path": str(each.path), "mime_type": each.mime_type, "size_bytes": each.size_bytes} for each in photos
        ]
    }


def test_photos_are_fitted_before_the_commit(folder):
    asked: list[ImageLimits] = []
    photos = photo(0, mime_type="image/png"), photo(1)
    outcome = run("fit_photos", Script(), *photos, fit=fitted_into(folder, asked))
    assert isinstance(outcome, Done)
    assert [Path(each["path"]).name for each in outcome.memo["photos"]] == ["fitted-0", "fitted-1"]
    assert asked[0].types == ("image/jpeg", "image/webp")
    assert (asked[0].max_short_side, asked[0].max_bytes) == (1080, 20_000_000)


def test_many_photos_take_several_runs():
    photos = tuple(photo(index) for index in range(3))
    first = run("fit_photos", Script(), *photos, slice_over=lambda: True)
    assert isinstance(first, More)
    assert len(first.memo["photos"]) == 1
    second = run("fit_photos", Script(), *photos, memo=first.memo)
    assert isinstance(second, Done)
    assert len(second.memo["photos"]) == 3


@pytest.mark.parametrize(
    "base", ["http://box.example.net", "https://192.168.1.5", "https://box", "https://[2001:db8::1]"]
)
def test_an_unreachable_appliance_is_reported_before_the_post(base):
    outcome = run("fit_photos", Script(), photo(), public_url=lambda media: f"{base}/m?signature=hush")
    assert isinstance(outcome, Refused)
    assert "base_url" in outcome.message
    assert "hush" not in outcome.message
    known = Content("", (photo(),), served_from=base)
    problems = ADAPTER.check(known, DIRECT, Account("1"))
    assert [problem.message for problem in problems] == [outcome.message], "known when the post is accepted"
    assert ADAPTER.check(replace(known, media=(video(),)), DIRECT, Account("1")) == [], "a video is sent"


def test_a_simulated_tiktok_fetches_from_any_address():
    stand_in = TikTok(TikTokSection(api_url="http://127.0.0.1:9000"))
    work = job(Script(), photo(), public_url=lambda media: "http://127.0.0.1:8000/m")
    assert isinstance(stand_in.run("fit_photos", work), Done)


def test_a_direct_post_names_the_fitted_files_by_fresh_addresses(folder):
    photos = on_disk(folder)
    script = Script(ok(**TASK))
    options = {**DIRECT, "title": "Three views", "photoCoverIndex": 1, "autoAddMusic": True, "isAigc": True}
    memo = {**kept(*photos), "creator": {"off": ["comment", "duet"]}}
    outcome = run("init_photos", script, *photos, options=options, memo=memo, text="From the roof #demo")
    assert script.asked == ["content/init/"]
    assert script.calls[0].json == {
        "media_type": "PHOTO",
        "post_mode": "DIRECT_POST",
        "post_info": {
            "title": "Three views",
            "description": "From the roof #demo",
            "privacy_level": "SELF_ONLY",
            "disable_comment": True,
            "auto_add_music": True,
            "brand_content_toggle": False,
            "brand_organic_toggle": False,
        },
        "source_info": {
            "source": "PULL_FROM_URL",
            "photo_cover_index": 1,
            "photo_images": [f"https://box.example.net/m{each.path}?signature=s" for each in photos],
        },
    }
    assert isinstance(outcome, Done)
    assert outcome.memo["publish_id"] == TASK["publish_id"]
    assert "signature" not in str(outcome.memo)
    assert script.trace.message == "publish_id p_pub_url~v2.7000"


@pytest.mark.parametrize(
    ("chosen", "off"), [({}, True), ({"disableComment": True}, True), ({"disableComment": False}, False)]
)
def test_photos_allow_comments_only_if_enabled(folder, chosen, off):
    photos = on_disk(folder, 1)
    script = Script(ok(**TASK))
    run("init_photos", script, *photos, options={**DIRECT, **chosen}, memo=kept(*photos))
    info = script.calls[0].json["post_info"]
    assert info["disable_comment"] is off
    assert "disable_duet" not in info


def test_a_draft_sends_its_texts_without_a_privacy_level(folder):
    photos = on_disk(folder, 1)
    script = Script(ok(**TASK))
    options = {**DRAFT, "title": "Views", "privacyLevel": "SELF_ONLY", "disableComment": True}
    run("init_photo_draft", script, *photos, options=options, memo=kept(*photos))
    body = script.calls[0].json
    assert body["post_mode"] == "MEDIA_UPLOAD"
    assert body["post_info"] == {"title": "Views", "description": "Evening light #demo"}


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"")], ids=["gone", "cut short"])
def test_a_fitted_version_that_is_damaged_is_made_again_before_tiktok_is_asked(folder, damage):
    photos = on_disk(folder)
    damage(photos[1].path)
    outcome = run("init_photos", Script(), *photos, memo=kept(*photos))
    assert isinstance(outcome, Again)
    assert outcome.step == "fit_photos"
    assert "photos" not in outcome.memo


@pytest.mark.parametrize("answer", [page(502), page(200), envelope(500, "internal_error"), ok(), NoAnswer("cut")])
def test_a_lost_response_is_never_followed_by_a_second_call(folder, answer):
    photos = on_disk(folder, 1)
    with pytest.raises(NoAnswer):
        run("init_photos", Script(answer), *photos, memo=kept(*photos))


def test_a_file_within_the_limits_stays_unchanged():
    outcome = run("fit_photos", Script(), photo(), fit=as_it_is)
    assert isinstance(outcome, Done)
    assert outcome.memo["photos"][0]["path"] == "/media/0"
