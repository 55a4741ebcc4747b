"""Every fault that Bluesky's server would refuse, or would publish wrongly, is found before any call."""

from pathlib import Path
from typing import Any

import pytest

from socialpub.providers.auth import Account
from socialpub.providers.base import Content, MediaFile
from socialpub.providers.bluesky.check import list_notes, list_problems
from socialpub.providers.bluesky.options import TABLE, reply_rules
from socialpub.providers.bluesky.preview import preview_post
from socialpub.providers.bluesky.text import sent_text
from socialpub.providers.options import read_options
from socialpub.providers.preview import TextPart

FAMILY = "👨‍👩‍👧‍👦"


def account(**facts: Any) -> Account:
    return Account("did:plc:studio", facts={"server": "https://pds.example", **facts})


def image(position: int = 0, **changes: Any) -> MediaFile:
    given = {"mime_type": "image/jpeg", "size_bytes": 9_000_000, "alt": None, "facts": {}, **changes}
    return MediaFile(position, "image", path=Path("image"), file_name="image.jpg", **given)


def video(position: int = 0, **changes: Any) -> MediaFile:
    given = {"mime_type": "video/mp4", "size_bytes": 9_000_000, "facts": {"duration_seconds": 9.0}, **changes}
    return MediaFile(position, "video", path=Path("video"), file_name="video.mp4", **given)


def problems(text: str, *media: MediaFile, **facts: Any) -> list[str]:
    return [error.message for error in list_problems(Content(text, media), {}, account(**facts))]


def test_a_text_may_have_300_graphemes_and_3000_bytes():
    assert problems("a" * 300) == []
    assert "This text has 301. Shorten the text by 1." in problems("a" * 301)[0]
    assert problems("🇫🇷" * 300) == []
    assert problems(FAMILY * 120) == []
    assert "3000 bytes. This text has 3025" in problems(FAMILY * 121)[0]
    assert len(FAMILY.encode()) == 25


def test_a_post_needs_text_or_media():
    assert "This post has neither" in problems(" \n")[0]
    assert problems("", image()) == []


@pytest.mark.parametrize("character", ["\x00", "\x07", "\x1b", "\x7f", "\x85", "\r"])
def test_control_characters_are_refused(character):
    assert f"U+{ord(character):04X}" in problems(f"a{character}b")[0]


def test_the_sent_text_has_plain_line_breaks_and_no_white_space_at_its_end():
    assert sent_text(" a\r\n\tb \r\n") == " a\n\tb"
    assert problems("a\r\n\tb") == []
    assert problems("a" * 300 + " \n") == []


def test_one_to_four_images_or_one_video():
    assert problems("a", *(image(at) for at in range(4))) == []
    assert "at most 4 images per post. This post has 5 images" in problems("a", *(image(at) for at in range(5)))[0]
    assert "one video without other media. This post has 2" in problems("a", image(), video(1))[0]
    assert "one video without other media" in problems("a", video(), video(1))[0]


def test_alt_text_is_counted_in_graphemes():
    assert problems("", image(alt=FAMILY * 2000)) == []
    (error,) = list_problems(Content("", (image(), image(1, alt="a" * 2001))), {}, account())
    assert error.path == ("media", 1, "alt")
    assert "This alt text has 2001" in error.message


def test_a_video_is_mp4_of_ten_minutes_within_the_limit_of_the_accounts_server():
    assert problems("", video(size_bytes=300_000_000)) == []
    assert problems("", video(size_bytes=300_000_001))[0].startswith("Bluesky accepts videos of at most")
    assert problems("", video(size_bytes=5_000_001), blob_limit=5_000_000)[0].startswith("The account's server accepts")
    assert problems("", video(size_bytes=5_000_000), blob_limit=5_000_000) == []
    assert "only MP4 videos, not video/quicktime" in problems("", video(mime_type="video/quicktime"))[0]
    assert problems("", video(facts={"duration_seconds": 600.9})) == []
    assert "at most 10 minutes" in problems("", video(facts={"duration_seconds": 601.0}))[0]


def test_notes_warn_about_what_bluesky_changes_without_a_refusal():
    def notes(*media: MediaFile, text: str = "a", **options: Any) -> list[str]:
        return list_notes(Content(text, media), options)

    assert notes(image(), video_codec="h264") == []
    for mime_type in ("image/gif", "image/webp", "image/png"):
        moving = image(1, mime_type=mime_type, facts={"frames": 2})
        assert notes(image(), moving)[0].startswith("Media item 2: Bluesky does not show animated images")
    assert "HEVC (H.265). H.264 is safe" in notes(video(facts={"video_codec": "hevc", "audio_codec": "aac"}))[0]
    assert "Opus audio. AAC is safe" in notes(video(facts={"video_codec": "h264", "audio_codec": "opus"}))[0]
    assert "no effect on a reply" in notes(replyControl="nobody", replyToPostId="1")[0]
    assert notes(replyControl="everyone", replyToPostId="1") == []
    assert "mentions no account" in notes(replyControl="mentioned")[0]
    assert notes(text="@alice.test", replyControl="mentioned") == []


def test_options_have_the_names_of_the_contract():
    given = {
        "languages": ["de", "pt-BR"],
        "contentLabels": ["sexual", "graphic-media"],
        "replyControl": "followers",
        "linkCard": False,
    }
    assert read_options("bluesky", TABLE, given) == (given, [])
    assert read_options("bluesky", TABLE, {"languages": ["de", "en", "fr", "it"]})[1]
    assert read_options("bluesky", TABLE, {"contentLabels": ["spam"]})[1]


@pytest.mark.parametrize(
    ("options", "rules"),
    [
        ({}, None),
        ({"replyControl": "everyone"}, None),
        ({"replyControl": "nobody"}, []),
        ({"replyControl": "followers"}, [{"$type": "app.bsky.feed.threadgate#followerRule"}]),
        ({"replyControl": "following"}, [{"$type": "app.bsky.feed.threadgate#followingRule"}]),
        ({"replyControl": "mentioned"}, [{"$type": "app.bsky.feed.threadgate#mentionRule"}]),
        ({"replyControl": "nobody", "replyToPostId": "1"}, None),
        ({"replyControl": "nobody", "replyTo": "at://did:plc:studio/app.bsky.feed.post/3a"}, None),
    ],
)
def test_the_setting_for_replies_belongs_to_the_first_post_of_a_thread(options, rules):
    assert reply_rules(options) == rules


def test_the_preview_marks_facets_and_counts_graphemes():
    found = preview_post(
        Content(f"{FAMILY} example.com #täg @alice.test "),
        {"contentLabels": ["sexual"], "replyControl": "nobody"},
        account(),
    )
    assert found.text == (
        TextPart(f"{FAMILY} "),
        TextPart("example.com", "link"),
        TextPart(" "),
        TextPart("#täg", "tag"),
        TextPart(" "),
        TextPart("@alice.test", "tag"),
    )
    assert [(one.used, one.allowed) for one in found.measures] == [(30, 300)]
    assert found.labels == ("Suggestive", "Replies are turned off")
    assert found.link == "example.com"


def test_the_preview_shows_the_part_that_bluesky_accepts():
    found = preview_post(Content(FAMILY * 301), {}, account())
    assert "".join(part.text for part in found.text) == FAMILY * 300
    assert (found.measures[0].left, "300 of these 301" in found.remarks[0]) == (-1, True)
    five = preview_post(Content("", tuple(image(at) for at in range(5))), {}, account())
    assert (five.media, "at most 4 images" in five.remarks[0]) == ((0, 1, 2, 3), True)
    mixed = preview_post(Content("", (image(), video(1))), {}, account())
    assert (mixed.media, "without other media" in mixed.remarks[0]) == ((1,), True)


def test_a_post_with_media_or_without_the_option_has_no_card():
    assert preview_post(Content("example.com", (image(),)), {}, account()).link == ""
    assert preview_post(Content("example.com"), {"linkCard": False}, account()).link == ""
