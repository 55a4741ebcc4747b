"""A link card shows what the page says about itself, and a page that cannot be read never fails the post."""

from collections.abc import Callable
from typing import Any

import pytest

from socialpub.providers.base import Content, Done, Fetched, ImageLimits, MediaFile, NotFetched
from socialpub.providers.bluesky.card import read_page
from socialpub.providers.bluesky.graphemes import count_graphemes
from socialpub.providers.responses import AuthExpired, HttpResponse, Throttled
from tests.support.scripted_calls import answer
from tests.unit.providers.bluesky import script
from tests.unit.providers.bluesky.script import ADAPTER, Script, blob, image

URL = "https://example.com/a/page"
PAGE = """<!doctype html><html><head><meta charset=utf-8><title>Plain title</title>
<!-- <meta property="og:title" content="Comment"> --><script>"<meta property='og:title' content='Script'>"</script>
<META Property="og:title" CONTENT="Tea &amp; cake &#8211; a
 page"><meta name=description content=Short><meta content='It says "hi"' property='og:description'>
<meta property="og:image" content="/cover.jpg?a=1&amp;b=2"><meta property="og:title" content="Second"></head>"""


def test_the_head_of_a_page_gives_title_description_and_image() -> None:
    found = read_page(PAGE.encode(), None, URL)
    assert found.title == "Tea & cake – a page"
    assert found.description == 'It says "hi"'
    assert found.image == "https://example.com/cover.jpg?a=1&b=2"


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
        (b"<title>\xff</title>", "�", "", None),
    ],
)
def test_incomplete_and_odd_pages_give_what_they_have(
    page: bytes, title: str, description: str, image: str | None
) -> None:
    found = read_page(page, None, URL)
    assert (found.title, found.description, found.image) == (title, description, image)


def test_the_charset_of_the_response_counts_before_that_of_the_page() -> None:
    japanese = b"<meta charset=utf-8><title>" + "日本".encode("shift_jis") + b"</title>"
    assert read_page(japanese, "Shift_JIS", URL).title == "日本"
    assert read_page(b"<title>abc</title>", "idna", URL).title == "abc"


def test_long_titles_are_cut_between_graphemes() -> None:
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
) -> dict[str, Any]:
    more: dict[str, Any] = {"fetch": fetch}
    if fetch_image is not None:
        more["fetch_image"] = fetch_image
    outcome = script.run("card", Script(*answers), TEXT, options=options, **more)
    assert isinstance(outcome, Done)
    return outcome.memo


def unreachable(*_: object) -> Any:
    raise NotFetched("The page answered 404 Not Found.")


def test_only_a_post_with_a_link_and_without_media_has_the_step() -> None:
    def steps(content: Content, **options: Any) -> list[str]:
        return [step.name for step in ADAPTER.plan(content, options)]

    assert steps(Content(TEXT)) == ["card", "record", "publish"]
    assert steps(Content("No link")) == ["record", "publish"]
    assert steps(Content(TEXT), linkCard=False) == ["record", "publish"]
    assert steps(Content(TEXT, (image(),))) == ["upload:0", "record", "publish"]


def test_the_card_has_the_link_as_written_and_an_uploaded_image() -> None:
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


def test_a_page_that_cannot_be_read_leaves_a_note_and_no_card() -> None:
    memo = run_card(fetch=unreachable)
    assert memo == {"notes": ["The post has no link card. The page answered 404 Not Found."]}
    memo = run_card(fetch=lambda *_: page(content_type="application/pdf"))
    assert memo == {"notes": ["The post has no link card. The link does not lead to an HTML page."]}


def test_an_image_that_cannot_be_used_leaves_a_card_without_an_image() -> None:
    memo = run_card(fetch=lambda *_: page(), fetch_image=unreachable)
    assert set(memo["card"]) == {"uri", "title", "description"}
    assert memo["notes"] == ["The link card has no image. The page answered 404 Not Found."]
    refused = script.refusal(413, "PayloadTooLarge")
    memo = run_card(refused, fetch=lambda *_: page(), fetch_image=lambda *_: image())
    assert "thumb" not in memo["card"]


@pytest.mark.parametrize(
    ("refused", "error"), [((429, "RateLimitExceeded"), Throttled), ((400, "ExpiredToken"), AuthExpired)]
)
def test_an_image_that_the_server_does_not_accept_now_is_sent_again(
    refused: tuple[int, str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        run_card(script.refusal(*refused), fetch=lambda *_: page(), fetch_image=lambda *_: image())


def test_a_page_without_a_title_is_named_by_its_host() -> None:
    memo = run_card(fetch=lambda *_: page(""))
    assert memo["card"] == {"uri": URL, "title": "example.com", "description": ""}
