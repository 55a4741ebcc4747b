"""The checks and notes of a post on X name the rule, the limit and the value."""

from dataclasses import replace
from typing import Any

import pytest

from socialpub.core.errors import FieldError
from socialpub.providers.auth import Account
from socialpub.providers.base import Content, MediaFile
from socialpub.providers.x import text as x_text
from tests.unit.providers.x.script import ADAPTER, account, gif, image, video


def check(text: str, *media: MediaFile, who: Account | None = None, **options: Any) -> list[FieldError]:
    return ADAPTER.check(Content(text, media), options, who or account())


@pytest.mark.parametrize(
    ("text", "media"),
    [
        ("Hello", ()),
        ("한" * 140, ()),
        ("x" * 256 + " https://example.com/" + "y" * 300, ()),
        ("", (image(),)),
        ("four", tuple(image(index) for index in range(4))),
        ("", (gif(),)),
        ("", (video(),)),
        ("", (image(), gif(1, frames=1))),
        ("$AAPL costs $25", ()),
        ("", (video(duration_seconds=1200.4, frame_rate=60.02, width=1080, height=1920),)),
        ("", (MediaFile(0, "video", "video/mp4", 10, video().path, "unmeasured.mp4"),)),
    ],
)
def test_a_post_that_x_accepts_has_no_errors(text, media):
    assert check(text, *media) == []


@pytest.mark.parametrize(
    ("text", "media", "path", "parts"),
    [
        ("", (), ("post", "body"), ("neither",)),
        ("x" * 281, (), ("post", "body"), ("280", "281")),
        ("한" * 141, (), ("post", "body"), ("280", "282")),
        ("a\ufffeb", (), ("post", "body"), ("U+FFFE",)),
        ("$AAPL and $TSLA", (), ("post", "body"), ("1 cashtag", "2", "$AAPL, $TSLA")),
        ("", tuple(image(index) for index in range(5)), ("media",), ("4", "5")),
        ("", (video(), image(1)), ("media",), ("one video", "2")),
        ("", (gif(), gif(1)), ("media",), ("one animated GIF", "2")),
        ("", (image(alt="x" * 1001),), ("media", 0, "alt"), ("1000", "1001")),
        ("", (replace(gif(), size_bytes=15_000_001),), ("media", 0), ("15000000", "15000001")),
        ("", (gif(width=1281),), ("media", 0), ("1280×1080", "1281×300")),
        ("", (gif(width=1100, height=1090),), ("media", 0), ("1280×1080", "1100×1090")),
        ("", (gif(frames=351),), ("media", 0), ("350", "351")),
        ("", (gif(width=1280, height=1080, frames=300),), ("media", 0), ("300000000", "414720000")),
        ("", (video(duration_seconds=0.2),), ("media", 0), ("0.5", "0.2")),
        ("", (video(duration_seconds=1201.0),), ("media", 0), ("20 minutes", "20.0")),
        ("", (video(frame_rate=120.0),), ("media", 0), ("60", "120")),
        ("", (video(width=16, height=16),), ("media", 0), ("32×32", "16×16")),
        ("", (video(width=1280, height=400),), ("media", 0), ("3:1", "1280×400")),
    ],
)
def test_an_error_names_the_rule_the_limit_and_the_value(text, media, path, parts):
    (problem,) = check(text, *media)
    assert problem.path == path
    for part in parts:
        assert part in problem.message


@pytest.mark.parametrize(
    "facts",
    [
        {"subscription_type": "Premium"},
        {"subscription_type": "PremiumPlus"},
        {"subscription_type": "Basic"},
        {"subscription_type": "None", "verified_type": "business"},
    ],
)
def test_subscribers_have_higher_limits(facts):
    assert check("x" * 5000, video(duration_seconds=7000.0), who=account(**facts)) == []


def test_the_blue_tick_alone_is_no_subscription():
    assert check("x" * 281, who=account(subscription_type="None", verified_type="none"))


def test_a_quoted_post_and_media_exclude_each_other():
    (problem,) = check("", image(), quotePostId="1")
    assert problem.path == ("providerOptions", "x", "quotePostId")
    assert check("Look", quotePostId="1") == []


def test_a_missing_scope_is_an_error_when_it_is_needed():
    who = account("tweet.read", "tweet.write", "users.read")
    assert check("Hello", who=who) == []
    (problem,) = check("Hello", image(), who=who)
    assert "media.write" in problem.message
    assert check("Hello", who=account("tweet.read"))[0].path == ("profiles",)


def test_a_note_names_the_price_of_a_link():
    (note,) = ADAPTER.notes(Content("see README.md"), {})
    assert "0.200" in note
    assert "0.015" in note
    assert "README.md" in note
    assert ADAPTER.notes(Content("see node.js"), {}) == []


def test_a_note_names_the_prices_of_alt_texts_and_read_backs():
    described = image(alt="A bike"), image(1), image(2, alt="A car"), gif(3, frames=1)
    (note,) = ADAPTER.notes(Content("Hi", described), {})
    for part in (
        "0.005 USD for each alt text. This post has 2",
        "0.001 USD for each post read",
        "another account",
    ):
        assert part in note
    (both,) = ADAPTER.notes(Content("see README.md", described), {})
    assert "0.200" in both
    assert both.count("each post read") == 1
    assert ADAPTER.notes(Content("Hi", (image(),)), {}) == []


@pytest.mark.parametrize("option", ["quotePostId", "communityId", "shareWithFollowers"])
def test_a_closed_option_is_a_note_and_no_error(option):
    chosen = {option: True if option == "shareWithFollowers" else "7"}
    assert check("Look", **chosen) == []
    (note,) = ADAPTER.notes(Content("Look"), chosen)
    assert option in note
    assert "probably refuse" in note
    assert ADAPTER.notes(Content("Look"), {"shareWithFollowers": False}) == []


def test_a_video_that_some_accounts_may_not_post_is_only_a_note():
    media = replace(video(width=1920, height=1080), alt="A trip", mime_type="video/webm")
    assert check("", media) == []
    notes = " ".join(ADAPTER.notes(Content("", (media,)), {}))
    for part in ("alt text", "1920×1080", "WebM"):
        assert part in notes


@pytest.mark.parametrize(
    ("media", "parts"),
    [
        (video(duration_seconds=141.0), ("longer than 140 seconds", "141 seconds", "without a subscription")),
        (video(video_codec="hevc", audio_codec="aac"), ("H.264", "HEVC (H.265)", "iPhones")),
        (video(video_codec="h264", audio_codec="opus"), ("AAC", "has Opus")),
        (video(video_codec="av1", audio_codec="mp3"), ("AV1 and MP3",)),
        (video(pixel_format="yuv444p"), ("4:2:0", "8 bits", "has 4:4:4 with 8 bits", "-pix_fmt yuv420p")),
        (video(pixel_format="yuv420p10le"), ("has 4:2:0 with 10 bits", "HDR", "-pix_fmt yuv420p")),
        (video(pixel_format="yuva420p"), ("has yuva420p",)),
        (video(pixel_aspect="4:3"), ("square pixels", "4:3")),
        (video(audio_codec="aac", audio_channels=6), ("mono or stereo", "6 channels", "-ac 2")),
        (image(mime_type="image/webp", facts={"frames": 3}), ("animated GIFs", "first frame", "GIF or a video")),
        (image(mime_type="image/png", facts={"frames": 3}), ("animated GIFs", "first frame", "GIF or a video")),
    ],
)
def test_media_that_x_may_refuse_after_the_upload_are_a_note(media, parts):
    assert check("", media) == []
    (note,) = ADAPTER.notes(Content("", (media,)), {}, account())
    assert note.startswith("Media item 1: ")
    for part in parts:
        assert part in note


@pytest.mark.parametrize(
    "media",
    [
        video(duration_seconds=140.9, video_codec="h264", audio_codec="aac"),
        video(),
        video(has_audio=False, video_codec="h264"),
        video(pixel_format="yuv420p", audio_channels=2),
        video(pixel_format="yuvj420p", audio_channels=1),
        image(mime_type="image/webp"),
    ],
)
def test_documented_and_unmeasured_values_have_no_note(media):
    assert ADAPTER.notes(Content("", (media,)), {}, account()) == []


def test_subscribers_get_no_note_about_long_and_large_videos():
    media = video(duration_seconds=3000.0, width=1920, height=1080)
    assert ADAPTER.notes(Content("", (media,)), {}, account(subscription_type="Premium")) == []
    assert len(ADAPTER.notes(Content("", (media,)), {}, account())) == 2


@pytest.mark.parametrize(
    ("text", "options", "named"),
    [
        ("Hello @somebody", {}, "@somebody."),
        ("@a and @b, and @A again", {}, "@A, @b."),
        ("@a @b @c @d @e @f @g", {}, "@a, @b, @c, @d, @e and 2 more."),
        ("@a and @b", {"inReplyToPostId": "7"}, "@a, @b."),
    ],
)
def test_unsolicited_mentions_are_a_note(text, options, named):
    assert check(text, **options) == []
    (note,) = ADAPTER.notes(Content(text), options, account())
    assert f"mentions {named}" in note
    assert "unsolicited mentions" in note


@pytest.mark.parametrize(
    ("text", "options"),
    [("By @acme and @ACME", {}), ("@somebody, thanks", {"inReplyToPostId": "7"}), ("a@b.de", {}), ("Hello", {})],
)
def test_mentions_of_the_account_itself_and_of_the_replied_account_have_no_note(text, options):
    assert [note for note in ADAPTER.notes(Content(text), options, account()) if "mentions" in note] == []


def test_a_text_is_weighed_once_for_all_accounts(monkeypatch):
    weighed: list[str] = []
    find = x_text._find_links
    monkeypatch.setattr(x_text, "_find_links", lambda text: weighed.append(text) or find(text))
    for number in range(100):
        assert check("Once for all: https://example.com", who=account(id=str(number))) == []
        assert len(ADAPTER.notes(Content("Once for all: https://example.com", ()), {})) == 1
    assert weighed == ["Once for all: https://example.com"]


def test_xs_own_spellings_and_its_five_reply_settings_are_read():
    own = {"in_reply_to_tweet_id": "1900000000000000001", "quote_tweet_id": "2"}
    assert ADAPTER.read_options(own) == ({"inReplyToPostId": "1900000000000000001", "quotePostId": "2"}, [])
    for value in ("everyone", "following", "mentionedUsers", "subscribers", "verified"):
        assert ADAPTER.read_options({"replySettings": value}) == ({"replySettings": value}, [])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"replySettings": "followers"}, "following"),
        ({"quotePostId": "https://x.com/a/status/5"}, "end of the post's URL"),
        ({"inReplyToPostId": "1" * 20}, "19 digits"),
    ],
)
def test_the_error_of_a_wrong_option_names_the_right_value(given, said):
    options, (problem,) = ADAPTER.read_options(given)
    assert options == {}
    assert said in problem.message
