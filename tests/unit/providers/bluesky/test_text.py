"""Bluesky's graphemes and facets are those of its server and of its own app."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socialpub.providers.bluesky.graphemes import count_graphemes, cut_graphemes, split_graphemes
from socialpub.providers.bluesky.text import MarkKind, facets, find_marks, first_link, list_handles

FAMILY = "👨‍👩‍👧"
_RECORDED = (Path(__file__).parent / "graphemes.txt").read_text("utf-8").splitlines()[1:]


def test_graphemes_are_those_of_the_server():
    for line in _RECORDED:
        count, *points = line.split()
        text = "".join(chr(int(point, 16)) for point in points)
        assert count_graphemes(text) == int(count), points


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("Hello", 5),
        (FAMILY, 1),
        ("🇫🇷🇩🇪", 2),
        ("👍🏽", 1),
        ("1️⃣", 1),
        ("\r\n", 1),
        ("\n\r", 2),
        ("e\u0301", 1),
        ("क्षि", 1),
        ("한국", 2),
        ("\u1112\u1161\u11ab", 1),
        ("ស្រី", 1),
        ("கு", 1),
        ("a\u200db", 2),
        ("\ufeff", 1),
    ],
)
def test_a_grapheme_is_what_readers_see_as_one_character(text, count):
    assert count_graphemes(text) == count


@given(st.text())
def test_the_graphemes_of_a_text_are_the_whole_text(text):
    assert "".join(split_graphemes(text)) == text


@given(st.lists(st.sampled_from([FAMILY, "a", " ", "é", "🇫🇷"])).map("".join), st.integers(2, 9))
def test_a_text_is_cut_between_graphemes(text, most):
    cut = cut_graphemes(text, most)
    assert count_graphemes(cut) <= most
    assert cut == text or text.startswith(cut.removesuffix("…"))
    assert (cut == text) == (count_graphemes(text) <= most)


PIECES = st.sampled_from(
    [
        *("https://example.com/ä", "http://example.com?q=1#x", "example.com", "(https://example.com/a_(b))", "node.js"),
        *("httpbin.org/get", "HTTPS://EXAMPLE.COM", "https:///a", "turn.off", "@alice.test", "@bob.bsky.social", "@"),
        *("#tag", "#täg", "＃日本", "#1", "#️⃣", "#(https://a.com", "$TSLA", "$aapl", FAMILY, "🇫🇷", "e\u0301"),
        *(" ", "\n", "\u00a0", "\u200b", ".", ",", "!", "(", ")", "’", "a", "-", "_"),
    ]
)


@given(st.lists(PIECES, max_size=12).map("".join))
def test_every_facet_covers_exactly_its_url_tag_or_handle(text):
    raw, reached = text.encode(), 0
    dids = {handle: f"did:plc:{handle}" for handle in list_handles(text)}
    found = facets(text, dids)
    assert len(found) == len(find_marks(text))
    for facet in found:
        start, end = facet["index"]["byteStart"], facet["index"]["byteEnd"]
        assert reached <= start < end <= len(raw)
        reached = end
        part, feature = raw[start:end].decode(), facet["features"][0]
        match feature["$type"].partition("#")[2]:
            case "link":
                assert feature["uri"] in (part, f"https://{part}", part.replace("HTTPS:", "https:", 1))
                assert feature["uri"].startswith(("https://", "http://"))
            case "mention":
                assert part[0] == "@"
                assert feature["did"] == f"did:plc:{part[1:].lower()}"
            case "tag":
                assert feature["tag"] in (part[1:], part.upper())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see https://example.com/a.", [("link", "https://example.com/a")]),
        ("(example.com)", [("link", "https://example.com")]),
        ("https://example.com/a_(b)", [("link", "https://example.com/a_(b)")]),
        ("httpbin.org/get", [("link", "https://httpbin.org/get")]),
        ("me@example.com node.js turn.off x.music", [("link", "https://x.music")]),
        ("https:/// https://. javascript:alert(1) ftp://example.com", []),
        (
            "@alice.test, (@bob.bsky.social) @stranger @a.b_c",
            [("mention", "alice.test"), ("mention", "bob.bsky.social")],
        ),
        ("#tag. #1 ＃日本! a#b #️⃣ #a-b #" + "x" * 65, [("tag", "tag"), ("tag", "日本"), ("tag", "a-b")]),
        ("$tsla $TOOLONG $5", [("tag", "$TSLA")]),
        ("#(https://example.com)", [("link", "https://example.com")]),
        ("#日本】https://example.com/a", [("tag", "日本"), ("link", "https://example.com/a")]),
        ("#https://example.com #example.com", [("link", "https://example.com"), ("tag", "example.com")]),
    ],
)
def test_links_mentions_and_hashtags_are_found(text, found):
    assert [(mark.kind.value, mark.value) for mark in find_marks(text)] == found


def test_facets_behind_an_emoji_count_bytes():
    text = f"{FAMILY} https://example.com #täg @unknown.test @bob.test."
    raw = text.encode()
    found = facets(text, {"bob.test": "did:plc:bob"})
    slices = [raw[one["index"]["byteStart"] : one["index"]["byteEnd"]].decode() for one in found]
    assert slices == ["https://example.com", "#täg", "@bob.test"]
    assert [one["features"][0] for one in found] == [
        {"$type": "app.bsky.richtext.facet#link", "uri": "https://example.com"},
        {"$type": "app.bsky.richtext.facet#tag", "tag": "täg"},
        {"$type": "app.bsky.richtext.facet#mention", "did": "did:plc:bob"},
    ]


def test_a_mention_is_asked_about_once_in_lower_case():
    assert list_handles("@Alice.test @alice.test @bob.test") == ["alice.test", "bob.test"]
    assert find_marks("@Alice.test")[0].kind is MarkKind.MENTION


def test_the_first_link_is_the_one_for_a_card():
    assert first_link("#a example.com https://example.org") == "https://example.com"
    assert first_link("nothing") is None
