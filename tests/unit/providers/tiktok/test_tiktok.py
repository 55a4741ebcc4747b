"""The options, checks and notes of a post on TikTok."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from socialpub.core.errors import FieldError
from socialpub.core.settings.networks import TikTokSection
from socialpub.providers.auth import Account
from socialpub.providers.base import Content, MediaFile
from socialpub.providers.tiktok import TikTok

OWNER = Account("oid", "owner")
DIRECT = {"privacyLevel": "SELF_ONLY"}


@pytest.fixture
def tiktok() -> TikTok:
    return TikTok(TikTokSection(client_key="ck", client_secret=SecretStr("cs-secret"), api_url="https://tiktok.test"))


def photo(position: int = 0, **facts: Any) -> MediaFile:
    mime_type = facts.pop("mime_type", "image/jpeg")
    return MediaFile(position, "image", mime_type, 1000, Path("photo"), "photo.jpg", facts=facts)


def video(mime_type: str = "video/mp4", **facts: Any) -> MediaFile:
    good = {"width": 1080, "height": 1920, "duration_seconds": 30.0, "frame_rate": 30.0}
    return MediaFile(0, "video", mime_type, 1000, Path("video"), "video.mp4", facts={**good, **facts})


def found(tiktok: TikTok, content: Content, options: dict[str, Any], account: Account = OWNER) -> list[FieldError]:
    return tiktok.check(content, options, account)


def test_a_post_without_any_fault_has_no_problem(tiktok):
    assert found(tiktok, Content("A clip", (video(),)), DIRECT) == []
    assert found(tiktok, Content("", (photo(),)), DIRECT) == []


def test_a_direct_post_needs_a_privacy_level_and_never_gets_one_of_ours(tiktok):
    (problem,) = found(tiktok, Content("A clip", (video(),)), {})
    assert problem.path == ("providerOptions", "tiktok", "privacyLevel")
    assert "PUBLIC_TO_EVERYONE" in problem.message


def test_a_draft_needs_no_privacy_level(tiktok):
    assert found(tiktok, Content("A clip", (video(),)), {"mode": "draft"}) == []


def test_a_paid_partnership_cannot_be_private(tiktok):
    (problem,) = found(tiktok, Content("", (video(),)), {**DIRECT, "brandContentToggle": True})
    assert problem.path[-1] == "brandContentToggle"


@pytest.mark.parametrize(
    ("media", "path", "says"),
    [
        ((), ("media",), "needs media"),
        ((video(), photo(1)), ("media",), "one video without other media"),
        (tuple(photo(i) for i in range(36)), ("media",), "at most 35 photos. This post has 36"),
        ((video(duration_seconds=601.0),), ("media", 0), "at most 600 seconds. This video lasts 601.0"),
        ((video(frame_rate=15.0),), ("media", 0), "23 to 60 frames per second. This video has 15"),
        ((video(width=320, height=320),), ("media", 0), "320×320"),
        ((video(video_codec="av1"),), ("media", 0), "not in AV1"),
        (
            (replace(video(), size_bytes=2**32 + 1),),
            ("media", 0),
            "at most 4 GiB (4294967296 bytes). This video has 4 GiB (4294967297 bytes)",
        ),
        ((video("video/x-msvideo"),), ("media", 0), "not video/x-msvideo"),
    ],
)
def test_media_beyond_the_limits_are_named_with_limit_and_found_value(tiktok, media, path, says):
    (problem,) = found(tiktok, Content("", media), DIRECT)
    assert problem.path == path
    assert says in problem.message


def test_a_caption_is_counted_in_utf16_units(tiktok):
    assert found(tiktok, Content("👋" * 1100, (video(),)), DIRECT) == []
    (problem,) = found(tiktok, Content("👋" * 1101, (video(),)), DIRECT)
    assert problem.path == ("post", "body")
    assert "2200" in problem.message
    assert "2202" in problem.message


def test_photos_may_have_a_longer_text_and_their_cover_must_exist(tiktok):
    content = Content("x" * 4000, (photo(0), photo(1)))
    assert found(tiktok, content, {**DIRECT, "photoCoverIndex": 1}) == []
    (problem,) = found(tiktok, content, {**DIRECT, "photoCoverIndex": 2})
    assert problem.path[-1] == "photoCoverIndex"


def test_a_grant_without_the_scope_of_the_mode_is_an_error(tiktok):
    drafts_only = Account("oid", scopes=frozenset({"user.info.basic", "video.upload"}))
    (problem,) = found(tiktok, Content("", (video(),)), DIRECT, drafts_only)
    assert "video.publish" in problem.message
    assert found(tiktok, Content("", (video(),)), {"mode": "draft"}, drafts_only) == []
    assert tiktok.auth.can_publish(drafts_only.scopes)
    assert not tiktok.auth.can_publish(frozenset({"user.info.basic"}))
    assert len(tiktok.auth.missing_scopes(drafts_only.scopes)) == 1
    assert tiktok.auth.missing_scopes(frozenset()) == []
    drafting = TikTok(TikTokSection(scopes=("user.info.basic", "video.upload", "video.list")))
    assert [one.split()[0] for one in drafting.auth.missing_scopes(drafts_only.scopes)] == ["video.list"]
    (problem,) = found(drafting, Content("", (video(),)), DIRECT, drafts_only)
    assert "Add this permission to scopes in [providers.tiktok]. Then connect the account again" in problem.message


@pytest.mark.parametrize(
    ("media", "options", "says"),
    [
        (photo(mime_type="image/gif", frames=9), DIRECT, "first frame is posted"),
        (photo(), {**DIRECT, "isAigc": True, "disableDuet": True}, "does not accept isAigc, disableDuet"),
        (video(), {**DIRECT, "title": "A title"}, "does not accept title"),
        (video(), {"mode": "draft", "disableComment": True}, "does not accept disableComment for a video draft"),
        (video(), {"mode": "draft"}, "Paste the caption when you finish"),
        (photo(), {"mode": "draft", "title": "A title"}, "in the inbox"),
        (video(), {**DIRECT, "videoCoverTimestampMs": 31_000}, "beyond the end"),
        (replace(photo(), alt="A cat"), DIRECT, "does not accept alt text"),
    ],
)
def test_a_note_names_what_is_left_out(tiktok, media, options, says):
    assert found(tiktok, Content("Hello", (media,)), options) == []
    assert any(says in note for note in tiktok.notes(Content("Hello", (media,)), options))


def test_nothing_is_noted_about_a_plain_post(tiktok):
    chosen = {**DIRECT, "disableComment": False, "disableDuet": True, "disableStitch": True}
    assert tiktok.notes(Content("Hello", (video(),)), {**chosen, "isAigc": True}) == []
    assert tiktok.notes(Content("Hello", (photo(),)), {**DIRECT, "disableComment": True, "title": "Views"}) == []


def test_a_note_names_interactions_that_are_off(tiktok):
    (note,) = tiktok.notes(Content("Hello", (video(),)), {**DIRECT, "disableDuet": False})
    assert note == (
        "Comments and stitches are off by default. To allow comments and stitches, set "
        "disableComment and disableStitch to false."
    )
    (note,) = tiktok.notes(Content("Hello", (photo(),)), DIRECT)
    assert note == "Comments are off by default. To allow comments, set disableComment to false."
    assert not any("off" in note for note in tiktok.notes(Content("Hello", (video(),)), {"mode": "draft"}))
