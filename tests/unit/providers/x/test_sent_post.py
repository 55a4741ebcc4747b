"""Which listed posts match: lenient about X's changes, strict about other posts."""

from typing import Any

import pytest

from socialpub.providers.auth import Account
from socialpub.providers.base import Content, MediaFile
from socialpub.providers.x.read_back import SentPost
from tests.unit.providers.x.script import gif, image, video
from tests.unit.providers.x.test_read_back import shown

ME = Account("2244990001", "acme")


def link(short: str, target: str, **more: Any) -> dict[str, Any]:
    return {"url": f"https://t.co/{short}", "expanded_url": target, "start": 0, "end": 23, **more}


MEDIA_LINK = link("m", "https://x.com/acme/status/5/photo/1", media_key="3_0")


def could_be(post: Any, text: str, *media: MediaFile, **options: Any) -> bool:
    return SentPost.prepare(Content(text, media), options, ME).could_be(post)


def as_html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@pytest.mark.parametrize(
    "text",
    [
        "Tom &amp; Jerry",
        "Use &lt; to write <",
        "R&D",
        "a &quot;b&quot;",
        "see https://example.com/?a=1&amp;b=2",
        "50 &cent; &copy 2026",
        "&amp;amp;",
    ],
)
def test_written_html_entities_match(text):
    assert could_be(shown("5", as_html(text)), text)
    assert could_be(shown("5", text), text)
    assert not could_be(shown("5", as_html(text) + "!"), text)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("tab\there\u200b z", "tab here z"),
        ("hi\u0000there", "hithere"),
        ("a\u2028b", "a\nb"),
        ("RLM\u200f end", "RLM end"),
        ("heart \u2764\ufe0f", "heart \u2764"),
        ("soft\u00adhyphen \u2060joined", "softhyphen joined"),
        ("cafe\u0301", "caf\u00e9"),
        ("\ufeffstart", "start"),
    ],
)
def test_invisible_characters_make_no_difference(ours, theirs):
    assert could_be(shown("5", theirs), ours)
    assert could_be(shown("5", ours), theirs)


@pytest.mark.parametrize(
    ("written", "expanded"),
    [
        ("https://de.wikipedia.org/wiki/Käse", "https://de.wikipedia.org/wiki/K%C3%A4se"),
        ("https://de.wikipedia.org/wiki/K%C3%A4se", "https://de.wikipedia.org/wiki/Käse"),
        ("müller.de", "http://xn--mller-kva.de"),
        ("Example.COM", "http://Example.COM"),
        ("EXAMPLE.com/A", "http://example.com/A"),
        ("https://example.com:443/a", "https://example.com/a"),
        ("http://example.com:80/a", "http://example.com/a/"),
        ("https://example.com?x=1", "https://example.com/?x=1"),
        ("https://example.com/#a", "https://example.com/#a"),
        ("https://example.com/#a", "https://example.com/"),
        ("https://example.com/a/", "https://example.com/a"),
        ("https://example.com/?a=1&b=2", "https://example.com/?a=1&amp;b=2"),
        ("https://example.com/?a=1&amp;b=2", "https://example.com/?a=1&b=2"),
        ("https://www.example.com/a", "http://example.com/a"),
        ("https://example.com/a(b)", "https://example.com/a%28b%29"),
    ],
)
def test_a_link_is_known_in_every_spelling(written, expanded):
    for before, after in (("see ", " now"), ("(", ")"), ("「", "」"), ("", "!"), ("one\n", "\u2028two")):
        post = shown("5", f"{before}https://t.co/abc{after}", link("abc", expanded))
        assert could_be(post, f"{before}{written}{after}")
        assert not could_be(post, f"{before}https://example.net/other{after}")


def test_two_links_in_one_word_are_distinct():
    urls = link("a", "https://a.com/x,y"), link("b", "https://b.com/")
    assert could_be(shown("5", "https://t.co/a、https://t.co/b", *urls), "https://a.com/x,y、https://b.com/")
    assert not could_be(shown("5", "https://t.co/b、https://t.co/a", *urls), "https://a.com/x,y、https://b.com/")


def test_text_after_a_short_link_is_part_of_the_written_address():
    post = shown("5", "https://t.co/a日本 です", link("a", "https://ja.wikipedia.org/wiki/"))
    assert could_be(post, "https://ja.wikipedia.org/wiki/日本 です")


def test_an_unknown_short_link_matches_only_a_link():
    assert could_be({"id": "5", "text": "See https://t.co/a"}, "See https://example.org/a")
    assert not could_be({"id": "5", "text": "See https://t.co/a"}, "See you")
    assert not could_be({"id": "5", "text": "See https://t.co/a"}, "See"), "without media X appends none"


def test_the_address_of_the_quoted_post_may_also_be_in_the_text():
    quoted = link("q", "https://twitter.com/bob/status/77?s=20")
    for theirs in ("Look https://t.co/q", "Look https://t.co/q https://t.co/q"):
        assert could_be(shown("5", theirs, quoted), "Look https://twitter.com/bob/status/77?s=20", quotePostId="77")
    assert could_be(shown("5", "Look https://t.co/q", quoted), "Look", quotePostId="77")
    assert not could_be(shown("5", "Look https://t.co/q", quoted), "Look", quotePostId="78")


LONG = "word " * 100 + "end"


def test_a_long_text_matches_by_its_beginning():
    assert could_be(shown("5", LONG[:276] + "…"), LONG)
    assert could_be(shown("5", LONG[:274] + "… https://t.co/more"), LONG)
    assert not could_be(shown("5", LONG[:274] + "… https://t.co/more"), "other " + LONG)
    assert not could_be(shown("5", "word… https://t.co/more"), LONG), "X cuts no text this short"
    assert not could_be(shown("5", LONG[:274] + "…"), "word " * 20), "a short text is not cut"


def test_a_note_is_never_cut():
    text = LONG + "…"
    note = {"note_post": {"text": text}, "note_tweet": None}
    assert could_be(shown("5", text[:276] + "…", **note), text)
    assert not could_be(shown("5", text[:276] + "…", **note), text + " And more.")
    assert could_be(shown("5", LONG[:276] + "…", note_post={"entities": {}}), LONG)


def reply_to(parent: str, name: str = "referenced_posts") -> dict[str, Any]:
    return {name: [{"type": "replied_to", "id": parent}]}


@pytest.mark.parametrize("name", ["referenced_posts", "referenced_tweets"])
def test_a_reply_to_another_post_is_not_ours(name):
    assert could_be(shown("5", "@alice Thank you!", **reply_to("111", name)), "Thank you!", inReplyToPostId="111")
    assert not could_be(
        shown("5", "@bob Thank you!", **reply_to("222", name)), "@alice Thank you!", inReplyToPostId="111"
    )
    assert not could_be(shown("5", "Thank you!", **reply_to("222", name)), "Thank you!")
    assert not could_be(shown("5", "Thank you!", **reply_to("222", name)), "Thank you!", inReplyToPostId="111")
    any_parent = {"replyToPostId": "01a12f57-1a80-7074-9d08-074dfc0027ba"}
    assert could_be(shown("5", "@bob Thank you!", **reply_to("222", name)), "Thank you!", **any_parent)
    assert not could_be(shown("5", "Thank you!", conversation_id="5"), "Thank you!", **any_parent)


def test_a_top_post_is_no_reply_and_a_reply_is_no_top_post():
    top, below = shown("5", "Thank you!", conversation_id="5"), shown("5", "Thank you!", conversation_id="3")
    assert could_be(top, "Thank you!")
    assert not could_be(top, "Thank you!", inReplyToPostId="111")
    assert not could_be(below, "Thank you!")
    assert could_be(below, "Thank you!", inReplyToPostId="111"), "a reply to an unknown post"
    assert not could_be(shown("5", "Thank you!"), "@alice Thank you!", inReplyToPostId="111")
    edited = shown("9", "Thank you!", conversation_id="5", edit_history_post_ids=["5", "9"])
    assert could_be(edited, "Thank you!")


def test_absent_and_null_fields_prove_nothing():
    nothing = dict.fromkeys(
        ("attachments", "author_id", "conversation_id", "created_at", "entities", "note_post", "referenced_posts")
    )
    assert could_be({"id": "5", "text": "Hi", **nothing}, "Hi")
    assert could_be({"id": "5", "text": "Hi"}, "Hi", inReplyToPostId="111")
    assert could_be({"id": "5", "text": "Hi https://t.co/m", **nothing}, "Hi", image())
    assert could_be(shown("5", "Hi https://t.co/m", MEDIA_LINK), "Hi", image()), "a field that failed X"
    assert could_be(shown("5", "Hi", conversation_id=None, referenced_posts=[]), "Hi", inReplyToPostId="111")


def test_a_quote_of_another_post_is_not_ours():
    quoted = {"referenced_posts": [{"type": "quoted", "id": "78"}]}
    assert not could_be(shown("5", "Look", **quoted), "Look", quotePostId="77")
    assert could_be(shown("5", "Look", **quoted), "Look", quotePostId="78")
    assert not could_be(shown("5", "Look", **quoted), "Look", inReplyToPostId="78")


def test_a_post_of_another_account_is_not_ours():
    assert could_be(shown("5", "Hi", author_id="2244990001"), "Hi")
    assert not could_be(shown("5", "Hi", author_id="77"), "Hi")


@pytest.mark.parametrize("id", [None, "", "x", "-5", "1" * 20, "1" * 5000, True, ["5"], 5.5])
def test_a_post_without_an_id_does_not_match(id):
    assert not could_be(shown(id, "Hi"), "Hi")


@pytest.mark.parametrize(
    ("keys", "media", "fits"),
    [
        (["3_1"], (image(),), True),
        (["3_1", "3_2"], (image(0), image(1)), True),
        (["3_1"], (gif(frames=1),), True),
        (["16_1"], (gif(),), True),
        (["7_1"], (video(),), True),
        (["13_1"], (video(),), True),
        (["99_1"], (video(),), True),
        (["3_1"], (image(0), image(1)), False),
        (["7_1"], (image(),), False),
        (["3_1"], (gif(),), False),
        (["16_1"], (video(),), False),
        (["3_1"], (), False),
        ([], (image(),), False),
    ],
)
def test_kind_and_number_of_media_must_fit(keys, media, fits):
    post = shown("5", "Hi https://t.co/m", MEDIA_LINK if keys else {}, attachments={"media_keys": keys})
    assert could_be(post, "Hi", *media) is fits


def test_media_also_appear_in_the_links():
    assert not could_be(shown("5", "Hi https://t.co/m", MEDIA_LINK), "Hi")
    assert not could_be(shown("5", "Hi https://t.co/m", MEDIA_LINK), "Hi", video())
    assert not could_be(shown("5", "Hi"), "Hi", image()), "X ends such a text with their link"
