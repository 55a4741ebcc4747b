"""A link card shows what the page says about itself, and a page that cannot be read never fails the post."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from socialpub.providers.base import (
    Again,
    Cause,
    Content,
    Done,
    Fetched,
    ImageLimits,
    MediaFile,
    NotFetched,
    Published,
    Refused,
    Wait,
)
from socialpub.providers.bluesky.card import read_page
from socialpub.providers.bluesky.graphemes import count_graphemes
from socialpub.providers.responses import AuthExpired, HttpResponse, NoAnswer, NotSent, Throttled
from tests.support.scripted_calls import answer
from tests.unit.providers.bluesky import script
from tests.unit.providers.bluesky.script import ADAPTER, Script, blob, image

URL = "https://example.com/a/page"
PAGE = """<!doctype html><html><head><meta charset=utf-8><title>Plain title</title>
<!-- <meta property="og:title" content="Comment"> --><script>"<meta property='og:title' content='Script'>"</script>
<META Property="og:title" CONTENT="Tea &amp; cake &#8211; a
 page"><meta name=description content=Short><meta content='It says "hi"' property='og:description'>
<meta property="og:image" content="/cover.jpg?a=1&amp;b=2"><meta property="og:title" content="Second"></head>"""


def test_the_head_of_a_page_gives_title_description_and_image():
    found = read_page(PAGE.encode(), None, URL)
    assert found.title == "Tea & cake – a page"
    assert found.description == 'It says "hi"'
    assert found.images == ("https://example.com/cover.jpg?a=1&b=2",)


@pytest.mark.parametrize(
    ("page", "title", "description", "image"),
    [
        (b"", "", "", None),
        (b"<title> Only \n a title </title>", "Only a title", "", None),
        (b"<meta property=og:title content=''><title>Title</title>", "Title", "", None),
        (b"<meta name='twitter:title' content=T><meta name=Description content=D>", "T", "D", None),
        (b"<meta property=og:image content='javascript:alert(1)'>", "", "", None),
        (b"<meta property=og:image content='//cdn.example.com/a.png'>", "", "", "https://cdn.example.com/a.png"),
        (b"<meta property=og:image content='http://[bad'>", "", "", None),
        (b"<meta property=og:title content='a\x00\xe2\x80\xaeb'>", "a b", "", None),
        (b"<meta property='og:title' content='unclosed", "", "", None),
        (b"\xff\xfe" + "<title>é</title>".encode("utf-16-le"), "é", "", None),
        (b"<meta charset=iso-8859-1><title>\xe9</title>", "é", "", None),
        (b"<meta charset=punycode><title>plain</title>", "plain", "", None),
        (b"<title>\xff</title>", "ÿ", "", None),
        (b"<title>\xff\xc3\xa4</title>", "�ä", "", None),
        (b"<meta charset=iso-8859-1><title>\x93a\x94</title>", "“a”", "", None),
        (b"<meta charset=gb2312><title>" + "镕".encode("gbk"), "镕", "", None),
        (b"<meta charset=utf-16><title>\xc3\xa4</title>", "ä", "", None),
        (b"<?xml version='1.0' encoding='koi8-r'?><title>\xc1</title>", "а", "", None),
        (b"<base href='/b/'><meta property=og:image content=c.png>", "", "", "https://example.com/b/c.png"),
        (
            b"<base href='//cdn.example.com'><meta property=og:image content='c d.png'>",
            "",
            "",
            "https://cdn.example.com/c d.png",
        ),
        (b"<base target=_top><meta property=og:image content='?c=1'>", "", "", "https://example.com/a/page?c=1"),
    ],
)
def test_incomplete_and_odd_pages_give_what_they_have(page, title, description, image):
    found = read_page(page, None, URL)
    assert (found.title, found.description, found.images) == (title, description, (image,) if image else ())


def test_the_charset_of_the_response_counts_before_that_of_the_page():
    japanese = b"<meta charset=utf-8><title>" + "日本".encode("shift_jis") + b"</title>"
    assert read_page(japanese, "Shift_JIS", URL).title == "日本"
    assert read_page(b"<title>abc</title>", "idna", URL).title == "abc"


def test_long_titles_are_cut_between_graphemes():
    title = read_page(("<title>" + "👨‍👩‍👧" * 500 + "</title>").encode(), None, URL).title
    assert (count_graphemes(title), title[-1]) == (300, "…")


# --- the step --------------------------------------------------------------------------------------------------------

TEXT = f"Read {URL}."


def page(body: str = PAGE, **changes: Any) -> Fetched:
    return Fetched(**{"url": URL, "content_type": "text/html", "charset": None, "body": body.encode(), **changes})


def run_card(
    *answers: HttpResponse,
    fetch: Callable[[str, int], Fetched],
    fetch_image: Callable[[str, ImageLimits], MediaFile] | None = None,
    options: dict[str, Any] | None = None,
    memo: dict[str, Any] | None = None,
) -> dict[str, Any]:
    more: dict[str, Any] = {"fetch": fetch, "kept_file": lambda _: Path(__file__), "memo": memo or {}}
    if fetch_image is not None:
        more["fetch_image"] = fetch_image
    outcome = script.run("card", Script(*answers), TEXT, options=options, **more)
    assert isinstance(outcome, Done)
    return outcome.memo


def unreachable(*_: object) -> Any:
    raise NotFetched("The page answered 404 Not Found.")


def test_only_a_post_with_a_link_and_without_media_has_the_step():
    def steps(content: Content, **options: Any) -> list[str]:
        return [step.name for step in ADAPTER.plan(content, options)]

    assert steps(Content(TEXT)) == ["card", "record", "publish"]
    assert steps(Content("No link")) == ["record", "publish"]
    assert steps(Content(TEXT), linkCard=False) == ["record", "publish"]
    assert steps(Content(TEXT, (image(),))) == ["upload:0", "record", "publish"]


def test_the_card_has_the_link_as_written_and_an_uploaded_image():
    asked: list[Any] = []

    def fetch(url: str, max_bytes: int) -> Fetched:
        asked.append(url)
        return page(url="https://www.example.com/moved/")

    def fetch_image(url: str, limits: ImageLimits) -> MediaFile:
        asked.append((url, limits.max_bytes))
        return image()

    memo = run_card(answer(200, {"blob": blob()}), fetch=fetch, fetch_image=fetch_image)
    assert asked == [URL, ("https://www.example.com/cover.jpg?a=1&b=2", 1_000_000)]
    assert memo["card"] == {
        "uri": URL,
        "title": "Tea & cake – a page",
        "description": 'It says "hi"',
        "thumb": blob(),
    }
    assert "notes" not in memo


def test_a_page_that_cannot_be_read_leaves_a_note_and_no_card():
    memo = run_card(fetch=unreachable)
    assert memo == {"notes": ["The post has no link card. The page answered 404 Not Found."]}
    memo = run_card(fetch=lambda *_: page(content_type="application/pdf"))
    assert memo == {"notes": ["The post has no link card. The link does not lead to an HTML page."]}


@pytest.mark.parametrize(
    ("content_type", "body", "is_page"),
    [
        ("text/html", "plain", True),
        ("", " <!-- a --> <!DOCTYPE html>", True),
        ("", "\ufeff<?xml version='1.0'?>\n<html>", True),
        ("*/*", "<head><title>T</title>", True),
        ("", "%PDF-1.7 <html>", False),
        ("", "<svg>", False),
        ("text/plain", "<html>", False),
    ],
)
def test_the_beginning_of_a_page_without_a_content_type_decides(content_type, body, is_page):
    memo = run_card(fetch=lambda *_: page(body, content_type=content_type))
    assert ("card" in memo) == is_page


def test_the_next_image_is_tried_when_one_does_not_load():
    asked: list[str] = []

    def fetch_image(url: str, _: ImageLimits) -> MediaFile:
        asked.append(url.rpartition("/")[2])
        if len(asked) < 3:
            raise NotFetched("The image answered 404 Not Found.")
        return image()

    images = "".join(f"<meta property=og:image content=/{name}>" for name in "aabc")
    body = f"<meta name=twitter:image content=/d>{images}"
    memo = run_card(answer(200, {"blob": blob()}), fetch=lambda *_: page(body), fetch_image=fetch_image)
    assert asked == ["a", "b", "c"]
    assert "notes" not in memo
    assert memo["card"]["thumb"] == blob()


def test_an_image_that_cannot_be_used_leaves_a_card_without_an_image():
    memo = run_card(fetch=lambda *_: page(), fetch_image=unreachable)
    assert set(memo["card"]) == {"uri", "title", "description"}
    assert memo["notes"] == ["The link card has no image. The page answered 404 Not Found."]
    refused = script.refusal(413, "PayloadTooLarge")
    memo = run_card(refused, fetch=lambda *_: page(), fetch_image=lambda *_: image())
    assert "thumb" not in memo["card"]


@pytest.mark.parametrize(
    "failure",
    [
        script.refusal(429, "RateLimitExceeded"),
        answer(503, b"<html>"),
        answer(200, {"blob": "odd"}),
        NoAnswer("timed out"),
    ],
)
def test_an_image_that_the_server_does_not_accept_is_sent_three_times(failure):
    memo: dict[str, Any] = {}
    more: dict[str, Any] = {
        "fetch": lambda *_: page(),
        "fetch_image": lambda *_: image(),
        "kept_file": lambda _: Path(__file__),
    }
    for _ in range(2):
        waits = script.run("card", Script(failure), TEXT, memo=memo, **more)
        assert isinstance(waits, Wait)
        memo = waits.memo
    last = script.run("card", Script(failure), TEXT, memo=memo, **more)
    assert isinstance(last, Done)
    assert set(last.memo["card"]) == {"uri", "title", "description"}
    assert last.memo["notes"][0].startswith("The link card has no image. ")


@pytest.mark.parametrize(
    "error", [AuthExpired("expired"), NotSent("no route"), Throttled("x", code="AccountDeactivated")]
)
def test_what_stops_the_post_too_does_not_cost_the_image(error):
    more: dict[str, Any] = {"fetch_image": lambda *_: image(), "kept_file": lambda _: Path(__file__)}
    with pytest.raises(type(error)):
        script.run("card", Script(error), TEXT, fetch=lambda *_: page(), **more)


# --- a card that the server refuses ----------------------------------------------------------------------------------

CARD = {"uri": URL, "title": "Tea", "description": "", "thumb": blob()}


def build(memo: dict[str, Any]) -> dict[str, Any]:
    outcome = script.run("record", Script(), TEXT, memo=memo)
    assert isinstance(outcome, Done)
    return outcome.memo


@pytest.mark.parametrize(
    ("refusal", "before"),
    [
        (script.refusal(400, "InvalidRequest", "Invalid app.bsky.feed.post record: at $.record.embed"), 0),
        (script.refusal(400, "InvalidRequest", "blob too big (maximum 500000, got 900000)"), 0),
        (script.refusal(413, "PayloadTooLargeError"), 0),
        (script.refusal(400, "BlobNotFound"), 2),
    ],
)
def test_a_refused_card_goes_first_without_its_image_and_then_not_at_all(refusal, before):
    memo, back = build({"card": CARD}), {Cause.FORGOTTEN: before}
    outcome = script.run("publish", Script(refusal), TEXT, memo=memo, back=back)
    assert isinstance(outcome, Again)
    assert (outcome.step, "thumb" in outcome.memo["card"]) == ("record", False)
    again = script.run("publish", Script(refusal), TEXT, memo=build(outcome.memo), back=back)
    assert isinstance(again, Again)
    last = build(again.memo)
    assert "embed" not in last["record"]["post"]
    assert last["notes"] == [
        "The account's server refused the image of its link card.",
        "The account's server refused its link card.",
    ]
    if before == 0:
        assert isinstance(script.run("publish", Script(refusal), TEXT, memo=last, back=back), Refused)


def test_an_image_that_is_gone_after_an_unknown_outcome_is_left_out_under_the_same_key():
    memo = build({"card": CARD})
    key, gone = memo["record"]["key"], script.refusal(400, "BlobNotFound")
    written = answer(200, {"uri": f"at://{script.DID}/app.bsky.feed.post/{key}", "cid": "bafy"})
    calls = Script(gone, script.refusal(400, "RecordNotFound"), written)
    outcome = script.run("publish", calls, TEXT, memo=memo, unknown_before=True)
    assert isinstance(outcome, Published)
    body = calls.calls[-1].json
    assert (body["rkey"], "thumb" in body["record"]["embed"]["external"]) == (key, False)
    assert body["record"]["createdAt"] == memo["record"]["post"]["createdAt"]


def test_a_page_without_a_title_is_named_by_its_host():
    memo = run_card(fetch=lambda *_: page(""))
    assert memo["card"] == {"uri": URL, "title": "example.com", "description": ""}
