"""Who is a browser, by the Accept header."""

import pytest

from socialpub.web.http import answer


@pytest.mark.parametrize(
    "header",
    [
        b"text/html",
        b"Text/HTML, application/json",
        b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        b"application/json;q=0.5, text/html ; q=0.6",
        b"text/html;level=1;q=0.3",
        b"text/html;q=high",
    ],
)
def test_a_page_that_is_wanted_at_least_as_much_as_json_is_shown(header: bytes) -> None:
    assert answer.prefers_page(header)


@pytest.mark.parametrize(
    "header",
    [
        None,
        b"",
        b"*/*",
        b"application/json",
        b"text/html;q=0",
        b"text/html;q=0.4, application/json;q=0.5",
        b"application/json, text/html;q=0.9",
        b"text/html5",
    ],
)
def test_everything_else_is_a_script(header: bytes | None) -> None:
    assert not answer.prefers_page(header)
