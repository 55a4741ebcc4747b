"""Previews of each network, and the length of their texts."""

from pathlib import Path
from typing import Any

from socialpub.core.settings.schema import ProvidersSection
from socialpub.providers.auth import Account
from socialpub.providers.base import Content, MediaFile
from socialpub.providers.preview import Preview, TextMeasure, TextPart
from socialpub.providers.registry import SPECIFIED, build

NETWORKS = build(ProvidersSection())


def image(position: int = 0, mime_type: str = "image/jpeg", **facts: Any) -> MediaFile:
    return MediaFile(position, "image", mime_type, 1000, Path("image"), "image.jpg", facts=facts)


def video(position: int = 0) -> MediaFile:
    return MediaFile(position, "video", "video/mp4", 1000, Path("video"), "video.mp4", facts={"duration_seconds": 9})


def shown(network: str, text: str, *media: MediaFile, facts: dict[str, Any] | None = None, **options: Any) -> Preview:
    return NETWORKS[network].preview(Content(text, media), options, Account("1", facts=facts or {}))


def written(parts: tuple[TextPart, ...]) -> str:
    return "".join(part.text for part in parts)


def test_every_network_previews_incomplete_posts():
    for network in SPECIFIED:
        empty = shown(network, "")
        assert (empty.text, empty.media, empty.measures[0].used) == ((), (), 0)
        assert written(shown(network, "Hello", image()).text) == "Hello"


def test_x_counts_links_emoji_and_ideographs_and_shortens_links():
    text = "Read https://www.example.com/a/rather/long/path/indeed, 👍 漢字 @studio #zine 1#2 $TSLA a@b"
    found = shown("x", text)
    assert [(one.used, one.allowed) for one in found.measures] == [
        (5 + 23 + 2 + 2 + 1 + 4 + len(" @studio #zine 1#2 $TSLA a@b"), 280)
    ]
    assert found.text == (
        TextPart("Read "),
        TextPart("example.com/a/rather/long/…", "link"),
        TextPart(", 👍 漢字 "),
        TextPart("@studio", "tag"),
        TextPart(" "),
        TextPart("#zine", "tag"),
        TextPart(" 1#2 "),
        TextPart("$TSLA", "tag"),
        TextPart(" a@b"),
    )


def test_x_hides_the_rest_of_a_long_text_and_the_part_that_it_refuses():
    text = "a" * 279 + "👍" + "b" * 20
    premium = shown("x", text, facts={"subscription_type": "Premium"})
    assert (written(premium.text), written(premium.more)) == ("a" * 279, "👍" + "b" * 20)
    assert premium.measures[0].left == 25_000 - 301
    plain = shown("x", text)
    assert (written(plain.text), plain.more, plain.measures[0].left) == ("a" * 279, (), -21)
    assert "280 of these 301" in plain.remarks[0]


def test_x_shows_four_images_or_one_video():
    five = shown("x", "", *(image(at) for at in range(5)))
    assert (five.media, "4 images" in five.remarks[0]) == ((0, 1, 2, 3), True)
    mixed = shown("x", "", image(0), video(1))
    assert (mixed.media, "video" in mixed.remarks[0]) == ((1,), True)
    assert shown("x", "", image(0), image(1)).remarks == ()


def test_tiktok_counts_utf16_units_and_begins_with_the_cover():
    found = shown("tiktok", "👍 #zine", image(0), image(1), title="Zine", photoCoverIndex=1, privacyLevel="SELF_ONLY")
    assert [(one.label, one.used, one.allowed) for one in found.measures] == [
        ("Description", 8, 4000),
        ("Title", 4, 90),
    ]
    assert (found.media, found.title) == ((1, 0), "Zine")
    assert found.remarks[0] == "Only the account itself sees the post."
    assert found.remarks[1:] == ("No comments.", "Viewers swipe through 2 photos. Photo 2 is the cover.")


def test_a_video_draft_has_no_caption_and_is_in_the_inbox():
    found = shown("tiktok", "Gone", video(), mode="draft")
    assert (found.text, found.measures, "inbox" in found.remarks[0]) == ((), (), True)


def test_tiktok_shows_allowed_interactions_and_labels():
    found = shown("tiktok", "", video(), disableDuet=False, disableStitch=False, brandContentToggle=True, isAigc=True)
    assert found.remarks == ("Allowed: duets, stitches.",)
    assert found.labels == ("Paid partnership", "Creator labeled as AI-generated")


def test_a_long_caption_is_cut_between_words():
    words = "word " * 40
    found = shown("tiktok", words, video())
    assert written(found.text) + written(found.more) == words
    assert len(written(found.text)) <= 90
    assert written(found.text).endswith("word")


def test_text_over_the_limit_is_not_shown():
    found = shown("tiktok", "👍" * 3000, video())
    assert found.measures == (TextMeasure("Caption", 6000, 2200, found.measures[0].unit),)
    assert len(written(found.text) + written(found.more)) == 1100


def test_a_pin_shows_a_title_a_link_and_the_first_image():
    found = shown(
        "pinterest",
        "See https://example.com.",
        image(0),
        image(1),
        title="Poster",
        link="https://www.studio.example/4",
    )
    assert (found.title, found.link, found.media) == ("Poster", "studio.example", (0, 1))
    assert [(one.label, one.used, one.allowed) for one in found.measures] == [
        ("Description", 24, 800),
        ("Title", 6, 100),
    ]
    assert found.text == (TextPart("See "), TextPart("https://example.com", "link"), TextPart("."))
    assert found.remarks == ("Feeds and the board show the first image. Readers swipe to the other images.",)


def test_a_pin_without_title_or_link_has_a_remark():
    assert shown("pinterest", "", image(), link="http://[").remarks == (
        "The pin has no title. A title helps people to find the pin.",
    )
    assert len(shown("pinterest", "", image()).remarks) == 2
