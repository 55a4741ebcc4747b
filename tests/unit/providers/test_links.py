"""A link covers exactly its URL in every surrounding."""

from itertools import product

import pytest

from socialpub.providers.links import find_links

WITH_SCHEME = [
    *("https://example.com", "http://example.com/", "https://example.com/a", "https://example.com:8080/a/?b=1&c=%20#d"),
    *("https://example.com?q=1", "https://example.com#top", "https://a-b.example.com/x_y-z~1;v=2,3", "http://nas/a"),
    *("https://de.wikipedia.org/wiki/Wien_(Begriff)", "https://example.com/a[1]/{b}", "https://example.com/((a)b)"),
    *("https://ja.wikipedia.org/wiki/日本", "https://ja.wikipedia.org/wiki/ジョン・レノン", "https://日本語.jp/あ"),
    *("https://münchen.de/straße", "https://пример.рф/путь", "https://example.com/2019–20", "https://हिन्दी.भारत/अ"),
    *("https://example.com/@name", "https://web.example.com/2020/https://example.org/a", "http://192.0.2.1:80/a"),
    *(
        "http://[2001:db8::1]:8080/a",
        "https://xn--fsq.example.com/a",
        "https://example.com/a/",
        "https://example.com/!a",
    ),
]
BARE = ["example.com", "www.example.org/a?b=c", "example.co.uk/a_(b)", "example.com:8080/a"]

QUOTES = [
    "„“",
    "“”",
    "‚‘",
    "‘’",
    "«»",
    "»«",
    "‹›",
    "''",
    '""',
    "``",
    "「」",
    "『』",
    "〝〟",
    "＂＂",
    "＇＇",
    "❝❞",
    "﹁﹂",
]
BRACKETS = [
    "()",
    "[]",
    "{}",
    "<>",
    "（）",
    "［］",
    "｛｝",
    "【】",
    "〔〕",
    "〈〉",
    "《》",
    "〖〗",
    "﹙﹚",
    "⟨⟩",
    "｢｣",
    "⸨⸩",
]
BEFORE = [
    *("", *" \n\t\u00a0\u3000\u2028\u200b\u202b\ufeff", *"→➡👉•·–—…:;,.!?|*。、：；！？・～〜，．｡¿¡،؛؟।"),
    *("🎉", "☕️", "①", "は", "中", "한", "ไ"),
]  # fmt: skip
AFTER = [
    *("", " ", "\n", "\u00a0", "\u3000", "\u200b", "\u202c", "\ufeff", ".", ",", ";", ":", "!", "?", "...", "?!"),
    *(".)", "),", "—", "—次", "–"),
    *("。", "。次", "、", "，次", "：", "！？", "…", "……", "〜", "～次", "→次", " (a)", ", b", "👈"),
    *("🎉", "☕️", "；", "؟", "،", "।", "။"),
    *(")", "]", "}", ">", "）", "】", "」", "”", "»", "’s", '"', "'", "`", '">', "）。", "».", "”,"),
]  # fmt: skip
AROUND = [
    *((pair[0], pair[1] + after) for pair, after in product(QUOTES + BRACKETS, ("", " a", ".", "。次", "、")))
    , *product(BEFORE, AFTER), ("**", "**"), ("_", "_ a"), ("~~", "~~"), ("| ", "|"), ("](", ")"), ("詳細は ", "。次"),
    ("Link:", ""), ("a, ", " @bob.test"), ("siehe (dort: ", ")"), ("[Text](", ")."), ("href=\"", "\">"),
]  # fmt: skip


@pytest.mark.parametrize("url", WITH_SCHEME + BARE)
def test_exactly_the_url_is_the_link_in_every_surrounding(url):
    complete = url if "://" in url else f"https://{url}"
    for before, after in AROUND:
        if url in BARE and before == ".":
            continue
        text = f"{before}{url}{after}"
        shown = [(text[link.start : link.end], link.url) for link in find_links(text)]
        assert shown == [(url, complete)], text


@pytest.mark.parametrize(
    "text",
    [
        *("me@example.com", "john.info@example.com", "a.example.com@b", "mailto:me@example.de", "@alice.example.com"),
        *(
            "https://user:hush@example.com/",
            "https://example.com@example.org",
            "＠example.com",
            "#example.com",
            "$a.com",
        ),
        *("xhttps://example.com", "1https://example.com", "éhttps://example.com", "яhttps://example.com", "https://"),
        *("https:///a", "https://.", "http://-a", "ftp://example.com", "a/example.com", "ko-fi.com", "example.com-a"),
        *("example.com_a", "example.comé", "node.js", "1.2.3.4", "e.g", "example.COM", "javascript:alert(1)", "..com"),
    ],
)
def test_a_part_of_a_word_an_address_or_a_name_is_no_link(text):
    assert list(find_links(text)) == []


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("HTTPS://Example.com/A", ["https://Example.com/A"]),  # readers' apps know schemes in lower case only
        ("https://example.comを見て", ["https://example.com"]),
        ("example.comを見て、example.org/a", ["https://example.com", "https://example.org/a"]),
        ("https://a.com/x,https://b.com/y", ["https://a.com/x,https://b.com/y"]),
        ("https://a.com、https://b.com。", ["https://a.com", "https://b.com"]),
        ("https://example.com/a(b", ["https://example.com/a(b"]),
        ("https://example.com/a (b)", ["https://example.com/a"]),
        ("https://example.com./a. https://example.com. /a", ["https://example.com./a", "https://example.com"]),
        ("https://example.com(b)", ["https://example.com"]),
    ],
)
def test_links_in_special_places(text, urls):
    assert [link.url for link in find_links(text)] == urls
